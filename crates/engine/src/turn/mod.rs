//! What a thread brings to each batch of commands: the time, the settings, and its own counters.
//!
//! | file | what it answers |
//! |---|---|
//! | [`request`] | what comes with a command, and what is its outcome? |
//! | [`expansion`], `slots` | which commands does a request consist of, and which slots do they name? |

pub mod expansion;
pub mod request;
pub(crate) mod slots;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use resp::args::Arguments;

use crate::cluster::view::ClusterView;
use crate::command::args::KeyAt;
use crate::db::effects::{Effects, StreamUnit};
use crate::db::expiry::Expiry;
use crate::db::{EvictionClock, TurnParts};
use crate::engine::Engine;
use crate::memory::UsedMemory;
use crate::memory::candidates::Evictor;
use crate::observe::command_log::NotedFrom;
use crate::observe::hot_keys;
use crate::observe::stats::ThreadStats;
use config::Config;

/// Keys of one command that are looked at.
const KEYS_PER_COMMAND: usize = 8;

/// What a worker brings to each batch of commands.
pub struct Turn {
    /// Milliseconds of Unix time: when the last command began, or the turn.
    pub now: u64,
    /// The same in microseconds, also for versions.
    pub clock: u64,
    /// Milliseconds of [`base::clock::monotonic_us`]: for deadlines and ages, which a step of the
    /// wall clock must not change.
    pub monotonic: u64,
    /// As [`Turn::monotonic`], in microseconds.
    pub monotonic_us: u64,
    /// [`Turn::clock`] when it began, by which turns are told apart.
    pub began_at: u64,
    reading: Reading,
    /// The settings, for the whole turn.
    pub config: Arc<Config>,
    /// Which settings they are: see [`config::SharedConfig::generation`].
    config_generation: u64,
    /// The thread's counters.
    pub stats: Arc<ThreadStats>,
    /// The eviction clock of the turn.
    pub(crate) eviction_clock: EvictionClock,
    /// List elements of at least this size get a node of their own: see
    /// [`crate::observe::debug::DebugConfig`].
    pub packed_threshold: usize,
    /// What the running command does besides its reply.
    pub effects: Effects,
    /// Who decides when data expires.
    pub(crate) expiry: Expiry,
    /// The slot because of which a command has to be tried again, if it is known: see
    /// [`crate::turn::request::Outcome::Contended`].
    pub contended_slot: Option<u16>,
    /// The disk does not keep up with the journal, or with a snapshot; or a replica falls behind.
    pub(crate) writes_wait: bool,
    pub(crate) evictor: Evictor,
    pub(crate) used_memory: UsedMemory,
    /// Commands until the next one whose keys are sampled: see [`crate::observe::hot_keys`].
    keys_looked_at_in: u64,
    /// When it began.
    begun: Ticks,
    /// A script keeps the thread busy, and this turn is for other clients meanwhile.
    pub(crate) beside_script: bool,
    /// A replica refuses its clients' writes.
    pub(crate) refuses_writes: bool,
    /// See [`crate::replication::Replication::breaks`]: so many at the last look.
    pub(crate) breaks: u64,
    /// The generation of the users at the last look: see [`crate::users`].
    pub(crate) users: u64,
    /// No condition made commands be refused or wait at the last look: [`Engine::is_usual`].
    pub(crate) usual: bool,
    /// The cluster as it was at the last look, if the server is a node of one.
    pub(crate) cluster: Option<Arc<ClusterView>>,
    /// The number of that view: see [`crate::cluster::Cluster::generation`].
    cluster_generation: u64,
    /// The journal had released at least this much at the last look.
    pub(crate) released: u64,
}

/// What the clocks showed, and when they were read.
#[derive(Clone, Copy)]
struct Reading {
    clock: u64,
    monotonic_us: u64,
    at: Ticks,
}

/// A time that nobody has read stands still where it was set, as that of commands in a file does.
const NO_READING: Reading = Reading { clock: 0, monotonic_us: 0, at: Ticks::LAST };

/// Microseconds after which the clocks are read again: until then the time is reckoned from the
/// last reading.
const READING_LASTS: u64 = 1000;

impl Turn {
    /// The first turn of a thread, which INFO shows by this name.
    pub fn new(engine: &Engine, thread: &str) -> Turn {
        let mut turn = Turn::bare(engine.config.snapshot(), 0, engine.stats.register(thread));
        turn.begin(engine);
        turn
    }

