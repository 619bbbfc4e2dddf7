//! COMMANDLOG and SLOWLOG: the last commands that took long, or whose request or reply was large.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, Argument, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Group, LOADING, NO_KEYS, STALE,
    argument, docs, docs_of_help, one_of, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::{container, help};
use engine::observe::command_log::LogKind;

/// Entries that SLOWLOG GET answers without a count.
const DEFAULT_COUNT: usize = 10;

/// COMMANDLOG GET count type
fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.bytes()?;
    let count = count(args)?;
    show(cx, kind(args)?, count);
    Ok(())
}

/// COMMANDLOG LEN type
fn len(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.bytes()?;
    count_entries(cx, kind(args)?);
    Ok(())
}

/// COMMANDLOG RESET type
fn reset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.bytes()?;
    forget(cx, kind(args)?);
    Ok(())
}

/// SLOWLOG GET [count]
fn slow_get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.bytes()?;
    if args.len() > 1 {
        return Err(CommandError::subcommand_syntax("slowlog", subcommand));
    }
    let count = if args.is_empty() { DEFAULT_COUNT } else { count(args)? };
    show(cx, LogKind::Slow, count);
    Ok(())
}

/// SLOWLOG LEN
fn slow_len(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    count_entries(cx, LogKind::Slow);
    Ok(())
}

/// SLOWLOG RESET
fn slow_reset(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    forget(cx, LogKind::Slow);
    Ok(())
}

fn show(cx: &mut Context<'_>, kind: LogKind, count: usize) {
    let commands = cx.engine.command_logs.of(kind).newest(count);
    cx.reply.array(commands.len());
    for command in &commands {
        cx.reply.array(6);
        cx.reply.integer(command.id as i64);
        cx.reply.integer(command.at as i64);
        cx.reply.integer(command.measure as i64);
        cx.reply.array(command.argv.len());
        command.argv.iter().for_each(|argument| cx.reply.bulk(argument));
        cx.reply.bulk(command.address.as_bytes());
        cx.reply.bulk(&command.name);
    }
}

fn count_entries(cx: &mut Context<'_>, kind: LogKind) {
    cx.reply.integer(cx.engine.command_logs.of(kind).len() as i64);
}

fn forget(cx: &mut Context<'_>, kind: LogKind) {
    cx.engine.command_logs.of(kind).reset();
    cx.reply.ok();
}

/// How many entries are wanted; -1 means all.
fn count(args: &mut Args<'_>) -> Result<usize, CommandError> {
    match args.i64() {
        Ok(-1) => Ok(usize::MAX),
        Ok(count @ 0..) => Ok(count as usize),
        _ => Err(CommandError::text("ERR count should be greater than or equal to -1")),
    }
}

/// Which log is meant.
fn kind(args: &mut Args<'_>) -> Result<LogKind, CommandError> {
    let name = args.bytes()?;
    let kinds = [
        ("slow", LogKind::Slow),
        ("large-request", LogKind::LargeRequest),
        ("large-reply", LogKind::LargeReply),
    ];
    let found = kinds.iter().find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()));
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        CommandError::text(
            "ERR type should be one of the following: slow, large-request, large-reply",
        )
    })
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] =
    &Group::Server.rows([container("commandlog", COMMANDLOG), container("slowlog", SLOWLOG)]);

const COMMANDLOG: &[Command] = &Group::Server.under("commandlog").rows([
    row("get", get, 4, ADMIN | LOADING | STALE, NO_KEYS),
    row("len", len, 3, ADMIN | LOADING | STALE, NO_KEYS),
    row("reset", reset, 3, ADMIN | LOADING | STALE, NO_KEYS),
    help(),
]);

