//! SAVE, BGSAVE and the `save` rules: one thread per file, one file at a time.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use engine::engine::{Engine, LogLevel};
use engine::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::waiting::{Attachment, Waiter};
use parking_lot::{Condvar, Mutex};
use store::cut::Walker;
use store::gate::Closed;

use super::disk::{Disk, DiskFile, directory_of, replace};
use super::snapshot::{self, Access, Purpose};

/// Bytes that are written between two syncs of an unfinished file, so that the last one has little
/// left to do.
const SYNC_EVERY: usize = 4 << 20;

/// See the module's text.
pub struct Saver {
    disk: Arc<dyn Disk>,
    /// Set once, when there is an engine.
    engine: OnceLock<Weak<Engine>>,
    running: Mutex<Running>,
    ended: Condvar,
    /// The file that is being written is not wanted any more.
    cancelled: AtomicBool,
}

#[derive(Default)]
struct Running {
    /// A file is being written, or another reader of a cut is at work.
    busy: bool,
    /// BGSAVE SCHEDULE.
    scheduled: bool,
}

impl Saver {
    /// Saves to this disk.
    pub fn new(disk: Arc<dyn Disk>) -> Saver {
        Saver {
            disk,
            engine: OnceLock::new(),
            running: Mutex::default(),
            ended: Condvar::new(),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Connects it with the engine whose data it saves.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// Begins to save.
    ///
    /// # Errors
    /// Why it does not.
    pub fn save(&self, request: SaveRequest, this: &Arc<Saver>) -> Result<Accepted, Refusal> {
        let engine = self.engine.get().and_then(Weak::upgrade).ok_or(Refusal::InProgress)?;
        let mut running = self.running.lock();
        if running.busy {
            if engine.saving.figures(0).in_progress {
                return Err(Refusal::InProgress);
            }
            if matches!(request, SaveRequest::Background { schedule: true }) {
                running.scheduled = true;
                return Ok(Accepted::Scheduled);
            }
            return Err(Refusal::Rewriting);
        }
        running.busy = true;
        drop(running);
        let answer = match request {
            SaveRequest::Answer(waiter) => Some(waiter),
            SaveRequest::Background { .. } => None,
        };
        // INFO says so from the reply on.
        engine.saving.begin(now(), key_count(&engine));
        let pid = std::process::id();
        engine.host.log(LogLevel::Notice, &format!("Background saving started by pid {pid}"));
        let (this, shared) = (Arc::clone(this), Arc::clone(&engine));
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        if let Err(error) = thread.spawn(move || this.run(&shared, answer.as_deref())) {
            let line = format!("Can't save in background: {}", crate::files::reason(&error));
            engine.host.log(LogLevel::Warning, &line);
            engine.saving.end(now(), None);
            self.release();
            return Err(Refusal::NoThread);
        }
        Ok(Accepted::Started)
    }

    fn run(&self, engine: &Arc<Engine>, answer: Option<&Waiter>) {
        let outcome = self.save_beside_commands(engine);
        self.release();
        if let Some(waiter) = answer {
            let reply: &[u8] = match outcome {
                Ok(()) => b"+OK\r\n",
                Err(SaveFailed) => b"-ERR\r\n",
            };
            engine.answer(waiter, reply);
        }
    }

    /// Writes the file on this thread. The caller has made sure that nobody else reads a cut, and has
    /// called `Saving::begin`.
    fn save_beside_commands(&self, engine: &Engine) -> Result<(), SaveFailed> {
        let gate = engine.gates.register();
        let (walker, changes) = {
            let closed = engine.gates.close();
            (engine.keyspace.begin_cut(&closed, base::clock::now_us()), engine.stats.changes())
        };
        let outcome = self.save_cut(engine, walker, changes, Access::Gate(&gate));
        engine.gates.unregister(&gate);
        outcome
    }

    /// Saves on the calling thread, while all gates are closed.
    ///
    /// # Errors
    /// A file is being written already, or this one failed: the log says so.
    pub fn save_standing(&self, engine: &Engine, closed: &Closed<'_>) -> Result<(), SaveFailed> {
        if !self.try_seize() {
            // Its writer waits for the gates.
            engine.host.log(LogLevel::Warning, "Background save already in progress");
            return Err(SaveFailed);
        }
        engine.saving.begin(now(), key_count(engine));
        let walker = engine.keyspace.begin_cut(closed, base::clock::now_us());
        let outcome = self.save_cut(engine, walker, engine.stats.changes(), Access::Closed(closed));
        self.release();
        outcome
    }

    /// Writes a cut to the file that the settings name, and says in the log and to INFO what became
    /// of it.
    fn save_cut(
        &self,
        engine: &Engine,
        walker: Option<Walker<'_, Attachment>>,
        changes: u64,
        access: Access<'_>,
    ) -> Result<(), SaveFailed> {
        let log = |level, line: &str| engine.host.log(level, line);
        let config = engine.config.snapshot();
        let target = crate::files::path(&config.dbfilename);
        // With a number, since another server may save in this directory.
        let temporary = target.with_file_name(format!("temp-{}.rdb", std::process::id()));
        let saved = replace(&*self.disk, target, &temporary, |file| {
            let walker = walker.ok_or_else(|| io::Error::other("another cut is being read"))?;
            let file = Syncing::new(file, config.rdb_save_incremental_fsync);
            snapshot::write(engine, walker, access, Purpose::Whole, file, |keys| {
                engine.saving.note_progress(keys);
                crate::memory::publish();
                !self.cancelled.load(Ordering::Relaxed)
            })
        });
        let durable = saved.and_then(|written| {
            self.disk.sync_directory(directory_of(target))?;
            Ok(written)
        });
        match durable {
            Ok(written) => {
                let (keys, megabytes) = (written.keys, written.bytes >> 20);
                log(LogLevel::Notice, "DB saved on disk");
                let line = format!(
                    "Background saving terminated with success: {keys} keys, {megabytes} MB"
                );
                log(LogLevel::Notice, &line);
                engine.saving.end(now(), Some(changes));
                Ok(())
            }
            Err(error) => {
                let line = format!("Background saving error: {}", crate::files::reason(&error));
                log(LogLevel::Warning, &line);
                engine.saving.end(now(), None);
                Err(SaveFailed)
            }
        }
    }

    /// Saves on the calling thread, after whatever is under way: SHUTDOWN.
    ///
    /// # Errors
    /// It failed; the log says why.
    pub fn save_now(&self, engine: &Engine) -> Result<(), SaveFailed> {
        self.cancelled.store(true, Ordering::Relaxed);
        self.seize();
        self.cancelled.store(false, Ordering::Relaxed);
        engine.saving.begin(now(), key_count(engine));
        let outcome = self.save_beside_commands(engine);
        self.release();
        outcome
    }

    /// Ends a file that is being written, and waits for that.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.seize();
        self.release();
    }

    /// Waits until nobody reads a cut, and keeps others from beginning.
    pub fn seize(&self) {
        let mut running = self.running.lock();
        while running.busy {
            self.ended.wait(&mut running);
        }
        running.busy = true;
    }

    /// Keeps others from reading a cut, if nobody does now. [`Saver::release`] follows.
    pub fn try_seize(&self) -> bool {
        let mut running = self.running.lock();
        !std::mem::replace(&mut running.busy, true)
    }

    /// Lets others read cuts.
    pub fn release(&self) {
        self.running.lock().busy = false;
        self.ended.notify_all();
    }

    /// Now and then: begins what the settings or BGSAVE SCHEDULE ask for.
    pub fn tick(&self, engine: &Engine, this: &Arc<Saver>) {
        let scheduled = {
            let mut running = self.running.lock();
            !running.busy && std::mem::take(&mut running.scheduled)
        };
        if let Some((changes, seconds)) = engine.due_save(now()) {
            let line = format!("{changes} changes in {seconds} seconds. Saving...");
            engine.host.log(LogLevel::Notice, &line);
        } else if !scheduled {
            return;
        }
        // Refused only if somebody was quicker; the rule is looked at again soon.
        let _ = self.save(SaveRequest::Background { schedule: true }, this);
    }
}

fn now() -> u64 {
    base::clock::now_ms() / 1000
}

fn key_count(engine: &Engine) -> u64 {
    let databases = 0..engine.keyspace.databases();
    databases.map(|database| engine.keyspace.len(database) as u64).sum()
}

/// A file that is synced every now and then while it grows.
pub(super) struct Syncing<'f> {
    file: &'f mut dyn DiskFile,
    unsynced: Option<usize>,
}

impl<'f> Syncing<'f> {
    pub(super) fn new(file: &'f mut dyn DiskFile, incrementally: bool) -> Syncing<'f> {
        Syncing { file, unsynced: incrementally.then_some(0) }
    }
}

impl Write for Syncing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        if let Some(unsynced) = &mut self.unsynced {
            *unsynced += written;
            if *unsynced >= SYNC_EVERY {
                *unsynced = 0;
                self.file.sync()?;
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
