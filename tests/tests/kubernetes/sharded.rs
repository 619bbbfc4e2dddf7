//! Nodes of a cluster that keep in etcd what they agree on: `mode: cluster`.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;

use crate::clients::{Load, connect};
use crate::cluster::{Cluster, Outside};
use crate::objects::Objects;

const PASSWORD: &str = "geheim";
const PODS: [&str; 3] = ["dunlin-0", "dunlin-1", "dunlin-2"];
const CLIENTS: usize = 2;

/// A shard of three nodes, and its etcd.
fn start() -> Result<Option<(Cluster, Outside)>> {
    let Some(cluster) = Cluster::make()? else { return Ok(None) };
    let (etcd, url) = cluster.start_etcd()?;
    cluster.set_secret("dunlin-auth", &[("password", PASSWORD.as_bytes())])?;
    cluster.set_secret("own-etcd", &[("endpoints", url.as_bytes())])?;
    cluster.apply(&Objects::read("tests/golden/kubernetes/cluster.yaml".as_ref())?)?;
    // The Job too: it has succeeded when all slots are served.
    cluster.wait_until_ready()?;
    Ok(Some((cluster, etcd)))
}

fn call(cluster: &Cluster, pod: &str, words: &[&str]) -> Result<Reply> {
    let place = (cluster.pod(pod)?.address, 6379).into();
    connect(&|| Some(place), PASSWORD)?.call(words)
}

fn role(cluster: &Cluster, pod: &str) -> Option<String> {
    let role = call(cluster, pod, &["ROLE"]).ok()?;
    let text = role.elements()?.first()?.text()?.to_vec();
    String::from_utf8(text).ok()
}

/// The pod of the primary that takes writes.
fn primary(cluster: &Cluster) -> Option<&'static str> {
    let takes = |pod: &&&str| {
        role(cluster, pod).as_deref() == Some("master")
            && call(cluster, pod, &["SET", "probe", "1"]).is_ok_and(|reply| !reply.is_error())
    };
    PODS.iter().find(takes).copied()
}

fn way(cluster: &Cluster) -> Option<SocketAddr> {
    Some((cluster.pod(primary(cluster)?).ok()?.address, 6379).into())
}

/// Each node is known by the name of its pod, also to clients that are sent on.
fn names_are_those_of_pods(cluster: &Cluster) -> Result<()> {
    let first = primary(cluster).context("a primary")?;
    let other = PODS.iter().find(|pod| **pod != first).context("a replica")?;
    let moved = call(cluster, other, &["SET", "key", "value"])?;
    let Reply::Error(text) = &moved else { anyhow::bail!("{moved:?}") };
    let text = String::from_utf8_lossy(text).into_owned();
    let name = format!("{first}.dunlin-headless.default.svc.cluster.local:6379");
    ensure!(text.starts_with("MOVED ") && text.ends_with(&name), "{text}");
    Ok(())
}

/// The machine of the primary is gone, and then its successor is drained: another node leads each
/// time, nothing acknowledged is lost, and the pods come back as replicas.
#[test]
fn a_primary_that_is_lost_or_drained_is_replaced() -> Result<()> {
    let Some((cluster, _etcd)) = start()? else { return Ok(()) };
    names_are_those_of_pods(&cluster)?;
    // What an operator asks for in a pod, which has all that it takes.
    let status = ["/usr/bin/dunlin", "cluster", "status"];
    let (is_well, said) = cluster.pod("dunlin-0")?.exec("dunlin", &status)?;
    ensure!(is_well, "{said}");
    let load = Load::default();
    let route = || way(&cluster);
    let acted = thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (cluster, load, route) = (&cluster, &load, &route);
                scope.spawn(move || cluster.join().and_then(|()| load.run(client, route, PASSWORD)))
            })
            .collect();
        let acted = load.wait_for(100).and_then(|()| {
            let old = primary(&cluster).context("a primary")?;
            cluster.pod(old)?.lose();
            cluster.wait_until_gone(old)?;
            cluster
                .wait("another primary", || Ok(primary(&cluster).is_some_and(|new| new != old)))?;
            cluster.replace(old)?;
            cluster.wait("a replica", || Ok(role(&cluster, old).as_deref() == Some("slave")))?;
            cluster.wait_until_ready()?;
            load.wait_for(100)?;
            let old = primary(&cluster).context("a primary")?;
            cluster.delete(old)?;
            cluster.wait("a replica", || Ok(role(&cluster, old).as_deref() == Some("slave")))?;
            load.wait_for(100)
        });
        load.enough.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for client in clients {
            ended.push(client.join().expect("no panic"));
        }
        acted.and_then(|()| ended.into_iter().collect())
    });
    acted.with_context(|| cluster.report())?;
    println!("lost and drained primaries of a cluster: {}", load.figures());
    cluster.check()
}
