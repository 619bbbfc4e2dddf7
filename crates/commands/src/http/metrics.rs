//! Metrics for Prometheus and other programs that read its format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering::Relaxed;

use cluster::ids::NodeId;
use cluster::topology::{Node, Shard};
use engine::command::args::Args;
use engine::command::error::CommandResult;
use engine::engine::Context;
use engine::files::append_only::LastStatus;
use engine::replication::LinkState;
use engine::session::pubsub::Kind;
use engine::users::log::Reason;

/// Upper bounds of the buckets of a histogram, in nanoseconds. Each bound is near one of the
/// engine's own buckets, which are within 3 %.
const BOUNDS: [u64; 16] = [
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
];

/// Hot keys that are shown: each is a series of its own for the collecting program.
const HOT_KEYS: usize = 10;
/// The least share of commands that makes a key hot.
const HOT_KEY_SHARE: f64 = 0.01;
/// Characters of a hot key that are shown.
const HOT_KEY_CHARS: usize = 64;

/// The metrics as text: families of metrics, one after the other.
struct Page {
    text: String,
    /// Written as OpenMetrics, not in the older format of Prometheus.
    open: bool,
}

impl Page {
    /// Begins a family. In OpenMetrics, the name of a counter's family is without its suffix.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = if self.open { name.strip_suffix("_total").unwrap_or(name) } else { name };
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let unit =
            ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
        if let Some(unit) = unit.filter(|_| self.open) {
            self.text += &format!("# UNIT {name} {unit}\n");
        }
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        // Writing to a string does not fail.
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            labels => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// A histogram of which at least `calls` are known.
    fn histogram(
        &mut self,
        name: &str,
        labels: &str,
        counts: Vec<(u64, u64)>,
        nanoseconds: u64,
        calls: u64,
    ) {
        let mut seen = 0;
        let mut counts = counts.into_iter().peekable();
        for bound in BOUNDS {
            // A bucket of the engine belongs where its middle does.
            while let Some((_, count)) = counts.next_if(|(upper, _)| *upper <= bound + bound / 32) {
                seen += count;
            }
            let labels = format!("{labels},le=\"{}\"", bound as f64 / 1e9);
            self.sample(&format!("{name}_bucket"), &labels, seen);
        }
        // While it is being counted, one number may be ahead of the other.
        let all = (seen + counts.map(|(_, count)| count).sum::<u64>()).max(calls);
        self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), all);
        self.sample(&format!("{name}_sum"), labels, seconds(nanoseconds));
        self.sample(&format!("{name}_count"), labels, all);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(name, "", value);
    }
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

/// The metrics: `OPEN` for OpenMetrics, `KEYLESS` without names of keys.
pub(super) fn metrics(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut page = Page { text: String::new(), open: args.word("OPEN") };
    let names_keys = !args.word("KEYLESS") && cx.session.user.account().reads_all_keys(cx.row.id);
    process(&mut page, cx);
    connections(&mut page, cx);
    certificates(&mut page, cx);
    followers(&mut page, cx);
    durability(&mut page, cx);
    primary(&mut page, cx);
    replicas(&mut page, cx);
    cluster(&mut page, cx);
    traffic(&mut page, cx);
    keys(&mut page, cx);
    memory(&mut page, cx);
    persistence(&mut page, cx);
    if names_keys {
        hot_keys(&mut page, cx);
    }
    stages(&mut page, cx);
    commands(&mut page, cx);
    if page.open {
        page.text += "# EOF\n";
    }
    cx.reply.bulk(page.text.as_bytes());
    Ok(())
}

fn process(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    page.family("dunlin_build_info", "gauge", "The version that runs.");
    let version = engine::VERSION;
    page.sample("dunlin_build_info", &format!("version=\"{version}\""), 1);
    let uptime = cx.db.monotonic.saturating_sub(engine.started_at);
    let text = format!("{}.{:03}", uptime / 1000, uptime % 1000);
    page.gauge("dunlin_uptime_seconds", "Time since the start.", text);
    let cpu = engine.host.cpu_seconds();
    let name = "dunlin_cpu_seconds_total";
    page.family(name, "counter", "Processor time of the process.");
    page.sample(name, "mode=\"user\"", cpu.user);
    page.sample(name, "mode=\"system\"", cpu.system);
    let is_ready = engine.unreadiness(cx.db.config).is_none();
    let help = "Clients may be sent here: what /readyz answers.";
    page.gauge("dunlin_ready", help, u8::from(is_ready));
    page.gauge("dunlin_threads", "Threads that run commands.", engine.host.process().workers);
}

