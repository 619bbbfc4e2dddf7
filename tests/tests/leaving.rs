//! Clients that leave or are killed while they wait or run, and the time that commands see. Nothing
//! is done for a client that has gone, and no deadline counts from before its command.

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

// ---- CLIENT KILL --------------------------------------------------------------------------------

#[test]
fn a_killed_client_takes_no_element() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    for round in 0..100 {
        let mut victim = server.connect()?;
        let id = integer(&victim.call_text("CLIENT ID")?)?;
        victim.send(&["BLPOP", "jobs", "0"])?;
        wait_for_blocked(&mut control, 1)?;
        let kill = format!("CLIENT KILL ID {id}");
        let replies = pipeline(&mut control, &[&kill, "RPUSH jobs job", "LPOP jobs"])?;
        let expected = [Reply::Integer(1), Reply::Integer(1), Reply::Bulk(b"job".to_vec())];
        ensure!(replies == expected, "round {round}: {replies:?}");
        ensure!(victim.receive()? == Received::Closed);
    }
    Ok(())
}

#[test]
fn a_killed_client_has_written_for_the_last_time() -> Result<()> {
    let server = start(&[])?;
    let (mut control, mut other) = (server.connect()?, server.connect()?);
    // A worker goes on with these for long once it has begun.
    let requests = b"DEBUG SLEEP 0.002\r\nINCR n\r\n".repeat(500);
    for kind in ["ID", "ADDR", "address"] {
        for round in 0..5 {
            let mut victim = server.connect()?;
            let id = integer(&victim.call_text("CLIENT ID")?)?;
            let info = text(&victim.call_text("CLIENT INFO")?);
            let address = info.split(" addr=").nth(1).and_then(|rest| rest.split(' ').next());
            let address = address.context("no address")?.to_string();
            let before = control.call_text("GET n")?;
            let requests = requests.clone();
            let sender = thread::spawn(move || {
                // It is killed meanwhile.
                let _ = victim.send_raw(&requests);
            });
            wait_until("the first write", || Ok(control.call_text("GET n")? != before))?;
            let kill = match kind {
                "address" => format!("CLIENT KILL {address}"),
                "ADDR" => format!("CLIENT KILL ADDR {address}"),
                _ => format!("CLIENT KILL ID {id}"),
            };
            control.call_text(&kill)?;
            let at_the_reply = control.call_text("GET n")?;
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(1));
                let later = other.call_text("GET n")?;
                ensure!(later == at_the_reply, "round {round}: {at_the_reply:?}, then {later:?}");
            }
            sender.join().expect("the sender ends");
        }
    }
    Ok(())
}

#[test]
fn a_kill_is_answered_when_all_killed_clients_are_closed() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    let mut victims: Vec<Client> = (0..20).map(|_| server.connect()).collect::<Result<_>>()?;
    for (at, victim) in victims.iter_mut().enumerate() {
        match at % 4 {
            0 => victim.send(&["BLPOP", "jobs", "0"])?,
            1 => _ = victim.call_text("MULTI")?,
            2 => _ = victim.call_text("SUBSCRIBE news")?,
            _ => _ = victim.call_text("MONITOR")?,
        }
    }
    wait_for_blocked(&mut control, 5)?;
    ensure!(control.call_text("CLIENT KILL SKIPME yes")? == Reply::Integer(20));
    ensure!(number(&mut control, "connected_clients")? == 1);
    ensure!(number(&mut control, "blocked_clients")? == 0);
    for victim in &mut victims {
        while victim.receive()? != Received::Closed {}
    }
    // A transaction answers when all of its KILLs have been carried out; one may kill its own
    // client.
    let mut two: Vec<Client> = (0..2).map(|_| server.connect()).collect::<Result<_>>()?;
    let mut ids = Vec::new();
    for client in &mut two {
        ids.push(integer(&client.call_text("CLIENT ID")?)?);
        client.send(&["BLPOP", "jobs", "0"])?;
    }
    wait_for_blocked(&mut control, 2)?;
    let (one, other) = (format!("CLIENT KILL ID {}", ids[0]), format!("CLIENT KILL ID {}", ids[1]));
    let last = "CLIENT KILL TYPE normal SKIPME no";
    let replies = pipeline(&mut control, &["MULTI", &one, &other, last, "EXEC"])?;
    let one = Reply::Integer(1);
    ensure!(replies[4] == Reply::Array(vec![one.clone(), one.clone(), one]), "{replies:?}");
    ensure!(control.receive()? == Received::Closed);
    ensure!(number(&mut server.connect()?, "blocked_clients")? == 0);
    Ok(())
}

