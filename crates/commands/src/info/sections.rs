//! Sections about what the server is and has.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::rng;
use store::Entry;

use super::Page;
use config::{Choice, Config};
use engine::engine::{Context, Engine};
use engine::journal::backlog::Backlog;
use engine::reclaim::overview::Overview;
use engine::replication::{LinkState, ReplicaView};
use engine::{REDIS_VERSION, VERSION};

const SECONDS_PER_DAY: u64 = 86_400;
/// Slots from whose keys `avg_ttl` is estimated.
const TTL_SLOTS: usize = 16;
/// Buckets of such a slot that are visited.
const TTL_BUCKETS: usize = 16;

pub(super) fn server(page: &mut Page, cx: &Context<'_>) {
    let (engine, config) = (cx.engine, cx.db.config);
    let process = engine.host.process();
    let now_us = base::clock::now_us();
    let uptime = cx.db.monotonic.saturating_sub(engine.started_at) / 1000;
    page.field("redis_version", REDIS_VERSION);
    page.field("server_name", "dunlin");
    page.field("dunlin_version", VERSION);
    page.field(
        "redis_git_sha1",
        if process.git_sha1.is_empty() { "00000000" } else { process.git_sha1 },
    );
    page.field("redis_git_dirty", u8::from(process.git_dirty));
    page.field(
        "redis_build_id",
        format_args!("{:x}", build_id(process.git_sha1, process.compiler)),
    );
    let is_node = cx.db.cluster.is_some();
    page.field("redis_mode", if is_node { "cluster" } else { "standalone" });
    page.field("os", &process.os);
    page.field("arch_bits", usize::BITS);
    page.field("monotonic_clock", process.monotonic_clock);
    page.field("multiplexing_api", process.multiplexing_api);
    page.field("atomicvar_api", "rust-core");
    // Redis shows this when another compiler built it.
    page.field("gcc_version", "0.0.0");
    page.field("compiler", process.compiler);
    page.field("process_id", process.process_id);
    page.field("process_supervised", process.supervised);
    page.field("run_id", &engine.run_id);
    page.field("tcp_port", if config.port == 0 { config.tls_port } else { config.port });
    page.field("server_time_usec", now_us);
    page.field("uptime_in_seconds", uptime);
    page.field("uptime_in_days", uptime / SECONDS_PER_DAY);
    page.field("hz", config.hz);
    page.field("configured_hz", config.hz);
    page.field("lru_clock", (now_us / 1_000_000) & 0xff_ffff);
    page.field("executable", &process.executable);
    page.field("config_file", &process.config_file);
    // Workers read, execute and write; no thread does only input and output.
    page.field("io_threads_active", 0);
    page.field("worker_threads", process.workers);
    if let Some(left) = engine.stop_wait.left(cx.db.monotonic) {
        page.field("shutdown_in_milliseconds", left);
    }
    listeners(page, [false, true].map(|encrypted| engine.host.listens_at(encrypted)), config);
}

/// Where clients connect, a line for each kind of socket.
fn listeners(page: &mut Page, [open, encrypted]: [Vec<String>; 2], config: &Config) {
    // Each kind has a number of its own.
    let mut listener = |number: usize, text: String| {
        page.field(&format!("listener{number}"), text);
    };
    let at =
        |words: &[String]| words.iter().map(|word| format!(",bind={word}")).collect::<String>();
    if !open.is_empty() {
        listener(0, format!("name=tcp{},port={}", at(&open), config.port));
    }
    if !config.unixsocket.is_empty() {
        listener(1, format!("name=unix,bind={}", String::from_utf8_lossy(&config.unixsocket)));
    }
    if !encrypted.is_empty() {
        listener(2, format!("name=tls{},port={}", at(&encrypted), config.tls_port));
    }
}

/// A number that differs between builds of different sources.
fn build_id(git_sha1: &str, compiler: &str) -> u64 {
    base::hash::hash(format!("{VERSION} {git_sha1} {compiler}").as_bytes())
}

