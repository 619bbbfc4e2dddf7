//! Unions, intersections and differences of sorted sets and sets; a set's members have the score 1.
//!
//! Sources are taken in the order of their lengths, as Redis does: sums of floats depend on the
//! order.

use std::cmp::Reverse;

use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::{Entry, Key, Limits, Set, ValueRef, Zset, ZsetBuilder};

use super::range;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::engine::Context;
use engine::handler::elements::most_elements;
use engine::handler::scored::ReplyScored;

const NEGATIVE_LIMIT: CommandError = CommandError::text("ERR LIMIT can't be negative");
const NOT_A_WEIGHT: CommandError = CommandError::text("ERR weight value is not a float");

/// A result that is answered and not kept needs to be sorted, and nothing else.
const SORTED_ONLY: Limits = Limits { entries: 0, value: 0 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores are combined of a member that several sources have.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, present: f64, other: f64) -> f64 {
        match self {
            // Opposite infinities make zero.
            Aggregate::Sum => zero_if_nan(present + other),
            Aggregate::Min => {
                if other < present {
                    other
                } else {
                    present
                }
            }
            Aggregate::Max => {
                if other > present {
                    other
                } else {
                    present
                }
            }
        }
    }
}

/// The value under one of the keys.
#[derive(Clone, Copy)]
enum Source<'d> {
    Missing,
    Zset(&'d Zset),
    Set(&'d Set),
}

impl<'d> Source<'d> {
    fn find(db: &'d Db<'_>, key: &Key<'_>) -> Result<Source<'d>, CommandError> {
        match db.find(key).map(Entry::value) {
            None => Ok(Source::Missing),
            Some(ValueRef::Zset(zset)) => Ok(Source::Zset(zset)),
            Some(ValueRef::Set(set)) => Ok(Source::Set(set)),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    fn len(self) -> usize {
        match self {
            Source::Missing => 0,
            Source::Zset(zset) => zset.len(),
            Source::Set(set) => set.len(),
        }
    }

    fn score(self, member: Element<'_>) -> Option<f64> {
        match self {
            Source::Missing => None,
            Source::Zset(zset) => zset.score(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])),
            Source::Set(set) => set.contains_element(member).then_some(1.0),
        }
    }

    fn iter(self) -> impl Iterator<Item = (Element<'d>, f64)> {
        let (zset, set) = match self {
            Source::Missing => (None, None),
            Source::Zset(zset) => (Some(zset.iter()), None),
            Source::Set(set) => (None, Some(set.iter())),
        };
        let members = set.into_iter().flatten().map(|member| (member, 1.0));
        zset.into_iter().flatten().chain(members)
    }
}

/// A source and the factor of its scores.
struct Weighted<'d> {
    source: Source<'d>,
    weight: f64,
}

/// The sources that a command names after their number.
fn sources<'d>(
    db: &'d Db<'_>,
    args: &mut Args<'_>,
    command: &str,
) -> Result<Vec<Weighted<'d>>, CommandError> {
    let count = args.i64()?;
    if count < 1 {
        let text = format!("ERR at least 1 input key is needed for '{command}' command");
        return Err(CommandError::owned(text));
    }
    let keys = args.keys(usize::try_from(count).unwrap_or(usize::MAX))?;
    let source = |key| Ok(Weighted { source: Source::find(db, key)?, weight: 1.0 });
    keys.iter().map(source).collect()
}

/// How a command combines its sources.
struct Combination {
    result: ZsetBuilder,
    with_scores: bool,
}