fn connections(page: &mut Page, cx: &Context<'_>) {
    let (engine, totals) = (cx.engine, cx.engine.stats.totals());
    page.gauge("dunlin_connected_clients", "Connections.", engine.clients.len());
    page.gauge("dunlin_blocked_clients", "Clients that wait.", engine.blocked_clients());
    page.family("dunlin_listener_connections", "gauge", "Connections by the kind of listener.");
    for (listener, count) in engine.clients.by_listener() {
        page.sample("dunlin_listener_connections", &format!("listener=\"{listener}\""), count);
    }
    let most = cx.db.config.maxclients;
    page.gauge("dunlin_max_clients", "Connections that are allowed.", most);
    let help = "Connections that were accepted.";
    page.counter("dunlin_connections_received_total", help, totals.connections_received);
    let help = "Connections that were refused.";
    page.counter("dunlin_connections_rejected_total", help, totals.rejected_connections);
    let help = "Channels with subscribers.";
    page.gauge("dunlin_pubsub_channels", help, engine.pubsub.len(Kind::Channel));
    let help = "Patterns with subscribers.";
    page.gauge("dunlin_pubsub_patterns", help, engine.pubsub.len(Kind::Pattern));
    let name = "dunlin_access_denied_total";
    page.family(name, "counter", "What users were refused, by the reason; login: wrong passwords.");
    for (reason, kind) in [
        ("login", Reason::Login),
        ("command", Reason::Command),
        ("key", Reason::Key),
        ("channel", Reason::Channel),
        ("database", Reason::Database),
        ("certificate", Reason::Certificate),
    ] {
        page.sample(name, &format!("reason=\"{reason}\""), engine.users.refused(kind));
    }
}

/// A server that encrypts nothing has none.
fn certificates(page: &mut Page, cx: &Context<'_>) {
    let all = cx.engine.host.certificates();
    if all.is_empty() {
        return;
    }
    let name = "dunlin_tls_certificate_end_seconds";
    page.family(name, "gauge", "When the first certificate of a kind ends, since 1970.");
    for own in all {
        page.sample(name, &format!("kind=\"{}\"", own.kind), own.not_after);
    }
}

fn followers(page: &mut Page, cx: &Context<'_>) {
    let metrics = cx.engine.followers.metrics();
    let help = "Clients that follow changes.";
    page.gauge("dunlin_changes_followers", help, metrics.following);
    let help = "Clients that wait for one change.";
    page.gauge("dunlin_changes_waiting", help, metrics.waiting);
    let help = "Times that a client read too slowly to get changes at once, and read on by itself.";
    page.counter("dunlin_changes_fallen_behind_total", help, metrics.fallen_behind);
    let help = "Times that the next changes for a client were not kept any more.";
    page.counter("dunlin_changes_given_up_total", help, metrics.given_up);
    let kept = cx.engine.journal.changes().map_or(0, |backlog| backlog.bytes());
    page.gauge("dunlin_changes_kept_bytes", "Memory of changes that are kept.", kept);
}

fn durability(page: &mut Page, cx: &Context<'_>) {
    let choices = &cx.engine.choices;
    let help = "Clients whose replies wait for the durability that they have chosen.";
    page.gauge("dunlin_durability_waiting_clients", help, choices.holding.load(Relaxed));
    let help = "Writes that were not as durable in time as their clients had chosen.";
    page.counter("dunlin_durability_not_reached_total", help, choices.not_durable.load(Relaxed));
    let help = "Clients that wait to read what is new enough.";
    page.gauge("dunlin_durability_waiting_readers", help, choices.reading());
    let help = "Reads that were refused because the data was too old.";
    page.counter("dunlin_durability_stale_reads_total", help, choices.stale.load(Relaxed));
}

