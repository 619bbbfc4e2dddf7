//! SINTER, SUNION, SDIFF, their storing forms and SINTERCARD.
//!
//! An intersection walks through the smallest set and looks its members up in the others. A
//! difference either looks up each member of the first set in each of the other sets, or, where
//! these are small, in their union. Members that are only answered are written while they are
//! found; members to be stored are collected.

use std::ops::ControlFlow;

use store::pack::Element;
use store::{Key, Set, SetLimits, Value};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::{ReplyElements, most_elements};

/// The operations on several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

/// SINTER key [key ...]
pub(super) fn sinter(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Intersection)
}

/// SUNION key [key ...]
pub(super) fn sunion(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Union)
}

/// SDIFF key [key ...]
pub(super) fn sdiff(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    answer(cx, args, Operation::Difference)
}

/// SINTERSTORE destination key [key ...]
pub(super) fn sinterstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Intersection, "sinterstore")
}

/// SUNIONSTORE destination key [key ...]
pub(super) fn sunionstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Union, "sunionstore")
}

/// SDIFFSTORE destination key [key ...]
pub(super) fn sdiffstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    store(cx, args, Operation::Difference, "sdiffstore")
}

/// SINTERCARD numkeys key [key ...] [LIMIT limit]
pub(super) fn sintercard(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key_count = args.at_least(1, CommandError::NO_KEYS)?;
    if key_count > args.len() {
        let error = CommandError::text("ERR Number of keys can't be greater than number of args");
        return Err(error);
    }
    let keys = args.keys(key_count)?;
    let mut limit = 0;
    while !args.is_empty() {
        if args.len() < 2 || !args.word("limit") {
            return Err(CommandError::SYNTAX);
        }
        limit = args.at_least(0, CommandError::text("ERR LIMIT can't be negative"))?;
    }
    let sets = sets_of(&cx.db, &keys)?;
    let mut count = 0;
    let _ = intersect(&sets, |_| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    cx.reply.integer(count as i64);
    Ok(())
}

fn answer(cx: &mut Context<'_>, args: &mut Args<'_>, operation: Operation) -> CommandResult {
    let keys = args.rest_as_keys()?;
    let sets = sets_of(&cx.db, &keys)?;
    let reply = &mut cx.reply;
    if operation == Operation::Union {
        let union = unite(&sets, cx.db.set_limits())?;
        reply.set(union.len());
        union.iter().for_each(|member| reply.element(member));
        return Ok(());
    }
    let (mark, mut count) = (reply.mark(), 0);
    let visit = |member: Element<'_>| {
        count += 1;
        reply.element(member);
    };
    if operation == Operation::Intersection {
        intersect_all(&sets, visit);
    } else {
        subtract(&sets, cx.db.set_limits(), visit)?;
    }
    reply.close_set(mark, count);
    Ok(())
}

fn store(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    operation: Operation,
    event: &'static str,
) -> CommandResult {
    let destination = args.key()?;
    let keys = args.rest_as_keys()?;
    let limits = cx.db.set_limits();
    let sets = sets_of(&cx.db, &keys)?;
    let result = match operation {
        Operation::Intersection => stored_intersection(&sets, limits),
        Operation::Union => unite(&sets, limits)?,
        Operation::Difference => stored_difference(&sets, limits)?,
    };
    let count = result.len();
    let result = (count > 0).then_some(Value::Set(result));
    cx.db.set_or_remove(&destination, result, Event(Class::SET, event), 1);
    cx.reply.integer(count as i64);
    Ok(())
}

/// An intersection as a set. Its encoding does not depend on the members of the other sets.
fn stored_intersection(sets: &[Option<&Set>], limits: SetLimits) -> Set {
    let smallest = sets.iter().flatten().min_by_key(|set| set.len());
    let mut result = match smallest {
        Some(set) if set.as_intset().is_some() => Set::new(),
        _ => Set::new_listpack(),
    };
    intersect_all(sets, |member| {
        result.add_element(member, limits);
    });
    result.pack_integers(limits);
    result
}

/// A difference as a set. When all of the first set was taken before members were removed, the
/// encoding is that of the larger set, as in Redis.
fn stored_difference(sets: &[Option<&Set>], limits: SetLimits) -> Result<Set, CommandError> {
    let mut result = Set::new();
    let Some((Some(first), others)) = sets.split_first() else { return Ok(result) };
    if asks_each(sets) {
        subtract(sets, limits, |member| {
            result.add_element(member, limits);
        })?;
        return Ok(result);
    }
    first.iter().for_each(|member| {
        result.add_element(member, limits);
    });
    for member in others.iter().flatten().flat_map(|set| set.iter()) {
        result.remove_element(member);
    }
    Ok(result)
}

