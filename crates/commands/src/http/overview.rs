//! How the server does, as the dashboard asks each second: what is the case now, the last minutes
//! as [`engine::observe::history`] has them, and the keys that commands name most often.

use std::sync::atomic::Ordering::Relaxed;

use resp::args::Arguments;
use resp::reply::Reply;

use cluster::ids::NodeId;
use cluster::topology::Node;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::files::append_only::LastStatus;
use engine::observe::history::{KEPT, Sample};
use engine::replication::LinkState;

/// Hot keys that an overview has.
const HOT_KEYS: usize = 10;

/// A map of names to values.
struct Map<'r, 'o> {
    reply: &'r mut Reply<'o>,
}

impl<'r, 'o> Map<'r, 'o> {
    fn new(reply: &'r mut Reply<'o>, pairs: usize) -> Map<'r, 'o> {
        reply.map(pairs);
        Map { reply }
    }

    fn name(&mut self, name: &str) -> &mut Reply<'o> {
        self.reply.bulk(name.as_bytes());
        self.reply
    }

    fn number(&mut self, name: &str, value: impl TryInto<i64>) {
        self.name(name).integer(value.try_into().unwrap_or(i64::MAX));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name).bulk(value.as_bytes());
    }

    fn truth(&mut self, name: &str, value: bool) {
        self.name(name).boolean(value);
    }

    fn maybe(&mut self, name: &str, value: Option<u64>) {
        match value {
            Some(value) => self.number(name, value),
            None => self.name(name).null(),
        }
    }

    /// A column of the samples.
    fn column(&mut self, name: &str, samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) {
        let reply = self.name(name);
        reply.array(samples.len());
        samples.iter().for_each(|sample| number_or_null(reply, value(sample)));
    }
}

/// A number with as many digits as a chart shows.
fn number_or_null(reply: &mut Reply<'_>, value: Option<f64>) {
    match value {
        Some(value) if value.fract() == 0.0 => reply.integer(value as i64),
        Some(value) => reply.double((value * 1e4).round() / 1e4),
        None => reply.null(),
    }
}

/// `sample`: the samples from this number on. Hot keys are for users who may read all keys.
pub(super) fn overview(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let from = args.at_least(0, CommandError::OUT_OF_RANGE)?;
    let names_keys = cx.session.user.account().reads_all_keys(cx.row.id);
    args.end()?;
    cx.reply.map(8);
    cx.reply.bulk(b"server");
    server(cx);
    cx.reply.bulk(b"now");
    now(cx);
    cx.reply.bulk(b"persistence");
    persistence(cx);
    cx.reply.bulk(b"replication");
    replication(cx);
    cx.reply.bulk(b"cluster");
    cluster(cx);
    cx.reply.bulk(b"stages");
    stages(cx);
    cx.reply.bulk(b"hot_keys");
    match names_keys {
        true => reply_hot_keys(cx, HOT_KEYS),
        false => cx.reply.null(),
    }
    cx.reply.bulk(b"history");
    history(cx, from as u64);
    Ok(())
}

fn server(cx: &mut Context<'_>) {
    let (engine, uptime) = (cx.engine, cx.db.monotonic.saturating_sub(cx.engine.started_at));
    let mut map = Map::new(&mut cx.reply, 6);
    map.text("run_id", &engine.run_id);
    map.text("version", engine::VERSION);
    map.number("uptime", uptime / 1000);
    map.truth("loading", engine.loading.is_on());
    map.number("databases", engine.keyspace.databases());
    map.number("workers", engine.host.process().workers);
}

