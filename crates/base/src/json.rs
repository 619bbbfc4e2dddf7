//! Finds the parts of a JSON text, without copying them.
//!
//! The caller must know that the text is JSON: the parts of any other text mean nothing. Each part
//! is the text as it was written, so numbers keep their digits, and no name is treated specially.

/// Goes through what is between the brackets of an object or an array.
#[derive(Clone, Debug)]
struct Parts<'t>(&'t [u8]);

impl<'t> Parts<'t> {
    fn of(text: &'t [u8], bracket: u8) -> Option<Parts<'t>> {
        let (first, rest) = text.trim_ascii_start().split_first()?;
        (*first == bracket).then_some(Parts(rest))
    }

    /// The next value, or nothing at the end.
    fn next(&mut self) -> Option<&'t [u8]> {
        let rest = self.0.trim_ascii_start();
        let rest = match rest.first()? {
            b',' | b':' => rest[1..].trim_ascii_start(),
            b'}' | b']' => return None,
            _ => rest,
        };
        let length = length_of_value(rest);
        self.0 = &rest[length..];
        Some(rest[..length].trim_ascii_end())
    }
}

/// The members of an object: their names, in quotes, and their values. `None` if the text is no
/// object.
pub fn members(text: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    let mut members = Members::of(text)?;
    Some(std::iter::from_fn(move || Some((members.name()?, members.value()))))
}

/// Goes through the members of an object, and into objects within it, in one pass over its text:
/// for each member its name, and then its value or the members of that.
#[derive(Clone, Debug)]
pub struct Members<'t>(Parts<'t>);

impl<'t> Members<'t> {
    /// The members of an object. `None` if the text is not an object.
    pub fn of(text: &'t [u8]) -> Option<Members<'t>> {
        Parts::of(text, b'{').map(Members)
    }

    /// The name of the next member, in quotes, or nothing at the end.
    pub fn name(&mut self) -> Option<&'t [u8]> {
        self.0.next()
    }

    /// The value of the member whose name came last.
    pub fn value(&mut self) -> &'t [u8] {
        self.0.next().unwrap_or_default()
    }

    /// The members of that value, if it is an object: to be visited to their end, and then given to
    /// [`Members::leave`].
    pub fn enter(&mut self) -> Option<Members<'t>> {
        let rest = self.0.0.trim_ascii_start();
        Members::of(rest.strip_prefix(b":").unwrap_or(rest))
    }

    /// Goes on behind an object within this one.
    pub fn leave(&mut self, inside: Members<'t>) {
        let rest = inside.0.0.trim_ascii_start();
        self.0.0 = rest.strip_prefix(b"}").unwrap_or(rest);
    }
}

/// The elements of an array. `None` if the text is no array.
pub fn elements(text: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut parts = Parts::of(text, b'[')?;
    Some(std::iter::from_fn(move || parts.next()))
}

/// The length of the value at the beginning of a text.
fn length_of_value(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at += length_of_string(&text[at + 1..]),
            b'{' | b'[' => depth += 1,
            b',' | b':' | b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return at;
        }
    }
    text.len()
}

/// The length of a string after its first quote, with its last.
pub fn length_of_string(text: &[u8]) -> usize {
    let (mut at, mut is_escaped) = (0, false);
    for byte in text {
        at += 1;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'t>(parts: impl Iterator<Item = &'t [u8]>) -> Vec<&'t str> {
        parts.map(|part| std::str::from_utf8(part).unwrap()).collect()
    }

    #[test]
    fn parts_are_found_as_they_were_written() {
        let text = br#" [ 1.50 ,"a,]\"" , {"b":[1,{}]},[ ] ,null] "#;
        let found = texts(elements(text).unwrap());
        assert_eq!(found, ["1.50", r#""a,]\"""#, r#"{"b":[1,{}]}"#, "[ ]", "null"]);
        let text = br#"{"a":1,"b\"}" : {"c":"}"} , "":[]}"#;
        let (names, values): (Vec<_>, Vec<_>) = members(text).unwrap().unzip();
        assert_eq!(texts(names.into_iter()), [r#""a""#, r#""b\"}""#, r#""""#]);
        assert_eq!(texts(values.into_iter()), ["1", r#"{"c":"}"}"#, "[]"]);
        assert_eq!(elements(b"[]").unwrap().count(), 0);
        assert_eq!(members(b" { } ").unwrap().count(), 0);
        assert!(members(b"[1]").is_none() && elements(b"{}").is_none() && members(b"").is_none());
    }

    #[test]
    fn objects_within_objects_are_visited_on_the_way() {
        let text = br#"{"a" : { "b":1, "c":{} } , "d":[{}],"e":{"f":{"g":2}}}"#;
        let mut outer = Members::of(text).unwrap();
        assert_eq!(outer.name(), Some(&br#""a""#[..]));
        let mut inner = outer.enter().unwrap();
        let pairs = std::iter::from_fn(|| Some([inner.name()?, inner.value()]));
        let all: Vec<_> = pairs.flatten().collect();
        assert_eq!(texts(all.into_iter()), [r#""b""#, "1", r#""c""#, "{}"]);
        outer.leave(inner);
        assert_eq!(outer.name(), Some(&br#""d""#[..]));
        assert!(outer.enter().is_none());
        assert_eq!(outer.value(), b"[{}]");
        assert_eq!(outer.name(), Some(&br#""e""#[..]));
        assert_eq!(outer.value(), br#"{"f":{"g":2}}"#);
        assert_eq!(outer.name(), None);
    }
}
