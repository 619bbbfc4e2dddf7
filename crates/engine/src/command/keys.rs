//! The keys of a command, found by its key specs.

use resp::args::Arguments;
use store::Key;

use crate::command::args::KeyAt;
use crate::command::spec::{ACCESS, KeyFlags, KeySpec, NOT_KEY, RW, Spec, UPDATE, VARIABLE_FLAGS};

#[inline(always)]
pub(crate) fn add_key(argv: Arguments<'_>, index: usize, keys: &mut Vec<KeyAt>) {
    let Some(bytes) = argv.get(index) else { return };
    let key = Key::new(bytes);
    keys.push(KeyAt { index: index as u32, hash: key.hash, slot: key.slot });
}

/// Calls `visit` with the index of each key of a command, in the order of its key specs. The key
/// spec that has found it comes with it, or its flags if a finder has.
#[inline(always)]
fn visit_keys<'s>(
    command: &'s Spec,
    argv: Arguments<'_>,
    visit: &mut impl FnMut(usize, Result<&'s KeySpec, KeyFlags>),
) {
    if let Some(finder) = command.key_finder {
        return finder(argv, &mut |index, flags| visit(index, Err(flags)));
    }
    for spec in command.keys {
        if spec.flags & NOT_KEY == 0 {
            spec.each(argv, |index| visit(index, Ok(spec)));
        }
    }
}

/// Calls `visit` with the index of each key of a command, in the order of its key specs, and with
/// what happens to the key. These are the keys that the command uses: [`collect_keys`].
#[inline]
pub fn each_key(command: &Spec, argv: Arguments<'_>, visit: &mut impl FnMut(usize, KeyFlags)) {
    visit_keys(command, argv, &mut |index, found| {
        visit(index, found.map_or_else(|flags| flags, |spec| flags_of(command, spec, argv)));
    });
}

/// What happens to the keys of a spec.
#[inline(always)]
pub fn flags_of(command: &Spec, spec: &KeySpec, argv: Arguments<'_>) -> KeyFlags {
    match command.key_flags {
        Some(key_flags) if spec.flags & VARIABLE_FLAGS != 0 => key_flags(&argv),
        _ if spec.flags & VARIABLE_FLAGS != 0 => RW | ACCESS | UPDATE,
        _ => spec.flags,
    }
}

/// Appends the keys of a command, in the order of its arguments.
pub fn collect_keys(command: &Spec, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
    visit_keys(command, argv, &mut |index, _| add_key(argv, index, keys));
}
