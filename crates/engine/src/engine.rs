//! The engine: all that connections share, and the world outside behind a trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use base::clock::Ticks;
use parking_lot::Mutex;
use store::Keyspace;
use store::gate::{Closed, Gates, Presence};
use store::reserve::Reservation;

use resp::args::Arguments;

use crate::handler::args::KeyAt;
use crate::handler::db::EvictionClock;
use crate::observe::latency::LatencyMonitor;
use crate::observe::slowlog::SlowLog;
use crate::observe::stats::{Stats, ThreadStats};
use crate::persistence::append_only::{self, RewriteAnswer};
use crate::persistence::durability::{SlotOffsets, SyncWait};
use crate::persistence::journal::Journal;
use crate::persistence::loading::{LoadFailed, Loading, Source};
use crate::persistence::saving::{Accepted, Refusal, SaveFailed, SaveRequest, Saving};
use crate::reclaim::eviction::{Evictor, Memory, UsedMemory};
use crate::registry::{Registry, Row};
use crate::run::effects::Effects;
use crate::session::client::{Client, Clients};
use crate::session::pubsub::PubSub;
use crate::wait::left_behind::LeftBehind;
use crate::wait::waiting::{Attachment, Waiter};
use config::{Apply, Config, SharedConfig};

/// Something that a slow disk may hold up, done away from the workers. Returns the reply.
pub type Errand = Box<dyn FnOnce(&Engine) -> Vec<u8> + Send>;

/// The world outside: what the engine asks of whoever runs it.
///
/// Through [`Apply`], changed settings take effect there too (listening ports, log level, ...).
pub trait Host: Apply + Send + Sync {
    /// Tells a client's worker to look at its inbox.
    fn wake(&self, client: &Client);

    /// Frees something large in the background.
    fn drop_later(&self, garbage: Box<dyn Send>);

    /// Bytes that the allocator has given out: what the calling thread has up to now, the others as
    /// of the last time that they said so.
    fn used_memory(&self) -> usize;

    /// Bytes that the calling thread has ever allocated, less those that it has freed. Cheap; only
    /// differences mean something.
    fn memory_balance(&self) -> i64;

    /// Bytes of tables that are out of use and not freed yet: see [`store::table::retire`].
    fn retired_memory(&self) -> usize {
        0
    }

    /// The allocator's and the system's view of memory, for INFO and MEMORY.
    fn memory(&self) -> MemoryFigures;

    /// What the process has used of the processors.
    fn cpu_seconds(&self) -> CpuSeconds;

    /// Gives unused memory back to the system: MEMORY PURGE.
    fn purge_memory(&self);

    /// Reads the file that the server was configured from, empty when it has gone meanwhile:
    /// CONFIG REWRITE. Not called when [`ProcessFacts::config_file`] is empty.
    fn read_config_file(&self) -> Result<Vec<u8>, String>;

    /// Replaces that file, all or nothing.
    fn write_config_file(&self, text: &[u8]) -> Result<(), String>;

    /// Writes a line to the log.
    fn log(&self, level: LogLevel, line: &str);

    /// Begins to save all data to the file that the settings name.
    ///
    /// # Errors
    /// Why it does not.
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal>;

    /// Begins to write the append-only file anew, or only sees to it that this happens `soon`.
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer;

    /// How the append-only file is.
    fn append_only(&self) -> append_only::Figures;

    /// Forgets what the append-only file has counted: CONFIG RESETSTAT.
    fn reset_append_only_stats(&self);

    /// Makes each write to the append-only file take so much longer: DEBUG AOF-FLUSH-SLEEP.
    fn delay_append_only(&self, delay: Duration);

