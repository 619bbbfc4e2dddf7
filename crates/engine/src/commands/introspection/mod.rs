//! COMMAND and MONITOR: what the server tells about its commands.
//!
//! All answers of COMMAND come from the rows.

mod docs;
mod info;
mod keys;

use crate::command::{
    ADMIN, Argument, ArgumentKind, Command, Group, Handler, LOADING, NOSCRIPT, STALE, argument,
    one_of,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use crate::registry::{Registry, Row};

/// Finds a row by "get" or "config|get".
fn find(commands: &Registry, name: &[u8]) -> Option<&'static Row> {
    match name.iter().position(|byte| *byte == b'|') {
        None => commands.find(name),
        Some(at) => commands.find_subcommand(commands.find(&name[..at])?, &name[at + 1..]),
    }
}

/// The rows that are no subcommands.
fn top_level(commands: &Registry) -> impl Iterator<Item = &'static Command> {
    commands.rows().iter().map(|row| row.command).filter(|command| command.parent.is_none())
}

/// COMMAND
fn command(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    info::reply_all(&mut cx.reply, cx.engine.commands.rows());
    Ok(())
}

/// COMMAND COUNT
fn count(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(top_level(cx.engine.commands).count() as i64);
    Ok(())
}

/// COMMAND INFO [command-name [command-name ...]]
fn info(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.is_empty() {
        info::reply_all(&mut cx.reply, cx.engine.commands.rows());
        return Ok(());
    }
    cx.reply.array(args.len());
    while let Ok(name) = args.bytes() {
        match find(cx.engine.commands, name) {
            Some(row) => info::reply(&mut cx.reply, row.command),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// COMMAND DOCS [command-name [command-name ...]]
fn docs(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let wanted: Vec<&Command> = if args.is_empty() {
        top_level(cx.engine.commands).collect()
    } else {
        args.rest()
            .iter()
            .filter_map(|name| find(cx.engine.commands, name))
            .map(|row| row.command)
            .collect()
    };
    cx.reply.map(wanted.len());
    for command in wanted {
        docs::reply_named(&mut cx.reply, command);
    }
    Ok(())
}

/// Which commands COMMAND LIST names.
enum Filter<'a> {
    None,
    /// There are no modules, so it finds none.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl<'a> Filter<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Filter<'a>, CommandError> {
        if args.is_empty() {
            return Ok(Filter::None);
        }
        if args.len() != 3 || !args.word("filterby") {
            return Err(CommandError::SYNTAX);
        }
        if args.word("module") {
            Ok(Filter::Module)
        } else if args.word("aclcat") {
            Ok(Filter::Category(args.bytes()?))
        } else if args.word("pattern") {
            Ok(Filter::Pattern(args.bytes()?))
        } else {
            Err(CommandError::SYNTAX)
        }
    }

    fn admits(&self, command: &Command, name: &str) -> bool {
        match self {
            Filter::None => true,
            Filter::Module => false,
            Filter::Category(wanted) => {
                let own = command.all_categories();
                own.iter().any(|category| category.as_bytes().eq_ignore_ascii_case(wanted))
            }
            Filter::Pattern(pattern) => base::glob::matches_ignoring_case(pattern, name.as_bytes()),
        }
    }
}

/// COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]
fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let filter = Filter::parse(args)?;
    let mark = cx.reply.mark();
    let mut found = 0;
    for row in cx.engine.commands.public_rows() {
        let name = row.command.full_name();
        if filter.admits(row.command, &name) {
            cx.reply.bulk(name.as_bytes());
            found += 1;
        }
    }
    cx.reply.close_array(mark, found);
    Ok(())
}

/// COMMAND GETKEYS command [argument ...]
fn getkeys(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let argv = args.rest();
    let keys = keys::find(cx.engine.commands, argv)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.bulk(argv.at(key.index));
    }
    Ok(())
}

/// COMMAND GETKEYSANDFLAGS command [argument ...]
fn getkeysandflags(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let argv = args.rest();
    let keys = keys::find(cx.engine.commands, argv)?;
    cx.reply.array(keys.len());
    for key in keys {
        cx.reply.array(2);
        cx.reply.bulk(argv.at(key.index));
        info::reply_key_flags(&mut cx.reply, key.flags);
    }
    Ok(())
}

/// MONITOR
fn monitor(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.nested {
        return Err(CommandError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // A second MONITOR is not answered, as in Redis.
    if !std::mem::replace(&mut cx.session.monitor, true) {
        cx.engine.pubsub.add_monitor(&cx.session.client);
        cx.session.publish_state();
        cx.reply.ok();
    }
    Ok(())
}

/// A subcommand of COMMAND.
const fn sub(name: &'static str, handler: Handler, arity: i32, since: &'static str) -> Command {
    Command::sub("command", name, handler, arity, Group::Server, since)
        .flags(LOADING | STALE)
        .categories(&["connection"])
}

/// The complexity of subcommands that look commands up by name.
const PER_COMMAND: &str = "O(N) for N commands that are asked for.";
/// The complexity of subcommands that go through all commands.
const PER_ROW: &str = "O(N) for N commands in all.";
/// The complexity of subcommands that look at a whole command.
const PER_ARGUMENT: &str = "O(N) for N arguments.";
/// A command with its arguments.
const COMMAND_LINE: &[Argument] = &[
    argument("command", ArgumentKind::String),
    argument("arg", ArgumentKind::String).optional().multiple(),
];
/// Commands are answered in any order.
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];

const SUBCOMMANDS: &[Command] = &[
    sub("count", count, 2, "2.8.13").docs("O(1)", "Counts the commands."),
    sub("docs", docs, -2, "7.0.0")
        .docs(PER_COMMAND, "Describes commands, or all of them, for people.")
        .tips(ANY_ORDER)
        .arguments(&[argument("command-name", ArgumentKind::String).optional().multiple()]),
    sub("getkeys", getkeys, -3, "2.8.13")
        .docs(PER_ARGUMENT, "Returns the keys among the arguments of a command.")
        .arguments(COMMAND_LINE),
    sub("getkeysandflags", getkeysandflags, -3, "7.0.0")
        .docs(
            PER_ARGUMENT,
            "Returns the keys among the arguments of a command, and what happens to them.",
        )
        .arguments(COMMAND_LINE),
    Command::help("command", Group::Server, "5.0.0").categories(&["connection"]),
    sub("info", info, -2, "2.8.13")
        .docs(PER_COMMAND, "Describes commands, or all of them, for programs.")
        .tips(ANY_ORDER)
        .history(&[("7.0.0", "Without a name it describes all commands.")])
        .arguments(&[argument("command-name", ArgumentKind::String).optional().multiple()]),
    sub("list", list, -2, "7.0.0")
        .docs(PER_ROW, "Lists the names of commands.")
        .tips(ANY_ORDER)
        .arguments(&[one_of(
            "filterby",
            &[
                argument("module-name", ArgumentKind::String).token("MODULE"),
                argument("category", ArgumentKind::String).token("ACLCAT"),
                argument("pattern", ArgumentKind::Pattern).token("PATTERN"),
            ],
        )
        .token("FILTERBY")
        .optional()]),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("command", command, -1, Group::Server, "2.8.13")
        .flags(LOADING | STALE)
        .categories(&["connection"])
        .docs(PER_ROW, "Describes all commands.")
        .tips(ANY_ORDER)
        .subcommands(SUBCOMMANDS),
    Command::new("monitor", monitor, 1, Group::Server, "1.0.0")
        .flags(ADMIN | NOSCRIPT | LOADING | STALE)
        .docs("", "Shows the commands of all connections as they run."),
];
