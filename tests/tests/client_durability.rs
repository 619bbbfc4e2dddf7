//! Durability and freshness that clients choose: CLIENT DURABILITY, POSITION and READAFTER.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, number, wait_until};
use tests::process::{resume, stop};
use tests::server::{Server, Target};

/// Long enough for a reply that does not wait, on a machine that is busy.
const MOMENT: Duration = Duration::from_millis(300);

fn primary(options: &[(&str, &str)]) -> Result<Server> {
    let usual = [("threads", "2"), ("repl-diskless-sync-delay", "0"), ("save", "")];
    Server::start(Target::Dunlin, &[&usual, options].concat())
}

/// A replica that follows, and has said so.
fn follower(target: Target, options: &[(&str, &str)], primary: &Server) -> Result<Server> {
    let server = Server::start(target, options)?;
    let port = primary.port().to_string();
    let reply = server.connect()?.call(&["REPLICAOF", "127.0.0.1", &port])?;
    ensure!(!reply.is_error(), "{reply:?}");
    let mut client = server.connect()?;
    wait_until("the link is up", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
    let mut own = primary.connect()?;
    say(&mut own, "SET first 1")?;
    wait_until("the replica has the write", || {
        Ok(own.call_text("WAIT 1 100")? == Reply::Integer(1))
    })?;
    Ok(server)
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Integer(number) => number.to_string(),
        Reply::Nil => "(nil)".into(),
        other => String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned(),
    }
}

fn say(client: &mut Client, command: &str) -> Result<String> {
    Ok(text(&client.call_text(command)?))
}

fn next(client: &mut Client) -> Result<String> {
    match client.receive()? {
        Received::Reply(reply) => Ok(text(&reply)),
        Received::Closed => Ok("closed".into()),
    }
}

fn expect(client: &mut Client, command: &str, expected: &str) -> Result<()> {
    let reply = say(client, command)?;
    ensure!(reply == expected, "{command}: {reply}");
    Ok(())
}

/// A connection whose replies are held is not one that can become a replica.
#[test]
fn a_reply_that_is_held_is_not_lost_to_psync() -> Result<()> {
    for request in ["PSYNC ? -1", "SYNC"] {
        let server = primary(&[("durability-timeout", "300")])?;
        let mut client = server.connect()?;
        expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
        client.send_raw(format!("SET k v\r\n{request}\r\nPING\r\n").as_bytes())?;
        let told = "NODURABLE the write is done and stays: in memory, at 0 of 1 replicas; \
                    durability-timeout is over";
        for expected in [told, "ERR SYNC and PSYNC are invalid with pending output", "PONG"] {
            let reply = next(&mut client)?;
            ensure!(reply == expected, "{request}: {reply}");
        }
        // When nothing is held any more, it can.
        client.send_raw(format!("{request}\r\n").as_bytes())?;
        let mut other = server.connect()?;
        wait_until("it is a replica", || Ok(number(&mut other, "connected_slaves")? == 1))?;
    }
    Ok(())
}

#[test]
fn a_choice_is_shown_and_reset_and_none_is_made_in_a_transaction() -> Result<()> {
    let server = primary(&[])?;
    let mut client = server.connect()?;
    for choice in ["DEFAULT", "MEMORY", "FSYNC", "REPLICAS 2", "REPLICAS 3 FSYNC"] {
        expect(&mut client, &format!("CLIENT DURABILITY {choice}"), "OK")?;
        expect(&mut client, "CLIENT DURABILITY", choice)?;
    }
    expect(&mut client, "RESET", "RESET")?;
    expect(&mut client, "CLIENT DURABILITY", "DEFAULT")?;
    for wrong in ["", "FSYNC 1", "REPLICAS", "REPLICAS 0", "REPLICAS 1 MEMORY"] {
        let reply = say(&mut client, &format!("CLIENT DURABILITY x {wrong}"))?;
        ensure!(reply.starts_with("ERR a durability is"), "{reply}");
    }
    expect(&mut client, "MULTI", "OK")?;
    let refused = say(&mut client, "CLIENT DURABILITY MEMORY")?;
    ensure!(refused.contains("inside a transaction"), "{refused}");
    ensure!(say(&mut client, "EXEC")?.starts_with("EXECABORT"));
    expect(&mut client, "CONFIG SET durability-timeout 77", "OK")?;
    let shown = client.call_text("CONFIG GET durability-timeout")?.elements().context("a pair")?;
    ensure!(shown.last().is_some_and(|value| text(value) == "77"), "{shown:?}");
    Ok(())
}

