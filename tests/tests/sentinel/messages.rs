//! Published messages reach the subscribers of replicas, and no file.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::notation;
use tests::observe::{number, wait_until};
use tests::peers;
use tests::quoting;
use tests::replication::follow;
use tests::server::{Server, Target};

use crate::deployment::{start, wait_until_alike};

/// The servers in one link: which is the primary, and which the replica.
const PAIRS: [(Target, Target); 5] = [
    (Target::Dunlin, Target::Dunlin),
    (Target::Dunlin, Target::Reference),
    (Target::Dunlin, Target::Valkey),
    (Target::Reference, Target::Dunlin),
    (Target::Valkey, Target::Dunlin),
];

/// What publishes, and what a subscriber of all is told then.
const PUBLISHED: [(&str, &[&str]); 7] = [
    ("PUBLISH channel one", &["channel one"]),
    ("SPUBLISH shard two", &["shard two"]),
    (
        "MULTI; SET a{x} 1; PUBLISH channel three; SPUBLISH shard four; SET b{x} 1; EXEC",
        &["channel three", "shard four"],
    ),
    ("MULTI; PUBLISH channel five; EXEC", &["channel five"]),
    (
        "EVAL \"redis.call('publish', 'channel', 'six'); redis.call('set', KEYS[1], 1); \
         return redis.call('publish', 'channel', 'seven')\" 1 c",
        &["channel six", "channel seven"],
    ),
    ("EVAL \"redis.set_repl(redis.REPL_NONE); redis.call('publish', 'channel', 'not')\" 0", &[]),
    ("SELECT 3; PUBLISH channel eight; SET other database; SELECT 0", &["channel eight"]),
];

fn say(client: &mut Client, commands: &str) -> Result<Reply> {
    let mut last = Reply::Nil;
    // None of the words has a semicolon of its own, but for the scripts.
    let all =
        if commands.starts_with("EVAL") { vec![commands] } else { commands.split("; ").collect() };
    for command in all {
        last = client.call(&quoting::split(command)?)?;
        ensure!(!last.is_error(), "{command}: {last:?}");
    }
    Ok(last)
}

/// A client that hears everything at a server, but for events of keys.
fn subscriber(server: &Server) -> Result<Client> {
    let mut client = server.connect()?;
    for command in ["SUBSCRIBE channel end", "SSUBSCRIBE shard"] {
        client.send(&quoting::split(command)?)?;
    }
    for _ in 0..3 {
        client.receive()?;
    }
    Ok(client)
}

fn next_message(client: &mut Client) -> Result<String> {
    let Received::Reply(reply) = client.receive()? else { return Ok("closed".to_owned()) };
    let words = reply.elements().context("a message")?;
    let text = |word: &Reply| String::from_utf8_lossy(word.text().unwrap_or_default()).into_owned();
    Ok(words[1..].iter().map(text).collect::<Vec<_>>().join(" "))
}

#[test]
fn replicas_pass_messages_on() -> Result<()> {
    for (from, to) in PAIRS {
        let primary = start(from, &[])?;
        let replica = start(to, &[])?;
        follow(&replica, primary.port())?;
        wait_until_alike(&primary, &replica)?;
        let mut hears = subscriber(&replica)?;
        let mut client = primary.connect()?;
        for (commands, _) in PUBLISHED {
            say(&mut client, commands)?;
        }
        say(&mut client, "PUBLISH end .")?;
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last| last != "end .") {
            heard.push(next_message(&mut hears)?);
        }
        let expected = PUBLISHED.iter().flat_map(|(_, told)| told.iter().copied());
        let expected: Vec<_> = expected.chain(["end ."]).collect();
        ensure!(heard == expected, "{from:?} to {to:?}: {heard:?}");
        // Messages that clients of a replica publish stay there.
        say(&mut replica.connect()?, "PUBLISH channel own")?;
        ensure!(next_message(&mut hears)? == "channel own");
        wait_until_alike(&primary, &replica)?;
        let log = replica.log();
        for trouble in ["unknown command", "Error condition", "error(s)", "== CRITICAL =="] {
            ensure!(!log.contains(trouble), "{to:?} complains: {}", replica.log_tail());
        }
    }
    Ok(())
}

