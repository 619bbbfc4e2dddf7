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
        if let Some((reply, write_offset)) = waiter.wait.take_answer(reply, write_offset) {
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
    use config::Config;

    use crate::command::args::Args;
    use crate::command::error::CommandResult;
    use crate::command::{Docs, Group, NO_FLAGS, NO_KEYS, docs};
    use crate::engine::{Command, Family, Registry, row};
    use crate::testing::TestServer;

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
                assert!(
                    wait.take_answer(said(answer), 0).is_none(),
                    "the command may ask for more"
                );
            }
            let last = wait.take_answer(Output::new(), 0).map(|(reply, _)| reply.to_vec());
            assert_eq!(last, Some(expected.as_bytes().to_vec()));
            assert!(!wait.is_waiting());
        }
        let wait = Wait::new(Awaited::Host, 0, false, None);
        wait.ask();
        wait.ask();
        assert!(wait.take_answer(Output::new(), 0).is_none(), "the host has not answered");
        let last = wait.take_answer(said("+OK"), 0).map(|(reply, _)| reply.to_vec());
        assert_eq!(last, Some(b"+OK".to_vec()));
    }

    #[test]
    fn an_answer_depends_on_its_own_offset_also_when_it_comes_before_the_end_of_the_command() {
        let wait = Wait::new(Awaited::Host, 0, false, None);
        wait.ask();
        wait.ask();
        assert!(wait.take_answer(said("+OK"), 7).is_none(), "the command has not ended");
        let (reply, write_offset) = wait.take_answer(Output::new(), 0).unwrap();
        assert_eq!((reply.to_vec(), write_offset), (b"+OK".to_vec(), 7));
    }

    /// The other client, which writes.
    fn write(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
        cx.db.effects.journal_command(0, [&b"WRITE"[..]].into_iter());
        cx.reply.ok();
        Ok(())
    }

    /// The host answers before the command ends.
    fn ask(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
        let waiter = cx.wait_for_host();
        cx.engine.answer(&waiter, b"+OK\r\n");
        Ok(())
    }

    /// Nobody waits for what the host answers.
    fn tell(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
        cx.engine.answer(&cx.waiter_of_nobody(), b"+OK\r\n");
        cx.reply.ok();
        Ok(())
    }

    const COMMANDS: &[Command] = &Group::Server.rows([
        row("write", write, 1, NO_FLAGS, NO_KEYS),
        row("ask", ask, 1, NO_FLAGS, NO_KEYS),
        row("tell", tell, 1, NO_FLAGS, NO_KEYS),
    ]);
    const DOCS: &[Docs] = &[
        docs("write", "1.0.0", "Writes."),
        docs("ask", "1.0.0", "Asks."),
        docs("tell", "1.0.0", "Tells."),
    ];
    const FAMILY: Family = Family::new(COMMANDS, DOCS);

    #[test]
    fn what_a_quick_host_says_does_not_depend_on_what_others_write() {
        static FAMILIES: [Family; 1] = [FAMILY];
        let commands = Box::leak(Box::new(Registry::new(&FAMILIES)));
        let mut server = TestServer::with(commands, Config::default());
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "WRITE"), "+OK\r\n");
        assert!(server.engine.journal.end() > 0, "it is in the journal");
        assert_eq!(server.text("TELL"), "+OK\r\n");
        assert!(server.session.client.inbox.lock().served.is_none(), "nobody waits");
        assert_eq!(server.text("ASK"), "", "the answer lies in the inbox");
        let served = server.session.client.inbox.lock().served.take().expect("it has come");
        assert_eq!((served.reply.to_vec(), served.write_offset), (b"+OK\r\n".to_vec(), 0));
    }
}
