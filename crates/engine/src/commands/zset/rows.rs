//! The rows of the sorted sets.

use super::add::{zadd, zincrby};
use super::combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
use super::pop::{
    SERVE_BZMPOP, SERVE_BZPOPMAX, SERVE_BZPOPMIN, bzmpop, bzpopmax, bzpopmin, zmpop, zpopmax,
    zpopmin,
};
use super::range::{
    zcount, zlexcount, zrange, zrangebylex, zrangebyscore, zrangestore, zremrangebylex,
    zremrangebyrank, zremrangebyscore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
use super::{zcard, zmscore, zrandmember, zrank, zrem, zrevrank, zscan, zscore};
use crate::command::{
    ACCESS, Argument, ArgumentKind, BLOCKING, Command, DELETE, DENYOOM, FAST, Group, KeySpec,
    MOVABLE_KEYS, OW, READONLY, RO, RW, UPDATE, WRITE, argument, block, key, one_of, word,
};

const KEY: Argument = key("key", 0);
const KEYS: Argument = key("key", 0).multiple();
/// The sources of a command whose first key is the destination.
const SOURCES: Argument = key("key", 1).multiple();
const DESTINATION: Argument = key("destination", 0);
const NUMKEYS: Argument = argument("numkeys", ArgumentKind::Integer);
const MEMBER: Argument = argument("member", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const TIMEOUT: Argument = argument("timeout", ArgumentKind::Double);
const WITHSCORES: Argument = word("withscores", "WITHSCORES").optional();
const MIN_SCORE: Argument = argument("min", ArgumentKind::Double);
const MAX_SCORE: Argument = argument("max", ArgumentKind::Double);
const MIN: Argument = argument("min", ArgumentKind::String);
const MAX: Argument = argument("max", ArgumentKind::String);
const START: Argument = argument("start", ArgumentKind::Integer);
const STOP: Argument = argument("stop", ArgumentKind::Integer);
const REV: Argument = word("rev", "REV").optional();
const SORTBY: Argument =
    one_of("sortby", &[word("byscore", "BYSCORE"), word("bylex", "BYLEX")]).optional();
const LIMIT: Argument =
    block("limit", &[argument("offset", ArgumentKind::Integer), COUNT]).token("LIMIT").optional();
const WEIGHTS: Argument =
    argument("weight", ArgumentKind::Integer).token("WEIGHTS").optional().multiple();
const AGGREGATE: Argument =
    one_of("aggregate", &[word("sum", "SUM"), word("min", "MIN"), word("max", "MAX")])
        .token("AGGREGATE")
        .optional();
const WHERE: Argument = one_of("where", &[word("min", "MIN"), word("max", "MAX")]);
const COUNT_OPTION: Argument = COUNT.token("COUNT").optional();

const READ: KeySpec = KeySpec::at(RO | ACCESS, 1);
const POPPED: KeySpec = KeySpec::at(RW | ACCESS | DELETE, 1);
const REMOVED: KeySpec = KeySpec::at(RW | DELETE, 1);
const READ_SEVERAL: KeySpec = KeySpec::counted(RO | ACCESS, 1);
const OVERWRITTEN: KeySpec = KeySpec::at(OW | UPDATE, 1);
const STORED: &[KeySpec] = &[OVERWRITTEN, KeySpec::counted(RO | ACCESS, 2)];

const LOGARITHMIC: &str = "O(log(N)) for N members.";
const RANGE_COST: &str = "O(log(N)+M) for M members that are answered, of N.";
const RANGE_BY_COST: &str = "O(log(N)+M) for M members that are answered, of N.";
const REMOVE_COST: &str = "O(log(N)+M) for M members that go, of N.";
const POP_COST: &str = "O(log(N)*M) for M members that are taken, of N.";
const POP_SEVERAL_COST: &str = "O(K)+O(M*log(N)) for K keys and M members that are taken, of N.";
const UNION_COST: &str = "O(N)+O(M*log(M)) for N members in all sources and M in the result.";
const UNION_STORE_COST: &str = "O(N)+O(M*log(M)) for N members in all sources and M in the result.";
const INTERSECTION_COST: &str =
    "O(N*K)+O(M*log(M)) at worst: K sources, N members in the smallest, M in the result.";
const DIFFERENCE_COST: &str =
    "O(L+(N-K)*log(N)) at worst: L members in all, N in the first, K in the result.";
const FRACTIONS: &str = "The timeout may have a fraction.";
const WITH_SCORE: &str = "Added the option `WITHSCORE`.";

/// A command that reads one sorted set.
const fn reading(
    name: &'static str,
    handler: crate::command::Handler,
    arity: i32,
    since: &'static str,
) -> Command {
    Command::new(name, handler, arity, Group::SortedSet, since).flags(READONLY).keys(&[READ])
}

/// A command that changes sorted sets.
const fn writing(
    name: &'static str,
    handler: crate::command::Handler,
    arity: i32,
    since: &'static str,
) -> Command {
    Command::new(name, handler, arity, Group::SortedSet, since).flags(WRITE)
}

/// A command that stores the combination of several sorted sets.
const fn storing(
    name: &'static str,
    handler: crate::command::Handler,
    since: &'static str,
) -> Command {
    writing(name, handler, -4, since).flags(WRITE | DENYOOM | MOVABLE_KEYS).keys(STORED)
}

/// A command that answers the combination of several sorted sets.
const fn combining(
    name: &'static str,
    handler: crate::command::Handler,
    since: &'static str,
) -> Command {
    reading(name, handler, -3, since).flags(READONLY | MOVABLE_KEYS).keys(&[READ_SEVERAL])
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    writing("zadd", zadd, -4, "1.2.0")
        .members(3, 2)
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .docs(
            "O(log(N)) for each member that is given, of N.",
            "Adds members to a sorted set, or gives them other scores.",
        )
        .arguments(&[
            KEY,
            one_of("condition", &[word("nx", "NX"), word("xx", "XX")]).since("3.0.2").optional(),
            one_of("comparison", &[word("gt", "GT"), word("lt", "LT")]).since("6.2.0").optional(),
            word("change", "CH").since("3.0.2").optional(),
            word("increment", "INCR").since("3.0.2").optional(),
            block("data", &[argument("score", ArgumentKind::Double), MEMBER]).multiple(),
        ])
        .history(&[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "Added the options `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Added the options `GT` and `LT`."),
        ]),
    writing("zincrby", zincrby, 4, "1.2.0")
        .members(3, 1)
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | UPDATE, 1)])
        .docs(
            "O(log(N)) for N members.",
            "Adds a number to the score of a member of a sorted set.",
        )
        .arguments(&[KEY, argument("increment", ArgumentKind::Integer), MEMBER]),
    writing("zrem", zrem, -3, "1.2.0")
        .members(2, 1)
        .flags(WRITE | FAST)
        .keys(&[REMOVED])
        .docs(
            "O(M*log(N)) for M members that go, of N.",
            "Removes members from a sorted set.",
        )
        .arguments(&[KEY, MEMBER.multiple()])
        .history(&[("2.4.0", "Takes several members.")]),
    reading("zcard", zcard, 2, "1.2.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .docs("O(1)", "Counts the members of a sorted set.")
        .arguments(&[KEY]),
    reading("zscore", zscore, 3, "1.2.0")
        .members(2, 1)
        .flags(READONLY | FAST)
        .docs("O(1)", "Returns the score of a member of a sorted set.")
        .arguments(&[KEY, MEMBER]),
    reading("zmscore", zmscore, -3, "6.2.0")
        .members(2, 1)
        .flags(READONLY | FAST)
        .docs(
            "O(N) for N members that are asked for.",
            "Returns the scores of several members of a sorted set.",
        )
        .arguments(&[KEY, MEMBER.multiple()]),
    reading("zrank", zrank, -3, "2.0.0")
        .members(2, 2)
        .flags(READONLY | FAST)
        .docs("O(log(N))", "Returns the number of members in front of one in a sorted set.")
        .arguments(&[KEY, MEMBER, word("withscore", "WITHSCORE").optional()])
        .history(&[("7.2.0", WITH_SCORE)]),
    reading("zrevrank", zrevrank, -3, "2.0.0")
        .members(2, 2)
        .flags(READONLY | FAST)
        .docs("O(log(N))", "Returns the number of members after a member of a sorted set.")
        .arguments(&[KEY, MEMBER, word("withscore", "WITHSCORE").optional()])
        .history(&[("7.2.0", WITH_SCORE)]),
    reading("zcount", zcount, 4, "2.0.0")
        .flags(READONLY | FAST)
        .docs(LOGARITHMIC, "Counts the members of a sorted set with scores in a range.")
        .arguments(&[KEY, MIN_SCORE, MAX_SCORE]),
    reading("zlexcount", zlexcount, 4, "2.8.9")
        .flags(READONLY | FAST)
        .docs(LOGARITHMIC, "Counts the members of a sorted set with names in a range.")
        .arguments(&[KEY, MIN, MAX]),
    reading("zrange", zrange, -4, "1.2.0")
        .docs(RANGE_COST, "Returns the members of a sorted set in a range.")
        .arguments(&[
            KEY,
            argument("start", ArgumentKind::String),
            argument("stop", ArgumentKind::String),
            SORTBY.since("6.2.0"),
            REV.since("6.2.0"),
            LIMIT.since("6.2.0"),
            WITHSCORES,
        ])
        .history(&[("6.2.0", "Added the options `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")]),
    reading("zrevrange", zrevrange, -4, "1.2.0")
        .docs(RANGE_COST, "Returns the members of a sorted set in a range of ranks, highest first.")
        .arguments(&[KEY, START, STOP, WITHSCORES])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument"),
    reading("zrangebyscore", zrangebyscore, -4, "1.0.5")
        .docs(RANGE_BY_COST, "Returns the members of a sorted set with scores in a range.")
        .arguments(&[KEY, MIN_SCORE, MAX_SCORE, WITHSCORES.since("2.0.0"), LIMIT])
        .history(&[("2.0.0", "Added the option `WITHSCORES`.")])
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
    reading("zrevrangebyscore", zrevrangebyscore, -4, "2.2.0")
        .docs(
            RANGE_BY_COST,
            "Returns the members of a sorted set with scores in a range, highest first.",
        )
        .arguments(&[KEY, MAX_SCORE, MIN_SCORE, WITHSCORES, LIMIT])
        .history(&[("2.1.6", "Bounds may be exclusive.")])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
    reading("zrangebylex", zrangebylex, -4, "2.8.9")
        .docs(RANGE_BY_COST, "Returns the members of a sorted set with names in a range.")
        .arguments(&[KEY, MIN, MAX, LIMIT])
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
    reading("zrevrangebylex", zrevrangebylex, -4, "2.8.9")
        .docs(
            RANGE_BY_COST,
            "Returns the members of a sorted set with names in a range, highest first.",
        )
        .arguments(&[KEY, MAX, MIN, LIMIT])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
    writing("zrangestore", zrangestore, -5, "6.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[OVERWRITTEN, KeySpec::at(RO | ACCESS, 2)])
        .docs(
            "O(log(N)+M) for M members that are stored, of N.",
            "Stores the members of a sorted set in a range under another key.",
        )
        .arguments(&[key("dst", 0), key("src", 1), MIN, MAX, SORTBY, REV, LIMIT]),
    writing("zremrangebyrank", zremrangebyrank, 4, "2.0.0")
        .keys(&[REMOVED])
        .docs(REMOVE_COST, "Removes the members of a sorted set in a range of ranks.")
        .arguments(&[KEY, START, STOP]),
    writing("zremrangebyscore", zremrangebyscore, 4, "1.2.0")
        .keys(&[REMOVED])
        .docs(REMOVE_COST, "Removes the members of a sorted set with scores in a range.")
        .arguments(&[KEY, MIN_SCORE, MAX_SCORE]),
    writing("zremrangebylex", zremrangebylex, 4, "2.8.9")
        .keys(&[REMOVED])
        .docs(REMOVE_COST, "Removes the members of a sorted set with names in a range.")
        .arguments(&[KEY, MIN, MAX]),
    writing("zpopmin", zpopmin, -2, "5.0.0")
        .flags(WRITE | FAST)
        .keys(&[POPPED])
        .docs(POP_COST, "Takes the members with the lowest scores out of a sorted set.")
        .arguments(&[KEY, COUNT.optional()]),
    writing("zpopmax", zpopmax, -2, "5.0.0")
        .flags(WRITE | FAST)
        .keys(&[POPPED])
        .docs(POP_COST, "Takes the members with the highest scores out of a sorted set.")
        .arguments(&[KEY, COUNT.optional()]),
    writing("zmpop", zmpop, -4, "7.0.0")
        .flags(WRITE | MOVABLE_KEYS)
        .keys(&[KeySpec::counted(RW | ACCESS | DELETE, 1)])
        .docs(
            POP_SEVERAL_COST,
            "Takes members out of the first of several sorted sets that is not empty.",
        )
        .arguments(&[NUMKEYS, KEYS, WHERE, COUNT_OPTION]),
    writing("bzpopmin", bzpopmin, -3, "5.0.0")
        .flags(WRITE | BLOCKING | FAST)
        .serve(SERVE_BZPOPMIN)
        .keys(&[KeySpec::range(RW | ACCESS | DELETE, 1, -2, 1)])
        .docs(
            LOGARITHMIC,
            "Takes the member with the lowest score out of a sorted set, or waits for one.",
        )
        .arguments(&[KEYS, TIMEOUT])
        .history(&[("6.0.0", FRACTIONS)]),
    writing("bzpopmax", bzpopmax, -3, "5.0.0")
        .flags(WRITE | BLOCKING | FAST)
        .serve(SERVE_BZPOPMAX)
        .keys(&[KeySpec::range(RW | ACCESS | DELETE, 1, -2, 1)])
        .docs(
            LOGARITHMIC,
            "Takes the member with the highest score out of a sorted set, or waits for one.",
        )
        .arguments(&[KEYS, TIMEOUT])
        .history(&[("6.0.0", FRACTIONS)]),
    writing("bzmpop", bzmpop, -5, "7.0.0")
        .flags(WRITE | BLOCKING | MOVABLE_KEYS)
        .serve(SERVE_BZMPOP)
        .keys(&[KeySpec::counted(RW | ACCESS | DELETE, 2)])
        .docs(
            POP_SEVERAL_COST,
            "Takes members out of the first of several sorted sets that is not empty, or waits for one.",
        )
        .arguments(&[TIMEOUT, NUMKEYS, KEYS, WHERE, COUNT_OPTION]),
    reading("zrandmember", zrandmember, -2, "6.2.0")
        .docs(
            "O(N) for N elements that are answered.",
            "Returns random members of a sorted set.",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[KEY, block("options", &[COUNT, WITHSCORES]).optional()]),
    reading("zscan", zscan, -3, "2.8.0")
        .docs(
            "O(1) for a call, O(N) for a whole walk of N elements.",
            "Goes through the members of a sorted set and their scores, some at each call.",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[
            KEY,
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            COUNT_OPTION,
            word("noscores", "NOSCORES").optional(),
        ]),
    combining("zunion", zunion, "6.2.0")
        .docs(UNION_COST, "Unites sorted sets.")
        .arguments(&[NUMKEYS, KEYS, WEIGHTS, AGGREGATE, WITHSCORES]),
    combining("zinter", zinter, "6.2.0")
        .docs(INTERSECTION_COST, "Intersects sorted sets.")
        .arguments(&[NUMKEYS, KEYS, WEIGHTS, AGGREGATE, WITHSCORES]),
    combining("zdiff", zdiff, "6.2.0")
        .docs(DIFFERENCE_COST, "Returns the members that only the first of several sorted sets has.")
        .arguments(&[NUMKEYS, KEYS, WITHSCORES]),
    combining("zintercard", zintercard, "7.0.0")
        .docs(
            "O(N*K) at worst, for K sources of which the smallest has N members.",
            "Counts the members that several sorted sets have in common.",
        )
        .arguments(&[
            NUMKEYS,
            KEYS,
            argument("limit", ArgumentKind::Integer).token("LIMIT").optional(),
        ]),
    storing("zunionstore", zunionstore, "2.0.0")
        .docs(UNION_STORE_COST, "Stores the union of sorted sets under another key.")
        .arguments(&[DESTINATION, NUMKEYS, SOURCES, WEIGHTS, AGGREGATE]),
    storing("zinterstore", zinterstore, "2.0.0")
        .docs(INTERSECTION_COST, "Stores the intersection of sorted sets under another key.")
        .arguments(&[DESTINATION, NUMKEYS, SOURCES, WEIGHTS, AGGREGATE]),
    storing("zdiffstore", zdiffstore, "6.2.0")
        .docs(DIFFERENCE_COST, "Stores the members that only the first of several sorted sets has.")
        .arguments(&[DESTINATION, NUMKEYS, SOURCES]),
];
