//! The world of one running command, and what its handler can do with it.

use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;
use resp::reply::Reply;
use store::{Key, LockedSlots};

use crate::command::WAKES_ON_REMOVAL;
use crate::command::error::{CommandError, CommandResult};
use crate::db::Db;
use crate::db::slot_access::SlotAccess;
use crate::engine::Engine;
use crate::engine::busy::Busy;
use crate::engine::client_names::argv_of;
use crate::engine::row::Row;
use crate::session::Session;
use crate::session::attachment::{Attachment, Waiter};
use crate::session::awaited::{Awaited, AwaitedValue, Wait};

/// How long a string may become that was made before under other settings, in bytes. Redis knows no
/// bound then, and ends when there is not so much memory.
const LONGEST_REPEATED: u64 = 4 << 30;

/// The world of one running command.
pub struct Context<'a> {
    /// The keys that the command named.
    pub db: Db<'a>,
    /// Where the reply goes.
    pub reply: Reply<'a>,
    /// The connection.
    pub session: &'a mut Session,
    /// Everything else.
    pub engine: &'a Engine,
    /// The command that runs.
    pub row: &'static Row,
    /// Its access to slots: ordinary locks, with a reservation, or with the world stopped.
    pub slot_access: SlotAccess<'a>,
    /// Inside EXEC, or while a waiter is served: no command blocks there.
    pub nested: bool,
    /// Is told of a script that takes long.
    pub(crate) busy: Option<&'a dyn Busy>,
    /// The client is going to wait.
    pub block: Option<Waiter>,
}

/// What a blocking command gives when it waits.
pub struct WaitFor<'w> {
    /// For any of these keys.
    pub keys: &'w [Key<'w>],
    /// The key that serving it also changes.
    pub destination: Option<&'w [u8]>,
    /// The value for which it waits.
    pub wanted: AwaitedValue,
    /// For this many milliseconds; for ever when absent.
    pub timeout: Option<u64>,
    /// The command runs again after this many milliseconds, if it still waits then.
    pub again_in: Option<u64>,
    /// The command, for [`Command::serve`].
    pub argv: Arguments<'w>,
}

impl<'a> Context<'a> {
    /// The context of a command that a client has sent. Its reply is written to `output`.
    #[inline]
    pub(crate) fn new(
        engine: &'a Engine,
        session: &'a mut Session,
        row: &'static Row,
        slot_access: SlotAccess<'a>,
        db: Db<'a>,
        output: &'a mut Output,
    ) -> Context<'a> {
        let reply = Reply::new(output, session.resp3);
        Context {
            db,
            reply,
            session,
            engine,
            row,
            slot_access,
            nested: false,
            busy: None,
            block: None,
        }
    }
}

