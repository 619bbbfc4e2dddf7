//! MEMORY: how much memory a key takes, and what takes the memory of the process.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Group, LOOKS_2, NO_FLAGS, NO_KEYS, READONLY,
    argument, docs, docs_of_help, key,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::{container, help};
use engine::reclaim::eviction::{DEFAULT_SAMPLES, entry_memory};
use engine::reclaim::overview::Overview;

mod doctor;

/// MEMORY USAGE key [SAMPLES count]
fn usage(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let key = args.key()?;
    let mut samples = DEFAULT_SAMPLES;
    while !args.is_empty() {
        if args.len() < 2 || !args.word("samples") {
            return Err(CommandError::SYNTAX);
        }
        samples = usize::try_from(args.i64()?).map_err(|_| CommandError::SYNTAX)?;
    }
    // An expired key takes memory until it is deleted.
    let entry = cx.db.locked.find(cx.db.index, &key);
    match entry {
        None => cx.reply.null(),
        Some(entry) => {
            let table = cx.db.locked.table(cx.db.index, key.slot);
            let place = table.map_or(0, |table| table.overhead().div_ceil(table.len().max(1)));
            cx.reply.integer((entry_memory(entry, samples) + place) as i64);
        }
    }
    Ok(())
}

/// MEMORY STATS
fn stats(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let overview = cx.engine.memory_overview(cx.slot_access.pinned());
    let scripts = &cx.engine.scripts;
    let lua_caches = scripts.cache.memory() as i64;
    let function_caches = scripts.functions.memory() as i64;
    let lua_states = scripts.interpreter.memory() as i64;
    let mut page = Page { cx, pairs: 0 };
    let mark = page.cx.reply.mark();
    page.integer("peak.allocated", overview.peak as i64);
    page.integer("total.allocated", overview.used as i64);
    page.integer("startup.allocated", overview.startup as i64);
    page.integer("replication.backlog", 0);
    page.integer("replica.fullsync.buffer", 0);
    page.integer("clients.slaves", 0);
    page.integer("clients.normal", overview.clients as i64);
    page.integer("cluster.links", 0);
    page.integer("aof.buffer", 0);
    page.integer("lua.caches", lua_caches);
    page.integer("functions.caches", function_caches);
    page.integer("script.VMs", lua_states);
    for &(database, bytes) in &overview.tables {
        page.database(database, bytes);
    }
    // Tables grow one bucket at a time: no table is ever copied into a larger one.
    page.integer("overhead.db.hashtable.lut", 0);
    page.integer("overhead.db.hashtable.rehashing", 0);
    page.integer("overhead.total", overview.overhead() as i64);
    page.integer("db.dict.rehashing.count", 0);
    page.integer("keys.count", overview.keys as i64);
    let per_key = overview.net().checked_div(overview.keys).unwrap_or(0);
    page.integer("keys.bytes-per-key", per_key as i64);
    page.integer("dataset.bytes", overview.dataset() as i64);
    page.double("dataset.percentage", overview.dataset_percentage());
    page.double("peak.percentage", overview.peak_percentage());
    page.integer("allocator.allocated", overview.metrics.allocated as i64);
    page.integer("allocator.active", overview.metrics.active as i64);
    page.integer("allocator.resident", overview.metrics.resident as i64);
    page.integer("allocator.muzzy", 0);
    let fragmentation = overview.fragmentation();
    page.fragmentation("allocator-fragmentation", ".ratio", fragmentation.allocator);
    page.fragmentation("allocator-rss", ".ratio", fragmentation.allocator_resident);
    page.fragmentation("rss-overhead", ".ratio", fragmentation.resident_overhead);
    page.fragmentation("fragmentation", "", fragmentation.total);
    let pairs = page.pairs;
    cx.reply.close_map(mark, pairs);
    Ok(())
}

/// Names with their values, to be written as a map.
struct Page<'p, 'c> {
    cx: &'p mut Context<'c>,
    pairs: usize,
}

impl Page<'_, '_> {
    fn name(&mut self, name: &str) {
        self.cx.reply.bulk(name.as_bytes());
        self.pairs += 1;
    }

    fn integer(&mut self, name: &str, value: i64) {
        self.name(name);
        self.cx.reply.integer(value);
    }

    fn double(&mut self, name: &str, value: f64) {
        self.name(name);
        self.cx.reply.double(value);
    }

