//! Slots that are locked for long, or needed by many: other clients do not wait, and work under
//! locks takes linear time.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::server::{Server, Target};

/// Far longer than linear work takes, far shorter than quadratic work.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(threads: &str) -> Result<Server> {
    Server::start(Target::Dunlin, &[("threads", threads), ("enable-debug-command", "yes")])
}

fn reply(client: &mut Client) -> Result<Reply> {
    ensure!(client.has_input(PATIENCE)?, "no reply comes");
    match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        Received::Closed => bail!("the connection is closed"),
    }
}

fn send(client: &mut Client, command: &str) -> Result<()> {
    client.send(&command.split(' ').collect::<Vec<_>>())
}

fn has_reply(client: &mut Client) -> Result<bool> {
    client.has_input(Duration::from_millis(1))
}

/// Lets a client hold the slot of `k` for some seconds, and does not wait for anything.
fn hold_slot(holder: &mut Client, seconds: &str) -> Result<()> {
    for command in ["CLIENT SETNAME holder", "MULTI", "GET k", &format!("DEBUG SLEEP {seconds}")] {
        ensure!(!holder.call_text(command)?.is_error());
    }
    send(holder, "EXEC")
}

/// Whether a client sees that the slot is held.
fn sees_exec(observer: &mut Client) -> Result<bool> {
    let list = observer.call_text("CLIENT LIST")?;
    let list = String::from_utf8_lossy(list.text().unwrap_or_default()).into_owned();
    Ok(list.lines().any(|line| line.contains("name=holder") && line.contains("cmd=exec")))
}

/// A client, and at least `wanted` others that another worker serves.
fn of_two_workers(server: &Server, wanted: usize) -> Result<(Client, Vec<Client>)> {
    let (mut holder, mut others) = (server.connect()?, Vec::new());
    for _ in 0..2 * wanted + 4 {
        others.push(server.connect()?);
    }
    for client in &mut others {
        client.call_text("PING")?;
    }
    hold_slot(&mut holder, "2")?;
    // The connection that answers while EXEC runs belongs to the other worker.
    let mut runs = false;
    while !runs {
        ensure!(!has_reply(&mut holder)?, "nobody sees EXEC");
        let mut answering = Vec::new();
        for mut client in others {
            send(&mut client, "PING")?;
            if client.has_input(Duration::from_millis(50))? {
                reply(&mut client)?;
                runs = runs || sees_exec(&mut client)?;
                answering.push(client);
            }
        }
        others = answering;
    }
    let mut answering = Vec::new();
    for mut client in others {
        send(&mut client, "PING")?;
        if client.has_input(Duration::from_millis(50))? && !has_reply(&mut holder)? {
            reply(&mut client)?;
            answering.push(client);
        }
    }
    reply(&mut holder)?;
    ensure!(answering.len() >= wanted, "{} of {wanted} clients answer", answering.len());
    Ok((holder, answering))
}

