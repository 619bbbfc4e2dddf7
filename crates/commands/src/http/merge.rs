//! JSON merge patches (RFC 7396).
//!
//! What a patch does not name stays as it was written, byte for byte.

use std::collections::HashMap;

use base::json::Members;
use serde::de::IgnoredAny;

use engine::command::error::CommandError;

const NOT_JSON: CommandError = CommandError::text("WRONGTYPE the value of the key is not JSON");
const NO_PATCH: CommandError = CommandError::text("ERR the patch is not JSON");
const TOO_DEEP: CommandError = CommandError::text("ERR the patch is nested too deeply");
const NAMED_TWICE: CommandError =
    CommandError::text("WRONGTYPE the value of the key has what the patch names more than once");

/// Objects within objects in a patch.
const DEEPEST: usize = 128;

/// A patch, or a part of one.
enum Patch<'p> {
    /// What takes the place of a value.
    Value(&'p [u8]),
    /// What becomes of members, with their names as they were written.
    Members(Vec<(&'p [u8], Patch<'p>)>),
}

impl<'p> Patch<'p> {
    fn read(text: &'p [u8]) -> Result<Patch<'p>, CommandError> {
        match Members::of(text) {
            Some(mut members) => Patch::of(&mut members, 0),
            None => Ok(Patch::Value(text.trim_ascii())),
        }
    }

    fn of(members: &mut Members<'p>, depth: usize) -> Result<Patch<'p>, CommandError> {
        if depth == DEEPEST {
            return Err(TOO_DEEP);
        }
        let mut changes = Vec::new();
        while let Some(name) = members.name() {
            let change = match members.enter() {
                Some(mut inside) => {
                    let change = Patch::of(&mut inside, depth + 1)?;
                    members.leave(inside);
                    change
                }
                None => Patch::Value(members.value()),
            };
            changes.push((name, change));
        }
        Ok(Patch::Members(changes))
    }

    /// Whether it removes a member.
    fn removes(&self) -> bool {
        matches!(self, Patch::Value(b"null"))
    }
}

/// A member that a patch names.
struct Change<'p> {
    /// Its place among the members of the patch.
    place: usize,
    /// Its name as it was written.
    name: &'p [u8],
    patch: &'p Patch<'p>,
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
    // A member that is there twice would be changed twice: a few bytes would become any number.
    let most = document.len() + patch.len();
    let mut merged = Merged { text: Vec::with_capacity(most), most };
    match Patch::read(patch)? {
        Patch::Value(value) => merged.add(value)?,
        Patch::Members(changes) => merged.merge(Members::of(document).as_mut(), &changes)?,
    }
    Ok(merged.text)
}

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// The document that is being made.
struct Merged {
    text: Vec<u8>,
    /// The most bytes that it may have: those of the document and of the patch.
    most: usize,
}

impl Merged {
    fn add(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        if bytes.len() > self.most - self.text.len() {
            return Err(NAMED_TWICE);
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds the next member of the object that begins at `begin`.
    fn member(&mut self, begin: usize, name: &[u8], value: &[u8]) -> Result<(), CommandError> {
        self.name(begin, name)?;
        self.add(value)
    }

    /// Adds its name.
    fn name(&mut self, begin: usize, name: &[u8]) -> Result<(), CommandError> {
        self.add(if self.text.len() == begin { b"{" } else { b"," })?;
        self.add(name)?;
        self.add(b":")
    }

    /// Adds an object with changes applied to it.
    fn merge(
        &mut self,
        mut own: Option<&mut Members<'_>>,
        changes: &[(&[u8], Patch<'_>)],
    ) -> Result<(), CommandError> {
        let mut by_name: HashMap<String, Change<'_>> = HashMap::new();
        for (place, (name, patch)) in changes.iter().enumerate() {
            by_name.insert(decoded(name), Change { place, name, patch, is_known: false });
        }
        let begin = self.text.len();
        while let Some(own) = &mut own
            && let Some(name) = own.name()
        {
            match by_name.get_mut(&decoded(name)) {
                None => self.member(begin, name, own.value())?,
                // Each time it would take as long as the patch is.
                Some(Change { is_known: true, patch: Patch::Members(_), .. }) => {
                    return Err(NAMED_TWICE);
                }
                Some(change) => {
                    change.is_known = true;
                    self.change(own, (begin, name), change.patch)?;
                }
            }
        }
        let is_new = |change: &Change<'_>| !change.is_known && !change.patch.removes();
        let mut new: Vec<_> = by_name.into_values().filter(is_new).collect();
        new.sort_unstable_by_key(|change| change.place);
        for change in new {
            match change.patch {
                Patch::Value(value) => self.member(begin, change.name, value)?,
                Patch::Members(changes) => {
                    self.name(begin, change.name)?;
                    self.merge(None, changes)?;
                }
            }
        }
        if self.text.len() == begin {
            self.add(b"{")?;
        }
        self.add(b"}")
    }

    /// Adds the member whose name came last, unless the patch removes it.
    fn change(
        &mut self,
        own: &mut Members<'_>,
        (begin, name): (usize, &[u8]),
        patch: &Patch<'_>,
    ) -> Result<(), CommandError> {
        match patch {
            Patch::Value(value) => {
                own.value();
                if patch.removes() { Ok(()) } else { self.member(begin, name, value) }
            }
            Patch::Members(changes) => {
                self.name(begin, name)?;
                match own.enter() {
                    Some(mut inside) => {
                        self.merge(Some(&mut inside), changes)?;
                        own.leave(inside);
                        Ok(())
                    }
                    None => {
                        own.value();
                        self.merge(None, changes)
                    }
                }
            }
        }
    }
}

/// A name without its quotes and escapes. A name with a wrong escape stays as it was written.
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
    fn members_that_a_patch_does_not_name_stay() {
        let document =
            r#"{"$serde_json::private::Number":"1","n":1.50 , "o":{ "p" : [1, 2] },"q":0}"#;
        let expected =
            r#"{"$serde_json::private::Number":"1","n":1.50,"o":{ "p" : [1, 2] },"q":1}"#;
        assert_eq!(patched(document, r#"{"q":1}"#), expected);
        assert_eq!(patched(r#"{"\u0061":1}"#, r#"{"a":2}"#), r#"{"\u0061":2}"#);
    }

    #[test]
    fn a_member_that_is_there_twice_makes_no_long_document() {
        assert_eq!(patched(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":4}"#), r#"{"a":4,"b":2,"a":4}"#);
        let document = format!("{{{}\"b\":1}}", r#""a":{},"#.repeat(1000));
        let long = "x".repeat(1000);
        for patch in [format!(r#"{{"a":"{long}"}}"#), format!(r#"{{"a":{{"c":"{long}"}}}}"#)] {
            let refused = merged(document.as_bytes(), patch.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), "WRONGTYPE", "{refused}");
        }
        assert_eq!(patched(&document, r#"{"a":null}"#), r#"{"b":1}"#);
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
