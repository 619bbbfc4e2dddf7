//! The flags of a command's row: what is true of the command wherever it is looked at.
//!
//! The rest of the engine, and the server, ask a row for its flags. They do not know commands by
//! their names.

/// Command flags: a set of bits.
pub type Flags = u64;
/// Nothing of all this.
pub const NO_FLAGS: Flags = 0;

// ---- Those that clients know, in the words of COMMAND INFO --------------------------------------

/// May change data.
pub const WRITE: Flags = 1 << 0;
/// Reads data only.
pub const READONLY: Flags = 1 << 1;
/// Refused when memory is short.
pub const DENYOOM: Flags = 1 << 2;
/// Administration.
pub const ADMIN: Flags = 1 << 3;
/// Publish and subscribe.
pub const PUBSUB: Flags = 1 << 4;
/// Not from scripts.
pub const NOSCRIPT: Flags = 1 << 5;
/// May block the client.
pub const BLOCKING: Flags = 1 << 6;
/// While a snapshot is loading, too.
pub const LOADING: Flags = 1 << 7;
/// On a replica with a broken link, too.
pub const STALE: Flags = 1 << 8;
/// Not shown by MONITOR.
pub const SKIP_MONITOR: Flags = 1 << 9;
/// Not in the slow log.
pub const SKIP_SLOWLOG: Flags = 1 << 10;
/// Constant or logarithmic time.
pub const FAST: Flags = 1 << 11;
/// Before authentication, too.
pub const NO_AUTH: Flags = 1 << 12;
/// A simple rule does not find the keys.
pub const MOVABLE_KEYS: Flags = 1 << 13;
/// Not inside MULTI.
pub const NO_MULTI: Flags = 1 << 14;
/// While a script is busy, too.
pub const ALLOW_BUSY: Flags = 1 << 15;
/// Not while a replica loads a snapshot and still serves its old data.
pub const NO_ASYNC_LOADING: Flags = 1 << 16;
/// An argument counts its keys, and there may be none.
pub const NO_MANDATORY_KEYS: Flags = 1 << 17;
/// In a slot that a node of Redis Cluster takes over, too: the node that gives it away sends it.
pub const ASKS: Flags = 1 << 18;

/// The flags that COMMAND INFO names, in its order.
pub const FLAG_NAMES: &[(Flags, &str)] = &[
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (SKIP_MONITOR, "skip_monitor"),
    (SKIP_SLOWLOG, "skip_slowlog"),
    (ASKS, "asking"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MANDATORY_KEYS, "no_mandatory_keys"),
    (NO_ASYNC_LOADING, "no_async_loading"),
    (NO_MULTI, "no_multi"),
    (MOVABLE_KEYS, "movablekeys"),
    (ALLOW_BUSY, "allow_busy"),
];

// ---- Those that are not shown to clients --------------------------------------------------------

/// For replicas it counts as a write, though it changes no key (PFCOUNT).
pub const MAY_REPLICATE: Flags = 1 << 24;
/// Reads or changes keys that it does not name, or all of them: inside EXEC it makes the
/// transaction a program.
pub const WHOLE_KEYSPACE: Flags = 1 << 25;
/// Runs with the world stopped, because it changes something that no slot lock protects.
pub const STOPS_THE_WORLD: Flags = 1 << 26;
/// With a BY or GET option it reads keys that it does not name.
pub const READS_BY_PATTERN: Flags = 1 << 27;
/// Runs at once inside MULTI instead of being queued.
pub const NEVER_QUEUED: Flags = 1 << 28;
/// Runs the commands that its connection has queued: EXEC.
pub const RUNS_QUEUED: Flags = 1 << 29;
/// Needs the journal to be kept for followers, which begins with the world stopped.
pub const FOLLOWS: Flags = 1 << 30;
/// No client finds it by a name: other protocols than RESP use it.
pub const INTERNAL: Flags = 1 << 31;
/// Takes the fast path though it is internal: it is as simple as GET, and as frequent.
pub const GOES_SHORT: Flags = 1 << 32;
/// Allowed only by `enable-debug-command` (DEBUG).
pub const PROTECTED: Flags = 1 << 33;
/// Never allowed: there are no modules, so there is no setting that would allow it.
pub const NEEDS_MODULES: Flags = 1 << 34;
/// Also for a connection of RESP2 that has subscribed to something.
pub const WHILE_SUBSCRIBED: Flags = 1 << 35;
/// Refused wherever writes are refused because they would not be durable: programs that watch over
/// a server use it (PING).
pub const REFUSED_LIKE_WRITES: Flags = 1 << 36;
/// Is about the connection that it arrives on: requests that share none cannot send it.
pub const OF_CONNECTION: Flags = 1 << 37;
/// Selects the database of the commands after it.
pub const SELECTS: Flags = 1 << 38;
/// A client that waits in it is notified when one of its keys is removed.
pub const WAKES_ON_REMOVAL: Flags = 1 << 39;
/// Runs the script whose text is its first argument.
pub const SCRIPT_BY_TEXT: Flags = 1 << 40;
/// Runs the script whose digest is its first argument.
pub const SCRIPT_BY_DIGEST: Flags = 1 << 41;
/// Runs the function whose name is its first argument.
pub const SCRIPT_BY_NAME: Flags = 1 << 42;
/// Another thread does its work, while its client waits: MIGRATE.
pub const SET_ASIDE: Flags = 1 << 46;
/// Reads or changes the tree of [`crate::nodes`]. Who reads it waits as long for what was written
/// to it as its writers do, and a thread of the server asks whether this node serves it.
pub const OF_TREE: Flags = 1 << 47;
/// Shows the libraries of functions, which are data that no key names.
pub const SHOWS_LIBRARIES: Flags = 1 << 48;

/// Stands in the stream of a primary, though it changes no key.
pub const IN_STREAM: Flags = 1 << 49;

/// Runs a script, which may call any command: one of these flags.
pub const SCRIPT: Flags = SCRIPT_BY_TEXT | SCRIPT_BY_DIGEST | SCRIPT_BY_NAME;

// ---- ACL categories that neither the group nor another flag implies -----------------------------

/// In `keyspace`: about keys, whatever their values are.
pub const IN_KEYSPACE: Flags = 1 << 43;
/// In `connection`, though of another group.
pub const IN_CONNECTION: Flags = 1 << 44;
/// In `dangerous`, though no administration.
pub const IN_DANGEROUS: Flags = 1 << 45;
