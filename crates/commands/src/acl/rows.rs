//! The rows of ACL, and their documentation.

use super::{cat, changing, dryrun, files, genpass, showing, whoami};
use engine::command::{
    ADMIN, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Flags, Group, LOADING, NO_KEYS, NOSCRIPT,
    STALE, STOPS_THE_WORLD, argument, docs, docs_of_help, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::{container, help};

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([container("acl", SUBCOMMANDS)]);

/// Flags of subcommands that everybody may use.
const OPEN: Flags = NOSCRIPT | LOADING | STALE;
/// Flags of subcommands that show users.
const SHOWS: Flags = OPEN | ADMIN;
/// Flags of subcommands that change users.
const CHANGES: Flags = SHOWS | STOPS_THE_WORLD;

const SUBCOMMANDS: &[Command] = &Group::Server.under("acl").rows([
    row("cat", cat, -2, OPEN, NO_KEYS),
    row("delrole", changing::delrole, -3, CHANGES, NO_KEYS),
    row("deluser", changing::deluser, -3, CHANGES, NO_KEYS).secrets(changing::is_secret),
    row("digest", showing::digest, 2, SHOWS, NO_KEYS),
    row("dryrun", dryrun, -4, SHOWS, NO_KEYS).secrets(changing::is_secret),
    row("genpass", genpass, -2, OPEN, NO_KEYS),
    row("getrole", showing::getrole, 3, SHOWS, NO_KEYS),
    row("getuser", showing::getuser, 3, SHOWS, NO_KEYS).secrets(changing::is_secret),
    help(),
    row("list", showing::list, 2, SHOWS, NO_KEYS),
    row("load", files::load, 2, CHANGES, NO_KEYS),
    row("log", showing::log, -2, SHOWS, NO_KEYS),
    row("roles", showing::roles, 2, SHOWS, NO_KEYS),
    row("save", files::save, 2, SHOWS, NO_KEYS),
    row("setrole", changing::setrole, -3, CHANGES, NO_KEYS).secrets(changing::is_secret),
    row("setuser", changing::setuser, -3, CHANGES, NO_KEYS).secrets(changing::is_secret),
    row("users", showing::users, 2, SHOWS, NO_KEYS),
    row("whoami", whoami, 2, OPEN, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

/// A client of several servers sends these commands to all of them.
const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

/// The cost of subcommands that go through all users.
const PER_USER: &str = "O(N) for N users.";

const DOCS: &[Docs] = &[
    docs("acl", "6.0.0", "Commands about users and their rights.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("acl|cat", "6.0.0", "Lists the categories of commands, or the commands of a category.")
        .cost("O(1)")
        .arguments(&[argument("category", ArgumentKind::String).optional()]),
    docs("acl|delrole", "9.2.0", "Deletes roles that no user has.")
        .cost("O(N) for N roles and users.")
        .arguments(&[argument("rolename", ArgumentKind::String).multiple()])
        .tips(ON_ALL_NODES),
    docs("acl|deluser", "6.0.0", "Deletes users, and closes their connections.")
        .cost("O(N) for N connections.")
        .arguments(&[argument("username", ArgumentKind::String).multiple()])
        .tips(ON_ALL_NODES),
    docs("acl|digest", "9.2.0", "Returns a fingerprint of the rules of all users and roles.")
        .cost("O(N) for N users and roles."),
    docs("acl|dryrun", "7.0.0", "Says whether a user may run a command, without running it.")
        .cost("O(1)")
        .arguments(&[
            argument("username", ArgumentKind::String),
            argument("command", ArgumentKind::String),
            argument("arg", ArgumentKind::String).optional().multiple(),
        ]),
    docs("acl|genpass", "6.0.0", "Makes a random password that nobody can guess.")
        .cost("O(1)")
        .arguments(&[argument("bits", ArgumentKind::Integer).optional()]),
    docs("acl|getrole", "9.2.0", "Shows the rules of a role, and who has it.")
        .cost("O(N) for N rules of the role, and N users.")
        .arguments(&[argument("rolename", ArgumentKind::String)]),
    docs("acl|getuser", "6.0.0", "Shows the rules of a user.")
        .cost("O(N) for N rules of the user.")
        .arguments(&[argument("username", ArgumentKind::String)])
        .history(&[
            ("6.2.0", "Shows patterns of channels."),
            ("7.0.0", "Shows selectors, and the rules of keys and channels as rules."),
        ]),
    docs_of_help("acl|help", "6.0.0"),
    docs("acl|list", "6.0.0", "Lists the users with their rules, as lines of a file.")
        .cost(PER_USER),
    docs("acl|load", "6.0.0", "Reads the users from their file.").cost(PER_USER),
    docs("acl|log", "6.0.0", "Shows what users were refused.")
        .cost("O(N) for N entries.")
        .arguments(&[one_of(
            "operation",
            &[argument("count", ArgumentKind::Integer), word("reset", "RESET")],
        )
        .optional()])
        .history(&[("7.2.0", "Shows the number of an entry, and its times.")]),
    docs("acl|roles", "9.2.0", "Lists the names of the roles.").cost("O(N) for N roles."),
    docs("acl|save", "6.0.0", "Writes the users into their file.")
        .cost(PER_USER)
        .tips(ON_ALL_NODES),
    docs("acl|setrole", "9.2.0", "Makes a role, or changes its rules.")
        .cost("O(N) for N rules, and N clients of the users who have it.")
        .arguments(&[
            argument("rolename", ArgumentKind::String),
            argument("rule", ArgumentKind::String).optional().multiple(),
        ])
        .tips(ON_ALL_NODES),
    docs("acl|setuser", "6.0.0", "Makes a user, or changes its rules.")
        .cost("O(N) for N rules.")
        .arguments(&[
            argument("username", ArgumentKind::String),
            argument("rule", ArgumentKind::String).optional().multiple(),
        ])
        .history(&[
            ("6.2.0", "Takes patterns of channels."),
            ("7.0.0", "Takes selectors, and rules that tell reads of keys from writes."),
        ])
        .tips(ON_ALL_NODES),
    docs("acl|users", "6.0.0", "Lists the names of the users.").cost(PER_USER),
    docs("acl|whoami", "6.0.0", "Returns the name of the connection's user.").cost("O(1)"),
];
