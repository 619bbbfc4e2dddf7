//! MODULE, which lists no module and loads none.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, Argument, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Group, NEEDS_MODULES,
    NO_ASYNC_LOADING, NO_KEYS, NOSCRIPT, argument, block, docs, docs_of_help,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::{container, help};

/// MODULE LIST
fn list(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    cx.reply.array(0);
    Ok(())
}

/// MODULE LOAD, LOADEX and UNLOAD: refused as by a server whose settings do not allow them, before
/// they run.
fn refuse(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    Err(CommandError::MODULES_NOT_ALLOWED)
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([container("module", SUBCOMMANDS)]);

const SUBCOMMANDS: &[Command] = &Group::Server.under("module").rows([
    row("list", list, 2, ADMIN | NOSCRIPT, NO_KEYS),
    row("load", refuse, -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NEEDS_MODULES, NO_KEYS),
    row("loadex", refuse, -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NEEDS_MODULES, NO_KEYS),
    row("unload", refuse, 3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NEEDS_MODULES, NO_KEYS),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

const PATH: Argument = argument("path", ArgumentKind::String);

const DOCS: &[Docs] = &[
    docs("module", "4.0.0", "Commands about modules. There are none.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("module|list", "4.0.0", "Lists the modules. There are none.")
        .cost("O(1)")
        .tips(&["nondeterministic_output_order"]),
    docs("module|load", "4.0.0", "Is refused: there are no modules.")
        .cost("O(1)")
        .arguments(&[PATH, argument("arg", ArgumentKind::String).optional().multiple()]),
    docs("module|loadex", "7.0.0", "Is refused: there are no modules.").cost("O(1)").arguments(&[
        PATH,
        block(
            "configs",
            &[argument("name", ArgumentKind::String), argument("value", ArgumentKind::String)],
        )
        .token("CONFIG")
        .optional()
        .multiple()
        .multiple_token(),
        argument("args", ArgumentKind::String).token("ARGS").optional().multiple(),
    ]),
    docs("module|unload", "4.0.0", "Is refused: there are no modules.")
        .cost("O(1)")
        .arguments(&[argument("name", ArgumentKind::String)]),
    docs_of_help("module|help", "5.0.0"),
];