fn now(cx: &mut Context<'_>) {
    let (engine, totals) = (cx.engine, cx.engine.stats.totals());
    let memory = engine.memory_overview(cx.slot_access.pinned());
    let keys: usize =
        (0..engine.keyspace.databases()).map(|number| engine.keyspace.len(number)).sum();
    let listeners = engine.clients.by_listener();
    let most = cx.db.config.maxmemory;
    let mut map = Map::new(&mut cx.reply, 14);
    map.number("keys", keys);
    map.number("memory", memory.used);
    map.number("memory_peak", memory.peak);
    map.number("memory_resident", memory.metrics.process_resident);
    map.number("memory_max", most);
    map.number("clients", engine.clients.len());
    map.number("blocked", engine.blocked_clients());
    map.number("rejected", totals.rejected_connections);
    map.number("commands", totals.commands_processed);
    map.number("hits", totals.keyspace_hits);
    map.number("misses", totals.keyspace_misses);
    map.number("expired", totals.expired_keys);
    map.number("evicted", totals.evicted_keys);
    map.name("listeners");
    let mut map = Map::new(map.reply, listeners.len());
    for (listener, count) in listeners {
        map.number(listener, count);
    }
}

fn persistence(cx: &mut Context<'_>) {
    let (engine, monotonic) = (cx.engine, cx.db.monotonic);
    let saving = engine.saving.metrics(monotonic / 1000);
    let file = engine.storage.append_only();
    let mut map = Map::new(&mut cx.reply, 9);
    map.truth("save_failed", saving.last_failed);
    map.number("last_save", saving.last_save);
    map.truth("saving", saving.in_progress);
    map.number("unsaved", engine.dirty());
    map.truth("append_only", file.writing.is_some());
    map.truth("append_only_failed", file.last_write == LastStatus::Failed);
    map.truth("rewriting", file.rewrites.current_seconds.is_some());
    map.truth("rewrite_failed", file.rewrites.last_status == LastStatus::Failed);
    map.maybe("append_only_bytes", file.writing.map(|own| own.size));
}

/// What there is of replication; nothing of a primary without replicas.
fn replication(cx: &mut Context<'_>) {
    let (engine, monotonic) = (cx.engine, cx.db.monotonic);
    let (view, replicas) = (engine.replication.view(), engine.replicas.all());
    if view.is_none() && replicas.is_empty() {
        cx.reply.null();
        return;
    }
    let stream = engine.stream();
    let mut map = Map::new(&mut cx.reply, 5);
    map.text("role", if view.is_some() { "replica" } else { "primary" });
    map.text("history", &stream.present);
    map.number("offset", stream.newest);
    map.name("primary");
    match view {
        None => map.reply.null(),
        Some(view) => {
            let host = String::from_utf8_lossy(&view.primary.host).into_owned();
            let mut map = Map::new(map.reply, 3);
            map.text("address", &format!("{host}:{}", view.primary.port));
            map.text(
                "link",
                match view.link {
                    LinkState::Down => "down",
                    LinkState::Connecting => "connecting",
                    LinkState::Syncing => "syncing",
                    LinkState::Up => "up",
                },
            );
            let silent = view.heard_at.map(|at| monotonic.saturating_sub(at) / 1000);
            map.maybe("silent", silent.filter(|_| view.link == LinkState::Up));
        }
    }
    map.name("replicas").array(replicas.len());
    for replica in replicas {
        let mut map = Map::new(map.reply, 4);
        let port = replica.introduction.listening_port;
        map.text("address", &format!("{}:{port}", replica.address()));
        map.text("state", replica.standing().name());
        map.maybe("lag", replica.is_online().then(|| replica.lag(monotonic)));
        map.number("waiting_bytes", replica.waiting.load(Relaxed));
    }
}

