//! Many failovers in turn: how long nobody takes writes, and whether a write is lost that was
//! acknowledged at quorum.

use anyhow::{Context, Result};
use tests::cluster::Deployment;

use crate::writer::Writer;

#[test]
#[ignore = "takes minutes: make cluster-failovers"]
fn no_write_at_quorum_is_lost_in_many_failovers() -> Result<()> {
    let count = std::env::var("DUNLIN_FAILOVERS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(50);
    let mut deployment = Deployment::start(3, &[("cluster-node-timeout", "5000")])?;
    let mut times = Vec::new();
    for round in 0..count {
        let old = deployment.wait_until_whole()?;
        let writer = Writer::start(deployment.ports());
        writer.wait_for_more(100)?;
        deployment.nodes[old].kill();
        let time = writer.wait_for_more(20).with_context(|| deployment.logs())?;
        times.push(time.as_millis());
        deployment.nodes[old].start_again()?;
        deployment.wait_until_whole()?;
        writer.stop().check(&deployment, 120).with_context(|| format!("round {round}"))?;
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!("{count} failovers, median {median} ms, longest {longest} ms, none lost");
    Ok(())
}
