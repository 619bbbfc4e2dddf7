//! etcd is away for a while.

use anyhow::{Context, Result, ensure};
use tests::cluster::{Deployment, NODE_TIMEOUT};
use tests::observe::wait_until;
use tests::process;

use crate::writer::Writer;

#[test]
fn a_primary_goes_on_without_etcd_as_long_as_all_members_promise() -> Result<()> {
    let mut deployment = Deployment::start(3, &[])?;
    let primary = deployment.wait_until_whole()?;
    let replica = (primary + 1) % 3;
    let writer = Writer::start(vec![deployment.nodes[primary].port()]);
    writer.wait_for_more(20)?;
    deployment.etcd.kill(0);
    std::thread::sleep(std::time::Duration::from_millis(2 * NODE_TIMEOUT));
    writer.wait_for_more(50).with_context(|| deployment.logs())?;
    process::stop(deployment.nodes[replica].pid())?;
    let fenced = wait_until("it is fenced", || {
        // A reply that was about to leave in that moment does not: the connection ends.
        let reply = deployment.nodes[primary].connect()?.call_text("SET {w} 1");
        let Ok(reply) = reply else { return Ok(false) };
        Ok(reply.text().is_some_and(|text| text.starts_with(b"CLUSTERDOWN")))
    });
    process::resume(deployment.nodes[replica].pid())?;
    fenced.with_context(|| deployment.logs())?;
    writer.wait_for_more(50).with_context(|| deployment.logs())?;
    deployment.etcd.start_again(&[0])?;
    std::thread::sleep(std::time::Duration::from_millis(NODE_TIMEOUT));
    writer.wait_for_more(50).with_context(|| deployment.logs())?;
    ensure!(deployment.wait_until_whole()? == primary, "{}", deployment.logs());
    writer.stop().check(&deployment, 170)
}