#[test]
fn a_kill_ends_the_script_of_its_client_unless_it_has_written() -> Result<()> {
    let server = start(&[("busy-reply-threshold", "20")])?;
    let mut control = server.connect()?;
    let mut victim = server.connect()?;
    let id = integer(&victim.call_text("CLIENT ID")?)?;
    victim.send(&["EVAL", "while true do end", "1", "held"])?;
    wait_until("a slow script", || Ok(text(&control.call_text("GET held")?).starts_with("BUSY")))?;
    ensure!(control.call_text(&format!("CLIENT KILL ID {id}"))? == Reply::Integer(1));
    ensure!(control.call_text("GET held")? == Reply::Nil);
    Ok(())
}

/// A KILL that finds a client killed already waits like the KILL that has killed it.
#[test]
fn a_kill_waits_for_clients_that_another_kill_has_killed() -> Result<()> {
    let server = start(&[("threads", "4"), ("busy-reply-threshold", "20")])?;
    let (mut control, mut one, mut victim) =
        (server.connect()?, server.connect()?, server.connect()?);
    let id = integer(&victim.call_text("CLIENT ID")?)?;
    let long =
        "redis.call('set', KEYS[1], 1) local t = os.clock() + 0.5 while os.clock() < t do end";
    victim.send(&["EVAL", long, "1", "held"])?;
    wait_until("a slow script", || Ok(text(&control.call_text("GET held")?).starts_with("BUSY")))?;
    let kill = format!("CLIENT KILL ID {id}");
    one.send(&kill.split(' ').collect::<Vec<_>>())?;
    let shown = format!("id={id} ");
    wait_until("the kill", || Ok(!text(&control.call_text("CLIENT LIST")?).contains(&shown)))?;
    ensure!(control.call_text(&kill)? == Reply::Integer(0), "it does not count twice");
    ensure!(text(&control.call_text("GET held")?) == "1", "its script has ended");
    ensure!(one.receive()? == Received::Reply(Reply::Integer(1)));
    Ok(())
}

/// The first client of a transaction's KILLs may be closed before the second KILL runs.
#[test]
fn a_transaction_waits_for_the_last_of_its_kills() -> Result<()> {
    let server = start(&[("threads", "4"), ("busy-reply-threshold", "20")])?;
    let (mut control, mut quick, mut slow) =
        (server.connect()?, server.connect()?, server.connect()?);
    let quick_id = integer(&quick.call_text("CLIENT ID")?)?;
    let slow_id = integer(&slow.call_text("CLIENT ID")?)?;
    control.call_text("SETRANGE large 20000000 x")?;
    let long = "redis.call('set', KEYS[1], 1) local t = os.clock() + 1 while os.clock() < t do end";
    slow.send(&["EVAL", long, "1", "held"])?;
    wait_until("a slow script", || Ok(text(&control.call_text("GET held")?).starts_with("BUSY")))?;
    let mut requests = vec!["MULTI".to_owned(), format!("CLIENT KILL ID {quick_id}")];
    requests.extend((0..50).map(|_| "BITCOUNT large".to_owned()));
    requests.extend([format!("CLIENT KILL ID {slow_id}"), "EXEC".to_owned()]);
    pipeline(&mut control, &requests.iter().map(String::as_str).collect::<Vec<_>>())?;
    ensure!(text(&control.call_text("GET held")?) == "1", "its script has ended");
    Ok(())
}

// ---- Clients that leave -------------------------------------------------------------------------

#[test]
fn a_waiting_client_that_leaves_is_noticed_however_much_it_has_sent() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    // One lies in the middle of more commands than run in a turn.
    let many = "PING\r\n".repeat(1500) + "BLPOP jobs 0\r\n" + &"INCR n\r\n".repeat(1500);
    for waits in [&many, "BLPOP jobs 0\r\n", "SET paused 1\r\n"] {
        if waits.starts_with("SET") {
            control.call_text("CLIENT PAUSE 600000 WRITE")?;
        }
        let mut client = raw(&server)?;
        client.write_all(waits.as_bytes())?;
        wait_for_blocked(&mut control, 1)?;
        let requests = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n".repeat(10_000);
        // More than the sockets hold and than the server used to read of one that waits.
        for _ in 0..60 {
            if client.write_all(&requests).is_err() {
                break;
            }
        }
        drop(client);
        wait_for_blocked(&mut control, 0)?;
    }
    ensure!(control.call_text("CLIENT UNPAUSE")? == Reply::Status(b"OK".to_vec()));
    ensure!(control.call_text("RPUSH jobs job")? == Reply::Integer(1));
    ensure!(control.call_text("EXISTS n paused")? == Reply::Integer(0));
    ensure!(control.call_text("LPOP jobs")? == Reply::Bulk(b"job".to_vec()));
    Ok(())
}