/// The link of a replica to its primary.
fn primary(page: &mut Page, cx: &Context<'_>) {
    let (replication, now) = (&cx.engine.replication, cx.db.monotonic);
    let view = replication.view();
    page.gauge("dunlin_is_replica", "It follows a primary.", u8::from(view.is_some()));
    let help = "The end of the stream of writes, in bytes.";
    page.gauge("dunlin_replication_offset_bytes", help, cx.engine.stream().newest);
    let Some(view) = view else { return };
    let is_up = u8::from(view.link == LinkState::Up);
    page.gauge("dunlin_primary_link_up", "The link to the primary works.", is_up);
    let help = "All data of the primary is being copied.";
    let is_copied = u8::from(view.link == LinkState::Syncing);
    page.gauge("dunlin_primary_sync_in_progress", help, is_copied);
    if let Some(staleness) = replication.staleness(now) {
        let help = "Time since the replica was known to have all writes of its primary.";
        let text = format!("{}.{:03}", staleness / 1000, staleness % 1000);
        page.gauge("dunlin_replica_staleness_seconds", help, text);
    }
}

fn replicas(page: &mut Page, cx: &Context<'_>) {
    let replicas = &cx.engine.replicas;
    let (end, now) = (cx.engine.journal.end(), cx.db.monotonic);
    // Several with the same name are one series.
    let mut online = BTreeMap::new();
    for own in replicas.all().iter().filter(|own| own.is_online()) {
        let (address, port) = (label(&own.address()), own.introduction.listening_port);
        let (lag, silence): &mut (u64, u64) =
            online.entry(format!("replica=\"{address}:{port}\"")).or_default();
        *lag = end.saturating_sub(own.acknowledged()).max(*lag);
        *silence = own.lag(now).max(*silence);
    }
    let family = "dunlin_replica_lag_bytes";
    page.family(family, "gauge", "Bytes of the stream that a replica has not acknowledged.");
    for (labels, (lag, _)) in &online {
        page.sample(family, labels, lag);
    }
    let family = "dunlin_replica_silence_seconds";
    page.family(family, "gauge", "Time since a replica said how far it is.");
    for (labels, (_, silence)) in &online {
        page.sample(family, labels, silence);
    }
    page.gauge("dunlin_connected_replicas", "Replicas that are connected.", replicas.len());
    let help = "The most bytes that wait for a replica.";
    let waiting = replicas.all().iter().map(|own| own.waiting.load(Relaxed)).max();
    page.gauge("dunlin_replica_waiting_bytes", help, waiting.unwrap_or(0));
    let help = "Share of the time for which writes wait for a replica that falls behind.";
    let tenths = replicas.slowing.tenths();
    page.gauge("dunlin_writers_slowed_ratio", help, format_args!("0.{tenths}"));
    let help = "Time for which writers were slowed down for replicas.";
    let slowed = replicas.counts.slowed_ms.load(Relaxed);
    page.family("dunlin_writers_slowed_seconds_total", "counter", help);
    page.sample("dunlin_writers_slowed_seconds_total", "", seconds(slowed * 1_000_000));
}

