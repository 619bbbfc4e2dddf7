//! FCALL and FUNCTION.

mod rows;

use base::limits::{LIBRARY_LOAD_US, LIBRARY_RELOAD_US};
use resp::reply::Reply;

pub(crate) use rows::FAMILY;

use engine::admission;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::script::functions::{Function, Library, Policy};
use engine::script::interpreter::Call;
use engine::script::shebang;
use engine::script::slow::Kind;
use engine::scripting::run::{self, Run, Subject};

/// FCALL function numkeys [key ...] [arg ...]
fn fcall(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    call(cx, args, false)
}

/// FCALL_RO function numkeys [key ...] [arg ...]
fn fcall_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    call(cx, args, true)
}

fn call(cx: &mut Context<'_>, args: &mut Args<'_>, read_only: bool) -> CommandResult {
    run::show(cx, args);
    let name = args.bytes()?;
    let found = cx.engine.scripts.functions.find(name);
    cx.depend_on_libraries();
    let (library, index) = found.ok_or(CommandError::text("ERR Function not found"))?;
    let function = &library.functions[index];
    let bad = |_| CommandError::text("ERR Bad number of keys provided");
    let keys = args.i64().map_err(bad)?;
    let keys = run::number_of_keys(keys, args.len())?;
    admission::admit_script(cx, function.flags, read_only)?;
    let subject = Subject {
        kind: Kind::Function,
        name: &function.name,
        flags: function.flags,
        read_only,
        slot: run::declared_slot(args, keys),
        argv: args.argv(),
    };
    run::stop_the_world(cx, &subject, library.may_empty)?;
    let call = Call { argv: args.rest(), keys };
    let interpreter = &*cx.engine.scripts.interpreter;
    let evaluate = |run: &mut Run<'_, '_>, reply: &mut Reply<'_>| {
        interpreter.call(run, &library, function, call, reply)
    };
    let (end, left) = run::run(cx, &subject, evaluate);
    run::conclude(cx, end, &left)
}

/// FUNCTION LOAD [REPLACE] function-code
fn load(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let mut policy = Policy::Append;
    while args.len() > 1 {
        let word = args.bytes()?;
        if !word.eq_ignore_ascii_case(b"replace") {
            return Err(CommandError::quoting("ERR Unknown option given: ", word, ""));
        }
        policy = Policy::Replace;
    }
    let source = args.bytes()?;
    let time_us = if cx.session.repeats() { LIBRARY_RELOAD_US } else { LIBRARY_LOAD_US };
    let library = cx.engine.load_library(source, policy == Policy::Replace, time_us)?;
    let name = library.name.clone();
    let added = cx.engine.scripts.functions.add(vec![library], policy);
    if added.is_err() || policy == Policy::Replace {
        // Otherwise each thread would keep the functions that it has loaded, which nobody can call.
        cx.engine.scripts.interpreter.forget_libraries();
    }
    added?;
    cx.add_dirty(1);
    cx.reply.bulk(&name);
    Ok(())
}

/// FUNCTION DELETE library-name
fn delete(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    cx.engine.scripts.functions.remove(args.bytes()?)?;
    cx.engine.scripts.interpreter.forget_libraries();
    cx.add_dirty(1);
    cx.reply.ok();
    Ok(())
}

/// FUNCTION FLUSH [ASYNC | SYNC]
fn flush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.bytes()?;
    if args.len() > 1 {
        return Err(CommandError::subcommand_syntax("function", subcommand));
    }
    let is_known = args.is_empty() || args.word("ASYNC") || args.word("SYNC");
    if !is_known || !args.is_empty() {
        return Err(CommandError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    cx.engine.scripts.functions.flush();
    cx.engine.scripts.interpreter.forget_libraries();
    cx.add_dirty(1);
    cx.reply.ok();
    Ok(())
}

/// FUNCTION KILL
fn kill(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.scripts.slow.kill(Kind::Function)?;
    cx.reply.ok();
    Ok(())
}

/// FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]
fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (mut pattern, mut with_code) = (None, false);
    while let Some(word) = args.peek() {
        if !with_code && args.word("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.word("LIBRARYNAME") {
            let missing = |_| CommandError::text("ERR library name argument was not given");
            pattern = Some(args.bytes().map_err(missing)?);
        } else {
            return Err(CommandError::quoting("ERR Unknown argument ", word, ""));
        }
    }
    let mut libraries = cx.engine.scripts.functions.libraries();
    if let Some(pattern) = pattern {
        libraries.retain(|library| base::glob::matches_ignoring_case(pattern, &library.name));
    }
    cx.reply.array(libraries.len());
    for library in &libraries {
        describe(&mut cx.reply, library, with_code);
    }
    Ok(())
}

fn describe(reply: &mut Reply<'_>, library: &Library, with_code: bool) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        describe_function(reply, function);
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(library.source());
    }
}

fn describe_function(reply: &mut Reply<'_>, function: &Function) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(&function.name);
    reply.bulk(b"description");
    match &function.description {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    let flags = || shebang::NAMES.iter().filter(|(flag, _)| function.flags & flag != 0);
    reply.set(flags().count());
    flags().for_each(|(_, name)| reply.simple(name.as_bytes()));
}

/// FUNCTION STATS
fn stats(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let scripts = &cx.engine.scripts;
    let now = base::clock::monotonic_us();
    let reply = &mut cx.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match scripts.slow.first() {
        None => reply.null(),
        Some(slow) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&slow.name);
            reply.bulk(b"command");
            reply.array(slow.command.len());
            slow.command.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer((now.saturating_sub(slow.begun) / 1000) as i64);
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(scripts.functions.libraries().len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(scripts.functions.count() as i64);
    Ok(())
}

/// FUNCTION DUMP
fn dump(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let libraries = cx.engine.scripts.functions.libraries();
    let sources = libraries.iter().map(|library| library.source());
    cx.reply.bulk(&rdb::dump_functions(sources, cx.db.config.rdbcompression));
    Ok(())
}

/// FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]
fn restore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.bytes()?;
    if args.len() > 2 {
        return Err(CommandError::subcommand_syntax("function", subcommand));
    }
    let payload = args.bytes()?;
    let policy = match args.peek() {
        None => Policy::Append,
        Some(_) if args.word("FLUSH") => Policy::Flush,
        Some(_) if args.word("APPEND") => Policy::Append,
        Some(_) if args.word("REPLACE") => Policy::Replace,
        Some(_) => {
            return Err(CommandError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let sources = rdb::restore_functions(payload).map_err(|error| match error {
        rdb::RestoreError::Footer => CommandError::BAD_PAYLOAD,
        _ => CommandError::text("ERR given type is not a function"),
    })?;
    let load = |source: &Vec<u8>| cx.engine.load_library(source, true, LIBRARY_RELOAD_US);
    let libraries = sources.iter().map(load).collect::<Result<Vec<_>, _>>();
    let added = libraries.and_then(|all| cx.engine.scripts.functions.add(all, policy));
    cx.engine.scripts.interpreter.forget_libraries();
    added?;
    cx.add_dirty(1);
    cx.reply.ok();
    Ok(())
}
