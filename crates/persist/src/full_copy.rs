//! A full copy of the data for replicas: a cut, and the place in the stream of writes at which it
//! was made.
//!
//! The place is taken in the instant of the cut, with the world stopped. What replicas get is this
//! copy, and then the stream from there on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use engine::engine::Engine;
use engine::journal::backlog::Backlog;
use rdb::file::StreamPlace;
use store::gate::Access;

use crate::cuts::CutRight;
use crate::snapshot::{self, CopyForm, Written};

/// What a copy is to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wanted {
    /// The version of the format in which its readers load fields of hashes that expire, if any
    /// is.
    pub version_with_expiring_fields: Option<u16>,
    /// It has no keys.
    pub without_data: bool,
    /// It has no functions.
    pub without_functions: bool,
}

/// The place in the stream at which a copy was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// The name of the history.
    pub history: String,
    /// Bytes of the stream before it.
    pub offset: u64,
}

/// Why there is no copy.
#[derive(Debug)]
pub enum NoCopy {
    /// Fields of hashes expire, and its readers do not know such fields.
    CannotBeTold,
    /// It could not be written, or is not wanted any more.
    Failed(io::Error),
}

/// Makes a copy and writes it to what `begun` returns, which is called right after the cut.
/// `is_wanted` is called now and then.
///
/// # Errors
/// See [`NoCopy`].
pub fn write<W: Write>(
    engine: &Engine,
    right: &CutRight,
    wanted: Wanted,
    begun: impl FnOnce(&Begun) -> io::Result<W>,
    is_wanted: impl Fn() -> bool,
) -> Result<Written, NoCopy> {
    let gate = engine.gates.register();
    let stopped = engine.gates.stop_the_world();
    let walker = right.begin(engine, &stopped);
    let selected = match engine.replication.is_replica() {
        true => engine.journal.selected(),
        false => {
            // The next effect names its database: those that get this copy have none selected.
            engine.journal.append_raw(b"", None);
            None
        }
    };
    let offset = engine.journal.end();
    let histories = engine.journal.changes().and_then(Backlog::histories);
    let history = histories.map(|own| own.present).unwrap_or_default();
    drop(stopped);
    let needs_newer = walker.has_expiring_fields() && !wanted.without_data;
    let version = match wanted.version_with_expiring_fields {
        _ if !needs_newer => engine.config.snapshot().rdb_version.min(rdb::FILE_VERSION),
        Some(version) => version,
        None => return Err(NoCopy::CannotBeTold),
    };
    let begun_at = Begun { history, offset };
    let shown = engine.journal.changes().map_or(offset, |own| own.in_history(offset));
    let output = begun(&begun_at).map_err(NoCopy::Failed)?;
    let form = CopyForm {
        version,
        place: StreamPlace {
            database: selected.unwrap_or_default(),
            history: &begun_at.history,
            offset: shown,
        },
        without_data: wanted.without_data,
        without_functions: wanted.without_functions,
    };
    snapshot::write_copy(engine, walker, Access::Gate(&gate), &form, output, |_| {
        process::memory::publish();
        is_wanted() && !right.is_recalled()
    })
    .map_err(NoCopy::Failed)
}

/// A file without a name, for a copy that replicas read at their own pace. It goes when nobody has
/// it open any more.
///
/// # Errors
/// The file system's.
pub fn spool() -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("temp-sync-{}-{number}.rdb", std::process::id());
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&name)?;
    std::fs::remove_file(&name)?;
    Ok(file)
}