    /// A turn that has looked at nothing yet.
    fn bare(config: Arc<Config>, config_generation: u64, stats: Arc<ThreadStats>) -> Turn {
        Turn {
            now: 0,
            clock: 0,
            monotonic: 0,
            monotonic_us: 0,
            began_at: 0,
            reading: NO_READING,
            eviction_clock: EvictionClock::new(&config, 0),
            expiry: Expiry::of(&config, false),
            config,
            config_generation,
            stats,
            packed_threshold: 0,
            effects: Effects::default(),
            contended_slot: None,
            writes_wait: false,
            evictor: Evictor::default(),
            used_memory: UsedMemory::default(),
            keys_looked_at_in: 0,
            begun: Ticks::default(),
            beside_script: false,
            refuses_writes: false,
            breaks: 0,
            users: 0,
            usual: false,
            cluster: None,
            cluster_generation: 0,
            released: 0,
        }
    }

    /// A turn of the same thread, in which it serves other clients while a script keeps it busy.
    pub fn beside_script(&self) -> Turn {
        let (config, stats) = (Arc::clone(&self.config), Arc::clone(&self.stats));
        Turn {
            now: self.now,
            clock: self.clock,
            monotonic: self.monotonic,
            monotonic_us: self.monotonic_us,
            began_at: self.began_at,
            eviction_clock: self.eviction_clock,
            expiry: self.expiry,
            packed_threshold: self.packed_threshold,
            beside_script: true,
            refuses_writes: self.refuses_writes,
            cluster: self.cluster.clone(),
            cluster_generation: self.cluster_generation,
            ..Turn::bare(config, self.config_generation, stats)
        }
    }

    /// A turn with settings of its own that statistics do not count: see
    /// [`crate::persistence::loading`].
    pub(crate) fn uncounted(engine: &Engine, config: Config) -> Turn {
        let stats = ThreadStats::new("", engine.commands.rows().len());
        Turn {
            packed_threshold: engine.debug.quicklist_packed_threshold.load(Relaxed),
            ..Turn::bare(Arc::new(config), engine.config.generation(), Arc::new(stats))
        }
    }

    /// Begins another turn: reads the clock and the settings.
    pub fn begin(&mut self, engine: &Engine) {
        self.read_clocks();
        self.began_at = self.clock;
        self.load_config(engine);
        self.look_at_journal(engine);
        self.start_timing();
        self.begun = self.effects.last_end;
    }

    /// Looks at everything again: others were served for long in the middle of this turn. Must be
    /// called inside the gate, as [`Turn::enter`].
    pub fn resume(&mut self, engine: &Engine) {
        self.read_clocks();
        self.load_config(engine);
        self.enter(engine);
    }

    #[cold]
    fn read_clocks(&mut self) {
        let (clock, monotonic_us) = (base::clock::now_us(), base::clock::monotonic_us());
        self.reading = Reading { clock, monotonic_us, at: Ticks::now() };
        self.set_time(clock, monotonic_us);
    }

    #[inline]
    fn set_time(&mut self, clock: u64, monotonic_us: u64) {
        (self.clock, self.monotonic_us) = (clock, monotonic_us);
        (self.now, self.monotonic) = (clock / 1000, monotonic_us / 1000);
    }

