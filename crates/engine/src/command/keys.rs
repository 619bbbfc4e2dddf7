//! The keys of a command, found by its key specs.

use resp::args::Arguments;
use store::Key;

use crate::command::args::KeyAt;
use crate::command::spec::{NOT_KEY, Spec};

#[inline(always)]
pub(crate) fn add_key(argv: Arguments<'_>, index: usize, keys: &mut Vec<KeyAt>) {
    let Some(bytes) = argv.get(index) else { return };
    let key = Key::new(bytes);
    keys.push(KeyAt { index: index as u32, hash: key.hash, slot: key.slot });
}

/// Appends the keys of a command, in the order of its arguments.
pub fn collect_keys(command: &Spec, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
    let mut add = |index| add_key(argv, index, keys);
    for spec in command.keys {
        if spec.flags & NOT_KEY == 0 {
            spec.each(argv, &mut add);
        }
    }
    if let Some(finder) = command.key_finder {
        finder(argv, &mut |index, _| add(index));
    }
}
