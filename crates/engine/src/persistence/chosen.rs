//! Durability and freshness that a client has chosen for itself: CLIENT DURABILITY and CLIENT
//! READAFTER. Where it has chosen no durability, `cluster-durability` has for all connections of a
//! node.
//!
//! A read that finds a key expired, and deletes it, is no write.
//!
//! The reply of a write carries what it waits for ([`Session::owed`]). Its worker holds the reply,
//! and all that the connection is sent after it, until that is reached. A write that has changed
//! nothing waits too, for all that was written before it: its reply tells of others' writes. That
//! makes a client safe which repeats a write that was not durable in time.
//!
//! A read of a client that has named a position is tried again when the server has applied as much,
//! and when its time is up.

use std::sync::atomic::Ordering::Relaxed;

use resp::args::Arguments;
use resp::output::Output;

use crate::command::error::CommandError;
use crate::command::{self, OF_TREE, Spec};
use crate::engine::{Context, Engine};
use crate::journal::backlog::Position;
use crate::session::Session;
use crate::session::awaited::{Awaited, Wait};
use crate::session::choice::Owed;
use crate::session::sync::SyncWait;
use crate::turn::Turn;
use crate::turn::expansion::{any_has, each_request};

/// Commands that look at data, or may do so.
const LOOKS_AT_DATA: command::Flags = command::READONLY
    | command::WRITE
    | command::SCRIPT
    | command::WHOLE_KEYSPACE
    | command::READS_BY_PATTERN
    | command::SHOWS_LIBRARIES;

const LOST: CommandError = CommandError::text(
    "NOHISTORY the last write may be lost: other data have taken the place of those it was made to",
);

/// How far a write is that a client waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// As far as its client has chosen.
    Yes,
    /// Not yet.
    NotYet,
    /// It never will be: the reason.
    Never(&'static str),
}

impl Context<'_> {
    /// Notes what the reply that begins at this place of the stream of all output waits for, if the
    /// command may write, or has. Must be called under the locks, after all effects are settled.
    pub(crate) fn note_owed(&mut self, from: u64, may_write: bool, has_written: bool) {
        let output = self.reply.output();
        let length = usize::try_from(output.end() - from).unwrap_or(usize::MAX);
        let is_answer = !output.begins_at(from, b'-');
        let offset = match has_written {
            true => self.engine.counted(self.session.write_offset),
            false if may_write && is_answer => self.engine.counted(self.engine.journal.end()),
            // Events have numbers: nobody may see one that a failover could give to another event.
            false if self.row.command.has(OF_TREE) && is_answer => self.engine.nodes.written(),
            false => return,
        };
        let durability = self.session.durability.or_default(self.db.config);
        let sync = durability.sync(offset, &self.engine.replicas.quorum);
        let is_there = !(has_written || may_write)
            && (offset == 0 || self.engine.reached(&sync) == Reached::Yes);
        if length > 0 && !is_there {
            self.session.owed = Some(Owed { sync, length });
        }
    }
}

