//! `/v1/views`: results of databases that are kept.

use http::json;
use http::request::Head;
use http::tag::{self, Tags};
use http::target::Target;

use super::{Body, Refused, Route, Routed, query_part};
use crate::net::http::exchange::Kind;
use crate::net::http::prepared::Prepared;

/// Text of a request.
fn text(bytes: &[u8]) -> Routed<String> {
    let decoded = query_part(bytes)?.into_owned();
    String::from_utf8(decoded).map_err(|_| (400, "a parameter is not UTF-8").into())
}

fn refused(status: u16, reason: &str) -> Refused {
    Refused(Prepared::error(status, reason))
}

impl Route<'_> {
    /// The names of all views; or with DELETE and a tag, forgets results.
    pub(super) fn views(&mut self, head: &Head<'_>, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let mut tag = None;
        for (name, value) in target.parameters() {
            match (head.method, name) {
                ("DELETE", b"tag") => tag = Some(query_part(value)?.into_owned()),
                _ => return Err(super::UNKNOWN_PARAMETER.into()),
            }
        }
        if head.method == "DELETE" {
            let tag =
                tag.ok_or((400, "the parameter tag is missing: it chooses the results to forget"))?;
            return Ok((self.forget(&tag), 0));
        }
        let mut body = b"{\"views\":[".to_vec();
        for (at, name) in self.intake.offer.views.views.keys().enumerate() {
            if at > 0 {
                body.push(b',');
            }
            json::write_str(&mut body, name);
        }
        body.extend_from_slice(b"]}");
        Ok((Kind::ready(Prepared::json(200, body)), 0))
    }

    /// One view: GET of a result, POST to write through it, DELETE of all its results.
    pub(super) fn view(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        name: &[u8],
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        let offer = self.intake.offer;
        let found = std::str::from_utf8(name).ok().and_then(|name| offer.views.views.get(name));
        let view = found.ok_or_else(|| refused(404, "there is no such view"))?;
        let mut given = Vec::new();
        for (name, value) in target.parameters() {
            given.push((text(name)?, text(value)?));
        }
        match head.method {
            "POST" | "DELETE" if !given.is_empty() => Err(super::UNKNOWN_PARAMETER.into()),
            "DELETE" => Ok((self.forget(name), 0)),
            "POST" => {
                json::bound_values(self.bytes(body))?;
                view.write(self.bytes(body)).map_err(|reason| refused(400, &reason))?;
                let first = self.begin();
                self.word(b"VIEWCHANGE");
                self.word(name);
                self.body(body);
                self.add(first, self.rows().view_change);
                Ok((Kind::Count("changed"), 0))
            }
            _ => {
                let key = view.key(&given).map_err(|reason| refused(400, &reason))?;
                let first = self.begin();
                self.word(b"VIEW");
                self.word(key.as_bytes());
                self.word(view.ttl.as_millis().to_string().as_bytes());
                self.word(view.stale.as_millis().to_string().as_bytes());
                if offer.is_settling(&view.name) {
                    self.word(b"ANEW");
                }
                if let Some(at) = offer.forgotten_at(&view.name, base::clock::now_ms()) {
                    self.word(b"SINCE");
                    self.word(at.to_string().as_bytes());
                }
                self.add(first, self.rows().view);
                Ok((Kind::View(none_match(head)), 0))
            }
        }
    }

    fn forget(&mut self, tag: &[u8]) -> Kind {
        let first = self.begin();
        self.word(b"VIEWFORGET");
        self.word(tag);
        self.add(first, self.rows().view_forget);
        Kind::Count("forgotten")
    }
}

/// The versions that the client has.
fn none_match(head: &Head<'_>) -> Option<Box<Tags>> {
    let mut lists = head.all("if-none-match").peekable();
    lists.peek().is_some().then(|| Box::new(tag::parse(lists, false)))
}
