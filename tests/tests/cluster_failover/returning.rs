//! Nodes that come back.

use anyhow::{Context, Result};

use crate::deployment::{Deployment, Writer};

#[test]
fn a_shard_that_was_killed_as_a_whole_comes_back_with_its_data() -> Result<()> {
    let mut deployment = Deployment::start(2, &[("appendonly", "yes")])?;
    let writer = Writer::start(deployment.ports());
    writer.wait_for_more(100)?;
    let written = writer.stop();
    for node in &mut deployment.nodes {
        node.kill();
    }
    deployment.etcd.kill()?;
    deployment.etcd.start_again()?;
    for node in &mut deployment.nodes {
        node.start_again()?;
    }
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    written.check(&deployment, 100)
}
