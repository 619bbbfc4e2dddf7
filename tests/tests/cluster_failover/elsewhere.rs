//! Another etcd than the one that has the cluster: one that is named while nodes run, and one among
//! the members that are named.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cluster::store::{Operation, Request, Transaction};
use gateway::{Config, Gateway};
use tests::client::Reply;
use tests::cluster::{ALL_SLOTS, Deployment, NODE_TIMEOUT, OTHER_SHARD, takes_writes};
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::server::free_port;

fn set_etcd(deployment: &Deployment, node: usize, url: &str) -> Result<()> {
    let mut client = deployment.nodes[node].connect()?;
    let reply = client.call(&["CONFIG", "SET", "cluster-etcd", url])?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    Ok(())
}

/// Where a node says that it asks etcd.
fn asked(deployment: &Deployment, node: usize) -> Result<String> {
    let known = deployment.nodes[node].connect()?.call_text("CLUSTER TOPOLOGY")?;
    let known = String::from_utf8_lossy(known.text().unwrap_or_default()).into_owned();
    let own = known.split("\"etcd\":[").nth(1).and_then(|rest| rest.split(']').next());
    Ok(own.context("addresses")?.to_owned())
}

/// Writes another cluster of the same name into an etcd, at a revision that is higher than that of
/// the nodes.
fn found_another(etcd: &EtcdMembers) -> Result<()> {
    let config = Config { endpoints: etcd.urls(), ..Config::default() };
    let gateway = Gateway::open(config).map_err(anyhow::Error::msg)?;
    let value = format!("{{\"slots\":\"{ALL_SLOTS}\",\"members\":[\"{}\"]}}", "7".repeat(40));
    let key = format!("/dunlin/dunlin/shards/{OTHER_SHARD}");
    for _ in 0..200 {
        let put = Operation::Put { key: key.clone(), value: value.clone().into_bytes(), lease: 0 };
        let transaction = Transaction { compares: Vec::new(), operations: vec![put] };
        let written = gateway.ask(&Request::Transaction(transaction), Duration::from_secs(5));
        written.map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
    }
    Ok(())
}

#[test]
fn nodes_leave_an_etcd_only_when_it_is_silent() -> Result<()> {
    let options = [("cluster-durability", "memory")];
    let mut deployment = Deployment::start(2, &options)?;
    let primary = deployment.wait_until_whole()?;
    let (own, copy) = (deployment.etcd.url(0), deployment.etcd.start_copy()?);
    let foreign = EtcdMembers::start(1)?;
    found_another(&foreign)?;

    // In the copy, the primary of now would be primary, and another one in the etcd that goes on.
    // That it loses that one later does not say that the other nodes have lost it.
    set_etcd(&deployment, primary, &copy.url(0))?;
    sleep(Duration::from_millis(2 * NODE_TIMEOUT));
    let serving = |node: usize| takes_writes(deployment.nodes[node].port());
    let log = || deployment.nodes[primary].log();
    ensure!(serving(primary) && !serving(1 - primary), "{}", deployment.logs());
    ensure!(log().matches("is another etcd, and the one at").count() == 1, "{}", log());
    let only = format!("\"{own}\"");
    ensure!(asked(&deployment, primary)? == only, "{}", asked(&deployment, primary)?);
    deployment.etcd.kill(0);
    sleep(Duration::from_millis(3 * NODE_TIMEOUT));
    ensure!(asked(&deployment, primary)? == only, "{}", asked(&deployment, primary)?);
    deployment.etcd.start_again(&[0])?;
    deployment.wait_until_whole().with_context(|| deployment.logs())?;

    // The same etcd by another name is none.
    let log = || deployment.nodes[primary].log();
    set_etcd(&deployment, primary, &own.replace("127.0.0.1", "localhost"))?;
    wait_until("it asks there", || Ok(!asked(&deployment, primary)?.contains("127.0.0.1")))
        .with_context(log)?;

    // Where nothing answers, nobody goes.
    deployment.etcd.kill(0);
    let nothing = format!("http://127.0.0.1:{}", free_port()?);
    set_etcd(&deployment, primary, &nothing)?;
    sleep(Duration::from_millis(3 * NODE_TIMEOUT));
    let names = asked(&deployment, primary)?;
    ensure!(names.contains("localhost") && names.contains(&nothing), "{names}");
    let log = deployment.nodes[primary].log();
    ensure!(log.contains(&format!("etcd is not asked at {nothing}: what is there is")), "{log}");

    // Nor is another cluster believed once its own etcd is gone.
    set_etcd(&deployment, primary, &foreign.url(0))?;
    wait_until("it is noticed", || {
        Ok(deployment.nodes[primary].log().contains("etcd has another cluster of the name"))
    })
    .with_context(|| deployment.logs())?;
    let serving = |node: usize| takes_writes(deployment.nodes[node].port());
    ensure!(serving(primary), "{}", deployment.logs());
    ensure!(
        foreign.control(&["get", "--prefix", "--keys-only", "/dunlin/dunlin/members"])?.is_empty()
    );

    // The copy takes over when the other one is gone.
    for node in 0..2 {
        set_etcd(&deployment, node, &copy.url(0))?;
    }
    wait_until("both ask the copy", || {
        let only = format!("\"{}\"", copy.url(0));
        Ok(asked(&deployment, 0)? == only && asked(&deployment, 1)? == only)
    })
    .with_context(|| deployment.logs())?;
    let primary = deployment.wait_until_whole().with_context(|| deployment.logs())?;
    let alive = || copy.control(&["get", "--prefix", "--keys-only", "/dunlin/dunlin/alive"]);
    wait_until("both are there", || Ok(alive()?.matches("alive").count() == 2))?;
    wait_until("one leads", || {
        let leader = copy.control(&["get", "--prefix", "--keys-only", "/dunlin/dunlin/leaders"])?;
        Ok(!leader.is_empty() && takes_writes(deployment.nodes[primary].port()))
    })
    .with_context(|| deployment.logs())
}

