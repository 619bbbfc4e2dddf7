//! SAVE and similar commands: what the reference server reads from our files, whatever went on
//! meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, FileType};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, wait_until};
use tests::random::Random;
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, options)
}

/// A reference server that was started on a server's file.
fn reference_on_file_of(server: &Server) -> Result<Server> {
    let mut reference = Server::start(Target::Reference, &[])?;
    reference.kill();
    fs::copy(server.directory().join("dump.rdb"), reference.directory().join("dump.rdb"))?;
    reference.start_again()?;
    Ok(reference)
}

fn digest(client: &mut Client) -> Result<Reply> {
    client.call_text("DEBUG DIGEST")
}

/// Some of everything: packed and large, with and without an expiry, in several databases.
fn fill(client: &mut Client) -> Result<()> {
    let mut random = Random::new(7);
    let mut call = |words: &[String]| client.call(words).map(drop);
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for number in 0..2000 {
        let length = random.below(400);
        call(&words(format!("SET string:{number} {}", "v".repeat(length + 1))))?;
        call(&words(format!("SET number:{number} {}", random.between(-1 << 40, 1 << 40))))?;
        let (few, many) = (number % 40, number % 3);
        call(&words(format!("SADD set:{few} member:{number}")))?;
        call(&words(format!("SADD ints {number}")))?;
        call(&words(format!("SADD large-set:{many} member:{number}")))?;
        call(&words(format!("HSET hash:{few} field:{number} {length}")))?;
        call(&words(format!("HSET large-hash:{many} field:{number} {}", "x".repeat(length + 1))))?;
        call(&words(format!("ZADD zset:{few} {}.5 member:{number}", random.between(-99, 99))))?;
        call(&words(format!(
            "ZADD large-zset:{many} {} member:{number}",
            random.between(-99, 99)
        )))?;
        call(&words(format!("RPUSH list:{few} {number} {}", "y".repeat(length + 1))))?;
        call(&words(format!("XADD stream:{few} {number}-1 number {number} length {length}")))?;
        call(&words(format!("XADD large-stream {number}-1 text {}", "z".repeat(length + 1))))?;
        if number == 1000 {
            call(&words("XGROUP CREATE large-stream group 100".into()))?;
            call(&words("XREADGROUP GROUP group one COUNT 500 STREAMS large-stream >".into()))?;
        }
        if number % 5 == 0 {
            call(&words(format!("EXPIRE string:{number} 100000")))?;
        }
    }
    call(&words("SELECT 9".into()))?;
    call(&words("SET elsewhere 1".into()))?;
    call(&words("SELECT 0".into()))
}

#[test]
fn the_reference_loads_what_save_writes() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    fill(&mut client)?;
    let before = client.call_text("LASTSAVE")?;
    for settings in [["rdbcompression", "yes"], ["rdbcompression", "no"]] {
        client.call(&["CONFIG", "SET", settings[0], settings[1]])?;
        ensure!(client.call_text("SAVE")? == ok());
        ensure!(figure(&mut client, "rdb_changes_since_last_save")? == "0");
        let reference = reference_on_file_of(&server)?;
        ensure!(digest(&mut reference.connect()?)? == digest(&mut client)?);
    }
    let (Reply::Integer(before), Reply::Integer(after)) = (before, client.call_text("LASTSAVE")?)
    else {
        anyhow::bail!("LASTSAVE answers with a time")
    };
    ensure!(after >= before);
    ensure!(figure(&mut client, "rdb_saves")? == "2");
    ensure!(figure(&mut client, "rdb_last_bgsave_time_sec")? == "-1", "of BGSAVE alone");
    ensure!(client.call_text("DEBUG RELOAD")? == ok());
    ensure!(figure(&mut client, "rdb_saves")? == "2", "nobody asked for that one");
    Ok(())
}

