//! `/v2/auth`: users and roles of etcd, which are absent. Questions are answered as by an etcd
//! without any.

use etcd::json::Object;
use etcd::path;

use super::plain_answers::{allow, json, message, not_found};
use crate::net::http::etcd::cluster::of_cluster;
use crate::net::http::prepared::Prepared;
use http::request::Head;

/// The refusal for clients that would create users.
const NO_USERS: &str = "auth: there are no users of etcd here: see ACL SETUSER";

/// The one role that every etcd has.
fn write_root(object: &mut Object<'_>) {
    object.text("role", b"root");
    let rights = json(|object| {
        object.member("kv").extend_from_slice(b"{\"read\":[\"/*\"],\"write\":[\"/*\"]}");
    });
    object.member("permissions").extend_from_slice(&rights);
}

fn told(mut body: Vec<u8>) -> Prepared {
    body.push(b'\n');
    of_cluster(Prepared::json(200, body))
}

/// The answer to a request below `/v2/auth`. `below` is the rest of the path.
pub(super) fn answer(head: &Head<'_>, below: &[u8]) -> Result<Prepared, Prepared> {
    const ALL: &str = "GET,PUT,DELETE";
    let clean = path::clean(below);
    let names: Vec<&[u8]> = path::names(&clean).collect();
    match names.as_slice() {
        [b"enable"] if below == b"/enable" => {
            allow(head, ALL)?;
            match head.method {
                "GET" => {
                    Ok(told(json(|object| object.member("enabled").extend_from_slice(b"false"))))
                }
                "PUT" => Err(message(409, NO_USERS)),
                _ => Err(message(409, "auth: already disabled")),
            }
        }
        [b"roles"] => {
            allow(head, "GET")?;
            let mut roles = b"[".to_vec();
            roles.extend_from_slice(&json(write_root));
            roles.push(b']');
            Ok(told(json(|object| object.member("roles").extend_from_slice(&roles))))
        }
        [b"users"] => {
            allow(head, "GET")?;
            Ok(told(json(|object| object.member("users").extend_from_slice(b"null"))))
        }
        [b"roles", name] => {
            allow(head, ALL)?;
            let shown = String::from_utf8_lossy(name);
            match (head.method, *name) {
                ("GET", b"root") => Ok(told(json(write_root))),
                ("GET", _) => Err(message(404, &format!("auth: Role {shown} does not exist."))),
                ("PUT", _) => Err(message(409, NO_USERS)),
                (_, b"root") => Err(message(403, "auth: Cannot modify role root: is root role.")),
                _ => Err(message(404, &format!("auth: Role {shown} doesn't exist."))),
            }
        }
        [b"users", name] => {
            allow(head, ALL)?;
            let shown = String::from_utf8_lossy(name);
            Err(match head.method {
                "GET" => message(404, &format!("auth: User {shown} does not exist.")),
                "PUT" => message(409, NO_USERS),
                _ => message(404, &format!("auth: User {shown} does not exist")),
            })
        }
        [b"roles" | b"users", ..] => {
            let body = json(|object| object.text("message", b"Invalid path"));
            Err(Prepared::json(400, body))
        }
        _ => Err(not_found()),
    }
}
