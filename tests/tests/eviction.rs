//! A limit on memory, as clients in a hurry see it: writes are refused only when nothing is left
//! that may be evicted, and what remains is just under the limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::random::Random;
use tests::server::{Server, Target};

/// Commands that are sent before their replies are read.
const PIPELINE: usize = 500;
const VALUE: usize = 100;

/// Sends that many SETs of new keys, and counts those that are refused.
fn fill(clients: &mut [Client], random: &mut Random, rounds: usize, expire: bool) -> Result<usize> {
    let value = "x".repeat(VALUE);
    let mut refused = 0;
    for _ in 0..rounds {
        for client in clients.iter_mut() {
            let mut request = Vec::new();
            for _ in 0..PIPELINE {
                let key = format!("key:{}", random.bits());
                let mut words = vec!["SET", &key, &value];
                if expire {
                    words.extend(["EX", "100000"]);
                }
                encode(&words, &mut request);
            }
            client.send_raw(&request)?;
        }
        for client in clients.iter_mut() {
            for _ in 0..PIPELINE {
                let Received::Reply(reply) = client.receive()? else {
                    anyhow::bail!("the server closed the connection")
                };
                refused += usize::from(reply != Reply::Status(b"OK".to_vec()));
            }
        }
    }
    Ok(refused)
}

/// What a server uses that has nothing to do: its threads still allocate when it answers already.
fn used_when_settled(client: &mut Client) -> Result<u64> {
    let mut used = number(client, "used_memory")?;
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        sleep(Duration::from_millis(50));
        let now = number(client, "used_memory")?;
        if now != used {
            (used, since) = (now, Instant::now());
        }
    }
    Ok(used)
}

/// The same, without what does not count against the limit.
fn counted_when_settled(client: &mut Client) -> Result<u64> {
    let used = used_when_settled(client)?;
    Ok(used.saturating_sub(number(client, "mem_not_counted_for_evict")?))
}

fn keys(client: &mut Client) -> Result<usize> {
    match client.call_text("DBSIZE")? {
        Reply::Integer(count) => Ok(usize::try_from(count)?),
        other => anyhow::bail!("DBSIZE answers {other:?}"),
    }
}

/// How many keys take this many bytes, tables included.
fn that_fit(bytes: u64, expire: bool) -> Result<usize> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut clients = [server.connect()?];
    let mut control = server.connect()?;
    let (empty, mut random) = (used_when_settled(&mut control)?, Random::new(1));
    while number(&mut control, "used_memory")? < empty + bytes {
        let value = "x".repeat(VALUE);
        for _ in 0..20 {
            let key = format!("key:{}", random.bits());
            let mut words = vec!["SET", &key, &value];
            if expire {
                words.extend(["EX", "100000"]);
            }
            clients[0].call(&words)?;
        }
    }
    keys(&mut control)
}

/// Fills a server that may use this many bytes more than when it was empty.
fn overfill(bytes: u64, policy: &str, connections: usize, options: &[(&str, &str)]) -> Result<()> {
    let server = Server::start(Target::Dunlin, options)?;
    let mut clients: Vec<Client> =
        (0..connections).map(|_| server.connect()).collect::<Result<_>>()?;
    let mut control = server.connect()?;
    let limit = used_when_settled(&mut control)? + bytes;
    control.call_text(&format!("CONFIG SET maxmemory-policy {policy} maxmemory {limit}"))?;
    let expire = policy.starts_with("volatile");
    let fit = that_fit(bytes, expire)?;
    let rounds = 5 * fit / PIPELINE / connections + 5;
    let refused = fill(&mut clients, &mut Random::new(7), rounds, expire)?;
    drop(clients);
    let (left, used) = (keys(&mut control)?, number(&mut control, "used_memory")?);
    let told = format!(
        "{policy}, {bytes} bytes, {connections} connections: {left} keys where {fit} fit, {used} \
         bytes of {limit} in use, {refused} of {} writes refused",
        rounds * PIPELINE * connections
    );
    ensure!(refused == 0, "{told}");
    ensure!(left * 100 >= fit * 85 && left * 85 <= fit * 100, "{told}");
    Ok(())
}

#[test]
fn what_remains_is_just_under_a_small_limit() -> Result<()> {
    for policy in
        ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl", "volatile-random"]
    {
        overfill(1 << 20, policy, 1, &[])?;
    }
    Ok(())
}

#[test]
fn several_workers_evict_no_more_than_one() -> Result<()> {
    overfill(2 << 20, "allkeys-lru", 6, &[("threads", "3")])?;
    overfill(16 << 20, "allkeys-random", 4, &[("threads", "2")])
}

