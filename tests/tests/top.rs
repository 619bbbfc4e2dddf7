//! `dunlin top`, in terminals of several sizes and for scripts.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::server::{Server, Target, dunlin_binary};
use tests::tmux::Screen;

/// Some work, so that there is something to see.
fn work(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    for index in 0..200 {
        // One is far larger than the others.
        let length = if index == 199 { 5000 } else { index };
        client.call(&["SET", &format!("user:{index}"), &"v".repeat(length)])?;
        client.call(&["GET", "user:7"])?;
    }
    client.call_text("CLIENT SETNAME worker")?;
    Ok(())
}

fn json(arguments: &[&str]) -> Result<Value> {
    let output =
        Command::new(dunlin_binary()?).args(["top", "-i", "0.2"]).args(arguments).output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(serde_json::from_str(text.lines().next().context("a line")?)?)
}

/// The row of a view that has this value in this column.
fn row<'v>(look: &'v Value, view: &str, column: &str, value: &str) -> Result<&'v Value> {
    let rows = look["views"][view].as_array().context("a view is an array")?;
    rows.iter().find(|row| row[column] == value).with_context(|| format!("no {value} in {rows:?}"))
}

#[test]
fn scripts_get_all_views() -> Result<()> {
    let (server, http) = Server::start_with_http(&[])?;
    work(&server)?;
    let mut client = server.connect()?;
    client.call_text("CLIENT SETNAME shown")?;
    let port = server.port().to_string();
    let url = format!("http://127.0.0.1:{http}");
    for arguments in [&["--json", "-p", &port][..], &["--json", "--http", &url]] {
        let look = json(arguments)?;
        ensure!(look["product"].as_str().is_some_and(|name| name.starts_with("Dunlin ")), "{look}");
        ensure!(row(&look, "commands", "command", "set")?["calls"] == 200.0, "{look}");
        ensure!(row(&look, "clients", "name", "shown")?["memory"].as_f64() > Some(0.0), "{look}");
        ensure!(row(&look, "memory", "prefix", "user:")?["keys"] == 200.0, "{look}");
        ensure!(row(&look, "keys", "key", "user:199")?["kind"] == "large", "{look}");
        for stage in ["queue", "execute", "commit", "flush"] {
            row(&look, "latency", "stage", stage)?;
        }
    }
    // Without HTTP there is what the Redis protocol has.
    let look = json(&["--json", "--no-http", "-p", &port])?;
    ensure!(look["views"]["latency"].as_array().is_some_and(Vec::is_empty), "{look}");
    row(&look, "commands", "command", "set")?;
    Ok(())
}

#[test]
fn other_servers_show_what_they_have() -> Result<()> {
    for target in [Target::Reference, Target::Valkey] {
        let server = Server::start(target, &[])?;
        work(&server)?;
        let replica = Server::start(
            Target::Reference,
            &[("replicaof", &format!("127.0.0.1 {}", server.port()))],
        )?;
        let port = server.port().to_string();
        let mut last = Value::Null;
        tests::observe::wait_until("the replica is shown", || {
            last = json(&["--json", "-p", &port])?;
            Ok(row(&last, "replication", "state", "online").is_ok())
        })?;
        ensure!(row(&last, "commands", "command", "get")?["calls"] == 200.0, "{last}");
        ensure!(last["views"]["memory"].as_array().is_some_and(Vec::is_empty), "{last}");
        let own = json(&["--json", "-p", &replica.port().to_string()])?;
        row(&own, "replication", "part", "primary")?;
    }
    Ok(())
}

#[test]
fn wrong_words_and_servers_that_are_away() -> Result<()> {
    for (arguments, code, text) in [
        (&["--view", "nothing"][..], 2, "there is no view 'nothing'"),
        (&["--once", "-p", "1"], 1, "refused"),
        (&[], 1, "this is no terminal"),
    ] {
        let output = Command::new(dunlin_binary()?).arg("top").args(arguments).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code) && complaint.contains(text), "{output:?}");
    }
    Ok(())
}

#[test]
fn views_change_with_keys() -> Result<()> {
    let (mut server, _) = Server::start_with_http(&[])?;
    work(&server)?;
    let line = format!("{} top -p {} -i 0.2", dunlin_binary()?.display(), server.port());
    let screen = Screen::start(80, 24, &line)?;
    screen.wait_for("usec/call")?;
    let ends = Arc::new(AtomicBool::new(false));
    let loaded = load(&server, &ends)?;
    // The busiest command is the first, with its rate.
    screen.wait_until(|text| {
        let busiest = text.lines().skip_while(|line| !line.starts_with("command ")).nth(1);
        busiest.is_some_and(|line| line.starts_with("echo "))
    })?;
    ends.store(true, Ordering::Relaxed);
    let client = loaded.join().map_err(|_| anyhow::anyhow!("the load has failed"))??;
    screen.press(&["2"])?;
    screen.wait_until(|text| {
        ["queue", "execute", "commit", "flush"].iter().all(|one| text.contains(one))
    })?;
    screen.press(&["Tab"])?;
    screen.wait_for("loading")?;
    screen.press(&["4"])?;
    screen.wait_for("user:")?;
    screen.press(&["5"])?;
    screen.wait_for("user:199")?;
    screen.press(&["6"])?;
    screen.wait_for("neither a primary nor replicas")?;
    screen.press(&["1", "s", "s"])?;
    screen.wait_for("% of time*")?;
    screen.press(&["r"])?;
    screen.wait_for("% of time^")?;
    screen.press(&["?"])?;
    screen.wait_for("looks less often, more often")?;
    screen.press(&["?", "Space"])?;
    screen.wait_for("paused")?;
    screen.press(&["Space", "+"])?;
    screen.wait_for("every 400 ms")?;
    for (columns, rows) in [(120, 40), (40, 10), (80, 24)] {
        screen.resize(columns, rows)?;
        screen.wait_until(|text| {
            let last = text.lines().take(rows.into()).last().unwrap_or_default();
            last.starts_with("q quit")
        })?;
    }
    drop(client);
    server.kill();
    screen.wait_for("trying again")?;
    server.start_again()?;
    screen.wait_until(|text| !text.contains("trying again"))?;
    screen.press(&["q"])?;
    screen.wait_for("ended with 0")?;
    Ok(())
}

/// A client that sends commands until it is told to end.
fn load(
    server: &Server,
    ends: &Arc<AtomicBool>,
) -> Result<std::thread::JoinHandle<Result<tests::client::Client>>> {
    let mut client = server.connect()?;
    client.call_text("CLIENT SETNAME loading")?;
    let ends = Arc::clone(ends);
    Ok(std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            for _ in 0..20 {
                client.call(&["ECHO", "x"])?;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(client)
    }))
}
