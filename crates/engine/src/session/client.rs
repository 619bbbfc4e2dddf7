//! A client as other threads see it: CLIENT LIST, CLIENT KILL, PUBLISH and threads that serve
//! waiters.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use resp::output::Output;

use crate::command::error::CommandError;
use crate::session::awaited::Wait;
use crate::session::watcher::WatchFlag;
use crate::users::DEFAULT_USER;

/// Wakes the workers of clients.
pub trait Wake {
    /// Tells a client's worker to look at its inbox.
    fn wake(&self, client: &Client);
}

/// What other threads have for a client. The client's worker takes it when it is woken.
#[derive(Default)]
pub struct Inbox {
    /// Messages and MONITOR lines: wire bytes, in order.
    pub pushes: Vec<Arc<Vec<u8>>>,
    /// Bytes of memory that `pushes` keeps.
    pub bytes: usize,
    /// More output waits than the client is allowed: it gets nothing further and is closed.
    pub over_limit: bool,
    /// Slots have left this node, and with them perhaps shard channels of the client.
    pub slots_left: bool,
    /// The reply of the command that the client was blocked in.
    pub served: Option<Box<Served>>,
}

/// The reply for which a client waits.
pub struct Served {
    /// The wait that it ends. Another one may have begun since.
    pub wait: Arc<Wait>,
    /// The reply, in the protocol of that wait.
    pub reply: Output,
    /// The journal's offset after what was written for the client; 0 if nothing was.
    pub write_offset: u64,
}

/// The words that clients set about themselves.
#[derive(Default, Clone)]
pub struct ClientNames {
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO LIB-NAME.
    pub library: Vec<u8>,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Vec<u8>,
    /// The user for whom it acts, once that is another one than [`DEFAULT_USER`]. A name may be
    /// empty.
    pub(crate) user: Option<Box<[u8]>>,
}

impl ClientNames {
    /// The user for whom it acts.
    pub fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or(DEFAULT_USER)
    }

    pub(crate) fn memory(&self) -> usize {
        self.name.capacity() + self.library.capacity() + self.library_version.capacity()
    }
}

/// The letters of CLIENT LIST's `flags` in Redis and Valkey.
pub const FLAG_LETTERS: &str = "bcdeirtuxABEIMNOPRSTU";

/// Bits of [`Client::flags`]: what CLIENT LIST shows as letters.
pub mod flag {
    /// In MULTI (`x`).
    pub const MULTI: u32 = 1 << 0;
    /// Blocked (`b`).
    pub const BLOCKED: u32 = 1 << 1;
    /// Closing after its output is sent (`c`).
    pub const CLOSING: u32 = 1 << 3;
    /// Connected by a unix socket (`U`).
    pub const UNIX: u32 = 1 << 4;
    /// MONITOR (`O`).
    pub const MONITOR: u32 = 1 << 5;
    /// Has subscriptions (`P`).
    pub const PUBSUB: u32 = 1 << 6;
    /// CLIENT NO-EVICT (`e`).
    pub const NO_EVICT: u32 = 1 << 7;
    /// CLIENT NO-TOUCH (`T`).
    pub const NO_TOUCH: u32 = 1 << 8;
    /// CLIENT CAPA REDIRECT. No letter shows it.
    pub const REDIRECT: u32 = 1 << 9;
    /// Connected by HTTP. No letter shows it.
    pub const HTTP: u32 = 1 << 10;
    /// CLIENT IMPORT-SOURCE (`I`).
    pub const IMPORT_SOURCE: u32 = 1 << 11;
    /// The connection of a replica (`S`).
    pub const REPLICA: u32 = 1 << 12;
    /// READONLY (`r`).
    pub const READS_FROM_REPLICA: u32 = 1 << 13;
    /// Connected by TLS. No letter shows it.
    pub const ENCRYPTED: u32 = 1 << 14;
    /// Has said which node of the cluster it speaks for. No letter shows it.
    pub const SPEAKS_FOR_NODE: u32 = 1 << 15;
    /// Brings slots: see [`crate::session::Session::import`]. No letter shows it.
    pub const BRINGS_SLOTS: u32 = 1 << 16;
}

