//! Strings: SET and its variants, counters, ranges, many keys at once, LCS.
//!
//! Most commands that a server gets are GET, SET, INCR, MSET and MGET. Each of them looks its key up
//! once, and none of them allocates more than the entry that it stores: small values are written into
//! the reply from where they lie and overwritten where they lie, large ones come and go as shared
//! buffers.

mod counter;
mod lcs;
mod range;
mod set;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use store::{INLINE_MAX, StringValue};

use crate::command::ArgumentKind::{Double, Integer, String, UnixTime};
use crate::command::{
    ACCESS, Argument, Command, DELETE, DENYOOM, FAST, Group, INSERT, KeySpec, OW, READONLY, RM, RO,
    RW, UPDATE, VARIABLE_FLAGS, WRITE, argument, block, key, one_of, word,
};
use crate::handler::args::Args;
use crate::handler::error::CommandError;
use crate::observe::notify::{Class, Event};

/// A key got a value.
const SET: Event = Event(Class::STRING, "set");
/// A key was removed.
const DEL: Event = Event(Class::GENERIC, "del");

/// The next argument as a value to store.
#[inline]
fn value<'a>(args: &mut Args<'a>) -> Result<StringValue<'a>, CommandError> {
    let (bytes, buffer) = args.big()?;
    Ok(stored(bytes, buffer))
}

/// The form in which an argument is stored: an integer if it spells one, and a large string in the
/// buffer that it was received in.
#[inline]
fn stored(bytes: &[u8], buffer: Option<Arc<Vec<u8>>>) -> StringValue<'_> {
    match buffer {
        Some(buffer) if bytes.len() > INLINE_MAX => StringValue::Shared(buffer),
        _ => StringValue::from_bytes(bytes),
    }
}

const KEY: Argument = key("key", 0);
const VALUE: Argument = argument("value", String);
const KEY_VALUE: &[Argument] = &[KEY, VALUE];
const PAIRS: &[Argument] = &[block("data", KEY_VALUE).multiple()];
const RANGE: &[Argument] = &[KEY, argument("start", Integer), argument("end", Integer)];

const READS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
const OVERWRITES: &[KeySpec] = &[KeySpec::at(OW | UPDATE, 1)];
const CHANGES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE, 1)];

const RANGE_COMPLEXITY: &str = "O(N) for N bytes that are answered.";

const SET_ARGUMENTS: &[Argument] = &[
    KEY,
    VALUE,
    one_of(
        "condition",
        &[
            word("nx", "NX"),
            word("xx", "XX"),
            argument("comparison-value", String).token("IFEQ").since("8.1.0"),
        ],
    )
    .since("2.6.12")
    .optional(),
    word("get", "GET").since("6.2.0").optional(),
    one_of(
        "expiration",
        &[
            argument("seconds", Integer).token("EX").since("2.6.12"),
            argument("milliseconds", Integer).token("PX").since("2.6.12"),
            argument("unix-time-seconds", UnixTime).token("EXAT").since("6.2.0"),
            argument("unix-time-milliseconds", UnixTime).token("PXAT").since("6.2.0"),
            word("keepttl", "KEEPTTL").since("6.0.0"),
        ],
    )
    .optional(),
];

