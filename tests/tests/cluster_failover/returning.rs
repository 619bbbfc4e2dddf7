//! Nodes that come back.

use std::thread::scope;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Reply};
use tests::cluster::{Deployment, OTHER_SHARD, SHARD, takes_writes};
use tests::observe::{figure, wait_until};
use tests::process;

use crate::writer::Writer;

#[test]
fn a_shard_that_was_killed_as_a_whole_comes_back_with_its_data() -> Result<()> {
    let mut deployment = Deployment::start(2, &[("appendonly", "yes")])?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(100)?;
    let written = writer.stop();
    let reply = deployment.nodes[1].connect()?.call_text("CLUSTER MYID")?;
    let other = String::from_utf8_lossy(reply.text().context("a name")?).into_owned();
    for node in &mut deployment.nodes {
        node.kill();
    }
    deployment.etcd.start_again(&[0])?;
    // One alone may lack what the other has, and says so.
    deployment.nodes[0].start_again()?;
    let said = format!("has no primary and waits for {other}.");
    wait_until("it says whom it waits for", || Ok(deployment.nodes[0].log().contains(&said)))
        .with_context(|| deployment.logs())?;
    deployment.nodes[1].start_again()?;
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    written.check(&deployment, 100)
}

/// The first was stopped in order, and is far behind. It alone knows that it has all that it has
/// confirmed.
#[test]
fn members_that_were_killed_have_more_than_one_that_was_stopped_before() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let primary = deployment.wait_until_whole()?;
    let behind = (primary + 1) % 3;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(20)?;
    // A server that writes its first append-only file refuses to stop.
    let file_is_written = "Background AOF rewrite finished successfully";
    wait_until("the replica may be stopped", || {
        Ok(deployment.nodes[behind].log().contains(file_is_written))
    })?;
    ensure!(deployment.nodes[behind].terminate()? == Some(0), "{}", deployment.logs());
    writer.wait_for_more(100).with_context(|| deployment.logs())?;
    let written = writer.stop();
    for node in [primary, (primary + 2) % 3] {
        deployment.nodes[node].kill();
    }
    for node in &mut deployment.nodes {
        node.start_again()?;
    }
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    written.check(&deployment, 120)
}

/// It has writes that nobody else has, and that were never acknowledged. Until the copy of all data
/// has come it is no better than before.
#[test]
fn a_primary_that_was_replaced_stays_of_its_old_epoch_until_it_is_linked() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let old = deployment.wait_until_whole()?;
    for node in &deployment.nodes {
        // A copy begins late.
        let late = node.connect()?.call_text("CONFIG SET repl-diskless-sync-delay 60")?;
        ensure!(!late.is_error(), "{late:?}");
    }
    let others = [(old + 1) % 3, (old + 2) % 3];
    for other in others {
        process::stop(deployment.nodes[other].pid())?;
    }
    let mut looker = deployment.nodes[old].connect()?;
    ensure!(looker.call_text("CLIENT KILL TYPE replica")? == Reply::Integer(2));
    let mut waiting = deployment.nodes[old].connect()?;
    for number in 0..200 {
        waiting.send(&["SET", &format!("alone:{number}"), "1"])?;
    }
    wait_until("the writes are there", || {
        Ok(looker.call_text("EXISTS alone:199")? == Reply::Integer(1))
    })?;
    process::stop(deployment.nodes[old].pid())?;
    for other in others {
        process::resume(deployment.nodes[other].pid())?;
    }
    wait_until("another one leads", || {
        Ok(others.iter().any(|other| deployment.is_primary(*other)))
    })
    .with_context(|| deployment.logs())?;
    let new = others[usize::from(deployment.is_primary(others[1]))];
    let third = others[usize::from(new == others[0])];
    let port = deployment.nodes[new].port();
    wait_until("it takes writes", || Ok(takes_writes(port)))?;
    let mut client = deployment.nodes[new].connect()?;
    for number in 0..40 {
        let reply = client.call(&["SET", &format!("known:{number}"), "1"])?;
        ensure!(!reply.is_error(), "{reply:?}\n{}", deployment.logs());
    }
    process::resume(deployment.nodes[old].pid())?;
    wait_until("the old one waits for all data", || {
        Ok(deployment.nodes[new].log().contains("cannot go on where it was"))
    })
    .with_context(|| deployment.logs())?;
    deployment.nodes[new].kill();
    wait_until("one of the two serves", || Ok(deployment.serves(old) || deployment.serves(third)))
        .with_context(|| deployment.logs())?;
    ensure!(deployment.serves(third), "{}", deployment.logs());
    let mut client = deployment.nodes[third].connect()?;
    for (names, count) in [("known", 40), ("alone", 0)] {
        let all: Vec<String> = (0..200).map(|number| format!("{names}:{number}")).collect();
        let mut there = 0;
        for name in &all {
            there += i64::from(client.call(&["EXISTS", name])? == Reply::Integer(1));
        }
        ensure!(there == count, "{there} of {names}\n{}", deployment.logs());
    }
    Ok(())
}

