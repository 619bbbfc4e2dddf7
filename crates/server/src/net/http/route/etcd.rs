//! `/v2/keys` and the addresses that belong to it: which command a request becomes.

use engine::nodes::kept::directory_key;
use etcd::form::Form;
use etcd::media;
use etcd::path;
use etcd::request::{Method, Request};
use http::request::Head;
use http::target::{self, Target};

mod auth;
mod cluster;
mod members;
mod plain_answers;

use self::cluster::Cluster;
use self::plain_answers::{allow, json, not_found, text};
use super::{Body, Route, Routed};
use crate::net::http::etcd::answer::Watch;
use crate::net::http::etcd::cluster::refused;
use crate::net::http::exchange::Kind;
use crate::net::http::prepared::Prepared;

/// A path in the form of an address.
fn encoded(path: &[u8], query: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            text.push(byte);
        } else {
            text.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    if !query.is_empty() {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text
}

/// Sends a client to an address. Who only reads gets a link.
fn moved(head: &Head<'_>, address: Vec<u8>) -> Prepared {
    let mut prepared = Prepared { content_type: "", ..text(301, "") };
    if matches!(head.method, "GET" | "HEAD") {
        let mut link = String::from_utf8_lossy(&address).into_owned();
        for (sign, name) in
            [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")]
        {
            link = link.replace(sign, name);
        }
        let body = format!("<a href=\"{link}\">Moved Permanently</a>.\n\n");
        let content_type = "text/html; charset=utf-8";
        prepared = Prepared { content_type, ..text(301, &body) };
    }
    prepared.headers = vec![("Location", address)];
    prepared
}

impl Route<'_> {
    /// A request to one of those addresses.
    pub(super) fn etcd(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        let mut path = Vec::new();
        target::decode(target.path, &mut path)?;
        if let Some(canonical) = path::canonical(&path) {
            return Ok((Kind::ready(moved(head, encoded(&canonical, target.query))), 0));
        }
        let is_keys = path == b"/v2/keys" || path.starts_with(b"/v2/keys/");
        let kind = if is_keys {
            let path = path::clean(&path[b"/v2/keys".len()..]);
            self.node(head, target, &path, body)
        } else {
            self.about_server(head, target, &path, body)
        };
        Ok((kind.unwrap_or_else(Kind::ready), 0))
    }

    /// A request for a node.
    fn node(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        path: &[u8],
        body: Body<'_>,
    ) -> Result<Kind, Prepared> {
        allow(head, "HEAD,GET,PUT,POST,DELETE")?;
        let media = head.header("content-type").unwrap_or_default();
        let is_form = match head.method {
            "PUT" | "POST" => media::is_form(media).map_err(|error| refused(&error))?,
            _ => false,
        };
        let body = if is_form { self.bytes(body).to_vec() } else { Vec::new() };
        let form = Form::read(&body, target.query).map_err(|error| refused(&error))?;
        let method = head.method.as_bytes();
        let request = Request::read(method, path, &form).map_err(|error| refused(&error))?;
        let first = self.begin();
        if let Some(wait) = request.wait {
            let watch = Watch::new(path, request.recursive, wait, !head.is_1_0);
            watch.command().view().iter().for_each(|word| self.word(word));
            self.add(first, self.rows().node_wait);
            return Ok(Kind::Watch(Box::new(watch)));
        }
        let rows = self.rows();
        let row = match request.method {
            Method::Get => rows.node_get,
            Method::Put | Method::Post => rows.node_put,
            Method::Delete => rows.node_delete,
        };
        self.word(b"NODE");
        // All keys of the tree share this slot.
        self.word(&directory_key(path::split(path).0));
        self.word(method);
        self.word(path);
        for (name, value) in form.each() {
            self.word(name.as_bytes());
            self.word(value);
        }
        self.add(first, row);
        Ok(Kind::Node)
    }

    /// Questions of clients about the server and its cluster.
    fn about_server(
        &self,
        head: &Head<'_>,
        target: &Target<'_>,
        path: &[u8],
        body: Body<'_>,
    ) -> Result<Kind, Prepared> {
        let engine = self.intake.engine;
        let cluster = || Cluster::of(self.intake, head, target);
        let answer = match path {
            b"/version" => {
                allow(head, "GET")?;
                json(|object| {
                    object.text("etcdserver", etcd::ETCD_VERSION.as_bytes());
                    object.text("etcdcluster", etcd::CLUSTER_VERSION.as_bytes());
                })
            }
            b"/health" => {
                allow(head, "GET")?;
                let is_well = !engine.loading.is_on()
                    && !engine.journal.state().failed
                    && cluster().leader().is_some();
                // As etcd does, which says nothing of the type of the good news.
                let prepared = match is_well {
                    true => Prepared {
                        content_type: "text/plain; charset=utf-8",
                        ..Prepared::json(200, json(|object| object.text("health", b"true")))
                    },
                    false => text(503, "{\"health\":\"false\"}\n"),
                };
                return Ok(Kind::ready(prepared));
            }
            b"/v2/stats/store" => {
                allow(head, "GET")?;
                engine.nodes.metrics()
            }
            b"/v2/stats/self" => {
                allow(head, "GET")?;
                let up = self.intake.monotonic.saturating_sub(engine.started_at);
                json(|object| cluster().write_self(object, up))
            }
            b"/v2/stats/leader" => {
                allow(head, "GET")?;
                // As in etcd, which says this without its usual headers.
                let refusal = || json(|object| object.text("message", b"not current leader"));
                cluster().followers().ok_or_else(|| Prepared::json(403, refusal()))?
            }
            b"/v2/machines" => {
                allow(head, "GET,HEAD")?;
                return Ok(Kind::ready(text(200, &cluster().machines())));
            }
            [b'/', b'v', b'2', b'/', b'a', b'u', b't', b'h', below @ ..]
                if below.starts_with(b"/") =>
            {
                return auth::answer(head, below).map(Kind::ready);
            }
            _ => {
                let rest = path.strip_prefix(b"/v2/members").ok_or_else(not_found)?;
                return match rest {
                    b"" | [b'/', ..] => {
                        members::answer(head, rest, self.bytes(body), &cluster()).map(Kind::ready)
                    }
                    _ => Err(not_found()),
                };
            }
        };
        Ok(Kind::ready(Prepared::json(200, answer)))
    }
}
