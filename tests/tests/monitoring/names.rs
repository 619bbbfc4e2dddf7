//! The names of metrics: the page that lists them, the names of redis_exporter, and the queries of
//! the dashboard, all compared with what servers answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use regex_lite::Regex;
use tests::certificates::Certificates;
use tests::client::encode;
use tests::observe::{figure, wait_until};
use tests::server::Server;
use tests::web::Web;

use crate::prometheus::{Prometheus, metrics, path, promtool, rules, target};

/// A primary and its replica that have done a bit of everything that metrics tell of, and a node
/// that does not find its cluster.
struct Pair {
    primary: (Server, u16),
    replica: (Server, u16),
    node: (Server, u16),
}

impl Pair {
    fn start() -> Result<Pair> {
        let options = [("threads", "2"), ("appendonly", "yes"), ("appendfsync", "always")];
        let primary = Server::start_with_http(&options)?;
        let mut client = primary.0.connect()?;
        // Nothing has to be encrypted for the end of certificates to be shown.
        let certificates = Certificates::make()?;
        let file = |path: PathBuf| path.display().to_string();
        let (certificate, key, authority) =
            (file(certificates.server()), file(certificates.key()), file(certificates.authority()));
        let set = ["tls-cert-file", &certificate, "tls-key-file", &key];
        let set = [&set[..], &["tls-ca-cert-file", &authority]].concat();
        let set = [&["CONFIG", "SET", "tls-replication", "yes"][..], &set].concat();
        ensure!(!client.call(&set)?.is_error(), "{}", primary.0.log_tail());
        for command in [
            "SET a 1 EX 1000",
            "GET a",
            "GET none",
            "LPUSH a 1",
            "NOSUCH",
            "RPUSH l 1 2",
            "AUTH one two three four",
            "GET",
        ] {
            client.call_text(command)?;
        }
        let mut read = Vec::new();
        encode(&["GET", "ho\"t\\key\n"], &mut read);
        client.send_raw(&read.repeat(5000))?;
        for _ in 0..5000 {
            client.receive()?;
        }
        let follow = format!("127.0.0.1 {}", primary.0.port());
        let replica = Server::start_with_http(&[("threads", "2"), ("replicaof", &follow)])?;
        let mut follower = replica.0.connect()?;
        wait_until("a link", || Ok(figure(&mut follower, "master_link_status")? == "up"))?;
        let tells =
            || -> Result<bool> { Ok(metrics(primary.1)?.contains("dunlin_replica_lag_bytes{")) };
        wait_until("a replica that is told of", tells)?;
        let etcd = [("cluster-enabled", "yes"), ("cluster-etcd", "http://127.0.0.1:1")];
        let node = Server::start_with_http(&etcd)?;
        Ok(Pair { primary, replica, node })
    }

    fn text(&self) -> Result<String> {
        Ok(metrics(self.primary.1)? + &metrics(self.replica.1)? + &metrics(self.node.1)?)
    }

    fn collected(&self) -> String {
        let places = [target(self.primary.1), target(self.replica.1)];
        let node = [target(self.node.1)];
        let of_cluster = "{source_labels: [__name__], regex: dunlin_cluster_.+, action: keep}";
        format!(
            "- {{job_name: dunlin, static_configs: [{{targets: {places:?}}}]}}\n\
             - {{job_name: nodes, static_configs: [{{targets: {node:?}}}],\n\
                metric_relabel_configs: [{of_cluster}]}}\n"
        )
    }
}

/// A family of metrics.
#[derive(Debug, Default, PartialEq)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
    samples: usize,
}

