//! What an operator does with a cluster that serves: `dunlin cluster upgrade`, and two operators at
//! the same time.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::cluster::{Deployment, NODE_TIMEOUT, OTHER_SHARD, SHARD};
use tests::counting::{Way, check_counts, count};
use tests::observe::{number, wait_until};
use tests::process;
use tests::server::dunlin_binary;

use crate::interrupted::{in_words, tool};

#[test]
fn all_nodes_are_restarted_in_turn_while_clients_write() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    let first = deployment.wait_until_whole()?;
    let directory = tempfile::tempdir()?;
    // Asks the test for it, and waits until it is done.
    let restart = format!(
        "cd {} && touch ask.$DUNLIN_NODE_PORT && while [ -e ask.$DUNLIN_NODE_PORT ]; do sleep 0.02; done",
        directory.path().display()
    );
    let words = ["upgrade", "--restart", &restart, "--yes"];
    let mut child = tool(&deployment, &words)?.spawn()?;
    let (ports, over) = (deployment.ports(), AtomicBool::new(false));
    let mut restarted = Vec::new();
    let (ended, counts) = scope(|scope| {
        let writer = scope.spawn(|| count(&ports, (1, Way::Command), &over));
        let ended = wait_until("it ends", || {
            for (index, port) in ports.iter().enumerate() {
                let asked = directory.path().join(format!("ask.{port}"));
                if asked.exists() {
                    if restarted.is_empty() {
                        let other = tool(&deployment, &words)?.output()?;
                        let said = in_words(&other);
                        let is_told = said.contains("one upgrade at a time, and process");
                        ensure!(other.status.code() == Some(1) && is_told, "{said}");
                    }
                    let code = deployment.nodes[index].terminate()?;
                    ensure!(code == Some(0), "{code:?}");
                    deployment.nodes[index].start_again()?;
                    fs::remove_file(asked)?;
                    restarted.push(index);
                }
            }
            Ok(child.try_wait()?.is_some())
        });
        over.store(true, Relaxed);
        (ended, writer.join().expect("no panic"))
    });
    if ended.is_err() {
        child.kill()?;
    }
    let said = in_words(&child.wait_with_output()?);
    ended.with_context(|| format!("{said}\n{}", deployment.logs()))?;
    ensure!(said.contains("all nodes were restarted"), "{said}\n{}", deployment.logs());
    ensure!(restarted == [1 - first, first], "the replica comes first: {restarted:?}\n{said}");
    let checked = check_counts(&ports, &[counts]).with_context(|| deployment.logs())?;
    ensure!(checked > 20, "only {checked} counters were used");
    Ok(())
}

/// Each of two operators wants slots to go somewhere else. One at most is told that it was done,
/// and the other one what stands in its way.
#[test]
fn of_two_operators_at_once_one_is_told_of_the_other() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    let status = |words: &[&str]| -> Result<Command> { tool(&deployment, words) };
    let mut refused = 0;
    for round in 0..4 {
        let (from, to) = if round % 2 == 0 { (SHARD, OTHER_SHARD) } else { (OTHER_SHARD, SHARD) };
        let words = ["move", "0-99", "--shard", to, "--yes"];
        let both = [status(&words)?.spawn()?, status(&words)?.stderr(Stdio::piped()).spawn()?];
        let both = both.map(std::process::Child::wait_with_output);
        let mut done = 0;
        for output in both {
            let output = output?;
            let said = in_words(&output);
            match output.status.code() {
                Some(0) => done += 1,
                _ => {
                    ensure!(said.contains("has changed meanwhile, and nothing was done"), "{said}");
                    refused += 1;
                }
            }
        }
        ensure!(done > 0, "neither has done it");
        ensure!(!deployment.slots_of(from)?.starts_with('0'), "the slots are still there");
        sleep(Duration::from_millis(20));
    }
    eprintln!(
        "{refused} of 4 were told of another operator; the others went on with the same move"
    );
    Ok(())
}

#[test]
fn a_node_that_has_another_place_than_is_asked_for_is_an_error() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    deployment.start_nodes(1, &[])?;
    let places: Vec<_> =
        deployment.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let [first, second, free] = &places[..] else { anyhow::bail!("{places:?}") };
    for (words, code) in [
        (&["add", first, "--shard", OTHER_SHARD][..], 1),
        (&["add", first, "--new-shard"], 1),
        (&["add", first, "--shard", SHARD], 0),
        (&["add", first], 0),
        (&["create", first, free], 1),
        (&["create", first, second], 0),
    ] {
        let output = tool(&deployment, words)?.arg("--yes").output()?;
        ensure!(output.status.code() == Some(code), "{words:?}: {}", in_words(&output));
    }
    Ok(())
}

/// A process that is no child of the test, until it is dropped.
struct Foreign(u32);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = process::kill(self.0);
    }
}

/// The command to restart starts the node and stays with it, as one does that starts it in the
/// foreground.
#[test]
fn a_node_that_serves_again_outlives_the_command_that_has_started_it() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    let directory = tempfile::tempdir()?;
    let ask = directory.path().join("ask");
    let own = &deployment.nodes[0];
    let restart = format!(
        "exec >/dev/null 2>&1; touch {0}; while [ -e {0} ]; do sleep 0.02; done; {1} serve \
         --dir {2} --bind 127.0.0.1 --port {3} --http-port 0 --cluster-enabled yes \
         --cluster-etcd {4} --cluster-node-timeout {NODE_TIMEOUT}",
        ask.display(),
        dunlin_binary()?.display(),
        own.directory().display(),
        own.port(),
        deployment.etcd.url(0)
    );
    let words = ["upgrade", "--restart", &restart, "--timeout", "10", "--yes"];
    let child = tool(&deployment, &words)?.spawn()?;
    wait_until("it restarts the node", || Ok(ask.exists()))?;
    let code = deployment.nodes[0].terminate()?;
    ensure!(code == Some(0), "{code:?}");
    fs::remove_file(ask)?;
    // It takes this as the value of `{w}`.
    deployment.wait_for_primary()?;
    let mut client = deployment.nodes[0].connect()?;
    let _node = Foreign(u32::try_from(number(&mut client, "process_id")?)?);
    let output = child.wait_with_output()?;
    let said = in_words(&output);
    ensure!(output.status.code() == Some(0) && said.contains("it is left alone"), "{said}");
    let kept = client.call_text("GET {w}")?;
    ensure!(kept.text() == Some(b"x"), "{kept:?}");
    Ok(())
}
