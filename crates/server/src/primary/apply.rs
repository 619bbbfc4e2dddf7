//! Applying the primary's writes: one thread runs them, in their order, under the locks of their
//! slots. Workers serve reads meanwhile.

use std::cell::Cell;
use std::ops::Range;

use config::PrimaryAddress;
use engine::command::args::KeyAt;
use engine::engine::{Engine, Row};
use engine::host::LogLevel;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Call, Outcome, Request, Requests};
use persist::cuts::CutRight;
use replication::stream::{Stream, Unit, Units};
use resp::args::{Arguments, OwnedArguments};
use resp::client::ReplyParser as Parser;
use resp::output::Output;
use store::gate::{Access, Gate, Inside, Pinned};

use super::acknowledge::Acknowledger;
use super::term::Term;
use super::unwritten::{
    Appender, Applied, Insistent, Marks, Unwritten, database_of, is_needed_to_stop, selects_beyond,
};
use super::wire::{Trouble, Wire};

/// Units that are applied before other threads may stop the world.
const UNITS_AT_ONCE: usize = 64;
/// Errors of a link's commands that are logged; more are only counted.
const ERRORS_SHOWN: u64 = 20;

/// The row of a command, and its keys among all.
type Prepared = (Option<&'static Row>, Range<usize>);

/// Units that follow each other.
struct Run<'a> {
    units: Units<'a>,
    /// The number of the first.
    first: usize,
    prepared: &'a [Prepared],
    keys: &'a [KeyAt],
}

impl Requests for Run<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.prepared.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Request<'_> {
        let (row, keys) = &self.prepared[index];
        // A transaction has no row.
        let argv = self.units.at(self.first + index).first();
        Request { argv, row: *row, keys: &self.keys[keys.clone()], busy: None }
    }

    /// The replies go nowhere.
    fn defer_reply(&mut self, _: u64, _: u64) {}
}

/// Runs the commands of a primary.
pub(super) struct Applier<'e> {
    engine: &'e Engine,
    gate: &'e Gate,
    turn: Turn,
    session: Session,
    output: Output,
    /// The rows and the keys of the units that are being applied.
    prepared: Vec<Prepared>,
    keys: Vec<KeyAt>,
    errors: u64,
    /// Clients of this server write too, into the same file: the journal gets each unit while the
    /// slots are locked, so that the file has all writes to a key in the order of the data.
    in_order: bool,
    /// See [`Insistent::has_left`].
    has_left: Cell<bool>,
    unwritten: Unwritten,
    /// Of the unit that runs command by command.
    marks: Marks,
}

