//! What replies depend on. Under `appendfsync always` a reply leaves only when the effects that it
//! tells of are durable: its command's own, and those of other commands that it has seen.
//!
//! Each slot keeps the journal's offset after its last write. A reply carries the largest offset of the
//! slots that its command held ([`Session::depends_on`]), and that of the journal's end if the command
//! has looked at more than it named. The sender of replies compares that with [`Journal::covered`].
//! While replies do not wait for syncs, none of this is kept.
//!
//! Under `everysec` and `no` the replies of a client that has written wait until the system has what it
//! wrote ([`Turn::awaits_write`]). That is so before they would leave, unless writing is slow or fails.
//! Replies that only tell of others' writes do not wait.
//!
//! This file also has the checks that stop writes: a journal that has failed, and a disk that does not
//! keep up with the journal, or with a snapshot of data that writes are about to change.

use config::Config;
use resp::reply::Reply;

use crate::command::{self, Spec};
use crate::engine::Engine;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use crate::persistence::journal::Journal;
use crate::run::consists::any_has;
use crate::run::turn::Turn;
use crate::session::Session;
use crate::wait::awaited::{Awaited, Unblocking, Wait};

/// Milliseconds between two attempts of a write that waits for the disk.
const PRESSURE_PAUSE: u64 = 5;

/// The flags of commands that look at more than they name.
pub(crate) const SEES_ALL: command::Flags = command::WHOLE_KEYSPACE | command::READS_BY_PATTERN;

impl Context<'_> {
    /// Notes what the reply depends on. Must be called under the locks, after all effects are settled.
    pub(crate) fn note_dependence(&mut self) {
        let held = &self.db.held;
        let newest = match held.is_everything() || self.row.command.has(SEES_ALL) {
            true => self.engine.journal.end(),
            false => self.engine.slot_offsets.newest(held),
        };
        self.session.depends_on = self.session.depends_on.max(newest);
    }

    /// Notes that the reply shows what others were told, which may depend on any write.
    pub(crate) fn depend_on_all(&mut self) {
        if self.db.effects.defers_replies {
            self.session.depends_on = self.engine.journal.end();
        }
    }
}

impl Turn {
    /// The offset for which the replies of a session have to wait, where replies do not wait for syncs:
    /// the system does not have its last write yet. Must be called after the journal was told of it.
    #[inline]
    pub fn awaits_write(&mut self, engine: &Engine, session: &Session) -> Option<u64> {
        let is_covered = session.written_to <= self.covered || self.look_again(engine, session);
        (!is_covered).then_some(session.written_to)
    }

    #[cold]
    fn look_again(&mut self, engine: &Engine, session: &Session) -> bool {
        self.covered = engine.journal.covered();
        session.written_to <= self.covered || self.defers_replies()
    }
}

/// Refuses writes that would not become durable. PING is refused too, as in Redis, because programs
/// that watch over a server use it.
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
    /// Why clients' writes are refused, or are kept by nothing though an append-only file is turned on, if
    /// so: for those who watch over the server.
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
    let concerned = command.name == "ping" || any_has(command, session, command::WRITE);
    let Some(reason) = journal.failure().filter(|_| concerned && !session.replays) else {
        return Ok(());
    };
    Err(CommandError::owned(format!("MISCONF Errors writing to the AOF file: {reason}")))
}

/// A write has to wait until then, because the disk does not keep up; in milliseconds of the steady
/// clock.
#[inline]
pub(crate) fn delayed_until(
    engine: &Engine,
    turn: &Turn,
    session: &Session,
    command: &Spec,
) -> Option<u64> {
    let waits = turn.writes_wait && is_delayed(engine, session, command);
    waits.then(|| turn.steady + PRESSURE_PAUSE)
}