fn families(text: &str) -> Result<BTreeMap<String, Family>> {
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let label = Regex::new("([a-z_]+)=\"").expect("a pattern");
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').context("a text")?;
            name.clone_into(&mut current);
            help.clone_into(&mut found.entry(current.clone()).or_default().help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let kind = rest.strip_prefix(&*current).context("after its help")?.trim();
            kind.clone_into(&mut found.entry(current.clone()).or_default().kind);
        } else {
            ensure!(line.starts_with(&*current), "{line} is not among those of {current}");
            let family = found.entry(current.clone()).or_default();
            family.samples += 1;
            let labels = label.captures_iter(line).map(|found| found[1].to_owned());
            family.labels.extend(labels.filter(|label| label != "le" && label != "quantile"));
        }
    }
    Ok(found)
}

fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "seconds",
        Some("bytes") => "bytes",
        Some("ratio") => "share of 1",
        _ => "",
    }
}

/// The table of docs/metrics.md.
fn table(families: &BTreeMap<String, Family>) -> String {
    let mut table =
        "| name | type | unit | labels | what it is |\n|---|---|---|---|---|\n".to_owned();
    for (name, own) in families {
        let labels: Vec<_> = own.labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, unit, labels) = (&own.kind, unit(name), labels.join(", "));
        // Writing to a string does not fail.
        let _ = writeln!(table, "| `{name}` | {kind} | {unit} | {labels} | {} |", own.help);
    }
    table
}

/// Names, types and labels that people build on do not change unseen. `UPDATE=1` writes the table.
#[test]
fn the_page_lists_what_servers_answer() -> Result<()> {
    let families = families(&Pair::start()?.text()?)?;
    for (name, own) in &families {
        ensure!(own.samples > 0, "{name} was not seen, so its labels are not known");
        ensure!(own.help.ends_with('.') && !own.kind.is_empty(), "{name}: {own:?}");
        let is_counted = name.ends_with("_total");
        ensure!(is_counted == (own.kind == "counter"), "{name} is a {}", own.kind);
    }
    let (file, begin) = (path("docs/metrics.md"), "<!-- made by the tests -->\n");
    let page = fs::read_to_string(&file)?;
    let (before, listed) = page.split_once(begin).context("a place for the table")?;
    let expected = table(&families);
    if std::env::var("UPDATE").is_ok_and(|own| own == "1") {
        fs::write(&file, format!("{before}{begin}{expected}"))?;
        return Ok(());
    }
    for (line, other) in expected.lines().zip(listed.lines()) {
        ensure!(line == other, "docs/metrics.md has\n{other}\nand servers say\n{line}");
    }
    ensure!(expected == listed, "docs/metrics.md has more or fewer metrics than servers");
    Ok(())
}

/// The page of a node shows what its cluster is like.
#[test]
fn the_overview_of_a_node_tells_of_its_cluster() -> Result<()> {
    let etcd = [("cluster-enabled", "yes"), ("cluster-etcd", "http://127.0.0.1:1")];
    let (alone, node) = (Server::start_with_http(&[])?, Server::start_with_http(&etcd)?);
    let cluster = |port| -> Result<serde_json::Value> {
        let answer = Web::connect(port)?.ask("GET /v1/overview", &[], b"")?;
        let answer: serde_json::Value = serde_json::from_slice(&answer.body)?;
        Ok(answer["cluster"].clone())
    };
    ensure!(cluster(alone.1)?.is_null());
    let told = cluster(node.1)?;
    ensure!(told["up"] == false && told["primary"] == false && told["served"] == 0, "{told}");
    ensure!(told["etcd_silent"].is_null() && told["shards"] == serde_json::json!([]), "{told}");
    Ok(())
}

#[test]
fn promtool_accepts_metrics_and_rules() -> Result<()> {
    let pair = Pair::start()?;
    for port in [pair.primary.1, pair.replica.1] {
        promtool(&["check", "metrics"], metrics(port)?.as_bytes())?;
    }
    for file in ["deploy/alerts.yml", "deploy/redis-exporter-names.yml"] {
        promtool(&["check", "rules", file], b"")?;
    }
    // The tool does find faults.
    let wrong = b"# TYPE dunlin_things counter\ndunlin_things 1\n";
    ensure!(promtool(&["check", "metrics"], wrong).is_err());
    Ok(())
}

