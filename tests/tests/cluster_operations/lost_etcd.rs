//! Nodes that start while etcd is away, and an etcd that comes back without what it had.

use std::fs;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::cluster::Deployment;
use tests::observe::wait_until;
use tests::server::Server;

/// Writes so many keys, which a quorum has then.
fn write(node: &Server, count: usize) -> Result<()> {
    let mut client = node.connect()?;
    for number in 0..count {
        let reply = client.call(&["SET", &format!("{{w}}{number}"), "x"])?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    }
    Ok(())
}

/// Fails if the primary lacks one of so many keys.
fn check(deployment: &Deployment, count: usize) -> Result<()> {
    let primary = deployment.wait_until_whole().with_context(|| deployment.logs())?;
    let mut client = deployment.nodes[primary].connect()?;
    for number in 0..count {
        let found = client.call(&["EXISTS", &format!("{{w}}{number}")])?;
        ensure!(found == Reply::Integer(1), "{number} is lost\n{}", deployment.logs());
    }
    Ok(())
}

/// Whether a node refuses writes, and has what was written before.
fn only_reads(node: &Server) -> Result<bool> {
    let mut client = node.connect()?;
    let written = client.call_text("SET {w} 1")?;
    let read = client.call_text("GET {w}known")?;
    let is_refused = written.text().is_some_and(|text| text.starts_with(b"CLUSTERDOWN"));
    Ok(is_refused && read.text() == Some(b"1"))
}

/// Waits until all nodes have kept on disk who is primary, and kills and starts them again.
fn restart_all(deployment: &mut Deployment) -> Result<()> {
    let ports = deployment.ports().len();
    for node in 0..ports {
        let file = deployment.nodes[node].directory().join("nodes.conf");
        wait_until("it has kept the topology", || {
            Ok(fs::read_to_string(&file)?.contains("\"leader\": {"))
        })?;
    }
    deployment.nodes.iter_mut().for_each(Server::kill);
    deployment.nodes.iter_mut().try_for_each(Server::start_again)
}

const READS: [(&str, &str); 2] = [("appendonly", "yes"), ("cluster-allow-reads-when-down", "yes")];

#[test]
fn nodes_that_start_without_etcd_serve_reads_and_take_their_places_when_it_is_back() -> Result<()> {
    let mut deployment = Deployment::start(2, &READS)?;
    let primary = deployment.wait_until_whole()?;
    deployment.nodes[primary].connect()?.call_text("SET {w}known 1")?;
    write(&deployment.nodes[primary], 50)?;
    deployment.etcd.kill(0);
    restart_all(&mut deployment)?;
    wait_until("it serves reads alone", || only_reads(&deployment.nodes[primary]))
        .with_context(|| deployment.logs())?;
    let mut at_replica = deployment.nodes[1 - primary].connect()?;
    let place = format!("127.0.0.1:{}", deployment.nodes[primary].port());
    let sent = at_replica.call_text("GET {w}known")?;
    let sent = String::from_utf8_lossy(sent.text().unwrap_or_default()).into_owned();
    ensure!(sent.starts_with("MOVED ") && sent.ends_with(&place), "{sent}");
    at_replica.call_text("READONLY")?;
    let read = at_replica.call_text("GET {w}known")?;
    ensure!(read.text() == Some(b"1"), "{read:?}");
    for node in &deployment.nodes {
        ensure!(node.log().contains("etcd"), "it says nothing of etcd: {}", node.log());
    }
    deployment.etcd.start_again(&[0])?;
    check(&deployment, 50)
}

#[test]
fn an_etcd_that_has_lost_everything_is_not_believed() -> Result<()> {
    let mut deployment = Deployment::start(2, &READS)?;
    let primary = deployment.wait_until_whole()?;
    deployment.nodes[primary].connect()?.call_text("SET {w}known 1")?;
    deployment.etcd.exchange_data(0)?;
    deployment.etcd.start_again(&[0])?;
    for node in &deployment.nodes {
        wait_until("it says so", || Ok(node.log().contains("it is not believed")))
            .with_context(|| deployment.logs())?;
    }
    // All members promise, so writes go on.
    write(&deployment.nodes[primary], 50).with_context(|| deployment.logs())?;
    restart_all(&mut deployment)?;
    wait_until("it serves reads alone", || only_reads(&deployment.nodes[primary]))
        .with_context(|| deployment.logs())?;
    for node in &deployment.nodes {
        wait_until("it says so again", || Ok(node.log().contains("it is not believed")))
            .with_context(|| deployment.logs())?;
    }
    let keys = deployment.etcd.control(&["get", "--prefix", "/dunlin/"])?;
    ensure!(keys.is_empty(), "{keys}");
    deployment.etcd.exchange_data(0)?;
    deployment.etcd.start_again(&[0])?;
    check(&deployment, 50)
}
