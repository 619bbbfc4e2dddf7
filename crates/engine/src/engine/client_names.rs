//! The names by which clients and scripts call commands: `rename-command` gives commands other
//! names, or none. In files, on links and for the server itself they keep their own.

use std::collections::HashMap;

use config::RenamedCommand;
use resp::args::Arguments;

use crate::command::Spec;
use crate::engine::registry::Registry;
use crate::engine::row::Row;

/// See the module's text.
pub struct ClientNames {
    commands: &'static Registry,
    /// What a name in small letters stands for, where that is not the command of this name; nothing
    /// if for none.
    changed: Option<HashMap<Vec<u8>, Option<&'static Row>>>,
}

impl ClientNames {
    /// The names after these changes, one after the other.
    pub fn new(commands: &'static Registry, renamed: &[RenamedCommand]) -> ClientNames {
        let mut names = ClientNames { commands, changed: None };
        for RenamedCommand { from, to } in renamed {
            let row = names.find(from);
            let changed = names.changed.get_or_insert_default();
            changed.insert(from.to_ascii_lowercase(), None);
            if !to.is_empty() {
                changed.insert(to.to_ascii_lowercase(), row);
            }
        }
        names
    }

    /// The command of a name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Row> {
        match &self.changed {
            None => self.commands.find(name),
            Some(changed) => self.find_changed(changed, name),
        }
    }

    #[cold]
    fn find_changed(
        &self,
        changed: &HashMap<Vec<u8>, Option<&'static Row>>,
        name: &[u8],
    ) -> Option<&'static Row> {
        match changed.get(&name.to_ascii_lowercase()) {
            Some(row) => *row,
            None => self.commands.find(name),
        }
    }

    /// The row that runs these arguments: a container's subcommand if there is one.
    #[inline]
    pub fn resolve(&self, argv: Arguments<'_>) -> Option<&'static Row> {
        match &self.changed {
            None => self.commands.resolve(argv),
            Some(changed) => {
                let row = self.find_changed(changed, argv.get(0)?)?;
                Some(self.commands.subcommand_or(row, argv))
            }
        }
    }

    /// Whether clients have a name for a command, or for the container of a subcommand.
    pub fn have(&self, row: &Row) -> bool {
        let Some(changed) = &self.changed else { return true };
        let own = own_name(row.command).as_bytes();
        match changed.get(own) {
            None => true,
            Some(_) => changed.values().flatten().any(|row| row.command.name.as_bytes() == own),
        }
    }

    /// Whether a client may have called a command by another name than its own.
    #[inline]
    pub(crate) fn are_changed(&self) -> bool {
        self.changed.is_some()
    }
}

/// The arguments of a command with its own name first, by whichever name a client has called it.
pub(crate) fn argv_of<'a>(
    row: &Row,
    argv: Arguments<'a>,
) -> impl Iterator<Item = &'a [u8]> + Clone {
    std::iter::once(own_name(row.command).as_bytes()).chain(argv.skip(1).iter())
}

/// The own name that comes first among the arguments of a command: for a subcommand, that of its
/// container.
fn own_name(command: &Spec) -> &'static str {
    command.parent.unwrap_or(command.name)
}
