//! Primaries and replicas that are killed while they copy, follow and change places: what is
//! started again has what the other end has.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply, encode};
use tests::false_primary::{EMPTY_FILE, FalseLink, FalsePrimary, HISTORY, full_sync};
use tests::observe::{figure, wait_until};
use tests::proxy::Proxy;
use tests::random::Random;
use tests::replication::{Traffic, check_alike, follow};
use tests::server::{Server, Target};

/// A primary that keeps what it acknowledges.
const PRIMARY: [(&str, &str); 4] = [
    ("repl-diskless-sync-delay", "0"),
    ("repl-backlog-size", "256mb"),
    ("appendonly", "yes"),
    ("appendfsync", "always"),
];

fn is(client: &mut Client, name: &str, value: &str) -> Result<bool> {
    Ok(figure(client, name)? == value)
}

/// Runs `body` while a client writes, who connects again when its server is killed.
fn under_writes<R>(port: u16, seed: u64, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let over = AtomicBool::new(false);
    scope(|scope| {
        let writer = scope.spawn(|| {
            let mut traffic = Traffic::new(seed);
            let mut batches = 0_u64;
            while !over.load(Relaxed) {
                let batch = Client::connect(port).and_then(|mut client| {
                    while !over.load(Relaxed) {
                        traffic.write(&mut client, 10)?;
                        batches += 1;
                        sleep(Duration::from_millis(1));
                    }
                    Ok(())
                });
                if batch.is_err() {
                    sleep(Duration::from_millis(5));
                }
            }
            batches
        });
        let result = body();
        over.store(true, Relaxed);
        let batches = writer.join().expect("no panic");
        ensure!(batches > 0, "nothing was written");
        result
    })
}

fn populate(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    let reply = client.call_text("DEBUG POPULATE 40000 key 100")?;
    ensure!(!reply.is_error(), "{reply:?}");
    let reply = client.call_text("BGREWRITEAOF")?;
    ensure!(!reply.is_error(), "{reply:?}");
    wait_until("the file has it", || is(&mut client, "aof_rewrite_in_progress", "0"))
}

/// Waits until a replica receives or loads a copy. Returns false if it needs none any more.
fn wait_for_copy(replica: &Server) -> Result<bool> {
    let mut client = replica.connect()?;
    let mut is_up = false;
    wait_until("a copy begins", || {
        is_up = is(&mut client, "master_link_status", "up")?;
        Ok(is_up || is(&mut client, "master_sync_in_progress", "1")?)
    })?;
    Ok(!is_up)
}

/// Kills one end in full copies, at instants that a seed chooses.
fn kills_in_copies(kills_primary: bool, options: &[(&str, &str)], seed: u64) -> Result<()> {
    let mut primary = Server::start(Target::Dunlin, &PRIMARY)?;
    populate(&primary)?;
    let proxy = Proxy::start(primary.port())?;
    // A copy takes more than a second.
    proxy.split(3000, Duration::from_millis(1));
    let replicaof = format!("127.0.0.1 {}", proxy.port());
    let options = [options, &[("replicaof", &replicaof)]].concat();
    let mut replica = Server::start(Target::Dunlin, &options)?;
    let mut random = Random::new(seed);
    under_writes(primary.port(), seed, || {
        for round in 0..4 {
            if !wait_for_copy(&replica)? {
                ensure!(round > 0, "there was no copy");
                break;
            }
            sleep(Duration::from_millis(random.below(700) as u64));
            let killed = if kills_primary { &mut primary } else { &mut replica };
            killed.kill();
            killed.start_again()?;
        }
        proxy.split(usize::MAX, Duration::ZERO);
        Ok(())
    })?;
    check_alike(&primary, &replica)
}

#[test]
fn a_replica_that_is_killed_in_a_copy_begins_again() -> Result<()> {
    let ways: [&[(&str, &str)]; 3] = [
        &[("repl-diskless-load", "swapdb")],
        &[("repl-diskless-load", "disabled"), ("appendonly", "yes")],
        &[("repl-diskless-load", "swapdb"), ("appendonly", "yes")],
    ];
    for (number, options) in ways.into_iter().enumerate() {
        kills_in_copies(false, options, number as u64).with_context(|| format!("{options:?}"))?;
    }
    Ok(())
}

#[test]
fn a_primary_that_is_killed_in_a_copy_is_asked_again() -> Result<()> {
    kills_in_copies(true, &[("appendonly", "yes")], 1)
}

