//! The path of a command: the checks in their order, the locks, the handler, and what follows.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use resp::args::{Arguments, OwnedArguments};
use resp::output::{Mark, Output};
use resp::reply::Reply;
use smallvec::SmallVec;
use store::gate::Presence;
use store::{Entry, Held, Key, garbage};

use crate::command;
use crate::command::keys::{add_key, collect_keys};
use crate::engine::{Command, Context, Engine, Row};
use crate::handler::args::{Args, KeyAt};
use crate::handler::db::Db;
use crate::handler::error::CommandError;
use crate::host::LogLevel;
use crate::observe::command_log::Cost;
use crate::observe::monitor;
use crate::observe::notify::News;
use crate::persistence::backlog::Backlog;
use crate::run::admission::Admission;
use crate::run::authority::Authority;
use crate::run::consists::{
    any_has, any_needs_gates, concerns_scripts, executes_program, is_exec, is_program,
    lacks_subcommand, queued,
};
use crate::run::effects::{Effects, Expired};
use crate::run::request::{Call, Outcome, Request};
use crate::run::slots::all_slots;
use crate::run::turn::Turn;
use crate::script::emptying;
use crate::script::shebang::{self, NO_WRITES};
use crate::script::slow::Need;
use crate::session::{QueuedCommand, ScriptNeeds, Session};
use crate::wait::blocking;
use crate::wait::waiting::Attachment;

/// Milliseconds between two lines of the log about connections that speak another protocol, so that
/// such connections cannot fill the log.
const FOREIGN_LOG_PAUSE: u64 = 60_000;

/// Keys behind full buckets whose entries are brought near together, at most.
const CHAINED_AT_ONCE: usize = 64;

