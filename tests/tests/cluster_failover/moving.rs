//! Slots move between shards while clients count, and primaries of both are killed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{scope, sleep, spawn};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::counting::{Counts, Way, check_counts, count, value_of};
use tests::observe::{figure, wait_until};
use tests::process::{resume, stop};
use tests::replication::follow;
use tests::server::{Server, Target};

#[test]
fn no_count_is_lost_while_slots_move_and_primaries_are_killed() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    deployment.add_shard(2)?;
    let ports = deployment.ports();
    let over = AtomicBool::new(false);
    let all = scope(|scope| -> Result<Vec<Counts>> {
        let (ports, over) = (&ports, &over);
        let writers: Vec<_> = [(1, Way::Command), (2, Way::Command), (3, Way::Script)]
            .map(|own| scope.spawn(move || count(ports, own, over)))
            .into();
        let moves = (|| {
            sleep(Duration::from_millis(300));
            deployment.move_slots("one", "0-4000", SHARD, OTHER_SHARD)?;
            deployment.wait_for_move("one")?;
            // The target's primary, then the source's.
            for (id, slots, index) in [("two", "4001-8191", 2), ("three", "8192-9000,16383", 0)] {
                deployment.move_slots(id, slots, SHARD, OTHER_SHARD)?;
                sleep(Duration::from_millis(30));
                deployment.nodes[index].kill();
                sleep(Duration::from_millis(500));
                deployment.nodes[index].start_again()?;
                deployment.wait_for_move(id)?;
            }
            deployment.move_slots("back", "100-300", OTHER_SHARD, SHARD)?;
            deployment.wait_for_move("back")
        })();
        over.store(true, Relaxed);
        let counts = writers.into_iter().map(|own| own.join().expect("no panic")).collect();
        moves.map(|()| counts)
    })
    .with_context(|| deployment.logs())?;
    let slots = deployment.slots_of(OTHER_SHARD)?;
    ensure!(slots == "0-99,301-9000,16383", "{slots}");
    check_counts(&ports, &all).with_context(|| deployment.logs())?;
    Ok(())
}

#[test]
fn slots_wait_for_the_members_of_their_next_shard_whatever_the_settings_say() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(2)?;
    let ports = deployment.ports();
    let mut source = deployment.nodes[0].connect()?;
    let answers = |port: u16| -> Result<String> {
        let role = Client::connect(port)?.call_text("ROLE")?;
        let elements = role.elements().unwrap_or_default();
        let first = elements.first().and_then(|own| own.text().map(<[u8]>::to_vec));
        Ok(String::from_utf8(first.unwrap_or_default())?)
    };
    let target = if answers(ports[1])? == "master" { 1 } else { 2 };
    deployment.nodes[target].connect()?.call_text("CONFIG SET appendonly yes")?;
    // It is no member, so what it has does not count.
    let stranger = Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0")])?;
    follow(&stranger, ports[target])?;
    let mut client = stranger.connect()?;
    wait_until("it follows", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
    for (id, slots, key, durability) in
        [("one", "0-499", "k2", "memory"), ("two", "5000-5100", "bar", "fsync")]
    {
        source.call(&["CONFIG", "SET", "cluster-durability", durability])?;
        source.call_text("CLIENT DURABILITY QUORUM")?;
        ensure!(source.call(&["SET", key, "7"])? == Reply::Status(b"OK".to_vec()));
        let before = deployment.slots_of(OTHER_SHARD)?;
        let member = &deployment.nodes[3 - target];
        stop(member.pid())?;
        deployment.move_slots(id, slots, SHARD, OTHER_SHARD)?;
        // Several tries to hold the slots are over by then.
        sleep(Duration::from_millis(1500));
        let meanwhile = deployment.slots_of(OTHER_SHARD);
        // It waits, and does not copy everything again and again.
        let log = deployment.nodes[0].log();
        let copies = log.matches(&format!("Slots {slots} are being sent")).count();
        resume(member.pid())?;
        ensure!(copies == 1, "{durability}: {copies} copies\n{log}");
        ensure!(meanwhile? == before, "{durability}: nobody but the target has the slots");
        deployment.wait_for_move(id).with_context(|| deployment.logs())?;
    }
    deployment.nodes[target].kill();
    for key in ["k2", "bar"] {
        ensure!(value_of(&ports[1..], key).with_context(|| deployment.logs())? == 7, "{key}");
    }
    Ok(())
}

/// Which of some nodes leads, and which other one follows it.
fn pair_of(deployment: &Deployment, nodes: Range<usize>) -> Result<(usize, usize)> {
    let (first, last) = (nodes.start, nodes.end - 1);
    let leader = deployment.wait_for_leader(nodes)?;
    Ok((leader, first + last - leader))
}

