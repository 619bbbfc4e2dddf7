//! One stream for all: replicas of replicas, replicas that become primaries, primaries that become
//! replicas, and servers that go on where they were after a restart. Beside real servers, which
//! count the same bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{figure, number, wait_until};
use tests::random::Random;
use tests::replication::{self, Traffic};
use tests::server::{Server, Target};

const USUAL: [(&str, &str); 2] = [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "1gb")];

fn start(target: Target, options: &[(&str, &str)]) -> Result<Server> {
    Server::start(target, &[&USUAL, options].concat())
}

fn follow(server: &Server, primary: &Server) -> Result<()> {
    replication::follow(server, primary.port())
}

fn lead(server: &Server) -> Result<()> {
    let reply = server.connect()?.call(&["REPLICAOF", "NO", "ONE"])?;
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(())
}

fn shown(server: &Server, name: &str) -> Result<String> {
    figure(&mut server.connect()?, name)
}

/// Waits until all replicas have what the primary has written, by the primary's own count and under
/// the same name, and checks that the data is the same.
fn check_alike(primary: &Server, replicas: &[&Server]) -> Result<()> {
    let mut own = primary.connect()?;
    for replica in replicas {
        let mut other = replica.connect()?;
        wait_until("a replica has all", || {
            let up = figure(&mut other, "master_link_status")? == "up";
            let offset = number(&mut own, "master_repl_offset")?;
            let counts = ["slave_repl_offset", "master_repl_offset"];
            let same =
                counts.iter().all(|name| number(&mut other, name).is_ok_and(|n| n == offset));
            let id = figure(&mut own, "master_replid")?;
            Ok(up && same && figure(&mut other, "master_replid")? == id)
        })
        .with_context(|| format!("{}\n{}", replica.log_tail(), primary.log_tail()))?;
        replication::check_alike(primary, replica)?;
    }
    Ok(())
}

/// Commands of all kinds that change data, in several databases. No field of a hash expires: a
/// Valkey before version 9 is told of none.
fn write_at_random(server: &Server, seed: u64, count: usize) -> Result<()> {
    let mut traffic = Traffic { fields_expire: false, ..Traffic::new(seed) };
    traffic.write(&mut server.connect()?, count)
}

/// Servers one behind the other, the first of which is the primary.
fn chain(targets: &[Target]) -> Result<Vec<Server>> {
    let mut servers: Vec<Server> = Vec::new();
    for target in targets {
        let server = start(*target, &[])?;
        if let Some(last) = servers.last() {
            follow(&server, last)?;
            check_alike(&servers[0], &[&server])?;
        }
        servers.push(server);
    }
    Ok(servers)
}

#[test]
fn a_stream_goes_through_servers_of_all_kinds() -> Result<()> {
    use Target::{Dunlin, Reference, Valkey};
    for targets in [
        &[Reference, Dunlin, Reference][..],
        &[Valkey, Dunlin, Valkey],
        &[Reference, Reference, Dunlin],
        &[Dunlin, Reference, Dunlin],
        &[Dunlin, Dunlin, Dunlin, Reference],
    ] {
        let servers = chain(targets)?;
        let replicas: Vec<&Server> = servers.iter().skip(1).collect();
        for seed in 0..3 {
            write_at_random(&servers[0], seed, 700)?;
            check_alike(&servers[0], &replicas).with_context(|| format!("{targets:?}"))?;
        }
        for server in &servers[..servers.len() - 1] {
            ensure!(shown(server, "sync_full")? == "1", "{targets:?}");
        }
    }
    Ok(())
}

#[test]
fn a_replica_without_its_link_lets_nobody_attach() -> Result<()> {
    let mut servers = chain(&[Target::Reference, Target::Dunlin, Target::Reference])?;
    servers[0].kill();
    wait_until("the link is down", || Ok(shown(&servers[1], "master_link_status")? == "down"))?;
    let reply = servers[1].connect()?.call(&["PSYNC", "?", "-1"])?;
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    ensure!(text == "NOMASTERLINK Can't SYNC while not connected with my master", "{text}");
    // The one that is there stays.
    ensure!(shown(&servers[2], "master_link_status")? == "up");
    // Another primary has other data: those below have to take it in, too.
    let other = start(Target::Reference, &[])?;
    write_at_random(&other, 5, 500)?;
    follow(&servers[1], &other)?;
    check_alike(&other, &[&servers[1], &servers[2]])?;
    ensure!(shown(&servers[1], "sync_full")? == "2");
    write_at_random(&other, 6, 500)?;
    check_alike(&other, &[&servers[1], &servers[2]])
}