#[test]
fn what_can_never_be_durable_is_told_at_once_and_stays_done() -> Result<()> {
    let server = primary(&[("durability-timeout", "1000000")])?;
    let mut client = server.connect()?;
    expect(&mut client, "CLIENT DURABILITY FSYNC", "OK")?;
    let told = "NODURABLE the write is done and stays: in memory, not synced here; there is no \
                append-only file";
    expect(&mut client, "SET k v", told)?;
    expect(&mut client, "GET k", "v")?;
    expect(&mut client, "MULTI", "OK")?;
    expect(&mut client, "SET k w", "QUEUED")?;
    expect(&mut client, "EXEC", told)?;
    expect(&mut client, "GET k", "w")?;
    expect(
        &mut client,
        "LPUSH k x",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    )?;
    // Only replies can wait.
    client.send(&["CLIENT", "REPLY", "SKIP"])?;
    client.send(&["SET", "k", "x"])?;
    expect(&mut client, "GET k", "x")?;
    expect(&mut client, "CONFIG SET appendonly yes", "OK")?;
    expect(&mut client, "SET k y", "OK")?;
    ensure!(number(&mut client, "durability_not_reached")? == 2);
    ensure!(number(&mut client, "durability_waiting_clients")? == 0);
    Ok(())
}

/// It deletes the key, which is no write of its client.
#[test]
fn a_read_that_finds_a_key_expired_waits_for_nothing() -> Result<()> {
    let server = primary(&[("durability-timeout", "1000000"), ("appendonly", "yes")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    expect(&mut other, "DEBUG SET-ACTIVE-EXPIRE 0", "OK")?;
    for key in ["a", "b"] {
        expect(&mut other, &format!("SET {key} v PX 1"), "OK")?;
    }
    std::thread::sleep(Duration::from_millis(20));
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
    expect(&mut client, "GET a", "(nil)")?;
    client.send_raw(b"MULTI\r\nGET b\r\nEXEC\r\n")?;
    ensure!(next(&mut client)? == "OK" && next(&mut client)? == "QUEUED");
    let Received::Reply(reply) = client.receive()? else { anyhow::bail!("closed") };
    ensure!(reply == Reply::Array(vec![Reply::Nil]), "{reply:?}");
    ensure!(number(&mut other, "expired_keys")? == 2);
    Ok(())
}

#[test]
fn a_stopped_replica_makes_writes_not_durable() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let server = primary(&[])?;
        let replica = follower(target, &[], &server)?;
        let (mut client, mut other) = (server.connect()?, server.connect()?);
        expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
        expect(&mut client, "SET k 1", "OK")?;
        ensure!(say(&mut replica.connect()?, "GET k")? == "1", "it was acknowledged");
        stop(replica.pid())?;
        expect(&mut other, "CONFIG SET durability-timeout 400", "OK")?;
        client.send_raw(b"SET k 2\r\nGET k\r\nINCR k\r\nPING\r\n")?;
        wait_until("the writes are done", || Ok(say(&mut other, "GET k")? == "3"))?;
        let told = "NODURABLE the write is done and stays: in memory, at 0 of 1 replicas; \
                    durability-timeout is over";
        for expected in [told, "2", told, "PONG"] {
            let reply = next(&mut client)?;
            ensure!(reply == expected, "{reply}");
        }
        ensure!(number(&mut other, "durability_not_reached")? == 2);
        // A client that has gone while its reply waited leaves nothing behind.
        expect(&mut other, "CONFIG SET durability-timeout 1000000", "OK")?;
        let mut gone = server.connect()?;
        expect(&mut gone, "CLIENT DURABILITY REPLICAS 1", "OK")?;
        gone.send(&["SET", "gone", "1"])?;
        let waiting = |other: &mut Client| number(other, "durability_waiting_clients");
        wait_until("it waits", || Ok(waiting(&mut other)? == 1))?;
        let id = say(&mut other, "CLIENT ID")?;
        expect(&mut other, "CLIENT KILL TYPE normal SKIPME yes", "2")?;
        ensure!(say(&mut other, "CLIENT ID")? == id);
        wait_until("nobody waits", || Ok(waiting(&mut other)? == 0))?;
        // It gets the same writes when it goes on.
        let mut client = server.connect()?;
        expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
        client.send(&["SET", "k", "4"])?;
        wait_until("it waits", || Ok(waiting(&mut other)? == 1))?;
        resume(replica.pid())?;
        ensure!(next(&mut client)? == "OK");
    }
    Ok(())
}

