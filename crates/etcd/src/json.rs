//! JSON as Go's encoder writes it.

/// Appends a string. Bytes that are not UTF-8 become replacement characters, and characters that
/// mean something in HTML are escaped.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|character| write_character(out, character));
        chunk.invalid().iter().for_each(|_| out.extend_from_slice(b"\\ufffd"));
    }
    out.push(b'"');
}

fn write_character(out: &mut Vec<u8>, character: char) {
    match character {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// The members of an object, one after the other.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    /// Begins an object.
    pub fn begin(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    /// Goes on with an object that has members.
    pub fn resume(out: &'o mut Vec<u8>) -> Object<'o> {
        Object { out, is_empty: false }
    }

    /// Begins a member. Its value goes to the returned buffer.
    pub fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A member that is text.
    pub fn text(&mut self, name: &str, text: &[u8]) {
        string(self.member(name), text);
    }

    /// A member that is a number, left out if it is 0.
    pub fn number(&mut self, name: &str, number: i64) {
        if number != 0 {
            base::num::write_i64(self.member(name), number);
        }
    }

    /// A member that is an index, left out if it is 0.
    pub fn index(&mut self, name: &str, index: u64) {
        if index != 0 {
            base::num::write_u64(self.member(name), index);
        }
    }

    /// Ends it.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_go_does() {
        let text = |text: &[u8]| {
            let mut out = Vec::new();
            string(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(b"a\"\\\n\r\t\x01\x7f"), "\"a\\\"\\\\\\n\\r\\t\\u0001\x7f\"");
        assert_eq!(text(b"<a&b>"), "\"\\u003ca\\u0026b\\u003e\"");
        assert_eq!(text("é\u{2028}\u{fffd}".as_bytes()), "\"é\\u2028\u{fffd}\"");
        assert_eq!(text(b"\xff\xe2\x82x"), "\"\\ufffd\\ufffd\\ufffdx\"");
    }
}
