//! Keyspace notifications: subscribers hear of the changes of a key in their order, whichever workers
//! make them.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
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
