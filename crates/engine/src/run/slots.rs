//! The slots that a request names.

use smallvec::SmallVec;

use crate::command::Spec;
use crate::command::keys::collect_keys;
use crate::handler::args::KeyAt;
use crate::session::Session;

/// Slots of a command, ascending and distinct.
pub(crate) type Slots = SmallVec<[u16; 12]>;

/// The slots that a command names, ascending and distinct.
pub(crate) fn all_slots(session: &Session, command: &Spec, keys: &[KeyAt]) -> Slots {
    if command.name != "exec" {
        return slots_of(keys);
    }
    let mut slots: Slots = keys.iter().map(|key| key.slot).collect();
    collect_transaction_slots(session, &mut slots);
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The slots of keys, ascending and distinct.
pub(crate) fn slots_of(keys: &[KeyAt]) -> Slots {
    let mut slots: Slots = keys.iter().map(|key| key.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The slots of all queued commands, and of the watched keys, whose expiry EXEC checks.
fn collect_transaction_slots(session: &Session, slots: &mut Slots) {
    let mut keys = Vec::new();
    let watched = session.watch.iter().flat_map(|watch| &watch.keys);
    slots.extend(watched.map(|(_, key)| base::crc::key_slot(key)));
    for queued in session.transaction.iter().flat_map(|own| &own.commands) {
        collect_keys(queued.command, queued.argv.view(), &mut keys);
    }
    slots.extend(keys.iter().map(|key| key.slot));
}
