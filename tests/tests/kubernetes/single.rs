//! One server with a volume: `deploy/kubernetes/single`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Context, Result, ensure};
use tests::certificates::{Certificates, Identity};
use tests::client::Client;
use tests::web::Web;

use crate::clients::{Load, connect};
use crate::cluster::Cluster;
use crate::objects::Objects;

const PASSWORD: &str = "geheim";
const CLIENTS: usize = 8;

/// As the base has it, with writes that are on the disk before they are acknowledged.
fn durable() -> Result<Objects> {
    let mut objects = Objects::read("deploy/kubernetes/single".as_ref())?;
    objects.set_option("StatefulSet", "--appendfsync", "always")?;
    Ok(objects)
}

fn way(cluster: &Cluster) -> Option<SocketAddr> {
    Some((cluster.route("dunlin")?, 6379).into())
}

/// Clients write and read, the server is killed, and the kubelet starts it again.
#[test]
fn a_killed_server_is_back_with_all_that_was_acknowledged() -> Result<()> {
    let Some(cluster) = Cluster::make()? else { return Ok(()) };
    cluster.set_secret("dunlin-auth", &[("password", PASSWORD.as_bytes())])?;
    cluster.apply(&durable()?)?;
    cluster.wait_until_ready()?;
    let load = Load::default();
    let route = || way(&cluster);
    thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (load, cluster, route) = (&load, &cluster, &route);
                scope.spawn(move || cluster.join().and_then(|()| load.run(client, route, PASSWORD)))
            })
            .collect();
        let conduct = || -> Result<()> {
            load.wait_for(1000)?;
            cluster.pod("dunlin-0")?.kill("dunlin")?;
            load.wait_for(12_000)
        };
        let conducted = conduct();
        load.enough.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("no panic").with_context(|| cluster.report())?;
        }
        conducted.with_context(|| cluster.report())
    })?;
    cluster.check()?;
    load.check_errors()?;
    let killed = "dunlin-0: dunlin is killed";
    let started = cluster.between(killed, "dunlin-0: dunlin starts")?;
    let ready = cluster.between(killed, "dunlin-0: dunlin is ready")?;
    println!(
        "killed: started again after {started} ms, ready {} ms after that; {}",
        ready - started,
        load.figures()
    );
    ensure!(cluster.pod("dunlin-0")?.container("dunlin")?.restarts.load(Ordering::Relaxed) == 1);
    Ok(())
}

/// A pod that is deleted ends in its time, and the next one has the same data at another address.
#[test]
fn a_deleted_pod_ends_in_its_time() -> Result<()> {
    let Some(cluster) = Cluster::make()? else { return Ok(()) };
    cluster.set_secret("dunlin-auth", &[("password", PASSWORD.as_bytes())])?;
    cluster.apply(&Objects::read("deploy/kubernetes/single".as_ref())?)?;
    cluster.wait_until_ready()?;
    let route = || way(&cluster);
    connect(&route, PASSWORD)?.call(&["SET", "key", "value"])?;
    let before = way(&cluster);
    cluster.delete("dunlin-0")?;
    // Until it ends, it is asked nothing more, and it ends by itself.
    let ended = cluster.events("dunlin ended with exit status: 0");
    ensure!(ended.len() == 1, "{}", cluster.report());
    cluster.wait_until_ready()?;
    ensure!(way(&cluster) != before, "a pod has an address of its own");
    let mut client = connect(&route, PASSWORD)?;
    ensure!(client.call(&["GET", "key"])?.text() == Some(&b"value"[..]), "{}", cluster.report());
    // What runs is what the manifest says, and nobody else's.
    let pod = cluster.pod("dunlin-0")?;
    let status = fs::read_to_string(format!("/proc/{}/status", pod.process("dunlin")?))?;
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    ensure!(line("Uid:").contains("65532"), "{status}");
    ensure!(line("CapEff:").ends_with("0000000000000000"), "{status}");
    ensure!(line("NoNewPrivs:").ends_with('1'), "{status}");
    let refused = client.call(&["CONFIG", "SET", "dir", "/usr"])?;
    ensure!(refused.is_error(), "{refused:?}");
    cluster.check()
}

