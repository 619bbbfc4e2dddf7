//! DEBUG: for tests, and for looking inside.
//!
//! It is one command, not a container. It names no keys, so it locks the slots of the keys that it
//! looks at one at a time. `enable-debug-command` says which clients may use it.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::limits;
use resp::args::Arguments;
use store::{Key, LockedSlots, StringValue, Value};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, DEPENDS_ON_SUBCOMMAND, Docs, Flags, Group, LOADING, NO_KEYS, NOSCRIPT, PROTECTED, STALE,
    STOPS_THE_WORLD, WHOLE_KEYSPACE, docs,
};
use engine::db::notify::{Class, Event};
use engine::engine::random_id;
use engine::engine::{Command, Context, Family, row};
use engine::host::LogLevel;
use engine::observe::debug::DEFAULT_PACKED_THRESHOLD;
use engine::session::attachment::Attachment;
use engine::session::watcher::Change;

mod digest;
mod protocol;
mod reload;
mod tables;

/// A subcommand: its name, its number of arguments, its handler, and its line in HELP.
struct Tool {
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    run: fn(&mut Context<'_>, &mut Args<'_>) -> CommandResult,
    help: &'static [&'static str],
}

const fn tool(
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    run: fn(&mut Context<'_>, &mut Args<'_>) -> CommandResult,
    help: &'static [&'static str],
) -> Tool {
    Tool { name, arguments, run, help }
}

const ANY: usize = usize::MAX;

/// The subcommands in alphabetical order.
const TOOLS: &[Tool] = &[
    tool(
        "aof-flush-sleep",
        1..=1,
        aof_flush_sleep,
        &[
            "AOF-FLUSH-SLEEP <microseconds>",
            "    Makes each write to the append-only file take so much longer.",
        ],
    ),
    tool("assert", 0..=ANY, crash, &["ASSERT", "    Ends the process with a crash report."]),
    tool(
        "change-repl-id",
        0..=0,
        change_replication_id,
        &["CHANGE-REPL-ID", "    Gives the history of writes another name."],
    ),
    tool(
        "dict-resizing",
        1..=1,
        dict_resizing,
        &["DICT-RESIZING <0|1>", "    Keeps the tables of keys at their sizes."],
    ),
    tool(
        "digest",
        0..=0,
        digest_all,
        &["DIGEST", "    40 hexadecimal digits that are equal for equal data."],
    ),
    tool(
        "digest-value",
        0..=ANY,
        digest_values,
        &["DIGEST-VALUE [<key> ...]", "    The same for the value of each key."],
    ),
    tool(
        "error",
        1..=1,
        error,
        &["ERROR <string>", "    Answers an error with this text, for tests of clients."],
    ),
    tool("help", 0..=0, help, &["HELP", "    Prints this help."]),
    tool(
        "htstats",
        1..=1,
        tables::of_database,
        &["HTSTATS <database>", "    How the tables of a database are filled."],
    ),
    tool(
        "htstats-key",
        1..=1,
        tables::of_key,
        &["HTSTATS-KEY <key>", "    How the table of a value is filled."],
    ),
    tool(
        "listpack",
        1..=1,
        tables::listpack,
        &["LISTPACK <key>", "    Logs the elements of a packed value."],
    ),
    tool(
        "loadaof",
        0..=0,
        reload::load_append_only,
        &["LOADAOF", "    Removes all data and loads the append-only file."],
    ),
    tool("log", 1..=1, log, &["LOG <message>", "    Writes a message to the log."]),
    tool(
        "object",
        1..=1,
        tables::object,
        &["OBJECT <key>", "    How a key and its value lie in memory."],
    ),
    tool("panic", 0..=ANY, crash, &["PANIC", "    Ends the process with a crash report."]),
    tool("pause-cron", 1..=1, pause_cron, &["PAUSE-CRON <0|1>", "    Stops periodic work."]),
    tool(
        "populate",
        1..=3,
        populate,
        &[
            "POPULATE <count> [<prefix>] [<size>]",
            "    Adds strings named <prefix>:<number>, of this size in bytes. This is not journaled.",
        ],
    ),
    tool(
        "protocol",
        1..=1,
        protocol::protocol,
        &[
            "PROTOCOL <type>",
            "    Answers a value of a type: string, integer, double, bignum, null, array, set, map,",
            "    attrib, push, verbatim, true, false.",
        ],
    ),
    tool(
        "quicklist-packed-threshold",
        1..=1,
        packed_threshold,
        &[
            "QUICKLIST-PACKED-THRESHOLD <size>",
            "    From this size on an element of a list gets a node of its own; 0 restores 1 gb.",
        ],
    ),
    tool(
        "reload",
        0..=ANY,
        reload::reload,
        &[
            "RELOAD [NOSAVE] [NOFLUSH] [MERGE]",
            "    Removes all data, unless NOFLUSH is given, and loads the RDB file. With MERGE its",
            "    keys replace those that are there.",
        ],
    ),
    tool(
        "replybuffer",
        2..=2,
        reply_buffer,
        &[
            "REPLYBUFFER <PEAK-RESET-TIME <NEVER|RESET|milliseconds> | RESIZING <0|1>>",
            "    Accepted for tests: output buffers are not resized by time here.",
        ],
    ),
    tool("segfault", 0..=ANY, crash, &["SEGFAULT", "    Ends the process with a crash report."]),
    tool(
        "set-active-expire",
        1..=1,
        set_active_expire,
        &["SET-ACTIVE-EXPIRE <0|1>", "    Whether keys expire that no command accesses."],
    ),
    tool(
        "set-skip-checksum-validation",
        1..=1,
        set_skip_checksum_validation,
        &[
            "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
            "    Whether RDB files and RESTORE's payload may have wrong checksums.",
        ],
    ),
    tool("sleep", 1..=1, sleep, &["SLEEP <seconds>", "    Holds up the client's worker."]),
    tool(
        "stringmatch-len",
        2..=2,
        string_match,
        &["STRINGMATCH-LEN <pattern> <string>", "    Whether a glob pattern matches a string."],
    ),
];

