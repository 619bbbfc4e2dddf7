//! An etcd 3.4 from Debian's package, and the means to compare its answers with others.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use regex_lite::{Captures, Regex};
use tempfile::TempDir;

use crate::peers;
use crate::web::{Answer, Web};

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running etcd; dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Etcd {
    child: Child,
    port: u16,
    directory: TempDir,
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Etcd {
    /// Starts one with members and keys of its own.
    ///
    /// # Errors
    /// The package is missing, or it does not start in time.
    pub fn start() -> Result<Etcd> {
        let directory = tempfile::Builder::new().prefix("dunlin-etcd-").tempdir()?;
        let (port, peer_port) = (free_port()?, free_port()?);
        let (url, peer) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
        let log = fs::File::create(directory.path().join("log"))?;
        let child = Command::new(peers::etcd("etcd"))
            .args(["--name", "judge", "--enable-v2", "--data-dir"])
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("judge={peer}")])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("scripts/install-peers brings etcd")?;
        let mut etcd = Etcd { child, port, directory };
        let begun = Instant::now();
        while !etcd.is_ready() {
            let ended = etcd.child.try_wait()?.is_some();
            if ended || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(etcd.directory.path().join("log"))?;
                bail!("etcd does not start:\n{log}");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(etcd)
    }

    fn is_ready(&self) -> bool {
        let asks = |path: &str| {
            let answer = Web::connect(self.port).and_then(|mut web| web.ask(path, &[], b""));
            answer.is_ok_and(|answer| answer.status == 200)
        };
        // What it tells about itself is among its first keys.
        asks("GET /health") && asks("GET /v2/keys") && {
            let version =
                Web::connect(self.port).and_then(|mut web| web.ask("GET /version", &[], b""));
            version.is_ok_and(|answer| answer.text().contains("\"etcdcluster\":\"3.4.0\""))
        }
    }

    /// The port of its clients.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a server with such keys.
#[derive(Debug)]
pub struct Keys {
    /// The connection.
    pub web: Web,
    port: u16,
    /// Indexes in requests count from this one.
    base: u64,
}

impl Keys {
    /// Connects to a server, and counts indexes from the present one.
    ///
    /// # Errors
    /// It does not answer.
    pub fn connect(port: u16) -> Result<Keys> {
        let mut keys = Keys { web: Web::connect(port)?, port, base: 0 };
        keys.base = keys.index()?;
        Ok(keys)
    }

    /// The present index.
    ///
    /// # Errors
    /// It is not answered.
    pub fn index(&mut self) -> Result<u64> {
        let answer = self.web.ask("GET /v2/keys", &[], b"")?;
        Ok(answer.header("x-etcd-index").context("an index")?.parse()?)
    }

    /// Makes things happen to a node until the index is that of another server, which has begun
    /// with some events of its own. The node is gone then.
    ///
    /// # Errors
    /// It has passed that index already.
    pub fn catch_up_with(&mut self, other: &Keys) -> Result<()> {
        let left = other.base.checked_sub(self.base + 2).context("two events at least")?;
        for _ in 0..=left {
            self.ask("PUT /_pad")?;
        }
        self.ask("DELETE /_pad")?;
        self.base = self.index()?;
        ensure!(self.base == other.base, "{} is not {}", self.base, other.base);
        Ok(())
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Another connection, with the same base for indexes.
    ///
    /// # Errors
    /// It is refused.
    pub fn again(&self) -> Result<Keys> {
        Ok(Keys { web: Web::connect(self.port)?, port: self.port, base: self.base })
    }

    /// Sends a request such as `PUT /a?dir=false value=1`, in which `{3}` is an index. Fields
    /// behind the address are the body's where the method has one.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn send(&mut self, line: &str) -> Result<()> {
        let line = self.with_indexes(line);
        let mut words = line.splitn(3, ' ');
        let method = words.next().unwrap_or_default();
        let mut address = words.next().unwrap_or_default().to_owned();
        let fields = words.next().unwrap_or_default();
        if address.starts_with('/')
            && !address.starts_with("/v2/")
            && !address.starts_with("/version")
        {
            address.insert_str(0, "/v2/keys");
        }
        if matches!(method, "PUT" | "POST") {
            let form = ["Content-Type: application/x-www-form-urlencoded"];
            let none = ["Content-Length: 0"];
            let headers: &[&str] = if fields.is_empty() { &none } else { &form };
            return self.web.request(&format!("{method} {address}"), headers, fields.as_bytes());
        }
        if !fields.is_empty() {
            address.push(if address.contains('?') { '&' } else { '?' });
            address += fields;
        }
        self.web.request(&format!("{method} {address}"), &[], b"")
    }

    fn with_indexes(&self, line: &str) -> String {
        static INDEX: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\{(\d+)\}").expect("it is a pattern"));
        let shifted = |found: &Captures<'_>| {
            let index: u64 = found[1].parse().unwrap_or(0);
            (index + self.base).to_string()
        };
        INDEX.replace_all(line, shifted).into_owned()
    }

    /// Sends a request, and returns its answer in a comparable form.
    ///
    /// # Errors
    /// No answer comes.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        self.send(line)?;
        let mut answer = self.web.answer(line.starts_with("HEAD "))?;
        // Long answers of etcd come in chunks, as do those to waiting requests.
        while answer.header("transfer-encoding").is_some()
            && let Some(chunk) = self.web.chunk()?
        {
            answer.body.extend(chunk);
        }
        Ok(told(&answer))
    }

    /// How many requests wait for events.
    ///
    /// # Errors
    /// It is not answered.
    pub fn watchers(&self) -> Result<usize> {
        let figures = Web::connect(self.port)?.ask("GET /v2/stats/store", &[], b"")?.text();
        let behind = figures.split("\"watchers\":").nth(1).context("a number of watchers")?;
        Ok(behind.trim_end_matches('}').parse()?)
    }

    /// Waits until this many requests wait.
    ///
    /// # Errors
    /// They do not.
    pub fn await_watchers(&self, count: usize) -> Result<()> {
        let begun = Instant::now();
        while self.watchers()? != count {
            ensure!(begun.elapsed() < PATIENCE, "{} watchers, not {count}", self.watchers()?);
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// An answer in a comparable form: identifiers and times are left out.
#[must_use]
pub fn told(answer: &Answer) -> String {
    let mut told = format!("{}\n", answer.status);
    for name in ["location", "allow", "x-etcd-index"] {
        if let Some(value) = answer.header(name) {
            told += &format!("{name}: {value}\n");
        }
    }
    told += &format!("{:?}\n", answer.header("content-type"));
    for name in ["x-etcd-cluster-id", "x-raft-index", "x-raft-term"] {
        if answer.header(name).is_some() {
            told += &format!("{name}\n");
        }
    }
    told + &without_times(&answer.text())
}

/// A body in a comparable form. A thousand seconds may have become somewhat fewer meanwhile.
#[must_use]
pub fn without_times(body: &str) -> String {
    static TIMES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"("expiration":")[^"]*("(?:,"ttl":)?)(?:9\d\d|1000)?"#)
            .expect("it is a pattern")
    });
    TIMES.replace_all(body, "${1}then${2}").into_owned()
}