#[test]
fn a_promoted_replica_is_followed_without_a_copy() -> Result<()> {
    use Target::{Dunlin, Reference};
    for (first, second) in [(Dunlin, Reference), (Reference, Dunlin), (Dunlin, Dunlin)] {
        let primary = start(first, &[])?;
        let (heir, other) = (start(second, &[])?, start(Dunlin, &[])?);
        let below = start(Reference, &[])?;
        for (server, above) in [(&heir, &primary), (&other, &primary), (&below, &heir)] {
            follow(server, above)?;
            check_alike(&primary, &[server])?;
        }
        write_at_random(&primary, 1, 500)?;
        primary.connect()?.call_text("PFADD counted a b c")?;
        check_alike(&primary, &[&heir, &other, &below])?;
        // What counts as a write to some is none that others would lack.
        for command in ["PFCOUNT counted", "PUBLISH channel message"] {
            ensure!(!heir.connect()?.call_text(command)?.is_error(), "{command}");
        }
        let (id, offset) =
            (shown(&primary, "master_replid")?, shown(&primary, "master_repl_offset")?);
        lead(&heir)?;
        ensure!(shown(&heir, "master_replid2")? == id);
        let second_offset: u64 = shown(&heir, "second_repl_offset")?.parse()?;
        ensure!(second_offset == offset.parse::<u64>()? + 1, "{second_offset} {offset}");
        write_at_random(&heir, 2, 300)?;
        // The count is kept in one copy of the value alone.
        heir.connect()?.call_text("DEL counted")?;
        check_alike(&heir, &[&below])?;
        // Another replica, and the former primary itself.
        for server in [&other, &primary] {
            follow(server, &heir)?;
            check_alike(&heir, &[server])?;
        }
        write_at_random(&heir, 3, 300)?;
        check_alike(&heir, &[&below, &other, &primary])?;
        ensure!(shown(&heir, "sync_full")? == "1", "{first:?} {second:?}: {}", heir.log_tail());
        ensure!(shown(&other, "master_replid2")? == id);
        // And back.
        lead(&primary)?;
        follow(&heir, &primary)?;
        follow(&other, &primary)?;
        write_at_random(&primary, 4, 300)?;
        check_alike(&primary, &[&heir, &other, &below])?;
        let full = shown(&primary, "sync_full")?;
        ensure!(full == "2", "{first:?} {second:?} {full}: {}", primary.log_tail());
    }
    Ok(())
}

#[test]
fn what_nobody_else_has_is_given_up_by_a_former_primary() -> Result<()> {
    use Target::{Dunlin, Reference};
    for (first, second) in [(Dunlin, Reference), (Reference, Dunlin)] {
        let (primary, heir) = (start(first, &[])?, start(second, &[])?);
        follow(&heir, &primary)?;
        write_at_random(&primary, 1, 300)?;
        check_alike(&primary, &[&heir])?;
        lead(&heir)?;
        // Both write from the same place on.
        let mut client = primary.connect()?;
        let together = first == Dunlin;
        if together {
            // Redis does not count what the transaction has written before, and keeps it.
            client.call(&["MULTI"])?;
        }
        client.call(&["SET", "lost", "1"])?;
        client.call(&["REPLICAOF", "127.0.0.1", &heir.port().to_string()])?;
        if together {
            client.call(&["EXEC"])?;
        }
        heir.connect()?.call(&["SET", "kept", "1"])?;
        check_alike(&heir, &[&primary])?;
        ensure!(shown(&heir, "sync_full")? == "1", "{first:?}");
        ensure!(primary.connect()?.call(&["EXISTS", "lost"])? == Reply::Integer(0));
    }
    Ok(())
}

/// Writes to a server until it is told to stop: in several databases, transactions too.
fn keep_writing(server: &Server) -> Result<(Arc<AtomicBool>, thread::JoinHandle<Result<()>>)> {
    let (stop, mut client) = (Arc::<AtomicBool>::default(), server.connect()?);
    let stops = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let mut number = 0_u64;
        while !stops.load(Relaxed) {
            number += 1;
            let value = number.to_string();
            write_once(&mut client, number, &value)?;
        }
        Ok(())
    });
    Ok((stop, thread))
}

