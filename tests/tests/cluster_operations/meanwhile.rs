//! Commands that wait: what they know is old by then, or they end before it is done and are given
//! again.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::cluster::{ALL_SLOTS, Deployment, OTHER_SHARD, SHARD};
use tests::observe::wait_until;
use tests::process;

use crate::interrupted::{in_words, tool};

const MIGRATIONS: &str = "/dunlin/dunlin/migrations/";

/// A shard of which no node is there.
fn put_shard(deployment: &Deployment, shard: &str, slots: &str) -> Result<()> {
    let value = format!("{{\"slots\":\"{slots}\",\"members\":[]}}");
    deployment.put(&format!("shards/{shard}"), &value)
}

fn migrations(deployment: &Deployment) -> Result<Vec<Value>> {
    let words = ["get", "--prefix", "--print-value-only", MIGRATIONS];
    let values = deployment.etcd.control(&words)?;
    let lines = values.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).context("a migration")).collect()
}

/// The command refuses to go on, and has asked for nothing.
fn is_refused(deployment: &Deployment, command: Child, text: &str) -> Result<()> {
    let output = command.wait_with_output()?;
    let said = in_words(&output);
    ensure!(output.status.code() == Some(1) && said.contains(text), "{said}");
    let asked = migrations(deployment)?;
    ensure!(asked.is_empty(), "{asked:?}");
    Ok(())
}

#[test]
fn slots_do_not_go_to_a_shard_that_is_removed_while_a_move_waits() -> Result<()> {
    let deployment = Deployment::empty()?;
    put_shard(&deployment, SHARD, ALL_SLOTS)?;
    put_shard(&deployment, OTHER_SHARD, "")?;
    // Nobody is there to end it.
    let ending = format!(
        "{{\"slots\":\"0-9\",\"from\":\"{SHARD}\",\"to\":\"{OTHER_SHARD}\",\"state\":\"aborted\"}}"
    );
    deployment.put("migrations/0123", &ending)?;
    let words = ["move", "0-9", "--shard", OTHER_SHARD, "--timeout", "20", "--yes"];
    let mut command = tool(&deployment, &words)?.spawn()?;
    let mut said = BufReader::new(command.stdout.take().context("a pipe")?);
    let mut line = String::new();
    while !line.contains("waiting: a move is being given up") {
        line.clear();
        ensure!(said.read_line(&mut line)? > 0, "it does not wait");
    }
    deployment.etcd.control(&["del", &format!("/dunlin/dunlin/shards/{OTHER_SHARD}")])?;
    deployment.etcd.control(&["del", "--prefix", MIGRATIONS])?;
    is_refused(&deployment, command, "there is no shard")
}

/// More moves than are asked for at once: meanwhile the slots of the others get another owner.
#[test]
fn a_rebalance_asks_for_no_slots_that_have_another_owner_by_then() -> Result<()> {
    let deployment = Deployment::empty()?;
    put_shard(&deployment, SHARD, ALL_SLOTS)?;
    for number in 0..50 {
        put_shard(&deployment, &format!("{number:040x}"), "")?;
    }
    let command = tool(&deployment, &["rebalance", "--timeout", "20", "--yes"])?.spawn()?;
    let mut first = Vec::new();
    wait_until("it asks for the first moves", || {
        first = migrations(&deployment)?;
        Ok(first.len() == 40)
    })?;
    let text = |own: &Value, name: &str| own[name].as_str().unwrap_or_default().to_owned();
    for own in &first {
        put_shard(&deployment, &text(own, "to"), &text(own, "slots"))?;
    }
    put_shard(&deployment, SHARD, "0")?;
    deployment.etcd.control(&["del", "--prefix", MIGRATIONS])?;
    is_refused(&deployment, command, "the cluster has changed meanwhile: slots")
}

/// Two of three members are gone, so no primary is there that would count them no more. The second
/// `forget` finds both of them all the same, and `remove` ends it when they come back.
#[test]
fn nodes_are_found_until_they_are_out() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let primary = deployment.wait_until_whole()?;
    let gone = [primary, (primary + 1) % 3];
    gone.iter().for_each(|node| deployment.nodes[*node].kill());
    let place = |node: usize| format!("127.0.0.1:{}", deployment.nodes[node].port());
    let places = gone.map(place);
    let run = |deployment: &Deployment, command: &str, timeout: &str| {
        let words = [command, &places[0], &places[1], "--timeout", timeout, "--yes"];
        let output = tool(deployment, &words)?.output()?;
        anyhow::Ok((output.status.code(), in_words(&output)))
    };
    let mut first = (None, String::new());
    wait_until("etcd knows that they are gone", || {
        first = run(&deployment, "forget", "1")?;
        Ok(!first.1.contains("is alive"))
    })?;
    let again = run(&deployment, "forget", "1")?;
    for (code, said) in [&first, &again] {
        ensure!(*code == Some(3) && said.contains("still counts"), "{first:?}\n{again:?}");
    }
    for node in gone {
        deployment.nodes[node].start_again()?;
    }
    let mut last = (None, String::new());
    wait_until("they are out", || {
        last = run(&deployment, "remove", "5")?;
        Ok(last.0 == Some(0))
    })
    .with_context(|| format!("{last:?}\n{}", deployment.logs()))?;
    let left =
        deployment.etcd.control(&["get", "--prefix", "--keys-only", "/dunlin/dunlin/members/"])?;
    ensure!(left.split_whitespace().count() == 1, "{left}");
    deployment.wait_for_primary().map(drop)
}

/// The primary is gone before it has let its replica leave, and the replica takes its place. From
/// there both ways lead on: the dead one is taken out, and the other one is kept.
#[test]
fn a_primary_that_was_to_leave_is_kept() -> Result<()> {
    for commands in [["add", "forget"], ["forget", "add"]] {
        let mut deployment = Deployment::start(2, &[])?;
        let primary = deployment.wait_until_whole()?;
        let place = |node: usize| format!("127.0.0.1:{}", deployment.nodes[node].port());
        let (gone, kept) = (place(primary), place(1 - primary));
        process::stop(deployment.nodes[primary].pid())?;
        let words = ["remove", &kept, "--timeout", "1", "--yes"];
        let output = tool(&deployment, &words)?.output()?;
        ensure!(output.status.code() == Some(3), "{}", in_words(&output));
        deployment.nodes[primary].kill();
        wait_until("it is primary", || Ok(deployment.is_primary(1 - primary)))?;
        for command in commands {
            let node = if command == "add" { &kept } else { &gone };
            let mut last = (None, String::new());
            wait_until("it is done", || {
                let output = tool(&deployment, &[command, node, "--yes"])?.output()?;
                last = (output.status.code(), in_words(&output));
                // etcd may not know yet that it is gone.
                Ok(!last.1.contains("is alive"))
            })?;
            ensure!(last.0 == Some(0), "{commands:?}: {}\n{}", last.1, deployment.logs());
        }
        let of = ["get", "--prefix", "--print-value-only", "/dunlin/dunlin/members/"];
        let members = deployment.etcd.control(&of)?;
        ensure!(members.matches(SHARD).count() == 1 && members.matches("shard").count() == 1);
        ensure!(deployment.primary() == Some(1 - primary), "{}", deployment.logs());
    }
    Ok(())
}
