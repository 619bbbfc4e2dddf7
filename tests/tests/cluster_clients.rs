//! Client libraries and command line clients that know clusters: slots move, a primary is killed,
//! another hands over, and they go on without a lost write, with the objects that they have.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Reply};
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::library::{Library, programs, wait_for_each};
use tests::observe::wait_until;
use tests::peers;
use tests::server::{Server, dunlin_binary};

/// The nodes of the two shards.
const FIRST: Range<usize> = 0..3;
const SECOND: Range<usize> = 3..5;

/// So many lists has each library, in slots of both shards.
const KEYS: usize = 40;

/// Starts a shard of three nodes and one of two, which have half of the slots each.
fn start() -> Result<Deployment> {
    let mut deployment = Deployment::empty()?;
    deployment.start_nodes(SECOND.end, &[])?;
    deployment.form_shard(SHARD, "0-8191", FIRST)?;
    deployment.form_shard(OTHER_SHARD, "8192-16383", SECOND)?;
    deployment.wait_for_leader(FIRST)?;
    deployment.wait_for_leader(SECOND)?;
    Ok(deployment)
}

/// Waits until each library has written to all of its lists since it had said so many lines, has
/// sent a pipeline, and has heard a message. Jedis does the first alone, and redis-rs hears
/// nothing.
fn all_go_on(libraries: &mut [Library], after: &str) -> Result<()> {
    let before: Vec<usize> = libraries.iter().map(Library::count).collect();
    let what = format!("it goes on after {after}");
    wait_for_each(libraries, &what, |place, library| {
        let said = library.said(before[place]);
        let begins = |word: &str| said.iter().any(|line| line.starts_with(word));
        let lists = said.iter().filter_map(|line| line.strip_prefix("list ")?.split(' ').next());
        let does_all = match library.name() {
            "jedis" => true,
            "redis-rs" => begins("pipeline "),
            _ => begins("pipeline ") && begins("heard "),
        };
        lists.collect::<HashSet<_>>().len() == KEYS && does_all
    })
}

/// Moves slots as an operator does.
fn move_slots(deployment: &Deployment, slots: &str, shard: &str) -> Result<()> {
    let output = Command::new(dunlin_binary()?)
        .args(["cluster", "move", slots, "--shard", shard, "--yes", "--etcd"])
        .arg(deployment.etcd.url(0))
        .output()?;
    ensure!(output.status.success(), "{output:?}\n{}", deployment.logs());
    Ok(())
}

/// Has the replica of two nodes take over from its primary.
fn hand_over(deployment: &Deployment, nodes: Range<usize>) -> Result<()> {
    let old = deployment.wait_for_leader(nodes.clone())?;
    let heir = nodes.clone().find(|node| *node != old).context("another node")?;
    let mut client = deployment.nodes[heir].connect()?;
    let reply = client.call_text("CLUSTER FAILOVER")?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}\n{}", deployment.logs());
    wait_until("it has taken over", || Ok(deployment.leader(nodes.clone()) == Some(heir)))
        .with_context(|| deployment.logs())
}

/// What the node that has a key answers.
fn ask(clients: &mut [Client], words: &[&str]) -> Result<Reply> {
    for client in clients {
        let reply = client.call(words)?;
        if !reply.is_error() {
            return Ok(reply);
        }
    }
    bail!("no node answers {words:?}")
}

/// Fails if something that a library was acknowledged is not there.
fn check(clients: &mut [Client], said: &[String]) -> Result<()> {
    let (mut counts, mut lists) = (HashMap::new(), HashMap::<&str, Vec<&str>>::new());
    for line in said {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["count", key] => *counts.entry(key).or_insert(0_i64) += 1,
            ["list" | "pipeline", key, number] => lists.entry(key).or_default().push(number),
            ["heard", _] => {}
            _ => bail!("it says {line}"),
        }
    }
    for (key, least) in counts {
        let reply = ask(clients, &["GET", key])?;
        let value: i64 = std::str::from_utf8(reply.text().unwrap_or_default())?.parse()?;
        ensure!(value >= least, "{key} is {value}, and {least} were acknowledged");
    }
    for (key, numbers) in lists {
        let reply = ask(clients, &["LRANGE", key, "0", "-1"])?;
        let elements = reply.elements().context("a list")?;
        let there: HashSet<_> = elements.iter().filter_map(Reply::text).collect();
        let lost: Vec<_> =
            numbers.iter().filter(|number| !there.contains(number.as_bytes())).collect();
        ensure!(lost.is_empty(), "{lost:?} are not in {key}");
    }
    Ok(())
}