fn write_once(client: &mut Client, number: u64, value: &str) -> Result<()> {
    if number.is_multiple_of(50) {
        client.call(&["SELECT", &(number / 50 % 3).to_string()])?;
    }
    match number % 7 {
        0 => {
            for words in [&["MULTI"][..], &["INCR", "count"], &["RPUSH", "list", value], &["EXEC"]]
            {
                client.call(words)?;
            }
        }
        1 => drop(client.call(&["LTRIM", "list", "-100", "-1"])?),
        2 => drop(client.call(&["XADD", "stream", "MAXLEN", "50", "*", "f", value])?),
        _ => drop(client.call(&["INCR", &format!("n:{}", number % 97)])?),
    }
    Ok(())
}

/// How often the servers of [`restarts`] are killed, unless `DUNLIN_RESTARTS` says that.
const RESTARTS: usize = 8;

/// A replica with these settings is killed and started again while its primary writes.
fn restarts(target: Target, options: &[(&str, &str)], saves: bool) -> Result<()> {
    let primary = start(target, &[])?;
    let mut replica = start(Target::Dunlin, options)?;
    let (port, mut random) = (primary.port().to_string(), Random::new(3));
    write_at_random(&primary, 1, 500)?;
    follow(&replica, &primary)?;
    check_alike(&primary, &[&replica])?;
    let address = format!("127.0.0.1 {port}");
    replica.set_options(&[&USUAL, options, &[("replicaof", &*address)]].concat());
    if options.contains(&("appendonly", "yes")) {
        wait_until("the files are there", || {
            Ok(shown(&replica, "aof_rewrite_in_progress")? == "0"
                && shown(&replica, "aof_last_bgrewrite_status")? == "ok")
        })?;
    }
    let (stop, writing) = keep_writing(&primary)?;
    let count = std::env::var("DUNLIN_RESTARTS").ok().and_then(|count| count.parse().ok());
    for round in 0..count.unwrap_or(RESTARTS) {
        if saves {
            replica.connect()?.call(&["SAVE"])?;
        }
        thread::sleep(std::time::Duration::from_millis(random.below(150) as u64));
        if round % 4 == 3 {
            replica.terminate()?;
        } else {
            replica.kill();
        }
        replica.start_again()?;
        wait_until("the link is up", || Ok(shown(&replica, "master_link_status")? == "up"))?;
        if round % 10 == 9 {
            // Else the writer is further ahead with each restart, until nobody waits for the rest.
            let end = number(&mut primary.connect()?, "master_repl_offset")?;
            let mut client = replica.connect()?;
            wait_until("it catches up", || Ok(number(&mut client, "slave_repl_offset")? >= end))?;
        }
    }
    stop.store(true, Relaxed);
    writing.join().expect("it does not panic")?;
    check_alike(&primary, &[&replica])?;
    ensure!(shown(&primary, "sync_full")? == "1", "{}", replica.log_tail());
    // What it has is good for others, too.
    let below = start(Target::Reference, &[])?;
    follow(&below, &replica)?;
    write_at_random(&primary, 2, 200)?;
    check_alike(&primary, &[&replica, &below])
}

#[test]
fn a_killed_replica_goes_on_after_its_last_snapshot() -> Result<()> {
    restarts(Target::Reference, &[("save", "")], true)
}

#[test]
fn a_killed_replica_goes_on_where_its_append_only_file_ends() -> Result<()> {
    for (target, fsync) in [(Target::Reference, "everysec"), (Target::Valkey, "always")] {
        restarts(target, &[("save", ""), ("appendonly", "yes"), ("appendfsync", fsync)], false)?;
    }
    Ok(())
}

