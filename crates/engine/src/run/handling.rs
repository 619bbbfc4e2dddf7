//! The handler of one command, and what belongs to this command alone.

use base::clock::Ticks;
use resp::output::Mark;

use crate::clients::monitor;
use crate::command::args::Args;
use crate::command::error::CommandError;
use crate::engine::{Context, Row};
use crate::observe::command_log::Cost;

impl Context<'_> {
    /// Runs one handler and settles what belongs to this command alone: its error reply, its
    /// journal entry, its statistics.
    pub fn run_handler(&mut self, row: &'static Row, args: &mut Args<'_>) {
        let begun = self.db.effects.last_end;
        let mark = self.reply.mark();
        let journal_at = self.db.effects.journal.len();
        let dirty_before = self.db.effects.dirty;
        self.row = row;
        self.db.effects.explicit = false;
        let result = (row.command.handler)(self, args);
        if let Err(error) = result {
            if self.db.locked.missed().is_some() {
                // It is tried again, as if nothing had happened.
                return self.reply.rollback(mark);
            }
            self.end_in_error(row, &error, mark);
        }
        if self.engine.pubsub.is_monitored() {
            monitor::show(self.db.effects, self.session, row.command, args.argv());
        }
        if !self.db.effects.expired.get_mut().is_empty() {
            let journal_failed = self.db.effects.journal_failed;
            let stands_still = self.engine.stands_still(self.db.monotonic, journal_failed);
            if !self.db.expiry.deletes_met(stands_still) {
                // An expired key is absent, but stays where it is.
                self.db.effects.expired.get_mut().clear();
            }
            self.db.settle_expired(journal_at);
        }
        let effects = &mut self.db.effects;
        if effects.journaling && effects.dirty > dirty_before && !effects.explicit {
            self.journal_request(row, args.argv());
        }
        let ended = Ticks::now();
        self.db.effects.last_end = ended;
        let cost =
            Cost { nanoseconds: ended.since_ns(begun), reply: self.reply.len_since(mark) as u64 };
        if let Some(waiter) = &self.block
            && waiter.wait.keep_cost(cost)
        {
            return;
        }
        self.engine.note_cost(self, row, args, cost);
    }

    fn end_in_error(&mut self, row: &'static Row, error: &CommandError, mark: Mark) {
        self.reply.rollback(mark);
        self.db.stats.error_replies.add(1);
        self.db.stats.commands[row.id].failed.add(1);
        self.engine.stats.count_error(&error.code());
        self.reply.error(error.as_bytes());
    }
}
