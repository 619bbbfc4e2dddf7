//! `/v2/members`: there is one member, and no other can be added. Requests are checked as etcd
//! checks them.

use etcd::member;

use super::plain_answers::{NAME, allow, json, message, text};
use crate::net::http::etcd::cluster::{MEMBER, of_cluster};
use crate::net::http::prepared::Prepared;
use http::request::Head;

/// The refusal for a client that would change the cluster.
const ALONE: &str = "this server is its cluster's only member";

/// The answer to a request below `/v2/members`. `rest` is the rest of the path.
pub(super) fn answer(
    head: &Head<'_>,
    rest: &[u8],
    body: &[u8],
    client_url: &str,
) -> Result<Prepared, Prepared> {
    allow(head, "GET,POST,DELETE,PUT")?;
    let name = rest.strip_prefix(b"/").unwrap_or_default();
    match head.method {
        "GET" => shown(name, client_url),
        // Etcd looks at no name here.
        "POST" => {
            check(head, body)?;
            Err(message(409, ALONE))
        }
        _ if name.is_empty() => Err(of_cluster(text(405, "Method Not Allowed\n"))),
        "PUT" => {
            let id = id(name)?;
            check(head, body)?;
            known(id)?;
            Err(message(409, ALONE))
        }
        // The answer of etcd when its last member would go.
        _ => {
            known(id(name)?)?;
            Err(message(500, "Internal Server Error"))
        }
    }
}

/// The member itself, alone or in the list of all.
fn shown(name: &[u8], client_url: &str) -> Result<Prepared, Prepared> {
    let member = json(|object| {
        object.text("id", MEMBER.as_bytes());
        object.text("name", NAME.as_bytes());
        object.member("peerURLs").extend_from_slice(b"[]");
        let urls = object.member("clientURLs");
        urls.push(b'[');
        etcd::json::string(urls, client_url.as_bytes());
        urls.push(b']');
    });
    let mut body = match name {
        b"" => [b"{\"members\":[", &member[..], b"]}"].concat(),
        b"leader" => member,
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

fn known(id: u64) -> Result<(), Prepared> {
    if member::id(MEMBER.as_bytes()) == Some(id) { Ok(()) } else { Err(nobody(&format!("{id:x}"))) }
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