/// The stream selects a database once. A replica that is killed when its new file has no effect yet
/// knows all the same where the next one belongs.
#[test]
fn a_killed_replica_goes_on_in_the_database_of_the_stream() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let primary = start(target, &[("repl-ping-replica-period", "3600")])?;
        let options = [("save", ""), ("appendonly", "yes"), ("replica-read-only", "no")];
        let mut replica = start(Target::Dunlin, &options)?;
        follow(&replica, &primary)?;
        check_alike(&primary, &[&replica])?;
        let has_file = |replica: &Server| {
            Ok(shown(replica, "aof_rewrite_in_progress")? == "0"
                && shown(replica, "aof_last_bgrewrite_status")? == "ok")
        };
        let address = format!("127.0.0.1 {}", primary.port());
        replica.set_options(&[&USUAL[..], &options, &[("replicaof", &*address)]].concat());
        let mut writer = primary.connect()?;
        writer.call(&["SELECT", "2"])?;
        writer.call(&["SET", "first", "1"])?;
        check_alike(&primary, &[&replica])?;
        wait_until("the files are there", || has_file(&replica))?;
        for (key, own) in [("second", None), ("third", Some("own"))] {
            match own {
                None => {
                    let mut client = replica.connect()?;
                    let before = number(&mut client, "aof_rewrites")?;
                    client.call(&["BGREWRITEAOF"])?;
                    wait_until("the next file", || {
                        Ok(number(&mut client, "aof_rewrites")? > before && has_file(&replica)?)
                    })?;
                }
                Some(own) => {
                    let mut client = replica.connect()?;
                    client.call(&["SELECT", "5"])?;
                    client.call(&["SET", own, "1"])?;
                }
            }
            replica.kill();
            replica.start_again()?;
            writer.call(&["SET", key, "1"])?;
            wait_until("it has it where the primary has it", || {
                let mut client = replica.connect()?;
                client.call(&["SELECT", "2"])?;
                Ok(client.call(&["EXISTS", key])? == Reply::Integer(1))
            })?;
        }
        ensure!(shown(&primary, "sync_full")? == "1", "{}", replica.log_tail());
    }
    Ok(())
}

#[test]
fn the_replicas_of_a_restarted_primary_go_on() -> Result<()> {
    for options in [&[][..], &[("appendonly", "yes")]] {
        let mut primary = start(Target::Dunlin, options)?;
        let replicas = [start(Target::Reference, &[])?, start(Target::Dunlin, &[])?];
        write_at_random(&primary, 1, 500)?;
        for replica in &replicas {
            follow(replica, &primary)?;
        }
        primary.connect()?.call(&["SET", "short", "lived", "PX", "300"])?;
        check_alike(&primary, &[&replicas[0], &replicas[1]])?;
        let id = shown(&primary, "master_replid")?;
        primary.connect()?.call(&["SHUTDOWN", "SAVE"]).ok();
        wait_until("it has stopped", || Ok(!primary.is_running()))?;
        primary.start_again()?;
        ensure!(shown(&primary, "master_replid2")? == id);
        write_at_random(&primary, 2, 300)?;
        check_alike(&primary, &[&replicas[0], &replicas[1]])?;
        ensure!(shown(&primary, "sync_full")? == "0", "{}", replicas[0].log_tail());
    }
    Ok(())
}

/// A replica whose clients may write, and which has its file.
fn writable(primary: &Server) -> Result<Server> {
    let replica = start(Target::Dunlin, &WRITABLE)?;
    follow(&replica, primary)?;
    check_alike(primary, &[&replica])?;
    wait_for_file(&replica)?;
    Ok(replica)
}

const WRITABLE: [(&str, &str); 3] =
    [("appendonly", "yes"), ("replica-read-only", "no"), ("save", "")];

fn wait_for_file(server: &Server) -> Result<()> {
    wait_until("the file is there", || {
        let is_idle = shown(server, "aof_rewrite_in_progress")? == "0";
        Ok(is_idle && shown(server, "aof_enabled")? == "1")
    })
}

/// Kills a replica, and starts it again as a server of its own that has what its file has.
fn restart_from_file(replica: &mut Server) -> Result<()> {
    replica.set_options(&[&USUAL[..], &WRITABLE].concat());
    replica.kill();
    replica.start_again()
}

