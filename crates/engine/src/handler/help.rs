//! The syntax of a command as a line of text, and HELP of the containers.
//!
//! Both come from the argument trees of the rows, so they always match the commands.

use crate::command::{Argument, ArgumentKind, Command};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};

/// The arguments of a command in the notation of manuals: `key value [NX | XX] [GET]`.
pub fn syntax(command: &Command) -> String {
    let mut text = String::new();
    sequence(command.arguments, " ", &mut text);
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
pub(crate) fn help(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let container = cx.row.command.parent.and_then(|name| cx.engine.commands.find(name.as_bytes()));
    let container = container.expect("HELP is a subcommand of a command that has a row").command;
    cx.reply.array(1 + 2 * container.subcommands.len());
    let name = container.name.to_ascii_uppercase();
    let title = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    cx.reply.simple(title.as_bytes());
    for subcommand in container.subcommands {
        let line = format!("{} {}", subcommand.name.to_ascii_uppercase(), syntax(subcommand));
        cx.reply.simple(line.trim_end().as_bytes());
        cx.reply.simple(format!("    {}", subcommand.summary).as_bytes());
    }
    Ok(())
}

/// The handler of containers. An unknown or missing subcommand is refused before it runs.
pub(crate) fn unknown_subcommand(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.argv().get(1).unwrap_or_default();
    Err(CommandError::subcommand_syntax(cx.row.command.name, subcommand))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Group, argument, block, key, one_of, word};

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
        fn none(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
            Ok(())
        }
        let command = Command::new("x", none, -1, Group::Generic, "1.0.0").arguments(ARGUMENTS);
        assert_eq!(
            syntax(&command),
            "key [key ...] [NX | XX] <LEFT | RIGHT> [LIMIT offset count] \
             [GET pattern [GET pattern ...]] score member [score member ...]"
        );
    }
}
