//! FAILOVER: a primary hands over to a replica, both ways with redis-server.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, wait_until};
use tests::process::{ask_to_end, resume, stop};
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

use crate::deployment::{Deployment, start, wait_until_alike};

fn said(client: &mut Client, command: &str) -> Result<String> {
    let reply = client.call_text(command)?;
    Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
}

fn is(server: &Server, name: &str, value: &str) -> Result<bool> {
    Ok(figure(&mut server.connect()?, name).is_ok_and(|own| own == value))
}

/// Writes numbers in their order until it is refused. Returns how many were acknowledged.
fn count_up(port: u16, stop: &AtomicBool) -> Result<i64> {
    let mut client = Client::connect(port)?;
    let mut acknowledged = 0;
    while !stop.load(Relaxed) {
        match client.call_text("INCR counter") {
            Ok(Reply::Integer(number)) => acknowledged = number,
            _ => break,
        }
    }
    Ok(acknowledged)
}

/// Refusals, in the order in which Redis makes its checks.
const REFUSALS: &[(&str, &str)] = &[
    ("FAILOVER", "ERR FAILOVER requires connected replicas."),
    ("FAILOVER ABORT", "ERR No failover in progress."),
    ("FAILOVER ABORT TIMEOUT 10", "ERR syntax error"),
    ("FAILOVER ABORT ABORT", "ERR syntax error"),
    ("FAILOVER TIMEOUT 0", "ERR FAILOVER timeout must be greater than 0"),
    ("FAILOVER TIMEOUT -1", "ERR FAILOVER timeout must be greater than 0"),
    ("FAILOVER TIMEOUT x", "ERR value is not an integer or out of range"),
    ("FAILOVER TIMEOUT 10 TIMEOUT 20", "ERR syntax error"),
    ("FAILOVER TIMEOUT", "ERR syntax error"),
    ("FAILOVER TO", "ERR syntax error"),
    ("FAILOVER TO h", "ERR syntax error"),
    ("FAILOVER TO h x", "ERR value is not an integer or out of range"),
    ("FAILOVER TO h 1 TO h 1", "ERR syntax error"),
    ("FAILOVER FOO", "ERR syntax error"),
    ("FAILOVER FORCE FORCE", "ERR syntax error"),
    ("FAILOVER FORCE", "ERR FAILOVER requires connected replicas."),
    ("FAILOVER TO h 99999999", "ERR FAILOVER requires connected replicas."),
];

/// The same once there is a replica.
const REFUSALS_WITH_A_REPLICA: &[(&str, &str)] = &[
    ("FAILOVER ABORT", "ERR No failover in progress."),
    ("FAILOVER TO 127.0.0.1 1", "ERR FAILOVER target HOST and PORT is not a replica."),
    ("FAILOVER TO 127.0.0.1 99999999", "ERR FAILOVER target HOST and PORT is not a replica."),
    (
        "FAILOVER FORCE TIMEOUT 100",
        "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
    ),
    (
        "FAILOVER TO 127.0.0.1 1 FORCE",
        "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
    ),
];

#[test]
fn it_is_refused_as_by_redis() -> Result<()> {
    for target in [Target::Dunlin, Target::Reference] {
        let primary = start(target, &[])?;
        let mut client = primary.connect()?;
        for (command, error) in REFUSALS {
            ensure!(said(&mut client, command)? == *error, "{target:?} {command}");
        }
        let replica = start(Target::Dunlin, &[])?;
        follow(&replica, primary.port())?;
        wait_until_alike(&primary, &replica)?;
        for (command, error) in REFUSALS_WITH_A_REPLICA {
            ensure!(said(&mut client, command)? == *error, "{target:?} {command}");
        }
    }
    let primary = start(Target::Reference, &[])?;
    for target in [Target::Dunlin, Target::Reference] {
        let replica = start(target, &[])?;
        follow(&replica, primary.port())?;
        wait_until_alike(&primary, &replica)?;
        let mut client = replica.connect()?;
        let error = "ERR FAILOVER is not valid when server is a replica.";
        ensure!(said(&mut client, "FAILOVER")? == error);
        ensure!(said(&mut client, "FAILOVER ABORT")? == "ERR No failover in progress.");
        let history = "0123456789012345678901234567890123456789";
        let error = "ERR PSYNC FAILOVER replid must match my replid.";
        ensure!(said(&mut client, &format!("PSYNC {history} 1 FAILOVER"))? == error);
        ensure!(is(&replica, "role", "slave")?, "{target:?}");
    }
    Ok(())
}

