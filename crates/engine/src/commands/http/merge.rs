//! JSON merge patches (RFC 7396).
//!
//! What a patch does not name stays as it was written, byte for byte.

use std::collections::HashMap;

use base::json;
use serde::de::IgnoredAny;

use crate::handler::error::CommandError;

const NOT_JSON: CommandError = CommandError::text("WRONGTYPE the value of the key is not JSON");
const NO_PATCH: CommandError = CommandError::text("ERR the patch is not JSON");
const TOO_DEEP: CommandError = CommandError::text("ERR the patch is nested too deeply");

/// Objects within objects in a patch.
const DEEPEST: usize = 128;

/// A member that a patch names.
struct Change<'p> {
    /// Its place among the members of the patch.
    place: usize,
    /// Its name as it was written.
    name: &'p [u8],
    value: &'p [u8],
    /// The document has such a member.
    is_known: bool,
}

/// A JSON text with a merge patch applied to it.
pub(super) fn merged(document: &[u8], patch: &[u8]) -> Result<Vec<u8>, CommandError> {
    if !is_json(document) {
        return Err(NOT_JSON);
    }
    if !is_json(patch) {
        return Err(NO_PATCH);
    }
    let mut text = Vec::with_capacity(document.len() + patch.len());
    merge(Some(document), patch, 0, &mut text)?;
    Ok(text)
}

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Appends a value with a patch applied to it.
fn merge(
    own: Option<&[u8]>,
    patch: &[u8],
    depth: usize,
    text: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let Some(members) = json::members(patch) else {
        text.extend_from_slice(patch.trim_ascii());
        return Ok(());
    };
    if depth == DEEPEST {
        return Err(TOO_DEEP);
    }
    let mut changes: HashMap<String, Change<'_>> = HashMap::new();
    for (place, (name, value)) in members.enumerate() {
        changes.insert(decoded(name), Change { place, name, value, is_known: false });
    }
    let begin = text.len();
    for (name, value) in own.and_then(json::members).into_iter().flatten() {
        match changes.get_mut(&decoded(name)) {
            None => {
                name_member(begin, name, text);
                text.extend_from_slice(value);
            }
            Some(change) => {
                change.is_known = true;
                if change.value != b"null" {
                    name_member(begin, name, text);
                    merge(Some(value), change.value, depth + 1, text)?;
                }
            }
        }
    }
    let is_new = |change: &Change<'_>| !change.is_known && change.value != b"null";
    let mut new: Vec<_> = changes.into_values().filter(is_new).collect();
    new.sort_unstable_by_key(|change| change.place);
    for change in new {
        name_member(begin, change.name, text);
        merge(None, change.value, depth + 1, text)?;
    }
    if text.len() == begin {
        text.push(b'{');
    }
    text.push(b'}');
    Ok(())
}

/// Appends the name of the next member of the object that begins at `begin`.
fn name_member(begin: usize, name: &[u8], text: &mut Vec<u8>) {
    text.push(if text.len() == begin { b'{' } else { b',' });
    text.extend_from_slice(name);
    text.push(b':');
}

/// A name without its quotes and escapes. One that has a wrong escape is as it was written.
fn decoded(name: &[u8]) -> String {
    serde_json::from_slice(name).unwrap_or_else(|_| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(document: &str, patch: &str) -> String {
        let text = merged(document.as_bytes(), patch.as_bytes()).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn patches_do_what_the_rfc_shows() {
        for (document, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(patched(document, patch), expected, "{document} {patch}");
        }
    }

    #[test]
    fn what_a_patch_does_not_name_stays_as_it_is() {
        let document =
            r#"{"$serde_json::private::Number":"1","n":1.50 , "o":{ "p" : [1, 2] },"q":0}"#;
        let expected =
            r#"{"$serde_json::private::Number":"1","n":1.50,"o":{ "p" : [1, 2] },"q":1}"#;
        assert_eq!(patched(document, r#"{"q":1}"#), expected);
        assert_eq!(patched(r#"{"\u0061":1}"#, r#"{"a":2}"#), r#"{"\u0061":2}"#);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for (document, patch) in [("{", "{}"), ("{}", "{"), ("{} x", "{}"), ("", "{}"), ("{}", "")]
        {
            assert!(merged(document.as_bytes(), patch.as_bytes()).is_err());
        }
        assert!(merged(b"\"\xff\"", b"{}").is_err());
        let deep = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
        assert!(merged(b"{}", deep.as_bytes()).is_err());
        assert!(merged(deep.as_bytes(), b"{\"b\":1}").is_ok());
    }
}