#[test]
fn clients_of_five_languages_go_on_and_lose_nothing() -> Result<()> {
    let mut deployment = start()?;
    let mut libraries = Vec::new();
    for (name, program) in programs("cluster") {
        libraries.push(Library::start(name, program, &deployment.ports())?);
    }
    let played = (|| {
        all_go_on(&mut libraries, "its start")?;
        move_slots(&deployment, "0-2999", OTHER_SHARD)?;
        all_go_on(&mut libraries, "a move of slots")?;
        let killed = deployment.wait_for_leader(FIRST)?;
        deployment.nodes[killed].kill();
        all_go_on(&mut libraries, "the death of a primary")?;
        deployment.nodes[killed].start_again()?;
        deployment.wait_for_leader(FIRST)?;
        hand_over(&deployment, SECOND)?;
        move_slots(&deployment, "0-1999", SHARD)?;
        all_go_on(&mut libraries, "a hand-over, and the way back of slots")
    })();
    played.with_context(|| deployment.logs())?;
    let mut clients: Vec<Client> =
        deployment.nodes.iter().map(Server::connect).collect::<Result<_>>()?;
    for library in &mut libraries {
        let (ended_well, complaints) = library.finish()?;
        ensure!(ended_well, "{}: {complaints}", library.name());
        check(&mut clients, &library.said(0))
            .with_context(|| format!("{}: {complaints}\n{}", library.name(), deployment.logs()))?;
    }
    command_line_clients_know_the_way(&deployment)
}

/// What a command line client says.
fn said_by(program: &str, port: u16, words: &[&str]) -> Result<String> {
    let output = Command::new(peers::program(program))
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(words)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{words:?}: {said}{output:?}");
    Ok(said)
}

fn command_line_clients_know_the_way(deployment: &Deployment) -> Result<()> {
    let mut keys = 0;
    for nodes in [FIRST, SECOND] {
        let primary = deployment.wait_for_leader(nodes)?;
        match deployment.nodes[primary].connect()?.call_text("DBSIZE")? {
            Reply::Integer(count) => keys += count,
            other => bail!("{other:?}"),
        }
    }
    for program in ["redis-cli", "valkey-cli"] {
        for port in deployment.ports() {
            let value = format!("{program} {port}");
            // One key of each shard.
            for key in ["foo", "bar"] {
                ensure!(said_by(program, port, &["-c", "SET", key, &value])?.contains("OK"));
                ensure!(said_by(program, port, &["-c", "GET", key])?.contains(&value));
            }
        }
        let port = deployment.nodes[0].port();
        let first = format!("127.0.0.1:{port}");
        let said = said_by(program, port, &["--cluster", "check", &first])?;
        ensure!(said.contains("[OK] All nodes agree about slots configuration."), "{said}");
        ensure!(said.contains("[OK] All 16384 slots covered."), "{said}");
        let said = said_by(program, port, &["--cluster", "info", &first])?;
        let expected = format!("[OK] {} keys in 2 ", keys + 2);
        ensure!(said.contains(&expected), "{said}");
        let said = said_by(program, port, &["--cluster", "call", &first, "PING"])?;
        ensure!(said.matches("PONG").count() == SECOND.end, "{said}");
        let (mut seen, mut cursor) = (HashSet::new(), "0".to_owned());
        loop {
            let words = ["-c", "CLUSTERSCAN", &cursor, "COUNT", "500"];
            let said = said_by(program, port, &words)?;
            let mut lines = said.lines().map(str::to_owned);
            cursor = lines.next().context("a cursor")?;
            seen.extend(lines.filter(|line| !line.is_empty()));
            if cursor == "0" {
                break;
            }
        }
        ensure!(seen.len() as i64 == keys + 2, "{} of {keys} keys: {seen:?}", seen.len());
    }
    Ok(())
}
