//! Three servers with a Sentinel each: `deploy/kubernetes/sentinel`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};

use crate::clients::{Load, connect};
use crate::cluster::Cluster;
use crate::objects::Objects;

const PASSWORD: &str = "geheim";
const CLIENTS: usize = 4;
const PODS: [&str; 3] = ["dunlin-0", "dunlin-1", "dunlin-2"];

/// As the base has it, with Sentinels that decide sooner, and writes that are on the disk.
fn objects() -> Result<Objects> {
    let mut objects = Objects::read("deploy/kubernetes/sentinel".as_ref())?;
    objects.set_option("StatefulSet", "--appendfsync", "always")?;
    let script = &mut objects.one_mut("ConfigMap")?["data"]["configure.sh"];
    let text = script.as_str().context("a script")?;
    let (usual, soon) = ("down-after-milliseconds main 5000", "down-after-milliseconds main 1000");
    ensure!(text.contains(usual));
    *script = text.replace(usual, soon).into();
    Ok(objects)
}

fn start() -> Result<Option<Cluster>> {
    let Some(cluster) = Cluster::make()? else { return Ok(None) };
    cluster.set_secret("dunlin-auth", &[("password", PASSWORD.as_bytes())])?;
    cluster.apply(&objects()?)?;
    cluster.wait_until_ready()?;
    // They tell each other each second or two.
    cluster.wait("Sentinels that know all", || {
        Ok(PODS.iter().all(|pod| knows_all(&cluster, pod).unwrap_or(false)))
    })?;
    Ok(Some(cluster))
}

fn sentinel(cluster: &Cluster, pod: &str, words: &[&str]) -> Result<Vec<String>> {
    let address = cluster.pod(pod)?.address;
    let reply = Client::connect_at((address, 26379).into(), None)?.call(words)?;
    ensure!(!reply.is_error(), "{reply:?}");
    let text = |own: &Reply| String::from_utf8_lossy(own.text().unwrap_or_default()).into_owned();
    Ok(reply.elements().unwrap_or_default().iter().map(text).collect())
}

fn knows_all(cluster: &Cluster, pod: &str) -> Result<bool> {
    let fields = sentinel(cluster, pod, &["SENTINEL", "MASTER", "main"])?;
    let field = |name: &str| {
        let at = fields.iter().position(|own| own == name)?;
        fields.get(at + 1).map(String::as_str)
    };
    Ok(field("num-other-sentinels") == Some("2")
        && field("num-slaves") == Some("2")
        && field("flags") == Some("master"))
}

/// The pod of the primary, by the word of any Sentinel that answers.
fn primary(cluster: &Cluster) -> Option<String> {
    let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"];
    let answers = PODS.iter().filter_map(|pod| sentinel(cluster, pod, &ask).ok());
    let name = answers.into_iter().next()?.into_iter().next()?;
    name.split('.').next().map(str::to_owned)
}

fn way(cluster: &Cluster) -> Option<SocketAddr> {
    let address: Ipv4Addr = cluster.resolve(&primary(cluster)?)?;
    Some((address, 6379).into())
}

fn role(cluster: &Cluster, pod: &str) -> Result<String> {
    let place = (cluster.pod(pod)?.address, 6379).into();
    let role = connect(&|| Some(place), PASSWORD)?.call(&["ROLE"])?;
    let role = role.elements().unwrap_or_default();
    let text = role.first().and_then(Reply::text).unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Runs clients while something is done to the cluster.
fn under_load(cluster: &Cluster, act: impl FnOnce(&Load) -> Result<()>) -> Result<Load> {
    let load = Load { is_replicated: true, ..Load::default() };
    let route = || way(cluster);
    thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (load, route) = (&load, &route);
                scope.spawn(move || cluster.join().and_then(|()| load.run(client, route, PASSWORD)))
            })
            .collect();
        let acted = load.wait_for(300).and_then(|()| act(&load));
        let acted = acted.and_then(|()| load.wait_for(300));
        load.enough.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for client in clients {
            ended.push(client.join().expect("no panic"));
        }
        acted.with_context(|| cluster.report())?;
        ended.into_iter().collect::<Result<()>>().with_context(|| cluster.report())
    })?;
    Ok(load)
}

/// The machine of the primary is gone: a replica leads, clients go on, and the pod follows when it
/// is there again.
#[test]
fn a_lost_primary_is_replaced_and_comes_back_as_a_replica() -> Result<()> {
    let Some(cluster) = start()? else { return Ok(()) };
    let old = primary(&cluster).context("a primary")?;
    let load = under_load(&cluster, |_| {
        cluster.pod(&old)?.lose();
        cluster.wait_until_gone(&old)?;
        cluster.wait("another primary", || Ok(primary(&cluster).is_some_and(|new| new != old)))?;
        cluster.replace(&old)
    })?;
    cluster.wait_until_ready()?;
    cluster.wait("a replica", || Ok(role(&cluster, &old).is_ok_and(|role| role == "slave")))?;
    // It was one from its first moment on, since it asked.
    let log = cluster.pod(&old)?.log("dunlin");
    ensure!(!log.contains("MASTER MODE"), "{log}");
    let new = primary(&cluster).context("a primary")?;
    ensure!(new != old && role(&cluster, &new)? == "master", "{}", cluster.report());
    println!("lost primary: {}", load.figures());
    cluster.check()
}

/// An upgrade replaces the last pod first, down to the partition; the primary hands over.
#[test]
fn an_upgrade_goes_by_partition_and_hands_over() -> Result<()> {
    let Some(cluster) = start()? else { return Ok(()) };
    let first = primary(&cluster).context("a primary")?;
    ensure!(first == "dunlin-0", "{first}");
    let load = under_load(&cluster, |_| {
        let mut new = objects()?;
        new.set_option("StatefulSet", "--maxmemory", "600mb")?;
        let set = |new: &mut Objects, partition: u64| -> Result<Vec<String>> {
            let spec = &mut new.one_mut("StatefulSet")?["spec"]["updateStrategy"];
            spec["rollingUpdate"]["partition"] = partition.into();
            cluster.upgrade(new)
        };
        let order = set(&mut new, 2)?;
        ensure!(order == ["dunlin-2"], "{order:?}");
        let order = set(&mut new, 0)?;
        ensure!(order == ["dunlin-1", "dunlin-0"], "{order:?}");
        Ok(())
    })?;
    let now = primary(&cluster).context("a primary")?;
    ensure!(now != "dunlin-0", "it has not handed over: {}", cluster.report());
    let prepared = cluster.events("has prepared its end");
    ensure!(prepared.len() == 3 && prepared.iter().all(|own| own.ends_with("Ok(())")));
    for pod in PODS {
        let place = (cluster.pod(pod)?.address, 6379).into();
        let mut client = connect(&|| Some(place), PASSWORD)?;
        let setting = client.call(&["CONFIG", "GET", "maxmemory"])?.elements().context("a pair")?;
        ensure!(setting[1].text() == Some(&b"629145600"[..]), "{pod}: {setting:?}");
    }
    // Nobody was killed for taking too long.
    let killed = cluster.events("is killed");
    ensure!(killed.is_empty(), "{killed:?}");
    println!("upgrade: {}; {prepared:?}", load.figures());
    cluster.check()
}