/// Its replica has the stream of the primary, and none of these writes.
#[test]
fn what_a_writable_replica_writes_itself_has_no_replica() -> Result<()> {
    let first = primary(&[])?;
    let middle = follower(Target::Dunlin, &[("replica-read-only", "no")], &first)?;
    let last = Server::start(Target::Dunlin, &[])?;
    let port = middle.port().to_string();
    ensure!(!last.connect()?.call(&["REPLICAOF", "127.0.0.1", &port])?.is_error());
    let mut client = middle.connect()?;
    wait_until("it has a replica", || Ok(number(&mut client, "connected_slaves")? == 1))?;
    say(&mut first.connect()?, "SET first 2")?;
    wait_until("all have it", || Ok(say(&mut last.connect()?, "GET first")? == "2"))?;
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
    for _ in 0..2 {
        let said = say(&mut client, "SET own 1")?;
        ensure!(said.starts_with("NODURABLE"), "{said}");
    }
    Ok(())
}

/// There the stream has no byte yet.
#[test]
fn what_a_new_writable_replica_writes_itself_has_no_replica() -> Result<()> {
    let server = primary(&[("repl-ping-replica-period", "3600")])?;
    let replica = Server::start(Target::Dunlin, &[("replica-read-only", "no")])?;
    let mut client = replica.connect()?;
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
    let told = "NODURABLE the write is done and stays: in memory, at 0 of 1 replicas; this server \
                is a replica, whose own writes go nowhere";
    // Nobody is there, and nothing reads what it writes.
    expect(&mut client, "REPLICAOF 127.0.0.1 1", "OK")?;
    expect(&mut client, "SET own 1", told)?;
    expect(&mut client, &format!("REPLICAOF 127.0.0.1 {}", server.port()), "OK")?;
    wait_until("the link is up", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
    expect(&mut client, "SET own 2", told)?;
    expect(&mut client, "EVAL return(redis.call('incr','own')) 0", told)?;
    expect(&mut client, "GET own", "3")
}

/// Its file has them beside the stream, and offsets count the stream alone.
#[test]
fn what_a_writable_replica_writes_itself_is_never_known_to_be_synced() -> Result<()> {
    let server = primary(&[])?;
    let file = [("appendonly", "yes"), ("appendfsync", "no"), ("replica-read-only", "no")];
    let replica = follower(Target::Dunlin, &file, &server)?;
    let (mut client, mut other) = (replica.connect()?, replica.connect()?);
    wait_until("the file is there", || Ok(number(&mut other, "aof_rewrite_in_progress")? == 0))?;
    expect(&mut client, "CLIENT DURABILITY FSYNC", "OK")?;
    let told = "NODURABLE the write is done and stays: in memory, not synced here; it was written \
                on a replica, which does not count its own writes";
    expect(&mut client, "SET own 1", told)?;
    expect(&mut client, "EVAL redis.call('set','own','2') 0", told)?;
    // The same write again is no more durable than the first.
    expect(&mut client, "SADD set a", told)?;
    expect(&mut client, "SADD set a", told)?;
    ensure!(say(&mut client, "CLIENT POSITION")?.contains(':'), "the write is there");
    let target = Server::start(Target::Dunlin, &[])?;
    expect(&mut client, "SET away 1", told)?;
    expect(&mut client, &format!("MIGRATE 127.0.0.1 {} away 0 5000", target.port()), told)?;
    ensure!(say(&mut target.connect()?, "GET away")? == "1", "it has moved");
    client.send(&["BLPOP", "list", "0"])?;
    wait_until("it is blocked", || Ok(number(&mut other, "blocked_clients")? == 1))?;
    expect(&mut other, "RPUSH list x", "1")?;
    let reply = next(&mut client)?;
    ensure!(reply == told, "{reply}");
    expect(&mut client, "GET own", "2")?;
    // Nothing is synced for it, then or later.
    let syncs = figure(&mut other, "aof_fsync_latency_usec")?;
    let mut writer = server.connect()?;
    for round in 0..5 {
        say(&mut writer, &format!("SET other {round}"))?;
        wait_until("it follows", || Ok(say(&mut other, "GET other")? == round.to_string()))?;
    }
    ensure!(figure(&mut other, "aof_fsync_latency_usec")? == syncs);
    // What follows is synced as ever.
    client.send_raw(b"SET own 3\r\nREPLICAOF NO ONE\r\nSET own 4\r\n")?;
    for expected in [told, "OK", "OK"] {
        let reply = next(&mut client)?;
        ensure!(reply == expected, "{reply}");
    }
    Ok(())
}

#[test]
fn a_transaction_has_no_position_before_its_end() -> Result<()> {
    let server = primary(&[("appendonly", "yes")])?;
    let mut client = server.connect()?;
    say(&mut client, "MULTI")?;
    say(&mut client, "SET k v")?;
    let said = say(&mut client, "CLIENT POSITION")?;
    ensure!(said.contains("not allowed inside a transaction"), "{said}");
    Ok(())
}

#[test]
fn a_write_before_replicaof_in_a_transaction_has_its_position() -> Result<()> {
    let server = primary(&[("appendonly", "yes")])?;
    let mut client = server.connect()?;
    expect(&mut client, "SET a 1", "OK")?;
    expect(&mut client, "MULTI", "OK")?;
    for line in ["SET b 2", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"] {
        expect(&mut client, line, "QUEUED")?;
    }
    let reply = client.call_text("EXEC")?;
    ensure!(!reply.is_error(), "{reply:?}");
    let position = say(&mut client, "CLIENT POSITION")?;
    let end = number(&mut client, "master_repl_offset")?;
    ensure!(position.ends_with(&format!(":{end}")), "{position} {end}");
    Ok(())
}

/// Writes in pipelines until the primary is gone. Returns how many were acknowledged.
fn write_until_gone(client: &mut Client, mut kill: impl FnMut(usize)) -> Result<usize> {
    let mut acknowledged = 0;
    for batch in 0.. {
        let mut request = Vec::new();
        for place in 0..50 {
            request.extend(format!("SET key:{} 1\r\n", batch * 50 + place).into_bytes());
        }
        if client.send_raw(&request).is_err() {
            return Ok(acknowledged);
        }
        if batch >= 40 {
            kill(batch);
        }
        for _ in 0..50 {
            match client.receive() {
                Ok(Received::Reply(reply)) => {
                    ensure!(text(&reply) == "OK", "{reply:?}");
                    acknowledged += 1;
                }
                _ => return Ok(acknowledged),
            }
        }
    }
    Ok(acknowledged)
}

#[test]
fn a_replica_has_every_write_that_was_acknowledged_with_replicas_1() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let mut server = primary(&[])?;
        let replica = follower(target, &[], &server)?;
        let mut client = server.connect()?;
        expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
        let acknowledged = write_until_gone(&mut client, |_| server.kill())?;
        ensure!(acknowledged >= 2000, "{acknowledged}");
        let mut reader = replica.connect()?;
        for key in 0..acknowledged {
            expect(&mut reader, &format!("EXISTS key:{key}"), "1")?;
        }
    }
    Ok(())
}

