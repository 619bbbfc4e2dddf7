//! Whether a text is JSON, with Go's words for what is wrong with it.

use base::limits::ETCD_JSON_DEPTH;

/// Go's name for a state of the scan when a byte does not fit.
type Wrong = &'static str;

const VALUE: Wrong = "looking for beginning of value";
const NUMBER: Wrong = "in numeric literal";

/// A value of a text, or the name of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    /// How many arrays and objects are around it.
    pub(crate) depth: usize,
    /// It is the name of a member.
    pub(crate) is_name: bool,
    /// Its text; of an array or object only the bracket.
    pub(crate) text: &'t [u8],
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Scan<'t> {
    /// The next byte: after the text comes one space, and nothing after that.
    fn peek(&self) -> Result<u8, String> {
        match self.text.get(self.at) {
            Some(byte) => Ok(*byte),
            None if self.at == self.text.len() => Ok(b' '),
            None => Err("unexpected end of JSON input".into()),
        }
    }

    fn wrong<T>(&self, wrong: &str) -> Result<T, String> {
        Err(format!("invalid character {} {wrong}", shown(self.peek()?)))
    }

    fn skip_space(&mut self) -> Result<u8, String> {
        while matches!(self.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        self.peek()
    }

    fn take(&mut self, fits: impl Fn(u8) -> bool, wrong: &str) -> Result<u8, String> {
        let byte = self.peek()?;
        if !fits(byte) {
            return self.wrong(wrong);
        }
        self.at += 1;
        Ok(byte)
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        self.at += 1;
        for own in word.bytes().skip(1) {
            let wrong = format!("in literal {word} (expecting '{}')", char::from(own));
            self.take(|byte| byte == own, &wrong)?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.take(|byte| byte >= b' ', "in string literal")? {
                b'"' => return Ok(()),
                b'\\' => {
                    let escape = |byte| b"bfnrtu\\/\"".contains(&byte);
                    if self.take(escape, "in string escape code")? == b'u' {
                        for _ in 0..4 {
                            let is_digit = |byte: u8| byte.is_ascii_hexdigit();
                            self.take(is_digit, "in \\u hexadecimal character escape")?;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn digits(&mut self, wrong: Wrong) -> Result<(), String> {
        self.take(|byte| byte.is_ascii_digit(), wrong)?;
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits(NUMBER)?;
        }
        if self.peek()? == b'.' {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek()?, b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek()?, b'+' | b'-') {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    /// A value without its nested values. Returns the bracket that it opens.
    fn value(&mut self) -> Result<Option<u8>, String> {
        match self.skip_space()? {
            b'"' => self.string()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            bracket @ (b'[' | b'{') => {
                self.at += 1;
                return Ok(Some(bracket));
            }
            _ => return self.wrong(VALUE),
        }
        Ok(None)
    }

    /// The name of a member, and the colon.
    fn name(&mut self) -> Result<&'t [u8], String> {
        if self.skip_space()? != b'"' {
            return self.wrong("looking for beginning of object key string");
        }
        let begin = self.at;
        self.string()?;
        let name = &self.text[begin..self.at];
        self.skip_space()?;
        self.take(|byte| byte == b':', "after object key")?;
        Ok(name)
    }
}

/// A byte as Go quotes it.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".into(),
        b'"' => "'\"'".into(),
        0x07 => "'\\a'".into(),
        0x08 => "'\\b'".into(),
        0x0b => "'\\v'".into(),
        0x0c => "'\\f'".into(),
        b'\t' => "'\\t'".into(),
        b'\n' => "'\\n'".into(),
        b'\r' => "'\\r'".into(),
        b'\\' => "'\\\\'".into(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// The values of a text, those that contain others first. Values from the depth `deepest` on are
/// left out.
///
/// # Errors
/// It is not JSON: Go's error.
pub(crate) fn parts(text: &[u8], deepest: usize) -> Result<Vec<Part<'_>>, String> {
    let mut scan = Scan { text, at: 0 };
    let (mut parts, mut open) = (Vec::new(), Vec::new());
    loop {
        // A value begins, and in an object its name before it.
        if open.last() == Some(&b'{') {
            let name = scan.name()?;
            if open.len() < deepest {
                parts.push(Part { depth: open.len(), is_name: true, text: name });
            }
        }
        scan.skip_space()?;
        let begin = scan.at;
        let bracket = scan.value()?;
        if open.len() < deepest {
            let text = &text[begin..scan.at];
            parts.push(Part { depth: open.len(), is_name: false, text });
        }
        if let Some(bracket) = bracket {
            if open.len() == ETCD_JSON_DEPTH {
                return Err("exceeded max depth".into());
            }
            open.push(bracket);
            // The brackets of ASCII are two apart.
            if scan.skip_space()? != bracket + 2 {
                continue;
            }
            scan.at += 1;
            open.pop();
        }
        // A value has ended, and maybe the values around it.
        loop {
            let Some(&bracket) = open.last() else {
                while scan.at < text.len() {
                    if !matches!(scan.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
                        return scan.wrong("after top-level value");
                    }
                    scan.at += 1;
                }
                return Ok(parts);
            };
            let byte = scan.skip_space()?;
            if byte == b',' {
                scan.at += 1;
                break;
            }
            if byte != bracket + 2 {
                return scan.wrong(match bracket {
                    b'{' => "after object key:value pair",
                    _ => "after array element",
                });
            }
            scan.at += 1;
            open.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_two_apart() {
        assert_eq!((b'[' + 2, b'{' + 2), (b']', b'}'));
    }

    /// The answers of a Go program to these.
    #[test]
    fn what_is_wrong_is_said_as_by_go() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            (" {\"a\": [1, {}, [] ,-0.5e+7 , true,false , null ] } ", ""),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("{\"a\":nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("{\"a\":-}", "invalid character '}' in numeric literal"),
            ("{\"a\":1.}", "invalid character '}' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("{\"a\":01}", "invalid character '1' after object key:value pair"),
            ("{\"a\":\"\\x\"}", "invalid character 'x' in string escape code"),
            ("{\"a\":\"\\u12g4\"}", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"\t", "invalid character '\\t' in string literal"),
            ("{}}", "invalid character '}' after top-level value"),
            ("'", "invalid character '\\'' looking for beginning of value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
            ("{\"a\":\"é", "unexpected end of JSON input"),
            ("[[1]", "unexpected end of JSON input"),
            ("7", ""),
            ("\"\\", "invalid character ' ' in string escape code"),
        ] {
            let said = parts(text.as_bytes(), 1).err().unwrap_or_default();
            assert_eq!(said, expected, "{text}");
        }
        assert!(
            parts("[".repeat(ETCD_JSON_DEPTH).as_bytes(), 1)
                .is_err_and(|said| said.contains("end of"))
        );
        let deep = "[".repeat(ETCD_JSON_DEPTH + 1);
        assert_eq!(parts(deep.as_bytes(), 1), Err("exceeded max depth".into()));
    }
}