#[test]
fn what_a_snapshot_has_still_to_write_evicts_nothing() -> Result<()> {
    const KEYS: usize = 60;
    let value = "x".repeat(50_000);
    let item = "x".repeat(1000);
    for kind in ["string", "list"] {
        let server = Server::start(Target::Dunlin, &[("save", "")])?;
        let mut client = server.connect()?;
        let put = |client: &mut Client, number: usize| {
            let key = format!("key:{number}");
            let mut words = vec!["SET", &key, &value];
            if kind == "list" {
                client.call(&["UNLINK", &key])?;
                words = vec!["RPUSH", &key];
                words.extend([item.as_str(); 50]);
            }
            client.call(&words)
        };
        for number in 0..KEYS {
            put(&mut client, number)?;
        }
        let limit = used_when_settled(&mut client)? + 1_000_000;
        // The snapshot gets no further than its first keys.
        for setting in ["rdb-key-save-delay 100000", "maxmemory-policy allkeys-lru"] {
            client.call_text(&format!("CONFIG SET {setting}"))?;
        }
        client.call_text(&format!("CONFIG SET maxmemory {limit}"))?;
        client.call_text("BGSAVE")?;
        for number in 0..KEYS {
            put(&mut client, number)?;
        }
        ensure!(number(&mut client, "rdb_bgsave_in_progress")? == 1);
        let evicted = number(&mut client, "evicted_keys")?;
        ensure!(evicted == 0 && keys(&mut client)? == KEYS, "{kind}: {evicted} keys were evicted");
    }
    Ok(())
}

/// A server whose data may become this many bytes larger than it is. `prepare` makes the data.
fn limited(
    options: &[(&str, &str)],
    room: i64,
    prepare: impl FnOnce(&mut Client) -> Result<()>,
) -> Result<(Server, Client)> {
    let server = Server::start(Target::Dunlin, options)?;
    let mut client = server.connect()?;
    prepare(&mut client)?;
    let used = used_when_settled(&mut client)?;
    let data = used - number(&mut client, "mem_not_counted_for_evict")?;
    let limit = data.saturating_add_signed(room);
    client.call_text(&format!("CONFIG SET maxmemory-policy allkeys-random maxmemory {limit}"))?;
    Ok((server, client))
}

fn put_small(client: &mut Client, count: usize) -> Result<()> {
    for number in 0..count {
        client.call(&["SET", &format!("key:{number}"), "value"])?;
    }
    Ok(())
}

#[test]
fn deletions_that_wait_for_a_slow_disk_evict_no_further_keys() -> Result<()> {
    const KEYS: usize = 10_000;
    let options = [("appendonly", "yes"), ("enable-debug-command", "yes")];
    let (_server, mut client) = limited(&options, 0, |client| {
        put_small(client, KEYS)?;
        // The effects of all that follows stay in memory.
        client.call_text("DEBUG AOF-FLUSH-SLEEP 2000000").map(drop)
    })?;
    let data =
        number(&mut client, "used_memory")? - number(&mut client, "mem_not_counted_for_evict")?;
    client.call_text(&format!("CONFIG SET maxmemory {}", data - 60_000))?;
    // In one pipeline: each reply waits until the system has its write.
    let mut requests = Vec::new();
    for _ in 0..200 {
        encode(&["SET", "hot", "value"], &mut requests);
    }
    client.send_raw(&requests)?;
    for _ in 0..200 {
        client.receive()?;
    }
    let left = keys(&mut client)?;
    client.call_text("DEBUG AOF-FLUSH-SLEEP 0")?;
    // A key takes more than 20 bytes: 60 000 bytes are no more than 3 000 keys.
    ensure!(left >= KEYS - 4000, "{left} of {KEYS} keys are left");
    Ok(())
}

#[test]
fn a_large_value_that_is_saved_evicts_nothing() -> Result<()> {
    const KEYS: usize = 2000;
    // It compresses by a little: the result is in memory until its length is known.
    let mut random = Random::new(11);
    let mut large = Vec::new();
    for _ in 0..10_000 {
        large.extend((0..700).map(|_| random.bits() as u8));
        large.extend([b'x'; 300]);
    }
    let kinds: [&[&str]; 3] = [&["SET", "large"], &["HSET", "large", "field"], &["RPUSH", "large"]];
    let ways: [(&str, &[(&str, &str)]); 3] = [
        ("BGSAVE", &[("save", "")]),
        ("BGREWRITEAOF", &[("save", ""), ("appendonly", "yes")]),
        ("BGREWRITEAOF", &[("save", ""), ("appendonly", "yes"), ("aof-use-rdb-preamble", "no")]),
    ];
    for (words, (command, options)) in kinds.iter().flat_map(|kind| ways.map(|way| (kind, way))) {
        let (_server, mut client) = limited(options, 1_000_000, |client| {
            put_small(client, KEYS)?;
            let mut request = Vec::new();
            let mut all: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            all.push(&large);
            encode(&all, &mut request);
            client.send_raw(&request)?;
            client.receive()?;
            if words[0] == "HSET" {
                // With so many fields it is a table, which is read in pieces.
                for field in 0..600 {
                    client.call(&["HSET", "large", &field.to_string(), "v"])?;
                }
            }
            Ok(())
        })?;
        client.call_text(command)?;
        let mut refused = 0;
        let running =
            ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"];
        while running.iter().map(|name| number(&mut client, name)).sum::<Result<u64>>()? > 0 {
            refused += u64::from(
                client.call(&["SET", "key:0", "value"])? != Reply::Status(b"OK".to_vec()),
            );
        }
        let evicted = number(&mut client, "evicted_keys")?;
        ensure!(
            (evicted, refused) == (0, 0),
            "{words:?} {command}: {evicted} keys, {refused} refused"
        );
    }
    Ok(())
}