const GETEX_ARGUMENTS: &[Argument] = &[
    KEY,
    one_of(
        "expiration",
        &[
            argument("seconds", Integer).token("EX"),
            argument("milliseconds", Integer).token("PX"),
            argument("unix-time-seconds", UnixTime).token("EXAT"),
            argument("unix-time-milliseconds", UnixTime).token("PXAT"),
            word("persist", "PERSIST"),
        ],
    )
    .optional(),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("set", set::set, -3, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | ACCESS | UPDATE | VARIABLE_FLAGS, 1)
            .notes("RW and ACCESS due to the optional `GET` argument")])
        .docs("O(1)", "Stores a string under a key, and replaces what is there.")
        .arguments(SET_ARGUMENTS)
        .history(&[
            ("2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Takes `KEEPTTL`."),
            ("6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` go together."),
            ("8.1.0", "Takes `IFEQ`, as Valkey does."),
        ]),
    Command::new("get", set::get, 2, Group::String, "1.0.0")
        .flags(READONLY | FAST)
        .keys(READS)
        .docs("O(1)", "Returns the string under a key.")
        .arguments(&[KEY]),
    Command::new("setnx", set::setnx, 3, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(OW | INSERT, 1)])
        .docs("O(1)", "Stores a string under a key that does not exist yet.")
        .arguments(KEY_VALUE)
        .deprecated("2.6.12", "`SET` with the `NX` argument"),
    Command::new("setex", set::setex, 4, Group::String, "2.0.0")
        .flags(WRITE | DENYOOM)
        .keys(OVERWRITES)
        .docs("O(1)", "Stores a string under a key, for a number of seconds.")
        .arguments(&[KEY, argument("seconds", Integer), VALUE])
        .deprecated("2.6.12", "`SET` with the `EX` argument"),
    Command::new("psetex", set::psetex, 4, Group::String, "2.6.0")
        .flags(WRITE | DENYOOM)
        .keys(OVERWRITES)
        .docs("O(1)", "Stores a string under a key, for a number of milliseconds.")
        .arguments(&[KEY, argument("milliseconds", Integer), VALUE])
        .deprecated("2.6.12", "`SET` with the `PX` argument"),
    Command::new("getset", set::getset, 3, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Stores a string under a key and returns the one before.")
        .arguments(KEY_VALUE)
        .deprecated("6.2.0", "`SET` with the `!GET` argument"),
    Command::new("getdel", set::getdel, 2, Group::String, "6.2.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1)])
        .docs("O(1)", "Returns the string under a key and removes the key.")
        .arguments(&[KEY]),
    Command::new("delifeq", set::delifeq, 3, Group::String, "9.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RM | DELETE, 1)])
        .docs("O(1)", "Removes a key whose value is the given string. It is Valkey's.")
        .arguments(KEY_VALUE),
    Command::new("getex", set::getex, -2, Group::String, "6.2.0")
        .flags(WRITE | FAST)
        .keys(&[
            KeySpec::at(RW | ACCESS | UPDATE, 1).notes("RW and UPDATE because it changes the TTL")
        ])
        .docs("O(1)", "Returns the string under a key and sets or removes the key's expiry.")
        .arguments(GETEX_ARGUMENTS),
    Command::new("mget", set::mget, -2, Group::String, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::range(RO | ACCESS, 1, -1, 1)])
        .docs("O(N) for N keys.", "Returns the strings under keys.")
        .arguments(&[KEY.multiple()])
        .tips(&["request_policy:multi_shard"]),
    Command::new("mset", set::mset, -3, Group::String, "1.0.1")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::range(OW | UPDATE, 1, -1, 2)])
        .docs("O(N) for N keys.", "Stores strings under keys at once.")
        .arguments(PAIRS)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    Command::new("msetnx", set::msetnx, -3, Group::String, "1.0.1")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::range(OW | INSERT, 1, -1, 2)])
        .docs(
            "O(N) for N keys.",
            "Stores strings under keys at once, if none of the keys exists yet.",
        )
        .arguments(PAIRS),
    Command::new("incr", counter::incr, 2, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Adds one to the integer under a key.")
        .arguments(&[KEY]),
    Command::new("decr", counter::decr, 2, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Takes one from the integer under a key.")
        .arguments(&[KEY]),
    Command::new("incrby", counter::incrby, 3, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Adds a number to the integer under a key.")
        .arguments(&[KEY, argument("increment", Integer)]),
    Command::new("decrby", counter::decrby, 3, Group::String, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Takes a number from the integer under a key.")
        .arguments(&[KEY, argument("decrement", Integer)]),
    Command::new("incrbyfloat", counter::incrbyfloat, 3, Group::String, "2.6.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(CHANGES)
        .docs("O(1)", "Adds a number to the floating-point number under a key.")
        .arguments(&[KEY, argument("increment", Double)]),
    Command::new("append", range::append, 3, Group::String, "2.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[KeySpec::at(RW | INSERT, 1)])
        .docs(
            "O(1) on average, if the appended text is short.",
            "Appends to the string under a key.",
        )
        .arguments(KEY_VALUE),
    Command::new("strlen", range::strlen, 2, Group::String, "2.2.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .docs("O(1)", "Returns the length of the string under a key.")
        .arguments(&[KEY]),
    Command::new("setrange", range::setrange, 4, Group::String, "2.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .docs("O(M) for M bytes that are written.", "Overwrites a part of the string under a key.")
        .arguments(&[KEY, argument("offset", Integer), VALUE]),
    Command::new("getrange", range::getrange, 4, Group::String, "2.4.0")
        .flags(READONLY)
        .keys(READS)
        .docs(RANGE_COMPLEXITY, "Returns a part of the string under a key.")
        .arguments(RANGE),
    Command::new("substr", range::getrange, 4, Group::String, "1.0.0")
        .flags(READONLY)
        .keys(READS)
        .docs(RANGE_COMPLEXITY, "Returns a part of the string under a key.")
        .arguments(RANGE)
        .deprecated("2.0.0", "`GETRANGE`"),
    Command::new("lcs", lcs::lcs, -3, Group::String, "7.0.0")
        .flags(READONLY)
        .keys(&[KeySpec::range(RO | ACCESS, 1, 1, 1)])
        .docs(
            "O(N*M) for strings of N and M bytes.",
            "Finds the longest common subsequence of two strings.",
        )
        .arguments(&[
            key("key1", 0),
            key("key2", 0),
            word("len", "LEN").optional(),
            word("idx", "IDX").optional(),
            argument("min-match-len", Integer).token("MINMATCHLEN").optional(),
            word("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
];
