//! Many failovers in turn, of this server and of redis-server, under the same kind of Sentinels:
//! how long nobody takes writes, and whether a write is lost that a replica had acknowledged.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::server::Target;

use crate::deployment::{Deployment, Writer, lost, watch};

/// Sentinel begins no other failover of a primary for twice its failover-timeout.
const REST: Duration = Duration::from_millis(10_500);

/// Lets primaries be killed so many times. Returns how long writes were missing each time.
fn kills(target: Target, count: usize) -> Result<Vec<Duration>> {
    let mut deployment = Deployment::start(&[target; 3], &[])?;
    let sentinels = watch("redis-sentinel", &deployment)?;
    let mut leader = deployment.servers[0].port();
    let mut times = Vec::new();
    for round in 0..count {
        let writer = Writer::start(&sentinels);
        std::thread::sleep(Duration::from_millis(300));
        let index = deployment.servers.iter().position(|own| own.port() == leader);
        let index = index.context("a server leads")?;
        let begin = Instant::now();
        deployment.servers[index].kill();
        let new = sentinels.wait_for_another(leader)?;
        wait_until("it takes writes", || {
            let reply = Client::connect(new)?.call_text("SET taken 1")?;
            Ok(reply == Reply::Status(b"OK".to_vec()))
        })?;
        times.push(begin.elapsed());
        deployment.servers[index].start_again()?;
        for server in 0..deployment.servers.len() {
            if deployment.servers[server].port() != new {
                deployment.wait_until_follows(server, new)?;
            }
        }
        let written = writer.stop();
        let lost = lost(deployment.at(new)?, &written)?;
        ensure!(lost.is_empty(), "{target:?}, round {round}: {lost:?} are lost");
        ensure!(!written.acknowledged.is_empty(), "{target:?}, round {round}: nothing was written");
        leader = new;
        sentinels.wait_until_ready(2)?;
        std::thread::sleep(REST.saturating_sub(begin.elapsed()));
    }
    Ok(times)
}

#[test]
#[ignore = "takes minutes: make failovers"]
fn no_acknowledged_write_is_lost_in_many_failovers() -> Result<()> {
    let count = std::env::var("DUNLIN_FAILOVERS").ok().and_then(|count| count.parse().ok());
    let count = count.unwrap_or(20);
    let (own, other) = std::thread::scope(|scope| {
        // Both at the same time, so that they find the machine alike.
        let other = scope.spawn(|| kills(Target::Reference, count));
        (kills(Target::Dunlin, count), other.join().expect("no panic"))
    });
    for (name, times) in [("dunlin", own?), ("redis-server", other?)] {
        let mut times: Vec<_> = times.iter().map(Duration::as_millis).collect();
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        eprintln!("{name}: {count} failovers, median {median} ms, longest {longest} ms, none lost");
    }
    Ok(())
}
