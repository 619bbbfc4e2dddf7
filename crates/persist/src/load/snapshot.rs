//! Loading an RDB file with all cores: the calling thread finds the parts of the file, and others
//! decode keys with their values and place them.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use base::limits::{LIBRARY_RELOAD_US, LOAD_QUEUE};
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::persistence::loading::{Arrival, Counts, Expired, LoadRules, Loader, Misfit};
use engine::session::attachment::Attachment;
use parking_lot::Mutex;
use rdb::file::{Checksum, DecodeOptions, EntryBatch, FileReader, Function, Item, RawEntry};
use store::Keyspace;
use store::gate::{Access, StoppedWorld};

use super::{Load, LoadError, Problem, Rest};
use crate::delay::Delay;

/// The length of a history's name.
const HISTORY_NAME: usize = 40;

/// State that several threads share about one file.
struct Shared<'s> {
    engine: &'s Engine,
    keyspace: &'s Keyspace<Attachment>,
    world: Option<&'s StoppedWorld<'s>>,
    path: &'s Path,
    rules: LoadRules,
    options: DecodeOptions,
    queue: Mutex<Receiver<EntryBatch>>,
    /// Whatever the rules say, nothing is left out because it has expired: the stream goes on after
    /// the file, and replicas that go on with it are to be told.
    keeps_expired: AtomicBool,
    /// The error that stops the load.
    failure: Mutex<Option<Problem>>,
    tally: Mutex<Tally>,
}

/// The counts of a thread.
#[derive(Clone, Copy, Default)]
struct Tally {
    counts: Counts,
    /// Collections without members, as some old servers saved them.
    empty: u64,
}

impl Load<'_> {
    /// Loads an RDB file, or the RDB part of another, and returns what follows it.
    pub(super) fn snapshot<R: Read>(
        &self,
        path: &Path,
        input: R,
        rules: LoadRules,
    ) -> Result<Rest<R>, LoadError> {
        let skip = self.engine.debug.skip_checksum_validation.load(Ordering::Relaxed);
        let verify = self.engine.config.load().rdbchecksum && !skip;
        let mut reader = FileReader::open(input, verify).map_err(LoadError::snapshot(path))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, queue) = mpsc::sync_channel(threads * LOAD_QUEUE);
        let shared = Shared {
            engine: self.engine,
            keyspace: self.keyspace,
            world: self.world,
            path,
            rules,
            options: DecodeOptions {
                limits: self.engine.value_limits(),
                // Commands that follow may name fields that have expired meanwhile.
                now_ms: match rules.expired {
                    Expired::Drop => base::clock::now_ms(),
                    Expired::Keep => 0,
                },
            },
            queue: Mutex::new(queue),
            keeps_expired: AtomicBool::new(false),
            failure: Mutex::new(None),
            tally: Mutex::default(),
        };
        let end = std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| shared.take_in());
            }
            self.read(&mut reader, &shared, sender)
        });
        if let Some(problem) = shared.failure.into_inner() {
            return Err(LoadError::file(path, problem));
        }
        end?;
        self.report(shared.tally.into_inner());
        let offset = reader.offset();
        let (input, read) = reader.into_rest();
        Ok(Rest { input, read, offset })
    }

    /// Reads the file to its end, and hands out the parts for the others to place.
    fn read<R: Read>(
        &self,
        reader: &mut FileReader<R>,
        shared: &Shared<'_>,
        batches: SyncSender<EntryBatch>,
    ) -> Result<(), LoadError> {
        let mut delay = Delay::default();
        while let Some(item) = reader.next() {
            if (self.stopped)() {
                return Err(LoadError::Stopped);
            }
            match item.map_err(LoadError::snapshot(shared.path))? {
                Item::Entries(batch) => {
                    let keys = batch.len() as u64;
                    // The error is reported elsewhere.
                    if shared.failure.lock().is_some() || batches.send(batch).is_err() {
                        return Ok(());
                    }
                    self.note_offset(reader.offset());
                    self.wait_after(keys, &mut delay)?;
                }
                Item::Aux { name, value } => {
                    self.note_aux(&name, &value);
                    if self.at_start && self.place.lock().history.is_some() {
                        shared.keeps_expired.store(true, Ordering::Relaxed);
                    }
                }
                // Tables here grow without ever stopping, so their size need not be known
                // beforehand.
                Item::Resize { .. } => {}
                Item::Function(function) => self.take_function(shared.path, &function)?,
                Item::ModuleAux { module } => self.warn(&format!(
                    "Skipped what the module type {module} keeps besides values: there are no \
                     modules here"
                )),
                Item::End(Checksum::Wrong { stated, computed }) => {
                    let problem = Problem::Checksum { stated, computed };
                    return Err(LoadError::file(shared.path, problem));
                }
                Item::End(_) => {}
            }
        }
        Ok(())
    }
}

