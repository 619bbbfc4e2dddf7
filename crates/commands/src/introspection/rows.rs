//! The rows of COMMAND and MONITOR, and their documentation.

use super::{command, count, getkeys, getkeysandflags, info, list, monitor};
use engine::command::{
    ADMIN, Argument, ArgumentKind, Docs, Group, IN_CONNECTION, IN_STREAM, LOADING, NO_KEYS,
    NOSCRIPT, OF_CONNECTION, STALE, argument, docs, docs_of_help, one_of,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::help;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([
    row("command", command, -1, LOADING | STALE | IN_CONNECTION, NO_KEYS).subcommands(SUBCOMMANDS),
    row("monitor", monitor, 1, OF_CONNECTION | ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
]);

const SUBCOMMANDS: &[Command] = &Group::Server.under("command").rows([
    row("count", count, 2, LOADING | STALE | IN_CONNECTION, NO_KEYS),
    row("docs", super::docs, -2, LOADING | STALE | IN_CONNECTION, NO_KEYS),
    row("getkeys", getkeys, -3, LOADING | STALE | IN_CONNECTION, NO_KEYS),
    row("getkeysandflags", getkeysandflags, -3, LOADING | STALE | IN_CONNECTION, NO_KEYS),
    help().categories(&["connection"]),
    row("info", info, -2, LOADING | STALE | IN_CONNECTION | IN_STREAM, NO_KEYS),
    row("list", list, -2, LOADING | STALE | IN_CONNECTION, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

/// The cost of subcommands that look commands up by name.
const PER_COMMAND: &str = "O(N) for N commands that are asked for.";

/// The cost of subcommands that go through all commands.
const PER_ROW: &str = "O(N) for N commands in all.";

/// The cost of subcommands that look at a whole command.
const PER_ARGUMENT: &str = "O(N) for N arguments.";

/// A command with its arguments.
const COMMAND_LINE: &[Argument] = &[
    argument("command", ArgumentKind::String),
    argument("arg", ArgumentKind::String).optional().multiple(),
];

/// Commands are answered in any order.
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];

const DOCS: &[Docs] = &[
    docs("command", "2.8.13", "Describes all commands.").cost(PER_ROW).tips(ANY_ORDER),
    docs("command|count", "2.8.13", "Counts the commands.").cost("O(1)"),
    docs("command|docs", "7.0.0", "Describes commands, or all of them, for people.")
        .cost(PER_COMMAND)
        .arguments(&[argument("command-name", ArgumentKind::String).optional().multiple()])
        .tips(ANY_ORDER),
    docs("command|getkeys", "2.8.13", "Returns the keys among the arguments of a command.")
        .cost(PER_ARGUMENT)
        .arguments(COMMAND_LINE),
    docs(
        "command|getkeysandflags",
        "7.0.0",
        "Returns the keys among the arguments of a command, and what happens to them.",
    )
    .cost(PER_ARGUMENT)
    .arguments(COMMAND_LINE),
    docs_of_help("command|help", "5.0.0"),
    docs("command|info", "2.8.13", "Describes commands, or all of them, for programs.")
        .cost(PER_COMMAND)
        .arguments(&[argument("command-name", ArgumentKind::String).optional().multiple()])
        .history(&[("7.0.0", "Without a name it describes all commands.")])
        .tips(ANY_ORDER),
    docs("command|list", "7.0.0", "Lists the names of commands.")
        .cost(PER_ROW)
        .arguments(&[one_of(
            "filterby",
            &[
                argument("module-name", ArgumentKind::String).token("MODULE"),
                argument("category", ArgumentKind::String).token("ACLCAT"),
                argument("pattern", ArgumentKind::Pattern).token("PATTERN"),
            ],
        )
        .token("FILTERBY")
        .optional()])
        .tips(ANY_ORDER),
    docs("monitor", "1.0.0", "Shows the commands of all connections as they run."),
];