impl Context<'_> {
    /// How long a string the command may make, in bytes.
    pub fn longest_string(&self) -> u64 {
        let longest = self.db.config.proto_max_bulk_len;
        if self.session.repeats() { longest.max(LONGEST_REPEATED) } else { longest }
    }

    /// Whether a command may block now.
    pub fn may_block(&self) -> bool {
        !self.nested
    }

    /// Lets the client wait. The handler then returns without a reply.
    pub fn wait(&mut self, of: &WaitFor<'_>) {
        debug_assert!(self.may_block(), "handlers ask first");
        debug_assert!(self.row.command.serve.is_some(), "the row says how the client is served");
        let from_now = |ms: u64| self.db.monotonic.saturating_add(ms);
        let awaited = Awaited::Key(of.wanted, self.row.id);
        let deadline = of.timeout.map(from_now);
        let mut wait = Wait::new(awaited, self.db.index, self.session.resp3, deadline);
        wait.keys = of.keys.iter().map(|key| key.bytes.into()).collect();
        wait.destination = of.destination.map(Into::into);
        wait.user = self.session.user.clone();
        wait.needs_keys = self.row.command.has(WAKES_ON_REMOVAL);
        wait.argv = match self.engine.client_names.are_changed() {
            false => OwnedArguments::from(of.argv),
            true => argv_of(self.row, of.argv).collect(),
        };
        wait.again_at = of.again_in.map(from_now);
        self.block = Some(Waiter::new(&self.session.client, wait));
    }

    /// Lets the client wait for its refusal, for so many milliseconds; gives it back if no command
    /// may wait here.
    ///
    /// # Errors
    /// The refusal.
    pub fn refuse_later(&mut self, error: CommandError, delay: u64) -> CommandResult {
        if delay == 0 || !self.may_block() {
            return Err(error);
        }
        self.db.stats.error_replies.add(1);
        self.engine.stats.count_error(&error.code());
        let deadline = Some(self.db.monotonic.saturating_add(delay));
        let resp3 = self.session.resp3;
        let wait = Wait::new(Awaited::Refusal(error), self.db.index, resp3, deadline);
        self.block = Some(Waiter::new(&self.session.client, wait));
        Ok(())
    }

    /// Lets `take` answer from the first of these keys that has something for it. When none has,
    /// the client waits for one; where no command may block, its time is up at once.
    pub fn take_or_wait(
        &mut self,
        (keys, wanted): (&[Key<'_>], AwaitedValue),
        timeout: Option<u64>,
        argv: Arguments<'_>,
        mut take: impl FnMut(&mut Context<'_>, &Key<'_>) -> Result<bool, CommandError>,
    ) -> CommandResult {
        for key in keys {
            if take(self, key)? {
                return Ok(());
            }
        }
        if !self.may_block() {
            self.reply.null_array();
            return Ok(());
        }
        self.wait(&WaitFor { keys, destination: None, wanted, timeout, again_in: None, argv });
        Ok(())
    }

    /// Locks one slot while `action` looks at it and writes to the reply: for commands that walk
    /// the keyspace without naming keys. See [`crate::db::Db::with_slot`].
    pub fn with_slot<T>(
        &mut self,
        slot: u16,
        action: impl FnOnce(&LockedSlots<'_, Attachment>, &mut Reply<'_>) -> T,
    ) -> Result<T, CommandError> {
        let (db, reply) = (&self.db, &mut self.reply);
        let result = db.with_slot(self.slot_access, slot, |locked| action(locked, reply));
        result.ok_or(CommandError::MISSED_SLOT)
    }

    /// Whether the running command may write messages that this connection gets. Not in the middle
    /// of EXEC's reply, and not when CLIENT REPLY discards what is written.
    pub(crate) fn hears_messages_now(&self) -> bool {
        !self.nested && self.session.hears_replies()
    }

    /// Writes the messages that have arrived for this connection at this place of the reply, if
    /// that is possible; otherwise they follow the reply.
    pub fn write_messages(&mut self) {
        if self.hears_messages_now() {
            crate::session::pubsub::take_messages(&self.session.client, &mut self.reply);
            // The writes that they report were made before they came.
            self.depend_on_all();
        }
    }

    /// Sets what goes into the journal in place of the command itself. May be called several times,
    /// the command's own effect first.
    pub fn propagate(&mut self, argv: &[&[u8]]) {
        debug_assert!(
            self.engine.commands.find(argv[0]).is_some(),
            "{} is no command's own name",
            argv[0].escape_ascii()
        );
        self.db.effects.explicit = true;
        self.db.effects.journal_command(self.db.index, argv.iter().copied());
    }

    /// Lets the journal have the command itself, also if it has changed nothing.
    pub fn propagate_itself(&mut self, argv: Arguments<'_>) {
        self.db.effects.explicit = true;
        if self.is_journaling() {
            self.journal_request(self.row, argv);
        }
    }

    /// The journal gets the command as it came, but by its own name: files and replicas know no
    /// other. All that goes there as it came passes here.
    #[inline]
    pub(crate) fn journal_request(&mut self, row: &Row, argv: Arguments<'_>) {
        let (effects, database) = (&mut *self.db.effects, self.db.index);
        match self.engine.client_names.are_changed() {
            false => effects.journal_request(database, argv),
            true => effects.journal_command(database, argv_of(row, argv)),
        }
    }

    /// Declares that the command leaves nothing in the journal, or nothing beyond what it has
    /// declared.
    pub fn propagate_nothing(&mut self) {
        self.db.effects.explicit = true;
    }

    /// Whether anything listens to effects: otherwise they need not be put together.
    pub fn is_journaling(&self) -> bool {
        self.db.effects.journaling
    }

    /// Counts changes that [`crate::db::Db::changed`] does not see.
    pub fn add_dirty(&mut self, changes: u64) {
        self.db.effects.dirty += changes;
    }
}
