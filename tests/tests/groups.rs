//! Consumers on several worker threads share a group: each entry is delivered to exactly one of
//! them, in the order of the stream, whether it was there or is waited for.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::wait_until;
use tests::server::{Server, Target};

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 8;
const ENTRIES: usize = 600;

/// The ids of the entries of one stream in a reply of XREADGROUP; none if it has timed out.
fn ids(reply: Reply) -> Result<Vec<Vec<u8>>> {
    let Some(mut streams) = reply.elements() else { return Ok(Vec::new()) };
    let entries = streams.pop().and_then(Reply::elements).and_then(|mut pair| pair.pop());
    let entries = entries.and_then(Reply::elements).context("no entries")?;
    entries
        .into_iter()
        .map(|entry| {
            let id = entry.elements().and_then(|fields| fields.into_iter().next());
            id.and_then(|id| id.text().map(<[u8]>::to_vec)).context("no id")
        })
        .collect()
}

/// Reads until the group has nothing more for a second. Some entries are acknowledged at once, and
/// some are read again first.
fn consume(mut client: Client, number: usize) -> Result<Vec<Vec<u8>>> {
    let name = format!("consumer-{number}");
    let mut got = Vec::new();
    loop {
        let words = ["XREADGROUP", "GROUP", "group", &name, "COUNT", "3", "BLOCK", "1000"];
        let new = [&words[..], &["STREAMS", "stream", ">"]].concat();
        let new = ids(client.call(&new)?)?;
        if new.is_empty() {
            return Ok(got);
        }
        if got.len() % 5 == 0 {
            let old = ["XREADGROUP", "GROUP", "group", &name, "STREAMS", "stream", "0"];
            ensure!(ids(client.call(&old)?)? == new, "pending is what was delivered");
        }
        let mut acknowledge: Vec<&[u8]> = vec![b"XACK", b"stream", b"group"];
        acknowledge.extend(new.iter().map(Vec::as_slice));
        let acknowledged = client.call(&acknowledge)?;
        ensure!(acknowledged == Reply::Integer(new.len() as i64), "{acknowledged:?}");
        got.extend(new);
    }
}

fn produce(mut client: Client, barrier: &Barrier) -> Result<()> {
    barrier.wait();
    for number in 0..ENTRIES {
        let value = number.to_string();
        let id = client.call(&["XADD", "stream", "*", "number", &value])?;
        ensure!(!id.is_error(), "{id:?}");
        if number % 50 == 0 {
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    Ok(())
}

fn id_parts(id: &[u8]) -> Result<(u64, u64)> {
    let text = std::str::from_utf8(id)?;
    let (ms, seq) = text.split_once('-').context("an id has two parts")?;
    Ok((ms.parse()?, seq.parse()?))
}

#[test]
fn each_entry_is_delivered_once() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "4")])?;
    let mut control = server.connect()?;
    control.call_text("XGROUP CREATE stream group $ MKSTREAM")?;
    let barrier = Barrier::new(PRODUCERS);
    let taken = thread::scope(|scope| -> Result<Vec<Vec<Vec<u8>>>> {
        let mut consumers = Vec::new();
        for number in 0..CONSUMERS {
            let client = server.connect()?;
            consumers.push(scope.spawn(move || consume(client, number)));
        }
        let mut producers = Vec::new();
        for _ in 0..PRODUCERS {
            let (client, barrier) = (server.connect()?, &barrier);
            producers.push(scope.spawn(move || produce(client, barrier)));
        }
        for producer in producers {
            producer.join().ok().context("a producer panicked")??;
        }
        let consumers = consumers.into_iter();
        consumers.map(|one| one.join().ok().context("a consumer panicked")?).collect()
    })?;
    let mut owners = BTreeMap::new();
    for (consumer, ids) in taken.iter().enumerate() {
        let parts = ids.iter().map(|id| id_parts(id)).collect::<Result<Vec<_>>>()?;
        ensure!(parts.is_sorted(), "consumer {consumer} gets entries in their order");
        for id in ids {
            if let Some(other) = owners.insert(id.clone(), consumer) {
                bail!("{} went to {other} and {consumer}", id.escape_ascii());
            }
        }
    }
    ensure!(owners.len() == PRODUCERS * ENTRIES, "{} were delivered", owners.len());
    ensure!(control.call_text("XLEN stream")? == Reply::Integer((PRODUCERS * ENTRIES) as i64));
    let pending = control.call_text("XPENDING stream group")?.elements().unwrap_or_default();
    ensure!(pending.first() == Some(&Reply::Integer(0)), "{pending:?}");
    Ok(())
}

/// Clients that wait for entries of a group get them in the order in which they came, and those
/// that read without a group all get them.
#[test]
fn waiting_consumers_are_served_in_turn() -> Result<()> {
    const WAITING: usize = 6;
    let server = Server::start(Target::Dunlin, &[("threads", "4")])?;
    let mut control = server.connect()?;
    control.call_text("XGROUP CREATE stream group $ MKSTREAM")?;
    for round in 1..=10u64 {
        let (mut readers, mut members) = (Vec::new(), Vec::new());
        for number in 0..WAITING {
            let mut reader = server.connect()?;
            reader.send(&["XREAD", "BLOCK", "0", "STREAMS", "stream", "$"])?;
            readers.push(reader);
            let mut member = server.connect()?;
            let name = number.to_string();
            let words = ["XREADGROUP", "GROUP", "group", &name, "COUNT", "1", "BLOCK", "0"];
            member.send(&[&words[..], &["STREAMS", "stream", ">"]].concat())?;
            members.push(member);
            let blocked = format!("blocked_clients:{}\r\n", 2 * (number + 1));
            tests::observe::wait_until("the waiting of clients", || {
                let info = control.call_text("INFO clients")?;
                let info = info.text().map(String::from_utf8_lossy);
                Ok(info.is_some_and(|info| info.contains(&blocked)))
            })?;
        }
        for number in 0..WAITING {
            control.call_text(&format!("XADD stream {round}-{} a b", number + 1))?;
        }
        for (number, member) in members.iter_mut().enumerate() {
            let Received::Reply(reply) = member.receive()? else { bail!("no reply") };
            ensure!(ids(reply)? == [format!("{round}-{}", number + 1).into_bytes()]);
        }
        for reader in &mut readers {
            let Received::Reply(reply) = reader.receive()? else { bail!("no reply") };
            ensure!(ids(reply)? == [format!("{round}-1").into_bytes()]);
        }
    }
    Ok(())
}

/// INFO counts the keys that somebody waits for, and those of them whose end somebody hears of.
#[test]
fn keys_that_are_waited_for_are_counted() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let (mut control, mut reader, mut popper) =
        (server.connect()?, server.connect()?, server.connect()?);
    control.call_text("XGROUP CREATE stream group $ MKSTREAM")?;
    reader.send(&["XREADGROUP", "GROUP", "group", "c", "BLOCK", "0", "STREAMS", "stream", ">"])?;
    popper.send(&["BLPOP", "list", "other", "0"])?;
    let mut shows = |waiting: &str, keys: &str, needed: &str| {
        wait_until("the keys that are counted", || {
            let info = control.call_text("INFO clients")?;
            let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
            let wanted = [
                format!("blocked_clients:{waiting}\r\n"),
                format!("total_blocking_keys:{keys}\r\n"),
                format!("total_blocking_keys_on_nokey:{needed}\r\n"),
            ];
            Ok(wanted.iter().all(|line| info.contains(line)))
        })
    };
    shows("2", "3", "1")?;
    drop(reader);
    shows("1", "2", "0")
}