const SLOWLOG: &[Command] = &Group::Server.under("slowlog").rows([
    row("get", slow_get, -2, ADMIN | LOADING | STALE, NO_KEYS),
    row("len", slow_len, 2, ADMIN | LOADING | STALE, NO_KEYS),
    row("reset", slow_reset, 2, ADMIN | LOADING | STALE, NO_KEYS),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

/// The kinds, for the description of the commands.
const KIND: Argument = one_of(
    "type",
    &[
        word("slow", "SLOW"),
        word("large-request", "LARGE-REQUEST"),
        word("large-reply", "LARGE-REPLY"),
    ],
);

const DOCS: &[Docs] = &[
    docs(
        "commandlog",
        "8.1.0",
        "Commands about logs of slow commands, and of large requests and replies.",
    )
    .cost(DEPENDS_ON_SUBCOMMAND),
    docs(
        "commandlog|get",
        "8.1.0",
        "Shows the newest entries of a log: number, time, microseconds or bytes, arguments, \
         client.",
    )
    .cost("O(N) for N entries that are answered.")
    .arguments(&[argument("count", ArgumentKind::Integer), KIND])
    .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    docs("commandlog|len", "8.1.0", "Counts the entries of a log.")
        .cost("O(1)")
        .arguments(&[KIND])
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    docs("commandlog|reset", "8.1.0", "Forgets all entries of a log.")
        .cost("O(N) for N entries of the log.")
        .arguments(&[KIND])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs_of_help("commandlog|help", "8.1.0"),
    docs("slowlog", "2.2.12", "Commands about the log of slow commands.")
        .cost(DEPENDS_ON_SUBCOMMAND),
    docs(
        "slowlog|get",
        "2.2.12",
        "Shows the newest entries: number, time, microseconds, arguments, client.",
    )
    .cost("O(N) for N entries that are answered.")
    .arguments(&[argument("count", ArgumentKind::Integer).optional()])
    .history(&[("4.0.0", "Shows the client's address and name.")])
    .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    docs("slowlog|len", "2.2.12", "Counts the entries.").cost("O(1)").tips(&[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ]),
    docs("slowlog|reset", "2.2.12", "Forgets all entries.")
        .cost("O(N) for N entries of the log.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs_of_help("slowlog|help", "6.2.0"),
];

#[cfg(test)]
mod tests {

    #[test]
    fn entries_are_numbered_shortened_and_bounded() {
        let mut server = crate::testing::server();
        server.text("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2");
        server.text("SLOWLOG RESET");
        server.text(&format!("TIME {}", "x".repeat(200)));
        assert_eq!(server.text("SLOWLOG LEN"), ":1\r\n", "a refused command did not run");
        server.text(&format!("LOLWUT {}", "x".repeat(200)));
        assert_eq!(server.text("SLOWLOG LEN"), ":2\r\n");
        let shown = server.text("SLOWLOG GET -1");
        assert!(shown.starts_with("*2\r\n*6\r\n"), "{shown}");
        assert!(shown.contains(&format!("{}... (72 more bytes)", "x".repeat(128))), "{shown}");
        for line in ["SLOWLOG GET -2", "SLOWLOG GET x"] {
            let error = "-ERR count should be greater than or equal to -1\r\n";
            assert_eq!(server.text(line), error);
        }
        assert!(server.text("SLOWLOG get 1 2").ends_with("for 'get'. Try SLOWLOG HELP.\r\n"));
        assert_eq!(server.text("SLOWLOG GET 0"), "*0\r\n");
    }

    #[test]
    fn requests_and_replies_are_logged_with_their_bytes() {
        let mut server = crate::testing::server();
        let set = format!("SET a {}", "x".repeat(100));
        let shorter = format!("SET a {}", "x".repeat(99));
        server
            .text("CONFIG SET commandlog-request-larger-than 128 commandlog-reply-larger-than 108");
        for kind in ["slow", "large-request", "LARGE-REPLY"] {
            server.text(&format!("COMMANDLOG RESET {kind}"));
            assert_eq!(server.text(&format!("COMMANDLOG LEN {kind}")), ":0\r\n");
        }
        for line in [&set, &shorter, "GET a", &set, "GET a"] {
            server.text(line);
        }
        assert_eq!(server.text("COMMANDLOG LEN large-reply"), ":1\r\n", "107 bytes are too few");
        let shown = server.text("COMMANDLOG GET -1 large-reply");
        assert!(shown.contains("\r\n:108\r\n*2\r\n$3\r\nGET\r\n"), "{shown}");
        assert!(server.text("COMMANDLOG GET -1 large-request").starts_with("*2\r\n"));
        let shown = server.text("COMMANDLOG GET 1 large-request");
        assert!(shown.contains("\r\n:128\r\n*3\r\n$3\r\nSET\r\n"), "{shown}");
        server
            .text("CONFIG SET commandlog-large-request-max-len 1 commandlog-reply-larger-than -1");
        server.text("COMMANDLOG RESET large-reply");
        server.text(&set);
        server.text("GET a");
        assert_eq!(server.text("COMMANDLOG LEN large-request"), ":1\r\n");
        assert_eq!(server.text("COMMANDLOG LEN large-reply"), ":0\r\n");
    }

    #[test]
    fn a_log_must_be_named_and_a_count_right() {
        let mut server = crate::testing::server();
        let count = "-ERR count should be greater than or equal to -1\r\n";
        for line in ["COMMANDLOG GET x slow", "COMMANDLOG GET -2 other"] {
            assert_eq!(server.text(line), count);
        }
        let kind = "-ERR type should be one of the following: slow, large-request, large-reply\r\n";
        for line in ["COMMANDLOG GET -1 other", "COMMANDLOG LEN x", "COMMANDLOG RESET x"] {
            assert_eq!(server.text(line), kind);
        }
        assert!(server.text("COMMANDLOG GET 1").contains("for 'commandlog|get' command"));
        assert!(server.text("COMMANDLOG LEN").contains("for 'commandlog|len' command"));
    }
}
