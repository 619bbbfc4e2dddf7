//! What a node keeps in its file, and its place in the cluster.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::deployment::Deployment;

#[test]
fn a_refused_shutdown_leaves_a_node_in_its_place() -> Result<()> {
    let deployment = Deployment::start(1, &[])?;
    let node = &deployment.nodes[0];
    fs::create_dir(node.directory().join("dump.rdb"))?;
    let reply = node.connect()?.call_text("SHUTDOWN SAVE")?;
    ensure!(reply.is_error(), "{reply:?}");
    deployment.wait_for_primary().with_context(|| node.log_tail())?;
    Ok(())
}