/// Clients of the replica and its primary write the same keys, so that their order can be seen.
#[test]
fn the_file_of_a_writable_replica_has_all_writes_in_their_order() -> Result<()> {
    for target in [Target::Dunlin, Target::Reference] {
        let primary = start(target, &[])?;
        let mut replica = writable(&primary)?;
        // The primary's writes come in long rows, within which the others fall.
        let write = |server: &Server, name: &str, kinds: usize, rounds: usize, row: usize| {
            let mut client = server.connect()?;
            for round in 0..rounds {
                let mut commands = Vec::new();
                for number in 0..row {
                    let (key, text) = (format!("k{}", number % 3), format!("{name}{round},"));
                    match (number + round) % kinds {
                        0 => encode(&["APPEND", &key, &text], &mut commands),
                        1 => encode(&["SETRANGE", &key, "0", &text], &mut commands),
                        2 if round % 9 == 0 => encode(&["DEL", &key], &mut commands),
                        2 => encode(&["SETNX", &key, &text], &mut commands),
                        // It fails where the key is a text.
                        _ => encode(&["RPUSH", &key, &text], &mut commands),
                    }
                }
                client.send_raw(&commands)?;
                for _ in 0..row {
                    client.receive()?;
                }
            }
            Ok::<_, anyhow::Error>(())
        };
        thread::scope(|scope| {
            let own = scope.spawn(|| write(&primary, "p", 4, 60, 2000));
            let others: Vec<_> =
                (0..2).map(|_| scope.spawn(|| write(&replica, "r", 3, 150, 20))).collect();
            for writer in others.into_iter().chain([own]) {
                writer.join().expect("it does not panic")?;
            }
            Ok::<_, anyhow::Error>(())
        })?;
        wait_until("it has all", || {
            Ok(shown(&replica, "slave_repl_offset")? == shown(&primary, "master_repl_offset")?)
        })?;
        let content = |server: &Server| -> Result<Vec<Reply>> {
            let mut client = server.connect()?;
            ["k0", "k1", "k2"].iter().map(|key| client.call(&["DUMP", key])).collect()
        };
        let before = content(&replica)?;
        restart_from_file(&mut replica)?;
        ensure!(content(&replica)? == before, "the file has another order than the data");
    }
    Ok(())
}

/// A client that waits on a writable replica takes what its primary pushes.
#[test]
fn what_clients_of_a_writable_replica_have_waited_for_is_gone_from_its_file() -> Result<()> {
    let primary = start(Target::Reference, &[])?;
    let mut replica = writable(&primary)?;
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    own.call(&["SELECT", "2"])?;
    other.call(&["SELECT", "2"])?;
    for words in [&["RPUSH", "list", "a", "b"][..], &["MULTI"]] {
        other.send(&["BLMPOP", "0", "1", "list", "LEFT", "COUNT", "1"])?;
        wait_until("it waits", || Ok(shown(&replica, "blocked_clients")? == "1"))?;
        own.call(words)?;
        if words == ["MULTI"] {
            own.call(&["RPUSH", "list", "c", "d"])?;
            own.call(&["SET", "k", "v"])?;
            own.call(&["EXEC"])?;
        }
        ensure!(matches!(other.receive()?, Received::Reply(Reply::Array(_))));
        let left = other.call(&["LRANGE", "list", "0", "-1"])?;
        ensure!(left.clone().elements().is_some_and(|left| left.len() == 1), "{left:?}");
        restart_from_file(&mut replica)?;
        other = replica.connect()?;
        other.call(&["SELECT", "2"])?;
        let kept = other.call(&["LRANGE", "list", "0", "-1"])?;
        ensure!(kept == left, "{kept:?} and {left:?}");
        // The next round.
        follow(&replica, &primary)?;
        own.call(&["DEL", "list"])?;
        check_alike(&primary, &[&replica])?;
        wait_for_file(&replica)?;
    }
    Ok(())
}

#[test]
fn what_a_writable_replica_has_written_is_everywhere_after_its_promotion() -> Result<()> {
    for file in ["no", "yes"] {
        let first = start(Target::Dunlin, &[])?;
        let options = [("replica-read-only", "no"), ("appendonly", file), ("save", "")];
        let mut middle = start(Target::Dunlin, &options)?;
        let last = start(Target::Dunlin, &[])?;
        follow(&middle, &first)?;
        check_alike(&first, &[&middle])?;
        if file == "yes" {
            wait_for_file(&middle)?;
        }
        follow(&last, &middle)?;
        write_at_random(&first, 7, 100)?;
        check_alike(&first, &[&last])?;
        let mut client = middle.connect()?;
        let added = client.call(&["SADD", "own", "a"])?;
        ensure!(added == Reply::Integer(1), "{added:?}");
        lead(&middle)?;
        // It waits for what was written before it.
        client.call_text("CLIENT DURABILITY REPLICAS 1")?;
        let added = client.call(&["SADD", "own", "a"])?;
        ensure!(added == Reply::Integer(0), "{added:?}");
        let found = last.connect()?.call(&["SISMEMBER", "own", "a"])?;
        ensure!(found == Reply::Integer(1), "{found:?}");
        check_alike(&middle, &[&last])?;
        if file == "yes" {
            restart_from_file(&mut middle)?;
            check_alike(&middle, &[&last])?;
            ensure!(middle.connect()?.call(&["EXISTS", "own"])? == Reply::Integer(1));
        }
    }
    Ok(())
}

