//! All commands, found by name: an engine receives them when it is made.

use resp::args::Arguments;

use crate::command::names::Names;
use crate::command::{Docs, INTERNAL};
use crate::engine::row::{Command, Row};
use crate::users::catalog::Catalog;

/// A family of commands: a table of rows, and a table of their documentation in the same order.
/// Subcommands are documented behind the command that they belong to.
pub struct Family {
    commands: &'static [Command],
    docs: &'static [Docs],
}

impl Family {
    /// A family of these commands.
    ///
    /// # Panics
    /// If the documentation is not that of the commands one by one: while it is compiled, with the
    /// name of the command, since each family is a constant.
    pub const fn new(commands: &'static [Command], docs: &'static [Docs]) -> Family {
        let (mut of_docs, mut index) = (0, 0);
        while index < commands.len() {
            let command = &commands[index];
            expect_docs(docs, of_docs, command);
            of_docs += 1;
            let mut below = 0;
            while below < command.subcommands.len() {
                expect_docs(docs, of_docs, &command.subcommands[below]);
                of_docs += 1;
                below += 1;
            }
            index += 1;
        }
        if of_docs < docs.len() {
            panic!("{}", docs[of_docs].name);
        }
        Family { commands, docs }
    }
}

/// Panics with the name of the command unless the documentation at the index is about it.
const fn expect_docs(docs: &[Docs], index: usize, command: &Command) {
    if index >= docs.len() || !is_full_name(docs[index].name, command) {
        panic!("{}", command.spec.name);
    }
}

/// Whether a text is the command's [`crate::command::Spec::full_name`].
const fn is_full_name(text: &str, command: &Command) -> bool {
    let (text, name) = (text.as_bytes(), command.spec.name.as_bytes());
    match command.spec.parent {
        None => text.len() == name.len() && has_at(text, 0, name),
        Some(parent) => {
            let parent = parent.as_bytes();
            text.len() == parent.len() + 1 + name.len()
                && has_at(text, 0, parent)
                && text[parent.len()] == b'|'
                && has_at(text, parent.len() + 1, name)
        }
    }
}