#[test]
fn a_node_without_a_shard_leaves_a_wrong_etcd_at_once() -> Result<()> {
    let mut deployment = Deployment::empty()?;
    deployment.start_nodes(1, &[])?;
    let right = EtcdMembers::start(1)?;
    let member = |etcd: &EtcdMembers| {
        etcd.control(&["get", "--prefix", "--print-value-only", "/dunlin/dunlin/members"])
    };
    wait_until("it is known", || Ok(member(&deployment.etcd)?.contains("127.0.0.1")))?;

    // It goes by the address at which it reaches the etcd that it asks.
    set_etcd(&deployment, 0, &format!("http://[::1]:{}", free_port()?))?;
    deployment.nodes[0].connect()?.call(&["CONFIG", "SET", "availability-zone", "z"])?;
    wait_until("the zone is known", || Ok(member(&deployment.etcd)?.contains("\"zone\":\"z\"")))?;
    ensure!(member(&deployment.etcd)?.contains("127.0.0.1"), "{}", member(&deployment.etcd)?);

    set_etcd(&deployment, 0, &right.url(0))?;
    wait_until("it is known there", || Ok(member(&right)?.contains("127.0.0.1")))
        .with_context(|| deployment.logs())?;
    ensure!(deployment.nodes[0].log().contains("has nothing of this cluster"));
    Ok(())
}

#[test]
fn a_member_that_is_an_empty_etcd_of_its_own_keeps_no_node_out() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    let replica = 1 - deployment.wait_until_whole()?;
    let wrong = EtcdMembers::start(1)?;
    let places = format!("{},{}", wrong.url(0), deployment.etcd.url(0));
    let timeout = NODE_TIMEOUT.to_string();
    let node = &mut deployment.nodes[replica];
    node.set_options(&[
        ("cluster-enabled", "yes"),
        ("cluster-etcd", &*places),
        ("cluster-node-timeout", &*timeout),
        ("cluster-durability", "quorum"),
        ("repl-diskless-sync-delay", "0"),
    ]);
    node.terminate()?;
    node.start_again()?;
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    ensure!(deployment.nodes[replica].log().contains("etcd has the cluster again"));
    ensure!(wrong.control(&["get", "--prefix", "--keys-only", "/dunlin/"])?.is_empty());
    Ok(())
}
