//! Requests of an operator: how the server does, what takes memory, and which keys are hot.

use base::limits;
use http::target::Target;

use super::{Refused, Route, Routed, UNKNOWN_PARAMETER};
use crate::net::http::exchange::Kind;
use crate::net::http::prepared::Prepared;

impl Route<'_> {
    /// `GET /v1/memory`: what takes memory.
    pub(super) fn memory(&mut self, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let first = self.begin();
        self.word(b"MEMORY");
        let database = self.parameters(target, |route, name, value| {
            match name {
                b"cursor" => route.pair(b"WALK", value)?,
                b"samples" => route.count(b"SAMPLES", value, limits::HTTP_SAMPLES)?,
                b"depth" => route.count(b"DEPTH", value, limits::HTTP_PREFIX_DEPTH)?,
                b"separator" => route.pair(b"SEPARATOR", value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        self.add(first, self.rows().memory);
        Ok((Kind::Json, database))
    }

    /// `GET /v1/overview`: how the server does, and its last minutes.
    pub(super) fn overview(&mut self, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let mut after = 0;
        for (name, value) in target.parameters() {
            if name != b"after" {
                return Err(UNKNOWN_PARAMETER.into());
            }
            // As many seconds as no server runs.
            let number = base::num::parse_i64(value).and_then(|own| u32::try_from(own).ok());
            after = number.ok_or((400, "a number from 0 to 4294967295 is meant"))?;
        }
        let first = self.begin();
        self.word(b"OVERVIEW");
        self.word(after.to_string().as_bytes());
        self.add(first, self.rows().overview);
        Ok((Kind::Json, 0))
    }

    /// `GET /v1/hotkeys`: the keys that commands name most often.
    pub(super) fn hot_keys(&mut self, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let mut limit = 20;
        for (name, value) in target.parameters() {
            if name != b"limit" {
                return Err(UNKNOWN_PARAMETER.into());
            }
            limit = counted(value, limits::HTTP_HOT_KEYS)?;
        }
        let first = self.begin();
        self.word(b"HOTKEYS");
        self.word(limit.to_string().as_bytes());
        self.add(first, self.rows().hot_keys);
        Ok((Kind::Json, 0))
    }

    /// Adds an option that is a number.
    fn count(&mut self, name: &[u8], value: &[u8], most: usize) -> Routed<()> {
        let number = counted(value, most)?;
        self.word(name);
        self.word(number.to_string().as_bytes());
        Ok(())
    }
}

/// A number from 1 on.
fn counted(value: &[u8], most: usize) -> Routed<usize> {
    let number = base::num::parse_i64(value).and_then(|number| usize::try_from(number).ok());
    let number = number.filter(|number| (1..=most).contains(number));
    let reason = || Refused(Prepared::error(400, &format!("a number from 1 to {most} is meant")));
    number.ok_or_else(reason)
}