#[test]
fn a_primary_hands_over_and_loses_nothing() -> Result<()> {
    for (from, to) in [
        (Target::Dunlin, Target::Dunlin),
        (Target::Dunlin, Target::Reference),
        (Target::Dunlin, Target::Valkey),
        (Target::Reference, Target::Dunlin),
        (Target::Valkey, Target::Dunlin),
    ] {
        hand_over(from, to).with_context(|| format!("{from:?} to {to:?}"))?;
    }
    Ok(())
}

fn hand_over(from: Target, to: Target) -> Result<()> {
    let deployment = Deployment::start(&[from, to], &[])?;
    let (old, new) = (&deployment.servers[0], &deployment.servers[1]);
    let stop = AtomicBool::new(false);
    let acknowledged = thread::scope(|scope| {
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| count_up(old.port(), &stop))).collect();
        let asked = (|| {
            let mut client = old.connect()?;
            wait_until("they write", || {
                Ok(client.call_text("EXISTS counter")? == Reply::Integer(1))
            })?;
            let command = format!("FAILOVER TO 127.0.0.1 {} TIMEOUT 20000", new.port());
            // It is refused until the primary knows that the replica has all.
            wait_until("it hands over", || Ok(said(&mut client, &command)? == "OK"))?;
            wait_until("the replica leads", || is(new, "role", "master"))
        })();
        if asked.is_err() {
            stop.store(true, Relaxed);
        }
        let counts = writers.into_iter().map(|own| own.join().expect("no panic"));
        let most = counts.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or_default();
        asked.map(|()| most)
    });
    let acknowledged =
        acknowledged.with_context(|| format!("{}\n{}", old.log_tail(), new.log_tail()))?;
    deployment.wait_until_follows(0, new.port())?;
    ensure!(is(old, "master_failover_state", "no-failover")?);
    let counter = said(&mut new.connect()?, "GET counter")?;
    ensure!(counter == acknowledged.to_string(), "{counter}, and not {acknowledged}");
    // Writes go on there, and the old one has them.
    ensure!(said(&mut new.connect()?, "SET after failover")? == "OK");
    deployment.wait_until_follows(0, new.port())?;
    ensure!(said(&mut old.connect()?, "GET after")? == "failover");
    let refused = said(&mut old.connect()?, "SET k v")?;
    ensure!(refused.starts_with("READONLY"), "{refused}");
    // And back.
    let mut client = new.connect()?;
    wait_until("it can go back", || Ok(said(&mut client, "FAILOVER")? == "OK"))?;
    wait_until("the old one leads", || is(old, "role", "master"))?;
    deployment.wait_until_follows(1, old.port())?;
    ensure!(said(&mut old.connect()?, "GET counter")? == counter);
    ensure!(said(&mut old.connect()?, "SET k v")? == "OK");
    Ok(())
}