/// Kills one end while it follows, or is followed.
fn kills_while_following(kills_primary: bool, target: Target, seed: u64) -> Result<()> {
    let mut primary = Server::start(Target::Dunlin, &PRIMARY)?;
    let replicaof = format!("127.0.0.1 {}", primary.port());
    let mut replica = Server::start(target, &[("replicaof", &replicaof), ("appendonly", "yes")])?;
    let mut random = Random::new(seed);
    under_writes(primary.port(), seed, || {
        for _ in 0..6 {
            let mut client = replica.connect()?;
            wait_until("it follows", || is(&mut client, "master_link_status", "up"))?;
            sleep(Duration::from_millis(random.below(300) as u64));
            let killed = if kills_primary { &mut primary } else { &mut replica };
            killed.kill();
            killed.start_again()?;
        }
        Ok(())
    })?;
    check_alike(&primary, &replica)
}

#[test]
fn a_replica_that_is_killed_has_what_its_primary_has() -> Result<()> {
    kills_while_following(false, Target::Dunlin, 1)
}

#[test]
fn a_primary_that_is_killed_has_what_its_replicas_have() -> Result<()> {
    // No Valkey before version 9 is told of fields that expire.
    for target in [Target::Dunlin, Target::Reference] {
        kills_while_following(true, target, 2).with_context(|| format!("{target:?}"))?;
    }
    Ok(())
}

/// A replica is promoted in place of its primary, and is killed at about that instant.
#[test]
fn a_replica_that_is_killed_while_it_is_promoted_is_followed_all_the_same() -> Result<()> {
    for seed in 0..6 {
        let mut primary = Server::start(Target::Dunlin, &PRIMARY)?;
        let options = [&PRIMARY[..], &[("threads", "2")]].concat();
        let mut heir = Server::start(Target::Dunlin, &options)?;
        let other = Server::start(Target::Dunlin, &[])?;
        for replica in [&heir, &other] {
            follow(replica, primary.port())?;
        }
        let mut random = Random::new(seed);
        under_writes(primary.port(), seed, || {
            for replica in [&heir, &other] {
                let mut client = replica.connect()?;
                wait_until("it follows", || is(&mut client, "master_link_status", "up"))?;
            }
            sleep(Duration::from_millis(random.below(100) as u64));
            Ok(())
        })?;
        primary.kill();
        let mut client = heir.connect()?;
        client.send(&["REPLICAOF", "NO", "ONE"])?;
        client.send(&["SET", "own", "1"])?;
        sleep(Duration::from_micros(random.below(3000) as u64));
        heir.kill();
        heir.start_again()?;
        // A setting that was not written down is gone with the process.
        ensure!(is(&mut heir.connect()?, "role", "master")?);
        follow(&other, heir.port())?;
        under_writes(heir.port(), seed + 100, || {
            sleep(Duration::from_millis(100));
            Ok(())
        })?;
        check_alike(&heir, &other).with_context(|| format!("seed {seed}"))?;
        primary.start_again()?;
        follow(&primary, heir.port())?;
        check_alike(&heir, &primary).with_context(|| format!("the former primary, seed {seed}"))?;
    }
    Ok(())
}

/// Commands of a stream.
fn stream(lines: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    lines.iter().for_each(|line| encode(&line.split(' ').collect::<Vec<_>>(), &mut bytes));
    bytes
}

/// Gives all keys in an order.
const SORTED_KEYS: &str = "local keys = redis.call('KEYS', '*') table.sort(keys) return keys";

/// The keys that a server has in two databases.
fn keys(server: &Server) -> Result<Vec<Reply>> {
    let mut client = server.connect()?;
    let list = |database: &str| {
        client.call(&["SELECT", database])?;
        client.call(&["EVAL", SORTED_KEYS, "0"])
    };
    ["0", "3"].into_iter().map(list).collect()
}

/// A replica that has a file, and the link that it has to a primary whose data are empty. What
/// comes before the first file is complete would be in its base.
fn replica_of(primary: &FalsePrimary, options: &[(&str, &str)]) -> Result<(Server, FalseLink)> {
    let of = format!("127.0.0.1 {}", primary.port()?);
    let options = [&[("appendonly", "yes"), ("replicaof", &*of)], options].concat();
    let replica = Server::start(Target::Dunlin, &options)?;
    let mut link = primary.accept()?;
    link.send(&full_sync(0, EMPTY_FILE))?;
    wait_until("the first file is complete", || {
        Ok(replica.log().contains("rewrite finished successfully"))
    })?;
    Ok((replica, link))
}