impl Shared<'_> {
    /// Decodes and places the parts in the queue, until nothing comes any more.
    fn take_in(&self) {
        let gate;
        let access = match self.world {
            Some(world) => Access::Stopped(world),
            None => {
                gate = self.engine.gates.register();
                Access::Gate(&gate)
            }
        };
        let mut loader = Loader::into_another(self.engine, self.keyspace, self.rules, access);
        let mut tally = Tally::default();
        loop {
            // A statement of its own, so that the lock is released at once.
            let batch = self.queue.lock().recv();
            let Ok(batch) = batch else { break };
            if self.failure.lock().is_some() {
                // It is taken nevertheless: the thread that reads may be waiting for room in the
                // queue.
                continue;
            }
            let mut options = self.options;
            if self.keeps_expired.load(Ordering::Relaxed) {
                options.now_ms = 0;
                loader.keep_expired();
            }
            if let Err(failure) = place(&batch, &options, &mut loader, &mut tally) {
                self.failure.lock().get_or_insert(self.fit_for_log(failure));
            }
            process::memory::publish();
        }
        let mut all = self.tally.lock();
        all.counts += loader.counts();
        all.empty += tally.empty;
    }
}

impl Shared<'_> {
    /// A problem as the log may show it.
    fn fit_for_log(&self, mut problem: Problem) -> Problem {
        if let Problem::Key { key, .. } = &mut problem
            && self.engine.config.load().hide_user_data_from_log
        {
            *key = String::from("(hidden)");
        }
        problem
    }
}

/// Decodes the entries of a batch and places them.
fn place(
    batch: &EntryBatch,
    options: &DecodeOptions,
    loader: &mut Loader<'_>,
    tally: &mut Tally,
) -> Result<(), Problem> {
    let mut arrivals = Vec::with_capacity(batch.len());
    let mut origins = Vec::with_capacity(batch.len());
    for raw in batch.entries() {
        let entry = raw.decode(options).map_err(Problem::Snapshot)?;
        let Some(value) = entry.value else {
            tally.empty += 1;
            continue;
        };
        arrivals.push(Arrival {
            database: raw.database(),
            key: entry.key,
            value,
            expire_at: raw.expire_at_ms(),
            usage: raw.usage(),
            content_type: raw.content_type(),
        });
        origins.push(raw);
    }
    loader.place(arrivals).map_err(|(index, misfit)| unfit(&origins[index], misfit))
}

fn unfit(raw: &RawEntry<'_>, misfit: Misfit) -> Problem {
    let at = raw.value_offset();
    let key = raw.key().unwrap_or_default().escape_ascii().to_string();
    Problem::Key { at, key, reason: misfit.to_string() }
}

/// All versions are above this from now on; it comes from the second at which the file was written.
/// Versions are times, so those that the writer has given out do not come again. A second in the
/// future is not believed, whether the file is damaged or a clock was wrong: versions have room for
/// some thousand years.
fn version_floor(written_at: i64, now_us: u64) -> u64 {
    let second = u64::try_from(written_at).unwrap_or(0);
    second.saturating_mul(1_000_000).min(now_us)
}

