//! Replicas of this server that are a redis-server or a valkey-server: full copies, the stream
//! after them, cut links, slow replicas, and the commands that look at replicas.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::notation;
use tests::observe::{figure, number, wait_until};
use tests::peers;
use tests::process::{resume, stop};
use tests::proxy::Proxy;
use tests::quoting;
use tests::replication::{check_alike, follow};
use tests::server::{Server, Target};

/// Those that follow.
const FOREIGN: [Target; 2] = [Target::Reference, Target::Valkey];

fn primary(options: &[(&str, &str)]) -> Result<Server> {
    let usual = [("threads", "2"), ("repl-diskless-sync-delay", "0")];
    Server::start(Target::Dunlin, &[&usual, options].concat())
}

fn follower(target: Target, port: u16) -> Result<Server> {
    let server = Server::start(target, &[])?;
    follow(&server, port)?;
    Ok(server)
}

fn shown(client: &mut Client, command: &str) -> Result<String> {
    Ok(notation::lines(&say(client, command)?).join("\n"))
}

/// Sends a command whose words are quoted as redis-cli does.
fn say(client: &mut Client, command: &str) -> Result<Reply> {
    client.call(&quoting::split(command)?)
}

/// Data of all types, small and large, with and without an end.
fn fill(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    for command in [
        "SET text hello",
        "SET number 12345",
        "SET expires soon PX 500000",
        "SETRANGE long 300000 end",
        "RPUSH list a b c 1 2 3",
        "SADD ints 1 2 3 500000",
        "SADD words a b c",
        "HSET hash f v g 1",
        "ZADD zset 1 a 2.5 b inf c",
        "XADD stream 1-1 f v",
        "XADD stream 1-2 f w g x",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group me COUNT 1 STREAMS stream >",
        "SETBIT bits 1000 1",
        "PFADD hll a b c d",
        "GEOADD geo 13.4 52.5 berlin",
        "SELECT 9",
        "SET other database",
        "SELECT 0",
        "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() return 1 end)\"",
        "EVAL \"for i = 1, 5000 do redis.call('RPUSH', 'longlist', i) end\" 1 longlist",
        "EVAL \"for i = 1, 5000 do redis.call('SADD', 'bigset', 'm' .. i) end\" 1 bigset",
        "EVAL \"for i = 1, 5000 do redis.call('HSET', 'bighash', 'f' .. i, i) end\" 1 bighash",
        "EVAL \"for i = 1, 5000 do redis.call('ZADD', 'bigzset', i, 'm' .. i) end\" 1 bigzset",
    ] {
        let reply = say(&mut client, command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
    }
    Ok(())
}

/// Commands of all families, again and again, until told to stop.
fn traffic(port: u16, seed: usize, stop: &AtomicBool) -> Result<usize> {
    let mut client = Client::connect(port)?;
    let mut count = 0;
    while !stop.load(Relaxed) {
        let (n, key) = (count * 7 + seed, count % 50 + seed * 1000);
        let commands = [
            format!("SET s{key} {n}"),
            format!("APPEND s{key} x"),
            format!("INCRBY n{key} 3"),
            format!("INCRBYFLOAT fl{key} 0.5"),
            format!("SET e{key} v PX 400000"),
            format!("RPUSH l{key} {n} a"),
            format!("LPOP l{key}"),
            format!("SADD set{key} {n} b"),
            format!("SPOP set{key}"),
            format!("HSET h{key} f{n} v"),
            format!("HDEL h{key} f{}", n.saturating_sub(350)),
            format!("ZADD z{key} {n} m{n}"),
            format!("ZPOPMIN z{key}"),
            format!("XADD x{key} * f {n}"),
            format!("XTRIM x{key} MAXLEN 5"),
            format!("PFADD p{key} {n}"),
            format!("SETBIT b{key} {} 1", n % 1000),
            format!(
                "EVAL \"redis.call('SET', KEYS[1], ARGV[1]); return redis.call('INCR', KEYS[1])\" 1 ev{key} {n}"
            ),
            "MULTI".to_owned(),
            format!("SET a{{{key}}} {n}"),
            "SELECT 1".to_owned(),
            format!("SET b{{{key}}} {n}"),
            "SELECT 0".to_owned(),
            "EXEC".to_owned(),
            format!("DEL s{key}"),
            format!("RENAME n{key} renamed{key}"),
            format!("COPY l{key} copy{key} REPLACE"),
        ];
        for command in commands {
            let reply = say(&mut client, &command)?;
            ensure!(!reply.is_error(), "{command}: {reply:?}");
        }
        count += 1;
    }
    Ok(count)
}

/// Runs `body` while clients write.
fn under_traffic<R>(port: u16, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let threads: Vec<_> =
            (1..3).map(|seed| scope.spawn(move || traffic(port, seed, stop))).collect();
        let result = body();
        stop.store(true, Relaxed);
        for thread in threads {
            let count = thread.join().expect("no panic")?;
            ensure!(count > 0, "nothing was written");
        }
        result
    })
}

