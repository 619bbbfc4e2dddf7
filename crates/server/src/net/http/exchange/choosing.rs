//! What a client has chosen for a request takes its effect, and what the answer says of the stream
//! of writes.

use base::limits;
use engine::admission::slots::has_queued_keys;
use engine::cluster::view::Owner;
use engine::command::error::CommandError;
use engine::engine::Engine;
use engine::persistence::chosen::Reached;
use engine::session::Session;
use engine::session::choice::{Durability, READAFTER_TIMEOUT, ReadAfter};
use engine::session::client::flag;
use engine::session::sync::SyncWait;
use engine::turn::Turn;
use http::answer::Whereabouts;
use http::reply::Pieces;
use resp::args::OwnedArguments;
use resp::output::Output;
use resp::reply::Reply;

use crate::net::http::etcd::answer::answer_node;
use crate::net::http::url::url_of;

use super::choice::Choice;
use super::next::Next;
use super::withheld::Withheld;
use super::{Exchange, Kind, answer_error};

impl Exchange {
    /// The same request, for which the client has chosen this.
    pub(in super::super) fn with_choice(self, choice: Option<Box<Choice>>) -> Exchange {
        Exchange { choice, ..self }
    }

    /// Prepares the session for what the client has chosen.
    #[inline]
    pub(super) fn choose(&mut self, monotonic: u64, session: &mut Session) {
        if self.written_before.is_none() {
            self.written_before = Some(session.write_offset);
            session.read_after = None;
            session.durability = Durability::Default;
            if let Some(choice) = &mut self.choice {
                session.durability = choice.durability;
                let wanted = choice.read_after.take().map(|position| ReadAfter {
                    position,
                    deadline: monotonic.saturating_add(READAFTER_TIMEOUT),
                    timeout: READAFTER_TIMEOUT,
                    reached: None,
                });
                session.read_after = wanted.map(Box::new);
            }
        }
    }

    /// Has requests for the tree of etcd wait for the next primary of its slot, as those of etcd
    /// wait for the next leader.
    #[inline]
    pub(super) fn await_primary(&mut self, monotonic: u64, session: &mut Session) {
        let is_node = self.envelope.target.is_some();
        session.primary_awaited_until = (is_node && self.is_of_tree()).then(|| {
            let until = monotonic.saturating_add(limits::ETCD_ELECTION_MS);
            *self.primary_awaited_until.get_or_insert(until)
        });
    }

    fn is_of_tree(&self) -> bool {
        matches!(self.kind, Kind::Node | Kind::Watch(_))
    }

    /// Has the answer say where the request and this server are in the stream of writes.
    #[inline]
    fn say_whereabouts(&mut self, engine: &Engine, turn: &Turn, session: &Session, reply: &Output) {
        let has_written = self.written_before.is_some_and(|before| session.write_offset != before);
        let is_write = has_written || matches!(self.kind, Kind::Write | Kind::Tree(_));
        let is_replica = engine.replication.is_replica();
        if is_write || is_replica {
            // A write that has changed nothing tells of what others have written before.
            let after = if has_written { session.write_offset } else { 0 };
            let written = (is_write && !is_replica).then_some(after);
            self.say_whereabouts_now(engine, turn, reply, written);
        }
    }

    #[cold]
    fn say_whereabouts_now(
        &mut self,
        engine: &Engine,
        turn: &Turn,
        reply: &Output,
        written: Option<u64>,
    ) {
        let mut whereabouts = Whereabouts {
            // No position has a write that may be lost.
            written: written
                .and_then(|offset| Some(engine.position_after(offset).ok()?.to_string())),
            ..Whereabouts::default()
        };
        if let Some(view) = engine.replication.view() {
            let staleness = engine.replication.staleness(turn.monotonic);
            whereabouts.staleness = Some(staleness.map_or("unknown".into(), |ms| ms.to_string()));
            if reply.first_slice().starts_with(b"-READONLY") {
                let host = String::from_utf8_lossy(&view.primary.host).into_owned();
                whereabouts.primary = Some(format!("{host}:{}", view.primary.port));
            }
        }
        let earlier = self.envelope.whereabouts.take();
        whereabouts.primary = whereabouts.primary.or(earlier.and_then(|earlier| earlier.primary));
        self.envelope.whereabouts = Some(Box::new(whereabouts));
    }