#[test]
fn a_command_that_waits_for_a_locked_slot_delays_nobody() -> Result<()> {
    let server = start("2")?;
    let mut control = server.connect()?;
    for command in ["SET k value", "SET other 1", "RPUSH l 1 2", "SET w_1 2", "SET w_2 1"] {
        ensure!(!control.call_text(command)?.is_error());
    }
    let (mut holder, mut others) = of_two_workers(&server, 11)?;
    let mut observer = others.pop().expect("there are several");
    let mut blocked = others.pop().expect("there are several");
    let mut closing = others.pop().expect("there are several");
    let mut watching = others.pop().expect("there are several");
    ensure!(watching.call_text("WATCH k")? == Reply::Status(b"OK".to_vec()));
    send(&mut blocked, "BLPOP {k}l 0.3")?;
    send(&mut closing, "BLPOP {k}l 0")?;
    wait_until("two blocked clients", || Ok(number(&mut observer, "blocked_clients")? == 2))?;

    hold_slot(&mut holder, "3")?;
    wait_until("EXEC", || sees_exec(&mut observer))?;
    let commands =
        ["GET k", "MGET other k", "KEYS *", "SCAN 0 COUNT 100", "DEBUG OBJECT k", "SORT l BY {k}*"];
    let mut waiting = Vec::new();
    for command in commands {
        let mut client = others.pop().expect("there are several");
        send(&mut client, command)?;
        waiting.push((command, client));
    }
    let mut transaction = others.pop().expect("there are several");
    for command in ["MULTI", "DBSIZE"] {
        transaction.call_text(command)?;
    }
    send(&mut transaction, "EXEC")?;
    drop(closing);
    ensure!(watching.call_text("UNWATCH")? == Reply::Status(b"OK".to_vec()));
    ensure!(reply(&mut blocked)? == Reply::NilArray, "the time of the blocked client is up");
    for _ in 0..50 {
        ensure!(observer.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    }
    wait_until("the end of the waits", || Ok(number(&mut observer, "blocked_clients")? == 0))?;
    ensure!(!has_reply(&mut holder)?, "somebody waited for EXEC");
    ensure!(!has_reply(&mut waiting[0].1)?, "the slot is held");

    reply(&mut holder)?;
    for (command, client) in &mut waiting {
        let reply = reply(client)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
        if *command == "KEYS *" {
            ensure!(reply.elements().is_some_and(|keys| keys.len() == 5), "each key once");
        }
    }
    ensure!(reply(&mut transaction)?.elements() == Some(vec![Reply::Integer(5)]));
    Ok(())
}

/// Sends the same command many times at once, by a client that shares its worker with another one.
/// That one must be answered before all of them have run.
fn runs_in_turn_with_others(command: &[&str], times: usize, answer: &Reply) -> Result<()> {
    let server = start("1")?;
    let (mut busy, mut other) = (server.connect()?, server.connect()?);
    other.call_text("SETRANGE large 300000000 x")?;
    let mut requests = Vec::new();
    (0..times).for_each(|_| encode(command, &mut requests));
    busy.send_raw(&requests)?;
    // Its worker has the commands when the first of them has run.
    other.call_text("GET k")?;
    let begins = format!("cmdstat_{}:calls=", command[0].to_lowercase());
    let counted = |other: &mut Client| -> Result<usize> {
        let stats = other.call_text("INFO commandstats")?;
        let stats = String::from_utf8_lossy(stats.text().unwrap_or_default()).into_owned();
        let line = stats.lines().find_map(|line| line.strip_prefix(&begins));
        Ok(line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0))
    };
    wait_until("the first of many commands", || Ok(counted(&mut other)? > 0))?;
    let ran = counted(&mut other)?;
    ensure!(ran < times, "all of them ran first");
    for _ in 0..times {
        ensure!(reply(&mut busy)? == *answer, "in their order, all of them");
    }
    Ok(())
}

#[test]
fn a_client_with_many_commands_takes_turns_with_others() -> Result<()> {
    runs_in_turn_with_others(&["BITCOUNT", "large"], 200, &Reply::Integer(4))
}

/// Fewer than are fetched together, each of which takes some milliseconds.
#[test]
fn a_client_with_a_few_long_commands_takes_turns_with_others() -> Result<()> {
    runs_in_turn_with_others(&["BITCOUNT", "large"], 30, &Reply::Integer(4))
}

#[test]
fn a_client_with_many_scripts_takes_turns_with_others() -> Result<()> {
    let script = "local sum = 0 for number = 1, 10000000 do sum = sum + number end return 1";
    runs_in_turn_with_others(&["EVAL", script, "0"], 30, &Reply::Integer(1))
}

