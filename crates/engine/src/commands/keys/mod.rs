//! Keys of any type: deleting, renaming, copying, walking, expiring, inspecting, DUMP and RESTORE.

mod dump;
mod expire;
mod general;
mod object;
mod walk;

use crate::command::{
    ACCESS, Argument, ArgumentKind, Command, DELETE, DENYOOM, FAST, Group, INSERT, KeySpec, OW,
    READONLY, RM, RO, RW, UPDATE, WHOLE_KEYSPACE, WRITE, argument, key, one_of, word,
};

const KEYSPACE: &[&str] = &["keyspace"];
const DANGEROUS: &[&str] = &["keyspace", "dangerous"];
const BY_SHARD: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const NONDETERMINISTIC: &[&str] = &["nondeterministic_output"];
const ONE_KEY: &[Argument] = &[key("key", 0)];
const KEYS: &[Argument] = &[key("key", 0).multiple()];
const CONDITION: Argument =
    one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
        .optional()
        .since("7.0.0");
const CONDITIONS_ADDED: &[(&str, &str)] = &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("del", general::del, -2, Group::Generic, "1.0.0")
        .flags(WRITE)
        .keys(&[KeySpec::range(RM | DELETE, 1, -1, 1)])
        .categories(KEYSPACE)
        .tips(BY_SHARD)
        .docs("O(N) where N is the number of keys.", "Removes keys with their values.")
        .arguments(KEYS),
    Command::new("unlink", general::del, -2, Group::Generic, "4.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::range(RM | DELETE, 1, -1, 1)])
        .categories(KEYSPACE)
        .tips(BY_SHARD)
        .docs("O(N) where N is the number of keys.", "Removes keys and frees values later.")
        .arguments(KEYS),
    Command::new("exists", general::exists, -2, Group::Generic, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::range(RO, 1, -1, 1)])
        .categories(KEYSPACE)
        .tips(BY_SHARD)
        .docs("O(N) where N is the number of keys.", "Counts how many of the keys exist.")
        .arguments(KEYS)
        .history(&[("3.0.3", "Takes several keys.")]),
    Command::new("type", general::type_of, 2, Group::Generic, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Names the type of a key's value.")
        .arguments(ONE_KEY),
    Command::new("touch", general::touch, -2, Group::Generic, "3.2.1")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::range(RO, 1, -1, 1)])
        .categories(KEYSPACE)
        .tips(BY_SHARD)
        .docs("O(N) where N is the number of keys.", "Marks keys as used now and counts them.")
        .arguments(KEYS),
    Command::new("rename", general::rename, 3, Group::Generic, "1.0.0")
        .flags(WRITE)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(OW | UPDATE, 2)])
        .categories(KEYSPACE)
        .docs("O(1)", "Gives a key another name, and replaces the key of that name.")
        .arguments(&[key("key", 0), key("newkey", 1)]),
    Command::new("renamenx", general::renamenx, 3, Group::Generic, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(OW | INSERT, 2)])
        .categories(KEYSPACE)
        .docs("O(1)", "Gives a key another name, if that name is free.")
        .arguments(&[key("key", 0), key("newkey", 1)])
        .history(&[("3.2.0", "The same name twice is no error.")]),
    Command::new("copy", general::copy, -3, Group::Generic, "6.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RO | ACCESS, 1), KeySpec::at(OW | UPDATE, 2)])
        .categories(KEYSPACE)
        .docs("O(N) where N is the number of elements.", "Copies a value to another key.")
        .arguments(&[
            key("source", 0),
            key("destination", 1),
            argument("destination-db", ArgumentKind::Integer).token("DB").optional(),
            word("replace", "REPLACE").optional(),
        ]),
    Command::new("move", general::move_to_database, 3, Group::Generic, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | ACCESS | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Moves a key to another database.")
        .arguments(&[key("key", 0), argument("db", ArgumentKind::Integer)]),
    Command::new("randomkey", walk::randomkey, 1, Group::Generic, "1.0.0")
        .flags(READONLY | WHOLE_KEYSPACE)
        .categories(KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
        .docs("O(1)", "Returns a random key."),
    Command::new("keys", walk::keys, 2, Group::Generic, "1.0.0")
        .flags(READONLY | WHOLE_KEYSPACE)
        .categories(DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .docs("O(N) where N is the number of keys.", "Returns all keys that match a pattern.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern)]),
    Command::new("scan", walk::scan, -2, Group::Generic, "2.8.0")
        .flags(READONLY | WHOLE_KEYSPACE)
        .categories(KEYSPACE)
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
        .docs("O(1) for a call, O(N) for a whole scan.", "Returns the keys, some at a time.")
        .arguments(&[
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            argument("count", ArgumentKind::Integer).token("COUNT").optional(),
            argument("type", ArgumentKind::String).token("TYPE").optional().since("6.0.0"),
        ])
        .history(&[("6.0.0", "Takes `TYPE`.")]),
    Command::new("expire", expire::expire, -3, Group::Generic, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Makes a key expire after a number of seconds.")
        .arguments(&[key("key", 0), argument("seconds", ArgumentKind::Integer), CONDITION])
        .history(CONDITIONS_ADDED),
    Command::new("pexpire", expire::pexpire, -3, Group::Generic, "2.6.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Makes a key expire after a number of milliseconds.")
        .arguments(&[key("key", 0), argument("milliseconds", ArgumentKind::Integer), CONDITION])
        .history(CONDITIONS_ADDED),
    Command::new("expireat", expire::expireat, -3, Group::Generic, "1.2.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Lets a key expire at a time in seconds.")
        .arguments(&[
            key("key", 0),
            argument("unix-time-seconds", ArgumentKind::UnixTime),
            CONDITION,
        ])
        .history(CONDITIONS_ADDED),
    Command::new("pexpireat", expire::pexpireat, -3, Group::Generic, "2.6.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Lets a key expire at a time in milliseconds.")
        .arguments(&[
            key("key", 0),
            argument("unix-time-milliseconds", ArgumentKind::UnixTime),
            CONDITION,
        ])
        .history(CONDITIONS_ADDED),
    Command::new("ttl", expire::ttl, 2, Group::Generic, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Returns the seconds until a key expires.")
        .arguments(ONE_KEY)
        .history(&[("2.8.0", "Answers -2 for a key that does not exist.")]),
    Command::new("pttl", expire::pttl, 2, Group::Generic, "2.6.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Returns the milliseconds until a key expires.")
        .arguments(ONE_KEY)
        .history(&[("2.8.0", "Answers -2 for a key that does not exist.")]),
    Command::new("expiretime", expire::expiretime, 2, Group::Generic, "7.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Returns the time in seconds at which a key expires.")
        .arguments(ONE_KEY),
    Command::new("pexpiretime", expire::pexpiretime, 2, Group::Generic, "7.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Returns the time in milliseconds at which a key expires.")
        .arguments(ONE_KEY),
    Command::new("persist", expire::persist, 2, Group::Generic, "2.2.0")
        .flags(WRITE | FAST)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .categories(KEYSPACE)
        .docs("O(1)", "Removes the expiry of a key.")
        .arguments(ONE_KEY),
    Command::new("object", object::object, -2, Group::Generic, "2.2.3")
        .docs("Depends on subcommand.", "Commands about how a value is stored.")
        .subcommands(OBJECT),
    Command::new("dump", dump::dump, 2, Group::Generic, "2.6.0")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(N) where N is the size of the value.", "Serialises a value.")
        .arguments(ONE_KEY),
    Command::new("restore", dump::restore, -4, Group::Generic, "2.6.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(OW | UPDATE, 1)])
        .categories(DANGEROUS)
        .docs("O(N) where N is the size of the value.", "Creates a key from a payload of DUMP.")
        .arguments(&[
            key("key", 0),
            argument("ttl", ArgumentKind::Integer),
            argument("serialized-value", ArgumentKind::String),
            word("replace", "REPLACE").optional().since("3.0.0"),
            word("absttl", "ABSTTL").optional().since("5.0.0"),
            argument("seconds", ArgumentKind::Integer).token("IDLETIME").optional().since("5.0.0"),
            argument("frequency", ArgumentKind::Integer).token("FREQ").optional().since("5.0.0"),
        ])
        .history(&[
            ("3.0.0", "Takes `REPLACE`."),
            ("5.0.0", "Takes `ABSTTL`."),
            ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
        ]),
];

const OBJECT: &[Command] = &[
    Command::sub("object", "encoding", object::encoding, 3, Group::Generic, "2.2.3")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO, 2)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Names the way in which a value is stored.")
        .arguments(ONE_KEY),
    Command::sub("object", "freq", object::freq, 3, Group::Generic, "4.0.0")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO, 2)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Returns the logarithmic counter of a key's accesses.")
        .arguments(ONE_KEY),
    Command::help("object", Group::Generic, "6.2.0").categories(KEYSPACE),
    Command::sub("object", "idletime", object::idletime, 3, Group::Generic, "2.2.3")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO, 2)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Returns the seconds since a key's last access.")
        .arguments(ONE_KEY),
    Command::sub("object", "refcount", object::refcount, 3, Group::Generic, "2.2.3")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO, 2)])
        .categories(KEYSPACE)
        .tips(NONDETERMINISTIC)
        .docs("O(1)", "Returns the number of references to a value: always 1.")
        .arguments(ONE_KEY),
];
