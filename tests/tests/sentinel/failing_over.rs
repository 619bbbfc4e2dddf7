//! Real Sentinels fail over: a primary is killed, is stopped, or cannot be reached.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::certificates::Encryption;
use tests::observe::{figure, wait_until};
use tests::proxy::Proxy;
use tests::replication::follow;
use tests::sentinel::Sentinels;
use tests::server::{Server, Target};

use crate::deployment::{
    DOWN_AFTER_MS, Deployment, Writer, lost, start, wait_until_alike, watch_by,
};

const DUNLINS: [Target; 3] = [Target::Dunlin; 3];

fn signal(server: &Server, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(server.pid())?).context("a process id")?;
    Ok(kill_process(pid, signal)?)
}

/// How a primary fails, and comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    Killed,
    Stopped,
}

/// A primary fails, another server takes over without a loss, and the old one becomes its replica.
fn fail_over(program: &str, targets: &[Target], failure: Failure) -> Result<()> {
    fail_over_under(&tests::peers::program(program), None, targets, failure)
}

/// The same, where nothing is open but ports of TLS.
fn fail_over_encrypted(program: &str, targets: &[Target], failure: Failure) -> Result<()> {
    let encryption = Encryption::make()?;
    fail_over_under(&tests::peers::program(program), Some(&encryption), targets, failure)
}

fn fail_over_under(
    program: &Path,
    encryption: Option<&Encryption>,
    targets: &[Target],
    failure: Failure,
) -> Result<()> {
    let mut deployment = Deployment::start_through(targets, encryption, &[])?;
    let sentinels = watch_by(program, &deployment, encryption)?;
    let old = deployment.servers[0].port();
    let writer = Writer::start(&sentinels);
    let mut client = deployment.servers[1].connect()?;
    wait_until("something is written", || Ok(figure(&mut client, "db0").is_ok()))?;
    match failure {
        Failure::Killed => deployment.servers[0].kill(),
        Failure::Stopped => signal(&deployment.servers[0], Signal::STOP)?,
    }
    let new = sentinels.wait_for_another(old)?;
    let mut client = deployment.at(new)?.connect()?;
    let role = figure(&mut client, "role")?;
    ensure!(role == "master", "it is a {role}");
    // The third follows, and the client goes on.
    let third = 3 - deployment.servers.iter().position(|own| own.port() == new).context("known")?;
    wait_until("the third has the new primary", || {
        let mut client = deployment.servers[third].connect()?;
        Ok(figure(&mut client, "master_port").is_ok_and(|port| port == new.to_string()))
    })?;
    match failure {
        Failure::Killed => deployment.servers[0].start_again()?,
        Failure::Stopped => signal(&deployment.servers[0], Signal::CONT)?,
    }
    let came_back = wait_until("the old one is a replica", || {
        let mut client = deployment.servers[0].connect()?;
        let port = figure(&mut client, "master_port");
        Ok(port.is_ok_and(|port| port == new.to_string()))
    });
    came_back.with_context(|| sentinels.log())?;
    let written = writer.stop();
    for server in [0, third] {
        deployment.wait_until_follows(server, new)?;
    }
    ensure!(!written.acknowledged.is_empty(), "nothing was written");
    for server in &deployment.servers {
        let lost = lost(server, &written)?;
        ensure!(lost.is_empty(), "{} lacks {lost:?}", server.port());
        let log = server.log();
        ensure!(!log.contains("== CRITICAL =="), "{}", server.log_tail());
    }
    Ok(())
}

#[test]
fn after_a_kill_under_redis_sentinel() -> Result<()> {
    fail_over("redis-sentinel", &DUNLINS, Failure::Killed)
}

#[test]
fn after_a_kill_under_valkey_sentinel() -> Result<()> {
    fail_over("valkey-sentinel", &DUNLINS, Failure::Killed)
}

#[test]
fn after_a_stop_under_redis_sentinel() -> Result<()> {
    fail_over("redis-sentinel", &DUNLINS, Failure::Stopped)
}

#[test]
fn over_tls_under_redis_sentinel() -> Result<()> {
    fail_over_encrypted("redis-sentinel", &DUNLINS, Failure::Killed)
}

#[test]
fn over_tls_under_valkey_sentinel() -> Result<()> {
    fail_over_encrypted("valkey-sentinel", &DUNLINS, Failure::Killed)
}

#[test]
fn over_tls_from_dunlin_to_redis_server() -> Result<()> {
    let targets = [Target::Dunlin, Target::Reference, Target::Reference];
    fail_over_encrypted("redis-sentinel", &targets, Failure::Stopped)
}

/// Sentinel of Redis 7.0, where it was fetched.
#[test]
fn under_an_old_sentinel() -> Result<()> {
    let program = tests::peers::oldest("redis-sentinel");
    if !program.exists() {
        return Ok(());
    }
    let mixed = [Target::Dunlin, Target::Reference, Target::Reference];
    fail_over_under(&program, None, &DUNLINS, Failure::Killed)?;
    fail_over_under(&program, None, &DUNLINS, Failure::Stopped)?;
    fail_over_under(&program, None, &mixed, Failure::Killed)
}

#[test]
fn from_dunlin_to_redis_server() -> Result<()> {
    let targets = [Target::Dunlin, Target::Reference, Target::Reference];
    fail_over("redis-sentinel", &targets, Failure::Killed)
}

#[test]
fn from_redis_server_to_dunlin() -> Result<()> {
    let targets = [Target::Reference, Target::Dunlin, Target::Dunlin];
    fail_over("redis-sentinel", &targets, Failure::Killed)
}

#[test]
fn after_a_link_is_cut() -> Result<()> {
    // Everybody reaches the primary over a proxy, and knows it by the port of that.
    let primary = start(Target::Dunlin, &[])?;
    let proxy = Proxy::start(primary.port())?;
    let shown = proxy.port().to_string();
    primary.connect()?.call(&["CONFIG", "SET", "replica-announce-port", &shown])?;
    let mut servers = vec![primary];
    for _ in 0..2 {
        let replica = start(Target::Dunlin, &[])?;
        follow(&replica, proxy.port())?;
        wait_until_alike(&servers[0], &replica)?;
        servers.push(replica);
    }
    let deployment = Deployment { servers };
    let program = tests::peers::program("redis-sentinel");
    let sentinels = Sentinels::start(&program, proxy.port(), DOWN_AFTER_MS)?;
    sentinels.hurry()?;
    sentinels.wait_until_ready(2)?;
    let writer = Writer::start(&sentinels);
    let mut client = deployment.servers[1].connect()?;
    wait_until("something is written", || Ok(figure(&mut client, "db0").is_ok()))?;
    proxy.refuse(true);
    proxy.cut();
    let new = sentinels.wait_for_another(proxy.port())?;
    // Until the link is there again, it does not know that it was replaced.
    ensure!(figure(&mut deployment.servers[0].connect()?, "role")? == "master");
    proxy.refuse(false);
    let came_back = wait_until("the old one is a replica", || {
        let mut client = deployment.servers[0].connect()?;
        Ok(figure(&mut client, "master_port").is_ok_and(|port| port == new.to_string()))
    });
    came_back.with_context(|| sentinels.log())?;
    let written = writer.stop();
    deployment.wait_until_follows(0, new)?;
    for server in &deployment.servers {
        let lost = lost(server, &written)?;
        ensure!(lost.is_empty(), "{} lacks {lost:?}", server.port());
    }
    Ok(())
}
