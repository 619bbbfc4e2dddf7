//! The fields of a request: those of its body, and those of its query.

use std::borrow::Cow;

use crate::error::{Code, Error};

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A field that means something.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Field {
            $($(#[$doc])* $name,)*
        }

        impl Field {
            const ALL: &[Field] = &[$(Field::$name),*];

            /// Its name in requests.
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$name => $text,)*
                }
            }
        }
    };
}

fields! {
    /// The value to store.
    Value = "value";
    /// Seconds after which the node expires; no expiry if it is empty.
    Ttl = "ttl";
    /// A directory is meant.
    Dir = "dir";
    /// The node is there, or is not.
    PrevExist = "prevExist";
    /// It has this value.
    PrevValue = "prevValue";
    /// It was changed last at this index.
    PrevIndex = "prevIndex";
    /// With all that is below.
    Recursive = "recursive";
    /// By name.
    Sorted = "sorted";
    /// The answer is the next event.
    Wait = "wait";
    /// The first event that counts.
    WaitIndex = "waitIndex";
    /// The answer goes on from event to event.
    Stream = "stream";
    /// Only the time to live is changed, and waiting clients are not told.
    Refresh = "refresh";
    /// The answer is that of a majority. There is one server, which agrees with itself.
    Quorum = "quorum";
    /// The answer does not repeat the value.
    NoValueOnSuccess = "noValueOnSuccess";
}

/// The fields of a request; if a field is repeated, the first one.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Form<'f> {
    values: [Option<Cow<'f, [u8]>>; Field::ALL.len()],
}

impl<'f> Form<'f> {
    /// Reads the fields of a body, if it is a form, and then those of a query.
    ///
    /// # Errors
    /// Something is not encoded as it should be.
    pub fn read(body: &'f [u8], query: &'f [u8]) -> Result<Form<'f>, Error> {
        let mut form = Form::default();
        form.read_part(body)?;
        form.read_part(query)?;
        Ok(form)
    }

    fn read_part(&mut self, text: &'f [u8]) -> Result<(), Error> {
        let mut wrong = None;
        for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            if pair.contains(&b';') {
                // It is reported even if something before it is wrong too.
                let cause = "invalid semicolon separator in query";
                wrong = Some(Error::of_request(Code::InvalidForm, cause));
                continue;
            }
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let (name, value) = (&pair[..at], pair.get(at + 1..).unwrap_or_default());
            match decoded(name).and_then(|name| Ok((name, decoded(value)?))) {
                Ok((name, value)) => self.add(&name, value),
                Err(error) => drop(wrong.get_or_insert(error)),
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Adds a field, unless it is there already or has no meaning.
    pub fn add(&mut self, name: &[u8], value: Cow<'f, [u8]>) {
        let known = Field::ALL.iter().find(|field| field.name().as_bytes() == name);
        if let Some(field) = known {
            self.values[*field as usize].get_or_insert(value);
        }
    }

    /// A field that is there.
    pub fn get(&self, field: Field) -> Option<&[u8]> {
        self.values[field as usize].as_deref()
    }

    /// All that are there.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        Field::ALL.iter().filter_map(|field| Some((field.name(), self.get(*field)?)))
    }
}

/// A name or a value as it is meant: a plus sign is a space, and percent signs begin bytes.
fn decoded(text: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = behind.first_chunk().and_then(|[high, low]| {
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
                });
                let Some(byte) = digits else { return Err(invalid_escape(behind)) };
                bytes.push(byte);
                rest = &behind[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(Cow::Owned(bytes))
}

/// `behind` is the text after the percent sign.
fn invalid_escape(behind: &[u8]) -> Error {
    let mut cause = b"invalid URL escape \"%".to_vec();
    for chunk in behind[..behind.len().min(2)].utf8_chunks() {
        chunk.valid().chars().for_each(|character| quote(&mut cause, character));
        for byte in chunk.invalid() {
            cause.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    cause.push(b'"');
    Error { cause, ..Error::of_request(Code::InvalidForm, "") }
}

/// Appends a character as Go quotes it.
fn quote(out: &mut Vec<u8>, character: char) {
    match character {
        '\x07' => out.extend_from_slice(b"\\a"),
        '\x08' => out.extend_from_slice(b"\\b"),
        '\x0b' => out.extend_from_slice(b"\\v"),
        '\x0c' => out.extend_from_slice(b"\\f"),
        '\t' | '\n' | '\r' | '"' | '\\' => {
            out.extend_from_slice(character.escape_default().to_string().as_bytes());
        }
        '\0'..='\x1f' | '\x7f' => {
            out.extend_from_slice(format!("\\x{:02x}", u32::from(character)).as_bytes());
        }
        '\u{80}'..='\u{a0}' | '\u{ad}' => {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_field_counts() {
        let form = Form::read(b"value=a+b%2B&value=c&x=y&dir", b"dir=true&ttl=5&=1&&").unwrap();
        let all: Vec<_> = form.each().collect();
        assert_eq!(all, [("value", &b"a b+"[..]), ("ttl", b"5"), ("dir", b"")]);
        assert_eq!(form.get(Field::Sorted), None);
    }

    #[test]
    fn what_is_not_encoded_is_refused() {
        let refused = |body: &str| {
            let error = Form::read(body.as_bytes(), b"").unwrap_err();
            (error.code as u64, String::from_utf8(error.cause).unwrap())
        };
        assert_eq!(refused("a=%zzy"), (210, "invalid URL escape \"%zz\"".into()));
        assert_eq!(refused("%4=1"), (210, "invalid URL escape \"%4\"".into()));
        assert_eq!(refused("a=1;b=2"), (210, "invalid semicolon separator in query".into()));
        assert_eq!(refused("%zz&a;b&%4"), (210, "invalid semicolon separator in query".into()));
        assert_eq!(refused("a=%\"\n"), (210, "invalid URL escape \"%\\\"\\n\"".into()));
        assert_eq!(refused("a=%\x01é"), (210, "invalid URL escape \"%\\x01\\xc3\"".into()));
    }
}
