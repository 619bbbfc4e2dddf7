//! SAVE, BGSAVE and the `save` rules: one thread per file, one file at a time.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use config::Config;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::persistence::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::wait::waiting::{Attachment, Waiter};
use parking_lot::{Condvar, Mutex};
use store::cut::Walker;
use store::gate::{Access, Closed};

use crate::persist::claim::{Claim, InUse};
use crate::persist::disk::{Disk, DiskFile, directory_of, replace};
use crate::persist::snapshot::{self, Purpose, Written, not_wanted};
use crate::persist::stale;

mod emptied;
mod order;

use order::{Emptied, Order};

/// Bytes that are written between two syncs of an unfinished file, so that the last sync has little
/// left to do, and no sync keeps the processor for long.
const SYNC_EVERY: usize = 1 << 20;

/// See the module's text.
pub struct Saver {
    disk: Arc<dyn Disk>,
    /// Set once, when there is an engine.
    engine: OnceLock<Weak<Engine>>,
    running: Mutex<Running>,
    ended: Condvar,
    /// The file that is being written is no longer wanted.
    cancelled: AtomicBool,
    /// Which of several files is the latest.
    order: Order,
    /// All data was removed, and this is still to be saved.
    emptied: Mutex<Option<Emptied>>,
    /// The right to replace the file that was saved last, or will be.
    claim: Mutex<Option<Claim>>,
    /// The file that is being written.
    unfinished: Mutex<Option<PathBuf>>,
}

/// A file to be written.
struct Job {
    file: PathBuf,
    /// It is of no use once its data was removed: no client waits for it.
    gives_way: bool,
}

impl Job {
    /// The file in the present settings. Later changes of the settings or of the process's directory do
    /// not matter.
    fn new(config: &Config, gives_way: bool) -> Job {
        Job { file: file_of(config), gives_way }
    }
}

