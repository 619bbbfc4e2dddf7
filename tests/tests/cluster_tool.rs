//! `dunlin cluster`: it brings up a cluster, shows it, moves slots and ends it, with a real etcd.

use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::peers;
use tests::process::ask_to_end;
use tests::server::{Server, Target, dunlin_binary, free_port};

/// etcd's ports are so far behind the first node's.
const ETCD_OFFSET: u16 = 1000;

/// A port that is free with those of the second node and of etcd. It is below those that the
/// system gives to whoever asks for any.
fn port_before_others() -> Result<u16> {
    let mut refused = None;
    for first in (10_000..30_000).step_by(10) {
        let first = first + (std::process::id() % 10) as u16;
        let mut ports =
            [0, 1, ETCD_OFFSET, ETCD_OFFSET + 1].map(|offset| first + offset).into_iter();
        match ports.try_for_each(|port| TcpListener::bind(("127.0.0.1", port)).map(drop)) {
            Ok(()) => return Ok(first),
            Err(error) => refused = Some(error),
        }
    }
    anyhow::bail!("no four ports are free: {refused:?}")
}

/// A cluster on this machine, until it is dropped.
struct Dev {
    tool: Child,
    port: u16,
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It ends what it has started. If it is gone, so are they.
        let _ = ask_to_end(self.tool.id());
        let _ = self.tool.wait();
    }
}

impl Dev {
    fn start(directory: &std::path::Path) -> Result<Dev> {
        let port = port_before_others()?;
        let tool = Command::new(dunlin_binary()?)
            .args(["cluster", "dev", "--shards", "2", "--replicas", "0"])
            .args(["--port", &port.to_string(), "--etcd-program"])
            .arg(peers::etcd("etcd"))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(directory.join("said"))?)
            .spawn()?;
        Ok(Dev { tool, port })
    }

    fn cluster(&self, arguments: &[&str]) -> Result<Output> {
        let etcd = format!("http://127.0.0.1:{}", self.port + ETCD_OFFSET);
        let mut command = Command::new(dunlin_binary()?);
        command.arg("cluster").args(arguments).args(["--etcd", &etcd]);
        command.stdin(Stdio::null()).output().context("it does not run")
    }
}

#[test]
fn a_cluster_comes_up_moves_slots_and_ends() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut dev = Dev::start(directory.path())?;
    let said = || std::fs::read_to_string(directory.path().join("said")).unwrap_or_default();
    wait_until("the cluster serves", || Ok(said().contains("serves all slots")))
        .with_context(said)?;
    let status = dev.cluster(&["status", "--json"])?;
    let status: serde_json::Value = serde_json::from_slice(&status.stdout)?;
    let shards = status["shards"].as_array().context("shards")?;
    ensure!(shards.len() == 2, "{status}");
    // The slot of "foo" is 12182, in the second half.
    let mut clients = [Client::connect(dev.port)?, Client::connect(dev.port + 1)?];
    let answers = |clients: &mut [Client; 2], command: &str| -> Result<Vec<bool>> {
        clients.iter_mut().map(|own| Ok(!own.call_text(command)?.is_error())).collect()
    };
    let before = answers(&mut clients, "SET foo bar")?;
    ensure!(before.iter().filter(|takes| **takes).count() == 1, "{before:?}");
    let owner = dev.port + u16::from(before[1]);
    let other = shards
        .iter()
        .find(|shard| shard["nodes"][0]["port"] != owner)
        .and_then(|shard| shard["id"].as_str())
        .with_context(|| format!("{owner}: {status}"))?;
    let moved = dev.cluster(&["move", "12182", "--shard", other, "--yes"])?;
    ensure!(moved.status.code() == Some(0), "{moved:?}");
    let after = answers(&mut clients, "GET foo")?;
    ensure!(after == [before[1], before[0]], "{before:?} {after:?}");
    let text = clients[usize::from(after[1])].call_text("GET foo")?;
    ensure!(text.text() == Some(b"bar"), "{text:?}");
    let etcd = format!("http://127.0.0.1:{}", dev.port + ETCD_OFFSET);
    let options =
        [("cluster-enabled", "yes"), ("cluster-etcd", &*etcd), ("enable-debug-command", "yes")];
    let before = Server::start(Target::Dunlin, &options)?;
    before.connect()?.call_text("DEBUG POPULATE 3")?;
    let own = format!("127.0.0.1:{}", before.port());
    let refused = dev.cluster(&["add", &own, "--new-shard", "--yes"])?;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && text.contains("has keys"), "{refused:?}");
    let added = dev.cluster(&["add", &own, "--new-shard", "--discard-keys", "--yes"])?;
    ensure!(added.status.code() == Some(0), "{added:?}");
    let mut client = before.connect()?;
    // All three shards have a third of the slots then, and again when one has given up all.
    for (share, least) in [("1", 5400), ("0", 0)] {
        let status = dev.cluster(&["status", "--json"])?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout)?;
        let shards = status["shards"].as_array().context("shards")?;
        let is_new = |shard: &&serde_json::Value| shard["nodes"][0]["port"] == before.port();
        let id = shards.iter().find(is_new).and_then(|own| own["id"].as_str()).context("an id")?;
        let share = format!("{id}={share}");
        let moved = dev.cluster(&["rebalance", "--share", &share, "--yes"])?;
        ensure!(moved.status.code() == Some(0), "{moved:?}");
        let again = dev.cluster(&["rebalance", "--share", &share, "--yes"])?;
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        ensure!(said == "each shard has its share\n", "{said}");
        wait_until("the node knows it", || {
            let own = slots_of(&before)?;
            Ok(own >= least && (least > 0 || own == 0))
        })?;
    }
    wait_until("its keys are gone", || Ok(client.call_text("DBSIZE")? == Reply::Integer(0)))?;
    let said = "keys of slots that are not served here";
    ensure!(before.log().contains(said), "{}", before.log());
    ask_to_end(dev.tool.id())?;
    ensure!(dev.tool.wait()?.code() == Some(0));
    ensure!(Client::connect(dev.port).is_err(), "a node is left");
    Ok(())
}

/// How many slots a node has, as it says itself.
fn slots_of(node: &Server) -> Result<i64> {
    let port = Reply::Integer(i64::from(node.port()));
    let mut count = 0;
    let ranges = node.connect()?.call_text("CLUSTER SLOTS")?;
    for range in ranges.elements().unwrap_or_default() {
        match &range.elements().unwrap_or_default()[..] {
            [Reply::Integer(first), Reply::Integer(last), Reply::Array(primary), ..]
                if primary.contains(&port) =>
            {
                count += last - first + 1;
            }
            _ => {}
        }
    }
    Ok(count)
}

#[test]
fn an_etcd_that_is_not_there_is_an_error() -> Result<()> {
    let port = free_port()?;
    let etcd = format!("http://127.0.0.1:{port}");
    let output =
        Command::new(dunlin_binary()?).args(["cluster", "status", "--etcd", &etcd]).output()?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("etcd cannot be read"), "{output:?}");
    let many = u64::MAX.to_string();
    let words = ["cluster", "dev", "--replicas", &many, "--etcd", &etcd, "--dry-run"];
    let output = Command::new(dunlin_binary()?).args(words).output()?;
    ensure!(String::from_utf8_lossy(&output.stderr).contains("there are no"), "{output:?}");
    Ok(())
}
