//! The way of a command: the checks in their order, the locks, the handler, and what follows.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use resp::args::{Arguments, OwnedArguments};
use resp::output::{Mark, Output};
use resp::reply::Reply;
use smallvec::SmallVec;
use store::gate::Presence;
use store::{Held, Key};

use crate::command::{self, Command};
use crate::engine::{Authority, Engine, LogLevel, Outcome, Request, Turn};
use crate::handler::args::{Args, KeyAt};
use crate::handler::context::Context;
use crate::handler::db::{Db, EvictionClock};
use crate::handler::error::{CommandError, CommandResult};
use crate::observe::monitor;
use crate::observe::notify::{Class, News};
use crate::persistence::durability;
use crate::reclaim::eviction;
use crate::registry::Row;
use crate::session::client::flag;
use crate::session::pubsub::Kind;
use crate::session::{QueuedCommand, Session};
use crate::wait::blocking;
use crate::wait::waiting::Attachment;
use config::Permission;

/// Milliseconds between two lines of the log about connections that speak another protocol, so
/// that whoever opens them cannot fill it.
const FOREIGN_LOG_PAUSE: u64 = 60_000;

/// Slots of a command, ascending and distinct.
pub(crate) type Slots = SmallVec<[u16; 12]>;

impl Engine {
    /// Finds the row of a command and hashes its keys, so that what they lie in can be fetched
    /// before it runs. Appends to `keys`.
    #[inline]
    pub fn prepare(&self, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) -> Option<&'static Row> {
        let row = self.commands.resolve(argv)?;
        self.find_keys(row, argv, keys);
        Some(row)
    }

    /// The part of [`Engine::prepare`] that hashes keys.
    #[inline]
    pub fn find_keys(&self, row: &Row, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
        if row.command.accepts(argv.len()) {
            if row.one_key {
                add_key(argv, 1, keys);
            } else {
                collect_keys(row.command, argv, keys);
            }
        }
    }

    /// Brings near the slots of keys. First of three steps, each over a whole batch.
    #[inline]
    pub fn prefetch_slots(&self, keys: &[KeyAt]) {
        keys.iter().for_each(|key| self.keyspace.prefetch_slot(key.slot));
    }

    /// Brings near the buckets of keys.
    #[inline]
    pub fn prefetch_buckets(&self, presence: Presence<'_>, database: usize, keys: &[KeyAt]) {
        for key in keys {
            self.keyspace.prefetch_bucket(presence, database, key.slot, key.hash);
        }
    }

    /// Brings near the entries of keys.
    #[inline]
    pub fn prefetch_entries(&self, presence: Presence<'_>, database: usize, keys: &[KeyAt]) {
        for key in keys {
            self.keyspace.prefetch_entry(presence, database, key.slot, key.hash);
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
        let start = output.mark();
        let outcome = self.admit_and_run(turn, session, request, authority, output);
        if matches!(outcome, Outcome::Done) && !session.end_reply() {
            output.rollback(start);
        }
        outcome
    }

    fn admit_and_run(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        request: Request<'_>,
        authority: Authority<'_>,
        output: &mut Output,
    ) -> Outcome {
        if request.row.is_none() && is_foreign(request.argv) {
            self.turn_away(turn, session);
            return Outcome::Done;
        }
        let number = request.row.map_or(0, |row| row.id + 1);
        session.client.last_command.store(number, Relaxed);
        let presence = authority.presence();
        let admission = self.admit(presence, turn, session, &request);
        self.note_paused(session, matches!(admission, Ok(Admission::Pause(_))));
        let row = match admission {
            Ok(Admission::Run(row)) => row,
            Ok(Admission::Queue(row)) => {
                queue(session, row, request.argv);
                Reply::new(output, session.resp3).simple(b"QUEUED");
                return Outcome::Done;
            }
            Ok(Admission::Pause(until)) => return Outcome::Paused(until),
            Err(error) => {
                let error = self.refuse(presence, turn, session, request.row, error);
                self.reply_error(turn, &mut Reply::new(output, session.resp3), &error);
                return Outcome::Done;
            }
        };
        self.run(turn, session, row, request, authority, output)
    }

    /// Closes a connection that speaks another protocol, and says so in the log now and then.
    fn turn_away(&self, turn: &Turn, session: &mut Session) {
        session.close = true;
        let last = self.foreign_logged_at.load(Relaxed);
        if turn.steady >= last.saturating_add(FOREIGN_LOG_PAUSE) {
            self.foreign_logged_at.store(turn.steady, Relaxed);
            let line = format!(
                "Closed {}, which sent POST or Host: as HTTP clients do. Somebody may be using a \
                 web browser to reach this server.",
                session.client.address
            );
            self.host.log(LogLevel::Warning, &line);
        }
    }

    /// What a refusal does besides the error that it answers. Returns that error.
    fn refuse(
        &self,
        presence: Presence<'_>,
        turn: &Turn,
        session: &mut Session,
        row: Option<&'static Row>,
        error: CommandError,
    ) -> CommandError {
        if let Some(row) = row {
            turn.stats.commands[row.id].rejected.add(1);
        }
        session.keys_so_far = None;
        if let Some(transaction) = &mut session.transaction {
            transaction.aborted = true;
        }
        if row.is_none_or(|row| row.command.name != "exec") {
            return error;
        }
        // A refused EXEC ends the transaction all the same.
        self.abandon_transaction(presence, session);
        CommandError::exec_refused(&error)
    }

    /// The checks, in the order in which Redis makes them.
    fn admit(
        &self,
        presence: Presence<'_>,
        turn: &mut Turn,
        session: &Session,
        request: &Request<'_>,
    ) -> Result<Admission, CommandError> {
        let row = known_command(request)?;
        right_arity(row.command, request.argv)?;
        permitted(turn, session, row.command)?;
        authenticated(turn, session, row.command)?;
        eviction::admit(self, presence, turn, session, row.command)?;
        durability::admit(self, turn, session, row.command)?;
        self.may_write(turn, session, row.command)?;
        allowed_while_subscribed(session, row.command)?;
        allowed_while_monitoring(session, row.command)?;
        self.allowed_while_loading(session, row.command)?;
        if let Some(until) = self.paused(turn, session, row.command) {
            return Ok(Admission::Pause(until));
        }
        if let Some(until) = durability::held_up(turn, session, row.command) {
            return Ok(Admission::Pause(until));
        }
        if session.transaction.is_some() && !row.command.has(command::NEVER_QUEUED) {
            if row.command.has(command::NO_MULTI) {
                return Err(CommandError::text("ERR Command not allowed inside a transaction"));
            }
            return Ok(Admission::Queue(row));
        }
        Ok(Admission::Run(row))
    }

    /// Locks what the command needs, runs it, and settles its effects.
    fn run(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        row: &'static Row,
        request: Request<'_>,
        authority: Authority<'_>,
        output: &mut Output,
    ) -> Outcome {
        if let Some(outcome) = lacking_authority(row.command, session, request.argv, authority) {
            return outcome;
        }
        let Some(held) = self.lock(turn, session, row, &request, authority) else {
            turn.contended_slot = self.busy_slot(session, row, &request, authority);
            turn.stats.contended.add(1);
            return Outcome::Contended;
        };
        let resp3 = session.resp3;
        let mut missed = None;
        let (parts, effects) = turn_parts(turn);
        let touch = !session.no_touch;
        let begun = effects.last_end;
        let outcome = {
            let mut cx = Context {
                db: Db::new(parts, effects, session.database, held, touch),
                reply: Reply::new(output, resp3),
                session,
                engine: self,
                row,
                authority,
                nested: false,
                block: None,
                sync_wait: None,
            };
            cx.run_handler(row, &mut Args::new(request.argv, request.keys));
            blocking::serve_ready(&mut cx, begun);
            let mut outcome = blocking::begin_to_wait(&mut cx);
            if cx.db.held.missed().is_some() {
                missed = cx.db.held.missed();
                outcome = Outcome::Contended;
            }
            let appended = self.settle(&mut cx.db);
            if appended > 0 {
                cx.session.written_to = appended;
            }
            if cx.db.effects.holds_replies {
                cx.note_dependence();
            }
            // The end of the context unlocks the slots.
            outcome
        };
        self.clean_up(authority.presence(), turn);
        if missed.is_some() {
            turn.contended_slot = missed;
            turn.stats.contended.add(1);
        }
        outcome
    }

    /// Locks the slots of the command's keys, and those that serving waiters may need; all slots for
    /// a program.
    fn lock<'t>(
        &'t self,
        turn: &Turn,
        session: &Session,
        row: &Row,
        request: &Request<'_>,
        authority: Authority<'t>,
    ) -> Option<Held<'t, Attachment>> {
        let clock = turn.clock;
        let presence = match authority {
            Authority::Closed(closed) => return Some(self.keyspace.hold_all(closed, clock)),
            Authority::Program(_, presence) | Authority::Ordinary(presence) => presence,
        };
        let reservation = authority.reservation();
        let held = match (request.keys, reservation) {
            ([key], None) => {
                let held = self.keyspace.try_hold_one(presence, key.slot, clock)?;
                if held.attachment(key.slot).is_none() || !row.command.has(command::WRITE) {
                    return Some(held);
                }
                held
            }
            (_, None) => {
                let slots = all_slots(session, row, request);
                self.keyspace.try_hold(presence, &slots, clock)?
            }
            (_, Some(reservation)) if is_program(row.command, session, request.argv) => {
                self.keyspace.try_hold_every(presence, reservation, clock)?
            }
            (_, Some(reservation)) => {
                let slots = all_slots(session, row, request);
                self.keyspace.try_hold_reserved(presence, reservation, &slots, clock)?
            }
        };
        blocking::cover_destinations(&held, reservation).then_some(held)
    }

    /// A slot that keeps a command from running, if one of those that it names does.
    #[cold]
    fn busy_slot(
        &self,
        session: &Session,
        row: &Row,
        request: &Request<'_>,
        authority: Authority<'_>,
    ) -> Option<u16> {
        let mut slots = all_slots(session, row, request).into_iter();
        slots.find(|&slot| self.keyspace.is_busy(slot, authority.reservation()))
    }

    /// What remains to be done under the locks: the journal receives the effects. Returns the
    /// journal's offset behind them, 0 if there were none.
    #[inline]
    pub(crate) fn settle(&self, db: &mut Db<'_>) -> u64 {
        let effects = &mut db.effects;
        // What was found expired while waiters were served is deleted by whoever meets it next.
        effects.expired.get_mut().clear();
        let mut appended = 0;
        if !effects.journal.is_empty() {
            appended = self.journal.append(&effects.journal);
            effects.journal.clear();
            effects.unannounced = true;
            if effects.holds_replies {
                self.slot_offsets.note_write(&db.held, appended);
            } else {
                effects.unaccounted = true;
            }
        }
        if effects.dirty > 0 {
            db.stats.changes.add(effects.dirty);
            effects.dirty = 0;
        }
        appended
    }

    /// What is done when the slots are free again: waking, publishing and freeing.
    #[inline]
    pub(crate) fn clean_up(&self, presence: Presence<'_>, turn: &mut Turn) {
        if turn.effects.leave_work() {
            self.finish_effects(presence, turn);
        }
    }

    fn finish_effects(&self, presence: Presence<'_>, turn: &mut Turn) {
        let effects = &mut turn.effects;
        for (client, reply) in effects.woken.drain(..) {
            client.inbox.lock().served = Some(reply);
            self.host.wake(&client);
        }
        for watch in effects.forgotten_watches.drain(..) {
            self.remove_watch(presence, &watch);
        }
        for news in std::mem::take(effects.news.get_mut()) {
            match news {
                News::Event(event) => self.publish_notification(&turn.config, &event),
                News::Message { kind, channel, message } => {
                    self.publish(kind, &channel, &message);
                }
                News::Line(line) => self.pubsub.show(&*self.host, line),
            }
        }
        for removed in effects.garbage.drain(..) {
            if removed.is_large() {
                self.free_later(removed);
            }
        }
        if std::mem::take(&mut effects.settings_changed) {
            turn.load_settings(self);
            // The limit may have been lowered.
            self.evict(presence, turn);
        }
    }

    fn publish_notification(
        &self,
        config: &config::Config,
        notification: &crate::observe::notify::Notification,
    ) {
        let (database, name) = (notification.database, notification.event.1);
        if config.notify_keyspace_events.contains(Class::KEYSPACE) {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(&notification.key);
            self.publish(Kind::Channel, &channel, name.as_bytes());
        }
        if config.notify_keyspace_events.contains(Class::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{name}").into_bytes();
            self.publish(Kind::Channel, &channel, &notification.key);
        }
    }

    /// Deletes what no command asked to delete (eviction, expiry), from a thread that holds its slot
    /// and nothing else.
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
        let (parts, effects) = turn_parts(turn);
        let mut db = Db::new(parts, effects, database, held, true);
        delete(&mut db);
        self.settle(&mut db);
        drop(db);
        self.clean_up(presence, turn);
    }

    /// Writes and counts an error reply.
    pub(crate) fn reply_error(&self, turn: &Turn, reply: &mut Reply<'_>, error: &CommandError) {
        turn.stats.error_replies.add(1);
        self.stats.count_error(error.code());
        reply.error(error.as_str().as_bytes());
    }

    /// Whoever replays commands is the one that loads.
    #[inline]
    fn allowed_while_loading(&self, session: &Session, command: &Command) -> CommandResult {
        if !self.loading.is_on() || session.replays || all_have(command, session, command::LOADING)
        {
            return Ok(());
        }
        Err(CommandError::LOADING)
    }

    /// Whether writes are accepted, as far as saving them goes. PING is refused as well: see
    /// [`crate::persistence::durability::admit`].
    fn may_write(&self, turn: &Turn, session: &Session, command: &Command) -> CommandResult {
        if !self.saving.stops_writes(&turn.config) {
            return Ok(());
        }
        let concerned = command.name == "ping" || any_has(command, session, command::WRITE);
        if concerned { Err(crate::persistence::saving::refusal()) } else { Ok(()) }
    }

    fn paused(&self, turn: &Turn, session: &Session, command: &Command) -> Option<u64> {
        if session.replays {
            return None;
        }
        self.pause.holds(turn.steady, || {
            command.has(command::WRITE | command::MAY_REPLICATE)
                || (command.name == "exec" && transaction_writes(session))
        })
    }
}