#[test]
fn copies_on_the_disks_of_replicas_count_for_replicas_fsync() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        for policy in ["everysec", "always"] {
            let counted = copies_on_disk_count(target, policy);
            counted.with_context(|| format!("{target:?} with {policy}"))?;
        }
    }
    Ok(())
}

fn copies_on_disk_count(target: Target, policy: &str) -> Result<()> {
    let file = [("appendonly", "yes"), ("appendfsync", policy)];
    let server = primary(&file)?;
    let replica = follower(target, &file, &server)?;
    let mut client = server.connect()?;
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1 FSYNC", "OK")?;
    for n in 1..=3 {
        expect(&mut client, "INCR n", &n.to_string())?;
        let synced = client.call_text("WAITAOF 1 1 1")?.elements().context("two numbers")?;
        ensure!(synced == [Reply::Integer(1), Reply::Integer(1)], "{synced:?}");
    }
    expect(&mut client, "CONFIG SET durability-timeout 300", "OK")?;
    stop(replica.pid())?;
    let reply = say(&mut client, "INCR n")?;
    resume(replica.pid())?;
    ensure!(reply.contains("synced here, synced at 0 of 1 replicas"), "{reply}");
    ensure!(!reply.contains("not synced here"), "{reply}");
    Ok(())
}

