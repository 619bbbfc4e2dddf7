//! POST to a key: JSON whose values are added to a collection.

use base::json as parts;
use http::json;
use http::request::Head;
use http::target::Target;
use serde::de::IgnoredAny;

use super::{Body, Route, Routed};
use crate::net::http::exchange::Kind;

impl Route<'_> {
    pub(super) fn push(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        first: usize,
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        let text = self.bytes(body);
        json::bound_values(text)?;
        if std::str::from_utf8(text).is_err() || serde_json::from_slice::<IgnoredAny>(text).is_err()
        {
            return Err((400, "the body is not JSON").into());
        }
        let pairs = parts::members(text).is_some();
        let (mut kind, mut end): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        let database = self.parameters(target, |_, name, value| {
            let (into, word): (_, &[u8]) = match (name, value) {
                (b"type", b"list") => (&mut kind, b"LIST"),
                (b"type", b"set") => (&mut kind, b"SET"),
                (b"type", b"hash") => (&mut kind, b"HASH"),
                (b"type", b"zset") => (&mut kind, b"ZSET"),
                (b"end", b"front") => (&mut end, b"FRONT"),
                (b"end", b"back") => (&mut end, b"LIST"),
                (b"type" | b"end", _) => {
                    let reason = "type is list, set, hash or zset, and end is front or back";
                    return Err((400, reason).into());
                }
                _ => return Ok(false),
            };
            *into = Some(word);
            Ok(true)
        })?;
        let form: &[u8] = match (kind, end, pairs) {
            (None, None, true) => b"PAIRS",
            (None, None, false) => b"ITEMS",
            (None | Some(b"LIST"), Some(end), false) => end,
            (Some(kind @ (b"LIST" | b"SET")), None, false) => kind,
            (Some(kind @ (b"HASH" | b"ZSET")), None, true) => kind,
            _ => return Err((422, "the parameters do not fit the body").into()),
        };
        self.word(form);
        self.conditions(head);
        self.word(b"VALUES");
        let before = self.batch.args.len();
        let text = self.body_of_its_own(body);
        if let Some(members) = parts::members(&text) {
            for (name, value) in members {
                self.json_word(name)?;
                self.json_word(value)?;
            }
        } else if let Some(mut elements) = parts::elements(&text) {
            elements.try_for_each(|element| self.json_word(element))?;
        } else {
            self.json_word(text.trim_ascii())?;
        }
        if self.batch.args.len() == before {
            return Err((400, "there is nothing to push").into());
        }
        self.add(first, self.rows().push);
        Ok((Kind::Write, database))
    }

    /// Adds a value of JSON.
    fn json_word(&mut self, value: &[u8]) -> Routed<()> {
        match value {
            [b'"', text @ .., b'"'] if text.contains(&b'\\') => {
                let from = self.side.len();
                json::unescape(text, self.side)?;
                self.side_from(from);
            }
            [b'"', text @ .., b'"'] => self.word(text),
            [b't' | b'f' | b'n', ..] => {
                return Err((400, "what is pushed are strings and numbers").into());
            }
            // A nested value is kept as the JSON that it is.
            number_or_nested => self.word(number_or_nested),
        }
        Ok(())
    }
}
