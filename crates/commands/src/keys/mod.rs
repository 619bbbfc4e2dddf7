//! Keys of any type: deleting, renaming, copying, walking, expiring, inspecting, DUMP, RESTORE and
//! MIGRATE.

mod dump;
mod expire;
mod general;
pub mod migrate;
mod object;
mod walk;

use engine::command::{
    ACCESS, ASKS, Argument, ArgumentKind, CHANGES, ChangeForm, Countdown, DELETE, DENYOOM,
    DEPENDS_ON_SUBCOMMAND, Docs, FAST, Flags, Group, IN_DANGEROUS, IN_KEYSPACE, INSERT, INTERNAL,
    KeySpec, LOOKS, LOOKS_2, LOOKS_ALL, MOVABLE_KEYS, NO_KEYS, NO_MULTI, NOSCRIPT, OVERWRITES, OW,
    READONLY, READS, RM, RO, RW, SET_ASIDE, SKIP_MONITOR, UPDATE, UPDATES, WHOLE_KEYSPACE, WRITE,
    argument, block, docs, docs_of_help, key, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::{container, help};

/// All arguments are keys that go.
const REMOVES_ALL: &[KeySpec] = &[KeySpec::range(RM | DELETE, 1, -1, 1)];
/// From the first key to the second.
const RENAMES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(OW | UPDATE, 2)];
/// The same, if the second is not there.
const RENAMES_NX: &[KeySpec] = &[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(OW | INSERT, 2)];
/// From the first key to the second.
const COPIES: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1), KeySpec::at(OW | UPDATE, 2)];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Generic.rows([
    row("del", general::del, -2, WRITE | IN_KEYSPACE, REMOVES_ALL).told(ChangeForm::Delete),
    row("unlink", general::del, -2, WRITE | FAST | IN_KEYSPACE, REMOVES_ALL)
        .told(ChangeForm::Delete),
    row("exists", general::exists, -2, READONLY | FAST | IN_KEYSPACE, LOOKS_ALL),
    row("type", general::type_of, 2, READONLY | FAST | IN_KEYSPACE, LOOKS),
    row("touch", general::touch, -2, READONLY | FAST | IN_KEYSPACE, LOOKS_ALL),
    row("rename", general::rename, 3, WRITE | IN_KEYSPACE, RENAMES).told(ChangeForm::Rename),
    row("renamenx", general::renamenx, 3, WRITE | FAST | IN_KEYSPACE, RENAMES_NX)
        .told(ChangeForm::Rename),
    row("copy", general::copy, -3, WRITE | DENYOOM | IN_KEYSPACE, COPIES)
        .told(ChangeForm::Copy)
        .databases(general::database_of_copy),
    row("move", general::move_to_database, 3, WRITE | FAST | IN_KEYSPACE, CHANGES)
        .databases(general::database_of_move)
        .told(ChangeForm::Move),
    row("randomkey", walk::randomkey, 1, READONLY | WHOLE_KEYSPACE | IN_KEYSPACE, NO_KEYS),
    row("keys", walk::keys, 2, READONLY | WHOLE_KEYSPACE | IN_KEYSPACE | IN_DANGEROUS, NO_KEYS),
    row("scan", walk::scan, -2, READONLY | WHOLE_KEYSPACE | IN_KEYSPACE, NO_KEYS),
    row("expire", expire::expire, -3, WRITE | FAST | IN_KEYSPACE, UPDATES)
        .countdown(Countdown::Always),
    row("pexpire", expire::pexpire, -3, WRITE | FAST | IN_KEYSPACE, UPDATES)
        .countdown(Countdown::Always),
    row("expireat", expire::expireat, -3, WRITE | FAST | IN_KEYSPACE, UPDATES),
    row("pexpireat", expire::pexpireat, -3, WRITE | FAST | IN_KEYSPACE, UPDATES),
    row("ttl", expire::ttl, 2, READONLY | FAST | IN_KEYSPACE, READS),
    row("pttl", expire::pttl, 2, READONLY | FAST | IN_KEYSPACE, READS),
    row("expiretime", expire::expiretime, 2, READONLY | FAST | IN_KEYSPACE, READS),
    row("pexpiretime", expire::pexpiretime, 2, READONLY | FAST | IN_KEYSPACE, READS),
    row("persist", expire::persist, 2, WRITE | FAST | IN_KEYSPACE, UPDATES),
    container("object", OBJECT),
    row("dump", dump::dump, 2, READONLY | IN_KEYSPACE, READS),
    row("restore", dump::restore, -4, WRITE | DENYOOM | IN_KEYSPACE | IN_DANGEROUS, OVERWRITES)
        .countdown(Countdown::Without(2, "ABSTTL")),
    row(
        "restorepart",
        dump::restore_part,
        3,
        WRITE | DENYOOM | IN_KEYSPACE | IN_DANGEROUS,
        UPDATES,
    ),
    row("migrate", migrate::migrate, -6, MIGRATES, migrate::MOVES)
        .key_finder(migrate::find_keys)
        .secrets(migrate::is_secret),
]);

