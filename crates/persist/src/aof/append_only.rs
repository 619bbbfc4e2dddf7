//! The append-only file of a running server: when it begins, ends and is rewritten, and what the
//! rest of the process asks of it. [`crate::journal`] and [`super::rewrite`] do the writing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use config::Config;
use engine::engine::Engine;
use engine::files::append_only::{LastStatus, Metrics, RewriteAnswer, Rewrites, Writing};
use engine::journal::Journal;
use engine::journal::backlog::Backlog;
use engine::observe::stats::Durations;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::directory::{self, AofDirectory, DirectoryError, OldFile};
use super::rewrite::{self, Plan};
use crate::claim::{Claim, InUse};
use crate::cuts::{self, CutRight, Cuts, Reader, Recall};
use crate::disk::Disk;
use crate::journal::{Failure, Observer, Opened, Operation, ServerJournal, Timing};
use crate::snapshot;
use crate::stale;
use process::log::Log;

/// How long to wait before the next attempt to begin a file.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// After this many failures in a row, automatic rewrites pause.
const FAILURES_TOLERATED: u64 = 3;

/// The first pause after such failures. Each further failure doubles it.
const FAILURE_PAUSE: Duration = Duration::from_secs(60);

/// The longest pause after failures.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// See the module's text.
pub struct AppendOnly {
    journal: Arc<ServerJournal>,
    disk: Arc<dyn Disk>,
    log: Arc<Log>,
    cuts: Arc<Cuts>,
    telling: Arc<JournalReports>,
    state: Mutex<State>,
    /// The right to use the directory, and others that the journal may still write to.
    claims: Mutex<Vec<Claim>>,
    /// Locked while the files are loaded, and while others take their place.
    files: Mutex<()>,
    /// A rewrite has ended.
    ended: Condvar,
    /// The server is going to stop: no rewrite begins, and a running one ends.
    stopping: AtomicBool,
}

/// Whether there is an append-only file.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Mode {
    /// There is none.
    #[default]
    Off,
    /// It was turned on. It counts once its first base is complete.
    Beginning,
    /// There is.
    On,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// Counts how often the file was turned off: a rewrite may outlive that.
    turned_off: u64,
    directory: Option<Arc<AofDirectory>>,
    /// When the running rewrite began.
    rewriting_since: Option<Instant>,
    /// The outcome is of use at this count of [`State::turned_off`] only, if that matters.
    rewriting_for: Option<u64>,
    rewrites: Rewrites,
    /// No rewrite begins by itself before.
    not_before: Option<Instant>,
    /// Bytes of the files to be loaded, besides the one that is being written.
    closed_size: u64,
    /// Bytes of all files after the last rewrite, or at the start.
    base_size: u64,
    /// While other data takes the place of all data: whether there is to be a file after that.
    suspended: Option<bool>,
}

impl State {
    /// When the running rewrite began, unless it is about to end because it is not wanted any more.
    fn wanted_rewrite_since(&self) -> Option<Instant> {
        let wanted = self.rewriting_for.is_none_or(|count| count == self.turned_off);
        self.rewriting_since.filter(|_| wanted)
    }
}

/// The connections whose replies wait for the journal.
pub trait DeferredReplies: Send + Sync {
    /// More is durable than before, or writes are accepted again.
    fn note_progress(&self);

    /// Nothing more becomes durable.
    fn note_failure(&self);
}

/// Passes on what the journal's thread reports.
struct JournalReports {
    log: Arc<Log>,
    replies: Arc<dyn DeferredReplies>,
    engine: OnceLock<Weak<Engine>>,
}

impl Observer for JournalReports {
    fn progressed(&self, _synced: u64) {
        self.replies.note_progress();
    }

    fn failed(&self, failure: &Failure) {
        let remedy = match failure.operation {
            Operation::Write => "this write is tried again every second and succeeds",
            Operation::Sync => "a rewrite succeeds, which is tried now and then",
        };
        self.log.warning(format!(
            "AOF error while {failure}. Writes are refused until {remedy}, or appendonly is turned \
             off."
        ));
        self.replies.note_failure();
    }