    /// Finds where the request is answered, if another node of the cluster has the slot of its key.
    fn find_owner(&mut self, engine: &Engine, turn: &Turn, session: &Session, reply: &Output) {
        let Some(text) = reply.first_slice().strip_prefix(b"-MOVED ") else { return };
        let slot = text.split(|byte| *byte == b' ').next().and_then(base::num::parse_i64);
        let slot = slot.and_then(|slot| u16::try_from(slot).ok());
        let view = engine.cluster.view();
        let node = view.as_ref().zip(slot).and_then(|(view, slot)| match view.owner(slot) {
            Owner::Primary(node) | Owner::Other(node) => Some(node),
            Owner::Own | Owner::Nobody => None,
        });
        let Some(node) = node else { return };
        let url = url_of(node, &turn.config, session.client.has_flag(flag::ENCRYPTED));
        let target = http::target::origin_form(self.envelope.target.as_deref().unwrap_or("/"));
        self.envelope.location = url.map(|url| format!("{url}{target}").into());
    }

    /// Takes the reply of a command, as [`Exchange::take_reply`]. An answer that waits for the
    /// durability which the client has chosen is withheld: the command that this returns then waits
    /// for it, and its reply comes next.
    pub(in super::super) fn take_reply_or_wait(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        session: &mut Session,
        reply: &mut Output,
        output: &mut Output,
    ) -> Next {
        if let Some(withheld) = self.withheld.take() {
            return self.end_withheld((engine, turn), *withheld, output);
        }
        if self.envelope.target.is_some() {
            let is_moved = reply.first_slice().starts_with(b"-MOVED ");
            if is_moved && matches!(self.kind, Kind::Transaction { .. }) && has_queued_keys(session)
            {
                // Another node would send the client back.
                reply.clear();
                Reply::new(reply, true).error(CommandError::CROSS_SLOT.as_bytes());
            }
            self.find_owner(engine, turn, session, reply);
        }
        self.say_whereabouts(engine, turn, session, reply);
        let owed = session.owed.take();
        if let Some(owed) = owed {
            let sync = self.withholds.map_or(owed.sync, |earlier: SyncWait| SyncWait {
                offset: earlier.offset.max(owed.sync.offset),
                ..owed.sync
            });
            self.withholds = Some(sync);
        }
        let has_begun = match &self.kind {
            Kind::Pipeline { begun, .. } => *begun,
            Kind::Watch(watch) => watch.has_begun(),
            _ => false,
        };
        let from = output.end();
        let next = self.take_reply((turn.now, turn.monotonic), reply, output);
        // Each event is a whole, and so is what a client learns before it waits for one.
        let is_whole =
            matches!(next, Next::Answered | Next::Streams(_) | Next::Watches(_) | Next::GoesOn(_));
        match self.withholds.take_if(|_| is_whole && !output.is_over_limit()) {
            Some(sync) => {
                let answer = output.split_off(from);
                self.withheld = Some(Box::new(Withheld { sync, answer, next, has_begun }));
                Next::AwaitsCopies(words_of(&sync))
            }
            None => next,
        }
    }

    /// The wait for a withheld answer has ended.
    fn end_withheld(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        withheld: Withheld,
        output: &mut Output,
    ) -> Next {
        let Withheld { sync, answer, next, has_begun } = withheld;
        let why = match engine.reached(&sync) {
            Reached::Yes => {
                output.append(&answer);
                return next;
            }
            Reached::Never(why) => why,
            Reached::NotYet => "durability-timeout is over",
        };
        let error = engine.not_durable(turn, &sync, why);
        if has_begun {
            return Next::Breaks;
        }
        self.tell_error(turn.now, error.as_bytes(), output);
        Next::Answered
    }

    /// Whether the server stops while an answer is withheld: then the client is told so.
    pub(super) fn stop_withheld(&mut self, now: u64, output: &mut Output) -> bool {
        let Some(withheld) = self.withheld.take() else { return false };
        if !withheld.has_begun {
            let text = b"NODURABLE the write is done and stays: in memory; the server stops";
            self.tell_error(now, text, output);
        }
        true
    }

    fn tell_error(&self, now: u64, text: &[u8], output: &mut Output) {
        let mut reply = Output::new();
        Reply::new(&mut reply, true).error(text);
        if self.is_of_tree() {
            return answer_node(&reply, &self.envelope, now, output);
        }
        answer_error(Pieces::new(&reply.bytes()), &self.envelope, now, output);
    }
}

/// The words of the command that waits for copies.
fn words_of(sync: &SyncWait) -> OwnedArguments {
    let (local, of_shard) = (sync.local.unwrap_or(0), u64::from(sync.of_shard));
    let numbers = [sync.offset, local, sync.replicas, of_shard].map(|it| it.to_string());
    ["AWAITCOPIES"].into_iter().chain(numbers.iter().map(String::as_str)).collect()
}
