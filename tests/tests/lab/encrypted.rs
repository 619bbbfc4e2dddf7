//! The lab over TLS: servers that it starts, with certificates that it makes, and running ones.

use anyhow::{Context, Result, ensure};
use tests::certificates::Encryption;
use tests::server::{Server, Target};

use crate::replication::moves_are_well;
use crate::workbench::Bench;
use crate::{EVENTFUL, went_well};

#[test]
fn events_happen_to_servers_that_speak_tls_alone() -> Result<()> {
    let bench = Bench::new(EVENTFUL)?;
    // What a command speaks is known to the file alone.
    let output = bench.run(&["--tls"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2) && said.contains("tls = true or false"), "{said}");
    let results = bench.results(&["--tls", "--targets", "dunlin,redis"])?;
    let experiment = &results.experiments[0];
    ensure!(experiment.runs.len() == 2, "{:?}", experiment.skipped);
    for run in &experiment.runs {
        let words = run.command.join(" ");
        ensure!(words.contains("--port 0 ") && words.contains("--tls-port "), "{words}");
        went_well(run).with_context(|| format!("target {}", run.target))?;
    }
    bench.is_left_clean()
}

#[test]
fn data_moves_between_servers_that_speak_tls_alone() -> Result<()> {
    let experiment =
        moves_are_well(&["--tls", "--targets", "redis-server to dunlin,dunlin to redis-server"])?;
    ensure!(experiment.runs.len() == 2, "{:?}", experiment.skipped);
    Ok(())
}

/// A load over HTTP, and a replica that is ready when its link is.
const PAGES: &str = r#"
name = "pages"
title = "Pages"
question = "Are they served?"

[[target]]
kind = "dunlin"
tls = true
probe = "replica"
store = "primary"
options = { replicaof = "127.0.0.1 {primary.port}" }

[[target.beside]]
name = "primary"
kind = "dunlin"
tls = true
options = { repl-diskless-sync-delay = 0 }

[[load]]
name = "pages"
http = [{ path = "/healthz" }]
connections = 4
requests = 400

[lag]
"#;

#[test]
fn pages_and_replicas_are_encrypted_too() -> Result<()> {
    let bench = Bench::new(PAGES)?;
    let results = bench.results(&[])?;
    let run = results.experiments[0].runs.first().context("no run")?;
    ensure!(run.failure.is_none(), "{:?}", run.failure);
    let words = run.command.join(" ");
    ensure!(words.contains("--https-port ") && words.contains("--http-port 0"), "{words}");
    let recording = &run.loads.first().context("no load")?.recording;
    ensure!((recording.requests(), recording.errors()) == (400, 0), "{recording:?}");
    ensure!(run.figures.contains_key("lag_p50_ms"), "{:?}", run.figures);
    bench.is_left_clean()
}

/// A running server, with a place for what the file says of TLS.
fn running(address: &str, tls: &str) -> String {
    format!(
        "name = \"running\"\ntitle = \"t\"\nquestion = \"q\"\n[[target]]\nname = \"there\"\n\
         address = \"{address}\"\n{tls}\n[[load]]\nname = \"get\"\nmix = \"get:1\"\nrequests = 100\n"
    )
}

#[test]
fn a_running_server_is_believed_by_its_authority() -> Result<()> {
    let encryption = Encryption::make()?;
    let server = Server::start_through(Target::Dunlin, Some(&encryption), &[])?;
    let files = encryption.certificates();
    let (authority, certificate, key) = (
        files.authority().display().to_string(),
        files.server().display().to_string(),
        files.key().display().to_string(),
    );
    let place = format!("127.0.0.1:{}", server.port());
    let table =
        format!("tls = {{ cacert = \"{authority}\", cert = \"{certificate}\", key = \"{key}\" }}");
    let words = ["--tls", "--cacert", &authority, "--cert", &certificate, "--key", &key];
    for (address, tls, words) in [
        (place.clone(), &*table, &[][..]),
        (format!("rediss://{place}"), &table, &[]),
        (place.clone(), "", &words),
    ] {
        let bench = Bench::new(&running(&address, tls))?;
        let results = bench.results(words)?;
        let run = results.experiments[0].runs.first();
        let run =
            run.with_context(|| format!("{address} {tls}: {:?}", results.experiments[0].skipped))?;
        ensure!(run.failure.is_none(), "{:?}", run.failure);
        ensure!(run.loads[0].recording.requests() == 100, "{:?}", run.loads);
    }
    for (address, tls) in [(&place, "tls = true"), (&format!("rediss://{place}"), ""), (&place, "")]
    {
        let bench = Bench::new(&running(address, tls))?;
        let results = bench.results(&[])?;
        let experiment = &results.experiments[0];
        ensure!(experiment.runs.is_empty(), "{address} {tls}: it is believed");
        let reason = &experiment.skipped.first().context("it is missing")?.reason;
        let is_encrypted = address.starts_with("rediss") || !tls.is_empty();
        ensure!(reason.contains("UnknownIssuer") == is_encrypted, "{address} {tls}: {reason}");
    }
    Ok(())
}
