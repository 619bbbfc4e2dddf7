//! The rows of CLIENT, and their documentation.

use super::*;
use engine::command::{
    ADMIN, ALLOW_BUSY, Argument, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, FOLLOWS, Flags, Group,
    LOADING, NO_KEYS, NO_MULTI, NOSCRIPT, OF_CONNECTION, STALE, STOPS_THE_WORLD, argument, block,
    docs, docs_of_help, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::{container, help};

/// Flags of commands that change the client's own connection.
const OWN: Flags = NOSCRIPT | LOADING | STALE;
/// Flags of commands that concern other connections.
const OTHERS: Flags = ADMIN | OWN;

/// Flags of commands that choose how later ones are answered.
const CHOOSES: Flags = OWN | OF_CONNECTION | NO_MULTI;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Connection.rows([container("client", SUBCOMMANDS)]);

const SUBCOMMANDS: &[Command] = &Group::Connection.under("client").rows([
    row("capa", capa, -3, OWN | OF_CONNECTION | ALLOW_BUSY, NO_KEYS),
    row("durability", durability, -2, CHOOSES, NO_KEYS),
    row("getname", getname, 2, OWN, NO_KEYS),
    row("getredir", getredir, 2, OWN, NO_KEYS),
    help(),
    row("id", id, 2, OWN, NO_KEYS),
    row("import-source", import_source, 3, OWN | OF_CONNECTION, NO_KEYS),
    row("info", info, 2, OWN, NO_KEYS),
    row("kill", kill, -3, OTHERS, NO_KEYS),
    row("list", list, -2, OTHERS, NO_KEYS),
    row("no-evict", no_evict, 3, OTHERS | OF_CONNECTION, NO_KEYS),
    row("no-touch", no_touch, 3, OWN | OF_CONNECTION, NO_KEYS),
    row("pause", pause, -3, OTHERS | STOPS_THE_WORLD, NO_KEYS),
    // A transaction's own writes have no position before its end.
    row("position", position, 2, OWN | OF_CONNECTION | FOLLOWS | NO_MULTI, NO_KEYS),
    row("readafter", readafter, -3, CHOOSES, NO_KEYS),
    row("reply", reply, 3, OWN | OF_CONNECTION, NO_KEYS),
    row("setinfo", setinfo, 4, OWN | OF_CONNECTION, NO_KEYS),
    row("setname", setname, 3, OWN | OF_CONNECTION, NO_KEYS),
    row("unblock", unblock, -3, OTHERS, NO_KEYS),
    row("unpause", unpause, 2, OTHERS, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const ON_OR_OFF: &[Argument] = &[word("on", "ON"), word("off", "OFF")];
const CLASSES: &[Argument] = &[
    word("normal", "NORMAL"),
    word("master", "MASTER"),
    word("replica", "REPLICA"),
    word("pubsub", "PUBSUB"),
];

const YES_OR_NO: &[Argument] = &[word("yes", "YES"), word("no", "NO")];
/// An optional word followed by a text.
const fn text(name: &'static str, token: &'static str) -> Argument {
    argument(name, ArgumentKind::String).token(token).optional()
}

/// The further filters of Valkey: in LIST since 8.1.
const LIST_FILTERS: [Argument; 5] = [
    text("username", "USER").since("8.1.0"),
    text("addr", "ADDR").since("8.1.0"),
    text("laddr", "LADDR").since("8.1.0"),
    one_of("skipme", YES_OR_NO).token("SKIPME").optional().since("8.1.0"),
    argument("maxage", ArgumentKind::Integer).token("MAXAGE").optional().since("8.1.0"),
];

/// And in LIST and KILL since 9.0.
const NEWEST_FILTERS: [Argument; 20] = [
    text("name", "NAME").since("9.0.0"),
    argument("idle", ArgumentKind::Integer).token("IDLE").optional().since("9.0.0"),
    text("flags", "FLAGS").since("9.0.0"),
    text("lib-name", "LIB-NAME").since("9.0.0"),
    text("lib-ver", "LIB-VER").since("9.0.0"),
    argument("db", ArgumentKind::Integer).token("DB").optional().since("9.0.0"),
    text("capa", "CAPA").since("9.0.0"),
    text("ip", "IP").since("9.0.0"),
    one_of("not-client-type", CLASSES).token("NOT-TYPE").optional().since("9.0.0"),
    argument("not-client-id", ArgumentKind::Integer)
        .token("NOT-ID")
        .optional()
        .multiple()
        .since("9.0.0"),
    text("not-username", "NOT-USER").since("9.0.0"),
    text("not-addr", "NOT-ADDR").since("9.0.0"),
    text("not-laddr", "NOT-LADDR").since("9.0.0"),
    text("not-name", "NOT-NAME").since("9.0.0"),
    text("not-flags", "NOT-FLAGS").since("9.0.0"),
    text("not-lib-name", "NOT-LIB-NAME").since("9.0.0"),
    text("not-lib-ver", "NOT-LIB-VER").since("9.0.0"),
    argument("not-db", ArgumentKind::Integer).token("NOT-DB").optional().since("9.0.0"),
    text("not-capa", "NOT-CAPA").since("9.0.0"),
    text("not-ip", "NOT-IP").since("9.0.0"),
];

/// One list after the other.
const fn joined<const N: usize>(lists: &[&[Argument]]) -> [Argument; N] {
    let mut all = [word("", ""); N];
    let (mut list, mut next) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            all[next] = lists[list][at];
            (at, next) = (at + 1, next + 1);
        }
        list += 1;
    }
    assert!(next == N);
    all
}

const LIST_ARGUMENTS: &[Argument] = &joined::<27>(&[
    &[
        one_of("client-type", CLASSES).token("TYPE").optional().since("5.0.0"),
        argument("client-id", ArgumentKind::Integer)
            .token("ID")
            .optional()
            .multiple()
            .since("6.2.0"),
    ],
    &LIST_FILTERS,
    &NEWEST_FILTERS,
]);

const KILL_FILTERS: &[Argument] = &joined::<27>(&[
    &[
        argument("client-id", ArgumentKind::Integer).token("ID").optional().since("2.8.12"),
        one_of(
            "client-type",
            &[
                word("normal", "NORMAL"),
                word("master", "MASTER").since("3.2.0"),
                word("slave", "SLAVE"),
                word("replica", "REPLICA").since("5.0.0"),
                word("pubsub", "PUBSUB"),
            ],
        )
        .token("TYPE")
        .optional()
        .since("2.8.12"),
        text("username", "USER"),
        text("addr", "ADDR").shown("ip:port"),
        text("laddr", "LADDR").shown("ip:port").since("6.2.0"),
        one_of("skipme", YES_OR_NO).token("SKIPME").optional(),
        argument("maxage", ArgumentKind::Integer).token("MAXAGE").optional().since("7.4.0"),
    ],
    &NEWEST_FILTERS,
]);

const KILL_ARGUMENTS: &[Argument] = &[one_of(
    "filter",
    &[
        argument("old-format", ArgumentKind::String).shown("ip:port").deprecated_since("2.8.12"),
        one_of("new-format", KILL_FILTERS).multiple(),
    ],
)];

const DOCS: &[Docs] = &[
    docs("client", "2.4.0", "Commands about connections.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("client|capa", "8.0.0", "Tells the server what the client can do. It is Valkey's.")
        .cost("O(1)")
        .arguments(&[argument("capability", ArgumentKind::String).multiple()]),
    docs(
        "client|durability",
        "7.0.0",
        "Chooses how durable the connection's writes are before their replies leave.",
    )
    .cost("O(1)")
    .arguments(&[one_of(
        "durability",
        &[
            word("default", "DEFAULT"),
            word("memory", "MEMORY"),
            word("fsync", "FSYNC"),
            word("quorum", "QUORUM"),
            block(
                "replicas",
                &[
                    argument("numreplicas", ArgumentKind::Integer).token("REPLICAS"),
                    word("fsync", "FSYNC").optional(),
                ],
            ),
        ],
    )
    .optional()]),
    docs("client|getname", "2.6.9", "Returns the connection's name.").cost("O(1)"),
    docs(
        "client|getredir",
        "6.0.0",
        "Returns the client that gets this connection's invalidations.",
    )
    .cost("O(1)"),
    docs_of_help("client|help", "5.0.0"),
    docs("client|id", "5.0.0", "Returns the connection's number.").cost("O(1)"),
    docs(
        "client|import-source",
        "8.1.0",
        "Lets the connection find expired keys, in import-mode. It is Valkey's.",
    )
    .cost("O(1)")
    .arguments(&[one_of("enabled", ON_OR_OFF)]),
    docs("client|info", "6.2.0", "Describes the connection in one line.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
    docs(
        "client|kill",
        "2.4.0",
        "Closes connections: the one with an address, or all that match the filters.",
    )
    .cost("O(N) for N connections.")
    .arguments(KILL_ARGUMENTS)
    .history(&[
        ("2.8.12", "Takes filters."),
        ("2.8.12", "The filter `ID`."),
        ("3.2.0", "The type `master`."),
        ("5.0.0", "The type `replica`, which was `slave`; the old word is still understood."),
        ("6.2.0", "The filter `LADDR`."),
        ("7.4.0", "The filter `MAXAGE`."),
    ]),
    docs("client|list", "2.4.0", "Describes all connections, or some of them, in a line each.")
        .cost("O(N) for N connections.")
        .arguments(LIST_ARGUMENTS)
        .history(&[
            ("2.8.12", "The field `id`."),
            ("5.0.0", "The filter `TYPE`."),
            ("6.0.0", "The field `user`."),
            ("6.2.0", "The fields `argv-mem`, `tot-mem`, `laddr` and `redir`, the filter `ID`."),
            ("7.0.0", "The fields `resp`, `multi-mem`, `rbs` and `rbp`."),
            ("7.0.3", "The field `ssub`."),
            ("7.2.0", "The fields `lib-name` and `lib-ver`."),
            ("7.4.0", "The field `watch`."),
            ("8.0.0", "The field `io-thread`."),
        ])
        .tips(&["nondeterministic_output"]),
    docs("client|no-evict", "7.0.0", "Exempts the connection from maxmemory-clients.")
        .cost("O(1)")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    docs(
        "client|no-touch",
        "7.2.0",
        "Lets the connection read without making keys look recently used.",
    )
    .cost("O(1)")
    .arguments(&[one_of("enabled", ON_OR_OFF)]),
    docs("client|pause", "3.0.0", "Suspends commands for a time: all, or those that write.")
        .cost("O(1)")
        .arguments(&[
            argument("timeout", ArgumentKind::Integer),
            one_of("mode", &[word("write", "WRITE"), word("all", "ALL")]).optional().since("6.2.0"),
        ])
        .history(&[("6.2.0", "The mode, and with it `WRITE`.")]),
    docs(
        "client|position",
        "7.0.0",
        "Returns the position in the stream of writes after the connection's last one.",
    )
    .cost("O(1)"),
    docs(
        "client|readafter",
        "7.0.0",
        "Has the connection's reads wait until the server has applied everything up to a position.",
    )
    .cost("O(1)")
    .arguments(&[
        argument("position", ArgumentKind::String),
        argument("milliseconds", ArgumentKind::Integer).token("TIMEOUT").optional(),
    ]),
    docs("client|reply", "3.2.0", "Chooses whether the connection gets replies.")
        .cost("O(1)")
        .arguments(&[one_of(
            "action",
            &[word("on", "ON"), word("off", "OFF"), word("skip", "SKIP")],
        )]),
    docs("client|setinfo", "7.2.0", "Tells the client library's name or version.")
        .cost("O(1)")
        .arguments(&[one_of(
            "attr",
            &[
                argument("libname", ArgumentKind::String).token("LIB-NAME"),
                argument("libver", ArgumentKind::String).token("LIB-VER"),
            ],
        )])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs("client|setname", "2.6.9", "Names the connection.")
        .cost("O(1)")
        .arguments(&[argument("connection-name", ArgumentKind::String)])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs("client|unblock", "5.0.0", "Ends the waiting of a connection in a blocking command.")
        .cost("O(log(N)) for N connections.")
        .arguments(&[
            argument("client-id", ArgumentKind::Integer),
            one_of("unblock-type", &[word("timeout", "TIMEOUT"), word("error", "ERROR")])
                .optional(),
        ]),
    docs("client|unpause", "6.2.0", "Ends CLIENT PAUSE.")
        .cost("O(N) for N clients that are suspended."),
];
