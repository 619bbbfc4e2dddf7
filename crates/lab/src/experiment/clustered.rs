//! A target that is a cluster: the sections of its nodes and of etcd's members, made of its own.

use toml::Spanned;

use super::error::FileError;
use super::file::{ClusterSection, Field, File, TargetSection, Template, TlsSection};

/// How the names of nodes begin.
pub(super) const NODE: &str = "node-";
/// How the names of etcd's members begin.
pub(super) const ETCD: &str = "etcd-";
/// The name of the cluster, where it needs one.
const NAME: &str = crate::targets::shards::NAME;
/// More processes than this are no experiment for one machine.
const MOST: usize = 100;

/// Adds the processes of each cluster to its target. The target itself is the last node.
///
/// # Errors
/// A cluster that cannot be.
pub(super) fn expand(path: &str, text: &str, file: &mut File) -> Result<(), FileError> {
    for spanned in &mut file.targets {
        let (place, section) = (spanned.span(), spanned.get_mut());
        let Some(own) = &section.cluster else { continue };
        let error = |message: &str| Err(FileError::at(path, text, own.span().start, message));
        let ClusterSection { shards, replicas, etcd } = *own.get_ref();
        let nodes = shards.saturating_mul(replicas.saturating_add(1));
        if !(1..=MOST).contains(&nodes) || !(1..=MOST).contains(&etcd) {
            return error("a cluster has 1 to 100 nodes, and 1 to 100 members of etcd");
        }
        let Some(kind) = section.kind.as_ref().map(|kind| kind.get_ref().clone()) else {
            return error("a cluster is one of a single kind: kind = \"..\"");
        };
        if !section.beside.is_empty() || section.store.is_some() || section.link.is_some() {
            return error("a cluster has no other processes beside it, and no link");
        }
        let field = |text: String| Spanned::new(place.clone(), Template(text));
        let options: Vec<(&str, String)> = match kind.as_str() {
            "dunlin" => {
                let members = (1..=etcd).map(|at| format!("http://127.0.0.1:{{{ETCD}{at}.port}}"));
                vec![
                    ("cluster-etcd", members.collect::<Vec<_>>().join(",")),
                    ("cluster-name", NAME.to_owned()),
                    ("cluster-announce-ip", "127.0.0.1".to_owned()),
                ]
            }
            "redis" | "valkey" => vec![
                ("cluster-port", "{link_port}".to_owned()),
                ("cluster-config-file", "nodes.conf".to_owned()),
            ],
            _ => return error("clusters are made of dunlin, redis or valkey"),
        };
        for (name, value) in [("cluster-enabled", "yes".to_owned())].into_iter().chain(options) {
            section.options.entry(name.to_owned()).or_insert_with(|| field(value));
        }
        let named = |name: String, section: TargetSection| {
            let name = Some(Spanned::new(place.clone(), name));
            Spanned::new(place.clone(), TargetSection { name, ..section })
        };
        let node = TargetSection { cluster: None, on: None, ..section.clone() };
        if kind == "dunlin" {
            let members = (1..=etcd).map(|at| format!("{ETCD}{at}"));
            let members = members.map(|name| named(name.clone(), member(name, etcd, &field)));
            section.beside.extend(members);
        }
        section.beside.extend((1..nodes).map(|at| named(format!("{NODE}{at}"), node.clone())));
    }
    Ok(())
}

/// One member of etcd.
fn member(name: String, count: usize, field: &impl Fn(String) -> Field) -> TargetSection {
    let peers = (1..=count)
        .map(|at| format!("{ETCD}{at}=http://127.0.0.1:{{{ETCD}{at}.link_port}}"))
        .collect::<Vec<_>>()
        .join(",");
    let (client, peer) = ("http://127.0.0.1:{port}", "http://127.0.0.1:{link_port}");
    let words = [
        "etcd",
        "--name",
        &name,
        "--data-dir",
        "{directory}/data",
        "--listen-client-urls",
        client,
        "--advertise-client-urls",
        client,
        "--listen-peer-urls",
        peer,
        "--initial-advertise-peer-urls",
        peer,
        "--initial-cluster",
        &peers,
    ];
    TargetSection {
        command: Some(words.map(|word| field(word.to_owned())).to_vec()),
        probe: Some(field("http".to_owned())),
        tls: Some(Spanned::new(0..0, TlsSection::Plain(Template("false".to_owned())))),
        ..TargetSection::default()
    }
}
