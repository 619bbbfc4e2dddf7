//! What `dunlin cluster rebuild` must not do: write over a cluster that serves again, take another
//! cluster of the same name for this one, or write beside an etcd that may come back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::client::Reply;
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::process;

use crate::interrupted::{in_words, tool};

const KEYS: i64 = 50;
/// A shard that nobody has here.
const FOREIGN: &str = "00000000000000000000000000000000000000cc";

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

/// Nodes that ask two addresses may find the cluster at the one that is not given.
#[test]
fn nodes_must_not_ask_an_address_that_is_not_given() -> Result<()> {
    let mut deployment = Deployment::empty()?;
    let mut second = EtcdMembers::start(1)?;
    let both = format!("{},{}", deployment.etcd.url(0), second.url(0));
    deployment.start_nodes(2, &[("cluster-etcd", &both)])?;
    deployment.form_shard(SHARD, "0-16383", 0..2)?;
    let primary = deployment.wait_until_whole()?;
    ensure!(deployment.nodes[1 - primary].terminate()? == Some(0), "{}", deployment.logs());
    deployment.etcd.stop(0)?;
    // The command asks the second one.
    std::mem::swap(&mut deployment.etcd, &mut second);
    let (own, without) = (place(&deployment, primary), place(&deployment, 1 - primary));
    let words = ["rebuild", &own, "--without", &without, "--yes"];
    let refused = run(&deployment, &words)?;
    let (here, there) = (deployment.etcd.url(0), second.url(0));
    let advice =
        [format!("give --etcd {here},{there};"), format!("CONFIG SET cluster-etcd {here} at")];
    is_refused(&refused, &["ask another etcd", &advice[0], &advice[1]])?;
    // Nor is it enough to name it.
    let list = format!("{here},{there}");
    let mut command = tool(&deployment, &words)?;
    let refused = command.args(["--etcd", &list]).output()?;
    is_refused(&refused, &["may be another etcd", &format!("CONFIG SET cluster-etcd {here}")])?;
    ensure!(deployment.etcd.control(&["get", "--prefix", "/dunlin/"])?.is_empty());
    Ok(())
}

/// Gives a node the picture of another cluster, as one has kept it that was pointed at the etcd of
/// that one for a while.
fn give_foreign_picture(deployment: &mut Deployment, node: usize) -> Result<()> {
    let file = deployment.nodes[node].directory().join("nodes.conf");
    wait_until("it has kept the topology", || {
        Ok(fs::read_to_string(&file)?.contains("\"leader\": {"))
    })?;
    deployment.nodes[node].kill();
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let own = kept["node"].as_str().context("a name")?.to_owned();
    let topology = &mut kept["topology"];
    let mut shard = topology["shards"][SHARD].clone();
    let (mut itself, mut other) =
        (topology["nodes"][&own].clone(), topology["nodes"][&own].clone());
    let name = "c".repeat(40);
    (itself["shard"], itself["alive"]) = (Value::Null, Value::Null);
    (other["id"], other["shard"]) = (json!(name), json!(FOREIGN));
    // Nobody is there.
    other["address"]["port"] = json!(1);
    (shard["id"], shard["members"], shard["joining"]) = (json!(FOREIGN), json!([name]), json!([]));
    (shard["leader"], shard["last_leader"]) = (Value::Null, Value::Null);
    (topology["nodes"], topology["shards"]) =
        (json!({own: itself, name: other}), json!({FOREIGN: shard}));
    topology["owners"] = json!([[0, 16383, FOREIGN]]);
    topology["revision"] = json!(9_000_000);
    fs::write(&file, serde_json::to_string(&kept)?)?;
    deployment.nodes[node].start_again()
}

#[test]
fn another_cluster_of_the_same_name_is_not_taken_for_this_one() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let primary = deployment.wait_until_whole()?;
    write(&deployment, primary)?;
    deployment.etcd.kill(0);
    let strayed = (primary + 1) % 3;
    give_foreign_picture(&mut deployment, strayed)?;
    // The data of before are aside now.
    deployment.etcd.exchange_data(0)?;
    deployment.etcd.start_again(&[0])?;
    let own = place(&deployment, primary);
    let refused = run(&deployment, &["rebuild", &own, "--yes"])?;
    is_refused(&refused, &["without a shard in common", "--trust"])?;
    let trusts = ["rebuild", &own, "--trust", &own, "--yes"];
    // The same address of etcd, as people write it.
    let mut command = tool(&deployment, &trusts)?;
    let bare = format!("127.0.0.1:{}", deployment.etcd.port(0));
    let done = command.args(["--etcd", &bare]).output()?;
    is_done(&done, &deployment)?;
    ensure!(in_words(&done).contains("of another cluster"), "{}", in_words(&done));
    let leader = deployment.wait_until_whole().with_context(|| deployment.logs())?;
    let counted = deployment.nodes[leader].connect()?.call_text("DBSIZE")?;
    ensure!(counted == Reply::Integer(KEYS + 1), "{counted:?}");
    // An etcd that has another one, further than all that is known, is not written over.
    for node in &deployment.nodes {
        let words = ["CONFIG", "SET", "cluster-etcd", "http://127.0.0.1:9"];
        let set = node.connect()?.call(&words)?;
        ensure!(set == Reply::Status(b"OK".to_vec()), "{set:?}");
    }
    deployment.etcd.control(&["del", "--prefix", "/dunlin/"])?;
    deployment.put(&format!("shards/{FOREIGN}"), "{\"slots\":\"0-16383\",\"members\":[]}")?;
    let rebuilt = "{\"id\":\"x\",\"ahead\":4000000000000000000,\"is_complete\":true}";
    deployment.put("rebuilt", rebuilt)?;
    let before = deployment.etcd.control(&["get", "--prefix", "/dunlin/"])?;
    let refused = run(&deployment, &["rebuild", &own, "--yes", "--timeout", "5"])?;
    is_refused(&refused, &["has another cluster", &FOREIGN[..8], "del --prefix /dunlin/dunlin/"])?;
    ensure!(deployment.etcd.control(&["get", "--prefix", "/dunlin/"])? == before);
    Ok(())
}
