//! Reads over HTTP: beside RESP, beside a service in Go before Redis, and of views beside a
//! database.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::mariadb::Mariadb;
use tests::peers;
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target, dunlin_binary, repository};
use tests::web::Web;

use crate::pinning::Places;
use crate::{Options, Row, heading, line, median};

/// A load of `dunlin bench` on a port, from 50 connections, and what it took of some processes.
fn load(count: usize, processes: &[u32], words: &[&str]) -> Result<Seen> {
    let used =
        || -> Result<u64> { processes.iter().map(|process| scheduled_nanoseconds(*process)).sum() };
    let before = used()?;
    let output = Command::new(dunlin_binary()?)
        .args(["bench", "-c", "50", "--csv", "-n", &count.to_string()])
        .args(words)
        .output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "dunlin bench {words:?}: {complaints}");
    let spent = used()?.saturating_sub(before);
    let text = String::from_utf8(output.stdout)?;
    let row = text.lines().nth(1).context("a row of figures")?;
    let rate = row.split(',').nth(1).context("a rate")?.trim_matches('"').parse()?;
    Ok(Seen { rate, processor: spent as f64 / count as f64 / 1e3 })
}

/// What one load showed.
struct Seen {
    /// Requests a second.
    rate: f64,
    /// Microseconds of processor time for a request.
    processor: f64,
}

/// A program that ends with this.
struct Service(Child);

