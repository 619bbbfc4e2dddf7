//! SAVE, BGSAVE and the `save` rules: one thread per file, one file at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use config::Config;
use engine::engine::Engine;
use engine::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::host::LogLevel;
use engine::journal::backlog::Position;
use engine::session::attachment::{Attachment, Waiter};
use parking_lot::Mutex;
use rdb::file::StreamPlace;
use store::cut::Walker;
use store::gate::{Access, StoppedWorld};

use crate::claim::{Claim, InUse};
use crate::cuts::{self, CutRight, Cuts, Reader, Recall};
use crate::disk::syncing::Syncing;
use crate::disk::{Disk, directory_of, replace};
use crate::snapshot::{self, Purpose, Written, not_wanted};
use crate::stale;

mod emptied;
mod order;

use order::{Emptied, Order};

/// See the module's text.
pub struct Saver {
    disk: Arc<dyn Disk>,
    /// Set once, when there is an engine.
    engine: OnceLock<Weak<Engine>>,
    cuts: Arc<Cuts>,
    /// BGSAVE SCHEDULE.
    scheduled: AtomicBool,
    /// Which of several files is the latest.
    order: Order,
    /// All data was removed, and this is still to be saved.
    emptied: Mutex<Option<Emptied>>,
    /// The rights to replace the file that was saved last, or will be, and others that are being
    /// written: the right to a file is kept until the file is written.
    claims: Mutex<Vec<Arc<Claim>>>,
    /// The file that is being written.
    unfinished: Mutex<Option<PathBuf>>,
    /// SAVEs that wait for the end of a rewrite: their files, each with all clients that have asked
    /// for it. One thread a file waits with them.
    awaiting: Mutex<Vec<(PathBuf, Vec<Waiter>)>>,
}

/// A file to be written.
struct Job {
    file: PathBuf,
    /// It is of no use once its data was removed: no client waits for it.
    gives_way: bool,
}

impl Job {
    /// The file in the present settings. Later changes of the settings or of the process's
    /// directory do not matter.
    fn new(config: &Config, gives_way: bool) -> Job {
        Job { file: file_of(config), gives_way }
    }
}

/// The place of the data in the settings, as an absolute path. In a directory that was removed the
/// path stays relative, and writing to it reports what is wrong.
fn file_of(config: &Config) -> PathBuf {
    let name = process::paths::path(&config.dbfilename);
    std::env::current_dir().map_or_else(|_| name.to_owned(), |directory| directory.join(name))
}

/// Notes that a file is being written.
fn begin(engine: &Engine, in_background: bool) {
    engine.saving.begin(now(), in_background);
    engine.saving.note_request();
    let pid = std::process::id();
    engine.host.log(LogLevel::Notice, &format!("Background saving started by pid {pid}"));
}

/// Logs why no thread could be started.
fn no_thread(engine: &Engine, error: &io::Error) -> Refusal {
    let line = format!("Can't save in background: {}", process::paths::reason(error));
    engine.host.log(LogLevel::Warning, &line);
    Refusal::NoThread
}