/// The shared part of a connection. Its worker writes the numbers; any thread reads them.
pub struct Client {
    /// Its number; never used again.
    pub id: u64,
    /// The worker that owns the connection. A thread that takes the connection over changes it.
    pub worker: AtomicUsize,
    /// Its address ("127.0.0.1:50000", or the path of the unix socket).
    pub address: String,
    /// The server's address that it connected to.
    pub local_address: String,
    /// When it connected, as [`crate::turn::Turn::monotonic`].
    pub connected_at: u64,
    /// The descriptor's number.
    pub descriptor: i32,
    /// The names of users that its certificate has, if each of its requests may be such a user's.
    pub certificate_names: Box<[Vec<u8>]>,
    /// The names that it gave.
    pub names: Mutex<ClientNames>,
    /// When it last sent or took something, as [`crate::turn::Turn::monotonic`].
    pub last_interaction: AtomicU64,
    /// See [`flag`].
    pub flags: AtomicU32,
    /// The selected database.
    pub database: AtomicU32,
    /// The row of its last command, plus one.
    pub last_command: AtomicUsize,
    /// RESP version.
    pub protocol: AtomicU8,
    /// Channels subscribed to.
    pub channels: AtomicU32,
    /// Patterns subscribed to.
    pub patterns: AtomicU32,
    /// Shard channels subscribed to.
    pub shard_channels: AtomicU32,
    /// Commands queued in MULTI, plus one; 0 outside.
    pub queued: AtomicU32,
    /// Bytes of the queued commands.
    pub queued_bytes: AtomicUsize,
    /// Bytes of the names of subscriptions.
    pub(crate) subscription_bytes: AtomicUsize,
    /// Watched keys.
    pub(crate) watched: AtomicU32,
    /// Bytes of watched keys.
    pub(crate) watched_bytes: AtomicUsize,
    /// Bytes in the query buffer.
    pub query_bytes: AtomicUsize,
    /// Free bytes in the query buffer.
    pub query_free: AtomicUsize,
    /// Bytes of memory that complete commands take while they wait to be run.
    pub argument_bytes: AtomicUsize,
    /// Bytes of memory that what carries its bytes takes besides its socket: a session of TLS.
    pub transport_memory: AtomicUsize,
    /// Bytes of output that wait.
    pub output_bytes: AtomicUsize,
    /// The most bytes of output that ever waited.
    pub output_peak: AtomicUsize,
    /// Bytes of memory that the output buffer takes.
    pub output_memory: AtomicUsize,
    /// Bytes that may wait in the output and the inbox: see
    /// [`crate::session::Session::limit_output`].
    pub(crate) output_limit: AtomicUsize,
    /// Its part of the sum over all clients: see [`Clients::count_memory`].
    pub(crate) counted_memory: AtomicUsize,
    /// The connection must be closed.
    killed: AtomicBool,
    /// The connection must be closed when the reply is out for which the client waits.
    ends_with_reply: AtomicBool,
    /// Messages from other threads.
    pub inbox: Mutex<Inbox>,
    /// The wait in which it is blocked.
    pub wait: Mutex<Option<Arc<Wait>>>,
    /// Raised when a watched key has changed; absent when it watches none.
    pub watch: Mutex<Option<WatchFlag>>,
}

impl Client {
    /// A client that has connected just now.
    pub fn new(
        id: u64,
        worker: usize,
        address: String,
        local_address: String,
        descriptor: i32,
        now: u64,
    ) -> Client {
        Client {
            id,
            worker: AtomicUsize::new(worker),
            address,
            local_address,
            connected_at: now,
            descriptor,
            certificate_names: Box::default(),
            names: Mutex::default(),
            last_interaction: AtomicU64::new(now),
            flags: AtomicU32::new(0),
            database: AtomicU32::new(0),
            last_command: AtomicUsize::new(0),
            protocol: AtomicU8::new(2),
            channels: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_channels: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            queued_bytes: AtomicUsize::new(0),
            subscription_bytes: AtomicUsize::new(0),
            watched: AtomicU32::new(0),
            watched_bytes: AtomicUsize::new(0),
            query_bytes: AtomicUsize::new(0),
            query_free: AtomicUsize::new(0),
            argument_bytes: AtomicUsize::new(0),
            transport_memory: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            output_peak: AtomicUsize::new(0),
            output_memory: AtomicUsize::new(0),
            output_limit: AtomicUsize::new(usize::MAX),
            counted_memory: AtomicUsize::new(0),
            killed: AtomicBool::new(false),
            ends_with_reply: AtomicBool::new(false),
            inbox: Mutex::default(),
            wait: Mutex::default(),
            watch: Mutex::default(),
        }
    }

