//! The bounds on what clients control, in one place.
//!
//! Each bound on a loop, an allocation or a queue that a client's data controls has its name here,
//! with the reason for the number. A bound that only one file needs and no client drives is in that
//! file. Values that Redis makes visible to clients are Redis's own.

// ---- Keyspace -----------------------------------------------------------------------------------

/// Number of slots: the unit of locking, hashing and migration, as in Redis Cluster.
pub const SLOTS: usize = 16_384;

/// Longest key, in bytes: an entry has four bytes for the length.
pub const MAX_KEY: usize = u32::MAX as usize;

/// Most elements of a set, hash or sorted set, which count them in 32 bits.
pub const MAX_ELEMENTS: usize = u32::MAX as usize;

/// Elements with which a set, hash or sorted set counts as full: one command adds fewer than still
/// fit, because it has fewer arguments.
pub const FULL_ELEMENTS: usize = MAX_ELEMENTS - MAX_ARGUMENTS as usize;

/// Entries that SCAN, KEYS and RANDOMKEY look at under one lock of a slot.
pub const WALKED_PER_LOCK: usize = 256;

/// RANDOMKEY tries this many random keys that may turn out to be expired; then it takes the first
/// live key that it finds.
pub const RANDOMKEY_TRIES: usize = 100;

/// Allocations that the thread that removed a value frees itself; a value of more is left to the
/// background.
pub const FREED_AT_ONCE: usize = 64;

/// Bytes of such allocations: the pages of large ones go back to the system, which takes longer the
/// more there are.
pub const FREED_AT_ONCE_BYTES: usize = 64 * 1024;

/// Bytes of a single allocation that the thread that removed it frees itself. The allocator keeps
/// its pages for the next one, which takes microseconds; from 8 MiB on it gives them back to the
/// system at once.
pub const FREED_AT_ONCE_SINGLE: usize = 4 * 1024 * 1024;

// ---- Requests -----------------------------------------------------------------------------------

/// Most databases that the setting `databases` allows.
pub const MAX_DATABASES: usize = i32::MAX as usize;

/// Most arguments one command may announce. Redis 7.0 accepts any C `int`; memory is bounded by the
/// query buffer, because an argument is stored only once it has arrived.
pub const MAX_ARGUMENTS: i64 = i32::MAX as i64;

/// Longest argument in the stream of a primary, and of a server that brings slots, in bytes.
pub const REPLICATED_ARGUMENT: usize = (1 << 30) - 1;

/// Most bytes of a command, or of a transaction from MULTI to EXEC, in the stream of a primary, and
/// of what waits to be run of a server that brings slots.
pub const REPLICATED_UNIT: usize = u32::MAX as usize;

/// Longest inline command, and longest line that announces a count or a length, in bytes.
pub const MAX_INLINE: usize = 64 * 1024;

/// Default of `proto-max-bulk-len`: the longest single argument, in bytes.
pub const DEFAULT_MAX_BULK: u64 = 512 * 1024 * 1024;

/// Most arguments of one command before the connection has authenticated.
pub const UNAUTHENTICATED_MAX_ARGUMENTS: i64 = 10;

/// Longest argument before the connection has authenticated, in bytes.
pub const UNAUTHENTICATED_MAX_BULK: u64 = 16_384;

/// Bytes of replies that may wait for a connection that has not authenticated: as many as in Redis.
/// A client that means to log in reads its replies. Over HTTP its next request is not looked at
/// before.
pub const UNAUTHENTICATED_OUTPUT: usize = 16 * 1024;

/// Bytes of input that may wait to be run for a connection that has not authenticated: as many as
/// in Redis.
pub const UNAUTHENTICATED_QUERY: u64 = 1024 * 1024;

/// Bytes that are read at a time from a connection that has not authenticated, and bytes of a body
/// that it may send.
pub const UNAUTHENTICATED_READ: usize = 16 * 1024;

/// Requests of HTTP from a connection that has not authenticated that are parsed in one turn.
pub const UNAUTHENTICATED_REQUESTS: usize = 16;

/// An argument at least this long that has arrived only in part is received into an allocation of
/// its own instead of the read buffer, so that storing it copies nothing.
pub const BIG_ARGUMENT: usize = 32 * 1024;

/// Milliseconds for which what comes after a client's last reply is received and thrown away. If
/// the connection were closed before that, the system would take back replies from a client that is
/// still sending.
pub const LINGER_MS: u64 = 2000;

/// How much of an announced big argument is allocated before its bytes arrive. When as much has
/// arrived, the rest is allocated at once: see [`crate::bytes::make_room`].
pub const BIG_ARGUMENT_EAGER: usize = 16 * 1024 * 1024;

/// Arguments of half-received commands kept in a parser for reuse; a larger list is freed after
/// use.
pub const PARSER_KEPT_ARGUMENTS: usize = 1024;

