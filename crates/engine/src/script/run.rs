//! A running script, and how it calls commands.
//!
//! A script holds the slots of its declared keys. It locks further slots as it meets them, and keeps
//! them to its end, so that it sees one instant. When another thread has locked such a slot, the script
//! unlocks all of its slots and begins again later, with all slots from the start if need be. A script
//! that has written cannot do that: it waits for the slot, see [`store::promote`]. A script that has
//! waited for long takes all slots at the start for some time from then on.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Ticks;
use resp::args::Arguments;
use resp::reply::Reply;
use store::promote::{Next, Promotion};

use crate::command::{self, Spec};
use crate::engine::{Context, Row};
use crate::handler::args::{Args, KeyAt};
use crate::handler::error::{CommandError, CommandResult};
use crate::observe::monitor;
use crate::persistence::durability::SEES_ALL;
use crate::persistence::saving;
use crate::run::authority::Authority;
use crate::run::busy::Asker;
use crate::run::consists::{is_program, lacks_subcommand, needs_gates};
use crate::script::attempt::Attempt;
use crate::script::emptying;
use crate::script::interpreter::{Called, End, Ending, Running};
use crate::script::shebang::{ALLOW_OOM, COMPATIBLE, NO_WRITES, ScriptFlags};
use crate::script::slow::{Kind, SlowScript};
use crate::session::{ScriptNeeds, Session};
use crate::wait::blocking;

/// After this many failed attempts a script takes all slots.
const TRIES_MAX: u32 = 4;
/// Attempts to lock a further slot after writes, before other threads are told that the script waits.
const QUICK_TRIES: u32 = 50;
/// The pause between two attempts from then on.
const PAUSE: Duration = Duration::from_micros(20);
/// A wait of this many microseconds is long: the script takes all slots from the start the next time.
const LONG_WAIT: u64 = 10_000;

/// Microseconds after which a script ends when the server stops. Others see for a moment what it did,
/// so a script that is about to end by itself may do that.
const STOP_PATIENCE: u64 = 100_000;

/// Commands between two looks at the clock: one may take milliseconds.
const CALLS_PER_LOOK: u32 = 16;

/// The script, and the command for which it runs.
pub(crate) struct Subject<'s> {
    pub(crate) kind: Kind,
    pub(crate) name: &'s [u8],
    pub(crate) flags: ScriptFlags,
    pub(crate) read_only: bool,
    pub(crate) argv: Arguments<'s>,
}

/// See the module's text.
pub(crate) struct Run<'r, 'c> {
    cx: &'r mut Context<'c>,
    subject: &'r Subject<'r>,
    keys: Vec<KeyAt>,
    /// It is one of the commands of an EXEC, which cannot begin again.
    nested: bool,
    /// A command that writes was called.
    wrote: bool,
    /// What is taken back when it begins again.
    attempt: Attempt,
    must_end: Option<Ending>,
    begun: Ticks,
    /// Commands called so far.
    calls: u32,
    slow: Option<Arc<SlowScript>>,
    /// Whether the effects of its commands go into the journal.
    journals: bool,
    /// The journal's offset after the effects that are in it already; 0 if there are none.
    settled_to: u64,
    waited_long: bool,
    sees_all: bool,
    /// Its reply is an error, or contains one.
    has_errors: bool,
    /// A slot that was locked.
    missed: Option<u16>,
    needs_gates: bool,
}

/// What remains to be done after a script has ended.
pub(crate) struct Left {
    pub(crate) ending: Option<Ending>,
    pub(crate) has_errors: bool,
    pub(crate) waited_long: bool,
}

