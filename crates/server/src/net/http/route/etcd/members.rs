//! `/v2/members`: who they are. Nobody changes them by this address, but requests are checked as
//! etcd checks them.

use etcd::member;

use super::cluster::{Cluster, Member};
use super::plain_answers::{allow, message, text};
use crate::net::http::etcd::cluster::of_cluster;
use crate::net::http::prepared::Prepared;
use http::request::Head;

/// The refusal for a client that would change the cluster.
const ALONE: &str = "this server is its cluster's only member";
/// The same where there is a cluster.
const OPERATED: &str = "members are changed by `dunlin cluster add` and `dunlin cluster remove`";

/// The answer to a request below `/v2/members`. `rest` is the rest of the path.
pub(super) fn answer(
    head: &Head<'_>,
    rest: &[u8],
    body: &[u8],
    cluster: &Cluster,
) -> Result<Prepared, Prepared> {
    allow(head, "GET,POST,DELETE,PUT")?;
    let name = rest.strip_prefix(b"/").unwrap_or_default();
    let refusal = || message(409, if cluster.is_operated { OPERATED } else { ALONE });
    match head.method {
        "GET" => shown(name, cluster),
        // Etcd looks at no name here.
        "POST" => {
            check(head, body)?;
            Err(refusal())
        }
        _ if name.is_empty() => Err(of_cluster(text(405, "Method Not Allowed\n"))),
        "PUT" => {
            let id = id(name)?;
            check(head, body)?;
            known(id, cluster)?;
            Err(refusal())
        }
        _ => {
            known(id(name)?, cluster)?;
            // The answer of etcd when its last member would go.
            let last = || message(500, "Internal Server Error");
            Err(if cluster.is_operated { refusal() } else { last() })
        }
    }
}

/// All members, or the one that leads.
fn shown(name: &[u8], cluster: &Cluster) -> Result<Prepared, Prepared> {
    let mut body = match name {
        b"" => {
            let all: Vec<_> = cluster.members.iter().map(Member::shown).collect();
            [b"{\"members\":[", &all.join(&b',')[..], b"]}"].concat()
        }
        b"leader" => {
            cluster.leader().map(Member::shown).ok_or_else(|| message(503, "During election"))?
        }
        _ => return Err(message(404, "Not found")),
    };
    body.push(b'\n');
    Ok(of_cluster(Prepared::json(200, body)))
}

fn nobody(name: &str) -> Prepared {
    message(404, &format!("No such member: {name}"))
}

fn id(name: &[u8]) -> Result<u64, Prepared> {
    member::id(name).ok_or_else(|| nobody(&String::from_utf8_lossy(name)))
}

fn known(id: u64, cluster: &Cluster) -> Result<(), Prepared> {
    let is_known = cluster.members.iter().any(|member| member.id == id);
    if is_known { Ok(()) } else { Err(nobody(&format!("{id:x}"))) }
}

/// Checks a request about a member.
fn check(head: &Head<'_>, body: &[u8]) -> Result<(), Prepared> {
    let media = head.header("content-type").unwrap_or_default();
    if !member::is_json(media) {
        let media = String::from_utf8_lossy(media);
        let cause = format!("Bad Content-Type {media}, accept application/json");
        return Err(message(415, &cause));
    }
    member::check(body).map_err(|cause| message(400, &cause))
}
