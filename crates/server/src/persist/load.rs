//! Loading the files, at the start and when DEBUG asks for it.
//!
//! | file | what it answers |
//! |---|---|
//! | `snapshot` | how does an RDB file get into the keyspace? |
//! | `replay` | how do the commands of an append-only file? |
//! | `following` | what becomes known again of the journal, for its followers? |
//! | `error` | what is wrong with which file, and where? |
//!
//! Lines of the log that scripts wait for are in Redis's words.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use config::Config;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::persistence::loading::{Duplicates, Expired, LoadRules, Source};
use store::gate::Closed;

use super::aof::directory::{AofDirectory, OldFile};
use super::aof::reader::{Tear, begins_with_rdb};
use super::delay::Delay;
use super::disk::Disk;
use crate::process::paths::path as path_of;

mod error;
mod following;
mod replay;
mod snapshot;

pub use error::{LoadError, Problem};

/// First bytes of a file, which show its kind.
const MAGIC_BYTES: u64 = 9;

/// How a file breaks off.
#[derive(Clone, Copy)]
struct Torn {
    /// Bytes before the part that is not whole.
    good: u64,
    /// How it breaks off.
    tear: Tear,
}

/// A load: its source, and its permissions.
pub struct Load<'l> {
    engine: &'l Engine,
    disk: Arc<dyn Disk>,
    /// Present when the load runs while all other threads stand still.
    closed: Option<&'l Closed<'l>>,
    /// Whether the server is to stop: then the load ends as soon as it can.
    stopped: &'l dyn Fn() -> bool,
    /// Bytes of files before the one that is being loaded.
    before: u64,
    /// The server starts: the journal goes on from the loaded data.
    at_start: bool,
}

/// The result of a load at the start.
pub struct Loaded {
    /// The append-only file, if the data comes from there.
    pub directory: Option<AofDirectory>,
}

