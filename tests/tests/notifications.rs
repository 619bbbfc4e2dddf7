//! Keyspace notifications and messages: subscribers get the events of a key in the order of its
//! changes, whichever workers make them. They get the messages of scripts, however many.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::process::peak_resident_bytes;
use tests::server::{Server, Target};

/// The key that all writers change.
const KEY: &str = "contended";
/// Clients that write.
const WRITERS: usize = 6;
/// Rounds of each of them.
const ROUNDS: usize = 2000;
/// The commands of a round. DEL and GETDEL cause an event where the key is there.
const ROUND: [&[&str]; 4] =
    [&["SET", KEY, "v"], &["DEL", KEY], &["SET", KEY, "w", "PX", "1"], &["GETDEL", KEY]];
/// Far longer than an event takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends rounds without waiting for single replies, and reads all replies.
fn write(mut client: Client) -> Result<()> {
    for _ in 0..ROUNDS {
        let mut request = Vec::new();
        ROUND.iter().for_each(|command| encode(command, &mut request));
        client.send_raw(&request)?;
        for _ in ROUND {
            let Received::Reply(reply) = client.receive()? else { bail!("closed") };
            ensure!(!reply.is_error(), "{reply:?}");
        }
    }
    Ok(())
}

/// The next event of the key.
fn next_event(subscriber: &mut Client) -> Result<String> {
    ensure!(subscriber.has_input(PATIENCE)?, "no event comes");
    let Received::Reply(reply) = subscriber.receive()? else { bail!("closed") };
    let words = reply.elements().context("a message is an array")?;
    let word = words.last().and_then(Reply::text).context("a message ends in text")?;
    Ok(String::from_utf8_lossy(word).into_owned())
}

#[test]
fn the_events_of_a_key_come_in_the_order_of_its_changes() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "4"), ("hz", "100")])?;
    let mut control = server.connect()?;
    control.call_text("CONFIG SET notify-keyspace-events KA")?;
    let mut subscriber = server.connect()?;
    subscriber.call(&["SUBSCRIBE", &format!("__keyspace@0__:{KEY}")])?;
    let writers: Vec<Client> = (0..WRITERS).map(|_| server.connect()).collect::<Result<_>>()?;
    let writers: Vec<_> = writers.into_iter().map(|own| thread::spawn(|| write(own))).collect();

    let (mut is_there, mut written, mut contradictions) = (false, 0, 0);
    let sets = WRITERS * ROUNDS * 2;
    while written < sets || is_there {
        let event = next_event(&mut subscriber)?;
        match event.as_str() {
            "set" => (is_there, written) = (true, written + 1),
            "expire" => contradictions += usize::from(!is_there),
            "del" | "expired" => {
                contradictions += usize::from(!is_there);
                is_there = false;
            }
            other => bail!("{other}"),
        }
    }
    for writer in writers {
        writer.join().expect("a writer panicked")?;
    }
    ensure!(contradictions == 0, "{contradictions} events contradict the ones before them");
    Ok(())
}

/// A script that begins again has removed what it found expired, and its second attempt finds
/// nothing there.
#[test]
fn what_a_script_finds_expired_before_it_begins_again_is_told_once() -> Result<()> {
    let options = [("notify-keyspace-events", "KA"), ("enable-debug-command", "yes")];
    let server = Server::start(Target::Dunlin, &options)?;
    let mut client = server.connect()?;
    let mut subscriber = server.connect()?;
    subscriber.call(&["SUBSCRIBE", &format!("__keyspace@0__:{KEY}")])?;
    client.call_text("DEBUG SET-ACTIVE-EXPIRE 0")?;
    // They learn in the middle that they need all slots, or the whole server.
    for needs_more in ["redis.call('keys', '*')", "redis.call('flush' .. 'all')"] {
        client.call(&["SET", KEY, "v", "PX", "1"])?;
        thread::sleep(Duration::from_millis(20));
        let script = format!("local found = redis.call('get', KEYS[1]) {needs_more} return found");
        let reply = client.call(&["EVAL", &script, "1", KEY])?;
        ensure!(reply == Reply::Nil, "{reply:?}");
        client.call(&["PUBLISH", &format!("__keyspace@0__:{KEY}"), "end"])?;
        let events: Vec<String> =
            (0..4).map(|_| next_event(&mut subscriber)).collect::<Result<_>>()?;
        ensure!(events == ["set", "expire", "expired", "end"], "{needs_more}: {events:?}");
    }
    Ok(())
}

/// What a script says leaves when it has ended. A client for which more waits then than it may let
/// wait is closed, and what nobody will hear takes no memory meanwhile.
#[test]
fn a_script_that_says_much_fills_no_memory() -> Result<()> {
    let options = [("notify-keyspace-events", "KEm"), ("threads", "2")];
    let server = Server::start(Target::Dunlin, &options)?;
    let mut client = server.connect()?;
    let limits = "normal 8mb 0 0 pubsub 8mb 0 0";
    client.call(&["CONFIG", "SET", "client-output-buffer-limit", limits])?;
    let messages = "local long = string.rep('x', 1000000) \
                    for _ = 1, 600 do redis.call('publish', 'news', long) end";
    let misses = "local long = string.rep('x', 1000000) \
                  for _ = 1, 600 do redis.call('get', long) end";
    let scripts = [
        ("SUBSCRIBE news", messages, "publish"),
        ("PSUBSCRIBE __key*", misses, "keymiss"),
        ("MONITOR", misses, "lines"),
    ];
    for (round, (listens, script, what)) in scripts.into_iter().enumerate() {
        let mut other = server.connect()?;
        other.call(&["SUBSCRIBE", "quiet"])?;
        let mut listener = server.connect()?;
        listener.call_text(listens)?;
        let before = peak_resident_bytes(server.pid())?;
        let script = format!("{script} redis.call('publish', 'quiet', 'end')");
        ensure!(!client.call(&["EVAL", &script, "0"])?.is_error());
        let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
        ensure!(grown < 200_000_000, "{what}: {grown} bytes more");
        let heard = next_event(&mut other)?;
        ensure!(heard == "end", "{what}: others hear what follows");
        wait_until("the end of the client", || {
            Ok(number(&mut client, "client_output_buffer_limit_disconnections")?
                == round as u64 + 1)
        })?;
    }
    Ok(())
}
