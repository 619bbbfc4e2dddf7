//! The rows of the hashes, and their documentation.

use super::expire::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
use super::timed::{hgetdel, hgetex, hsetex};
use super::{
    hdel, hexists, hget, hgetall, hincrby, hincrbyfloat, hkeys, hlen, hmget, hmset, hrandfield,
    hscan, hset, hsetnx, hstrlen, hvals,
};
use engine::command::{
    ADDS, Argument, ArgumentKind, CHANGES, Countdown, DELETES, DENYOOM, Docs, FAST, Group, LOOKS,
    READONLY, READS, TAKES, UPDATES, WRITE, argument, block, docs, key, one_of, word,
};
use engine::engine::{Command, Family, row};

/// The options that say how long fields live.
const LIFETIMES: &[&str] = &["EX", "PX"];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Hash.rows([
    row("hset", hset, -4, WRITE | DENYOOM | FAST, UPDATES).members(2, 2),
    row("hmset", hmset, -4, WRITE | DENYOOM | FAST, UPDATES).members(2, 2),
    row("hsetnx", hsetnx, 4, WRITE | DENYOOM | FAST, ADDS).members(2, 2),
    row("hget", hget, 3, READONLY | FAST, READS).members(2, 1),
    row("hmget", hmget, -3, READONLY | FAST, READS).members(2, 1),
    row("hgetall", hgetall, 2, READONLY, READS),
    row("hkeys", hkeys, 2, READONLY, READS),
    row("hvals", hvals, 2, READONLY, READS),
    row("hlen", hlen, 2, READONLY | FAST, LOOKS),
    row("hdel", hdel, -3, WRITE | FAST, DELETES).members(2, 1),
    row("hexists", hexists, 3, READONLY | FAST, LOOKS).members(2, 1),
    row("hstrlen", hstrlen, 3, READONLY | FAST, LOOKS).members(2, 1),
    row("hincrby", hincrby, 4, WRITE | DENYOOM | FAST, CHANGES).members(2, 2),
    row("hincrbyfloat", hincrbyfloat, 4, WRITE | DENYOOM | FAST, CHANGES).members(2, 2),
    row("hrandfield", hrandfield, -2, READONLY, READS),
    row("hscan", hscan, -3, READONLY, READS),
    row("hexpire", hexpire, -6, WRITE | FAST, UPDATES).countdown(Countdown::Always),
    row("hpexpire", hpexpire, -6, WRITE | FAST, UPDATES).countdown(Countdown::Always),
    row("hexpireat", hexpireat, -6, WRITE | FAST, UPDATES),
    row("hpexpireat", hpexpireat, -6, WRITE | FAST, UPDATES),
    row("hpersist", hpersist, -5, WRITE | FAST, UPDATES),
    row("httl", httl, -5, READONLY | FAST, READS),
    row("hpttl", hpttl, -5, READONLY | FAST, READS),
    row("hexpiretime", hexpiretime, -5, READONLY | FAST, READS),
    row("hpexpiretime", hpexpiretime, -5, READONLY | FAST, READS),
    row("hgetdel", hgetdel, -5, WRITE | FAST, TAKES),
    row("hgetex", hgetex, -5, WRITE | FAST, CHANGES).countdown(Countdown::With(2, LIFETIMES)),
    row("hsetex", hsetex, -6, WRITE | DENYOOM | FAST, UPDATES)
        .countdown(Countdown::With(2, LIFETIMES)),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const FIELD: Argument = argument("field", ArgumentKind::String);
const VALUE: Argument = argument("value", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const SET: &[Argument] = &[KEY, block("data", &[FIELD, VALUE]).multiple()];
const UNORDERED: &[&str] = &["nondeterministic_output_order"];
const RANDOM: &[&str] = &["nondeterministic_output"];
const SECONDS: Argument = argument("seconds", ArgumentKind::Integer);
const MILLISECONDS: Argument = argument("milliseconds", ArgumentKind::Integer);
const UNIX_SECONDS: Argument = argument("unix-time-seconds", ArgumentKind::UnixTime);
const UNIX_MILLISECONDS: Argument = argument("unix-time-milliseconds", ArgumentKind::UnixTime);
const CONDITION: Argument =
    one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
        .optional();

const NUMBER: Argument = argument("numfields", ArgumentKind::Integer);
const FIELDS: Argument = block("fields", &[NUMBER, FIELD.multiple()]).token("FIELDS");
const PAIRS: Argument =
    block("fields", &[NUMBER, block("data", &[FIELD, VALUE]).multiple()]).token("FIELDS");

const NAMED_COST: &str = "O(N) for N fields that are named.";
const WHOLE_COST: &str = "O(N) where N is the size of the hash.";

const DOCS: &[Docs] = &[
    docs("hset", "2.0.0", "Sets fields of a hash, which is created if necessary.")
        .cost("O(N) for N fields that are given.")
        .arguments(SET)
        .history(&[("4.0.0", "Takes several fields with their values.")]),
    docs("hmset", "2.0.0", "Sets fields of a hash.")
        .cost("O(N) for N fields that are given.")
        .arguments(SET)
        .deprecated("4.0.0", "`HSET` with multiple field-value pairs"),
    docs("hsetnx", "2.0.0", "Sets a field of a hash that does not exist yet.")
        .cost("O(1)")
        .arguments(&[KEY, FIELD, VALUE]),
    docs("hget", "2.0.0", "Returns the value of a field.").cost("O(1)").arguments(&[KEY, FIELD]),
    docs("hmget", "2.0.0", "Returns the values of several fields.")
        .cost("O(N) for N fields that are asked for.")
        .arguments(&[KEY, FIELD.multiple()]),
    docs("hgetall", "2.0.0", "Returns all fields of a hash with their values.")
        .cost(WHOLE_COST)
        .arguments(&[KEY])
        .tips(UNORDERED),
    docs("hkeys", "2.0.0", "Returns all fields of a hash.")
        .cost(WHOLE_COST)
        .arguments(&[KEY])
        .tips(UNORDERED),
    docs("hvals", "2.0.0", "Returns all values of a hash.")
        .cost(WHOLE_COST)
        .arguments(&[KEY])
        .tips(UNORDERED),
    docs("hlen", "2.0.0", "Returns the number of fields of a hash.").cost("O(1)").arguments(&[KEY]),
    docs("hdel", "2.0.0", "Removes fields of a hash.")
        .cost("O(N) for N fields that are named.")
        .arguments(&[KEY, FIELD.multiple()])
        .history(&[("2.4.0", "Takes several fields.")]),
    docs("hexists", "2.0.0", "Tells whether a hash has a field.")
        .cost("O(1)")
        .arguments(&[KEY, FIELD]),
    docs("hstrlen", "3.2.0", "Returns the length of a field's value.")
        .cost("O(1)")
        .arguments(&[KEY, FIELD]),
    docs("hincrby", "2.0.0", "Adds an integer to the value of a field.").cost("O(1)").arguments(&[
        KEY,
        FIELD,
        argument("increment", ArgumentKind::Integer),
    ]),
    docs("hincrbyfloat", "2.6.0", "Adds a decimal number to the value of a field.")
        .cost("O(1)")
        .arguments(&[KEY, FIELD, argument("increment", ArgumentKind::Double)]),
    docs("hrandfield", "6.2.0", "Returns random fields of a hash, optionally with their values.")
        .cost("O(N) for N fields that are answered.")
        .arguments(&[
            KEY,
            block("options", &[COUNT, word("withvalues", "WITHVALUES").optional()]).optional(),
        ])
        .tips(RANDOM),
    docs("hscan", "2.8.0", "Returns some fields of a hash with their values, and where to go on.")
        .cost("O(1) for a call, O(N) for a whole walk of N elements.")
        .arguments(&[
            KEY,
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            COUNT.token("COUNT").optional(),
            word("novalues", "NOVALUES").optional(),
        ])
        .tips(RANDOM),
    docs("hexpire", "7.4.0", "Makes fields expire after a number of seconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, SECONDS, CONDITION, FIELDS]),
    docs("hpexpire", "7.4.0", "Makes fields expire after a number of milliseconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, MILLISECONDS, CONDITION, FIELDS]),
    docs("hexpireat", "7.4.0", "Lets fields expire at a time in seconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, UNIX_SECONDS, CONDITION, FIELDS]),
    docs("hpexpireat", "7.4.0", "Lets fields expire at a time in milliseconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, UNIX_MILLISECONDS, CONDITION, FIELDS]),
    docs("hpersist", "7.4.0", "Removes the expiry of fields.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS]),
    docs("httl", "7.4.0", "Returns the seconds until fields expire.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS])
        .tips(RANDOM),
    docs("hpttl", "7.4.0", "Returns the milliseconds until fields expire.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS])
        .tips(RANDOM),
    docs("hexpiretime", "7.4.0", "Returns when fields expire, in seconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS]),
    docs("hpexpiretime", "7.4.0", "Returns when fields expire, in milliseconds.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS]),
    docs("hgetdel", "8.0.0", "Returns the values of fields and removes them.")
        .cost(NAMED_COST)
        .arguments(&[KEY, FIELDS]),
    docs("hgetex", "8.0.0", "Returns the values of fields, and sets or removes their times.")
        .cost(NAMED_COST)
        .arguments(&[
            KEY,
            one_of(
                "expiration",
                &[
                    SECONDS.token("EX"),
                    MILLISECONDS.token("PX"),
                    UNIX_SECONDS.token("EXAT"),
                    UNIX_MILLISECONDS.token("PXAT"),
                    word("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ]),
    docs("hsetex", "8.0.0", "Sets fields and when they expire.").cost(NAMED_COST).arguments(&[
        KEY,
        one_of("condition", &[word("fnx", "FNX"), word("fxx", "FXX")]).optional(),
        one_of(
            "expiration",
            &[
                SECONDS.token("EX"),
                MILLISECONDS.token("PX"),
                UNIX_SECONDS.token("EXAT"),
                UNIX_MILLISECONDS.token("PXAT"),
                word("keepttl", "KEEPTTL"),
            ],
        )
        .optional(),
        PAIRS,
    ]),
];
