//! Three nodes in two shards, with an etcd of their own; and three redis-servers that are set up
//! alike.
//!
//! | slots | Dunlin, and Redis |
//! |---|---|
//! | 0 to 8000 | the first node, with the third as its replica |
//! | 8001 to 16000 | the second |
//! | the others | nobody |

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::cluster::Deployment;
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::server::{Server, Target, free_port};

/// The slots of each shard, and its nodes.
const SHARDS: [(&str, &[usize]); 2] = [("0-8000", &[0, 2]), ("8001-16000", &[1])];

/// See the module's text.
pub(crate) struct Nodes {
    pub(crate) all: Vec<Server>,
    /// It ends with them.
    _etcd: Option<EtcdMembers>,
}

impl Nodes {
    /// Starts nodes of Dunlin.
    pub(crate) fn start(options: &[(&str, &str)]) -> Result<Nodes> {
        let mut deployment = Deployment::empty()?;
        let address = deployment.etcd.url(0);
        let mut usual = vec![
            ("cluster-enabled", "yes"),
            ("cluster-etcd", &*address),
            ("cluster-require-full-coverage", "no"),
            ("repl-diskless-sync-delay", "0"),
        ];
        usual.extend(options);
        for _ in 0..3 {
            deployment.nodes.push(Server::start_with_http(&usual)?.0);
        }
        form_shards(&deployment)?;
        let nodes = Nodes { all: deployment.nodes, _etcd: Some(deployment.etcd) };
        nodes.wait_until_served()?;
        Ok(nodes)
    }

    /// Starts nodes of the reference.
    pub(crate) fn start_reference() -> Result<Nodes> {
        let mut all = Vec::new();
        for _ in 0..3 {
            let bus = free_port()?.to_string();
            let options = [
                ("cluster-enabled", "yes"),
                ("cluster-port", &*bus),
                ("cluster-require-full-coverage", "no"),
                ("repl-diskless-sync-delay", "0"),
            ];
            all.push((Server::start(Target::Reference, &options)?, bus));
        }
        let call = |index: usize, line: &str| -> Result<Reply> {
            let reply: Reply = all[index].0.connect()?.call_text(line)?;
            ensure!(!reply.is_error(), "{line}: {reply:?}");
            Ok(reply)
        };
        call(0, "CLUSTER ADDSLOTSRANGE 0 8000")?;
        call(1, "CLUSTER ADDSLOTSRANGE 8001 16000")?;
        for (server, bus) in &all[1..] {
            call(0, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", server.port()))?;
        }
        let id = text(&call(0, "CLUSTER MYID")?)?;
        wait_until("the nodes know each other", || {
            Ok(text(&call(2, "CLUSTER INFO")?)?.contains("cluster_known_nodes:3"))
        })?;
        wait_until("the primary is known", || {
            Ok(call(2, &format!("CLUSTER REPLICATE {id}")).is_ok())
        })?;
        let nodes = Nodes { all: all.into_iter().map(|own| own.0).collect(), _etcd: None };
        nodes.wait_until_served()?;
        Ok(nodes)
    }

    /// Waits until all nodes know who has which slots, and the replica follows.
    fn wait_until_served(&self) -> Result<()> {
        let logs = || self.all.iter().map(Server::log_tail).collect::<Vec<_>>().join("\n----\n");
        for (index, (expected, key)) in
            [("OK", "k2"), ("OK", "k0"), ("MOVED", "k2")].iter().enumerate()
        {
            wait_until("the node serves its slots", || {
                let reply = self.all[index].connect()?.call(&["SET", key, "v"])?;
                let other = self.all[index].connect()?.call_text("GET k0")?;
                let knows = index == 1 || format!("{other:?}").contains("MOVED") || {
                    matches!(&other, Reply::Error(line) if line.starts_with(b"MOVED"))
                };
                Ok(knows
                    && match reply {
                        Reply::Status(_) => *expected == "OK",
                        Reply::Error(line) => line.starts_with(expected.as_bytes()),
                        _ => false,
                    })
            })
            .with_context(logs)?;
        }
        let mut replica = self.all[2].connect()?;
        replica.call_text("READONLY")?;
        wait_until("the replica has the data", || {
            Ok(replica.call_text("GET k2")? == Reply::Bulk(b"v".to_vec()))
        })
        .with_context(logs)
    }

    /// A line with the ports of these nodes as their numbers.
    pub(crate) fn without_ports(&self, line: &[u8]) -> String {
        let mut line = String::from_utf8_lossy(line).into_owned();
        for (index, server) in self.all.iter().enumerate() {
            line = line.replace(&format!("127.0.0.1:{}", server.port()), &format!("node {index}"));
        }
        line
    }
}

/// Makes the first node of each shard its primary, and gives it its replicas then.
fn form_shards(deployment: &Deployment) -> Result<()> {
    for (number, (slots, members)) in SHARDS.iter().enumerate() {
        let (shard, first) = (format!("{number:040}"), members[0]);
        deployment.form_shard(&shard, slots, first..first + 1)?;
        let node = &deployment.nodes[first];
        let key = if number == 0 { "k2" } else { "k0" };
        wait_until("it is the primary", || {
            Ok(node.connect()?.call(&["SET", key, "v"])? == Reply::Status(b"OK".to_vec()))
        })
        .with_context(|| node.log_tail())?;
        for member in &members[1..] {
            deployment.join(*member, &shard)?;
        }
    }
    Ok(())
}

/// A reply that is text.
pub(crate) fn text(reply: &Reply) -> Result<String> {
    let bytes = reply.text().with_context(|| format!("{reply:?}"))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}