/// Moves amounts between accounts, in several shapes of data, until it is told to stop.
fn transfer(mut client: Client, seed: u64, stop: &AtomicBool) -> Result<()> {
    let mut random = Random::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let (from, to) = (random.below(500), random.below(500));
        let amount = random.between(1, 9);
        for line in [
            "MULTI".to_owned(),
            format!("DECRBY account:{from} {amount}"),
            format!("INCRBY account:{to} {amount}"),
            format!("HINCRBY accounts account:{from} -{amount}"),
            format!("HINCRBY accounts account:{to} {amount}"),
            format!("ZINCRBY ranking -{amount} account:{from}"),
            format!("ZINCRBY ranking {amount} account:{to}"),
            format!("SMOVE left right account:{from}"),
            format!("SMOVE right left account:{to}"),
        ] {
            client.call_text(&line)?;
        }
        let reply = client.call_text("EXEC")?;
        ensure!(!reply.is_error(), "{reply:?}");
        if random.percent(1) {
            // Whoever meets no hash meanwhile makes one, whose sum is 0.
            client.call_text("RENAMENX accounts moved")?;
            client.call_text("RENAME moved accounts")?;
        }
    }
    Ok(())
}

fn sum(replies: Reply, every: usize) -> Result<i64> {
    let numbers = replies.elements().context("an array")?;
    let numbers = numbers.iter().skip(every - 1).step_by(every);
    let parse = |reply: &Reply| -> Result<i64> {
        Ok(String::from_utf8_lossy(reply.text().context("a number")?).parse()?)
    };
    numbers.map(parse).sum()
}

/// Looks at accounts whose sums no transfer changes.
fn check_sums(mut reader: Client) -> Result<()> {
    let accounts = (0..500).map(|account| format!("account:{account}"));
    let mget: Vec<_> = std::iter::once("MGET".to_owned()).chain(accounts).collect();
    ensure!(sum(reader.call(&mget)?, 1)? == 500_000);
    let here = sum(reader.call_text("HVALS accounts")?, 1)?;
    let moved = sum(reader.call_text("HVALS moved")?, 1)?;
    ensure!(here + moved == 500_000, "{here} and {moved}");
    ensure!(sum(reader.call_text("ZRANGE ranking 0 -1 WITHSCORES")?, 2)? == 500_000);
    ensure!(reader.call_text("SUNION left right")?.elements().map_or(0, |all| all.len()) == 500);
    let both = reader.call_text("SINTERCARD 2 left right")?;
    ensure!(both == Reply::Integer(0), "{both:?}");
    Ok(())
}

/// Does something some times beside transfers.
fn beside_transfers(
    server: &Server,
    times: usize,
    mut action: impl FnMut(&mut Client) -> Result<()>,
) -> Result<()> {
    let mut client = server.connect()?;
    for account in 0..500 {
        client.call_text(&format!("SET account:{account} 1000"))?;
        client.call_text(&format!("HSET accounts account:{account} 1000"))?;
        client.call_text(&format!("ZADD ranking 1000 account:{account}"))?;
        client.call_text(&format!("SADD left account:{account}"))?;
    }
    // More to write, so that the transfers go on for long enough.
    client.call_text("DEBUG POPULATE 100000 filler 100")?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..3)
            .map(|seed| {
                Ok(scope.spawn({
                    let (client, stop) = (server.connect()?, &stop);
                    move || transfer(client, seed, stop)
                }))
            })
            .collect::<Result<_>>()?;
        let done = (0..times).try_for_each(|_| action(&mut client));
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))?;
        done
    })
}

#[test]
fn a_file_is_the_data_between_two_commands() -> Result<()> {
    let server = start(&[("threads", "4")])?;
    beside_transfers(&server, 4, |client| {
        ensure!(client.call_text("SAVE")? == ok());
        // With the reference's eyes.
        check_sums(reference_on_file_of(&server)?.connect()?)
    })
}

/// A server that was started on a copy of another's append-only file, as it is now.
fn on_append_only_file_of(server: &Server, target: Target) -> Result<Server> {
    let mut other = Server::start(target, &[("appendonly", "yes")])?;
    other.kill();
    let [from, to] = [server, &other].map(|it| it.directory().join("appendonlydir"));
    fs::remove_dir_all(&to)?;
    fs::create_dir(&to)?;
    for entry in fs::read_dir(&from)? {
        let name = entry?.file_name();
        fs::copy(from.join(&name), to.join(&name))?;
    }
    other.start_again()?;
    Ok(other)
}