#[test]
fn a_client_that_leaves_during_a_pause_writes_nothing() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    control.call_text("CLIENT PAUSE 600000 WRITE")?;
    let mut half = raw(&server)?;
    half.write_all(b"PING\r\nSET half 1\r\nPING\r\n")?;
    let mut whole = raw(&server)?;
    whole.write_all(b"SET whole 1\r\n")?;
    wait_for_blocked(&mut control, 2)?;
    drop(whole);
    half.shutdown(Shutdown::Write)?;
    wait_until("their end", || Ok(number(&mut control, "connected_clients")? == 1))?;
    let mut answers = Vec::new();
    half.read_to_end(&mut answers)?;
    ensure!(answers == b"+PONG\r\n", "{}", answers.escape_ascii());
    control.call_text("CLIENT UNPAUSE")?;
    ensure!(control.call_text("EXISTS half whole")? == Reply::Integer(0));
    Ok(())
}

#[test]
fn a_client_that_gives_up_its_wait_gets_the_earlier_answers() -> Result<()> {
    let server = start(&[("appendonly", "yes"), ("appendfsync", "always")])?;
    let mut control = server.connect()?;
    let large = "x".repeat(10_000_000);
    control.call(&["SET", "large", &large])?;
    let large = format!("$10000000\r\n{large}\r\n");
    for (requests, owed) in [
        ("SET k 1\r\nBLPOP jobs 0\r\nSET k 2\r\n", "+OK\r\n"),
        ("SET k 1\r\nWAITAOF 1 1 0\r\n", "+OK\r\n"),
        ("SET k 1\r\nSUBSCRIBE c\r\n", "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"),
        ("GET large\r\nBLPOP jobs 0\r\nSET k 2\r\n", &large),
    ] {
        let mut client = raw(&server)?;
        client.write_all(requests.as_bytes())?;
        client.shutdown(Shutdown::Write)?;
        let mut answers = Vec::new();
        client.read_to_end(&mut answers)?;
        ensure!(answers == owed.as_bytes(), "{requests}: {} bytes", answers.len());
    }
    wait_until("their end", || Ok(number(&mut control, "connected_clients")? == 1))?;
    ensure!(control.call_text("GET k")? == Reply::Bulk(b"1".to_vec()));
    Ok(())
}

#[test]
fn a_subscriber_that_ends_its_stream_is_gone_though_it_reads_nothing() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "pubsub 0 0 0")])?;
    let mut publisher = server.connect()?;
    let mut deaf = raw(&server)?;
    deaf.write_all(b"SUBSCRIBE news\r\n")?;
    let message = "m".repeat(1_000_000);
    wait_until("the subscription", || {
        Ok(publisher.call(&["PUBLISH", "news", &message])? == Reply::Integer(1))
    })?;
    // More than the sockets hold.
    for _ in 0..30 {
        publisher.call(&["PUBLISH", "news", &message])?;
    }
    deaf.shutdown(Shutdown::Write)?;
    wait_until("its end", || Ok(number(&mut publisher, "connected_clients")? == 1))
}

// ---- What others see of a client ----------------------------------------------------------------

#[test]
fn waiting_clients_are_idle_and_ids_follow_the_order_of_connections() -> Result<()> {
    let server = start(&[])?;
    let mut clients: Vec<Client> = (0..200).map(|_| server.connect()).collect::<Result<_>>()?;
    let mut last = 0;
    for client in &mut clients {
        let id = integer(&client.call_text("CLIENT ID")?)?;
        ensure!(id > last, "{id} came after {last}");
        last = id;
    }
    let mut waiting = server.connect()?;
    let id = integer(&waiting.call_text("CLIENT ID")?)?;
    waiting.send(&["BLPOP", "jobs", "0"])?;
    let list = format!("CLIENT LIST ID {id}");
    wait_until("it to be idle", || {
        let line = text(&clients[0].call_text(&list)?);
        Ok(!line.contains(" idle=0 ") && line.contains(" flags=b "))
    })
}

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