#[test]
fn followers_of_changes_evict_nothing() -> Result<()> {
    const KEYS: usize = 5000;
    let (_server, mut client) = limited(&[], 200_000, |client| put_small(client, KEYS))?;
    client.call_text("CHANGES NOW")?;
    for _ in 0..4 {
        put_small(&mut client, KEYS)?;
    }
    let left = keys(&mut client)?;
    ensure!(left == KEYS, "{left} of {KEYS} keys are left");
    Ok(())
}

#[test]
fn what_is_flushed_and_filled_again_beside_a_save_is_kept_once() -> Result<()> {
    const KEYS: usize = 5000;
    let server = Server::start(Target::Dunlin, &[("save", "")])?;
    let mut client = server.connect()?;
    put_small(&mut client, KEYS)?;
    client.call_text("CONFIG SET rdb-key-save-delay 100000")?;
    client.call_text("BGSAVE")?;
    let mut refill = || -> Result<u64> {
        // FLUSHALL would end the save.
        client.call_text("FLUSHDB SYNC")?;
        put_small(&mut client, KEYS)?;
        number(&mut client, "used_memory")
    };
    let first = refill()?;
    for _ in 0..4 {
        refill()?;
    }
    // Another thread may still be giving back what was emptied last.
    wait_until("no more is kept than after the first round", || {
        Ok(number(&mut client, "used_memory")? < first + 200_000)
    })?;
    ensure!(number(&mut client, "rdb_bgsave_in_progress")? == 1);
    Ok(())
}

#[test]
fn a_tiny_limit_refuses_nothing() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut control = server.connect()?;
    let limit = used_when_settled(&mut control)? + 100_000;
    control.call_text(&format!("CONFIG SET maxmemory-policy allkeys-lru maxmemory {limit}"))?;
    let refused = fill(&mut [server.connect()?], &mut Random::new(3), 40, false)?;
    ensure!(refused == 0, "{refused} writes were refused");
    ensure!(keys(&mut control)? > 50, "{} keys are left", keys(&mut control)?);
    Ok(())
}

/// The space in which requests are read and parsed does not count for as long as they run. What
/// others may use of the limit must not depend on the last requests of a worker that has nothing to
/// do since.
#[test]
fn finished_requests_do_not_raise_the_limit() -> Result<()> {
    const CLIENTS: u64 = 20;
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let mut control = server.connect()?;
    control.call_text("CONFIG SET maxmemory 200mb")?;
    let mut unfinished = b"*30001\r\n$4\r\nMSET\r\n".to_vec();
    unfinished.extend_from_slice(&b"$5\r\nabcde\r\n".repeat(20_000));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect::<Result<_>>()?;
    clients.iter_mut().try_for_each(|client| client.send_raw(&unfinished))?;
    let until = Instant::now() + Duration::from_secs(20);
    while number(&mut control, "mem_clients_normal")? < CLIENTS * unfinished.len() as u64 {
        ensure!(Instant::now() < until, "the requests are not read");
        sleep(Duration::from_millis(50));
    }
    drop(clients);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let uncounted = number(&mut control, "mem_not_counted_for_evict")?;
        if uncounted < 100_000 {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{uncounted} bytes are not counted");
        sleep(Duration::from_millis(50));
    }
}

/// Threads free what other threads have allocated. The figure that the limit is compared with must
/// stay right for as long as a server runs, whatever short-lived threads and connections come and
/// go.
#[test]
fn the_used_memory_stays_right_for_long() -> Result<()> {
    let options = [("threads", "2"), ("appendonly", "yes"), ("appendfsync", "everysec")];
    let server = Server::start(Target::Dunlin, &options)?;
    let mut control = server.connect()?;
    control.call_text("SET key 0")?;
    let settled = counted_when_settled(&mut control)?;
    for _ in 0..1000 {
        server.connect()?.call_text("PING")?;
    }
    let after_connections = counted_when_settled(&mut control)?;
    for _ in 0..1000 {
        control.call_text("INCR key")?;
        control.call_text("WAITAOF 1 0 5000")?;
    }
    let after_syncs = counted_when_settled(&mut control)?;
    for (before, after) in [(settled, after_connections), (after_connections, after_syncs)] {
        let drift = after.abs_diff(before);
        ensure!(drift < 100_000, "{before} bytes have become {after}");
    }
    Ok(())
}