#[test]
fn writes_wait_until_it_is_given_up() -> Result<()> {
    let deployment = Deployment::start(&[Target::Dunlin, Target::Reference], &[])?;
    let (primary, replica) = (&deployment.servers[0], &deployment.servers[1]);
    stop(replica.pid())?;
    let mut client = primary.connect()?;
    ensure!(said(&mut client, "SET k v")? == "OK");
    for ending in ["FAILOVER ABORT", "TIMEOUT"] {
        let command = if ending == "TIMEOUT" { "FAILOVER TIMEOUT 700" } else { "FAILOVER" };
        ensure!(said(&mut client, command)? == "OK");
        ensure!(figure(&mut client, "master_failover_state")? == "waiting-for-sync");
        ensure!(said(&mut client, "FAILOVER")? == "ERR FAILOVER already in progress.");
        for command in ["REPLICAOF NO ONE", "REPLICAOF 127.0.0.1 1"] {
            let error = "ERR REPLICAOF not allowed while failing over.";
            ensure!(said(&mut client, command)? == error);
        }
        let error = "NOMASTERLINK Can't SYNC while failing over";
        ensure!(said(&mut primary.connect()?, "PSYNC ? -1")? == error);
        let mut writer = primary.connect()?;
        writer.send(&["SET", "k", ending])?;
        ensure!(said(&mut client, "GET k")? != ending, "reads are answered");
        if ending != "TIMEOUT" {
            ensure!(said(&mut client, "CLIENT UNPAUSE")? == "OK");
            ensure!(!writer.has_input(Duration::from_millis(100))?, "it waits all the same");
            ensure!(said(&mut client, ending)? == "OK");
        }
        ensure!(writer.receive()? == Received::Reply(Reply::Status(b"OK".to_vec())));
        ensure!(figure(&mut client, "master_failover_state")? == "no-failover");
        ensure!(is(primary, "role", "master")?);
    }
    resume(replica.pid())?;
    wait_until_alike(primary, replica)
}

#[test]
fn a_forced_target_takes_over_when_it_answers_again() -> Result<()> {
    let deployment = Deployment::start(&[Target::Dunlin, Target::Dunlin], &[])?;
    let (primary, replica) = (&deployment.servers[0], &deployment.servers[1]);
    stop(replica.pid())?;
    let mut client = primary.connect()?;
    ensure!(said(&mut client, "SET k v")? == "OK");
    for setting in ["durability-timeout 1000000", "repl-timeout 100000"] {
        ensure!(said(&mut client, &format!("CONFIG SET {setting}"))? == "OK");
    }
    let mut durable = primary.connect()?;
    ensure!(said(&mut durable, "CLIENT DURABILITY REPLICAS 1")? == "OK");
    durable.send(&["SET", "k", "durable"])?;
    wait_until("it is held", || is(primary, "durability_waiting_clients", "1"))?;
    let forced = format!("FAILOVER TO 127.0.0.1 {} FORCE TIMEOUT 300", replica.port());
    ensure!(said(&mut client, &forced)? == "OK");
    let mut writer = primary.connect()?;
    writer.send(&["SET", "suspended", "1"])?;
    wait_until("it asks", || {
        Ok(figure(&mut client, "master_failover_state")? == "failover-in-progress")
    })?;
    ensure!(is(primary, "role", "slave")?);
    ensure!(said(&mut client, "SET k w")?.starts_with("READONLY"));
    let Received::Reply(told) = durable.receive()? else { anyhow::bail!("closed") };
    let told = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
    ensure!(told.ends_with("this server is a replica, whose own writes go nowhere"), "{told}");
    ensure!(!writer.has_input(Duration::from_millis(100))?, "what was suspended waits");
    // It leads again when it is told to, and writes go on.
    ensure!(said(&mut client, "FAILOVER ABORT")? == "OK");
    ensure!(is(primary, "role", "master")?);
    ensure!(writer.receive()? == Received::Reply(Reply::Status(b"OK".to_vec())));
    ensure!(said(&mut client, "SET k w")? == "OK");
    resume(replica.pid())?;
    wait_until("the replica comes back", || {
        Ok(is(primary, "connected_slaves", "1")? || is(replica, "role", "master")?)
    })?;
    follow(replica, primary.port())?;
    wait_until_alike(primary, replica)?;
    stop(replica.pid())?;
    ensure!(said(&mut client, "SET lacking 1")? == "OK");
    ensure!(said(&mut client, &forced)? == "OK");
    writer.send(&["SET", "suspended", "2"])?;
    wait_until("it asks", || {
        Ok(figure(&mut client, "master_failover_state")? == "failover-in-progress")
    })?;
    resume(replica.pid())?;
    wait_until("the replica leads", || is(replica, "role", "master"))?;
    let refused = writer.receive()?;
    ensure!(matches!(&refused, Received::Reply(Reply::Error(_))), "{refused:?}");
    deployment.wait_until_follows(0, replica.port())?;
    ensure!(is(primary, "master_failover_state", "no-failover")?);
    Ok(())
}