impl Combination {
    /// Reads all arguments from the number of sources on, and combines them. The sources are looked
    /// at before the options are.
    fn new(
        db: &Db<'_>,
        args: &mut Args<'_>,
        command: &str,
        operation: Operation,
        stored: bool,
    ) -> Result<Combination, CommandError> {
        let mut sources = sources(db, args, command)?;
        let (mut aggregate, mut with_scores) = (Aggregate::Sum, false);
        let merges = operation != Operation::Difference;
        while !args.is_empty() {
            if merges && args.len() > sources.len() && args.word("weights") {
                for source in &mut sources {
                    source.weight = args.f64().map_err(|_| NOT_A_WEIGHT)?;
                }
            } else if merges && args.len() >= 2 && args.word("aggregate") {
                aggregate = parse_aggregate(args)?;
            } else if !stored && args.word("withscores") {
                with_scores = true;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        if merges {
            sources.sort_by_key(|weighted| weighted.source.len());
        }
        let result = match operation {
            Operation::Union => unite(&sources, aggregate)?,
            Operation::Intersection => intersect(&sources, aggregate),
            Operation::Difference => subtract(&sources),
        };
        Ok(Combination { result, with_scores })
    }
}

fn parse_aggregate(args: &mut Args<'_>) -> Result<Aggregate, CommandError> {
    if args.word("sum") {
        Ok(Aggregate::Sum)
    } else if args.word("min") {
        Ok(Aggregate::Min)
    } else if args.word("max") {
        Ok(Aggregate::Max)
    } else {
        Err(CommandError::SYNTAX)
    }
}

fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// All members of all sources, unless they are more than a sorted set can count.
fn unite(sources: &[Weighted<'_>], aggregate: Aggregate) -> Result<ZsetBuilder, CommandError> {
    let (mut result, most) = (ZsetBuilder::new(), most_elements());
    let mut text = [0; INTEGER_TEXT_BYTES];
    for Weighted { source, weight } in sources {
        let may_be_too_many = result.len() + source.len() > most;
        for (member, score) in source.iter() {
            let member = member.as_bytes(&mut text);
            if may_be_too_many && result.len() == most && result.score(member).is_none() {
                return Err(CommandError::TOO_MANY_ELEMENTS);
            }
            // Infinity times zero is zero.
            let score = zero_if_nan(weight * score);
            let combine = |present, score| aggregate.of(present, score);
            result.merge(member, score, combine);
        }
    }
    Ok(result)
}

/// The sources ascend by length: the shortest is iterated, the others are searched.
fn intersect(sources: &[Weighted<'_>], aggregate: Aggregate) -> ZsetBuilder {
    let mut result = ZsetBuilder::new();
    let Some((first, others)) = sources.split_first() else { return result };
    let mut text = [0; INTEGER_TEXT_BYTES];
    for (member, score) in first.source.iter() {
        let score = others.iter().try_fold(zero_if_nan(first.weight * score), |score, other| {
            Some(aggregate.of(score, other.weight * other.source.score(member)?))
        });
        if let Some(score) = score {
            result.add(member.as_bytes(&mut text), score);
        }
    }
    result
}

/// The members of the first source that no other source has. Either the members of the first are
/// looked up in the others, or those of the others are removed from the first, whichever is less
/// work.
fn subtract(sources: &[Weighted<'_>]) -> ZsetBuilder {
    let mut result = ZsetBuilder::new();
    let Some((first, others)) = sources.split_first() else { return result };
    let mut others: Vec<_> = others.iter().map(|other| other.source).collect();
    let length = first.source.len();
    let looked_for = length.saturating_mul(others.len());
    let removed = others.iter().map(|other| other.len()).sum::<usize>() + length;
    let mut text = [0; INTEGER_TEXT_BYTES];
    // Looking up is cheaper than adding and removing, and often ends at the first of the others.
    if looked_for / 2 <= removed {
        others.sort_by_key(|other| Reverse(other.len()));
        for (member, score) in first.source.iter() {
            if others.iter().all(|other| other.score(member).is_none()) {
                result.add(member.as_bytes(&mut text), score);
            }
        }
        return result;
    }
    for (member, score) in first.source.iter() {
        result.add(member.as_bytes(&mut text), score);
    }
    for (member, _) in others.iter().flat_map(|other| other.iter()) {
        if result.is_empty() {
            break;
        }
        result.remove(member.as_bytes(&mut text));
    }
    result
}

/// ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub(super) fn zunion(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Union)
}

/// ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub(super) fn zinter(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Intersection)
}

/// ZDIFF numkeys key [key ...] [WITHSCORES]
pub(super) fn zdiff(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Difference)
}

fn answer(cx: &mut Context<'_>, args: &mut Args<'_>, operation: Operation) -> CommandResult {
    let command = cx.row.command.name;
    let combination = Combination::new(&cx.db, args, command, operation, false)?;
    let with_scores = combination.with_scores;
    let result = combination.result.finish(SORTED_ONLY);
    cx.reply.scored_array(result.len(), with_scores);
    result.iter().for_each(|(member, score)| cx.reply.scored(member, score, with_scores));
    Ok(())
}

/// ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]]
/// [AGGREGATE SUM|MIN|MAX]
pub(super) fn zunionstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Union, "zunionstore")
}

/// ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]]
/// [AGGREGATE SUM|MIN|MAX]
pub(super) fn zinterstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Intersection, "zinterstore")
}

/// ZDIFFSTORE destination numkeys key [key ...]
pub(super) fn zdiffstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Difference, "zdiffstore")
}

fn store(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    operation: Operation,
    event: &'static str,
) -> CommandResult {
    let destination = args.key()?;
    let command = cx.row.command.name;
    let combination = Combination::new(&cx.db, args, command, operation, true)?;
    range::store(cx, &destination, combination.result, event);
    Ok(())
}

/// ZINTERCARD numkeys key [key ...] [LIMIT limit]
pub(super) fn zintercard(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut sources = sources(&cx.db, args, cx.row.command.name)?;
    let mut limit = 0;
    while !args.is_empty() {
        if args.len() < 2 || !args.word("limit") {
            return Err(CommandError::SYNTAX);
        }
        limit = args.at_least(0, NEGATIVE_LIMIT)?;
    }
    sources.sort_by_key(|weighted| weighted.source.len());
    let (first, others) = sources.split_first().expect("at least one key was asked for");
    let common = first.source.iter().filter(|(member, _)| {
        let member = *member;
        others.iter().all(|other| other.source.score(member).is_some())
    });
    let count = common.take(if limit == 0 { usize::MAX } else { limit }).count();
    cx.reply.integer(count as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Aggregate;
    use engine::handler::elements::with_most_elements;

    #[test]
    fn unions_of_more_members_than_a_sorted_set_can_count_are_refused() {
        const REFUSAL: &str = "-ERR maximum number of elements of a collection is reached\r\n";
        let mut server = crate::testing::server();
        for line in ["ZADD a 1 x 2 y 3 z", "ZADD b 3 z 4 v", "SADD c v w", "ZADD kept 1 here"] {
            server.text(line);
        }
        with_most_elements(4, || {
            assert_eq!(server.text("ZUNIONSTORE to 3 a b a"), ":4\r\n");
            assert_eq!(server.text("ZUNIONSTORE kept 3 a b c"), REFUSAL);
            assert_eq!(server.text("ZUNION 3 a b c"), REFUSAL);
            assert_eq!(server.text("ZINTERSTORE to 2 a b"), ":1\r\n");
            assert_eq!(server.text("ZCARD kept"), ":1\r\n");
        });
        assert_eq!(server.text("ZUNIONSTORE kept 3 a b c"), ":5\r\n");
    }

    #[test]
    fn no_aggregate_is_nan() {
        let infinity = f64::INFINITY;
        assert_eq!(Aggregate::Sum.of(infinity, -infinity), 0.0);
        assert_eq!(Aggregate::Sum.of(1.0, f64::NAN), 0.0);
        assert_eq!(Aggregate::Min.of(1.0, f64::NAN), 1.0);
        assert_eq!(Aggregate::Max.of(1.0, f64::NAN), 1.0);
        assert_eq!(Aggregate::Min.of(2.0, -infinity), -infinity);
        assert_eq!(Aggregate::Max.of(2.0, 3.0), 3.0);
    }
}
