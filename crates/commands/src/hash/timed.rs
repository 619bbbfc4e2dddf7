//! Reading, setting and removing fields together with their times: HGETEX, HSETEX, HGETDEL.

use resp::args::Arguments;
use store::Key;

use super::expire::{self, SECOND};
use super::reply_value;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

const NO_COUNT: CommandError = CommandError::text("ERR invalid number of fields");
const TWO_TIMES: CommandError =
    CommandError::text("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
const TWO_CONDITIONS: CommandError =
    CommandError::text("ERR Only one of FXX or FNX arguments can be specified");

/// What a command does with the times of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// HGETEX: they stay. HSETEX: they go.
    Unsaid,
    /// HGETEX PERSIST: they go. HSETEX KEEPTTL: they stay.
    Word,
    At(u64),
}

impl Time {
    /// Reads the option about times, if it is next. `word` is the option that may stand instead of
    /// a time.
    fn parse(cx: &Context<'_>, args: &mut Args<'_>, word: &str) -> Result<Time, CommandError> {
        let now = cx.db.now;
        let units = [("ex", SECOND, now), ("px", 1, now), ("exat", SECOND, 0), ("pxat", 1, 0)];
        match units.into_iter().find(|(name, ..)| args.word(name)) {
            Some((_, unit, base)) => Ok(Time::At(expire::time(cx, args, unit, base)?)),
            None if args.word(word) => Ok(Time::Word),
            None => Ok(Time::Unsaid),
        }
    }
}

/// HGETDEL key FIELDS numfields field [field ...]
pub(super) fn hgetdel(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    cx.db.hash_mut(&key)?;
    let fields = expire::named_fields(args)?;
    take_fields(cx, &key, fields)?;
    Ok(())
}

/// Answers the values of fields and removes them, one after the other: a field that is named twice
/// is found only once. Returns how many there were.
fn take_fields(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    fields: Arguments<'_>,
) -> Result<u64, CommandError> {
    cx.db.expire_fields(key, fields.iter());
    cx.reply.array(fields.len());
    let (mut removed, reply) = (0, &mut cx.reply);
    let found = cx.db.take_from_hash(key, Event(Class::HASH, "hdel"), |hash| {
        for field in fields.iter() {
            match hash.get(field) {
                Some(value) => reply.element(value),
                None => reply.null(),
            }
            removed += u64::from(hash.remove(field));
        }
        removed
    })?;
    if !found {
        fields.iter().for_each(|_| cx.reply.null());
    }
    if removed > 0 {
        let words = [&b"HDEL"[..], key.bytes].into_iter().chain(fields.iter());
        cx.propagate(&words.collect::<Vec<_>>());
    }
    Ok(removed)
}

/// Answers the values of fields, after removing those whose time is over.
fn reply_values(cx: &mut Context<'_>, key: &Key<'_>, fields: Arguments<'_>) -> CommandResult {
    cx.db.expire_fields(key, fields.iter());
    let hash = cx.db.hash_to_change(key)?;
    cx.reply.array(fields.len());
    fields.iter().for_each(|field| reply_value(&mut cx.reply, &cx.db, key, hash, field));
    Ok(())
}

/// HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds
/// | PERSIST] FIELDS numfields field [field ...]
pub(super) fn hgetex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    cx.db.hash_mut(&key)?;
    let time = Time::parse(cx, args, "persist")?;
    if args.len() < 2 {
        return Err(CommandError::wrong_arity(cx.row.command.name));
    }
    let fields = expire::named_fields(args)?;
    if time != Time::Unsaid
        && let Some(hash) = cx.db.hash_mut(&key)?
    {
        // As in Redis, whether the field exists or not.
        hash.make_room_for_times();
    }
    if matches!(time, Time::At(at) if cx.db.ends_at_once(at)) {
        let removed = take_fields(cx, &key, fields)?;
        cx.db.stats.expired_subkeys.add(removed);
        return Ok(());
    }
    reply_values(cx, &key, fields)?;
    match time {
        Time::Unsaid => {}
        Time::Word => {
            expire::persist_fields(cx, &key, fields, |count| count)?;
        }
        Time::At(at) => {
            let always = expire::Condition::Always;
            let done = expire::expire_fields(&mut cx.db, &key, fields.iter(), at, always)?;
            expire::propagate(cx, &key, &done, at);
        }
    }
    Ok(())
}

/// The options before the fields of HSETEX.
struct Options {
    time: Time,
    /// FXX: all fields are there. FNX: none is.
    condition: Option<bool>,
}