// ---- What the log says --------------------------------------------------------------------------

impl Load<'_> {
    fn warn(&self, line: &str) {
        self.engine.host.log(LogLevel::Warning, line);
    }

    /// Facts in the file about itself.
    fn note_aux(&self, name: &[u8], value: &[u8]) {
        let number = base::num::parse_i64(value);
        match (name, number) {
            (b"redis-ver", _) => self.notice(&format!(
                "Loading RDB produced by version {}",
                String::from_utf8_lossy(value)
            )),
            (b"ctime", Some(written_at)) => {
                let now = (base::clock::now_ms() / 1000).cast_signed();
                self.notice(&format!("RDB age {} seconds", (now - written_at).max(0)));
                let floor = version_floor(written_at, base::clock::now_us());
                self.engine.keyspace.raise_floor(floor);
            }
            (b"used-mem", Some(bytes)) => {
                let megabytes = bytes as f64 / f64::from(1 << 20);
                self.notice(&format!("RDB memory usage when created {megabytes:.2} Mb"));
                self.engine.loading.note_writer_memory(u64::try_from(bytes).unwrap_or(0));
            }
            (b"repl-stream-db", Some(database)) => {
                let known = usize::try_from(database).ok();
                let known = known.filter(|own| *own < self.keyspace.databases());
                self.place.lock().selected = known;
            }
            (b"repl-id", _)
                if value.len() == HISTORY_NAME && value.iter().all(u8::is_ascii_hexdigit) =>
            {
                self.place.lock().history = Some(String::from_utf8_lossy(value).into_owned());
            }
            (b"repl-offset", Some(offset)) => {
                self.place.lock().offset = u64::try_from(offset).ok();
            }
            (b"aof-base", Some(1)) => self.notice("RDB is base AOF"),
            _ => {}
        }
    }

    /// Takes in a library of functions. Those of versions before 7.0 have no name, and are passed
    /// over, as Redis does.
    fn take_function(&self, path: &Path, function: &Function) -> Result<(), LoadError> {
        let (source, is_library) = match function {
            Function::Library(source) => (source, true),
            Function::PreRelease { source, .. } => (source, false),
        };
        let first = source.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let name = first[..first.len().min(100)].escape_ascii().to_string();
        if !is_library {
            let text = "from before Redis 7.0, whose form nobody reads any more";
            self.warn(&format!(
                "Skipped a library of functions, which begins with \"{name}\": {text}"
            ));
            return Ok(());
        }
        let taken = match &self.libraries {
            None => self.engine.restore_library(source),
            Some(libraries) => self
                .engine
                .load_library(source, true, LIBRARY_RELOAD_US)
                .map(|library| libraries.lock().push(library)),
        };
        taken.map_err(|error| {
            LoadError::file(path, Problem::Library { name, reason: error.to_string() })
        })
    }

    fn report(&self, tally: Tally) {
        let Tally { counts, empty } = tally;
        let mut line = format!(
            "Done loading RDB, keys loaded: {}, keys expired: {}",
            counts.loaded, counts.expired
        );
        if empty > 0 {
            line += &format!(", empty keys skipped: {empty}");
        }
        self.notice(&format!("{line}."));
        self.engine.loading.note_outcome(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::version_floor;

    #[test]
    fn a_file_from_the_future_does_not_raise_versions() {
        let now = 1_700_000_000_000_000;
        assert_eq!(version_floor(1_600_000_000, now), 1_600_000_000_000_000);
        assert_eq!(version_floor(1_700_000_001, now), now);
        assert_eq!(version_floor(1 << 37, now), now);
        assert_eq!(version_floor(i64::MAX, now), now);
        assert_eq!(version_floor(-1, now), 0);
    }
}
