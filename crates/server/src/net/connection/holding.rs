//! How a connection holds replies that wait for the durability that its client has chosen.

use std::sync::Arc;

use engine::engine::Engine;
use engine::turn::Turn;
use resp::output::Output;
use resp::reply::Reply;

use super::Connection;
use crate::net::protocol::Protocol as _;
use crate::net::withheld::{Reason, Withheld};

impl Connection {
    /// Holds what was written from this place on, if it waits for the durability that the client
    /// has chosen, or for earlier replies that do. `is_open` says that its client waits for the
    /// host. Returns whether that is so.
    #[inline]
    pub(in crate::net) fn hold_back(
        &mut self,
        within: (&Engine, &Turn),
        from: u64,
        is_open: bool,
    ) -> bool {
        let holds = self.held.is_some() || self.session.owed.is_some();
        if holds {
            self.hold_back_now(within, from, is_open);
        }
        holds
    }

    #[cold]
    fn hold_back_now(&mut self, (engine, turn): (&Engine, &Turn), from: u64, is_open: bool) {
        let owed = self.session.owed.take();
        if self.output.is_over_limit() || self.output.end() <= from {
            return;
        }
        let deadline = turn.monotonic.saturating_add(turn.config.durability_timeout);
        let depends = turn.defers_replies() && self.session.durability.heeds_disk();
        let reason = Reason {
            owed: owed.map(|owed| (owed, deadline)),
            depends_on: depends.then_some(self.session.depends_on),
            is_open,
        };
        let bytes = self.output.split_off(from);
        let held = self.held.get_or_insert_with(|| Box::new(Withheld::new(&engine.choices)));
        held.add(bytes, reason);
        self.session.holds_replies = true;
    }

    /// Sends on what is held and waits no more. `end` says why nothing waits any longer.
    pub(in crate::net) fn settle_held(&mut self, within: (&Engine, &Turn), end: Option<&str>) {
        let Connection { held, output, deferred_replies, session, .. } = self;
        let Some(own) = held else { return };
        own.settle(within, (session.resp3, end), (output, deferred_replies));
        if own.is_empty() {
            *held = None;
            session.holds_replies = false;
        }
    }

    /// Whether replies wait for the durability that the client has chosen.
    #[inline]
    pub(in crate::net) fn holds_replies(&self) -> bool {
        self.held.is_some()
    }

    /// Writes a message, behind the replies that are held.
    pub(in crate::net) fn push_message(&mut self, message: &Arc<Vec<u8>>) {
        match &mut self.held {
            Some(held) => held.pass(message),
            None => self.output.push_shared(message),
        }
    }

    /// Ends subscriptions to shard channels, and streams of changes of keys, whose slots have left
    /// this node of a cluster.
    pub(in crate::net) fn leave_channels(&mut self, engine: &Engine) {
        let mut messages = Output::new();
        let mut reply = Reply::new(&mut messages, self.session.resp3);
        engine.leave_channels(&mut self.session, &mut reply);
        if !messages.is_empty() {
            self.push_message(&Arc::new(messages.to_vec()));
        }
        self.protocol.leave_slots(&mut self.session, &mut self.output);
    }
}
