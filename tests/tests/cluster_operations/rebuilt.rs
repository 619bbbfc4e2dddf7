//! etcd is lost for good, and `dunlin cluster rebuild` writes the cluster anew from what its nodes
//! know: with the commands that docs/cluster.md has.

use std::fs;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

use anyhow::{Context, Result, bail, ensure};
use tests::client::Reply;
use tests::cluster::{Deployment, NODE_TIMEOUT, OTHER_SHARD, SHARD};
use tests::counting::{Way, check_counts, count};
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::server::repository;

use crate::interrupted::{in_words, tool};

/// The commands of the page's section, with the addresses of two nodes in place of those there: to
/// look at it, to do it, and to do it without the second node.
fn commands(first: u16, third: u16) -> Result<[Vec<String>; 3]> {
    let page = fs::read_to_string(repository().join("docs/cluster.md"))?;
    let section = page.split("## When etcd is lost").nth(1).context("a section")?;
    let section = section.split("\n## ").next().context("its end")?;
    let lines = section.lines().filter_map(|line| line.strip_prefix("dunlin cluster "));
    let commands = lines.map(|line| {
        let line = line.replace("10.0.0.1:6379", &format!("127.0.0.1:{first}"));
        let line = line.replace("10.0.0.3:6379", &format!("127.0.0.1:{third}"));
        line.split(' ').map(str::to_owned).collect()
    });
    let commands: Vec<Vec<String>> = commands.collect();
    commands.try_into().map_err(|other| anyhow::anyhow!("three commands, not {other:?}"))
}

fn run(deployment: &Deployment, words: &[String], more: &[&str]) -> Result<Output> {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Ok(tool(deployment, &words)?.output()?)
}

fn epoch(deployment: &Deployment, node: usize) -> Result<i64> {
    let info = deployment.nodes[node].connect()?.call_text("CLUSTER INFO")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("cluster_my_epoch:"));
    Ok(line.context("an epoch")?.parse()?)
}

/// A move of slots that is under way, and will be until the bound of its copy is lifted.
fn begin_move(deployment: &Deployment, source: usize) -> Result<()> {
    let mut client = deployment.nodes[source].connect()?;
    let slot = match client.call_text("CLUSTER KEYSLOT w")? {
        Reply::Integer(slot) => slot.to_string(),
        other => bail!("{other:?}"),
    };
    let value = "x".repeat(50_000);
    for number in 0..20 {
        client.call(&["SET", &format!("{{w}}{number}"), &value])?;
    }
    client.call_text("CONFIG SET cluster-migration-bandwidth 1kb")?;
    deployment.move_slots("m", &slot, SHARD, OTHER_SHARD)?;
    wait_until("the copy is under way", || {
        let info = client.call_text("INFO cluster")?;
        Ok(String::from_utf8_lossy(info.text().unwrap_or_default()).contains("state=copying"))
    })
}

/// What an operator does, with a primary that has a move under way. It goes on, and so does all.
fn lose_and_rebuild(
    deployment: &mut Deployment,
    primary: usize,
    [look, rebuild, _]: &[Vec<String>; 3],
) -> Result<()> {
    let before = epoch(deployment, primary)?;
    let refused = run(deployment, rebuild, &["--yes", "--timeout", "1"])?;
    let said = in_words(&refused);
    ensure!(refused.status.code() == Some(1) && said.contains("nothing to rebuild"), "{said}");
    deployment.etcd.exchange_data(0)?;
    deployment.etcd.start_again(&[0])?;
    wait_until("it is noticed", || {
        Ok(deployment.nodes.iter().all(|node| node.log().contains("it is not believed")))
    })?;
    let shown = run(deployment, look, &[])?;
    let said = in_words(&shown);
    ensure!(shown.status.success() && said.contains("move m of slots"), "{said}");
    ensure!(deployment.etcd.control(&["get", "--prefix", "/dunlin/"])?.is_empty());
    let done = run(deployment, rebuild, &["--yes"])?;
    ensure!(done.status.success(), "{}", in_words(&done));
    ensure!(deployment.wait_for_leader(0..3)? == primary, "another one leads");
    let again = run(deployment, rebuild, &["--yes"])?;
    let said = in_words(&again);
    ensure!(again.status.success() && said.contains("has cluster dunlin already"), "{said}");
    let looked = run(deployment, look, &[])?;
    let said = in_words(&looked);
    ensure!(looked.status.success() && said.contains("has cluster dunlin already"), "{said}");
    ensure!(!said.contains("serves all slots"), "who looks waits for nothing: {said}");
    // The move begins anew, and ends.
    let mut client = deployment.nodes[primary].connect()?;
    client.call_text("CONFIG SET cluster-migration-bandwidth 0")?;
    deployment.wait_for_move("m")?;
    ensure!(!deployment.slots_of(OTHER_SHARD)?.is_empty(), "the slot has not moved");
    ensure!(epoch(deployment, primary)? > before + 1_000_000_000, "epochs do not go on");
    // Others take over as ever.
    deployment.nodes[primary].kill();
    wait_until("another one leads", || {
        Ok((0..3).any(|node| node != primary && deployment.is_primary(node)))
    })?;
    deployment.nodes[primary].start_again()?;
    deployment.wait_for_leader(0..3).map(drop)
}