#[test]
fn a_rewritten_file_is_the_data_between_two_commands() -> Result<()> {
    for preamble in ["yes", "no"] {
        let server = start(&[
            ("threads", "4"),
            ("appendonly", "yes"),
            ("appendfsync", "no"),
            ("auto-aof-rewrite-percentage", "0"),
            ("aof-use-rdb-preamble", preamble),
        ])?;
        beside_transfers(&server, 2, |client| {
            client.call_text("BGREWRITEAOF")?;
            wait_until("the rewrite", || Ok(figure(client, "aof_rewrite_in_progress")? == "0"))?;
            ensure!(figure(client, "aof_last_bgrewrite_status")? == "ok");
            // What follows the base ends anywhere, but behind a whole transaction.
            for target in [Target::Reference, Target::Dunlin] {
                check_sums(on_append_only_file_of(&server, target)?.connect()?)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Makes each file with ten thousand keys take half a second at least.
fn take_time(client: &mut Client) -> Result<()> {
    ensure!(client.call_text("CONFIG SET rdb-key-save-delay 50")? == ok());
    Ok(())
}

#[test]
fn one_file_at_a_time() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000 key 200")?;
    take_time(&mut client)?;
    let mut other = server.connect()?;
    ensure!(client.call_text("BGSAVE")? == Reply::Status(b"Background saving started".to_vec()));
    ensure!(client.call_text("DEL key:0 key:1")? == Reply::Integer(2), "behind what is saved");
    let refused = Reply::Error(b"ERR Background save already in progress".to_vec());
    ensure!(other.call_text("BGSAVE")? == refused);
    ensure!(other.call_text("SAVE")? == refused);
    ensure!(other.call_text("BGSAVE SCHEDULE")? == refused);
    ensure!(figure(&mut other, "rdb_bgsave_in_progress")? == "1");
    wait_until("the end of the save", || Ok(figure(&mut other, "rdb_bgsave_in_progress")? == "0"))?;
    ensure!(figure(&mut other, "rdb_last_bgsave_status")? == "ok");
    ensure!(figure(&mut other, "rdb_changes_since_last_save")? == "2");
    let reference = reference_on_file_of(&server)?;
    ensure!(reference.connect()?.call_text("DBSIZE")? == Reply::Integer(10_000));
    client.call_text("MULTI")?;
    client.call_text("BGSAVE")?;
    let scheduled = Reply::Status(b"Background saving scheduled".to_vec());
    ensure!(client.call_text("EXEC")? == Reply::Array(vec![scheduled]));
    wait_until("that one's", || Ok(figure(&mut other, "rdb_bgsave_in_progress")? == "0"))?;
    ensure!(figure(&mut other, "rdb_changes_since_last_save")? == "0");
    ensure!(client.call_text("BGSAVE now")? == Reply::Error(b"ERR syntax error".to_vec()));
    Ok(())
}

#[test]
fn rules_save_and_failures_stop_writes() -> Result<()> {
    let server = start(&[
        ("save", "1 3"),
        ("dbfilename", "by-rule.rdb"),
        ("enable-protected-configs", "yes"),
    ])?;
    let mut client = server.connect()?;
    client.call_text("MSET a 1 b 2 c 3")?;
    client.call_text("SET d 4")?;
    client.call_text("SET e 5")?;
    let file = server.directory().join("by-rule.rdb");
    wait_until("a save by rule", || Ok(file.exists()))?;
    ensure!(server.log().contains("changes in 1 seconds. Saving..."), "{}", server.log());
    wait_until("its end", || Ok(figure(&mut client, "rdb_bgsave_in_progress")? == "0"))?;

    // No file can be put where a directory of that name is.
    fs::create_dir(server.directory().join("taken"))?;
    let before = fs::read(&file)?;
    client.call_text("CONFIG SET dbfilename taken")?;
    let failed = client.call_text("SAVE")?;
    ensure!(failed == Reply::Error(b"ERR".to_vec()), "{failed:?} {}", server.log());
    ensure!(client.call_text("SHUTDOWN")?.is_error(), "the server goes on");
    // The clients that asked for these know that they failed: it has no consequence.
    ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok");
    ensure!(client.call_text("SET e 6")? == ok());
    ensure!(client.call_text("BGSAVE")? == Reply::Status(b"Background saving started".to_vec()));
    wait_until("its end", || Ok(figure(&mut client, "rdb_last_bgsave_status")? == "err"))?;
    for command in ["SET f 6", "PING"] {
        let refused = client.call_text(command)?;
        ensure!(refused.text().is_some_and(|text| text.starts_with(b"MISCONF ")), "{refused:?}");
    }
    ensure!(client.call_text("GET a")? == Reply::Bulk(b"1".to_vec()));
    ensure!(client.call_text("PFCOUNT none")? == Reply::Integer(0));
    ensure!(client.call_text("PUBLISH channel message")? == Reply::Integer(0));
    ensure!(fs::read(&file)? == before, "the old file is as it was");
    let left: Vec<_> =
        fs::read_dir(server.directory())?.flatten().map(|it| it.file_name()).collect();
    ensure!(!left.iter().any(|name| name.to_string_lossy().starts_with("temp-")), "{left:?}");

    client.call_text("CONFIG SET dbfilename by-rule.rdb")?;
    ensure!(client.call_text("SAVE")? == ok());
    ensure!(client.call_text("SET f 6")? == ok());
    Ok(())
}

#[test]
fn the_last_file_has_everything() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    fill(&mut client)?;
    let wanted = digest(&mut client)?;
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    ensure!(server.log().contains("DB saved on disk"), "{}", server.log_tail());
    let reference = reference_on_file_of(&server)?;
    ensure!(digest(&mut reference.connect()?)? == wanted);
    let mode = fs::metadata(server.directory().join("dump.rdb"))?.permissions().mode();
    ensure!(mode & 0o777 == 0o640, "{mode:o}");
    Ok(())
}

#[test]
fn a_reload_changes_nothing() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    fill(&mut client)?;
    let wanted = digest(&mut client)?;
    for line in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "DEBUG RELOAD MERGE NOFLUSH"] {
        let reply = client.call_text(line)?;
        ensure!(reply == ok(), "{line}: {reply:?}");
        ensure!(digest(&mut client)? == wanted, "{line}");
    }
    Ok(())
}

#[test]
fn a_restart_brings_everything_back() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    fill(&mut client)?;
    let wanted = digest(&mut client)?;
    ensure!(server.terminate()? == Some(0));
    server.start_again()?;
    ensure!(digest(&mut server.connect()?)? == wanted);
    ensure!(server.log().contains("DB loaded from disk: "), "{}", server.log_tail());
    Ok(())
}