    /// Sets or clears a bit of the flags. Must be called by the owning worker alone.
    pub fn set_flag(&self, flag: u32, on: bool) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(if on { flags | flag } else { flags & !flag }, Relaxed);
    }

    /// Whether it connected from this machine, as `enable-debug-command local` asks.
    pub fn is_local(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        self.has_flag(flag::UNIX) || matches!(host, "127.0.0.1" | "[::1]" | "::1")
    }

    /// Whether a bit of the flags is set.
    pub fn has_flag(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Publishes the state of the output buffer: bytes that wait, and bytes of memory that it
    /// takes. Only the owning worker may call this.
    pub fn note_output(&self, waiting: usize, memory: usize) {
        self.output_bytes.store(waiting, Relaxed);
        self.output_memory.store(memory, Relaxed);
        if waiting > self.output_peak.load(Relaxed) {
            self.output_peak.store(waiting, Relaxed);
        }
    }

    /// It has sent or taken something. Only the owning worker may call this.
    pub fn note_interaction(&self, monotonic: u64) {
        self.last_interaction.store(monotonic, Relaxed);
    }

    /// Its class, by which output limits and CLIENT KILL TYPE choose clients.
    pub fn class(&self) -> ClientClass {
        match () {
            () if self.has_flag(flag::REPLICA) => ClientClass::Replica,
            () if self.has_flag(flag::PUBSUB) => ClientClass::Pubsub,
            () => ClientClass::Normal,
        }
    }

    /// Asks its worker to close it, and ends its waiting, so that nobody serves it any more. The
    /// worker has to be woken.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Release);
        if let Some(wait) = &*self.wait.lock() {
            wait.claim();
        }
    }

    /// Asks its worker to close it after the reply for which it waits.
    pub(crate) fn end_with_reply(&self) {
        self.ends_with_reply.store(true, Release);
    }

    /// Whether it is closed after the reply for which it waits.
    pub fn ends_with_reply(&self) -> bool {
        self.ends_with_reply.load(Acquire)
    }

    /// Whether it is about to be closed: it runs no further command and gets nothing any more.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Acquire)
    }
}

/// Classes of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientClass {
    /// Neither of the others.
    Normal,
    /// The connection of a replica.
    Replica,
    /// The connection to this server's primary.
    Primary,
    /// Has subscriptions.
    Pubsub,
}

impl ClientClass {
    /// Reads a class as CLIENT LIST and CLIENT KILL name them.
    pub fn parse(name: &[u8]) -> Option<ClientClass> {
        let names: [(&[u8], ClientClass); 5] = [
            (b"normal", ClientClass::Normal),
            (b"replica", ClientClass::Replica),
            (b"slave", ClientClass::Replica),
            (b"master", ClientClass::Primary),
            (b"pubsub", ClientClass::Pubsub),
        ];
        let found = names.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, class)| class)
    }
}

