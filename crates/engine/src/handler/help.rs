//! The syntax of a command as a line of text, and HELP of the containers.
//!
//! Both come from the documentation of the commands.

use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::{Argument, ArgumentKind, LOADING, NO_FLAGS, NO_KEYS, STALE};
use crate::engine::Context;
use crate::engine::row::{Command, row};

/// The arguments of a command in the notation of manuals: `key value [NX | XX] [GET]`.
fn syntax(arguments: &[Argument]) -> String {
    let mut text = String::new();
    sequence(arguments, " ", &mut text);
    text
}

/// Arguments one after another, each between `separator`s.
fn sequence(arguments: &[Argument], separator: &str, text: &mut String) {
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        one(argument, text);
    }
}

fn one(argument: &Argument, text: &mut String) {
    let (open, close) = match (argument.optional, argument.kind) {
        (true, _) => ("[", "]"),
        (false, ArgumentKind::OneOf) => ("<", ">"),
        (false, _) => ("", ""),
    };
    text.push_str(open);
    once(argument, text);
    if argument.multiple {
        text.push_str(" [");
        if argument.multiple_token {
            once(argument, text);
        } else {
            value(argument, text);
        }
        text.push_str(" ...]");
    }
    text.push_str(close);
}

/// An argument with its word, without the brackets and dots for optional and repeated ones.
fn once(argument: &Argument, text: &mut String) {
    if let Some(token) = argument.token {
        // The empty word is one too.
        text.push_str(if token.is_empty() { "\"\"" } else { token });
        if argument.kind == ArgumentKind::PureToken {
            return;
        }
        text.push(' ');
    }
    value(argument, text);
}

fn value(argument: &Argument, text: &mut String) {
    match argument.kind {
        ArgumentKind::OneOf => sequence(argument.arguments, " | ", text),
        ArgumentKind::Block => sequence(argument.arguments, " ", text),
        _ => text.push_str(argument.shown),
    }
}

/// `CONTAINER HELP`: the handler of every container's HELP row.
///
/// # Errors
/// None.
pub fn answer_help(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let commands = cx.engine.commands;
    let container = cx.row.command.parent.and_then(|name| commands.find(name.as_bytes()));
    let container = container.expect("HELP is a subcommand of a command that has a row");
    let subcommands = commands.subcommands(container);
    cx.reply.array(1 + 2 * subcommands.len());
    let name = container.command.name.to_ascii_uppercase();
    let title = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    cx.reply.simple(title.as_bytes());
    for subcommand in subcommands {
        let docs = commands.docs(subcommand);
        let name = subcommand.command.name.to_ascii_uppercase();
        let line = format!("{name} {}", syntax(docs.arguments));
        cx.reply.simple(line.trim_end().as_bytes());
        cx.reply.simple(format!("    {}", docs.summary).as_bytes());
    }
    Ok(())
}

/// The handler of containers. An unknown or missing subcommand is refused before it runs.
fn unknown_subcommand(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.argv().get(1).unwrap_or_default();
    Err(CommandError::subcommand_syntax(cx.row.command.name, subcommand))
}

/// The row of a container: the commands are its subcommands.
pub const fn container(name: &'static str, subcommands: &'static [Command]) -> Command {
    row(name, unknown_subcommand, -2, NO_FLAGS, NO_KEYS).subcommands(subcommands)
}

/// The row of a container's HELP.
pub const fn help() -> Command {
    row("help", answer_help, 2, LOADING | STALE, NO_KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{argument, block, key, one_of, word};

    const ARGUMENTS: &[Argument] = &[
        key("key", 0).multiple(),
        one_of("condition", &[word("nx", "NX"), word("xx", "XX")]).optional(),
        one_of("side", &[word("left", "LEFT"), word("right", "RIGHT")]),
        block(
            "limit",
            &[argument("offset", ArgumentKind::Integer), argument("count", ArgumentKind::Integer)],
        )
        .token("LIMIT")
        .optional(),
        argument("pattern", ArgumentKind::Pattern).token("GET").optional().multiple_token(),
        block(
            "data",
            &[argument("score", ArgumentKind::Double), argument("member", ArgumentKind::String)],
        )
        .multiple(),
    ];

    #[test]
    fn syntax_is_written_as_manuals_do() {
        assert_eq!(
            syntax(ARGUMENTS),
            "key [key ...] [NX | XX] <LEFT | RIGHT> [LIMIT offset count] \
             [GET pattern [GET pattern ...]] score member [score member ...]"
        );
    }
}