    fn recovered(&self) {
        self.log.warning("AOF write error looks solved. The server can write again.");
        self.replies.note_progress();
    }

    fn took(&self, event: &'static str, duration: Duration) {
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return };
        let threshold = engine.config.load().latency_monitor_threshold;
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if threshold > 0 && milliseconds >= threshold {
            engine.latency.note(event, base::clock::now_ms() / 1000, milliseconds);
        }
    }
}

impl AppendOnly {
    /// Starts the journal's thread. There is no file before [`AppendOnly::start`].
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn new(
        config: &Config,
        log: &Arc<Log>,
        replies: &Arc<dyn DeferredReplies>,
        cuts: Arc<Cuts>,
        disk: Arc<dyn Disk>,
    ) -> io::Result<AppendOnly> {
        let telling = Arc::new(JournalReports {
            log: Arc::clone(log),
            replies: Arc::clone(replies),
            engine: OnceLock::new(),
        });
        let observer = Arc::clone(&telling) as Arc<dyn Observer>;
        let journal = ServerJournal::start(config.appendfsync, Timing::default(), observer)?;
        journal.set_timestamps(config.aof_timestamp_enabled);
        Ok(AppendOnly {
            journal: Arc::new(journal),
            disk,
            log: Arc::clone(log),
            cuts,
            telling,
            state: Mutex::default(),
            claims: Mutex::default(),
            files: Mutex::default(),
            ended: Condvar::new(),
            stopping: AtomicBool::new(false),
        })
    }

    /// The stream of writes.
    pub fn journal(&self) -> &Arc<ServerJournal> {
        &self.journal
    }