impl Saver {
    /// Saves to this disk.
    pub fn new(disk: Arc<dyn Disk>, cuts: Arc<Cuts>) -> Saver {
        Saver {
            disk,
            engine: OnceLock::new(),
            cuts,
            scheduled: AtomicBool::new(false),
            order: Order::default(),
            emptied: Mutex::default(),
            claims: Mutex::default(),
            unfinished: Mutex::default(),
            awaiting: Mutex::default(),
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
        let right = match (self.cuts.try_take(Reader::Snapshot), &request) {
            (Ok(right), _) => right,
            (Err(Reader::Snapshot), _) => return Err(Refusal::InProgress),
            // A replica, or another server, may take its copy slowly: no client waits for that. In
            // Redis a file is being written then, too.
            (Err(Reader::Replicas | Reader::Slots), SaveRequest::Answer(_)) => {
                return Err(Refusal::InProgress);
            }
            (
                Err(Reader::Replicas | Reader::Slots),
                SaveRequest::Background { schedule: false, .. },
            ) => return Err(Refusal::InProgress),
            // Its client waits for the rewrite as well.
            (Err(_), SaveRequest::Answer(waiter)) => {
                return self.save_after_rewrite(&engine, waiter.clone(), this);
            }
            (Err(_), SaveRequest::Background { schedule: true, .. }) => {
                self.scheduled.store(true, Ordering::Relaxed);
                return Ok(Accepted::Scheduled);
            }
            (Err(_), SaveRequest::Background { .. }) => return Err(Refusal::Rewriting),
        };
        let in_background = matches!(request, SaveRequest::Background { .. });
        let job = Job::new(&engine.config.load(), in_background);
        begin(&engine, in_background);
        let (this, shared) = (Arc::clone(this), Arc::clone(&engine));
        let spawned = cuts::spawn("snapshot", right, move |right| match request {
            SaveRequest::Answer(waiter) => this.save_for(&shared, &job, right, &[waiter]),
            SaveRequest::Background { begun, .. } => {
                let _ = this.save_beside_commands(&shared, &job, right, || {
                    if let Some(waiter) = &begun {
                        shared.answer(waiter, b"+Background saving started\r\n");
                    }
                });
            }
        });
        if let Err((error, right)) = spawned {
            right.give_back(|| engine.saving.end(now(), None));
            return Err(no_thread(&engine, &error));
        }
        Ok(Accepted::Started)
    }

    /// SAVE beside a rewrite: a thread waits with its client, or with all clients that have asked
    /// for this file by the time the rewrite ends.
    fn save_after_rewrite(
        &self,
        engine: &Arc<Engine>,
        waiter: Waiter,
        this: &Arc<Saver>,
    ) -> Result<Accepted, Refusal> {
        let job = Job::new(&engine.config.load(), false);
        let mut awaiting = self.awaiting.lock();
        if let Some((_, waiters)) = awaiting.iter_mut().find(|(file, _)| *file == job.file) {
            waiters.push(waiter);
            return Ok(Accepted::Started);
        }
        awaiting.push((job.file.clone(), vec![waiter]));
        let (this, shared) = (Arc::clone(this), Arc::clone(engine));
        let spawned = cuts::spawn("snapshot", (), move |()| {
            // If the server stops, the connections of those that wait end with it.
            let Some(right) = this.cuts.take(Reader::Snapshot) else { return };
            begin(&shared, false);
            // Clients that ask from now on are told that a file is being written.
            let waiters = this.no_longer_awaiting(&job.file);
            this.save_for(&shared, &job, right, &waiters);
        });
        if let Err((error, ())) = spawned {
            awaiting.pop();
            return Err(no_thread(engine, &error));
        }
        Ok(Accepted::Started)
    }

    fn no_longer_awaiting(&self, file: &Path) -> Vec<Waiter> {
        let mut awaiting = self.awaiting.lock();
        let found = awaiting.iter().position(|(other, _)| other == file);
        found.map(|index| awaiting.swap_remove(index).1).unwrap_or_default()
    }

    /// Saves on this thread, and answers these clients.
    fn save_for(&self, engine: &Engine, job: &Job, right: CutRight, waiters: &[Waiter]) {
        let outcome = self.save_beside_commands(engine, job, right, || ());
        let reply: &[u8] = if outcome.is_ok() { b"+OK\r\n" } else { b"-ERR\r\n" };
        waiters.iter().for_each(|waiter| engine.answer(waiter, reply));
    }

    /// Writes the file on this thread, with the right to read a cut. The caller has called
    /// `Saving::begin`. `begun` is called when it is settled what data is saved.
    fn save_beside_commands(
        &self,
        engine: &Engine,
        job: &Job,
        right: CutRight,
        begun: impl FnOnce(),
    ) -> Result<(), SaveFailed> {
        let gate = engine.gates.register();
        let cut = self.cut(engine, &right, &engine.gates.stop_the_world());
        begun();
        let instant = cut.instant;
        let outcome = self.write_cut(engine, job, cut, &right, Access::Gate(&gate));
        self.conclude(engine, job, instant, outcome, right)
    }

    /// Saves on the calling thread, while the world is stopped.
    ///
    /// # Errors
    /// A file is being written already, or this one failed: the log says so.
    pub fn save_standing(
        &self,
        engine: &Engine,
        stopped: &StoppedWorld<'_>,
    ) -> Result<(), SaveFailed> {
        let Ok(right) = self.cuts.try_take(Reader::Snapshot) else {
            // Its writer waits for the gates.
            engine.host.log(LogLevel::Warning, "Background save already in progress");
            return Err(SaveFailed);
        };
        engine.saving.begin(now(), false);
        let job = Job::new(&engine.config.load(), false);
        let cut = self.cut(engine, &right, stopped);
        let instant = cut.instant;
        let outcome = self.write_cut(engine, &job, cut, &right, Access::Stopped(stopped));
        self.conclude(engine, &job, instant, outcome, right)
    }

    fn cut<'c>(
        &self,
        engine: &'c Engine,
        right: &'c CutRight,
        stopped: &StoppedWorld<'_>,
    ) -> Cut<'c> {
        let databases = 0..engine.keyspace.databases();
        let keys = databases.map(|database| engine.keyspace.len(database) as u64).sum();
        engine.saving.note_total(keys);
        let walker = right.begin(engine, stopped);
        let instant =
            Instant { changes: engine.stats.changes(), sequence: self.order.next(stopped) };
        let position = engine.stream_position();
        Cut { walker, instant, position }
    }

    /// Reports the result in the log and to INFO, and gives back the right to read a cut.
    fn conclude(
        &self,
        engine: &Engine,
        job: &Job,
        Instant { changes, sequence }: Instant,
        outcome: io::Result<Written>,
        right: CutRight,
    ) -> Result<(), SaveFailed> {
        let log = |level, line: &str| engine.host.log(level, line);
        let recalled = right.recalled().map(Recall::words);
        // A thread that sees that it has ended may begin the next one.
        right.give_back(|| match outcome {
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
            Err(_) if self.is_useless(job, sequence) => {
                log(LogLevel::Warning, "Background saving given up: the data was removed");
                engine.saving.give_up(now());
                Ok(())
            }
            Err(_) if recalled.is_some() => {
                let why = recalled.unwrap_or_default();
                log(LogLevel::Warning, &format!("Background saving given up: {why}"));
                engine.saving.give_up(now());
                Err(SaveFailed)
            }
            // A request for this file is met by a file with later data.
            Err(_) if self.order.is_overtaken(&job.file, sequence) => {
                engine.saving.end(now(), Some(changes));
                Ok(())
            }
            Err(error) => {
                let line = format!("Background saving error: {}", process::paths::reason(&error));
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
        Cut { walker, instant: Instant { sequence, .. }, position }: Cut<'_>,
        right: &CutRight,
        access: Access<'_>,
    ) -> io::Result<Written> {
        let temporary = stale::unfinished(&job.file, "");
        let _claimed = self.claim(&job.file).map_err(io::Error::other)?;
        *self.unfinished.lock() = Some(temporary.clone());
        let incrementally = engine.config.load().rdb_save_incremental_fsync;
        let wanted = || !right.is_recalled() && !self.is_useless(job, sequence);
        let place = position.as_ref().map(|(position, selected)| StreamPlace {
            database: selected.unwrap_or_default(),
            history: &position.history,
            offset: position.offset,
        });
        let replaced = replace(&*self.disk, &job.file, &temporary, |file| {
            let output = Syncing::new(file, incrementally);
            let written =
                snapshot::write(engine, walker, access, (Purpose::Whole, place), output, |keys| {
                    engine.saving.note_progress(keys);
                    process::memory::publish();
                    wanted()
                })?;
            // Slow work is done before others have to wait.
            file.sync()?;
            self.disk.uncache(&job.file);
            let filed = self.order.file(&job.file, sequence).filter(|_| wanted());
            Ok((written, filed.ok_or_else(not_wanted)?))
        });
        *self.unfinished.lock() = None;
        let (written, mut filed) = replaced?;
        *filed = sequence;
        self.disk.sync_directory(directory_of(&job.file))?;
        Ok(written)
    }

    /// Makes sure that no other server saves to this file, as long as the result is kept. There is
    /// none where the file system cannot tell.
    fn claim(&self, file: &Path) -> Result<Option<Arc<Claim>>, InUse> {
        let mut claims = self.claims.lock();
        if let Some(claim) = claims.iter().find(|claim| claim.covers(file)) {
            return Ok(Some(Arc::clone(claim)));
        }
        let claimed = Claim::snapshot(file)?.map(Arc::new);
        claims.retain(|claim| Arc::strong_count(claim) > 1);
        claims.extend(claimed.clone());
        Ok(claimed)
    }

    /// Makes sure that no other server saves to the file that the settings name, if this one is
    /// going to save by itself.
    ///
    /// # Errors
    /// Another one does.
    pub fn claim_file(&self, config: &Config) -> Result<(), InUse> {
        if config.save.is_empty() { Ok(()) } else { self.claim(&file_of(config)).map(drop) }
    }

    /// Removes what processes that have ended left unfinished of RDB files in the directory of the
    /// data. A server without `save` rules has claimed nothing so far: it claims each file for the
    /// moment, as far as no other server uses it. Returns the removed files.
    pub fn remove_stale(&self, config: &Config) -> Vec<PathBuf> {
        let own = file_of(config);
        let claims = self.claims.lock();
        stale::remove_snapshots(&*self.disk, &own, |file| {
            if claims.iter().any(|claim| claim.covers(file)) {
                return Some(None);
            }
            // A server that has written another file has left the file that is locked for it.
            let claim = if file == own { Claim::snapshot } else { Claim::known_snapshot };
            claim(file).ok().flatten().map(Some)
        })
    }

    /// Removes the file that is being written: the process is about to end without waiting for it.
    pub fn abandon(&self) {
        if let Some(unfinished) = self.unfinished.lock().take() {
            // It may have taken its place by now.
            let _ = self.disk.remove(&unfinished);
        }
    }

    fn is_useless(&self, job: &Job, sequence: u64) -> bool {
        job.gives_way && self.order.was_emptied_since(sequence)
    }

    /// Saves on the calling thread, after any save under way: SHUTDOWN.
    ///
    /// # Errors
    /// It failed; the log says why.
    pub fn save_now(&self, engine: &Engine) -> Result<(), SaveFailed> {
        let right = self.cuts.take_at_once(Reader::Snapshot, Recall::Stop).ok_or(SaveFailed)?;
        engine.saving.begin(now(), false);
        let job = Job::new(&engine.config.load(), false);
        self.save_beside_commands(engine, &job, right, || {})
    }

    /// Called now and then: begins what the settings or BGSAVE SCHEDULE ask for.
    pub fn tick(&self, engine: &Engine, this: &Arc<Saver>) {
        let scheduled = !self.cuts.is_taken() && self.scheduled.swap(false, Ordering::Relaxed);
        if let Some((changes, seconds)) = engine.save_to_begin(now()) {
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
struct Cut<'c> {
    walker: Walker<'c, Attachment>,
    instant: Instant,
    /// Where the stream goes on after the data, and the database that is selected there.
    position: Option<(Position, Option<usize>)>,
}

/// When a cut was begun.
#[derive(Clone, Copy)]
struct Instant {
    /// Changes up to there.
    changes: u64,
    /// Its number among all such instants.
    sequence: u64,
}

fn now() -> u64 {
    base::clock::monotonic_ms() / 1000
}