/// A server that is no node of a cluster has none.
fn cluster(page: &mut Page, cx: &Context<'_>) {
    let Some(view) = cx.db.cluster else { return };
    let (topology, own) = (&view.topology, &cx.engine.cluster);
    let now_us = cx.db.monotonic.saturating_mul(1000);
    let is_up = own.may_serve_as(view, now_us) && view.is_up(cx.db.config) && topology.revision > 0;
    page.gauge("dunlin_cluster_up", "This node serves its slots.", u8::from(is_up));
    let help = "This node is the primary of its shard.";
    page.gauge("dunlin_cluster_is_primary", help, u8::from(view.leads()));
    let assigned: usize = topology.shards.values().map(|shard| shard.slots.count()).sum();
    let help = "Slots of the cluster that belong to a shard.";
    page.gauge("dunlin_cluster_slots_assigned", help, assigned);
    let help = "Slots of the cluster whose shard has a primary, or had one a moment ago.";
    page.gauge("dunlin_cluster_slots_served", help, topology.served_count());
    let slots = view.shard().map_or(0, |shard| shard.slots.count());
    page.gauge("dunlin_cluster_own_slots", "Slots of the shard of this node.", slots);
    page.gauge("dunlin_cluster_nodes", "Nodes that are members.", topology.nodes.len());
    let alive = topology.nodes.values().filter(|node| node.is_alive()).count();
    page.gauge("dunlin_cluster_nodes_alive", "Members whose lease in etcd lasts.", alive);
    page.gauge("dunlin_cluster_shards", "Shards.", topology.shards.len());
    let leaderless = topology.shards.values().filter(|shard| shard.leader.is_none()).count();
    page.gauge("dunlin_cluster_shards_without_primary", "Shards without a primary.", leaderless);
    let alive = |id: &NodeId| topology.nodes.get(id).is_some_and(Node::is_alive);
    let alive_of = |shard: &Shard| shard.members.iter().filter(|id| alive(id)).count();
    let has_slots = |shard: &&Shard| !shard.slots.is_empty();
    let missing = |shard: &&Shard| alive_of(shard) < shard.members.len();
    let lacking = topology.shards.values().filter(missing).count();
    let help = "Shards of which a member is not alive.";
    page.gauge("dunlin_cluster_shards_lacking_members", help, lacking);
    let silent = |shard: &&Shard| alive_of(shard) < shard.quorum();
    let silent = topology.shards.values().filter(has_slots).filter(silent).count();
    let help =
        "Shards with slots of which less than a quorum is alive: writes at quorum wait there.";
    page.gauge("dunlin_cluster_shards_without_quorum", help, silent);
    let own_members = view.shard().map_or(0, |shard| shard.members.len());
    let help = "Members of the shard of this node.";
    page.gauge("dunlin_cluster_own_members", help, own_members);
    let own_alive = view.shard().map_or(0, alive_of);
    let help = "Members of the shard of this node whose lease in etcd lasts.";
    page.gauge("dunlin_cluster_own_members_alive", help, own_alive);
    let follows = cx.engine.replication.view().is_some_and(|own| own.link == LinkState::Up);
    let links = cx.engine.replicas.all().len() + usize::from(follows);
    let help = "Links of this node to others of its shard: to its primary, or of its replicas.";
    page.gauge("dunlin_cluster_links", help, links);
    let errors = cx.engine.stats.errors();
    let moved = errors.iter().find(|(code, _)| code == "MOVED").map_or(0, |(_, count)| *count);
    let help = "Commands that were sent on to another node (MOVED).";
    page.counter("dunlin_cluster_redirects_total", help, moved);
    let help = "Migrations of slots that are under way.";
    page.gauge("dunlin_cluster_migrations", help, topology.migrations.len());
    moves(page, cx);
    let epoch = view.shard().and_then(|shard| shard.leader).map_or(0, |leader| leader.epoch);
    let help = "The epoch of the primary of this node's shard; 0 without one.";
    page.gauge("dunlin_cluster_epoch", help, epoch);
    let until = own.serves_until();
    let is_bounded = view.leads() && until < u64::MAX;
    let left = if is_bounded { until.saturating_sub(now_us) } else { 0 };
    let help = "Time for which this primary may go on without hearing from etcd; 0 for a replica.";
    page.gauge("dunlin_cluster_lease_seconds", help, seconds(left * 1000));
    let answered = own.etcd_answered_at.load(Relaxed).max(cx.engine.started_at);
    let silence = cx.db.monotonic.saturating_sub(answered);
    let help = "Time since etcd has answered this node, and was believed, or since its start.";
    page.gauge("dunlin_cluster_etcd_silence_seconds", help, seconds(silence * 1_000_000));
}

/// What the primary of a source knows of the moves of its slots.
fn moves(page: &mut Page, cx: &Context<'_>) {
    let (moves, counts) = (&cx.engine.slot_moves, &cx.engine.slot_moves.counts);
    let (wanted, still) = moves.standing(cx.db.monotonic);
    let help = "Migrations of which this primary is the source.";
    page.gauge("dunlin_cluster_own_migrations", help, wanted);
    let help =
        "Longest time for which a migration from this primary has come no nearer to its end.";
    page.gauge("dunlin_cluster_migration_stalled_seconds", help, seconds(still * 1_000_000));
    let name = "dunlin_cluster_migrations_ended_total";
    page.family(name, "counter", "Migrations from this primary that have ended, by how.");
    page.sample(name, "end=\"finished\"", counts.finished.load(Relaxed));
    page.sample(name, "end=\"aborted\"", counts.aborted.load(Relaxed));
    let help = "Copies of slots that were begun. A migration whose link breaks begins another one.";
    page.counter("dunlin_cluster_migration_copies_total", help, counts.tries.load(Relaxed));
    let help = "Keys that were sent in copies of slots.";
    page.counter("dunlin_cluster_migration_keys_total", help, counts.keys.load(Relaxed));
    let help = "Bytes that were sent of slots: copies, and what was written meanwhile.";
    let name = "dunlin_cluster_migration_bytes_total";
    page.counter(name, help, counts.bytes.load(Relaxed));
}

