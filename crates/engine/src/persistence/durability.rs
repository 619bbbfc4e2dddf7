//! What replies depend on. Under `appendfsync always` a reply leaves only when the effects that it
//! tells of are durable: its command's own, and those of other commands that it has seen.
//!
//! Each slot keeps the journal's offset after its last write. A reply carries the largest offset of
//! the slots that its command held ([`Session::depends_on`]), and that of the journal's end if the
//! command has looked at more than it named. The sender of replies compares that with
//! [`Journal::released`]. While replies do not wait for syncs, none of this is kept.
//!
//! Under `everysec` and `no` the replies of a client that has written wait until the system has the
//! client's writes ([`Turn::awaits_write`]). Usually the system has them before the replies would
//! leave, unless writing is slow or fails. Replies that only tell of others' writes do not wait.
//!
//! This file also has the checks that stop writes: a journal that has failed, and a disk that does
//! not keep up with the journal, or with a snapshot of data that writes are about to change.

use config::Config;
use resp::args::Arguments;
use resp::reply::Reply;

use crate::command::error::{CommandError, CommandResult};
use crate::command::{self, Spec};
use crate::engine::{Context, Engine};
use crate::journal::Journal;
use crate::replication::{LinkState, ReplicaView};
use crate::session::Session;
use crate::session::awaited::{Awaited, Unblocking, Wait};
use crate::session::choice::Durability;
use crate::turn::Turn;
use crate::turn::expansion::{any_has, each_request};

/// Milliseconds between two attempts of a write that waits for the disk.
pub const PRESSURE_PAUSE: u64 = 5;

/// The flags of commands that look at more than they name.
pub const SEES_ALL: command::Flags =
    command::WHOLE_KEYSPACE | command::READS_BY_PATTERN | command::SHOWS_LIBRARIES;

impl Context<'_> {
    /// Notes what the reply depends on. Must be called under the locks, after all effects are
    /// settled.
    pub(crate) fn note_dependence(&mut self) {
        let locked = &self.db.locked;
        let newest = match locked.is_everything() || self.row.command.has(SEES_ALL) {
            true => self.engine.journal.end(),
            false => self.engine.slot_offsets.newest(locked),
        };
        self.session.depends_on = self.session.depends_on.max(newest);
    }

    /// Notes that the reply shows what others were told, which may depend on any write.
    pub fn depend_on_all(&mut self) {
        if self.db.effects.defers_replies {
            self.session.depends_on = self.engine.journal.end();
        }
    }

    /// Notes that the reply tells of a library of functions, or that there is none. Libraries are
    /// changed by writes that concern all slots.
    pub fn depend_on_libraries(&mut self) {
        if self.db.effects.defers_replies {
            let changed = self.engine.slot_offsets.everywhere();
            self.session.depends_on = self.session.depends_on.max(changed);
        }
    }
}

impl Turn {
    /// The offset for which the replies of a session have to wait, where replies do not wait for
    /// syncs: the system does not have its last write yet. Must be called after the journal was
    /// told of it.
    #[inline]
    pub fn awaits_write(&mut self, engine: &Engine, session: &Session) -> Option<u64> {
        let is_released = session.write_offset <= self.released || self.look_again(engine, session);
        (!is_released).then_some(session.write_offset)
    }

    #[cold]
    fn look_again(&mut self, engine: &Engine, session: &Session) -> bool {
        let end = engine.journal.end();
        let released = engine.journal.released();
        self.note_covered(released, end);
        let has_chosen = session.durability != Durability::Default;
        session.write_offset <= released || self.defers_replies() || has_chosen
    }

    /// Notes how much is covered, of a journal that was this long before. Without a file everything
    /// is covered; what is appended later may go into one.
    #[inline]
    pub(crate) fn note_covered(&mut self, released: u64, end: u64) {
        self.released = released.min(end);
    }
}

/// Whether a command is refused where writes would not become durable: it writes, or its row says
/// so.
pub(crate) fn is_refused_like_writes(session: &Session, command: &Spec) -> bool {
    command.has(command::REFUSED_LIKE_WRITES) || any_has(command, session, command::WRITE)
}

/// Refuses writes that would not become durable.
#[inline]
pub(crate) fn admit(
    engine: &Engine,
    turn: &Turn,
    session: &Session,
    command: &Spec,
) -> CommandResult {
    if !turn.effects.journal_failed {
        return Ok(());
    }
    refuse(&*engine.journal, session, command)
}

impl Engine {
    /// Why no client should be sent here, or `None` if the server has its data and takes writes, as
    /// far as the disk is concerned. For load balancers and monitoring.
    pub fn unreadiness(&self, config: &Config) -> Option<String> {
        if self.loading.is_on() {
            return Some("loading".into());
        }
        // A replica that has no data and never had a link would answer that no key exists.
        let is_new = |view: ReplicaView| view.link != LinkState::Up && view.down_since.is_none();
        let is_empty = || (0..self.keyspace.databases()).all(|own| self.keyspace.len(own) == 0);
        let view = self.cluster.view();
        // Whoever restarts the nodes of a cluster in turn goes on when this one is ready.
        let counts = || view.is_some() || is_empty();
        if self.replication.view().is_some_and(is_new) && counts() {
            return Some("waiting for the data of the primary".into());
        }
        let now = base::clock::monotonic_us();
        if view.is_some_and(|view| !self.cluster.may_serve_as(&view, now)) {
            return Some("etcd and the other nodes do not confirm that this is the primary".into());
        }
        self.trouble(config)
    }

