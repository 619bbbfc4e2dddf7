//! Each alert fires for a server that is brought into the state that it is about, and for no other
//! one. Durations are shortened; `times` tries them as they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use regex_lite::Regex;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tests::certificates::{Certificates, Identity};
use tests::client::Client;
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::process::stop;
use tests::server::{Server, free_port};
use tests::web::Web;

use crate::prometheus::{Prometheus, metrics, path, rules, target};

/// A server in trouble, the alerts that it is about, and what is asked of it meanwhile.
struct Trouble {
    alerts: &'static [&'static str],
    /// Where it is collected from.
    place: String,
    /// Another job than the usual one collects it.
    has_password: bool,
    /// Kept until the end.
    _servers: Vec<Server>,
    /// What goes on meanwhile, again and again.
    goes_on: Option<Repeated>,
}

type Repeated = Box<dyn FnMut() -> Result<()> + Send>;

fn trouble(alerts: &'static [&'static str], port: u16, servers: Vec<Server>) -> Trouble {
    Trouble { alerts, place: target(port), has_password: false, _servers: servers, goes_on: None }
}

impl Trouble {
    fn while_asking(mut self, goes_on: impl FnMut() -> Result<()> + Send + 'static) -> Trouble {
        self.goes_on = Some(Box::new(goes_on));
        self
    }
}

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2")], options].concat())
}

fn down() -> Result<Trouble> {
    Ok(trouble(&["DunlinDown"], free_port()?, Vec::new()))
}

/// It loads for as long as the test lasts.
fn loads() -> Result<Trouble> {
    let (mut server, port) = start(&[])?;
    let mut client = server.connect()?;
    client.call(&["EVAL", "for i = 1, 3000 do redis.call('SET', i, i) end", "0"])?;
    client.call_text("SAVE")?;
    let http = port.to_string();
    server.set_options(&[("http-port", &http), ("key-load-delay", "100000")]);
    server.kill();
    // It is not ready for long: it is not waited for.
    let mut command = Command::new(tests::server::dunlin_binary()?);
    command.args(["serve", "--port", &server.port().to_string(), "--http-port", &http]);
    command.args(["--key-load-delay", "100000", "--bind", "127.0.0.1", "--save", ""]);
    command.current_dir(server.directory()).stdout(std::process::Stdio::null());
    let child = Ends(command.spawn()?);
    let alerts = &["DunlinLoadsForLong", "DunlinNotReady"];
    Ok(trouble(alerts, port, vec![server]).while_asking(move || {
        // It ends with what is asked.
        let _kept = &child;
        Ok(())
    }))
}

/// A process that ends with the test.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn restarts() -> Result<Trouble> {
    let (mut server, port) = start(&[])?;
    let http = port.to_string();
    server.set_options(&[("threads", "2"), ("http-port", &http)]);
    Ok(trouble(&["DunlinRestarts"], port, Vec::new()).while_asking(move || {
        // Seen by the collecting program in between, with a time of running that grows.
        thread::sleep(Duration::from_millis(1500));
        server.start_again()
    }))
}

/// The directory is gone.
fn cannot_save() -> Result<Trouble> {
    let (server, port) = start(&[("appendonly", "yes"), ("appendfsync", "no")])?;
    let mut client = server.connect()?;
    client.call_text("SET key value")?;
    fs::remove_dir_all(server.directory().join("appendonlydir"))?;
    fs::create_dir(server.directory().join("dump.rdb"))?;
    fs::write(server.directory().join("appendonlydir"), "")?;
    for command in ["BGREWRITEAOF", "BGSAVE"] {
        client.call_text(command)?;
        thread::sleep(Duration::from_millis(200));
    }
    Ok(trouble(&["DunlinSaveFailed", "DunlinRewriteFailed"], port, vec![server]))
}

/// Files may not grow any more.
fn cannot_append() -> Result<Trouble> {
    let (server, port) = start(&[("appendonly", "yes"), ("appendfsync", "always")])?;
    let mut client = server.connect()?;
    client.call_text("SET key value")?;
    let process = Pid::from_raw(server.pid().cast_signed()).context("a process id")?;
    let limit = Rlimit { current: Some(4096), maximum: None };
    prlimit(Some(process), Resource::Fsize, limit)?;
    // It is neither acknowledged nor refused.
    let _ = client.call(&["SET", "key", &"x".repeat(10_000)]);
    Ok(trouble(&["DunlinAppendOnlyFileFails", "DunlinNotReady"], port, vec![server]))
}

