//! What is known of the commands, for hints, completion and help: from the server's COMMAND DOCS,
//! or from Dunlin's own tables.

use engine::command::{Argument, ArgumentKind};
use engine::engine::{Registry, Row};
use resp::client::Value;

/// How an argument is matched with words, and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any word.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// The word itself.
    PureToken,
    /// One of the parts.
    OneOf,
    /// All parts, one after the other.
    Block,
}

/// An argument of a command.
#[derive(Clone, Debug)]
pub(crate) struct Arg {
    pub(crate) shown: String,
    /// The word before it.
    pub(crate) token: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    pub(crate) multiple: bool,
    pub(crate) repeats_token: bool,
    pub(crate) parts: Vec<Arg>,
}

/// A command or a subcommand.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    /// Its words, such as `CONFIG` and `GET`.
    pub(crate) name: Vec<String>,
    pub(crate) summary: String,
    pub(crate) since: String,
    pub(crate) group: String,
    pub(crate) args: Vec<Arg>,
}

/// All commands, in the order of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs(pub(crate) Vec<Doc>);

impl Docs {
    /// The commands of this program's own tables.
    pub(crate) fn own() -> Docs {
        let registry = commands::registry();
        let mut all = Vec::new();
        for row in registry.public_rows() {
            all.push(own_doc(registry, row));
            all.extend(registry.subcommands(row).iter().map(|row| own_doc(registry, row)));
        }
        Docs::sorted(all)
    }

    /// The commands of a server, as it answers COMMAND DOCS; `None` if it says nothing.
    pub(crate) fn of_server(reply: &Value) -> Option<Docs> {
        let mut all = Vec::new();
        for (name, doc) in pairs(reply) {
            add_doc(name, doc, &mut all);
        }
        (!all.is_empty()).then(|| Docs::sorted(all))
    }

    fn sorted(mut all: Vec<Doc>) -> Docs {
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Docs(all)
    }

    /// The command that these words begin with, and how many words its name has.
    pub(crate) fn find(&self, words: &[String]) -> Option<(&Doc, usize)> {
        let fits = |doc: &&Doc| {
            doc.name.len() <= words.len()
                && doc.name.iter().zip(words).all(|(name, word)| name.eq_ignore_ascii_case(word))
        };
        let found = self.0.iter().filter(fits).max_by_key(|doc| doc.name.len())?;
        Some((found, found.name.len()))
    }

    /// The names of all groups.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.0.iter().map(|doc| &*doc.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

fn upper_name(name: &str) -> Vec<String> {
    name.split('|').map(str::to_ascii_uppercase).collect()
}

fn own_doc(registry: &Registry, row: &Row) -> Doc {
    let docs = registry.docs(row);
    Doc {
        name: upper_name(docs.name),
        summary: docs.summary.to_owned(),
        since: docs.since.to_owned(),
        group: row.command.group.name().to_owned(),
        args: docs.arguments.iter().map(own_arg).collect(),
    }
}

fn own_arg(argument: &Argument) -> Arg {
    Arg {
        shown: argument.shown.to_owned(),
        token: argument.token.map(str::to_owned),
        kind: match argument.kind {
            ArgumentKind::Integer | ArgumentKind::UnixTime => Kind::Integer,
            ArgumentKind::Double => Kind::Double,
            ArgumentKind::PureToken => Kind::PureToken,
            ArgumentKind::OneOf => Kind::OneOf,
            ArgumentKind::Block => Kind::Block,
            ArgumentKind::String | ArgumentKind::Key | ArgumentKind::Pattern => Kind::Text,
        },
        optional: argument.optional,
        multiple: argument.multiple,
        repeats_token: argument.multiple_token,
        parts: argument.arguments.iter().map(own_arg).collect(),
    }
}

/// The fields of a map, in either protocol.
fn pairs(value: &Value) -> Vec<(&Value, &Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        Value::Array(list) => list.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
        _ => Vec::new(),
    }
}

fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) | Value::Set(list) => list,
        _ => &[],
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn add_doc(name: &Value, value: &Value, all: &mut Vec<Doc>) {
    let mut doc = Doc {
        name: upper_name(&text(name)),
        summary: String::new(),
        since: String::new(),
        group: String::new(),
        args: Vec::new(),
    };
    let mut inner = Vec::new();
    for (field, value) in pairs(value) {
        match &*text(field) {
            "summary" => doc.summary = text(value),
            "since" => doc.since = text(value),
            "group" => doc.group = text(value),
            "arguments" => doc.args = list(value).iter().map(server_arg).collect(),
            "subcommands" => inner = pairs(value),
            _ => {}
        }
    }
    all.push(doc);
    inner.into_iter().for_each(|(name, value)| add_doc(name, value, all));
}

fn server_arg(value: &Value) -> Arg {
    let mut arg = Arg {
        shown: String::new(),
        token: None,
        kind: Kind::Text,
        optional: false,
        multiple: false,
        repeats_token: false,
        parts: Vec::new(),
    };
    for (field, value) in pairs(value) {
        match &*text(field) {
            "name" if arg.shown.is_empty() => arg.shown = text(value),
            "display_text" => arg.shown = text(value),
            "token" => arg.token = Some(text(value)),
            "type" => {
                arg.kind = match &*text(value) {
                    "integer" | "unix-time" => Kind::Integer,
                    "double" => Kind::Double,
                    "pure-token" => Kind::PureToken,
                    "oneof" => Kind::OneOf,
                    "block" => Kind::Block,
                    _ => Kind::Text,
                };
            }
            "flags" => {
                for flag in list(value) {
                    match &*text(flag) {
                        "optional" => arg.optional = true,
                        "multiple" => arg.multiple = true,
                        "multiple_token" => arg.repeats_token = true,
                        _ => {}
                    }
                }
            }
            "arguments" => arg.parts = list(value).iter().map(server_arg).collect(),
            _ => {}
        }
    }
    arg
}