#[test]
fn a_cluster_that_etcd_has_lost_under_load_goes_on() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    deployment.add_shard(1)?;
    let primary = deployment.wait_for_leader(0..3)?;
    begin_move(&deployment, primary)?;
    let (ports, over) = (deployment.ports(), AtomicBool::new(false));
    let commands = commands(ports[0], ports[2])?;
    let (played, counts) = scope(|scope| {
        let writer = scope.spawn(|| count(&ports, (1, Way::Command), &over));
        let played = lose_and_rebuild(&mut deployment, primary, &commands);
        over.store(true, Relaxed);
        (played, writer.join().expect("no panic"))
    });
    played.with_context(|| deployment.logs())?;
    let checked = check_counts(&ports, &[counts]).with_context(|| deployment.logs())?;
    ensure!(checked > 20, "only {checked} counters were used");
    Ok(())
}

#[test]
fn a_cluster_goes_on_with_another_etcd_and_without_a_node() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let mut client = deployment.nodes[deployment.wait_until_whole()?].connect()?;
    for number in 0..50 {
        let reply = client.call(&["SET", &format!("{{w}}{number}"), "x"])?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    }
    deployment.nodes[2].kill();
    deployment.etcd = EtcdMembers::start(1)?;
    let ports = deployment.ports();
    let [_, rebuild, without] = commands(ports[0], ports[2])?;
    let refused = run(&deployment, &rebuild, &["--yes"])?;
    let (said, hint) = (in_words(&refused), format!("--without 127.0.0.1:{}", ports[2]));
    ensure!(refused.status.code() == Some(1) && said.contains(&hint), "{said}");
    let refused = run(&deployment, &without, &["--yes"])?;
    let said = in_words(&refused);
    ensure!(refused.status.code() == Some(1) && said.contains("ask another etcd"), "{said}");
    ensure!(deployment.etcd.control(&["get", "--prefix", "/dunlin/"])?.is_empty());
    let url = deployment.etcd.url(0);
    // One is told of it, and another one started again.
    let mut client = deployment.nodes[0].connect()?;
    let told = client.call(&["CONFIG", "SET", "cluster-etcd", &url])?;
    ensure!(told == Reply::Status(b"OK".to_vec()), "{told:?}");
    for wrong in ["", "http://user:secret@127.0.0.1:1"] {
        let refused = client.call(&["CONFIG", "SET", "cluster-etcd", wrong])?;
        ensure!(refused.is_error(), "{wrong}: {refused:?}");
    }
    let timeout = NODE_TIMEOUT.to_string();
    let options = [
        ("cluster-enabled", "yes"),
        ("cluster-etcd", &*url),
        ("cluster-node-timeout", &*timeout),
        ("cluster-durability", "quorum"),
        ("repl-diskless-sync-delay", "0"),
        ("appendonly", "yes"),
    ];
    deployment.nodes[1..].iter_mut().for_each(|node| node.set_options(&options));
    ensure!(deployment.nodes[1].terminate()? == Some(0), "{}", deployment.logs());
    deployment.nodes[1].start_again()?;
    wait_until("the one that was told has gone on there", || {
        let topology = client.call(&["CLUSTER", "TOPOLOGY"])?;
        let topology = String::from_utf8_lossy(topology.text().unwrap_or_default()).into_owned();
        Ok(topology.contains(&format!("\"etcd\":[\"{url}\"]")))
    })
    .with_context(|| deployment.logs())?;
    let done = run(&deployment, &without, &["--yes"])?;
    let said = in_words(&done);
    ensure!(done.status.success(), "{said}\n{}", deployment.logs());
    ensure!(said.contains("has not come yet"), "{said}");
    deployment.nodes[2].start_again()?;
    let primary = deployment.wait_until_whole().with_context(|| deployment.logs())?;
    let mut client = deployment.nodes[primary].connect()?;
    for number in 0..50 {
        let found = client.call(&["EXISTS", &format!("{{w}}{number}")])?;
        ensure!(found == Reply::Integer(1), "{number} is lost\n{}", deployment.logs());
    }
    Ok(())
}