#[test]
fn flushall_empties_the_file_where_there_are_rules() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    let flush = ["FLUSHALL", "FLUSHALL ASYNC"];
    for flush in flush {
        client.call_text("MSET a 1 b 2")?;
        ensure!(client.call_text("SAVE")? == ok());
        ensure!(client.call_text(flush)? == ok());
        ensure!(figure(&mut client, "rdb_changes_since_last_save")? == "0");
        server.start_again()?;
        client = server.connect()?;
        ensure!(client.call_text("DBSIZE")? == Reply::Integer(0));
    }
    for line in ["MULTI", "SET x 1", "FLUSHALL", "SET y 1", "EXEC"] {
        client.call_text(line)?;
    }
    ensure!(figure(&mut client, "rdb_changes_since_last_save")? == "1");
    ensure!(figure(&mut client, "rdb_saves")? == "0", "nobody asked for one");
    client.call_text("FLUSHDB")?;
    ensure!(figure(&mut client, "rdb_changes_since_last_save")? == "2");
    client.call(&["CONFIG", "SET", "save", ""])?;
    client.call_text("FLUSHALL")?;
    ensure!(figure(&mut client, "rdb_changes_since_last_save")? == "2");
    Ok(())
}

/// A command and a script of one transaction wait for their files together: the next command waits
/// for itself.
#[test]
fn a_transaction_waits_for_all_its_files_and_no_longer() -> Result<()> {
    let server = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    let script = ["EVAL", "return redis.call('flushall')", "0"];
    let library = "#!lua name=l\nredis.register_function('empty', function() return \
                   redis.call('flushall') end)";
    client.call(&["FUNCTION", "LOAD", library])?;
    let function = ["FCALL", "empty", "0"];
    let flush: &[&str] = &["FLUSHALL"];
    for commands in [[flush, &script], [&script, &script], [&script, flush], [flush, &function]] {
        client.send(&["MULTI"])?;
        commands.iter().try_for_each(|words| client.send(words))?;
        client.send(&["EXEC"])?;
        client.send(&["BLPOP", "nothing", "0.05"])?;
        client.send(&["ECHO", "end"])?;
        let (queued, both) = (Reply::Status(b"QUEUED".to_vec()), Reply::Array(vec![ok(), ok()]));
        let end = Reply::Bulk(b"end".to_vec());
        for expected in [ok(), queued.clone(), queued, both, Reply::NilArray, end] {
            let reply = client.receive()?;
            ensure!(reply == Received::Reply(expected), "{commands:?}: {reply:?}");
        }
    }
    Ok(())
}

