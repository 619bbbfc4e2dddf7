//! The rules, and their exceptions, each with its reason. The lists may only get shorter.

use std::collections::BTreeSet;

/// What each crate may import of the others.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("resp", &["base"]),
    ("store", &["base"]),
    ("config", &["base"]),
    ("rdb", &["base", "store"]),
    ("http", &["base", "resp"]),
    ("etcd", &["base"]),
    ("cluster", &["base"]),
    ("replication", &["base", "resp"]),
    ("tls", &[]),
    ("gateway", &["base", "cluster", "tls"]),
    ("engine", &["base", "resp", "store", "config", "rdb", "etcd", "cluster"]),
    ("commands", &["base", "resp", "store", "config", "rdb", "etcd", "cluster", "engine"]),
    ("script", &["base", "resp", "config", "lua", "engine"]),
    ("process", &["base", "config", "engine"]),
    ("persist", &["base", "resp", "store", "config", "rdb", "engine", "commands", "process"]),
    (
        "server",
        &[
            "base",
            "resp",
            "store",
            "config",
            "rdb",
            "http",
            "etcd",
            "replication",
            "engine",
            "commands",
            "process",
            "persist",
            "script",
            "tls",
            "views",
            "cluster",
            "gateway",
        ],
    ),
    ("simulation", &[]),
    ("views", &["tls"]),
    ("lab", &["base", "resp", "tls"]),
    ("mover", &["resp", "lab"]),
    ("backup", &["base", "resp", "rdb", "replication", "tls", "lab"]),
    ("operator", &["base", "cluster", "config", "gateway", "lab", "resp", "tls"]),
    ("top", &["base", "resp", "lab"]),
    ("cli", &["base", "resp", "engine", "commands", "lab", "tls"]),
    ("lua", &[]),
    (
        "dunlin",
        &[
            "resp", "config", "engine", "commands", "process", "persist", "server", "lab", "mover",
            "backup", "cli", "operator", "tls", "top",
        ],
    ),
];

