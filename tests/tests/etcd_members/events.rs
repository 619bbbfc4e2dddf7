//! What a client holds of the tree while its primary changes: indexes, events, times to live.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::client::Reply;
use tests::observe::wait_until;
use tests::process::{resume, stop};
use tests::web::Web;

use crate::nodes::{FIRST, Nodes, ask, begin, index, place};

/// More events than are kept.
const EVENTS: u64 = 1100;

/// A client that waits at a node, and has got the head of its answer.
fn wait_at(port: u16, line: &str) -> Result<Web> {
    let mut web = Web::connect(port)?;
    begin(&mut web, line)?;
    let answer = web.answer(false)?;
    if answer.status == 307 {
        return wait_at(place(&answer)?, line);
    }
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(web)
}

/// Fails unless its answer breaks off: a client then goes on with another request.
fn breaks_off(mut web: Web) -> Result<()> {
    let rest = web.rest()?;
    ensure!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    Ok(())
}

/// The event that a request waits for, and its index.
fn event(port: u16, line: &str) -> Result<(String, u64)> {
    let answer = ask(port, line)?;
    let body: Value = serde_json::from_slice(&answer.body).with_context(|| answer.text())?;
    let index = body["node"]["modifiedIndex"].as_u64().with_context(|| answer.text())?;
    Ok((answer.text(), index))
}

#[test]
fn the_next_primary_has_events_and_times() -> Result<()> {
    let mut nodes = Nodes::start(0, &[])?;
    let port = nodes.ports[0];
    for number in 0..EVENTS {
        let done = ask(port, &format!("PUT /e value={number}"))?;
        ensure!(done.status < 300, "{}", done.text());
    }
    let leader = nodes.leader(FIRST)?;
    let done = ask(port, "PUT /lease value=1&ttl=3")?;
    let (before, own) = (index(&ask(port, "GET /")?)?, index(&done)?);
    ensure!(before == EVENTS + 1 && own == before, "{before} {own}");
    // This one waits at the primary, which goes.
    let waiting = wait_at(nodes.ports[leader], "GET /e?wait=true")?;
    nodes.deployment.nodes[leader].kill();
    breaks_off(waiting)?;
    // Each member that is left waits for the next primary, and knows it then.
    let left: Vec<u16> =
        FIRST.filter(|node| *node != leader).map(|node| nodes.ports[node]).collect();
    for port in &left {
        let answer = ask(*port, "GET /e")?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(index(&answer)? >= before, "{} after {before}", index(&answer)?);
        for since in [before - 900, before - 1] {
            let (_, found) = event(*port, &format!("GET /e?wait=true&waitIndex={since}"))?;
            ensure!(found == since, "{found}, not {since}");
        }
        let cleared = ask(*port, "GET /e?wait=true&waitIndex=1")?;
        ensure!(cleared.text().contains("\"errorCode\":401"), "{}", cleared.text());
    }
    let (text, found) = event(left[0], &format!("GET /lease?wait=true&waitIndex={}", before + 1))?;
    ensure!(text.starts_with("{\"action\":\"expire\"") && found == before + 1, "{text}");
    nodes.deployment.nodes[leader].start_again()?;
    nodes.leader(FIRST).map(drop)
}

#[test]
fn who_waits_is_sent_on_when_the_primary_or_the_tree_changes_its_place() -> Result<()> {
    let nodes = Nodes::start(1, &[])?;
    let port = nodes.ports[0];
    let after = |line: &str| -> Result<u64> { index(&ask(port, line)?) };
    ask(port, "PUT /lease value=1&ttl=2")?;
    let mut last = 0;
    let hand_over = || -> Result<()> {
        let leader = nodes.leader(FIRST)?;
        let heir = FIRST.rev().find(|node| *node != leader).context("another node")?;
        let reply = nodes.deployment.nodes[heir].connect()?.call_text("CLUSTER FAILOVER")?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
        wait_until("it has taken over", || Ok(nodes.deployment.leader(FIRST) == Some(heir)))
            .with_context(|| nodes.deployment.logs())
    };
    let changes: [&dyn Fn() -> Result<()>; 4] = [
        &hand_over,
        &|| nodes.move_tree("there", false),
        &|| nodes.move_tree("back", true),
        &hand_over,
    ];
    for (round, change) in changes.iter().enumerate() {
        let waiting = [
            wait_at(port, "GET /a?wait=true")?,
            wait_at(port, "GET /?recursive=true&stream=true&wait=true&waitIndex=9999")?,
        ];
        change()?;
        for waits in waiting {
            breaks_off(waits).with_context(|| format!("round {round}"))?;
        }
        let done = after(&format!("PUT /a value={round}"))?;
        ensure!(done >= last, "{done} after {last}");
        last = after("GET /a")?;
        let (_, found) = event(port, &format!("GET /a?wait=true&waitIndex={last}"))?;
        ensure!(found == last, "{found}, not {last}");
    }
    // It has expired once, wherever that was.
    let mut expired = 0;
    let mut since = 1;
    while since <= last {
        let (text, found) =
            event(port, &format!("GET /?wait=true&recursive=true&waitIndex={since}"))?;
        expired += u32::from(text.starts_with("{\"action\":\"expire\""));
        since = found + 1;
        if since > last && expired == 0 {
            let (text, _) = event(port, &format!("GET /lease?wait=true&waitIndex={since}"))?;
            expired += u32::from(text.starts_with("{\"action\":\"expire\""));
        }
    }
    ensure!(expired == 1, "{expired}");
    Ok(())
}

#[test]
fn nobody_sees_what_a_failover_may_take_back() -> Result<()> {
    let nodes = Nodes::start(0, &[("durability-timeout", "1000")])?;
    let leader = nodes.leader(FIRST)?;
    let port = nodes.ports[leader];
    let before = index(&ask(port, "PUT /a value=1")?)?;
    let replicas: Vec<u32> = FIRST
        .filter(|node| *node != leader)
        .map(|node| nodes.deployment.nodes[node].pid())
        .collect();
    let mut waits = wait_at(port, "GET /a?wait=true")?;
    replicas.iter().try_for_each(|pid| stop(*pid))?;
    let played = (|| -> Result<()> {
        let late = thread::spawn(move || ask(port, "PUT /a value=2"));
        // It is written there, and nowhere else.
        wait_until("it is written", || {
            let mut control = nodes.deployment.nodes[leader].connect()?;
            Ok(control.call_text("XLEN {etcd}:events")? == Reply::Integer(2))
        })?;
        for line in ["GET /a", "GET /a?wait=true&waitIndex=2"] {
            let seen = ask(port, line)?;
            ensure!(seen.status == 500 && !seen.text().contains("\"2\""), "{}", seen.text());
            ensure!(seen.text().contains("\"errorCode\":300"), "{}", seen.text());
        }
        let late = late.join().expect("no panic")?;
        ensure!(late.status == 500 && late.text().contains("NODURABLE"), "{}", late.text());
        Ok(())
    })();
    // The one that waits hears nothing that it could lose.
    waits.set_patience(Duration::from_secs(20))?;
    let heard = waits.rest();
    replicas.iter().try_for_each(|pid| resume(*pid))?;
    played?;
    ensure!(heard?.is_empty());
    // Now a quorum has it.
    wait_until("it is seen", || Ok(ask(nodes.ports[0], "GET /a")?.status == 200))?;
    ensure!(index(&ask(nodes.ports[0], "GET /a")?)? == before + 1);
    Ok(())
}
