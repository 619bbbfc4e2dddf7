//! What commands leave behind, in a form that must be the same on both servers.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use tests::client::{Client, Reply};
use tests::notation;
use tests::play::sorted;

use crate::judge::Judge;

/// Changes since the last save, as INFO has them.
pub(crate) fn changes_so_far(client: &mut Client) -> Result<i64> {
    let info = client.call_text("INFO persistence")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    line.context("INFO counts no changes")?.trim().parse().context("no number of changes")
}

/// What is counted of commands, errors and keys, by the names that INFO gives.
pub(crate) fn statistics(client: &mut Client) -> Result<BTreeMap<String, String>> {
    const COUNTED: [&str; 5] = [
        "keyspace_hits",
        "keyspace_misses",
        "total_error_replies",
        "unexpected_error_replies",
        "expired_subkeys",
    ];
    let info = client.call_text("INFO stats commandstats errorstats")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let counted = info.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        if let Some(command) = name.strip_prefix("cmdstat_") {
            // Without the times.
            let counts = value.split(',').filter(|part| !part.starts_with("usec"));
            // What the harness asks to begin and to end with, the list as long as it takes.
            let own = ["info", "config|resetstat", "client|list"].contains(&command);
            return (!own).then(|| (name.to_owned(), counts.collect::<Vec<_>>().join(",")));
        }
        let chosen = COUNTED.contains(&name) || name.starts_with("errorstat_");
        chosen.then(|| (name.to_owned(), value.to_owned()))
    });
    Ok(counted.collect())
}

/// Before a time that is compared by [`is_about_the_same`].
const ABOUT: &str = "about ";

/// Whether two times differ by less than a minute: relative times were given to two clocks.
pub(crate) fn is_about_the_same(one: &str, other: &str) -> bool {
    let time = |text: &str| text.strip_prefix(ABOUT).and_then(|time| time.parse::<u64>().ok());
    let (one, other) = (time(one), time(other));
    one.zip(other).is_some_and(|(one, other)| one.abs_diff(other) < 60_000)
}

/// What a key holds, as texts that must be the same on both servers.
pub(crate) fn content(client: &mut Client, key: &[u8]) -> Result<Vec<(&'static str, String)>> {
    let call = |client: &mut Client, words: &[&[u8]]| -> Result<Reply> { client.call(words) };
    let show = |reply: &Reply| notation::lines(reply).join("\n");
    let kind = call(client, &[b"TYPE", key])?;
    let encoding = call(client, &[b"OBJECT", b"ENCODING", key])?;
    let expiry = match call(client, &[b"PEXPIRETIME", key])? {
        Reply::Integer(time) if time > 0 => format!("{ABOUT}{time}"),
        other => show(&other),
    };
    let value = match kind.text().unwrap_or_default() {
        b"string" => call(client, &[b"GET", key])?,
        b"list" => call(client, &[b"LRANGE", key, b"0", b"-1"])?,
        b"set" => sorted(call(client, &[b"SMEMBERS", key])?, 1),
        b"hash" => sorted(call(client, &[b"HGETALL", key])?, 2),
        b"zset" => call(client, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])?,
        b"stream" => stream_content(client, key)?,
        other => bail!("a key of type {}", String::from_utf8_lossy(other)),
    };
    let times = if kind.text() == Some(b"hash") { field_times(client, key)? } else { Reply::Nil };
    let payload = call(client, &[b"DUMP", key])?;
    let is_ordered = match kind.text().unwrap_or_default() {
        // The times of deliveries are those of two clocks.
        b"stream" => false,
        // Where a list is cut into nodes is each server's own affair; its elements were compared.
        b"list" => false,
        b"string" | b"zset" => true,
        // A set that was stored from a table has the order of that table.
        b"set" => encoding.text() == Some(b"intset"),
        // A hash whose fields no longer expire is written like any other here.
        b"hash" if encoding.text() == Some(b"listpackex") => has_times(&times),
        _ => encoding.text() != Some(b"hashtable"),
    };
    let payload = if is_ordered { show(&comparable(payload)) } else { String::new() };
    let shown_encoding = if kind.text() == Some(b"set") && has_chance_encoding(client, &value)? {
        "listpack or hashtable".to_owned()
    } else {
        show(&encoding)
    };
    Ok(vec![
        ("type", show(&kind)),
        ("value", show(&value)),
        ("times of fields", show(&times)),
        ("encoding", shown_encoding),
        ("expiry", expiry),
        ("payload", payload),
    ])
}

