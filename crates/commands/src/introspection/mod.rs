//! COMMAND and MONITOR: what the server tells about its commands.
//!
//! All answers of COMMAND come from the rows and the documentation of commands.

mod docs;
mod info;
mod keys;
mod rows;

pub(crate) use rows::FAMILY;

use engine::command::Spec;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::{Context, Engine, Row};

/// Finds a row by "get" or "config|get".
fn find(engine: &Engine, name: &[u8]) -> Option<&'static Row> {
    let names = &engine.client_names;
    match name.iter().position(|byte| *byte == b'|') {
        None => names.find(name),
        Some(at) => engine.commands.find_subcommand(names.find(&name[..at])?, &name[at + 1..]),
    }
}

/// The rows that are no subcommands, and that clients can name.
fn top_level(engine: &Engine) -> impl Iterator<Item = &'static Row> + Clone {
    let is_named = move |row: &&Row| row.command.parent.is_none() && engine.client_names.have(row);
    engine.commands.rows().iter().filter(is_named)
}

/// COMMAND
fn command(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    reply_all(cx);
    Ok(())
}

fn reply_all(cx: &mut Context<'_>) {
    let rows = top_level(cx.engine);
    cx.reply.array(rows.clone().count());
    rows.for_each(|row| info::reply(&mut cx.reply, cx.engine.commands, row));
}

/// COMMAND COUNT
fn count(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(top_level(cx.engine).count() as i64);
    Ok(())
}

/// COMMAND INFO [command-name [command-name ...]]
fn info(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.is_empty() {
        reply_all(cx);
        return Ok(());
    }
    cx.reply.array(args.len());
    while let Ok(name) = args.bytes() {
        match find(cx.engine, name) {
            Some(row) => info::reply(&mut cx.reply, cx.engine.commands, row),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// COMMAND DOCS [command-name [command-name ...]]
fn docs(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let commands = cx.engine.commands;
    let wanted: Vec<&Row> = if args.is_empty() {
        top_level(cx.engine).collect()
    } else {
        args.rest().iter().filter_map(|name| find(cx.engine, name)).collect()
    };
    cx.reply.map(wanted.len());
    for row in wanted {
        docs::reply_named(&mut cx.reply, commands, row);
    }
    Ok(())
}

/// Which commands COMMAND LIST names.
enum Filter<'a> {
    None,
    /// There are no modules, so it finds none.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl<'a> Filter<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Filter<'a>, CommandError> {
        if args.is_empty() {
            return Ok(Filter::None);
        }
        if args.len() != 3 || !args.word("filterby") {
            return Err(CommandError::SYNTAX);
        }
        if args.word("module") {
            Ok(Filter::Module)
        } else if args.word("aclcat") {
            Ok(Filter::Category(args.bytes()?))
        } else if args.word("pattern") {
            Ok(Filter::Pattern(args.bytes()?))
        } else {
            Err(CommandError::SYNTAX)
        }
    }

    fn admits(&self, command: &Spec, name: &str) -> bool {
        match self {
            Filter::None => true,
            Filter::Module => false,
            Filter::Category(wanted) => {
                let own = command.all_categories();
                own.iter().any(|category| category.as_bytes().eq_ignore_ascii_case(wanted))
            }
            Filter::Pattern(pattern) => base::glob::matches_ignoring_case(pattern, name.as_bytes()),
        }
    }
}

/// COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]
fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let filter = Filter::parse(args)?;
    let mark = cx.reply.mark();
    let mut found = 0;
    let names = &cx.engine.client_names;
    for row in cx.engine.commands.public_rows().filter(|row| names.have(row)) {
        let name = row.command.full_name();
        if filter.admits(row.command, &name) {
            cx.reply.bulk(name.as_bytes());
            found += 1;
        }
    }
    cx.reply.close_array(mark, found);
    Ok(())
}

/// COMMAND GETKEYS command [argument ...]
fn getkeys(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let argv = args.rest();
    let keys = keys::find(&cx.engine.client_names, argv)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.bulk(argv.at(key.index));
    }
    Ok(())
}

/// COMMAND GETKEYSANDFLAGS command [argument ...]
fn getkeysandflags(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let argv = args.rest();
    let keys = keys::find(&cx.engine.client_names, argv)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.array(2);
        cx.reply.bulk(argv.at(key.index));
        info::reply_key_flags(&mut cx.reply, key.flags);
    }
    Ok(())
}

/// MONITOR
fn monitor(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.nested {
        return Err(CommandError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // A second MONITOR is not answered, as in Redis.
    if !std::mem::replace(&mut cx.session.monitor, true) {
        cx.engine.pubsub.add_monitor(&cx.session.client);
        cx.session.publish_state();
        cx.reply.ok();
    }
    Ok(())
}