#[test]
fn flushall_sends_no_reply_after_its_file_when_replies_are_off() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let server = Server::start(target, &[("save", "3600 1")])?;
        let mut client = server.connect()?;
        client.send(&["CLIENT", "REPLY", "SKIP"])?;
        client.send(&["FLUSHALL"])?;
        let said = |word: &str| Reply::Bulk(word.as_bytes().to_vec());
        for word in ["first", "second"] {
            ensure!(client.call(&["ECHO", word])? == said(word), "{target:?}: {word}");
        }
        client.send(&["CLIENT", "REPLY", "OFF"])?;
        client.send(&["FLUSHALL"])?;
        ensure!(client.call(&["CLIENT", "REPLY", "ON"])? == ok());
        ensure!(client.call(&["ECHO", "third"])? == said("third"), "{target:?}");
    }
    Ok(())
}

#[test]
fn flushall_ends_a_save_that_goes_on() -> Result<()> {
    for (rules, keys) in [("", 10_000), ("3600 1", 0)] {
        let mut server = start(&[("save", rules)])?;
        let mut client = server.connect()?;
        client.call_text("DEBUG POPULATE 10000")?;
        ensure!(client.call_text("SAVE")? == ok());
        client.call_text("SET one more")?;
        take_time(&mut client)?;
        client.call_text("BGSAVE")?;
        ensure!(client.call_text("FLUSHALL")? == ok());
        let idle = |client: &mut Client| Ok(figure(client, "rdb_bgsave_in_progress")? == "0");
        wait_until("the end of the save", || idle(&mut client))?;
        ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok");
        let changes = if rules.is_empty() { "10002" } else { "0" };
        ensure!(figure(&mut client, "rdb_changes_since_last_save")? == changes);
        ensure!(figure(&mut client, "rdb_saves")? == "2", "that were asked for");
        ensure!(server.log().contains("Background saving given up"), "{}", server.log_tail());
        ensure!(unfinished(&server)?.is_empty());
        server.start_again()?;
        ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(keys), "{rules}");
    }
    Ok(())
}

#[test]
fn the_data_of_a_primary_ends_a_save_that_goes_on() -> Result<()> {
    let (server, primary) = (start(&[])?, start(&[("repl-diskless-sync-delay", "0")])?);
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 100000")?;
    take_time(&mut client)?;
    client.call_text("BGSAVE")?;
    follow(&server, primary.port())?;
    catch_up(&primary, &server)?;
    let log = server.log();
    let line = "Background saving given up: the data of the primary takes the place of its data";
    ensure!(log.contains(line) && !log.contains("about to stop"), "{}", server.log_tail());
    ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok");
    ensure!(unfinished(&server)?.is_empty());
    Ok(())
}

