//! Takes a text apart into words, roughly as shells, TOML, JSON and headers have them.

/// A word, or the text between two quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Where it begins, in bytes.
    pub(super) at: usize,
    pub(super) is_quoted: bool,
    /// A command may begin with it.
    pub(super) begins: bool,
    /// It is the first of its line, so that it is no value of the word before it.
    pub(super) begins_line: bool,
    /// `=` or `:` follows.
    pub(super) is_assigned: bool,
}

impl<'a> Token<'a> {
    /// A word that stands by itself.
    pub(super) fn word(text: &'a str, begins: bool) -> Self {
        Token { text, at: 0, is_quoted: true, begins, begins_line: begins, is_assigned: false }
    }
}

/// The words of a text. Words of a list between brackets belong to one command when they are
/// quoted; without quotes, each item begins a new one.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let (mut at, mut begins, mut begins_line, mut behind_comma) = (0, true, true, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => (begins, begins_line, at) = (true, true, at + 1),
            b'[' | b']' | b'{' | b'}' => (begins, at) = (true, at + 1),
            b',' => (behind_comma, at) = (true, at + 1),
            b'=' | b':' => {
                if let Some(last) =
                    tokens.last_mut().filter(|last| !begins_line && last.is_end(at, text))
                {
                    last.is_assigned = true;
                }
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let quoted = quoted(text, at);
                let is_quoted = quoted.is_some();
                let (from, to, next) = quoted.unwrap_or_else(|| {
                    let end = bare_end(text, at);
                    (at, end, end)
                });
                let mut word = &text[from..to];
                let mut is_assigned = false;
                // A name with its sign at its end, and the value apart: `password: x`, `a="x"`.
                if !is_quoted && let Some(name) = word.strip_suffix(['=', ':']) {
                    (word, is_assigned) = (name, true);
                }
                let begins_here = begins || behind_comma && !is_quoted;
                tokens.push(Token {
                    text: word,
                    at: from,
                    is_quoted,
                    begins: begins_here,
                    begins_line,
                    is_assigned,
                });
                (begins, begins_line, behind_comma, at) = (false, false, false, next);
            }
        }
    }
    tokens
}

impl Token<'_> {
    /// Whether nothing but its quote and spaces is between its end and a place.
    fn is_end(&self, at: usize, text: &str) -> bool {
        let between = text.get(self.at + self.text.len()..at).unwrap_or("x");
        between.trim_matches([' ', '\t', '"', '\'']).is_empty()
    }
}

/// The text between the quotes that begin here: from, to, and where it goes on. None when no quote
/// begins here, or none closes it on its line, as with an apostrophe.
fn quoted(text: &str, at: usize) -> Option<(usize, usize, usize)> {
    for quote in ["\"\"\"", "'''"] {
        if text[at..].starts_with(quote) {
            let from = at + quote.len();
            let length = text[from..].find(quote)?;
            return Some((from, from + length, from + length + quote.len()));
        }
    }
    let bytes = text.as_bytes();
    let quote = *bytes.get(at).filter(|byte| **byte == b'"' || **byte == b'\'')?;
    let mut end = at + 1;
    loop {
        match *bytes.get(end)? {
            b'\n' => return None,
            b'\\' if quote == b'"' => end += 1,
            byte if byte == quote => return Some((at + 1, end, end + 1)),
            _ => {}
        }
        end += 1;
    }
}

/// Where a word without quotes ends.
fn bare_end(text: &str, at: usize) -> usize {
    let ends = |byte: u8| byte.is_ascii_whitespace() || b",[]{}\"".contains(&byte);
    let rest = &text.as_bytes()[at + 1..];
    at + 1 + rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len())
}