/// The other shard has the keys in a copy from an earlier stay of the slots.
#[test]
fn keys_that_were_deleted_elsewhere_stay_deleted_when_an_empty_slot_comes_back() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(2)?;
    let ports = deployment.ports();
    let (target, member) = pair_of(&deployment, 1..3)?;
    deployment.move_slots("one", "0-499", SHARD, OTHER_SHARD)?;
    deployment.wait_for_move("one").with_context(|| deployment.logs())?;
    let mut client = deployment.nodes[target].connect()?;
    ensure!(client.call_text("SET k2 7")? == Reply::Status(b"OK".to_vec()));
    stop(deployment.nodes[member].pid())?;
    deployment.move_slots("two", "0-499", OTHER_SHARD, SHARD)?;
    deployment.wait_for_move("two").with_context(|| deployment.logs())?;
    let mut owner = deployment.nodes[0].connect()?;
    ensure!(owner.call_text("DEL k2")? == Reply::Integer(1));
    let begun = "Slots 0-499 are being sent";
    let tries = || deployment.nodes[0].log().matches(begun).count();
    deployment.move_slots("back", "0-499", SHARD, OTHER_SHARD)?;
    wait_until("the move begins", || Ok(tries() == 2)).with_context(|| deployment.logs())?;
    sleep(Duration::from_millis(1500));
    ensure!(deployment.slots_of(OTHER_SHARD)?.is_empty(), "its member does not know of the end");
    resume(deployment.nodes[member].pid())?;
    deployment.wait_for_move("back").with_context(|| deployment.logs())?;
    deployment.nodes[target].kill();
    let value = value_of(&ports[1..], "k2").with_context(|| deployment.logs())?;
    ensure!(value == 0, "{value}\n{}", deployment.logs());
    Ok(())
}

#[test]
fn what_a_source_has_flushed_is_gone_at_a_quorum_before_all_is_ready() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(2)?;
    let (target, member) = pair_of(&deployment, 1..3)?;
    let mut source = deployment.nodes[target].connect()?;
    source.call_text("CONFIG SET appendonly yes")?;
    // The cluster knows the move, so that the target keeps what comes, and this sends it instead.
    stop(deployment.nodes[0].pid())?;
    deployment.move_slots("one", "0-499", SHARD, OTHER_SHARD)?;
    wait_until("the target knows of the move", || {
        let topology = source.call_text("CLUSTER TOPOLOGY")?;
        Ok(String::from_utf8_lossy(topology.text().unwrap_or_default()).contains("\"one\""))
    })?;
    let ok = Reply::Status(b"OK".to_vec());
    ensure!(source.call_text("SLOTMOVE BEGIN one 0-499 1 1")? == ok);
    ensure!(source.call_text("SET k2 7")? == ok);
    let ready = |source: &mut Client| -> Result<bool> {
        let reply = source.call_text("SLOTMOVE READY FSYNC")?;
        ensure!(!reply.is_error(), "{reply:?}");
        Ok(reply == Reply::Integer(1))
    };
    wait_until("the key is at both", || ready(&mut source))?;
    stop(deployment.nodes[member].pid())?;
    ensure!(source.call_text("SLOTMOVE FLUSH ALL")? == ok);
    for _ in 0..20 {
        sleep(Duration::from_millis(10));
        ensure!(!ready(&mut source)?, "the member does not know that the key is gone");
    }
    resume(deployment.nodes[member].pid())?;
    wait_until("the key is gone at both", || ready(&mut source))
}

/// The target runs a script for longer than its lease lasts.
#[test]
fn slots_come_to_a_node_beside_a_script_and_cost_it_no_lease() -> Result<()> {
    let options = [("cluster-durability", "memory"), ("threads", "4")];
    let mut deployment = Deployment::start(1, &options)?;
    deployment.start_nodes(1, &options)?;
    deployment.form_shard(OTHER_SHARD, "", 1..2)?;
    deployment.wait_for_leader(1..2)?;
    let mut source = deployment.nodes[0].connect()?;
    source.call_text("SET bar 7")?;
    let text = "x".repeat(10_000);
    for number in 0..300 {
        source.call(&["SET", &format!("{{bar}}{number}"), &text])?;
    }
    source.call_text("CONFIG SET cluster-migration-bandwidth 1500000")?;
    deployment.move_slots("one", "5000-5100", SHARD, OTHER_SHARD)?;
    wait_until("it copies", || {
        let told = source.call_text("INFO CLUSTER")?;
        Ok(String::from_utf8_lossy(told.text().unwrap_or_default()).contains("state=copying"))
    })?;
    let script = "local begun = os.clock() while os.clock() - begun < 6 do end return 1";
    let (mut busy, mut client) = (deployment.nodes[1].connect()?, deployment.nodes[1].connect()?);
    busy.send(&["EVAL", script, "0"])?;
    deployment.wait_for_move("one").with_context(|| deployment.logs())?;
    ensure!(matches!(busy.receive()?, Received::Reply(Reply::Integer(1))), "the script ends");
    wait_until("the target serves the slots", || {
        Ok(client.call_text("GET bar")? == Reply::Bulk(b"7".to_vec()))
    })
    .with_context(|| deployment.logs())?;
    let log = deployment.nodes[1].log();
    ensure!(!log.contains("The lease at etcd has ended"), "{}", deployment.logs());
    Ok(())
}