#[test]
fn foreign_replicas_get_a_copy_of_everything_and_follow() -> Result<()> {
    for target in FOREIGN {
        let primary = primary(&[])?;
        fill(&primary)?;
        let replica = under_traffic(primary.port(), || {
            let replica = follower(target, primary.port())?;
            wait_until_online(&primary, 1)?;
            thread::sleep(Duration::from_millis(500));
            Ok(replica)
        })
        .with_context(|| format!("{target:?}"))?;
        check_alike(&primary, &replica).with_context(|| replica.log_tail())?;
        let mut client = primary.connect()?;
        ensure!(number(&mut client, "sync_full")? == 1, "one copy was enough");
        let log = replica.log();
        for trouble in ["unknown command", "Error condition", "error(s)", "== CRITICAL =="] {
            ensure!(!log.contains(trouble), "{target:?} complains: {}", replica.log_tail());
        }
    }
    Ok(())
}

/// Waits until so many replicas follow the stream.
fn wait_until_online(primary: &Server, count: usize) -> Result<()> {
    let mut client = primary.connect()?;
    wait_until("the replicas are online", || {
        Ok(shown(&mut client, "INFO replication")?.matches("state=online").count() == count)
    })
}

#[test]
fn a_dunlin_follows_a_dunlin() -> Result<()> {
    let primary = primary(&[])?;
    fill(&primary)?;
    let proxy = Proxy::start(primary.port())?;
    let replica = under_traffic(primary.port(), || {
        let replica = follower(Target::Dunlin, proxy.port())?;
        wait_until_online(&primary, 1)?;
        proxy.cut();
        let mut client = primary.connect()?;
        wait_until("it comes back", || Ok(number(&mut client, "sync_partial_ok")? == 1))?;
        Ok(replica)
    })?;
    let mut client = primary.connect()?;
    say(&mut client, "SET k v")?;
    ensure!(shown(&mut client, "WAIT 1 5000")? == "(integer) 1");
    say(&mut client, "HSET fields f v g w")?;
    say(&mut client, "HPEXPIRE fields 500000 FIELDS 1 f")?;
    check_alike(&primary, &replica)
}

#[test]
fn a_primary_that_follows_takes_its_replicas_along() -> Result<()> {
    let (primary, other) = (primary(&[])?, primary(&[])?);
    fill(&other)?;
    let replica = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    follow(&primary, other.port())?;
    let mut client = primary.connect()?;
    wait_until("the link ends", || Ok(primary.log().contains("it asks anew")))?;
    check_alike(&other, &replica)?;
    say(&mut client, "REPLICAOF NO ONE")?;
    say(&mut client, "SET k v")?;
    wait_until_online(&primary, 1)?;
    check_alike(&primary, &replica)
}

#[test]
fn the_stream_goes_on_through_a_flush_and_content_types() -> Result<()> {
    for target in FOREIGN {
        let primary = primary(&[])?;
        let replica = follower(target, primary.port())?;
        wait_until_online(&primary, 1)?;
        let mut client = primary.connect()?;
        for command in [
            "SET k v",
            "FLUSHDB",
            "SET k w",
            "SELECT 1",
            "SET one 1",
            "SWAPDB 0 1",
            "MOVE one 9",
            "FLUSHALL",
            "SET last one",
            "SELECT 0",
            "SET x y EX 100",
            "PERSIST x",
        ] {
            let reply = say(&mut client, command)?;
            ensure!(!reply.is_error(), "{command}: {reply:?}");
        }
        check_alike(&primary, &replica)?;
    }
    Ok(())
}

