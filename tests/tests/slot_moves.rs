//! Slots that move from one server to another while clients write: nothing is lost, nothing is seen
//! too early, and nothing is left where it was dropped.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, wait_until};
use tests::process::{resume, stop};
use tests::random::Random;
use tests::replication::{Traffic, catch_up, check_alike, first_difference, follow};
use tests::server::{Server, Target};

const ALL_SLOTS: &str = "0-16383";

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, &[&[("repl-diskless-sync-delay", "0")], options].concat())
}

fn replica_of(primary: &Server) -> Result<Server> {
    let replica = start(&[])?;
    follow(&replica, primary.port())?;
    let mut client = replica.connect()?;
    wait_until("it follows", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
    Ok(replica)
}

/// Has a source move slots to the server at a port. Returns its reply.
fn move_slots(source: &Server, port: u16, slots: &str, rate: &str) -> Result<Reply> {
    let port = port.to_string();
    let words = ["SLOTMOVE", "START", "127.0.0.1", &port, slots, "RATE", rate];
    source.connect()?.call(&words)
}

/// The reply when slots have moved.
fn moved() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn size(client: &mut Client) -> Result<i64> {
    match client.call_text("DBSIZE")? {
        Reply::Integer(size) => Ok(size),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Whether a reply, or an error of a load, says that the slots are somewhere else.
fn has_moved(text: &str) -> bool {
    text.contains("MOVED ")
}

#[test]
fn a_target_has_exactly_what_the_source_had() -> Result<()> {
    let seed = std::env::var("SEED").ok().and_then(|own| own.parse().ok()).unwrap_or(1);
    let source = start(&[])?;
    // It keeps what the source had: the source deletes its own.
    let witness = replica_of(&source)?;
    let mut target = start(&[("appendonly", "yes"), ("appendfsync", "everysec")])?;
    let follower = replica_of(&target)?;
    let mut client = source.connect()?;
    let traffic = |seed| Traffic { swaps: false, ..Traffic::new(seed) };
    traffic(seed).write(&mut client, 2000)?;
    client.call_text("SELECT 0")?;
    let members: Vec<_> = (0..100_000).map(|number| number.to_string()).collect();
    for verb in ["SADD large:set", "RPUSH large:list"] {
        let words = verb.split(' ').chain(members.iter().map(String::as_str));
        client.call(&words.collect::<Vec<_>>())?;
    }
    client.call(&["SET", "large:text", &"x".repeat(5_000_000)])?;
    // Keys are deleted at the source only when the witness has been looked at.
    client.call_text("DEBUG PAUSE-CRON 1")?;
    let over = AtomicBool::new(false);
    let reply = scope(|scope| {
        let writers: Vec<_> = (1..3)
            .map(|number| {
                let (source, over, mut traffic) = (&source, &over, traffic(seed + number));
                scope.spawn(move || -> Result<()> {
                    let mut writer = source.connect()?;
                    while !over.load(Relaxed) {
                        traffic.write(&mut writer, 20)?;
                        writer.call_text("SELECT 0")?;
                        match traffic.write_what_is_seldom(&mut writer) {
                            Err(error) if has_moved(&format!("{error:#}")) => break,
                            result => result?,
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        sleep(Duration::from_millis(200));
        let reply = move_slots(&source, target.port(), ALL_SLOTS, "20000000");
        sleep(Duration::from_millis(50));
        over.store(true, Relaxed);
        for writer in writers {
            writer.join().expect("no panic")?;
        }
        reply
    })?;
    ensure!(reply == moved(), "{reply:?}: {}", source.log_tail());
    catch_up(&source, &witness)?;
    let alike = |own: &mut Client, other: &mut Client| -> Result<bool> {
        // FUNCTION LOAD concerns no slot.
        for client in [&mut *own, &mut *other] {
            client.call_text("FUNCTION FLUSH")?;
        }
        Ok(first_difference(own, other)?.is_none())
    };
    witness.connect()?.call_text("REPLICAOF NO ONE")?;
    let (mut own, mut other) = (witness.connect()?, target.connect()?);
    if wait_until("they are alike", || alike(&mut own, &mut other)).is_err() {
        let difference = first_difference(&mut own, &mut other)?;
        anyhow::bail!("seed {seed}: {difference:?}, {}", source.log_tail());
    }
    ensure!(size(&mut other)? > 0);
    check_alike(&target, &follower)?;
    // What was imported is in its files.
    target.kill();
    target.start_again()?;
    let mut again = target.connect()?;
    let difference = first_difference(&mut own, &mut again)?;
    ensure!(difference.is_none(), "after a start: {difference:?}");
    client.call_text("DEBUG PAUSE-CRON 0")?;
    // A full copy has what is hidden too.
    wait_until("the source has no key", || {
        let copy = replica_of(&source)?;
        let keyspace = copy.connect()?.call_text("INFO keyspace")?;
        Ok(!format!("{keyspace:?}").contains("keys="))
    })
}

/// Streams with everything that groups know of them: pending entries whose messages are gone,
/// consumers that were only seen, groups of any number of entries read, and numbers that were set.
fn write_streams(client: &mut Client) -> Result<()> {
    for (stream, entries) in [("small", 20), ("large", 6000)] {
        for number in 1..=entries {
            let text = "x".repeat(number % 50);
            client.call(&["XADD", stream, &format!("{number}-1"), "field", &text])?;
        }
        for (group, from, consumer, count) in
            [("one", "0", "ann", entries / 2), ("one", "", "bob", 5), ("two", "3-1", "eve", 7)]
        {
            if !from.is_empty() {
                client.call(&["XGROUP", "CREATE", stream, group, from])?;
            }
            let count = count.to_string();
            let words = ["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "STREAMS"];
            client.call(&[&words[..], &[stream, ">"]].concat())?;
        }
        client.call(&["XGROUP", "CREATE", stream, "three", "5-1", "ENTRIESREAD", "4"])?;
        for number in 0..1500.min(entries * 10) {
            client.call(&[
                "XGROUP",
                "CREATECONSUMER",
                stream,
                "three",
                &format!("idle{number}"),
            ])?;
        }
        // Messages go that are pending, one by one and from the beginning.
        for number in (7..entries / 2).step_by(3) {
            client.call(&["XDEL", stream, &format!("{number}-1")])?;
        }
        client.call(&["XTRIM", stream, "MINID", "6-1"])?;
        client.call(&["XACK", stream, "one", "8-1", "9-1"])?;
        client.call(&["XCLAIM", stream, "one", "joe", "0", "11-1", "RETRYCOUNT", "9"])?;
    }
    for line in [
        "XADD emptied 5-5 a b",
        "XGROUP CREATE emptied one 0",
        "XREADGROUP GROUP one ann STREAMS emptied >",
        "XDEL emptied 5-5",
        "XSETID emptied 9-9 ENTRIESADDED 70 MAXDELETEDID 8-8",
        "XADD expiring 1-1 a b",
        "PEXPIRE expiring 100000000",
    ] {
        ensure!(!client.call_text(line)?.is_error(), "{line}");
    }
    Ok(())
}

/// All that can be asked about a stream.
fn all_of(client: &mut Client, stream: &str) -> Result<Vec<Reply>> {
    let mut all = vec![
        client.call(&["DUMP", stream])?,
        client.call(&["PEXPIRETIME", stream])?,
        client.call(&["XRANGE", stream, "-", "+"])?,
    ];
    // How long ago something was is different each time.
    let groups = client.call(&["XINFO", "GROUPS", stream])?;
    let names = if stream == "expiring" { &[][..] } else { &["one"] };
    for group in names {
        all.push(client.call(&["XPENDING", stream, group])?);
    }
    all.extend([groups, client.call(&["XINFO", "STREAM", stream, "FULL", "COUNT", "0"])?]);
    Ok(all)
}

#[test]
fn streams_arrive_with_all_that_their_groups_have() -> Result<()> {
    let (source, mut target) = (start(&[])?, start(&[("appendonly", "yes")])?);
    let follower = replica_of(&target)?;
    let mut client = source.connect()?;
    write_streams(&mut client)?;
    let names = ["small", "large", "emptied", "expiring"];
    let all = |client: &mut Client| -> Result<Vec<Vec<Reply>>> {
        names.iter().map(|name| all_of(client, name)).collect()
    };
    let before = all(&mut client)?;
    ensure!(move_slots(&source, target.port(), ALL_SLOTS, "0")? == moved(), "{}", source.log());
    let check = |client: &mut Client, what: &str| -> Result<()> {
        for ((name, own), other) in names.iter().zip(&before).zip(all(client)?) {
            for (number, (own, other)) in own.iter().zip(&other).enumerate() {
                let text: String = format!("{own:?}\n{other:?}").chars().take(3000).collect();
                ensure!(own == other, "{what}, {name}, {number}: {text}");
            }
        }
        Ok(())
    };
    check(&mut target.connect()?, "the target")?;
    catch_up(&target, &follower)?;
    check(&mut follower.connect()?, "its replica")?;
    // They are streams like any others.
    let mut other = target.connect()?;
    let added = other.call_text("XADD large * field value")?;
    ensure!(!added.is_error(), "{added:?}");
    let read = other.call_text("XREADGROUP GROUP one bob COUNT 10000 STREAMS large >")?;
    ensure!(format!("{read:?}").len() > 10_000, "{read:?}");
    let length = other.call_text("XLEN large")?;
    target.kill();
    target.start_again()?;
    let mut again = target.connect()?;
    ensure!(again.call_text("DUMP small")? == before[0][0], "its file has another stream");
    ensure!(again.call_text("XLEN large")? == length);
    let refused = again.call(&["RESTOREPART", "small", "x"])?;
    ensure!(refused.is_error(), "a client does not bring slots: {refused:?}");
    Ok(())
}

/// A block of a stream goes as one string, which no client could send that may send each of its
/// fields. Strings of a source that lets its clients send longer ones go too.
#[test]
fn what_moves_may_be_longer_than_what_clients_send() -> Result<()> {
    let source = start(&[])?;
    let limits = [("proto-max-bulk-len", "1mb"), ("client-query-buffer-limit", "1mb")];
    let target = start(&limits)?;
    let mut client = source.connect()?;
    let part = "x".repeat(600_000);
    let added = client.call(&["XADD", "stream", "1-1", "one", &part, "two", &part])?;
    ensure!(added.text() == Some(b"1-1"), "{added:?}");
    ensure!(client.call(&["SET", "string", &part.repeat(3)])? == moved());
    let before = client.call_text("XRANGE stream - +")?;
    for number in 0..4 {
        let command = ["SET", &format!("grown:{number}"), &part];
        ensure!(client.call(&command)? == moved());
    }
    // What is written when the copy of a key is over there goes as the command that it was.
    let reply = scope(|scope| {
        let moving = scope.spawn(|| move_slots(&source, target.port(), ALL_SLOTS, "4000000"));
        while !moving.is_finished() {
            for number in 0..4 {
                client.call_text(&format!("SETRANGE grown:{number} 1500000 x"))?;
                client.call_text(&format!("SETBIT grown:{number} 12800000 1"))?;
            }
            sleep(Duration::from_millis(20));
        }
        moving.join().expect("it does not panic")
    })?;
    ensure!(reply == moved(), "{reply:?}: {}", source.log_tail());
    let mut other = target.connect()?;
    ensure!(other.call_text("XRANGE stream - +")? == before);
    for number in 0..4 {
        let length = other.call_text(&format!("STRLEN grown:{number}"))?;
        ensure!(length == Reply::Integer(1_600_001), "{length:?}");
    }
    ensure!(other.call_text("STRLEN string")? == Reply::Integer(1_800_000));
    // Its clients are held to its limits.
    let refused = other.call(&["SET", "string", &part.repeat(3)]);
    let is_refused = refused.as_ref().map_or(true, Reply::is_error);
    ensure!(is_refused, "{refused:?}");
    Ok(())
}

/// `maxmemory-clients` of the target bounds its clients.
#[test]
fn what_moves_may_take_more_memory_than_clients() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[("maxmemory-clients", "1mb")])?);
    let mut client = source.connect()?;
    ensure!(client.call(&["SET", "string", &"x".repeat(1_800_000)])? == moved());
    let reply = move_slots(&source, target.port(), ALL_SLOTS, "0")?;
    ensure!(reply == moved(), "{reply:?}: {}", source.log_tail());
    let mut other = target.connect()?;
    ensure!(other.call_text("STRLEN string")? == Reply::Integer(1_800_000));
    ensure!(figure(&mut other, "evicted_clients")? == "0");
    // A client with as much is closed before it has sent all of it.
    let mut greedy = target.connect()?;
    let begin = [&b"*3\r\n$3\r\nSET\r\n$3\r\nown\r\n$1800000\r\n"[..], &[b'x'; 1_700_000]].concat();
    let _ = greedy.send_raw(&begin);
    wait_until("it is closed", || Ok(figure(&mut other, "evicted_clients")? == "1"))?;
    Ok(())
}

/// Adds to counters until told to stop. Follows MOVED.
fn count(servers: &[&Server; 2], seed: u64, over: &AtomicBool) -> Result<Vec<u64>> {
    let mut random = Random::new(seed);
    let mut clients = [servers[0].connect()?, servers[1].connect()?];
    let mut counted = vec![0; 200];
    let mut places = vec![0; 200];
    while !over.load(Relaxed) {
        let number = random.below(200);
        let key = format!("{seed}:{number}");
        let reply = clients[places[number]].call(&["INCR", &key])?;
        match reply {
            Reply::Integer(_) => counted[number] += 1,
            Reply::Error(text) if has_moved(&String::from_utf8_lossy(&text)) => places[number] = 1,
            other => anyhow::bail!("{other:?}"),
        }
    }
    Ok(counted)
}

#[test]
fn no_acknowledged_write_is_lost_or_done_twice() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let mut client = source.connect()?;
    client.call_text("DEBUG POPULATE 20000 filling 100")?;
    let over = AtomicBool::new(false);
    let counted = scope(|scope| -> Result<Vec<Vec<u64>>> {
        let servers = [&source, &target];
        let over = &over;
        let writers: Vec<_> =
            (1..4).map(|seed| scope.spawn(move || count(&servers, seed, over))).collect();
        let moves = (|| {
            for slots in ["0-4095", "8192-8300,9000", "4096-8191"] {
                sleep(Duration::from_millis(50));
                let reply = move_slots(&source, target.port(), slots, "0")?;
                ensure!(reply == moved(), "{reply:?}: {}", source.log_tail());
            }
            Ok(())
        })();
        sleep(Duration::from_millis(50));
        over.store(true, Relaxed);
        let counted = writers.into_iter().map(|own| own.join().expect("no panic"));
        let counted = counted.collect::<Result<_>>();
        moves.and(counted)
    })?;
    let mut clients = [source.connect()?, target.connect()?];
    let mut moved = 0;
    for (seed, counts) in (1..4).zip(&counted) {
        for (number, count) in counts.iter().enumerate() {
            let key = format!("{seed}:{number}");
            let found: Vec<Reply> = clients
                .iter_mut()
                .map(|client| client.call(&["GET", &key]))
                .collect::<Result<_>>()?;
            moved += usize::from(found[0].is_error());
            let value = found.iter().find_map(|own| own.text().filter(|_| !own.is_error()));
            let value = value.map_or(Ok(0), |text| String::from_utf8_lossy(text).parse())?;
            ensure!(value == *count, "{key}: {count} were acknowledged, {found:?}");
        }
    }
    ensure!(moved > 100, "{moved} of 600 have moved");
    // The filling came along, and is gone here.
    wait_until("it is whole", || {
        let (here, there) = (size(&mut clients[0])?, size(&mut clients[1])?);
        Ok(here + there >= 20_000 && there > 9000)
    })
}

#[test]
fn commands_over_several_slots_are_divided() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let mut client = source.connect()?;
    client.call_text("DEBUG POPULATE 3000 filling 200")?;
    for number in 0..100 {
        client.call_text(&format!("MSET a{number} 1 b{number} 2 c{number} 3"))?;
    }
    let mover = scope(|scope| -> Result<Reply> {
        let mover = scope.spawn(|| move_slots(&source, target.port(), "0-8191", "600000"));
        sleep(Duration::from_millis(150));
        for number in 0..100 {
            client.call_text(&format!("MSET a{number} 4 d{number} 5 e{number} 6"))?;
            client.call_text(&format!("DEL b{number} c{number}"))?;
        }
        mover.join().expect("no panic")
    })?;
    ensure!(mover == moved(), "{mover:?}: {}", source.log_tail());
    let mut other = target.connect()?;
    let mut there = 0;
    for number in 0..100 {
        for (name, value) in [("a", "4"), ("b", ""), ("c", ""), ("d", "5"), ("e", "6")] {
            let words = ["GET", &format!("{name}{number}")];
            let mut found = client.call(&words)?;
            if found.is_error() {
                found = other.call(&words)?;
                there += 1;
            }
            let found = found.text().map(|text| String::from_utf8_lossy(text).into_owned());
            ensure!(found.unwrap_or_default() == value, "{words:?}");
        }
    }
    ensure!(there > 150, "{there} have moved");
    Ok(())
}

/// What arrives, while it arrives.
fn see_nothing(target: &Server) -> Result<()> {
    let mut client = target.connect()?;
    ensure!(size(&mut client)? == 0);
    ensure!(client.call_text("KEYS *")?.elements().context("an array")?.is_empty());
    let scanned = client.call_text("SCAN 0 COUNT 100000")?.elements().context("an array")?;
    ensure!(format!("{scanned:?}").len() < 60, "{scanned:?}");
    ensure!(client.call_text("RANDOMKEY")? == Reply::Nil);
    ensure!(!format!("{:?}", client.call_text("INFO keyspace")?).contains("db0"));
    Ok(())
}

#[test]
fn what_arrives_is_hidden_and_goes_when_the_source_goes() -> Result<()> {
    let (mut source, target) = (start(&[])?, start(&[("notify-keyspace-events", "KEA")])?);
    let follower = replica_of(&target)?;
    let mut client = source.connect()?;
    client.call_text("DEBUG POPULATE 5000 filling 100")?;
    let mut listener = target.connect()?;
    listener.call_text("PSUBSCRIBE *")?;
    let (mut own, mut other) = (follower.connect()?, target.connect()?);
    {
        // The source dies under it.
        let port = target.port().to_string();
        client.send(&["SLOTMOVE", "START", "127.0.0.1", &port, ALL_SLOTS, "RATE", "300000"])?;
        wait_until("some has arrived", || Ok(size(&mut own)? > 500))?;
        see_nothing(&target)?;
        source.kill();
    }
    wait_until("it is dropped", || Ok(size(&mut own)? == 0))?;
    see_nothing(&target)?;
    // The slots can be used.
    wait_until("the slots are free", || {
        other.call_text("DEL own")?;
        other.call_text("SET own 1")?;
        Ok(size(&mut other)? == 1)
    })?;
    // Nobody has heard of anything but that.
    let (heard, _) = listener.receive_raw(1 << 20, Duration::from_millis(200))?;
    ensure!(!String::from_utf8_lossy(&heard).contains("filling"), "{heard:?}");
    Ok(())
}

/// Fields of hashes expire in no other slots.
#[test]
fn files_and_copies_have_fields_that_expire_in_hidden_slots() -> Result<()> {
    let target = start(&[("appendonly", "yes")])?;
    let (mut source, mut client) = (target.connect()?, target.connect()?);
    ensure!(source.call(&["SLOTMOVE", "BEGIN", "move", SLOT_OF_BAR, "1", "1"])? == moved());
    source.call_text("HSET bar field value")?;
    source.call_text("HPEXPIRE bar 9000000 FIELDS 1 field")?;
    client.call_text("BGSAVE")?;
    wait_until("it is saved", || Ok(figure(&mut client, "rdb_bgsave_in_progress")? == "0"))?;
    ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok", "{}", target.log_tail());
    client.call_text("BGREWRITEAOF")?;
    wait_until("it is written", || Ok(figure(&mut client, "aof_rewrite_in_progress")? == "0"))?;
    ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "ok", "{}", target.log_tail());
    let replica = replica_of(&target)?;
    ensure!(size(&mut replica.connect()?)? == 1);
    Ok(())
}

/// A source gives a move up, and what it has sent for it comes after another move of the same
/// slots.
#[test]
fn what_comes_late_of_one_move_ends_no_later_one() -> Result<()> {
    let target = start(&[])?;
    let begin = |client: &mut Client, name: &str, slots: &str, epoch: &str, attempt: &str| {
        client.call(&["SLOTMOVE", "BEGIN", name, slots, epoch, attempt])
    };
    let (mut other, mut late, mut next) = (target.connect()?, target.connect()?, target.connect()?);
    ensure!(begin(&mut other, "second", "5061-5070", "7", "9")? == moved());
    for (epoch, attempt) in [("7", "8"), ("6", "20")] {
        let refused = begin(&mut late, "first", "5000-5061", epoch, attempt)?;
        ensure!(
            refused == Reply::Error(b"ERR the import of these slots is over".to_vec()),
            "{refused:?}"
        );
    }
    ensure!(other.call(&["SET", "bar", "x"])? == moved(), "its import goes on");
    // Other slots, and a later try, are another matter.
    ensure!(begin(&mut late, "first", "5000-5060", "7", "8")? == moved());
    ensure!(begin(&mut next, "first", "5061", "7", "10")? == moved());
    let over = other.call(&["SET", "bar", "y"])?;
    ensure!(over.is_error(), "{over:?}");
    Ok(())
}

#[test]
fn a_source_goes_on_when_its_target_goes() -> Result<()> {
    let (source, mut target) = (start(&[])?, start(&[])?);
    let follower = replica_of(&target)?;
    let (mut client, mut own) = (source.connect()?, follower.connect()?);
    client.call_text("DEBUG POPULATE 5000 filling 100")?;
    let port = target.port();
    let reply = scope(|scope| -> Result<Reply> {
        let mover = scope.spawn(|| move_slots(&source, port, ALL_SLOTS, "300000"));
        wait_until("some has arrived", || Ok(size(&mut own)? > 500))?;
        target.kill();
        mover.join().expect("no panic")
    })?;
    ensure!(reply.is_error(), "{reply:?}");
    ensure!(client.call_text("SET filling:1 own")? == moved() && size(&mut client)? == 5000);
    // Another one takes the slots.
    let other = start(&[])?;
    ensure!(move_slots(&source, other.port(), ALL_SLOTS, "0")? == moved());
    ensure!(size(&mut other.connect()?)? == 5000);
    Ok(())
}

/// What clients may not call, or call by other names, is not for them alone: a source sends it.
#[test]
fn slots_move_where_commands_are_renamed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("names.conf");
    let lines = ["PEXPIREAT", "PING", "SET", "UNLINK", "XSETID"]
        .map(|name| format!("rename-command {name} \"\"\n"))
        .concat();
    std::fs::write(&file, lines + "rename-command PSETEX SET\n")?;
    let options = [("include", file.to_str().context("a path")?)];
    let (source, target) = (start(&options)?, start(&options)?);
    let mut client = source.connect()?;
    client.call_text("SETEX bar 1000 value")?;
    client.call_text("XADD {bar}stream 1-1 a b")?;
    ensure!(move_slots(&source, target.port(), SLOT_OF_BAR, "0")? == moved(), "{}", source.log());
    let mut other = target.connect()?;
    ensure!(other.call_text("GET bar")?.text() == Some(&b"value"[..]));
    ensure!(matches!(other.call_text("TTL bar")?, Reply::Integer(left) if left > 0));
    ensure!(other.call_text("XLEN {bar}stream")? == Reply::Integer(1));
    ensure!(other.call_text("PEXPIREAT bar 1")?.is_error(), "clients have no such command");
    Ok(())
}

/// What clients call FLUSHALL is a flush at the target, too.
#[test]
fn what_is_flushed_by_another_name_stays_flushed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("names.conf");
    std::fs::write(&file, "rename-command FLUSHALL wipe\nrename-command FLUSHDB erase\n")?;
    let options = [("include", file.to_str().context("a path")?)];
    for wipe in ["WIPE", "ERASE ASYNC"] {
        let (source, target) = (start(&options)?, start(&[])?);
        let (mut client, mut mover) = (source.connect()?, source.connect()?);
        client.call_text("DEBUG POPULATE 5000 flushed 100")?;
        let port = target.port().to_string();
        mover.send(&["SLOTMOVE", "START", "127.0.0.1", &port, ALL_SLOTS, "RATE", "300000"])?;
        // A full copy has what is hidden too.
        let follower = replica_of(&target)?;
        let mut arrived = follower.connect()?;
        wait_until("some has arrived", || Ok(size(&mut arrived)? > 500))?;
        ensure!(client.call_text(wipe)? == moved());
        let taken = mover.receive()?;
        ensure!(taken == Received::Reply(moved()), "{wipe}: {taken:?}: {}", source.log_tail());
        ensure!(size(&mut target.connect()?)? == 0, "{wipe}");
    }
    Ok(())
}

/// The slot of the key `bar`. That of `foo` is another one.
const SLOT_OF_BAR: &str = "5061";

#[test]
fn nobody_waits_for_a_script_that_runs_while_slots_are_to_change_hands() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let (mut caller, mut client) = (source.connect()?, source.connect()?);
    client.call_text("SET bar 1")?;
    let script = "local from = os.clock() \
                  while os.clock() - from < 3 do end return 'done'";
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (reply, longest, lasted) = scope(|scope| -> Result<_> {
        let is_over = &is_over;
        let running = scope.spawn(move || {
            let reply = caller.call(&["EVAL", script, "1", "foo"]);
            is_over.store(true, Relaxed);
            reply
        });
        let mover = scope.spawn(|| move_slots(&source, target.port(), SLOT_OF_BAR, "0"));
        let mut longest = Duration::ZERO;
        while !is_over.load(Relaxed) {
            let asked = Instant::now();
            client.call_text("INCR bar")?;
            longest = longest.max(asked.elapsed());
        }
        let lasted = begun.elapsed();
        ensure!(running.join().expect("no panic")?.text() == Some(&b"done"[..]));
        Ok((mover.join().expect("no panic")?, longest, lasted))
    })?;
    ensure!(reply == moved(), "{reply:?}: {}", source.log_tail());
    ensure!(longest < lasted / 2, "a client has waited for {longest:?} of {lasted:?}");
    Ok(())
}

#[test]
fn a_bounded_move_does_not_keep_the_journal_for_long() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let mut client = source.connect()?;
    client.call(&["SET", "bar", &"x".repeat(4_000_000)])?;
    let mut mover = source.connect()?;
    let port = target.port().to_string();
    // It would take an hour.
    mover.send(&["SLOTMOVE", "START", "127.0.0.1", &port, SLOT_OF_BAR, "RATE", "1000"])?;
    let large = "y".repeat(1_000_000);
    for _ in 0..1000 {
        client.call(&["SET", "foo", &large])?;
        if client.call_text("GET bar")?.is_error() {
            return Ok(());
        }
    }
    anyhow::bail!("it keeps 1000 MB of the journal: {}", source.log_tail())
}

