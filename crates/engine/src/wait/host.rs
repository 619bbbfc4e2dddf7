//! Clients that wait for the host: until a file is written, or a background job is done.

use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;

use crate::engine::{Context, Engine};
use crate::session::attachment::Waiter;
use crate::session::awaited::{Awaited, Wait};

impl Engine {
    /// Answers a client that waits for the host, unless it has gone meanwhile.
    pub fn answer(&self, waiter: &Waiter, reply: &[u8]) {
        let mut output = Output::new();
        output.push(reply);
        self.answer_with(waiter, output);
    }

    /// The same with a reply that other clients may get a copy of; the copy shares large parts.
    pub fn answer_with(&self, waiter: &Waiter, reply: Output) {
        self.answer_after(waiter, reply, 0);
    }

    /// The same with a reply that depends on this offset of the journal.
    pub fn answer_after(&self, waiter: &Waiter, reply: Output, write_offset: u64) {
        if let Some(reply) = waiter.wait.take_answer(reply) {
            waiter.leave(reply, write_offset);
            self.host.wake(&waiter.client);
        }
    }
}

impl Context<'_> {
    /// Lets the client wait until [`Engine::answer`]. Commands of a transaction wait together, and
    /// so do their replies.
    pub fn wait_for_host(&mut self) -> Waiter {
        let Context { session, db, .. } = self;
        let new = || {
            let wait = Wait::new(Awaited::Host, db.index, session.resp3, None);
            // The host may answer before the command asks for more: see `begin_to_wait`.
            wait.ask();
            Waiter::new(&session.client, wait)
        };
        let waiter = self.block.get_or_insert_with(new).clone();
        waiter.wait.ask();
        waiter
    }

    /// For a command that asks the host for something and does not wait: the answer is dropped.
    pub fn waiter_of_nobody(&self) -> Waiter {
        let wait = Wait::new(Awaited::Host, self.db.index, self.session.resp3, None);
        // Whoever answers finds that somebody else has done so.
        wait.claim();
        Waiter::new(&self.session.client, wait)
    }
}

impl Context<'_> {
    /// The same for a command that reads something which the host prepares, with these arguments: a
    /// client whose user loses the right to it meanwhile gets an error instead. The command asks
    /// nothing else of the host.
    pub fn wait_for_reading(&mut self, argv: Arguments<'_>) -> Waiter {
        debug_assert!(self.block.is_none(), "it asks once");
        let mut wait = Wait::new(Awaited::Host, self.db.index, self.session.resp3, None);
        (wait.argv, wait.reads) = (OwnedArguments::from(argv), Some(self.row.id));
        wait.ask();
        wait.ask();
        let waiter = Waiter::new(&self.session.client, wait);
        self.block = Some(waiter.clone());
        waiter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Output {
        let mut output = Output::new();
        output.push(text.as_bytes());
        output
    }

    #[test]
    fn a_wait_ends_with_the_last_of_its_answers() {
        for (before, expected) in [(&["+OK"][..], "+OK"), (&["", ""], ""), (&[], "")] {
            let wait = Wait::new(Awaited::Host, 0, false, None);
            // The command counts until its end.
            wait.ask();
            for answer in before {
                wait.ask();
                assert!(wait.take_answer(said(answer)).is_none(), "the command may ask for more");
            }
            let last = wait.take_answer(Output::new()).map(|reply| reply.to_vec());
            assert_eq!(last, Some(expected.as_bytes().to_vec()));
            assert!(!wait.is_waiting());
        }
        let wait = Wait::new(Awaited::Host, 0, false, None);
        wait.ask();
        wait.ask();
        assert!(wait.take_answer(Output::new()).is_none(), "the host has not answered");
        let last = wait.take_answer(said("+OK")).map(|reply| reply.to_vec());
        assert_eq!(last, Some(b"+OK".to_vec()));
    }
}
