//! All commands that there are, found by name: what an engine is given when it is made.

use std::collections::HashMap;

use resp::args::Arguments;

use crate::command::{Begin, Command, Find, NOT_KEY};

/// The index of a row in [`Registry::rows`]: what statistics are kept by.
pub type RowId = usize;

/// A row with its place.
pub struct Row {
    /// Its place in [`Registry::rows`].
    pub id: RowId,
    /// The row.
    pub command: &'static Command,
    /// Its only key, if there is one at all, is the argument behind its name: most commands.
    pub(crate) one_key: bool,
}

impl Row {
    fn new(id: RowId, command: &'static Command) -> Row {
        let one_key = match command.keys {
            [spec] => {
                let first = matches!(spec.begin, Begin::Index(1))
                    && matches!(spec.find, Find::Range { last: 0, .. });
                first && spec.flags & NOT_KEY == 0 && command.key_finder.is_none()
            }
            _ => false,
        };
        Row { id, command, one_key }
    }
}

/// All commands that an engine knows.
pub struct Registry {
    rows: &'static [Row],
    names: Names,
}

impl Registry {
    /// All rows of these families, subcommands behind their command. They are never freed: an engine
    /// is given its commands once.
    pub fn new(families: &[&'static [Command]]) -> Registry {
        let mut rows = Vec::new();
        for command in families.iter().copied().flatten() {
            rows.push(Row::new(rows.len(), command));
            for command in command.subcommands {
                rows.push(Row::new(rows.len(), command));
            }
        }
        let rows: &'static [Row] = Box::leak(rows.into_boxed_slice());
        Registry { rows, names: Names::new(rows) }
    }

    /// All rows, subcommands behind their command.
    pub fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// Finds a command by its name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Row> {
        if name.len() <= size_of::<u64>() {
            let row = self.names.find_short(short_word(name));
            // Zero bytes before a name do not show in the number.
            row.filter(|row| row.command.name.len() == name.len())
        } else {
            self.names.find_long(name)
        }
    }

    /// Finds the row that runs these arguments: a container's subcommand where there is one.
    #[inline]
    pub fn resolve(&self, argv: Arguments<'_>) -> Option<&'static Row> {
        let row = self.find(argv.get(0)?)?;
        if row.command.subcommands.is_empty() || argv.len() < 2 {
            return Some(row);
        }
        Some(self.find_subcommand(row, argv.at(1)).unwrap_or(row))
    }

    /// Finds a subcommand of a container.
    pub fn find_subcommand(&self, row: &Row, name: &[u8]) -> Option<&'static Row> {
        let mut subcommands = row.command.subcommands.iter();
        let index =
            subcommands.position(|command| command.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(&self.rows[row.id + 1 + index])
    }
}

/// Commands by their names in small letters.
struct Names {
    /// Names of up to eight bytes, as most are: an open table, by the name as a number.
    short: [Option<(u64, &'static Row)>; SHORT_PLACES],
    long: HashMap<&'static [u8], &'static Row, foldhash::fast::FixedState>,
}

/// Four times as many as there are short names, so that the first place is nearly always right.
const SHORT_PLACES: usize = 1024;

impl Names {
    fn new(rows: &'static [Row]) -> Names {
        let mut names = Names { short: [None; SHORT_PLACES], long: HashMap::default() };
        for row in rows.iter().filter(|row| row.command.parent.is_none()) {
            let name = row.command.name.as_bytes();
            if name.len() > size_of::<u64>() {
                names.long.insert(name, row);
                continue;
            }
            let word = short_word(name);
            let mut place = short_place(word);
            while names.short[place].is_some() {
                place = (place + 1) % SHORT_PLACES;
            }
            names.short[place] = Some((word, row));
        }
        names
    }

    #[inline]
    fn find_short(&self, word: u64) -> Option<&'static Row> {
        let mut place = short_place(word);
        loop {
            let (name, row) = self.short[place]?;
            if name == word {
                return Some(row);
            }
            place = (place + 1) % SHORT_PLACES;
        }
    }

    fn find_long(&self, name: &[u8]) -> Option<&'static Row> {
        // No command's name is longer.
        let mut lower = [0; 32];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.long.get(&*lower).copied()
    }
}

/// Up to eight bytes as a number, letters made small.
#[inline]
fn short_word(name: &[u8]) -> u64 {
    let mut word = 0;
    for &byte in name {
        word = word << 8 | u64::from(byte.to_ascii_lowercase());
    }
    word
}

#[inline]
fn short_place(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHORT_PLACES.ilog2())) as usize
}
