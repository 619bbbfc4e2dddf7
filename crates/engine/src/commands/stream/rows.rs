//! The rows of the streams.

use super::change::{xackdel, xadd, xdel, xdelex, xlen, xsetid, xtrim};
use super::claim::{xautoclaim, xclaim};
use super::pending::xpending;
use super::range::{xrange, xrevrange};
use super::read::{serve, xread, xreadgroup};
use super::{group, info};
use crate::command::{
    ACCESS, Argument, ArgumentKind, BLOCKING, Begin, Command, DELETE, DENYOOM, FAST, Find, Group,
    Handler, INSERT, KeySpec, MOVABLE_KEYS, READONLY, RO, RW, UPDATE, WRITE, argument, block, key,
    one_of, word,
};

const KEY: Argument = key("key", 0);
const GROUP: Argument = argument("group", ArgumentKind::String);
const CONSUMER: Argument = argument("consumer", ArgumentKind::String);
const ID: Argument = argument("id", ArgumentKind::String);
const IDS: Argument = ID.multiple();
const START: Argument = argument("start", ArgumentKind::String);
const END: Argument = argument("end", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer).token("COUNT").optional();
const MIN_IDLE: Argument = argument("min-idle-time", ArgumentKind::String);
const MILLISECONDS: Argument =
    argument("milliseconds", ArgumentKind::Integer).token("BLOCK").optional();
const STREAMS: Argument = block("streams", &[KEY.multiple(), IDS]).token("STREAMS");
const JUSTID: Argument = word("justid", "JUSTID").optional();
const PLACE: Argument = one_of("id-selector", &[ID, word("new-id", "$")]);
const ENTRIES_READ: Argument = argument("entriesread", ArgumentKind::Integer)
    .shown("entries-read")
    .token("ENTRIESREAD")
    .optional();
const TRIM: Argument = block(
    "trim",
    &[
        one_of("strategy", &[word("maxlen", "MAXLEN"), word("minid", "MINID").since("6.2.0")]),
        one_of("operator", &[word("equal", "="), word("approximately", "~")]).optional(),
        argument("threshold", ArgumentKind::String),
        argument("count", ArgumentKind::Integer).token("LIMIT").since("6.2.0").optional(),
    ],
);

const REFERENCES: Argument = one_of(
    "condition",
    &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")],
)
.since("8.2.0")
.optional();
const ID_BLOCK: Argument =
    block("ids", &[argument("numids", ArgumentKind::Integer), IDS]).token("IDS");

const READ: KeySpec = KeySpec::at(RO | ACCESS, 1);
const UPDATED: KeySpec = KeySpec::at(RW | UPDATE, 1);
const DESCRIBED: KeySpec = KeySpec::at(RO | ACCESS, 2);
const DELETED: KeySpec = KeySpec::at(RW | DELETE, 1);

/// The keys after STREAMS, which are the first half of the remaining arguments.
const fn behind_streams(from: i32) -> KeySpec {
    KeySpec {
        flags: RO | ACCESS,
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range { last: -1, step: 1, limit: 2 },
        notes: None,
    }
}

const VARIES: &[&str] = &["nondeterministic_output"];
const BY_ID: &str = "O(1) for each id that is given.";
const RANGE_COST: &str = "O(N) for N entries that are answered.";
const TRIM_COST: &str = "O(N) for N entries that go; whole blocks of them go at once.";
const TRIM_HISTORY: &str = "Added the `MINID` strategy and the `LIMIT` option.";

const fn reading(name: &'static str, handler: Handler, arity: i32) -> Command {
    Command::new(name, handler, arity, Group::Stream, "5.0.0").flags(READONLY).keys(&[READ])
}

const fn writing(name: &'static str, handler: Handler, arity: i32) -> Command {
    Command::new(name, handler, arity, Group::Stream, "5.0.0").flags(WRITE).keys(&[UPDATED])
}

const fn of_group(name: &'static str, handler: Handler, arity: i32) -> Command {
    Command::sub("xgroup", name, handler, arity, Group::Stream, "5.0.0").flags(WRITE)
}

