//! The rows of this family.

use super::{delete, dump, fcall, fcall_ro, flush, kill, list, load, restore, stats};
use crate::command::{
    ACCESS, ALLOW_BUSY, Argument, ArgumentKind, CLOSES_GATES, Command, DENYOOM, Flags, Group,
    KeySpec, MAY_REPLICATE, MOVABLE_KEYS, NO_MANDATORY_KEYS, NOSCRIPT, READONLY, RO, RW, SCRIPT,
    SKIP_MONITOR, STALE, UPDATE, WRITE, argument, key, one_of, word,
};
use crate::engine::Handler;

const FLAGS: Flags =
    NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | MAY_REPLICATE | SCRIPT;
const FLAGS_RO: Flags =
    READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | SCRIPT;
const CHANGES: Flags = WRITE | NOSCRIPT | CLOSES_GATES;
const CATEGORIES: &[&str] = &["scripting"];
const ON_ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

const ARGUMENTS: &[Argument] = &[
    argument("function", ArgumentKind::String),
    argument("numkeys", ArgumentKind::Integer),
    key("key", 0).optional().multiple(),
    argument("arg", ArgumentKind::String).optional().multiple(),
];
const COST: &str = "Depends on the function that is executed.";

const fn sub(
    name: &'static str,
    handler: Handler,
    arity: i32,
    flags: Flags,
    since: &'static str,
) -> Command {
    Command::sub("function", name, handler, arity, Group::Scripting, since)
        .flags(flags)
        .categories(CATEGORIES)
}

const SUBCOMMANDS: &[Command] = &[
    sub("delete", delete, 3, CHANGES, "7.0.0")
        .docs("O(1)", "Removes a library.")
        .tips(ON_ALL_SHARDS)
        .arguments(&[argument("library-name", ArgumentKind::String)]),
    sub("dump", dump, 2, NOSCRIPT, "7.0.0")
        .docs("O(N) for N functions.", "Returns all libraries as a payload for FUNCTION RESTORE."),
    sub("flush", flush, -2, CHANGES, "7.0.0")
        .docs("O(N) for N functions.", "Removes all libraries.")
        .tips(ON_ALL_SHARDS)
        .arguments(&[
            one_of("flush-type", &[word("async", "ASYNC"), word("sync", "SYNC")]).optional()
        ]),
    Command::help("function", Group::Scripting, "7.0.0").categories(CATEGORIES),
    sub("kill", kill, 2, NOSCRIPT | ALLOW_BUSY, "7.0.0")
        .docs("O(1)", "Ends functions that have run for long and written nothing.")
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    sub("list", list, -2, NOSCRIPT, "7.0.0")
        .docs("O(N) for N functions.", "Lists the libraries and their functions.")
        .tips(&["nondeterministic_output_order"])
        .arguments(&[
            argument("library-name-pattern", ArgumentKind::String).token("LIBRARYNAME").optional(),
            word("withcode", "WITHCODE").optional(),
        ]),
    sub("load", load, -3, CHANGES | DENYOOM, "7.0.0")
        .docs("O(1), and the library's own code.", "Adds a library.")
        .tips(ON_ALL_SHARDS)
        .arguments(&[
            word("replace", "REPLACE").optional(),
            argument("function-code", ArgumentKind::String),
        ]),
    sub("restore", restore, -3, CHANGES | DENYOOM, "7.0.0")
        .docs("O(N) for N functions.", "Adds the libraries of a payload of FUNCTION DUMP.")
        .tips(ON_ALL_SHARDS)
        .arguments(&[
            argument("serialized-value", ArgumentKind::String),
            one_of(
                "policy",
                &[word("flush", "FLUSH"), word("append", "APPEND"), word("replace", "REPLACE")],
            )
            .optional(),
        ]),
    sub("stats", stats, 2, NOSCRIPT | ALLOW_BUSY, "7.0.0")
        .docs("O(1)", "Shows the function that has run for long, and the number of functions.")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
];

/// See the module's text.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("fcall", fcall, -3, Group::Scripting, "7.0.0")
        .flags(FLAGS)
        .categories(CATEGORIES)
        .keys(&[KeySpec::counted(RW | ACCESS | UPDATE, 2).notes(
            "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
        )])
        .docs(COST, "Calls a function.")
        .arguments(ARGUMENTS),
    Command::new("fcall_ro", fcall_ro, -3, Group::Scripting, "7.0.0")
        .flags(FLAGS_RO)
        .categories(CATEGORIES)
        .keys(&[KeySpec::counted(RO | ACCESS, 2).notes(
            "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
        )])
        .docs(COST, "Calls a function that writes nothing.")
        .arguments(ARGUMENTS),
    Command::container("function", Group::Scripting, "7.0.0", SUBCOMMANDS)
        .summary("Commands about libraries of functions."),
];
