//! Where a node is, as it says while it runs.

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::cluster::Deployment;
use tests::observe::wait_until;
use tests::proxy::Proxy;
use tests::server::free_port;

/// The slot of `k0`.
const SLOT: u16 = 8579;

#[test]
fn a_primary_that_moves_to_another_port_is_found_there_and_keeps_its_place() -> Result<()> {
    let deployment = Deployment::start(2, &[])?;
    let primary = deployment.wait_until_whole()?;
    let (own, replica) = (&deployment.nodes[primary], &deployment.nodes[1 - primary]);
    let mut at_primary = own.connect()?;
    let epoch = epoch(&mut at_primary)?;
    let port = free_port()?;
    let proxy = Proxy::start(port)?;
    let announced = [
        (format!("CONFIG SET port {port}"), format!("127.0.0.1:{port}")),
        ("CONFIG SET cluster-announce-ip localhost".to_owned(), format!("localhost:{port}")),
        (
            format!("CONFIG SET cluster-announce-port {}", proxy.port()),
            format!("localhost:{}", proxy.port()),
        ),
    ];
    for (line, place) in &announced {
        let reply = at_primary.call_text(line)?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{line}: {reply:?}");
        let moved = Reply::Error(format!("MOVED {SLOT} {place}").into_bytes());
        wait_until("the other node knows", || Ok(replica.connect()?.call_text("GET k0")? == moved))
            .with_context(|| format!("{line}\n{}", deployment.logs()))?;
        let (host, port) = place.split_once(':').context("a place")?;
        wait_until("it follows there", || {
            let info = replica.connect()?.call_text("INFO replication")?;
            let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
            Ok(info.contains(&format!("master_host:{host}\r\nmaster_port:{port}\r\n"))
                && info.contains("master_link_status:up"))
        })
        .with_context(|| format!("{line}\n{}", deployment.logs()))?;
        // A replica has it, since writes wait for a quorum.
        let written = Client::connect(port.parse()?)?.call_text("SET k0 1")?;
        ensure!(written == Reply::Status(b"OK".to_vec()), "{line}: {written:?}");
    }
    ensure!(self::epoch(&mut at_primary)? == epoch, "another was primary\n{}", deployment.logs());
    Ok(())
}

/// The epoch of the cluster, as a node knows it.
fn epoch(client: &mut Client) -> Result<String> {
    let info = client.call_text("CLUSTER INFO")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let line = info.lines().find(|line| line.starts_with("cluster_current_epoch:"));
    Ok(line.context("an epoch")?.to_owned())
}