/// Accepts a client's name if it can be shown in a line of CLIENT LIST.
pub fn valid_name(name: &[u8]) -> Result<&[u8], CommandError> {
    is_one_word(name).then_some(name).ok_or(CommandError::text(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

/// Whether a text consists of printable characters other than the space.
pub fn is_one_word(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// All connected clients by number.
#[derive(Default)]
pub struct Clients {
    by_id: Mutex<HashMap<u64, Arc<Client>>>,
    /// Bytes that all clients take, counted while `maxmemory-clients` is set.
    pub memory: AtomicUsize,
    /// When every client may be looked at again, as [`crate::turn::Turn::monotonic`].
    pub(crate) next_look: AtomicU64,
    peaks: Mutex<[BufferPeak; PEAK_SECONDS]>,
}

/// How many clients do what.
#[derive(Default)]
pub struct Occupations {
    /// Have subscriptions.
    pub subscribed: usize,
    /// Watch keys.
    pub watching: usize,
    /// Wait for a key and will give up at some time.
    pub waiting_with_deadline: usize,
    /// Keys for which clients wait.
    pub awaited_keys: usize,
    /// The keys among them whose removal a client must be told of.
    pub needed_keys: usize,
}

/// Seconds that [`Clients::buffer_peaks`] looks back.
const PEAK_SECONDS: usize = 8;

/// The largest buffers that any client had in a second, in bytes.
#[derive(Default)]
struct BufferPeak {
    second: u64,
    input: usize,
    output: usize,
}

impl Clients {
    /// Adds a client.
    pub fn add(&self, client: &Arc<Client>) {
        self.by_id.lock().insert(client.id, Arc::clone(client));
    }

    /// Removes a client.
    pub fn remove(&self, id: u64) {
        let removed = self.by_id.lock().remove(&id);
        if let Some(client) = removed {
            self.discount_memory(&client);
        }
    }

    /// Finds a client.
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.by_id.lock().get(&id).cloned()
    }

    /// All clients, the oldest first.
    pub fn all(&self) -> Vec<Arc<Client>> {
        let mut all: Vec<_> = self.by_id.lock().values().cloned().collect();
        all.sort_by_key(|client| client.id);
        all
    }

    /// What clients do.
    pub fn occupations(&self) -> Occupations {
        let mut found = Occupations::default();
        let (mut awaited, mut needed) = (HashSet::new(), HashSet::new());
        for client in self.all() {
            found.subscribed += usize::from(client.has_flag(flag::PUBSUB));
            found.watching += usize::from(client.watches() > 0);
            let wait = client.wait.lock().clone();
            let Some(wait) = wait.filter(|_| client.has_flag(flag::BLOCKED)) else { continue };
            let has_deadline = wait.deadline.is_some() && !wait.awaits_sync();
            found.waiting_with_deadline += usize::from(has_deadline);
            let keys = || wait.keys.iter().map(|key| (wait.database, key.clone()));
            awaited.extend(keys());
            if wait.needs_keys {
                needed.extend(keys());
            }
        }
        found.awaited_keys = awaited.len();
        found.needed_keys = needed.len();
        found
    }

    /// Notes the largest buffers, once for each second.
    pub fn sample_buffers(&self, second: u64) {
        let mut peaks = self.peaks.lock();
        let place = &mut peaks[second as usize % PEAK_SECONDS];
        if place.second != second {
            let (input, output) = self.largest_buffers();
            *place = BufferPeak { second, input, output };
        }
    }

    fn largest_buffers(&self) -> (usize, usize) {
        self.by_id.lock().values().fold((0, 0), |(input, output), client| {
            let own = client.query_bytes.load(Relaxed) + client.query_free.load(Relaxed);
            (input.max(own), output.max(client.output_bytes.load(Relaxed)))
        })
    }

    /// The largest buffers of input and of output that any client had in the last seconds.
    pub fn buffer_peaks(&self, second: u64) -> (usize, usize) {
        let peaks = self.peaks.lock();
        let recent = peaks.iter().filter(|peak| peak.second + PEAK_SECONDS as u64 > second);
        recent
            .fold((0, 0), |(input, output), peak| (input.max(peak.input), output.max(peak.output)))
    }

    /// How many came by which kind of listener.
    pub fn by_listener(&self) -> [(&'static str, usize); 3] {
        let (mut http, mut unix, mut tcp) = (0, 0, 0);
        for client in self.by_id.lock().values() {
            let count = match () {
                () if client.has_flag(flag::HTTP) => &mut http,
                () if client.has_flag(flag::UNIX) => &mut unix,
                () => &mut tcp,
            };
            *count += 1;
        }
        [("http", http), ("resp", tcp), ("unix", unix)]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