impl Engine {
    /// Whether a command may write, as far as that decides for what its reply waits.
    #[cold]
    pub(crate) fn may_write_data(
        &self,
        session: &Session,
        (command, argv): (&Spec, Arguments<'_>),
    ) -> bool {
        each_request(command, argv, session).any(|(own, argv)| {
            let reads = own.has(command::READONLY) || self.declares_no_writes(own, argv);
            own.has(command::WRITE) || own.has(command::SCRIPT) && !reads
        })
    }

    /// What the reply of a client waits for that was served in its command, when everything up to
    /// this offset was written.
    pub fn owed_by_served(
        &self,
        session: &Session,
        wait: &Wait,
        (offset, reply): (u64, &Output),
    ) -> Option<Owed> {
        let (writes, offset) = match &wait.awaited {
            Awaited::Key(_, row) => {
                let writes = self.commands.rows()[*row].command.has(command::WRITE);
                (writes, self.counted(offset))
            }
            // It tells of a write of somebody else.
            Awaited::Event(_) => (true, offset),
            // What a thread has moved away for a client of a replica has no offset.
            Awaited::Host if self.replication.is_replica() && self.is_set_aside(session) => {
                (true, SyncWait::UNCOUNTED)
            }
            // A thread of the server has written for it, or has seen what others have.
            Awaited::Host => (offset > 0, offset),
            Awaited::Changes(_) | Awaited::Refusal(_) | Awaited::Sync(_) => (false, offset),
        };
        let is_served = wait.unblocked().is_none() && !reply.begins_at(0, b'-');
        let durability = session.durability.or_default(&self.config.load());
        let holds = durability.holds_replies() && writes && is_served;
        let sync = || durability.sync(offset, &self.replicas.quorum);
        holds.then(|| Owed { sync: sync(), length: reply.len() })
    }

    /// Whether another thread does the work of a client's command: MIGRATE.
    fn is_set_aside(&self, session: &Session) -> bool {
        let row = session.client.last_command.load(Relaxed).checked_sub(1);
        row.is_some_and(|row| self.commands.rows()[row].command.has(command::SET_ASIDE))
    }

    /// The offset of a client's own write, for whoever waits for it.
    fn counted(&self, write_offset: u64) -> u64 {
        if self.replication.is_replica() { SyncWait::UNCOUNTED } else { write_offset }
    }

    /// How far a write is that a client waits for.
    pub fn reached(&self, sync: &SyncWait) -> Reached {
        let journal = &*self.journal;
        if sync.of_shard && !self.config.load().cluster_enabled {
            return Reached::Never("this server is no node of a cluster");
        }
        // What its replicas have says nothing of them.
        if sync.replicas > 0 && self.replication.is_replica() {
            return Reached::Never("this server is a replica, whose own writes go nowhere");
        }
        if !sync.is_counted() {
            return Reached::Never(
                "it was written on a replica, which does not count its own writes",
            );
        }
        if sync.is_over(journal, || self.copies_of(sync)) && !sync.is_in_vain(journal) {
            return Reached::Yes;
        }
        if sync.is_in_vain(journal) {
            return Reached::Never("there is no append-only file");
        }
        if sync.local.is_some() && journal.state().failed {
            return Reached::Never("the disk has failed");
        }
        Reached::NotYet
    }

    /// How many replicas have it. One that has said nothing yet has nothing.
    fn copies_of(&self, sync: &SyncWait) -> u64 {
        self.replicas.copies(&SyncWait { offset: sync.offset.max(1), ..*sync })
    }

    /// Asks the disk and the replicas for it: they are asked once for all who wait, and for nothing
    /// that never comes.
    pub fn ask_for(&self, sync: &SyncWait) {
        if !sync.is_counted() {
            return;
        }
        if sync.local.is_some() {
            self.journal.request_sync(sync.offset);
        }
        if sync.replicas > 0 {
            self.replicas.ask();
        }
    }

    /// The error for a client whose write is not as durable in time as it has chosen, and says what
    /// was reached. It is counted.
    pub fn not_durable(&self, turn: &Turn, sync: &SyncWait, why: &str) -> CommandError {
        let mut reached = vec![String::from("in memory")];
        if sync.local.is_some() {
            let synced = sync.is_synced(&*self.journal);
            reached.push(format!("{} here", if synced { "synced" } else { "not synced" }));
        }
        if sync.replicas > 0 {
            let (copies, wanted) = (self.copies_of(sync), sync.replicas);
            let what = if sync.local.is_some() { "synced at" } else { "at" };
            let whose = if sync.of_shard { "members of the shard" } else { "replicas" };
            reached.push(format!("{what} {copies} of {wanted} {whose}"));
        }
        let text = format!("NODURABLE the write is done and stays: {}; {why}", reached.join(", "));
        self.choices.not_durable.fetch_add(1, Relaxed);
        turn.stats.error_replies.add(1);
        self.stats.count_error("NODURABLE");
        CommandError::owned(text)
    }

    /// The present position, for a client that has written nothing.
    pub fn position(&self) -> Position {
        let stream = self.stream();
        Position { history: stream.present, offset: stream.newest }
    }

    /// The position after this offset of the journal, which is that of a client's last write; the
    /// present position where there is none, and on a replica.
    ///
    /// # Errors
    /// The write may be lost: no position has it.
    pub fn position_after(&self, write_offset: u64) -> Result<Position, CommandError> {
        let position = self.position_behind(write_offset);
        // Also where that has happened meanwhile.
        match self.replication.may_have_lost(write_offset) {
            true => Err(LOST),
            false => Ok(position),
        }
    }

    fn position_behind(&self, write_offset: u64) -> Position {
        // In this order: the position may be later than asked for, and never earlier.
        let end = self.journal.end();
        let stream = self.stream();
        let behind = match write_offset {
            0 => 0,
            _ if self.replication.is_replica() => 0,
            offset => end.saturating_sub(offset),
        };
        Position { history: stream.present, offset: stream.newest.saturating_sub(behind) }
    }

    /// Whether this server has applied everything up to a position. The error says that it is none
    /// of this server's.
    pub fn has_applied(&self, position: &Position) -> Result<bool, CommandError> {
        let stream = self.stream();
        let is_earlier = |previous: &Position| {
            previous.history == position.history && position.offset <= previous.offset
        };
        if stream.present != position.history && !stream.previous.as_ref().is_some_and(is_earlier) {
            return Err(CommandError::owned(format!(
                "NOHISTORY the position is of another history than this server's, which is at {}:{}",
                stream.present, stream.newest
            )));
        }
        Ok(stream.newest >= position.offset)
    }

    /// Whether the command of a client has to wait because it would read data that is too old:
    /// until this millisecond of the monotonic clock at most. The error refuses it.
    #[cold]
    pub(crate) fn await_position(
        &self,
        turn: &Turn,
        session: &mut Session,
        command: &Spec,
    ) -> Result<Option<u64>, CommandError> {
        let breaks = self.replication.breaks();
        if !any_has(command, session, LOOKS_AT_DATA) {
            return Ok(None);
        }
        let Some(wanted) = session.read_after.as_mut().filter(|own| own.is_open(breaks)) else {
            return Ok(None);
        };
        let mut has = self.has_applied(&wanted.position);
        if matches!(has, Ok(false)) && turn.monotonic < wanted.deadline {
            self.choices.expect(wanted.position.offset, &session.client);
            has = self.has_applied(&wanted.position);
            if matches!(has, Ok(false)) {
                wanted.reached = None;
                return Ok(Some(wanted.deadline));
            }
        }
        self.choices.forget(session.client.id);
        let has = has?;
        wanted.reached = has.then_some(breaks);
        if has {
            return Ok(None);
        }
        self.choices.stale.fetch_add(1, Relaxed);
        let present = self.position();
        Err(CommandError::owned(format!(
            "STALE after {} ms this server is at {present}, before {}",
            wanted.timeout, wanted.position
        )))
    }

    /// The stream of a primary was applied further: wakes the clients that have waited for that.
    #[inline]
    pub fn announce_applied(&self) {
        for client in self.choices.take_readers(|| self.stream().newest) {
            self.host.wake(&client);
        }
    }
}
