//! A primary is killed, stopped, asked to hand over, or ended.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::cluster::{Deployment, NODE_TIMEOUT};
use tests::observe::wait_until;
use tests::process;

use crate::writer::Writer;

/// Writes are acknowledged at once, and nobody is replaced because the machine is busy.
const MEMORY: [(&str, &str); 2] =
    [("cluster-durability", "memory"), ("cluster-node-timeout", "5000")];

#[test]
fn a_killed_primary_is_replaced_at_once_and_no_write_is_lost() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let old = deployment.wait_until_whole()?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(50)?;
    deployment.nodes[old].kill();
    let time = writer.wait_for_more(50).with_context(|| deployment.logs())?;
    eprintln!("writes again {} ms after kill -9", time.as_millis());
    let new = deployment.wait_for_primary()?;
    ensure!(new != old);
    deployment.nodes[old].start_again()?;
    ensure!(deployment.wait_until_whole()? == new, "{}", deployment.logs());
    writer.stop().check(&deployment, 100)
}

/// What a connection gets at last: a reply, or nothing because it was closed.
fn last_word(client: &mut Client) -> Result<Option<Reply>> {
    match client.receive() {
        Ok(Received::Reply(reply)) => Ok(Some(reply)),
        _ => Ok(None),
    }
}

#[test]
fn a_stopped_primary_is_replaced_and_acknowledges_nothing_when_it_goes_on() -> Result<()> {
    let deployment = Deployment::start(3, &[])?;
    let old = deployment.wait_until_whole()?;
    let port = deployment.nodes[old].port();
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(50)?;
    let mut waiting = Vec::new();
    for number in 0..20 {
        let mut client = Client::connect(port)?;
        let durability = if number % 2 == 0 { "MEMORY" } else { "DEFAULT" };
        ensure!(!client.call(&["CLIENT", "DURABILITY", durability])?.is_error());
        ensure!(!client.call(&["SET", "{w}before", "1"])?.is_error());
        waiting.push(client);
    }
    process::stop(deployment.nodes[old].pid())?;
    for (number, client) in waiting.iter_mut().enumerate() {
        client.send(&["SET", &format!("{{w}}late:{number}"), "1"])?;
        client.send(&["GET", "{w}before"])?;
    }
    let time = writer.wait_for_more(50);
    let resumed = process::resume(deployment.nodes[old].pid());
    let time = time.with_context(|| deployment.logs())?;
    resumed?;
    eprintln!(
        "writes again {} ms after SIGSTOP, of a lease of {NODE_TIMEOUT} ms",
        time.as_millis()
    );
    for client in &mut waiting {
        while let Some(reply) = last_word(client)? {
            ensure!(reply.is_error(), "a stopped primary has answered {reply:?}");
            if client.has_input(Duration::from_millis(200))? {
                continue;
            }
            break;
        }
    }
    let new = deployment.wait_until_whole()?;
    ensure!(new != old);
    writer.stop().check(&deployment, 100)?;
    let mut client = deployment.nodes[new].connect()?;
    for number in 0..20 {
        let late = client.call(&["EXISTS", &format!("{{w}}late:{number}")])?;
        ensure!(late == Reply::Integer(0), "a write that was refused is there");
    }
    Ok(())
}

#[test]
fn a_failover_on_purpose_loses_nothing_at_any_durability() -> Result<()> {
    let deployment = Deployment::start(2, &MEMORY)?;
    for _ in 0..3 {
        let old = deployment.wait_until_whole()?;
        let writer = Writer::start(deployment.ports());
        writer.wait_for_more(50)?;
        let replica = 1 - old;
        let reply = deployment.nodes[replica].connect()?.call_text("CLUSTER FAILOVER")?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}\n{}", deployment.logs());
        wait_until("the replica leads", || Ok(deployment.primary() == Some(replica)))
            .with_context(|| deployment.logs())?;
        writer.wait_for_more(50)?;
        writer.stop().check(&deployment, 100)?;
    }
    Ok(())
}

/// Writes cannot wait before the script ends, which takes longer than the lease.
#[test]
fn a_failover_waits_for_a_script_and_costs_no_lease() -> Result<()> {
    let options = [("cluster-durability", "memory"), ("threads", "2")];
    let deployment = Deployment::start(2, &options)?;
    let old = deployment.wait_until_whole()?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(50)?;
    // All threads of the process take time.
    let script = "local begun = os.clock() while os.clock() - begun < 6 do end return 1";
    let mut busy = deployment.nodes[old].connect()?;
    busy.send(&["EVAL", script, "0"])?;
    std::thread::sleep(Duration::from_millis(200));
    // On a slow machine the script ends too late for it.
    let reply = deployment.nodes[1 - old].connect()?.call_text("CLUSTER FAILOVER")?;
    ensure!(matches!(busy.receive()?, Received::Reply(Reply::Integer(1))), "the script ends");
    deployment.wait_until_whole()?;
    writer.wait_for_more(50)?;
    let log = deployment.nodes[old].log();
    ensure!(!log.contains("The lease at etcd has ended"), "{reply:?}\n{}", deployment.logs());
    let written = writer.stop();
    // It may come just now.
    wait_until("all is there", || Ok(written.check(&deployment, 100).is_ok()))
        .with_context(|| deployment.logs())
}

#[test]
fn a_primary_that_ends_hands_over_first() -> Result<()> {
    let mut deployment = Deployment::start(2, &MEMORY)?;
    let old = deployment.wait_until_whole()?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(50)?;
    let code = deployment.nodes[old].terminate()?;
    ensure!(code == Some(0), "{code:?}\n{}", deployment.logs());
    let time = writer.wait_for_more(20).with_context(|| deployment.logs())?;
    eprintln!("writes again {} ms after a clean stop has ended", time.as_millis());
    ensure!(deployment.wait_for_primary()? != old);
    writer.stop().check(&deployment, 70)
}