#[test]
fn inside_multi_all_keys_are_of_one_instant() -> Result<()> {
    let server = start("3")?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let done = || stop.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let server = &server;
                scope.spawn(move || -> Result<()> {
                    let mut client = server.connect()?;
                    let mut request = Vec::new();
                    for number in 0..64 {
                        encode(&["SET", &format!("k:{writer}:{number}"), "1"], &mut request);
                        if number % 3 > 0 {
                            encode(&["DEL", &format!("k:{writer}:{}", number - 1)], &mut request);
                        }
                    }
                    for number in 0..64 {
                        encode(&["DEL", &format!("k:{writer}:{number}")], &mut request);
                    }
                    let commands = request.windows(1).filter(|byte| byte == b"*").count();
                    while !done() {
                        client.send_raw(&request)?;
                        for _ in 0..commands {
                            client.receive()?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let look = || -> Result<()> {
            let mut client = server.connect()?;
            for _ in 0..1500 {
                for command in ["MULTI", "DBSIZE", "KEYS *", "DBSIZE", "SCAN 0 COUNT 100000"] {
                    client.call_text(command)?;
                }
                let replies = client.call_text("EXEC")?.elements().unwrap_or_default();
                let Ok([first, keys, second, scan]) = <[Reply; 4]>::try_from(replies) else {
                    bail!("EXEC answers four replies");
                };
                let keys = keys.elements().map_or(0, |keys| keys.len());
                let scan = scan.elements().and_then(|mut parts| parts.pop()?.elements());
                let scanned = scan.map_or(0, |keys| keys.len());
                ensure!(
                    first == second && first == Reply::Integer(keys as i64) && scanned == keys,
                    "DBSIZE {first:?}, {keys} keys, DBSIZE {second:?}, {scanned} scanned"
                );
            }
            Ok(())
        };
        let looked = look();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("writers do not panic")?;
        }
        looked
    })
}

#[test]
fn what_expires_inside_exec_serves_nobody() -> Result<()> {
    let server = start("2")?;
    let (mut blocked, mut client) = (server.connect()?, server.connect()?);
    send(&mut blocked, "BZPOPMIN z 0")?;
    wait_until("a blocked client", || Ok(number(&mut client, "blocked_clients")? == 1))?;
    let commands = ["MULTI", "ZADD z 1 gone", "PEXPIRE z 100", "DEBUG SLEEP 0.2", "EXEC"];
    for command in commands {
        ensure!(!client.call_text(command)?.is_error());
    }
    ensure!(number(&mut client, "blocked_clients")? == 1, "it was served what has expired");
    ensure!(client.call_text("ZADD z 2 fresh")? == Reply::Integer(1));
    let served = reply(&mut blocked)?.elements().unwrap_or_default();
    ensure!(served.get(1).and_then(Reply::text) == Some(b"fresh"), "{served:?}");
    Ok(())
}

// ---- Linear work --------------------------------------------------------------------------------

/// With a look at all others for each key, this many take minutes.
const KEYS: usize = 300_000;

fn names() -> impl Iterator<Item = String> {
    (0..KEYS).map(|number| format!("k:{number}"))
}

/// A request of this command for all keys at once.
fn for_all_keys(command: &str, last: Option<&str>) -> Vec<u8> {
    let mut words = vec![command.to_string()];
    words.extend(names());
    words.extend(last.map(str::to_string));
    let mut request = Vec::new();
    encode(&words, &mut request);
    request
}

/// Pushes to each key, one after another.
fn push_to_each(client: &mut Client, transaction: bool) -> Result<()> {
    let all: Vec<String> = names().collect();
    if transaction {
        client.call_text("MULTI")?;
    }
    for names in all.chunks(1000) {
        let mut request = Vec::new();
        names.iter().for_each(|name| encode(&["RPUSH", name, "v"], &mut request));
        client.send_raw(&request)?;
        for _ in names {
            reply(client)?;
        }
    }
    if transaction {
        send(client, "EXEC")?;
        ensure!(reply(client)?.elements().is_some_and(|replies| replies.len() == KEYS));
    }
    Ok(())
}

#[test]
fn many_keys_that_are_waited_for_are_served_in_linear_time() -> Result<()> {
    let server = start("2")?;
    let (mut blocked, mut client) = (server.connect()?, server.connect()?);
    blocked.send_raw(&for_all_keys("BLPOP", Some("0")))?;
    wait_until("a blocked client", || Ok(number(&mut client, "blocked_clients")? == 1))?;
    push_to_each(&mut client, true)?;
    let served = reply(&mut blocked)?.elements().unwrap_or_default();
    ensure!(served.first().and_then(Reply::text) == Some(b"k:0"), "{served:?}");
    Ok(())
}

#[test]
fn swapping_databases_serves_many_in_linear_time() -> Result<()> {
    let server = start("2")?;
    let (mut blocked, mut client) = (server.connect()?, server.connect()?);
    blocked.send_raw(&for_all_keys("BLPOP", Some("0")))?;
    wait_until("a blocked client", || Ok(number(&mut client, "blocked_clients")? == 1))?;
    client.call_text("SELECT 1")?;
    push_to_each(&mut client, false)?;
    send(&mut client, "SWAPDB 0 1")?;
    ensure!(reply(&mut client)? == Reply::Status(b"OK".to_vec()));
    ensure!(reply(&mut blocked)?.elements().is_some_and(|served| served.len() == 2));
    Ok(())
}

#[test]
fn many_keys_are_watched_in_linear_time() -> Result<()> {
    let server = start("2")?;
    let mut client = server.connect()?;
    client.send_raw(&for_all_keys("WATCH", None))?;
    ensure!(reply(&mut client)? == Reply::Status(b"OK".to_vec()));
    send(&mut client, "UNWATCH")?;
    ensure!(reply(&mut client)? == Reply::Status(b"OK".to_vec()));
    Ok(())
}
