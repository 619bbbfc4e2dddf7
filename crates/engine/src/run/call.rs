//! The path of a command: the checks in their order, the locks, the handler (`handling`), and its
//! effects (`settling`).

use std::sync::atomic::Ordering::Relaxed;

use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;
use resp::reply::Reply;
use store::LockedSlots;
use store::gate::Pinned;

use crate::admission::Admission;
use crate::command::args::Args;
use crate::command::error::CommandError;
use crate::command::{self, SCRIPT_BY_DIGEST, SCRIPT_BY_TEXT, SELECTS};
use crate::db::Db;
use crate::db::expiry::Expiry;
use crate::db::slot_access::SlotAccess;
use crate::engine::{Command, Context, Engine, Row};
use crate::host::{Frequent, LogLevel};
use crate::journal::backlog::Backlog;
use crate::script::emptying;
use crate::script::slow::Need;
use crate::session::attachment::Attachment;
use crate::session::{QueuedCommand, ScriptNeeds, Session};
use crate::turn::Turn;
use crate::turn::expansion::{
    all_have, any_has, any_stops_the_world, concerns_scripts, is_exclusive, is_exclusive_exec,
    lacks_subcommand, queued,
};
use crate::turn::request::{Call, Outcome, Request};
use crate::turn::slots::all_slots;
use crate::wait::blocking;

impl Engine {
    /// Runs a command of a connection.
    pub fn execute(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        request: Request<'_>,
        slot_access: SlotAccess<'_>,
        output: &mut Output,
    ) -> Outcome {
        let (start, from) = (output.mark(), output.end());
        turn.advance();
        let mut call = Call { turn, session, request, output };
        let outcome = match self.admit_and_run(&mut call, slot_access) {
            Ok(outcome) => outcome,
            Err(error) => self.refuse(slot_access.pinned(), &mut call, error),
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
        slot_access: SlotAccess<'_>,
    ) -> Result<Outcome, CommandError> {
        let Call { turn, session, request, output } = call;
        if request.row.is_none() && is_foreign(request.argv) {
            self.turn_away(session);
            return Ok(Outcome::Done);
        }
        let number = request.row.map_or(0, |row| row.id + 1);
        session.client.last_command.store(number, Relaxed);
        let admission = self.admit(slot_access.pinned(), turn, session, request);
        self.note_paused(session, matches!(admission, Ok(Admission::Pause(_))));
        match admission? {
            Admission::Run(row) => {
                if session.read_after.is_some()
                    && let Some(until) = self.await_position(turn, session, row.command)?
                {
                    self.note_paused(session, true);
                    return Ok(Outcome::Paused(until));
                }
                self.run(call, row, slot_access)
            }
            Admission::Queue(row) => {
                queue(session, row, request.argv, self.keyspace.databases());
                Reply::new(output, session.resp3).simple(b"QUEUED");
                Ok(Outcome::Done)
            }
            Admission::Pause(until) => Ok(Outcome::Paused(until)),
        }
    }

    /// Closes a connection that speaks another protocol.
    fn turn_away(&self, session: &mut Session) {
        session.close = true;
        self.host.log_frequent(Frequent::Foreign, LogLevel::Warning, &|| {
            format!(
                "Closed {}, which sent POST or Host: as HTTP clients do. A web browser may have been \
                 used to reach this server.",
                session.client.address
            )
        });
    }

    /// Refuses a command: answers with the error, and carries out what else a refusal does.
    fn refuse(&self, pinned: Pinned<'_>, call: &mut Call<'_>, error: CommandError) -> Outcome {
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
            Some(row) if row.command.has(command::RUNS_QUEUED) => {
                // A refused EXEC ends the transaction nevertheless.
                self.abandon_transaction(pinned, session);
                if error.redirects() { error } else { CommandError::exec_refused(&error) }
            }
            _ => error,
        };
        self.reply_error(turn, &mut Reply::new(output, session.resp3), &error);
        Outcome::Done
    }

