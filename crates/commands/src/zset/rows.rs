//! The rows of the sorted sets, and their documentation.

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
use engine::command::{
    Argument, ArgumentKind, BLOCKING, CHANGES, DELETES, DENYOOM, Docs, FAST, Group, LOOKS,
    MOVABLE_KEYS, READONLY, READS, READS_COUNTED, STORES, STORES_COUNTED, TAKES, TAKES_COUNTED,
    TAKES_COUNTED_2, TAKES_TIMED, UPDATES, WRITE, argument, block, docs, key, one_of, word,
};
use engine::engine::{Command, Family, row};

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::SortedSet.rows([
    row("zadd", zadd, -4, WRITE | DENYOOM | FAST, UPDATES).members(3, 2),
    row("zincrby", zincrby, 4, WRITE | DENYOOM | FAST, CHANGES).members(3, 1),
    row("zrem", zrem, -3, WRITE | FAST, DELETES).members(2, 1),
    row("zcard", zcard, 2, READONLY | FAST, LOOKS),
    row("zscore", zscore, 3, READONLY | FAST, READS).members(2, 1),
    row("zmscore", zmscore, -3, READONLY | FAST, READS).members(2, 1),
    row("zrank", zrank, -3, READONLY | FAST, READS).members(2, 2),
    row("zrevrank", zrevrank, -3, READONLY | FAST, READS).members(2, 2),
    row("zcount", zcount, 4, READONLY | FAST, READS),
    row("zlexcount", zlexcount, 4, READONLY | FAST, READS),
    row("zrange", zrange, -4, READONLY, READS),
    row("zrevrange", zrevrange, -4, READONLY, READS),
    row("zrangebyscore", zrangebyscore, -4, READONLY, READS),
    row("zrevrangebyscore", zrevrangebyscore, -4, READONLY, READS),
    row("zrangebylex", zrangebylex, -4, READONLY, READS),
    row("zrevrangebylex", zrevrangebylex, -4, READONLY, READS),
    row("zrangestore", zrangestore, -5, WRITE | DENYOOM, STORES),
    row("zremrangebyrank", zremrangebyrank, 4, WRITE, DELETES),
    row("zremrangebyscore", zremrangebyscore, 4, WRITE, DELETES),
    row("zremrangebylex", zremrangebylex, 4, WRITE, DELETES),
    row("zpopmin", zpopmin, -2, WRITE | FAST, TAKES),
    row("zpopmax", zpopmax, -2, WRITE | FAST, TAKES),
    row("zmpop", zmpop, -4, WRITE | MOVABLE_KEYS, TAKES_COUNTED),
    row("bzpopmin", bzpopmin, -3, WRITE | BLOCKING | FAST, TAKES_TIMED).serve(SERVE_BZPOPMIN),
    row("bzpopmax", bzpopmax, -3, WRITE | BLOCKING | FAST, TAKES_TIMED).serve(SERVE_BZPOPMAX),
    row("bzmpop", bzmpop, -5, WRITE | BLOCKING | MOVABLE_KEYS, TAKES_COUNTED_2).serve(SERVE_BZMPOP),
    row("zrandmember", zrandmember, -2, READONLY, READS),
    row("zscan", zscan, -3, READONLY, READS),
    row("zunion", zunion, -3, READONLY | MOVABLE_KEYS, READS_COUNTED),
    row("zinter", zinter, -3, READONLY | MOVABLE_KEYS, READS_COUNTED),
    row("zdiff", zdiff, -3, READONLY | MOVABLE_KEYS, READS_COUNTED),
    row("zintercard", zintercard, -3, READONLY | MOVABLE_KEYS, READS_COUNTED),
    row("zunionstore", zunionstore, -4, WRITE | DENYOOM | MOVABLE_KEYS, STORES_COUNTED),
    row("zinterstore", zinterstore, -4, WRITE | DENYOOM | MOVABLE_KEYS, STORES_COUNTED),
    row("zdiffstore", zdiffstore, -4, WRITE | DENYOOM | MOVABLE_KEYS, STORES_COUNTED),
]);

// ---- Documentation ------------------------------------------------------------------------------

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