#[test]
fn a_target_that_does_not_want_to_lead_ends_it() -> Result<()> {
    let deployment = Deployment::start(&[Target::Dunlin, Target::Reference], &[])?;
    let (primary, replica) = (&deployment.servers[0], &deployment.servers[1]);
    stop(replica.pid())?;
    let mut client = primary.connect()?;
    // It has promoted itself meanwhile: it is a primary, and says so.
    let port = replica.port();
    let mut other = replica.connect()?;
    other.send(&["REPLICAOF", "NO", "ONE"])?;
    let forced = format!("FAILOVER TO 127.0.0.1 {port} FORCE TIMEOUT 200");
    ensure!(said(&mut client, &forced)? == "OK");
    wait_until("it asks", || {
        Ok(figure(&mut client, "master_failover_state")? == "failover-in-progress")
    })?;
    resume(replica.pid())?;
    wait_until("it is over", || is(primary, "master_failover_state", "no-failover"))?;
    ensure!(is(primary, "role", "master")?, "{}", primary.log_tail());
    ensure!(primary.log().contains("Failover target rejected psync request"));
    ensure!(said(&mut client, "SET k v")? == "OK");
    Ok(())
}

/// A primary and its replica, which the primary knows by a port that leads there through a proxy.
fn through_a_proxy() -> Result<(Server, Server, Proxy)> {
    let options = [("repl-diskless-sync-delay", "0")];
    let (primary, replica) =
        (Server::start(Target::Dunlin, &options)?, Server::start(Target::Dunlin, &options)?);
    let proxy = Proxy::start(replica.port())?;
    let port = proxy.port().to_string();
    ensure!(
        !replica.connect()?.call(&["CONFIG", "SET", "replica-announce-port", &port])?.is_error()
    );
    follow(&replica, primary.port())?;
    catch_up(&primary, &replica)?;
    ensure!(said(&mut primary.connect()?, "SET k 1")? == "OK");
    Ok((primary, replica, proxy))
}

/// Refuses clients beyond those that are connected already, or lets them come again.
fn refuse_clients(control: &mut Client, refuses: bool) -> Result<()> {
    let most = if refuses { figure(control, "connected_clients")? } else { "1000".to_owned() };
    ensure!(!control.call(&["CONFIG", "SET", "maxclients", &most])?.is_error());
    Ok(())
}

/// The other one leads by then: a server that led again would be the second primary.
#[test]
fn an_answer_that_is_lost_makes_no_second_primary() -> Result<()> {
    for refuses in [false, true] {
        let (primary, replica, proxy) = through_a_proxy()?;
        let (mut client, mut control) = (primary.connect()?, replica.connect()?);
        proxy.lose_answer_to(b"FAILOVER");
        ensure!(said(&mut client, "FAILOVER")? == "OK");
        wait_until("the other one leads", || Ok(figure(&mut control, "role")? == "master"))?;
        if refuses {
            // What says nothing of the request is no answer to it.
            refuse_clients(&mut control, true)?;
            wait_until("the old one is refused", || {
                Ok(figure(&mut control, "rejected_connections")? != "0")
            })?;
            ensure!(is(&primary, "role", "slave")?, "{}", primary.log());
            refuse_clients(&mut control, false)?;
        }
        wait_until("the old one follows", || is(&primary, "master_link_status", "up"))
            .with_context(|| primary.log())?;
        ensure!(is(&primary, "master_failover_state", "no-failover")?, "{}", primary.log());
        ensure!(said(&mut client, "SET k 2")?.starts_with("READONLY"), "two servers take writes");
        ensure!(said(&mut control, "SET k 3")? == "OK");
    }
    Ok(())
}

