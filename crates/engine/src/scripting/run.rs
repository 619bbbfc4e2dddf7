//! A running script, and how it calls commands.
//!
//! A script holds the slots of its declared keys. It locks further slots as it meets them, and
//! keeps them to its end, so that it sees one instant. When another thread has locked such a slot,
//! the script unlocks all of its slots and begins again later, with all slots from the start if
//! need be. A script that has written cannot do that: it waits for the slot, see
//! [`store::promote`]. A script that has waited for long takes all slots at the start for some time
//! from then on.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Ticks;
use resp::args::Arguments;
use resp::reply::Reply;
use store::promote::{Next, Promotion};

use crate::admission::slots::serves_called;
use crate::admission::{self, ScriptRights};
use crate::clients::monitor;
use crate::command::args::{Args, KeyAt};
use crate::command::error::{CommandError, CommandResult};
use crate::command::{self, Spec};
use crate::db::slot_access::SlotAccess;
use crate::engine::busy::Asker;
use crate::engine::{Context, Row};
use crate::persistence::durability::SEES_ALL;
use crate::script::emptying;
use crate::script::interpreter::{Called, End, Ending, Running};
use crate::script::shebang::{ALLOW_OOM, NO_WRITES, ScriptFlags};
use crate::script::slow::{Kind, SlowScript};
use crate::scripting::attempt::{Attempt, BeforeCall};
use crate::session::{ScriptNeeds, Session};
use crate::turn::expansion::{is_exclusive, lacks_subcommand, stops_the_world};
use crate::wait::blocking;

/// After this many failed attempts a script takes all slots.
const TRIES_MAX: u32 = 4;
/// Attempts to lock a further slot after writes, before other threads are told that the script
/// waits.
const QUICK_TRIES: u32 = 50;
/// The pause between two attempts from then on.
const PAUSE: Duration = Duration::from_micros(20);
/// A wait of this many microseconds is long: the script takes all slots from the start the next
/// time.
const LONG_WAIT: u64 = 10_000;

/// Microseconds after which a script ends when the server stops. Others see for a moment what it
/// did, so a script that is about to end by itself may do that.
const STOP_PATIENCE: u64 = 100_000;

/// Commands between two looks at the clock: one may take milliseconds.
const CALLS_PER_LOOK: u32 = 16;

/// The script, and the command for which it runs.
pub struct Subject<'s> {
    /// Whether it is a script or a function.
    pub kind: Kind,
    /// What it is called where running scripts are shown.
    pub name: &'s [u8],
    /// What its first line, or its registration, says.
    pub flags: ScriptFlags,
    /// It may not write.
    pub read_only: bool,
    /// The slot of the keys that the command declares, if it declares any.
    pub slot: Option<u16>,
    /// The command.
    pub argv: Arguments<'s>,
}

/// See the module's text.
pub struct Run<'r, 'c> {
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
    /// The journal's offset after the effects that are in it already, if there are any.
    settled_to: Option<u64>,
    waited_long: bool,
    sees_all: bool,
    /// Its reply is an error, or contains one.
    has_errors: bool,
    /// A slot that was locked.
    missed: Option<u16>,
    /// In a cluster: the slot of its keys, as far as it has named any.
    slot: Option<u16>,
    stops_the_world: bool,
}

/// What remains to be done after a script has ended.
pub struct Left {
    pub(crate) ending: Option<Ending>,
    pub(crate) has_errors: bool,
    /// It has waited long for a slot.
    pub waited_long: bool,
}

/// Runs a script through `action`, which also gets the place for its reply.
pub fn run<T>(
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
            settled_to: None,
            waited_long: false,
            sees_all: false,
            has_errors: false,
            missed: None,
            slot: subject.slot,
            stops_the_world: false,
        };
        let result = action(&mut run, reply);
        (result, run.end())
    });
    output.forget_all();
    cx.db.effects.script_output = output;
    cx.row = row;
    let Ended { left, missed, sees_all, stops_the_world, settled_to } = ended;
    if sees_all {
        cx.depend_on_all();
    }
    if let Some(settled_to) = settled_to {
        cx.session.write_offset = settled_to;
    }
    match left.ending {
        Some(Ending::Again) => begin_again(cx, missed, stops_the_world),
        Some(Ending::Stopped) => {
            // It ends in the middle: nothing of it, nor of its transaction, may outlive the
            // process.
            drop(cx.db.effects.journal.split_off(0));
            cx.db.effects.journaling = false;
        }
        Some(Ending::Killed) | None => {}
    }
    (result, left)
}

/// Shows a command to MONITOR before the commands that its script calls.
pub fn show(cx: &mut Context<'_>, args: &Args<'_>) {
    if cx.engine.pubsub.is_monitored() {
        monitor::show_anyway(cx.db.effects, cx.session, cx.row.command, args.argv());
    }
}

