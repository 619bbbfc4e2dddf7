//! OBJECT: how a value is stored.

use store::{Entry, evict};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

const NO_FREQUENCY: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const NO_IDLE_TIME: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

/// OBJECT ENCODING key
pub(super) fn encoding(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let encoding = look(cx, args)?.map(|entry| entry.value().encoding());
    match encoding {
        Some(name) => cx.reply.bulk(name.as_bytes()),
        None => cx.reply.null(),
    }
    Ok(())
}

/// OBJECT REFCOUNT key
pub(super) fn refcount(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    // No value is shared between keys.
    let count = look(cx, args)?.map(|_| 1);
    reply_number(cx, count);
    Ok(())
}

/// OBJECT IDLETIME key
pub(super) fn idletime(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.clock;
    let seconds = match look(cx, args)? {
        Some(_) if now.lfu => return Err(NO_IDLE_TIME),
        found => found.map(|entry| evict::idle_seconds(entry.clock(), now.now)),
    };
    reply_number(cx, seconds);
    Ok(())
}

/// OBJECT FREQ key
pub(super) fn freq(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.clock;
    let frequency = match look(cx, args)? {
        Some(_) if !now.lfu => return Err(NO_FREQUENCY),
        found => found.map(|entry| evict::lfu_decayed(entry.clock(), now.now, now.decay_minutes)),
    };
    reply_number(cx, frequency);
    Ok(())
}

/// The key after the subcommand's name.
fn look<'c>(cx: &'c Context<'_>, args: &mut Args<'_>) -> Result<Option<Entry<'c>>, CommandError> {
    args.skip(1);
    Ok(cx.db.find_quietly(&args.key()?))
}

fn reply_number(cx: &mut Context<'_>, number: Option<u32>) {
    match number {
        Some(number) => cx.reply.integer(i64::from(number)),
        None => cx.reply.null(),
    }
}
