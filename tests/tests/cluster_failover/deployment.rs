//! A shard of some nodes with an etcd of their own, and clients that write to whoever is primary.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tests::client::{Client, Received, Reply};
use tests::observe::wait_until;
use tests::peers;
use tests::server::{Server, Target, free_port};

/// Milliseconds for which a silent primary keeps its place here: etcd's shortest lease.
pub(crate) const NODE_TIMEOUT: u64 = 2000;
pub(crate) const SHARD: &str = "00000000000000000000000000000000000000aa";
pub(crate) const OTHER_SHARD: &str = "00000000000000000000000000000000000000bb";
const PREFIX: &str = "/dunlin/dunlin/";

/// An etcd that can be ended and started again.
pub(crate) struct Etcd {
    child: Option<Child>,
    pub(crate) port: u16,
    peer_port: u16,
    directory: TempDir,
}

impl Etcd {
    fn start() -> Result<Etcd> {
        let directory = tempfile::Builder::new().prefix("dunlin-etcd-").tempdir()?;
        let mut etcd = Etcd { child: None, port: free_port()?, peer_port: free_port()?, directory };
        etcd.start_again()?;
        Ok(etcd)
    }

    pub(crate) fn start_again(&mut self) -> Result<()> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let log = fs::File::create(self.directory.path().join("log"))?;
        let child = Command::new(peers::etcd("etcd"))
            .args(["--name", "one", "--data-dir"])
            .arg(self.directory.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("scripts/install-peers brings etcd")?;
        self.child = Some(child);
        wait_until("etcd answers", || Ok(self.control(&["get", "nothing"]).is_ok()))
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn control(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(peers::etcd("etcdctl"))
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &format!("http://127.0.0.1:{}", self.port)])
            .args(["--command-timeout", "5s"])
            .args(words)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It fails only if it is gone already.
        let _ = self.kill();
    }
}

/// See the module's text.
pub(crate) struct Deployment {
    pub(crate) nodes: Vec<Server>,
    pub(crate) etcd: Etcd,
}

impl Deployment {
    /// Starts so many nodes that form one shard with all slots, and waits until one of them leads
    /// and the others follow.
    pub(crate) fn start(count: usize, options: &[(&str, &str)]) -> Result<Deployment> {
        let mut deployment = Deployment { nodes: Vec::new(), etcd: Etcd::start()? };
        deployment.start_nodes(count, options)?;
        deployment.form_shard(SHARD, "0-16383", 0)?;
        deployment.wait_until_whole()?;
        Ok(deployment)
    }

    /// Starts nodes that belong to no shard yet.
    pub(crate) fn start_nodes(&mut self, count: usize, options: &[(&str, &str)]) -> Result<()> {
        let address = format!("http://127.0.0.1:{}", self.etcd.port);
        let timeout = NODE_TIMEOUT.to_string();
        let mut all = vec![
            ("cluster-enabled", "yes"),
            ("cluster-etcd", &*address),
            ("cluster-node-timeout", &*timeout),
            ("cluster-durability", "quorum"),
            ("repl-diskless-sync-delay", "0"),
        ];
        all.extend(options);
        for _ in 0..count {
            self.nodes.push(Server::start(Target::Dunlin, &all)?);
        }
        Ok(())
    }

