//! Requests that wait for changes, or follow them.

use base::limits;
use engine::journal::backlog::Position;
use engine::journal::filter::{Filter, Keys};
use http::request::Head;
use http::target::Target;

use super::get::get;
use super::{Route, Routed, query_part};
use crate::net::http::changes::Wait;
use crate::net::http::exchange::Kind;

impl Route<'_> {
    /// A GET that waits until something happens to the key.
    pub(super) fn wait(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        first: usize,
    ) -> Routed<(Kind, usize)> {
        let key = self.arguments(first).at(1).to_vec();
        self.batch.args.truncate(first);
        let (mut since, mut timeout) = (None, limits::HTTP_WAIT_MS);
        let database = self.parameters(target, |_, name, value| {
            let value = query_part(value)?;
            match (name, &*value) {
                (b"wait", b"true") => {}
                (b"wait", _) => return Err((400, "wait is true, or not given").into()),
                (b"since", position) => {
                    if Position::parse(position).is_none() {
                        return Err((400, "since is a position").into());
                    }
                    since = Some(position.to_vec());
                }
                (b"timeout", seconds) => {
                    let seconds = base::num::parse_i64(seconds);
                    let seconds = seconds.filter(|seconds| (1..=3600).contains(seconds));
                    let wrong = (400, "timeout is a number of seconds from 1 to 3600");
                    timeout = seconds.ok_or(wrong)?.unsigned_abs() * 1000;
                }
                (b"fields" | b"range" | b"limit" | b"cursor", _) => {
                    return Err((422, "who waits for a key gets all of it").into());
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let deadline = self.intake.monotonic.saturating_add(timeout);
        let get = get(head);
        let has_versions = get.as_ref().is_some_and(|get| get.none_match.is_some());
        let wait = Wait::new(&key, database, (since.as_deref(), has_versions), deadline);
        wait.first(self.intake.monotonic).view().iter().for_each(|word| self.word(word));
        self.add_named(first)?;
        Ok((Kind::Wait(Box::new(wait), get), database))
    }

    /// `GET /v1/changes`: an endless answer with the changes of keys.
    pub(super) fn changes(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
    ) -> Routed<(Kind, usize)> {
        let mut filter = Filter { database: None, keys: Keys::Prefix(Box::default()) };
        let mut since = b"$".to_vec();
        let names_database = target.parameters().any(|(name, _)| name == b"db");
        let database = self.parameters(target, |_, name, value| {
            let value = query_part(value)?;
            match name {
                b"since" => since = value.into_owned(),
                b"prefix" => filter.keys = Keys::Prefix((&*value).into()),
                b"key" => filter.keys = Keys::One((&*value).into()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        filter.database = names_database.then_some(database);
        // A browser that has lost its connection sends the same request with this.
        if let Some(last) = head.header("last-event-id").filter(|last| !last.is_empty()) {
            since = last.to_vec();
        }
        let first = self.begin();
        let words: [&[u8]; 5] = [b"CHANGES", b"SINCE", &since, b"COUNT", b"0"];
        words.iter().for_each(|word| self.word(word));
        // The command decides whether the client may be told of these.
        let (word, keys): (&[u8], _) = match &filter.keys {
            Keys::One(key) => (b"KEY", key),
            Keys::Prefix(prefix) => (b"PREFIX", prefix),
        };
        [word, keys].iter().for_each(|word| self.word(word));
        if let Some(database) = filter.database {
            self.word(b"DB");
            self.word(database.to_string().as_bytes());
        }
        self.add_named(first)?;
        Ok((Kind::Follow(Box::new(filter)), database))
    }
}