/// A room of a crate, with those that it imports.
type Room = (&'static str, &'static [&'static str]);

/// The rooms of crates, each with those that it imports, which stand before it: the lowest is the
/// first. A room is a folder or a file right under the crate's `src`.
pub(crate) const ROOMS: &[(&str, &[Room])] = &[
    (
        "engine",
        &[
            ("command", &[]),
            ("content_types", &[]),
            ("cluster", &["command"]),
            ("observe", &["command"]),
            ("journal", &[]),
            ("users", &["command"]),
            ("session", &["command", "observe", "journal", "users"]),
            ("host", &["session"]),
            ("script", &["command", "host"]),
            ("files", &["command", "observe", "session"]),
            ("db", &["command", "cluster", "observe", "journal", "session", "script"]),
            ("memory", &["session", "host", "db"]),
            ("nodes", &["command", "session", "db"]),
            ("replication", &["journal", "session", "script"]),
            (
                "engine",
                &[
                    "command",
                    "cluster",
                    "content_types",
                    "observe",
                    "journal",
                    "session",
                    "host",
                    "script",
                    "files",
                    "db",
                    "memory",
                    "nodes",
                    "replication",
                    "users",
                ],
            ),
            ("turn", &["command", "cluster", "observe", "session", "db", "memory", "engine"]),
            ("handler", &["command", "session", "db", "engine"]),
            ("reclaim", &["command", "session", "host", "db", "memory", "nodes", "engine", "turn"]),
            (
                "persistence",
                &["command", "journal", "replication", "session", "files", "db", "engine", "turn"],
            ),
            (
                "admission",
                &[
                    "command",
                    "cluster",
                    "session",
                    "host",
                    "script",
                    "files",
                    "engine",
                    "turn",
                    "reclaim",
                    "persistence",
                    "journal",
                    "users",
                ],
            ),
            (
                "clients",
                &[
                    "command",
                    "cluster",
                    "observe",
                    "journal",
                    "users",
                    "session",
                    "host",
                    "db",
                    "nodes",
                    "engine",
                    "turn",
                    "admission",
                ],
            ),
            ("changes", &["command", "journal", "session", "engine"]),
            ("wait", &["session", "db", "engine", "turn", "admission"]),
            (
                "scripting",
                &[
                    "command",
                    "observe",
                    "session",
                    "host",
                    "script",
                    "db",
                    "engine",
                    "turn",
                    "persistence",
                    "admission",
                    "clients",
                    "wait",
                ],
            ),
            (
                "run",
                &[
                    "command",
                    "cluster",
                    "observe",
                    "journal",
                    "session",
                    "host",
                    "script",
                    "db",
                    "engine",
                    "turn",
                    "admission",
                    "clients",
                    "wait",
                ],
            ),
            ("no_host", &["session", "host", "files", "engine"]),
            (
                "testing",
                &[
                    "journal",
                    "session",
                    "files",
                    "db",
                    "engine",
                    "turn",
                    "persistence",
                    "run",
                    "no_host",
                ],
            ),
        ],
    ),
    (
        "process",
        &[
            ("memory", &[]),
            ("paths", &[]),
            ("permissions", &[]),
            ("system", &[]),
            ("descriptors", &["paths"]),
            ("signal", &["system"]),
            ("thread", &["system"]),
            ("title", &["system"]),
            ("log", &["paths", "system", "thread"]),
            ("announce", &["paths", "log"]),
            ("crash", &["system", "log"]),
            ("daemon", &["paths", "system", "log"]),
            ("supervisor", &["paths", "system", "log"]),
        ],
    ),
    (
        "persist",
        &[
            ("config_file", &[]),
            ("cuts", &[]),
            ("delay", &[]),
            ("disk", &[]),
            ("shape", &[]),
            ("as_commands", &["shape"]),
            ("claim", &["disk"]),
            ("journal", &["disk"]),
            ("originals", &["disk"]),
            ("stale", &["disk"]),
            ("snapshot", &["delay", "shape", "as_commands"]),
            ("full_copy", &["cuts", "snapshot"]),
            ("aof", &["cuts", "disk", "claim", "journal", "originals", "stale", "snapshot"]),
            ("rdb", &["cuts", "disk", "claim", "stale", "snapshot"]),
            ("check", &["disk", "claim", "originals", "aof"]),
            ("load", &["delay", "disk", "aof"]),
        ],
    ),
    (
        "server",
        &[
            ("connecting", &[]),
            ("credentials", &[]),
            ("encryption", &[]),
            ("files", &[]),
            ("net", &[]),
            ("primary", &["connecting"]),
            ("threads", &["connecting"]),
            ("listen", &["net"]),
            ("host", &["encryption", "files", "net", "threads", "listen"]),
            ("users", &[]),
            ("watched_files", &["host", "threads"]),
            (
                "boot",
                &[
                    "credentials",
                    "encryption",
                    "files",
                    "net",
                    "primary",
                    "threads",
                    "listen",
                    "host",
                    "users",
                    "watched_files",
                ],
            ),
        ],
    ),
];

/// Whether files are those of one family of commands, whose registry, its `mod.rs`, names them all
/// and may have what they share.
pub(crate) fn is_family(files: &BTreeSet<&str>) -> bool {
    let family = |file: &str| {
        let inner = file.strip_prefix("crates/commands/src/")?;
        Some(inner.split_once('/')?.0.to_string())
    };
    let families: BTreeSet<_> = files.iter().map(|file| family(file)).collect();
    families.len() == 1 && !families.contains(&None)
}

/// Circles of imports that are there, with their files.
pub(crate) const CIRCLES: &[(&[&str], &str)] = &[
    (
        &[
            "crates/engine/src/engine.rs",
            "crates/engine/src/engine/client_names.rs",
            "crates/engine/src/engine/context.rs",
            "crates/engine/src/engine/registry.rs",
            "crates/engine/src/engine/row.rs",
            "crates/engine/src/engine/storage.rs",
        ],
        "an engine has all commands, a command's handler takes a context, and a context has the engine",
    ),
    (
        &[
            "crates/store/src/snapshot/cut.rs",
            "crates/store/src/keyspace.rs",
            "crates/store/src/keyspace/locked.rs",
        ],
        "a keyspace hands what changes to its cut, and who walks through a cut locks the keyspace's slots",
    ),
    (
        &[
            "crates/store/src/entry.rs",
            "crates/store/src/entry/removed.rs",
            "crates/store/src/snapshot/freeze.rs",
            "crates/store/src/types/hash.rs",
            "crates/store/src/types/hash/fields.rs",
            "crates/store/src/types/member.rs",
            "crates/store/src/types/member/table.rs",
            "crates/store/src/types/set.rs",
            "crates/store/src/types/zset.rs",
            "crates/store/src/types/zset/table.rs",
        ],
        "an entry has a collection, which knows the snapshot that reads it, which may own a removed entry",
    ),
];

/// The file that syncs data besides the server's room for that: a tool's own files.
pub(crate) const SYNCS_ITS_OWN: &str = "crates/backup/src/files.rs";

/// Files that read a clock, besides those of the server and the lab, which measure how long they
/// wait.
pub(crate) const CLOCKS: &[(&str, &str)] = &[
    ("crates/base/src/clock.rs", "it reads clocks for all others"),
    ("crates/lab/src/agent/server.rs", "machines compare their wall clocks"),
    ("crates/lab/src/targets/tree.rs", "it asks for the processor time of another process"),
    ("crates/tls/src/dev.rs", "certificates hold from now on"),
    ("crates/tls/src/sessions.rs", "sessions are kept for a while"),
    ("crates/mover/src/clock.rs", "it measures how long another process holds writes"),
    ("crates/mover/src/compare.rs", "it says once a second how far it is"),
    (
        "crates/mover/src/copy.rs",
        "it waits for another process, and says once a second how far it is",
    ),
    ("crates/mover/src/last_steps.rs", "it waits for another process"),
    ("crates/mover/src/steps.rs", "it says how long the writes of another process were held"),
    ("crates/views/src/sqlite.rs", "it ends statements whose time is up"),
];

/// Files with unsafe code. Each says so in its first lines, and each block says why it is sound.
pub(crate) const UNSAFE: &[&str] = &[
    "crates/base/src/clock.rs",
    "crates/base/src/time_slice.rs",
    "crates/dunlin/src/allocator.rs",
    "crates/engine/src/journal/block.rs",
    "crates/lab/src/targets/process.rs",
    "crates/lab/src/targets/tree.rs",
    "crates/lab/src/load/usage.rs",
    "crates/lua/src/levels.rs",
    "crates/lua/src/output.rs",
    "crates/lua/src/patterns.rs",
    "crates/lua/src/stack.rs",
    "crates/resp/src/frame.rs",
    "crates/script/src/api.rs",
    "crates/script/src/coroutines.rs",
    "crates/script/src/current.rs",
    "crates/script/src/errors.rs",
    "crates/script/src/from_reply.rs",
    "crates/script/src/guarded.rs",
    "crates/script/src/library.rs",
    "crates/script/src/memory.rs",
    "crates/script/src/protected.rs",
    "crates/script/src/random.rs",
    "crates/script/src/registry.rs",
    "crates/script/src/sandbox.rs",
    "crates/script/src/stack.rs",
    "crates/script/src/state.rs",
    "crates/script/src/to_reply.rs",
    "crates/script/src/watch.rs",
    "crates/server/src/threads/cron.rs",
    "crates/process/src/system.rs",
    "crates/simulation/src/hold.rs",
    "crates/simulation/src/memory.rs",
    "crates/store/src/entry.rs",
    "crates/store/src/entry/change.rs",
    "crates/store/src/entry/removed.rs",
    "crates/store/src/entry/stamp.rs",
    "crates/store/src/snapshot/frozen_text.rs",
    "crates/store/src/garbage.rs",
    "crates/store/src/locks/gate.rs",
    "crates/store/src/types/hash/fields.rs",
    "crates/store/src/keyspace.rs",
    "crates/store/src/keyspace/locked.rs",
    "crates/store/src/keyspace/slot_table.rs",
    "crates/store/src/types/member.rs",
    "crates/store/src/types/member/table.rs",
    "crates/store/src/pack/form.rs",
    "crates/store/src/pack/node.rs",
    "crates/store/src/pack/slice.rs",
    "crates/store/src/pack/thin.rs",
    "crates/store/src/locks/sync.rs",
    "crates/store/src/table/dict.rs",
    "crates/store/src/table/dict/prefetch.rs",
    "crates/store/src/table/retire.rs",
    "crates/store/src/types/zset/table.rs",
];

/// Columns of a comment, as the formatter has for code.
pub(crate) const COLUMNS_MAX: usize = 100;

/// Lines that a file may have.
pub(crate) const LINES_MAX: usize = 1000;

/// Files that are longer.
pub(crate) const LONG: &[(&str, &str)] = &[];