impl Service {
    /// Starts a service of `examples/`, and waits until it answers.
    fn start(name: &str, port: u16, words: &[&str]) -> Result<Service> {
        let child = Command::new(peers::directory().join("go/bin").join(name))
            .args(["-listen", &format!("127.0.0.1:{port}")])
            .args(words)
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{name} comes with scripts/install-peers"))?;
        let service = Service(child);
        let begun = Instant::now();
        while Web::connect(port).is_err() {
            ensure!(begun.elapsed() < Duration::from_secs(10), "{name} does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs two loads in turn, and prints a row of the processor time that a request takes.
fn compare(
    options: &Options,
    name: &str,
    bar: f64,
    ours: impl Fn() -> Result<Seen>,
    theirs: impl Fn() -> Result<Seen>,
) -> Result<()> {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..options.repetitions {
        one.push(ours()?.processor);
        other.push(theirs()?.processor);
    }
    Row { name: name.to_owned(), ours: median(one), theirs: median(other), bar }.print()
}

const BESIDE_RESP: &str = "HTTP GET of 100 B";
const UNCHANGED: &str = "HTTP 304";
const BESIDE_GO: &str = "HTTP GET, Go and Redis";

/// Reads of one key.
pub(crate) fn reads(options: &Options) -> Result<()> {
    if ![BESIDE_RESP, UNCHANGED, BESIDE_GO].iter().any(|name| options.wants(name)) {
        return Ok(());
    }
    let places = Places::new(1)?;
    let port = free_port()?;
    let dunlin = places.start_with(Target::Dunlin, 1, &[("http-port", &port.to_string())])?;
    let redis = places.start(Target::Reference, 1)?;
    let value = "x".repeat(100);
    for server in [&dunlin, &redis] {
        let mut client = server.connect()?;
        client.call(&["SET", "known-key", &value])?;
        client.call(&["SET", "short", "0123456789"])?;
    }
    let tag = Web::connect(port)?.ask("GET /v1/keys/short", &[], b"")?.tag().to_owned();
    let count = options.scaled(500_000);
    let page = |port: u16, key: &str| format!("http://127.0.0.1:{port}/v1/keys/{key}");
    let resp_port = dunlin.port().to_string();
    let resp = |key: &str| load(count, &[dunlin.pid()], &["-p", &resp_port, "GET", key]);
    heading(
        "Microseconds of processor time per read, one thread, 50 connections",
        "HTTP",
        "other",
    )?;
    if options.wants(BESIDE_RESP) {
        let http = || load(count, &[dunlin.pid()], &["--http", &page(port, "known-key")]);
        compare(options, BESIDE_RESP, 1.15, http, || resp("known-key"))?;
    }
    if options.wants(UNCHANGED) {
        let condition = format!("If-None-Match: {tag}");
        let http = || {
            load(count, &[dunlin.pid()], &["--http", &page(port, "short"), "--header", &condition])
        };
        compare(options, UNCHANGED, 1.0, http, || resp("short"))?;
    }
    if options.wants(BESIDE_GO) {
        let go_port = free_port()?;
        let address = format!("127.0.0.1:{}", redis.port());
        let go =
            places.on_servers(|| Service::start("read-api", go_port, &["-redis", &address]))?;
        let http = || load(count, &[dunlin.pid()], &["--http", &page(port, "known-key")]);
        let both = [redis.pid(), go.0.id()];
        let through_go =
            || load(options.scaled(100_000), &both, &["--http", &page(go_port, "known-key")]);
        compare(options, BESIDE_GO, 0.20, http, through_go)?;
    }
    Ok(())
}

const VIEW: &str = "view of 1000 rows";

/// A view that is kept, and a service in Go that asks MariaDB each time: requests a second.
pub(crate) fn views(options: &Options) -> Result<()> {
    if !options.wants(VIEW) {
        return Ok(());
    }
    let mariadb = Mariadb::start()?;
    let directory = tempfile::Builder::new().prefix("dunlin-bench-").tempdir()?;
    let file = directory.path().join("views.toml");
    let example = std::fs::read_to_string(repository().join("examples/departments/views.toml"))?;
    std::fs::write(&file, example.replace("sqlite:departments.db", &mariadb.url()))?;
    let file = file.display().to_string();
    let (dunlin, port) = Server::start_with_http(&[("threads", "1"), ("views-file", &file)])?;
    let first = Web::connect(port)?.ask("GET /v1/views/departments?rows=1000", &[], b"")?;
    ensure!(first.status == 200, "{first:?}");
    let go_port = free_port()?;
    let database = mariadb.url().replace("mariadb://", "").replace('@', "@tcp(").replace('/', ")/");
    let go = Service::start("departments-api", go_port, &["-database", &database])?;
    let page = |port: u16| format!("http://127.0.0.1:{port}/v1/views/departments?rows=1000");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.repetitions {
        let kept = load(options.scaled(100_000), &[dunlin.pid()], &["--http", &page(port)])?;
        let asked = load(options.scaled(10_000), &[go.0.id()], &["--http", &page(go_port)])?;
        ours.push(kept.rate);
        theirs.push(asked.rate);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    line(&format!(
        "\n{VIEW}, thousand requests a second: kept {:.1}, of MariaDB each time {:.1}: {:.1} times (bar: 10)",
        ours / 1e3,
        theirs / 1e3,
        ours / theirs
    ))
}

const METRICS: &str = "/metrics of 100 000 keys";

/// How long a scrape takes.
pub(crate) fn metrics(options: &Options) -> Result<()> {
    if !options.wants(METRICS) {
        return Ok(());
    }
    let (server, port) = Server::start_with_http(&[("threads", "1")])?;
    let mut client = server.connect()?;
    for kind in 0..5 {
        for item in 0..20_000 {
            let key = format!("kind{kind}:{item}");
            let words: &[&str] = match kind {
                0 => &["SET", &key, "value"],
                1 => &["RPUSH", &key, "a", "b"],
                2 => &["SADD", &key, "a", "b"],
                3 => &["HSET", &key, "a", "b"],
                _ => &["ZADD", &key, "1", "b"],
            };
            client.send(words)?;
            if item % 500 == 499 {
                (0..500).try_for_each(|_| client.receive().map(drop))?;
            }
        }
    }
    let mut web = Web::connect(port)?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        let answer = web.ask("GET /metrics", &[], b"")?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(answer.status == 200, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    line(&format!("\n{METRICS}, in ms: median {:.2}, longest {longest:.2} (bar: 5)", median(times)))
}