fn traffic(page: &mut Page, cx: &Context<'_>) {
    let totals = cx.engine.stats.totals();
    let help = "Commands that ran.";
    page.counter("dunlin_commands_processed_total", help, totals.commands_processed);
    let help = "Bytes received.";
    page.counter("dunlin_network_input_bytes_total", help, totals.net_input_bytes);
    let help = "Bytes sent.";
    page.counter("dunlin_network_output_bytes_total", help, totals.net_output_bytes);
    let name = "dunlin_view_requests_total";
    page.family(
        name,
        "counter",
        "Requests for results of databases, by where the result came from.",
    );
    page.sample(name, "result=\"hit\"", totals.view_hits);
    page.sample(name, "result=\"stale\"", totals.view_stale);
    page.sample(name, "result=\"miss\"", totals.view_misses);
    let help = "Commands that found a slot locked and were tried again.";
    page.counter("dunlin_commands_contended_total", help, totals.contended);
    page.family("dunlin_errors_total", "counter", "Error replies by their code.");
    let mut errors = cx.engine.stats.errors();
    errors.sort_unstable();
    for (code, count) in errors {
        // Scripts make up codes as they like.
        page.sample("dunlin_errors_total", &format!("code=\"{}\"", label(&code)), count);
    }
}

fn keys(page: &mut Page, cx: &Context<'_>) {
    let (keyspace, totals) = (&cx.engine.keyspace, cx.engine.stats.totals());
    let used: Vec<usize> =
        (0..keyspace.databases()).filter(|&database| keyspace.len(database) > 0).collect();
    page.family("dunlin_keys", "gauge", "Keys of a database.");
    for &database in &used {
        page.sample("dunlin_keys", &format!("database=\"{database}\""), keyspace.len(database));
    }
    page.family("dunlin_keys_with_expiry", "gauge", "Keys of a database that expire.");
    for &database in &used {
        let labels = format!("database=\"{database}\"");
        page.sample("dunlin_keys_with_expiry", &labels, keyspace.expires(database));
    }
    let help = "Reads that found their key.";
    page.counter("dunlin_keyspace_hits_total", help, totals.keyspace_hits);
    let help = "Reads that did not find their key.";
    page.counter("dunlin_keyspace_misses_total", help, totals.keyspace_misses);
    page.counter("dunlin_expired_keys_total", "Keys that expired.", totals.expired_keys);
    page.counter("dunlin_evicted_keys_total", "Keys that were evicted.", totals.evicted_keys);
}

fn memory(page: &mut Page, cx: &Context<'_>) {
    let overview = cx.engine.memory_overview(cx.slot_access.pinned());
    page.gauge("dunlin_memory_used_bytes", "Memory in use.", overview.used);
    page.gauge("dunlin_memory_peak_bytes", "The most memory ever in use.", overview.peak);
    let help = "Memory of data.";
    page.gauge("dunlin_memory_dataset_bytes", help, overview.dataset());
    let resident = overview.metrics.process_resident;
    page.gauge("dunlin_memory_resident_bytes", "Memory of the process.", resident);
    page.gauge("dunlin_memory_clients_bytes", "Memory of clients' buffers.", overview.clients);
    let help = "Memory that is allowed; 0 for any.";
    page.gauge("dunlin_memory_max_bytes", help, cx.db.config.maxmemory);
}

