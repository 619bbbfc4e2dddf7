//! Texts of records. They come from other nodes, and are shown in lines of replies, in headers of
//! HTTP and on terminals: a record with a text that would be more there than a text is none.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

fn checked<'d, D: Deserializer<'d>>(
    deserializer: D,
    what: &str,
    allowed: impl Fn(char) -> bool,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.chars().all(allowed) { Ok(text) } else { Err(D::Error::custom(what)) }
}

/// An IP address, with or without a zone, or a name of domains: what `cluster-announce-ip` takes.
pub(crate) fn host<'d, D: Deserializer<'d>>(deserializer: D) -> Result<String, D::Error> {
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || ".:-_%".contains(sign);
    checked(deserializer, "no host", allowed)
}

/// A text of one line.
pub(crate) fn line<'d, D: Deserializer<'d>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, "no line of text", |sign| !sign.is_control())
}