#[test]
fn files_keep_their_order_beside_flushes() -> Result<()> {
    let mut server = start(&[("save", "3600 100000000"), ("threads", "4")])?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let flusher = scope.spawn(|| -> Result<()> {
            let mut client = server.connect()?;
            while !stop.load(Ordering::Relaxed) {
                client.call_text("FLUSHALL")?;
            }
            Ok(())
        });
        let mut client = server.connect()?;
        let done = (0..50).try_for_each(|round| -> Result<()> {
            client.call_text(&format!("DEBUG POPULATE {}", 1 + round * 50))?;
            let saved = client.call_text(if round % 2 == 0 { "SAVE" } else { "BGSAVE" })?;
            ensure!(saved == ok() || saved.text().is_some(), "{saved:?}");
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        flusher.join().expect("no panic")?;
        done
    })?;
    let mut client = server.connect()?;
    let idle = |client: &mut Client| Ok(figure(client, "rdb_bgsave_in_progress")? == "0");
    wait_until("the end of the save", || idle(&mut client))?;
    ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok", "{}", server.log_tail());
    client.call_text("DEBUG POPULATE 1000")?;
    ensure!(client.call_text("SAVE")? == ok());
    client.call_text("FLUSHALL")?;
    ensure!(unfinished(&server)?.is_empty());
    server.start_again()?;
    ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(0));
    Ok(())
}

/// A path that blocks a writer that opens it until a reader opens it too.
fn pipe(path: &Path) -> Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0)?)
}

/// The disk is slow while FLUSHALL's file is opened: the client that asked waits, and no other, be
/// it on the same worker, on another one, or one that stops the world.
#[test]
fn a_flushall_waits_for_its_own_file_only() -> Result<()> {
    for threads in ["1", "2"] {
        let server = start(&[("save", "3600 1"), ("threads", threads)])?;
        let file = server.directory().join(format!("temp-emptied-{}-dump.rdb", server.pid()));
        let mut others = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
        for flush in [&["FLUSHALL"][..], &["MULTI", "FLUSHALL", "GET a", "BGSAVE", "EXEC"]] {
            pipe(&file)?;
            let mut flusher = server.connect()?;
            flusher.call_text("SET a 1")?;
            let (last, first) = flush.split_last().context("no command")?;
            for line in first {
                flusher.call_text(line)?;
            }
            flusher.send(&[last])?;
            flusher.send(&["PING"])?;
            wait_until("the flush", || Ok(others[0].call_text("DBSIZE")? == Reply::Integer(0)))?;
            for other in &mut others {
                ensure!(other.call_text("SET b 1")? == ok());
                ensure!(other.call_text("SWAPDB 0 1")? == ok());
                ensure!(other.call_text("SWAPDB 0 1")? == ok());
            }
            ensure!(!flusher.has_input(Duration::from_millis(20))?, "{flush:?} has not waited");
            drop(fs::File::open(&file)?);
            let Received::Reply(reply) = flusher.receive()? else { bail!("no reply") };
            if first.is_empty() {
                ensure!(reply == ok(), "{reply:?}");
            } else {
                ensure!(reply.elements().is_some_and(|all| all[..2] == [ok(), Reply::Nil]));
            }
            let Received::Reply(reply) = flusher.receive()? else { bail!("no reply") };
            ensure!(reply == Reply::Status(b"PONG".to_vec()), "{reply:?}");
            wait_until("the end of BGSAVE", || {
                Ok(figure(&mut others[0], "rdb_bgsave_in_progress")? == "0")
            })?;
            others[0].call_text("DEL b")?;
        }
    }
    Ok(())
}