#[test]
fn a_writable_replica_keeps_its_own_writes_to_itself() -> Result<()> {
    let primary = start(Target::Reference, &[])?;
    let writable = [("appendonly", "yes"), ("replica-read-only", "no"), ("save", "")];
    let mut replica = start(Target::Dunlin, &writable)?;
    let below = start(Target::Reference, &[])?;
    follow(&replica, &primary)?;
    check_alike(&primary, &[&replica])?;
    follow(&below, &replica)?;
    check_alike(&primary, &[&below])?;
    wait_until("the file is there", || {
        Ok(shown(&replica, "aof_rewrite_in_progress")? == "0"
            && shown(&replica, "aof_enabled")? == "1")
    })?;
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    own.call(&["SELECT", "2"])?;
    for number in 0..20 {
        own.call(&["RPUSH", "list", &number.to_string()])?;
        wait_until("it arrives", || {
            Ok(number == 0 || shown(&replica, "slave_repl_offset")? != "0")
        })?;
        other.call(&["SELECT", "5"])?;
        for words in [&["MULTI"][..], &["RPUSH", "own", "a"], &["INCR", "count"], &["EXEC"]] {
            other.call(words)?;
        }
    }
    check_alike(&primary, &[&below])?;
    let offset = shown(&primary, "master_repl_offset")?;
    ensure!(shown(&replica, "master_repl_offset")? == offset);
    // The file has both, and the position.
    let address = format!("127.0.0.1 {}", primary.port());
    replica.set_options(&[&USUAL[..], &writable, &[("replicaof", &*address)]].concat());
    replica.kill();
    replica.start_again()?;
    wait_until("the link is up", || Ok(shown(&replica, "master_link_status")? == "up"))?;
    let mut other = replica.connect()?;
    own.call(&["RPUSH", "list", "last"])?;
    wait_until("it has all", || {
        let offset = number(&mut own, "master_repl_offset")?;
        Ok(number(&mut other, "slave_repl_offset")? == offset)
    })?;
    other.call(&["SELECT", "5"])?;
    ensure!(other.call(&["LLEN", "own"])? == Reply::Integer(20));
    other.call(&["SELECT", "2"])?;
    ensure!(other.call(&["LLEN", "list"])? == Reply::Integer(21));
    ensure!(shown(&primary, "sync_full")? == "1", "{}", replica.log_tail());
    Ok(())
}

/// Nobody follows for a while, so nothing is kept for followers. The file goes on in the history.
#[test]
fn what_was_written_beside_the_stream_is_copied_also_where_no_backlog_was_kept() -> Result<()> {
    let options = [WRITABLE[0], WRITABLE[1], WRITABLE[2], ("repl-backlog-ttl", "1")];
    let first = start(Target::Dunlin, &[&options[..], &[("changes-backlog-ttl", "1")]].concat())?;
    let last = start(Target::Dunlin, &[])?;
    follow(&last, &first)?;
    first.connect()?.call(&["SET", "common", "1"])?;
    check_alike(&first, &[&last])?;
    last.connect()?.call(&["REPLICAOF", "127.0.0.1", "1"])?;
    wait_until("nothing is kept", || Ok(shown(&first, "repl_backlog_active")? == "0"))?;
    let mut client = first.connect()?;
    client.call(&["REPLICAOF", "127.0.0.1", "1"])?;
    client.call(&["SET", "beside", "1"])?;
    client.call(&["REPLICAOF", "NO", "ONE"])?;
    follow(&last, &first)?;
    check_alike(&first, &[&last])
}
