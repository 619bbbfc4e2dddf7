//! Clients that leave or are killed while they wait or run, and the time that commands see: nothing is
//! done for a client that has gone, and no deadline is counted from before its command.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, kill_process};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::server::{Server, Target};

fn start(options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("threads", "4"), ("enable-debug-command", "yes")];
    all.extend(options);
    Server::start(Target::Dunlin, &all)
}

fn raw(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    Ok(stream)
}

fn integer(reply: &Reply) -> Result<i64> {
    let Reply::Integer(number) = reply else { bail!("{reply:?} is no integer") };
    Ok(*number)
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// Sends these commands together, and returns the replies.
fn pipeline(client: &mut Client, commands: &[&str]) -> Result<Vec<Reply>> {
    let mut request = Vec::new();
    for command in commands {
        encode(&command.split(' ').collect::<Vec<_>>(), &mut request);
    }
    client.send_raw(&request)?;
    let receive = |_: &&str| match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        Received::Closed => bail!("the connection ended"),
    };
    commands.iter().map(receive).collect()
}

fn wait_for_blocked(control: &mut Client, count: u64) -> Result<()> {
    wait_until("clients to wait", || Ok(number(control, "blocked_clients")? == count))
}

// ---- What others see of a client ----------------------------------------------------------------

#[test]
fn a_command_that_waits_is_noted_once_when_it_was_served() -> Result<()> {
    let server = start(&[("slowlog-log-slower-than", "0")])?;
    let mut control = server.connect()?;
    let noted = |control: &mut Client| -> Result<(usize, String)> {
        let log = format!("{:?}", control.call_text("SLOWLOG GET 100")?);
        let statistics = text(&control.call_text("INFO commandstats")?);
        let line = statistics.lines().find(|line| line.starts_with("cmdstat_blpop:"));
        let calls = line.and_then(|line| line.split(',').next()).unwrap_or_default();
        let word = format!("{:?}", b"BLPOP".as_slice());
        Ok((log.matches(&word).count(), calls.to_string()))
    };
    let mut waiting = server.connect()?;
    let id = integer(&waiting.call_text("CLIENT ID")?)?;
    let (nothing, unblock) = ((0, String::new()), format!("CLIENT UNBLOCK {id}"));
    for (round, end) in ["RPUSH jobs job", &unblock, "PING"].into_iter().enumerate() {
        let timeout = if end == "PING" { "0.01" } else { "0" };
        waiting.send(&["BLPOP", "jobs", timeout])?;
        if timeout == "0" {
            wait_for_blocked(&mut control, 1)?;
            let count = if round == 0 {
                nothing.clone()
            } else {
                (round, format!("cmdstat_blpop:calls={round}"))
            };
            ensure!(noted(&mut control)? == count, "round {round}, while it waits");
        }
        control.call_text(end)?;
        ensure!(matches!(waiting.receive()?, Received::Reply(_)));
        let count = (round + 1, format!("cmdstat_blpop:calls={}", round + 1));
        ensure!(noted(&mut control)? == count, "round {round}: {:?}", noted(&mut control)?);
    }
    waiting.send(&["BLPOP", "jobs", "0"])?;
    wait_for_blocked(&mut control, 1)?;
    drop(waiting);
    wait_for_blocked(&mut control, 0)?;
    ensure!(noted(&mut control)? == (3, "cmdstat_blpop:calls=3".to_string()), "it has gone");
    Ok(())
}