    fn fragmentation(&mut self, name: &str, suffix: &str, (ratio, bytes): (f64, i64)) {
        self.double(&format!("{name}{suffix}"), ratio);
        self.integer(&format!("{name}.bytes"), bytes);
    }

    /// The tables of a database. Expiries are in the entries, and slots are the tables themselves.
    fn database(&mut self, database: usize, bytes: usize) {
        self.name(&format!("db.{database}"));
        let parts = [("overhead.hashtable.main", bytes), ("overhead.hashtable.expires", 0)];
        self.cx.reply.map(parts.len());
        for (name, bytes) in parts {
            self.cx.reply.bulk(name.as_bytes());
            self.cx.reply.integer(bytes as i64);
        }
    }
}

/// MEMORY DOCTOR
fn doctor(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let text = doctor::report(&cx.engine.memory_overview(cx.slot_access.pinned()));
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// MEMORY PURGE
fn purge(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.host.purge_memory();
    cx.reply.ok();
    Ok(())
}

/// MEMORY MALLOC-STATS
fn malloc_stats(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let Overview { used, metrics, .. } = cx.engine.memory_overview(cx.slot_access.pinned());
    let allocator = cx.engine.host.process().allocator;
    let text = format!(
        "Allocator: {allocator}\nCounted by threads: {used}\nAllocated: {}, active: {}, metadata: \
         {}, resident: {}, mapped: {}, retained: {}\n",
        metrics.allocated,
        metrics.active,
        metrics.metadata,
        metrics.resident,
        metrics.mapped,
        metrics.retained
    );
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([container("memory", SUBCOMMANDS)]);

const SUBCOMMANDS: &[Command] = &Group::Server.under("memory").rows([
    row("usage", usage, -3, READONLY, LOOKS_2),
    row("stats", stats, 2, NO_FLAGS, NO_KEYS),
    row("doctor", doctor, 2, NO_FLAGS, NO_KEYS),
    row("malloc-stats", malloc_stats, 2, NO_FLAGS, NO_KEYS),
    row("purge", purge, 2, NO_FLAGS, NO_KEYS),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

const OBSERVING: &[&str] =
    &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];

const DOCS: &[Docs] = &[
    docs("memory", "4.0.0", "Commands about memory.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("memory|usage", "4.0.0", "Returns how many bytes a key and its value take.")
        .cost("O(N) where N is the number of samples.")
        .arguments(&[
            key("key", 0),
            argument("count", ArgumentKind::Integer).token("SAMPLES").optional(),
        ]),
    docs("memory|stats", "4.0.0", "Shows where the memory is.").cost("O(1)").tips(OBSERVING),
    docs("memory|doctor", "4.0.0", "Reports problems with the use of memory.")
        .cost("O(1)")
        .tips(OBSERVING),
    docs("memory|malloc-stats", "4.0.0", "Shows the allocator's own figures.")
        .cost("Depends on how much memory is in use; it may take long.")
        .tips(OBSERVING),
    docs("memory|purge", "4.0.0", "Gives unused memory back to the system.")
        .cost("Depends on how much memory is in use; it may take long.")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    docs_of_help("memory|help", "4.0.0"),
];

#[cfg(test)]
mod tests {

    #[test]
    fn usage_reads_its_options() {
        let mut server = crate::testing::server();
        server.text("SADD set a b");
        assert_eq!(server.text("MEMORY USAGE nosuch"), "$-1\r\n");
        let bytes = server.text("MEMORY USAGE set SAMPLES 0");
        let bytes: usize = bytes[1..].trim_end().parse().expect("a number");
        assert!((64..1024).contains(&bytes), "{bytes}");
        for line in ["set foo", "set SAMPLES", "set SAMPLES -1"] {
            assert_eq!(server.text(&format!("MEMORY USAGE {line}")), "-ERR syntax error\r\n");
        }
        let error = "-ERR value is not an integer or out of range\r\n";
        assert_eq!(server.text("MEMORY USAGE set SAMPLES x"), error);
    }

    #[test]
    fn stats_are_a_map_of_all_databases() {
        let mut server = crate::testing::server();
        server.text("SADD set a b");
        server.host.use_memory(2_000_000);
        let text = server.text("MEMORY STATS");
        assert!(text.starts_with("*68\r\n$14\r\npeak.allocated\r\n:2000000\r\n"), "{text}");
        assert!(text.contains("$4\r\ndb.0\r\n*4\r\n"));
        assert!(text.contains("$10\r\nkeys.count\r\n:1\r\n"));
    }
}
