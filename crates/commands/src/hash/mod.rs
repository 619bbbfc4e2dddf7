//! Hashes: fields and their values.

mod expire;
mod rows;
mod timed;

use base::num::LongDouble;
use base::rng;
use resp::reply::Reply;
use store::pack::{Element, INTEGER_TEXT_BYTES, format_integer};
use store::{Field, HashView, Key};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::{ReplyElements, reply_repeating};
use engine::handler::scan::{self, ScanOptions, ScanStep, Scanned};

pub(crate) use rows::FAMILY;

/// HSET key field value [field value ...]
fn hset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let added = set_pairs(cx, args)?;
    cx.reply.integer(added as i64);
    Ok(())
}

/// HMSET key field value [field value ...]
fn hmset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_pairs(cx, args)?;
    cx.reply.ok();
    Ok(())
}

/// Sets all remaining pairs. Returns how many fields are new.
#[inline]
fn set_pairs(cx: &mut Context<'_>, args: &mut Args<'_>) -> Result<usize, CommandError> {
    let key = args.key()?;
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(cx.row.command.name));
    }
    let limits = cx.db.hash_limits();
    let mut added = 0;
    cx.db.add_to_hash(&key, Event(Class::HASH, "hset"), |hash| {
        let pairs = args.len() / 2;
        hash.expect(pairs, limits);
        while let (Ok(field), Ok(value)) = (args.bytes(), args.bytes()) {
            added += usize::from(hash.set(field, value, limits));
        }
        pairs as u64
    })?;
    Ok(added)
}

/// HSETNX key field value
fn hsetnx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field, value) = (args.key()?, args.bytes()?, args.bytes()?);
    let limits = cx.db.hash_limits();
    let mut added = 0;
    cx.db.expire_fields(&key, std::iter::once(field));
    cx.db.add_to_hash(&key, Event(Class::HASH, "hset"), |hash| {
        if !hash.contains(field) {
            added = u64::from(hash.set(field, value, limits));
        }
        added
    })?;
    cx.reply.integer(added as i64);
    Ok(())
}

/// HGET key field
fn hget(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field) = (args.key()?, args.bytes()?);
    let hash = cx.db.hash(&key)?;
    reply_value(&mut cx.reply, &cx.db, &key, hash, field);
    Ok(())
}

/// HMGET key field [field ...]
fn hmget(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let hash = cx.db.hash(&key)?;
    let fields = args.rest();
    cx.reply.array(fields.len());
    fields.iter().for_each(|field| reply_value(&mut cx.reply, &cx.db, &key, hash, field));
    Ok(())
}

#[inline]
fn reply_value(
    reply: &mut Reply<'_>,
    db: &Db<'_>,
    key: &Key<'_>,
    hash: Option<HashView<'_>>,
    field: &[u8],
) {
    match hash.and_then(|hash| db.field(key, hash, field)) {
        Some(value) => reply.element(value),
        None => reply.null(),
    }
}

/// HGETALL key
fn hgetall(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let hash = cx.db.hash(&key)?;
    cx.reply.map(hash.map_or(0, HashView::len));
    for (field, value, _) in hash.into_iter().flat_map(HashView::iter) {
        cx.reply.element(field);
        cx.reply.element(value);
    }
    Ok(())
}

/// HKEYS key
fn hkeys(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_each(cx, args, |(field, ..)| field)
}

/// HVALS key
fn hvals(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_each(cx, args, |(_, value, _)| value)
}

/// Answers an array of what `choose` takes from each field.
fn reply_each(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    choose: for<'a> fn(Field<'a>) -> Element<'a>,
) -> CommandResult {
    let key = args.key()?;
    let hash = cx.db.hash(&key)?;
    cx.reply.array(hash.map_or(0, HashView::len));
    for field in hash.into_iter().flat_map(HashView::iter) {
        cx.reply.element(choose(field));
    }
    Ok(())
}

/// HLEN key
///
/// Counts fields that have expired and were not removed yet, as Redis does.
fn hlen(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let count = cx.db.hash(&key)?.map_or(0, |hash| hash.whole().len());
    cx.reply.integer(count as i64);
    Ok(())
}

/// HEXISTS key field
fn hexists(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field) = (args.key()?, args.bytes()?);
    let hash = cx.db.hash(&key)?;
    let found = hash.is_some_and(|hash| cx.db.field(&key, hash, field).is_some());
    cx.reply.integer(i64::from(found));
    Ok(())
}

/// HSTRLEN key field
fn hstrlen(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field) = (args.key()?, args.bytes()?);
    let value = cx.db.hash(&key)?.and_then(|hash| cx.db.field(&key, hash, field));
    let length = value.map_or(0, |value| value.len());
    cx.reply.integer(length as i64);
    Ok(())
}

/// HDEL key field [field ...]
fn hdel(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let fields = args.rest();
    let mut removed = 0;
    cx.db.take_from_hash(&key, Event(Class::HASH, "hdel"), |hash| {
        removed = fields.iter().filter(|field| hash.remove(field)).count() as u64;
        removed
    })?;
    cx.reply.integer(removed as i64);
    Ok(())
}

