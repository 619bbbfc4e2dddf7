//! Nodes of a cluster that serve the tree.

use std::ops::Range;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::cluster::{ALL_SLOTS, Deployment, OTHER_SHARD, SHARD};
use tests::observe::wait_until;
use tests::web::{Answer, Web};

/// The slot of the tree.
pub(crate) const SLOT: &str = "4868";
/// The members of the shard that has the tree at first.
pub(crate) const FIRST: Range<usize> = 0..3;

/// See the module's text.
pub(crate) struct Nodes {
    pub(crate) deployment: Deployment,
    /// The ports of HTTP.
    pub(crate) ports: Vec<u16>,
}

impl Nodes {
    /// Starts three nodes with all slots, and so many that form another shard.
    pub(crate) fn start(others: usize, options: &[(&str, &str)]) -> Result<Nodes> {
        let mut deployment = Deployment::empty()?;
        let ports = deployment.start_nodes_with_http(FIRST.end + others, options)?;
        deployment.form_shard(SHARD, ALL_SLOTS, FIRST)?;
        deployment.wait_for_leader(FIRST)?;
        let nodes = Nodes { deployment, ports };
        if others > 0 {
            nodes.deployment.form_shard(OTHER_SHARD, "", nodes.others())?;
            nodes.deployment.wait_for_leader(nodes.others())?;
        }
        for port in nodes.ports.clone() {
            let mut web = Web::connect(port)?;
            wait_until("the node knows who has the tree", || {
                Ok(matches!(web.ask("GET /v2/keys", &[], b"")?.status, 200 | 307))
            })
            .with_context(|| nodes.deployment.logs())?;
        }
        Ok(nodes)
    }

    pub(crate) fn others(&self) -> Range<usize> {
        FIRST.end..self.ports.len()
    }

    /// Moves the tree to the other shard, or back.
    pub(crate) fn move_tree(&self, name: &str, back: bool) -> Result<()> {
        let (from, to) = if back { (OTHER_SHARD, SHARD) } else { (SHARD, OTHER_SHARD) };
        self.deployment.move_slots(name, SLOT, from, to)?;
        self.deployment.wait_for_move(name).with_context(|| self.deployment.logs())
    }

    /// The node that leads some of them.
    pub(crate) fn leader(&self, nodes: Range<usize>) -> Result<usize> {
        self.deployment.wait_for_leader(nodes)
    }
}

/// Sends a request such as `PUT /a value=1` for the tree to a port, and follows where it is sent.
/// When nobody is there, the first one is asked again: it may not know yet that another is gone.
pub(crate) fn ask(first: u16, line: &str) -> Result<Answer> {
    let mut port = first;
    loop {
        let Ok(mut web) = Web::connect(port) else {
            ensure!(port != first, "nobody is at the port {port}");
            sleep(Duration::from_millis(20));
            port = first;
            continue;
        };
        begin(&mut web, line)?;
        let mut answer = web.answer(false)?;
        if answer.status == 307 {
            port = place(&answer)?;
            continue;
        }
        while answer.header("transfer-encoding").is_some()
            && let Some(chunk) = web.chunk()?
        {
            answer.body.extend(chunk);
        }
        return Ok(answer);
    }
}

/// Sends such a request, and reads nothing.
pub(crate) fn begin(web: &mut Web, line: &str) -> Result<()> {
    let mut words = line.splitn(3, ' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let form = ["Content-Type: application/x-www-form-urlencoded"];
    let fields = words.next().unwrap_or_default().as_bytes();
    web.request(&format!("{method} /v2/keys{path}"), &form, fields)
}

/// The port to which an answer sends the client.
pub(crate) fn place(answer: &Answer) -> Result<u16> {
    let location = answer.header("location").context("a place")?;
    let rest = location.rsplit(':').next().unwrap_or_default();
    Ok(rest.split('/').next().unwrap_or_default().parse()?)
}

/// The index of the tree that an answer tells.
pub(crate) fn index(answer: &Answer) -> Result<u64> {
    Ok(answer.header("x-etcd-index").context("an index")?.parse()?)
}
