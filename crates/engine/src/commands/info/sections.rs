//! Sections about what the server is and has.

use std::sync::atomic::Ordering::Relaxed;

use base::rng;
use store::Entry;

use super::Page;
use crate::engine::Engine;
use crate::handler::context::Context;
use crate::observe::memory::Overview;
use crate::{REDIS_VERSION, VERSION};
use config::{Choice, Config};

const SECONDS_PER_DAY: u64 = 86_400;
/// Slots from whose keys `avg_ttl` is estimated.
const TTL_SLOTS: usize = 16;
/// Buckets of such a slot that are visited.
const TTL_BUCKETS: usize = 16;

pub(super) fn server(page: &mut Page, cx: &Context<'_>) {
    let (engine, config) = (cx.engine, cx.db.config);
    let facts = engine.host.process();
    let now_us = base::clock::now_us();
    let uptime = cx.db.steady.saturating_sub(engine.started_at) / 1000;
    page.field("redis_version", REDIS_VERSION);
    page.field("server_name", "dunlin");
    page.field("dunlin_version", VERSION);
    page.field(
        "redis_git_sha1",
        if facts.git_sha1.is_empty() { "00000000" } else { facts.git_sha1 },
    );
    page.field("redis_git_dirty", u8::from(facts.git_dirty));
    page.field("redis_build_id", format_args!("{:x}", build_id(facts.git_sha1, facts.compiler)));
    page.field("redis_mode", "standalone");
    page.field("os", &facts.os);
    page.field("arch_bits", usize::BITS);
    page.field("monotonic_clock", facts.monotonic_clock);
    page.field("multiplexing_api", facts.multiplexing_api);
    page.field("atomicvar_api", "rust-core");
    // Redis shows this when another compiler built it.
    page.field("gcc_version", "0.0.0");
    page.field("compiler", facts.compiler);
    page.field("process_id", facts.process_id);
    page.field("process_supervised", facts.supervised);
    page.field("run_id", &engine.run_id);
    page.field("tcp_port", config.port);
    page.field("server_time_usec", now_us);
    page.field("uptime_in_seconds", uptime);
    page.field("uptime_in_days", uptime / SECONDS_PER_DAY);
    page.field("hz", config.hz);
    page.field("configured_hz", config.hz);
    page.field("lru_clock", (now_us / 1_000_000) & 0xff_ffff);
    page.field("executable", &facts.executable);
    page.field("config_file", &facts.config_file);
    // Workers read, execute and write; no thread does only input and output.
    page.field("io_threads_active", 0);
    page.field("worker_threads", facts.workers);
    listeners(page, &engine.host.listens_at(), config);
}

/// Where clients connect, a line for each kind of socket.
fn listeners(page: &mut Page, addresses: &[String], config: &Config) {
    let mut number = 0;
    let mut listener = |text: String| {
        page.field(&format!("listener{number}"), text);
        number += 1;
    };
    if !addresses.is_empty() {
        let addresses: String = addresses.iter().map(|word| format!(",bind={word}")).collect();
        listener(format!("name=tcp{addresses},port={}", config.port));
    }
    if !config.unixsocket.is_empty() {
        listener(format!("name=unix,bind={}", String::from_utf8_lossy(&config.unixsocket)));
    }
}

/// A number that differs between builds of different sources.
fn build_id(git_sha1: &str, compiler: &str) -> u64 {
    base::hash::hash(format!("{VERSION} {git_sha1} {compiler}").as_bytes())
}

pub(super) fn clients(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let (input, output) = engine.clients.buffer_peaks(cx.db.steady / 1000);
    page.field("connected_clients", engine.clients.len());
    page.field("cluster_connections", 0);
    page.field("maxclients", cx.db.config.maxclients);
    page.field("client_recent_max_input_buffer", input);
    page.field("client_recent_max_output_buffer", output);
    page.field("blocked_clients", engine.blocked_clients());
    page.field("tracking_clients", 0);
    let occupations = engine.clients.occupations();
    page.field("pubsub_clients", occupations.subscribed);
    page.field("watching_clients", occupations.watching);
    page.field("clients_in_timeout_table", occupations.waiting_with_deadline);
    page.field("total_watched_keys", engine.watched_keys.load(Relaxed));
    page.field("total_blocking_keys", occupations.awaited_keys);
    page.field("total_blocking_keys_on_nokey", occupations.needed_keys);
}

/// The followers of the journal, and what is kept for them.
pub(super) fn changes(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let figures = engine.listeners.figures();
    page.field("changes_followers", figures.following);
    page.field("changes_waiting", figures.waiting);
    page.field("changes_fallen_behind", figures.fallen_behind);
    page.field("changes_given_up", figures.given_up);
    let kept = engine.journal.changes().map_or(0, |backlog| backlog.bytes());
    page.field("changes_kept_bytes", kept);
}

