//! Ranges of sorted sets by rank, score or name: to answer, count, store or remove.
//!
//! Every range becomes a range of ranks, which is read from either side.

use std::ops::Range;

use base::num;
use store::pack::INTEGER_TEXT_BYTES;
use store::{Key, LexBound, ScoreBound, Value, Zset, ZsetBuilder};

use super::after_removal;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::scored::ReplyScored;

const NOT_A_SCORE: CommandError = CommandError::text("ERR min or max is not a float");
const NOT_A_NAME: CommandError = CommandError::text("ERR min or max not valid string range item");
const LIMIT_BY_RANK: CommandError = CommandError::text(
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
);
const SCORES_BY_LEX: CommandError =
    CommandError::text("ERR syntax error, WITHSCORES not supported in combination with BYLEX");

/// The kind of bounds of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The two ends of a range.
enum Bounds<'a> {
    /// Both ends are included; negative numbers count from the end.
    Rank(i64, i64),
    Score(ScoreBound, ScoreBound),
    Lex(LexBound<'a>, LexBound<'a>),
}

impl<'a> Bounds<'a> {
    fn parse(by: By, low: &'a [u8], high: &'a [u8]) -> Result<Bounds<'a>, CommandError> {
        let rank = |text| num::parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER);
        Ok(match by {
            By::Rank => Bounds::Rank(rank(low)?, rank(high)?),
            By::Score => Bounds::Score(score_bound(low)?, score_bound(high)?),
            By::Lex => Bounds::Lex(lex_bound(low)?, lex_bound(high)?),
        })
    }

    /// The ranks of the members between the ends; `reverse` makes bounds by rank count from the
    /// highest member.
    fn ranks(&self, zset: &Zset, reverse: bool) -> Range<usize> {
        match *self {
            Bounds::Rank(start, stop) => {
                let length = zset.len();
                let Range { start, end } = indexes(start, stop, length);
                if reverse { length - end..length - start } else { start..end }
            }
            Bounds::Score(low, high) => zset.rank_range_by_score(low, high),
            Bounds::Lex(low, high) => zset.rank_range_by_lex(low, high, reverse),
        }
    }
}

/// The indexes from `start` to `stop` of `length` elements; negative ones count from the end.
fn indexes(start: i64, stop: i64, length: usize) -> Range<usize> {
    // A rank before the first element counts the same, however far before.
    let from_front =
        |index: i64| if index < 0 { index.saturating_add(length as i64) } else { index };
    let end = from_front(stop).saturating_add(1).clamp(0, length as i64) as usize;
    let start = from_front(start).clamp(0, end as i64) as usize;
    start..end
}

fn score_bound(text: &[u8]) -> Result<ScoreBound, CommandError> {
    let score = |text| num::parse_f64_lenient(text).ok_or(NOT_A_SCORE);
    Ok(match text {
        [b'(', text @ ..] => ScoreBound::Exclusive(score(text)?),
        text => ScoreBound::Inclusive(score(text)?),
    })
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, CommandError> {
    match text {
        [b'-'] | [b'-', 0, ..] => Ok(LexBound::Lowest),
        [b'+'] | [b'+', 0, ..] => Ok(LexBound::Highest),
        [b'[', name @ ..] => Ok(LexBound::Inclusive(name)),
        [b'(', name @ ..] => Ok(LexBound::Exclusive(name)),
        _ => Err(NOT_A_NAME),
    }
}

/// What a command of the ZRANGE family reads, and how.
struct Selection<'a> {
    key: Key<'a>,
    bounds: Bounds<'a>,
    /// From the highest member down.
    reverse: bool,
    /// Members to skip; a negative number skips all of them, or all except this many.
    offset: i64,
    /// Most members; a negative number is no limit.
    limit: i64,
    with_scores: bool,
}

/// What the name of a command fixes, and what it leaves to options.
#[derive(Clone, Copy, Default)]
struct Form {
    by: Option<By>,
    reverse: Option<bool>,
    /// The result is stored, so WITHSCORES means nothing.
    stores: bool,
}

