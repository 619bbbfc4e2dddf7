//! Scripts that run for long on the only thread that there is: others are served meanwhile.

use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::wait_until;
use tests::server::{Server, Target};

/// A script that never ends by itself, and holds the slot of `held`.
const ENDLESS: [&str; 4] = ["EVAL", "redis.call('get', KEYS[1]) while true do end", "1", "held"];

fn start() -> Result<Server> {
    let options = [("threads", "1"), ("busy-reply-threshold", "50")];
    Server::start(Target::Dunlin, &options)
}

fn say(client: &mut Client, command: &str) -> Result<String> {
    let reply = client.call_text(command)?;
    Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
}

fn received(client: &mut Client) -> Result<String> {
    ensure!(client.has_input(Duration::from_secs(20))?, "no reply comes");
    Ok(match client.receive()? {
        Received::Reply(reply) => {
            String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
        }
        Received::Closed => "closed".to_owned(),
    })
}

/// Waits until somebody is told that a script runs for long.
fn wait_until_slow(other: &mut Client) -> Result<()> {
    wait_until("the script that is slow", || Ok(say(other, "GET held")?.starts_with("BUSY")))
}

#[test]
fn others_of_the_thread_are_served_and_may_end_it() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other, mut blocked, mut listener) =
        (server.connect()?, server.connect()?, server.connect()?, server.connect()?);
    listener.call_text("SUBSCRIBE news")?;
    blocked.send(&["BLPOP", "list", "0"])?;
    let mut pipeline = Vec::new();
    tests::client::encode(&ENDLESS, &mut pipeline);
    tests::client::encode(&["INCR", "behind"], &mut pipeline);
    runner.send_raw(&pipeline)?;
    wait_until_slow(&mut other)?;
    // Whoever needs nothing of the script's goes on, and so do connections that come now.
    ensure!(say(&mut other, "SET free 1")? == "OK");
    let mut newcomer = server.connect()?;
    ensure!(say(&mut newcomer, "GET free")? == "1");
    ensure!(newcomer.call_text("RPUSH list a")? == Reply::Integer(1));
    ensure!(matches!(blocked.receive()?, Received::Reply(Reply::Array(_))));
    ensure!(newcomer.call_text("PUBLISH news x")? == Reply::Integer(1));
    ensure!(listener.has_input(Duration::from_secs(20))?);
    for refused in ["SET held 1", "EVAL x 0", "SCRIPT FLUSH", "FLUSHALL", "SWAPDB 0 1", "SHUTDOWN"]
    {
        let said = say(&mut other, refused)?;
        ensure!(said.starts_with("BUSY"), "{refused}: {said}");
    }
    drop(newcomer);
    ensure!(other.call_text("GET behind")? == Reply::Nil);
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    let ended = received(&mut runner)?;
    ensure!(ended.contains("Script killed by user with SCRIPT KILL"), "{ended}");
    ensure!(matches!(runner.receive()?, Received::Reply(Reply::Integer(1))), "what came behind it");
    // The thread is as it was.
    for client in [&mut runner, &mut other, &mut blocked] {
        ensure!(say(client, "GET free")? == "1");
    }
    ensure!(other.call(&["EVAL", "return 7", "0"])? == Reply::Integer(7));
    ensure!(say(&mut other, "FLUSHALL")? == "OK");
    Ok(())
}

#[test]
fn one_that_has_written_ends_with_the_server_alone() -> Result<()> {
    let mut server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    for command in ["MULTI", "SET held 1"] {
        runner.call_text(command)?;
    }
    runner.call(&["EVAL", "redis.call('set', KEYS[1], 2) while true do end", "1", "held"])?;
    runner.send(&["EXEC"])?;
    wait_until_slow(&mut other)?;
    let said = say(&mut other, "SCRIPT KILL")?;
    ensure!(said.starts_with("UNKILLABLE"), "{said}");
    let said = say(&mut other, "SHUTDOWN")?;
    ensure!(said.starts_with("BUSY"), "{said}");
    other.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("the end of the process", || Ok(!server.is_running()))
}

#[test]
fn who_leaves_meanwhile_is_gone_and_others_are_not_mixed_up() -> Result<()> {
    let server = start()?;
    let mut control = server.connect()?;
    for round in 0..20 {
        let mut runner = server.connect()?;
        runner.send(&ENDLESS)?;
        wait_until_slow(&mut control)?;
        // They come, say something, and go, while the place of the runner is kept.
        for number in 0..10 {
            let mut passing = server.connect()?;
            let (key, value) = (format!("k{number}"), format!("v{round}"));
            ensure!(passing.call(&["SET", &key, &value])? == Reply::Status(b"OK".to_vec()));
            ensure!(passing.call(&["GET", &key])? == Reply::Bulk(value.into_bytes()));
        }
        if round % 2 == 0 {
            // The runner itself leaves as well.
            drop(runner);
            ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
        } else {
            ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
            ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
            ensure!(say(&mut runner, "GET k0")? == format!("v{round}"));
        }
        wait_until("the end of the script", || {
            Ok(!say(&mut control, "GET held")?.starts_with("BUSY"))
        })?;
    }
    Ok(())
}