/// Starts a server whose process is traced, so that something takes long.
fn slow(options: &[(&str, &str)], trace: &str, fault: &str) -> Result<(Server, u16)> {
    let (mut server, port) = start(options)?;
    let http = port.to_string();
    let inject = format!("inject={trace}:{fault}");
    let trace = format!("trace={trace}");
    let file = server.directory().join("appendonlydir/appendonly.aof.1.incr.aof");
    let file = file.to_str().context("a path of text")?.to_owned();
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &file];
    server.set_wrapper(&[&words[..], &["-e", &trace, "-e", &inject]].concat());
    server.terminate()?;
    server.set_options(&[options, &[("threads", "2"), ("http-port", &http)]].concat());
    server.start_again()?;
    Ok((server, port))
}

fn syncs_are_slow() -> Result<Trouble> {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let (server, port) = slow(&options, "fdatasync,fsync", "delay_enter=100000")?;
    let mut client = server.connect()?;
    Ok(trouble(&["DunlinSlowSyncs"], port, vec![server])
        .while_asking(move || client.call_text("SET key value").map(drop)))
}

/// A write to the file hangs, and more comes.
fn is_behind() -> Result<Trouble> {
    let options = [("appendonly", "yes"), ("appendfsync", "everysec")];
    let (server, port) = slow(&options, "write,writev", "delay_enter=60000000:when=2+")?;
    let value = "x".repeat(1_000_000);
    let mut clients = Vec::new();
    for number in 0..40 {
        let mut client = server.connect()?;
        client.send(&["SET", &format!("key:{number}"), &value])?;
        clients.push(client);
    }
    let kept = clients;
    Ok(trouble(&["DunlinAppendOnlyFileBehind"], port, vec![server]).while_asking(move || {
        let _kept = &kept;
        Ok(())
    }))
}

/// Its primary is not there.
fn has_no_link() -> Result<Trouble> {
    let primary = free_port()?.to_string();
    let (server, port) = start(&[("replicaof", &format!("127.0.0.1 {primary}"))])?;
    Ok(trouble(&["DunlinPrimaryLinkDown", "DunlinNotReady"], port, vec![server]))
}

/// Its primary stands still.
fn is_stale() -> Result<Trouble> {
    let (primary, _) = start(&[("repl-ping-replica-period", "1")])?;
    let (server, port) = start(&[("replicaof", &format!("127.0.0.1 {}", primary.port()))])?;
    // It has been in step once.
    wait_until("a known age", || {
        Ok(metrics(port)?.contains("\ndunlin_replica_staleness_seconds "))
    })?;
    stop(primary.pid())?;
    Ok(trouble(&["DunlinReplicaStale"], port, vec![server, primary]))
}

fn follows(replica: &Server) -> Result<()> {
    let mut client = replica.connect()?;
    wait_until("a link", || Ok(tests::observe::figure(&mut client, "master_link_status")? == "up"))
}

/// Its replica stands still, and more is written.
fn has_a_slow_replica() -> Result<Trouble> {
    let (server, port) = start(&[])?;
    let (replica, _) = start(&[("replicaof", &format!("127.0.0.1 {}", server.port()))])?;
    follows(&replica)?;
    stop(replica.pid())?;
    let mut client = server.connect()?;
    for _ in 0..70 {
        client.call(&["SET", "key", &"x".repeat(1_000_000)])?;
    }
    Ok(trouble(&["DunlinReplicaLag"], port, vec![server, replica]))
}

fn has_an_old_certificate() -> Result<Trouble> {
    let certificates = Certificates::make()?;
    let Identity { certificate, key } = certificates.issue("old", "IP:127.0.0.1", 1)?;
    let text = |path: &Path| path.display().to_string();
    let (certificate, key, authority) =
        (text(&certificate), text(&key), text(&certificates.authority()));
    let (server, port) = start(&[
        ("tls-cert-file", &certificate),
        ("tls-key-file", &key),
        ("tls-ca-cert-file", &authority),
        ("tls-replication", "yes"),
    ])?;
    Ok(trouble(&["DunlinCertificateEnds", "DunlinCertificateEndsSoon"], port, vec![server]))
}

