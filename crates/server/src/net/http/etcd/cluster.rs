//! Answers to clients of etcd that depend on no node.

use etcd::error::{Code, Error};

use crate::net::http::prepared::Prepared;

/// The cluster that this server is, and its one member. They are the same for all servers, as in an
/// etcd without a configuration.
pub(super) const CLUSTER: &str = "64756e6c696e3a00";
/// See [`CLUSTER`].
pub(in crate::net::http) const MEMBER: &str = "64756e6c696e3a01";

/// Whether an address is one that clients of etcd ask for. Clients whose own address of the server
/// ends in a slash write two slashes.
pub(in crate::net::http) fn is_own(path: &[u8]) -> bool {
    with_one_slash(path).starts_with(b"/v2/") || matches!(path, b"/version" | b"/health")
}

fn with_one_slash(path: &[u8]) -> &[u8] {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    path.get(slashes.saturating_sub(1)..).unwrap_or(path)
}

/// The methods that such an address accepts.
pub(in crate::net::http) fn methods(path: &[u8]) -> &'static str {
    let path = with_one_slash(path);
    match path.strip_prefix(b"/v2/").unwrap_or(path) {
        b"machines" => "GET, HEAD, OPTIONS",
        own if own.starts_with(b"auth/") => "GET, PUT, DELETE, OPTIONS",
        own if own.starts_with(b"keys") => "GET, HEAD, PUT, POST, DELETE, OPTIONS",
        _ => "GET, OPTIONS",
    }
}

/// An answer with a header that names the cluster.
pub(in crate::net::http) fn of_cluster(mut prepared: Prepared) -> Prepared {
    prepared.headers.push(("X-Etcd-Cluster-Id", CLUSTER.into()));
    prepared
}

/// A refusal that depends on no command.
pub(in crate::net::http) fn refused(error: &Error) -> Prepared {
    let mut body = Vec::new();
    error.write(&mut body);
    let mut prepared = of_cluster(Prepared::json(error.code.status(), body));
    prepared.headers.push(("X-Etcd-Index", error.index.to_string().into_bytes()));
    prepared
}

/// Puts a refusal from before the tree was looked at into the words of etcd.
pub(in crate::net::http) fn reworded(prepared: Prepared) -> Prepared {
    let code = match prepared.status {
        401 | 403 | 421 => Code::Unauthorized,
        _ => Code::InvalidForm,
    };
    let said: Option<serde_json::Value> = serde_json::from_slice(&prepared.body).ok();
    let cause = said.as_ref().and_then(|said| said["error"].as_str()).unwrap_or_default();
    let own = refused(&Error::of_request(code, cause));
    let headers = [own.headers, prepared.headers].concat();
    Prepared { status: prepared.status, headers, ..own }
}