#[test]
fn fields_that_expire_are_told_to_those_that_know_them() -> Result<()> {
    let primary = primary(&[])?;
    let mut client = primary.connect()?;
    say(&mut client, "HSET h f 1 g 2")?;
    say(&mut client, "HPEXPIRE h 500000 FIELDS 1 f")?;
    let redis = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    check_alike(&primary, &redis)?;
    let times = shown(&mut redis.connect()?, "HPEXPIRETIME h FIELDS 2 f g")?;
    ensure!(times == shown(&mut client, "HPEXPIRETIME h FIELDS 2 f g")?, "{times}");
    // A Valkey before 9 knows no such fields. It waits, and asks only once.
    let valkey = follower(Target::Valkey, primary.port())?;
    wait_until("the log says why", || Ok(primary.log().contains("fields of hashes expire")))?;
    thread::sleep(Duration::from_millis(2500));
    ensure!(primary.log().matches("asks for synchronization").count() == 2, "it asks again");
    say(&mut client, "DEL h")?;
    wait_until_online(&primary, 2)?;
    check_alike(&primary, &valkey)
}

#[test]
fn links_that_are_cut_go_on_where_they_were() -> Result<()> {
    let primary = primary(&[("repl-backlog-size", "64mb")])?;
    fill(&primary)?;
    let proxy = Proxy::start(primary.port())?;
    let replica = follower(Target::Reference, proxy.port())?;
    wait_until_online(&primary, 1)?;
    let (mut client, mut other) = (primary.connect()?, replica.connect()?);
    under_traffic(primary.port(), || {
        for round in 1..=20 {
            proxy.cut();
            // A redis-server that does not get the answer to its PSYNC asks for all data.
            wait_until("it has come back", || {
                Ok(number(&mut client, "sync_partial_ok")? == round
                    && figure(&mut other, "master_link_status")? == "up")
            })?;
        }
        Ok(())
    })?;
    check_alike(&primary, &replica)?;
    ensure!(number(&mut client, "sync_full")? == 1, "there was one copy");
    Ok(())
}

#[test]
fn those_that_attach_together_share_a_walk() -> Result<()> {
    let primary = primary(&[("repl-diskless-sync-delay", "3")])?;
    fill(&primary)?;
    let one = follower(Target::Reference, primary.port())?;
    let other = follower(Target::Valkey, primary.port())?;
    wait_until_online(&primary, 2)?;
    // What the two load differs, as far as they say; so they had a walk each only if they had to.
    let begun = primary.log().matches("A full copy begins for").count();
    check_alike(&primary, &one)?;
    check_alike(&primary, &other)?;
    ensure!(begun == 1, "{begun} walks");
    Ok(())
}

#[test]
fn a_replica_that_dies_in_its_full_sync_costs_nothing() -> Result<()> {
    let primary = primary(&[("rdb-key-save-delay", "200")])?;
    let mut client = primary.connect()?;
    say(&mut client, "DEBUG POPULATE 20000 key 100")?;
    let mut replica = follower(Target::Reference, primary.port())?;
    wait_until("the copy goes on", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=send_bulk"))
    })?;
    replica.kill();
    wait_until("it is gone", || Ok(number(&mut client, "connected_slaves")? == 0))?;
    say(&mut client, "CONFIG SET rdb-key-save-delay 0")?;
    replica.start_again()?;
    follow(&replica, primary.port())?;
    wait_until_online(&primary, 1)?;
    check_alike(&primary, &replica)
}

/// A replica of the test's own.
fn fake(primary: &Server, introduction: &str, request: &str) -> Result<Client> {
    let mut client = primary.connect()?;
    let reply = say(&mut client, introduction)?;
    ensure!(!reply.is_error(), "{reply:?}");
    client.send_raw(format!("{request}\r\n").as_bytes())?;
    Ok(client)
}

