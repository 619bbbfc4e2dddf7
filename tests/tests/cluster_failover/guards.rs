//! What a node is asked to do, and must not.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::cluster::Deployment;
use tests::observe::{figure, wait_until};
use tests::server::dunlin_binary;

use crate::writer::Writer;

/// A replica that led without etcd's knowledge, or with data of its own, could be elected and take
/// the place of acknowledged writes.
#[test]
fn a_replica_does_not_lead_or_write_because_a_client_says_so() -> Result<()> {
    let deployment = Deployment::start(2, &[("replica-read-only", "no")])?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(20)?;
    let primary = deployment.wait_until_whole()?;
    let mut client = deployment.nodes[1 - primary].connect()?;
    let history = figure(&mut client, "master_replid")?;
    for (command, answer) in [
        (format!("PSYNC {history} 1 FAILOVER"), "ERR PSYNC FAILOVER is not for nodes of a cluster"),
        ("FLUSHALL".to_owned(), "READONLY You can't write against a read only replica"),
        ("EVAL return(redis.call('FLUSHALL')) 0".to_owned(), "READONLY You can't write"),
    ] {
        let reply = client.call_text(&command)?;
        let is_refused =
            matches!(&reply, Reply::Error(text) if text.starts_with(answer.as_bytes()));
        ensure!(is_refused, "{command} was answered {reply:?}");
    }
    ensure!(figure(&mut client, "role")? == "slave");
    writer.wait_for_more(20)?;
    writer.stop().check(&deployment, 40)
}

/// The only replica is killed, so that a write waits. It waits for nobody once that replica is out
/// of the shard.
#[test]
fn a_write_goes_on_when_a_quorum_needs_fewer() -> Result<()> {
    let mut deployment = Deployment::start(2, &[("durability-timeout", "60000")])?;
    let primary = deployment.wait_until_whole()?;
    let replica = 1 - primary;
    deployment.nodes[replica].kill();
    let mut client = deployment.nodes[primary].connect()?;
    client.send(&["SET", "key", "value"])?;
    ensure!(!client.has_input(Duration::from_millis(200))?, "nobody else has it");
    let etcd = deployment.etcd.url(0);
    let name = format!("127.0.0.1:{}", deployment.nodes[replica].port());
    let words = ["cluster", "forget", &name, "--yes", "--etcd", &etcd];
    // It is not forgotten while etcd has it that it is alive.
    wait_until("it is forgotten", || {
        Ok(Command::new(dunlin_binary()?).args(words).output()?.status.success())
    })?;
    let is_answered = client.has_input(Duration::from_secs(30))?;
    ensure!(is_answered, "{}", deployment.logs());
    Ok(())
}
