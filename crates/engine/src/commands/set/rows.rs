//! The rows of the sets.

use super::algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
use super::{sadd, scard, sismember, smembers, smismember, smove, spop, srandmember, srem, sscan};
use crate::command::{
    ACCESS, Argument, ArgumentKind, Command, DELETE, DENYOOM, FAST, Group, INSERT, KeySpec,
    MOVABLE_KEYS, OW, READONLY, RO, RW, UPDATE, WRITE, argument, key,
};

const KEY: Argument = key("key", 0);
const KEYS: Argument = KEY.multiple();
const MEMBER: Argument = argument("member", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const STORE: &[Argument] = &[key("destination", 0), key("key", 1).multiple()];

const READ_KEY: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
const READ_KEYS: &[KeySpec] = &[KeySpec::range(RO | ACCESS, 1, -1, 1)];
const OVERWRITE: &[KeySpec] = &[KeySpec::at(OW | UPDATE, 1), KeySpec::range(RO | ACCESS, 2, -1, 1)];

const UNORDERED: &[&str] = &["nondeterministic_output_order"];
const RANDOM: &[&str] = &["nondeterministic_output"];

const INTERSECTION_COST: &str = "O(N*M) at worst, for M sets of which the smallest has N members.";
const TOTAL_COST: &str = "O(N) for N members in all sets together.";

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("sadd", sadd, -3, Group::Set, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(RW | INSERT, 1)])
        .members(2, 1)
        .docs(
            "O(N) for N elements that are given.",
            "Adds members to a set, which is created if necessary.",
        )
        .arguments(&[KEY, MEMBER.multiple()])
        .history(&[("2.4.0", "Takes several members.")]),
    Command::new("srem", srem, -3, Group::Set, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | DELETE, 1)])
        .members(2, 1)
        .docs("O(N) for N members that are named.", "Removes members from a set.")
        .arguments(&[KEY, MEMBER.multiple()])
        .history(&[("2.4.0", "Takes several members.")]),
    Command::new("smembers", smembers, 2, Group::Set, "1.0.0")
        .flags(READONLY)
        .keys(READ_KEY)
        .docs("O(N) where N is the set cardinality.", "Returns all members of a set.")
        .arguments(&[KEY])
        .tips(UNORDERED),
    Command::new("sismember", sismember, 3, Group::Set, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .members(2, 1)
        .docs("O(1)", "Tells whether a set has a member.")
        .arguments(&[KEY, MEMBER]),
    Command::new("smismember", smismember, -3, Group::Set, "6.2.0")
        .flags(READONLY | FAST)
        .keys(READ_KEY)
        .members(2, 1)
        .docs("O(N) for N members that are asked for.", "Tells which of several members a set has.")
        .arguments(&[KEY, MEMBER.multiple()]),
    Command::new("scard", scard, 2, Group::Set, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .docs("O(1)", "Returns the number of members of a set.")
        .arguments(&[KEY]),
    Command::new("spop", spop, -2, Group::Set, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1)])
        .docs(
            "O(N) for a count of N; O(1) without a count.",
            "Takes random members out of a set and returns them.",
        )
        .arguments(&[KEY, COUNT.since("3.2.0").optional()])
        .tips(RANDOM)
        .history(&[("3.2.0", "Takes a count.")]),
    Command::new("srandmember", srandmember, -2, Group::Set, "1.0.0")
        .flags(READONLY)
        .keys(READ_KEY)
        .docs(
            "O(N) for a count of N or -N; O(1) without a count.",
            "Returns random members of a set.",
        )
        .arguments(&[KEY, COUNT.since("2.6.0").optional()])
        .tips(RANDOM)
        .history(&[("2.6.0", "Takes a count.")]),
    Command::new("smove", smove, 4, Group::Set, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(RW | INSERT, 2)])
        .docs("O(1)", "Moves a member from one set to another.")
        .arguments(&[key("source", 0), key("destination", 1), MEMBER]),
    Command::new("sinter", sinter, -2, Group::Set, "1.0.0")
        .flags(READONLY)
        .keys(READ_KEYS)
        .docs(INTERSECTION_COST, "Returns the members that several sets have in common.")
        .arguments(&[KEYS])
        .tips(UNORDERED),
    Command::new("sinterstore", sinterstore, -3, Group::Set, "1.0.0")
        .flags(WRITE | DENYOOM)
        .keys(OVERWRITE)
        .docs(INTERSECTION_COST, "Stores the members that several sets have in common.")
        .arguments(STORE),
    Command::new("sintercard", sintercard, -3, Group::Set, "7.0.0")
        .flags(READONLY | MOVABLE_KEYS)
        .keys(&[KeySpec::counted(RO | ACCESS, 1)])
        .docs(INTERSECTION_COST, "Counts the members that several sets have in common.")
        .arguments(&[
            argument("numkeys", ArgumentKind::Integer),
            KEYS,
            argument("limit", ArgumentKind::Integer).token("LIMIT").optional(),
        ]),
    Command::new("sunion", sunion, -2, Group::Set, "1.0.0")
        .flags(READONLY)
        .keys(READ_KEYS)
        .docs(TOTAL_COST, "Returns the members of all of several sets.")
        .arguments(&[KEYS])
        .tips(UNORDERED),
    Command::new("sunionstore", sunionstore, -3, Group::Set, "1.0.0")
        .flags(WRITE | DENYOOM)
        .keys(OVERWRITE)
        .docs(TOTAL_COST, "Stores the members of all of several sets.")
        .arguments(STORE),
    Command::new("sdiff", sdiff, -2, Group::Set, "1.0.0")
        .flags(READONLY)
        .keys(READ_KEYS)
        .docs(TOTAL_COST, "Returns the members of a set that other sets do not have.")
        .arguments(&[KEYS])
        .tips(UNORDERED),
    Command::new("sdiffstore", sdiffstore, -3, Group::Set, "1.0.0")
        .flags(WRITE | DENYOOM)
        .keys(OVERWRITE)
        .docs(TOTAL_COST, "Stores the members of a set that other sets do not have.")
        .arguments(STORE),
    Command::new("sscan", sscan, -3, Group::Set, "2.8.0")
        .flags(READONLY)
        .keys(READ_KEY)
        .docs(
            "O(1) for a call, O(N) for a whole walk of N elements.",
            "Returns some members of a set, and where to go on.",
        )
        .arguments(&[
            KEY,
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            COUNT.token("COUNT").optional(),
        ])
        .tips(RANDOM),
];
