//! The answer to a request for a result of a database.

use http::answer::{Answer, Envelope, JSON};
use http::reply::{Piece, Pieces};
use http::tag::{self, Tag, Tags, Variant};
use resp::output::Output;

/// Says where the result came from: a kept one, fresh or stale, or the database just now.
pub(super) fn answer_view(
    pieces: &mut Pieces<'_>,
    none_match: Option<&Tags>,
    envelope: &Envelope,
    now: u64,
    reply: &Output,
    output: &mut Output,
) -> Option<()> {
    let Piece::Array(5) = pieces.next()? else { return None };
    let Piece::Bytes(state) = pieces.next()? else { return None };
    let version = match pieces.next()? {
        Piece::Bytes(digits) => Some(digits),
        _ => None,
    };
    let (Piece::Integer(age), Piece::Integer(fresh)) = (pieces.next()?, pieces.next()?) else {
        return None;
    };
    let version = version.and_then(tag::version);
    let known =
        version.zip(none_match).and_then(|(version, tags)| tags.of(version, Variant::Plain));
    let unchanged = known.is_some();
    let length = pieces.length()?;
    let body = match pieces.rest().get(..length) {
        Some(bytes) => Ok(bytes),
        // A long value is stored elsewhere; its length is the last thing written here.
        None => Err(reply.first_shared()?),
    };
    let mut answer = Answer::begin(output, envelope, if unchanged { 304 } else { 200 }, now);
    let own = version.map(|version| Tag::new(version, Variant::Plain));
    answer.represents(known.or(own));
    answer.header("X-Cache", state);
    answer.number("Age", age.unsigned_abs());
    answer.header("Cache-Control", format!("max-age={fresh}").as_bytes());
    if state == b"stale" {
        answer.header("Warning", b"110 - \"Response is Stale\"");
    }
    if unchanged {
        answer.empty();
        return Some(());
    }
    match body {
        Ok(bytes) => answer.text_body(JSON, bytes),
        Err(buffer) => answer.shared_text_body(JSON, buffer),
    }
    Some(())
}