/// Another machine has its address by then, with the data of another shard.
#[test]
fn a_replica_takes_nothing_from_another_node_at_its_primarys_address() -> Result<()> {
    let kept = [("appendonly", "yes")];
    let mut deployment = Deployment::start(2, &kept)?;
    deployment.add_shard(1)?;
    let primary = deployment.wait_for_leader(0..2)?;
    let (replica, stranger) = (1 - primary, 2);
    let mut client = deployment.nodes[primary].connect()?;
    for number in 0..100 {
        let reply = client.call(&["SET", &format!("known:{number}"), "1"])?;
        ensure!(!reply.is_error(), "{reply:?}");
    }
    process::stop(deployment.nodes[replica].pid())?;
    let place = deployment.nodes[primary].port().to_string();
    deployment.nodes[primary].kill();
    deployment.nodes[stranger].add_options(&[("port", &place)]);
    deployment.nodes[stranger].start_again()?;
    process::resume(deployment.nodes[replica].pid())?;
    let refusal = "This is not the primary of that epoch";
    // It may hear that its primary is gone before it has asked the stranger.
    wait_until("the stranger sends it away, or it leads", || {
        let has_tried = deployment.nodes[replica].log().contains(refusal);
        Ok(has_tried || deployment.is_primary(replica))
    })
    .with_context(|| deployment.logs())?;
    wait_until("it serves the slots", || Ok(deployment.serves(replica)))
        .with_context(|| deployment.logs())?;
    let mut client = deployment.nodes[replica].connect()?;
    for number in 0..100 {
        let there = client.call(&["EXISTS", &format!("known:{number}")])?;
        ensure!(there == Reply::Integer(1), "{number}: {there:?}\n{}", deployment.logs());
    }
    // Nor does a node promise anything for another one.
    let own = client.call_text("CLUSTER MYID")?;
    let own = String::from_utf8_lossy(own.text().context("a name")?).into_owned();
    let other = OTHER_SHARD;
    for (to, word) in [(other, "is for another node"), (&*own, "no promise")] {
        let question = format!("{other} 1 1 1000 {to}");
        let reply = client.call(&["REPLCONF", "cluster-promise", &question])?;
        let Reply::Error(text) = &reply else { bail!("{reply:?}") };
        ensure!(String::from_utf8_lossy(text).contains(word), "{reply:?}");
    }
    Ok(())
}

