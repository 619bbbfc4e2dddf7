//! What effects of the journal are to a server that takes some slots over.

use resp::args::{ArgRange, Arguments};
use resp::client::encode_command;
use smallvec::SmallVec;
use store::SlotSet;

use crate::changes::reading::ranges_of;
use crate::command::args::KeyAt;
use crate::command::keys::collect_keys;
use crate::command::{ChangeForm, MAY_REPLICATE, PUBSUB, WRITE};
use crate::engine::{Registry, Row};

/// See the module's text.
#[derive(PartialEq, Eq, Debug)]
pub enum Concern {
    /// It changes nothing there.
    Nothing,
    /// It changes the slots alone.
    Whole,
    /// This part of it does, as a command in RESP.
    Part(Vec<u8>),
    /// All keys of a database go, or of all databases.
    Flush(Option<usize>),
    /// It takes keys of the slots and of others, and cannot be divided.
    Mixed,
    /// Nobody knows: it may be anything, also a flush.
    Unknown,
}

/// What a command of the journal, in RESP, that applies to a database is to slots.
pub fn concern(
    registry: &Registry,
    (database, command): (usize, &[u8]),
    slots: &SlotSet,
) -> Concern {
    let ranges = ranges_of(command);
    let ranges: SmallVec<[ArgRange; 6]> =
        ranges.iter().map(|&(from, length)| ArgRange::in_buffer(from, length)).collect();
    if ranges.is_empty() {
        return Concern::Nothing;
    }
    let argv = Arguments::new(&ranges, command, &[], &[]);
    // The journal has commands by their own names.
    let Some(row) = registry.resolve(argv) else { return Concern::Unknown };
    match row.command.told {
        ChangeForm::FlushDatabase => return Concern::Flush(Some(database)),
        ChangeForm::FlushAll => return Concern::Flush(None),
        ChangeForm::Swap => return Concern::Mixed,
        _ => {}
    }
    let mut keys = Vec::new();
    collect_keys(&row.command.spec, argv, &mut keys);
    let here = keys.iter().filter(|key| slots.has(key.slot)).count();
    match here {
        0 => Concern::Nothing,
        _ if here == keys.len() => match has_words_aside(command, argv) {
            false => Concern::Whole,
            true => Concern::Part(encoded(argv.iter())),
        },
        _ => part_of(row, argv, &keys, slots),
    }
}

/// The part of a command that is about keys of the slots, if each of its keys stands for itself.
fn part_of(row: &Row, argv: Arguments<'_>, keys: &[KeyAt], slots: &SlotSet) -> Concern {
    let width = match row.command.told {
        ChangeForm::Delete => 1,
        ChangeForm::SetEach => 2,
        _ if !row.command.has(WRITE | MAY_REPLICATE) || row.command.has(PUBSUB) => {
            return Concern::Nothing;
        }
        _ => return Concern::Mixed,
    };
    let own = keys.iter().filter(|key| slots.has(key.slot));
    let words = own.flat_map(|key| (0..width).map(|at| argv.at(key.index as usize + at)));
    let words: Vec<&[u8]> = std::iter::once(argv.at(0)).chain(words).collect();
    Concern::Part(encoded(words.into_iter()))
}

/// Whether words stand before a command that only this program knows, which it has no use for.
fn has_words_aside(command: &[u8], argv: Arguments<'_>) -> bool {
    !command.starts_with(format!("*{}\r\n", argv.len()).as_bytes())
}

fn encoded<'w>(words: impl Iterator<Item = &'w [u8]> + Clone) -> Vec<u8> {
    let mut command = Vec::new();
    encode_command(words, &mut command);
    command
}
