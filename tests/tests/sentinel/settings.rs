//! What settings tell Sentinels: passwords, and which replica may take over.

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::{figure, number, wait_until};
use tests::replication::follow;
use tests::sentinel::Sentinels;
use tests::server::{Server, Target};

use crate::deployment::{DOWN_AFTER_MS, Deployment, start, wait_until_alike, watch};

/// A connection that has shown the password.
fn enter(server: &Server) -> Result<Client> {
    let mut client = server.connect()?;
    let reply = client.call_text("AUTH secret")?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    Ok(client)
}

#[test]
fn servers_with_passwords_take_over_from_each_other() -> Result<()> {
    for targets in [[Target::Dunlin; 3], [Target::Dunlin, Target::Reference, Target::Reference]] {
        let options = [("requirepass", "secret"), ("masterauth", "secret")];
        let mut servers = Vec::new();
        for target in targets {
            servers.push(start(target, &options)?);
        }
        let old = servers[0].port();
        for server in &servers[1..] {
            let reply = enter(server)?.call(&["REPLICAOF", "127.0.0.1", &old.to_string()])?;
            ensure!(!reply.is_error(), "{reply:?}");
        }
        let follows = |server: &Server, port: u16| -> Result<bool> {
            let mut client = enter(server)?;
            let of = figure(&mut client, "master_port").unwrap_or_default();
            Ok(of == port.to_string() && figure(&mut client, "master_link_status")? == "up")
        };
        for server in &servers[1..] {
            wait_until("it follows", || follows(server, old))?;
        }
        let program = tests::peers::program("redis-sentinel");
        let sentinels = Sentinels::start(&program, old, DOWN_AFTER_MS)?;
        sentinels.set("auth-pass", "secret")?;
        sentinels.hurry()?;
        sentinels.wait_until_ready(2)?;
        ensure!(enter(&servers[0])?.call_text("SET k v")? == Reply::Status(b"OK".to_vec()));
        let written = number(&mut enter(&servers[0])?, "master_repl_offset")?;
        for server in &servers[1..] {
            let mut client = enter(server)?;
            wait_until("it has all", || Ok(number(&mut client, "slave_repl_offset")? >= written))?;
        }
        servers[0].kill();
        let new = sentinels.wait_for_another(old)?;
        servers[0].start_again()?;
        for server in &servers {
            if server.port() != new {
                let came = wait_until("it follows the new one", || follows(server, new));
                came.with_context(|| format!("{}\n{}", server.log_tail(), sentinels.log()))?;
            }
            ensure!(enter(server)?.call_text("GET k")? == Reply::Bulk(b"v".to_vec()));
        }
    }
    Ok(())
}

#[test]
fn the_replica_with_the_lowest_priority_takes_over() -> Result<()> {
    let mut deployment = Deployment::start(&[Target::Dunlin; 4], &[])?;
    for (server, priority) in deployment.servers[1..].iter().zip(["50", "10", "0"]) {
        let reply = server.connect()?.call(&["CONFIG", "SET", "replica-priority", priority])?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    }
    let sentinels = watch("redis-sentinel", &deployment)?;
    let old = deployment.servers[0].port();
    sentinels.wait_until_known("slave-priority", &["50", "10", "0"])?;
    deployment.servers[0].kill();
    let new = sentinels.wait_for_another(old)?;
    ensure!(new == deployment.servers[2].port(), "{}", sentinels.log());
    for follower in [1, 3] {
        deployment.wait_until_follows(follower, new)?;
    }
    Ok(())
}

#[test]
fn a_replica_with_priority_0_never_takes_over() -> Result<()> {
    let mut primary = start(Target::Dunlin, &[])?;
    let replica = start(Target::Dunlin, &[("replica-priority", "0")])?;
    follow(&replica, primary.port())?;
    wait_until_alike(&primary, &replica)?;
    let program = tests::peers::program("redis-sentinel");
    let sentinels = Sentinels::start(&program, primary.port(), DOWN_AFTER_MS)?;
    sentinels.hurry()?;
    sentinels.wait_until_ready(1)?;
    primary.kill();
    let gave_up = wait_until("no replica is good enough", || {
        Ok(sentinels.log().contains("-failover-abort-no-good-slave"))
    });
    gave_up.with_context(|| sentinels.log())?;
    ensure!(figure(&mut replica.connect()?, "role")? == "slave");
    Ok(())
}