/// The queries of the dashboard.
fn queries() -> Result<Vec<String>> {
    let charts: serde_json::Value =
        serde_json::from_slice(&fs::read(path("deploy/grafana.json"))?)?;
    let panels = charts["panels"].as_array().context("a dashboard has panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array()).flatten();
    let query = |own: &serde_json::Value| own["expr"].as_str().map(str::to_owned);
    targets.map(|own| query(own).context("a target has an expression")).collect()
}

/// A Prometheus that collects from servers in use has data for each chart, and for each name of
/// redis_exporter.
#[test]
fn a_prometheus_has_what_is_asked_of_it() -> Result<()> {
    let pair = Pair::start()?;
    let mut client = pair.primary.0.connect()?;
    client.call_text("CONFIG SET maxmemory 1gb")?;
    let files = ["deploy/alerts.yml", "deploy/redis-exporter-names.yml"].map(path);
    let files: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let prometheus = Prometheus::start(&files, &pair.collected())?;
    let enough = AtomicBool::new(false);
    let tried = thread::scope(|scope| {
        // Rates are of what goes on; nobody is counted who has not come yet.
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                for command in ["SET key value", "GET key", "GET none", "NOSUCH"] {
                    let _ = client.call_text(command);
                }
                let mut read = Vec::new();
                encode(&["GET", "ho\"t\\key\n"], &mut read);
                let _ = client.send_raw(&read.repeat(500));
                for _ in 0..500 {
                    let _ = client.receive();
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        let tried = ask(&prometheus);
        enough.store(true, Ordering::Relaxed);
        tried
    });
    tried?;
    for (query, value) in [
        ("sum(redis_up)", 2.0),
        (
            "count(dunlin_stage_duration_seconds_count{stage=~\"queue|execute|commit|flush\"} > 0)",
            7.0,
        ),
        ("count(dunlin_hot_key_commands_per_second{key=\"ho\\\"t\\\\key\\n\"})", 1.0),
        ("sum(dunlin_listener_connections{listener=\"http\"})", 2.0),
        ("redis_instance_info{role=\"slave\"}", 1.0),
        ("redis_instance_info{role=\"master\"}", 1.0),
        ("redis_master_link_up", 1.0),
        ("redis_connected_slaves{instance=~\".+\"} > 0", 1.0),
        ("redis_connected_slave_lag_seconds{slave_ip=\"127.0.0.1\"} < bool 60", 1.0),
        ("sum(redis_rdb_last_bgsave_status)", 2.0),
        ("redis_memory_max_bytes > 0", 1_073_741_824.0),
        ("redis_db_keys{db=\"db0\"} > bool 1", 1.0),
        ("count(redis_commands_total{cmd=\"get\"} > 5000)", 1.0),
        ("sum(prometheus_rule_evaluation_failures_total) or vector(0)", 0.0),
        ("count(ALERTS{alertstate=\"firing\",job!=\"nodes\"}) or vector(0)", 0.0),
    ] {
        let values = prometheus.values(query)?;
        ensure!(
            !values.is_empty() && values.iter().all(|own| *own == value),
            "{query}: {values:?}"
        );
    }
    let ready = Web::connect(pair.replica.1)?.ask("GET /readyz", &[], b"")?;
    ensure!(ready.status == 200, "{ready:?}");
    Ok(())
}

fn ask(prometheus: &Prometheus) -> Result<()> {
    let mut asked = 0;
    let mut has_data = |query: &str| -> Result<()> {
        asked += 1;
        let waited = wait_until(query, || Ok(!prometheus.values(query)?.is_empty()));
        waited.with_context(|| prometheus.log())
    };
    for query in queries()? {
        has_data(&query.replace("$instance", ".*").replace("$__rate_interval", "2s"))?;
    }
    for rule in rules("deploy/redis-exporter-names.yml")? {
        has_data(rule["record"].as_str().context("a name")?)?;
    }
    ensure!(asked > 80, "only {asked} queries");
    Ok(())
}
