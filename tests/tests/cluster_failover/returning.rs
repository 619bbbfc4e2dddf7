//! Nodes that come back.

use std::thread::scope;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::observe::wait_until;

use crate::writer::Writer;

#[test]
fn a_shard_that_was_killed_as_a_whole_comes_back_with_its_data() -> Result<()> {
    let mut deployment = Deployment::start(2, &[("appendonly", "yes")])?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(100)?;
    let written = writer.stop();
    let reply = deployment.nodes[1].connect()?.call_text("CLUSTER MYID")?;
    let other = String::from_utf8_lossy(reply.text().context("a name")?).into_owned();
    for node in &mut deployment.nodes {
        node.kill();
    }
    deployment.etcd.start_again(&[0])?;
    // One alone may lack what the other has, and says so.
    deployment.nodes[0].start_again()?;
    let said = format!("has no primary and waits for {other}.");
    wait_until("it says whom it waits for", || Ok(deployment.nodes[0].log().contains(&said)))
        .with_context(|| deployment.logs())?;
    deployment.nodes[1].start_again()?;
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    written.check(&deployment, 100)
}

/// The first was stopped in order, and is far behind. It alone knows that it has all that it has
/// confirmed.
#[test]
fn members_that_were_killed_have_more_than_one_that_was_stopped_before() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let primary = deployment.wait_until_whole()?;
    let behind = (primary + 1) % 3;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(20)?;
    // A server that writes its first append-only file refuses to stop.
    let file_is_written = "Background AOF rewrite finished successfully";
    wait_until("the replica may be stopped", || {
        Ok(deployment.nodes[behind].log().contains(file_is_written))
    })?;
    ensure!(deployment.nodes[behind].terminate()? == Some(0), "{}", deployment.logs());
    writer.wait_for_more(100).with_context(|| deployment.logs())?;
    let written = writer.stop();
    for node in [primary, (primary + 2) % 3] {
        deployment.nodes[node].kill();
    }
    for node in &mut deployment.nodes {
        node.start_again()?;
    }
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    written.check(&deployment, 120)
}

#[test]
fn a_node_that_loads_sends_clients_on() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    deployment.move_slots("one", "0-499", SHARD, OTHER_SHARD)?;
    deployment.wait_for_move("one")?;
    let node = &mut deployment.nodes[0];
    let mut client = node.connect()?;
    let script = "for i = 1, 2000 do redis.call('SET', '{bar}' .. i, i) end";
    ensure!(!client.call(&["EVAL", script, "1", "bar"])?.is_error());
    ensure!(!client.call_text("SAVE")?.is_error());
    let file = node.directory().join("nodes.conf");
    wait_until("it has noted where slots are", || {
        Ok(std::fs::read_to_string(&file)?.contains("\"500-16383\""))
    })?;
    node.add_options(&[("key-load-delay", "1000")]);
    node.kill();
    let port = node.port();
    let (own, other) = scope(|scope| -> Result<_> {
        let started = scope.spawn(|| node.start_again());
        let mut replies = None;
        wait_until("a node that loads", || {
            let Ok(mut client) = Client::connect(port) else { return Ok(false) };
            let (Ok(own), Ok(other)) = (client.call_text("GET bar"), client.call_text("GET k2"))
            else {
                return Ok(false);
            };
            replies = Some((own, other));
            Ok(true)
        })?;
        started.join().expect("no panic")?;
        replies.context("they came")
    })?;
    let said = |reply: &Reply, word: &str| matches!(reply, Reply::Error(text) if text.starts_with(word.as_bytes()));
    ensure!(said(&own, "CLUSTERDOWN"), "{own:?}");
    ensure!(said(&other, "MOVED"), "{other:?}");
    Ok(())
}