#[test]
fn a_replica_that_takes_nothing_is_dropped_and_no_client_waits_for_it() -> Result<()> {
    let primary = primary(&[
        ("repl-timeout", "2"),
        ("client-output-buffer-limit", "replica 16mb 8mb 1"),
        ("rdbcompression", "no"),
    ])?;
    let mut client = primary.connect()?;
    say(&mut client, "DEBUG POPULATE 300000 key 200")?;
    let stalled = fake(&primary, "REPLCONF capa eof capa psync2", "PSYNC ? -1")?;
    wait_until("the copy goes on", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=send_bulk"))
    })?;
    let (mut longest, mut number_of, begun) = (Duration::ZERO, 0, Instant::now());
    while number(&mut client, "connected_slaves")? > 0 {
        ensure!(begun.elapsed() < Duration::from_secs(60), "it is still there");
        for _ in 0..50 {
            let sent = Instant::now();
            let reply = client.call(&["SET", &format!("key:{number_of}"), "changed"])?;
            ensure!(!reply.is_error(), "{reply:?}");
            longest = longest.max(sent.elapsed());
            number_of += 1;
        }
    }
    ensure!(longest < Duration::from_secs(1), "a client has waited for {longest:?}");
    ensure!(primary.log().contains("The link with replica"), "{}", primary.log_tail());
    drop(stalled);
    // The walk has ended with it: the next one can begin.
    let _replica = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    ensure!(shown(&mut client, "SAVE")? == "OK");
    Ok(())
}

#[test]
fn a_stopped_replica_is_dropped_when_it_is_silent_for_too_long() -> Result<()> {
    let primary = primary(&[("repl-timeout", "3")])?;
    let replica = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    stop(replica.pid())?;
    let mut client = primary.connect()?;
    wait_until("it is dropped", || Ok(number(&mut client, "connected_slaves")? == 0))?;
    ensure!(primary.log().contains("silent for longer than repl-timeout"), "no line in the log");
    say(&mut client, "SET k v")?;
    resume(replica.pid())?;
    wait_until_online(&primary, 1)?;
    check_alike(&primary, &replica)
}

#[test]
fn a_ping_does_not_wait_for_the_end_of_a_longer_period() -> Result<()> {
    let primary = primary(&[("repl-ping-replica-period", "3600")])?;
    let _replica = follower(Target::Dunlin, primary.port())?;
    let mut client = primary.connect()?;
    wait_until("the first ping", || Ok(number(&mut client, "master_repl_offset")? == 14))?;
    say(&mut client, "CONFIG SET repl-ping-replica-period 1")?;
    wait_until("another one", || Ok(number(&mut client, "master_repl_offset")? >= 28))
}

#[test]
fn a_stop_that_waits_for_a_replica_can_be_given_up() -> Result<()> {
    let mut primary = primary(&[("shutdown-timeout", "100000"), ("repl-timeout", "100000")])?;
    let replica = follower(Target::Dunlin, primary.port())?;
    wait_until_online(&primary, 1)?;
    stop(replica.pid())?;
    let (mut client, mut stopping) = (primary.connect()?, primary.connect()?);
    say(&mut client, "SET k v")?;
    let left = |client: &mut Client| Ok(shown(client, "INFO server")?.contains("shutdown_in_mil"));
    for _ in 0..2 {
        stopping.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("it waits", || left(&mut client))?;
        ensure!(shown(&mut client, "SHUTDOWN ABORT")? == "OK");
        let Received::Reply(reply) = stopping.receive()? else { anyhow::bail!("closed") };
        ensure!(reply == Reply::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec()));
        ensure!(!left(&mut client)?);
        ensure!(shown(&mut client, "SET k w")? == "OK");
        ensure!(shown(&mut client, "SHUTDOWN ABORT")? == "(error) ERR No shutdown in progress.");
    }
    ensure!(primary.log().contains("Shutdown manually aborted."));
    say(&mut client, "CONFIG SET shutdown-timeout 1")?;
    primary.terminate()?;
    let log = primary.log();
    ensure!(log.contains("0 of 1 replicas are in sync when shutting down."), "{log}");
    ensure!(
        log.contains(&format!("Lagging replica 127.0.0.1:{} reported", replica.port())),
        "{log}"
    );
    resume(replica.pid())
}

