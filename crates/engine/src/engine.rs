//! The engine, which has what all connections share; the context that a handler gets; and what a
//! command is. These types name each other, so they are here together; the other rooms act on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use resp::args::Arguments;
use resp::reply::Reply;
use store::gate::{Closed, Gates};
use store::{Key, Keyspace};

use crate::changes::listeners::Listeners;
use crate::command::names::Names;
use crate::command::{RowId, Spec};
use crate::handler::args::Args;
use crate::handler::db::Db;
use crate::handler::error::{CommandError, CommandResult};
use crate::host::Host;
use crate::http::ContentTypes;
use crate::nodes::hub::Hub;
use crate::observe::command_log::CommandLogs;
use crate::observe::latency::LatencyMonitor;
use crate::observe::notify::NewsQueue;
use crate::observe::stats::Stats;
use crate::persistence::append_only::{self, RewriteAnswer};
use crate::persistence::journal::Journal;
use crate::persistence::offsets::SlotOffsets;
use crate::persistence::progress::{LoadFailed, Loading, Source};
use crate::persistence::saving::{Accepted, Refusal, SaveFailed, SaveRequest, Saving};
use crate::reclaim::memory::Memory;
use crate::run::authority::Authority;
use crate::run::busy::Busy;
use crate::run::pause::Pause;
use crate::script::Scripts;
use crate::script::interpreter::Interpreter;
use crate::session::Session;
use crate::session::client::Clients;
use crate::session::killing::Killings;
use crate::session::pubsub::PubSub;
use crate::wait::left_behind::LeftBehind;
use crate::wait::waiting::{Attachment, Waiter};
use config::{Config, SharedConfig};

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
    /// The stream of writes.
    pub journal: Arc<dyn Journal>,
    /// Saving to a file.
    pub saving: Saving,
    /// The world outside.
    pub host: Arc<dyn Host>,
    /// The storage: data on disk.
    pub storage: Arc<dyn Storage>,
    /// The start, as [`crate::run::turn::Turn::steady`].
    pub started_at: u64,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// 40 hexadecimal digits that name the history of writes: `master_replid` of INFO.
    pub replication_id: Mutex<String>,
    /// The content types of keys.
    pub content_types: Arc<ContentTypes>,
    /// Settings of DEBUG commands.
    pub debug: DebugSettings,
    /// Whether data is being loaded.
    pub loading: Loading,
    /// Scripts.
    pub scripts: Scripts,
    /// The listeners that follow the journal.
    pub listeners: Listeners,
    /// The clients that watch the tree of `/v2/keys`.
    pub nodes: Hub,
    pub(crate) slot_offsets: SlotOffsets,
    pub(crate) news: NewsQueue,
    pub(crate) memory: Memory,
    pub(crate) pause: Pause,
    pub(crate) next_client_id: AtomicU64,
    pub(crate) killings: Killings,
    pub(crate) blocked_clients: AtomicU64,
    /// Keys that clients watch.
    pub(crate) watched_keys: AtomicU64,
    /// When the log last mentioned a connection with another protocol, as
    /// [`crate::run::turn::Turn::steady`].
    pub(crate) foreign_logged_at: AtomicU64,
    pub(crate) left_behind: LeftBehind,
}

/// The world of one running command.
pub struct Context<'a> {
    /// The keys that the command named.
    pub db: Db<'a>,
    /// Where the reply goes.
    pub reply: Reply<'a>,
    /// The connection.
    pub session: &'a mut Session,
    /// Everything else.
    pub engine: &'a Engine,
    /// The command that runs.
    pub row: &'static Row,
    /// Its authority: ordinary locks, as a program, or with all gates closed.
    pub authority: Authority<'a>,
    /// Inside EXEC, or while a waiter is served: no command blocks there.
    pub(crate) nested: bool,
    /// Is told of a script that takes long.
    pub(crate) busy: Option<&'a dyn Busy>,
    /// The client is going to wait.
    pub(crate) block: Option<Waiter>,
}

/// Runs a command whose checks have passed and whose slots are locked.
pub type Handler = fn(&mut Context<'_>, &mut Args<'_>) -> CommandResult;

