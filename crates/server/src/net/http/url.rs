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
    // A zone follows "%25" in a URL (RFC 6874), and "%" elsewhere.
    let host = if host.contains(':') {
        format!("[{}]", host.replacen('%', "%25", 1))
    } else {
        host.to_owned()
    };
    (port > 0).then(|| format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use cluster::ids::NodeId;
    use cluster::topology::Address;

    use super::*;

    #[test]
    fn hosts_of_all_kinds_have_urls() {
        let url = |host: &str| {
            let address = Address { host: host.into(), http_port: 80, ..Address::default() };
            let node = Node {
                id: NodeId([1; 20]),
                shard: None,
                address,
                zone: String::new(),
                alive: None,
                version: String::new(),
                name: String::new(),
            };
            assert_eq!(url_of(&node, &Config::default(), true), None);
            url_of(&node, &Config::default(), false)
        };
        assert_eq!(url("10.0.0.1").as_deref(), Some("http://10.0.0.1:80"));
        assert_eq!(url("::1").as_deref(), Some("http://[::1]:80"));
        assert_eq!(url("fe80::1%eth0").as_deref(), Some("http://[fe80::1%25eth0]:80"));
    }
}
