//! The world outside: traits through which the engine asks its host, one trait for each kind of
//! question.

use std::time::Duration;

use cluster::ids::{Epoch, NodeId};

use crate::session::attachment::Waiter;
use crate::session::pubsub::Kind;
use config::Apply;
use resp::args::OwnedArguments;
use store::SlotSet;

pub use crate::session::client::Wake;

/// Tells the operator something.
pub trait Notify {
    /// Writes a line to the log.
    fn log(&self, level: LogLevel, line: &str);

    /// Writes a line of a kind that clients may cause as often as they like. The log has one of a
    /// kind a second at most, and the number of those that were left out.
    fn log_frequent(&self, _kind: Frequent, level: LogLevel, line: &dyn Fn() -> String) {
        self.log(level, &line());
    }
}

/// What clients, also those that have not logged in, may cause as often as they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequent {
    /// A connection cannot be accepted.
    Accept,
    /// A connection is refused.
    Refused,
    /// A handshake fails.
    Handshake,
    /// A login fails.
    Login,
    /// A client speaks another protocol.
    Foreign,
    /// A client is closed because it exceeds a limit.
    Excess,
}

impl Frequent {
    /// All of them.
    pub const ALL: [Frequent; 6] = [
        Frequent::Accept,
        Frequent::Refused,
        Frequent::Handshake,
        Frequent::Login,
        Frequent::Foreign,
        Frequent::Excess,
    ];
}

/// Memory, as seen by the allocator and the system.
pub trait MemorySource {
    /// Frees something large in the background.
    fn drop_later(&self, garbage: Box<dyn Send>);

    /// Bytes that the allocator has given out: of the calling thread up to now, of the other
    /// threads up to when they last published them.
    fn used_memory(&self) -> usize;

    /// The same, without passing memory: see [`base::passing`].
    fn counted_memory(&self) -> usize {
        self.used_memory()
    }

    /// Bytes that the calling thread has ever allocated, minus those that it has freed, without
    /// passing memory. It is cheap; only differences are meaningful.
    fn memory_balance(&self) -> i64;

    /// Bytes of tables that are out of use and not yet freed: see [`store::table::retire`].
    fn retired_memory(&self) -> usize {
        0
    }

    /// The allocator's and the system's view of memory, for INFO and MEMORY.
    fn memory(&self) -> MemoryMetrics;

    /// Gives unused memory back to the system: MEMORY PURGE.
    fn purge_memory(&self);
}

/// The file that the server was configured from.
pub trait ConfigFile {
    /// Reads the file, empty if it is gone meanwhile: CONFIG REWRITE. Not called if
    /// [`ProcessInfo::config_file`] is empty.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_config_file(&self) -> Result<Vec<u8>, String>;

    /// Replaces the file as a whole.
    ///
    /// # Errors
    /// Why it stays as it was.
    fn write_config_file(&self, text: &[u8]) -> Result<(), String>;
}

/// The file of users.
pub trait UsersFile {
    /// Reads it.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_users(&self, path: &[u8]) -> Result<Vec<u8>, String>;

    /// Replaces it as a whole.
    ///
    /// # Errors
    /// Why it stays as it was.
    fn write_users(&self, path: &[u8], text: &[u8]) -> Result<(), String>;
}

/// The process that the engine runs in.
pub trait Process {
    /// Processor time of the process.
    fn cpu_seconds(&self) -> CpuSeconds;

    /// The words of `bind` whose addresses the server listens at for RESP, `encrypted` or not.
    fn listens_at(&self, encrypted: bool) -> Vec<String>;

    /// The certificates by which connections are encrypted, none if none are.
    fn certificates(&self) -> Vec<CertificateMetrics>;

    /// Facts about the process and the machine for INFO. They do not change while it runs.
    fn process(&self) -> ProcessInfo;

    /// Begins to stop the server. The client gets no reply: its connection closes.
    ///
    /// When the data should be saved and cannot be, the server goes on, and the client is answered.
    fn shut_down(&self, request: Shutdown, client: Option<Waiter>);

    /// Ends the process at once, with a crash report: DEBUG SEGFAULT, ASSERT, PANIC.
    fn crash(&self, reason: &str) -> !;
}

/// Until when certificates of one kind hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateMetrics {
    /// Whose they are: "server", "client" for those that are shown to other servers, or "ca" for
    /// authorities.
    pub kind: &'static str,
    /// The number of the one that ends first, in hexadecimal digits.
    pub serial: String,
    /// From when on that one does not hold, in seconds since 1970.
    pub not_after: i64,
}

/// A request to a database, or for its results.
#[derive(Clone, Debug)]
pub enum ViewRequest {
    /// The value of this key. The reply is that of a request which finds the key.
    Fill {
        /// The key.
        key: Box<[u8]>,
    },
    /// A change of rows. The reply is how many rows changed.
    Change {
        /// The name of the view.
        view: Box<[u8]>,
        /// The JSON body of the request.
        body: Box<[u8]>,
    },
    /// Delete all values with a tag. The reply is how many were deleted.
    Forget {
        /// The tag.
        tag: Box<[u8]>,
    },
}

/// Databases whose results are kept under keys.
pub trait ViewSource {
    /// Has another thread carry out the request and answer the waiter. Does not wait itself,
    /// because the caller may hold a slot.
    fn ask_view(&self, request: ViewRequest, waiter: Option<Waiter>);
}

