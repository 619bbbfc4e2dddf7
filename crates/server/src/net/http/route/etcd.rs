//! `/v2/keys` and the addresses that belong to it: which command a request becomes.

use engine::nodes::kept::directory_key;
use etcd::form::Form;
use etcd::media;
use etcd::path;
use etcd::request::{Method, Request};
use http::request::Head;
use http::target::{self, Target};

mod auth;
mod members;
mod plain_answers;

use self::plain_answers::{NAME, allow, json, not_found, text};
use super::{Body, Route, Routed};
use crate::net::http::etcd::answer::Watch;
use crate::net::http::etcd::cluster::{MEMBER, refused};
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
                let is_well = !engine.loading.is_on() && !engine.journal.state().failed;
                let body = json(|object| {
                    object.text("health", if is_well { b"true" } else { b"false" });
                });
                // As etcd does, which says nothing of the type.
                let content_type = "text/plain; charset=utf-8";
                let status = if is_well { 200 } else { 503 };
                let prepared = Prepared { content_type, ..Prepared::json(status, body) };
                return Ok(Kind::ready(prepared));
            }
            b"/v2/stats/store" => {
                allow(head, "GET")?;
                engine.nodes.metrics()
            }
            b"/v2/stats/self" => {
                allow(head, "GET")?;
                self.about_member()
            }
            b"/v2/stats/leader" => {
                allow(head, "GET")?;
                json(|object| {
                    object.text("leader", MEMBER.as_bytes());
                    object.member("followers").extend_from_slice(b"{}");
                })
            }
            b"/v2/machines" => {
                allow(head, "GET,HEAD")?;
                return Ok(Kind::ready(text(200, &own_url(head, target))));
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
                        let client_url = own_url(head, target);
                        members::answer(head, rest, self.bytes(body), &client_url).map(Kind::ready)
                    }
                    _ => Err(not_found()),
                };
            }
        };
        Ok(Kind::ready(Prepared::json(200, answer)))
    }

    fn about_member(&self) -> Vec<u8> {
        let engine = self.intake.engine;
        let up = self.intake.monotonic.saturating_sub(engine.started_at);
        let mut started = Vec::new();
        etcd::date::write(&mut started, base::clock::now_ms().saturating_sub(up).cast_signed());
        let leader = json(|object| {
            object.text("leader", MEMBER.as_bytes());
            object.text("uptime", etcd::date::duration(up).as_bytes());
            object.text("startTime", &started);
        });
        json(|object| {
            object.text("name", NAME.as_bytes());
            object.text("id", MEMBER.as_bytes());
            object.text("state", b"StateLeader");
            object.text("startTime", &started);
            object.member("leaderInfo").extend_from_slice(&leader);
            for name in ["recvAppendRequestCnt", "sendAppendRequestCnt"] {
                object.member(name).push(b'0');
            }
        })
    }
}

/// Where the client has found this server.
fn own_url(head: &Head<'_>, target: &Target<'_>) -> String {
    let host = target.authority.or(head.header("host")).unwrap_or(b"localhost");
    format!("http://{}", String::from_utf8_lossy(host))
}