/// DEBUG subcommand [argument ...]
fn debug(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let name = args.bytes()?;
    let is_meant = |tool: &&Tool| {
        tool.name.as_bytes().eq_ignore_ascii_case(name) && tool.arguments.contains(&args.len())
    };
    match TOOLS.iter().find(is_meant) {
        Some(tool) => (tool.run)(cx, args),
        None => Err(CommandError::subcommand_syntax("debug", name)),
    }
}

fn help(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let lines = TOOLS.iter().map(|tool| tool.help.len()).sum::<usize>();
    cx.reply.array(1 + lines);
    cx.reply.simple(b"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for line in TOOLS.iter().flat_map(|tool| tool.help) {
        cx.reply.simple(line.as_bytes());
    }
    Ok(())
}

fn crash(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let name = String::from_utf8_lossy(args.argv().at(1)).to_ascii_uppercase();
    cx.engine.host.crash(&format!("DEBUG {name}"))
}

fn change_replication_id(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    *cx.engine.replication_id.lock() = random_id();
    cx.reply.ok();
    Ok(())
}

fn digest_all(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let digest = digest::of_all(cx)?;
    cx.reply.simple(digest.hex().as_bytes());
    Ok(())
}

fn digest_values(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let keys = args.rest_as_keys()?;
    let database = cx.db.index;
    cx.reply.array(keys.len());
    for key in keys {
        cx.with_slot(key.slot, |locked, reply| {
            let mut digest = digest::Digest::default();
            if let Some(entry) = locked.find(database, &key) {
                digest.mix_value(entry);
            }
            reply.simple(digest.hex().as_bytes());
        })?;
    }
    Ok(())
}

/// The text comes from the client: it is not an error of the server and is not counted as one.
fn error(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let text = args.bytes()?;
    cx.reply.error(text);
    Ok(())
}

fn log(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let text = format!("DEBUG LOG: {}", String::from_utf8_lossy(args.bytes()?));
    cx.engine.host.log(LogLevel::Warning, &text);
    cx.reply.ok();
    Ok(())
}

/// A switch, read as C reads numbers: a word that is not a number counts as 0.
fn switch(args: &mut Args<'_>) -> Result<bool, CommandError> {
    let text = args.bytes()?.trim_ascii_start();
    let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Ok(text[..digits].iter().any(|digit| *digit != b'0'))
}

fn pause_cron(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.engine.debug.pause_cron.store(switch(args)?, Relaxed);
    cx.reply.ok();
    Ok(())
}

fn aof_flush_sleep(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let microseconds = args.at_least(0, CommandError::text("ERR microseconds are not negative"))?;
    cx.engine.storage.delay_append_only(Duration::from_micros(microseconds as u64));
    cx.reply.ok();
    Ok(())
}

/// Tables belong to the process, and so does the switch.
fn dict_resizing(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store::table::set_resizing(switch(args)?);
    cx.reply.ok();
    Ok(())
}

/// STRINGMATCH-LEN <pattern> <string>
fn string_match(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (pattern, text) = (args.bytes()?, args.bytes()?);
    cx.reply.integer(i64::from(base::glob::matches(pattern, text)));
    Ok(())
}

fn set_active_expire(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.engine.debug.active_expire.store(switch(args)?, Relaxed);
    cx.reply.ok();
    Ok(())
}

fn set_skip_checksum_validation(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.engine.debug.skip_checksum_validation.store(switch(args)?, Relaxed);
    cx.reply.ok();
    Ok(())
}