impl Engine {
    /// A connection that CLIENT PAUSE holds back counts as blocked, until its command runs.
    #[inline]
    pub(crate) fn note_paused(&self, session: &mut Session, paused: bool) {
        if session.paused == paused {
            return;
        }
        session.paused = paused;
        show_blocked(session, paused);
        if paused {
            self.blocked_clients.fetch_add(1, Relaxed);
        } else {
            self.blocked_clients.fetch_sub(1, Relaxed);
        }
    }
}

/// What becomes of a command that was admitted.
enum Admission {
    Run(&'static Row),
    Queue(&'static Row),
    Pause(u64),
}

/// The parts of a turn that a database looks at, apart from the effects that it changes.
pub(crate) struct TurnParts<'t> {
    pub(crate) now: u64,
    pub(crate) steady: u64,
    pub(crate) config: &'t config::Config,
    pub(crate) stats: &'t crate::observe::stats::ThreadStats,
    pub(crate) clock: EvictionClock,
    pub(crate) packed_threshold: usize,
}

pub(crate) fn turn_parts(turn: &mut Turn) -> (TurnParts<'_>, &mut crate::run::effects::Effects) {
    let parts = TurnParts {
        now: turn.now,
        steady: turn.steady,
        config: &turn.config,
        stats: &turn.stats,
        clock: turn.eviction_clock,
        packed_threshold: turn.packed_threshold,
    };
    (parts, &mut turn.effects)
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
                // It is tried again, as if nothing had been.
                return self.reply.rollback(mark);
            }
            self.end_in_error(row, &error, mark);
        }
        if self.engine.pubsub.is_monitored() {
            monitor::show(self.db.effects, self.session, row, args.argv());
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
        self.engine.note_duration(self, row, args, ended.since_ns(begun));
    }

    fn end_in_error(&mut self, row: &'static Row, error: &CommandError, mark: Mark) {
        self.reply.rollback(mark);
        self.db.stats.error_replies.add(1);
        self.db.stats.commands[row.id].failed.add(1);
        self.engine.stats.count_error(error.code());
        self.reply.error(error.as_str().as_bytes());
    }
}