#[cold]
fn is_delayed(engine: &Engine, session: &Session, command: &Spec) -> bool {
    let writes = command::WRITE | command::SCRIPT;
    if session.replays || !any_has(command, session, writes) {
        return false;
    }
    // FLUSHALL and the like hand whole tables to the snapshot, and copy nothing for it.
    !command.has(command::CLOSES_GATES) || engine.journal.state().pressed
}

impl Engine {
    /// Whether the wait of a client for a sync is over at this millisecond of the steady clock, for
    /// whichever reason.
    pub fn is_sync_wait_over(&self, wait: &Wait, now: u64) -> bool {
        let Awaited::Sync(sync) = &wait.awaited else { return false };
        let too_late = wait.deadline.is_some_and(|deadline| deadline <= now);
        !wait.is_waiting() || too_late || sync.is_over(&*self.journal)
    }

    /// Ends a client's wait for a sync at this millisecond of the steady clock and answers it, if the
    /// wait is over. Returns whether it is.
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
        wait.claim();
        self.show_waiting_ended(session);
        match wait.unblocked() {
            Some(Unblocking::Error) => reply.error(Unblocking::ERROR),
            Some(Unblocking::Timeout) | None => sync.reply(&*self.journal, reply),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use resp::output::Output;

    use super::*;
    use crate::reclaim::expire::ExpireCycle;
    use crate::testing::TestServer;

    fn holding() -> TestServer {
        let server = TestServer::new();
        server.journal.defers_replies.store(true, Relaxed);
        server
    }

    /// The offset on which the replies of a connection depend that sends only this command.
    fn dependence(server: &mut TestServer, line: &str) -> u64 {
        let mut other = server.connect();
        server.text_as(&mut other, line);
        other.depends_on
    }

    #[test]
    fn a_reply_depends_on_what_its_command_wrote_or_saw() {
        let mut server = holding();
        assert_eq!(dependence(&mut server, "GET a"), 0);
        assert_eq!(dependence(&mut server, "SET a 1"), 1);
        assert_eq!(dependence(&mut server, "SET b 1"), 2);
        assert_eq!(dependence(&mut server, "GET a"), 1);
        assert_eq!(dependence(&mut server, "DEL absent"), 0);
        assert_eq!(dependence(&mut server, "MGET a b c"), 2);
        assert_eq!(dependence(&mut server, "LPUSH a x"), 1, "an error tells of the key too");
        assert_eq!(dependence(&mut server, "PING"), 0);
        assert_eq!(dependence(&mut server, "DBSIZE"), 2, "it has looked everywhere");
        assert_eq!(dependence(&mut server, "DEL a"), 3);
        assert_eq!(dependence(&mut server, "GET a"), 3, "so does a nil");
        assert_eq!(dependence(&mut server, "FLUSHALL"), 4);
        assert_eq!(dependence(&mut server, "GET never-there"), 4);
    }

    #[test]
    fn a_transaction_depends_on_all_that_it_touched_and_watched() {
        let mut server = holding();
        assert_eq!(dependence(&mut server, "SET seen 1"), 1);
        assert_eq!(dependence(&mut server, "SET watched 1"), 2);
        let mut other = server.connect();
        for line in ["WATCH watched", "MULTI", "GET seen"] {
            server.text_as(&mut other, line);
        }
        assert_eq!(dependence(&mut server, "SET watched 2"), 3);
        assert_eq!(server.text_as(&mut other, "EXEC"), "*-1\r\n");
        assert_eq!(other.depends_on, 3);
    }

    #[test]
    fn a_transaction_that_looks_everywhere_depends_on_everything() {
        for line in ["DBSIZE", "KEYS *", "SCAN 0", "RANDOMKEY", "SORT list BY weight:*"] {
            let mut server = holding();
            assert_eq!(dependence(&mut server, "RPUSH list 1 2"), 1);
            assert_eq!(dependence(&mut server, "SET elsewhere 1"), 2);
            let mut other = server.connect();
            for line in ["MULTI", line, "GET never-there"] {
                server.text_as(&mut other, line);
            }
            server.text_as(&mut other, "EXEC");
            assert_eq!(other.depends_on, 2, "{line}");
        }
    }

    #[test]
    fn a_message_that_one_writes_to_oneself_depends_on_what_was_written_before_it() {
        let mut server = holding();
        let mut other = server.connect();
        for line in ["HELLO 3", "SUBSCRIBE a"] {
            server.text_as(&mut other, line);
        }
        assert_eq!(dependence(&mut server, "SET key value"), 1);
        server.text("PUBLISH a written");
        let told = server.text_as(&mut other, "PUBLISH a mine");
        assert!(told.contains("written") && told.contains("mine"), "{told}");
        assert_eq!(other.depends_on, 1);
        // Waiting replies are written before the end of a subscription, too.
        assert_eq!(dependence(&mut server, "SET key value"), 2);
        server.text("PUBLISH a written");
        assert!(server.text_as(&mut other, "UNSUBSCRIBE a").contains("written"));
        assert_eq!(other.depends_on, 2);
    }

    /// Clients do not wait for a FLUSHALL if they ask for nothing that it could have removed.
    #[test]
    fn who_asks_for_no_data_depends_on_nothing() {
        let mut server = holding();
        assert_eq!(dependence(&mut server, "SET key value"), 1);
        for line in ["FLUSHALL", "SWAPDB 0 1"] {
            let written = dependence(&mut server, line);
            let mut other = server.connect();
            for line in ["PING", "ECHO text", "MULTI", "PING", "EXEC", "COMMAND COUNT"] {
                server.text_as(&mut other, line);
                assert_eq!(other.depends_on, 0, "{line}");
            }
            server.text_as(&mut other, "GET never-there");
            assert_eq!(other.depends_on, written);
        }
    }

    /// A message about a write leaves only after the journal has the write, so that its receivers can
    /// wait for it.
    #[test]
    fn nobody_hears_of_a_write_before_the_journal() {
        let mut server = holding();
        server.text("CONFIG SET notify-keyspace-events KEA");
        let mut others = [server.connect(), server.connect(), server.connect()];
        let lines = ["MONITOR", "SUBSCRIBE a", "PSUBSCRIBE __key*"];
        for (other, line) in others.iter_mut().zip(lines) {
            server.text_as(other, line);
        }
        let clients: Vec<_> = others.iter().map(|other| Arc::clone(&other.client)).collect();
        server.text("MULTI");
        server.text("SET key value");
        server.text("PUBLISH a written");
        others.iter().for_each(|other| drop(crate::testing::messages(other)));
        *server.journal.appending.lock() = Some(Box::new(move || {
            for client in &clients {
                assert!(client.inbox.lock().pushes.is_empty(), "it is told too early");
            }
        }));
        let appended = server.journal.end();
        assert_eq!(server.text("EXEC"), "*2\r\n+OK\r\n:1\r\n");
        assert!(server.journal.end() > appended);
        for other in &others {
            assert!(!crate::testing::messages(other).is_empty());
        }
    }

    /// No deletion could be made durable: keys that are due count as absent and stay.
    #[test]
    fn nothing_expires_and_nothing_is_evicted_while_nothing_keeps_it() {
        let mut server = holding();
        server.now = Some(1_000_000);
        assert_eq!(dependence(&mut server, "SET key value PX 10"), 1);
        assert_eq!(dependence(&mut server, "PFADD count a b c"), 2);
        *server.journal.failure.lock() = Some("No space left on device".to_owned());
        server.now = Some(1_000_011);
        for line in ["GET key", "TTL key", "EXISTS key", "MGET key other", "PFCOUNT count"] {
            assert!(dependence(&mut server, line) <= 2, "{line}");
        }
        assert_eq!(server.text("GET key"), "$-1\r\n");
        let mut turn = Turn::new(&server.engine, "expiry");
        ExpireCycle::default().round(&server.engine, &mut turn, &server.gate);
        server.text("CONFIG SET maxmemory-policy allkeys-random");
        server.text("CONFIG SET maxmemory 1");
        assert_eq!(server.text("GET key"), "$-1\r\n");
        assert_eq!(server.journal.end(), 2, "nothing was appended");
        assert_eq!(server.text("DBSIZE"), ":2\r\n", "nothing was deleted");
        server.text("CONFIG SET maxmemory 0");
        *server.journal.failure.lock() = None;
        assert_eq!(server.text("GET key"), "$-1\r\n");
        assert_eq!(server.text("DBSIZE"), ":1\r\n");
    }

    #[test]
    fn what_was_written_before_replies_waited_counts_as_written_last() {
        let mut server = TestServer::new();
        assert_eq!(dependence(&mut server, "SET a 1"), 0, "nobody keeps account");
        server.journal.defers_replies.store(true, Relaxed);
        assert_eq!(dependence(&mut server, "GET a"), 1);
    }

    #[test]
    fn threads_that_begin_later_change_nothing_unless_they_have_written() {
        let mut server = holding();
        assert_eq!(dependence(&mut server, "SET a 1"), 1);
        assert_eq!(dependence(&mut server, "SET b 1"), 2);
        let late = crate::run::turn::Turn::new(&server.engine, "late");
        assert!(late.defers_replies());
        assert_eq!(dependence(&mut server, "GET a"), 1);
        server.engine.slot_offsets.begin(true, || 2);
        assert_eq!(dependence(&mut server, "GET a"), 2, "it may have been that one's write");
        server.journal.defers_replies.store(false, Relaxed);
        assert_eq!(dependence(&mut server, "SET a 2"), 0, "nobody keeps account");
        server.journal.defers_replies.store(true, Relaxed);
        assert_eq!(dependence(&mut server, "GET b"), 3);
    }

    #[test]
    fn writes_are_refused_while_nothing_keeps_them() {
        let mut server = TestServer::new();
        assert_eq!(server.text("SET a 1"), "+OK\r\n");
        *server.journal.failure.lock() = Some("No space left on device".to_owned());
        let refusal = "MISCONF Errors writing to the AOF file: No space left on device\r\n";
        assert_eq!(server.text("SET a 2"), format!("-{refusal}"));
        assert_eq!(server.text("PING"), format!("-{refusal}"));
        assert_eq!(server.text("GET a"), "$1\r\n1\r\n");
        server.text("MULTI");
        assert_eq!(server.text("SET a 3"), format!("-{refusal}"));
        assert!(server.text("EXEC").starts_with("-EXECABORT "));
        *server.journal.failure.lock() = None;
        assert_eq!(server.text("SET a 2"), "+OK\r\n");
    }

    #[test]
    fn writes_wait_while_the_disk_does_not_keep_up() {
        let mut server = TestServer::new();
        server.text("SET a 1");
        server.journal.pressed.store(true, Relaxed);
        server.begin_turn();
        let delayed_until = |server: &TestServer, name: &str| {
            let rows = server.engine.commands.rows();
            let row = rows.iter().find(|row| row.command.name == name).expect("it is there");
            super::delayed_until(&server.engine, &server.turn, &server.session, row.command)
        };
        assert_eq!(delayed_until(&server, "set"), Some(server.turn.steady + PRESSURE_PAUSE));
        assert_eq!(delayed_until(&server, "flushall"), Some(server.turn.steady + PRESSURE_PAUSE));
        assert_eq!(delayed_until(&server, "get"), None);
        assert_eq!(server.text("GET a"), "$1\r\n1\r\n");
        server.journal.pressed.store(false, Relaxed);
        assert_eq!(server.text("SET a 2"), "+OK\r\n");
    }

    #[test]
    fn what_copies_nothing_goes_on_beside_a_snapshot_that_does_not_keep_up() {
        let mut server = TestServer::new();
        let value = "x".repeat(14_000);
        (0..5000).for_each(|n| drop(server.text(&format!("SET key:{n} {value}"))));
        let engine = Arc::clone(&server.engine);
        let walker = engine.keyspace.begin_cut(&engine.gates.close(), 0).expect("no other");
        for number in (0..5000).take_while(|_| !engine.keyspace.cut_is_behind()) {
            server.text(&format!("SETBIT key:{number} 0 1"));
        }
        server.begin_turn();
        let waits = |name: &str| {
            let rows = server.engine.commands.rows();
            let row = rows.iter().find(|row| row.command.name == name).expect("it is there");
            super::delayed_until(&server.engine, &server.turn, &server.session, row.command)
                .is_some()
        };
        assert!(waits("set") && waits("del") && waits("eval"));
        assert!(!waits("flushall") && !waits("flushdb") && !waits("swapdb") && !waits("get"));
        drop(walker);
    }

    #[test]
    fn client_unblock_ends_waiting_for_a_sync_once() {
        let mut server = TestServer::new();
        let mut other = server.connect();
        let request = format!("CLIENT UNBLOCK {}", other.client.id);
        assert_eq!(server.text(&request), ":0\r\n", "it does not wait");
        server.text_as(&mut other, "SET a 1");
        for (how, answer) in [
            ("", "*2\r\n:0\r\n:0\r\n"),
            (" TIMEOUT", "*2\r\n:0\r\n:0\r\n"),
            (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
        ] {
            assert_eq!(server.text_as(&mut other, "WAITAOF 1 0 0"), "", "it waits");
            let wait = other.client.wait.lock().clone().expect("it waits");
            let mut output = Output::new();
            let mut reply = Reply::new(&mut output, false);
            assert!(!server.engine.settle_sync_wait(&other, &wait, 0, &mut reply));
            assert_eq!(server.text(&format!("{request}{how}")), ":1\r\n");
            assert_eq!(server.text(&request), ":0\r\n", "once");
            assert!(server.engine.settle_sync_wait(&other, &wait, 0, &mut reply));
            assert_eq!(String::from_utf8_lossy(&output.to_vec()), answer, "{how}");
            assert_eq!(server.engine.blocked_clients(), 0);
        }
        assert!(server.text("INFO errorstats").contains("errorstat_UNBLOCKED:count=1"));
    }

    #[test]
    fn waitaof_answers_when_the_own_writes_are_durable() {
        let mut server = TestServer::new();
        assert_eq!(server.text("WAITAOF 1 0 0"), "*2\r\n:1\r\n:0\r\n", "nothing was written");
        server.text("SET a 1");
        assert_eq!(server.text("WAITAOF 0 0 0"), "*2\r\n:0\r\n:0\r\n");
        assert_eq!(server.text("WAITAOF 1 0 0"), "", "it waits");
        assert_eq!(server.engine.blocked_clients(), 1);
        let wait = server.session.client.wait.lock().clone().expect("it waits");
        assert!(wait.claim());
        let inside = server.gate.enter();
        server.engine.end_wait(inside.presence(), &server.session, &wait);
        drop(inside);
        server.text("MULTI");
        server.text("WAITAOF 1 0 0");
        assert_eq!(server.text("EXEC"), "*1\r\n*2\r\n:0\r\n:0\r\n", "no waiting there");
        server.journal.synced.store(1, Relaxed);
        assert_eq!(server.text("WAITAOF 1 0 0"), "*2\r\n:1\r\n:0\r\n");
        let refused = server.text("WAITAOF 2 0 0");
        assert_eq!(refused, "-ERR value is out of range, value must between 0 and 1\r\n");
        assert_eq!(server.text("WAITAOF 0 0 -1"), "-ERR timeout is negative\r\n");
        server.journal.set_listening(false);
        assert!(server.text("WAITAOF 1 0 0").starts_with("-ERR WAITAOF cannot be used"));
    }
}