impl<'a> Selection<'a> {
    fn parse(args: &mut Args<'a>, mut form: Form) -> Result<Selection<'a>, CommandError> {
        let (key, first, second) = (args.key()?, args.bytes()?, args.bytes()?);
        let (mut offset, mut limit, mut with_scores) = (0, -1, false);
        while !args.is_empty() {
            if !form.stores && args.word("withscores") {
                with_scores = true;
            } else if args.len() >= 3 && args.word("limit") {
                (offset, limit) = (args.i64()?, args.i64()?);
            } else if form.reverse.is_none() && args.word("rev") {
                form.reverse = Some(true);
            } else if form.by.is_none() && args.word("bylex") {
                form.by = Some(By::Lex);
            } else if form.by.is_none() && args.word("byscore") {
                form.by = Some(By::Score);
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        let (by, reverse) = (form.by.unwrap_or(By::Rank), form.reverse.unwrap_or(false));
        if by == By::Rank {
            if limit != -1 {
                return Err(LIMIT_BY_RANK);
            }
            // No limit at all, for any offset.
            offset = 0;
        }
        if with_scores && by == By::Lex {
            return Err(SCORES_BY_LEX);
        }
        // Ranks count from whichever end is first; scores and names are as given.
        let swapped = reverse && by != By::Rank;
        let (low, high) = if swapped { (second, first) } else { (first, second) };
        let bounds = Bounds::parse(by, low, high)?;
        Ok(Selection { key, bounds, reverse, offset, limit, with_scores })
    }

    /// The ranks of the members to read.
    fn ranks(&self, zset: &Zset) -> Range<usize> {
        let Range { start, end } = self.bounds.ranks(zset, self.reverse);
        let length = end - start;
        let skipped = match usize::try_from(self.offset) {
            Ok(offset) => offset.min(length),
            // In a table, a negative offset counts from the other end, as in Redis.
            Err(_) if !zset.is_packed() => {
                let from_end = usize::try_from(self.offset.unsigned_abs()).unwrap_or(usize::MAX);
                length.checked_sub(from_end).unwrap_or(length)
            }
            Err(_) => length,
        };
        let taken = usize::try_from(self.limit).unwrap_or(length).min(length - skipped);
        if self.reverse {
            end - skipped - taken..end - skipped
        } else {
            start + skipped..start + skipped + taken
        }
    }
}

/// ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
pub(super) fn zrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form::default())
}

/// ZREVRANGE key start stop [WITHSCORES]
pub(super) fn zrevrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form { by: Some(By::Rank), reverse: Some(true), stores: false })
}

/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
pub(super) fn zrangebyscore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form { by: Some(By::Score), reverse: Some(false), stores: false })
}

/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
pub(super) fn zrevrangebyscore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form { by: Some(By::Score), reverse: Some(true), stores: false })
}

/// ZRANGEBYLEX key min max [LIMIT offset count]
pub(super) fn zrangebylex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form { by: Some(By::Lex), reverse: Some(false), stores: false })
}

/// ZREVRANGEBYLEX key max min [LIMIT offset count]
pub(super) fn zrevrangebylex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Form { by: Some(By::Lex), reverse: Some(true), stores: false })
}

fn answer(cx: &mut Context<'_>, args: &mut Args<'_>, form: Form) -> CommandResult {
    let selection = Selection::parse(args, form)?;
    let reply = &mut cx.reply;
    let Some(zset) = cx.db.zset(&selection.key)? else {
        reply.array(0);
        return Ok(());
    };
    let members = zset.range(selection.ranks(zset));
    reply.scored_array(members.len(), selection.with_scores);
    let visit = |(member, score)| reply.scored(member, score, selection.with_scores);
    if selection.reverse {
        members.rev().for_each(visit)
    } else {
        members.for_each(visit)
    }
    Ok(())
}

/// ZRANGESTORE dst src min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]
pub(super) fn zrangestore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let destination = args.key()?;
    let selection = Selection::parse(args, Form { stores: true, ..Form::default() })?;
    let mut result = ZsetBuilder::new();
    if let Some(zset) = cx.db.zset(&selection.key)? {
        let mut text = [0; INTEGER_TEXT_BYTES];
        for (member, score) in zset.range(selection.ranks(zset)) {
            result.add(member.as_bytes(&mut text), score);
        }
    }
    store(cx, &destination, result, "zrangestore");
    Ok(())
}