/// The part of this node in its cluster, and how that is; nothing of a server alone.
fn cluster(cx: &mut Context<'_>) {
    let Some(view) = cx.db.cluster else {
        cx.reply.null();
        return;
    };
    let (topology, own, now) = (&view.topology, &cx.engine.cluster, cx.db.monotonic);
    let is_up = own.may_serve_as(view, now.saturating_mul(1000))
        && view.is_up(cx.db.config)
        && topology.revision > 0;
    let answered = own.etcd_answered_at.load(Relaxed);
    let mut map = Map::new(&mut cx.reply, 8);
    map.truth("up", is_up);
    map.truth("primary", view.leads());
    map.text("node", &view.own.to_string());
    map.number("slots", view.shard().map_or(0, |shard| shard.slots.count()));
    map.number("served", topology.served_count());
    map.number("migrations", topology.migrations.len());
    map.maybe("etcd_silent", (answered > 0).then(|| now.saturating_sub(answered) / 1000));
    map.name("shards").array(topology.shards.len());
    for shard in topology.shards.values() {
        let alive = |id: &NodeId| topology.nodes.get(id).is_some_and(Node::is_alive);
        let primary = shard.leader.and_then(|leader| topology.nodes.get(&leader.node));
        let place = |node: &Node| {
            let port =
                if node.address.port > 0 { node.address.port } else { node.address.tls_port };
            format!("{}:{port}", node.address.host)
        };
        let mut map = Map::new(map.reply, 5);
        map.text("id", &shard.id.to_string());
        map.number("slots", shard.slots.count());
        map.number("members", shard.members.len());
        map.number("alive", shard.members.iter().filter(|id| alive(id)).count());
        map.name("primary");
        match primary {
            Some(node) => map.reply.bulk(place(node).as_bytes()),
            None => map.reply.null(),
        }
    }
}

/// How long commands have been in each part of their way, on average.
fn stages(cx: &mut Context<'_>) {
    let stages = cx.engine.stats.stages();
    cx.reply.array(stages.len());
    for stage in stages {
        let count: u64 = stage.counts.iter().map(|(_, count)| count).sum();
        let mut map = Map::new(&mut cx.reply, 3);
        map.text("stage", stage.name);
        map.number("count", count);
        let mean = (count > 0).then(|| stage.nanoseconds as f64 / count as f64 / 1e3);
        number_or_null(map.name("mean_us"), mean);
    }
}

fn history(cx: &mut Context<'_>, from: u64) {
    let (samples, next) = cx.engine.history.since(from);
    let samples = &samples[..];
    let mut map = Map::new(&mut cx.reply, 14);
    map.number("next", next);
    map.number("kept", KEPT);
    type Value = fn(&Sample) -> Option<f64>;
    let plain: [(&str, Value); 11] = [
        ("at", |own| Some(own.at as f64)),
        ("commands", |own| Some(own.commands)),
        ("hits", |own| Some(own.hits)),
        ("misses", |own| Some(own.misses)),
        ("input", |own| Some(own.input)),
        ("output", |own| Some(own.output)),
        ("p50_us", |own| own.p50.map(|ns| ns as f64 / 1e3)),
        ("p99_us", |own| own.p99.map(|ns| ns as f64 / 1e3)),
        ("memory", |own| Some(own.memory as f64)),
        ("clients", |own| Some(own.clients as f64)),
        ("other_threads", |own| (!own.workers.is_empty()).then_some(own.others)),
    ];
    for (name, value) in plain {
        map.column(name, samples, value);
    }
    let workers = samples.iter().map(|sample| sample.workers.len()).max().unwrap_or(0);
    map.name("workers").array(workers);
    for number in 0..workers {
        map.reply.array(samples.len());
        let used = samples.iter().map(|sample| sample.workers.get(number).copied());
        used.for_each(|share| number_or_null(map.reply, share));
    }
}

/// The hot keys are those of all databases.
pub(super) fn of_all_databases(_argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    visit(None);
}

/// The keys that commands name most often.
pub(super) fn hot_keys(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let most = args.at_least(1, CommandError::OUT_OF_RANGE)?;
    reply_hot_keys(cx, most);
    Ok(())
}

fn reply_hot_keys(cx: &mut Context<'_>, most: usize) {
    let keys = cx.engine.stats.hot_keys(cx.db.monotonic, most);
    cx.reply.array(keys.len());
    for hot in keys {
        cx.reply.map(4);
        cx.reply.bulk(b"db");
        cx.reply.integer(hot.database as i64);
        cx.reply.bulk(b"key");
        cx.reply.bulk(&hot.key);
        cx.reply.bulk(b"commands_per_second");
        cx.reply.double((hot.per_second * 10.0).round() / 10.0);
        cx.reply.bulk(b"share");
        cx.reply.double((hot.share * 1000.0).round() / 1000.0);
    }
}