fn is_full() -> Result<Trouble> {
    let (server, port) = start(&[("maxmemory", "20mb")])?;
    let mut client = server.connect()?;
    let (value, mut number) = ("x".repeat(100_000), 0);
    let alerts = &["DunlinMemoryNearLimit", "DunlinRefusesWritesForMemory"];
    Ok(trouble(alerts, port, vec![server]).while_asking(move || {
        number += 1;
        client.call(&["SET", &format!("key:{number}"), &value]).map(drop)
    }))
}

fn evicts() -> Result<Trouble> {
    let options = [("maxmemory", "20mb"), ("maxmemory-policy", "allkeys-lru")];
    let (server, port) = start(&options)?;
    let mut client = server.connect()?;
    let (value, mut number) = ("x".repeat(100_000), 0);
    let alerts = &["DunlinEvicts", "DunlinHitRateLow", "DunlinMemoryNearLimit"];
    Ok(trouble(alerts, port, vec![server]).while_asking(move || {
        number += 1;
        client.call(&["SET", &format!("key:{number}"), &value])?;
        client.call(&["GET", &format!("key:{number}")])?;
        (0..3).try_for_each(|_| client.call(&["GET", "none"]).map(drop))
    }))
}

fn has_many_clients() -> Result<Trouble> {
    let (server, port) = start(&[("maxclients", "20")])?;
    let place = server.port();
    // One place is for the collecting program, which comes first.
    let mut clients = Vec::new();
    let alerts = &["DunlinConnectionsNearLimit", "DunlinConnectionsRefused"];
    let mut is_collected = Some(server.connect()?);
    Ok(trouble(alerts, port, vec![server]).while_asking(move || {
        if let Some(client) = &mut is_collected {
            let shown = client.call_text("CLIENT LIST")?;
            let shown = String::from_utf8_lossy(shown.text().unwrap_or_default()).into_owned();
            if shown.lines().count() < 2 {
                return Ok(());
            }
            is_collected = None;
        }
        while clients.len() < 19 {
            clients.push(Client::connect(place)?);
        }
        thread::sleep(Duration::from_millis(50));
        // It is refused, or ends at once.
        let _ = Client::connect(place).and_then(|mut one| one.call_text("PING"));
        Ok(())
    }))
}

fn is_guessed_at() -> Result<Trouble> {
    let (server, port) = start(&[("requirepass", "geheim")])?;
    let mut client = server.connect()?;
    let guessed = trouble(&["DunlinFailedLogins"], port, vec![server]);
    Ok(Trouble { has_password: true, ..guessed }
        .while_asking(move || client.call_text("AUTH wrong").map(drop)))
}

/// It does nothing else, so its processor is busy too.
fn is_slow() -> Result<Trouble> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let script = "for i = 1, 20000000 do end";
    Ok(trouble(&["DunlinSlowCommands", "DunlinProcessorFull"], port, vec![server])
        .while_asking(move || client.call(&["EVAL", script, "0"]).map(drop)))
}

/// A node that does not reach etcd.
fn is_without_etcd() -> Result<Trouble> {
    let etcd = [("cluster-enabled", "yes"), ("cluster-etcd", "http://127.0.0.1:1")];
    let (server, port) = start(&etcd)?;
    Ok(trouble(&["DunlinClusterDown", "DunlinClusterEtcdSilent"], port, vec![server]))
}

