//! Writing the append-only file anew: a base with the data of a cut, and the journal going on in
//! another file from that cut on. Both happen in the instant in which all gates are closed; the base
//! is then written while commands go on, and only when it is complete does the list of files name
//! it. Until then the old files are all there, and count.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use engine::engine::{Engine, LogLevel};
use engine::waiting::Attachment;
use parking_lot::Mutex;
use store::cut::Walker;
use store::gate::{Access, Gate};

use super::append_only::log;
use super::directory::{AofDirectory, Opened, Successor};
use super::journal::FileJournal;
use super::manifest::BaseFormat;
use super::saver::Syncing;
use super::snapshot::{self, Purpose, Written, not_wanted};

/// How the journal goes on behind the cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// In another file, which follows the present one and counts at once.
    GoOn {
        /// How often the append-only file had been turned off when this began.
        turned_off: u64,
    },
    /// In a file that counts when the base does: there is none before it, or it has a gap.
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

/// Does it all on the calling thread, which has seized the right to read a cut. `files` is locked
/// while the new files take the place of the old ones; `is_wanted` is asked now and then.
///
/// # Errors
/// The disk's, and [`io::ErrorKind::Interrupted`] when it is not wanted any more. What the list of
/// files names is complete and counts, whether that is the old files or the new ones.
pub(super) fn perform(
    engine: &Engine,
    journal: &FileJournal,
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
    let begun = cut(engine, journal, directory, plan).map(|(walker, coming)| {
        let written = write_base(engine, walker, &gate, purpose, directory, &temporary, &is_wanted);
        (written, coming)
    });
    drop(gate);
    let finished = begun.and_then(|(written, coming)| {
        // Also for a base that failed: what the journal opens is to be there when it is removed.
        let successor = coming.wait();
        let written = written?;
        let megabytes = written.bytes >> 20;
        let line = format!(
            "Background AOF rewrite terminated with success: {} keys, {megabytes} MB",
            written.keys
        );
        log(engine, &line);
        if !is_wanted() {
            return Err(not_wanted());
        }
        let successor = successor?;
        let _files = files.lock();
        directory.finish_rewrite(&temporary, format, successor)
    });
    if finished.is_err() {
        // It may not have been made at all.
        let _ = directory.discard(&temporary);
        if let Plan::Anew { .. } = plan {
            directory.discard_hidden_increment();
        }
    }
    finished
}

/// What the settings want a base to be.
pub(super) fn shape(engine: &Engine) -> (Purpose, BaseFormat) {
    if engine.config.load().aof_use_rdb_preamble {
        (Purpose::AofBase, BaseFormat::Rdb)
    } else {
        (Purpose::AofBaseAsCommands, BaseFormat::Aof)
    }
}

/// The increment that the journal goes on in, which its thread opens when it gets there.
enum Coming {
    Opened(Receiver<Successor>),
    Known(Successor),
}

impl Coming {
    fn wait(self) -> io::Result<Successor> {
        match self {
            Coming::Known(successor) => Ok(successor),
            Coming::Opened(receiver) => receiver.recv().map_err(|_| {
                io::Error::other("the journal could not go on in another file: see above")
            }),
        }
    }
}

/// The instant: from here on the walker reads what there is now, and the journal goes on in another
/// file.
fn cut<'e>(
    engine: &'e Engine,
    journal: &FileJournal,
    directory: &Arc<AofDirectory>,
    plan: Plan,
) -> io::Result<(Walker<'e, Attachment>, Coming)> {
    let (sender, receiver) = mpsc::channel();
    let opening = Arc::clone(directory);
    let host = Arc::clone(&engine.host);
    let note = move |Opened { name, .. }: &Opened| {
        let line = format!("Creating AOF incr file {} on background rewrite", name.display());
        host.log(LogLevel::Notice, &line);
    };
    let closed = engine.gates.close();
    let walker = engine
        .keyspace
        .begin_cut(&closed, base::clock::now_us())
        .ok_or_else(|| io::Error::other("another cut is being read"))?;
    let coming = match plan {
        Plan::GoOn { .. } => {
            journal.rotate(Box::new(move || {
                let opened = opening.open_increment()?;
                note(&opened);
                // Nobody receives when the rewrite has failed: the increment counts all the same.
                let _ = sender.send(Successor::Listed(opening.last_increment()));
                Ok(opened)
            }));
            Coming::Opened(receiver)
        }
        Plan::Anew { repairs, .. } => {
            if repairs && let Some(failure) = journal.failure() {
                journal.refuse_writes(Some(failure.reason()));
            }
            journal.begin(Box::new(move || {
                let opened = opening.open_hidden_increment()?;
                note(&opened);
                let _ = sender.send(Successor::Hidden);
                Ok(opened)
            }));
            Coming::Opened(receiver)
        }
        // It replaces all there is; what comes next has the next number.
        Plan::BaseAlone => Coming::Known(Successor::Listed(directory.last_increment() + 1)),
    };
    drop(closed);
    Ok((walker, coming))
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
    let written = snapshot::write(engine, walker, Access::Gate(gate), purpose, output, |_| {
        crate::memory::publish();
        is_wanted()
    })?;
    file.sync()?;
    Ok(written)
}
