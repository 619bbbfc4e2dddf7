//! HEXPIRE and similar commands: setting, reading and removing the times at which fields go.

use base::num;
use resp::args::Arguments;
use smallvec::SmallVec;
use store::{Hash, HashView, Key};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::Context;

/// Milliseconds in a second.
pub(super) const SECOND: i64 = 1000;

/// The latest time that a client can give a field: 46 bits of milliseconds, as in Redis.
const LATEST: i64 = (1 << 46) - 1;

const NO_FIELDS_WORD: CommandError =
    CommandError::text("ERR Mandatory argument FIELDS is missing or not at the right position");
const NO_COUNT: CommandError =
    CommandError::text("ERR Parameter `numFields` should be greater than 0");
const NO_FIELDS: CommandError =
    CommandError::text("ERR Number of fields must be a positive integer");
const OTHER_COUNT: CommandError =
    CommandError::text("ERR The `numfields` parameter must match the number of arguments");
const NEGATIVE: CommandError = CommandError::text("ERR invalid expire time, must be >= 0");

/// The answer for a field that does not exist.
const NO_FIELD: i64 = -2;
/// The answer for a field that does not expire.
const NO_TIME: i64 = -1;

/// HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(super) fn hexpire(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    set_times(cx, args, SECOND, now)
}

/// HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(super) fn hpexpire(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    set_times(cx, args, 1, now)
}

/// HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(super) fn hexpireat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_times(cx, args, SECOND, 0)
}

/// HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(super) fn hpexpireat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_times(cx, args, 1, 0)
}

/// When the new time replaces the old one. A field without a time counts as having an infinite one.
#[derive(Clone, Copy)]
pub(super) enum Condition {
    Always,
    /// NX: there was none.
    Absent,
    /// XX: there was one.
    Present,
    /// GT: the new one is later.
    Later,
    /// LT: the new one is earlier.
    Earlier,
}

impl Condition {
    fn parse(args: &mut Args<'_>) -> Condition {
        let words = [
            ("nx", Condition::Absent),
            ("xx", Condition::Present),
            ("gt", Condition::Later),
            ("lt", Condition::Earlier),
        ];
        let found = words.into_iter().find(|(word, _)| args.word(word));
        found.map_or(Condition::Always, |(_, condition)| condition)
    }

    fn is_met(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => old.is_none(),
            Condition::Present => old.is_some(),
            Condition::Later => old.is_some_and(|old| new > old),
            Condition::Earlier => old.is_none_or(|old| new < old),
        }
    }
}

/// Reads `FIELDS numfields field [field ...]`, which must be all remaining arguments.
pub(super) fn named_fields<'a>(args: &mut Args<'a>) -> Result<Arguments<'a>, CommandError> {
    counted_fields(args, NO_FIELDS)
}

fn counted_fields<'a>(
    args: &mut Args<'a>,
    no_count: CommandError,
) -> Result<Arguments<'a>, CommandError> {
    if !args.word("fields") {
        return Err(NO_FIELDS_WORD);
    }
    let count = args.at_least(1, no_count)?;
    if count != args.len() {
        return Err(OTHER_COUNT);
    }
    Ok(args.rest())
}

/// Reads a time in units of this many milliseconds, counted from `base`.
pub(super) fn time(
    cx: &Context<'_>,
    args: &mut Args<'_>,
    unit: i64,
    base: u64,
) -> Result<u64, CommandError> {
    let given = args.i64()?;
    if given < 0 {
        return Err(NEGATIVE);
    }
    let invalid = || CommandError::invalid_expire(cx.row.command.name);
    let at = given.checked_mul(unit).and_then(|time| time.checked_add_unsigned(base));
    // A payload or a file may have a later time than a client can give, and effects in the journal
    // may come from such a payload or file.
    let latest = if cx.session.repeats() { Hash::LATEST as i64 } else { LATEST };
    let at = at.filter(|at| *at <= latest).ok_or_else(invalid)?;
    u64::try_from(at).map_err(|_| invalid())
}

