//! Durability and freshness over HTTP: positions, replicas, and what a request chooses.

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::observe::{figure, wait_until};
use tests::process::{resume, stop};
use tests::server::Server;
use tests::web::Web;

/// A primary and a replica, with their ports for HTTP.
fn pair() -> Result<((Server, u16), (Server, u16))> {
    let usual = [("threads", "2"), ("repl-diskless-sync-delay", "0"), ("save", "")];
    let (primary, replica) = (Server::start_with_http(&usual)?, Server::start_with_http(&usual)?);
    let port = primary.0.port().to_string();
    let mut client = replica.0.connect()?;
    client.call(&["REPLICAOF", "127.0.0.1", &port])?;
    wait_until("the link is up", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
    let mut own = primary.0.connect()?;
    own.call_text("SET first 1")?;
    wait_until("the replica has the write", || {
        Ok(own.call_text("WAIT 1 100")? == Reply::Integer(1))
    })?;
    Ok((primary, replica))
}

#[test]
fn a_position_makes_a_replica_answer_with_what_was_written() -> Result<()> {
    let ((primary, own), (_replica, other)) = pair()?;
    let (mut writer, mut reader) = (Web::connect(own)?, Web::connect(other)?);
    for round in 0..50 {
        let body = round.to_string();
        let written = writer.ask("PUT /v1/keys/k", &[], body.as_bytes())?;
        let position = written.header("dunlin-position").context("a position")?;
        let least = format!("Dunlin-Min-Position: {position}");
        let read = reader.ask("GET /v1/keys/k", &[&least], b"")?;
        ensure!(read.status == 200 && read.text() == body, "{round}: {}", read.text());
        let staleness = read.header("dunlin-staleness-ms").context("a staleness")?;
        ensure!(staleness == "unknown" || staleness.parse::<u64>().is_ok(), "{staleness}");
        ensure!(read.header("dunlin-position").is_none());
    }
    let read = writer.ask("GET /v1/keys/k", &[], b"")?;
    ensure!(
        read.header("dunlin-position").is_none() && read.header("dunlin-staleness-ms").is_none()
    );
    let written = writer.ask("POST /v1/command", &[], br#"["INCR","n"]"#)?;
    let position = written.header("dunlin-position").context("a position")?.to_owned();
    let (history, offset) = position.split_once(':').context("a position")?;
    let ahead = format!("Dunlin-Min-Position: {history}:{}", offset.parse::<u64>()? + 10_000);
    let stale = reader.ask("GET /v1/keys/k", &[&ahead], b"")?;
    ensure!(stale.status == 503 && stale.text().contains("STALE"), "{}", stale.text());
    // The next request has chosen nothing.
    ensure!(reader.ask("GET /v1/keys/k", &[], b"")?.status == 200);
    let foreign = format!("Dunlin-Min-Position: {}:1", "f".repeat(40));
    ensure!(reader.ask("GET /v1/keys/k", &[&foreign], b"")?.status == 412);
    for wrong in ["Dunlin-Min-Position: x", "Dunlin-Durability: x", "Dunlin-Durability: replicas 0"]
    {
        ensure!(reader.ask("GET /v1/keys/k", &[wrong], b"")?.status == 400, "{wrong}");
    }
    let both = ["Dunlin-Durability: memory", "Dunlin-Durability: replicas 1"];
    ensure!(reader.ask("GET /v1/keys/k", &both, b"")?.status == 400);
    // A replica names the primary that takes writes.
    let refused = reader.ask("PUT /v1/keys/k", &[], b"x")?;
    let address = format!("127.0.0.1:{}", primary.port());
    ensure!(refused.status == 421 && refused.text().contains("READONLY"), "{}", refused.text());
    ensure!(refused.header("dunlin-primary") == Some(address.as_str()));
    Ok(())
}

#[test]
fn a_request_chooses_how_durable_its_writes_are() -> Result<()> {
    let ((primary, own), (replica, _)) = pair()?;
    let mut web = Web::connect(own)?;
    let replicas = ["Dunlin-Durability: replicas 1"];
    let written = web.ask("PUT /v1/keys/k", &replicas, b"1")?;
    ensure!(written.status == 201, "{}: {}", written.status, written.text());
    ensure!(written.header("dunlin-position").is_some());
    let both = br#"[["SET","k","2"],["GET","k"]]"#;
    for address in ["POST /v1/pipeline", "POST /v1/transaction"] {
        let written = web.ask(address, &replicas, both)?;
        ensure!(written.text() == r#"[{"result":"OK"},{"result":"2"}]"#, "{}", written.text());
    }
    let never = web.ask("PUT /v1/keys/k", &["Dunlin-Durability: fsync"], b"3")?;
    ensure!(
        never.status == 504 && never.text().contains("no append-only file"),
        "{}",
        never.text()
    );
    ensure!(web.ask("GET /v1/keys/k", &["Dunlin-Durability: fsync"], b"")?.text() == "3");
    primary.connect()?.call_text("CONFIG SET durability-timeout 300")?;
    stop(replica.pid())?;
    let late = web.ask("PUT /v1/keys/k", &replicas, b"4")?;
    let late_too = web.ask("POST /v1/pipeline", &replicas, both)?;
    resume(replica.pid())?;
    for answer in [late, late_too] {
        let text = answer.text();
        ensure!(answer.status == 504 && text.contains("NODURABLE the write is done"), "{text}");
    }
    // What no server outside of a cluster can do is refused beforehand.
    let quorum = web.ask("PUT /v1/keys/k", &["Dunlin-Durability: quorum"], b"6")?;
    ensure!(quorum.status == 400, "{}: {}", quorum.status, quorum.text());
    ensure!(web.ask("GET /v1/keys/k", &[], b"")?.text() == "2", "nothing was written");
    // The connection goes on, and the next request chooses nothing.
    ensure!(web.ask("PUT /v1/keys/k", &[], b"5")?.status == 204);
    ensure!(web.ask("GET /v1/keys/k", &[], b"")?.text() == "5");
    Ok(())
}

/// What it has sent is done, and it reads on.
#[test]
fn a_client_that_has_ended_its_stream_hears_whether_its_write_is_durable() -> Result<()> {
    let ((primary, own), (replica, _)) = pair()?;
    primary.connect()?.call_text("CONFIG SET durability-timeout 300")?;
    let replicas = ["Dunlin-Durability: replicas 1"];
    for (is_there, status) in [(true, 201), (false, 504)] {
        if !is_there {
            stop(replica.pid())?;
        }
        let mut web = Web::connect(own)?;
        web.request(&format!("PUT /v1/keys/{is_there}"), &replicas, b"1")?;
        web.end()?;
        let answer = web.answer(false);
        if !is_there {
            resume(replica.pid())?;
        }
        let answer = answer?;
        ensure!(answer.status == status, "{}: {}", answer.status, answer.text());
    }
    Ok(())
}

#[test]
fn the_position_of_a_write_that_changes_nothing_has_what_it_has_found() -> Result<()> {
    let ((_primary, own), _replica) = pair()?;
    let (mut first, mut second) = (Web::connect(own)?, Web::connect(own)?);
    let offset = |web: &mut Web, key: &str, headers: &[&str], status: u16| -> Result<u64> {
        let answer = web.ask(&format!("PUT /v1/keys/{key}"), headers, b"value")?;
        ensure!(answer.status == status, "{key}: {}", answer.status);
        let position = answer.header("dunlin-position").context("a position")?;
        Ok(position.split_once(':').context("an offset")?.1.parse()?)
    };
    offset(&mut first, "earlier", &[], 201)?;
    let written = offset(&mut second, "lock", &[], 201)?;
    let found = offset(&mut first, "lock", &["If-None-Match: *"], 412)?;
    ensure!(found >= written, "{found} {written}");
    Ok(())
}
