//! DUMP and RESTORE.

use std::sync::atomic::Ordering::Relaxed;

use base::num;
use rdb::{RestoreError, ValueLimits};
use resp::args::Arguments;
use store::{Key, Value};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::journal::batch::ASIDE;

/// The longest idle time, in seconds, that the 24 bits of the clock can tell from a time in the
/// future.
const LONGEST_IDLE: u32 = 0x7f_ffff;

const BAD_FORMAT: CommandError = CommandError::text("ERR Bad data format");

/// DUMP key
pub(super) fn dump(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    match cx.db.find(&args.key()?) {
        Some(entry) => cx.reply.bulk(&rdb::dump(entry.value(), cx.db.config.rdbcompression)),
        None => cx.reply.null(),
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<u32>,
    frequency: Option<u32>,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        while !args.is_empty() {
            if args.word("replace") {
                options.replace = true;
            } else if args.word("absttl") {
                options.absolute = true;
            } else if args.len() >= 2 && options.frequency.is_none() && args.word("idletime") {
                let seconds = args.i64()?;
                if seconds < 0 {
                    let text = "ERR Invalid IDLETIME value, must be >= 0";
                    return Err(CommandError::text(text));
                }
                let seconds = u32::try_from(seconds).unwrap_or(LONGEST_IDLE);
                options.idle_seconds = Some(seconds.min(LONGEST_IDLE));
            } else if args.len() >= 2 && options.idle_seconds.is_none() && args.word("freq") {
                let text = "ERR Invalid FREQ value, must be >= 0 and <= 255";
                let counter = u8::try_from(args.i64()?).map_err(|_| CommandError::text(text))?;
                options.frequency = Some(u32::from(counter));
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }

    /// The eviction clock that the options ask for, if the policy uses that kind.
    fn clock(&self, db: &Db<'_>) -> Option<u32> {
        if db.clock.lfu {
            self.frequency.map(|counter| (db.clock.now << 8) | counter)
        } else {
            self.idle_seconds.map(|seconds| db.clock.now.wrapping_sub(seconds) & 0xff_ffff)
        }
    }
}

/// RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
///
/// The key is looked up before the time to live is read, and the time to live is read before the
/// payload.
pub(super) fn restore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let argv = args.argv();
    let key = args.key()?;
    let (ttl, payload) = (args.bytes()?, args.bytes()?);
    let options = Options::parse(args)?;
    if !options.replace && cx.db.find_mut(&key).is_some() {
        return Err(CommandError::BUSY_KEY);
    }
    let ttl = match num::parse_i64(ttl).ok_or(CommandError::NOT_AN_INTEGER)? {
        0 => None,
        ttl @ 1.. => Some(ttl.unsigned_abs()),
        _ => return Err(CommandError::text("ERR Invalid TTL value, must be >= 0")),
    };
    let value = loaded(cx, payload)?;
    let start = if options.absolute { 0 } else { cx.db.now };
    let expire_at = ttl.map(|ttl| ttl.saturating_add(start).min(i64::MAX.unsigned_abs()));
    let replaced = options.replace && cx.db.remove(&key);
    cx.reply.ok();
    if expire_at.is_some_and(|at| cx.db.ends_at_once(at)) {
        if replaced {
            cx.db.changed(&key, Event(Class::GENERIC, "del"));
            let lazy = cx.db.config.lazyfree_lazy_server_del;
            cx.propagate(&[if lazy { b"UNLINK" } else { b"DEL" }, key.bytes]);
        }
        return Ok(());
    }
    cx.db.set(&key, value, expire_at);
    if let Some(clock) = options.clock(&cx.db)
        && let Some(entry) = cx.db.peek(&key)
    {
        entry.set_clock(clock);
    }
    cx.db.changed(&key, Event(Class::GENERIC, "restore"));
    if let Some(at) = expire_at.filter(|_| !options.absolute) {
        propagate_absolute(cx, argv, &key, at);
    }
    Ok(())
}

/// The value of a payload.
fn loaded<'p>(cx: &Context<'_>, payload: &'p [u8]) -> Result<Value<'p>, CommandError> {
    let verify = !cx.engine.debug.skip_checksum_validation.load(Relaxed);
    rdb::restore(payload, &limits(&cx.db), verify).map_err(|error| match error {
        RestoreError::Footer => CommandError::BAD_PAYLOAD,
        RestoreError::Value(_) => BAD_FORMAT,
    })
}

/// RESTOREPART key serialized-value
///
/// A move of slots brings a large stream by RESTORE, and what did not fit into that by this. Both
/// together make the same stream, down to its blocks.
pub(super) fn restore_part(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, payload) = (args.key()?, args.bytes()?);
    if !cx.session.repeats() {
        return Err(CommandError::text("ERR RESTOREPART is for servers that bring slots"));
    }
    let Value::Stream(part) = loaded(cx, payload)? else { return Err(BAD_FORMAT) };
    let stream = cx.db.stream_mut(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    stream.absorb(&part).map_err(|_| BAD_FORMAT)?;
    cx.db.changed(&key, Event(Class::GENERIC, "restore"));
    if cx.is_journaling() {
        let [command, info] = ASIDE;
        cx.propagate(&[command, info, b"RESTOREPART", key.bytes, payload]);
    }
    cx.reply.ok();
    Ok(())
}

fn limits(db: &Db<'_>) -> ValueLimits {
    ValueLimits {
        list: db.list_limits(),
        set: db.set_limits(),
        hash: db.hash_limits(),
        zset: db.zset_limits(),
    }
}

/// Journals a RESTORE with the time at which the key expires, which does not depend on the time of
/// the replay.
fn propagate_absolute(cx: &mut Context<'_>, argv: Arguments<'_>, key: &Key<'_>, at: u64) {
    if !cx.is_journaling() {
        return;
    }
    let mut digits = Vec::with_capacity(20);
    num::write_u64(&mut digits, at);
    // What the client calls it nobody else need know.
    let mut effect = vec![cx.row.command.name.as_bytes(), key.bytes, &digits];
    effect.extend(argv.skip(3).iter());
    effect.push(b"ABSTTL");
    cx.propagate(&effect);
}