    /// Saves all data to that file, while nothing changes: DEBUG RELOAD.
    ///
    /// # Errors
    /// The log says why.
    fn save_standing(&self, engine: &Engine, closed: &Closed<'_>) -> Result<(), SaveFailed>;

    /// All data has just been removed, and these are the changes up to that: FLUSHALL. A file that
    /// is being written is of no use any more. Returns whether a file has to say that there is no
    /// data: [`Host::save_emptied`].
    fn note_emptied(&self, engine: &Engine, changes: u64, closed: &Closed<'_>) -> bool;

    /// Begins to save that there is no data, and answers `waiter` with nothing when that is done: its
    /// reply is written already.
    fn save_emptied(&self, waiter: Arc<Waiter>);

    /// Has a thread of its own do what a disk may make slow, and answers `waiter` with what that
    /// returns.
    fn do_aside(&self, waiter: Arc<Waiter>, errand: Errand);

    /// Loads data beside what is there: DEBUG RELOAD and LOADAOF. What was loaded until an error
    /// stays.
    ///
    /// # Errors
    /// A file cannot be loaded; the log says why.
    fn load_data(
        &self,
        engine: &Engine,
        source: Source,
        closed: &Closed<'_>,
    ) -> Result<(), LoadFailed>;

    /// Begins to stop the server. The client gets no reply: its connection closes.
    ///
    /// When the data is to be saved and cannot be, the server goes on, and the client is answered.
    fn shut_down(&self, request: Shutdown, client: Option<Arc<Waiter>>);

    /// Ends the process at once, with a crash report: DEBUG SEGFAULT, ASSERT, PANIC.
    fn crash(&self, reason: &str) -> !;

    /// What INFO says about the process and the machine. None of it changes while it runs.
    fn process(&self) -> ProcessFacts;
}

/// The process and the machine, as INFO's section "server" shows them.
#[derive(Clone, Default, Debug)]
pub struct ProcessFacts {
    /// System, release and machine ("Linux 6.1.0 x86_64").
    pub os: String,
    /// What workers wait for sockets with ("epoll").
    pub multiplexing_api: &'static str,
    /// What spans of time are measured with ("POSIX clock_gettime").
    pub monotonic_clock: &'static str,
    /// The compiler's version ("rustc 1.95.0"), empty when unknown.
    pub compiler: &'static str,
    /// The source's commit, empty when unknown.
    pub git_sha1: &'static str,
    /// Whether the source differed from that commit.
    pub git_dirty: bool,
    /// The process's number.
    pub process_id: u32,
    /// Who started the server: "upstart", "systemd" or "no".
    pub supervised: &'static str,
    /// The absolute path of the program.
    pub executable: String,
    /// The absolute path of the configuration file, empty when there is none.
    pub config_file: String,
    /// The allocator and its version ("jemalloc-5.3.0").
    pub allocator: &'static str,
    /// Threads that run commands.
    pub workers: usize,
}

/// Seconds of processor time.
#[derive(Clone, Copy, Default, Debug)]
pub struct CpuSeconds {
    /// The whole process, in the kernel.
    pub system: f64,
    /// The whole process, outside of it.
    pub user: f64,
    /// Finished children, in the kernel.
    pub children_system: f64,
    /// Finished children, outside of it.
    pub children_user: f64,
    /// The thread that the process began with, in the kernel.
    pub main_thread_system: f64,
    /// The thread that the process began with, outside of it.
    pub main_thread_user: f64,
}

/// Levels of the log, as `loglevel` names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names of `loglevel`")]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// How SHUTDOWN wants the server to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// SAVE, NOSAVE, or what the configuration says.
    pub save: Option<bool>,
    /// Do not wait for replicas.
    pub now: bool,
    /// Stop even if saving fails.
    pub force: bool,
}

/// Memory in bytes, from the allocator and the system.
#[derive(Clone, Copy, Default, Debug)]
#[expect(missing_docs, reason = "the allocator's own words")]
pub struct MemoryFigures {
    pub allocated: usize,
    pub active: usize,
    pub resident: usize,
    pub retained: usize,
    pub mapped: usize,
    pub metadata: usize,
    pub process_resident: usize,
    pub system_total: usize,
}

/// By what right a command runs.
#[derive(Clone, Copy)]
pub enum Authority<'g> {
    /// It locks the slots that it names.
    Ordinary(Presence<'g>),
    /// It may keep newcomers away from the slots that it needs: see [`store::reserve`].
    Program(&'g Reservation, Presence<'g>),
    /// All gates are closed: everything is its own.
    Closed(&'g Closed<'g>),
}

impl<'g> Authority<'g> {
    /// The proof that it may lock slots at all.
    #[inline]
    pub fn presence(self) -> Presence<'g> {
        match self {
            Authority::Ordinary(presence) | Authority::Program(_, presence) => presence,
            Authority::Closed(closed) => closed.presence(),
        }
    }

    /// What it keeps newcomers away with, if it does.
    pub fn reservation(self) -> Option<&'g Reservation> {
        match self {
            Authority::Program(reservation, _) => Some(reservation),
            Authority::Ordinary(_) | Authority::Closed(_) => None,
        }
    }
}

