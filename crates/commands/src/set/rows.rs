//! The rows of the sets, and their documentation.

use super::algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
use super::{sadd, scard, sismember, smembers, smismember, smove, spop, srandmember, srem, sscan};
use engine::command::{
    ADDS, Argument, ArgumentKind, DELETES, DENYOOM, Docs, FAST, Group, LOOKS, MOVABLE_KEYS, MOVES,
    READONLY, READS, READS_ALL, READS_COUNTED, STORES_ALL, TAKES, WRITE, argument, docs, key,
};
use engine::engine::{Command, Family, row};

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Set.rows([
    row("sadd", sadd, -3, WRITE | DENYOOM | FAST, ADDS).members(2, 1),
    row("srem", srem, -3, WRITE | FAST, DELETES).members(2, 1),
    row("smembers", smembers, 2, READONLY, READS),
    row("sismember", sismember, 3, READONLY | FAST, LOOKS).members(2, 1),
    row("smismember", smismember, -3, READONLY | FAST, READS).members(2, 1),
    row("scard", scard, 2, READONLY | FAST, LOOKS),
    row("spop", spop, -2, WRITE | FAST, TAKES),
    row("srandmember", srandmember, -2, READONLY, READS),
    row("smove", smove, 4, WRITE | FAST, MOVES),
    row("sinter", sinter, -2, READONLY, READS_ALL),
    row("sinterstore", sinterstore, -3, WRITE | DENYOOM, STORES_ALL),
    row("sintercard", sintercard, -3, READONLY | MOVABLE_KEYS, READS_COUNTED),
    row("sunion", sunion, -2, READONLY, READS_ALL),
    row("sunionstore", sunionstore, -3, WRITE | DENYOOM, STORES_ALL),
    row("sdiff", sdiff, -2, READONLY, READS_ALL),
    row("sdiffstore", sdiffstore, -3, WRITE | DENYOOM, STORES_ALL),
    row("sscan", sscan, -3, READONLY, READS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const KEYS: Argument = KEY.multiple();
const MEMBER: Argument = argument("member", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const STORE: &[Argument] = &[key("destination", 0), key("key", 1).multiple()];
const UNORDERED: &[&str] = &["nondeterministic_output_order"];
const RANDOM: &[&str] = &["nondeterministic_output"];
const INTERSECTION_COST: &str = "O(N*M) at worst, for M sets of which the smallest has N members.";
const TOTAL_COST: &str = "O(N) for N members in all sets together.";

const DOCS: &[Docs] =
    &[
        docs("sadd", "1.0.0", "Adds members to a set, which is created if necessary.")
            .cost("O(N) for N elements that are given.")
            .arguments(&[KEY, MEMBER.multiple()])
            .history(&[("2.4.0", "Takes several members.")]),
        docs("srem", "1.0.0", "Removes members from a set.")
            .cost("O(N) for N members that are named.")
            .arguments(&[KEY, MEMBER.multiple()])
            .history(&[("2.4.0", "Takes several members.")]),
        docs("smembers", "1.0.0", "Returns all members of a set.")
            .cost("O(N) where N is the set cardinality.")
            .arguments(&[KEY])
            .tips(UNORDERED),
        docs("sismember", "1.0.0", "Tells whether a set has a member.")
            .cost("O(1)")
            .arguments(&[KEY, MEMBER]),
        docs("smismember", "6.2.0", "Tells which of several members a set has.")
            .cost("O(N) for N members that are asked for.")
            .arguments(&[KEY, MEMBER.multiple()]),
        docs("scard", "1.0.0", "Returns the number of members of a set.")
            .cost("O(1)")
            .arguments(&[KEY]),
        docs("spop", "1.0.0", "Takes random members out of a set and returns them.")
            .cost("O(N) for a count of N; O(1) without a count.")
            .arguments(&[KEY, COUNT.since("3.2.0").optional()])
            .history(&[("3.2.0", "Takes a count.")])
            .tips(RANDOM),
        docs("srandmember", "1.0.0", "Returns random members of a set.")
            .cost("O(N) for a count of N or -N; O(1) without a count.")
            .arguments(&[KEY, COUNT.since("2.6.0").optional()])
            .history(&[("2.6.0", "Takes a count.")])
            .tips(RANDOM),
        docs("smove", "1.0.0", "Moves a member from one set to another.")
            .cost("O(1)")
            .arguments(&[key("source", 0), key("destination", 1), MEMBER]),
        docs("sinter", "1.0.0", "Returns the members that several sets have in common.")
            .cost(INTERSECTION_COST)
            .arguments(&[KEYS])
            .tips(UNORDERED),
        docs("sinterstore", "1.0.0", "Stores the members that several sets have in common.")
            .cost(INTERSECTION_COST)
            .arguments(STORE),
        docs("sintercard", "7.0.0", "Counts the members that several sets have in common.")
            .cost(INTERSECTION_COST)
            .arguments(&[
                argument("numkeys", ArgumentKind::Integer),
                KEYS,
                argument("limit", ArgumentKind::Integer).token("LIMIT").optional(),
            ]),
        docs("sunion", "1.0.0", "Returns the members of all of several sets.")
            .cost(TOTAL_COST)
            .arguments(&[KEYS])
            .tips(UNORDERED),
        docs("sunionstore", "1.0.0", "Stores the members of all of several sets.")
            .cost(TOTAL_COST)
            .arguments(STORE),
        docs("sdiff", "1.0.0", "Returns the members of a set that other sets do not have.")
            .cost(TOTAL_COST)
            .arguments(&[KEYS])
            .tips(UNORDERED),
        docs("sdiffstore", "1.0.0", "Stores the members of a set that other sets do not have.")
            .cost(TOTAL_COST)
            .arguments(STORE),
        docs("sscan", "2.8.0", "Returns some members of a set, and where to go on.")
            .cost("O(1) for a call, O(N) for a whole walk of N elements.")
            .arguments(&[
                KEY,
                argument("cursor", ArgumentKind::Integer),
                argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
                COUNT.token("COUNT").optional(),
            ])
            .tips(RANDOM),
    ];