/// What a replica has not applied is in its file, since replicas of its own may know it. A load
/// has the same outcome as the link, whatever the server has become.
#[test]
fn what_a_replica_did_not_know_is_left_out_when_its_file_is_loaded() -> Result<()> {
    for read_only in ["yes", "no"] {
        let primary = FalsePrimary::listen()?;
        let (mut replica, mut link) = replica_of(&primary, &[("replica-read-only", read_only)])?;
        let sent = stream(&[
            "SELECT 0",
            "SET a 1",
            "NOSUCH x",
            "SET b 2",
            "MULTI",
            "SET c 3",
            "NOSUCH x",
            "EXEC",
            "MULTI",
            "SET d 4",
            "EXEC",
            "NOSUCH y",
            // One that fails in part selects its database nevertheless.
            "MULTI",
            "SELECT 3",
            "SET f 6",
            "LPUSH f x",
            "EXEC",
            "SET g 7",
        ]);
        link.send(&sent)?;
        let mut client = replica.connect()?;
        wait_until("all is applied", || {
            Ok(figure(&mut client, "slave_repl_offset")? == sent.len().to_string())
        })?;
        if read_only == "no" {
            client.call_text("SET own 1")?;
        }
        let before = keys(&replica)?;
        // As a replica it asks for what comes next.
        replica.kill();
        replica.start_again()?;
        drop(link);
        let link = primary.accept()?;
        let asked = link.asked().last().context("it asks")?;
        ensure!(asked[1..] == [HISTORY.to_owned(), (sent.len() + 1).to_string()], "{asked:?}");
        ensure!(keys(&replica)? == before, "{read_only}: {:?}", keys(&replica)?);
        // As a primary it has the same data.
        replica.kill();
        replica.add_options(&[("replicaof", "no one")]);
        replica.start_again()?;
        ensure!(is(&mut replica.connect()?, "role", "master")?);
        ensure!(keys(&replica)? == before, "{read_only}: {:?}", keys(&replica)?);
        let log = replica.log();
        for left_out in ["Leaving out 'NOSUCH'", "Leaving out 'SET'"] {
            ensure!(log.contains(left_out), "{log}");
        }
    }
    Ok(())
}

/// What comes next would go into another database.
#[test]
fn a_transaction_that_selects_a_database_and_is_discarded_ends_the_link() -> Result<()> {
    for read_only in ["yes", "no"] {
        let primary = FalsePrimary::listen()?;
        let (replica, mut link) = replica_of(&primary, &[("replica-read-only", read_only)])?;
        let sent = stream(&["SELECT 0", "SET a 1"]);
        link.send(&sent)?;
        link.send(&stream(&["MULTI", "SELECT 3", "NOSUCH x", "EXEC", "SET b 2"]))?;
        let why = "a transaction that selects a database was discarded";
        wait_until("the link has ended", || Ok(replica.log().contains(why)))?;
        ensure!(replica.log().contains("'nosuch' after offset"), "{}", replica.log_tail());
        let applied = figure(&mut replica.connect()?, "slave_repl_offset")?;
        ensure!(applied == sent.len().to_string(), "{applied}");
        ensure!(figure(&mut replica.connect()?, "db0")?.starts_with("keys=1,"));
    }
    Ok(())
}

/// What comes after the first SELECT would go into the database before.
#[test]
fn a_transaction_that_selects_a_database_too_many_is_not_begun() -> Result<()> {
    // The second one has a wrong number of words, and is discarded in any case.
    for (read_only, write) in
        ["yes", "no"].iter().flat_map(|own| ["SET a x", "SET a"].map(|write| (*own, write)))
    {
        let primary = FalsePrimary::listen()?;
        let (mut replica, mut link) = replica_of(&primary, &[("replica-read-only", read_only)])?;
        let sent = stream(&["SELECT 0", "SET a 1"]);
        link.send(&sent)?;
        link.send(&stream(&["MULTI", "SELECT 99", write, "SELECT 0", "SET b y", "EXEC"]))?;
        let why = "more databases than `databases` allows";
        wait_until("the link has ended", || Ok(replica.log().contains(why)))?;
        let applied = figure(&mut replica.connect()?, "slave_repl_offset")?;
        ensure!(applied == sent.len().to_string(), "{applied}");
        let before = keys(&replica)?;
        ensure!(replica.connect()?.call_text("GET a")?.text() == Some(b"1"), "{before:?}");
        replica.kill();
        replica.start_again()?;
        ensure!(keys(&replica)? == before, "{:?}", keys(&replica)?);
    }
    Ok(())
}