/// A replica that its supervisor has started again may have an older copy.
#[test]
fn a_target_that_comes_back_with_older_data_does_not_lead() -> Result<()> {
    let (primary, mut replica, proxy) = through_a_proxy()?;
    let mut client = primary.connect()?;
    wait_until("it has the first write", || Ok(said(&mut replica.connect()?, "GET k")? == "1"))?;
    ensure!(said(&mut replica.connect()?, "SAVE")? == "OK");
    ensure!(said(&mut client, "SET k 2")? == "OK");
    ensure!(client.call_text("WAIT 1 0")? == Reply::Integer(1));
    let (own, announced) = (primary.port(), proxy.port().to_string());
    let address = format!("127.0.0.1 {own}");
    replica.set_options(&[
        ("repl-diskless-sync-delay", "0"),
        ("replica-announce-port", &announced),
        ("replicaof", &address),
    ]);
    proxy.refuse(true);
    ensure!(said(&mut client, "FAILOVER")? == "OK");
    wait_until("it asks", || is(&primary, "master_failover_state", "failover-in-progress"))?;
    replica.kill();
    replica.start_again()?;
    ensure!(said(&mut replica.connect()?, "GET k")? == "1", "the older copy");
    proxy.refuse(false);
    wait_until("it is over", || is(&primary, "master_failover_state", "no-failover"))
        .with_context(|| primary.log())?;
    ensure!(is(&primary, "role", "master")? && said(&mut client, "GET k")? == "2");
    wait_until("it follows", || Ok(said(&mut replica.connect()?, "GET k")? == "2"))
        .with_context(|| replica.log())
}

/// That it has other data does not show that it has not led.
#[test]
fn a_target_that_has_led_and_was_restarted_keeps_its_writes() -> Result<()> {
    let primary = Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0")])?;
    let proxy = Proxy::start(0)?;
    let (announced, address) = (proxy.port().to_string(), format!("127.0.0.1 {}", primary.port()));
    let mut replica = Server::start(
        Target::Dunlin,
        &[
            ("replica-announce-port", &*announced),
            ("replicaof", &*address),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
        ],
    )?;
    proxy.lead_to(replica.port());
    catch_up(&primary, &replica)?;
    let mut client = primary.connect()?;
    ensure!(said(&mut client, "SET k 1")? == "OK");
    proxy.lose_answer_to(b"FAILOVER");
    ensure!(said(&mut client, "FAILOVER")? == "OK");
    wait_until("the other one leads", || is(&replica, "role", "master"))?;
    proxy.refuse(true);
    ensure!(said(&mut replica.connect()?, "SET acknowledged 1")? == "OK");
    replica.kill();
    replica.start_again()?;
    ensure!(is(&replica, "role", "slave")?, "as its settings say");
    proxy.refuse(false);
    wait_until("the log says what it finds", || {
        let log = primary.log();
        Ok(log.contains("it is a replica with other data") || is(&primary, "role", "master")?)
    })
    .with_context(|| primary.log())?;
    ensure!(is(&primary, "master_failover_state", "failover-in-progress")?, "{}", primary.log());
    ensure!(said(&mut replica.connect()?, "GET acknowledged")? == "1");
    ensure!(said(&mut client, "FAILOVER ABORT")? == "OK");
    ensure!(is(&primary, "role", "master")?);
    Ok(())
}

