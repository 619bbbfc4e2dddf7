//! Another etcd than the one that has the cluster: one among the members that are named.

use anyhow::{Context, Result, ensure};
use tests::cluster::{Deployment, NODE_TIMEOUT};
use tests::etcd_members::EtcdMembers;

#[test]
fn a_member_that_is_an_empty_etcd_of_its_own_keeps_no_node_out() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    let replica = 1 - deployment.wait_until_whole()?;
    let wrong = EtcdMembers::start(1)?;
    let places = format!("{},{}", wrong.url(0), deployment.etcd.url(0));
    let timeout = NODE_TIMEOUT.to_string();
    let node = &mut deployment.nodes[replica];
    node.set_options(&[
        ("cluster-enabled", "yes"),
        ("cluster-etcd", &*places),
        ("cluster-node-timeout", &*timeout),
        ("cluster-durability", "quorum"),
        ("repl-diskless-sync-delay", "0"),
    ]);
    node.terminate()?;
    node.start_again()?;
    deployment.wait_until_whole().with_context(|| deployment.logs())?;
    ensure!(deployment.nodes[replica].log().contains("etcd has the cluster again"));
    ensure!(wrong.control(&["get", "--prefix", "--keys-only", "/dunlin/"])?.is_empty());
    Ok(())
}