fn info(client: &mut Client) -> Result<String> {
    let told = client.call_text("INFO CLUSTER")?;
    Ok(String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned())
}

/// So many keys of one slot, each with so many bytes, move to a target that stands still meanwhile.
/// Returns a client of the source, and the connection for which it moves them.
fn begin_towards_silence(
    source: &Server,
    target: &Server,
    (keys, bytes): (usize, usize),
) -> Result<(Client, Client)> {
    let (mut client, mut mover) = (source.connect()?, source.connect()?);
    let value = "x".repeat(bytes);
    for number in 0..keys {
        client.call(&["SET", &format!("{{bar}}{number}"), &value])?;
    }
    let port = target.port().to_string();
    mover.send(&["SLOTMOVE", "START", "127.0.0.1", &port, SLOT_OF_BAR, "RATE", "300000"])?;
    wait_until("it copies", || Ok(info(&mut client)?.contains("state=copying")))?;
    stop(target.pid())?;
    Ok((client, mover))
}

#[test]
fn a_target_that_stands_still_does_not_keep_the_journal() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let (mut client, _mover) = begin_towards_silence(&source, &target, (400, 1000))?;
    // The connection takes all of the copy, and the target says nothing.
    for number in 0..4000 {
        client.call(&["SET", &format!("{{bar}}{}", number % 400), "y"])?;
    }
    wait_until("all is sent", || Ok(info(&mut client)?.contains("state=following")))?;
    let large = "y".repeat(1_000_000);
    for _ in 0..300 {
        client.call(&["SET", "foo", &large])?;
    }
    let kept = figure(&mut client, "mem_replication_backlog")?.parse::<u64>()?;
    resume(target.pid())?;
    ensure!(kept < 150_000_000, "it keeps {kept} bytes of the journal: {}", source.log_tail());
    Ok(())
}

/// Writers wait when too much is kept for a copy, and the target takes none of it.
#[test]
fn writers_do_not_wait_for_a_target_that_stands_still() -> Result<()> {
    let (source, target) = (start(&[])?, start(&[])?);
    let (mut client, _mover) = begin_towards_silence(&source, &target, (10_000, 14_000))?;
    for number in 0..10_000 {
        client.call(&["APPEND", &format!("{{bar}}{number}"), "y"])?;
    }
    let given_up =
        wait_until("it begins anew", || Ok(source.log().contains("writers would wait for it")));
    resume(target.pid())?;
    given_up.with_context(|| source.log_tail())
}
