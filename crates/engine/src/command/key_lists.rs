//! The lists of key specs that many rows have, by what happens to the keys.
//!
//! A name alone is about one key, which is the first argument. With `_2` that key is the second
//! argument: the first is a subcommand.

use crate::command::spec::{ACCESS, DELETE, INSERT, KeySpec, OW, RO, RW, UPDATE};

/// No keys.
pub const NO_KEYS: &[KeySpec] = &[];
/// Looks whether the key is there, or how its value is, and answers nothing of the value.
pub const LOOKS: &[KeySpec] = &[KeySpec::at(RO, 1)];
/// Answers something of the value.
pub const READS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
/// Replaces the value, whatever it was.
pub const OVERWRITES: &[KeySpec] = &[KeySpec::at(OW | UPDATE, 1)];
/// Writes into the value.
pub const UPDATES: &[KeySpec] = &[KeySpec::at(RW | UPDATE, 1)];
/// Writes into the value, and answers or uses what was there.
pub const CHANGES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE, 1)];
/// Adds to the value.
pub const ADDS: &[KeySpec] = &[KeySpec::at(RW | INSERT, 1)];
/// Deletes something of the value.
pub const DELETES: &[KeySpec] = &[KeySpec::at(RW | DELETE, 1)];
/// Deletes something of the value, and answers it.
pub const TAKES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | DELETE, 1)];

/// As [`LOOKS`].
pub const LOOKS_2: &[KeySpec] = &[KeySpec::at(RO, 2)];
/// As [`READS`].
pub const READS_2: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 2)];
/// As [`UPDATES`].
pub const UPDATES_2: &[KeySpec] = &[KeySpec::at(RW | UPDATE, 2)];
/// As [`ADDS`].
pub const ADDS_2: &[KeySpec] = &[KeySpec::at(RW | INSERT, 2)];
/// As [`DELETES`].
pub const DELETES_2: &[KeySpec] = &[KeySpec::at(RW | DELETE, 2)];

/// All arguments are keys, as for [`LOOKS`].
pub const LOOKS_ALL: &[KeySpec] = &[KeySpec::range(RO, 1, -1, 1)];
/// All arguments are keys, as for [`READS`].
pub const READS_ALL: &[KeySpec] = &[KeySpec::range(RO | ACCESS, 1, -1, 1)];
/// The first argument counts the keys, which are as for [`READS`].
pub const READS_COUNTED: &[KeySpec] = &[KeySpec::counted(RO | ACCESS, 1)];
/// All arguments but the last are keys, as for [`TAKES`]; the last is a timeout.
pub const TAKES_TIMED: &[KeySpec] = &[KeySpec::range(RW | ACCESS | DELETE, 1, -2, 1)];
/// The first argument counts the keys, which are as for [`TAKES`].
pub const TAKES_COUNTED: &[KeySpec] = &[KeySpec::counted(RW | ACCESS | DELETE, 1)];
/// The second argument counts the keys, which are as for [`TAKES`].
pub const TAKES_COUNTED_2: &[KeySpec] = &[KeySpec::counted(RW | ACCESS | DELETE, 2)];

/// Takes from the first key, and adds to the second.
pub const MOVES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | DELETE, 1), KeySpec::at(RW | INSERT, 2)];
/// Overwrites the first key with something of the second.
pub const STORES: &[KeySpec] = &[KeySpec::at(OW | UPDATE, 1), KeySpec::at(RO | ACCESS, 2)];
/// Overwrites the first key with something of all others.
pub const STORES_ALL: &[KeySpec] =
    &[KeySpec::at(OW | UPDATE, 1), KeySpec::range(RO | ACCESS, 2, -1, 1)];
/// Overwrites the first key with something of others, which the second argument counts.
pub const STORES_COUNTED: &[KeySpec] =
    &[KeySpec::at(OW | UPDATE, 1), KeySpec::counted(RO | ACCESS, 2)];