    /// Starts another shard of so many nodes, which has no slots, and waits until one leads and has
    /// the others as replicas.
    pub(crate) fn add_shard(&mut self, count: usize) -> Result<()> {
        let first = self.nodes.len();
        self.start_nodes(count, &[])?;
        self.form_shard(OTHER_SHARD, "", first)?;
        let followed = format!("connected_slaves:{}\r\n", count - 1);
        wait_until("the other shard has a primary", || {
            for node in &self.nodes[first..] {
                let info = node.connect()?.call_text("INFO replication")?;
                let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
                if info.contains("role:master") && info.contains(&followed) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Asks for a move of slots.
    pub(crate) fn move_slots(&self, id: &str, slots: &str, from: &str, to: &str) -> Result<()> {
        let value = format!(
            "{{\"slots\":\"{slots}\",\"from\":\"{from}\",\"to\":\"{to}\",\"state\":\"wanted\"}}"
        );
        self.etcd.control(&["put", &format!("{PREFIX}migrations/{id}"), &value])?;
        Ok(())
    }

    /// Waits until a move is over.
    pub(crate) fn wait_for_move(&self, id: &str) -> Result<()> {
        let key = format!("{PREFIX}migrations/{id}");
        wait_until("the slots have moved", || Ok(self.etcd.control(&["get", &key])?.is_empty()))
    }

    /// The slots of a shard.
    pub(crate) fn slots_of(&self, shard: &str) -> Result<String> {
        let key = format!("{PREFIX}shards/{shard}");
        let value = self.etcd.control(&["get", "--print-value-only", &key])?;
        let slots = value.split("\"slots\":\"").nth(1).and_then(|rest| rest.split('"').next());
        Ok(slots.context("slots")?.to_owned())
    }

    /// Has the nodes from this one on be members of a shard that owns some slots.
    fn form_shard(&self, shard: &str, slots: &str, first: usize) -> Result<()> {
        let mut names = Vec::new();
        for node in &self.nodes[first..] {
            let name = node.connect()?.call_text("CLUSTER MYID")?;
            let name = String::from_utf8(name.text().context("a name")?.to_vec())?;
            let key = format!("{PREFIX}members/{name}");
            let mut value = String::new();
            wait_until("the node has made itself known", || {
                value = self.etcd.control(&["get", "--print-value-only", &key])?;
                Ok(value.starts_with('{'))
            })
            .with_context(|| node.log_tail())?;
            let value = value.trim().strip_prefix('{').context("an object")?;
            let value = format!("{{\"shard\":\"{shard}\",{}", without_shard(value));
            self.etcd.control(&["put", &key, &value])?;
            names.push(format!("\"{name}\""));
        }
        names.sort();
        let value = format!("{{\"slots\":\"{slots}\",\"members\":[{}]}}", names.join(","));
        self.etcd.control(&["put", &format!("{PREFIX}shards/{shard}"), &value])?;
        Ok(())
    }

    /// Which node takes writes, if one does.
    pub(crate) fn primary(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|index| takes_writes(self.nodes[*index].port()))
    }

    /// Waits until a node takes writes, and returns which one.
    pub(crate) fn wait_for_primary(&self) -> Result<usize> {
        let mut found = None;
        let waited = wait_until("a node takes writes", || {
            found = self.primary();
            Ok(found.is_some())
        });
        if waited.is_err() {
            let logs: Vec<_> = self.nodes.iter().map(|node| node.log_tail()).collect();
            bail!("nobody takes writes:\n{}", logs.join("\n----\n"));
        }
        found.context("it was found")
    }

    /// Waits until one node leads, and all others follow it and are members.
    pub(crate) fn wait_until_whole(&self) -> Result<usize> {
        let primary = self.wait_for_primary()?;
        let port = self.nodes[primary].port().to_string();
        for (index, node) in self.nodes.iter().enumerate() {
            if index != primary {
                wait_until("it follows", || {
                    let Ok(mut client) = node.connect() else { return Ok(false) };
                    let info = client.call_text("INFO replication")?;
                    let info =
                        String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
                    Ok(info.contains(&format!("master_port:{port}\r\n"))
                        && info.contains("master_link_status:up"))
                })
                .with_context(|| node.log_tail())?;
            }
        }
        Ok(primary)
    }

    /// All ports.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Server::port).collect()
    }

    /// The logs of all nodes, for failures.
    pub(crate) fn logs(&self) -> String {
        let logs: Vec<_> =
            self.nodes.iter().map(|node| format!("{}:\n{}", node.port(), node.log())).collect();
        logs.join("\n----\n")
    }
}

/// The rest of a member's value, without the shard that it may have.
fn without_shard(value: &str) -> String {
    match value.strip_prefix("\"shard\":null,") {
        Some(rest) => rest.to_owned(),
        None => value.to_owned(),
    }
}

/// Whether a node takes writes.
pub(crate) fn takes_writes(port: u16) -> bool {
    let written = Client::connect(port).and_then(|mut client| write(&mut client, "{w}"));
    written.is_ok_and(|reply| reply == Reply::Status(b"OK".to_vec()))
}

/// Keys that were written, and acknowledged.
pub(crate) struct Written {
    keys: Vec<String>,
}

impl Written {
    /// Which of them a node does not have.
    pub(crate) fn lost(&self, port: u16) -> Result<Vec<&str>> {
        let mut client = Client::connect(port)?;
        let mut lost = Vec::new();
        let mut count = |keys: &[String]| {
            let words = ["EXISTS"].into_iter().chain(keys.iter().map(String::as_str));
            match client.call(&words.collect::<Vec<_>>())? {
                Reply::Integer(count) => Ok(count as usize),
                other => bail!("{}: {other:?}", keys[0]),
            }
        };
        for keys in self.keys.chunks(1000) {
            if count(keys)? == keys.len() {
                continue;
            }
            for key in keys {
                if count(std::slice::from_ref(key))? == 0 {
                    lost.push(&**key);
                }
            }
        }
        Ok(lost)
    }

    /// Fails if the node that leads lacks one of them, or there are fewer than that.
    pub(crate) fn check(&self, deployment: &Deployment, least: usize) -> Result<()> {
        let primary = deployment.wait_for_primary()?;
        let (lost, count) = (self.lost(deployment.nodes[primary].port())?, self.keys.len());
        ensure!(lost.is_empty(), "{lost:?} of {count} are lost\n{}", deployment.logs());
        ensure!(count >= least, "only {count} were written");
        Ok(())
    }
}

/// Longer than that no client waits for a node that says nothing.
const SILENCE: Duration = Duration::from_millis(300);

/// Writes a key, unless the node says nothing.
fn write(client: &mut Client, key: &str) -> Result<Reply> {
    client.send(&["SET", key, "x"])?;
    ensure!(client.has_input(SILENCE)?, "silence");
    match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        Received::Closed => bail!("closed"),
    }
}

/// A client that writes one key after the other, at whichever node takes it.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<Vec<String>>,
}