/// A password that was changed in its Secret is taken up: new clients need the new one, open
/// connections stay.
#[test]
fn a_changed_password_is_taken_up() -> Result<()> {
    let Some(cluster) = Cluster::make()? else { return Ok(()) };
    cluster.set_secret("dunlin-auth", &[("password", b"old")])?;
    cluster.apply(&Objects::read("deploy/kubernetes/single".as_ref())?)?;
    cluster.wait_until_ready()?;
    let route = || way(&cluster);
    let mut open = connect(&route, "old")?;
    cluster.set_secret("dunlin-auth", &[("password", b"new\n")])?;
    cluster.wait("the new password", || Ok(connect(&route, "new").is_ok()))?;
    ensure!(connect(&route, "old").is_err());
    ensure!(open.call(&["PING"])?.text() == Some(&b"PONG"[..]));
    // It is set right after the other one, by another command.
    cluster.wait("the password for its primary", || {
        let setting = open.call(&["CONFIG", "GET", "masterauth"])?.elements().context("a pair")?;
        Ok(setting[1].text() == Some(&b"new"[..]))
    })?;
    // An empty one is none that anybody can have meant.
    cluster.set_secret("dunlin-auth", &[("password", b"\n")])?;
    let pod = cluster.pod("dunlin-0")?;
    cluster.wait("a word of it", || Ok(pod.log("dunlin").contains("requirepass is unchanged")))?;
    ensure!(connect(&route, "new").is_ok() && connect(&route, "").is_err());
    ensure!(pod.container("dunlin")?.restarts.load(Ordering::Relaxed) == 0);
    ensure!(!pod.log("dunlin").contains("new\n"), "the log tells the password");
    cluster.check()
}

/// The serial number of the certificate that a server shows.
fn serial(cluster: &Cluster, place: SocketAddr) -> Result<String> {
    let node = cluster.node().to_string();
    let shown = Command::new("nsenter")
        .args(["-t", &node, "-n", "openssl", "s_client", "-connect", &place.to_string()])
        .stdin(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE").with_context(|| text.clone())?;
    let end = text.find("-----END CERTIFICATE-----").context("an end")? + 26;
    let mut read = Command::new("openssl");
    read.args(["x509", "-noout", "-serial"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = read.spawn()?;
    std::io::Write::write_all(
        &mut child.stdin.take().context("piped")?,
        &text.as_bytes()[begin..end],
    )?;
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}

/// A certificate that was changed in its Secret is shown to new clients, and open connections stay.
/// Probes and metrics are encrypted too.
#[test]
fn a_changed_certificate_is_taken_up() -> Result<()> {
    let Some(cluster) = Cluster::make()? else { return Ok(()) };
    let encryption = tests::certificates::Encryption::make()?;
    let certificates: &Certificates = encryption.certificates();
    // The addresses of the first pods.
    let names = "IP:10.77.0.10,IP:10.77.0.11";
    let show = |identity: &Identity| -> Result<()> {
        let read = |path: &Path| fs::read(path);
        let (certificate, key) = (read(&identity.certificate)?, read(&identity.key)?);
        let authority = read(&certificates.authority())?;
        let files = [("tls.crt", &certificate[..]), ("tls.key", &key), ("ca.crt", &authority)];
        cluster.set_secret("dunlin-tls", &files)
    };
    show(&certificates.issue("first", names, 9)?)?;
    cluster.set_secret("dunlin-auth", &[("password", PASSWORD.as_bytes())])?;
    cluster.apply(&Objects::read("tests/golden/kubernetes/tls.yaml".as_ref())?)?;
    cluster.wait_until_ready()?;
    let place = way(&cluster).context("it is ready")?;
    let mut open = Client::connect_at(place, Some(encryption.config()))?;
    ensure!(!open.call(&["AUTH", PASSWORD])?.is_error());
    let before = serial(&cluster, place)?;
    ensure!(before.starts_with("serial="), "{before}");
    show(&certificates.issue("second", names, 9)?)?;
    cluster.wait("the new certificate", || Ok(serial(&cluster, place)? != before))?;
    ensure!(open.call(&["PING"])?.text() == Some(&b"PONG"[..]), "{}", cluster.report());
    let _new = Client::connect_at(place, Some(encryption.config()))?;
    let pod = cluster.pod("dunlin-0")?;
    ensure!(pod.log("dunlin").contains("Certificates and keys read again"));
    // One that does not fit its key is not taken.
    let (one, other) = (certificates.issue("a", names, 9)?, certificates.issue("b", names, 9)?);
    let after = serial(&cluster, place)?;
    show(&Identity { certificate: one.certificate, key: other.key })?;
    cluster.wait("a word of it", || Ok(pod.log("dunlin").contains("keys are unchanged")))?;
    ensure!(serial(&cluster, place)? == after);
    ensure!(pod.is_ready() && pod.container("dunlin")?.restarts.load(Ordering::Relaxed) == 0);
    // Nothing is served in the open.
    let open = Web::connect_at((place.ip(), 8379).into())
        .and_then(|mut web| web.ask("GET /healthz", &[], b""));
    ensure!(open.is_err(), "{open:?}");
    cluster.check()
}
