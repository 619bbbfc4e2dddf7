//! The engine: what all connections share.
//!
//! | file | what it answers |
//! |---|---|
//! | [`context`] | what is the world of one running command? |
//! | [`row`], [`registry`] | what is a command, and how is it found? |
//! | [`client_names`] | by which names do clients call commands? |
//! | [`storage`] | what does the engine ask of the data on disk? |
//! | [`busy`], `pause` | where does a thread report a slow script, and what suspends commands? |
//! | [`stop_wait`] | until when does a stop of the server wait for replicas? |
//! | [`moving_keys`] | which keys are on their way to another server? |
//!
//! The types in these files name each other: an engine has all commands, a command's handler takes
//! a context, and a context has the engine.

pub mod busy;
pub mod client_names;
pub mod context;
pub mod moving_keys;
pub mod pause;
pub mod registry;
pub mod row;
pub mod stop_wait;
pub mod storage;

pub use context::{Context, WaitFor};
pub use registry::{Family, Registry};
pub use row::{Command, Handler, Row, Serve, row};
pub use storage::Storage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use store::Keyspace;
use store::gate::{Gates, StoppedWorld};

use crate::cluster::Cluster;
use crate::command::{INTERNAL, RowId, SKIP_SLOWLOG};
use crate::content_types::ContentTypes;
use crate::db::notify::PublicationQueue;
use crate::engine::client_names::ClientNames;
use crate::engine::moving_keys::HeldKeys;
use crate::engine::pause::Pause;
use crate::engine::stop_wait::StopWait;
use crate::files::progress::Loading;
use crate::files::saving::Saving;
use crate::host::Host;
use crate::journal::Journal;
use crate::journal::backlog::{Backlog, Histories, Position};
use crate::journal::offsets::SlotOffsets;
use crate::memory::Memory;
use crate::nodes::hub::Hub;
use crate::observe::command_log::CommandLogs;
use crate::observe::debug::DebugConfig;
use crate::observe::history::{Beside, History, ThreadSeconds};
use crate::observe::latency::LatencyMonitor;
use crate::observe::stats::Stats;
use crate::replication::Replication;
use crate::script::Scripts;
use crate::script::interpreter::Interpreter;
use crate::session::attachment::Attachment;
use crate::session::choice::Choices;
use crate::session::client::Clients;
use crate::session::failover::Failover;
use crate::session::followers::Followers;
use crate::session::killing::Killings;
use crate::session::left_behind::LeftBehind;
use crate::session::pubsub::PubSub;
use crate::session::replicas::Replicas;
use crate::session::slot_moves::SlotMoves;
use crate::users::Users;
use config::{Config, PrimaryAddress, SharedConfig};

/// How often [`Engine::end_scripts`] waits for threads that do not leave their gates.
const PASSES_OF_STOP: usize = 4;

/// All that connections share.
pub struct Engine {
    /// All keys.
    pub keyspace: Keyspace<Attachment>,
    /// All gates.
    pub gates: Gates,
    /// The settings. Changed through CONFIG SET alone.
    pub config: SharedConfig,
    /// All commands.
    pub commands: &'static Registry,
    /// The names by which clients call them.
    pub client_names: ClientNames,
    /// Who may log in, and what each may do.
    pub users: Users,
    /// Connected clients.
    pub clients: Clients,
    /// Channels.
    pub pubsub: PubSub,
    /// Counters.
    pub stats: Stats,
    /// SLOWLOG.
    pub command_logs: CommandLogs,
    /// LATENCY.
    pub latency: LatencyMonitor,
    /// The last minutes.
    pub history: History,
    /// The stream of writes.
    pub journal: Arc<dyn Journal>,
    /// Saving to a file.
    pub saving: Saving,
    /// The world outside.
    pub host: Arc<dyn Host>,
    /// The storage: data on disk.
    pub storage: Arc<dyn Storage>,
    /// The start, as [`crate::turn::Turn::monotonic`].
    pub started_at: u64,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// 40 hexadecimal digits that name the history of writes: `master_replid` of INFO.
    pub replication_id: Mutex<String>,
    /// The part in replication: primary or replica.
    pub replication: Replication,
    /// The part in a cluster: which slots this server serves.
    pub cluster: Cluster,
    /// FAILOVER, while it is under way.
    pub failover: Failover,
    /// The content types of keys.
    pub content_types: Arc<ContentTypes>,
    /// Settings of DEBUG commands.
    pub debug: DebugConfig,
    /// Whether data is being loaded.
    pub loading: Loading,
    /// Scripts.
    pub scripts: Scripts,
    /// The followers that follow the journal.
    pub followers: Followers,
    /// What clients have chosen for themselves, and what has come of it.
    pub choices: Arc<Choices>,
    /// The replicas of this server.
    pub replicas: Replicas,
    /// The clients that watch the tree of `/v2/keys`.
    pub nodes: Hub,
    /// Up to where the journal has the writes of each slot.
    pub slot_offsets: SlotOffsets,
    pub(crate) publications: PublicationQueue,
    /// Memory, as far as the allocator does not know it.
    pub memory: Memory,
    /// What suspends commands.
    pub pause: Pause,
    /// A stop that waits for replicas.
    pub stop_wait: StopWait,
    /// The keys that MIGRATE moves now.
    pub held_keys: HeldKeys,
    /// The slots that are on their way to another server, or from one.
    pub slot_moves: Arc<SlotMoves>,
    /// Another server decides when data expires, and says so: see [`crate::db::expiry`]. It changes
    /// while the world is stopped.
    pub expires_elsewhere: AtomicBool,
    pub(crate) next_client_id: AtomicU64,
    pub(crate) killings: Killings,
    pub(crate) blocked_clients: AtomicU64,
    /// Keys that clients watch.
    pub watched_keys: AtomicU64,
    pub(crate) left_behind: LeftBehind,
}