const fn about(name: &'static str, handler: Handler, arity: i32) -> Command {
    Command::sub("xinfo", name, handler, arity, Group::Stream, "5.0.0")
        .flags(READONLY)
        .keys(&[DESCRIBED])
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    writing("xadd", xadd, -5)
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[UPDATED.notes("UPDATE instead of INSERT because of the optional trimming feature")])
        .tips(VARIES)
        .docs("O(1), and O(N) for N entries that are trimmed.", "Adds an entry to a stream.")
        .history(&[
            (
                "6.2.0",
                "Added the `NOMKSTREAM` option, the `MINID` strategy and the `LIMIT` option.",
            ),
            ("7.0.0", "Added ids of the form `milliseconds-*`."),
        ])
        .arguments(&[
            KEY,
            word("nomkstream", "NOMKSTREAM").since("6.2.0").optional(),
            REFERENCES,
            TRIM.optional(),
            one_of("id-selector", &[word("auto-id", "*"), ID]),
            block(
                "data",
                &[argument("field", ArgumentKind::String), argument("value", ArgumentKind::String)],
            )
            .multiple(),
        ]),
    reading("xlen", xlen, 2)
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .docs("O(1)", "Counts the entries of a stream.")
        .arguments(&[KEY]),
    reading("xrange", xrange, -4)
        .docs(RANGE_COST, "Returns the entries between two ids.")
        .history(&[("6.2.0", "Added ends that are excluded.")])
        .arguments(&[KEY, START, END, COUNT]),
    reading("xrevrange", xrevrange, -4)
        .docs(RANGE_COST, "Returns the entries between two ids, the last one first.")
        .history(&[("6.2.0", "Added ends that are excluded.")])
        .arguments(&[KEY, END, START, COUNT]),
    writing("xdel", xdel, -3)
        .flags(WRITE | FAST)
        .keys(&[DELETED])
        .docs(BY_ID, "Deletes entries of a stream.")
        .arguments(&[KEY, IDS]),
    writing("xtrim", xtrim, -4)
        .keys(&[DELETED])
        .tips(VARIES)
        .docs(TRIM_COST, "Removes entries from the beginning of a stream.")
        .history(&[("6.2.0", TRIM_HISTORY)])
        .arguments(&[KEY, TRIM, REFERENCES]),
    writing("xsetid", xsetid, -3)
        .flags(WRITE | DENYOOM | FAST)
        .docs("O(1)", "Sets the last id and the counters of a stream: for files and replicas.")
        .history(&[("7.0.0", "Added the options `ENTRIESADDED` and `MAXDELETEDID`.")])
        .arguments(&[
            KEY,
            argument("last-id", ArgumentKind::String),
            argument("entries-added", ArgumentKind::Integer)
                .token("ENTRIESADDED")
                .since("7.0.0")
                .optional(),
            argument("max-deleted-id", ArgumentKind::String)
                .token("MAXDELETEDID")
                .since("7.0.0")
                .optional(),
        ]),
    Command::new("xread", xread, -4, Group::Stream, "5.0.0")
        .flags(READONLY | BLOCKING | MOVABLE_KEYS)
        .serve(serve)
        .keys(&[behind_streams(1)])
        .docs(RANGE_COST, "Returns the entries after an id of each stream, or waits for some.")
        .arguments(&[COUNT, MILLISECONDS, STREAMS]),
    Command::new("xreadgroup", xreadgroup, -7, Group::Stream, "5.0.0")
        .flags(WRITE | BLOCKING | MOVABLE_KEYS)
        .serve(serve)
        .keys(&[behind_streams(4)])
        .docs(
            "O(N*log(M)) for N entries that are answered and M that are pending.",
            "Gives a consumer entries that no consumer of its group has got, or waits for some.",
        )
        .arguments(&[
            block("group-block", &[GROUP, CONSUMER]).token("GROUP"),
            COUNT,
            MILLISECONDS,
            argument("min-idle-time", ArgumentKind::Integer)
                .token("CLAIM")
                .since("8.4.0")
                .optional(),
            word("noack", "NOACK").optional(),
            STREAMS,
        ]),
    Command::new("xdelex", xdelex, -5, Group::Stream, "8.2.0")
        .flags(WRITE | FAST)
        .keys(&[DELETED])
        .docs(BY_ID, "Deletes entries of a stream, depending on its groups.")
        .arguments(&[KEY, REFERENCES, ID_BLOCK]),
    Command::new("xackdel", xackdel, -6, Group::Stream, "8.2.0")
        .flags(WRITE | FAST)
        .keys(&[DELETED])
        .docs(BY_ID, "Acknowledges entries for a group, and deletes them.")
        .arguments(&[KEY, GROUP, REFERENCES, ID_BLOCK]),
    writing("xack", group::xack, -4)
        .flags(WRITE | FAST)
        .docs(BY_ID, "Acknowledges entries for a group.")
        .arguments(&[KEY, GROUP, IDS]),
    reading("xpending", xpending, -3)
        .tips(VARIES)
        .docs(
            "O(N) for N entries that are looked at.",
            "Returns the entries that a group has got and not acknowledged.",
        )
        .history(&[("6.2.0", "Added the option `IDLE` and ends that are excluded.")])
        .arguments(&[
            KEY,
            GROUP,
            block(
                "filters",
                &[
                    argument("min-idle-time", ArgumentKind::Integer)
                        .token("IDLE")
                        .since("6.2.0")
                        .optional(),
                    START,
                    END,
                    argument("count", ArgumentKind::Integer),
                    CONSUMER.optional(),
                ],
            )
            .optional(),
        ]),
    writing("xclaim", xclaim, -6)
        .flags(WRITE | FAST)
        .tips(VARIES)
        .docs("O(log(N)) for each id that is given, of N.", "Gives pending entries to a consumer.")
        .arguments(&[
            KEY,
            GROUP,
            CONSUMER,
            MIN_IDLE,
            IDS,
            argument("ms", ArgumentKind::Integer).token("IDLE").optional(),
            argument("unix-time-milliseconds", ArgumentKind::UnixTime).token("TIME").optional(),
            argument("count", ArgumentKind::Integer).token("RETRYCOUNT").optional(),
            word("force", "FORCE").optional(),
            JUSTID,
            argument("lastid", ArgumentKind::String).token("LASTID").optional(),
        ]),
    Command::new("xautoclaim", xautoclaim, -6, Group::Stream, "6.2.0")
        .flags(WRITE | FAST)
        .keys(&[DELETED])
        .tips(VARIES)
        .docs(
            "O(N) for N entries that are looked at.",
            "Gives pending entries to a consumer, whichever are old enough.",
        )
        .history(&[("7.0.0", "Answers the ids of entries that are no longer in the stream.")])
        .arguments(&[KEY, GROUP, CONSUMER, MIN_IDLE, START, COUNT, JUSTID]),
    Command::container("xgroup", Group::Stream, "5.0.0", GROUP_COMMANDS)
        .summary("Makes, changes and removes consumer groups."),
    Command::container("xinfo", Group::Stream, "5.0.0", INFO_COMMANDS)
        .summary("Describes streams, their groups and consumers."),
];

