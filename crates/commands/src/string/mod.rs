//! Strings: SET and its variants, counters, ranges, many keys at once, LCS.
//!
//! Most commands that a server gets are GET, SET, INCR, MSET and MGET. Each of them looks its key
//! up once, and none of them allocates more than the entry that it stores: small values are written
//! into the reply from where they lie and overwritten where they lie, large ones come and go as
//! shared buffers.

mod counter;
mod lcs;
mod range;
mod set;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use store::{INLINE_MAX, StringValue};

use engine::command::ArgumentKind::{Double, Integer, String, UnixTime};
use engine::command::args::Args;
use engine::command::error::CommandError;
use engine::command::{
    ACCESS, ADDS, Argument, ChangeForm, Countdown, DELETE, DENYOOM, Docs, FAST, Group, INSERT,
    KeySpec, LOOKS, OW, READONLY, READS_ALL, RM, RO, RW, TAKES, UPDATE, UPDATES, VARIABLE_FLAGS,
    WRITE, argument, block, docs, key, one_of, word,
};
use engine::db::notify::{Class, Event};
use engine::engine::{Command, Family, row};

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

const READS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
const OVERWRITES: &[KeySpec] = &[KeySpec::at(OW | UPDATE, 1)];
const CHANGES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE, 1)];

/// The options that say how long a key lives.
const LIFETIMES: &[&str] = &["EX", "PX"];

/// What happens depends on the options.
const SETS: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE | VARIABLE_FLAGS, 1)
    .notes("RW and ACCESS due to the optional `GET` argument")];
/// Stores under a key that is not there.
const CREATES: &[KeySpec] = &[KeySpec::at(OW | INSERT, 1)];
/// Removes the key.
const REMOVES: &[KeySpec] = &[KeySpec::at(RM | DELETE, 1)];
/// Answers the value, and changes when it expires.
const READS_AND_TIMES: &[KeySpec] =
    &[KeySpec::at(RW | ACCESS | UPDATE, 1).notes("RW and UPDATE because it changes the TTL")];