impl<'l> Load<'l> {
    /// A load during which clients are served.
    pub fn new(engine: &'l Engine, disk: Arc<dyn Disk>, stopped: &'l dyn Fn() -> bool) -> Load<'l> {
        Load { engine, disk, closed: None, stopped, before: 0, at_start: true }
    }

    /// A load while all gates are closed.
    pub fn within(engine: &'l Engine, disk: Arc<dyn Disk>, closed: &'l Closed<'l>) -> Load<'l> {
        Load { engine, disk, closed: Some(closed), stopped: &|| false, before: 0, at_start: false }
    }

    /// Loads the files in the settings: the append-only file if there is to be one, else the RDB file.
    /// A missing file counts as empty.
    ///
    /// # Errors
    /// [`LoadError`]. Everything that was loaded until then is in the keyspace.
    pub fn all(mut self) -> Result<Loaded, LoadError> {
        let config = self.engine.config.snapshot();
        let directory = if config.appendonly {
            let directory = self.directory(&config)?;
            self.append_only(&directory)?;
            Some(directory)
        } else {
            let file = path_of(&config.dbfilename);
            if self.length(file)?.is_some() {
                self.rdb_file(file, Duplicates::Refuse)?;
            }
            None
        };
        Ok(Loaded { directory })
    }

    /// Loads what a command asks for.
    ///
    /// # Errors
    /// [`LoadError`]. Everything that was loaded until then is in the keyspace.
    pub fn from(mut self, source: Source) -> Result<(), LoadError> {
        let config = self.engine.config.snapshot();
        match source {
            Source::Snapshot(duplicates) => self.rdb_file(path_of(&config.dbfilename), duplicates),
            Source::AppendOnly => {
                let directory = self.directory(&config)?;
                self.append_only(&directory)
            }
        }
    }

    /// The append-only file, wherever the settings have it.
    fn directory(&self, config: &Config) -> Result<AofDirectory, LoadError> {
        AofDirectory::open(
            Arc::clone(&self.disk),
            Path::new(""),
            path_of(&config.appenddirname).as_os_str(),
            path_of(&config.appendfilename).as_os_str(),
            OldFile::Adopt,
        )
        .map_err(LoadError::Directory)
    }

    /// Loads an RDB file.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn rdb_file(&mut self, path: &Path, duplicates: Duplicates) -> Result<(), LoadError> {
        let begun = Instant::now();
        let file = File::open(path).map_err(LoadError::reading(path))?;
        let size = file.metadata().map_err(LoadError::reading(path))?.len();
        self.during(size, |load| {
            let rules = LoadRules { duplicates, expired: Expired::Drop };
            load.snapshot(path, file, rules).map(drop)
        })?;
        self.notice(&format!("DB loaded from disk: {:.3} seconds", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Loads the files of an append-only directory, in their order.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn append_only(&mut self, directory: &AofDirectory) -> Result<(), LoadError> {
        let files = directory.live_files();
        if files.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let (_, total) = directory.sizes().map_err(LoadError::reading(directory.path()))?;
        let has_base = directory.manifest().base.is_some();
        self.during(total, |load| {
            // After the last one there may be files that were listed and never used. A base was
            // complete before any increment was.
            let in_use = |path| load.length(path).map(|length| length != Some(0));
            let mut last = files.len().saturating_sub(1);
            let first = usize::from(has_base).min(last);
            while last > first && !in_use(&files[last])? {
                last -= 1;
            }
            for (index, path) in files.iter().enumerate() {
                let place = Place { is_base: has_base && index == 0, is_last: index >= last };
                load.before += load.append_only_file(directory, path, place)?;
            }
            Ok(())
        })?;
        self.notice(&format!(
            "DB loaded from append only file: {:.3} seconds",
            begun.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Loads one file of an append-only directory, and returns its size.
    fn append_only_file(
        &self,
        directory: &AofDirectory,
        path: &Path,
        place: Place,
    ) -> Result<u64, LoadError> {
        let begun = Instant::now();
        let mut file = File::open(path).map_err(LoadError::reading(path))?;
        let size = file.metadata().map_err(LoadError::reading(path))?.len();
        let mut magic = Vec::new();
        let read = file.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic);
        read.map_err(LoadError::reading(path))?;
        let has_rdb = begins_with_rdb(&magic);
        let input = Cursor::new(magic).chain(file);
        if place.is_base && size == 0 && path.extension().is_some_and(|end| end == "rdb") {
            // Loaded as a base without data, as Redis does, it would lose all silently.
            return Err(LoadError::file(path, Problem::Empty));
        }
        let good = if has_rdb {
            self.notice(match place.is_base {
                true => "Reading RDB base file on AOF loading...",
                false => "Reading RDB preamble from AOF file...",
            });
            let rules = LoadRules { duplicates: Duplicates::Refuse, expired: Expired::Keep };
            let rest = self.snapshot(path, input, rules)?;
            self.replay(path, Cursor::new(rest.read).chain(rest.input), rest.offset)?
        } else {
            self.replay(path, input, 0)?
        };
        if let Some(torn) = good {
            self.cut_off(directory, path, place, size, torn)?;
        }
        let what = if place.is_base { "base" } else { "incr" };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.notice(&format!(
            "DB loaded from {what} file {name}: {:.3} seconds",
            begun.elapsed().as_secs_f64()
        ));
        Ok(size)
    }

    /// A process that stopped leaves a last file that breaks off: the bytes after its last complete
    /// command were never acknowledged.
    fn cut_off(
        &self,
        directory: &AofDirectory,
        path: &Path,
        place: Place,
        size: u64,
        torn: Torn,
    ) -> Result<(), LoadError> {
        let Torn { good, tear } = torn;
        let problem = Problem::Torn { good, tear, is_followed: !place.is_last };
        if !place.is_last || !self.engine.config.load().aof_load_truncated {
            return Err(LoadError::file(path, problem));
        }
        let name = path.display();
        let log = |line: &str| self.engine.host.log(LogLevel::Warning, line);
        log(&format!("!!! Warning: short read while loading the AOF file {name}!!! {}", torn.tear));
        if torn.tear == Tear::Transaction {
            log(&format!("Revert incomplete MULTI/EXEC transaction in AOF file {name}"));
        }
        let (good, lost) = (torn.good, size - torn.good);
        log(&format!(
            "!!! Truncating the AOF {name} at offset {good} !!! {lost} bytes are cut off"
        ));
        directory.truncate(path, torn.good).map_err(LoadError::writing(path))?;
        log(&format!("AOF {name} loaded anyway because aof-load-truncated is enabled"));
        Ok(())
    }

    /// Runs `action` while the engine reports a load of this many bytes. At the start of a server the
    /// report begins before this, and goes on until the journal keeps its writes as well.
    fn during(
        &mut self,
        total_bytes: u64,
        action: impl FnOnce(&mut Self) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let engine = self.engine;
        let starts = engine.loading.is_on();
        engine.loading.begin(total_bytes);
        let result = action(self);
        // Writes from now on are newer than everything that was loaded.
        engine.keyspace.raise_floor(base::clock::now_us());
        if !starts {
            engine.loading.end();
        }
        result
    }

    /// Waits after this many keys or commands, if the settings ask for that.
    fn wait_after(&self, keys: u64, delay: &mut Delay) -> Result<(), LoadError> {
        let per_key = || self.engine.config.load().key_load_delay;
        match delay.wait(keys, per_key, || !(self.stopped)()) {
            true => Ok(()),
            false => Err(LoadError::Stopped),
        }
    }

    fn length(&self, path: &Path) -> Result<Option<u64>, LoadError> {
        self.disk.length(path).map_err(LoadError::reading(path))
    }

    fn note_offset(&self, offset: u64) {
        self.engine.loading.note_bytes(self.before + offset);
    }

    fn notice(&self, line: &str) {
        self.engine.host.log(LogLevel::Notice, line);
    }
}

/// The place of a file among those of an append-only directory.
#[derive(Clone, Copy)]
struct Place {
    is_base: bool,
    is_last: bool,
}

/// The part of a file after its RDB part.
struct Rest<R> {
    input: R,
    /// Bytes of it that were read already.
    read: Vec<u8>,
    /// Where it begins in the file.
    offset: u64,
}