impl Engine {
    #[inline]
    fn note_duration(
        &self,
        cx: &Context<'_>,
        row: &'static Row,
        args: &Args<'_>,
        nanoseconds: u64,
    ) {
        cx.db.stats.commands_processed.add(1);
        cx.db.stats.commands[row.id].record(nanoseconds, cx.db.config.latency_tracking);
        let config = cx.db.config;
        let microseconds = nanoseconds / 1000;
        if config.slowlog_log_slower_than >= 0
            && microseconds >= config.slowlog_log_slower_than as u64
            && !row.command.has(command::SKIP_SLOWLOG)
        {
            self.slowlog.note(cx, args.argv(), microseconds);
        }
        let threshold = config.latency_monitor_threshold;
        if threshold > 0 && microseconds / 1000 >= threshold {
            let event = if row.command.has(command::FAST) { "fast-command" } else { "command" };
            self.latency.note(event, cx.db.now / 1000, microseconds / 1000);
        }
    }
}

fn known_command(request: &Request<'_>) -> Result<&'static Row, CommandError> {
    let row = request.row.ok_or_else(|| unknown_command(request.argv))?;
    // A container whose second word is no subcommand.
    if row.command.subcommands.is_empty() || request.argv.len() < 2 {
        return Ok(row);
    }
    Err(CommandError::owned(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        printable(request.argv.at(1), 128),
        row.command.name.to_ascii_uppercase()
    )))
}

