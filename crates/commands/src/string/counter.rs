//! Counters: integers and floating-point numbers that are changed by an amount.

use base::num::LongDouble;
use store::{Key, StringValue, Value};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;

/// The decrements have this event too, as in Redis.
const INCRBY: Event = Event(Class::STRING, "incrby");
const INCRBYFLOAT: Event = Event(Class::STRING, "incrbyfloat");

/// INCR key
pub(super) fn incr(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    add(cx, &key, 1)
}

/// DECR key
pub(super) fn decr(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    add(cx, &key, -1)
}

/// INCRBY key increment
pub(super) fn incrby(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, amount) = (args.key()?, args.i64()?);
    add(cx, &key, amount)
}

/// DECRBY key decrement
pub(super) fn decrby(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, amount) = (args.key()?, args.i64()?);
    let negated = amount.checked_neg();
    add(cx, &key, negated.ok_or(CommandError::text("ERR decrement would overflow"))?)
}

/// Adds to the integer under a key; a missing one counts as zero. The expiry stays.
#[inline]
fn add(cx: &mut Context<'_>, key: &Key<'_>, amount: i64) -> CommandResult {
    let changed = cx.db.change(key, INCRBY, |entry| {
        let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
        let before = string.integer().ok_or(CommandError::NOT_AN_INTEGER)?;
        let after = before.checked_add(amount).ok_or(CommandError::OVERFLOW)?;
        if entry.set_integer(after) {
            return Ok((after, None));
        }
        let expire_at = entry.as_ref().expire_at();
        let replaced = entry.replace(Value::String(StringValue::Int(after)), expire_at);
        Ok((after, replaced))
    })?;
    let Some((after, replaced)) = changed else {
        cx.db.set_string(key, StringValue::Int(amount), None, INCRBY);
        cx.reply.integer(amount);
        return Ok(());
    };
    if let Some(replaced) = replaced {
        cx.db.discard(replaced);
    }
    cx.reply.integer(after);
    Ok(())
}

/// INCRBYFLOAT key increment
pub(super) fn incrbyfloat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    // The type counts before the increment is read.
    let (before, expire_at) = match cx.db.find_mut(&key) {
        None => (None, None),
        Some(entry) => {
            let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
            let before = LongDouble::parse(&string.bytes()).ok_or(CommandError::NOT_A_FLOAT)?;
            (Some(before), entry.as_ref().expire_at())
        }
    };
    let amount = LongDouble::parse(args.bytes()?).ok_or(CommandError::NOT_A_FLOAT)?;
    let after = before.map_or(amount, |before| before + amount);
    if !after.is_finite() {
        return Err(CommandError::NAN_OR_INFINITY);
    }
    let text = after.to_human();
    // The result is never an integer, even if it spells one: as in Redis.
    let value = StringValue::Plain(text.as_slice().into());
    cx.db.set_string(&key, value, expire_at, INCRBYFLOAT);
    // A replay must not repeat the arithmetic.
    cx.propagate(&[b"SET", key.bytes, &text, b"KEEPTTL"]);
    cx.reply.bulk(&text);
    Ok(())
}
