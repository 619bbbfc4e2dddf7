//! Moves of slots that are interrupted: primaries of both sides, etcd and `dunlin cluster move` are
//! killed or stopped at any moment of a move, while clients write. The command that is given again
//! goes on with it, and no count is lost.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Received, Reply};
use tests::cluster::{Deployment, NODE_TIMEOUT, OTHER_SHARD, SHARD};
use tests::counting::{Counts, Way, check_counts, count};
use tests::observe::wait_until;
use tests::process;
use tests::random::Random;
use tests::server::dunlin_binary;

/// The slots that go to and fro.
const SLOTS: &str = "0-4095";
/// Bytes a second of their copies, so that one takes about half a second.
const BANDWIDTH: &str = "500kb";
/// The longest time after which a move meets its trouble, in milliseconds.
const LATEST: usize = 900;

/// What happens to a move.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    KillSource,
    KillTarget,
    KillBoth,
    KillReplicaOfTarget,
    KillEtcd,
    /// The command that waits for it.
    KillCommand,
    FailOverSource,
    FailOverTarget,
    StopSource,
}

const TROUBLES: [Trouble; 9] = [
    Trouble::KillSource,
    Trouble::KillTarget,
    Trouble::KillBoth,
    Trouble::KillEtcd,
    Trouble::KillCommand,
    Trouble::KillReplicaOfTarget,
    Trouble::FailOverSource,
    Trouble::FailOverTarget,
    Trouble::StopSource,
];