impl Engine {
    /// Finds the row of a command and hashes its keys, so that their slots and entries can be
    /// prefetched before it runs. Appends to `keys`.
    #[inline]
    pub fn prepare(&self, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) -> Option<&'static Row> {
        let row = self.commands.resolve(argv)?;
        self.find_keys(row, argv, keys);
        Some(row)
    }

    /// The part of [`Engine::prepare`] that hashes keys.
    #[inline(always)]
    pub fn find_keys(&self, row: &Row, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
        if row.command.accepts(argv.len()) {
            if row.one_key {
                add_key(argv, 1, keys);
            } else {
                collect_keys(row.command, argv, keys);
            }
        }
    }

    /// [`Engine::find_keys`] for a command that may have the only key of the one before it, which is
    /// known then: these bytes, there.
    #[inline(always)]
    pub fn find_keys_behind(
        &self,
        known: Option<(&[u8], KeyAt)>,
        row: &Row,
        argv: Arguments<'_>,
        keys: &mut Vec<KeyAt>,
    ) {
        match known {
            Some((bytes, key))
                if row.one_key
                    && row.command.accepts(argv.len())
                    && argv.get(1).is_some_and(|own| base::bytes::same(own, bytes)) =>
            {
                keys.push(key);
            }
            _ => self.find_keys(row, argv, keys),
        }
    }

    /// Prefetches the slots of keys. First of three steps, each over a whole batch.
    #[inline]
    pub fn prefetch_slots(&self, keys: &[KeyAt]) {
        each_other(keys, |key| self.keyspace.prefetch_slot(key.slot));
    }

    /// Prefetches the buckets of keys.
    #[inline]
    pub fn prefetch_buckets(&self, presence: Presence<'_>, database: usize, keys: &[KeyAt]) {
        each_other(keys, |key| {
            self.keyspace.prefetch_bucket(presence, database, key.slot, key.hash);
        });
    }

    /// Prefetches the entries of keys.
    #[inline]
    pub fn prefetch_entries(&self, presence: Presence<'_>, database: usize, keys: &[KeyAt]) {
        let mut chained: SmallVec<[&KeyAt; CHAINED_AT_ONCE]> = SmallVec::new();
        each_other(keys, |key| {
            let goes_on = self.keyspace.prefetch_entry(presence, database, key.slot, key.hash);
            if goes_on && chained.len() < CHAINED_AT_ONCE {
                chained.push(key);
            }
        });
        for key in chained {
            self.keyspace.prefetch_chained(presence, database, key.slot, key.hash);
        }
    }

    /// Runs a command of a connection.
    pub fn execute(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        request: Request<'_>,
        authority: Authority<'_>,
        output: &mut Output,
    ) -> Outcome {
        let (start, from) = (output.mark(), output.end());
        turn.advance();
        let mut call = Call { turn, session, request, output };
        let outcome = match self.admit_and_run(&mut call, authority) {
            Ok(outcome) => outcome,
            Err(error) => self.refuse(authority.presence(), &mut call, error),
        };
        let replied = match outcome {
            Outcome::Done => true,
            // Its client may wait only for the reply that is written to be true.
            Outcome::Blocked(_) => call.output.end() > from,
            _ => false,
        };
        if replied && !call.session.end_reply() {
            call.output.rollback(start);
        }
        outcome
    }

    /// Makes the checks, and runs the command if they allow it now. The error refuses it.
    fn admit_and_run(
        &self,
        call: &mut Call<'_>,
        authority: Authority<'_>,
    ) -> Result<Outcome, CommandError> {
        let Call { turn, session, request, output } = call;
        if request.row.is_none() && is_foreign(request.argv) {
            self.turn_away(turn, session);
            return Ok(Outcome::Done);
        }
        let number = request.row.map_or(0, |row| row.id + 1);
        session.client.last_command.store(number, Relaxed);
        let admission = self.admit(authority.presence(), turn, session, request);
        self.note_paused(session, matches!(admission, Ok(Admission::Pause(_))));
        match admission? {
            Admission::Run(row) => self.run(call, row, authority),
            Admission::Queue(row) => {
                queue(session, row, request.argv);
                Reply::new(output, session.resp3).simple(b"QUEUED");
                Ok(Outcome::Done)
            }
            Admission::Pause(until) => Ok(Outcome::Paused(until)),
        }
    }

    /// Closes a connection that speaks another protocol, and now and then logs that.
    fn turn_away(&self, turn: &Turn, session: &mut Session) {
        session.close = true;
        let last = self.foreign_logged_at.load(Relaxed);
        if turn.steady >= last.saturating_add(FOREIGN_LOG_PAUSE) {
            self.foreign_logged_at.store(turn.steady, Relaxed);
            let line = format!(
                "Closed {}, which sent POST or Host: as HTTP clients do. A web browser may have been \
                 used to reach this server.",
                session.client.address
            );
            self.host.log(LogLevel::Warning, &line);
        }
    }

    /// Refuses a command: answers with the error, and carries out what else a refusal does.
    fn refuse(&self, presence: Presence<'_>, call: &mut Call<'_>, error: CommandError) -> Outcome {
        let Call { turn, session, request, output } = call;
        // A subcommand that does not exist does not count as a call of its container.
        let row = request.row.filter(|row| !lacks_subcommand(row, request.argv));
        match row {
            Some(row) => turn.stats.commands[row.id].rejected.add(1),
            None => session.client.last_command.store(0, Relaxed),
        }
        session.keys_so_far = None;
        session.forget_script_needs();
        if let Some(transaction) = &mut session.transaction {
            transaction.aborted = true;
        }
        let error = match row {
            Some(row) if is_exec(row.command) => {
                // A refused EXEC ends the transaction nevertheless.
                self.abandon_transaction(presence, session);
                CommandError::exec_refused(&error)
            }
            _ => error,
        };
        self.reply_error(turn, &mut Reply::new(output, session.resp3), &error);
        Outcome::Done
    }

    /// Locks the slots that the command needs, runs it, and settles its effects. The error refuses it.
    fn run(
        &self,
        call: &mut Call<'_>,
        row: &'static Row,
        authority: Authority<'_>,
    ) -> Result<Outcome, CommandError> {
        if call.turn.beside_script
            && concerns_scripts(row.command, call.session)
            && let Some(error) = self.scripts.slow.refusal(Need::Thread)
        {
            return Err(error);
        }
        if let Some(outcome) = self.lacking(row.command, call.session, call.request.argv, authority)
        {
            return self.unless_refused(outcome, None);
        }
        let held = match self.lock(call, row, authority) {
            Ok(held) => held,
            Err(missed) => return self.note_locked(call, row, authority, missed),
        };
        let (outcome, missed) = self.run_locked(call, row, authority, held);
        self.clean_up(authority.presence(), call.turn);
        let Call { turn, session, request, .. } = call;
        if missed.is_some() {
            let outcome = self.unless_refused(outcome, missed)?;
            turn.contended_slot = missed;
            turn.stats.contended.add(1);
            return Ok(outcome);
        }
        if !request.keys.is_empty() {
            turn.sample_keys(1, session.database, request.argv, request.keys);
        }
        if session.subscriptions.is_some() && matches!(outcome, Outcome::Done) {
            self.write_own_messages(call);
        }
        Ok(outcome)
    }

    /// Runs the handler of a command whose slots are locked, serves those who wait for what it has
    /// written, and unlocks the slots. Returns a slot that it has met locked, too.
    fn run_locked(
        &self,
        call: &mut Call<'_>,
        row: &'static Row,
        authority: Authority<'_>,
        held: Held<'_, Attachment>,
    ) -> (Outcome, Option<u16>) {
        let Call { turn, session, request, output } = call;
        let resp3 = session.resp3;
        let (parts, effects) = turn.parts();
        let touch = !session.no_touch;
        let imports = session.import_source && parts.config.import_mode;
        let begun = effects.last_end;
        let mut cx = Context {
            db: Db::new(parts, effects, session.database, held, touch, imports),
            reply: Reply::new(output, resp3),
            session,
            engine: self,
            row,
            authority,
            nested: false,
            busy: request.busy,
            block: None,
        };
        cx.run_handler(row, &mut Args::new(request.argv, request.keys));
        blocking::serve_ready(&mut cx, begun);
        let mut outcome = blocking::begin_to_wait(&mut cx);
        let missed = cx.db.held.missed();
        if missed.is_some() {
            outcome = match cx.session.script_needs {
                None => Outcome::Contended,
                Some(ScriptNeeds::AllSlots) => Outcome::NeedsProgram,
                Some(ScriptNeeds::Gates) => Outcome::NeedsGates,
            };
            // Others hear of the command when it runs to its end, and now of the keys that it found
            // expired.
            cx.db.effects.news.get_mut().retain(|news| matches!(news, News::Event(_)));
        } else {
            cx.session.forget_script_needs();
        }
        let appended = self.settle(&mut cx.db);
        if appended > 0 {
            cx.session.written_to = appended;
        }
        if cx.db.effects.defers_replies {
            cx.note_dependence();
        }
        // The end of the context unlocks the slots.
        (outcome, missed)
    }

    /// Notes that a command could not lock its slots. The error refuses it, if a script that has run for
    /// long has one of them.
    #[cold]
    fn note_locked(
        &self,
        call: &mut Call<'_>,
        row: &Row,
        authority: Authority<'_>,
        missed: Option<u16>,
    ) -> Result<Outcome, CommandError> {
        call.turn.contended_slot = missed.or_else(|| self.busy_slot(call, row, authority));
        if self.scripts.slow.any()
            && let Some(error) = self.refusal_of_slots(call, row, missed)
        {
            return Err(error);
        }
        call.turn.stats.contended.add(1);
        Ok(Outcome::Contended)
    }

    /// What a command needs beyond slot locks and does not have yet.
    fn lacking(
        &self,
        command: &Command,
        session: &Session,
        argv: Arguments<'_>,
        authority: Authority<'_>,
    ) -> Option<Outcome> {
        match lacking_authority(command, session, argv, authority) {
            None | Some(Outcome::NeedsProgram)
                if !matches!(authority, Authority::Closed(_))
                    && self.empties_in_script(command, session) =>
            {
                Some(Outcome::NeedsGates)
            }
            Some(outcome) => Some(outcome),
            None => self.keep_changes_for(command, session, authority),
        }
    }

    /// Whether the transaction that a command executes has a script that may empty databases.
    fn empties_in_script(&self, command: &Command, session: &Session) -> bool {
        let mut queued = queued(command, session).iter();
        queued.any(|own| self.may_empty(own.command, own.argv.view()))
    }

    /// Whether a command runs a script that may empty or exchange databases.
    fn may_empty(&self, command: &command::Spec, argv: Arguments<'_>) -> bool {
        if !command.has(command::SCRIPT) || command.has(command::READONLY) {
            return false;
        }
        let name = argv.at(1);
        let is_named = match command.name {
            "eval" => emptying::is_named_in(name),
            "evalsha" => self.scripts.cache.find(name).is_some_and(|script| script.may_empty),
            _ => self.scripts.functions.find(name).is_some_and(|(library, _)| library.may_empty),
        };
        is_named || emptying::is_among(argv)
    }

    /// Whether a command runs a script that says of itself that it writes nothing.
    pub(super) fn declares_no_writes(&self, command: &command::Spec, argv: Arguments<'_>) -> bool {
        if !command.has(command::SCRIPT) {
            return false;
        }
        let Some(name) = argv.get(1) else { return false };
        let flags = match command.name {
            "eval" => shebang::parse(name).ok().map(|(flags, _)| flags),
            "evalsha" => self.scripts.cache.find(name).map(|script| script.flags),
            _ => self.scripts.functions.find(name).map(|(own, at)| own.functions[at].flags),
        };
        flags.is_some_and(|flags| flags & NO_WRITES != 0)
    }

    /// An outcome, unless the command would have to wait for a script that has run for long: then the
    /// error that refuses it. `missed` is a slot that was locked.
    fn unless_refused(
        &self,
        outcome: Outcome,
        missed: Option<u16>,
    ) -> Result<Outcome, CommandError> {
        let need = match outcome {
            Outcome::Contended => Need::Slots(missed.as_slice()),
            Outcome::NeedsProgram => Need::AllSlots,
            Outcome::NeedsGates => Need::Thread,
            _ => return Ok(outcome),
        };
        self.scripts.slow.refusal(need).map_or(Ok(outcome), Err)
    }

    /// The refusal of a command that could not lock its slots, or could not lock `missed`, if a script
    /// that has run for long is the reason.
    fn refusal_of_slots(
        &self,
        call: &Call<'_>,
        row: &Row,
        missed: Option<u16>,
    ) -> Option<CommandError> {
        let Call { session, request, .. } = call;
        if needs_all_slots(row.command, session, request.argv) {
            return self.scripts.slow.refusal(Need::AllSlots);
        }
        let mut slots = all_slots(session, row.command, request.keys);
        slots.extend(missed);
        self.scripts.slow.refusal(Need::Slots(&slots))
    }

    /// Locks the slots of the command's keys, and those that serving waiters may need; all slots for a
    /// program. Returns which of the latter another thread has locked, if any.
    fn lock<'t>(
        &'t self,
        call: &Call<'_>,
        row: &Row,
        authority: Authority<'t>,
    ) -> Result<Held<'t, Attachment>, Option<u16>> {
        let Call { turn, session, request, .. } = call;
        let clock = turn.clock;
        let presence = match authority {
            Authority::Closed(closed) => return Ok(self.keyspace.hold_all(closed, clock)),
            Authority::Program(_, presence) | Authority::Ordinary(presence) => presence,
        };
        let reservation = authority.reservation();
        let held = match (request.keys, reservation) {
            ([key], None) => {
                let held = self.keyspace.try_hold_one(presence, key.slot, clock).ok_or(None)?;
                let writes = command::WRITE | command::SCRIPT;
                match held.attachment(key.slot).is_some() && row.command.has(writes) {
                    true => Ok(held),
                    // It serves nobody who waits, so it needs nobody's destination.
                    false => return Ok(held),
                }
            }
            (_, None) => {
                let slots = all_slots(session, row.command, request.keys);
                self.keyspace.try_hold(presence, &slots, clock).ok_or(None)
            }
            (_, Some(reservation)) if needs_all_slots(row.command, session, request.argv) => {
                self.keyspace.try_hold_every(presence, reservation, clock).ok_or(None)
            }
            (_, Some(reservation)) => {
                let slots = all_slots(session, row.command, request.keys);
                self.keyspace.try_hold_reserved(presence, reservation, &slots, clock).ok_or(None)
            }
        }?;
        match blocking::cover_destinations(&held, reservation) {
            true => Ok(held),
            false => Err(held.missed()),
        }
    }

    /// A slot that keeps a command from running, if one of its slots does.
    fn busy_slot(&self, call: &Call<'_>, row: &Row, authority: Authority<'_>) -> Option<u16> {
        let mut slots = all_slots(call.session, row.command, call.request.keys).into_iter();
        slots.find(|&slot| self.keyspace.is_busy(slot, authority.reservation()))
    }

    /// The rest of the work under the locks: the journal receives the effects, and the queue of news what
    /// other clients hear of them. Returns the journal's offset after them, 0 if there were none.
    #[inline(always)]
    pub(crate) fn settle(&self, db: &mut Db<'_>) -> u64 {
        let effects = &mut db.effects;
        // Keys found expired while waiters were served are deleted by the next command that meets them.
        effects.expired.get_mut().clear();
        if effects.dirty > 0 {
            db.stats.changes.add(effects.dirty);
            effects.dirty = 0;
        }
        let appended = if effects.journal.is_empty() { 0 } else { self.append_effects(db) };
        if !db.effects.news.get_mut().is_empty() {
            self.queue_news(db.effects);
        }
        appended
    }

    #[inline(never)]
    fn append_effects(&self, db: &mut Db<'_>) -> u64 {
        let effects = &mut db.effects;
        let appended = self.journal.append(&effects.journal);
        db.stats.journaled.add(effects.journal.len_in_stream() as u64);
        effects.journal.clear();
        effects.unannounced = true;
        if effects.defers_replies {
            self.slot_offsets.note_write(&db.held, appended);
        } else {
            effects.unaccounted = true;
        }
        appended
    }

    /// The work after the slots are unlocked: waking, publishing and freeing.
    #[inline]
    pub(crate) fn clean_up(&self, presence: Presence<'_>, turn: &mut Turn) {
        if turn.effects.leave_work() {
            self.finish_effects(presence, turn);
        }
    }

    fn finish_effects(&self, presence: Presence<'_>, turn: &mut Turn) {
        let effects = &mut turn.effects;
        for (waiter, reply) in effects.woken.drain(..) {
            waiter.leave(reply, self.journal.end());
            self.host.wake(&waiter.client);
        }
        for watch in effects.forgotten_watches.drain(..) {
            self.remove_watch(presence, &watch);
        }
        if std::mem::take(&mut effects.undelivered) {
            self.deliver_news();
        }
        self.free_removed(effects);
        for expired in std::mem::take(effects.expired_elsewhere.get_mut()) {
            self.delete_if_expired(presence, turn, &expired);
        }
        if std::mem::take(&mut turn.effects.settings_changed) {
            turn.load_settings(self);
            // The append-only file may have been turned on.
            turn.look_at_journal(self);
            // The limit may have been lowered.
            self.evict(presence, turn);
        }
    }

    /// Frees what commands have removed, in the background if that takes long. Scripts and transactions
    /// do so after each of their commands: they may be many, and each may replace what the one before
    /// has stored.
    pub(crate) fn free_removed(&self, effects: &mut Effects) {
        for removed in effects.garbage.drain(..) {
            if removed.is_large() {
                self.free_later(removed);
            }
        }
        if garbage::is_there() {
            self.free_parts(garbage::take());
        }
    }

    /// Deletes a key that a walk has found expired, unless its slot is locked: active expiry removes it
    /// then.
    fn delete_if_expired(&self, presence: Presence<'_>, turn: &mut Turn, expired: &Expired) {
        let (database, key, now) = (expired.database, Key::new(&expired.key), turn.now);
        if self.is_paused(turn.steady) {
            return;
        }
        let Some(held) = self.keyspace.try_hold_one(presence, key.slot, turn.clock) else { return };
        let due = held.find(database, &key).and_then(Entry::expire_at);
        if due.is_some_and(|due| due < now) {
            self.delete_unasked(turn, held, database, |db| {
                db.delete_due(std::slice::from_ref(&expired.key));
            });
        }
    }

    /// Deletes a key that no command asked to delete (eviction, expiry). The calling thread holds the
    /// key's slot and no other.
    pub(crate) fn delete_unasked(
        &self,
        turn: &mut Turn,
        held: Held<'_, Attachment>,
        database: usize,
        delete: impl FnOnce(&mut Db<'_>),
    ) {
        turn.look_at_journal(self);
        if turn.effects.journal_failed {
            return;
        }
        let presence = held.presence();
        let (parts, effects) = turn.parts();
        let mut db = Db::new(parts, effects, database, held, true, false);
        delete(&mut db);
        if db.effects.ready.is_empty() {
            self.settle(&mut db);
            drop(db);
        } else {
            blocking::serve_unasked(self, db);
        }
        self.clean_up(presence, turn);
    }

    /// Writes and counts an error reply.
    pub(crate) fn reply_error(&self, turn: &Turn, reply: &mut Reply<'_>, error: &CommandError) {
        turn.stats.error_replies.add(1);
        self.stats.count_error(&error.code());
        reply.error(error.as_bytes());
    }
}