/// A node of two, the other of which is gone, while slots are to move there.
fn has_lost_a_shard() -> Result<Trouble> {
    let etcd = EtcdMembers::start(1)?;
    let url = etcd.url(0);
    let options =
        [("cluster-enabled", "yes"), ("cluster-etcd", &*url), ("cluster-node-timeout", "1000")];
    let ((server, port), (mut other, _)) = (start(&options)?, start(&options)?);
    let tool = |words: &[&str]| -> Result<String> {
        let mut command = Command::new(tests::server::dunlin_binary()?);
        let output = command.arg("cluster").args(words).args(["--etcd", &url]).output()?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let place = format!("127.0.0.1:{}", other.port());
    let own = format!("127.0.0.1:{}", server.port());
    let said = tool(&["create", &own, &place, "--replicas", "0", "--yes"])?;
    ensure!(said.contains("serves all slots"), "{said}");
    let shard = other.connect()?.call_text("CLUSTER MYSHARDID")?;
    let shard = String::from_utf8_lossy(shard.text().context("a shard")?).into_owned();
    other.kill();
    let said = tool(&["move", "0-9", "--shard", &shard, "--yes", "--timeout", "1"])?;
    ensure!(said.contains("It goes on by itself"), "{said}");
    let alerts = &[
        "DunlinClusterDown",
        "DunlinClusterMemberMissing",
        "DunlinClusterMoveStuck",
        "DunlinClusterShardWithoutPrimary",
        "DunlinClusterWithoutQuorum",
    ];
    Ok(trouble(alerts, port, vec![server]).while_asking(move || {
        // It is needed as long as the node.
        let _kept = &etcd;
        Ok(())
    }))
}

/// The alerts, with times that a test has. A share of a processor is not for a test to have: there
/// the comparison stays, with a smaller bound.
fn shortened() -> Result<String> {
    let text = fs::read_to_string(path("deploy/alerts.yml"))?;
    let change = |text: &str, pattern: &str, by: &str| {
        Regex::new(pattern).expect("a pattern").replace_all(text, by).into_owned()
    };
    let text = change(&text, r"for: \w+", "for: 0s");
    let text = change(&text, r"\[15m\]\) > 2", "[60s]) > 2");
    let text = change(&text, r"\[\d+m\]", "[5s]");
    let text = change(&text, r"(staleness|silence|stalled)_seconds > \d+", "${1}_seconds > 2");
    Ok(change(&text, r"> 0\.9 \* max", "> 0.02 * max"))
}

#[test]
fn each_alert_fires_for_a_server_in_its_state() -> Result<()> {
    let (calm, calm_port) = start(&[("appendonly", "yes")])?;
    let all: [fn() -> Result<Trouble>; 18] = [
        down,
        loads,
        restarts,
        cannot_save,
        cannot_append,
        syncs_are_slow,
        is_behind,
        has_no_link,
        is_stale,
        has_a_slow_replica,
        has_an_old_certificate,
        is_full,
        evicts,
        has_many_clients,
        is_guessed_at,
        is_slow,
        is_without_etcd,
        has_lost_a_shard,
    ];
    let mut troubles = all.iter().map(|make| make()).collect::<Result<Vec<_>>>()?;
    let mut wrong: BTreeSet<String> = BTreeSet::new();
    for rule in rules("deploy/alerts.yml")? {
        let name = rule["alert"].as_str().context("a name")?;
        let is_tried = troubles.iter().any(|own| own.alerts.contains(&name));
        ensure!(is_tried, "no server is in the state of {name}");
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("alerts.yml");
    fs::write(&file, shortened()?)?;
    let places = |with: bool| {
        let own = troubles.iter().filter(|own| own.has_password == with);
        own.map(|own| own.place.clone()).collect::<Vec<_>>()
    };
    let mut usual = places(false);
    usual.push(target(calm_port));
    let secret = places(true);
    let collected = format!(
        "- {{job_name: dunlin, static_configs: [{{targets: {usual:?}}}]}}\n\
         - {{job_name: secret, static_configs: [{{targets: {secret:?}}}],\n\
            authorization: {{credentials: geheim}}}}\n"
    );
    let prometheus = Prometheus::start(&[&file], &collected)?;
    let enough = AtomicBool::new(false);
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    for own in &troubles {
        let alerts = own.alerts.iter();
        wanted.extend(alerts.map(|alert| ((*alert).to_owned(), own.place.clone())));
    }
    let asked: Vec<_> = troubles.iter_mut().filter_map(|own| own.goes_on.take()).collect();
    let fired = thread::scope(|scope| -> Result<()> {
        for mut goes_on in asked {
            let enough = &enough;
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    // A server that refuses is asked again.
                    let _ = goes_on();
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        let watched = wait_until("all alerts", || {
            for (labels, _) in prometheus.query("ALERTS{alertstate=\"firing\"}")? {
                let text = |name: &str| labels[name].as_str().unwrap_or_default().to_owned();
                let _ = wanted.remove(&(text("alertname"), text("instance")));
                if text("instance") == target(calm_port) {
                    let _ = wrong.insert(text("alertname"));
                }
            }
            Ok(wanted.is_empty())
        });
        enough.store(true, Ordering::Relaxed);
        watched
    });
    fired.with_context(|| format!("these do not fire: {wanted:?}"))?;
    ensure!(wrong.is_empty(), "these fire for a server that is well: {wrong:?}");
    let failures = prometheus.values("sum(prometheus_rule_evaluation_failures_total)")?;
    ensure!(failures.iter().all(|count| *count == 0.0), "{failures:?}");
    let ready = Web::connect(calm_port)?.ask("GET /readyz", &[], b"")?;
    ensure!(ready.status == 200, "{ready:?} {}", calm.log_tail());
    Ok(())
}