/// HINCRBY key field increment
fn hincrby(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field, increment) = (args.key()?, args.bytes()?, args.i64()?);
    let limits = cx.db.hash_limits();
    cx.db.expire_fields(&key, std::iter::once(field));
    let present = match cx.db.hash_mut(&key)?.and_then(|hash| hash.get(field)) {
        Some(value) => {
            value.to_integer().ok_or(CommandError::text("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let sum = present.checked_add(increment).ok_or(CommandError::OVERFLOW)?;
    let mut text = [0; INTEGER_TEXT_BYTES];
    cx.db.hash_or_new(&key)?.set_keeping(field, format_integer(sum, &mut text), limits);
    cx.db.changed(&key, Event(Class::HASH, "hincrby"));
    cx.reply.integer(sum);
    Ok(())
}

/// HINCRBYFLOAT key field increment
fn hincrbyfloat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, field) = (args.key()?, args.bytes()?);
    let increment = LongDouble::parse(args.bytes()?).ok_or(CommandError::NOT_A_FLOAT)?;
    if !increment.is_finite() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let limits = cx.db.hash_limits();
    cx.db.expire_fields(&key, std::iter::once(field));
    let present = match cx.db.hash_mut(&key)?.and_then(|hash| hash.get(field)) {
        Some(value) => LongDouble::parse(value.as_bytes(&mut [0; INTEGER_TEXT_BYTES]))
            .ok_or(CommandError::text("ERR hash value is not a float"))?,
        None => LongDouble::from(0),
    };
    let sum = present + increment;
    if !sum.is_finite() {
        return Err(CommandError::NAN_OR_INFINITY);
    }
    let text = sum.to_human();
    let hash = cx.db.hash_or_new(&key)?;
    hash.set_keeping(field, &text, limits);
    let expires = hash.get_timed(field).is_some_and(|(_, expire_at)| expire_at.is_some());
    cx.db.changed(&key, Event(Class::HASH, "hincrbyfloat"));
    cx.reply.bulk(&text);
    // The journal receives the sum, so that a replay does no arithmetic of its own.
    if expires {
        cx.propagate(&[b"HSETEX", key.bytes, b"KEEPTTL", b"FIELDS", b"1", field, &text]);
    } else {
        cx.propagate(&[b"HSET", key.bytes, field, &text]);
    }
    Ok(())
}

/// HRANDFIELD key [count [WITHVALUES]]
fn hrandfield(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if args.is_empty() {
        let hash = cx.db.hash(&key)?;
        cx.db.note_expired_fields(&key, hash);
        let reply = &mut cx.reply;
        match hash.and_then(|hash| rng::with(|rng| hash.random(rng))) {
            Some((field, _)) => reply.element(field),
            None => reply.null(),
        }
        return Ok(());
    }
    let count = args.signed_count()?;
    let with_values = args.word("withvalues");
    args.end()?;
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::OUT_OF_RANGE);
    }
    let hash = cx.db.hash(&key)?;
    cx.db.note_expired_fields(&key, hash);
    match hash.filter(|_| count != 0) {
        Some(hash) => reply_random(&mut cx.reply, hash, count, with_values),
        None => {
            cx.reply.array(0);
            Ok(())
        }
    }
}

/// Answers `count` different fields. If `count` is negative, this many fields with repetition.
fn reply_random(
    reply: &mut Reply<'_>,
    hash: HashView<'_>,
    count: i64,
    with_values: bool,
) -> CommandResult {
    let mut left = count.unsigned_abs() as usize;
    if count > 0 {
        left = left.min(hash.len());
    }
    // Pairs are arrays of their own in RESP3, and follow each other in RESP2.
    let nested = with_values && reply.is_resp3();
    reply.array(if with_values && !nested { 2 * left } else { left });
    let visit = |reply: &mut Reply<'_>, field: Element<'_>, value: Element<'_>| {
        if nested {
            reply.array(2);
        }
        reply.element(field);
        if with_values {
            reply.element(value);
        }
    };
    if count > 0 {
        rng::with(|rng| {
            hash.random_distinct(left, rng, |field, value| visit(reply, field, value));
        });
        return Ok(());
    }
    reply_repeating(reply, left, |reply, draws, rng| {
        hash.random_repeating(draws, rng, |field, value| visit(reply, field, value));
    })
}

/// HSCAN key cursor [MATCH pattern] [COUNT count]
fn hscan(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let cursor = scan::cursor(args)?;
    // The key is looked at before the options are read.
    let Some(hash) = cx.db.hash(&key)? else {
        scan::reply_scan(&mut cx.reply, |_| (0, 0));
        return Ok(());
    };
    let options = ScanOptions::parse(args, Scanned::Hash)?;
    scan::reply_members(&mut cx.reply, cursor, options.count, |position, reply| {
        let mut step = ScanStep { seen: 0, written: 0, next: None };
        let mut text = [0; INTEGER_TEXT_BYTES];
        step.next = hash.scan(position, |field, value| {
            step.seen += 1;
            let name = field.as_bytes(&mut text);
            if options.admits(name) {
                step.written += 1;
                reply.bulk(name);
                if !options.names_only {
                    step.written += 1;
                    reply.element(value);
                }
            }
        });
        step
    });
    Ok(())
}
