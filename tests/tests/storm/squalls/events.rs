//! Clients of several threads create and remove the same few keys, and a subscriber gets the events
//! of each key in an order that is possible: created, removed, created, removed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::server::{Server, Target};

use super::{Gust, done, text, together, with_server};

/// Clients that change keys.
const CLIENTS: usize = 4;
/// Keys that they share.
const KEYS: usize = 3;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let options = [("threads", "3"), ("notify-keyspace-events", "KA")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let mut listener = server.connect()?;
    done(&mut listener, &["PSUBSCRIBE", "__keyspace@0__:*"])?;
    let over = AtomicBool::new(false);
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    let left = std::sync::atomic::AtomicUsize::new(CLIENTS);
    for _ in 0..CLIENTS {
        let (server, branch) = (&server, gust.branch());
        let (over, left) = (&over, &left);
        parts.push(Box::new(move || {
            let result = change(server, branch);
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                over.store(true, Ordering::SeqCst);
            }
            result
        }));
    }
    parts.push(Box::new(|| listen(&mut listener, &over)));
    let result = together(parts);
    with_server(result, &mut server)
}

fn change(server: &Server, mut gust: Gust) -> Result<()> {
    let mut client = server.connect()?;
    while gust.goes_on() {
        let mut request = Vec::new();
        let count = gust.random.between(1, 10);
        for _ in 0..count {
            let number = gust.random.below(KEYS);
            let (text, list) = (format!("text:{number}"), format!("list:{number}"));
            match gust.random.below(8) {
                0 => encode(&["SET", &text, "1", "NX"], &mut request),
                1 => encode(&["SET", &text, "1", "NX", "PX", "2"], &mut request),
                2 => encode(&["DEL", &text], &mut request),
                3 => encode(&["GETDEL", &text], &mut request),
                4 => encode(&["EVAL", MAKE, "1", &text], &mut request),
                5 | 6 => encode(&["EVAL", PUSH_FIRST, "1", &list], &mut request),
                _ => encode(&["LPOP", &list], &mut request),
            }
        }
        client.send_raw(&request)?;
        for _ in 0..count {
            match client.receive()? {
                Received::Reply(reply) if !reply.is_error() => {}
                other => bail!("a change was answered {other:?}"),
            }
        }
    }
    Ok(())
}

/// Makes a string, or removes it.
const MAKE: &str = "if redis.call('del',KEYS[1])==0 then redis.call('set',KEYS[1],1) end";
/// Makes a list of one element.
const PUSH_FIRST: &str =
    "if redis.call('exists',KEYS[1])==0 then redis.call('rpush',KEYS[1],1) end";

/// Whether an event makes a key, removes it, or leaves it there.
fn makes(event: &str) -> Result<Option<bool>> {
    Ok(match event {
        "set" | "rpush" => Some(true),
        "del" | "expired" => Some(false),
        "expire" | "lpop" => None,
        other => bail!("an event {other:?} that no client causes"),
    })
}

fn listen(listener: &mut Client, over: &AtomicBool) -> Result<()> {
    let mut there: BTreeMap<String, bool> = BTreeMap::new();
    let mut heard = 0;
    loop {
        if !listener.has_input(Duration::from_millis(300))? {
            if over.load(Ordering::SeqCst) {
                break;
            }
            continue;
        }
        let Received::Reply(Reply::Array(parts)) = listener.receive()? else {
            bail!("the listener was closed");
        };
        let (channel, event) = (text(&parts[2]), text(&parts[3]));
        let key = channel.rsplit_once("__:").map(|(_, key)| key.to_owned()).unwrap_or_default();
        heard += 1;
        let Some(made) = makes(&event)? else { continue };
        let before = there.insert(key.clone(), made).unwrap_or(false);
        let is = |there: bool| if there { "there" } else { "not there" };
        ensure!(
            before != made,
            "event {heard}, {event} of {key}, came when the key was {} already",
            is(before)
        );
    }
    ensure!(heard > 0, "no event came");
    Ok(())
}