#[test]
fn a_stop_that_is_asked_for_after_another_was_given_up_is_its_own() -> Result<()> {
    let mut primary = primary(&[("shutdown-timeout", "100000"), ("repl-timeout", "100000")])?;
    let replica = follower(Target::Dunlin, primary.port())?;
    wait_until_online(&primary, 1)?;
    stop(replica.pid())?;
    let (mut client, mut stopping) = (primary.connect()?, primary.connect()?);
    say(&mut client, "SET k v")?;
    stopping.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("it waits", || Ok(shown(&mut client, "INFO server")?.contains("shutdown_in_mil")))?;
    // Faster than the stop hears of the first word.
    client.send_raw(b"SHUTDOWN ABORT\r\nSHUTDOWN NOSAVE NOW\r\n")?;
    let Received::Reply(reply) = stopping.receive()? else { anyhow::bail!("closed") };
    ensure!(reply == Reply::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec()));
    wait_until("it stops", || Ok(primary.ended()?.is_some()))?;
    ensure!(primary.log().contains("Shutdown manually aborted."));
    resume(replica.pid())
}

#[test]
fn clients_wait_for_replicas() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        wait_for_replicas(target).with_context(|| format!("{target:?}"))?;
    }
    Ok(())
}

fn wait_for_replicas(target: Target) -> Result<()> {
    let primary = primary(&[("min-replicas-max-lag", "10")])?;
    let mut client = primary.connect()?;
    say(&mut client, "SET k v")?;
    ensure!(shown(&mut client, "WAIT 1 50")? == "(integer) 0");
    let replica = follower(target, primary.port())?;
    wait_until_online(&primary, 1)?;
    for _ in 0..20 {
        say(&mut client, "INCR n")?;
        let begun = Instant::now();
        ensure!(shown(&mut client, "WAIT 1 5000")? == "(integer) 1");
        ensure!(begun.elapsed() < Duration::from_secs(1), "it was asked at once");
    }
    ensure!(shown(&mut client, "WAIT 2 100")? == "(integer) 1");
    say(&mut client, "SET k w")?;
    ensure!(shown(&mut client, "WAITAOF 0 1 200")? == "1) (integer) 0\n2) (integer) 0");
    say(&mut replica.connect()?, "CONFIG SET appendonly yes")?;
    say(&mut client, "SET k x")?;
    wait_until("its file has it", || {
        Ok(shown(&mut client, "WAITAOF 0 1 1000")? == "1) (integer) 0\n2) (integer) 1")
    })?;
    // One whose file was turned off says nothing of it any more.
    say(&mut replica.connect()?, "CONFIG SET appendonly no")?;
    say(&mut client, "SET k x")?;
    ensure!(shown(&mut client, "WAITAOF 0 1 1500")? == "1) (integer) 0\n2) (integer) 0");
    say(&mut client, "CONFIG SET min-replicas-to-write 2")?;
    let refused = "(error) NOREPLICAS Not enough good replicas to write.";
    ensure!(shown(&mut client, "SET k y")? == refused);
    ensure!(
        shown(&mut client, "EVAL \"return redis.call('SET', 'k', 'y')\" 0")?.contains("NOREPLICAS")
    );
    ensure!(shown(&mut client, "GET k")? == "\"x\"");
    say(&mut client, "CONFIG SET min-replicas-to-write 1")?;
    ensure!(shown(&mut client, "SET k y")? == "OK");
    ensure!(figure(&mut client, "min_slaves_good_slaves")? == "1");
    Ok(())
}