/// 40 random hexadecimal digits: the name of a history of writes, or of a run.
pub fn random_id() -> String {
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
        storage: Arc<dyn Storage>,
        journal: Arc<dyn Journal>,
    ) -> Engine {
        let primary = config.replicaof.clone();
        let client_names = ClientNames::new(commands, &config.renamed_commands);
        let users = Users::new(commands.catalog(), &config.requirepass);
        let cluster = Cluster::new(config.cluster_enabled);
        Engine {
            keyspace: Keyspace::new(config.database_count()),
            gates: Gates::new(),
            config: SharedConfig::new(config),
            commands,
            client_names,
            users,
            clients: Clients::default(),
            pubsub: PubSub::default(),
            stats: Stats::new(commands.rows().len()),
            command_logs: CommandLogs::default(),
            latency: LatencyMonitor::default(),
            history: History::default(),
            journal,
            saving: Saving::new(base::clock::monotonic_ms() / 1000),
            host,
            storage,
            started_at: base::clock::monotonic_ms(),
            run_id: random_id(),
            replication_id: Mutex::new(random_id()),
            expires_elsewhere: AtomicBool::new(primary.is_some()),
            replication: Replication::new(primary),
            cluster,
            failover: Failover::default(),
            content_types: Arc::default(),
            debug: DebugConfig::default(),
            loading: Loading::default(),
            scripts: Scripts::default(),
            followers: Followers::default(),
            choices: Arc::default(),
            replicas: Replicas::default(),
            nodes: Hub::default(),
            slot_offsets: SlotOffsets::default(),
            publications: PublicationQueue::default(),
            memory: Memory::default(),
            pause: Pause::default(),
            stop_wait: StopWait::default(),
            held_keys: HeldKeys::default(),
            slot_moves: Arc::default(),
            next_client_id: AtomicU64::new(1),
            killings: Killings::default(),
            blocked_clients: AtomicU64::new(0),
            watched_keys: AtomicU64::new(0),
            left_behind: LeftBehind::default(),
        }
    }

    /// Takes a sample of the last second for [`Engine::history`], if one has passed. `threads`
    /// tells the processor time of the process's threads.
    pub fn sample_history(&self, threads: impl FnOnce() -> Option<ThreadSeconds>) {
        let monotonic_us = base::clock::monotonic_us();
        if !self.history.wants_sample(monotonic_us) {
            return;
        }
        let is_of_a_page = |row: &&Row| row.command.has(INTERNAL) && row.command.has(SKIP_SLOWLOG);
        let of_pages: Vec<RowId> =
            self.commands.rows().iter().filter(is_of_a_page).map(|row| row.id).collect();
        let beside = Beside {
            memory: self.host.used_memory() as u64,
            clients: self.clients.len() as u64,
            threads: threads(),
        };
        let now = (base::clock::now_ms(), monotonic_us);
        self.history.note(now, &self.stats, &of_pages, beside);
    }

    /// Becomes the replica of a primary, or a primary. The data stays. What clients wait for that
    /// would change data ends, if they may no longer do that.
    pub fn change_part(&self, stopped: &StoppedWorld<'_>, primary: Option<PrimaryAddress>) {
        self.change_part_as(stopped, primary, random_id());
    }

    /// The same. As a primary, its history has this name from now on.
    pub fn change_part_as(
        &self,
        _: &StoppedWorld<'_>,
        primary: Option<PrimaryAddress>,
        own: String,
    ) {
        let written = self.journal.end();
        self.expires_elsewhere.store(primary.is_some(), Relaxed);
        self.nodes.begin_term(if primary.is_none() { written } else { 0 });
        match primary {
            Some(primary) => {
                let histories = self.journal.changes().filter(|own| own.is_on());
                let histories = histories.and_then(Backlog::histories);
                let own =
                    histories.map(|own| Position { history: own.present, offset: own.newest });
                self.replication.begin_to_follow(primary, written, own);
            }
            None => {
                let history = std::mem::replace(&mut *self.replication_id.lock(), own.clone());
                let offset = self.replication.begin_to_lead(history, written);
                self.replicas.leave_behind();
                // A file may go on in it, even if nothing is kept for followers.
                let has_history = |own: &Backlog| own.is_on() || own.histories().is_some();
                let is_kept = self.journal.changes().is_some_and(has_history);
                if is_kept {
                    // Replicas of the primary go on here, if there is no gap.
                    self.adopt_history(Position { history: own, offset }, None);
                }
                self.replication.note_break();
                if is_kept {
                    // The next effect names its database: some may not know which one is selected.
                    self.journal.append_raw(b"", None);
                }
            }
        }
    }

    /// The data are others now than those to which the stream has led. A primary begins another
    /// history, behind a gap, so that its replicas get a copy.
    pub fn begin_anew(&self, _: &StoppedWorld<'_>) {
        if self.replication.is_replica() {
            return self.replication.note_difference();
        }
        let (written, offset) = (self.journal.end(), self.stream().newest + 1);
        self.replication.begin_anew(offset, written);
        self.replicas.leave_behind();
        let history = random_id();
        self.replication_id.lock().clone_from(&history);
        self.adopt_history(Position { history, offset }, None);
        self.replication.note_break();
        self.journal.append_raw(b"", None);
    }

    /// The primary of this term has another name for the history of the data, which was `known`.
    pub fn rename_history(&self, _: &StoppedWorld<'_>, term: u64, known: String, history: String) {
        if self.replication.term() != term {
            return;
        }
        self.replication.note_renamed(known, &history);
        self.replicas.leave_behind();
        self.replication_id.lock().clone_from(&history);
        let offset = self.replication.applied();
        self.adopt_history(Position { history, offset }, self.journal.selected());
        self.replication.note_break();
    }

    /// What was loaded at the start belongs to this position of a history, after which this
    /// database is selected. The history goes on here if this is a replica, and positions of it
    /// stay valid if another one grows out of it. The world is stopped.
    pub fn go_on_after(&self, position: Position, selected: Option<usize>) {
        self.adopt_history(position.clone(), selected);
        let history = match self.replication.is_replica() {
            true => {
                self.replication.note_loaded(&position);
                position.history
            }
            false => {
                let history = random_id();
                let offset = position.offset;
                self.replication.set_ahead(offset.wrapping_sub(self.journal.end()));
                self.adopt_history(Position { history: history.clone(), offset }, None);
                self.journal.append_raw(b"", None);
                history
            }
        };
        *self.replication_id.lock() = history;
    }

    /// The position of the data in the stream, if the stream is counted, and the database that is
    /// selected there. The world is stopped.
    pub fn stream_position(&self) -> Option<(Position, Option<usize>)> {
        let histories = self.journal.changes().filter(|own| own.is_on())?.histories()?;
        let position = Position { history: histories.present, offset: histories.newest };
        Some((position, self.journal.selected()))
    }

    /// The position up to which an append-only file has the stream of a primary, if the file was
    /// loaded and had one, and the database that is selected there. Nothing was written since.
    /// `noted` is where the stream is known to have ended when the server was stopped.
    pub fn loaded_position(&self, noted: Option<&Position>) -> Option<(Position, Option<usize>)> {
        // Each start begins a history of its own, which the file may have noted and not used.
        let position = self.journal.changes().filter(|own| own.is_on())?.last_used(noted)?;
        Some((position, self.journal.selected()))
    }

    /// The offset in the history of writes: `master_repl_offset` of INFO.
    pub fn replication_offset(&self) -> u64 {
        self.stream().newest
    }

    /// Sets the interpreter of scripts.
    #[must_use]
    pub fn with_interpreter(mut self, interpreter: Arc<dyn Interpreter>) -> Engine {
        self.scripts.interpreter = interpreter;
        self
    }

    /// A number for a new client.
    pub fn next_client_id(&self) -> u64 {
        self.next_client_id.fetch_add(1, Relaxed)
    }

    /// The stream of writes, as INFO and ROLE show it: its histories, and what is kept of it.
    pub fn stream(&self) -> Histories {
        let kept = self.journal.changes().and_then(|own| {
            let is_on = own.is_on();
            let histories = own.histories()?;
            if is_on {
                return Some(histories);
            }
            // Its file goes on in the history, and nothing is kept for followers.
            let end = own.in_history(self.journal.end());
            Some(Histories { oldest: end, newest: end, ..histories })
        });
        kept.unwrap_or_else(|| {
            let end = self.replication.offset(self.journal.end());
            let earlier = self.replication.earlier();
            Histories {
                present: self.replication_id.lock().clone(),
                oldest: end,
                newest: end,
                previous: earlier.map(|(history, second)| Position {
                    history,
                    offset: second.saturating_sub(1),
                }),
            }
        })
    }

    /// Nobody is going to read the stream, unless its history goes on in a file: what is written
    /// then is not counted, and is of no history that anybody knows.
    pub fn leave_history(&self) {
        *self.replication_id.lock() = random_id();
    }

    /// An offset of the journal as replicas count it. One that has said nothing is at 0.
    pub fn shown_offset(&self, offset: u64) -> u64 {
        let changes = self.journal.changes().filter(|_| offset > 0);
        changes.map_or(offset, |own| own.in_history(offset))
    }

    /// Whether CLIENT PAUSE or a stop of the server suspends writes. Meanwhile nothing expires and
    /// nothing is evicted.
    pub fn is_paused(&self, now: u64) -> bool {
        self.pause.is_on(now)
    }

    /// Whether the data is to stand still at this millisecond of the monotonic clock, because of a
    /// pause, or because the journal gets no more writes. Then nothing is deleted that no command
    /// asked to delete.
    pub(crate) fn stands_still(&self, now: u64, journal_failed: bool) -> bool {
        self.is_paused(now) || journal_failed
    }

    /// The server is about to stop: suspends all writes, even after CLIENT UNPAUSE, so that the
    /// data stands still. Waits for scripts that run, and calls `meanwhile` again and again.
    pub fn stop_writes(&self, meanwhile: impl FnMut()) {
        let _stopped = self.gates.close_meanwhile(meanwhile);
        self.pause.set_stopping(true);
    }

    /// Ends all scripts in the middle, also those that have written: the server stops without
    /// saving. Writes are suspended first, so that none follows from half of what a script would
    /// have done. The caller is inside no gate.
    pub fn end_scripts(&self) {
        if self.scripts.slow.is_stopping() {
            return;
        }
        self.pause.set_stopping(true);
        // A command that has found no pause may be about to lock its slots.
        let _ = (0..PASSES_OF_STOP).any(|_| self.gates.pass());
        self.scripts.slow.stop();
    }

    /// Ends [`Engine::stop_writes`]. Commands that CLIENT PAUSE suspends stay suspended.
    pub fn let_writes_go_on(&self) {
        {
            let _stopped = self.gates.stop_the_world();
            self.pause.set_stopping(false);
        }
        self.wake_all_clients();
    }

    /// Has every connection check again whether it is still suspended: it is not told of the end.
    pub fn wake_all_clients(&self) {
        for client in self.clients.all() {
            self.host.wake(&client);
        }
    }

    /// The `save` rule that asks for a file now, at this second: (changes, seconds).
    pub fn save_to_begin(&self, now: u64) -> Option<(u32, u64)> {
        if self.loading.is_on() {
            return None;
        }
        self.saving.rule_met(&self.config.load(), self.dirty(), now)
    }

    /// Changes since data was saved, as `rdb_changes_since_last_save` counts them.
    pub fn dirty(&self) -> u64 {
        self.stats.changes().saturating_sub(self.saving.saved_changes())
    }
}
