//! EXPIRE and similar commands: setting, reading and removing the time at which a key goes.

use base::num;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;

/// Milliseconds in a second.
const SECOND: i64 = 1000;

/// EXPIRE key seconds [NX | XX | GT | LT]
pub(super) fn expire(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    set_expiry(cx, args, SECOND, now)
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT]
pub(super) fn pexpire(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    set_expiry(cx, args, 1, now)
}

/// EXPIREAT key unix-time-seconds [NX | XX | GT | LT]
pub(super) fn expireat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_expiry(cx, args, SECOND, 0)
}

/// PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]
pub(super) fn pexpireat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_expiry(cx, args, 1, 0)
}

/// When the new time replaces the old one. A key without a time counts as having an infinite one.
#[derive(Default)]
struct Condition {
    /// NX: there was none.
    absent: bool,
    /// XX: there was one.
    present: bool,
    /// GT: the new one is later.
    later: bool,
    /// LT: the new one is earlier.
    earlier: bool,
}

impl Condition {
    fn parse(args: &mut Args<'_>) -> Result<Condition, CommandError> {
        let mut condition = Condition::default();
        while let Some(option) = args.peek() {
            let wanted = if args.word("nx") {
                &mut condition.absent
            } else if args.word("xx") {
                &mut condition.present
            } else if args.word("gt") {
                &mut condition.later
            } else if args.word("lt") {
                &mut condition.earlier
            } else {
                return Err(CommandError::quoting("ERR Unsupported option ", option, ""));
            };
            *wanted = true;
        }
        if condition.absent && (condition.present || condition.later || condition.earlier) {
            return Err(CommandError::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if condition.later && condition.earlier {
            return Err(CommandError::text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(condition)
    }

    fn is_met(&self, old: Option<u64>, new: i64) -> bool {
        // A time before 1970 is earlier than any time that a key can have.
        let new = u64::try_from(new).ok();
        !(self.absent && old.is_some()
            || self.present && old.is_none()
            || self.later && old.is_none_or(|old| new.is_none_or(|new| new <= old))
            || self.earlier && old.is_some_and(|old| new.is_some_and(|new| new >= old)))
    }
}

/// Sets the expiry to the time in the arguments, in units of this many milliseconds, counted from
/// `base`.
fn set_expiry(cx: &mut Context<'_>, args: &mut Args<'_>, unit: i64, base: u64) -> CommandResult {
    let key = args.key()?;
    let time = args.bytes()?;
    let condition = Condition::parse(args)?;
    let time = num::parse_i64(time).ok_or(CommandError::NOT_AN_INTEGER)?;
    let expire_at = time
        .checked_mul(unit)
        .and_then(|time| time.checked_add_unsigned(base))
        .ok_or_else(|| CommandError::invalid_expire(cx.row.command.name))?;
    // Where a time that is over is kept, as while data is imported, no time is before the beginning
    // of time.
    let keeps = cx.db.keeps_times_that_are_over();
    let expire_at = if keeps { expire_at.max(0) } else { expire_at };
    let kept = u64::try_from(expire_at).ok().filter(|at| !cx.db.ends_at_once(*at));
    let Some(mut entry) = cx.db.find_mut(&key) else {
        cx.reply.integer(0);
        return Ok(());
    };
    if !condition.is_met(entry.as_ref().expire_at(), expire_at) {
        cx.reply.integer(0);
        return Ok(());
    }
    match kept {
        Some(at) => {
            entry.set_expire_at(Some(at));
            cx.db.changed(&key, Event(Class::GENERIC, "expire"));
            if cx.is_journaling() {
                let mut digits = Vec::with_capacity(20);
                num::write_u64(&mut digits, at);
                cx.propagate(&[b"PEXPIREAT", key.bytes, &digits]);
            }
        }
        None => {
            cx.db.remove(&key);
            cx.db.changed(&key, Event(Class::GENERIC, "del"));
            let lazy = cx.db.config.lazyfree_lazy_expire;
            cx.propagate(&[if lazy { b"UNLINK" } else { b"DEL" }, key.bytes]);
        }
    }
    cx.reply.integer(1);
    Ok(())
}

/// PERSIST key
pub(super) fn persist(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let expiring = cx.db.find_mut(&key).filter(|entry| entry.as_ref().expire_at().is_some());
    let found = expiring.is_some();
    if let Some(mut entry) = expiring {
        entry.set_expire_at(None);
        cx.db.changed(&key, Event(Class::GENERIC, "persist"));
    }
    cx.reply.integer(i64::from(found));
    Ok(())
}

/// TTL key
pub(super) fn ttl(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    reply_time(cx, args, |at| to_seconds(at.saturating_sub(now)))
}

/// PTTL key
pub(super) fn pttl(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    reply_time(cx, args, |at| at.saturating_sub(now))
}

/// EXPIRETIME key
pub(super) fn expiretime(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_time(cx, args, to_seconds)
}

/// PEXPIRETIME key
pub(super) fn pexpiretime(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_time(cx, args, |at| at)
}

/// Rounds milliseconds to seconds.
fn to_seconds(milliseconds: u64) -> u64 {
    milliseconds.saturating_add(500) / 1000
}

/// Answers with a form of a key's expiry: -1 if it has none, -2 if there is no key.
fn reply_time(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    form: impl FnOnce(u64) -> u64,
) -> CommandResult {
    let time = match cx.db.find_untouched(&args.key()?) {
        None => -2,
        Some(entry) => entry.expire_at().map_or(-1, |at| form(at) as i64),
    };
    cx.reply.integer(time);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_with_an_infinite_time_where_there_is_none() {
        let later = Condition { later: true, ..Condition::default() };
        assert!(!later.is_met(None, i64::MAX));
        assert!(later.is_met(Some(5), 6));
        assert!(!later.is_met(Some(5), 5));
        assert!(!later.is_met(Some(5), -6));
        let earlier = Condition { earlier: true, ..Condition::default() };
        assert!(earlier.is_met(None, i64::MAX));
        assert!(earlier.is_met(Some(5), -6));
        assert!(!earlier.is_met(Some(5), 5));
        let present = Condition { present: true, ..Condition::default() };
        assert!(present.is_met(Some(1), 1) && !present.is_met(None, 1));
        let absent = Condition { absent: true, ..Condition::default() };
        assert!(absent.is_met(None, 1) && !absent.is_met(Some(1), 1));
    }
}