/// RESTORE as a node of Redis Cluster sends it to the one that takes over the slot. It is also in
/// that node's stream and in its append-only file.
pub(crate) const OF_NODES: Family = Family::new(COMMANDS_OF_NODES, DOCS_OF_NODES);

const COMMANDS_OF_NODES: &[Command] = &Group::Server.rows([row(
    "restore-asking",
    dump::restore,
    -4,
    WRITE | DENYOOM | ASKS | IN_KEYSPACE | IN_DANGEROUS,
    OVERWRITES,
)
.countdown(Countdown::Without(2, "ABSTTL"))]);

/// The client waits for another server: in a transaction or a script all others would.
const MIGRATES: Flags =
    WRITE | MOVABLE_KEYS | NO_MULTI | NOSCRIPT | SET_ASIDE | IN_KEYSPACE | IN_DANGEROUS;

/// The internal commands of MIGRATE.
pub(crate) const INTERNALS: Family = Family::new(INTERNAL_COMMANDS, INTERNAL_DOCS);

const INTERNAL_COMMANDS: &[Command] = &Group::Generic.under("moving").rows([
    row("read", migrate::read, 2, READONLY | INTERNAL | SKIP_MONITOR, READS),
    row("remove", migrate::remove, 3, WRITE | INTERNAL | SKIP_MONITOR, CHANGES),
]);

const OBJECT: &[Command] = &Group::Generic.under("object").rows([
    row("encoding", object::encoding, 3, READONLY | IN_KEYSPACE, LOOKS_2),
    row("freq", object::freq, 3, READONLY | IN_KEYSPACE, LOOKS_2),
    help().categories(&["keyspace"]),
    row("idletime", object::idletime, 3, READONLY | IN_KEYSPACE, LOOKS_2),
    row("refcount", object::refcount, 3, READONLY | IN_KEYSPACE, LOOKS_2),
]);

// ---- Documentation ------------------------------------------------------------------------------

const BY_SHARD: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const NONDETERMINISTIC: &[&str] = &["nondeterministic_output"];
const ONE_KEY: &[Argument] = &[key("key", 0)];
const KEYS: &[Argument] = &[key("key", 0).multiple()];
const CONDITION: Argument =
    one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
        .optional()
        .since("7.0.0");

const CONDITIONS_ADDED: &[(&str, &str)] = &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")];

const OF_RESTORE: &[Argument] = &[
    key("key", 0),
    argument("ttl", ArgumentKind::Integer),
    argument("serialized-value", ArgumentKind::String),
    word("replace", "REPLACE").optional().since("3.0.0"),
    word("absttl", "ABSTTL").optional().since("5.0.0"),
    argument("seconds", ArgumentKind::Integer).token("IDLETIME").optional().since("5.0.0"),
    argument("frequency", ArgumentKind::Integer).token("FREQ").optional().since("5.0.0"),
];
const RESTORE_HISTORY: &[(&str, &str)] = &[
    ("3.0.0", "Takes `REPLACE`."),
    ("5.0.0", "Takes `ABSTTL`."),
    ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
];