/// `appendfsync` concerns the append-only file alone: where there is none, the stream of replicas
/// makes no reply wait, on whichever way the server came to have replicas.
#[test]
fn without_a_file_no_reply_waits_for_a_sync() -> Result<()> {
    let server = |appends| primary(&[("appendonly", appends), ("appendfsync", "always")]);
    for (first, second) in [("no", "no"), ("yes", "no")] {
        let (primary, heir) = (server(first)?, server(second)?);
        let (mut client, mut other) = (primary.connect()?, heir.connect()?);
        follow(&heir, primary.port())?;
        let ok = Reply::Status(b"OK".to_vec());
        ensure!(client.call_text("SET key 1")? == ok);
        check_alike(&primary, &heir)?;
        ensure!(client.call_text("CONFIG SET appendonly no")? == ok);
        ensure!(client.call_text("SET key 2")? == ok);
        check_alike(&primary, &heir)?;
        ensure!(other.call_text("REPLICAOF NO ONE")? == ok);
        ensure!(other.call_text("SET key 3")? == ok);
        follow(&primary, heir.port())?;
        ensure!(other.call_text("SET key 4")? == ok);
        check_alike(&heir, &primary)?;
    }
    Ok(())
}

#[test]
fn followers_of_changes_are_told_of_effects_alone() -> Result<()> {
    let primary = primary(&[("repl-ping-replica-period", "1")])?;
    let _replica = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    let mut client = primary.connect()?;
    say(&mut client, "SET k v")?;
    ensure!(shown(&mut client, "WAIT 1 5000")? == "(integer) 1");
    thread::sleep(Duration::from_millis(1500));
    say(&mut client, "DEL k")?;
    let changes = shown(&mut client, "CHANGES SINCE -")?;
    ensure!(changes.contains("\"set\"") && changes.contains("\"delete\""), "{changes}");
    ensure!(!changes.contains("\"update\""), "{changes}");
    Ok(())
}

#[test]
fn replicas_are_shown_and_can_be_killed() -> Result<()> {
    let primary = primary(&[])?;
    let replica = follower(Target::Reference, primary.port())?;
    wait_until_online(&primary, 1)?;
    let mut client = primary.connect()?;
    wait_until("it has said how far it is", || {
        let (role, port) = (shown(&mut client, "ROLE")?, replica.port());
        Ok(role.contains("\"127.0.0.1\"") && role.contains(&format!("\"{port}\"")))
    })?;
    let list = shown(&mut client, "CLIENT LIST TYPE replica")?;
    ensure!(list.contains("flags=S") && list.lines().count() == 1, "{list}");
    ensure!(!shown(&mut client, "CLIENT LIST TYPE normal")?.contains("flags=S"));
    ensure!(number(&mut client, "connected_clients")? >= 1);
    ensure!(number(&mut client, "repl_backlog_active")? == 1);
    ensure!(shown(&mut client, "CLIENT KILL TYPE replica")? == "(integer) 1");
    wait_until("it comes back", || Ok(number(&mut client, "sync_partial_ok")? == 1))?;
    wait_until_online(&primary, 1)
}

#[test]
fn a_replica_is_shown_where_it_says_that_it_is() -> Result<()> {
    for (leader, target) in [
        (Target::Dunlin, Target::Reference),
        (Target::Dunlin, Target::Dunlin),
        (Target::Reference, Target::Dunlin),
    ] {
        let primary = Server::start(leader, &[("repl-diskless-sync-delay", "0")])?;
        let said = [("replica-announce-ip", "10.1.2.3"), ("replica-announce-port", "7777")];
        let replica = Server::start(target, &said)?;
        follow(&replica, primary.port())?;
        wait_until_online(&primary, 1)?;
        let mut client = primary.connect()?;
        let info = shown(&mut client, "INFO replication")?;
        ensure!(info.contains("slave0:ip=10.1.2.3,port=7777,"), "{leader:?}, {target:?}: {info}");
        let role = shown(&mut client, "ROLE")?;
        ensure!(role.contains("\"10.1.2.3\"") && role.contains("\"7777\""), "{role}");
    }
    Ok(())
}