/// Offsets alone would say that a replica has what nobody has any more.
#[test]
fn a_write_that_went_with_an_earlier_term_has_no_copy() -> Result<()> {
    let deployment = Deployment::start(2, &[])?;
    let old = deployment.wait_until_whole()?;
    let new = 1 - old;
    let mut waiting = deployment.nodes[old].connect()?;
    let ok = Reply::Status(b"OK".to_vec());
    ensure!(waiting.call_text("CLIENT DURABILITY MEMORY")? == ok);
    process::stop(deployment.nodes[new].pid())?;
    let mut looker = deployment.nodes[old].connect()?;
    ensure!(looker.call_text("CLIENT KILL TYPE replica")? == Reply::Integer(1));
    ensure!(waiting.call_text("SET lost 1")? == ok);
    process::stop(deployment.nodes[old].pid())?;
    process::resume(deployment.nodes[new].pid())?;
    wait_until("the other serves", || Ok(deployment.serves(new)))
        .with_context(|| deployment.logs())?;
    let write = |client: &mut Client| -> Result<()> {
        ensure!(client.call_text("CLIENT DURABILITY MEMORY")? == ok);
        for number in 0..30 {
            let reply = client.call(&["SET", &format!("key:{number}"), &"x".repeat(100)])?;
            ensure!(reply == ok, "{reply:?}");
        }
        Ok(())
    };
    write(&mut deployment.nodes[new].connect()?)?;
    process::resume(deployment.nodes[old].pid())?;
    wait_until("the old one follows", || Ok(deployment.leader(0..2) == Some(new)))?;
    wait_until("it has all data", || Ok(figure(&mut looker, "master_link_status")? == "up"))
        .with_context(|| deployment.logs())?;
    let reply = deployment.nodes[old].connect()?.call_text("CLUSTER FAILOVER")?;
    ensure!(reply == ok, "{reply:?}\n{}", deployment.logs());
    wait_until("the old one leads again", || Ok(deployment.leader(0..2) == Some(old)))
        .with_context(|| deployment.logs())?;
    write(&mut deployment.nodes[old].connect()?)?;
    ensure!(waiting.call_text("EXISTS lost")? == Reply::Integer(0));
    let reply = waiting.call_text("WAIT 1 1000")?;
    ensure!(reply == Reply::Integer(0), "{reply:?}");
    ensure!(waiting.call_text("SET there 1")? == ok);
    ensure!(waiting.call_text("WAIT 1 10000")? == Reply::Integer(1), "{}", deployment.logs());
    Ok(())
}

/// Each knows by which name its files call the history of the data.
#[test]
fn members_that_were_stopped_in_order_after_a_failover_have_all_data() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let old = deployment.wait_until_whole()?;
    let (new, third) = ((old + 1) % 3, (old + 2) % 3);
    wait_until_files_are_written(&deployment, &[new, third])?;
    let reply = deployment.nodes[new].connect()?.call_text("CLUSTER FAILOVER")?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}\n{}", deployment.logs());
    wait_until("the other leads", || Ok(deployment.primary() == Some(new)))?;
    ensure!(deployment.wait_until_whole()? == new, "{}", deployment.logs());
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(20)?;
    let written = writer.stop();
    for node in [old, third, new] {
        ensure!(deployment.nodes[node].terminate()? == Some(0), "{}", deployment.logs());
    }
    for node in [old, third] {
        deployment.nodes[node].start_again()?;
    }
    deployment.wait_for_primary().with_context(|| deployment.logs())?;
    written.check(&deployment, 20)
}

/// The last change of the history's name is the last thing that their files have.
#[test]
fn members_that_were_stopped_in_order_have_all_data_if_nothing_was_written_since() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let old = deployment.wait_until_whole()?;
    let (new, third) = ((old + 1) % 3, (old + 2) % 3);
    wait_until_files_are_written(&deployment, &[new, third])?;
    let ok = Reply::Status(b"OK".to_vec());
    ensure!(deployment.nodes[old].connect()?.call_text("SET key 1")? == ok);
    for leader in [new, old, new] {
        let reply = deployment.nodes[leader].connect()?.call_text("CLUSTER FAILOVER")?;
        ensure!(reply == ok, "{reply:?}\n{}", deployment.logs());
        wait_until("it leads", || Ok(deployment.primary() == Some(leader)))?;
        ensure!(deployment.wait_until_whole()? == leader, "{}", deployment.logs());
    }
    for node in [old, third, new] {
        ensure!(deployment.nodes[node].terminate()? == Some(0), "{}", deployment.logs());
    }
    for node in [old, third] {
        deployment.nodes[node].start_again()?;
    }
    let primary = deployment.wait_for_primary().with_context(|| deployment.logs())?;
    let reply = deployment.nodes[primary].connect()?.call_text("EXISTS key")?;
    ensure!(reply == Reply::Integer(1), "{reply:?}\n{}", deployment.logs());
    Ok(())
}

