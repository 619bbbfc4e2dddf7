//! The rows of CLIENT.

use super::*;
use crate::command::{
    ADMIN, ALLOW_BUSY, Argument, ArgumentKind, CLOSES_GATES, Command, Group, LOADING, NOSCRIPT,
    STALE, argument, one_of, word,
};

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

/// Flags of commands that change the client's own connection.
const OWN: u32 = NOSCRIPT | LOADING | STALE;
/// Flags of commands that concern other connections.
const OTHERS: u32 = ADMIN | OWN;

/// A subcommand of CLIENT.
const fn sub(
    name: &'static str,
    handler: crate::command::Handler,
    arity: i32,
    flags: u32,
    since: &'static str,
) -> Command {
    Command::sub("client", name, handler, arity, Group::Connection, since).flags(flags)
}

const SUBCOMMANDS: &[Command] = &[
    sub("capa", capa, -3, OWN | ALLOW_BUSY, "8.0.0")
        .docs("O(1)", "Tells the server what the client can do. It is Valkey's.")
        .arguments(&[argument("capability", ArgumentKind::String).multiple()]),
    sub("getname", getname, 2, OWN, "2.6.9").docs("O(1)", "Returns the connection's name."),
    sub("getredir", getredir, 2, OWN, "6.0.0")
        .docs("O(1)", "Returns the client that gets this connection's invalidations."),
    Command::help("client", Group::Connection, "5.0.0"),
    sub("id", id, 2, OWN, "5.0.0").docs("O(1)", "Returns the connection's number."),
    sub("import-source", import_source, 3, OWN, "8.1.0")
        .docs("O(1)", "Lets the connection find expired keys, in import-mode. It is Valkey's.")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    sub("info", info, 2, OWN, "6.2.0")
        .docs("O(1)", "Describes the connection in one line.")
        .tips(&["nondeterministic_output"]),
    sub("kill", kill, -3, OTHERS, "2.4.0")
        .docs(
            "O(N) for N connections.",
            "Closes connections: the one with an address, or all that match the filters.",
        )
        .history(&[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "The filter `ID`."),
            ("3.2.0", "The type `master`."),
            ("5.0.0", "The type `replica`, which was `slave`; the old word is still understood."),
            ("6.2.0", "The filter `LADDR`."),
            ("7.4.0", "The filter `MAXAGE`."),
        ])
        .arguments(KILL_ARGUMENTS),
    sub("list", list, -2, OTHERS, "2.4.0")
        .docs(
            "O(N) for N connections.",
            "Describes all connections, or some of them, in a line each.",
        )
        .tips(&["nondeterministic_output"])
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
        .arguments(LIST_ARGUMENTS),
    sub("no-evict", no_evict, 3, OTHERS, "7.0.0")
        .docs("O(1)", "Exempts the connection from maxmemory-clients.")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    sub("no-touch", no_touch, 3, OWN, "7.2.0")
        .docs("O(1)", "Lets the connection read without making keys look recently used.")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    sub("pause", pause, -3, OTHERS | CLOSES_GATES, "3.0.0")
        .docs("O(1)", "Suspends commands for a time: all, or those that write.")
        .history(&[("6.2.0", "The mode, and with it `WRITE`.")])
        .arguments(&[
            argument("timeout", ArgumentKind::Integer),
            one_of("mode", &[word("write", "WRITE"), word("all", "ALL")]).optional().since("6.2.0"),
        ]),
    sub("reply", reply, 3, OWN, "3.2.0")
        .docs("O(1)", "Chooses whether the connection gets replies.")
        .arguments(&[one_of(
            "action",
            &[word("on", "ON"), word("off", "OFF"), word("skip", "SKIP")],
        )]),
    sub("setinfo", setinfo, 4, OWN, "7.2.0")
        .docs("O(1)", "Tells the client library's name or version.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[one_of(
            "attr",
            &[
                argument("libname", ArgumentKind::String).token("LIB-NAME"),
                argument("libver", ArgumentKind::String).token("LIB-VER"),
            ],
        )]),
    sub("setname", setname, 3, OWN, "2.6.9")
        .docs("O(1)", "Names the connection.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[argument("connection-name", ArgumentKind::String)]),
    sub("unblock", unblock, -3, OTHERS, "5.0.0")
        .docs(
            "O(log(N)) for N connections.",
            "Ends the waiting of a connection in a blocking command.",
        )
        .arguments(&[
            argument("client-id", ArgumentKind::Integer),
            one_of("unblock-type", &[word("timeout", "TIMEOUT"), word("error", "ERROR")])
                .optional(),
        ]),
    sub("unpause", unpause, 2, OTHERS, "6.2.0")
        .docs("O(N) for N clients that are suspended.", "Ends CLIENT PAUSE."),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] =
    &[Command::new("client", container, -2, Group::Connection, "2.4.0")
        .docs("Depends on subcommand.", "Commands about connections.")
        .subcommands(SUBCOMMANDS)];