/// A client that goes while it waits for its file leaves nothing behind.
#[test]
fn a_client_may_go_during_its_flushall() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let file = server.directory().join(format!("temp-emptied-{}-dump.rdb", server.pid()));
    pipe(&file)?;
    let mut client = server.connect()?;
    client.call_text("SET a 1")?;
    let mut flusher = server.connect()?;
    flusher.send(&["FLUSHALL"])?;
    wait_until("the flush", || Ok(client.call_text("DBSIZE")? == Reply::Integer(0)))?;
    ensure!(figure(&mut client, "blocked_clients")? == "1");
    drop(flusher);
    wait_until("its end", || Ok(figure(&mut client, "connected_clients")? == "1"))?;
    ensure!(figure(&mut client, "blocked_clients")? == "0");
    drop(fs::File::open(&file)?);
    ensure!(client.call_text("FLUSHALL")? == ok());
    ensure!(unfinished(&server)?.is_empty());
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    Ok(())
}

/// What is left of files that never became complete.
fn unfinished(server: &Server) -> Result<Vec<String>> {
    let names = fs::read_dir(server.directory())?.flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with("temp-")).collect())
}

#[test]
fn a_save_ends_though_settings_of_its_file_change() -> Result<()> {
    let server = start(&[("enable-protected-configs", "yes")])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000")?;
    take_time(&mut client)?;
    let home = server.directory();
    let other = home.join("other");
    fs::create_dir(&other)?;
    let path = other.to_str().context("a plain path")?;
    for [setting, value] in [["dbfilename", "new.rdb"], ["dir", path]] {
        client.call_text("CONFIG SET dbfilename dump.rdb")?;
        client.call_text("BGSAVE")?;
        ensure!(client.call(&["CONFIG", "SET", setting, value])? == ok());
        let idle = |client: &mut Client| Ok(figure(client, "rdb_bgsave_in_progress")? == "0");
        wait_until("the end of the save", || idle(&mut client))?;
        ensure!(figure(&mut client, "rdb_last_bgsave_status")? == "ok");
        fs::remove_file(home.join("dump.rdb"))?;
        ensure!(!home.join("new.rdb").exists() && fs::read_dir(&other)?.next().is_none());
        ensure!(unfinished(&server)?.is_empty());
    }
    Ok(())
}

/// SAVE beside FLUSHALL's file of another name.
#[test]
fn a_save_beside_a_flushall_with_another_file_name_is_loaded() -> Result<()> {
    let mut server = start(&[("save", "3600 1"), ("enable-protected-configs", "yes")])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000")?;
    take_time(&mut client)?;
    let mut saver = server.connect()?;
    saver.send(&["SAVE"])?;
    // From then on it is settled what data is saved.
    wait_until("the unfinished file", || Ok(!unfinished(&server)?.is_empty()))?;
    ensure!(client.call_text("CONFIG SET dbfilename other.rdb")? == ok());
    ensure!(client.call_text("FLUSHALL")? == ok());
    ensure!(!saver.has_input(Duration::from_millis(1))?, "the save is over too soon");
    ensure!(saver.receive()? == Received::Reply(ok()));
    ensure!(server.directory().join("other.rdb").exists());
    ensure!(unfinished(&server)?.is_empty());
    server.kill();
    server.start_again()?;
    ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(10_000));
    Ok(())
}

#[test]
fn a_file_may_have_the_longest_name() -> Result<()> {
    let mut server = start(&[("save", "3600 1"), ("enable-protected-configs", "yes")])?;
    let mut client = server.connect()?;
    for length in [231, 232, 240, 245, 250, 255] {
        let name = "d".repeat(length);
        ensure!(client.call(&["CONFIG", "SET", "dbfilename", &name])? == ok());
        ensure!(client.call_text("FLUSHALL")? == ok());
        let emptied = fs::metadata(server.directory().join(&name))?.len();
        ensure!(client.call_text("SET key value")? == ok());
        ensure!(client.call_text("SAVE")? == ok(), "{length}: {}", server.log_tail());
        ensure!(fs::metadata(server.directory().join(&name))?.len() > emptied);
        ensure!(unfinished(&server)?.is_empty());
    }
    server.set_options(&[("dbfilename", &"d".repeat(255)), ("save", "3600 1")]);
    server.start_again()?;
    ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(1));
    Ok(())
}