/// Keys and values take turns.
const OVERWRITES_PAIRS: &[KeySpec] = &[KeySpec::range(OW | UPDATE, 1, -1, 2)];
/// The same, where none is there.
const CREATES_PAIRS: &[KeySpec] = &[KeySpec::range(OW | INSERT, 1, -1, 2)];
/// Two keys.
const READS_TWO: &[KeySpec] = &[KeySpec::range(RO | ACCESS, 1, 1, 1)];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::String.rows([
    row("set", set::set, -3, WRITE | DENYOOM, SETS)
        .key_flags(set::key_flags)
        .told(ChangeForm::Set)
        .countdown(Countdown::With(3, LIFETIMES)),
    row("get", set::get, 2, READONLY | FAST, READS),
    row("setnx", set::setnx, 3, WRITE | DENYOOM | FAST, CREATES).told(ChangeForm::Set),
    row("setex", set::setex, 4, WRITE | DENYOOM, OVERWRITES).countdown(Countdown::Always),
    row("psetex", set::psetex, 4, WRITE | DENYOOM, OVERWRITES).countdown(Countdown::Always),
    row("getset", set::getset, 3, WRITE | DENYOOM | FAST, CHANGES).told(ChangeForm::Set),
    row("getdel", set::getdel, 2, WRITE | FAST, TAKES).told(ChangeForm::Delete),
    row("delifeq", set::delifeq, 3, WRITE | FAST, REMOVES),
    row("getex", set::getex, -2, WRITE | FAST, READS_AND_TIMES)
        .countdown(Countdown::With(2, LIFETIMES)),
    row("mget", set::mget, -2, READONLY | FAST, READS_ALL),
    row("mset", set::mset, -3, WRITE | DENYOOM, OVERWRITES_PAIRS).told(ChangeForm::SetEach),
    row("msetnx", set::msetnx, -3, WRITE | DENYOOM, CREATES_PAIRS).told(ChangeForm::SetEach),
    row("incr", counter::incr, 2, WRITE | DENYOOM | FAST, CHANGES),
    row("decr", counter::decr, 2, WRITE | DENYOOM | FAST, CHANGES),
    row("incrby", counter::incrby, 3, WRITE | DENYOOM | FAST, CHANGES),
    row("decrby", counter::decrby, 3, WRITE | DENYOOM | FAST, CHANGES),
    row("incrbyfloat", counter::incrbyfloat, 3, WRITE | DENYOOM | FAST, CHANGES),
    row("append", range::append, 3, WRITE | DENYOOM | FAST, ADDS),
    row("strlen", range::strlen, 2, READONLY | FAST, LOOKS),
    row("setrange", range::setrange, 4, WRITE | DENYOOM, UPDATES),
    row("getrange", range::getrange, 4, READONLY, READS),
    row("substr", range::getrange, 4, READONLY, READS),
    row("lcs", lcs::lcs, -3, READONLY, READS_TWO),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const VALUE: Argument = argument("value", String);
const KEY_VALUE: &[Argument] = &[KEY, VALUE];
const PAIRS: &[Argument] = &[block("data", KEY_VALUE).multiple()];
const RANGE: &[Argument] = &[KEY, argument("start", Integer), argument("end", Integer)];
const RANGE_COST: &str = "O(N) for N bytes that are answered.";
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

const DOCS: &[Docs] = &[
    docs("set", "1.0.0", "Stores a string under a key, and replaces what is there.")
        .cost("O(1)")
        .arguments(SET_ARGUMENTS)
        .history(&[
            ("2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Takes `KEEPTTL`."),
            ("6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` go together."),
            ("8.1.0", "Takes `IFEQ`, as Valkey does."),
        ]),
    docs("get", "1.0.0", "Returns the string under a key.").cost("O(1)").arguments(&[KEY]),
    docs("setnx", "1.0.0", "Stores a string under a key that does not exist yet.")
        .cost("O(1)")
        .arguments(KEY_VALUE)
        .deprecated("2.6.12", "`SET` with the `NX` argument"),
    docs("setex", "2.0.0", "Stores a string under a key, for a number of seconds.")
        .cost("O(1)")
        .arguments(&[KEY, argument("seconds", Integer), VALUE])
        .deprecated("2.6.12", "`SET` with the `EX` argument"),
    docs("psetex", "2.6.0", "Stores a string under a key, for a number of milliseconds.")
        .cost("O(1)")
        .arguments(&[KEY, argument("milliseconds", Integer), VALUE])
        .deprecated("2.6.12", "`SET` with the `PX` argument"),
    docs("getset", "1.0.0", "Stores a string under a key and returns the one before.")
        .cost("O(1)")
        .arguments(KEY_VALUE)
        .deprecated("6.2.0", "`SET` with the `!GET` argument"),
    docs("getdel", "6.2.0", "Returns the string under a key and removes the key.")
        .cost("O(1)")
        .arguments(&[KEY]),
    docs("delifeq", "9.0.0", "Removes a key whose value is the given string. It is Valkey's.")
        .cost("O(1)")
        .arguments(KEY_VALUE),
    docs("getex", "6.2.0", "Returns the string under a key and sets or removes the key's expiry.")
        .cost("O(1)")
        .arguments(GETEX_ARGUMENTS),
    docs("mget", "1.0.0", "Returns the strings under keys.")
        .cost("O(N) for N keys.")
        .arguments(&[KEY.multiple()])
        .tips(&["request_policy:multi_shard"]),
    docs("mset", "1.0.1", "Stores strings under keys at once.")
        .cost("O(N) for N keys.")
        .arguments(PAIRS)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    docs("msetnx", "1.0.1", "Stores strings under keys at once, if none of the keys exists yet.")
        .cost("O(N) for N keys.")
        .arguments(PAIRS),
    docs("incr", "1.0.0", "Adds one to the integer under a key.").cost("O(1)").arguments(&[KEY]),
    docs("decr", "1.0.0", "Takes one from the integer under a key.").cost("O(1)").arguments(&[KEY]),
    docs("incrby", "1.0.0", "Adds a number to the integer under a key.")
        .cost("O(1)")
        .arguments(&[KEY, argument("increment", Integer)]),
    docs("decrby", "1.0.0", "Takes a number from the integer under a key.")
        .cost("O(1)")
        .arguments(&[KEY, argument("decrement", Integer)]),
    docs("incrbyfloat", "2.6.0", "Adds a number to the floating-point number under a key.")
        .cost("O(1)")
        .arguments(&[KEY, argument("increment", Double)]),
    docs("append", "2.0.0", "Appends to the string under a key.")
        .cost("O(1) on average, if the appended text is short.")
        .arguments(KEY_VALUE),
    docs("strlen", "2.2.0", "Returns the length of the string under a key.")
        .cost("O(1)")
        .arguments(&[KEY]),
    docs("setrange", "2.2.0", "Overwrites a part of the string under a key.")
        .cost("O(M) for M bytes that are written.")
        .arguments(&[KEY, argument("offset", Integer), VALUE]),
    docs("getrange", "2.4.0", "Returns a part of the string under a key.")
        .cost(RANGE_COST)
        .arguments(RANGE),
    docs("substr", "1.0.0", "Returns a part of the string under a key.")
        .cost(RANGE_COST)
        .arguments(RANGE)
        .deprecated("2.0.0", "`GETRANGE`"),
    docs("lcs", "7.0.0", "Finds the longest common subsequence of two strings.")
        .cost("O(N*M) for strings of N and M bytes.")
        .arguments(&[
            key("key1", 0),
            key("key2", 0),
            word("len", "LEN").optional(),
            word("idx", "IDX").optional(),
            argument("min-match-len", Integer).token("MINMATCHLEN").optional(),
            word("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
];
