//! What `dunlin cluster rebuild` must not do: write over a cluster that serves again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::observe::wait_until;
use tests::process;

use crate::interrupted::{in_words, tool};

const KEYS: i64 = 50;

fn place(deployment: &Deployment, node: usize) -> String {
    format!("127.0.0.1:{}", deployment.nodes[node].port())
}

fn run(deployment: &Deployment, words: &[&str]) -> Result<Output> {
    Ok(tool(deployment, words)?.output()?)
}

/// It has ended with a failure, and says so much.
fn is_refused(output: &Output, texts: &[&str]) -> Result<()> {
    let said = in_words(output);
    let is_said = texts.iter().all(|text| said.contains(text));
    ensure!(output.status.code() == Some(1) && is_said, "{said}");
    Ok(())
}

fn is_done(output: &Output, deployment: &Deployment) -> Result<()> {
    ensure!(output.status.success(), "{}\n{}", in_words(output), deployment.logs());
    Ok(())
}

/// Empties etcd, and waits until these nodes have noticed.
fn lose(deployment: &mut Deployment, nodes: &[usize]) -> Result<()> {
    deployment.etcd.exchange_data(0)?;
    deployment.etcd.start_again(&[0])?;
    wait_until("it is noticed", || {
        Ok(nodes.iter().all(|node| deployment.nodes[*node].log().contains("it is not believed")))
    })
}

fn write(deployment: &Deployment, node: usize) -> Result<()> {
    let mut client = deployment.nodes[node].connect()?;
    for number in 0..KEYS {
        let reply = client.call(&["SET", &format!("key:{number}"), "x"])?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    }
    Ok(())
}

/// Lets a command run until it has shown what it would write. It asks the nodes again then, and
/// waits two seconds for one that stands still.
fn read_plan(command: &mut Child) -> Result<BufReader<impl std::io::Read + use<>>> {
    let mut shown = BufReader::new(command.stdout.take().context("a pipe")?);
    let mut line = String::new();
    while !line.contains("revisions and epochs go on at") {
        line.clear();
        ensure!(shown.read_line(&mut line)? > 0, "it has shown nothing");
    }
    Ok(shown)
}

/// A command stands still while it asks the nodes for the last time. Meanwhile another one is
/// given, the cluster serves, and slots move. When the first one goes on, it knows what was before.
#[test]
fn a_command_that_comes_late_writes_over_nothing() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(2)?;
    deployment.wait_for_leader(1..3)?;
    write(&deployment, 0)?;
    let stopped = (1..3).find(|node| !deployment.is_primary(*node)).context("a replica")?;
    let other = 3 - stopped;
    process::stop(deployment.nodes[stopped].pid())?;
    lose(&mut deployment, &[0, other])?;
    let (first, without) = (place(&deployment, 0), place(&deployment, stopped));
    let words = ["rebuild", &first, "--without", &without, "--yes"];
    let mut late = tool(&deployment, &words)?.spawn()?;
    let shown = read_plan(&mut late)?;
    sleep(Duration::from_secs(1));
    process::stop(late.id())?;
    process::resume(deployment.nodes[stopped].pid())?;
    let again = run(&deployment, &["rebuild", &first, "--yes"])?;
    // As long as it may be at work, there is no other one.
    let told = is_refused(&again, &["one rebuild at a time", &late.id().to_string()]);
    // Its claim ends.
    deployment.etcd.control(&["del", "/dunlin/dunlin/operators/rebuild"])?;
    let done = run(&deployment, &["rebuild", &first, "--yes"])?;
    is_done(&done, &deployment)?;
    let moved = run(&deployment, &["move", "0-8191", "--shard", OTHER_SHARD, "--yes"])?;
    is_done(&moved, &deployment)?;
    process::resume(late.id())?;
    let code = late.wait()?.code();
    drop(shown);
    let slots = [deployment.slots_of(SHARD)?, deployment.slots_of(OTHER_SHARD)?];
    ensure!(slots == ["8192-16383", "0-8191"], "{code:?}: {slots:?}");
    ensure!(code == Some(1), "{code:?}");
    told?;
    let leader = deployment.wait_for_leader(1..3)?;
    let mut count = 0;
    for node in [0, leader] {
        match deployment.nodes[node].connect()?.call_text("DBSIZE")? {
            Reply::Integer(own) => count += own,
            other => anyhow::bail!("{other:?}"),
        }
    }
    // The key by which it is seen who takes writes is one more.
    ensure!(count == KEYS + 1, "{count} keys are left\n{}", deployment.logs());
    Ok(())
}