#[test]
fn urgent_data_delays_nothing() -> Result<()> {
    let server = start(&[])?;
    let mut client = raw(&server)?;
    client.write_all(b"PING\r\n")?;
    client.read_exact(&mut [0; 7])?;
    let process = Pid::from_raw(server.pid() as i32).context("the server has a number")?;
    for _ in 0..5 {
        // So that all of it is there when the server reads.
        kill_process(process, Signal::STOP)?;
        client.write_all(b"PING\r\n")?;
        send(&client, b"!", SendFlags::OOB)?;
        client.write_all(b"PING\r\n")?;
        kill_process(process, Signal::CONT)?;
        client.read_exact(&mut [0; 14])?;
    }
    Ok(())
}

#[test]
fn urgent_data_during_a_script_delays_nothing() -> Result<()> {
    let server = start(&[("threads", "1"), ("busy-reply-threshold", "1")])?;
    let mut control = server.connect()?;
    let mut client = raw(&server)?;
    client.write_all(b"EVAL \"while true do end\" 1 held\r\n")?;
    wait_until("a slow script", || Ok(text(&control.call_text("GET held")?).starts_with("BUSY")))?;
    client.write_all(b"PING\r\n")?;
    send(&client, b"!", SendFlags::OOB)?;
    client.write_all(b"PING\r\n")?;
    // The worker has looked at its sockets after that.
    for _ in 0..10 {
        control.call_text("GET held")?;
    }
    control.call_text("SCRIPT KILL")?;
    let mut answers = Vec::new();
    while !answers.ends_with(b"+PONG\r\n+PONG\r\n") {
        let mut answer = [0; 200];
        let count = client.read(&mut answer)?;
        ensure!(count > 0);
        answers.extend_from_slice(&answer[..count]);
    }
    Ok(())
}

// ---- Time ---------------------------------------------------------------------------------------

/// Microseconds of Unix time that TIME has answered.
fn microseconds(time: &Reply) -> Result<i64> {
    let Reply::Array(parts) = time else { bail!("{time:?} is no time") };
    let number = |at: usize| -> Result<i64> { Ok(text(&parts[at]).parse()?) };
    Ok(number(0)? * 1_000_000 + number(1)?)
}

#[test]
fn deadlines_count_from_the_beginning_of_their_command() -> Result<()> {
    let server = start(&[("threads", "1")])?;
    let mut client = server.connect()?;
    let before = microseconds(&client.call_text("TIME")?)? / 1000;
    let commands = [
        "DEBUG SLEEP 0.2",
        "SET lock v NX PX 60000",
        "DEBUG SLEEP 0.2",
        "MULTI",
        "SET queued v PX 60000",
        "EXEC",
        "DEBUG SLEEP 0.2",
        "TIME",
        "EVAL return{redis.call('SET','called','v','PX',60000)} 1 called",
    ];
    let replies = pipeline(&mut client, &commands)?;
    ensure!(microseconds(&replies[7])? / 1000 >= before + 600, "{replies:?}");
    for (key, waited) in [("lock", 200), ("queued", 400), ("called", 600)] {
        let due = integer(&client.call_text(&format!("PEXPIRETIME {key}"))?)?;
        ensure!(due >= before + waited + 60_000, "{key} is due {} ms after", due - before);
    }
    Ok(())
}

#[test]
fn a_transaction_and_a_script_keep_one_time() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    let commands = ["MULTI", "TIME", "DEBUG SLEEP 0.01", "TIME", "EXEC"];
    let replies = pipeline(&mut client, &commands)?;
    let Reply::Array(times) = &replies[4] else { bail!("{replies:?}") };
    ensure!(times[0] == times[2], "{times:?}");
    let script = "local one = redis.call('TIME') for _ = 1, 1000000 do end \
                  return {one, redis.call('TIME')}";
    let Reply::Array(times) = client.call(&["EVAL", script, "0"])? else { bail!("no times") };
    ensure!(times[0] == times[1], "{times:?}");
    let mut last = 0;
    for reply in pipeline(&mut client, &["TIME"; 1000])? {
        let now = microseconds(&reply)?;
        ensure!(now >= last, "{now} after {last}");
        last = now;
    }
    Ok(())
}