/// Sets the times of fields to the time in the arguments, in units of this many milliseconds,
/// counted from `base`.
fn set_times(cx: &mut Context<'_>, args: &mut Args<'_>, unit: i64, base: u64) -> CommandResult {
    let key = args.key()?;
    let found = cx.db.hash_mut(&key)?.is_some();
    let at = time(cx, args, unit, base)?;
    let condition = Condition::parse(args);
    let fields = counted_fields(args, NO_COUNT)?;
    cx.reply.array(fields.len());
    if !found {
        fields.iter().for_each(|_| cx.reply.integer(NO_FIELD));
        return Ok(());
    }
    let done = expire_fields(&mut cx.db, &key, fields.iter(), at, condition)?;
    done.answers.iter().for_each(|&answer| cx.reply.integer(answer));
    propagate(cx, &key, &done, at);
    Ok(())
}

/// What happened to fields whose times were set.
#[derive(Default)]
pub(super) struct Done<'a> {
    answers: SmallVec<[i64; 8]>,
    /// The fields that got the time.
    set: SmallVec<[&'a [u8]; 8]>,
    /// The fields that were removed, since their time is over.
    pub(super) removed: SmallVec<[&'a [u8]; 8]>,
}

/// Sets the time of fields, and removes them if it is over.
pub(super) fn expire_fields<'a>(
    db: &mut Db<'_>,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    at: u64,
    condition: Condition,
) -> Result<Done<'a>, CommandError> {
    let ends_at_once = db.ends_at_once(at);
    let mut done = Done::default();
    let Some(hash) = db.hash_mut(key)? else { return Ok(done) };
    hash.make_room_for_times();
    for field in fields {
        // This includes a field whose time is over: it comes back, as in Redis.
        done.answers.push(match hash.get_timed(field) {
            None => NO_FIELD,
            Some((_, old)) if !condition.is_met(old, at) => 0,
            // While commands are replayed no time is over.
            Some(_) if ends_at_once => {
                hash.remove(field);
                done.removed.push(field);
                2
            }
            Some(_) => {
                hash.set_expire_at(field, Some(at));
                done.set.push(field);
                1
            }
        });
    }
    let emptied = hash.is_empty();
    db.stats.expired_subkeys.add(done.removed.len() as u64);
    let changes = done.set.len() + done.removed.len();
    if changes > 0 {
        db.note_fields(key);
        let event = if done.removed.is_empty() { "hexpire" } else { "hdel" };
        db.changed_times(key, Event(Class::HASH, event), changes as u64);
        if emptied {
            db.remove_empty(key);
        }
    }
    Ok(done)
}

/// Records that fields were removed as soon as they were set, since their time was over.
pub(super) fn removed_at_once<'a>(
    db: &mut Db<'_>,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
) -> Result<Done<'a>, CommandError> {
    let removed: SmallVec<[&[u8]; 8]> = fields.collect();
    db.stats.expired_subkeys.add(removed.len() as u64);
    db.note_fields(key);
    db.take_from_hash(key, Event(Class::HASH, "hdel"), |_| removed.len() as u64)?;
    Ok(Done { removed, ..Done::default() })
}

/// Journals what happened to fields: removals, and for the others the time, which does not depend
/// on when it is replayed.
pub(super) fn propagate(cx: &mut Context<'_>, key: &Key<'_>, done: &Done<'_>, at: u64) {
    cx.propagate_nothing();
    if !cx.is_journaling() {
        return;
    }
    if !done.removed.is_empty() {
        let words = [&[&b"HDEL"[..], key.bytes], &done.removed[..]].concat();
        cx.propagate(&words);
    }
    if !done.set.is_empty() {
        let (time, count) = (digits(at), digits(done.set.len() as u64));
        let head: [&[u8]; 5] = [b"HPEXPIREAT", key.bytes, &time, b"FIELDS", &count];
        cx.propagate(&[&head[..], &done.set[..]].concat());
    }
}