    /// Connects it with the engine whose writes it stores.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.telling.engine.get_or_init(|| Arc::downgrade(engine));
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.telling.engine.get().and_then(Weak::upgrade)
    }

    /// Opens the directory that the settings name, wherever the process changes its directory to
    /// later.
    fn open_directory(&self, config: &Config) -> Result<AofDirectory, DirectoryError> {
        let home = std::env::current_dir()
            .map_err(|error| DirectoryError::System { path: ".".into(), error })?;
        let name = OsStr::from_bytes(&config.appenddirname);
        let disk = Arc::clone(&self.disk);
        // An old file that was not loaded at the start does not belong to this server: replacing
        // the base would remove it.
        let file = OsStr::from_bytes(&config.appendfilename);
        AofDirectory::open(disk, &home, name, file, OldFile::Leave)
    }

    /// Makes sure that no other server uses the directory, if there is to be an append-only file,
    /// and removes unfinished files of an earlier server. Must be called before anything is loaded.
    ///
    /// # Errors
    /// Another server uses it.
    pub fn claim(&self, config: &Config) -> Result<(), InUse> {
        if !config.appendonly {
            return Ok(());
        }
        let Ok(home) = std::env::current_dir() else { return Ok(()) };
        let path = home.join(OsStr::from_bytes(&config.appenddirname));
        // The thread that writes into it reports why it cannot be made.
        let _ = directory::make(&*self.disk, &path);
        self.claim_directory(&path)?;
        // Only where the file system can tell that no other server uses it.
        let is_claimed = !self.claims.lock().is_empty();
        let listed = directory::listed_names(&*self.disk, &path).filter(|_| is_claimed);
        if let Some(listed) = listed {
            let prefix = OsStr::from_bytes(&config.appendfilename);
            for path in stale::remove_unfinished(&*self.disk, &path, prefix, &listed) {
                self.log.notice(format!("Removed the unfinished file {}", path.display()));
            }
        }
        Ok(())
    }

    /// Claims the directory unless it is claimed. Returns whether another one had this path before.
    fn claim_directory(&self, path: &Path) -> Result<bool, InUse> {
        let mut claims = self.claims.lock();
        if claims.iter().any(|claim| claim.covers(path)) {
            return Ok(false);
        }
        let is_another = claims.iter().any(|claim| claim.is_for(path));
        claims.extend(Claim::directory(path)?);
        Ok(is_another)
    }

    // ---- Beginning and end ----------------------------------------------------------------------

    /// Goes on in the files from which the data was loaded, if the settings say so. Must be called
    /// after everything is loaded, before any client is served.
    ///
    /// # Errors
    /// Why the server must not start, in words.
    pub fn start(self: &Arc<Self>, engine: &Arc<Engine>) -> Result<(), String> {
        let config = engine.config.load();
        if !config.appendonly {
            return Ok(());
        }
        let words = |error: &dyn std::fmt::Display| format!("Can't open the AOF: {error}");
        let directory = self.open_directory(&config).map_err(|error| words(&error))?;
        if directory.has_unlisted_parts() {
            self.log.warning(format!(
                "!!! Warning: {} contains parts of an append-only file, but no manifest that lists \
                 them. They are not loaded, and stay as they are.",
                directory.path().display()
            ));
        }
        let databases = 0..engine.keyspace.databases();
        let has_data = databases.into_iter().any(|index| !engine.keyspace.is_empty(index));
        if directory.live_files().is_empty() && has_data {
            // Data that was loaded from elsewhere is in no file of this directory.
            directory.try_to_make_files().map_err(|error| words(&error))?;
            self.begin(Some(directory));
            return Ok(());
        }
        let opened = self.open_files(engine, &directory).map_err(|error| words(&error))?;
        self.collect(engine, &directory);
        let (_, size) = directory.sizes().map_err(|error| words(&error))?;
        let mut state = self.state.lock();
        state.mode = Mode::On;
        state.closed_size = size.saturating_sub(opened.length);
        state.base_size = size;
        state.directory = Some(Arc::new(directory));
        self.journal.begin_file(opened);
        Ok(())
    }

    /// Opens the increment to continue in. A list without files first gets a base without data.
    fn open_files(&self, engine: &Engine, directory: &AofDirectory) -> io::Result<Opened> {
        let manifest = directory.manifest();
        if manifest.live().next().is_none() {
            let (purpose, format) = rewrite::shape(engine);
            let name =
                directory.add_base(format, |file| snapshot::write_none(engine, purpose, file))?;
            let name = name.to_string_lossy();
            self.log.notice(format!("Creating AOF base file {name} on server start"));
        }
        let opened = directory.resume()?;
        let verb = if manifest.increments.is_empty() { "Creating" } else { "Opening" };
        let name = opened.name.to_string_lossy();
        self.log.notice(format!("{verb} AOF incr file {name} on server start"));
        Ok(opened)
    }

    /// Begins an append-only file for data that is already there: CONFIG SET appendonly yes.
    ///
    /// # Errors
    /// Its directory is of no use, or no files can be made there; the reason is in the log.
    pub fn turn_on(self: &Arc<Self>, config: &Config) -> Result<(), String> {
        {
            let mut state = self.state.lock();
            if let Some(is_wanted) = &mut state.suspended {
                *is_wanted = true;
                return Ok(());
            }
            if state.mode != Mode::Off {
                return Ok(());
            }
        }
        let refuse = |error: &dyn std::fmt::Display| {
            self.log.warning(format!("Can't open the AOF: {error}"));
            "Unable to turn on AOF. Check server logs.".to_owned()
        };
        let directory = self.open_directory(config).map_err(|error| refuse(&error))?;
        directory.make().map_err(|error| refuse(&error))?;
        self.claim_directory(directory.path()).map_err(|in_use| {
            refuse(&in_use);
            format!("Unable to turn on AOF. {in_use}")
        })?;
        directory.try_to_make_files().map_err(|error| refuse(&error))?;
        self.begin(Some(directory));
        Ok(())
    }

    /// Begins the file. Its first rewrite opens the directory that is not given.
    fn begin(self: &Arc<Self>, directory: Option<AofDirectory>) {
        {
            let mut state = self.state.lock();
            if let Some(is_wanted) = &mut state.suspended {
                *is_wanted = true;
                return;
            }
            state.mode = Mode::Beginning;
            self.journal.note_beginning(true);
            state.directory = directory.map(Arc::new);
        }
        if self.rewrite(false) != RewriteAnswer::Started {
            self.log.notice("AOF was enabled: its first file is written as soon as possible.");
            self.state.lock().rewrites.scheduled = true;
        }
    }

    /// Ends the append-only file. Its contents are made durable, and stay where they are.
    pub fn turn_off(&self) {
        let mut state = self.state.lock();
        if let Some(is_wanted) = &mut state.suspended {
            *is_wanted = false;
        }
        self.end(&mut state);
    }

    fn end(&self, state: &mut State) {
        state.turned_off += 1;
        state.mode = Mode::Off;
        state.rewrites.scheduled = false;
        state.not_before = None;
        self.journal.note_beginning(false);
        self.end_file();
        self.journal.refuse_writes(None);
    }

    /// Ends the file. Unless somebody follows, nothing counts what is written from now on.
    fn end_file(&self) {
        let is_followed = self.journal.changes().is_some_and(Backlog::is_on);
        if self.journal.has_file()
            && !is_followed
            && let Some(engine) = self.engine()
        {
            engine.leave_history();
        }
        self.journal.end_file();
    }

    /// Ends the file, if there is one, because other data is about to take the place of all data.
    /// What was written stays, and nothing is added to it. What CONFIG SET says meanwhile counts
    /// from [`AppendOnly::resume`] on.
    pub fn suspend(&self) {
        let mut state = self.state.lock();
        let is_on = state.mode != Mode::Off;
        state.suspended = Some(is_on);
        if is_on {
            self.end(&mut state);
        }
    }

    /// Begins a file of the data that is there now, if there is to be one. What is in the way is in
    /// the log, and it is tried again.
    pub fn resume(self: &Arc<Self>) {
        if self.state.lock().suspended.take().unwrap_or_default() {
            self.begin(None);
        }
    }

    /// Whether the first file of the present data is being written, or is about to be.
    pub fn writes_its_first_file(&self) -> bool {
        let state = self.state.lock();
        let under_way = state.rewriting_since.is_some() || state.rewrites.scheduled;
        state.mode == Mode::Beginning && under_way
    }

    /// Keeps rewrites from beginning, and from coming to their end: the server is going to stop.
    pub fn recall_rewrites(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// [`AppendOnly::recall_rewrites`], and waits for the end of a running one.
    pub fn stop_rewrites(&self) {
        self.recall_rewrites();
        let mut state = self.state.lock();
        while state.rewriting_since.is_some() {
            self.ended.wait(&mut state);
        }
    }

    /// Ends [`AppendOnly::stop_rewrites`].
    pub fn let_rewrites_go_on(&self) {
        self.stopping.store(false, Ordering::Relaxed);
    }

    /// Makes everything durable before the server stops. No thread writes any more, and no rewrite
    /// begins. If the files have a gap, a last rewrite closes it.
    ///
    /// # Errors
    /// Why the files lack something that was acknowledged.
    pub fn keep_all(&self) -> Result<(), String> {
        let words = |failure: Failure| failure.to_string();
        match self.state.lock().mode {
            Mode::Off => return Ok(()),
            Mode::Beginning => self.log.warning("The AOF has no base. Writing it before exiting."),
            Mode::On => {
                let is_whole = !self.needs_repair() && self.journal.retry().is_ok();
                if is_whole && self.journal.flush().is_ok() {
                    return Ok(());
                }
                self.log.warning("The AOF lacks the last writes. Rewriting it before exiting.");
            }
        }
        let engine = self.engine().ok_or("there is no data any more")?;
        // Another reader of a cut is less important now.
        let right = self.cuts.take_at_once(Reader::Rewrite, Recall::Stop);
        let right = right.ok_or("the server has stopped")?;
        let (plan, directory) = self.begin_rewrite(&mut self.state.lock());
        self.run_rewrite(&engine, right, plan, directory, true);
        if self.state.lock().mode != Mode::On {
            return Err("its first base could not be written".to_owned());
        }
        // Effects that the base has are skipped at once, not when the journal's thread hears of it.
        match self.journal.retry() {
            Ok(()) if self.needs_repair() => Err("the AOF could not be rewritten".to_owned()),
            Ok(()) => self.journal.flush().map_err(words),
            Err(failure) => Err(words(failure)),
        }
    }

    /// Makes everything durable and ends the journal's thread. No thread writes any more.
    pub fn stop(&self) {
        self.stop_rewrites();
        if self.state.lock().mode != Mode::Off {
            self.log.notice("Calling fsync() on the AOF file.");
            if let Err(failure) = self.journal.flush() {
                self.log.warning(format!("The last writes are not in the AOF: {failure}"));
            }
        }
        self.journal.stop();
        self.claims.lock().clear();
    }

    // ---- Rewrites -------------------------------------------------------------------------------

    /// Begins a rewrite, or schedules it: if `soon` asks for that, or a snapshot is under way.
    pub fn rewrite(self: &Arc<Self>, soon: bool) -> RewriteAnswer {
        let Some(engine) = self.engine() else { return RewriteAnswer::InProgress };
        let (right, plan, directory) = {
            let mut state = self.state.lock();
            if state.wanted_rewrite_since().is_some() {
                return RewriteAnswer::InProgress;
            }
            let may_begin = !soon && !self.stopping.load(Ordering::Relaxed);
            let right = may_begin.then(|| self.cuts.try_take(Reader::Rewrite).ok()).flatten();
            let Some(right) = right else {
                state.rewrites.scheduled = true;
                return RewriteAnswer::Scheduled;
            };
            let (plan, directory) = self.begin_rewrite(&mut state);
            (right, plan, directory)
        };
        let pid = std::process::id();
        self.log.notice(format!("Background append only file rewriting started by pid {pid}"));
        let this = Arc::clone(self);
        let spawned = cuts::spawn("rewrite", right, move |right| {
            this.run_rewrite(&engine, right, plan, directory, false);
        });
        if let Err((error, right)) = spawned {
            self.conclude(right, plan, &Err(error));
        }
        RewriteAnswer::Started
    }

    /// Notes that a rewrite begins, and returns which.
    fn begin_rewrite(&self, state: &mut State) -> (Plan, Option<Arc<AofDirectory>>) {
        state.rewriting_since = Some(Instant::now());
        state.rewrites.scheduled = false;
        state.rewrites.begun += 1;
        let plan = self.plan(state);
        state.rewriting_for = plan.turned_off();
        (plan, state.directory.clone())
    }

    fn plan(&self, state: &State) -> Plan {
        let turned_off = state.turned_off;
        match state.mode {
            Mode::Off => Plan::BaseAlone,
            Mode::On if self.needs_repair() => Plan::Anew { turned_off, repairs: true },
            Mode::On => Plan::GoOn { turned_off },
            Mode::Beginning => Plan::Anew { turned_off, repairs: false },
        }
    }

    /// Whether only a base of everything in memory makes the files whole again.
    fn needs_repair(&self) -> bool {
        self.journal.has_given_up() || self.journal.refuses_writes()
    }

    /// Rewrites the file on this thread. The last rewrite also runs while the server stops.
    fn run_rewrite(
        &self,
        engine: &Engine,
        right: CutRight,
        plan: Plan,
        directory: Option<Arc<AofDirectory>>,
        is_last: bool,
    ) {
        let opened = directory.map_or_else(
            || self.open_directory(&engine.config.load()).map(Arc::new).map_err(io::Error::other),
            Ok,
        );
        let outcome = opened.and_then(|directory| {
            directory.make()?;
            let path = directory.path();
            let is_another = self.claim_directory(path).map_err(io::Error::other)?;
            if matches!(plan, Plan::GoOn { .. }) && (is_another || !directory.has_its_files()) {
                // A list there would name files that are not there. All data makes a new beginning.
                let reason = format!("{} was moved or removed", path.display());
                self.journal.refuse_writes(Some(reason.clone()));
                return Err(io::Error::other(reason));
            }
            if matches!(plan, Plan::Anew { repairs: false, .. }) {
                // A rewrite that went on when it was opened may have changed the list.
                directory.read_again().map_err(io::Error::other)?;
            }
            let (journal, files) = (&self.journal, &self.files);
            let is_wanted = || is_last || self.is_wanted(plan);
            rewrite::perform(engine, &right, journal, &directory, files, plan, is_wanted)?;
            self.collect(engine, &directory);
            Ok(directory)
        });
        self.conclude(right, plan, &outcome);
    }

    /// Whether the outcome of a rewrite is still useful.
    fn is_wanted(&self, plan: Plan) -> bool {
        let turned_off = self.state.lock().turned_off;
        !self.stopping.load(Ordering::Relaxed)
            && plan.turned_off().is_none_or(|before| before == turned_off)
    }

    /// Removes the files that a rewrite has replaced, now or before the server started.
    fn collect(&self, engine: &Engine, directory: &AofDirectory) {
        if engine.config.load().aof_disable_auto_gc {
            return;
        }
        match directory.remove_history() {
            Ok(names) => names.iter().for_each(|name| {
                let name = name.to_string_lossy();
                self.log.notice(format!("Removed the old AOF file {name}"));
            }),
            Err(error) => self.log.warning(format!("Cannot remove an old AOF file: {error}")),
        }
    }

    /// Notes the result of a rewrite, and gives back the right to read a cut.
    fn conclude(&self, right: CutRight, plan: Plan, outcome: &io::Result<Arc<AofDirectory>>) {
        let mut state = self.state.lock();
        let began = state.rewriting_since.take();
        state.rewrites.last_seconds = began.map(|began| began.elapsed().as_secs());
        let current = plan.turned_off() == Some(state.turned_off);
        match outcome {
            Ok(directory) => {
                self.log.notice("Background AOF rewrite finished successfully");
                state.rewrites.last_status = LastStatus::Ok;
                state.rewrites.failures = 0;
                state.not_before = None;
                if current {
                    state.mode = Mode::On;
                    state.directory = Some(Arc::clone(directory));
                    let path = directory.path();
                    self.claims.lock().retain(|claim| claim.covers(path));
                    self.journal.note_beginning(false);
                    self.journal.refuse_writes(None);
                    self.look_at_sizes(&mut state, directory);
                    // As `look_at_sizes`, not by the journal's length of its present file.
                    if let Ok((_, size)) = directory.sizes() {
                        state.base_size = size;
                    }
                }
            }
            Err(_) if !current && plan.turned_off().is_some() => {
                self.log.notice("Background AOF rewrite given up: appendonly was turned off");
            }
            Err(error) => {
                let reason = process::paths::reason(error);
                self.log.warning(format!("Background AOF rewrite failed: {reason}"));
                state.rewrites.last_status = LastStatus::Failed;
                state.rewrites.failures += 1;
                let lacks_base = matches!(plan, Plan::Anew { .. }) || self.needs_repair();
                let pause = match lacks_base {
                    true => retry_pause(began.map(|began| began.elapsed())),
                    false => pause_after(state.rewrites.failures),
                };
                state.not_before = Some(Instant::now() + pause);
                let begun = match plan {
                    Plan::Anew { repairs, .. } => !repairs || self.journal.refuses_writes(),
                    Plan::GoOn { .. } | Plan::BaseAlone => false,
                };
                if current && begun {
                    // A file without its base is worth nothing.
                    self.end_file();
                }
                if current && state.mode == Mode::Beginning {
                    self.journal.note_no_beginning(reason);
                    self.telling.replies.note_failure();
                }
            }
        }
        // A thread that sees that it has ended may begin the next one.
        drop(right);
        drop(state);
        self.ended.notify_all();
    }

    fn look_at_sizes(&self, state: &mut State, directory: &AofDirectory) {
        // If the size cannot be read, the previous one stays. The journal may still write what came
        // before the newest file, so its length of the present file would be that of another.
        if let Ok(size) = directory.closed_size() {
            state.closed_size = size;
        }
    }

    /// Called now and then: begins rewrites that are due.
    pub fn tick(self: &Arc<Self>, engine: &Engine) {
        let config = engine.config.load();
        let (begins_now, growth) = {
            let mut state = self.state.lock();
            let rewriting = state.rewriting_since.is_some();
            if state.mode == Mode::On
                && !rewriting
                && let Some(directory) = state.directory.clone()
            {
                self.look_at_sizes(&mut state, &directory);
            }
            let busy = rewriting || engine.saving.metrics(0).in_progress;
            self.journal.pause_syncs(busy && config.no_appendfsync_on_rewrite);
            let waits = state.not_before.is_some_and(|at| at > Instant::now());
            let growth = (state.mode == Mode::On && !waits).then(|| self.growth(&state, &config));
            let lacks_base = match state.mode {
                Mode::Off => false,
                Mode::Beginning => true,
                Mode::On => self.needs_repair(),
            };
            let begins_now = !rewriting && (state.rewrites.scheduled || (lacks_base && !waits));
            (begins_now, growth.flatten().filter(|_| !busy))
        };
        if let Some(percent) = growth.filter(|_| !begins_now) {
            self.log.notice(format!("Starting automatic rewriting of AOF on {percent}% growth"));
        }
        if begins_now || growth.is_some() {
            self.rewrite(false);
        }
    }

    /// By how many percent the file has grown, if that is enough for a rewrite.
    fn growth(&self, state: &State, config: &Config) -> Option<u64> {
        let size = state.closed_size + self.journal.file_length();
        let least = u64::from(config.auto_aof_rewrite_percentage);
        let failed = self.journal.has_failed() || self.journal.refuses_writes();
        if least == 0 || size <= config.auto_aof_rewrite_min_size || failed {
            return None;
        }
        let percent = (size * 100 / state.base_size.max(1)).saturating_sub(100);
        (percent >= least).then_some(percent)
    }

    /// Keeps a rewrite from replacing files that are being loaded.
    pub fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.files.lock()
    }

    // ---- What others ask ------------------------------------------------------------------------

    /// The metrics of INFO.
    pub fn metrics(&self) -> Metrics {
        let state = self.state.lock();
        let journal = &self.journal;
        let writing = (state.mode != Mode::Off).then(|| Writing {
            size: state.closed_size + journal.file_length(),
            base_size: state.base_size,
            pending: journal.pending(),
            pending_sync: journal.written() > journal.synced(),
            delayed_syncs: journal.metrics().delayed_syncs.get(),
            syncs: Durations::from(&journal.metrics().sync_durations),
        });
        // A file that has failed and was turned off says nothing of the writes of now.
        let failed = state.mode != Mode::Off && (journal.has_failed() || journal.refuses_writes());
        let current_seconds = state.wanted_rewrite_since().map(|began| began.elapsed().as_secs());
        Metrics {
            writing,
            last_write: if failed { LastStatus::Failed } else { LastStatus::Ok },
            rewrites: Rewrites { current_seconds, ..state.rewrites },
        }
    }

    /// CONFIG RESETSTAT.
    pub fn reset_stats(&self) {
        let metrics = self.journal.metrics();
        metrics.delayed_syncs.reset();
        metrics.sync_durations.reset();
        self.state.lock().rewrites.begun = 0;
    }
}

