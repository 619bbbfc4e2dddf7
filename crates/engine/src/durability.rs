//! What replies depend on: under `appendfsync always` a reply leaves when the effects are durable
//! that it tells of, its command's own or those of others that the command has seen.
//!
//! Each slot keeps the journal's offset behind its last write. A reply carries the largest offset of
//! the slots that its command held ([`Session::depends_on`]), and that of the journal's end where the
//! command has looked at more than it named. Who sends replies compares that with
//! [`Journal::covered`]. While replies wait for nothing, none of this is kept.
//!
//! Here is also what stands in the way of writes: a journal that has failed, or that the disk does
//! not keep up with.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::limits::SLOTS;
use resp::reply::Reply;
use store::Held;

use crate::call::{any_has, show_blocked};
use crate::command::{self, Command};
use crate::context::Context;
use crate::engine::{Engine, Turn};
use crate::error::{CommandError, CommandResult};
use crate::journal::Journal;
use crate::session::Session;
use crate::waiting::Attachment;

/// Milliseconds between two attempts of a write that the disk holds up.
const PRESSURE_PAUSE: u64 = 5;

/// The journal's offset behind the last write of each slot, as far as they were kept.
pub(crate) struct SlotOffsets {
    /// Read and written under the slot's lock.
    slots: Box<[AtomicU64]>,
    /// Behind the last write that concerned all slots.
    everywhere: AtomicU64,
}

impl Default for SlotOffsets {
    fn default() -> SlotOffsets {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        SlotOffsets { slots, everywhere: AtomicU64::new(0) }
    }
}

impl SlotOffsets {
    /// Notes a write of whoever holds these slots.
    pub(crate) fn note_write(&self, held: &Held<'_, Attachment>, offset: u64) {
        if held.is_everything() {
            return self.note_everywhere(offset);
        }
        held.each_slot(|slot| self.slots[usize::from(slot)].store(offset, Relaxed));
    }

    /// Notes that any slot may have been written before this offset.
    pub(crate) fn note_everywhere(&self, offset: u64) {
        self.everywhere.fetch_max(offset, Relaxed);
    }

    /// The largest offset of the slots that are held.
    fn newest(&self, held: &Held<'_, Attachment>) -> u64 {
        let mut newest = self.everywhere.load(Relaxed);
        held.each_slot(|slot| newest = newest.max(self.slots[usize::from(slot)].load(Relaxed)));
        newest
    }
}

impl Context<'_> {
    /// Notes what the reply depends on. To be called under the locks, when all effects are settled.
    pub(crate) fn note_dependence(&mut self) {
        let held = &self.db.held;
        let sees_all = command::WHOLE_KEYSPACE | command::READS_BY_PATTERN;
        let newest = match held.is_everything() || any_has(self.row.command, self.session, sees_all)
        {
            true => self.engine.journal.end(),
            false => self.engine.slot_offsets.newest(held),
        };
        self.session.depends_on = self.session.depends_on.max(newest);
    }

    /// Notes that the reply shows what others were told, which may depend on anything.
    pub(crate) fn depend_on_all(&mut self) {
        if self.db.effects.holds_replies {
            self.session.depends_on = self.engine.journal.end();
        }
    }
}

/// Refuses writes that nothing would make durable. PING is refused too, as in Redis: it is what
/// those who watch over a server ask with.
#[inline]
pub(crate) fn admit(
    engine: &Engine,
    turn: &Turn,
    session: &Session,
    command: &Command,
) -> CommandResult {
    if !turn.journal_failed {
        return Ok(());
    }
    refuse(&*engine.journal, session, command)
}

#[cold]
fn refuse(journal: &dyn Journal, session: &Session, command: &Command) -> CommandResult {
    let concerned = command.name == "ping" || any_has(command, session, command::WRITE);
    let Some(reason) = journal.failure().filter(|_| concerned && !session.replays) else {
        return Ok(());
    };
    Err(CommandError::owned(format!("MISCONF Errors writing to the AOF file: {reason}")))
}

/// Until when a write has to wait, because the disk does not keep up, in Unix milliseconds.
#[inline]
pub(crate) fn held_up(turn: &Turn, session: &Session, command: &Command) -> Option<u64> {
    let waits =
        turn.journal_pressed && !session.replays && any_has(command, session, command::WRITE);
    waits.then(|| turn.now + PRESSURE_PAUSE)
}

/// A client that waits until its writes are durable: WAITAOF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncWait {
    /// The journal's offset behind its last write.
    pub offset: u64,
    /// Copies on this machine that it waits for, 0 or 1.
    pub local: u64,
    /// Replicas that it waits for.
    pub replicas: u64,
    /// When it gives up, in Unix milliseconds.
    pub deadline: Option<u64>,
}

impl SyncWait {
    /// Whether the writes are durable here.
    fn is_synced(&self, journal: &dyn Journal) -> bool {
        journal.state().listening && journal.synced() >= self.offset
    }

    /// Whether there is nothing left to wait for at this Unix millisecond.
    pub fn is_over(&self, journal: &dyn Journal, now: u64) -> bool {
        let local = self.local == 0 || self.is_synced(journal);
        (local && self.replicas == 0) || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers how many copies there are.
    pub fn reply(&self, journal: &dyn Journal, reply: &mut Reply<'_>) {
        reply.array(2);
        reply.integer(i64::from(self.is_synced(journal)));
        // There are no replicas.
        reply.integer(0);
    }
}

impl Engine {
    /// Counts a client that begins to wait for a sync.
    pub(crate) fn begin_sync_wait(&self, session: &Session) {
        show_blocked(session, true);
        self.blocked_clients.fetch_add(1, Relaxed);
    }

    /// Ends a client's waiting for a sync.
    pub fn end_sync_wait(&self, session: &Session) {
        show_blocked(session, false);
        self.blocked_clients.fetch_sub(1, Relaxed);
    }
}
