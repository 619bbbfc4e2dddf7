//! Walks over all keys of a database, in steps that clients ask for one by one.
//!
//! A walk holds one slot at a time, and looks at a bounded number of entries while it holds it. A
//! key that is there from the first step to the last is shown; one that is moved to another bucket
//! meanwhile may be shown twice.
//!
//! ```text
//!  bit 45                                     14 13            0
//!     +-----------------------------------------+---------------+
//!     | position: reversed bits of the hash     |     slot      |   the cursor of SCAN
//!     +-----------------------------------------+---------------+
//! ```

use base::limits::{SLOTS, WALKED_PER_LOCK};
use store::{Entry, SlotTable};

use crate::db::Db;
use crate::db::slot_access::SlotAccess;

const SLOT_BITS: u32 = SLOTS.trailing_zeros();

/// Where a walk of a database stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    slot: u16,
    position: u32,
}

impl Cursor {
    /// Before the first key.
    pub const START: Cursor = Cursor { slot: 0, position: 0 };

    /// The cursor of this number. Each number is one.
    pub fn from_number(number: u64) -> Cursor {
        let slot = (number % SLOTS as u64) as u16;
        Cursor { slot, position: (number >> SLOT_BITS) as u32 }
    }

    /// Its number, for clients.
    pub fn to_number(self) -> u64 {
        u64::from(self.position) << SLOT_BITS | u64::from(self.slot)
    }
}

/// How a walk ended.
pub enum Walk {
    /// At the end of the database.
    Finished,
    /// It has seen enough: the next call goes on from there.
    Paused(Cursor),
    /// Another thread has locked the slot there.
    Missed(Cursor),
}

/// Shows the keys from `cursor` on, until at least `wanted` entries were looked at, and whether
/// each is still alive. Each is shown with the table that it is in.
pub fn walk(
    db: &Db<'_>,
    slot_access: SlotAccess<'_>,
    mut cursor: Cursor,
    wanted: usize,
    mut visit: impl FnMut(&SlotTable, Entry<'_>, bool),
) -> Walk {
    let database = db.index;
    let mut seen = 0;
    loop {
        let keyspace = db.locked.space();
        let Some(occupied) = keyspace.next_occupied(database, usize::from(cursor.slot)) else {
            return Walk::Finished;
        };
        if occupied != cursor.slot {
            cursor = Cursor { slot: occupied, position: 0 };
        }
        if seen >= wanted {
            return Walk::Paused(cursor);
        }
        let bound = (wanted - seen).min(WALKED_PER_LOCK);
        let next = db.with_slot(slot_access, cursor.slot, |locked| {
            let table = locked.table(database, cursor.slot)?;
            let (count, next) = walk_slot(table, cursor.position, bound, |entry| {
                visit(table, entry, entry.expire_at().is_none_or(|at| !db.has_expired(at)));
            });
            seen += count;
            next
        });
        cursor = match next {
            None => return Walk::Missed(cursor),
            Some(Some(position)) => Cursor { position, ..cursor },
            Some(None) => {
                // Other clients need not wait for the end of the walk.
                if let Some(reservation) = slot_access.reservation() {
                    reservation.release(cursor.slot);
                }
                if usize::from(cursor.slot) + 1 == SLOTS {
                    return Walk::Finished;
                }
                Cursor { slot: cursor.slot + 1, position: 0 }
            }
        };
    }
}

/// How a walk through one slot ended.
pub enum SlotWalk {
    /// It has looked at so many entries.
    Looked {
        /// How many.
        seen: usize,
        /// Where to go on; `None` at the end of the slot.
        next: Option<u32>,
    },
    /// Another thread has locked the slot.
    Missed,
}

/// Shows the keys of one slot from a position on, as [`walk`] does those of all, until at least
/// `wanted` entries were looked at.
pub fn walk_in_slot(
    db: &Db<'_>,
    slot_access: SlotAccess<'_>,
    (slot, position): (u16, u32),
    wanted: usize,
    mut visit: impl FnMut(&SlotTable, Entry<'_>, bool),
) -> SlotWalk {
    let looked = db.with_slot(slot_access, slot, |locked| {
        let Some(table) = locked.table(db.index, slot) else { return (0, None) };
        walk_slot(table, position, wanted, |entry| {
            visit(table, entry, entry.expire_at().is_none_or(|at| !db.has_expired(at)));
        })
    });
    match looked {
        Some((seen, next)) => SlotWalk::Looked { seen, next },
        None => SlotWalk::Missed,
    }
}

/// Shows the entries of a slot from `position` on, at least `bound` of them. Returns how many, and
/// where to continue.
fn walk_slot(
    table: &SlotTable,
    position: u32,
    bound: usize,
    mut visit: impl FnMut(Entry<'_>),
) -> (usize, Option<u32>) {
    let (mut seen, mut next) = (0, Some(position));
    while let Some(at) = next.filter(|_| seen < bound) {
        // Where a walk resumes, the bucket may have been merged with one that was shown before.
        let resumed = at == position && at > 0;
        next = table.walk(at, |entry| {
            seen += 1;
            if !resumed || SlotTable::position_of(entry.key()) >= at {
                visit(entry);
            }
        });
    }
    (seen, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_numbers() {
        for cursor in [Cursor::START, Cursor { slot: 16_383, position: u32::MAX }] {
            assert_eq!(Cursor::from_number(cursor.to_number()), cursor);
        }
        assert_eq!(Cursor::from_number(u64::MAX), Cursor { slot: 16_383, position: u32::MAX });
    }
}