pub(super) fn clients(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let (input, output) = engine.clients.buffer_peaks(cx.db.monotonic / 1000);
    page.field("connected_clients", engine.clients.len().saturating_sub(engine.replicas.len()));
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

/// What clients have chosen for themselves, and what has come of it.
pub(super) fn durability(page: &mut Page, cx: &Context<'_>) {
    let choices = &cx.engine.choices;
    page.field("durability_waiting_clients", choices.holding.load(Relaxed));
    page.field("durability_not_reached", choices.not_durable.load(Relaxed));
    page.field("durability_waiting_readers", choices.reading());
    page.field("durability_stale_reads", choices.stale.load(Relaxed));
}

/// The followers of the journal, and what is kept for them.
pub(super) fn changes(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let metrics = engine.followers.metrics();
    page.field("changes_followers", metrics.following);
    page.field("changes_waiting", metrics.waiting);
    page.field("changes_fallen_behind", metrics.fallen_behind);
    page.field("changes_given_up", metrics.given_up);
    let kept = engine.journal.changes().map_or(0, |backlog| backlog.bytes());
    page.field("changes_kept_bytes", kept);
}

/// Until when certificates hold.
pub(super) fn tls(page: &mut Page, cx: &Context<'_>) {
    let now = (base::clock::now_us() / 1_000_000) as i64;
    for own in cx.engine.host.certificates() {
        let kind = own.kind;
        page.field(&format!("tls_{kind}_cert_serial"), own.serial);
        let left = own.not_after.saturating_sub(now).max(0);
        page.field(&format!("tls_{kind}_cert_expires_in_seconds"), left);
    }
}

pub(super) fn memory(page: &mut Page, cx: &Context<'_>) {
    let overview = cx.engine.memory_overview(cx.slot_access.pinned());
    page.bytes("used_memory", overview.used);
    page.bytes("used_memory_rss", overview.metrics.process_resident);
    page.bytes("used_memory_peak", overview.peak);
    page.field("used_memory_peak_perc", format_args!("{:.2}%", overview.peak_percentage()));
    page.field("used_memory_overhead", overview.overhead());
    page.field("used_memory_startup", overview.startup);
    page.field("used_memory_dataset", overview.dataset());
    page.field("used_memory_dataset_perc", format_args!("{:.2}%", overview.dataset_percentage()));
    page.field("allocator_allocated", overview.metrics.allocated);
    page.field("allocator_active", overview.metrics.active);
    page.field("allocator_resident", overview.metrics.resident);
    page.field("allocator_muzzy", 0);
    page.bytes("total_system_memory", overview.metrics.system_total);
    scripts(page, cx.engine);
    page.bytes("maxmemory", cx.db.config.maxmemory as usize);
    page.field("maxmemory_policy", cx.db.config.maxmemory_policy.name());
    fragmentation(page, &overview);
    page.field("mem_not_counted_for_evict", cx.engine.uncounted_memory());
    let kept = cx.engine.journal.changes().map_or(0, |backlog| backlog.bytes());
    page.field("mem_replication_backlog", kept);
    page.field("mem_total_replication_buffers", kept);
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

/// Memory of scripts. The states of all threads also run functions, and no state runs functions
/// alone.
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
    match cx.engine.replication.view() {
        None => page.field("role", "master"),
        Some(view) => replica(page, cx, &view),
    }
    replicas(page, cx);
    page.field("master_failover_state", cx.engine.failover.name());
    let stream = cx.engine.stream();
    page.field("master_replid", &stream.present);
    // Offsets of bytes count from 1, as in Redis.
    let (earlier, second) = match &stream.previous {
        Some(previous) => (previous.history.clone(), previous.offset.cast_signed() + 1),
        None => ("0".repeat(40), -1),
    };
    page.field("master_replid2", earlier);
    page.field("master_repl_offset", stream.newest);
    page.field("second_repl_offset", second);
    let is_kept = cx.engine.journal.changes().is_some_and(Backlog::is_on);
    page.field("repl_backlog_active", u8::from(is_kept));
    page.field("repl_backlog_size", cx.db.config.repl_backlog_size);
    page.field("repl_backlog_first_byte_offset", if is_kept { stream.oldest + 1 } else { 0 });
    page.field("repl_backlog_histlen", stream.newest - stream.oldest);
}

/// The replicas, and how many of them keep up if that matters.
fn replicas(page: &mut Page, cx: &Context<'_>) {
    let (replicas, config, now) = (&cx.engine.replicas, cx.db.config, cx.db.monotonic);
    let all = replicas.all();
    page.field("connected_slaves", all.len());
    // Dunlin's own, where it says something.
    let slowed_ms = replicas.counts.slowed_ms.load(Relaxed);
    if !all.is_empty() || slowed_ms > 0 {
        page.field("writers_slowed_percent", u64::from(replicas.slowing.tenths()) * 10);
        page.field("writers_slowed_ms", slowed_ms);
    }
    if config.min_replicas_to_write > 0 && config.min_replicas_max_lag > 0 {
        page.field("min_slaves_good_slaves", replicas.keeping_up(config, now));
    }
    for (number, replica) in all.iter().enumerate() {
        // One that does not follow the stream yet has said nothing of how far it is.
        let lag = if replica.is_online() { replica.lag(now) } else { 0 };
        page.field(
            &format!("slave{number}"),
            format_args!(
                "ip={},port={},state={},offset={},lag={lag}",
                replica.address(),
                replica.introduction.listening_port,
                replica.standing().name(),
                cx.engine.shown_offset(replica.acknowledged()),
            ),
        );
    }
}

/// What a replica has to say of its link.
fn replica(page: &mut Page, cx: &Context<'_>, view: &ReplicaView) {
    let (replication, config) = (&cx.engine.replication, cx.db.config);
    let seconds_since = |at: u64| (cx.db.monotonic.saturating_sub(at) / 1000).cast_signed();
    let is_up = view.link == LinkState::Up;
    page.field("role", "slave");
    page.field("master_host", String::from_utf8_lossy(&view.primary.host));
    page.field("master_port", view.primary.port);
    page.field("master_link_status", if is_up { "up" } else { "down" });
    let heard = view.heard_at.filter(|_| is_up).map_or(-1, seconds_since);
    page.field("master_last_io_seconds_ago", heard);
    page.field("master_sync_in_progress", u8::from(view.link == LinkState::Syncing));
    page.field("slave_read_repl_offset", replication.received());
    page.field("slave_repl_offset", replication.applied());
    page.field("replica_full_sync_buffer_size", 0);
    page.field("replica_full_sync_buffer_peak", 0);
    if view.link == LinkState::Syncing {
        let sync = view.sync.unwrap_or_default();
        let total = sync.total.unwrap_or(0);
        let share = match total {
            0 => 0.0,
            total => sync.received as f64 / total as f64 * 100.0,
        };
        page.field("master_sync_total_bytes", total);
        page.field("master_sync_read_bytes", sync.received);
        page.field("master_sync_left_bytes", total.cast_signed() - sync.received.cast_signed());
        page.field("master_sync_perc", format_args!("{share:.2}"));
        page.field("master_sync_last_io_seconds_ago", seconds_since(sync.at));
    }
    if !is_up {
        let down = view.down_since.map_or(-1, seconds_since);
        page.field("master_link_down_since_seconds", down);
    }
    if let Some(trouble) = view.trouble.as_ref().filter(|_| !is_up) {
        page.field("master_link_trouble", &trouble.reason);
        page.field("master_link_trouble_lasts", u8::from(trouble.lasts));
    }
    page.field("slave_priority", config.replica_priority);
    page.field("slave_read_only", u8::from(config.replica_read_only));
    page.field("replica_announced", u8::from(config.replica_announced));
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

pub(super) fn cluster(page: &mut Page, cx: &Context<'_>) {
    page.field("cluster_enabled", u8::from(cx.db.cluster.is_some()));
    let (moves, now) = (cx.engine.slot_moves.leaving(), base::clock::monotonic_ms());
    if cx.db.cluster.is_some() || !moves.is_empty() {
        page.field("slot_moves", moves.len());
    }
    for (number, own) in moves.iter().enumerate() {
        // Whoever asks for a move chooses its name.
        let id: String = own.id.chars().filter(char::is_ascii_alphanumeric).collect();
        let count = |count: &AtomicU64| count.load(Relaxed);
        // It is a part of the line, and may quote the target.
        let trouble = own.trouble().replace(',', ";").replace(char::is_control, " ");
        let trouble = if trouble.is_empty() { trouble } else { format!(",trouble={trouble}") };
        page.field(
            &format!("slot_move{number}"),
            format_args!(
                "id={id},slots={},to={},state={},tries={},keys={},keys_sent={},bytes_sent={},\
                 bytes_per_second={},journal_bytes_sent={},seconds={}{trouble}",
                own.slots,
                own.to,
                own.step().name(),
                count(&own.tries),
                count(&own.keys),
                count(&own.keys_sent),
                count(&own.bytes_sent),
                own.bytes_per_second(now),
                count(&own.journal_bytes),
                own.seconds(now),
            ),
        );
    }
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
        let pinned = cx.slot_access.pinned();
        let locked = keyspace.try_lock_one(pinned, slot, base::clock::now_us());
        let Some(locked) = locked else { continue };
        let Some(table) = locked.table(database, slot) else { continue };
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