fn persistence(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let saving = engine.saving.metrics(cx.db.monotonic / 1000);
    page.gauge("dunlin_loading", "Data is being loaded.", u8::from(engine.loading.is_on()));
    let help = "Changes since the data was saved.";
    page.gauge("dunlin_snapshot_unsaved_changes", help, engine.dirty());
    let help = "When the data was saved, in seconds of Unix time.";
    page.gauge("dunlin_snapshot_last_save_timestamp_seconds", help, saving.last_save);
    let help = "The last save failed.";
    page.gauge("dunlin_snapshot_last_failed", help, u8::from(saving.last_failed));
    let help = "A save is under way.";
    page.gauge("dunlin_snapshot_in_progress", help, u8::from(saving.in_progress));
    let file = engine.storage.append_only();
    let help = "There is an append-only file.";
    page.gauge("dunlin_append_only_enabled", help, u8::from(file.writing.is_some()));
    let help = "A rewrite of the append-only file is under way.";
    let rewrites = file.rewrites.current_seconds.is_some();
    page.gauge("dunlin_append_only_rewrite_in_progress", help, u8::from(rewrites));
    let help = "The last rewrite of the append-only file failed.";
    let failed = file.rewrites.last_status == LastStatus::Failed;
    page.gauge("dunlin_append_only_rewrite_last_failed", help, u8::from(failed));
    let help = "Writing to the append-only file has failed, so that writes are refused.";
    let failed = file.last_write == LastStatus::Failed;
    page.gauge("dunlin_append_only_write_failed", help, u8::from(failed));
    let Some(writing) = file.writing else { return };
    page.gauge("dunlin_append_only_size_bytes", "Size of the append-only file.", writing.size);
    let help = "Bytes that were not written to the append-only file yet.";
    page.gauge("dunlin_append_only_pending_bytes", help, writing.pending);
    let name = "dunlin_append_only_sync_duration_seconds";
    page.family(name, "summary", "Time that syncs of the append-only file took.");
    let syncs = writing.syncs;
    for (quantile, duration) in [("0.5", syncs.p50), ("0.99", syncs.p99), ("0.999", syncs.p99_9)] {
        page.sample(name, &format!("quantile=\"{quantile}\""), seconds(duration));
    }
    page.sample(&format!("{name}_count"), "", syncs.count);
}

/// A text as the value of a label, with escapes.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn hot_keys(page: &mut Page, cx: &Context<'_>) {
    let name = "dunlin_hot_key_commands_per_second";
    page.family(name, "gauge", "Commands a second that name a key, of the keys most named.");
    let mut told = Vec::new();
    for hot in cx.engine.stats.hot_keys(cx.db.monotonic, HOT_KEYS) {
        // Two long keys with the same beginning would give the same series twice.
        let key: String = String::from_utf8_lossy(&hot.key).chars().take(HOT_KEY_CHARS).collect();
        let labels = format!("database=\"{}\",key=\"{}\"", hot.database, label(&key));
        if hot.share >= HOT_KEY_SHARE && !told.contains(&labels) {
            page.sample(name, &labels, format!("{:.1}", hot.per_second));
            told.push(labels);
        }
    }
}

fn stages(page: &mut Page, cx: &Context<'_>) {
    let name = "dunlin_stage_duration_seconds";
    let help = "Time that commands were in each part of their way: in the queue of their worker, in \
                the batch that runs, waiting for a sync, and in the batch that is sent.";
    page.family(name, "histogram", help);
    for stage in cx.engine.stats.stages() {
        let labels = format!("stage=\"{}\"", stage.name);
        page.histogram(name, &labels, stage.counts, stage.nanoseconds, 0);
    }
}

fn commands(page: &mut Page, cx: &Context<'_>) {
    let stats = &cx.engine.stats;
    let called: Vec<_> = cx
        .engine
        .commands
        .rows()
        .iter()
        .map(|row| (row.command.full_name(), row.id, stats.command(row.id)))
        .filter(|(_, _, counts)| counts.iter().any(|count| *count > 0))
        .collect();
    let name = "dunlin_command_duration_seconds";
    page.family(name, "histogram", "Time that a command took, from its locks to its reply.");
    for (command, row, [calls, nanoseconds, ..]) in &called {
        let labels = format!("command=\"{command}\"");
        page.histogram(name, &labels, stats.histogram(*row), *nanoseconds, *calls);
    }
    for (name, help, at) in [
        ("dunlin_commands_rejected_total", "Calls that were refused before they ran.", 2),
        ("dunlin_commands_failed_total", "Calls that ran and answered with an error.", 3),
    ] {
        page.family(name, "counter", help);
        for (command, _, counts) in called.iter().filter(|(_, _, counts)| counts[at] > 0) {
            page.sample(name, &format!("command=\"{command}\""), counts[at]);
        }
    }
}