/// `dunlin cluster` with these words.
pub(crate) fn tool(deployment: &Deployment, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(dunlin_binary()?);
    command.arg("cluster").args(words).args(["--etcd", &deployment.etcd.url(0)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

pub(crate) fn in_words(output: &Output) -> String {
    let (out, error) = (&output.stdout, &output.stderr);
    format!(
        "{:?} {}{}",
        output.status,
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(error)
    )
}

/// Bounds what a node sends in a copy, at once.
fn bound(deployment: &Deployment, node: usize) -> Result<()> {
    let mut client = deployment.nodes[node].connect()?;
    let set = client.call(&["CONFIG", "SET", "cluster-migration-bandwidth", BANDWIDTH])?;
    ensure!(set == Reply::Status(b"OK".to_vec()), "{set:?}");
    Ok(())
}

/// Writes what makes a copy long.
fn fill(deployment: &Deployment, node: usize) -> Result<()> {
    let mut client = deployment.nodes[node].connect()?;
    let value = "x".repeat(200);
    for number in 0..4000 {
        client.send(&["SET", &format!("filling:{number}"), &value])?;
    }
    for _ in 0..4000 {
        match client.receive()? {
            Received::Reply(Reply::Status(_)) => {}
            other => bail!("{other:?}"),
        }
    }
    Ok(())
}

/// Brings a trouble over a move, and undoes it.
fn interrupt(
    deployment: &mut Deployment,
    trouble: Trouble,
    (source, target): (Range<usize>, Range<usize>),
    random: &mut Random,
) -> Result<()> {
    let leaders = [deployment.leader(source.clone()), deployment.leader(target.clone())];
    let [Some(from), Some(to)] = leaders else { return Ok(()) };
    let replica_of_source = source.clone().find(|node| *node != from).context("a replica")?;
    let replica_of_target = target.clone().find(|node| *node != to).context("a replica")?;
    // What a transaction is on its way for, is not known then.
    let is_etcd_silent = random.below(3) == 0 && !matches!(trouble, Trouble::KillEtcd);
    if is_etcd_silent {
        deployment.etcd.stop(0)?;
        sleep(Duration::from_millis(random.below(600) as u64));
    }
    let away = Duration::from_millis(random.below(1200) as u64);
    let killed: &[usize] = match trouble {
        Trouble::KillSource => &[from],
        Trouble::KillTarget => &[to],
        Trouble::KillBoth => &[from, to],
        Trouble::KillReplicaOfTarget => &[replica_of_target],
        _ => &[],
    };
    killed.iter().for_each(|node| deployment.nodes[*node].kill());
    let failover = |node: usize| -> Result<()> {
        // It may be refused, since much else happens.
        deployment.nodes[node].connect()?.call_text("CLUSTER FAILOVER").map(drop)
    };
    match trouble {
        Trouble::KillEtcd => deployment.etcd.kill(0),
        Trouble::StopSource => {
            process::stop(deployment.nodes[from].pid())?;
            sleep(Duration::from_millis(NODE_TIMEOUT + 500));
            process::resume(deployment.nodes[from].pid())?;
        }
        _ => sleep(away / 2),
    }
    if is_etcd_silent {
        deployment.etcd.go_on(0)?;
    }
    match trouble {
        Trouble::FailOverSource => failover(replica_of_source)?,
        Trouble::FailOverTarget => failover(replica_of_target)?,
        _ => sleep(away / 2),
    }
    for node in killed {
        deployment.nodes[*node].start_again()?;
    }
    if matches!(trouble, Trouble::KillEtcd) {
        deployment.etcd.start_again(&[0])?;
    }
    Ok(())
}

/// Moves slots to and fro, so often, with one trouble each time.
fn move_to_and_fro(rounds: usize, seed: u64) -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    deployment.add_shard(2)?;
    let ports = deployment.ports();
    fill(&deployment, deployment.wait_for_leader(0..2)?)?;
    let (over, mut story) = (AtomicBool::new(false), String::new());
    let mut random = Random::new(seed);
    let all = scope(|scope| -> Result<Vec<Counts>> {
        let (ports, over) = (&ports, &over);
        let writers: Vec<_> = [(1, Way::Command), (2, Way::Command), (3, Way::Script)]
            .map(|own| scope.spawn(move || count(ports, own, over)))
            .into();
        let moves = (0..rounds).try_for_each(|round| {
            let trouble = TROUBLES[(round + seed as usize) % TROUBLES.len()];
            move_once(&mut deployment, round, trouble, &mut random, &mut story)
                .with_context(|| format!("round {round}: {trouble:?}"))
        });
        over.store(true, Relaxed);
        let counts = writers.into_iter().map(|own| own.join().expect("no panic")).collect();
        moves.map(|()| counts)
    })
    .with_context(|| format!("seed {seed}:\n{story}\n{}", deployment.logs()))?;
    let checked = check_counts(&ports, &all)
        .with_context(|| format!("seed {seed}:\n{story}\n{}", deployment.logs()))?;
    ensure!(checked > 100, "only {checked} counters were used");
    let _ = writeln!(std::io::stderr(), "{story}{checked} counters are right");
    Ok(())
}

fn move_once(
    deployment: &mut Deployment,
    round: usize,
    trouble: Trouble,
    random: &mut Random,
    story: &mut String,
) -> Result<()> {
    let (mut source, mut target, mut to) = (0..2, 2..4, OTHER_SHARD);
    if round % 2 == 1 {
        (source, target, to) = (target, source, SHARD);
    }
    bound(deployment, deployment.wait_for_leader(source.clone())?)?;
    deployment.wait_for_leader(target.clone())?;
    let words = ["move", SLOTS, "--shard", to, "--yes"];
    let mut child = tool(deployment, &words)?.spawn()?;
    let after = random.below(LATEST) as u64;
    sleep(Duration::from_millis(after));
    writeln!(story, "round {round}: {trouble:?} after {after} ms")?;
    if matches!(trouble, Trouble::KillCommand) {
        child.kill()?;
    }
    interrupt(deployment, trouble, (source.clone(), target.clone()), random)?;
    let first = child.wait_with_output()?;
    writeln!(story, "  {}", in_words(&first))?;
    if first.status.code() != Some(0) {
        let again = tool(deployment, &words)?.output()?;
        writeln!(story, "  again: {}", in_words(&again))?;
        ensure!(again.status.code() == Some(0), "it does not end");
    }
    let slots = [deployment.slots_of(SHARD)?, deployment.slots_of(OTHER_SHARD)?];
    let wanted = if to == SHARD { ["0-16383", ""] } else { ["4096-16383", "0-4095"] };
    ensure!(slots == wanted, "{slots:?}");
    for nodes in [source, target] {
        deployment.wait_for_leader(nodes)?;
    }
    let mut status = String::new();
    let waited = wait_until("nothing is wrong with it", || {
        let output = tool(deployment, &["status"])?.output()?;
        status = in_words(&output);
        Ok(output.status.code() == Some(0))
    });
    ensure!(!status.contains("on their way"), "{status}");
    waited.context(status)
}

#[test]
fn slots_arrive_whatever_is_killed_while_they_move() -> Result<()> {
    move_to_and_fro(3, 1)
}

#[test]
#[ignore = "takes minutes: make cluster-moves"]
fn slots_arrive_whatever_is_killed_many_times() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    move_to_and_fro(number("DUNLIN_MOVES").unwrap_or(30) as usize, seed)
}

/// The slots of a move that is given up stay where they are.
#[test]
fn a_move_is_given_up_by_one_command_and_shown_until_then() -> Result<()> {
    let mut deployment = Deployment::start(1, &[("cluster-migration-bandwidth", "1")])?;
    deployment.add_shard(1)?;
    fill(&deployment, 0)?;
    let mut client = deployment.nodes[0].connect()?;
    let move_words = ["move", SLOTS, "--shard", OTHER_SHARD, "--yes", "--timeout", "1"];
    let first = tool(&deployment, &move_words)?.output()?;
    let said = in_words(&first);
    ensure!(first.status.code() == Some(3) && said.contains("dunlin cluster abort"), "{said}");
    let status = || -> Result<serde_json::Value> {
        let output = tool(&deployment, &["status", "--json"])?.output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let mut shown = serde_json::Value::Null;
    wait_until("it is shown", || {
        shown = status()?["migrations"][0].clone();
        Ok(shown["progress"]["bytes_sent"].as_u64() > Some(0))
    })
    .with_context(|| format!("{shown}"))?;
    let progress = &shown["progress"];
    ensure!(progress["state"] == "copying" && progress["keys"].as_u64() > Some(500), "{shown}");
    ensure!(progress["bytes_sent"].as_u64() < Some(10_000), "{shown}");
    let id = shown["id"].as_str().context("an id")?;
    let again = tool(&deployment, &move_words)?.output()?;
    let said = in_words(&again);
    ensure!(
        again.status.code() == Some(3) && said.contains(&format!("move {id} goes on")),
        "{said}"
    );
    // The other way is refused while they are under way.
    let back = tool(&deployment, &["move", SLOTS, "--shard", SHARD, "--yes"])?.output()?;
    let said = in_words(&back);
    ensure!(back.status.code() == Some(1) && said.contains("on their way to shard"), "{said}");
    let aborted = tool(&deployment, &["abort", &id[..6], "--yes"])?.output()?;
    ensure!(aborted.status.code() == Some(0), "{}", in_words(&aborted));
    ensure!(status()?["migrations"].as_array().is_some_and(Vec::is_empty));
    ensure!(deployment.slots_of(SHARD)? == "0-16383");
    let mut other = deployment.nodes[1].connect()?;
    // What has arrived is dropped; a full copy would have what is hidden too.
    wait_until("what has arrived is gone", || {
        let stats = other.call_text("INFO cluster")?;
        let own = client.call_text("INFO cluster")?;
        let is_quiet = |reply: &Reply| {
            String::from_utf8_lossy(reply.text().unwrap_or_default()).contains("slot_moves:0\r\n")
        };
        Ok(is_quiet(&stats) && is_quiet(&own))
    })?;
    let none = tool(&deployment, &["abort", id, "--yes"])?.output()?;
    ensure!(in_words(&none).contains("there is no move"), "{}", in_words(&none));
    // Without a bound it goes through, and the bound that is lifted meanwhile lets it go on.
    let mut child = tool(&deployment, &move_words[..5])?.spawn()?;
    wait_until("it is under way", || {
        Ok(status()?["migrations"][0]["progress"]["bytes_sent"].as_u64() > Some(0))
    })?;
    client.call(&["CONFIG", "SET", "cluster-migration-bandwidth", "0"])?;
    if child.wait()?.code() != Some(0) {
        bail!("it does not get on without a bound\n{}", deployment.logs());
    }
    ensure!(deployment.slots_of(OTHER_SHARD)? == SLOTS);
    Ok(())
}