/// Each leads when it is stopped, and hears of its successor before it ends.
#[test]
fn members_that_were_stopped_one_after_the_other_lack_nothing() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let first = deployment.wait_until_whole()?;
    wait_until_files_are_written(&deployment, &[(first + 1) % 3, (first + 2) % 3])?;
    for missing in 0..3 {
        deployment.wait_until_whole().with_context(|| deployment.logs())?;
        let mut order = Vec::new();
        while order.len() < 3 {
            let replicas = (2 - order.len()).to_string();
            let mut leader = None;
            wait_until("one of those that are left leads the others", || {
                leader = (0..3).find(|node| deployment.is_primary(*node));
                let Some(leader) = leader else { return Ok(false) };
                let mut client = deployment.nodes[leader].connect()?;
                Ok(figure(&mut client, "connected_slaves")? == replicas)
            })
            .with_context(|| deployment.logs())?;
            let primary = leader.context("it leads")?;
            ensure!(deployment.nodes[primary].terminate()? == Some(0), "{}", deployment.logs());
            order.push(primary);
        }
        let missing = order.remove(missing);
        for node in order {
            deployment.nodes[node].start_again()?;
        }
        deployment.wait_for_primary().with_context(|| deployment.logs())?;
        deployment.nodes[missing].start_again()?;
    }
    Ok(())
}

/// A server that writes its first append-only file refuses to stop.
fn wait_until_files_are_written(deployment: &Deployment, nodes: &[usize]) -> Result<()> {
    let file_is_written = "Background AOF rewrite finished successfully";
    for node in nodes {
        let is_written = || Ok(deployment.nodes[*node].log().contains(file_is_written));
        wait_until("the replica may be stopped", is_written)?;
    }
    Ok(())
}

/// Nothing may be put into its stream once another one leads.
#[test]
fn a_primary_that_was_stopped_in_order_comes_back_without_a_copy_of_all_data() -> Result<()> {
    let mut deployment = Deployment::start(3, &[("appendonly", "yes")])?;
    let first = deployment.wait_until_whole()?;
    wait_until_files_are_written(&deployment, &[(first + 1) % 3, (first + 2) % 3])?;
    for _ in 0..4 {
        let old = deployment.wait_until_whole()?;
        let mut client = deployment.nodes[old].connect()?;
        for number in 0..50 {
            client.call(&["SET", &format!("key:{number}"), "1"])?;
        }
        ensure!(deployment.nodes[old].terminate()? == Some(0), "{}", deployment.logs());
        let new = deployment.wait_for_primary().with_context(|| deployment.logs())?;
        deployment.nodes[old].start_again()?;
        deployment.wait_until_whole().with_context(|| deployment.logs())?;
        let copies = figure(&mut deployment.nodes[new].connect()?, "sync_full")?;
        ensure!(copies == "0", "{copies} copies\n{}", deployment.logs());
    }
    Ok(())
}

#[test]
fn a_node_that_loads_sends_clients_on() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    deployment.move_slots("one", "0-499", SHARD, OTHER_SHARD)?;
    deployment.wait_for_move("one")?;
    let node = &mut deployment.nodes[0];
    let mut client = node.connect()?;
    let script = "for i = 1, 2000 do redis.call('SET', '{bar}' .. i, i) end";
    ensure!(!client.call(&["EVAL", script, "1", "bar"])?.is_error());
    ensure!(!client.call_text("SAVE")?.is_error());
    let file = node.directory().join("nodes.conf");
    wait_until("it has noted where slots are", || {
        Ok(std::fs::read_to_string(&file)?.contains("\"500-16383\""))
    })?;
    node.add_options(&[("key-load-delay", "1000")]);
    node.kill();
    let port = node.port();
    let (own, other) = scope(|scope| -> Result<_> {
        let started = scope.spawn(|| node.start_again());
        let mut replies = None;
        wait_until("a node that loads", || {
            let Ok(mut client) = Client::connect(port) else { return Ok(false) };
            let (Ok(own), Ok(other)) = (client.call_text("GET bar"), client.call_text("GET k2"))
            else {
                return Ok(false);
            };
            replies = Some((own, other));
            Ok(true)
        })?;
        started.join().expect("no panic")?;
        replies.context("they came")
    })?;
    let said = |reply: &Reply, word: &str| matches!(reply, Reply::Error(text) if text.starts_with(word.as_bytes()));
    ensure!(said(&own, "CLUSTERDOWN"), "{own:?}");
    ensure!(said(&other, "MOVED"), "{other:?}");
    Ok(())
}
