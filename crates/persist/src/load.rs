//! Loading the files, at the start and when DEBUG asks for it.
//!
//! | file | what it answers |
//! |---|---|
//! | `snapshot` | how does an RDB file get into the keyspace? |
//! | `replay` | how do the commands of an append-only file? |
//! | `following` | what of the journal is kept again, for its followers? |
//! | `error` | what is wrong with which file, and where? |
//!
//! Lines of the log that scripts wait for are in Redis's words.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use config::Config;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::journal::backlog::Position;
use engine::persistence::loading::{Duplicates, Expired, LoadRules, Source};
use engine::script::functions::Library;
use engine::session::attachment::Attachment;
use parking_lot::Mutex;
use store::Keyspace;
use store::gate::StoppedWorld;

use super::aof::directory::{AofDirectory, OldFile};
use super::aof::lost_end::lacks_end;
use super::aof::reader::{Tear, begins_with_rdb};
use super::delay::Delay;
use super::disk::Disk;
use process::paths::path as path_of;

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
    world: Option<&'l StoppedWorld<'l>>,
    /// Whether the server is to stop: then the load ends as soon as it can.
    stopped: &'l dyn Fn() -> bool,
    /// Bytes of files before the one that is being loaded.
    before: u64,
    /// The server starts: the journal goes on from the loaded data.
    at_start: bool,
    /// Where keys go: the engine's data, or data that is to take its place.
    keyspace: &'l Keyspace<Attachment>,
    /// Libraries of functions go here, if not to the engine.
    libraries: Option<Mutex<Vec<Library>>>,
    /// What an RDB file says of its place in a stream.
    place: Mutex<Place>,
}

/// A place in the stream of writes, as far as a file has told it.
#[derive(Clone, Default)]
struct Place {
    history: Option<String>,
    offset: Option<u64>,
    selected: Option<usize>,
}

impl Place {
    /// The position, if all of it was told.
    fn position(self) -> Option<(Position, Option<usize>)> {
        let position = Position { history: self.history?, offset: self.offset? };
        Some((position, self.selected))
    }
}

/// All data of a primary.
pub struct OfPrimary {
    /// The libraries of functions.
    pub libraries: Vec<Library>,
    /// The database that is selected where the stream goes on, if the primary has said it.
    pub selected: Option<usize>,
}

/// The result of a load at the start.
pub struct Loaded {
    /// The append-only file, if the data comes from there.
    pub directory: Option<AofDirectory>,
    /// The position that an RDB file belongs to, if the data comes from there, and the database
    /// that is selected there.
    pub position: Option<(Position, Option<usize>)>,
}

