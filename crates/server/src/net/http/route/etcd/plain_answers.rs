//! Answers of etcd's addresses that concern no node.

use etcd::json::Object;
use http::request::Head;

use crate::net::http::etcd::cluster::of_cluster;
use crate::net::http::prepared::Prepared;

/// A text that is no JSON.
pub(super) fn text(status: u16, body: &str) -> Prepared {
    Prepared {
        status,
        headers: vec![("X-Content-Type-Options", b"nosniff".to_vec())],
        content_type: "text/plain; charset=utf-8",
        body: body.as_bytes().to_vec().into(),
    }
}

pub(super) fn json(write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    write(&mut object);
    object.end();
    out
}

/// A refusal that does not concern the tree.
pub(super) fn message(status: u16, message: &str) -> Prepared {
    of_cluster(Prepared::json(status, json(|object| object.text("message", message.as_bytes()))))
}

pub(super) fn not_found() -> Prepared {
    text(404, "404 page not found\n")
}

/// Refuses methods that an address does not take.
pub(super) fn allow(head: &Head<'_>, methods: &str) -> Result<(), Prepared> {
    if methods.split(',').any(|own| own == head.method) {
        return Ok(());
    }
    let mut prepared = text(405, "Method Not Allowed\n");
    prepared.headers.push(("Allow", methods.into()));
    Err(prepared)
}