const GROUP_COMMANDS: &[Command] = &[
    of_group("create", group::create, -5)
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | INSERT, 2)])
        .docs("O(1)", "Makes a group.")
        .history(&[("7.0.0", "Added the option `ENTRIESREAD`.")])
        .arguments(&[KEY, GROUP, PLACE, word("mkstream", "MKSTREAM").optional(), ENTRIES_READ]),
    of_group("setid", group::setid, -5)
        .keys(&[KeySpec::at(RW | UPDATE, 2)])
        .docs("O(1)", "Sets how far a group has read.")
        .history(&[("7.0.0", "Added the option `ENTRIESREAD`.")])
        .arguments(&[KEY, GROUP, PLACE, ENTRIES_READ]),
    of_group("destroy", group::destroy, 4)
        .keys(&[KeySpec::at(RW | DELETE, 2)])
        .docs("O(N) for N pending entries.", "Removes a group.")
        .arguments(&[KEY, GROUP]),
    Command::sub("xgroup", "createconsumer", group::createconsumer, 5, Group::Stream, "6.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | INSERT, 2)])
        .docs("O(1)", "Adds a consumer to a group.")
        .arguments(&[KEY, GROUP, CONSUMER]),
    of_group("delconsumer", group::delconsumer, 5)
        .keys(&[KeySpec::at(RW | DELETE, 2)])
        .docs("O(N) for N pending entries.", "Removes a consumer with its pending entries.")
        .arguments(&[KEY, GROUP, CONSUMER]),
    Command::help("xgroup", Group::Stream, "5.0.0"),
];

const INFO_COMMANDS: &[Command] = &[
    about("consumers", info::consumers, 4)
        .tips(VARIES)
        .docs("O(N) for N consumers.", "Describes the consumers of a group.")
        .history(&[("7.2.0", "Added `inactive`, and changed the meaning of `idle`.")])
        .arguments(&[KEY, GROUP]),
    about("groups", info::groups, 3)
        .docs("O(N) for N groups.", "Describes the groups of a stream.")
        .history(&[("7.0.0", "Added `entries-read` and `lag`.")])
        .arguments(&[KEY]),
    about("stream", info::stream, -3)
        .docs("O(1), and with FULL O(N) for N entries that are shown.", "Describes a stream.")
        .history(&[
            ("6.0.0", "Added the option `FULL`."),
            ("7.0.0", "Added the numbers about ids, and `entries-read` and `lag` of groups."),
            ("7.2.0", "Added `active-time`, and changed the meaning of `seen-time`."),
        ])
        .arguments(&[KEY, block("full-block", &[word("full", "FULL"), COUNT]).optional()]),
    Command::help("xinfo", Group::Stream, "5.0.0"),
];
