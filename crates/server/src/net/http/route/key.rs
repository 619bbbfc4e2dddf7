//! Requests for a key, and for the names of keys.

use base::limits;
use http::request::Head;
use http::tag::{self, Tags};
use http::target::Target;

use super::get::get;
use super::{Body, Route, Routed, query_part};
use crate::net::http::exchange::{GetRequest, Kind, List, Tree};

impl Route<'_> {
    pub(super) fn key(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        key: &[u8],
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        let first = self.begin();
        self.here(head.method.as_bytes());
        self.path_part(key)?;
        match head.method {
            "GET" if target.parameters().any(|(name, _)| name == b"wait") => {
                self.wait(head, target, first)
            }
            "GET" | "HEAD" => {
                let database = self.part(target)?;
                self.add(first, self.rows().get);
                Ok((Kind::Get(GetRequest::of(get(head))), database))
            }
            "PUT" => {
                if head.header("content-range").is_some() {
                    // RFC 9110, section 14.4: who does not know what a partial PUT means refuses
                    // it.
                    return Err(
                        (400, "PUT stores a whole value, and Content-Range names a part").into()
                    );
                }
                self.body(body);
                let database = self.parameters(target, |route, name, value| {
                    Ok(name == b"ttl" && {
                        route.ttl(value)?;
                        true
                    })
                })?;
                let content_type = head.header("content-type");
                if let Some(content_type) = content_type.filter(|name| !is_of_a_form(name)) {
                    self.word(b"TYPE");
                    self.here(content_type);
                }
                self.conditions(head);
                self.add(first, self.rows().put);
                Ok((Kind::Write, database))
            }
            "PATCH" => {
                self.patch(head, body)?;
                let database = self.database_alone(target)?;
                self.conditions(head);
                self.add(first, self.rows().patch);
                Ok((Kind::Write, database))
            }
            "POST" => self.push(head, target, first, body),
            _ => self.delete(head, target, first),
        }
    }

    /// The parameters of a GET: which part of a collection is wanted.
    fn part(&mut self, target: &Target<'_>) -> Routed<usize> {
        self.parameters(target, |route, name, value| {
            match name {
                b"since" | b"timeout" => {
                    return Err((422, "since and timeout go with wait=true").into());
                }
                b"fields" => {
                    // A comma in a name is escaped, so names are found before they are decoded.
                    let names = || value.split(|byte| *byte == b',');
                    route.word(b"FIELDS");
                    route.word(names().count().to_string().as_bytes());
                    for name in names() {
                        route.word(&query_part(name)?);
                    }
                }
                b"limit" => route.pair(b"LIMIT", value)?,
                b"cursor" => route.pair(b"CURSOR", value)?,
                b"range" => {
                    let value = query_part(value)?;
                    let wrong = (400, "a range is two numbers with a comma between them");
                    let comma = value.iter().position(|byte| *byte == b',').ok_or(wrong)?;
                    route.word(b"RANGE");
                    route.word(&value[..comma]);
                    route.word(&value[comma + 1..]);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn ttl(&mut self, value: &[u8]) -> Routed<()> {
        let value = query_part(value)?;
        let seconds = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<f64>().ok());
        let most = i64::MAX as f64 / 4000.0;
        let seconds = seconds.filter(|seconds| *seconds >= 0.001 && *seconds <= most);
        let wrong = (400, "ttl is a number of seconds above zero");
        let milliseconds = (seconds.ok_or(wrong)? * 1000.0) as u64;
        self.word(b"TTL");
        self.word(milliseconds.to_string().as_bytes());
        Ok(())
    }

    fn patch(&mut self, head: &Head<'_>, body: Body<'_>) -> Routed<()> {
        let media = head.header("content-type").unwrap_or_default();
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !media.eq_ignore_ascii_case(b"application/merge-patch+json") {
            return Err((415, "a patch is of the type application/merge-patch+json").into());
        }
        if self.bytes(body).len() > limits::HTTP_PATCH {
            return Err((413, "the patch is too large").into());
        }
        self.body(body);
        Ok(())
    }

    fn delete(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        first: usize,
    ) -> Routed<(Kind, usize)> {
        let mut recursive = false;
        let database = self.parameters(target, |_, name, value| {
            recursive = match (name, value) {
                (b"recursive", b"true") => true,
                (b"recursive", b"false") => false,
                (b"recursive", _) => return Err((400, "recursive is true or false").into()),
                _ => return Ok(false),
            };
            Ok(true)
        })?;
        self.conditions(head);
        self.add(first, self.rows().delete);
        if !recursive {
            return Ok((Kind::Write, database));
        }
        let key = self.arguments(first).at(1);
        let by_slot = self.intake.engine.cluster.is_enabled();
        Ok((Kind::Tree(Box::new(Tree::new(key, by_slot))), database))
    }

    /// `GET /v1/keys`: the names of keys.
    pub(super) fn keys(&mut self, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let (mut prefix, mut limit, mut cursor) = (Vec::new(), 100, b"0".to_vec());
        let database = self.parameters(target, |_, name, value| {
            let value = query_part(value)?;
            match name {
                b"prefix" => prefix = value.into_owned(),
                b"cursor" => {
                    let plain =
                        (1..=20).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
                    cursor = value.into_owned();
                    if !plain {
                        return Err((400, "a cursor is a number").into());
                    }
                }
                b"limit" => {
                    let number = base::num::parse_i64(&value);
                    let wrong = (400, "limit is a number from 1 to 10000");
                    let most = limits::HTTP_LIST as i64;
                    limit = number.filter(|number| (1..=most).contains(number)).ok_or(wrong)?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let list = List::new(&prefix, limit as usize);
        let first = self.begin();
        list.scan(&cursor).iter().for_each(|word| self.word(word));
        self.add_named(first)?;
        Ok((Kind::List(Box::new(list)), database))
    }

    /// The conditions of a write.
    pub(super) fn conditions(&mut self, head: &Head<'_>) {
        for (name, any, one) in
            [("if-match", &b"EXISTS"[..], &b"MATCH"[..]), ("if-none-match", b"ABSENT", b"DIFFERS")]
        {
            let mut lists = head.all(name).peekable();
            if lists.peek().is_none() {
                continue;
            }
            // If-None-Match compares weakly: a tag that a cache has made weak still names the
            // version.
            match tag::parse(lists, name == "if-match") {
                Tags::Any => self.word(any),
                Tags::Listed(tags) => {
                    if tags.is_empty() && one == b"MATCH" {
                        // Tags of other servers name no version.
                        self.word(one);
                        self.word(b"0");
                    }
                    for tag in tags {
                        self.word(one);
                        self.word(tag.version().to_string().as_bytes());
                    }
                }
            }
        }
    }
}

/// Whether a content type is that of a web form. Some programs, such as curl, give it to any body
/// for which they are told no type, so it says nothing about a value.
fn is_of_a_form(content_type: &[u8]) -> bool {
    let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}
