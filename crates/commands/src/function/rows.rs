//! The rows of FCALL and FUNCTION, and their documentation.

use super::{delete, dump, fcall, fcall_ro, flush, kill, list, load, restore, stats};
use engine::command::{
    ACCESS, ALLOW_BUSY, Argument, ArgumentKind, DENYOOM, DEPENDS_ON_SUBCOMMAND, Docs, Flags, Group,
    KeySpec, MAY_REPLICATE, MOVABLE_KEYS, NO_KEYS, NO_MANDATORY_KEYS, NOSCRIPT, READONLY, RO, RW,
    SCRIPT_BY_NAME, SHOWS_LIBRARIES, SKIP_MONITOR, STALE, STOPS_THE_WORLD, UPDATE, WRITE, argument,
    docs, docs_of_help, key, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::{container, help};

const CALLS: Flags =
    NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | SCRIPT_BY_NAME;
const FLAGS: Flags = CALLS | MAY_REPLICATE;
const FLAGS_RO: Flags = CALLS | READONLY;
const OF_LIBRARIES: Flags = WRITE | NOSCRIPT | STOPS_THE_WORLD;

/// Keys that a function may change.
const CHANGED_KEYS: &[KeySpec] = &[KeySpec::counted(RW | ACCESS | UPDATE, 2)
    .notes("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")];
/// Keys that a function may read.
const READ_KEYS: &[KeySpec] = &[KeySpec::counted(RO | ACCESS, 2)
    .notes("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Scripting.rows([
    row("fcall", fcall, -3, FLAGS, CHANGED_KEYS),
    row("fcall_ro", fcall_ro, -3, FLAGS_RO, READ_KEYS),
    container("function", SUBCOMMANDS),
]);

const SUBCOMMANDS: &[Command] = &Group::Scripting.under("function").rows([
    row("delete", delete, 3, OF_LIBRARIES, NO_KEYS),
    row("dump", dump, 2, NOSCRIPT | SHOWS_LIBRARIES, NO_KEYS),
    row("flush", flush, -2, OF_LIBRARIES, NO_KEYS),
    help(),
    row("kill", kill, 2, NOSCRIPT | ALLOW_BUSY, NO_KEYS),
    row("list", list, -2, NOSCRIPT | SHOWS_LIBRARIES, NO_KEYS),
    row("load", load, -3, OF_LIBRARIES | DENYOOM, NO_KEYS),
    row("restore", restore, -3, OF_LIBRARIES | DENYOOM, NO_KEYS),
    row("stats", stats, 2, NOSCRIPT | ALLOW_BUSY, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const ON_ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const ARGUMENTS: &[Argument] = &[
    argument("function", ArgumentKind::String),
    argument("numkeys", ArgumentKind::Integer),
    key("key", 0).optional().multiple(),
    argument("arg", ArgumentKind::String).optional().multiple(),
];

const COST: &str = "Depends on the function that is executed.";

const DOCS: &[Docs] = &[
    docs("fcall", "7.0.0", "Calls a function.").cost(COST).arguments(ARGUMENTS),
    docs("fcall_ro", "7.0.0", "Calls a function that writes nothing.")
        .cost(COST)
        .arguments(ARGUMENTS),
    docs("function", "7.0.0", "Commands about libraries of functions.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("function|delete", "7.0.0", "Removes a library.")
        .cost("O(1)")
        .arguments(&[argument("library-name", ArgumentKind::String)])
        .tips(ON_ALL_SHARDS),
    docs("function|dump", "7.0.0", "Returns all libraries as a payload for FUNCTION RESTORE.")
        .cost("O(N) for N functions."),
    docs("function|flush", "7.0.0", "Removes all libraries.")
        .cost("O(N) for N functions.")
        .arguments(&[
            one_of("flush-type", &[word("async", "ASYNC"), word("sync", "SYNC")]).optional()
        ])
        .tips(ON_ALL_SHARDS),
    docs_of_help("function|help", "7.0.0"),
    docs("function|kill", "7.0.0", "Ends functions that have run for long and written nothing.")
        .cost("O(1)")
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    docs("function|list", "7.0.0", "Lists the libraries and their functions.")
        .cost("O(N) for N functions.")
        .arguments(&[
            argument("library-name-pattern", ArgumentKind::String).token("LIBRARYNAME").optional(),
            word("withcode", "WITHCODE").optional(),
        ])
        .tips(&["nondeterministic_output_order"]),
    docs("function|load", "7.0.0", "Adds a library.")
        .cost("O(1), and the library's own code.")
        .arguments(&[
            word("replace", "REPLACE").optional(),
            argument("function-code", ArgumentKind::String),
        ])
        .tips(ON_ALL_SHARDS),
    docs("function|restore", "7.0.0", "Adds the libraries of a payload of FUNCTION DUMP.")
        .cost("O(N) for N functions.")
        .arguments(&[
            argument("serialized-value", ArgumentKind::String),
            one_of(
                "policy",
                &[word("flush", "FLUSH"), word("append", "APPEND"), word("replace", "REPLACE")],
            )
            .optional(),
        ])
        .tips(ON_ALL_SHARDS),
    docs(
        "function|stats",
        "7.0.0",
        "Shows the function that has run for long, and the number of functions.",
    )
    .cost("O(1)")
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
];