/// Whether this is a line of an HTTP request. A web page can make a browser send one to any port,
/// with commands of ours in its body: they must not be reached.
fn is_foreign(argv: Arguments<'_>) -> bool {
    let name = argv.at(0);
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

fn unknown_command(argv: Arguments<'_>) -> CommandError {
    let mut arguments = String::new();
    for argument in argv.skip(1).iter() {
        if arguments.len() >= 128 {
            break;
        }
        let room = 128 - arguments.len();
        arguments.push_str(&format!("'{}' ", printable(argument, room)));
    }
    CommandError::owned(format!(
        "ERR unknown command '{}', with args beginning with: {arguments}",
        printable(argv.at(0), 128)
    ))
}

/// The first `room` bytes as text, up to a zero byte as C prints strings.
fn printable(bytes: &[u8], room: usize) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(&bytes[..bytes.len().min(room)]).into_owned()
}

fn right_arity(command: &Command, argv: Arguments<'_>) -> CommandResult {
    if command.accepts(argv.len()) {
        return Ok(());
    }
    Err(CommandError::wrong_arity(&command.full_name()))
}

fn permitted(turn: &Turn, session: &Session, command: &Command) -> CommandResult {
    let allowed = match turn.config.enable_debug_command {
        _ if !command.has(command::PROTECTED) => true,
        Permission::Yes => true,
        Permission::Local => session.client.is_local(),
        Permission::No => false,
    };
    if allowed {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
         can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    ))
}