#[test]
fn a_served_pop_waits_as_a_write_does() -> Result<()> {
    let server = primary(&[("durability-timeout", "300")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
    for (waits, push) in [("BLPOP list 0", "RPUSH list x"), ("BLMOVE a b LEFT LEFT 0", "RPUSH a x")]
    {
        client.send(&waits.split(' ').collect::<Vec<_>>())?;
        wait_until("it is blocked", || Ok(number(&mut other, "blocked_clients")? == 1))?;
        expect(&mut other, push, "1")?;
        let reply = next(&mut client)?;
        ensure!(reply.starts_with("NODURABLE the write is done"), "{reply}");
    }
    // A read that was blocked does not wait.
    client.send(&["XREAD", "BLOCK", "0", "STREAMS", "stream", "$"])?;
    wait_until("it is blocked", || Ok(number(&mut other, "blocked_clients")? == 1))?;
    say(&mut other, "XADD stream * f v")?;
    let Received::Reply(reply) = client.receive()? else { anyhow::bail!("closed") };
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(())
}

#[test]
fn a_stop_and_a_change_of_part_answer_those_who_wait() -> Result<()> {
    let mut server = primary(&[("durability-timeout", "1000000")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    expect(&mut client, "CLIENT DURABILITY REPLICAS 1", "OK")?;
    client.send(&["SET", "k", "1"])?;
    wait_until("it waits", || Ok(number(&mut other, "durability_waiting_clients")? == 1))?;
    expect(&mut other, "REPLICAOF 127.0.0.1 1", "OK")?;
    let reply = next(&mut client)?;
    ensure!(reply.ends_with("this server is a replica, whose own writes go nowhere"), "{reply}");
    expect(&mut other, "REPLICAOF NO ONE", "OK")?;
    client.send(&["SET", "k", "2"])?;
    wait_until("it waits", || Ok(number(&mut other, "durability_waiting_clients")? == 1))?;
    server.terminate()?;
    let reply = next(&mut client)?;
    ensure!(reply.ends_with("the server stops"), "{reply}");
    Ok(())
}

/// A server whose syncs take two seconds each, from the second on in each thread.
fn with_slow_syncs(options: &[(&str, &str)]) -> Result<Option<Server>> {
    if Command::new("strace").arg("--version").output().is_err() {
        return Ok(None);
    }
    let mut server = primary(options)?;
    let file = server.directory().join("appendonlydir/appendonly.aof.1.incr.aof");
    let file = file.to_str().context("a path in UTF-8")?.to_owned();
    let calls = "fsync,fdatasync";
    let inject = format!("inject={calls}:delay_enter=2000000");
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &file];
    let trace = format!("trace={calls}");
    server.set_wrapper(&[&words[..], &["-e", &trace, "-e", &inject]].concat());
    server.terminate()?;
    server.start_again()?;
    Ok(Some(server))
}

#[test]
fn who_has_chosen_memory_does_not_wait_for_a_slow_disk_and_others_do() -> Result<()> {
    for policy in ["always", "everysec", "no"] {
        let options = [("appendonly", "yes"), ("appendfsync", policy)];
        let Some(server) = with_slow_syncs(&options)? else { return Ok(()) };
        let [mut memory, mut fsync, mut usual] =
            [server.connect()?, server.connect()?, server.connect()?];
        expect(&mut memory, "CLIENT DURABILITY MEMORY", "OK")?;
        expect(&mut fsync, "CLIENT DURABILITY FSYNC", "OK")?;
        fsync.send(&["SET", "synced", "1"])?;
        wait_until("the write", || Ok(say(&mut memory, "EXISTS synced")? == "1"))?;
        // What it reads and writes does not wait.
        expect(&mut memory, "GET synced", "1")?;
        expect(&mut memory, "SET k 1", "OK")?;
        expect(&mut memory, "INCR k", "2")?;
        ensure!(!fsync.is_readable()?, "{policy}: a sync takes longer");
        usual.send(&["GET", "k"])?;
        let reads_at_once = usual.has_input(MOMENT)?;
        ensure!(reads_at_once == (policy != "always"), "{policy}");
        ensure!(next(&mut usual)? == "2" && next(&mut fsync)? == "OK");
        let synced = fsync.call_text("WAITAOF 1 0 1")?.elements().context("two numbers")?;
        ensure!(synced.first() == Some(&Reply::Integer(1)), "{policy}: {synced:?}");
    }
    Ok(())
}

#[test]
fn a_pipeline_of_durable_writes_shares_syncs() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "no"), ("durability-timeout", "60000")];
    let Some(server) = with_slow_syncs(&options)? else { return Ok(()) };
    let mut client = server.connect()?;
    expect(&mut client, "CLIENT DURABILITY FSYNC", "OK")?;
    let request: String = (0..2000).map(|key| format!("SET key:{key} 1\r\n")).collect();
    client.send_raw(request.as_bytes())?;
    // One sync for each would take more than an hour.
    for _ in 0..2000 {
        ensure!(next(&mut client)? == "OK");
    }
    Ok(())
}