const DOCS_OF_NODES: &[Docs] =
    &[docs("restore-asking", "3.0.0", "Creates a key in a slot that a node takes over.")
        .cost("O(N) where N is the size of the value.")
        .arguments(OF_RESTORE)
        .history(RESTORE_HISTORY)
        .system()];

const DOCS: &[Docs] = &[
    docs("del", "1.0.0", "Removes keys with their values.")
        .cost("O(N) where N is the number of keys.")
        .arguments(KEYS)
        .tips(BY_SHARD),
    docs("unlink", "4.0.0", "Removes keys and frees values later.")
        .cost("O(N) where N is the number of keys.")
        .arguments(KEYS)
        .tips(BY_SHARD),
    docs("exists", "1.0.0", "Counts how many of the keys exist.")
        .cost("O(N) where N is the number of keys.")
        .arguments(KEYS)
        .history(&[("3.0.3", "Takes several keys.")])
        .tips(BY_SHARD),
    docs("type", "1.0.0", "Names the type of a key's value.").cost("O(1)").arguments(ONE_KEY),
    docs("touch", "3.2.1", "Marks keys as used now and counts them.")
        .cost("O(N) where N is the number of keys.")
        .arguments(KEYS)
        .tips(BY_SHARD),
    docs("rename", "1.0.0", "Gives a key another name, and replaces the key of that name.")
        .cost("O(1)")
        .arguments(&[key("key", 0), key("newkey", 1)]),
    docs("renamenx", "1.0.0", "Gives a key another name, if that name is free.")
        .cost("O(1)")
        .arguments(&[key("key", 0), key("newkey", 1)])
        .history(&[("3.2.0", "The same name twice is no error.")]),
    docs("copy", "6.2.0", "Copies a value to another key.")
        .cost("O(N) where N is the number of elements.")
        .arguments(&[
            key("source", 0),
            key("destination", 1),
            argument("destination-db", ArgumentKind::Integer).token("DB").optional(),
            word("replace", "REPLACE").optional(),
        ]),
    docs("move", "1.0.0", "Moves a key to another database.")
        .cost("O(1)")
        .arguments(&[key("key", 0), argument("db", ArgumentKind::Integer)]),
    docs("randomkey", "1.0.0", "Returns a random key.").cost("O(1)").tips(&[
        "request_policy:all_shards",
        "response_policy:special",
        "nondeterministic_output",
    ]),
    docs("keys", "1.0.0", "Returns all keys that match a pattern.")
        .cost("O(N) where N is the number of keys.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern)])
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    docs("scan", "2.8.0", "Returns the keys, some at a time.")
        .cost("O(1) for a call, O(N) for a whole scan.")
        .arguments(&[
            argument("cursor", ArgumentKind::Integer),
            argument("pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            argument("count", ArgumentKind::Integer).token("COUNT").optional(),
            argument("type", ArgumentKind::String).token("TYPE").optional().since("6.0.0"),
        ])
        .history(&[("6.0.0", "Takes `TYPE`.")])
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]),
    docs("expire", "1.0.0", "Makes a key expire after a number of seconds.")
        .cost("O(1)")
        .arguments(&[key("key", 0), argument("seconds", ArgumentKind::Integer), CONDITION])
        .history(CONDITIONS_ADDED),
    docs("pexpire", "2.6.0", "Makes a key expire after a number of milliseconds.")
        .cost("O(1)")
        .arguments(&[key("key", 0), argument("milliseconds", ArgumentKind::Integer), CONDITION])
        .history(CONDITIONS_ADDED),
    docs("expireat", "1.2.0", "Lets a key expire at a time in seconds.")
        .cost("O(1)")
        .arguments(&[
            key("key", 0),
            argument("unix-time-seconds", ArgumentKind::UnixTime),
            CONDITION,
        ])
        .history(CONDITIONS_ADDED),
    docs("pexpireat", "2.6.0", "Lets a key expire at a time in milliseconds.")
        .cost("O(1)")
        .arguments(&[
            key("key", 0),
            argument("unix-time-milliseconds", ArgumentKind::UnixTime),
            CONDITION,
        ])
        .history(CONDITIONS_ADDED),
    docs("ttl", "1.0.0", "Returns the seconds until a key expires.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .history(&[("2.8.0", "Answers -2 for a key that does not exist.")])
        .tips(NONDETERMINISTIC),
    docs("pttl", "2.6.0", "Returns the milliseconds until a key expires.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .history(&[("2.8.0", "Answers -2 for a key that does not exist.")])
        .tips(NONDETERMINISTIC),
    docs("expiretime", "7.0.0", "Returns the time in seconds at which a key expires.")
        .cost("O(1)")
        .arguments(ONE_KEY),
    docs("pexpiretime", "7.0.0", "Returns the time in milliseconds at which a key expires.")
        .cost("O(1)")
        .arguments(ONE_KEY),
    docs("persist", "2.2.0", "Removes the expiry of a key.").cost("O(1)").arguments(ONE_KEY),
    docs("object", "2.2.3", "Commands about how a value is stored.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("object|encoding", "2.2.3", "Names the way in which a value is stored.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .tips(NONDETERMINISTIC),
    docs("object|freq", "4.0.0", "Returns the logarithmic counter of a key's accesses.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .tips(NONDETERMINISTIC),
    docs_of_help("object|help", "6.2.0"),
    docs("object|idletime", "2.2.3", "Returns the seconds since a key's last access.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .tips(NONDETERMINISTIC),
    docs("object|refcount", "2.2.3", "Returns the number of references to a value: always 1.")
        .cost("O(1)")
        .arguments(ONE_KEY)
        .tips(NONDETERMINISTIC),
    docs("dump", "2.6.0", "Serialises a value.")
        .cost("O(N) where N is the size of the value.")
        .arguments(ONE_KEY)
        .tips(NONDETERMINISTIC),
    docs("restore", "2.6.0", "Creates a key from a payload of DUMP.")
        .cost("O(N) where N is the size of the value.")
        .arguments(OF_RESTORE)
        .history(RESTORE_HISTORY),
    docs("restorepart", "8.0.0", "Adds to a stream what else a move of slots brings of it.")
        .cost("O(N) where N is the size of the part.")
        .arguments(&[key("key", 0), argument("serialized-value", ArgumentKind::String)]),
    docs("migrate", "2.6.0", "Moves keys to another server.")
        .cost("O(N) where N is the number of elements of the keys, here and at the other server.")
        .arguments(MIGRATION)
        .history(&[
            ("3.0.0", "Takes `COPY` and `REPLACE`."),
            ("3.0.6", "Takes `KEYS`."),
            ("4.0.7", "Takes `AUTH`."),
            ("6.0.0", "Takes `AUTH2`."),
        ])
        .tips(NONDETERMINISTIC),
];

const INTERNAL_DOCS: &[Docs] = &[
    docs("moving|read", "2.6.0", "Reads a key for another server.").cost("O(N) for N elements."),
    docs("moving|remove", "2.6.0", "Deletes a key that another server has.").cost("O(1)"),
];

const MIGRATION: &[Argument] = &[
    argument("host", ArgumentKind::String),
    argument("port", ArgumentKind::Integer),
    one_of("key-selector", &[key("key", 0), word("empty-string", "")]),
    argument("destination-db", ArgumentKind::Integer),
    argument("timeout", ArgumentKind::Integer),
    word("copy", "COPY").optional().since("3.0.0"),
    word("replace", "REPLACE").optional().since("3.0.0"),
    one_of(
        "authentication",
        &[
            argument("auth", ArgumentKind::String).shown("password").token("AUTH").since("4.0.7"),
            block(
                "auth2",
                &[
                    argument("username", ArgumentKind::String),
                    argument("password", ArgumentKind::String),
                ],
            )
            .token("AUTH2")
            .since("6.0.0"),
        ],
    )
    .optional(),
    key("keys", 1).shown("key").token("KEYS").optional().multiple().since("3.0.6"),
];
