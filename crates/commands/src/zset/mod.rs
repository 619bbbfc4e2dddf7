//! Sorted sets: looking up, removing, drawing and scanning members. `add` adds members, `range` has
//! ranges, `combine` has unions and the like, and `pop` takes members from the ends.
//!
//! Members go from the sorted set straight into the reply. Everything that counts from either end
//! works on ranks, which both forms of a sorted set find without a walk.

mod add;
mod combine;
mod pop;
mod range;
mod rows;
#[cfg(test)]
mod tests;

use base::num::write_general;
use base::rng;
use resp::reply::Reply;
use store::pack::{Element, INTEGER_TEXT_BYTES, ListpackSlice};
use store::{Key, Zset};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::{ReplyElements, reply_repeating};
use engine::handler::scan::{self, ScanOptions, ScanStep, Scanned};
use engine::handler::scored::ReplyScored;

pub(crate) use rows::FAMILY;

/// ZCARD key
fn zcard(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let length = cx.db.zset(&key)?.map_or(0, Zset::len);
    cx.reply.integer(length as i64);
    Ok(())
}

/// ZSCORE key member
fn zscore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, member) = (args.key()?, args.bytes()?);
    let score = cx.db.zset(&key)?.and_then(|zset| zset.score(member));
    answer_score(&mut cx.reply, score);
    Ok(())
}

/// ZMSCORE key member [member ...]
fn zmscore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let zset = cx.db.zset(&key)?;
    let members = args.rest();
    cx.reply.array(members.len());
    for member in members.iter() {
        answer_score(&mut cx.reply, zset.and_then(|zset| zset.score(member)));
    }
    Ok(())
}

fn answer_score(reply: &mut Reply<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

/// ZRANK key member [WITHSCORE]
fn zrank(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer_rank(cx, args, false)
}

/// ZREVRANK key member [WITHSCORE]
fn zrevrank(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer_rank(cx, args, true)
}

fn answer_rank(cx: &mut Context<'_>, args: &mut Args<'_>, from_highest: bool) -> CommandResult {
    let (key, member) = (args.key()?, args.bytes()?);
    if args.len() > 1 {
        return Err(CommandError::wrong_arity(cx.row.command.name));
    }
    let with_score = args.word("withscore");
    args.end()?;
    let zset = cx.db.zset(&key)?;
    let found = zset.and_then(|zset| {
        let rank = zset.rank(member)?;
        let rank = if from_highest { zset.len() - 1 - rank } else { rank };
        let score = if with_score { zset.score(member) } else { None };
        Some((rank, score))
    });
    match found {
        Some((rank, None)) => cx.reply.integer(rank as i64),
        Some((rank, Some(score))) => {
            cx.reply.array(2);
            cx.reply.integer(rank as i64);
            cx.reply.double(score);
        }
        None if with_score => cx.reply.null_array(),
        None => cx.reply.null(),
    }
    Ok(())
}

/// ZREM key member [member ...]
fn zrem(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let Some(zset) = cx.db.zset_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let members = args.rest().iter();
    let removed = members.filter(|member| zset.remove(member).is_some()).count();
    let emptied = zset.is_empty();
    if removed > 0 {
        after_removal(cx, &key, "zrem", removed, emptied);
    }
    cx.reply.integer(removed as i64);
    Ok(())
}

/// Records that members were removed, and removes the key if no member is left.
fn after_removal(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    event: &'static str,
    removed: usize,
    emptied: bool,
) {
    cx.db.changed_times(key, Event(Class::ZSET, event), removed as u64);
    if emptied {
        cx.db.remove_empty(key);
    }
}

/// ZRANDMEMBER key [count [WITHSCORES]]
fn zrandmember(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if !args.is_empty() {
        return zrandmember_many(cx, &key, args);
    }
    let zset = cx.db.zset(&key)?;
    match zset.and_then(|zset| rng::with(|rng| zset.random(rng))) {
        Some((member, _)) => cx.reply.element(member),
        None => cx.reply.null(),
    }
    Ok(())
}

/// ZRANDMEMBER with a count: different members, or with repetition if it is negative.
fn zrandmember_many(cx: &mut Context<'_>, key: &Key<'_>, args: &mut Args<'_>) -> CommandResult {
    let count = args.signed_count()?;
    let with_scores = args.word("withscores");
    args.end()?;
    if with_scores && count.unsigned_abs() > (i64::MAX / 2).unsigned_abs() {
        // The reply has two elements for each member.
        return Err(CommandError::OUT_OF_RANGE);
    }
    let zset = cx.db.zset(key)?;
    let reply = &mut cx.reply;
    let Some(zset) = zset.filter(|_| count != 0) else {
        reply.array(0);
        return Ok(());
    };
    let mut left = count.unsigned_abs() as usize;
    if count > 0 {
        left = left.min(zset.len());
        reply.scored_array(left, with_scores);
        let visit = |member: Element<'_>, score| reply.scored(member, score, with_scores);
        rng::with(|rng| zset.random_distinct(left, rng, visit));
        return Ok(());
    }
    reply.scored_array(left, with_scores);
    reply_repeating(reply, left, |reply, draws, rng| {
        let visit = |member: Element<'_>, score| reply.scored(member, score, with_scores);
        zset.random_repeating(draws, rng, visit);
    })
}

/// ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]
fn zscan(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let cursor = scan::cursor(args)?;
    // The key is looked at before the options are read.
    let Some(zset) = cx.db.zset(&key)? else {
        scan::reply_scan(&mut cx.reply, |_| (0, 0));
        return Ok(());
    };
    let options = ScanOptions::parse(args, Scanned::Zset)?;
    scan::reply_members(&mut cx.reply, cursor, options.count, |position, reply| {
        match zset.as_listpack() {
            Some(listpack) => scan_listpack(listpack, &options, reply),
            None => scan_table(zset, position, &options, reply),
        }
    });
    Ok(())
}

/// Shows all of a listpack, the scores as they are stored: 10^17 has all its digits there, where
/// other commands answer 1e+17.
fn scan_listpack(
    listpack: &ListpackSlice,
    options: &ScanOptions<'_>,
    reply: &mut Reply<'_>,
) -> ScanStep {
    let mut step = ScanStep { seen: 0, written: 0, next: None };
    let mut text = [0; INTEGER_TEXT_BYTES];
    let mut elements = listpack.elements();
    while let (Some(member), Some(score)) = (elements.next(), elements.next()) {
        step.seen += 1;
        let name = member.as_bytes(&mut text);
        if options.admits(name) {
            step.written += 1;
            reply.bulk(name);
            if !options.names_only {
                step.written += 1;
                reply.element(score);
            }
        }
    }
    step
}

/// Shows the members at one position of a table. Scores are strings here, in RESP3 too, and have 17
/// digits, where other commands answer with as few as identify them.
fn scan_table(
    zset: &Zset,
    position: u32,
    options: &ScanOptions<'_>,
    reply: &mut Reply<'_>,
) -> ScanStep {
    let mut step = ScanStep { seen: 0, written: 0, next: None };
    let mut text = [0; INTEGER_TEXT_BYTES];
    let mut digits = Vec::new();
    step.next = zset.scan(position, |member, score| {
        step.seen += 1;
        let name = member.as_bytes(&mut text);
        if options.admits(name) {
            step.written += 1;
            reply.bulk(name);
            if !options.names_only {
                step.written += 1;
                digits.clear();
                write_general(&mut digits, score, 17);
                reply.bulk(&digits);
            }
        }
    });
    step
}