/// How many of the remaining arguments are keys.
pub fn number_of_keys(count: i64, left: usize) -> Result<usize, CommandError> {
    match usize::try_from(count) {
        Err(_) => Err(CommandError::text("ERR Number of keys can't be negative")),
        Ok(count) if count > left => {
            Err(CommandError::text("ERR Number of keys can't be greater than number of args"))
        }
        Ok(count) => Ok(count),
    }
}

/// The slot of the first of so many keys that come next.
pub fn declared_slot(args: &Args<'_>, keys: usize) -> Option<u16> {
    args.peek().filter(|_| keys > 0).map(base::crc::key_slot)
}

/// Completes a script's command after the script has ended.
pub fn conclude(cx: &mut Context<'_>, end: End, left: &Left) -> CommandResult {
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

/// Makes a script that may empty databases (`is_named`, or an argument names such a command) begin
/// with the world stopped.
pub fn stop_the_world(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    is_named: bool,
) -> CommandResult {
    let writes = !subject.read_only && subject.flags & NO_WRITES == 0;
    let has_them = cx.nested || cx.db.locked.is_everything();
    if !writes || has_them || !(is_named || emptying::is_among(subject.argv)) {
        return Ok(());
    }
    cx.session.script_needs = Some(ScriptNeeds::StoppedWorld);
    cx.db.locked.note_missed(0);
    Err(CommandError::MISSED_SLOT)
}

/// Makes the script of a command begin again: at first when a slot is free, later with all slots.
fn begin_again(cx: &mut Context<'_>, slot: Option<u16>, stops_the_world: bool) {
    cx.session.script_tries += 1;
    cx.db.locked.note_missed(slot.unwrap_or_default());
    if stops_the_world {
        cx.session.script_needs = Some(ScriptNeeds::StoppedWorld);
    } else if slot.is_none() || cx.session.script_tries >= TRIES_MAX {
        cx.session.script_needs = Some(ScriptNeeds::AllSlots);
    }
}

struct Ended {
    left: Left,
    missed: Option<u16>,
    sees_all: bool,
    stops_the_world: bool,
    settled_to: Option<u64>,
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

    fn check_command(&self, argv: Arguments<'_>) -> Result<bool, &'static str> {
        let row = self.cx.engine.client_names.resolve(argv);
        match row {
            Some(row) if row.command.accepts(argv.len()) && !lacks_subcommand(row, argv) => {
                let session = &*self.cx.session;
                Ok(session.user.check(admission::asked(session, row, argv)).is_ok())
            }
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
        if self.may_be_taken_back() {
            self.attempt.note_error(error);
        }
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
        let called = match self.look_at_slots(row, argv, &keys) {
            Ok(()) => self.call_with(row, argv, &keys, resp3),
            Err(error) => Called::Refused(error),
        };
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
        let told = cx.db.effects.publications.get_mut().len();
        let before = BeforeCall::new(cx.db.stats, row);
        cx.run_handler(row, &mut Args::new(argv, keys));
        if !self.journals {
            cx.db.effects.publications.get_mut().keep_from_replicas(told);
        }
        cx.engine.free_removed(cx.db.effects);
        if cx.db.effects.publications.get_mut().is_much() {
            cx.engine.sift_publications(cx.db.effects);
        }
        if self.may_be_taken_back() {
            self.attempt.note_called(self.cx, row, before);
        }
        let cx = &mut *self.cx;
        if !self.journals {
            cx.db.effects.journal.split_off(journal_at);
        }
        self.sees_all |= row.command.has(SEES_ALL);
        Called::Replied
    }

    /// The row of a command that it calls, if it may run.
    fn admit(&mut self, argv: Arguments<'_>) -> Result<&'static Row, CommandError> {
        let row = admission::known_to_script(self.cx, argv)?;
        if self.may_begin_again() {
            self.attempt.note(self.cx.db.stats, row);
        }
        let flags = self.subject.flags;
        let rights = ScriptRights {
            read_only: self.subject.read_only || flags & NO_WRITES != 0,
            over_memory: self.wrote || flags & ALLOW_OOM != 0,
        };
        admission::admit_called(self.cx, row, argv, &rights).inspect_err(|_| {
            self.cx.db.stats.commands[row.id].rejected.add(1);
        })?;
        Ok(row)
    }

    /// Whether a node of a cluster serves the slots of a command that it calls.
    fn look_at_slots(&mut self, row: &Row, argv: Arguments<'_>, keys: &[KeyAt]) -> CommandResult {
        if self.cx.db.cluster.is_none() {
            return Ok(());
        }
        let called = (&row.command.spec, argv, keys);
        serves_called(self.cx, called, self.subject.flags, &mut self.slot).inspect_err(|_| {
            self.cx.db.stats.commands[row.id].rejected.add(1);
        })
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
        if stops_the_world(command, argv) {
            return self.reach_for_stopped_world(command);
        }
        if is_exclusive(command, self.cx.session, argv) || reaches_all(command, argv) {
            return self.reach_for_all();
        }
        let before = self.cx.db.locked.count();
        for key in keys {
            if !self.cx.db.locked.contains(key.slot) {
                if self.may_begin_again() && self.cx.engine.slot_moves.holds(key.slot) {
                    return Err(self.begin_again(None));
                }
                self.reach_for(key.slot)?;
            }
        }
        if self.cx.db.locked.count() > before {
            self.show_slots();
            self.may_look()?;
        }
        Ok(())
    }

    /// What it has not held from the start may show half of a script that a stop has ended.
    fn may_look(&mut self) -> Result<(), Called> {
        if self.cx.engine.scripts.slow.is_stopping() {
            self.must_end = Some(Ending::Stopped);
            return Err(Called::Ended);
        }
        Ok(())
    }

    /// Stops the world, or begins again in a stopped world.
    fn reach_for_stopped_world(&mut self, command: &Spec) -> Result<(), Called> {
        if let SlotAccess::Stopped(stopped) = self.cx.slot_access {
            if self.cx.db.locked.is_everything() {
                return Ok(());
            }
            // It has let others in when it had run for long.
            while !self.cx.db.locked.keep_others_out(stopped) {
                std::thread::sleep(PAUSE);
                if !self.may_go_on() {
                    return Err(Called::Ended);
                }
            }
            return self.may_look();
        }
        if !self.may_begin_again() {
            return Err(Called::Refused(CommandError::owned(format!(
                "ERR '{}' cannot follow a write in a script whose text does not name it",
                command.full_name()
            ))));
        }
        self.stops_the_world = true;
        Err(self.begin_again(None))
    }

    fn reach_for_all(&mut self) -> Result<(), Called> {
        if self.cx.db.locked.is_everything() || self.holds_all() {
            return Ok(());
        }
        if self.may_begin_again() {
            return Err(self.begin_again(None));
        }
        for slot in 0..base::limits::SLOTS as u16 {
            // The slots for serving waiters are among them.
            let _ = self.cx.db.locked.try_acquire_briefly(slot) || self.wait_for(slot)?;
        }
        self.show_slots();
        self.may_look()
    }

    fn holds_all(&self) -> bool {
        self.cx.db.locked.count() == base::limits::SLOTS
    }

    /// Locks a further slot, and those that serving its waiters may need.
    fn reach_for(&mut self, slot: u16) -> Result<(), Called> {
        let mut slot = slot;
        loop {
            if self.cx.db.locked.try_acquire_briefly(slot) || self.wait_for(slot)? {
                let locked = &self.cx.db.locked;
                if blocking::acquire_destinations(locked, None) {
                    return Ok(());
                }
                slot = locked.missed().unwrap_or(slot);
                locked.forgive_missed();
            }
        }
    }

    /// Another thread has locked a slot. Returns whether the script gets it after all.
    fn wait_for(&mut self, slot: u16) -> Result<bool, Called> {
        if self.may_begin_again() {
            return Err(self.begin_again(Some(slot)));
        }
        for _ in 0..QUICK_TRIES {
            if self.cx.db.locked.try_acquire_briefly(slot) {
                return Ok(true);
            }
        }
        let begun = base::clock::monotonic_us();
        let promotion = Promotion::new(&self.cx.db.locked, slot);
        loop {
            match promotion.next(&self.cx.db.locked) {
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
        self.waited_long |= base::clock::monotonic_us() - begun >= LONG_WAIT;
        Ok(true)
    }

    /// Whether it has done nothing yet that cannot be taken back.
    fn may_begin_again(&self) -> bool {
        !self.wrote && !self.nested
    }

    /// Whether its counts are taken back when it begins again: see [`Attempt`].
    fn may_be_taken_back(&self) -> bool {
        self.may_begin_again() && self.slow.is_none()
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
        // Other clients cannot even be refused while the world is stopped.
        if let SlotAccess::Stopped(stopped) = self.cx.slot_access {
            self.cx.db.locked.let_others_in(stopped);
        }
        let slow = match &self.slow {
            Some(slow) => Arc::clone(slow),
            None => self.become_slow(),
        };
        if !self.may_begin_again() && !self.cx.db.effects.defers_replies {
            // What it has published reaches its followers while it runs.
            self.cx.engine.publish_messages(self.cx.db.effects);
        }
        // With the world stopped no client can be served.
        if let Some(busy) = self.cx.busy.filter(|_| !self.cx.db.locked.is_everything())
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
        let all = self.cx.db.locked.is_everything() || self.holds_all();
        (!all).then(|| {
            let mut slots = Vec::new();
            self.cx.db.locked.each_slot(|slot| slots.push(slot));
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
        let begun = base::clock::monotonic_us().saturating_sub(age);
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
        let Run { missed, sees_all, stops_the_world, settled_to, .. } = self;
        Ended { left, missed, sees_all, stops_the_world, settled_to }
    }
}

/// Whether a command looks at keys that it does not name.
fn reaches_all(command: &Spec, argv: Arguments<'_>) -> bool {
    let flags = command.reach.map_or(command.flags, |reach| reach(argv));
    flags & command::WHOLE_KEYSPACE != 0
}