/// The place of the data in the settings, as an absolute path. In a directory that was removed the path
/// stays relative, and writing to it reports what is wrong.
fn file_of(config: &Config) -> PathBuf {
    let name = crate::process::paths::path(&config.dbfilename);
    std::env::current_dir().map_or_else(|_| name.to_owned(), |directory| directory.join(name))
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
            order: Order::default(),
            emptied: Mutex::default(),
            claim: Mutex::default(),
            unfinished: Mutex::default(),
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
        let is_rewriting = running.busy;
        if is_rewriting {
            if engine.saving.figures(0).in_progress {
                return Err(Refusal::InProgress);
            }
            match request {
                // Its client waits for the rewrite as well.
                SaveRequest::Answer(_) => {}
                SaveRequest::Background { schedule: true, .. } => {
                    running.scheduled = true;
                    return Ok(Accepted::Scheduled);
                }
                SaveRequest::Background { .. } => return Err(Refusal::Rewriting),
            }
        }
        let in_background = matches!(request, SaveRequest::Background { .. });
        let job = Job::new(&engine.config.load(), in_background);
        let begin = move |engine: &Engine| {
            engine.saving.begin(now(), in_background);
            engine.saving.note_request();
            let pid = std::process::id();
            engine.host.log(LogLevel::Notice, &format!("Background saving started by pid {pid}"));
        };
        if !is_rewriting {
            running.busy = true;
            begin(&engine);
        }
        drop(running);
        let (this, shared) = (Arc::clone(this), Arc::clone(&engine));
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        let spawned = thread.spawn(move || {
            if is_rewriting {
                this.seize(|| begin(&shared));
            }
            this.run(&shared, &job, &request);
        });
        if let Err(error) = spawned {
            let line =
                format!("Can't save in background: {}", crate::process::paths::reason(&error));
            engine.host.log(LogLevel::Warning, &line);
            if !is_rewriting {
                self.release(|| engine.saving.end(now(), None));
            }
            return Err(Refusal::NoThread);
        }
        Ok(Accepted::Started)
    }

    fn run(&self, engine: &Arc<Engine>, job: &Job, request: &SaveRequest) {
        let answer = |waiter: &Waiter, reply: &[u8]| engine.answer(waiter, reply);
        let outcome = self.save_beside_commands(engine, job, || {
            if let SaveRequest::Background { begun: Some(waiter), .. } = request {
                answer(waiter, b"+Background saving started\r\n");
            }
        });
        if let SaveRequest::Answer(waiter) = request {
            let reply: &[u8] = if outcome.is_ok() { b"+OK\r\n" } else { b"-ERR\r\n" };
            answer(waiter, reply);
        }
    }

    /// Writes the file on this thread. The caller has made sure that nothing else reads a cut, and has
    /// called `Saving::begin`. `begun` is called when it is settled what data is saved. Others may read
    /// cuts afterwards.
    fn save_beside_commands(
        &self,
        engine: &Engine,
        job: &Job,
        begun: impl FnOnce(),
    ) -> Result<(), SaveFailed> {
        let gate = engine.gates.register();
        let cut = self.cut(engine, &engine.gates.close());
        begun();
        self.save_cut(engine, job, cut, Access::Gate(&gate))
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
        engine.saving.begin(now(), false);
        let job = Job::new(&engine.config.load(), false);
        self.save_cut(engine, &job, self.cut(engine, closed), Access::Closed(closed))
    }

    fn cut<'e>(&self, engine: &'e Engine, closed: &Closed<'_>) -> Cut<'e> {
        let databases = 0..engine.keyspace.databases();
        let keys = databases.map(|database| engine.keyspace.len(database) as u64).sum();
        engine.saving.note_total(keys);
        let walker = snapshot::begin_cut(engine, closed);
        Cut { walker, changes: engine.stats.changes(), place: self.order.next(closed) }
    }

    /// Writes a cut to a file, reports the result in the log and to INFO, and lets others read cuts.
    fn save_cut(
        &self,
        engine: &Engine,
        job: &Job,
        cut: Cut<'_>,
        access: Access<'_>,
    ) -> Result<(), SaveFailed> {
        let log = |level, line: &str| engine.host.log(level, line);
        let Cut { walker, changes, place } = cut;
        let outcome = self.write_cut(engine, job, walker, place, access);
        // A thread that sees that it has ended may begin the next one.
        self.release(|| match outcome {
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
            Err(_) if self.is_useless(job, place) => {
                log(LogLevel::Warning, "Background saving given up: the data was removed");
                engine.saving.give_up(now());
                Ok(())
            }
            Err(_) if self.cancelled.load(Ordering::Relaxed) => {
                log(LogLevel::Warning, "Background saving given up: the server is about to stop");
                engine.saving.give_up(now());
                Err(SaveFailed)
            }
            // A request for this file is met by a file with later data.
            Err(_) if self.order.is_overtaken(place) => {
                engine.saving.end(now(), Some(changes));
                Ok(())
            }
            Err(error) => {
                let line =
                    format!("Background saving error: {}", crate::process::paths::reason(&error));
                log(LogLevel::Warning, &line);
                engine.saving.end(now(), None);
                Err(SaveFailed)
            }
        })
    }

    fn write_cut(
        &self,
        engine: &Engine,
        job: &Job,
        walker: Option<Walker<'_, Attachment>>,
        place: u64,
        access: Access<'_>,
    ) -> io::Result<Written> {
        let temporary = stale::unfinished(&job.file, "");
        self.claim(&job.file).map_err(io::Error::other)?;
        *self.unfinished.lock() = Some(temporary.clone());
        let incrementally = engine.config.load().rdb_save_incremental_fsync;
        let wanted = || !self.cancelled.load(Ordering::Relaxed) && !self.is_useless(job, place);
        let replaced = replace(&*self.disk, &job.file, &temporary, |file| {
            let walker = walker.ok_or_else(|| io::Error::other("another cut is being read"))?;
            let output = Syncing::new(file, incrementally);
            let written =
                snapshot::write(engine, walker, access, Purpose::Whole, output, |keys| {
                    engine.saving.note_progress(keys);
                    crate::memory::publish();
                    wanted()
                })?;
            // Slow work is done before others have to wait.
            file.sync()?;
            self.disk.uncache(&job.file);
            let filed = self.order.file(place).filter(|_| wanted());
            Ok((written, filed.ok_or_else(not_wanted)?))
        });
        *self.unfinished.lock() = None;
        let (written, mut filed) = replaced?;
        *filed = place;
        self.disk.sync_directory(directory_of(&job.file))?;
        Ok(written)
    }

    /// Makes sure that no other server saves to this file.
    fn claim(&self, file: &Path) -> Result<(), InUse> {
        let mut claim = self.claim.lock();
        if claim.as_ref().is_none_or(|claim| !claim.covers(file)) {
            *claim = Claim::snapshot(file)?;
        }
        Ok(())
    }

    /// Makes sure that no other server saves to the file that the settings name, if this one is going
    /// to save by itself.
    ///
    /// # Errors
    /// Another one does.
    pub fn claim_file(&self, config: &Config) -> Result<(), InUse> {
        if config.save.is_empty() { Ok(()) } else { self.claim(&file_of(config)) }
    }

    /// Removes the file that is being written: the process is about to end without waiting for it.
    pub fn abandon(&self) {
        if let Some(unfinished) = self.unfinished.lock().take() {
            // It may have taken its place by now.
            let _ = self.disk.remove(&unfinished);
        }
    }

    fn is_useless(&self, job: &Job, place: u64) -> bool {
        job.gives_way && self.order.was_emptied_since(place)
    }

    /// Saves on the calling thread, after any save under way: SHUTDOWN.
    ///
    /// # Errors
    /// It failed; the log says why.
    pub fn save_now(&self, engine: &Engine) -> Result<(), SaveFailed> {
        self.seize_at_once(|| engine.saving.begin(now(), false));
        let job = Job::new(&engine.config.load(), false);
        self.save_beside_commands(engine, &job, || {})
    }

    /// Ends a file that is being written, waits for that, and keeps others from beginning:
    /// [`Saver::release`] follows, if anything does. No other thread sees it seized before `note` has
    /// returned.
    pub fn seize_at_once(&self, note: impl FnOnce()) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.seize(|| {
            self.cancelled.store(false, Ordering::Relaxed);
            note();
        });
    }

    /// Waits until nothing reads a cut, and keeps others from beginning. No other thread sees it seized
    /// before `note` has returned.
    fn seize(&self, note: impl FnOnce()) {
        let mut running = self.running.lock();
        while running.busy {
            self.ended.wait(&mut running);
        }
        running.busy = true;
        note();
    }

    /// Keeps others from reading a cut, if nothing reads one now. [`Saver::release`] follows.
    pub fn try_seize(&self) -> bool {
        let mut running = self.running.lock();
        !std::mem::replace(&mut running.busy, true)
    }

    /// Lets others read cuts. No thread sees the changes of `note` and still finds it seized.
    pub fn release<T>(&self, note: impl FnOnce() -> T) -> T {
        let mut running = self.running.lock();
        let noted = note();
        running.busy = false;
        self.ended.notify_all();
        noted
    }

    /// Called now and then: begins what the settings or BGSAVE SCHEDULE ask for.
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
        let request = SaveRequest::Background { schedule: true, begun: None };
        // Refused only if another request was quicker; the rule is checked again soon.
        let _ = self.save(request, this);
    }
}

/// The data at an instant.
struct Cut<'e> {
    /// `None` if another cut is being read.
    walker: Option<Walker<'e, Attachment>>,
    /// Changes up to there.
    changes: u64,
    /// Its place among all such instants.
    place: u64,
}

fn now() -> u64 {
    base::clock::steady_ms() / 1000
}

/// A file that is synced now and then while it grows.
pub(in crate::persist) struct Syncing<'f> {
    file: &'f mut dyn DiskFile,
    unsynced: Option<usize>,
}

impl<'f> Syncing<'f> {
    pub(in crate::persist) fn new(file: &'f mut dyn DiskFile, incrementally: bool) -> Syncing<'f> {
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