/// Whether a set may be a listpack or a table by chance: what SUNIONSTORE and SDIFFSTORE store is a
/// table if more integers than fit an intset come before the first text, and they come in the order
/// of the tables that they are taken from.
fn has_chance_encoding(client: &mut Client, members: &Reply) -> Result<bool> {
    let limit = client.call(&[b"CONFIG".as_slice(), b"GET", b"set-max-intset-entries"])?;
    let limit = limit.elements().unwrap_or_default().pop();
    let limit: usize =
        std::str::from_utf8(limit.as_ref().and_then(Reply::text).unwrap_or_default())?.parse()?;
    let members = members.clone().elements().unwrap_or_default();
    let is_integer = |member: &&Reply| {
        let text = std::str::from_utf8(member.text().unwrap_or_default());
        text.is_ok_and(|text| text.parse::<i64>().is_ok())
    };
    let integers = members.iter().filter(is_integer).count();
    Ok(integers > limit && integers < members.len())
}

/// Whether one of these fields with their times expires.
fn has_times(times: &Reply) -> bool {
    let times = times.clone().elements().unwrap_or_default();
    times.iter().any(|time| matches!(time, Reply::Integer(1..)))
}

/// A payload without what is each server's own: of a packed hash of which fields expire the
/// reference does not always know any more when the first one does, and with that the checksum is
/// another.
fn comparable(payload: Reply) -> Reply {
    match payload.text() {
        Some([25, _, _, _, _, _, _, _, _, block @ .., _, _, _, _, _, _, _, _]) => {
            Reply::Bulk(block.to_vec())
        }
        _ => payload,
    }
}

/// The fields of a hash with the times at which they expire.
fn field_times(client: &mut Client, key: &[u8]) -> Result<Reply> {
    let mut fields = client.call(&[b"HKEYS", key])?.elements().unwrap_or_default();
    fields.sort_by(|one, other| one.text().cmp(&other.text()));
    let count = fields.len().to_string();
    let mut words: Vec<&[u8]> = vec![b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()];
    words.extend(fields.iter().filter_map(Reply::text));
    let times = client.call(&words)?.elements().unwrap_or_default();
    Ok(Reply::Array(fields.into_iter().chain(times).collect()))
}

/// All of a stream but times, and nodes of the index of its blocks.
fn stream_content(client: &mut Client, key: &[u8]) -> Result<Reply> {
    let mut parts = vec![client.call(&[b"XRANGE", key, b"-", b"+"])?];
    let about = client.call(&[b"XINFO".as_slice(), b"STREAM", key])?.elements().unwrap_or_default();
    let named = |pair: &[Reply]| pair[0].text() != Some(b"radix-tree-nodes");
    parts.extend(about.chunks(2).filter(|pair| named(pair)).flatten().cloned());
    let groups = client.call(&[b"XINFO".as_slice(), b"GROUPS", key])?;
    parts.push(groups.clone());
    for group in groups.elements().unwrap_or_default() {
        let fields = group.elements().unwrap_or_default();
        let name = fields.get(1).and_then(Reply::text).unwrap_or_default().to_vec();
        parts.push(client.call(&[b"XPENDING", key, &name])?);
        let pending = client.call(&[b"XPENDING", key, &name, b"-", b"+", b"1000"])?;
        for own in pending.elements().unwrap_or_default() {
            let mut own = own.elements().unwrap_or_default();
            // Without how long ago it was delivered.
            own.drain(2..own.len().min(3));
            parts.extend(own);
        }
        let consumers = client.call(&[b"XINFO".as_slice(), b"CONSUMERS", key, &name])?;
        for consumer in consumers.elements().unwrap_or_default() {
            parts.extend(consumer.elements().unwrap_or_default().into_iter().take(4));
        }
    }
    Ok(Reply::Array(parts))
}

/// Hands a key's payload from each server to the other; says what went wrong.
pub(crate) fn exchanged(
    judge: &Judge,
    clients: &mut [Client; 2],
    key: &[u8],
) -> Result<Option<&'static str>> {
    const GUEST: &[u8] = b"from the other server";
    let routes = [(0, 1, "of dunlin is not restored"), (1, 0, "of the reference is not restored")];
    for (from, to, failure) in routes {
        // Valkey refuses the version of what dunlin and Redis write.
        if to == 1 && !judge.has_our_insides() {
            continue;
        }
        let payload = clients[from].call(&[b"DUMP", key])?;
        let payload = payload.text().unwrap_or_default();
        let words: [&[u8]; 5] = [b"RESTORE", GUEST, b"0", payload, b"REPLACE"];
        let restored = clients[to].call(&words)?;
        let (guest, host) = (content(&mut clients[to], GUEST), content(&mut clients[to], key)?);
        if restored.is_error() || guest?[..3] != host[..3] {
            return Ok(Some(failure));
        }
        clients[to].call(&[b"DEL", GUEST])?;
    }
    Ok(None)
}
