//! The slots that a request names.

use smallvec::SmallVec;

use crate::command::args::KeyAt;
use crate::command::keys::collect_keys;
use crate::command::{RUNS_QUEUED, Spec};
use crate::session::Session;
use crate::turn::expansion::queued;

/// Slots of a command, ascending and distinct.
pub(crate) type Slots = SmallVec<[u16; 12]>;

/// The slots that a command names, ascending and distinct.
pub(crate) fn all_slots(session: &Session, command: &Spec, keys: &[KeyAt]) -> Slots {
    if !command.has(RUNS_QUEUED) {
        return slots_of(keys);
    }
    // EXEC names no keys. It checks whether watched ones have expired.
    let watched = session.watch.iter().flat_map(|watch| &watch.keys);
    let mut slots: Slots = watched.map(|(_, key)| base::crc::key_slot(key)).collect();
    let mut keys = Vec::new();
    for own in queued(command, session) {
        collect_keys(own.command, own.argv.view(), &mut keys);
    }
    slots.extend(keys.iter().map(|key| key.slot));
    ascending(slots)
}

/// The slots of keys, ascending and distinct.
pub(crate) fn slots_of(keys: &[KeyAt]) -> Slots {
    ascending(keys.iter().map(|key| key.slot).collect())
}

/// Sorts slots, and leaves out those that repeat.
#[inline]
fn ascending(mut slots: Slots) -> Slots {
    slots.sort_unstable();
    slots.dedup();
    slots
}