/// Another primary may be found at the address: this server takes none of its data.
#[test]
fn a_stranger_is_not_followed_in_place_of_the_one_that_was_to_lead() -> Result<()> {
    let stranger = start(Target::Dunlin, &[])?;
    ensure!(said(&mut stranger.connect()?, "SET stranger 1")? == "OK");
    // The request was never sent.
    let (primary, replica, proxy) = through_a_proxy()?;
    let mut client = primary.connect()?;
    proxy.lose_answer_to(b"PING");
    ensure!(said(&mut client, "FAILOVER")? == "OK");
    wait_until("it was lost", || Ok(!proxy.will_lose_an_answer()))?;
    proxy.lead_to(stranger.port());
    wait_until("it leads again", || is(&primary, "role", "master"))
        .with_context(|| primary.log())?;
    ensure!(said(&mut client, "SET k 2")? == "OK");
    ensure!(is(&replica, "role", "slave")?);
    // It was sent.
    let (primary, replica, proxy) = through_a_proxy()?;
    let mut client = primary.connect()?;
    proxy.lose_answer_to(b"FAILOVER");
    ensure!(said(&mut client, "FAILOVER")? == "OK");
    wait_until("the other one leads", || is(&replica, "role", "master"))?;
    proxy.lead_to(stranger.port());
    wait_until("it sees that this is another one", || {
        Ok(primary.log().contains("this server cannot go on in its stream"))
    })
    .with_context(|| primary.log())?;
    ensure!(said(&mut client, "GET k")? == "1" && said(&mut client, "GET stranger")?.is_empty());
    ensure!(is(&primary, "master_failover_state", "failover-in-progress")?);
    proxy.lead_to(replica.port());
    wait_until("the old one follows", || is(&primary, "master_link_status", "up"))
        .with_context(|| primary.log())?;
    ensure!(is(&primary, "master_failover_state", "no-failover")?);
    Ok(())
}

/// Its last answer may be of a time before it was stopped.
#[test]
fn a_replica_that_stands_still_does_not_take_over() -> Result<()> {
    let deployment = Deployment::start(&[Target::Dunlin, Target::Dunlin, Target::Dunlin], &[])?;
    let [primary, still, other] = &deployment.servers[..] else { unreachable!("three") };
    let mut client = primary.connect()?;
    wait_until("both have everything", || {
        let of = |own: &Server| format!("port={},state=online", own.port());
        let info = said(&mut client, "INFO replication")?;
        Ok(info.contains(&of(still)) && info.contains(&of(other)))
    })?;
    stop(still.pid())?;
    ensure!(said(&mut client, "FAILOVER TIMEOUT 20000")? == "OK");
    let led = wait_until("the other one leads", || is(other, "role", "master"));
    resume(still.pid())?;
    led.with_context(|| primary.log())?;
    deployment.wait_until_follows(0, other.port())
}

/// It goes on in the stream of the other one, however late that one hears what is in its own.
#[test]
fn the_old_primary_needs_no_copy() -> Result<()> {
    let options = [("repl-diskless-sync-delay", "0")];
    let (primary, replica) =
        (Server::start(Target::Dunlin, &options)?, Server::start(Target::Dunlin, &options)?);
    let proxy = Proxy::start(primary.port())?;
    follow(&replica, proxy.port())?;
    catch_up(&primary, &replica)?;
    proxy.split(16 * 1024, Duration::from_millis(200));
    ensure!(said(&mut primary.connect()?, "FAILOVER")? == "OK");
    wait_until("the old one follows", || is(&primary, "master_link_status", "up"))
        .with_context(|| primary.log())?;
    ensure!(
        is(&replica, "role", "master")? && is(&replica, "sync_full", "0")?,
        "{}",
        replica.log()
    );
    Ok(())
}

/// Something listens at its address, and says nothing.
#[test]
fn a_target_that_was_not_asked_in_time_leads_no_more() -> Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let port = silent.local_addr()?.port().to_string();
    let primary = start(Target::Dunlin, &[])?;
    let replica = start(Target::Dunlin, &[("replica-announce-port", &port)])?;
    follow(&replica, primary.port())?;
    catch_up(&primary, &replica)?;
    let mut client = primary.connect()?;
    ensure!(said(&mut client, &format!("FAILOVER TO 127.0.0.1 {port} TIMEOUT 1500"))? == "OK");
    wait_until("it asks", || is(&primary, "master_failover_state", "failover-in-progress"))?;
    wait_until("it is given up", || is(&primary, "master_failover_state", "no-failover"))
        .with_context(|| primary.log())?;
    ensure!(is(&primary, "role", "master")? && said(&mut client, "SET k v")? == "OK");
    Ok(())
}