/// The sets under keys; `None` for a missing key.
fn sets_of<'d>(db: &'d Db<'_>, keys: &[Key<'_>]) -> Result<Vec<Option<&'d Set>>, CommandError> {
    keys.iter().map(|key| db.set_of(key)).collect()
}

/// Visits the members that are in all sets, until the visitor has seen enough.
fn intersect(
    sets: &[Option<&Set>],
    mut visit: impl FnMut(Element<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // If one of them is missing, they have nothing in common.
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<&Set>>>() else {
        return ControlFlow::Continue(());
    };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else {
        return ControlFlow::Continue(());
    };
    for member in smallest.iter() {
        if others.iter().all(|set| set.contains_element(member)) {
            visit(member)?;
        }
    }
    ControlFlow::Continue(())
}

fn intersect_all(sets: &[Option<&Set>], mut visit: impl FnMut(Element<'_>)) {
    let _ = intersect(sets, |member| {
        visit(member);
        ControlFlow::Continue(())
    });
}

/// All members of all sets, unless they are more than a set can count.
fn unite(sets: &[Option<&Set>], limits: SetLimits) -> Result<Set, CommandError> {
    let (mut union, most) = (Set::new(), most_elements());
    for set in sets.iter().flatten() {
        if union.len() + set.len() > most {
            unite_up_to(most, &mut union, set, limits)?;
            continue;
        }
        set.iter().for_each(|member| {
            union.add_element(member, limits);
        });
    }
    Ok(union)
}

/// Adds the members of a set, which may be more than fit.
#[cold]
fn unite_up_to(
    most: usize,
    union: &mut Set,
    set: &Set,
    limits: SetLimits,
) -> Result<(), CommandError> {
    for member in set.iter() {
        if union.len() == most && !union.contains_element(member) {
            return Err(CommandError::TOO_MANY_ELEMENTS);
        }
        union.add_element(member, limits);
    }
    Ok(())
}

/// Whether a difference is found by asking each of the other sets about each member of the first,
/// or by going through all members of the other sets. The rule of thumb: half of the questions find
/// an answer early.
fn asks_each(sets: &[Option<&Set>]) -> bool {
    let Some(Some(first)) = sets.first() else { return true };
    let there = sets.iter().flatten();
    let questions = first.len().saturating_mul(there.clone().count());
    questions / 2 <= there.map(|set| set.len()).sum()
}

/// Visits the members of the first set that are in none of the others.
fn subtract(
    sets: &[Option<&Set>],
    limits: SetLimits,
    mut visit: impl FnMut(Element<'_>),
) -> CommandResult {
    let Some((Some(first), others)) = sets.split_first() else { return Ok(()) };
    if asks_each(sets) {
        let mut others: Vec<&Set> = others.iter().flatten().copied().collect();
        // The larger a set, the more likely it contains the member.
        others.sort_by_key(|set| std::cmp::Reverse(set.len()));
        for member in first.iter() {
            if !others.iter().any(|set| set.contains_element(member)) {
                visit(member);
            }
        }
    } else {
        let taken = unite(others, limits)?;
        first.iter().filter(|member| !taken.contains_element(*member)).for_each(visit);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use engine::handler::elements::with_most_elements;

    const REFUSAL: &str = "-ERR maximum number of elements of a collection is reached\r\n";

    #[test]
    fn unions_of_more_members_than_a_set_can_count_are_refused() {
        let mut server = crate::testing::server();
        for line in ["SADD a 1 2 3", "SADD b 3 4", "SADD c 4 5 x", "SADD kept here"] {
            server.text(line);
        }
        with_most_elements(4, || {
            assert_eq!(server.text("SUNIONSTORE to a b"), ":4\r\n");
            assert_eq!(server.text("SUNIONSTORE to a b a"), ":4\r\n");
            assert_eq!(server.text("SUNIONSTORE kept a b c"), REFUSAL);
            assert_eq!(server.text("SUNION a b c"), REFUSAL);
            assert_eq!(server.text("SCARD kept"), ":1\r\n");
        });
        assert_eq!(server.text("SUNIONSTORE kept a b c"), ":6\r\n");
    }

    #[test]
    fn differences_from_more_members_than_a_set_can_count_are_refused() {
        let mut server = crate::testing::server();
        for line in ["SADD many 1 2 3 4 5 6 7 8 9 10 11 12", "SADD a 1 2", "SADD b 3 4"] {
            server.text(line);
        }
        let line = "SDIFF many a b a b";
        let whole = server.text(line);
        with_most_elements(3, || {
            assert_eq!(server.text(line), REFUSAL);
            assert_eq!(server.text("SDIFFSTORE to many a b a b"), ":8\r\n");
        });
        assert_eq!(server.text(line), whole);
    }
}