#[test]
fn writes_are_refused_while_too_few_replicas_keep_up() -> Result<()> {
    for (leader, target) in [
        (Target::Dunlin, Target::Reference),
        (Target::Dunlin, Target::Dunlin),
        (Target::Reference, Target::Dunlin),
    ] {
        let options = [
            ("repl-diskless-sync-delay", "0"),
            ("min-replicas-to-write", "1"),
            ("min-replicas-max-lag", "2"),
        ];
        let primary = Server::start(leader, &options)?;
        let mut client = primary.connect()?;
        let refused = "(error) NOREPLICAS Not enough good replicas to write.";
        ensure!(shown(&mut client, "SET k v")? == refused);
        let replica = Server::start(target, &[])?;
        follow(&replica, primary.port())?;
        let mut until = |what: &str, answer: &str| {
            let waited = wait_until(what, || Ok(shown(&mut client, "SET k v")? == answer));
            waited.with_context(|| format!("{leader:?}, {target:?}"))
        };
        until("it keeps up", "OK")?;
        stop(replica.pid())?;
        until("it falls behind", refused)?;
        resume(replica.pid())?;
        until("it keeps up again", "OK")?;
    }
    Ok(())
}

#[test]
fn those_without_an_end_mark_get_the_length_first() -> Result<()> {
    let primary = primary(&[])?;
    fill(&primary)?;
    let mut client = fake(&primary, "REPLCONF listening-port 1", "SYNC")?;
    let (bytes, _) = client.receive_raw(64, Duration::from_secs(10))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\n');
    ensure!(text.starts_with('$') && text.contains("REDIS0011"), "{text}");
    Ok(())
}

/// A node that has lost some of what it had confirmed has all of it again from there on. Redis and
/// Valkey would take the number for a part of the name.
#[test]
fn who_asks_for_it_is_told_how_far_the_stream_reaches() -> Result<()> {
    let primary = primary(&[])?;
    let mut client = primary.connect()?;
    let _first = fake(&primary, "REPLCONF capa eof capa psync2", "PSYNC ? -1")?;
    wait_until("there is a stream", || Ok(number(&mut client, "repl_backlog_active")? == 1))?;
    let begin = number(&mut client, "master_repl_offset")?;
    for number in 0..10 {
        say(&mut client, &format!("SET key {number}"))?;
    }
    let (history, end) =
        (figure(&mut client, "master_replid")?, number(&mut client, "master_repl_offset")?);
    ensure!(end > begin);
    let node = "07".repeat(20);
    let request = format!("PSYNC {history} {}", begin + 1);
    for (introduction, expected) in [
        ("REPLCONF capa eof".to_owned(), "+CONTINUE\r\n".to_owned()),
        ("REPLCONF capa psync2".to_owned(), format!("+CONTINUE {history}\r\n")),
        (format!("REPLCONF capa psync2 cluster-node {node}:1"), format!("+CONTINUE {history}\r\n")),
        (
            format!("REPLCONF capa psync2 capa continue-end cluster-node {node}:1"),
            format!("+CONTINUE {history} {end}\r\n"),
        ),
        (
            format!("REPLCONF cluster-node {node}:1 cluster-primary {node}:1"),
            "-NOMASTERLINK This is not the primary of that epoch\r\n".to_owned(),
        ),
    ] {
        let mut link = fake(&primary, &introduction, &request)?;
        let (bytes, _) = link.receive_raw(expected.len(), tests::observe::PATIENCE)?;
        let text = String::from_utf8_lossy(&bytes);
        ensure!(text.starts_with(&expected), "{introduction}: {text}");
    }
    Ok(())
}

#[test]
fn redis_cli_fetches_copies() -> Result<()> {
    let primary = primary(&[])?;
    fill(&primary)?;
    for (option, loads) in [("--rdb", "bighash"), ("--functions-rdb", "name=lib")] {
        let file = primary.directory().join("fetched.rdb");
        let output = Command::new(peers::program("redis-cli"))
            .args(["-p", &primary.port().to_string(), option])
            .arg(&file)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(&file)?;
        ensure!(bytes.starts_with(b"REDIS00"), "no such file");
        let has = bytes.windows(loads.len()).any(|own| own == loads.as_bytes());
        ensure!(has, "{option} has brought no {loads}");
        let checked = Command::new(peers::program("redis-check-rdb")).arg(&file).output()?;
        ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    Ok(())
}