/// How long automatic rewrites pause after this many failures in a row.
fn pause_after(failures: u64) -> Duration {
    let Some(beyond) = failures.checked_sub(FAILURES_TOLERATED) else { return RETRY_PAUSE };
    let doublings = u32::try_from(beyond).unwrap_or(u32::MAX).min(10);
    (FAILURE_PAUSE * 2u32.pow(doublings)).min(FAILURE_PAUSE_MAX)
}

/// How long to wait before a base that is missing is written again, after an attempt that took so
/// long. An attempt may write all data; one that fails at once costs little, and the disk may be
/// well soon.
fn retry_pause(took: Option<Duration>) -> Duration {
    took.unwrap_or_default().clamp(RETRY_PAUSE, FAILURE_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After an outage a disk that is well is used at once, unless the attempts themselves take
    /// long.
    #[test]
    fn an_attempt_that_fails_at_once_is_soon_repeated() {
        let [short, long, longest] = [10, 20_000, 600_000].map(Duration::from_millis);
        assert_eq!(retry_pause(None), RETRY_PAUSE);
        assert_eq!(retry_pause(Some(short)), RETRY_PAUSE);
        assert_eq!(retry_pause(Some(long)), long);
        assert_eq!(retry_pause(Some(longest)), FAILURE_PAUSE);
    }
}
