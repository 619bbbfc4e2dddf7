//! EVAL and SCRIPT.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::reply::Reply;

use engine::admission;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ACCESS, ALLOW_BUSY, Argument, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Flags, Group,
    IN_STREAM, KeySpec, MAY_REPLICATE, MOVABLE_KEYS, NO_KEYS, NO_MANDATORY_KEYS, NOSCRIPT,
    READONLY, RO, RW, SCRIPT_BY_DIGEST, SCRIPT_BY_TEXT, SKIP_MONITOR, STALE, UPDATE, argument,
    docs, docs_of_help, key, one_of, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::{container, help};
use engine::script::cache::{Cache, Looked, Origin, Script};
use engine::script::interpreter::Call;
use engine::script::shebang;
use engine::script::slow::Kind;
use engine::scripting::run::{self as script_run, Run, Subject};
use engine::session::ScriptNeeds;

/// An EVALSHA of a script that no client has sent.
const NO_SCRIPT: CommandError = CommandError::text("NOSCRIPT No matching script. Please use EVAL.");

/// EVAL script numkeys [key ...] [arg ...]
fn eval(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    eval_text(cx, args, false)
}

/// EVAL_RO script numkeys [key ...] [arg ...]
fn eval_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    eval_text(cx, args, true)
}

/// EVALSHA sha1 numkeys [key ...] [arg ...]
fn evalsha(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    eval_known(cx, args, false)
}

/// EVALSHA_RO sha1 numkeys [key ...] [arg ...]
fn evalsha_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    eval_known(cx, args, true)
}

fn eval_text(cx: &mut Context<'_>, args: &mut Args<'_>, read_only: bool) -> CommandResult {
    script_run::show(cx, args);
    let text = args.bytes()?;
    let keys = script_run::number_of_keys(args.i64()?, args.len())?;
    let (engine, clock) = (cx.engine, cx.db.monotonic * 1000);
    let scripts = &engine.scripts;
    let known = cx.db.effects.scripts.by_text(&scripts.cache, text, clock);
    let script = match known {
        Some(known) => known,
        None => {
            let script = add(cx, text, Origin::Eval)?;
            cx.db.effects.scripts.note(script, Some(text), clock)
        }
    };
    run(cx, args, &script, keys, read_only)
}

fn eval_known(cx: &mut Context<'_>, args: &mut Args<'_>, read_only: bool) -> CommandResult {
    script_run::show(cx, args);
    let sha = args.bytes()?;
    if sha.len() != size_of::<engine::script::cache::Sha>() {
        return Err(NO_SCRIPT);
    }
    let keys = script_run::number_of_keys(args.i64()?, args.len())?;
    let (cache, clock) = (&cx.engine.scripts.cache, cx.db.monotonic * 1000);
    let script = cx.db.effects.scripts.by_sha(cache, sha, clock).ok_or(NO_SCRIPT)?;
    run(cx, args, &script, keys, read_only)
}

/// Makes a script known, if it is one.
fn add(cx: &mut Context<'_>, text: &[u8], origin: Origin) -> Result<Arc<Script>, CommandError> {
    let (flags, code_at) = shebang::parse(text)?;
    let scripts = &cx.engine.scripts;
    let id = scripts.next_id.fetch_add(1, Relaxed);
    let script = Cache::make(id, text, flags, code_at);
    let memory = cx.db.config.lua_memory_limit;
    if let Err(reason) = scripts.interpreter.compile(&script, memory) {
        let before = b"ERR Error compiling script (new function): ".as_slice();
        return Err(CommandError::line([before, &reason].concat()));
    }
    Ok(scripts.cache.add(script, origin, cx.db.monotonic * 1000))
}

fn run(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    script: &Looked,
    keys: usize,
    read_only: bool,
) -> CommandResult {
    admit(cx, script, read_only)?;
    let subject = Subject {
        kind: Kind::Script,
        name: &script.sha,
        flags: script.flags,
        read_only,
        slot: script_run::declared_slot(args, keys),
        argv: args.argv(),
    };
    script_run::stop_the_world(cx, &subject, script.may_empty)?;
    let call = Call { argv: args.rest(), keys };
    let interpreter = &*cx.engine.scripts.interpreter;
    let evaluate =
        |run: &mut Run<'_, '_>, reply: &mut Reply<'_>| interpreter.eval(run, script, call, reply);
    let (end, left) = script_run::run(cx, &subject, evaluate);
    if left.waited_long {
        script.note_wait(base::clock::monotonic_ms());
    }
    script_run::conclude(cx, end, &left)
}

/// The checks before a script runs, besides those of every command.
fn admit(cx: &mut Context<'_>, script: &Script, read_only: bool) -> CommandResult {
    admission::admit_script(cx, script.flags, read_only)?;
    let is_exclusive = cx.session.script_needs == Some(ScriptNeeds::AllSlots)
        || cx.nested
        || cx.db.locked.is_everything();
    if !is_exclusive && script.takes_all(cx.db.monotonic) {
        cx.session.script_needs = Some(ScriptNeeds::AllSlots);
        cx.db.locked.note_missed(0);
        return Err(CommandError::MISSED_SLOT);
    }
    Ok(())
}

/// SCRIPT LOAD script
fn load(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let text = args.bytes()?;
    let script = match cx.engine.scripts.cache.keep(text) {
        Some(known) => known,
        None => add(cx, text, Origin::Load)?,
    };
    cx.reply.bulk(&script.sha);
    Ok(())
}