#[test]
fn a_directory_that_was_replaced_is_entered_again() -> Result<()> {
    let server = start(&[("enable-protected-configs", "yes")])?;
    let mut client = server.connect()?;
    let directory = server.directory().join("data");
    let path = directory.to_str().context("a plain path")?;
    fs::create_dir(&directory)?;
    ensure!(client.call(&["CONFIG", "SET", "dir", path])? == ok());
    fs::remove_dir(&directory)?;
    fs::create_dir(&directory)?;
    ensure!(client.call_text("SAVE")?.is_error(), "the old one is gone");
    ensure!(client.call(&["CONFIG", "SET", "dir", path])? == ok());
    ensure!(client.call_text("SAVE")? == ok());
    ensure!(directory.join("dump.rdb").exists());
    Ok(())
}

/// Acknowledged writes are in the file, even if a client ends a pause meanwhile.
#[test]
fn a_pause_that_ends_while_the_server_stops_lets_no_write_through() -> Result<()> {
    let mut server = start(&[])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000 key 20")?;
    take_time(&mut client)?;
    let (mut other, mut stopping) = (server.connect()?, server.connect()?);
    // An expired one, which is of no consequence.
    ensure!(client.call_text("CLIENT PAUSE 1 ALL")? == ok());
    stopping.send(&["SHUTDOWN", "SAVE"])?;
    wait_until("the save", || Ok(figure(&mut client, "rdb_bgsave_in_progress")? == "1"))?;
    ensure!(client.call_text("GET none")? == Reply::Nil, "reads go on");
    ensure!(client.call_text("CLIENT UNPAUSE")? == ok());
    let told = other.call_text("SET lost 1");
    ensure!(told.is_err(), "{told:?}");
    wait_until("the end", || Ok(!server.is_running()))?;
    server.start_again()?;
    ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(10_000));
    Ok(())
}

/// A stop that fails ends its own suspension of writes, but not CLIENT PAUSE.
#[test]
fn a_stop_that_is_refused_leaves_a_pause_as_it_was() -> Result<()> {
    let server = start(&[("save", "3600 1")])?;
    fs::create_dir_all(server.directory().join("dump.rdb/inside"))?;
    let mut client = server.connect()?;
    let shutdown = Reply::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec());
    ensure!(client.call_text("SHUTDOWN SAVE")? == shutdown);
    ensure!(client.call_text("SET a 1")? == ok());
    ensure!(client.call_text("CLIENT PAUSE 600000 WRITE")? == ok());
    ensure!(client.call_text("SHUTDOWN SAVE")? == shutdown);
    let mut other = server.connect()?;
    other.send(&["SET", "b", "1"])?;
    let held = || Ok(figure(&mut client, "blocked_clients")? == "1");
    wait_until("the client to be held back", held)?;
    ensure!(client.call_text("CLIENT UNPAUSE")? == ok());
    ensure!(other.receive()? == Received::Reply(ok()));
    Ok(())
}

#[test]
fn saves_beside_a_rewrite_wait_together() -> Result<()> {
    const CLIENTS: usize = 20;
    let server = start(&[])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 40000 key 20")?;
    take_time(&mut client)?;
    let threads =
        || -> Result<usize> { Ok(fs::read_dir(format!("/proc/{}/task", server.pid()))?.count()) };
    ensure!(!matches!(client.call_text("BGREWRITEAOF")?, Reply::Error(_)));
    let before = threads()?;
    let savers = (0..CLIENTS).map(|_| {
        let mut saver = server.connect()?;
        saver.send(&["SAVE"])?;
        Ok(saver)
    });
    let savers = savers.collect::<Result<Vec<Client>>>()?;
    wait_until("the saves", || Ok(figure(&mut client, "blocked_clients")? == CLIENTS.to_string()))?;
    let more = threads()?.saturating_sub(before);
    ensure!(figure(&mut client, "aof_rewrite_in_progress")? == "1", "the rewrite is over too soon");
    ensure!(more <= 1, "{more} threads wait");
    ensure!(client.call(&["CONFIG", "SET", "rdb-key-save-delay", "0"])? == ok());
    for mut saver in savers {
        ensure!(saver.receive()? == Received::Reply(ok()));
    }
    Ok(())
}