    /// Why clients' writes are refused, or not kept although an append-only file is turned on;
    /// `None` if neither is so. For monitoring.
    pub fn trouble(&self, config: &Config) -> Option<String> {
        if self.journal.state().failed {
            let reason = self.journal.failure().unwrap_or_default();
            return Some(format!("MISCONF Errors writing to the AOF file: {reason}"));
        }
        if self.saving.stops_writes(config) {
            return Some(
                "MISCONF The last save failed, and stop-writes-on-bgsave-error is set".into(),
            );
        }
        let cannot_begin = self.journal.beginning().then(|| self.journal.failure()).flatten();
        cannot_begin.map(|reason| format!("the AOF file cannot be begun: {reason}"))
    }
}

#[cold]
fn refuse(journal: &dyn Journal, session: &Session, command: &Spec) -> CommandResult {
    let concerned = is_refused_like_writes(session, command);
    let Some(reason) = journal.failure().filter(|_| concerned && !session.replays) else {
        return Ok(());
    };
    Err(CommandError::owned(format!("MISCONF Errors writing to the AOF file: {reason}")))
}

/// A write has to wait until then, because the disk or a replica does not keep up; in milliseconds
/// of the monotonic clock.
#[inline]
pub fn delayed_until(
    engine: &Engine,
    turn: &Turn,
    session: &Session,
    (command, argv): (&Spec, Arguments<'_>),
) -> Option<u64> {
    let waits = turn.writes_wait && is_delayed(engine, session, command, argv);
    waits.then(|| {
        let slowed = engine.replicas.slowing.until(turn.monotonic).unwrap_or_default();
        slowed.max(turn.monotonic + PRESSURE_PAUSE)
    })
}

#[cold]
fn is_delayed(engine: &Engine, session: &Session, command: &Spec, argv: Arguments<'_>) -> bool {
    let any = |which: &dyn Fn(&Spec, Arguments<'_>) -> bool| {
        each_request(command, argv, session).any(|(own, argv)| which(own, argv))
    };
    let writes = |own: &Spec, argv: Arguments<'_>| {
        own.has(command::WRITE)
            || own.has(command::SCRIPT)
                && !(own.has(command::READONLY) || engine.declares_no_writes(own, argv))
    };
    if session.replays || !any(&writes) {
        return false;
    }
    // FLUSHALL and the like hand whole tables to the snapshot, and copy nothing for it. Little is
    // left to be copied for what a transaction or a script does besides.
    let hands_over = |own: &Spec, argv: Arguments<'_>| {
        own.has(command::WRITE) && own.has(command::STOPS_THE_WORLD) || engine.may_empty(own, argv)
    };
    !any(&hands_over) || engine.journal.state().pressed
}

impl Engine {
    /// The offset, as the present history counts it, up to which the append-only file is synced;
    /// none while there is no file of the present data.
    pub fn synced_position(&self) -> Option<u64> {
        let is_there = self.journal.has_file() && !self.journal.beginning();
        let backlog = self.journal.changes().filter(|own| is_there && own.is_on())?;
        Some(backlog.in_history(self.journal.synced()))
    }

    /// Whether the wait of a client for a sync is over at this millisecond of the monotonic clock,
    /// for whichever reason.
    pub fn is_sync_wait_over(&self, wait: &Wait, now: u64) -> bool {
        let Awaited::Sync(sync) = &wait.awaited else { return false };
        let too_late = wait.deadline.is_some_and(|deadline| deadline <= now);
        let is_over = || too_late || sync.is_over(&*self.journal, || self.replicas.copies(sync));
        // Another thread that has claimed it answers it.
        wait.unblocked().is_some() || wait.is_waiting() && is_over()
    }

    /// Ends a client's wait for a sync at this millisecond of the monotonic clock and answers it,
    /// if the wait is over. Returns whether it is.
    pub fn settle_sync_wait(
        &self,
        session: &Session,
        wait: &Wait,
        now: u64,
        reply: &mut Reply<'_>,
    ) -> bool {
        let Awaited::Sync(sync) = &wait.awaited else { return false };
        if !self.is_sync_wait_over(wait, now) {
            return false;
        }
        let unblocked = wait.unblocked();
        if unblocked.is_none() && !wait.claim() {
            return false;
        }
        self.show_waiting_ended(session);
        match unblocked {
            Some(Unblocking::Error) => reply.error(Unblocking::ERROR),
            Some(Unblocking::Timeout) | None => {
                sync.reply(&*self.journal, self.replicas.copies(sync), reply)
            }
        }
        true
    }
}
