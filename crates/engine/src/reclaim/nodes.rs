//! Removes nodes whose time is up, even if no request looks at them.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits;
use store::Key;
use store::gate::{Gate, Pinned};

use crate::engine::Engine;
use crate::nodes::kept::{EXPIRIES, Kept};
use crate::session::slot_moves::Passage;
use crate::turn::Turn;

/// How long a round may take, in nanoseconds.
const ROUND_NS: u64 = 20_000_000;

impl Engine {
    /// Removes nodes whose time is up, for as long as one round may take. The caller is outside its
    /// gate, and holds no slot.
    pub fn expire_nodes(&self, turn: &mut Turn, gate: &Gate) {
        let begun = Ticks::now();
        while begun.elapsed_ns() < ROUND_NS {
            turn.begin(self);
            let journal_failed = turn.effects.journal_failed;
            if !turn.expiry.deletes_before_change()
                || self.stands_still(turn.monotonic, journal_failed)
                || !self.debug.active_expire.load(Relaxed)
            {
                return;
            }
            let inside = gate.enter();
            let more = self.expire_some_nodes(inside.pinned(), turn);
            drop(inside);
            if !more {
                return;
            }
        }
    }

    /// Removes some of them. Returns whether there may be more.
    fn expire_some_nodes(&self, pinned: Pinned<'_>, turn: &mut Turn) -> bool {
        let key = Key::new(EXPIRIES);
        // Where the slot is on its way, and on a node that does not lead it, its primary does this.
        let is_held = || self.slot_moves.passage([key.slot].into_iter()) != Passage::Free;
        if self.keyspace.hidden.has(key.slot) || self.slot_moves.are_any() && is_held() {
            return false;
        }
        // A contended slot is busy: its turn comes again.
        let Some(locked) = self.keyspace.try_lock_one(pinned, key.slot, turn.clock) else {
            return false;
        };
        if locked.find(0, &key).is_none() {
            return false;
        }
        let mut looked_at = 0;
        self.delete_unasked(turn, locked, 0, |db| {
            let mut tree = Kept { db, hub: &self.nodes };
            // Other data under the keys of the tree stops expiry; requests report it.
            looked_at = tree.expire(limits::ETCD_EXPIRED_PER_LOCK).unwrap_or(0);
        });
        looked_at == limits::ETCD_EXPIRED_PER_LOCK
    }
}