/// Whether a text that is long enough has a part at a place.
const fn has_at(text: &[u8], place: usize, part: &[u8]) -> bool {
    let mut index = 0;
    while index < part.len() {
        if text[place + index] != part[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// All commands that an engine knows: see [`crate::registry`].
pub struct Registry {
    pub(crate) rows: &'static [Row],
    docs: Vec<&'static Docs>,
    pub(crate) names: Names<&'static Row>,
    catalog: Catalog,
}

impl Registry {
    /// All rows of these families, each command followed by its subcommands. They are never freed:
    /// an engine gets its commands once.
    pub fn new(families: &'static [Family]) -> Registry {
        let mut rows = Vec::new();
        for command in families.iter().flat_map(|family| family.commands) {
            rows.push(Row::new(rows.len(), command));
            for command in command.subcommands {
                rows.push(Row::new(rows.len(), command));
            }
        }
        let rows: &'static [Row] = Box::leak(rows.into_boxed_slice());
        let docs = families.iter().flat_map(|family| family.docs).collect();
        let commands = rows.iter().filter(|row| row.command.parent.is_none());
        let names = Names::new(commands.map(|row| (row.command.name, row)));
        let catalog = Catalog::new(rows.iter().map(|row| &row.command.spec));
        Registry { rows, docs, names, catalog }
    }

    /// All rows, each command followed by its subcommands.
    pub fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// The commands as rules of users name them.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Those rows that clients can name.
    pub fn public_rows(&self) -> impl Iterator<Item = &'static Row> {
        self.rows.iter().filter(|row| !row.command.has(INTERNAL))
    }

    /// The rows of a command's subcommands.
    pub fn subcommands(&self, row: &Row) -> &'static [Row] {
        &self.rows[row.id + 1..][..row.command.subcommands.len()]
    }

    /// What people read of a command.
    pub fn docs(&self, row: &Row) -> &'static Docs {
        self.docs[row.id]
    }

    /// Finds a command by its name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Row> {
        // A short name is found by eight bytes, which do not show its length.
        self.names.find(name).filter(|row| row.command.name.len() == name.len())
    }

    /// Finds the row that runs these arguments: a container's subcommand if there is one.
    #[inline]
    pub fn resolve(&self, argv: Arguments<'_>) -> Option<&'static Row> {
        let row = self.find(argv.get(0)?)?;
        Some(self.subcommand_or(row, argv))
    }

    /// The row of a subcommand that these arguments name, or that of the command.
    #[inline]
    pub(crate) fn subcommand_or(&self, row: &'static Row, argv: Arguments<'_>) -> &'static Row {
        if row.command.subcommands.is_empty() || argv.len() < 2 {
            return row;
        }
        self.find_subcommand(row, argv.at(1)).unwrap_or(row)
    }

    /// Finds a subcommand of a container.
    pub fn find_subcommand(&self, row: &Row, name: &[u8]) -> Option<&'static Row> {
        let mut subcommands = row.command.subcommands.iter();
        let index =
            subcommands.position(|command| command.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(&self.rows[row.id + 1 + index])
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::command::args::Args;
    use crate::command::error::CommandResult;
    use crate::command::{Group, NO_FLAGS, NO_KEYS, docs, docs_of_help};
    use crate::engine::{Context, row};
    use crate::handler::help::{container, help};

    fn none(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
        Ok(())
    }

    const BELOW: &[Command] =
        &Group::Server.under("b").rows([row("c", none, 2, NO_FLAGS, NO_KEYS), help()]);
    const COMMANDS: &[Command] = &Group::Server.rows([
        row("a", none, 1, NO_FLAGS, NO_KEYS),
        container("b", BELOW),
        row("d", none, 1, NO_FLAGS, NO_KEYS),
    ]);
    const A: Docs = docs("a", "1.0.0", "A.");
    const B: Docs = docs("b", "1.0.0", "B.");
    const C: Docs = docs("b|c", "1.0.0", "C.");
    const HELP: Docs = docs_of_help("b|help", "1.0.0");
    const D: Docs = docs("d", "1.0.0", "D.");
    const FAMILIES: &[Family] = &[Family::new(COMMANDS, &[A, B, C, HELP, D])];

    #[test]
    fn rows_have_the_group_and_the_parent_of_their_table_and_their_own_docs() {
        let registry = Registry::new(FAMILIES);
        for row in registry.rows() {
            assert_eq!(registry.docs(row).name, row.command.full_name());
            assert_eq!(row.command.group, Group::Server);
        }
        let b = registry.find(b"B").expect("there is one");
        let below = registry.subcommands(b).iter().map(|row| row.command.full_name());
        assert_eq!(below.collect::<Vec<_>>(), ["b|c", "b|help"]);
        assert!(registry.subcommands(&registry.rows()[0]).is_empty());
    }

    #[test]
    fn each_command_has_one_documentation_and_none_is_left_over() {
        let refusal = |docs: &[Docs]| {
            let docs: &'static [Docs] = Box::leak(docs.into());
            let refused = catch_unwind(|| Family::new(COMMANDS, docs)).err()?;
            refused.downcast_ref::<String>().cloned()
        };
        assert_eq!(refusal(&[A, B, C, HELP, D]), None);
        for (docs, name) in [
            (&[B, C, HELP, D][..], "a"),
            (&[A, B, HELP, D], "c"),
            (&[A, B, C, HELP], "d"),
            (&[A, B, HELP, C, D], "c"),
            (&[A, B, C, HELP, D, D], "d"),
            (&[A, B, C, HELP, A, D], "d"),
        ] {
            assert_eq!(refusal(docs).as_deref(), Some(name));
        }
    }
}