/// What a worker brings to each batch of commands.
pub struct Turn {
    /// Milliseconds of Unix time.
    pub now: u64,
    /// Microseconds of Unix time, for versions.
    pub clock: u64,
    /// Milliseconds of [`base::clock::steady_us`]: for deadlines and ages, which a step of the wall
    /// clock must not change.
    pub steady: u64,
    /// As [`Turn::steady`], in microseconds.
    pub steady_us: u64,
    /// The settings, for the whole turn.
    pub config: Arc<Config>,
    /// Which settings they are: see [`SharedConfig::generation`].
    config_generation: u64,
    /// The thread's counters.
    pub stats: Arc<ThreadStats>,
    /// The eviction clock of the turn.
    pub(crate) eviction_clock: EvictionClock,
    /// Elements of lists from this size on get a node of their own: see [`DebugSettings`].
    pub(crate) packed_threshold: usize,
    pub(crate) effects: Effects,
    /// The slot for which a command has to be tried again, as far as it is known: see
    /// [`Outcome::Contended`].
    pub contended_slot: Option<u16>,
    /// The disk does not keep up with the journal, or with a snapshot.
    pub(crate) writes_wait: bool,
    pub(crate) evictor: Evictor,
    pub(crate) used_memory: UsedMemory,
}

impl Turn {
    /// The first turn of a thread, which INFO shows by this name.
    pub fn new(engine: &Engine, thread: &str) -> Turn {
        let config = engine.config.snapshot();
        let mut turn = Turn {
            now: 0,
            clock: 0,
            steady: 0,
            steady_us: 0,
            eviction_clock: EvictionClock::new(&config, 0),
            config,
            config_generation: 0,
            stats: engine.stats.register(thread),
            packed_threshold: 0,
            effects: Effects::default(),
            contended_slot: None,
            writes_wait: false,
            evictor: Evictor::default(),
            used_memory: UsedMemory::default(),
        };
        turn.begin(engine);
        turn
    }

    /// A turn with settings of its own, of which no statistics know: see [`crate::persistence::loading`].
    pub(crate) fn uncounted(engine: &Engine, config: Config) -> Turn {
        Turn {
            now: 0,
            clock: 0,
            steady: 0,
            steady_us: 0,
            eviction_clock: EvictionClock::new(&config, 0),
            config: Arc::new(config),
            config_generation: engine.config.generation(),
            stats: Arc::new(ThreadStats::new("", engine.commands.rows().len())),
            packed_threshold: engine.debug.quicklist_packed_threshold.load(Relaxed),
            effects: Effects::default(),
            contended_slot: None,
            writes_wait: false,
            evictor: Evictor::default(),
            used_memory: UsedMemory::default(),
        }
    }

    /// Begins another turn: looks at the clock and the settings.
    pub fn begin(&mut self, engine: &Engine) {
        self.clock = base::clock::now_us();
        self.now = self.clock / 1000;
        self.steady_us = base::clock::steady_us();
        self.steady = self.steady_us / 1000;
        self.load_settings(engine);
        self.look_at_journal(engine);
        self.start_timing();
    }

    /// Looks at the journal and the time again. To be called inside the gate: the journal begins to
    /// listen while all gates are closed, and no write behind that may be missed.
    #[inline]
    pub fn enter(&mut self, engine: &Engine) {
        self.look_at_journal(engine);
        self.start_timing();
    }

    /// The part of [`Turn::enter`] that concerns writes.
    #[inline]
    pub(crate) fn look_at_journal(&mut self, engine: &Engine) {
        let state = engine.journal.state();
        self.effects.journaling = state.listening;
        self.effects.journal_failed = state.failed;
        self.writes_wait = state.pressed || engine.keyspace.cut_is_behind();
        if state.holds_replies != self.effects.holds_replies {
            self.effects.holds_replies = state.holds_replies;
            let unaccounted = std::mem::take(&mut self.effects.unaccounted);
            // To the end of a journal that has failed nothing ever gets; what is refused there was
            // not written.
            if !state.holds_replies {
                engine.slot_offsets.stop();
            } else if !state.failed {
                engine.slot_offsets.begin(unaccounted, || engine.journal.end());
            }
        }
    }

    /// Whether replies wait for the journal: see [`crate::persistence::durability`].
    #[inline]
    pub fn holds_replies(&self) -> bool {
        self.effects.holds_replies
    }

    /// Tells the journal that something was appended, if so. To be called outside of locks, before
    /// replies leave.
    #[inline]
    pub fn announce_appends(&mut self, engine: &Engine) {
        if std::mem::take(&mut self.effects.unannounced) {
            engine.journal.nudge();
        }
    }

    /// Says that time which passed until now belongs to no command: each is timed from the end of
    /// the one before, so that the clock is read once for each.
    #[inline]
    pub fn start_timing(&mut self) {
        self.effects.last_end = Ticks::now();
    }