// ---- Replies ------------------------------------------------------------------------------------

/// A shared string at least this long is sent from where it lies; a shorter one is copied, since
/// copying it is cheaper than one more element in a vectored write.
pub const SHARED_REPLY: usize = 16 * 1024;

/// Bytes, and replies, that wait for the durability which their client has chosen, before its next
/// commands have to wait.
pub const HELD_BYTES: usize = 1024 * 1024;
/// See [`HELD_BYTES`].
pub const HELD_REPLIES: usize = 16 * 1024;

/// When a connection that goes has at least this many bytes, they are freed in the background;
/// fewer are freed sooner than they are handed over.
pub const FREED_LATER: usize = 1024 * 1024;

/// An output buffer that grew beyond this is freed once everything in it was sent.
pub const OUTPUT_KEPT: usize = 64 * 1024;

/// Bytes of news for other clients that a script has gathered before it is looked at who will hear
/// it.
pub const PUBLICATIONS_UNSIFTED: usize = 1024 * 1024;

/// Most slices handed to one vectored write (Linux accepts 1024).
pub const WRITE_SLICES: usize = 64;

/// Most bytes of a reply whose length the client chose: a count of random members with repetition
/// may be any number, even for a small collection.
pub const RANDOM_REPLY: usize = 512 * 1024 * 1024;

/// Deepest nesting of arrays, maps and sets in a reply we read or build.
pub const MAX_REPLY_NESTING: usize = 128;

/// Longest single string in a reply that the client side accepts, in bytes.
pub const MAX_REPLY_BULK: u64 = 4 * 1024 * 1024 * 1024;

// ---- HTTP ---------------------------------------------------------------------------------------

/// Longest head of a request: its first line and its headers, in bytes.
pub const HTTP_HEAD: usize = 32 * 1024;

/// Most headers of a request.
pub const HTTP_HEADERS: usize = 64;

/// Longest address of a request, in bytes: enough for a command with a few values.
pub const HTTP_TARGET: usize = 16 * 1024;

/// Longest line before a chunk of a body, in bytes: digits, and an unused extension.
pub const HTTP_CHUNK_LINE: usize = 256;

/// Longest body that is JSON, in bytes: a worker reads it at once, while its other clients wait. A
/// value that is a body by itself is bounded by `proto-max-bulk-len`.
pub const HTTP_JSON: u64 = 8 * 1024 * 1024;

/// Bytes of answers without a command that are made for one connection in one turn, before the last
/// of them.
pub const HTTP_PREPARED_PER_TURN: usize = 64 * 1024;

/// Longest body of a request whose body means nothing, in bytes.
pub const HTTP_UNUSED_BODY: u64 = 1024 * 1024;

/// Most words of one request in JSON: those of all its commands together, or the names and values
/// that it pushes or that a view writes. A worker reads them at once.
pub const HTTP_WORDS: usize = 64 * 1024;

/// Longest merge patch, in bytes: it is applied under the lock of the key's slot.
pub const HTTP_PATCH: usize = 1024 * 1024;

/// The longest JSON that is patched: its slot is locked while it is read and written.
pub const HTTP_PATCHED: usize = 8 * 1024 * 1024;

/// Most commands of one request.
pub const HTTP_COMMANDS: usize = 10_000;

/// Most keys that one request names.
pub const HTTP_MGET: usize = 10_000;

/// Bytes that the values for such a request take in the reply, besides long strings, which are not
/// copied. A client may name one large collection many times.
pub const HTTP_MGET_REPLY: usize = 64 * 1024 * 1024;

/// How long a request waits for a key by default, in milliseconds: shorter than proxies wait for an
/// answer.
pub const HTTP_WAIT_MS: u64 = 50_000;

/// Default of `changes-backlog-size`: bytes of memory for the part of the journal that is kept for
/// followers.
pub const DEFAULT_CHANGES_BACKLOG: u64 = 16 * 1024 * 1024;

/// Histories of the journal whose positions are known: each start of the server begins a new one.
pub const CHANGES_HISTORIES: usize = 64;

/// Most changes that one CHANGES answers, and most records of the journal that it looks at: it runs
/// inside a gate.
pub const CHANGES_COUNT: usize = 4096;

/// Records of the journal that are looked at in one step for followers.
pub const CHANGES_STEP: usize = 256;

/// Bytes that may wait for a follower before it is told nothing more: it then reads on by itself
/// from what is kept, at its own pace.
pub const CHANGES_PENDING: usize = 64 * 1024;

/// A connection that follows the journal and has heard nothing for this many milliseconds is told
/// how far the journal is: its position must not become too old.
pub const CHANGES_HEARTBEAT_MS: u64 = 10_000;

/// Most names of keys that one request may ask for.
pub const HTTP_LIST: usize = 10_000;

