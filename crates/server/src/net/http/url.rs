//! Where clients of HTTP reach the nodes of a cluster.

use cluster::topology::Node;
use config::Config;
use engine::cluster::view::endpoint;

/// The address of a node for clients that came by an encrypted connection, or by a plain one;
/// nothing if it has none for them.
pub(super) fn url_of(node: &Node, config: &Config, encrypted: bool) -> Option<String> {
    let (scheme, port) = match encrypted {
        true => ("https", node.address.https_port),
        false => ("http", node.address.http_port),
    };
    let host = match endpoint(node, config) {
        Some(host) if host != "?" => host,
        _ => &node.address.host,
    };
    let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
    (port > 0).then(|| format!("{scheme}://{open}{host}{close}:{port}"))
}
