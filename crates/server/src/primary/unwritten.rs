//! What was applied and is not in the journal yet, and how a command is tried until it is applied.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use engine::command::SCRIPT;
use engine::db::effects::StreamUnit;
use engine::engine::{Engine, Row};
use engine::run::drive::Policy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::Outcome;
use persist::aof::reader::selected;
use persist::cuts::{CutRight, Recall};
use replication::stream::Unit;
use resp::args::Arguments;

use super::term::Term;

/// The pause before a command that has found its slots locked is tried again.
const PAUSE_OF_TRIES: Duration = Duration::from_micros(100);
/// Bytes of the stream that the journal gets at once, at least.
const BYTES_AT_ONCE: usize = 16 * 1024;

/// What was applied and is not in the journal yet: bytes of the stream that lie side by side.
///
/// The journal gets them before the thread leaves its gate. So whoever stops the world finds all
/// that was applied in the journal, and nothing else.
#[derive(Default)]
pub(super) struct Unwritten {
    pub(super) place: Range<usize>,
    /// The offset after them, in the stream.
    pub(super) end: u64,
    /// Commands in them.
    pub(super) commands: u64,
    /// The database that is selected behind them, if one is known to be.
    pub(super) selected: Option<usize>,
    marks: Marks,
}

/// What the file says of a unit besides.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    /// Some of its times count from now on, as primaries before Redis 7 send them. Those of a
    /// script may.
    counts_down: bool,
    /// This server does not know one of its commands, so it applies none of them.
    is_unknown: bool,
}

impl Marks {
    /// Of a unit that is this command.
    pub(super) fn of(row: Option<&'static Row>, argv: Arguments<'_>) -> Marks {
        let counts_down =
            row.is_some_and(|row| row.command.countdown.is_in(argv) || row.command.has(SCRIPT));
        Marks { counts_down, is_unknown: row.is_none() }
    }

    /// Adds those of another command of the unit.
    pub(super) fn join(&mut self, other: Marks) {
        self.counts_down |= other.counts_down;
        self.is_unknown |= other.is_unknown;
    }
}

impl Unwritten {
    /// What lies behind the bytes of the stream so far, in which this database is selected.
    pub(super) fn after(selected: Option<usize>) -> Unwritten {
        Unwritten { selected, ..Unwritten::default() }
    }

    /// Adds a unit behind which this database is selected.
    pub(super) fn add(
        &mut self,
        journal: &Appender<'_>,
        turn: &mut Turn,
        (unit, marks): (&Unit<'_>, Marks),
        selected: usize,
    ) {
        let place = unit.place();
        let stands_alone = marks.is_unknown || unit.is("select");
        if !self.place.is_empty() && (self.place.end != place.start || stands_alone) {
            // A sign of life came between the two, which does not count. What selects a database
            // comes first, and what the file says of an unknown unit holds for that one alone.
            self.pass_on(journal, turn, unit.around());
        }
        if self.place.is_empty() {
            self.place.start = place.start;
        }
        (self.place.end, self.end) = (place.end, unit.end);
        self.commands += unit.commands().len() as u64;
        self.marks.join(marks);
        self.note_selected(unit, selected);
        if self.place.len() >= BYTES_AT_ONCE || marks.is_unknown {
            self.pass_on(journal, turn, unit.around());
        }
    }

    /// What the journal is to get of a unit before its slots are unlocked. None for one that
    /// selects a database alone.
    pub(super) fn unit_of(&self, unit: &Unit<'_>, marks: Marks) -> Option<StreamUnit> {
        let selected_after = database_of(unit).or(self.selected);
        let Marks { counts_down, is_unknown } = marks;
        let bytes = || unit.bytes().to_vec();
        let own = || StreamUnit { bytes: bytes(), selected_after, counts_down, is_unknown };
        (!unit.is("select")).then(own)
    }

    /// The journal has got a unit while its slots were locked.
    pub(super) fn note_appended(
        &mut self,
        journal: &Appender<'_>,
        turn: &mut Turn,
        unit: &Unit<'_>,
        selected: usize,
    ) {
        self.note_selected(unit, selected);
        turn.note_raw_append(unit.commands().len() as u64);
        journal.engine.replication.note_applied(journal.term, unit.end);
    }

    fn note_selected(&mut self, unit: &Unit<'_>, selected: usize) {
        if self.selected.is_some() || unit.commands().any(|argv| is_named(argv, b"select")) {
            self.selected = Some(selected);
        }
    }

    /// Gives them to the journal.
    pub(super) fn pass_on(&mut self, journal: &Appender<'_>, turn: &mut Turn, buffer: &[u8]) {
        let place = std::mem::take(&mut self.place);
        if place.is_empty() {
            return;
        }
        let marks = std::mem::take(&mut self.marks);
        if marks.counts_down {
            journal.engine.journal.note_time();
        }
        match marks.is_unknown {
            true => journal.engine.journal.append_unknown(&buffer[place], self.selected),
            false => journal.engine.journal.append_raw(&buffer[place], self.selected),
        };
        turn.note_raw_append(std::mem::take(&mut self.commands));
        journal.engine.replication.note_applied(journal.term, self.end);
    }
}

/// Where the bytes of a term go.
pub(super) struct Appender<'e> {
    pub(super) engine: &'e Engine,
    pub(super) term: u64,
}