/// Runs a script through `action`, which also gets the place for its reply.
pub(crate) fn run<T>(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    action: impl FnOnce(&mut Run<'_, '_>, &mut Reply<'_>) -> T,
) -> (T, Left) {
    let mut output = std::mem::take(&mut cx.db.effects.script_output);
    output.never_share();
    let mut session = Session::of_script(cx.session);
    let row = cx.row;
    let nested = cx.nested;
    let (result, ended) = cx.with_session(&mut session, &mut output, |inner, reply| {
        let attempt = Attempt::new(inner);
        let mut run = Run {
            begun: Ticks::now(),
            nested,
            cx: inner,
            subject,
            keys: Vec::new(),
            wrote: false,
            attempt,
            must_end: None,
            calls: 0,
            slow: None,
            journals: true,
            settled_to: 0,
            waited_long: false,
            sees_all: false,
            has_errors: false,
            missed: None,
            needs_gates: false,
        };
        let result = action(&mut run, reply);
        (result, run.end())
    });
    output.forget_all();
    cx.db.effects.script_output = output;
    cx.row = row;
    let Ended { left, missed, sees_all, needs_gates, settled_to } = ended;
    if sees_all {
        cx.depend_on_all();
    }
    if settled_to > 0 {
        cx.session.written_to = settled_to;
    }
    match left.ending {
        Some(Ending::Again) => begin_again(cx, missed, needs_gates),
        Some(Ending::Stopped) => {
            // It ends in the middle: nothing of it, nor of its transaction, may outlive the process.
            drop(cx.db.effects.journal.split_off(0));
            cx.db.effects.journaling = false;
        }
        Some(Ending::Killed) | None => {}
    }
    (result, left)
}

/// Shows a command to MONITOR before the commands that its script calls.
pub(crate) fn show(cx: &mut Context<'_>, args: &Args<'_>) {
    if cx.engine.pubsub.is_monitored() {
        monitor::show_anyway(cx.db.effects, cx.session, cx.row.command, args.argv());
    }
}

/// How many of the remaining arguments are keys.
pub(crate) fn number_of_keys(count: i64, left: usize) -> Result<usize, CommandError> {
    match usize::try_from(count) {
        Err(_) => Err(CommandError::text("ERR Number of keys can't be negative")),
        Ok(count) if count > left => {
            Err(CommandError::text("ERR Number of keys can't be greater than number of args"))
        }
        Ok(count) => Ok(count),
    }
}

/// Completes a script's command after the script has ended.
pub(crate) fn conclude(cx: &mut Context<'_>, end: End, left: &Left) -> CommandResult {
    // The journal gets the commands that the script called.
    cx.propagate_nothing();
    match end {
        End::Returned => {
            if left.has_errors {
                cx.db.stats.commands[cx.row.id].failed.add(1);
            }
            Ok(())
        }
        End::Failed { line, counted: false } => Err(CommandError::line(line)),
        End::Failed { line, counted: true } => {
            cx.db.stats.commands[cx.row.id].failed.add(1);
            cx.reply.error(&line);
            Ok(())
        }
        End::Again => Err(CommandError::MISSED_SLOT),
    }
}

/// The checks before a script runs that declares what it needs. Other scripts' commands are checked one
/// by one.
pub(crate) fn admit(cx: &Context<'_>, flags: ScriptFlags, read_only: bool) -> CommandResult {
    if flags & COMPATIBLE != 0 {
        return Ok(());
    }
    if cx.db.effects.short_of_memory && flags & (NO_WRITES | ALLOW_OOM) == 0 {
        return Err(CommandError::OUT_OF_MEMORY);
    }
    if flags & NO_WRITES != 0 {
        return Ok(());
    }
    if read_only {
        let text = "ERR Can not execute a script with write flag using *_ro command.";
        return Err(CommandError::text(text));
    }
    may_write(cx)
}

/// Whether persistence allows writes.
fn may_write(cx: &Context<'_>) -> CommandResult {
    if cx.db.effects.journal_failed
        && !cx.session.replays
        && let Some(reason) = cx.engine.journal.failure()
    {
        let text = format!("MISCONF Errors writing to the AOF file: {reason}");
        return Err(CommandError::owned(text));
    }
    if cx.engine.saving.stops_writes(cx.db.config) {
        return Err(saving::refusal());
    }
    Ok(())
}

/// Makes a script that may empty databases (`is_named`, or an argument names such a command) begin with
/// all gates closed.
pub(crate) fn take_gates(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    is_named: bool,
) -> CommandResult {
    let writes = !subject.read_only && subject.flags & NO_WRITES == 0;
    let has_them = cx.nested || cx.db.held.is_everything();
    if !writes || has_them || !(is_named || emptying::is_among(subject.argv)) {
        return Ok(());
    }
    cx.session.script_needs = Some(ScriptNeeds::Gates);
    cx.db.held.note_missed(0);
    Err(CommandError::MISSED_SLOT)
}

/// Makes the script of a command begin again: at first when a slot is free, later with all slots.
fn begin_again(cx: &mut Context<'_>, slot: Option<u16>, needs_gates: bool) {
    cx.session.script_tries += 1;
    cx.db.held.note_missed(slot.unwrap_or_default());
    if needs_gates {
        cx.session.script_needs = Some(ScriptNeeds::Gates);
    } else if slot.is_none() || cx.session.script_tries >= TRIES_MAX {
        cx.session.script_needs = Some(ScriptNeeds::AllSlots);
    }
}

struct Ended {
    left: Left,
    missed: Option<u16>,
    sees_all: bool,
    needs_gates: bool,
    settled_to: u64,
}

impl Running for Run<'_, '_> {
    fn must_end(&self) -> Option<Ending> {
        self.must_end
    }

    fn reply(&mut self) -> &[u8] {
        self.cx.reply.output().unsent()
    }

    fn kind(&self) -> Kind {
        self.subject.kind
    }

    fn name(&self) -> &[u8] {
        self.subject.name
    }

    fn set_journals(&mut self, journals: bool) {
        self.journals = journals;
    }

    fn memory_limit(&self) -> usize {
        self.cx.db.config.lua_memory_limit
    }

    fn log(&self, level: crate::host::LogLevel, line: &str) {
        self.cx.engine.host.log(level, line);
    }

    fn check_command(&self, argv: Arguments<'_>) -> Result<(), &'static str> {
        let row = self.cx.engine.commands.resolve(argv);
        match row {
            Some(row) if row.command.accepts(argv.len()) && !lacks_subcommand(row, argv) => Ok(()),
            Some(row) if !lacks_subcommand(row, argv) => {
                Err("ERR Wrong number of args for redis.acl_check_cmd()")
            }
            _ => Err("ERR Invalid command passed to redis.acl_check_cmd()"),
        }
    }

    fn note_error_reply(&mut self) {
        self.has_errors = true;
    }

    fn count_error(&mut self, error: &CommandError) {
        self.cx.db.stats.error_replies.add(1);
        self.cx.engine.stats.count_error(&error.code());
    }

    fn call(&mut self, argv: Arguments<'_>, resp3: bool) -> Called {
        self.calls = self.calls.wrapping_add(1);
        let looks = self.calls.is_multiple_of(CALLS_PER_LOOK);
        if self.must_end.is_some() || (looks && !self.may_go_on()) {
            return Called::Ended;
        }
        let row = match self.admit(argv) {
            Ok(row) => row,
            Err(error) => return Called::Refused(error),
        };
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        self.cx.engine.find_keys(row, argv, &mut keys);
        let called = self.call_with(row, argv, &keys, resp3);
        self.keys = keys;
        called
    }

    fn may_go_on(&mut self) -> bool {
        if self.must_end.is_some() {
            return false;
        }
        let ends_soon = self.age_us() < STOP_PATIENCE;
        if self.cx.engine.scripts.slow.is_stopping() && !ends_soon {
            self.must_end = Some(Ending::Stopped);
        } else {
            self.look_at_clock();
        }
        self.must_end.is_none()
    }
}

impl Run<'_, '_> {
    fn call_with(
        &mut self,
        row: &'static Row,
        argv: Arguments<'_>,
        keys: &[KeyAt],
        resp3: bool,
    ) -> Called {
        if let Err(refused) = self.reach(row.command, argv, keys) {
            return refused;
        }
        if row.command.has(command::WRITE) && !self.begin_to_write() {
            return Called::Ended;
        }
        let cx = &mut *self.cx;
        cx.db.index = cx.session.database;
        cx.session.resp3 = resp3;
        cx.reply.output().forget_all();
        cx.reply.set_protocol(resp3);
        let journal_at = cx.db.effects.journal.len();
        cx.run_handler(row, &mut Args::new(argv, keys));
        cx.engine.free_removed(cx.db.effects);
        if !self.journals {
            cx.db.effects.journal.split_off(journal_at);
        }
        self.sees_all |= row.command.has(SEES_ALL);
        Called::Replied
    }

    /// The checks of a command that a script calls, in the order in which Redis makes them.
    fn admit(&mut self, argv: Arguments<'_>) -> Result<&'static Row, CommandError> {
        let row = self.cx.engine.commands.resolve(argv);
        let row = row.filter(|row| !lacks_subcommand(row, argv));
        let Some(row) = row else {
            return Err(CommandError::text("ERR Unknown Redis command called from script"));
        };
        if self.may_begin_again() {
            self.attempt.note(self.cx.db.stats, row);
        }
        self.admit_row(row, argv.len()).inspect_err(|_| {
            self.cx.db.stats.commands[row.id].rejected.add(1);
        })?;
        Ok(row)
    }

    fn admit_row(&self, row: &Row, length: usize) -> Result<(), CommandError> {
        let (command, flags) = (row.command, self.subject.flags);
        if !command.accepts(length) {
            let text = "ERR Wrong number of args calling Redis command from script";
            return Err(CommandError::text(text));
        }
        if command.has(command::NOSCRIPT) {
            return Err(CommandError::text("ERR This Redis command is not allowed from script"));
        }
        // Messages to other clients count as writes.
        let read_only = self.subject.read_only || flags & NO_WRITES != 0;
        if read_only && command.has(command::WRITE | command::MAY_REPLICATE) {
            let text = "ERR Write commands are not allowed from read-only scripts.";
            return Err(CommandError::text(text));
        }
        if command.has(command::WRITE) {
            may_write(self.cx)?;
        }
        let short = self.cx.db.effects.short_of_memory && flags & ALLOW_OOM == 0;
        if command.has(command::DENYOOM) && short && !self.wrote {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Notes that the next effect cannot be undone. Returns whether the script may go on.
    fn begin_to_write(&mut self) -> bool {
        if self.slow.as_ref().is_some_and(|slow| !slow.may_write()) {
            self.must_end = Some(Ending::Killed);
            return false;
        }
        self.wrote = true;
        true
    }

    /// Makes sure that all slots are held that a command uses.
    fn reach(&mut self, command: &Spec, argv: Arguments<'_>, keys: &[KeyAt]) -> Result<(), Called> {
        if needs_gates(command, argv) {
            return self.reach_for_gates(command);
        }
        if is_program(command, self.cx.session, argv) || reaches_all(command, argv) {
            return self.reach_for_all();
        }
        let before = self.cx.db.held.count();
        for key in keys {
            if !self.cx.db.held.covers(key.slot) {
                self.reach_for(key.slot)?;
            }
        }
        if self.cx.db.held.count() > before {
            self.show_slots();
        }
        Ok(())
    }

    /// Closes all gates, or begins again with all of them closed.
    fn reach_for_gates(&mut self, command: &Spec) -> Result<(), Called> {
        if let Authority::Closed(closed) = self.cx.authority {
            // It has let others in when it had run for long.
            while !self.cx.db.held.keep_others_out(closed) {
                std::thread::sleep(PAUSE);
                if !self.may_go_on() {
                    return Err(Called::Ended);
                }
            }
            return Ok(());
        }
        if !self.may_begin_again() {
            return Err(Called::Refused(CommandError::owned(format!(
                "ERR '{}' cannot follow a write in a script whose text does not name it",
                command.full_name()
            ))));
        }
        self.needs_gates = true;
        Err(self.begin_again(None))
    }

    fn reach_for_all(&mut self) -> Result<(), Called> {
        if self.cx.db.held.is_everything() || self.holds_all() {
            return Ok(());
        }
        if self.may_begin_again() {
            return Err(self.begin_again(None));
        }
        for slot in 0..base::limits::SLOTS as u16 {
            // The slots for serving waiters are among them.
            let _ = self.cx.db.held.try_cover_briefly(slot) || self.wait_for(slot)?;
        }
        self.show_slots();
        Ok(())
    }

    fn holds_all(&self) -> bool {
        self.cx.db.held.count() == base::limits::SLOTS
    }

    /// Locks a further slot, and those that serving its waiters may need.
    fn reach_for(&mut self, slot: u16) -> Result<(), Called> {
        let mut slot = slot;
        loop {
            if self.cx.db.held.try_cover_briefly(slot) || self.wait_for(slot)? {
                let held = &self.cx.db.held;
                if blocking::cover_destinations(held, None) {
                    return Ok(());
                }
                slot = held.missed().unwrap_or(slot);
                held.forgive_missed();
            }
        }
    }

    /// Another thread has locked a slot. Returns whether the script gets it after all.
    fn wait_for(&mut self, slot: u16) -> Result<bool, Called> {
        if self.may_begin_again() {
            return Err(self.begin_again(Some(slot)));
        }
        for _ in 0..QUICK_TRIES {
            if self.cx.db.held.try_cover_briefly(slot) {
                return Ok(true);
            }
        }
        let begun = base::clock::steady_us();
        let promotion = Promotion::new(&self.cx.db.held, slot);
        loop {
            match promotion.next(&self.cx.db.held) {
                Next::Locked | Next::Borrowed => break,
                Next::Wait => {
                    std::thread::sleep(PAUSE);
                    // The other thread may keep it for long. Meanwhile this thread serves other
                    // connections.
                    self.look_at_clock();
                    if self.must_end.is_some() {
                        return Err(Called::Ended);
                    }
                }
                Next::Settle => {
                    let end = self.cx.engine.settle(&mut self.cx.db);
                    self.settled_to = self.settled_to.max(end);
                    promotion.note_settled();
                }
            }
        }
        self.waited_long |= base::clock::steady_us() - begun >= LONG_WAIT;
        Ok(true)
    }

    /// Whether it has done nothing yet that cannot be taken back.
    fn may_begin_again(&self) -> bool {
        !self.wrote && !self.nested
    }

    /// Lets the script begin again, with everything that it may need.
    fn begin_again(&mut self, slot: Option<u16>) -> Called {
        let is_killed = self.slow.as_ref().is_some_and(|slow| slow.is_killed());
        self.must_end = Some(if is_killed { Ending::Killed } else { Ending::Again });
        self.missed = slot;
        Called::Ended
    }

    /// Microseconds since it began.
    fn age_us(&self) -> u64 {
        self.begun.elapsed_ns() / 1000
    }

    /// Tells other clients when the script has run for long.
    fn look_at_clock(&mut self) {
        let threshold = self.cx.db.config.busy_reply_threshold.saturating_mul(1000);
        if threshold > 0 && self.age_us() >= threshold {
            self.tell_others();
        }
    }

    /// The script has run for long.
    fn tell_others(&mut self) {
        // Other clients cannot even be refused while all gates are closed.
        if let Authority::Closed(closed) = self.cx.authority {
            self.cx.db.held.let_others_in(closed);
        }
        let slow = match &self.slow {
            Some(slow) => Arc::clone(slow),
            None => self.become_slow(),
        };
        if !self.may_begin_again() && !self.cx.db.effects.defers_replies {
            // What it has published reaches its listeners while it runs.
            self.cx.engine.publish_messages(self.cx.db.effects);
        }
        // With all gates closed no client can be served.
        if let Some(busy) = self.cx.busy.filter(|_| !self.cx.db.held.is_everything())
            && busy.note_slow_script() == Asker::Gone
        {
            slow.kill();
        }
        if self.cx.session.client.is_killed() {
            slow.kill();
        }
        if slow.is_killed() {
            self.must_end = Some(Ending::Killed);
        }
    }

    /// The slots that it holds; all when absent.
    fn slots(&self) -> Option<Vec<u16>> {
        let all = self.cx.db.held.is_everything() || self.holds_all();
        (!all).then(|| {
            let mut slots = Vec::new();
            self.cx.db.held.each_slot(|slot| slots.push(slot));
            slots
        })
    }

    /// Other threads are told that it holds more slots than before, if they are told of it at all.
    fn show_slots(&self) {
        if let Some(slow) = &self.slow {
            slow.note_slots(self.slots());
        }
    }

    fn become_slow(&mut self) -> Arc<SlowScript> {
        let slots = self.slots();
        let subject = self.subject;
        let words = subject.argv.iter().map(<[u8]>::to_vec).collect();
        let about = (subject.name.to_vec(), words);
        let age = self.age_us();
        let begun = base::clock::steady_us().saturating_sub(age);
        let slow = SlowScript::new(subject.kind, about, begun, slots, self.wrote);
        let slow = Arc::new(slow);
        let line = format!(
            "Slow script detected: still in execution after {} milliseconds. You can try killing \
             the script using the {} KILL command. Script name is: {}.",
            age / 1000,
            if subject.kind == Kind::Script { "SCRIPT" } else { "FUNCTION" },
            String::from_utf8_lossy(subject.name)
        );
        self.cx.engine.host.log(crate::host::LogLevel::Warning, &line);
        self.cx.engine.scripts.slow.add(Arc::clone(&slow));
        self.slow = Some(Arc::clone(&slow));
        slow
    }

    fn end(self) -> Ended {
        if let Some(slow) = &self.slow {
            self.cx.engine.scripts.slow.remove(slow);
        }
        if self.must_end == Some(Ending::Again) {
            self.attempt.take_back(self.cx, self.slow.is_none());
        }
        let left = Left {
            ending: self.must_end,
            has_errors: self.has_errors,
            waited_long: self.waited_long,
        };
        let Run { missed, sees_all, needs_gates, settled_to, .. } = self;
        Ended { left, missed, sees_all, needs_gates, settled_to }
    }
}

/// Whether a command looks at keys that it does not name.
fn reaches_all(command: &Spec, argv: Arguments<'_>) -> bool {
    let flags = command.reach.map_or(command.flags, |reach| reach(argv));
    flags & command::WHOLE_KEYSPACE != 0
}
