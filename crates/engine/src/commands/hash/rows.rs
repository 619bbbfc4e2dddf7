//! The rows of the hashes.

use super::expire::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
use super::timed::{hgetdel, hgetex, hsetex};
use super::{
    hdel, hexists, hget, hgetall, hincrby, hincrbyfloat, hkeys, hlen, hmget, hmset, hrandfield,
    hscan, hset, hsetnx, hstrlen, hvals,
};
use crate::command::{
    ACCESS, Argument, ArgumentKind, Command, DELETE, DENYOOM, FAST, Group, INSERT, KeySpec,
    READONLY, RO, RW, UPDATE, WRITE, argument, block, key, one_of, word,
};

const KEY: Argument = key("key", 0);
const FIELD: Argument = argument("field", ArgumentKind::String);
const VALUE: Argument = argument("value", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const SET: &[Argument] = &[KEY, block("data", &[FIELD, VALUE]).multiple()];

const READ: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
const LOOK: &[KeySpec] = &[KeySpec::at(RO, 1)];
const UPDATE_KEY: &[KeySpec] = &[KeySpec::at(RW | UPDATE, 1)];
const INCREMENT: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE, 1)];

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

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("hset", hset, -4, Group::Hash, "2.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(UPDATE_KEY)
        .members(2, 2)
        .docs(
            "O(N) for N fields that are given.",
            "Sets fields of a hash, which is created if necessary.",
        )
        .arguments(SET)
        .history(&[("4.0.0", "Takes several fields with their values.")]),
    Command::new("hmset", hmset, -4, Group::Hash, "2.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(UPDATE_KEY)
        .members(2, 2)
        .docs("O(N) for N fields that are given.", "Sets fields of a hash.")
        .arguments(SET)
        .deprecated("4.0.0", "`HSET` with multiple field-value pairs"),
    Command::new("hsetnx", hsetnx, 4, Group::Hash, "2.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(RW | INSERT, 1)])
        .members(2, 2)
        .docs("O(1)", "Sets a field of a hash that does not exist yet.")
        .arguments(&[KEY, FIELD, VALUE]),
    Command::new("hget", hget, 3, Group::Hash, "2.0.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .members(2, 1)
        .docs("O(1)", "Returns the value of a field.")
        .arguments(&[KEY, FIELD]),
    Command::new("hmget", hmget, -3, Group::Hash, "2.0.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .members(2, 1)
        .docs("O(N) for N fields that are asked for.", "Returns the values of several fields.")
        .arguments(&[KEY, FIELD.multiple()]),
    Command::new("hgetall", hgetall, 2, Group::Hash, "2.0.0")
        .flags(READONLY)
        .keys(READ)
        .docs(WHOLE_COST, "Returns all fields of a hash with their values.")
        .arguments(&[KEY])
        .tips(UNORDERED),
    Command::new("hkeys", hkeys, 2, Group::Hash, "2.0.0")
        .flags(READONLY)
        .keys(READ)
        .docs(WHOLE_COST, "Returns all fields of a hash.")
        .arguments(&[KEY])
        .tips(UNORDERED),
    Command::new("hvals", hvals, 2, Group::Hash, "2.0.0")
        .flags(READONLY)
        .keys(READ)
        .docs(WHOLE_COST, "Returns all values of a hash.")
        .arguments(&[KEY])
        .tips(UNORDERED),
    Command::new("hlen", hlen, 2, Group::Hash, "2.0.0")
        .flags(READONLY | FAST)
        .keys(LOOK)
        .docs("O(1)", "Returns the number of fields of a hash.")
        .arguments(&[KEY]),
    Command::new("hdel", hdel, -3, Group::Hash, "2.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | DELETE, 1)])
        .members(2, 1)
        .docs("O(N) for N fields that are named.", "Removes fields of a hash.")
        .arguments(&[KEY, FIELD.multiple()])
        .history(&[("2.4.0", "Takes several fields.")]),
    Command::new("hexists", hexists, 3, Group::Hash, "2.0.0")
        .flags(READONLY | FAST)
        .keys(LOOK)
        .members(2, 1)
        .docs("O(1)", "Tells whether a hash has a field.")
        .arguments(&[KEY, FIELD]),
    Command::new("hstrlen", hstrlen, 3, Group::Hash, "3.2.0")
        .flags(READONLY | FAST)
        .keys(LOOK)
        .members(2, 1)
        .docs("O(1)", "Returns the length of a field's value.")
        .arguments(&[KEY, FIELD]),
    Command::new("hincrby", hincrby, 4, Group::Hash, "2.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(INCREMENT)
        .members(2, 2)
        .docs("O(1)", "Adds an integer to the value of a field.")
        .arguments(&[KEY, FIELD, argument("increment", ArgumentKind::Integer)]),
    Command::new("hincrbyfloat", hincrbyfloat, 4, Group::Hash, "2.6.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(INCREMENT)
        .members(2, 2)
        .docs("O(1)", "Adds a decimal number to the value of a field.")
        .arguments(&[KEY, FIELD, argument("increment", ArgumentKind::Double)]),
    Command::new("hrandfield", hrandfield, -2, Group::Hash, "6.2.0")
        .flags(READONLY)
        .keys(READ)
        .docs(
            "O(N) for N fields that are answered.",
            "Returns random fields of a hash, optionally with their values.",
        )
        .arguments(&[
            KEY,
            block("options", &[COUNT, word("withvalues", "WITHVALUES").optional()]).optional(),
        ])
        .tips(RANDOM),
    Command::new("hscan", hscan, -3, Group::Hash, "2.8.0")
        .flags(READONLY)
        .keys(READ)
        .docs(
            "O(1) for a call, O(N) for a whole walk of N elements.",
            "Returns some fields of a hash with their values, and where to go on.",
        )
        .arguments(&[
            KEY,
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            COUNT.token("COUNT").optional(),
            word("novalues", "NOVALUES").optional(),
        ])
        .tips(RANDOM),
    Command::new("hexpire", hexpire, -6, Group::Hash, "7.4.0")
        .flags(WRITE | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Makes fields expire after a number of seconds.")
        .arguments(&[KEY, SECONDS, CONDITION, FIELDS]),
    Command::new("hpexpire", hpexpire, -6, Group::Hash, "7.4.0")
        .flags(WRITE | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Makes fields expire after a number of milliseconds.")
        .arguments(&[KEY, MILLISECONDS, CONDITION, FIELDS]),
    Command::new("hexpireat", hexpireat, -6, Group::Hash, "7.4.0")
        .flags(WRITE | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Lets fields expire at a time in seconds.")
        .arguments(&[KEY, UNIX_SECONDS, CONDITION, FIELDS]),
    Command::new("hpexpireat", hpexpireat, -6, Group::Hash, "7.4.0")
        .flags(WRITE | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Lets fields expire at a time in milliseconds.")
        .arguments(&[KEY, UNIX_MILLISECONDS, CONDITION, FIELDS]),
    Command::new("hpersist", hpersist, -5, Group::Hash, "7.4.0")
        .flags(WRITE | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Removes the expiry of fields.")
        .arguments(&[KEY, FIELDS]),
    Command::new("httl", httl, -5, Group::Hash, "7.4.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .docs(NAMED_COST, "Returns the seconds until fields expire.")
        .arguments(&[KEY, FIELDS])
        .tips(RANDOM),
    Command::new("hpttl", hpttl, -5, Group::Hash, "7.4.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .docs(NAMED_COST, "Returns the milliseconds until fields expire.")
        .arguments(&[KEY, FIELDS])
        .tips(RANDOM),
    Command::new("hexpiretime", hexpiretime, -5, Group::Hash, "7.4.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .docs(NAMED_COST, "Returns when fields expire, in seconds.")
        .arguments(&[KEY, FIELDS]),
    Command::new("hpexpiretime", hpexpiretime, -5, Group::Hash, "7.4.0")
        .flags(READONLY | FAST)
        .keys(READ)
        .docs(NAMED_COST, "Returns when fields expire, in milliseconds.")
        .arguments(&[KEY, FIELDS]),
    Command::new("hgetdel", hgetdel, -5, Group::Hash, "8.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1)])
        .docs(NAMED_COST, "Returns the values of fields and removes them.")
        .arguments(&[KEY, FIELDS]),
    Command::new("hgetex", hgetex, -5, Group::Hash, "8.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | UPDATE, 1)])
        .docs(NAMED_COST, "Returns the values of fields, and sets or removes their times.")
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
    Command::new("hsetex", hsetex, -6, Group::Hash, "8.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(UPDATE_KEY)
        .docs(NAMED_COST, "Sets fields and when they expire.")
        .arguments(&[
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