impl Writer {
    pub(crate) fn start(ports: Vec<u16>) -> Writer {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stops, counts) = (Arc::clone(&stop), Arc::clone(&acknowledged));
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let writer = WRITERS.fetch_add(1, Relaxed);
        let thread = std::thread::spawn(move || {
            let (mut written, mut at, mut number) = (Vec::new(), 0, 0);
            let mut client: Option<Client> = None;
            while !stops.load(Relaxed) {
                number += 1;
                if client.is_none() {
                    at += 1;
                    client = Client::connect(ports[at % ports.len()]).ok();
                }
                let key = format!("{{w}}:{writer}:{number}");
                let reply = client.as_mut().map(|own| write(own, &key));
                match reply {
                    Some(Ok(Reply::Status(_))) => {
                        written.push(key);
                        counts.fetch_add(1, Relaxed);
                    }
                    _ => {
                        client = None;
                        sleep(Duration::from_millis(1));
                    }
                }
            }
            written
        });
        Writer { stop, acknowledged, thread }
    }

    /// How many writes were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Relaxed)
    }

    /// Waits until so many more writes are acknowledged. Returns how long that took.
    pub(crate) fn wait_for_more(&self, count: u64) -> Result<Duration> {
        let (begun, before) = (Instant::now(), self.acknowledged());
        wait_until("writes are acknowledged", || Ok(self.acknowledged() >= before + count))?;
        Ok(begun.elapsed())
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Written {
        self.stop.store(true, Relaxed);
        Written { keys: self.thread.join().expect("no panic") }
    }
}