#[test]
fn messages_count_in_the_stream_and_are_in_no_file() -> Result<()> {
    let mut primary = start(Target::Dunlin, &[("appendonly", "yes")])?;
    let replica = start(Target::Reference, &[])?;
    follow(&replica, primary.port())?;
    wait_until_alike(&primary, &replica)?;
    let mut client = primary.connect()?;
    let before = number(&mut client, "master_repl_offset")?;
    let message = "PUBLISH channel told";
    say(&mut client, message)?;
    let after = number(&mut client, "master_repl_offset")?;
    // A PING may have come between.
    let bytes = "*3\r\n$7\r\nPUBLISH\r\n$7\r\nchannel\r\n$4\r\ntold\r\n".len() as u64;
    ensure!([bytes, bytes + 14].contains(&(after - before)), "{before} to {after}");
    for round in 0..50 {
        say(&mut client, message)?;
        say(&mut client, &format!("SET key{round} value"))?;
        say(&mut client, "MULTI; PUBLISH channel told; SET k v; SPUBLISH channel told; EXEC")?;
    }
    say(&mut client, message)?;
    // A file says before an effect where the messages have moved the offset, and otherwise now and
    // then.
    say(&mut client, "SET k v")?;
    wait_until_alike(&primary, &replica)?;
    let changes = notation::lines(&client.call(&["CHANGES", "SINCE", "-"])?).join("\n");
    ensure!(changes.contains("key49") && !changes.contains("told"), "{changes}");
    primary.kill();
    let directory = primary.directory().join("appendonlydir");
    for file in fs::read_dir(&directory)? {
        let path = file?.path();
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        ensure!(!text.contains("told"), "{}", path.display());
    }
    let manifest = directory.join("appendonly.aof.manifest");
    let checked = Command::new(peers::program("redis-check-aof")).arg(&manifest).output()?;
    ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let loaded = load_elsewhere(&primary)?;
    ensure!(loaded == 51, "redis-server has loaded {loaded} keys");
    // The file knows the position of the replica, which goes on there.
    primary.start_again()?;
    let mut client = primary.connect()?;
    wait_until("it comes back", || Ok(number(&mut client, "connected_slaves")? == 1))?;
    ensure!(number(&mut client, "sync_full")? == 0, "{}", primary.log_tail());
    say(&mut client, "SET after restart")?;
    wait_until_alike(&primary, &replica)?;
    ensure!(say(&mut client, "DBSIZE")? == Reply::Integer(52));
    ensure!(say(&mut replica.connect()?, "DBSIZE")? == Reply::Integer(52));
    Ok(())
}

/// Lets redis-server load the append-only file. Returns how many keys it finds.
fn load_elsewhere(primary: &Server) -> Result<i64> {
    let other = start(Target::Reference, &[])?;
    let (from, to) = (primary.directory(), other.directory());
    let mut other = {
        let copied =
            Command::new("cp").arg("-r").arg(from.join("appendonlydir")).arg(to).status()?;
        ensure!(copied.success(), "cp");
        other
    };
    other.set_options(&[("appendonly", "yes")]);
    other.start_again()?;
    match say(&mut other.connect()?, "DBSIZE")? {
        Reply::Integer(keys) => Ok(keys),
        reply => anyhow::bail!("{reply:?}"),
    }
}

#[test]
fn without_a_replica_messages_count_nowhere() -> Result<()> {
    let primary = start(Target::Dunlin, &[("appendonly", "yes")])?;
    let mut client = primary.connect()?;
    say(&mut client, "SET k v")?;
    let before = number(&mut client, "master_repl_offset")?;
    say(&mut client, "PUBLISH channel nothing")?;
    say(&mut client, "MULTI; PUBLISH channel nothing; EXEC")?;
    ensure!(number(&mut client, "master_repl_offset")? == before);
    Ok(())
}