fn authenticated(turn: &Turn, session: &Session, command: &Command) -> CommandResult {
    let admitted = session.authenticated || command.has(command::NO_AUTH);
    if admitted || turn.config.requirepass.is_empty() {
        return Ok(());
    }
    Err(CommandError::NO_AUTH)
}

fn allowed_while_subscribed(session: &Session, command: &Command) -> CommandResult {
    const ALLOWED: [&str; 9] = [
        "ping",
        "subscribe",
        "ssubscribe",
        "unsubscribe",
        "sunsubscribe",
        "psubscribe",
        "punsubscribe",
        "quit",
        "reset",
    ];
    if !session.in_pubsub_mode() || (command.parent.is_none() && ALLOWED.contains(&command.name)) {
        return Ok(());
    }
    Err(CommandError::owned(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        command.full_name()
    )))
}

/// A connection that shows what others do takes no part in it.
fn allowed_while_monitoring(session: &Session, command: &Command) -> CommandResult {
    if session.monitor && command.has(command::READONLY | command::WRITE | command::MAY_REPLICATE) {
        return Err(CommandError::text("ERR Replica can't interact with the keyspace"));
    }
    Ok(())
}

fn queue(session: &mut Session, row: &'static Row, argv: Arguments<'_>) {
    let argv = OwnedArguments::from(argv);
    let transaction = session.transaction.as_mut().expect("queueing happens inside MULTI");
    transaction.bytes += argv.memory() + size_of::<QueuedCommand>();
    transaction.commands.push(QueuedCommand { row, argv });
    let client = &session.client;
    client.queued.store(transaction.commands.len() as u32 + 1, Relaxed);
    client.queued_bytes.store(transaction.bytes, Relaxed);
}

/// Says whether a command, or one of the transaction that it executes, has a flag.
pub(crate) fn any_has(command: &Command, session: &Session, flags: command::Flags) -> bool {
    if command.has(flags) {
        return true;
    }
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    transaction.is_some_and(|own| own.commands.iter().any(|queued| queued.row.command.has(flags)))
}

/// Says whether a command, and all of the transaction that it executes, have a flag.
fn all_have(command: &Command, session: &Session, flags: command::Flags) -> bool {
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    command.has(flags)
        && transaction
            .is_none_or(|own| own.commands.iter().all(|queued| queued.row.command.has(flags)))
}