    /// Locks the slots that the command needs, runs it, and settles its effects. The error refuses
    /// it.
    fn run(
        &self,
        call: &mut Call<'_>,
        row: &'static Row,
        slot_access: SlotAccess<'_>,
    ) -> Result<Outcome, CommandError> {
        if call.turn.beside_script
            && concerns_scripts(row.command, call.session)
            && let Some(error) = self.scripts.slow.refusal(Need::Thread)
        {
            return Err(error);
        }
        if let Some(outcome) =
            self.lacking(row.command, call.session, call.request.argv, slot_access)
        {
            return self.unless_refused(call.session, outcome, None);
        }
        let locked = match self.lock(call, row, slot_access) {
            Ok(locked) => locked,
            Err(missed) => return self.note_locked(call, row, slot_access, missed),
        };
        let (outcome, missed) = self.run_locked(call, row, slot_access, locked);
        self.clean_up(slot_access.pinned(), call.turn);
        let Call { turn, session, request, .. } = call;
        if missed.is_some() {
            let outcome = self.unless_refused(session, outcome, missed)?;
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

    /// Runs the handler of a command whose slots are locked, serves clients that wait for what it
    /// has written, and unlocks the slots. Also returns a slot that it has found locked.
    fn run_locked(
        &self,
        call: &mut Call<'_>,
        row: &'static Row,
        slot_access: SlotAccess<'_>,
        locked: LockedSlots<'_, Attachment>,
    ) -> (Outcome, Option<u16>) {
        let Call { turn, session, request, output } = call;
        let (parts, effects) = turn.parts();
        let touch = !session.no_touch;
        // The primary's own commands find everything as the primary did.
        // So do those of a server that slots come from.
        let brings_slots = session.import.is_some();
        let imports = session.import_source && parts.config.import_mode
            || session.link.is_some()
            || brings_slots;
        effects.silent = brings_slots;
        let begun = effects.last_end;
        let (from, before) = (output.end(), session.write_offset);
        let changes = parts.stats.changes.get();
        // A primary's own commands, and those of the server, answer nobody.
        let is_heard = session.link.is_none() && !session.replays;
        let holds = is_heard && session.durability.or_default(parts.config).holds_replies();
        // Clients of a replica write nothing, unless it lets them.
        let may_write = holds
            && !(parts.config.replicas_are_read_only() && self.replication.is_replica())
            && self.may_write_data(session, (&row.command.spec, request.argv));
        // Who only reads may find a key expired, and delete it: nobody waits for that.
        let only_reads =
            holds && all_have(&row.command.spec, session, command::READONLY | command::RUNS_QUEUED);
        let mut db = Db::new(parts, effects, session.database, locked, touch, imports);
        if brings_slots {
            db.expiry = Expiry::Elsewhere;
        }
        let mut cx = Context::new(self, session, row, slot_access, db, output);
        cx.busy = request.busy;
        cx.run_handler(row, &mut Args::new(request.argv, request.keys));
        blocking::serve_ready(&mut cx, begun);
        let mut outcome = blocking::begin_to_wait(&mut cx);
        let missed = cx.db.locked.missed();
        if missed.is_some() {
            outcome = match cx.session.script_needs {
                None => Outcome::Contended,
                Some(ScriptNeeds::AllSlots) => Outcome::NeedsAllSlots,
                Some(ScriptNeeds::StoppedWorld) => Outcome::NeedsStoppedWorld,
            };
            // Others hear of the command when it runs to its end, and now of the keys that it found
            // expired.
            cx.db.effects.publications.get_mut().take_back(0);
        } else {
            cx.session.forget_script_needs();
        }
        if missed.is_none() && cx.db.effects.unit.is_some() {
            self.append_unit(cx.db.effects);
        }
        let appended = self.settle(&mut cx.db);
        if let Some(appended) = appended {
            cx.session.write_offset = appended;
        }
        if cx.db.effects.defers_replies {
            cx.note_dependence();
        }
        if holds && missed.is_none() {
            // What a replica writes beside the stream of its primary moves no offset.
            let has_changed =
                || self.replication.is_replica() && cx.db.stats.changes.get() != changes;
            let has_written = !only_reads
                && (appended.is_some() || cx.session.write_offset > before || has_changed());
            cx.note_owed(from, may_write, has_written);
        }
        // The end of the context unlocks the slots.
        (outcome, missed)
    }

    /// Notes that a command could not lock its slots. The error refuses it, if a script that has
    /// run for long has one of them.
    #[cold]
    fn note_locked(
        &self,
        call: &mut Call<'_>,
        row: &Row,
        slot_access: SlotAccess<'_>,
        missed: Option<u16>,
    ) -> Result<Outcome, CommandError> {
        call.turn.contended_slot = missed.or_else(|| self.busy_slot(call, row, slot_access));
        if self.scripts.slow.any()
            && !outlasts_scripts(call.session)
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
        slot_access: SlotAccess<'_>,
    ) -> Option<Outcome> {
        match lacking_access(command, session, argv, slot_access) {
            None | Some(Outcome::NeedsAllSlots)
                if !matches!(slot_access, SlotAccess::Stopped(_))
                    && self.empties_in_script(command, session) =>
            {
                Some(Outcome::NeedsStoppedWorld)
            }
            Some(outcome) => Some(outcome),
            None => self.keep_changes_for(command, session, slot_access),
        }
    }

    /// Whether the transaction that a command executes has a script that may empty databases.
    fn empties_in_script(&self, command: &Command, session: &Session) -> bool {
        let mut queued = queued(command, session).iter();
        queued.any(|own| self.may_empty(own.command, own.argv.view()))
    }

    /// Whether a command runs a script that may empty or exchange databases.
    pub(crate) fn may_empty(&self, command: &command::Spec, argv: Arguments<'_>) -> bool {
        if !command.has(command::SCRIPT) || command.has(command::READONLY) {
            return false;
        }
        let name = argv.at(1);
        let is_named = match command.flags & command::SCRIPT {
            SCRIPT_BY_TEXT => emptying::is_named_in(name),
            SCRIPT_BY_DIGEST => {
                self.scripts.cache.find(name).is_some_and(|script| script.may_empty)
            }
            _ => self.scripts.functions.find(name).is_some_and(|(library, _)| library.may_empty),
        };
        is_named || emptying::is_among(argv)
    }

    /// An outcome, unless the command would have to wait for a script that has run for long: then
    /// the error that refuses it. `missed` is a slot that was locked.
    fn unless_refused(
        &self,
        session: &Session,
        outcome: Outcome,
        missed: Option<u16>,
    ) -> Result<Outcome, CommandError> {
        if outlasts_scripts(session) {
            return Ok(outcome);
        }
        let need = match outcome {
            Outcome::Contended => Need::Slots(missed.as_slice()),
            Outcome::NeedsAllSlots => Need::AllSlots,
            Outcome::NeedsStoppedWorld => Need::Thread,
            _ => return Ok(outcome),
        };
        self.scripts.slow.refusal(need).map_or(Ok(outcome), Err)
    }

    /// The refusal of a command that could not lock its slots, or could not lock `missed`, if a
    /// script that has run for long is the reason.
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

    /// Locks the slots of the command's keys, and those that serving waiters may need; all slots
    /// for a program. Returns which of the latter another thread has locked, if any.
    fn lock<'t>(
        &'t self,
        call: &Call<'_>,
        row: &Row,
        slot_access: SlotAccess<'t>,
    ) -> Result<LockedSlots<'t, Attachment>, Option<u16>> {
        let Call { turn, session, request, .. } = call;
        let clock = turn.clock;
        let pinned = match slot_access {
            SlotAccess::Stopped(stopped) => return Ok(self.keyspace.all_slots(stopped, clock)),
            SlotAccess::Reserved(_, pinned) | SlotAccess::Ordinary(pinned) => pinned,
        };
        let reservation = slot_access.reservation();
        let locked = match (request.keys, reservation) {
            ([key], None) => {
                let locked = self.keyspace.try_lock_one(pinned, key.slot, clock).ok_or(None)?;
                let writes = command::WRITE | command::SCRIPT;
                match locked.attachment(key.slot).is_some() && row.command.has(writes) {
                    true => Ok(locked),
                    // It serves nobody who waits, so it needs nobody's destination.
                    false => return Ok(locked),
                }
            }
            (_, None) => {
                let slots = all_slots(session, row.command, request.keys);
                self.keyspace.try_lock_slots(pinned, &slots, clock).ok_or(None)
            }
            (_, Some(reservation)) if needs_all_slots(row.command, session, request.argv) => {
                self.keyspace.try_lock_all(pinned, reservation, clock).ok_or(None)
            }
            (_, Some(reservation)) => {
                let slots = all_slots(session, row.command, request.keys);
                self.keyspace.try_lock_reserved(pinned, reservation, &slots, clock).ok_or(None)
            }
        }?;
        match blocking::acquire_destinations(&locked, reservation) {
            true => Ok(locked),
            false => Err(locked.missed()),
        }
    }