    /// Looks at the settings again.
    pub(crate) fn load_settings(&mut self, engine: &Engine) {
        let generation = engine.config.generation();
        if generation != self.config_generation {
            self.config_generation = generation;
            self.config = engine.config.snapshot();
        }
        self.eviction_clock = EvictionClock::new(&self.config, self.steady);
        self.packed_threshold = engine.debug.quicklist_packed_threshold.load(Relaxed);
    }
}

/// A command to run.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// Its arguments, the name first. Never empty.
    pub argv: Arguments<'r>,
    /// What [`Engine::prepare`] found.
    pub row: Option<&'static Row>,
    /// Its keys, hashed by [`Engine::prepare`], in the order of the arguments.
    pub keys: &'r [KeyAt],
}

/// What became of a command.
pub enum Outcome {
    /// It ran, or was refused: the reply is written.
    Done,
    /// Its client waits. Nothing was written; the inbox will have the reply.
    /// The waiter is to be claimed at its deadline, or when the connection goes.
    Blocked(Arc<Waiter>),
    /// A slot stayed locked. Nothing was touched: try again later. Which slot that was is in
    /// [`Turn::contended_slot`].
    Contended,
    /// It has to run as a program. Nothing was touched.
    NeedsProgram,
    /// It has to run with all gates closed. Nothing was touched.
    NeedsGates,
    /// It is held back until this time, as [`Turn::steady`]: by CLIENT PAUSE, or because the disk does not keep up.
    /// Nothing was touched.
    Paused(u64),
    /// Its client waits until its writes are durable. Nothing was written: whoever runs it answers,
    /// when that is over.
    AwaitsSync(SyncWait),
}

/// What holds commands back: CLIENT PAUSE, and a stop of the server that is under way. Neither ends
/// the other. Written with all gates closed, or by UNPAUSE inside its gate.
#[derive(Default)]
pub(crate) struct Pause {
    /// Until when, as [`Turn::steady`], something holds at least writes back: the one thing to look at
    /// while nothing does.
    until: AtomicU64,
    /// Until when CLIENT PAUSE asks for it.
    asked_until: AtomicU64,
    /// CLIENT PAUSE asks for writes alone.
    asked_writes_only: AtomicBool,
    /// A stop holds writes back, for as long as it takes.
    stopping: AtomicBool,
}

impl Pause {
    /// CLIENT PAUSE for so many milliseconds. One that is on becomes neither shorter nor weaker.
    pub(crate) fn extend(&self, now: u64, timeout: u64, writes_only: bool) {
        let running = self.asked_until.load(Relaxed);
        let still_all = running > now && !self.asked_writes_only.load(Relaxed);
        self.asked_until.store(running.max(now.saturating_add(timeout)), Relaxed);
        self.asked_writes_only.store(writes_only && !still_all, Relaxed);
        self.combine();
    }

    /// CLIENT UNPAUSE.
    pub(crate) fn end(&self) {
        self.asked_until.store(0, Relaxed);
        self.combine();
    }

    /// Whether a stop holds writes back.
    fn set_stopping(&self, stopping: bool) {
        self.stopping.store(stopping, Relaxed);
        self.combine();
    }

    fn combine(&self) {
        let until = match self.stopping.load(Relaxed) {
            true => u64::MAX,
            false => self.asked_until.load(Relaxed),
        };
        self.until.store(until, Relaxed);
    }

    /// Whether at least writes are held back.
    #[inline]
    pub(crate) fn is_on(&self, now: u64) -> bool {
        self.until.load(Relaxed) > now
    }

    /// Until when a command is held back, by its being a write or not.
    #[inline]
    pub(crate) fn holds(&self, now: u64, writes: impl FnOnce() -> bool) -> Option<u64> {
        if self.is_on(now) { self.holds_now(now, writes()) } else { None }
    }

    #[cold]
    fn holds_now(&self, now: u64, writes: bool) -> Option<u64> {
        if writes {
            return Some(self.until.load(Relaxed));
        }
        let asked = self.asked_until.load(Relaxed);
        (asked > now && !self.asked_writes_only.load(Relaxed)).then_some(asked)
    }
}