/// Stores a result in place of the present value, and answers the number of its members.
pub(super) fn store(
    cx: &mut Context<'_>,
    destination: &Key<'_>,
    result: ZsetBuilder,
    event: &'static str,
) {
    let length = result.len();
    let limits = cx.db.zset_limits();
    let value = (length > 0).then(|| Value::Zset(result.finish(limits)));
    cx.db.set_or_remove(destination, value, Event(Class::ZSET, event), 1);
    cx.reply.integer(length as i64);
}

/// ZCOUNT key min max
pub(super) fn zcount(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    count(cx, args, By::Score)
}

/// ZLEXCOUNT key min max
pub(super) fn zlexcount(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    count(cx, args, By::Lex)
}

fn count(cx: &mut Context<'_>, args: &mut Args<'_>, by: By) -> CommandResult {
    let key = args.key()?;
    let bounds = Bounds::parse(by, args.bytes()?, args.bytes()?)?;
    let count = cx.db.zset(&key)?.map_or(0, |zset| bounds.ranks(zset, false).len());
    cx.reply.integer(count as i64);
    Ok(())
}

/// ZREMRANGEBYRANK key start stop
pub(super) fn zremrangebyrank(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    remove(cx, args, By::Rank, "zremrangebyrank")
}

/// ZREMRANGEBYSCORE key min max
pub(super) fn zremrangebyscore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    remove(cx, args, By::Score, "zremrangebyscore")
}

/// ZREMRANGEBYLEX key min max
pub(super) fn zremrangebylex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    remove(cx, args, By::Lex, "zremrangebylex")
}

fn remove(cx: &mut Context<'_>, args: &mut Args<'_>, by: By, event: &'static str) -> CommandResult {
    let key = args.key()?;
    let bounds = Bounds::parse(by, args.bytes()?, args.bytes()?)?;
    let Some(zset) = cx.db.zset_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ranks = bounds.ranks(zset, false);
    let removed = zset.remove_ranks(ranks);
    let emptied = zset.is_empty();
    if removed > 0 {
        after_removal(cx, &key, event, removed, emptied);
    }
    cx.reply.integer(removed as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_cut_to_what_is_there() {
        assert_eq!(indexes(0, -1, 4), 0..4);
        assert_eq!(indexes(1, 2, 4), 1..3);
        assert_eq!(indexes(-2, -1, 4), 2..4);
        assert_eq!(indexes(-100, 100, 4), 0..4);
        assert!(indexes(2, 1, 4).is_empty());
        assert!(indexes(10, 20, 4).is_empty());
        assert!(indexes(-100, -50, 4).is_empty());
        assert_eq!(indexes(i64::MIN, i64::MAX, 4), 0..4);
        assert!(indexes(i64::MAX, i64::MIN, 4).is_empty());
    }

    #[test]
    fn bounds_of_names_have_a_mark() {
        assert_eq!(lex_bound(b"-"), Ok(LexBound::Lowest));
        assert_eq!(lex_bound(b"+"), Ok(LexBound::Highest));
        assert_eq!(lex_bound(b"["), Ok(LexBound::Inclusive(b"")));
        assert_eq!(lex_bound(b"(a"), Ok(LexBound::Exclusive(b"a")));
        for wrong in [&b""[..], b"a", b"--", b"+a"] {
            assert_eq!(lex_bound(wrong), Err(NOT_A_NAME));
        }
    }

    #[test]
    fn bounds_of_scores_may_be_exclusive() {
        assert_eq!(score_bound(b"1.5"), Ok(ScoreBound::Inclusive(1.5)));
        assert_eq!(score_bound(b"(-inf"), Ok(ScoreBound::Exclusive(f64::NEG_INFINITY)));
        assert_eq!(score_bound(b"("), Ok(ScoreBound::Exclusive(0.0)));
        for wrong in [&b"a"[..], b"((1", b"[1", b"nan"] {
            assert_eq!(score_bound(wrong), Err(NOT_A_SCORE));
        }
    }
}