impl<'e> Applier<'e> {
    pub(super) fn new(engine: &'e Engine, gate: &'e Gate) -> Applier<'e> {
        Applier {
            engine,
            gate,
            turn: Turn::new(engine, "replica"),
            session: Session::internal(),
            output: Output::new(),
            prepared: Vec::new(),
            keys: Vec::new(),
            errors: 0,
            in_order: false,
            has_left: Cell::new(false),
            unwritten: Unwritten::default(),
            marks: Marks::default(),
        }
    }

    /// Has the data that was offered take the place of the present data, with the right to read it.
    pub(super) fn take_in(&mut self, term: &Term<'_>, right: &CutRight) -> Result<(), Trouble> {
        self.begin(term);
        let argv: OwnedArguments = [b"takein"].iter().collect();
        let row = Some(commands::take_in_row());
        let request = Request { argv: argv.view(), row, keys: &[], busy: None };
        let (turn, session, output) = (&mut self.turn, &mut self.session, &mut self.output);
        let start = output.mark();
        let call = Call { turn, session, request, output };
        let has_left = &Cell::new(true);
        let right = Some(right);
        let policy = Insistent { engine: self.engine, term, has_left, applied: None, right };
        let outcome = self.engine.drive(call, self.gate, policy);
        self.turn.announce_appends(self.engine);
        self.engine.announce_applied();
        // If it was not wanted any more, it goes here, where nobody waits.
        drop(self.engine.replication.take_incoming());
        process::memory::publish();
        let reply = self.output.to_vec();
        self.output.rollback(start);
        match outcome {
            Outcome::Done if reply.starts_with(b"+") => Ok(()),
            _ => {
                term.go_on()?;
                if right.is_some_and(is_needed_to_stop) {
                    return Err(Trouble::Lost("the server is about to stop".to_owned()));
                }
                let reason = String::from_utf8_lossy(&reply).trim().to_owned();
                Err(Trouble::Data { reason, lasting: true })
            }
        }
    }

    /// A link begins: nothing is left of the one before.
    fn begin(&mut self, term: &Term<'_>) {
        let address =
            |own: PrimaryAddress| format!("{}:{}", String::from_utf8_lossy(&own.host), own.port);
        let primary = self.engine.replication.primary();
        self.session = Session::internal_for(primary.map_or_else(String::new, address));
        self.session.link = Some(term.number);
        self.errors = 0;
    }

    /// Applies the stream of a link to the end of the link.
    pub(super) fn apply(
        &mut self,
        term: &Term<'_>,
        wire: &mut Wire,
        with_offsets: bool,
    ) -> Result<std::convert::Infallible, Trouble> {
        self.begin(term);
        let selected = self.engine.journal.selected();
        self.session.select(selected.unwrap_or_default());
        self.unwritten = Unwritten::after(selected);
        let replication = &self.engine.replication;
        let mut stream = Stream::new(replication.applied());
        let mut acknowledger = with_offsets.then(|| Acknowledger::new(self.engine));
        let mut asked_at = 0;
        loop {
            term.go_on()?;
            if let Some(own) = &mut acknowledger {
                own.look(wire)?;
            }
            let arrived = wire.look()?;
            let count = arrived.len();
            if count == 0 {
                continue;
            }
            stream.push(arrived);
            wire.take(count);
            term.note_heard();
            replication.note_received(stream.offset() + stream.waiting() as u64);
            let applied = self.apply_units(term, wire, &mut stream, &mut acknowledger);
            self.turn.announce_appends(self.engine);
            self.engine.announce_applied();
            process::memory::publish();
            applied?;
            let now = base::clock::monotonic_ms();
            // Once in a millisecond: it asks the system.
            let may_ask = stream.waiting() == 0 && std::mem::replace(&mut asked_at, now) != now;
            if may_ask && wire.is_all_taken() {
                replication.note_in_step(term.number, now);
            }
        }
    }

    /// Applies what has arrived as a whole.
    fn apply_units(
        &mut self,
        term: &Term<'_>,
        wire: &mut Wire,
        stream: &mut Stream,
        acknowledger: &mut Option<Acknowledger<'_>>,
    ) -> Result<(), Trouble> {
        // The journal counts from elsewhere.
        let ahead = self.engine.journal.end().wrapping_sub(stream.offset());
        loop {
            let units = stream.next_units(UNITS_AT_ONCE)?;
            if units.is_empty() {
                return Ok(());
            }
            let mut gate = None;
            let hears = (&mut *wire, &mut *acknowledger);
            let applied = self.apply_in_gate((term, hears), units, ahead, &mut gate);
            self.pass_on(term, units.around());
            drop(gate);
            applied?;
        }
    }

    /// Applies these units, up to an error. What the journal lacks at the end was applied in the
    /// gate that the thread is still inside of.
    fn apply_in_gate(
        &mut self,
        (term, (wire, acknowledger)): (&Term<'_>, (&mut Wire, &mut Option<Acknowledger<'_>>)),
        units: Units<'_>,
        ahead: u64,
        gate: &mut Option<Inside<'e>>,
    ) -> Result<(), Trouble> {
        self.prepare(units);
        let mut next = 0;
        while next < units.len() {
            let unit = units.at(next);
            let asks = asks_for_acknowledgement(&unit);
            if asks {
                self.pass_on(term, units.around());
                // No thread waits inside its gate.
                *gate = None;
                match acknowledger {
                    Some(own) if self.engine.cluster.is_enabled() && next + 1 == units.len() => {
                        own.answer_behind(unit.begin());
                    }
                    // It does not count the request itself.
                    Some(own) => own.answer(unit.begin(), wire)?,
                    None => {}
                }
            }
            let offset = unit.end.wrapping_add(ahead);
            self.turn.apply_up_to(offset);
            if gate.is_some() && self.turn.has_old_config(self.engine) {
                self.pass_on(term, units.around());
                *gate = None;
            }
            if gate.is_none() {
                self.enter(term, gate)?;
                self.prefetch(gate, units.len() - next);
            }
            let Some(inside) = gate.take() else { unreachable!("it was entered") };
            let ran = match self.in_order {
                true => 0,
                false => self.run_fast(term, units, next, inside.pinned()),
            };
            if ran > 0 {
                *gate = Some(inside);
                next += ran;
                continue;
            }
            next += 1;
            if asks || unit.is("ping") {
                self.add(term, unit, Marks::default());
                *gate = Some(inside);
                continue;
            }
            let (inside, ran) = self.run_unit(term, unit, inside);
            *gate = Some(inside);
            ran?;
            if self.has_left.take() {
                self.pass_on(term, units.around());
                *gate = None;
            }
        }
        Ok(())
    }

    /// Enters the gate, in which the term stays what it is.
    fn enter(&mut self, term: &Term<'_>, gate: &mut Option<Inside<'e>>) -> Result<(), Trouble> {
        let inside = Access::Gate(self.gate).enter();
        term.go_on()?;
        *gate = Some(inside);
        self.turn.begin(self.engine);
        self.in_order = self.turn.has_other_writers(self.engine);
        Ok(())
    }

    /// Finds the rows and the keys of units that are one command.
    fn prepare(&mut self, units: Units<'_>) {
        self.keys.clear();
        self.prepared.clear();
        for unit in units.iter() {
            let first = self.keys.len();
            let row = match unit.commands().len() {
                1 => self.engine.prepare(unit.first(), &mut self.keys),
                _ => None,
            };
            self.prepared.push((row, first..self.keys.len()));
        }
    }

    /// Brings the data of the last units that were prepared into the cache.
    fn prefetch(&self, gate: &Option<Inside<'e>>, units: usize) {
        let Some(inside) = gate else { return };
        let first = self.prepared.len() - units;
        let keys = &self.keys[self.prepared[first].1.start..];
        let database = self.session.database;
        self.engine.prefetch_slots(keys);
        self.engine.prefetch_buckets(inside.pinned(), database, keys);
        self.engine.prefetch_entries(inside.pinned(), database, keys);
    }

    /// Runs units from this one on as clients' commands run that follow each other, as far as they
    /// may. Returns how many have run.
    fn run_fast(
        &mut self,
        term: &Term<'_>,
        units: Units<'_>,
        next: usize,
        pinned: Pinned<'_>,
    ) -> usize {
        // Where replies wait for an offset, each unit has its own.
        let until = if self.turn.defers_replies() { next + 1 } else { units.len() };
        let (keys, prepared) = (&*self.keys, &self.prepared[next..until]);
        let mut requests = Run { units, first: next, prepared, keys };
        let (turn, session, output) = (&mut self.turn, &mut self.session, &mut self.output);
        let (start, errors) = (output.mark(), turn.stats.error_replies.get());
        let ran = self.engine.execute_fast(turn, session, &mut requests, pinned, output);
        for index in next..next + ran {
            let unit = units.at(index);
            self.add(term, unit, Marks::of(self.prepared[index].0, unit.first()));
        }
        if self.turn.stats.error_replies.get() > errors {
            self.note_errors(units, next);
        }
        self.output.rollback(start);
        ran
    }

    /// Looks which of the commands from this one on have failed.
    fn note_errors(&mut self, units: Units<'_>, mut next: usize) {
        let replies = self.output.to_vec();
        let (mut parser, mut at) = (Parser::new(), 0);
        while let Ok(Some((reply, length))) = parser.next(&replies[at..]) {
            if reply.is_error() {
                self.show_error(units.at(next).first(), &replies[at..at + length]);
            }
            (next, at) = (next + 1, at + length);
        }
    }

    /// Runs the commands of a unit, one by one.
    fn run_unit(
        &mut self,
        term: &Term<'_>,
        unit: Unit<'_>,
        mut inside: Inside<'e>,
    ) -> (Inside<'e>, Result<(), Trouble>) {
        if selects_beyond(&unit, self.engine.keyspace.databases()) {
            // Nothing of it may be done in another database.
            let reason = "SELECT: ERR DB index is out of range: it has more databases than \
                          `databases` allows";
            return (inside, Err(Trouble::Data { reason: reason.into(), lasting: true }));
        }
        let mut commands = unit.commands();
        self.marks = Marks::default();
        if self.in_order {
            self.pass_on(term, unit.around());
        }
        while let Some(argv) = commands.next() {
            let (is_last, ran);
            is_last = commands.len() == 0;
            (inside, ran) = self.run(term, (unit, is_last), argv, inside);
            if ran.is_err() {
                return (inside, ran);
            }
        }
        (inside, Ok(()))
    }

    /// Has the journal get a unit while its last command, the next one, has its slots locked.
    /// Returns whether it does.
    fn append_with(&mut self, unit: &Unit<'_>) -> bool {
        let own = self.unwritten.unit_of(unit, self.marks);
        let appends = own.is_some();
        own.into_iter().for_each(|own| self.turn.append_with(own));
        appends
    }

    /// A unit was applied.
    fn add(&mut self, term: &Term<'_>, unit: Unit<'_>, marks: Marks) {
        let journal = Appender { engine: self.engine, term: term.number };
        let unit = (&unit, marks);
        self.unwritten.add(&journal, &mut self.turn, unit, self.session.database);
    }

    fn pass_on(&mut self, term: &Term<'_>, buffer: &[u8]) {
        let journal = Appender { engine: self.engine, term: term.number };
        self.unwritten.pass_on(&journal, &mut self.turn, buffer);
    }

    /// Runs a command inside the gate.
    fn run(
        &mut self,
        term: &Term<'_>,
        (unit, is_last): (Unit<'_>, bool),
        argv: Arguments<'_>,
        inside: Inside<'e>,
    ) -> (Inside<'e>, Result<(), Trouble>) {
        let mut keys = Vec::new();
        let row = self.engine.prepare(argv, &mut keys);
        self.marks.join(Marks::of(row, argv));
        let errors = self.turn.stats.error_replies.get();
        let start = self.output.mark();
        // What is discarded writes nothing, and counts only if it selects no other database.
        let is_discarded = self.session.transaction.as_ref().is_some_and(|own| own.aborted);
        let appends = is_last && self.in_order && !is_discarded && self.append_with(&unit);
        let request = Request { argv, row, keys: &keys, busy: None };
        let (turn, session, output) = (&mut self.turn, &mut self.session, &mut self.output);
        let call = Call { turn, session, request, output };
        let (unwritten, marks) = (&mut self.unwritten, self.marks);
        let applied = Some(Applied { unwritten, unit, marks, is_last, appends, errors });
        let has_left = &self.has_left;
        let policy = Insistent { engine: self.engine, term, has_left, applied, right: None };
        let access = Access::Gate(self.gate);
        let (outcome, inside) = self.engine.drive_from(call, access, inside, policy);
        self.turn.take_unit();
        if let Outcome::Blocked(wait) = &outcome {
            // Nothing in a stream waits, but for the host: what it has to say is for nobody.
            wait.claim();
            self.engine.end_wait(inside.pinned(), &self.session, wait);
        }
        let mut ran = Ok(());
        let has_failed = self.turn.stats.error_replies.get() > errors;
        if outcome.runs_again() || has_failed {
            ran = term.go_on();
        }
        if has_failed && ran.is_ok() {
            ran = self.note_error(argv, (unit, is_last));
        }
        self.output.rollback(start);
        (inside, ran)
    }

    /// A command of the primary has failed here: the data may not be the same any more. Without the
    /// database that the next commands belong to, the link cannot go on.
    fn note_error(
        &mut self,
        argv: Arguments<'_>,
        (unit, is_last): (Unit<'_>, bool),
    ) -> Result<(), Trouble> {
        let reply = self.output.to_vec();
        let database = database_of(&unit).filter(|_| is_last);
        if database.is_none_or(|own| own == self.session.database) {
            self.show_error(argv, &reply);
            return Ok(());
        }
        let reply = self.fit_for_log(&reply);
        let reason = format!("{reply}: a transaction that selects a database was discarded");
        Err(Trouble::Data { reason, lasting: true })
    }

    /// A reply as the log may show it.
    fn fit_for_log(&self, reply: &[u8]) -> String {
        match self.engine.config.load().hide_user_data_from_log {
            true => "(hidden)".into(),
            false => String::from_utf8_lossy(&reply[..reply.len().min(200)]).trim().to_owned(),
        }
    }

    fn show_error(&mut self, argv: Arguments<'_>, reply: &[u8]) {
        self.errors += 1;
        if self.errors <= ERRORS_SHOWN {
            let offset = self.engine.replication.applied();
            let name = String::from_utf8_lossy(argv.at(0)).to_ascii_lowercase();
            let reply = self.fit_for_log(reply);
            let line = format!(
                "== CRITICAL == The primary's command '{name}' after offset {offset} has failed \
                 here: {reply}"
            );
            // Another thread writes it.
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }
}

fn asks_for_acknowledgement(unit: &Unit<'_>) -> bool {
    unit.is("replconf")
        && unit
            .commands()
            .next()
            .and_then(|argv| argv.get(1))
            .is_some_and(|word| word.eq_ignore_ascii_case(b"getack"))
}
