//! The rows of the streams, and their documentation.

use super::change::{xackdel, xadd, xdel, xdelex, xlen, xsetid, xtrim};
use super::claim::{xautoclaim, xclaim};
use super::pending::xpending;
use super::range::{xrange, xrevrange};
use super::read::{find_streams, serve, xread, xreadgroup};
use super::{group, info};
use engine::command::{
    ACCESS, ADDS_2, Argument, ArgumentKind, BLOCKING, Begin, DELETES, DELETES_2, DENYOOM,
    DEPENDS_ON_SUBCOMMAND, Docs, FAST, Find, Flags, Group, KeySpec, LOOKS, MOVABLE_KEYS, READONLY,
    READS, READS_2, RO, RW, UPDATE, UPDATES, UPDATES_2, WAKES_ON_REMOVAL, WRITE, argument, block,
    docs, docs_of_help, key, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::{container, help};

/// The keys after STREAMS, which are the first half of the remaining arguments.
const fn behind_streams(from: i32) -> KeySpec {
    KeySpec {
        flags: RO | ACCESS,
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range { last: -1, step: 1, limit: 2 },
        notes: None,
    }
}

/// Adds an entry, and may trim.
const ADDS_ENTRY: &[KeySpec] = &[KeySpec::at(RW | UPDATE, 1)
    .notes("UPDATE instead of INSERT because of the optional trimming feature")];

/// The streams of XREAD.
const STREAMS_1: &[KeySpec] = &[behind_streams(1)];
/// The streams of XREADGROUP.
const STREAMS_4: &[KeySpec] = &[behind_streams(4)];

/// Flags of commands that wait for entries.
const WAITS: Flags = BLOCKING | MOVABLE_KEYS;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Stream.rows([
    row("xadd", xadd, -5, WRITE | DENYOOM | FAST, ADDS_ENTRY),
    row("xlen", xlen, 2, READONLY | FAST, LOOKS),
    row("xrange", xrange, -4, READONLY, READS),
    row("xrevrange", xrevrange, -4, READONLY, READS),
    row("xdel", xdel, -3, WRITE | FAST, DELETES),
    row("xtrim", xtrim, -4, WRITE, DELETES),
    row("xsetid", xsetid, -3, WRITE | DENYOOM | FAST, UPDATES),
    row("xread", xread, -4, READONLY | WAITS, STREAMS_1).key_finder(find_streams).serve(serve),
    row("xreadgroup", xreadgroup, -7, WRITE | WAITS | WAKES_ON_REMOVAL, STREAMS_4)
        .key_finder(find_streams)
        .serve(serve),
    row("xdelex", xdelex, -5, WRITE | FAST, DELETES),
    row("xackdel", xackdel, -6, WRITE | FAST, DELETES),
    row("xack", group::xack, -4, WRITE | FAST, UPDATES),
    row("xpending", xpending, -3, READONLY, READS),
    row("xclaim", xclaim, -6, WRITE | FAST, UPDATES),
    row("xautoclaim", xautoclaim, -6, WRITE | FAST, DELETES),
    container("xgroup", GROUP_COMMANDS),
    container("xinfo", INFO_COMMANDS),
]);

const GROUP_COMMANDS: &[Command] = &Group::Stream.under("xgroup").rows([
    row("create", group::create, -5, WRITE | DENYOOM, ADDS_2),
    row("setid", group::setid, -5, WRITE, UPDATES_2),
    row("destroy", group::destroy, 4, WRITE, DELETES_2),
    row("createconsumer", group::createconsumer, 5, WRITE | DENYOOM, ADDS_2),
    row("delconsumer", group::delconsumer, 5, WRITE, DELETES_2),
    help(),
]);

const INFO_COMMANDS: &[Command] = &Group::Stream.under("xinfo").rows([
    row("consumers", info::consumers, 4, READONLY, READS_2),
    row("groups", info::groups, 3, READONLY, READS_2),
    row("stream", info::stream, -3, READONLY, READS_2),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

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
const GROUP_START: Argument = one_of("id-selector", &[ID, word("new-id", "$")]);
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

const VARIES: &[&str] = &["nondeterministic_output"];
const BY_ID: &str = "O(1) for each id that is given.";
const RANGE_COST: &str = "O(N) for N entries that are answered.";
const TRIM_COST: &str = "O(N) for N entries that go; whole blocks of them go at once.";
const TRIM_HISTORY: &str = "Added the `MINID` strategy and the `LIMIT` option.";

const DOCS: &[Docs] = &[
    docs("xadd", "5.0.0", "Adds an entry to a stream.")
        .cost("O(1), and O(N) for N entries that are trimmed.")
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
        ])
        .history(&[
            (
                "6.2.0",
                "Added the `NOMKSTREAM` option, the `MINID` strategy and the `LIMIT` option.",
            ),
            ("7.0.0", "Added ids of the form `milliseconds-*`."),
        ])
        .tips(VARIES),
    docs("xlen", "5.0.0", "Counts the entries of a stream.").cost("O(1)").arguments(&[KEY]),
    docs("xrange", "5.0.0", "Returns the entries between two ids.")
        .cost(RANGE_COST)
        .arguments(&[KEY, START, END, COUNT])
        .history(&[("6.2.0", "Added ends that are excluded.")]),
    docs("xrevrange", "5.0.0", "Returns the entries between two ids, the last one first.")
        .cost(RANGE_COST)
        .arguments(&[KEY, END, START, COUNT])
        .history(&[("6.2.0", "Added ends that are excluded.")]),
    docs("xdel", "5.0.0", "Deletes entries of a stream.").cost(BY_ID).arguments(&[KEY, IDS]),
    docs("xtrim", "5.0.0", "Removes entries from the beginning of a stream.")
        .cost(TRIM_COST)
        .arguments(&[KEY, TRIM, REFERENCES])
        .history(&[("6.2.0", TRIM_HISTORY)])
        .tips(VARIES),
    docs(
        "xsetid",
        "5.0.0",
        "Sets the last id and the counters of a stream: for files and replicas.",
    )
    .cost("O(1)")
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
    ])
    .history(&[("7.0.0", "Added the options `ENTRIESADDED` and `MAXDELETEDID`.")]),
    docs("xread", "5.0.0", "Returns the entries after an id of each stream, or waits for some.")
        .cost(RANGE_COST)
        .arguments(&[COUNT, MILLISECONDS, STREAMS]),
    docs(
        "xreadgroup",
        "5.0.0",
        "Gives a consumer entries that no consumer of its group has got, or waits for some.",
    )
    .cost("O(N*log(M)) for N entries that are answered and M that are pending.")
    .arguments(&[
        block("group-block", &[GROUP, CONSUMER]).token("GROUP"),
        COUNT,
        MILLISECONDS,
        argument("min-idle-time", ArgumentKind::Integer).token("CLAIM").since("8.4.0").optional(),
        word("noack", "NOACK").optional(),
        STREAMS,
    ]),
    docs("xdelex", "8.2.0", "Deletes entries of a stream, depending on its groups.")
        .cost(BY_ID)
        .arguments(&[KEY, REFERENCES, ID_BLOCK]),
    docs("xackdel", "8.2.0", "Acknowledges entries for a group, and deletes them.")
        .cost(BY_ID)
        .arguments(&[KEY, GROUP, REFERENCES, ID_BLOCK]),
    docs("xack", "5.0.0", "Acknowledges entries for a group.")
        .cost(BY_ID)
        .arguments(&[KEY, GROUP, IDS]),
    docs("xpending", "5.0.0", "Returns the entries that a group has got and not acknowledged.")
        .cost("O(N) for N entries that are looked at.")
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
        ])
        .history(&[("6.2.0", "Added the option `IDLE` and ends that are excluded.")])
        .tips(VARIES),
    docs("xclaim", "5.0.0", "Gives pending entries to a consumer.")
        .cost("O(log(N)) for each id that is given, of N.")
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
        ])
        .tips(VARIES),
    docs("xautoclaim", "6.2.0", "Gives pending entries to a consumer, whichever are old enough.")
        .cost("O(N) for N entries that are looked at.")
        .arguments(&[KEY, GROUP, CONSUMER, MIN_IDLE, START, COUNT, JUSTID])
        .history(&[("7.0.0", "Answers the ids of entries that are no longer in the stream.")])
        .tips(VARIES),
    docs("xgroup", "5.0.0", "Makes, changes and removes consumer groups.")
        .cost(DEPENDS_ON_SUBCOMMAND),
    docs("xgroup|create", "5.0.0", "Makes a group.")
        .cost("O(1)")
        .arguments(&[
            KEY,
            GROUP,
            GROUP_START,
            word("mkstream", "MKSTREAM").optional(),
            ENTRIES_READ,
        ])
        .history(&[("7.0.0", "Added the option `ENTRIESREAD`.")]),
    docs("xgroup|setid", "5.0.0", "Sets how far a group has read.")
        .cost("O(1)")
        .arguments(&[KEY, GROUP, GROUP_START, ENTRIES_READ])
        .history(&[("7.0.0", "Added the option `ENTRIESREAD`.")]),
    docs("xgroup|destroy", "5.0.0", "Removes a group.")
        .cost("O(N) for N pending entries.")
        .arguments(&[KEY, GROUP]),
    docs("xgroup|createconsumer", "6.2.0", "Adds a consumer to a group.")
        .cost("O(1)")
        .arguments(&[KEY, GROUP, CONSUMER]),
    docs("xgroup|delconsumer", "5.0.0", "Removes a consumer with its pending entries.")
        .cost("O(N) for N pending entries.")
        .arguments(&[KEY, GROUP, CONSUMER]),
    docs_of_help("xgroup|help", "5.0.0"),
    docs("xinfo", "5.0.0", "Describes streams, their groups and consumers.")
        .cost(DEPENDS_ON_SUBCOMMAND),
    docs("xinfo|consumers", "5.0.0", "Describes the consumers of a group.")
        .cost("O(N) for N consumers.")
        .arguments(&[KEY, GROUP])
        .history(&[("7.2.0", "Added `inactive`, and changed the meaning of `idle`.")])
        .tips(VARIES),
    docs("xinfo|groups", "5.0.0", "Describes the groups of a stream.")
        .cost("O(N) for N groups.")
        .arguments(&[KEY])
        .history(&[("7.0.0", "Added `entries-read` and `lag`.")]),
    docs("xinfo|stream", "5.0.0", "Describes a stream.")
        .cost("O(1), and with FULL O(N) for N entries that are shown.")
        .arguments(&[KEY, block("full-block", &[word("full", "FULL"), COUNT]).optional()])
        .history(&[
            ("6.0.0", "Added the option `FULL`."),
            ("7.0.0", "Added the numbers about ids, and `entries-read` and `lag` of groups."),
            ("7.2.0", "Added `active-time`, and changed the meaning of `seen-time`."),
        ]),
    docs_of_help("xinfo|help", "5.0.0"),
];