impl Options {
    fn parse(cx: &Context<'_>, args: &mut Args<'_>) -> Result<Options, CommandError> {
        let wrong_arity = || CommandError::wrong_arity(cx.row.command.name);
        let mut options = Options { time: Time::Unsaid, condition: None };
        while !args.word("fields") {
            let option = args.peek().ok_or_else(wrong_arity)?;
            if args.word("fnx") || args.word("fxx") {
                let all = option.eq_ignore_ascii_case(b"fxx");
                if options.condition.replace(all).is_some() {
                    return Err(TWO_CONDITIONS);
                }
                continue;
            }
            let is_time = ["ex", "px", "exat", "pxat", "keepttl"]
                .iter()
                .any(|word| option.eq_ignore_ascii_case(word.as_bytes()));
            if !is_time {
                return Err(CommandError::quoting("ERR unknown argument: ", option, ""));
            }
            if options.time != Time::Unsaid {
                return Err(TWO_TIMES);
            }
            options.time = Time::parse(cx, args, "keepttl")?;
        }
        if args.len() < 3 {
            return Err(wrong_arity());
        }
        let count = args.at_least(1, NO_COUNT)?;
        if i32::try_from(count).is_err() {
            return Err(NO_COUNT);
        }
        if count.checked_mul(2) != Some(args.len()) {
            return Err(wrong_arity());
        }
        Ok(options)
    }
}

/// HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds |
/// PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]
pub(super) fn hsetex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let options = Options::parse(cx, args)?;
    let pairs = args.rest();
    let (fields, limits) = (pairs.iter().step_by(2), cx.db.hash_limits());
    cx.db.hash_mut(&key)?;
    if let Some(all) = options.condition {
        let hash = cx.db.hash_to_change(&key)?;
        let there = |field: &[u8]| hash.is_some_and(|hash| hash.contains(field));
        let unmet = fields.clone().position(|field| there(field) != all);
        // It looks no further than to the first field that does not meet the condition.
        let looked_at = unmet.map_or(usize::MAX, |at| at + 1);
        cx.db.drop_expired_fields(&key, fields.clone().take(looked_at), unmet.is_some());
        if unmet.is_some() {
            cx.reply.integer(0);
            return Ok(());
        }
    }
    let is_over = matches!(options.time, Time::At(at) if cx.db.ends_at_once(at));
    cx.db.add_to_hash(&key, Event(Class::HASH, "hset"), |hash| {
        hash.expect(pairs.len() / 2, limits);
        if is_over {
            hash.make_room_for_times();
        }
        for (field, value) in fields.clone().zip(pairs.skip(1).iter().step_by(2)) {
            match options.time {
                Time::Unsaid => hash.set(field, value, limits),
                Time::Word | Time::At(_) => hash.set_keeping(field, value, limits),
            };
            // This happens before the next one is set: all together might make the hash a table.
            if is_over {
                hash.remove(field);
            }
        }
        pairs.len() as u64 / 2
    })?;
    if let Time::At(at) = options.time {
        let always = expire::Condition::Always;
        let counted = cx.db.effects.dirty;
        let done = if is_over {
            expire::removed_at_once(&mut cx.db, &key, fields)?
        } else {
            expire::expire_fields(&mut cx.db, &key, fields, at, always)?
        };
        // A field is one change, with its time or without.
        cx.db.effects.dirty = counted;
        if done.removed.is_empty() {
            let count = expire::digits(pairs.len() as u64 / 2);
            let time = expire::digits(at);
            let head: [&[u8]; 6] = [b"HSETEX", key.bytes, b"PXAT", &time, b"FIELDS", &count];
            let words: Vec<&[u8]> = head.into_iter().chain(pairs.iter()).collect();
            cx.propagate(&words);
        } else {
            expire::propagate(cx, &key, &done, at);
        }
    }
    cx.reply.integer(1);
    Ok(())
}

#[cfg(test)]
mod tests {

    #[test]
    fn fields_that_are_set_with_their_times_are_counted_once() {
        let mut server = crate::testing::server();
        for (command, changes) in [
            ("HSETEX h FIELDS 2 a 1 b 2", 2),
            ("HSETEX h PX 100000 FIELDS 2 a 1 c 2", 2),
            ("HSETEX h KEEPTTL FIELDS 1 a 2", 1),
            ("HSETEX h PXAT 1 FIELDS 2 a 1 d 2", 2),
            ("HGETEX h PERSIST FIELDS 2 a c", 1),
            ("HGETEX h PX 100000 FIELDS 2 b c", 2),
            ("HGETEX h PERSIST FIELDS 2 b c", 2),
            ("HGETEX h PX 100000 FIELDS 2 b c", 2),
            ("HPERSIST h FIELDS 2 b c", 1),
            ("HGETEX h PX 100000 FIELDS 1 b", 1),
            ("HGETEX h PXAT 1 FIELDS 1 b", 1),
        ] {
            let before = server.engine.stats.changes();
            server.text(command);
            assert_eq!(server.engine.stats.changes() - before, changes, "{command}");
        }
    }
}
