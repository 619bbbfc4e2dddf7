//! SLOWLOG: the last commands that took long.

use std::collections::VecDeque;

use parking_lot::Mutex;
use resp::args::Arguments;

use crate::command::Spec;
use crate::observe::redaction;

/// Arguments of a command that are kept.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that are kept.
const ARGUMENT_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    /// Its number; rises for ever.
    pub id: u64,
    /// When it ran, in Unix seconds.
    pub at: u64,
    /// How long it took.
    pub microseconds: u64,
    /// Its arguments, shortened.
    pub argv: Vec<Vec<u8>>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// See the module's text.
#[derive(Default)]
pub struct SlowLog(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next_id: u64,
    newest_first: VecDeque<SlowCommand>,
}

impl SlowLog {
    /// Keeps a command, and so many in all. Its number is given here.
    pub(crate) fn note(&self, command: SlowCommand, keep: usize) {
        let mut entries = self.0.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.newest_first.push_front(SlowCommand { id, ..command });
        entries.newest_first.truncate(keep);
    }

    /// The newest commands, the newest first.
    pub fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.0.lock().newest_first.iter().take(count).cloned().collect()
    }

    /// How many are kept now.
    pub fn len(&self) -> usize {
        self.0.lock().newest_first.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all.
    pub fn reset(&self) {
        self.0.lock().newest_first.clear();
    }
}

/// The arguments of a command as the log keeps them.
pub(crate) fn shortened(command: &Spec, argv: Arguments<'_>) -> Vec<Vec<u8>> {
    let shown = if argv.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { argv.len() };
    let arguments = redaction::shown(command, argv).take(shown);
    let mut kept: Vec<Vec<u8>> = arguments.map(shortened_argument).collect();
    if argv.len() > shown {
        kept.push(format!("... ({} more arguments)", argv.len() - shown).into_bytes());
    }
    kept
}

fn shortened_argument(argument: &[u8]) -> Vec<u8> {
    if argument.len() <= ARGUMENT_BYTES_MAX {
        return argument.to_vec();
    }
    let mut kept = argument[..ARGUMENT_BYTES_MAX].to_vec();
    let more = argument.len() - ARGUMENT_BYTES_MAX;
    kept.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    kept
}