const DOCS: &[Docs] = &[
    docs("zadd", "1.2.0", "Adds members to a sorted set, or gives them other scores.")
        .cost("O(log(N)) for each member that is given, of N.")
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
    docs("zincrby", "1.2.0", "Adds a number to the score of a member of a sorted set.")
        .cost("O(log(N)) for N members.")
        .arguments(&[KEY, argument("increment", ArgumentKind::Integer), MEMBER]),
    docs("zrem", "1.2.0", "Removes members from a sorted set.")
        .cost("O(M*log(N)) for M members that go, of N.")
        .arguments(&[KEY, MEMBER.multiple()])
        .history(&[("2.4.0", "Takes several members.")]),
    docs("zcard", "1.2.0", "Counts the members of a sorted set.").cost("O(1)").arguments(&[KEY]),
    docs("zscore", "1.2.0", "Returns the score of a member of a sorted set.")
        .cost("O(1)")
        .arguments(&[KEY, MEMBER]),
    docs("zmscore", "6.2.0", "Returns the scores of several members of a sorted set.")
        .cost("O(N) for N members that are asked for.")
        .arguments(&[KEY, MEMBER.multiple()]),
    docs("zrank", "2.0.0", "Returns the number of members in front of one in a sorted set.")
        .cost("O(log(N))")
        .arguments(&[KEY, MEMBER, word("withscore", "WITHSCORE").optional()])
        .history(&[("7.2.0", WITH_SCORE)]),
    docs("zrevrank", "2.0.0", "Returns the number of members after a member of a sorted set.")
        .cost("O(log(N))")
        .arguments(&[KEY, MEMBER, word("withscore", "WITHSCORE").optional()])
        .history(&[("7.2.0", WITH_SCORE)]),
    docs("zcount", "2.0.0", "Counts the members of a sorted set with scores in a range.")
        .cost(LOGARITHMIC)
        .arguments(&[KEY, MIN_SCORE, MAX_SCORE]),
    docs("zlexcount", "2.8.9", "Counts the members of a sorted set with names in a range.")
        .cost(LOGARITHMIC)
        .arguments(&[KEY, MIN, MAX]),
    docs("zrange", "1.2.0", "Returns the members of a sorted set in a range.")
        .cost(RANGE_COST)
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
    docs(
        "zrevrange",
        "1.2.0",
        "Returns the members of a sorted set in a range of ranks, highest first.",
    )
    .cost(RANGE_COST)
    .arguments(&[KEY, START, STOP, WITHSCORES])
    .deprecated("6.2.0", "`ZRANGE` with the `REV` argument"),
    docs("zrangebyscore", "1.0.5", "Returns the members of a sorted set with scores in a range.")
        .cost(RANGE_BY_COST)
        .arguments(&[KEY, MIN_SCORE, MAX_SCORE, WITHSCORES.since("2.0.0"), LIMIT])
        .history(&[("2.0.0", "Added the option `WITHSCORES`.")])
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
    docs(
        "zrevrangebyscore",
        "2.2.0",
        "Returns the members of a sorted set with scores in a range, highest first.",
    )
    .cost(RANGE_BY_COST)
    .arguments(&[KEY, MAX_SCORE, MIN_SCORE, WITHSCORES, LIMIT])
    .history(&[("2.1.6", "Bounds may be exclusive.")])
    .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
    docs("zrangebylex", "2.8.9", "Returns the members of a sorted set with names in a range.")
        .cost(RANGE_BY_COST)
        .arguments(&[KEY, MIN, MAX, LIMIT])
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
    docs(
        "zrevrangebylex",
        "2.8.9",
        "Returns the members of a sorted set with names in a range, highest first.",
    )
    .cost(RANGE_BY_COST)
    .arguments(&[KEY, MAX, MIN, LIMIT])
    .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
    docs(
        "zrangestore",
        "6.2.0",
        "Stores the members of a sorted set in a range under another key.",
    )
    .cost("O(log(N)+M) for M members that are stored, of N.")
    .arguments(&[key("dst", 0), key("src", 1), MIN, MAX, SORTBY, REV, LIMIT]),
    docs("zremrangebyrank", "2.0.0", "Removes the members of a sorted set in a range of ranks.")
        .cost(REMOVE_COST)
        .arguments(&[KEY, START, STOP]),
    docs(
        "zremrangebyscore",
        "1.2.0",
        "Removes the members of a sorted set with scores in a range.",
    )
    .cost(REMOVE_COST)
    .arguments(&[KEY, MIN_SCORE, MAX_SCORE]),
    docs("zremrangebylex", "2.8.9", "Removes the members of a sorted set with names in a range.")
        .cost(REMOVE_COST)
        .arguments(&[KEY, MIN, MAX]),
    docs("zpopmin", "5.0.0", "Takes the members with the lowest scores out of a sorted set.")
        .cost(POP_COST)
        .arguments(&[KEY, COUNT.optional()]),
    docs("zpopmax", "5.0.0", "Takes the members with the highest scores out of a sorted set.")
        .cost(POP_COST)
        .arguments(&[KEY, COUNT.optional()]),
    docs(
        "zmpop",
        "7.0.0",
        "Takes members out of the first of several sorted sets that is not empty.",
    )
    .cost(POP_SEVERAL_COST)
    .arguments(&[NUMKEYS, KEYS, WHERE, COUNT_OPTION]),
    docs(
        "bzpopmin",
        "5.0.0",
        "Takes the member with the lowest score out of a sorted set, or waits for one.",
    )
    .cost(LOGARITHMIC)
    .arguments(&[KEYS, TIMEOUT])
    .history(&[("6.0.0", FRACTIONS)]),
    docs(
        "bzpopmax",
        "5.0.0",
        "Takes the member with the highest score out of a sorted set, or waits for one.",
    )
    .cost(LOGARITHMIC)
    .arguments(&[KEYS, TIMEOUT])
    .history(&[("6.0.0", FRACTIONS)]),
    docs(
        "bzmpop",
        "7.0.0",
        "Takes members out of the first of several sorted sets that is not empty, or waits for \
         one.",
    )
    .cost(POP_SEVERAL_COST)
    .arguments(&[TIMEOUT, NUMKEYS, KEYS, WHERE, COUNT_OPTION]),
    docs("zrandmember", "6.2.0", "Returns random members of a sorted set.")
        .cost("O(N) for N elements that are answered.")
        .arguments(&[KEY, block("options", &[COUNT, WITHSCORES]).optional()])
        .tips(&["nondeterministic_output"]),
    docs(
        "zscan",
        "2.8.0",
        "Goes through the members of a sorted set and their scores, some at each call.",
    )
    .cost("O(1) for a call, O(N) for a whole walk of N elements.")
    .arguments(&[
        KEY,
        argument("cursor", ArgumentKind::Integer),
        argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
        COUNT_OPTION,
        word("noscores", "NOSCORES").optional(),
    ])
    .tips(&["nondeterministic_output"]),
    docs("zunion", "6.2.0", "Unites sorted sets.")
        .cost(UNION_COST)
        .arguments(&[NUMKEYS, KEYS, WEIGHTS, AGGREGATE, WITHSCORES]),
    docs("zinter", "6.2.0", "Intersects sorted sets.")
        .cost(INTERSECTION_COST)
        .arguments(&[NUMKEYS, KEYS, WEIGHTS, AGGREGATE, WITHSCORES]),
    docs("zdiff", "6.2.0", "Returns the members that only the first of several sorted sets has.")
        .cost(DIFFERENCE_COST)
        .arguments(&[NUMKEYS, KEYS, WITHSCORES]),
    docs("zintercard", "7.0.0", "Counts the members that several sorted sets have in common.")
        .cost("O(N*K) at worst, for K sources of which the smallest has N members.")
        .arguments(&[
            NUMKEYS,
            KEYS,
            argument("limit", ArgumentKind::Integer).token("LIMIT").optional(),
        ]),
    docs("zunionstore", "2.0.0", "Stores the union of sorted sets under another key.")
        .cost(UNION_STORE_COST)
        .arguments(&[DESTINATION, NUMKEYS, SOURCES, WEIGHTS, AGGREGATE]),
    docs("zinterstore", "2.0.0", "Stores the intersection of sorted sets under another key.")
        .cost(INTERSECTION_COST)
        .arguments(&[DESTINATION, NUMKEYS, SOURCES, WEIGHTS, AGGREGATE]),
    docs(
        "zdiffstore",
        "6.2.0",
        "Stores the members that only the first of several sorted sets has.",
    )
    .cost(DIFFERENCE_COST)
    .arguments(&[DESTINATION, NUMKEYS, SOURCES]),
];