/// Tries to serve a blocking command from one of its keys, with the command's arguments. Writes
/// the reply and returns true, or returns false when the key has nothing for it.
pub type Serve = fn(&mut Context<'_>, &Key<'_>, Arguments<'_>) -> Result<bool, CommandError>;

/// A command: its spec and its handler.
pub struct Command {
    /// What is known of it.
    pub spec: Spec,
    /// The function that runs it.
    pub handler: Handler,
    /// Serves a client that waits in it for a key.
    pub serve: Option<Serve>,
    /// Subcommands.
    pub subcommands: &'static [Command],
}

/// A row with its place.
pub struct Row {
    /// Its place in [`Registry::rows`].
    pub id: RowId,
    /// The row.
    pub command: &'static Command,
    /// Its only key, if it has one, is the argument after its name, as for most commands.
    pub(crate) one_key: bool,
    /// It may take the short path: see `run/plain.rs`.
    pub(crate) plain: bool,
}

/// All commands that an engine knows: see [`crate::registry`].
pub struct Registry {
    pub(crate) rows: &'static [Row],
    pub(crate) names: Names<&'static Row>,
    pub(crate) http: Option<HttpRows>,
}

/// The internal commands that requests of HTTP are made of.
pub struct HttpRows {
    /// GET of a key.
    pub get: &'static Row,
    /// GET of many keys.
    pub mget: &'static Row,
    /// PUT.
    pub put: &'static Row,
    /// PATCH.
    pub patch: &'static Row,
    /// POST.
    pub push: &'static Row,
    /// DELETE.
    pub delete: &'static Row,
    /// Figures for Prometheus.
    pub metrics: &'static Row,
    /// The condition of a transaction.
    pub watch: &'static Row,
    /// Its memory.
    pub memory: &'static Row,
    /// Keys that commands name often.
    pub hot_keys: &'static Row,
    /// GET of a result of a database.
    pub view: &'static Row,
    /// POST to a view.
    pub view_change: &'static Row,
    /// DELETE of results.
    pub view_forget: &'static Row,
    /// GET of a node.
    pub node_get: &'static Row,
    /// The same, away from the workers.
    pub node_list: &'static Row,
    /// PUT and POST of a node.
    pub node_put: &'static Row,
    /// DELETE of a node.
    pub node_delete: &'static Row,
    /// An event of a node.
    pub node_wait: &'static Row,
}

/// Files with all data: RDB.
pub trait Snapshots {
    /// Begins to save all data to the file that the settings name.
    ///
    /// # Errors
    /// Why it does not.
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal>;

    /// Saves all data to the file, while nothing changes: DEBUG RELOAD.
    ///
    /// # Errors
    /// The log says why.
    fn save_standing(&self, engine: &Engine, closed: &Closed<'_>) -> Result<(), SaveFailed>;

    /// All data was just removed: FLUSHALL. `changes` counts the changes up to now. A file that is
    /// being written is of no use any more. Returns whether a file has to say that there is no data:
    /// [`Snapshots::save_emptied`].
    fn note_emptied(&self, engine: &Engine, changes: u64, closed: &Closed<'_>) -> bool;

    /// Begins to save the fact that there is no data, and ends the wait of `waiter` without a reply
    /// when that is done: its reply is written already.
    fn save_emptied(&self, waiter: Waiter);
}

/// The append-only file. Effects reach it through [`Journal`].
pub trait AppendOnlyFile {
    /// Begins to rewrite the append-only file, or with `soon` only schedules that.
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer;

    /// How the append-only file is.
    fn append_only(&self) -> append_only::Figures;

    /// Resets the counters of the append-only file: CONFIG RESETSTAT.
    fn reset_append_only_stats(&self);

    /// Makes each write to the append-only file take this much longer: DEBUG AOF-FLUSH-SLEEP.
    fn delay_append_only(&self, delay: Duration);
}

/// The way of data back from files.
pub trait Loader {
    /// Loads data in addition to what is there: DEBUG RELOAD and LOADAOF. After an error, the data that
    /// was loaded before it stays.
    ///
    /// # Errors
    /// A file cannot be loaded; the log says why.
    fn load_data(
        &self,
        engine: &Engine,
        source: Source,
        closed: &Closed<'_>,
    ) -> Result<(), LoadFailed>;
}

/// Work that a slow disk may delay, done away from the workers. Returns the reply.
pub type Errand = Box<dyn FnOnce(&Engine) -> Vec<u8> + Send>;

/// The thread for [`Errand`]s.
pub trait Aside {
    /// Has another thread do work that a disk may make slow, and answers `waiter` with the result.
    fn do_aside(&self, waiter: Waiter, errand: Errand);
}

/// Data on disk: files, and the threads that write them; one trait for each kind of question. The traits
/// name the engine, so they are here and not beside [`Host`].
pub trait Storage: Snapshots + AppendOnlyFile + Loader + Aside + Send + Sync {}

impl<T> Storage for T where T: Snapshots + AppendOnlyFile + Loader + Aside + Send + Sync {}

/// Switches that DEBUG commands flip.
pub struct DebugSettings {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON.
    pub pause_cron: AtomicBool,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: list elements of at least this many bytes get a node of their
    /// own.
    pub quicklist_packed_threshold: AtomicUsize,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: whether the checksums of RDB files and of RESTORE's payload
    /// may be wrong.
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
        Engine {
            keyspace: Keyspace::new(config.databases),
            gates: Gates::new(),
            config: SharedConfig::new(config),
            commands,
            clients: Clients::default(),
            pubsub: PubSub::default(),
            stats: Stats::new(commands.rows().len()),
            command_logs: CommandLogs::default(),
            latency: LatencyMonitor::default(),
            journal,
            saving: Saving::new(base::clock::steady_ms() / 1000),
            host,
            storage,
            started_at: base::clock::steady_ms(),
            run_id: random_id(),
            replication_id: Mutex::new(random_id()),
            content_types: Arc::default(),
            debug: DebugSettings::default(),
            loading: Loading::default(),
            scripts: Scripts::default(),
            listeners: Listeners::default(),
            nodes: Hub::default(),
            slot_offsets: SlotOffsets::default(),
            news: NewsQueue::default(),
            memory: Memory::default(),
            pause: Pause::default(),
            next_client_id: AtomicU64::new(1),
            killings: Killings::default(),
            blocked_clients: AtomicU64::new(0),
            watched_keys: AtomicU64::new(0),
            foreign_logged_at: AtomicU64::new(0),
            left_behind: LeftBehind::default(),
        }
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

    /// Whether CLIENT PAUSE or a stop of the server suspends writes. Meanwhile nothing expires and
    /// nothing is evicted.
    pub fn is_paused(&self, now: u64) -> bool {
        self.pause.is_on(now)
    }

    /// The server is about to stop: suspends all writes, even after CLIENT UNPAUSE, so that the data
    /// stands still.
    pub fn stop_writes(&self) {
        let _closed = self.gates.close();
        self.pause.set_stopping(true);
    }

    /// Ends all scripts in the middle, also those that have written: the server stops without saving. Writes
    /// are suspended first, so that none follows from half of what a script would have done.
    pub fn end_scripts(&self) {
        self.pause.set_stopping(true);
        self.scripts.slow.stop();
    }

    /// [`Engine::end_scripts`], if the server waits for scripts in order to stop. To be called after the
    /// request for that was sent.
    pub fn end_awaited_scripts(&self) {
        if self.scripts.slow.is_awaited() {
            self.end_scripts();
        }
    }

    /// Ends [`Engine::stop_writes`]. Commands that CLIENT PAUSE suspends stay suspended.
    pub fn let_writes_go_on(&self) {
        {
            let _closed = self.gates.close();
            self.pause.set_stopping(false);
        }
        self.wake_all_clients();
    }

    /// Has every connection check again whether it is still suspended: it is not told of the end.
    pub(crate) fn wake_all_clients(&self) {
        for client in self.clients.all() {
            self.host.wake(&client);
        }
    }

    /// The `save` rule that asks for a file now, at this second: (changes, seconds).
    pub fn due_save(&self, now: u64) -> Option<(u32, u64)> {
        if self.loading.is_on() {
            return None;
        }
        self.saving.due(&self.config.load(), self.dirty(), now)
    }

    /// Changes since data was saved, as `rdb_changes_since_last_save` counts them.
    pub fn dirty(&self) -> u64 {
        self.stats.changes().saturating_sub(self.saving.saved_changes())
    }
}
