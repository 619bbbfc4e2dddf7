//! Clients that wait for the host: until a file is written, or an errand is done.

use resp::output::Output;

use crate::engine::{Context, Engine};
use crate::wait::awaited::{Awaited, Wait};
use crate::wait::waiting::Waiter;

impl Engine {
    /// Answers a client that waits for the host, unless it has gone meanwhile.
    pub fn answer(&self, waiter: &Waiter, reply: &[u8]) {
        let mut output = Output::new();
        output.push(reply);
        self.answer_with(waiter, output);
    }

    /// The same with a reply that other clients may get a copy of; the copy shares large parts.
    pub fn answer_with(&self, waiter: &Waiter, reply: Output) {
        if waiter.wait.is_last_answer() && waiter.wait.claim() {
            waiter.leave(reply, 0);
            self.host.wake(&waiter.client);
        }
    }
}

impl Context<'_> {
    /// Lets the client wait until [`Engine::answer`]. Commands of a transaction wait together, and so
    /// do their replies.
    pub(crate) fn wait_for_host(&mut self) -> Waiter {
        let Context { session, db, .. } = self;
        let new = || {
            let wait = Wait::new(Awaited::Host, db.index, session.resp3, None);
            Waiter::new(&session.client, wait)
        };
        let waiter = self.block.get_or_insert_with(new).clone();
        waiter.wait.ask();
        waiter
    }
}