fn packed_threshold(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    /// A listpack counts its bytes in 32 bits, and needs some for itself.
    const MAX: u64 = (1 << 32) - (1 << 20);
    let size = base::size::parse_size(args.bytes()?).filter(|size| *size <= MAX);
    let size = size.ok_or(CommandError::text(
        "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
    ))?;
    let size = if size == 0 { DEFAULT_PACKED_THRESHOLD } else { size as usize };
    cx.engine.debug.quicklist_packed_threshold.store(size, Relaxed);
    cx.db.effects.config_changed = true;
    cx.reply.ok();
    Ok(())
}

/// Output buffers keep no record of their peaks, so there is nothing to set.
fn reply_buffer(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let syntax = CommandError::subcommand_syntax("debug", args.argv().at(1));
    if args.word("peak-reset-time") {
        if !args.word("never") && !args.word("reset") {
            args.i64()?;
        }
    } else if !args.word("resizing") {
        return Err(syntax);
    }
    cx.reply.ok();
    Ok(())
}

fn sleep(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let seconds = base::num::parse_f64(args.bytes()?).unwrap_or(0.0);
    std::thread::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    cx.reply.ok();
    Ok(())
}

/// POPULATE count [prefix] [size]
fn populate(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let count = positive(args)?;
    let prefix = if args.is_empty() { b"key" } else { args.bytes()? };
    let size = if args.is_empty() { 0 } else { positive(args)? };
    if size as u64 > cx.db.config.proto_max_bulk_len {
        return Err(CommandError::STRING_TOO_LONG);
    }
    if prefix.len() > limits::MAX_KEY - b":18446744073709551615".len() {
        return Err(CommandError::KEY_TOO_LONG);
    }
    let mut name = Vec::new();
    for number in 0..count {
        name.clear();
        name.extend_from_slice(prefix);
        name.push(b':');
        base::num::write_u64(&mut name, number as u64);
        let key = Key::new(&name);
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let (database, clock) = (cx.db.index, cx.db.clock.fresh());
        let added = if cx.db.locked.contains(key.slot) {
            add_string(&mut cx.db.locked, database, &key, value, clock)
        } else {
            // When this is tried again, it skips the keys that were added already.
            let locked = cx.db.lock_other(cx.slot_access, key.slot);
            let mut locked = locked.ok_or(CommandError::MISSED_SLOT)?;
            add_string(&mut locked, database, &key, value, clock)
        };
        if added {
            cx.db.notify(&key, Event(Class::NEW, "new"));
        }
    }
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

fn positive(args: &mut Args<'_>) -> Result<usize, CommandError> {
    let number = args.i64().ok().and_then(|number| usize::try_from(number).ok());
    number.ok_or(CommandError::MUST_BE_POSITIVE)
}

/// Adds a string unless the key is there.
fn add_string(
    locked: &mut LockedSlots<'_, Attachment>,
    database: usize,
    key: &Key<'_>,
    value: Vec<u8>,
    clock: u32,
) -> bool {
    let version = locked.next_version(key.slot);
    let make = || Value::String(StringValue::Plain(Cow::Owned(value)));
    let (mut entry, added) = locked.find_or_insert(database, key, make);
    if added {
        entry.set_version(version);
        entry.as_ref().set_clock(clock);
        if let Some(attachment) = locked.attachment_mut(key.slot) {
            attachment.mark_watchers(database, key.bytes, Change::Changed);
        }
    }
    added
}

/// The scope of a DEBUG command: some commands replace all data, some look at keys that they do not
/// name as keys.
fn reach(argv: Arguments<'_>) -> Flags {
    const REPLACE: [&str; 2] = ["reload", "loadaof"];
    const LOOK: [&str; 7] =
        ["digest", "digest-value", "htstats", "htstats-key", "listpack", "object", "populate"];
    let tool = argv.get(1).unwrap_or_default();
    let is_one_of =
        |names: &[&str]| names.iter().any(|name| tool.eq_ignore_ascii_case(name.as_bytes()));
    match (is_one_of(&REPLACE), is_one_of(&LOOK)) {
        (true, _) => STOPS_THE_WORLD,
        (_, true) => WHOLE_KEYSPACE,
        _ => 0,
    }
}

/// It reaches inside of everything.
const INSIDE: Flags = ADMIN | NOSCRIPT | LOADING | STALE | PROTECTED | WHOLE_KEYSPACE;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] =
    &Group::Server.rows([row("debug", debug, -2, INSIDE, NO_KEYS).reach(reach)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs("debug", "1.0.0", "Commands for tests, and for looking inside.")
    .cost(DEPENDS_ON_SUBCOMMAND)
    .system()];

#[cfg(test)]
mod tests;