/// SCRIPT EXISTS sha1 [sha1 ...]
fn exists(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let names = args.rest();
    cx.reply.array(names.len());
    for name in names.iter() {
        cx.reply.integer(i64::from(cx.engine.scripts.cache.find(name).is_some()));
    }
    Ok(())
}

/// SCRIPT SHOW sha1
fn show_text(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let script = cx.engine.scripts.cache.find(args.bytes()?);
    // The text is Valkey's, as the command is.
    let unknown = CommandError::text("NOSCRIPT No matching script.");
    cx.reply.bulk(script.ok_or(unknown)?.text());
    Ok(())
}

/// SCRIPT FLUSH [ASYNC | SYNC]
fn flush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let is_known = args.is_empty() || args.word("ASYNC") || args.word("SYNC");
    if !is_known || !args.is_empty() {
        return Err(CommandError::text("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    cx.engine.scripts.cache.flush();
    cx.engine.scripts.interpreter.forget_scripts();
    cx.reply.ok();
    Ok(())
}

/// SCRIPT KILL
fn kill(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.scripts.slow.kill(Kind::Script)?;
    cx.reply.ok();
    Ok(())
}

// ---- Rows ---------------------------------------------------------------------------------------

const FLAGS: Flags =
    NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | MAY_REPLICATE;
const FLAGS_RO: Flags =
    READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS;

/// Keys that a script may change.
const RUNS: &[KeySpec] = &[KeySpec::counted(RW | ACCESS | UPDATE, 2)
    .notes("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")];
/// Keys that a script may read.
const RUNS_RO: &[KeySpec] = &[KeySpec::counted(RO | ACCESS, 2)
    .notes("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")];
/// The same, without the remark.
const RUNS_BY_SHA: &[KeySpec] = &[KeySpec::counted(RW | ACCESS | UPDATE, 2)];
/// The same, without the remark.
const RUNS_BY_SHA_RO: &[KeySpec] = &[KeySpec::counted(RO | ACCESS, 2)];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Scripting.rows([
    row("eval", eval, -3, FLAGS | SCRIPT_BY_TEXT, RUNS),
    row("eval_ro", eval_ro, -3, FLAGS_RO | SCRIPT_BY_TEXT, RUNS_RO),
    row("evalsha", evalsha, -3, FLAGS | SCRIPT_BY_DIGEST, RUNS_BY_SHA),
    row("evalsha_ro", evalsha_ro, -3, FLAGS_RO | SCRIPT_BY_DIGEST, RUNS_BY_SHA_RO),
    container("script", SUBCOMMANDS),
]);

const SUBCOMMANDS: &[Command] = &Group::Scripting.under("script").rows([
    row("exists", exists, -3, NOSCRIPT, NO_KEYS),
    row("flush", flush, -2, NOSCRIPT | IN_STREAM, NO_KEYS),
    help(),
    row("kill", kill, 2, NOSCRIPT | ALLOW_BUSY, NO_KEYS),
    row("load", load, 3, NOSCRIPT | STALE | IN_STREAM, NO_KEYS),
    row("show", show_text, 3, NOSCRIPT | STALE, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const BY_TEXT: &[Argument] = &[
    argument("script", ArgumentKind::String),
    argument("numkeys", ArgumentKind::Integer),
    key("key", 0).optional().multiple(),
    argument("arg", ArgumentKind::String).optional().multiple(),
];

const BY_SHA: &[Argument] = &[
    argument("sha1", ArgumentKind::String),
    argument("numkeys", ArgumentKind::Integer),
    key("key", 0).optional().multiple(),
    argument("arg", ArgumentKind::String).optional().multiple(),
];

const COST: &str = "Depends on the script that is executed.";

const DOCS: &[Docs] = &[
    docs("eval", "2.6.0", "Runs a script.").cost(COST).arguments(BY_TEXT),
    docs("eval_ro", "7.0.0", "Runs a script that writes nothing.").cost(COST).arguments(BY_TEXT),
    docs("evalsha", "2.6.0", "Runs a script by the SHA-1 of its text.")
        .cost(COST)
        .arguments(BY_SHA),
    docs("evalsha_ro", "7.0.0", "Runs a script that writes nothing by the SHA-1 of its text.")
        .cost(COST)
        .arguments(BY_SHA),
    docs("script", "2.6.0", "Commands about scripts.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("script|exists", "2.6.0", "Returns which scripts are known.")
        .cost("O(N) for N names.")
        .arguments(&[argument("sha1", ArgumentKind::String).multiple()])
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"]),
    docs("script|flush", "2.6.0", "Forgets all scripts.")
        .cost("O(N) for N scripts.")
        .arguments(&[one_of("flush-type", &[word("async", "ASYNC"), word("sync", "SYNC")])
            .optional()
            .since("6.2.0")])
        .history(&[("6.2.0", "`ASYNC` and `SYNC`.")])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs_of_help("script|help", "5.0.0"),
    docs("script|kill", "2.6.0", "Ends scripts that have run for long and written nothing.")
        .cost("O(1)")
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    docs("script|load", "2.6.0", "Stores a script without running it.")
        .cost("O(N) for a script of N bytes.")
        .arguments(&[argument("script", ArgumentKind::String)])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs("script|show", "8.0.0", "Returns the text of a script. It is Valkey's.")
        .cost("O(1)")
        .arguments(&[argument("sha1", ArgumentKind::String)]),
];