#[test]
fn reads_wait_until_a_replica_is_new_enough() -> Result<()> {
    let server = primary(&[])?;
    let replica = follower(Target::Dunlin, &[], &server)?;
    let (mut client, mut reader) = (server.connect()?, replica.connect()?);
    for round in 0..200 {
        expect(&mut client, &format!("SET k {round}"), "OK")?;
        let position = say(&mut client, "CLIENT POSITION")?;
        reader.send_raw(format!("CLIENT READAFTER {position}\r\nGET k\r\n").as_bytes())?;
        ensure!(next(&mut reader)? == "OK");
        let found = next(&mut reader)?;
        ensure!(found == round.to_string(), "{round}: {found}");
    }
    let position = say(&mut client, "CLIENT POSITION")?;
    let (history, offset) = position.split_once(':').context("a position")?;
    let offset: u64 = offset.parse()?;
    // The primary itself has it, and a replica says how far it is.
    expect(&mut client, &format!("CLIENT READAFTER {position}"), "OK")?;
    expect(&mut client, "GET k", "199")?;
    ensure!(say(&mut reader, "CLIENT POSITION")? >= position);
    // Nobody is ahead of the primary.
    let ahead = format!("{history}:{}", offset + 10_000);
    expect(&mut reader, &format!("CLIENT READAFTER {ahead} TIMEOUT 100"), "OK")?;
    expect(&mut reader, "PING", "PONG")?;
    let stale = say(&mut reader, "GET k")?;
    ensure!(stale.starts_with("STALE after 100 ms this server is at"), "{stale}");
    expect(&mut reader, "MULTI", "OK")?;
    expect(&mut reader, "GET k", "QUEUED")?;
    ensure!(say(&mut reader, "EXEC")?.contains("STALE"), "a transaction reads too");
    for library in ["FUNCTION LIST", "FUNCTION DUMP", "FCALL_RO nosuch 0"] {
        ensure!(say(&mut reader, library)?.starts_with("STALE"), "{library} shows data");
    }
    ensure!(number(&mut reader, "durability_stale_reads")? == 5);
    // It waits as long as it takes, and is woken.
    expect(&mut reader, &format!("CLIENT READAFTER {ahead} TIMEOUT 1000000"), "OK")?;
    reader.send(&["GET", "k"])?;
    let mut other = replica.connect()?;
    wait_until("it waits", || Ok(number(&mut other, "durability_waiting_readers")? == 1))?;
    expect(&mut client, &format!("SET k {}", "x".repeat(20_000)), "OK")?;
    ensure!(next(&mut reader)?.len() == 20_000);
    ensure!(number(&mut other, "durability_waiting_readers")? == 0);
    // Another history.
    let reply = say(&mut reader, &format!("CLIENT READAFTER {}:1", "f".repeat(40)))?;
    ensure!(reply.starts_with("NOHISTORY the position is of another history"), "{reply}");
    // After a failover the old positions hold up to the end of their history.
    let last = say(&mut reader, "CLIENT POSITION")?;
    expect(&mut reader, "REPLICAOF NO ONE", "OK")?;
    ensure!(say(&mut reader, "CLIENT POSITION")?.split_once(':').map(|it| it.0) != Some(history));
    for known in [&position, &last] {
        expect(&mut reader, &format!("CLIENT READAFTER {known}"), "OK")?;
        ensure!(say(&mut reader, "GET k")?.len() == 20_000);
    }
    let (_, end) = last.split_once(':').context("a position")?;
    let beyond = format!("CLIENT READAFTER {history}:{}", end.parse::<u64>()? + 1);
    ensure!(say(&mut reader, &beyond)?.starts_with("NOHISTORY"));
    Ok(())
}