    /// A slot that keeps a command from running, if one of its slots does.
    fn busy_slot(&self, call: &Call<'_>, row: &Row, slot_access: SlotAccess<'_>) -> Option<u16> {
        let mut slots = all_slots(call.session, row.command, call.request.keys).into_iter();
        slots.find(|&slot| self.keyspace.is_busy(slot, slot_access.reservation()))
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

impl Engine {
    /// Has the journal kept for followers. Does nothing if it is kept already, or there are no
    /// followers.
    #[inline]
    fn keep_changes_for(
        &self,
        command: &Command,
        session: &Session,
        slot_access: SlotAccess<'_>,
    ) -> Option<Outcome> {
        let follows = any_has(command, session, crate::command::FOLLOWS);
        if !follows || self.journal.changes().is_none_or(Backlog::is_on) {
            return None;
        }
        if !matches!(slot_access, SlotAccess::Stopped(_)) {
            return Some(Outcome::NeedsStoppedWorld);
        }
        self.keep_changes();
        None
    }
}

/// Whether this is a line of an HTTP request. A web page can make a browser send one to any port,
/// with commands of ours in its body: they must not be reached.
fn is_foreign(argv: Arguments<'_>) -> bool {
    let name = argv.at(0);
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Queues a command for EXEC, unless that EXEC will run nothing. There are so many databases.
fn queue(session: &mut Session, row: &'static Row, argv: Arguments<'_>, databases: usize) {
    let transaction = session.transaction.as_mut().expect("queueing happens inside MULTI");
    if transaction.aborted || session.watch.as_ref().is_some_and(|watch| watch.flag.has_changed()) {
        return;
    }
    if row.command.has(SELECTS) {
        let index = argv.get(1).and_then(base::num::parse_i64);
        let index = index.and_then(|index| usize::try_from(index).ok());
        // SELECT will refuse any other.
        transaction.selected = index.filter(|index| *index < databases).or(transaction.selected);
    }
    let argv = OwnedArguments::from(argv);
    transaction.bytes += argv.memory() + size_of::<QueuedCommand>();
    transaction.commands.push(QueuedCommand { row: row.id, command: &row.command.spec, argv });
    let client = &session.client;
    client.queued.store(transaction.commands.len() as u32 + 1, Relaxed);
    client.queued_bytes.store(transaction.bytes, Relaxed);
}

/// Whether what a session runs waits for scripts that have run for long, where clients are refused:
/// nobody sends it again. What a primary has sent counts as applied after it, and what the server
/// itself does is decided already.
fn outlasts_scripts(session: &Session) -> bool {
    session.replays || session.link.is_some() || session.user.is_server()
}

/// Whether a command that keeps newcomers away locks all slots.
fn needs_all_slots(command: &Command, session: &Session, argv: Arguments<'_>) -> bool {
    session.script_needs == Some(ScriptNeeds::AllSlots) || is_exclusive(command, session, argv)
}

/// The part of [`Engine::lacking`] that depends on the commands alone.
fn lacking_access(
    command: &Command,
    session: &Session,
    argv: Arguments<'_>,
    slot_access: SlotAccess<'_>,
) -> Option<Outcome> {
    if matches!(slot_access, SlotAccess::Stopped(_)) {
        return None;
    }
    let script = session.script_needs;
    if script == Some(ScriptNeeds::StoppedWorld) || any_stops_the_world(command, session, argv) {
        return Some(Outcome::NeedsStoppedWorld);
    }
    if matches!(slot_access, SlotAccess::Reserved(..)) {
        return None;
    }
    let exclusive = script.is_some() || is_exclusive_exec(command, session);
    exclusive.then_some(Outcome::NeedsAllSlots)
}