/// Most steps through the keyspace for one list of names, each of about a thousand keys.
pub const HTTP_LIST_STEPS: usize = 64;

/// Longest name of a content type that is kept with a key, in bytes.
pub const CONTENT_TYPE: usize = 128;

/// Keys that one request looks at to estimate what takes memory.
pub const HTTP_SAMPLES: usize = 10_000;

/// Parts of keys that such a request may take as their prefix.
pub const HTTP_PREFIX_DEPTH: usize = 8;

/// Hot keys that one request asks for.
pub const HTTP_HOT_KEYS: usize = 100;

/// Bytes of a reply that a worker translates at once. A longer one becomes an answer piece by
/// piece, as the client takes it.
pub const HTTP_WHOLE: usize = 1024 * 1024;

/// Bytes of an answer that are written at once when it comes piece by piece.
pub const HTTP_PIECE: usize = 128 * 1024;

/// A string in a reply of more than this many bytes is translated in parts.
pub const HTTP_LONG_TEXT: usize = 16 * 1024;

/// Longest identifier of a request that a client chooses, in bytes.
pub const HTTP_REQUEST_ID: usize = 128;

/// Text of at least this many bytes is compressed for clients that accept it: shorter text fits
/// into one packet as it is.
pub const HTTP_GZIP_LEAST: usize = 1400;

/// Text beyond this many bytes is not compressed: that takes ten milliseconds, in which the thread
/// serves no other client.
pub const HTTP_GZIP_MOST: usize = 1024 * 1024;

/// Longest request whose headers a connection remembers, in bytes, to recognise them in the next
/// one.
pub const HTTP_CACHED_HEADERS: usize = 2048;

/// Milliseconds within which the head of a request arrives.
pub const HTTP_PATIENCE_MS: u64 = 10_000;

/// Bytes of answers that wait for a client before its next request is looked at. The requests after
/// that stay in its socket.
pub const HTTP_PENDING: usize = 1024 * 1024;

/// Milliseconds after which a connection of HTTP, or one whose client has ended its stream, is
/// closed when the client takes nothing of the answer that waits for it. A client that follows
/// changes may take its time: little waits for it.
pub const PATIENCE_OF_SENDING_MS: u64 = 60_000;

/// Longest form of `/v2/keys`, in bytes: as in etcd.
pub const ETCD_FORM: u64 = 10 * 1024 * 1024;

/// Deepest nesting of arrays and objects in JSON for `/v2/keys`: as in Go.
pub const ETCD_JSON_DEPTH: usize = 10_000;

/// Most directories above a node of `/v2/keys` that is written. Each has a key of its own with the
/// whole path in it, so the memory for a request grows with the square of their number.
pub const ETCD_DEPTH: usize = 256;

/// Bytes of an answer that lists nodes of `/v2/keys` which a worker makes itself, in a few
/// milliseconds. Another thread makes longer ones, so that the worker's other clients go on.
pub const ETCD_LISTED_BY_WORKER: usize = 256 * 1024;

/// Nodes that a worker removes at once from the tree of etcd: with a directory of more, another
/// thread does it, and only clients of the tree wait.
pub const ETCD_REMOVED_BY_WORKER: usize = 1000;

/// Events of the tree of `/v2/keys` that are kept for requests about the past: as many as in etcd.
pub const ETCD_EVENTS: u64 = 1000;

/// Milliseconds for which a request for the tree of etcd waits for a primary: etcd's own time for a
/// request, which is five seconds and two elections.
pub const ETCD_ELECTION_MS: u64 = 7000;

/// Expired nodes that a write to that tree removes before it does its own work.
pub const ETCD_EXPIRED_PER_WRITE: usize = 16;

/// Such nodes that are removed under one lock of the tree's slot.
pub const ETCD_EXPIRED_PER_LOCK: usize = 64;

/// Bytes of a body that arrive each second on average.
pub const HTTP_LEAST_RATE: u64 = 1024;

// ---- Journal ------------------------------------------------------------------------------------

/// Bytes that the journal may have in memory before connections that write have to wait: about a
/// second's work of a slow disk.
pub const JOURNAL_PENDING: u64 = 64 * 1024 * 1024;

/// The size of a block of the journal's memory, in bytes, unless one effect takes more.
pub const JOURNAL_BLOCK: usize = 64 * 1024;

/// Empty blocks kept for reuse; further ones from a burst are freed.
pub const JOURNAL_SPARE_BLOCKS: usize = 32;

// ---- Snapshots ----------------------------------------------------------------------------------

/// Bytes of the compressed form of one string that may be in memory until it can be written. A
/// string that takes more is written as it is.
pub const PACKED_TEXT: usize = 64 * 1024 * 1024;

// ---- A worker's turn ----------------------------------------------------------------------------

/// Readiness events taken from the kernel at once.
pub const EVENTS_PER_TURN: usize = 1024;

