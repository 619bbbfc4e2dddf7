//! What a file says of the one before it. The two are synced separately, so a stop of the machine
//! may keep the later file and lose the end of the earlier one. These annotations tell such a stop
//! from damage.

/// The beginning of an annotation with that.
const BEFORE: &[u8] = b"#BEFORE:";

/// In place of a number of bytes.
const DURABLE: &[u8] = b"durable";

/// No annotation of this kind is longer.
pub const BEFORE_MAX: usize = 40;

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The file before had this many bytes when this one began, and may not have been durable then.
    Written(u64),
    /// All files before have become durable.
    Durable,
}

impl Before {
    /// Reads a line of a file.
    pub fn parse(line: &[u8]) -> Option<Before> {
        let text = line.strip_prefix(BEFORE)?.trim_ascii_end();
        if text == DURABLE {
            return Some(Before::Durable);
        }
        let length = base::num::parse_i64(text)?;
        u64::try_from(length).ok().map(Before::Written)
    }

    /// What a file says at its beginning, of which these are the first [`BEFORE_MAX`] bytes.
    pub fn at_start(first: &[u8]) -> Option<Before> {
        let end = memchr::memchr(b'\n', first)?;
        Before::parse(&first[..end])
    }

    /// Writes the line.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEFORE);
        match self {
            Before::Written(length) => out.extend_from_slice(length.to_string().as_bytes()),
            Before::Durable => out.extend_from_slice(DURABLE),
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for before in [Before::Written(0), Before::Written(i64::MAX as u64), Before::Durable] {
            let mut line = Vec::new();
            before.write(&mut line);
            assert!(line.len() <= BEFORE_MAX);
            assert_eq!(Before::parse(&line), Some(before));
            assert_eq!(Before::at_start(&line), Some(before));
            line.pop();
            assert_eq!(Before::at_start(&line), None, "it breaks off");
        }
        for other in ["", "#TS:1", "#BEFORE:", "#BEFORE:-1", "#BEFORE:all", "*1\r\n"] {
            assert_eq!(Before::at_start(format!("{other}\r\n").as_bytes()), None);
        }
    }
}
