//! The world outside: what the engine asks of whoever runs it, by what is asked.

use std::sync::Arc;

use crate::session::client::{Client, Waiter};
use config::Apply;

/// Says something to others: to a client's worker, or to the operator.
pub trait Tell {
    /// Tells a client's worker to look at its inbox.
    fn wake(&self, client: &Client);

    /// Writes a line to the log.
    fn log(&self, level: LogLevel, line: &str);
}

/// Memory, as the allocator and the system have it.
pub trait MemorySource {
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

    /// Gives unused memory back to the system: MEMORY PURGE.
    fn purge_memory(&self);
}

/// The file that the server was configured from.
pub trait ConfigFile {
    /// Reads it, empty when it has gone meanwhile: CONFIG REWRITE. Not called when
    /// [`ProcessFacts::config_file`] is empty.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_config_file(&self) -> Result<Vec<u8>, String>;

    /// Replaces it, all or nothing.
    ///
    /// # Errors
    /// Why it stays as it was.
    fn write_config_file(&self, text: &[u8]) -> Result<(), String>;
}

/// The process that the engine runs in.
pub trait Process {
    /// What the process has used of the processors.
    fn cpu_seconds(&self) -> CpuSeconds;

    /// What INFO says about the process and the machine. None of it changes while it runs.
    fn process(&self) -> ProcessFacts;

    /// Begins to stop the server. The client gets no reply: its connection closes.
    ///
    /// When the data is to be saved and cannot be, the server goes on, and the client is answered.
    fn shut_down(&self, request: Shutdown, client: Option<Arc<Waiter>>);

    /// Ends the process at once, with a crash report: DEBUG SEGFAULT, ASSERT, PANIC.
    fn crash(&self, reason: &str) -> !;
}

/// Something that a database is asked for, or whose results are.
#[derive(Clone, Debug)]
pub enum ViewRequest {
    /// The value of this key. The reply is that of a request for it which finds the key.
    Fill {
        /// The key.
        key: Box<[u8]>,
    },
    /// A change of rows. The reply is how many.
    Change {
        /// The name of the view.
        view: Box<[u8]>,
        /// What the request says, as JSON.
        body: Box<[u8]>,
    },
    /// That all values with a tag are deleted. The reply is how many.
    Forget {
        /// The tag.
        tag: Box<[u8]>,
    },
}

/// Databases, whose results are kept under keys.
pub trait ViewSource {
    /// Has a thread of its own do what is asked, and answers who waits for it. Does not wait itself:
    /// whoever asks may hold a slot.
    fn ask_view(&self, request: ViewRequest, waiter: Option<Arc<Waiter>>);
}

/// All of it. Through [`Apply`], changed settings take effect there too (listening ports, log level,
/// ...). What outlives the process is [`crate::engine::Storage`]'s.
pub trait Host:
    Apply + Tell + MemorySource + ConfigFile + Process + ViewSource + Send + Sync
{
}

impl<T> Host for T where
    T: Apply + Tell + MemorySource + ConfigFile + Process + ViewSource + Send + Sync
{
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
    Nothing,
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