/// A number as text.
pub(super) fn digits(number: u64) -> Vec<u8> {
    let mut digits = Vec::with_capacity(20);
    num::write_u64(&mut digits, number);
    digits
}

/// HPERSIST key FIELDS numfields field [field ...]
pub(super) fn hpersist(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    cx.db.hash_mut(&key)?;
    let fields = named_fields(args)?;
    cx.reply.array(fields.len());
    let answers = persist_fields(cx, &key, fields, |_| 1)?;
    answers.iter().for_each(|&answer| cx.reply.integer(answer));
    Ok(())
}

/// Removes the times of fields. Returns the answer for each field. `changes` says as how many
/// changes this counts, given the number of fields that had a time.
pub(super) fn persist_fields(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    fields: Arguments<'_>,
    changes: impl Fn(u64) -> u64,
) -> Result<SmallVec<[i64; 8]>, CommandError> {
    let expire_by = cx.db.fields_expire_by();
    let mut persisted: SmallVec<[&[u8]; 8]> = SmallVec::new();
    let Some(hash) = cx.db.hash_mut(key)? else {
        return Ok(fields.iter().map(|_| NO_FIELD).collect());
    };
    let answers = fields.iter().map(|field| match hash.get_timed(field) {
        Some((_, None)) => NO_TIME,
        Some((_, Some(at))) if at >= expire_by => {
            hash.set_expire_at(field, None);
            persisted.push(field);
            1
        }
        _ => NO_FIELD,
    });
    let answers = answers.collect();
    if !persisted.is_empty() {
        cx.db.note_fields(key);
        let count = persisted.len() as u64;
        cx.db.changed_times(key, Event(Class::HASH, "hpersist"), changes(count));
        // No other fields: when this is replayed, fields that have expired by now may still be
        // there.
        let count = digits(count);
        let head: [&[u8]; 4] = [b"HPERSIST", key.bytes, b"FIELDS", &count];
        cx.propagate(&[&head[..], &persisted].concat());
    }
    Ok(answers)
}

/// HTTL key FIELDS numfields field [field ...]
pub(super) fn httl(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    reply_times(cx, args, |at| at.saturating_sub(now).div_ceil(1000))
}

/// HPTTL key FIELDS numfields field [field ...]
pub(super) fn hpttl(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let now = cx.db.now;
    reply_times(cx, args, |at| at.saturating_sub(now))
}

/// HEXPIRETIME key FIELDS numfields field [field ...]
pub(super) fn hexpiretime(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_times(cx, args, |at| at.div_ceil(1000))
}

/// HPEXPIRETIME key FIELDS numfields field [field ...]
pub(super) fn hpexpiretime(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_times(cx, args, |at| at)
}

/// Answers a form of the time of each field: -1 for a field without a time, -2 for a missing field.
fn reply_times(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    form: impl Fn(u64) -> u64,
) -> CommandResult {
    let key = args.key()?;
    let hash: Option<HashView<'_>> = cx.db.hash(&key)?;
    let fields = named_fields(args)?;
    cx.reply.array(fields.len());
    for field in fields.iter() {
        cx.reply.integer(match hash.and_then(|hash| hash.get_timed(field)) {
            None => NO_FIELD,
            Some((_, None)) => NO_TIME,
            Some((_, Some(at))) => form(at).cast_signed(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::Hash;

    #[test]
    fn a_replay_takes_any_time_that_a_field_can_have() {
        let mut server = crate::testing::server();
        server.text("HSET h f v");
        let line = format!("HPEXPIREAT h {} FIELDS 1 f", Hash::LATEST);
        assert!(server.text(&line).starts_with("-ERR invalid expire time"));
        server.session = server.engine.replaying_session();
        assert_eq!(server.text(&line), "*1\r\n:1\r\n");
        let beyond = format!("HPEXPIREAT h {} FIELDS 1 f", Hash::LATEST + 1);
        assert!(server.text(&beyond).starts_with("-ERR invalid expire time"));
    }
}