impl Engine {
    /// A connection that CLIENT PAUSE suspends counts as blocked, until its command runs.
    #[inline]
    pub(crate) fn note_paused(&self, session: &mut Session, paused: bool) {
        if session.paused == paused {
            return;
        }
        session.paused = paused;
        session.show_blocked(paused);
        if paused {
            self.blocked_clients.fetch_add(1, Relaxed);
        } else {
            self.blocked_clients.fetch_sub(1, Relaxed);
        }
    }
}

impl Context<'_> {
    /// Runs one handler and settles what belongs to this command alone: its error reply, its
    /// journal entry, its statistics.
    pub(crate) fn run_handler(&mut self, row: &'static Row, args: &mut Args<'_>) {
        let begun = self.db.effects.last_end;
        let mark = self.reply.mark();
        let journal_at = self.db.effects.journal.len();
        let dirty_before = self.db.effects.dirty;
        self.row = row;
        self.db.effects.explicit = false;
        let result = (row.command.handler)(self, args);
        if let Err(error) = result {
            if self.db.held.missed().is_some() {
                // It is tried again, as if nothing had happened.
                return self.reply.rollback(mark);
            }
            self.end_in_error(row, &error, mark);
        }
        if self.engine.pubsub.is_monitored() {
            monitor::show(self.db.effects, self.session, row.command, args.argv());
        }
        if !self.db.effects.expired.get_mut().is_empty() {
            if self.engine.is_paused(self.db.steady) || self.db.effects.journal_failed {
                // An expired key is absent, but stays where it is.
                self.db.effects.expired.get_mut().clear();
            }
            self.db.settle_expired(journal_at);
        }
        let effects = &mut self.db.effects;
        if effects.journaling && effects.dirty > dirty_before && !effects.explicit {
            effects.journal_request(self.db.index, args.argv());
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

impl Engine {
    /// Has the journal kept for followers. Does nothing if it is kept already, or there are no
    /// followers.
    #[inline]
    fn keep_changes_for(
        &self,
        command: &Command,
        session: &Session,
        authority: Authority<'_>,
    ) -> Option<Outcome> {
        let follows = any_has(command, session, crate::command::FOLLOWS);
        if !follows || self.journal.changes().is_none_or(Backlog::is_on) {
            return None;
        }
        if !matches!(authority, Authority::Closed(_)) {
            return Some(Outcome::NeedsGates);
        }
        self.keep_changes();
        None
    }
}

/// Visits keys, but not one that was visited just before: a pipeline often has to do with one key.
#[inline]
fn each_other<'k>(keys: &'k [KeyAt], mut visit: impl FnMut(&'k KeyAt)) {
    let mut last = None;
    for key in keys {
        if last.replace(key.hash) != Some(key.hash) {
            visit(key);
        }
    }
}

/// Whether this is a line of an HTTP request. A web page can make a browser send one to any port,
/// with commands of ours in its body: they must not be reached.
fn is_foreign(argv: Arguments<'_>) -> bool {
    let name = argv.at(0);
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Queues a command for EXEC, unless that EXEC will run nothing.
fn queue(session: &mut Session, row: &'static Row, argv: Arguments<'_>) {
    let transaction = session.transaction.as_mut().expect("queueing happens inside MULTI");
    if transaction.aborted || session.watch.as_ref().is_some_and(|watch| watch.flag.has_changed()) {
        return;
    }
    let argv = OwnedArguments::from(argv);
    transaction.bytes += argv.memory() + size_of::<QueuedCommand>();
    transaction.commands.push(QueuedCommand { row: row.id, command: &row.command.spec, argv });
    let client = &session.client;
    client.queued.store(transaction.commands.len() as u32 + 1, Relaxed);
    client.queued_bytes.store(transaction.bytes, Relaxed);
}

/// Whether a command that keeps newcomers away locks all slots.
fn needs_all_slots(command: &Command, session: &Session, argv: Arguments<'_>) -> bool {
    session.script_needs == Some(ScriptNeeds::AllSlots) || is_program(command, session, argv)
}

/// The part of [`Engine::lacking`] that depends on the commands alone.
fn lacking_authority(
    command: &Command,
    session: &Session,
    argv: Arguments<'_>,
    authority: Authority<'_>,
) -> Option<Outcome> {
    if matches!(authority, Authority::Closed(_)) {
        return None;
    }
    let script = session.script_needs;
    if script == Some(ScriptNeeds::Gates) || any_needs_gates(command, session, argv) {
        return Some(Outcome::NeedsGates);
    }
    if matches!(authority, Authority::Program(..)) {
        return None;
    }
    let program = script.is_some() || executes_program(command, session);
    program.then_some(Outcome::NeedsProgram)
}
