//! MODULE, which lists no module and loads none.

use crate::command::{
    ADMIN, Argument, ArgumentKind, Command, Group, NO_ASYNC_LOADING, NOSCRIPT, PROTECTED, argument,
    block,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};

/// MODULE LIST
fn list(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    cx.reply.array(0);
    Ok(())
}

/// MODULE LOAD, LOADEX and UNLOAD: refused as by a server whose settings do not allow them, before they run.
fn refuse(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    Err(CommandError::MODULES_NOT_ALLOWED)
}

const fn refused(name: &'static str, arity: i32, since: &'static str) -> Command {
    Command::sub("module", name, refuse, arity, Group::Server, since)
        .flags(ADMIN | NOSCRIPT | NO_ASYNC_LOADING | PROTECTED)
}

const PATH: Argument = argument("path", ArgumentKind::String);

const SUBCOMMANDS: &[Command] = &[
    Command::sub("module", "list", list, 2, Group::Server, "4.0.0")
        .flags(ADMIN | NOSCRIPT)
        .docs("O(1)", "Lists the modules. There are none.")
        .tips(&["nondeterministic_output_order"]),
    refused("load", -3, "4.0.0")
        .docs("O(1)", "Is refused: there are no modules.")
        .arguments(&[PATH, argument("arg", ArgumentKind::String).optional().multiple()]),
    refused("loadex", -3, "7.0.0").docs("O(1)", "Is refused: there are no modules.").arguments(&[
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
    refused("unload", 3, "4.0.0")
        .docs("O(1)", "Is refused: there are no modules.")
        .arguments(&[argument("name", ArgumentKind::String)]),
    Command::help("module", Group::Server, "5.0.0"),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] =
    &[Command::container("module", Group::Server, "4.0.0", SUBCOMMANDS)
        .summary("Commands about modules. There are none.")];
