//! What a node keeps in its file, and its place in the cluster.

use std::fs;

use anyhow::{Context, Result, ensure};
use tests::cluster::{Deployment, takes_writes};
use tests::observe::wait_until;

#[test]
fn a_refused_shutdown_leaves_a_node_in_its_place() -> Result<()> {
    let deployment = Deployment::start(1, &[])?;
    let node = &deployment.nodes[0];
    fs::create_dir(node.directory().join("dump.rdb"))?;
    let reply = node.connect()?.call_text("SHUTDOWN SAVE")?;
    ensure!(reply.is_error(), "{reply:?}");
    deployment.wait_for_primary().with_context(|| node.log_tail())?;
    Ok(())
}

#[test]
fn a_copy_of_a_node_takes_its_place_only_when_it_is_gone() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    let copied = tempfile::tempdir()?;
    let file = copied.path().join("nodes.conf");
    fs::copy(deployment.nodes[0].directory().join("nodes.conf"), &file)?;
    let file = file.to_string_lossy().into_owned();
    deployment.start_nodes(1, &[("cluster-config-file", &*file)])?;
    let (node, copy) = (&deployment.nodes[0], &deployment.nodes[1]);
    wait_until("the copy has seen the node", || {
        Ok(copy.log().contains("Another process has had this node's name"))
    })
    .with_context(|| copy.log_tail())?;
    ensure!(takes_writes(node.port()) && !takes_writes(copy.port()), "{}", deployment.logs());
    ensure!(!copy.log().contains("Primary of shard"), "{}", copy.log());
    deployment.nodes[0].kill();
    ensure!(deployment.wait_for_primary()? == 1);
    Ok(())
}

#[test]
fn a_node_that_cannot_write_its_file_gives_its_place_to_another() -> Result<()> {
    let deployment = Deployment::start(2, &[("cluster-durability", "memory")])?;
    let old = deployment.wait_until_whole()?;
    let replica = &deployment.nodes[1 - old];
    let file = replica.directory().join("nodes.conf");
    wait_until("it has kept that it has everything", || {
        Ok(fs::read_to_string(&file)?.contains("\"complete\": true"))
    })?;
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    replica.connect()?.call_text("CLUSTER FAILOVER")?;
    let says = "This node serves and confirms nothing until it can be written";
    wait_until("it says so", || Ok(replica.log().contains(says)))?;
    ensure!(!takes_writes(replica.port()), "{}", replica.log());
    ensure!(deployment.wait_for_primary()? == old, "{}", deployment.logs());
    ensure!(replica.log().matches(says).count() == 1, "{}", replica.log());
    fs::remove_dir(&file)?;
    ensure!(deployment.wait_until_whole()? == old, "{}", deployment.logs());
    ensure!(file.is_file());
    Ok(())
}

#[test]
fn a_node_of_another_cluster_forgets_the_one_before() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    let primary = deployment.wait_until_whole()?;
    let replica = &mut deployment.nodes[1 - primary];
    wait_until("it has kept what it knows", || {
        let text = fs::read_to_string(replica.directory().join("nodes.conf"))?;
        Ok(text.contains("\"leader\""))
    })?;
    replica.terminate()?;
    deployment.etcd.kill(0);
    replica.set_options(&[
        ("cluster-enabled", "yes"),
        ("cluster-etcd", "http://127.0.0.1:1"),
        ("cluster-name", "another"),
    ]);
    replica.start_again()?;
    let reply = replica.connect()?.call(&["GET", "{w}"])?;
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    ensure!(text.starts_with("CLUSTERDOWN"), "{text}");
    Ok(())
}
