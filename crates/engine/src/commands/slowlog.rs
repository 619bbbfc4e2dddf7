//! SLOWLOG: the last commands that took long.

use crate::command::{ADMIN, ArgumentKind, Command, Group, LOADING, STALE, argument};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};

/// Entries that GET answers unless it is told how many.
const DEFAULT_COUNT: usize = 10;

/// SLOWLOG GET [count]
fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.bytes()?;
    if args.len() > 1 {
        return Err(CommandError::subcommand_syntax("slowlog", subcommand));
    }
    let count = if args.is_empty() { DEFAULT_COUNT } else { count(args)? };
    let commands = cx.engine.slowlog.newest(count);
    cx.reply.array(commands.len());
    for command in &commands {
        cx.reply.array(6);
        cx.reply.integer(command.id as i64);
        cx.reply.integer(command.at as i64);
        cx.reply.integer(command.microseconds as i64);
        cx.reply.array(command.argv.len());
        command.argv.iter().for_each(|argument| cx.reply.bulk(argument));
        cx.reply.bulk(command.address.as_bytes());
        cx.reply.bulk(&command.name);
    }
    Ok(())
}

/// How many entries are wanted; -1 means all.
fn count(args: &mut Args<'_>) -> Result<usize, CommandError> {
    match args.i64() {
        Ok(-1) => Ok(usize::MAX),
        Ok(count @ 0..) => Ok(count as usize),
        _ => Err(CommandError::text("ERR count should be greater than or equal to -1")),
    }
}

/// SLOWLOG LEN
fn len(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.slowlog.len() as i64);
    Ok(())
}

/// SLOWLOG RESET
fn reset(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.slowlog.reset();
    cx.reply.ok();
    Ok(())
}

const SUBCOMMANDS: &[Command] = &[
    Command::sub("slowlog", "get", get, -2, Group::Server, "2.2.12")
        .flags(ADMIN | LOADING | STALE)
        .docs(
            "O(N) for N entries that are answered.",
            "Shows the newest entries: number, time, microseconds, arguments, client.",
        )
        .tips(&["request_policy:all_nodes", "nondeterministic_output"])
        .arguments(&[argument("count", ArgumentKind::Integer).optional()])
        .history(&[("4.0.0", "Shows the client's address and name.")]),
    Command::sub("slowlog", "len", len, 2, Group::Server, "2.2.12")
        .flags(ADMIN | LOADING | STALE)
        .docs("O(1)", "Counts the entries.")
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    Command::sub("slowlog", "reset", reset, 2, Group::Server, "2.2.12")
        .flags(ADMIN | LOADING | STALE)
        .docs("O(N) for N entries of the log.", "Forgets all entries.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    Command::help("slowlog", Group::Server, "6.2.0"),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] =
    &[Command::container("slowlog", Group::Server, "2.2.12", SUBCOMMANDS)
        .summary("Commands about commands that took long.")];

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn entries_are_numbered_shortened_and_bounded() {
        let mut server = TestServer::new();
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
}