pub(super) fn memory(page: &mut Page, cx: &Context<'_>) {
    let overview = cx.engine.memory_overview(cx.authority.presence());
    page.bytes("used_memory", overview.used);
    page.bytes("used_memory_rss", overview.figures.process_resident);
    page.bytes("used_memory_peak", overview.peak);
    page.field("used_memory_peak_perc", format_args!("{:.2}%", overview.peak_percentage()));
    page.field("used_memory_overhead", overview.overhead());
    page.field("used_memory_startup", overview.startup);
    page.field("used_memory_dataset", overview.dataset());
    page.field("used_memory_dataset_perc", format_args!("{:.2}%", overview.dataset_percentage()));
    page.field("allocator_allocated", overview.figures.allocated);
    page.field("allocator_active", overview.figures.active);
    page.field("allocator_resident", overview.figures.resident);
    page.field("allocator_muzzy", 0);
    page.bytes("total_system_memory", overview.figures.system_total);
    scripts(page, cx.engine);
    page.bytes("maxmemory", cx.db.config.maxmemory as usize);
    page.field("maxmemory_policy", cx.db.config.maxmemory_policy.name());
    fragmentation(page, &overview);
    page.field("mem_not_counted_for_evict", cx.engine.uncounted_memory());
    page.field("mem_replication_backlog", 0);
    page.field("mem_total_replication_buffers", 0);
    page.field("mem_replica_full_sync_buffer", 0);
    page.field("mem_clients_slaves", 0);
    page.field("mem_clients_normal", overview.clients);
    page.field("mem_cluster_links", 0);
    page.field("mem_aof_buffer", 0);
    page.field("mem_allocator", cx.engine.host.process().allocator);
    page.field("mem_overhead_db_hashtable_rehashing", 0);
    page.field("active_defrag_running", 0);
    page.field("lazyfree_pending_objects", cx.engine.memory.pending_objects());
    page.field("lazyfreed_objects", cx.engine.memory.freed_objects());
}

/// Memory of scripts. The states of all threads also run functions, and no state runs functions alone.
fn scripts(page: &mut Page, engine: &Engine) {
    let (states, known) = (engine.scripts.interpreter.memory(), engine.scripts.cache.memory());
    page.field("used_memory_lua", states);
    page.field("used_memory_vm_eval", states);
    page.human_bytes("used_memory_lua_human", states);
    page.field("used_memory_scripts_eval", known);
    page.field("number_of_cached_scripts", engine.scripts.cache.len());
    page.field("number_of_functions", engine.scripts.functions.count());
    page.field("number_of_libraries", engine.scripts.functions.libraries().len());
    page.field("used_memory_vm_functions", 0);
    page.bytes("used_memory_vm_total", states);
    let functions = engine.scripts.functions.memory();
    page.field("used_memory_functions", functions);
    page.bytes("used_memory_scripts", known + functions);
}

fn fragmentation(page: &mut Page, overview: &Overview) {
    let found = overview.fragmentation();
    for (name, (ratio, bytes)) in [
        ("allocator_frag", found.allocator),
        ("allocator_rss", found.allocator_resident),
        ("rss_overhead", found.resident_overhead),
        ("mem_fragmentation", found.total),
    ] {
        page.field(&format!("{name}_ratio"), format_args!("{ratio:.2}"));
        page.field(&format!("{name}_bytes"), bytes);
    }
}

pub(super) fn replication(page: &mut Page, cx: &Context<'_>) {
    page.field("role", "master");
    page.field("connected_slaves", 0);
    page.field("master_failover_state", "no-failover");
    page.field("master_replid", cx.engine.replication_id.lock());
    page.field("master_replid2", "0".repeat(40));
    page.field("master_repl_offset", cx.engine.stats.journaled());
    page.field("second_repl_offset", -1);
    page.field("repl_backlog_active", 0);
    page.field("repl_backlog_size", cx.db.config.repl_backlog_size);
    page.field("repl_backlog_first_byte_offset", 0);
    page.field("repl_backlog_histlen", 0);
}

pub(super) fn cpu(page: &mut Page, cx: &Context<'_>) {
    let seconds = cx.engine.host.cpu_seconds();
    for (name, seconds) in [
        ("used_cpu_sys", seconds.system),
        ("used_cpu_user", seconds.user),
        ("used_cpu_sys_children", seconds.children_system),
        ("used_cpu_user_children", seconds.children_user),
        ("used_cpu_sys_main_thread", seconds.main_thread_system),
        ("used_cpu_user_main_thread", seconds.main_thread_user),
    ] {
        page.field(name, format_args!("{seconds:.6}"));
    }
}

pub(super) fn cluster(page: &mut Page, _cx: &Context<'_>) {
    page.field("cluster_enabled", 0);
}

pub(super) fn keyspace(page: &mut Page, cx: &Context<'_>) {
    let keyspace = &cx.engine.keyspace;
    for database in 0..keyspace.databases() {
        let keys = keyspace.len(database);
        if keys > 0 {
            let expires = keyspace.expires(database);
            let ttl = if expires > 0 { average_ttl(cx, database) } else { 0 };
            let subexpiry = keyspace.field_expires(database);
            page.field(
                &format!("db{database}"),
                format_args!("keys={keys},expires={expires},avg_ttl={ttl},subexpiry={subexpiry}"),
            );
        }
    }
}

/// How long keys still have to live on average, in milliseconds, from a sample: a few slots from a
/// random slot on, a few buckets of each. Locked slots are passed over.
fn average_ttl(cx: &Context<'_>, database: usize) -> u64 {
    let (keyspace, now) = (&cx.engine.keyspace, cx.db.now);
    let mut slots: Vec<u16> = keyspace.occupied(database).collect();
    slots.retain(|&slot| keyspace.slot_expires(database, slot) > 0);
    let from = rng::below(slots.len() as u64) as usize;
    let (mut sum, mut count) = (0u128, 0u128);
    for &slot in slots[from..].iter().chain(&slots[..from]).take(TTL_SLOTS) {
        let presence = cx.authority.presence();
        let held = keyspace.try_hold_one(presence, slot, base::clock::now_us());
        let Some(held) = held else { continue };
        let Some(table) = held.table(database, slot) else { continue };
        let mut position = Some(0);
        for _ in 0..TTL_BUCKETS {
            let Some(at) = position else { break };
            position = table.walk(at, |entry: Entry<'_>| {
                if let Some(expire_at) = entry.expire_at() {
                    sum += u128::from(expire_at.saturating_sub(now));
                    count += 1;
                }
            });
        }
    }
    sum.checked_div(count).unwrap_or(0) as u64
}