/// Tries a command for as long as its link is wanted.
pub(super) struct Insistent<'t> {
    pub(super) engine: &'t Engine,
    pub(super) term: &'t Term<'t>,
    /// The thread has left its gate, so that the turn has to look at everything again.
    pub(super) has_left: &'t Cell<bool>,
    /// The unit of the command, if it is one of a stream.
    pub(super) applied: Option<Applied<'t>>,
    /// A right that the thread has meanwhile. The server does not stop before it is given back, and
    /// lets no command write while it is about to.
    pub(super) right: Option<&'t CutRight>,
}

/// A unit that is being applied, and those before it.
pub(super) struct Applied<'t> {
    pub(super) unwritten: &'t mut Unwritten,
    pub(super) unit: Unit<'t>,
    /// Up to the command.
    pub(super) marks: Marks,
    /// The command is the last one of its unit.
    pub(super) is_last: bool,
    /// The journal gets the unit while the command has its slots locked.
    pub(super) appends: bool,
    /// Errors before the command.
    pub(super) errors: u64,
}

impl Applied<'_> {
    /// Whether the unit, whose last command has run, has failed to select its database: then it
    /// does not count, and nothing can follow it.
    fn lacks_database(&self, turn: &Turn, session: &Session) -> bool {
        let has_failed = turn.stats.error_replies.get() > self.errors;
        has_failed && database_of(&self.unit).is_some_and(|own| own != session.database)
    }
}

impl Policy for Insistent<'_> {
    fn begin(&mut self, turn: &mut Turn, engine: &Engine) {
        if self.has_left.get() {
            turn.begin(engine);
        }
    }

    fn note_try(
        &mut self,
        turn: &mut Turn,
        session: &Session,
        outcome: &Outcome,
        world_is_stopped: bool,
    ) {
        let Some(applied) = &mut self.applied else { return };
        let counts = applied.is_last
            && !applied.lacks_database(turn, session)
            && self.engine.replication.term() == self.term.number;
        let Applied { unwritten, unit, marks, appends, .. } = applied;
        let journal = Appender { engine: self.engine, term: self.term.number };
        let again = outcome.runs_again();
        if *appends && !turn.has_unit() {
            unwritten.note_appended(&journal, turn, unit, session.database);
        } else if !again && counts {
            unwritten.add(&journal, turn, (unit, *marks), session.database);
        }
        if again || world_is_stopped {
            unwritten.pass_on(&journal, turn, unit.around());
        }
    }

    fn wait(&mut self, turn: &mut Turn, outcome: &Outcome) -> bool {
        turn.announce_appends(self.engine);
        if matches!(outcome, Outcome::Contended | Outcome::Paused(_)) {
            std::thread::sleep(PAUSE_OF_TRIES);
        }
        self.has_left.set(true);
        self.term.lasts() && !self.right.is_some_and(is_needed_to_stop)
    }
}

/// Whether the server waits for a right, because it is about to stop.
pub(super) fn is_needed_to_stop(right: &CutRight) -> bool {
    right.recalled() == Some(Recall::Stop)
}

/// The database that a unit selects for what comes after it, if it selects one.
pub(super) fn database_of(unit: &Unit<'_>) -> Option<usize> {
    unit.commands().filter(|argv| is_named(*argv, b"select")).last().and_then(selected)
}

/// Whether a unit selects a database that is not one of so many.
pub(super) fn selects_beyond(unit: &Unit<'_>, databases: usize) -> bool {
    let mut selects = unit.commands().filter(|argv| is_named(*argv, b"select")).map(selected);
    selects.any(|own| own.is_none_or(|own| own >= databases))
}

/// Whether a command has this name.
pub(super) fn is_named(argv: Arguments<'_>, name: &[u8]) -> bool {
    argv.at(0).eq_ignore_ascii_case(name)
}