fn transaction_writes(session: &Session) -> bool {
    let transaction = session.transaction.as_ref();
    transaction.is_some_and(|own| {
        let writes = command::WRITE | command::MAY_REPLICATE;
        own.commands.iter().any(|queued| queued.row.command.has(writes))
    })
}

/// Says whether a command, or one of the transaction that it executes, replaces all data.
fn reloads(command: &Command, session: &Session, argv: Arguments<'_>) -> bool {
    let alone = |command: &Command, argv: Arguments<'_>| {
        command.reach.is_some_and(|reach| reach(argv) & command::CLOSES_GATES != 0)
    };
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    alone(command, argv)
        || transaction.is_some_and(|own| {
            own.commands.iter().any(|queued| alone(queued.row.command, queued.argv.view()))
        })
}

/// What a command needs beyond slot locks, when it has not got it yet.
fn lacking_authority(
    command: &Command,
    session: &Session,
    argv: Arguments<'_>,
    authority: Authority<'_>,
) -> Option<Outcome> {
    if matches!(authority, Authority::Closed(_)) {
        return None;
    }
    if any_has(command, session, command::CLOSES_GATES) || reloads(command, session, argv) {
        return Some(Outcome::NeedsGates);
    }
    if matches!(authority, Authority::Program(..)) {
        return None;
    }
    let program = command.name == "exec" && is_program(command, session, argv);
    program.then_some(Outcome::NeedsProgram)
}

/// Whether a command has to hold all slots where it cannot begin again in the middle: an EXEC with
/// commands that look at keys they do not name. SORT with BY or GET does that on its own only when
/// it has met locked slots for long.
fn is_program(command: &Command, session: &Session, argv: Arguments<'_>) -> bool {
    let by_pattern = |command: &Command, argv: Arguments<'_>| {
        command.has(command::READS_BY_PATTERN)
            && argv
                .iter()
                .any(|word| word.eq_ignore_ascii_case(b"by") || word.eq_ignore_ascii_case(b"get"))
    };
    match session.transaction.as_ref().filter(|_| command.name == "exec") {
        Some(transaction) => transaction.commands.iter().any(|queued| {
            let (command, argv) = (queued.row.command, queued.argv.view());
            let flags = command.reach.map_or(command.flags, |reach| reach(argv));
            let walks = flags & command::WHOLE_KEYSPACE != 0;
            walks || by_pattern(command, argv)
        }),
        None => by_pattern(command, argv),
    }
}

/// The slots that a command names, ascending and distinct.
fn all_slots(session: &Session, row: &Row, request: &Request<'_>) -> Slots {
    let mut slots: Slots = request.keys.iter().map(|key| key.slot).collect();
    if row.command.name == "exec" {
        collect_transaction_slots(session, &mut slots);
    }
    slots.sort_unstable();
    slots.dedup();
    slots
}

#[inline]
fn add_key(argv: Arguments<'_>, index: usize, keys: &mut Vec<KeyAt>) {
    let Some(bytes) = argv.get(index) else { return };
    let key = Key::new(bytes);
    keys.push(KeyAt { index: index as u32, hash: key.hash, slot: key.slot });
}

/// Appends the keys of a command, in the order of its arguments.
pub(crate) fn collect_keys(command: &Command, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
    let mut add = |index| add_key(argv, index, keys);
    for spec in command.keys {
        if spec.flags & command::NOT_KEY == 0 {
            spec.each(argv, &mut add);
        }
    }
    if let Some(finder) = command.key_finder {
        finder(argv, &mut |index, _| add(index));
    }
}

/// The slots of all queued commands, and of the watched keys, whose expiry EXEC looks at.
fn collect_transaction_slots(session: &Session, slots: &mut Slots) {
    let mut keys = Vec::new();
    let watched = session.watch.iter().flat_map(|watch| &watch.keys);
    slots.extend(watched.map(|(_, key)| base::crc::key_slot(key)));
    for queued in session.transaction.iter().flat_map(|own| &own.commands) {
        collect_keys(queued.row.command, queued.argv.view(), &mut keys);
    }
    slots.extend(keys.iter().map(|key| key.slot));
}

/// Marks a client as blocked or not, for CLIENT LIST.
pub(crate) fn show_blocked(session: &Session, blocked: bool) {
    session.client.set_flag(flag::BLOCKED, blocked);
}