/// When etcd has lost everything, the cluster is what nodes know.
#[test]
fn a_node_that_is_killed_knows_of_slots_that_have_just_come() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    let mut target = deployment.nodes[1].connect()?;
    ensure!(target.call_text("CLUSTER KEYSLOT {06S}")? == Reply::Integer(0));
    let path = deployment.nodes[1].directory().join("nodes.conf");
    deployment.move_slots("one", "0-99", SHARD, OTHER_SHARD)?;
    wait_until("the slots have come", || Ok(!target.call_text("GET {06S}")?.is_error()))?;
    // What changes elsewhere is stored a second later.
    sleep(Duration::from_millis(300));
    deployment.nodes[1].kill();
    let kept = std::fs::read_to_string(path)?;
    ensure!(kept.contains("\"slots\": \"0-99\""), "{kept}");
    Ok(())
}

/// And it serves nothing of which the next process of it would know nothing.
#[test]
fn slots_that_come_are_not_served_before_the_node_can_keep_them() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    let node = &deployment.nodes[1];
    let mut target = node.connect()?;
    ensure!(target.call_text("CLUSTER KEYSLOT {06S}")? == Reply::Integer(0));
    let path = node.directory().join("nodes.conf");
    std::fs::remove_file(&path)?;
    std::fs::create_dir(&path)?;
    deployment.move_slots("one", "0-99", SHARD, OTHER_SHARD)?;
    let says = "This node serves and confirms nothing until it can be written";
    wait_until("it says so", || Ok(node.log().contains(says)))
        .with_context(|| deployment.logs())?;
    wait_until("it fences itself", || Ok(target.call_text("SET {06S} 1")?.is_error()))?;
    std::fs::remove_dir(&path)?;
    wait_until("it serves them", || Ok(!target.call_text("SET {06S} 2")?.is_error()))
        .with_context(|| deployment.logs())?;
    let kept = std::fs::read_to_string(path)?;
    ensure!(kept.contains("\"slots\": \"0-99\""), "{kept}");
    Ok(())
}

/// Takes connections as the target of MIGRATE. Tells when a key has come, and takes it when told.
fn take_a_key(listener: &TcpListener, come: &Sender<()>, take: &Receiver<()>) -> Result<()> {
    let (mut stream, _) = listener.accept()?;
    let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer)?;
        input.extend_from_slice(&buffer[..count]);
        let has = |word: &[u8]| input.windows(word.len()).any(|own| own == word);
        match () {
            () if count == 0 => return Ok(()),
            () if has(b"RESTORE") => {
                come.send(())?;
                take.recv()?;
            }
            () if has(b"SELECT") => {}
            () => continue,
        }
        stream.write_all(b"+OK\r\n")?;
        input.clear();
    }
}

#[test]
fn a_key_whose_slot_leaves_while_it_is_sent_elsewhere_is_said_to_be_here_still() -> Result<()> {
    let mut deployment = Deployment::start(1, &[("enable-debug-command", "yes")])?;
    deployment.add_shard(1)?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port().to_string();
    let ((tell, come), (order, take)) = (channel(), channel());
    spawn(move || take_a_key(&listener, &tell, &take));
    let mut client = deployment.nodes[0].connect()?;
    ensure!(client.call_text("SET k2 7")? == Reply::Status(b"OK".to_vec()));
    // What is left of the slot stays for now.
    client.call_text("DEBUG PAUSE-CRON 1")?;
    client.send(&["MIGRATE", "127.0.0.1", &port, "k2", "0", "60000"])?;
    come.recv()?;
    deployment.move_slots("one", "0-499", SHARD, OTHER_SHARD)?;
    deployment.wait_for_move("one").with_context(|| deployment.logs())?;
    order.send(())?;
    let Received::Reply(reply) = client.receive()? else { bail!("no reply") };
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    let expected = "ERR The target has taken keys that could not be deleted here: MOVED 449 ";
    ensure!(reply.is_error() && text.starts_with(expected), "{text}");
    client.call_text("DEBUG PAUSE-CRON 0")?;
    ensure!(value_of(&deployment.ports()[1..], "k2")? == 7);
    Ok(())
}
