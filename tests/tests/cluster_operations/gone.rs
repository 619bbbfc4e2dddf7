//! Machines that never come back: an operator has their shards go on without them.

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::cluster::{Deployment, SHARD};
use tests::observe::wait_until;

use crate::interrupted::{in_words, tool};

/// Gives a command on nodes that are gone, once etcd knows that they are. Returns how it ended and
/// what it said.
fn operate(
    deployment: &Deployment,
    command: &str,
    nodes: &[usize],
    options: &[&str],
) -> Result<(Option<i32>, String)> {
    let places: Vec<_> =
        nodes.iter().map(|node| format!("127.0.0.1:{}", deployment.nodes[*node].port())).collect();
    let mut words = vec![command];
    words.extend(places.iter().map(String::as_str));
    words.extend(options);
    words.push("--yes");
    let mut last = (None, String::new());
    wait_until("etcd knows that they are gone", || {
        let output = tool(deployment, &words)?.output()?;
        last = (output.status.code(), in_words(&output));
        Ok(!last.1.contains("is alive"))
    })?;
    Ok(last)
}

/// Neither could leave alone, because the other one would be needed for the quorum.
#[test]
fn two_dead_replicas_of_three_are_forgotten_at_once() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let primary = deployment.wait_until_whole()?;
    let gone = [(primary + 1) % 3, (primary + 2) % 3];
    gone.iter().for_each(|node| deployment.nodes[*node].kill());
    let (code, said) = operate(&deployment, "forget", &gone, &[])?;
    ensure!(code == Some(0), "{said}\n{}", deployment.logs());
    ensure!(deployment.primary() == Some(primary), "{}", deployment.logs());
    Ok(())
}

/// A shard of three loses first its primary and a replica, and then the last one that had its data.
#[test]
fn a_shard_goes_on_with_what_is_left_of_it() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let primary = deployment.wait_until_whole()?;
    let (gone, last) = ([primary, (primary + 1) % 3], (primary + 2) % 3);
    let mut client = deployment.nodes[primary].connect()?;
    // All members have it, so it is known what the last one has.
    client.call_text("CLIENT DURABILITY REPLICAS 2")?;
    ensure!(client.call_text("SET kept 1")? == Reply::Status(b"OK".to_vec()));
    gone.iter().for_each(|node| deployment.nodes[*node].kill());
    let (code, said) = operate(&deployment, "forget", &gone, &["--timeout", "1"])?;
    ensure!(code == Some(3) && said.contains("--accept-loss"), "{said}");
    let (code, said) = operate(&deployment, "forget", &gone, &["--accept-loss"])?;
    ensure!(code == Some(0) && said.contains("1 that are left of 3 members"), "{said}");
    ensure!(deployment.wait_for_primary()? == last);
    has_kept_it(&deployment, last)?;

    deployment.nodes[last].connect()?.call_text("SAVE")?;
    deployment.start_nodes(1, &[])?;
    let new = deployment.nodes.len() - 1;
    deployment.nodes[new].kill();
    deployment.nodes[last].kill();
    let copy = |node: usize| deployment.nodes[node].directory().join("dump.rdb");
    std::fs::copy(copy(last), copy(new)).context("the snapshot")?;
    deployment.nodes[new].start_again()?;
    let options = ["--shard", SHARD, "--discard-keys", "--timeout", "1"];
    let (code, said) = operate(&deployment, "add", &[new], &options)?;
    ensure!(code == Some(3), "{said}");
    deployment.nodes[new].kill();
    let options = ["--accept-loss", "--dry-run"];
    wait_until("it is known that the one that joins does not run", || {
        let (_, said) = operate(&deployment, "forget", &[last], &options)?;
        Ok(said.contains("does not run: start it"))
    })?;
    deployment.nodes[new].start_again()?;
    wait_until("it is known that it runs", || {
        let (_, said) = operate(&deployment, "forget", &[last], &options)?;
        Ok(!said.contains("does not run"))
    })?;
    let (code, said) = operate(&deployment, "forget", &[last], &["--accept-loss"])?;
    ensure!(code == Some(0) && said.contains("has lost all its 1 members"), "{said}");
    ensure!(deployment.wait_for_primary()? == new);
    has_kept_it(&deployment, new)
}

fn has_kept_it(deployment: &Deployment, node: usize) -> Result<()> {
    let kept = deployment.nodes[node].connect()?.call_text("GET kept")?;
    ensure!(kept == Reply::Bulk(b"1".to_vec()), "{kept:?}");
    Ok(())
}