    /// Sets the time to the present, which is where the command before has ended. A command has
    /// this one time until its end, and so have all commands of a transaction or a script.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let passed = self.effects.last_end.since_ns(self.reading.at) / 1000;
        if passed >= READING_LASTS {
            self.read_clocks();
        } else if passed > 0 {
            self.set_time(self.reading.clock + passed, self.reading.monotonic_us + passed);
        }
    }

    /// What the monotonic clock shows now, in microseconds: also where the process was stopped for
    /// a while in the middle of the turn.
    #[inline]
    pub fn monotonic_now(&self) -> u64 {
        self.reading.monotonic_us + Ticks::now().since_ns(self.reading.at) / 1000
    }

    /// Stops the time at this millisecond, until the next turn begins.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn stop_time(&mut self, now: u64) {
        self.reading = Reading { clock: now * 1000, monotonic_us: now * 1000, at: Ticks::LAST };
        self.set_time(now * 1000, now * 1000);
        self.eviction_clock = EvictionClock::new(&self.config, now);
    }

    /// Ends a turn: counts how long it took.
    #[inline]
    pub fn end(&self) {
        self.stats.turns.add(1);
        self.stats.turn_nanoseconds.add(Ticks::now().since_ns(self.begun));
    }

    /// When the turn began.
    #[inline]
    pub fn begun(&self) -> Ticks {
        self.begun
    }

    /// How many commands may run before [`Turn::sample_keys`] is told of them.
    #[inline]
    pub(crate) fn commands_to_sample(&self) -> usize {
        usize::try_from(self.keys_looked_at_in).map_or(usize::MAX, |left| left.saturating_add(1))
    }

    /// Looks at the keys of one command of many. So many have run, the last of which has these.
    #[inline]
    pub(crate) fn sample_keys(
        &mut self,
        ran: u64,
        database: usize,
        argv: Arguments<'_>,
        keys: &[KeyAt],
    ) {
        match self.keys_looked_at_in.checked_sub(ran) {
            Some(left) => self.keys_looked_at_in = left,
            None => self.look_at_keys(database, argv, keys),
        }
    }

    #[cold]
    fn look_at_keys(&mut self, database: usize, argv: Arguments<'_>, keys: &[KeyAt]) {
        // From 0 to twice the average, less one for the command itself.
        self.keys_looked_at_in = base::rng::below(2 * hot_keys::GAP - 1);
        for key in keys.iter().take(KEYS_PER_COMMAND) {
            self.stats.hot_keys.note(database, argv.at(key.index as usize), self.monotonic);
        }
    }

    /// Looks at the journal and the time again. Must be called inside the gate: the journal begins
    /// to listen while the world is stopped, and no write after that may be missed. Then, too,
    /// another server begins or ceases to decide what expires.
    #[inline]
    pub fn enter(&mut self, engine: &Engine) {
        self.look_at_journal(engine);
        self.start_timing();
    }

    /// The part of [`Turn::enter`] that concerns writes.
    #[inline]
    pub(crate) fn look_at_journal(&mut self, engine: &Engine) {
        let state = engine.journal.state();
        self.effects.journaling = state.listening && self.effects.applied_to == 0;
        self.effects.journal_failed = state.failed;
        if engine.expires_elsewhere.load(Relaxed) != (self.expiry == Expiry::Elsewhere) {
            self.look_at_expiry(engine);
        }
        if engine.cluster.generation() != self.cluster_generation {
            self.look_at_cluster(engine);
        }
        let slowed = engine.replicas.slowing.until(self.monotonic).is_some();
        self.writes_wait = state.pressed || engine.keyspace.cut_is_behind() || slowed;
        self.breaks = engine.replication.breaks();
        self.users = engine.users.generation();
        self.usual = engine.is_usual(self);
        if state.defers_replies != self.effects.defers_replies {
            self.effects.defers_replies = state.defers_replies;
            let unrecorded = std::mem::take(&mut self.effects.unrecorded);
            // Nothing ever reaches the end of a journal that has failed; a write that is refused
            // there was not written.
            if !state.defers_replies {
                engine.slot_offsets.stop();
            } else if !state.failed {
                engine.slot_offsets.begin(unrecorded, || engine.journal.end());
            }
        }
    }

    #[cold]
    fn look_at_cluster(&mut self, engine: &Engine) {
        // Read before the view, which may be exchanged in between for a newer one.
        self.cluster_generation = engine.cluster.generation();
        self.cluster = engine.cluster.view();
    }

    /// Whether replies wait for the journal: see [`crate::persistence::durability`].
    #[inline]
    pub fn defers_replies(&self) -> bool {
        self.effects.defers_replies
    }

    /// Tells the journal that something was appended, if so. Must be called outside of locks,
    /// before replies leave.
    #[inline]
    pub fn announce_appends(&mut self, engine: &Engine) {
        if std::mem::take(&mut self.effects.unannounced) {
            let end = engine.journal.end();
            self.note_covered(engine.journal.notify(), end);
        }
    }

    /// The commands that follow are those of another server's stream. The journal gets their bytes
    /// as they came ([`crate::journal::Journal::append_raw`]), and is at this offset after them.
    #[inline]
    pub fn apply_up_to(&mut self, offset: u64) {
        (self.effects.applied_to, self.effects.journaling) = (offset, false);
    }

    /// The next command is the last one of this unit of that stream, which the journal gets before
    /// the command's slots are unlocked.
    pub fn append_with(&mut self, unit: StreamUnit) {
        self.effects.unit = Some(unit);
    }

    /// Takes back a unit that the journal has not got, because its last command has not run.
    pub fn take_unit(&mut self) -> Option<StreamUnit> {
        self.effects.unit.take()
    }

    /// Whether the journal has not got it yet.
    pub fn has_unit(&self) -> bool {
        self.effects.unit.is_some()
    }

    /// Whether clients of this replica may write, and what they write goes into its file.
    pub fn has_other_writers(&self, engine: &Engine) -> bool {
        !self.config.replicas_are_read_only() && engine.journal.has_file()
    }

    /// Bytes of so many commands of another server's stream are in the journal.
    pub fn note_raw_append(&mut self, commands: u64) {
        self.stats.journaled.add(commands);
        self.effects.unannounced = true;
    }

    /// Whether something was appended that the journal was not told about.
    #[inline]
    pub fn has_unannounced(&self) -> bool {
        self.effects.unannounced
    }

    /// Takes over the unfinished work of a turn beside this one.
    #[inline]
    pub fn take_over(&mut self, beside: &mut Turn) {
        let other = &mut beside.effects;
        self.effects.unannounced |= std::mem::take(&mut other.unannounced);
        self.effects.unrecorded |= std::mem::take(&mut other.unrecorded);
    }

    /// Says that the time that has passed until now belongs to no command. Each command is timed
    /// from the end of the one before, so that the clock is read once for each.
    #[inline]
    pub fn start_timing(&mut self) {
        self.effects.last_end = Ticks::now();
    }

    /// The data that a database reads, and the effects that it changes.
    #[inline]
    pub(crate) fn parts(&mut self) -> (TurnParts<'_>, &mut Effects) {
        let parts = TurnParts {
            now: self.now,
            now_us: self.clock,
            monotonic: self.monotonic,
            config: &self.config,
            cluster: self.cluster.as_deref(),
            stats: &self.stats,
            clock: self.eviction_clock,
            expiry: self.expiry,
            packed_threshold: self.packed_threshold,
        };
        (parts, &mut self.effects)
    }

    /// The number of the settings that the turn has: others have another one.
    #[inline]
    pub fn config_generation(&self) -> u64 {
        self.config_generation
    }

    /// Whether what has expired may be deleted now, though no command asked to delete it.
    pub(crate) fn may_expire(&self, engine: &Engine) -> bool {
        self.expiry.deletes_met(engine.stands_still(self.monotonic, self.effects.journal_failed))
    }

    /// Whether the settings have changed since the turn looked at them.
    pub fn has_old_config(&self, engine: &Engine) -> bool {
        self.config_generation != engine.config.generation()
            || self.expiry != self.present_expiry(engine)
    }

    #[cold]
    fn look_at_expiry(&mut self, engine: &Engine) {
        self.expiry = self.present_expiry(engine);
        self.refuses_writes =
            self.expiry == Expiry::Elsewhere && self.config.replicas_are_read_only();
    }

    fn present_expiry(&self, engine: &Engine) -> Expiry {
        Expiry::of(&self.config, engine.expires_elsewhere.load(Relaxed))
    }

    /// Looks at the settings again.
    pub(crate) fn load_config(&mut self, engine: &Engine) {
        let generation = engine.config.generation();
        if generation != self.config_generation {
            self.config_generation = generation;
            self.config = engine.config.snapshot();
            self.look_at_expiry(engine);
        }
        self.effects.noted_from = NotedFrom::new(&self.config);
        self.usual = engine.is_usual(self);
        self.eviction_clock = EvictionClock::new(&self.config, self.monotonic);
        self.packed_threshold = engine.debug.quicklist_packed_threshold.load(Relaxed);
    }
}

impl Engine {
    /// Notes an event of a thread that began at `begun`, if it took as long as
    /// `latency-monitor-threshold` asks for.
    pub(crate) fn note_latency(&self, turn: &Turn, event: &'static str, begun: Ticks) {
        let threshold = turn.config.latency_monitor_threshold;
        if threshold > 0 {
            let milliseconds = begun.elapsed_ns() / 1_000_000;
            if milliseconds >= threshold {
                self.latency.note(event, turn.now / 1000, milliseconds);
            }
        }
    }
}