/// See the module's text.
pub struct Engine {
    /// All keys.
    pub keyspace: Keyspace<Attachment>,
    /// All gates.
    pub gates: Gates,
    /// The settings. Changed through CONFIG SET alone.
    pub config: SharedConfig,
    /// All commands.
    pub commands: &'static Registry,
    /// Connected clients.
    pub clients: Clients,
    /// Channels.
    pub pubsub: PubSub,
    /// Counters.
    pub stats: Stats,
    /// SLOWLOG.
    pub slowlog: SlowLog,
    /// LATENCY.
    pub latency: LatencyMonitor,
    /// The stream of writes.
    pub journal: Arc<dyn Journal>,
    /// Saving to a file.
    pub saving: Saving,
    /// The world outside.
    pub host: Arc<dyn Host>,
    /// The start, as [`Turn::steady`].
    pub started_at: u64,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// 40 hexadecimal digits that name the history of writes: `master_replid` of INFO.
    pub replication_id: Mutex<String>,
    /// What DEBUG commands have set.
    pub debug: DebugSettings,
    /// Whether data is being loaded.
    pub loading: Loading,
    pub(crate) slot_offsets: SlotOffsets,
    pub(crate) memory: Memory,
    pub(crate) pause: Pause,
    pub(crate) next_client_id: AtomicU64,
    pub(crate) blocked_clients: AtomicU64,
    /// When the log last mentioned a connection that speaks another protocol, as [`Turn::steady`].
    pub(crate) foreign_logged_at: AtomicU64,
    pub(crate) left_behind: LeftBehind,
}

/// Switches that DEBUG commands flip.
pub struct DebugSettings {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON.
    pub pause_cron: AtomicBool,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: elements of lists from this many bytes on get a node of
    /// their own.
    pub quicklist_packed_threshold: AtomicUsize,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: the checksums of RDB files and of RESTORE's payload may
    /// be any.
    pub skip_checksum_validation: AtomicBool,
}

/// [`DebugSettings::quicklist_packed_threshold`] unless DEBUG sets it.
pub(crate) const DEFAULT_PACKED_THRESHOLD: usize = 1 << 30;

impl Default for DebugSettings {
    fn default() -> DebugSettings {
        DebugSettings {
            active_expire: AtomicBool::new(true),
            pause_cron: AtomicBool::new(false),
            quicklist_packed_threshold: AtomicUsize::new(DEFAULT_PACKED_THRESHOLD),
            skip_checksum_validation: AtomicBool::new(false),
        }
    }
}

/// 40 random hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 20];
    base::rng::with(|rng| rng.fill(&mut bytes));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Engine {
    /// An engine with an empty keyspace.
    pub fn new(
        config: Config,
        commands: &'static Registry,
        host: Arc<dyn Host>,
        journal: Arc<dyn Journal>,
    ) -> Engine {
        Engine {
            keyspace: Keyspace::new(config.databases),
            gates: Gates::new(),
            config: SharedConfig::new(config),
            commands,
            clients: Clients::default(),
            pubsub: PubSub::default(),
            stats: Stats::new(commands.rows().len()),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            journal,
            saving: Saving::new(base::clock::steady_ms() / 1000),
            host,
            started_at: base::clock::steady_ms(),
            run_id: random_id(),
            replication_id: Mutex::new(random_id()),
            debug: DebugSettings::default(),
            loading: Loading::default(),
            slot_offsets: SlotOffsets::default(),
            memory: Memory::default(),
            pause: Pause::default(),
            next_client_id: AtomicU64::new(1),
            blocked_clients: AtomicU64::new(0),
            foreign_logged_at: AtomicU64::new(0),
            left_behind: LeftBehind::default(),
        }
    }

    /// A number for a new client.
    pub fn next_client_id(&self) -> u64 {
        self.next_client_id.fetch_add(1, Relaxed)
    }

    /// Whether writes are held back, by CLIENT PAUSE or a stop: nothing expires and nothing is
    /// evicted meanwhile.
    pub fn is_paused(&self, now: u64) -> bool {
        self.pause.is_on(now)
    }

    /// The server is about to stop: holds all writes back, whatever CLIENT UNPAUSE says, so that
    /// the data stands still.
    pub fn hold_writes(&self) {
        let _closed = self.gates.close();
        self.pause.set_stopping(true);
    }

    /// Ends [`Engine::hold_writes`]. What CLIENT PAUSE holds back stays so.
    pub fn let_writes_go_on(&self) {
        {
            let _closed = self.gates.close();
            self.pause.set_stopping(false);
        }
        self.wake_all_clients();
    }

    /// Has every connection look again at what holds it back: it does not hear of the end.
    pub(crate) fn wake_all_clients(&self) {
        for client in self.clients.all() {
            self.host.wake(&client);
        }
    }

    /// Changes since data was saved, as `rdb_changes_since_last_save` counts them.
    pub fn dirty(&self) -> u64 {
        self.stats.changes().saturating_sub(self.saving.saved_changes())
    }
}
