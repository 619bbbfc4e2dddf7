//! Rewriting the append-only file: the data of a cut becomes a new base, and the journal continues
//! in another file from that cut on. That file is opened and listed before the cut. The cut begins,
//! and the files are exchanged, while the world is stopped. The base is then written while commands
//! go on. The list names the base only when it is complete; until then all old files are there, and
//! count.

use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::engine::Engine;
use engine::host::LogLevel;
use engine::session::attachment::Attachment;
use parking_lot::Mutex;
use store::cut::Walker;
use store::gate::{Access, Gate};

use super::directory::{AofDirectory, Successor};
use super::manifest::BaseFormat;
use crate::cuts::CutRight;
use crate::disk::syncing::Syncing;
use crate::journal::{Opened, ServerJournal};
use crate::snapshot::{self, Purpose, Written, not_wanted};

/// How the journal goes on after the cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// In another file, which follows the present one and counts at once.
    GoOn {
        /// How often the append-only file had been turned off when this began.
        turned_off: u64,
    },
    /// In a file that counts when the base does: there is no base before it, or it has a gap.
    Anew {
        /// How often the append-only file had been turned off when this began.
        turned_off: u64,
        /// The journal has failed. Writes stay refused until the base is complete.
        repairs: bool,
    },
    /// There is no append-only file: a base is written, and that is all.
    BaseAlone,
}

impl Plan {
    /// How often the append-only file had been turned off, unless it was off.
    pub(super) fn turned_off(self) -> Option<u64> {
        match self {
            Plan::GoOn { turned_off } | Plan::Anew { turned_off, .. } => Some(turned_off),
            Plan::BaseAlone => None,
        }
    }
}

/// Does all of it on the calling thread. `files` is locked while the new files take the place of
/// the old ones; `is_wanted` is called now and then.
///
/// # Errors
/// The disk's, and [`io::ErrorKind::Interrupted`] when it is not wanted any more. The files that
/// the list names are complete and count, whether they are the old files or the new ones.
pub(super) fn perform(
    engine: &Engine,
    right: &CutRight,
    journal: &ServerJournal,
    directory: &Arc<AofDirectory>,
    files: &Mutex<()>,
    plan: Plan,
    is_wanted: impl Fn() -> bool,
) -> io::Result<()> {
    directory.make()?;
    let name = format!("temp-rewriteaof-bg-{}.aof", std::process::id());
    let temporary = directory.path().join(name);
    let (purpose, format) = shape(engine);
    let gate = engine.gates.register();
    // The disk has done its part by the time the gates are closed.
    let next = open_next(engine, directory, plan)?;
    let successor = match plan {
        Plan::GoOn { .. } => Successor::Listed(directory.last_increment()),
        Plan::Anew { .. } => Successor::Hidden,
        // It replaces all data; the next file has the next number.
        Plan::BaseAlone => Successor::Listed(directory.last_increment() + 1),
    };
    let (walker, offset) = match cut(engine, right, journal, plan, next, &is_wanted) {
        Ok(begun) => begun,
        Err(NoCut { error, unused }) => {
            match (plan, unused) {
                (Plan::GoOn { .. }, Some(unused)) => {
                    // If it stays it is empty, which does no harm.
                    let _ = directory.withdraw_increment(unused);
                }
                (Plan::Anew { .. }, Some(_)) => directory.discard_hidden_increment(),
                (_, _) => {}
            }
            return Err(error);
        }
    };
    let written = write_base(engine, walker, &gate, purpose, directory, &temporary, &is_wanted);
    drop(gate);
    let finished = written.and_then(|written| {
        let megabytes = written.bytes >> 20;
        let line = format!(
            "Background AOF rewrite terminated with success: {} keys, {megabytes} MB",
            written.keys
        );
        log(engine, &line);
        if !is_wanted() {
            return Err(not_wanted());
        }
        let _files = files.lock();
        directory.finish_rewrite(&temporary, format, successor)
    });
    match (&finished, plan) {
        (Ok(()), Plan::GoOn { .. }) => journal.note_replaced(offset),
        (Ok(()), _) => {}
        (Err(_), plan) => {
            // It may not have been made at all.
            let _ = directory.discard(&temporary);
            if let Plan::Anew { .. } = plan {
                directory.discard_hidden_increment();
            }
        }
    }
    finished
}

/// The form of a base in the settings.
pub(super) fn shape(engine: &Engine) -> (Purpose, BaseFormat) {
    if engine.config.load().aof_use_rdb_preamble {
        (Purpose::AofBase, BaseFormat::Rdb)
    } else {
        (Purpose::AofBaseAsCommands, BaseFormat::Aof)
    }
}

/// Opens the increment in which the journal goes on. If it follows the present one, it is in the
/// list from now on: empty, should the server stop before the cut.
fn open_next(engine: &Engine, directory: &AofDirectory, plan: Plan) -> io::Result<Option<Opened>> {
    let opened = match plan {
        Plan::GoOn { .. } => directory.open_increment()?,
        Plan::Anew { .. } => directory.open_hidden_increment()?,
        Plan::BaseAlone => return Ok(None),
    };
    let name = opened.name.display();
    log(engine, &format!("Creating AOF incr file {name} on background rewrite"));
    Ok(Some(opened))
}

/// There is no cut.
struct NoCut {
    error: io::Error,
    /// The increment that was opened for it.
    unused: Option<Opened>,
}

/// The instant: from here on the walker reads the data of now, and the journal goes on in `next`.
/// Also returns the journal's offset of the cut.
fn cut<'c>(
    engine: &'c Engine,
    right: &'c CutRight,
    journal: &ServerJournal,
    plan: Plan,
    next: Option<Opened>,
    is_wanted: impl Fn() -> bool,
) -> Result<(Walker<'c, Attachment>, u64), NoCut> {
    let stopped = engine.gates.stop_the_world();
    // The command that turns the file off runs before this instant or after it.
    if !is_wanted() {
        return Err(NoCut { error: not_wanted(), unused: next });
    }
    if matches!(plan, Plan::GoOn { .. }) && journal.has_given_up() {
        let error = io::Error::other("the present file has just been given up");
        return Err(NoCut { error, unused: next });
    }
    let walker = right.begin(engine, &stopped);
    let offset = match (plan, next) {
        (Plan::GoOn { .. }, Some(next)) => journal.rotate(next),
        (Plan::Anew { repairs, .. }, Some(next)) => {
            if repairs && let Some(failure) = journal.failure() {
                journal.refuse_writes(Some(failure.reason()));
            }
            journal.begin_file(next)
        }
        (_, _) => 0,
    };
    drop(stopped);
    Ok((walker, offset))
}

fn write_base(
    engine: &Engine,
    walker: Walker<'_, Attachment>,
    gate: &Gate,
    purpose: Purpose,
    directory: &AofDirectory,
    temporary: &Path,
    is_wanted: impl Fn() -> bool,
) -> io::Result<Written> {
    let mut file = directory.create(temporary)?;
    let incrementally = engine.config.load().aof_rewrite_incremental_fsync;
    let output = Syncing::new(&mut *file, incrementally);
    let written =
        snapshot::write(engine, walker, Access::Gate(gate), (purpose, None), output, |_| {
            process::memory::publish();
            is_wanted()
        })?;
    file.sync()?;
    Ok(written)
}

/// Writes a line to the log of an engine.
pub(super) fn log(engine: &Engine, line: &str) {
    engine.host.log(LogLevel::Notice, line);
}