impl<'l> Load<'l> {
    /// A load during which clients are served.
    pub fn new(engine: &'l Engine, disk: Arc<dyn Disk>, stopped: &'l dyn Fn() -> bool) -> Load<'l> {
        let keyspace = &engine.keyspace;
        Load {
            engine,
            disk,
            world: None,
            stopped,
            before: 0,
            at_start: true,
            keyspace,
            libraries: None,
            place: Mutex::default(),
        }
    }

    /// A load of data that is to take the place of the engine's, into this keyspace.
    pub fn beside(
        engine: &'l Engine,
        keyspace: &'l Keyspace<Attachment>,
        disk: Arc<dyn Disk>,
        stopped: &'l dyn Fn() -> bool,
    ) -> Load<'l> {
        let libraries = Some(Mutex::default());
        Load { keyspace, libraries, at_start: false, ..Load::new(engine, disk, stopped) }
    }

    /// A load while the world is stopped.
    pub fn within(
        engine: &'l Engine,
        disk: Arc<dyn Disk>,
        world: &'l StoppedWorld<'l>,
    ) -> Load<'l> {
        let world = Some(world);
        Load { world, at_start: false, ..Load::new(engine, disk, &|| false) }
    }

    /// Loads the files in the settings: the append-only file if there is to be one, else the RDB
    /// file. A missing file counts as empty.
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
        let position = match &directory {
            Some(_) => None,
            None => self.place.into_inner().position(),
        };
        Ok(Loaded { directory, position })
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
            let rules = LoadRules { duplicates, expired: load.engine.expired_in_snapshot() };
            load.snapshot(path, file, rules).map(drop)
        })?;
        self.notice(&format!("DB loaded from disk: {:.3} seconds", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Loads what a primary sends, to the end of its RDB part. `from` names it in the log.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn of_primary(self, from: &Path, input: impl Read) -> Result<OfPrimary, LoadError> {
        // The primary says when something has expired.
        let rules = LoadRules { duplicates: Duplicates::Refuse, expired: Expired::Keep };
        self.snapshot(from, input, rules)?;
        let libraries = self.libraries.map(Mutex::into_inner).unwrap_or_default();
        Ok(OfPrimary { libraries, selected: self.place.into_inner().selected })
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
                let later = files.get(index + 1..=last).unwrap_or_default();
                let role = FileRole { is_base: has_base && index == 0, later };
                let loaded = load.append_only_file(directory, path, role)?;
                load.before += loaded.size;
                if loaded.is_end {
                    break;
                }
            }
            Ok(())
        })?;
        self.notice(&format!(
            "DB loaded from append only file: {:.3} seconds",
            begun.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Loads one file of an append-only directory.
    fn append_only_file(
        &self,
        directory: &AofDirectory,
        path: &Path,
        role: FileRole<'_>,
    ) -> Result<LoadedFile, LoadError> {
        let begun = Instant::now();
        let mut file = File::open(path).map_err(LoadError::reading(path))?;
        let size = file.metadata().map_err(LoadError::reading(path))?.len();
        let mut magic = Vec::new();
        let read = file.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic);
        read.map_err(LoadError::reading(path))?;
        let has_rdb = begins_with_rdb(&magic);
        let input = Cursor::new(magic).chain(file);
        if role.is_base && size == 0 && path.extension().is_some_and(|end| end == "rdb") {
            // Loaded as a base without data, as Redis does, it would lose all silently.
            return Err(LoadError::file(path, Problem::Empty));
        }
        let good = if has_rdb {
            self.notice(match role.is_base {
                true => "Reading RDB base file on AOF loading...",
                false => "Reading RDB preamble from AOF file...",
            });
            let rules = LoadRules { duplicates: Duplicates::Refuse, expired: Expired::Keep };
            let rest = self.snapshot(path, input, rules)?;
            self.replay(path, Cursor::new(rest.read).chain(rest.input), rest.offset)?
        } else {
            self.replay(path, input, 0)?
        };
        // A base was complete before others followed it. While the journal writes, no machine has
        // stopped.
        let later = if role.is_base || !self.at_start { &[] } else { role.later };
        let lost = lacks_end(later, size, good.is_some());
        let is_end = lost.map_err(|(path, error)| LoadError::reading(&path)(error))?;
        if is_end {
            self.set_aside(directory, path, role, size, good)?;
        }
        if let Some(torn) = good {
            self.cut_off(directory, path, (role, is_end), size, torn)?;
        }
        let what = if role.is_base { "base" } else { "incr" };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.notice(&format!(
            "DB loaded from {what} file {name}: {:.3} seconds",
            begun.elapsed().as_secs_f64()
        ));
        Ok(LoadedFile { size, is_end })
    }

    /// What was written after the end of an increment that is lost means nothing without it. It was
    /// not durable either.
    fn set_aside(
        &self,
        directory: &AofDirectory,
        path: &Path,
        role: FileRole<'_>,
        size: u64,
        torn: Option<Torn>,
    ) -> Result<(), LoadError> {
        if !self.engine.config.load().aof_load_truncated {
            return Err(LoadError::file(
                path,
                match torn {
                    Some(Torn { good, tear }) => Problem::Torn { good, tear, is_followed: true },
                    None => Problem::Short { size },
                },
            ));
        }
        let log = |line: &str| self.engine.host.log(LogLevel::Warning, line);
        log(&format!(
            "!!! Warning: the machine stopped before the end of the AOF file {} was durable!!! What \
             follows it in other files is not loaded",
            path.display()
        ));
        for later in role.later {
            if self.length(later)?.unwrap_or(0) == 0 {
                continue;
            }
            let original = directory.empty(later).map_err(LoadError::writing(later))?;
            let (later, original) = (later.display(), original.display());
            log(&format!("!!! Emptying the AOF {later} !!! The original is {original}"));
        }
        Ok(())
    }

    /// A process that stopped leaves a last file that breaks off: the bytes after its last complete
    /// command were never acknowledged.
    fn cut_off(
        &self,
        directory: &AofDirectory,
        path: &Path,
        (role, is_end): (FileRole<'_>, bool),
        size: u64,
        torn: Torn,
    ) -> Result<(), LoadError> {
        let Torn { good, tear } = torn;
        let is_followed = !role.later.is_empty() && !is_end;
        let problem = Problem::Torn { good, tear, is_followed };
        if is_followed || !self.engine.config.load().aof_load_truncated {
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

    /// Runs `action` while the engine reports a load of this many bytes. At the start of a server
    /// the report begins before this, and goes on until the journal keeps its writes as well.
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

/// The role of a file among those of an append-only directory.
#[derive(Clone, Copy)]
struct FileRole<'f> {
    is_base: bool,
    /// The files after it, up to the last one that is not empty.
    later: &'f [PathBuf],
}

/// A file of an append-only directory that was loaded.
struct LoadedFile {
    size: u64,
    /// The files after it are not to be loaded.
    is_end: bool,
}

/// The part of a file after its RDB part.
struct Rest<R> {
    input: R,
    /// Bytes of it that were read already.
    read: Vec<u8>,
    /// Where it begins in the file.
    offset: u64,
}
