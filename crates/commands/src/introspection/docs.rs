//! COMMAND DOCS: commands in the form that people and their tools read.

use resp::reply::Reply;

use engine::command::{Argument, ArgumentKind};
use engine::engine::{Registry, Row};

/// Counts the fields of a map while they are written.
struct Fields<'r, 'o> {
    reply: &'r mut Reply<'o>,
    count: usize,
}

impl<'o> Fields<'_, 'o> {
    /// Writes a map with the fields that `write` writes.
    fn map(reply: &mut Reply<'o>, write: impl FnOnce(&mut Fields<'_, 'o>)) {
        let mark = reply.mark();
        let mut fields = Fields { reply, count: 0 };
        write(&mut fields);
        let count = fields.count;
        reply.close_map(mark, count);
    }

    /// The name of a field, and the place for its value.
    fn field(&mut self, name: &str) -> &mut Reply<'o> {
        self.count += 1;
        self.reply.bulk(name.as_bytes());
        self.reply
    }

    fn text(&mut self, name: &str, value: &str) {
        self.field(name).bulk(value.as_bytes());
    }

    /// A set of words; no field when the set is empty.
    fn words(&mut self, name: &str, words: &[(bool, &str)]) {
        let set = words.iter().filter(|(is_set, _)| *is_set);
        if set.clone().next().is_some() {
            let reply = self.field(name);
            reply.set(set.clone().count());
            set.for_each(|(_, word)| reply.simple(word.as_bytes()));
        }
    }
}

/// Answers a command's name and its documentation: one entry of a map.
pub(super) fn reply_named(reply: &mut Reply<'_>, commands: &Registry, row: &Row) {
    let docs = commands.docs(row);
    reply.bulk(docs.name.as_bytes());
    Fields::map(reply, |fields| {
        fields.text("summary", docs.summary);
        fields.text("since", docs.since);
        fields.text("group", row.command.group.name());
        if !docs.cost.is_empty() {
            fields.text("complexity", docs.cost);
        }
        let flags = [(docs.deprecated.is_some(), "deprecated"), (docs.system, "syscmd")];
        fields.words("doc_flags", &flags);
        if let Some((since, instead)) = docs.deprecated {
            fields.text("deprecated_since", since);
            fields.text("replaced_by", instead);
        }
        if !docs.history.is_empty() {
            reply_history(fields.field("history"), docs.history);
        }
        if !docs.arguments.is_empty() {
            reply_arguments(fields.field("arguments"), docs.arguments);
        }
        let subcommands = commands.subcommands(row);
        if !subcommands.is_empty() {
            let reply = fields.field("subcommands");
            reply.map(subcommands.len());
            subcommands.iter().for_each(|row| reply_named(reply, commands, row));
        }
    });
}

fn reply_history(reply: &mut Reply<'_>, history: &[(&str, &str)]) {
    reply.set(history.len());
    for (version, change) in history {
        reply.array(2);
        reply.bulk(version.as_bytes());
        reply.bulk(change.as_bytes());
    }
}

fn reply_arguments(reply: &mut Reply<'_>, arguments: &[Argument]) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| reply_argument(reply, argument));
}

fn reply_argument(reply: &mut Reply<'_>, argument: &Argument) {
    Fields::map(reply, |fields| {
        fields.text("name", argument.name);
        fields.text("type", kind_name(argument.kind));
        if !matches!(argument.kind, ArgumentKind::OneOf | ArgumentKind::Block) {
            fields.text("display_text", argument.shown);
        }
        if let Some(index) = argument.key_spec {
            fields.field("key_spec_index").integer(i64::from(index));
        }
        if let Some(token) = argument.token {
            fields.text("token", token);
        }
        if let Some(since) = argument.since {
            fields.text("since", since);
        }
        if let Some(since) = argument.deprecated_since {
            fields.text("deprecated_since", since);
        }
        let flags = [
            (argument.optional, "optional"),
            (argument.multiple, "multiple"),
            (argument.multiple_token, "multiple_token"),
        ];
        fields.words("flags", &flags);
        if !argument.arguments.is_empty() {
            reply_arguments(fields.field("arguments"), argument.arguments);
        }
    });
}

fn kind_name(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::String => "string",
        ArgumentKind::Integer => "integer",
        ArgumentKind::Double => "double",
        ArgumentKind::Key => "key",
        ArgumentKind::Pattern => "pattern",
        ArgumentKind::UnixTime => "unix-time",
        ArgumentKind::PureToken => "pure-token",
        ArgumentKind::OneOf => "oneof",
        ArgumentKind::Block => "block",
    }
}