/// Connections accepted of one listener before the other listeners, and the stop, are looked at.
pub const ACCEPTS_PER_TURN: usize = 1000;

/// Commands of one connection that are parsed, or run after it was held back, in one turn; then its
/// neighbours follow.
pub const COMMANDS_PER_TURN: usize = 1024;

/// Milliseconds that the commands of a connection which was held back may take together in one
/// turn, before the last of them.
pub const COMMANDS_MS_PER_TURN: u64 = 5;

/// Requests of one connection of HTTP that are parsed in one turn; then its neighbours follow.
pub const HTTP_REQUESTS_PER_TURN: usize = 256;

/// Places where clients have left waiters or watches that are cleaned in one turn: the rest can
/// wait.
pub const LEFT_BEHIND_PER_TURN: usize = 4096;

/// Bytes read from one connection in one turn before its neighbours are served.
pub const READ_PER_TURN: usize = 256 * 1024;

/// Encrypted bytes that a connection holds back at most while its client does not take them.
pub const TLS_HELD_BACK: usize = 64 * 1024;

/// Encrypted bytes that are no data, as of records that say nothing or bring new keys, which a
/// connection may send in a row before others have their turn.
pub const TLS_WASTED: usize = 64 * 1024;

/// Milliseconds within which a client ends its handshake.
pub const TLS_HANDSHAKE_MS: u64 = 10_000;

/// Initial size of a connection's read buffer, in bytes.
pub const READ_BUFFER: usize = 16 * 1024;

/// Bytes written to one connection in one turn before its neighbours are served.
pub const WRITE_PER_TURN: usize = 256 * 1024;

/// Members or fields of one collection that are brought into the processor's cache together.
pub const PREFETCH_MAX: usize = 32;

// ---- What is noted of clients -------------------------------------------------------------------

/// Bytes of lines that wait to be written to the log.
pub const LOG_QUEUE: usize = 1024 * 1024;

/// Arguments of a command that SLOWLOG and COMMANDLOG keep.
pub const LOGGED_ARGUMENTS: usize = 32;

/// Bytes of such an argument that they keep.
pub const LOGGED_ARGUMENT_BYTES: usize = 128;

/// With more codes than this, errors are not distinguished any more until CONFIG RESETSTAT: clients
/// can choose codes.
pub const ERROR_CODES: usize = 128;

// ---- Files --------------------------------------------------------------------------------------

/// How deep files of settings may include each other.
pub const CONFIG_INCLUDE_DEPTH: usize = 16;

/// How many files of settings may be included in total.
pub const CONFIG_INCLUDED_FILES: usize = 1024;

/// Bytes of an RDB file that are read, and decoded by one thread, at a time. A larger value is
/// taken whole.
pub const RDB_CHUNK: usize = 256 * 1024;

/// Pieces of a file that may wait while it is loaded, for each thread that takes them in.
pub const LOAD_QUEUE: usize = 4;

/// Commands of an append-only file that are handed from the thread that reads to the one that
/// replays at a time, and about as many bytes of them.
pub const REPLAY_CHUNK_COMMANDS: usize = 1024;
/// See [`REPLAY_CHUNK_COMMANDS`].
pub const REPLAY_CHUNK_BYTES: usize = 128 * 1024;

/// Stars of a glob pattern that are followed by something else. As deep as Redis goes.
pub const MAX_PATTERN_STARS: usize = 1000;

// ---- Scripts ------------------------------------------------------------------------------------

/// Scripts of EVAL that are known at a time; one more, and the least recently used one is
/// forgotten.
pub const EVAL_SCRIPTS: usize = 500;

/// Compiled scripts that a thread's Lua state keeps; beyond that it compiles them anew.
pub const COMPILED_SCRIPTS: usize = 4096;

/// Bytes of room for the words of commands that a Lua state keeps for the next script.
pub const SCRIPT_WORDS_KEPT: usize = 64 * 1024;

/// Instructions of a script between two looks at the clock, at most. One instruction may be a call
/// that takes milliseconds.
pub const SCRIPT_INSTRUCTIONS: i32 = 2000;
/// The same at the start of a script, when it is not known yet how long its instructions take.
pub const SCRIPT_INSTRUCTIONS_FIRST: i32 = 100;
/// The same at most after it has run for some milliseconds.
pub const SCRIPT_INSTRUCTIONS_LATER: i32 = 400;

/// Microseconds that a library of functions may take to register them when a client sends it: as
/// long as in Redis.
pub const LIBRARY_LOAD_US: u64 = 500_000;
/// Microseconds that it may take when it is loaded again: from a file or a payload, or on another
/// thread. Redis has no limit there: a library that was accepted once must not fail on a busy
/// machine.
pub const LIBRARY_RELOAD_US: u64 = 30_000_000;
