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
    ("engine", &["base", "resp", "store", "config", "rdb", "etcd"]),
    ("script", &["base", "resp", "config", "lua", "engine"]),
    (
        "server",
        &["base", "resp", "store", "config", "rdb", "http", "etcd", "engine", "script", "views"],
    ),
    ("views", &[]),
    ("lab", &["base", "resp"]),
    ("lua", &[]),
    ("dunlin", &["config", "engine", "server", "lab"]),
];

/// Which rooms of the server import which others. All may import `process`, and `boot` and `host` wire
/// them.
pub(crate) const SERVER_ROOMS: &[(&str, &str)] = &[
    // Work that is due by the clock concerns these.
    ("cron", "memory"),
    ("cron", "persist"),
    // Threads that allocate say so.
    ("assistant", "memory"),
    ("changes", "memory"),
    ("freeing", "memory"),
    ("views", "memory"),
    // They are assistants.
    ("errands", "assistant"),
    ("listings", "assistant"),
    // They run commands.
    ("listings", "hand"),
    ("views", "hand"),
    ("net", "memory"),
    ("persist", "memory"),
    // A socket that listens is given to the acceptor.
    ("listen", "net"),
];

/// Which rooms of the server's persistence import which others.
pub(crate) const PERSIST_ROOMS: &[(&str, &str)] = &[
    // It gives the journal its files, and ends and repairs them.
    ("aof", "journal"),
];

/// Whether files are those of one family of commands, whose registry, its `mod.rs`, names them all and
/// may have what they share.
pub(crate) fn is_family(files: &BTreeSet<&str>) -> bool {
    let family = |file: &str| {
        let inner = file.strip_prefix("crates/engine/src/commands/")?;
        Some(inner.split_once('/')?.0.to_string())
    };
    let families: BTreeSet<_> = files.iter().map(|file| family(file)).collect();
    families.len() == 1 && !families.contains(&None)
}

/// Circles of imports that are there, with their files.
pub(crate) const CIRCLES: &[(&[&str], &str)] = &[
    (
        &[
            "crates/store/src/cut.rs",
            "crates/store/src/keyspace.rs",
            "crates/store/src/keyspace/held.rs",
        ],
        "a keyspace hands what changes to its cut, and who walks through a cut locks the keyspace's slots",
    ),
    (
        &[
            "crates/store/src/entry.rs",
            "crates/store/src/entry/removed.rs",
            "crates/store/src/freeze.rs",
            "crates/store/src/hash.rs",
            "crates/store/src/hash/fields.rs",
            "crates/store/src/member.rs",
            "crates/store/src/member/table.rs",
            "crates/store/src/set.rs",
            "crates/store/src/zset.rs",
            "crates/store/src/zset/table.rs",
        ],
        "an entry has a collection, which knows the snapshot that reads it, which may own a removed entry",
    ),
];

/// Files that read a clock, besides those of the server and the lab, which measure how long they wait.
pub(crate) const CLOCKS: &[(&str, &str)] = &[
    ("crates/base/src/clock.rs", "it reads clocks for all others"),
    ("crates/lab/src/agent/server.rs", "machines compare their wall clocks"),
    ("crates/lab/src/targets/tree.rs", "it asks for the processor time of another process"),
    ("crates/views/src/sqlite.rs", "it ends statements whose time is up"),
];

/// Files with unsafe code. Each says so in its first lines, and each block says why it is sound.
pub(crate) const UNSAFE: &[&str] = &[
    "crates/base/src/clock.rs",
    "crates/base/src/time_slice.rs",
    "crates/dunlin/src/allocator.rs",
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
    "crates/server/src/cron.rs",
    "crates/server/src/process/system.rs",
    "crates/store/src/entry.rs",
    "crates/store/src/entry/change.rs",
    "crates/store/src/entry/removed.rs",
    "crates/store/src/entry/stamp.rs",
    "crates/store/src/frozen_text.rs",
    "crates/store/src/garbage.rs",
    "crates/store/src/gate.rs",
    "crates/store/src/hash/fields.rs",
    "crates/store/src/keyspace.rs",
    "crates/store/src/keyspace/held.rs",
    "crates/store/src/keyspace/slot_table.rs",
    "crates/store/src/member.rs",
    "crates/store/src/member/table.rs",
    "crates/store/src/pack/form.rs",
    "crates/store/src/pack/node.rs",
    "crates/store/src/pack/slice.rs",
    "crates/store/src/pack/thin.rs",
    "crates/store/src/sync.rs",
    "crates/store/src/table/dict.rs",
    "crates/store/src/table/dict/near.rs",
    "crates/store/src/table/retire.rs",
    "crates/store/src/zset/table.rs",
];

/// Lines that a file may have.
pub(crate) const LINES_MAX: usize = 1000;

/// Files that are longer.
pub(crate) const LONG: &[(&str, &str)] = &[];