/// Reads that would keep a worker busy for long.
pub trait LongReads {
    /// Has a thread of its own read nodes of the tree of `/v2/keys` with these words, and answer
    /// the waiter, which was admitted in this term of replication. Does not wait itself: the caller
    /// holds a slot.
    fn list_nodes(&self, argv: OwnedArguments, waiter: Waiter, term: u64);
}

/// Keys for another server: what MIGRATE asks for.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The target's name or address.
    pub host: Vec<u8>,
    /// Its port; 0 if what the client named is none.
    pub port: u16,
    /// The keys.
    pub keys: OwnedArguments,
    /// Their database here.
    pub database: usize,
    /// Their database there, which may not exist.
    pub target_database: i64,
    /// How long the target may keep silent.
    pub timeout: Duration,
    /// The keys stay here too.
    pub copy: bool,
    /// Keys of these names are replaced there.
    pub replace: bool,
    /// The words of AUTH: a password, or a user's name and password.
    pub credentials: OwnedArguments,
}

/// Slots that go to another server, without a cluster that knows it.
pub struct SlotMove {
    /// The slots.
    pub slots: SlotSet,
    /// Where the other server is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How many bytes of data are sent a second at most; 0 for as many as possible.
    pub rate: u64,
}

/// Other servers that take keys.
pub trait Migrations {
    /// Has another thread move slots and answer the waiter. Does not wait itself.
    fn move_slots(&self, slots: SlotMove, waiter: Waiter);

    /// Has another thread move keys and answer the waiter. Does not wait itself: the caller may
    /// hold slots.
    fn migrate(&self, migration: Migration, waiter: Waiter);
}

/// What a client asks of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClusterRequest {
    /// CLUSTER FAILOVER: this replica becomes the primary of its shard. With `force`, even if the
    /// present primary does not answer.
    Failover {
        /// FORCE.
        force: bool,
    },
    /// REPLCONF cluster-promise: the primary of the shard asks this node not to stand for election.
    Promise {
        /// The primary.
        from: NodeId,
        /// Its epoch.
        epoch: Epoch,
        /// By which its questions are told apart.
        round: u64,
        /// For how many milliseconds from now on.
        duration_ms: u64,
    },
    /// CLUSTER TOPOLOGY: what this node knows of the cluster and of itself, as JSON.
    Topology,
}

/// Whoever speaks for this node with the cluster.
pub trait ClusterControl {
    /// Has another thread do this and answer the waiter. Does not wait itself.
    fn ask_cluster(&self, request: ClusterRequest, waiter: Waiter);

    /// Has other threads bring a message to the primaries of the other shards, and from a replica
    /// to its own; one to a shard channel only to the latter. Does not wait itself, and nobody
    /// hears whether it has arrived.
    fn publish_to_cluster(&self, kind: Kind, channel: &[u8], message: &[u8]);
}

/// All questions together. Through [`Apply`], changed settings take effect in the host too
/// (listening ports, log level, ...). Data on disk belongs to [`crate::engine::Storage`].
pub trait Host:
    Apply
    + Wake
    + Notify
    + MemorySource
    + ConfigFile
    + UsersFile
    + Process
    + ViewSource
    + LongReads
    + Migrations
    + ClusterControl
    + Send
    + Sync
{
}

impl<T> Host for T where
    T: Apply
        + Wake
        + Notify
        + MemorySource
        + ConfigFile
        + UsersFile
        + UsersFile
        + Process
        + ViewSource
        + LongReads
        + Migrations
        + ClusterControl
        + Send
        + Sync
{
}

/// The process and the machine, as INFO's section "server" shows them.
#[derive(Clone, Default, Debug)]
pub struct ProcessInfo {
    /// System, release and machine ("Linux 6.1.0 x86_64").
    pub os: String,
    /// How workers wait for sockets ("epoll").
    pub multiplexing_api: &'static str,
    /// The clock that measures spans of time ("POSIX clock_gettime").
    pub monotonic_clock: &'static str,
    /// The compiler's version ("rustc 1.95.0"), empty when unknown.
    pub compiler: &'static str,
    /// The source's commit, empty when unknown.
    pub git_sha1: &'static str,
    /// Whether the source differed from that commit.
    pub git_dirty: bool,
    /// The process's number.
    pub process_id: u32,
    /// What started the server: "upstart", "systemd" or "no".
    pub supervised: &'static str,
    /// The absolute path of the program.
    pub executable: String,
    /// The absolute path of the configuration file; empty without one.
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
    /// User time of the whole process.
    pub user: f64,
    /// Finished children, in the kernel.
    pub children_system: f64,
    /// User time of finished children.
    pub children_user: f64,
    /// The thread that the process began with, in the kernel.
    pub main_thread_system: f64,
    /// User time of the thread that the process began with.
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
    Nothing,
}

/// How SHUTDOWN wants the server to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// SAVE, NOSAVE, or `None` for the configuration's choice.
    pub save: Option<bool>,
    /// Do not wait for replicas.
    pub now: bool,
    /// Stop even if saving fails.
    pub force: bool,
    /// The stops that were given up before: see [`crate::engine::stop_wait`].
    pub given_up_before: u64,
}

/// Memory in bytes, from the allocator and the system.
#[derive(Clone, Copy, Default, Debug)]
#[expect(missing_docs, reason = "the allocator's own words")]
pub struct MemoryMetrics {
    pub allocated: usize,
    pub active: usize,
    pub resident: usize,
    pub retained: usize,
    pub mapped: usize,
    pub metadata: usize,
    pub process_resident: usize,
    pub system_total: usize,
}