#[test]
fn a_reader_that_waits_ends_with_the_link_to_its_history() -> Result<()> {
    let server = primary(&[])?;
    let replica = follower(Target::Dunlin, &[], &server)?;
    let (mut client, mut reader, mut other) =
        (server.connect()?, replica.connect()?, replica.connect()?);
    let position = say(&mut client, "CLIENT POSITION")?;
    let (history, offset) = position.split_once(':').context("a position")?;
    let ahead = format!("{history}:{}", offset.parse::<u64>()? + 10_000);
    expect(&mut reader, &format!("CLIENT READAFTER {ahead} TIMEOUT 1000000"), "OK")?;
    reader.send(&["GET", "first"])?;
    wait_until("it waits", || Ok(number(&mut other, "durability_waiting_readers")? == 1))?;
    expect(&mut other, "REPLICAOF NO ONE", "OK")?;
    ensure!(next(&mut reader)?.starts_with("NOHISTORY"));
    // One that leaves while it waits.
    let mut gone = replica.connect()?;
    let position = say(&mut other, "CLIENT POSITION")?;
    let (history, offset) = position.split_once(':').context("a position")?;
    let ahead = format!("{history}:{}", offset.parse::<u64>()? + 10_000);
    expect(&mut gone, &format!("CLIENT READAFTER {ahead} TIMEOUT 1000000"), "OK")?;
    gone.send(&["GET", "first"])?;
    wait_until("it waits", || Ok(number(&mut other, "durability_waiting_readers")? == 1))?;
    drop(gone);
    wait_until("it is gone", || Ok(number(&mut other, "durability_waiting_readers")? == 0))?;
    Ok(())
}