#[test]
fn a_target_is_named_by_where_it_listens() -> Result<()> {
    let primary = start(Target::Dunlin, &[])?;
    let replica = start(Target::Dunlin, &[("replica-announce-ip", "localhost")])?;
    follow(&replica, primary.port())?;
    catch_up(&primary, &replica)?;
    let mut client = primary.connect()?;
    // Such as a backup: it does not listen.
    let mut silent = primary.connect()?;
    silent.send(&["PSYNC", "?", "-1"])?;
    wait_until("it is there", || Ok(figure(&mut client, "connected_slaves")? == "2"))?;
    let unknown = "ERR FAILOVER target HOST and PORT is not a replica.";
    for command in ["FAILOVER TO 127.0.0.1 0", "FAILOVER TO 127.0.0.1 0 FORCE TIMEOUT 100"] {
        ensure!(said(&mut client, command)? == unknown, "{command}");
    }
    ensure!(said(&mut client, &format!("FAILOVER TO LOCALHOST {}", replica.port()))? == "OK");
    wait_until("it leads", || is(&replica, "role", "master")).with_context(|| primary.log())?;
    Ok(())
}

/// A server that stops waits for its replicas, and so for the one that is to lead.
#[test]
fn a_server_that_stops_hands_over_first() -> Result<()> {
    let forced = |port: u16| format!("FAILOVER TO 127.0.0.1 {port} FORCE TIMEOUT 100");
    for round in 0..8 {
        let mut deployment = Deployment::start(&[Target::Dunlin, Target::Dunlin], &[])?;
        let [primary, replica] = &mut deployment.servers[..] else { unreachable!("two") };
        stop(replica.pid())?;
        let mut client = primary.connect()?;
        ensure!(said(&mut client, "SET k v")? == "OK");
        let is_forced = round % 4 == 3;
        let command = if is_forced { forced(replica.port()) } else { "FAILOVER".to_owned() };
        ensure!(said(&mut client, &command)? == "OK");
        let state = if is_forced { "failover-in-progress" } else { "waiting-for-sync" };
        wait_until(state, || Ok(figure(&mut client, "master_failover_state")? == state))?;
        match round % 2 {
            0 => client.send(&["SHUTDOWN"])?,
            _ => ask_to_end(primary.pid())?,
        }
        wait_until("it waits", || Ok(primary.log().contains("Waiting for replicas")))?;
        resume(replica.pid())?;
        wait_until("it has stopped", || Ok(!primary.is_running()))
            .with_context(|| format!("round {round}\n{}", primary.log_tail()))?;
        ensure!(is(replica, "role", "master")?, "round {round}\n{}", primary.log_tail());
        let value = said(&mut replica.connect()?, "GET k")?;
        let logs = || format!("{}\n----\n{}", primary.log_tail(), replica.log_tail());
        ensure!(value == "v", "round {round}: {value:?}\n{}", logs());
    }
    Ok(())
}

#[test]
fn a_server_that_stops_now_hands_over_to_nobody() -> Result<()> {
    let mut deployment = Deployment::start(&[Target::Dunlin, Target::Dunlin], &[])?;
    let [primary, replica] = &mut deployment.servers[..] else { unreachable!("two") };
    stop(replica.pid())?;
    let mut client = primary.connect()?;
    ensure!(said(&mut client, "SET k v")? == "OK");
    ensure!(said(&mut client, "FAILOVER")? == "OK");
    client.send(&["SHUTDOWN", "NOW"])?;
    wait_until("it has stopped", || Ok(!primary.is_running()))?;
    resume(replica.pid())?;
    ensure!(is(replica, "role", "slave")?);
    ensure!(primary.log().contains("Lagging replica"), "{}", primary.log_tail());
    Ok(())
}
