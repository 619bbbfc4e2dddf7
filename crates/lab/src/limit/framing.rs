//! Counts the requests in received bytes, and looks at nothing that it does not need for that.

/// The longest line or head that is kept: a client needs no more of it to be understood.
const LONGEST_LINE: usize = 64 * 1024;

/// These bytes are no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Requests that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Commands of the Redis protocol.
    pub(super) commands: usize,
    /// HTTP requests.
    pub(super) pages: usize,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Before a request.
    #[default]
    Start,
    /// Before an argument of a command; this many are missing.
    Arguments(u64),
    /// Within a string: this many bytes of it, and then this many arguments, are missing.
    Text(u64, u64),
    /// In the head of an HTTP request, whose body has this many bytes.
    Head(u64),
    /// In the body of an HTTP request.
    Body(u64),
}

/// The requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    part: Part,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
}

impl Framing {
    /// Takes the next bytes; returns how many requests end within them.
    ///
    /// # Errors
    /// [`Malformed`]: the connection is of no use any more.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<Counted, Malformed> {
        let mut counted = Counted::default();
        while !bytes.is_empty() {
            match self.part {
                Part::Text(missing, arguments) => {
                    let taken = missing.min(bytes.len() as u64);
                    bytes = &bytes[taken as usize..];
                    self.part = match (missing - taken, arguments) {
                        (0, 0) => {
                            counted.commands += 1;
                            Part::Start
                        }
                        (0, arguments) => Part::Arguments(arguments),
                        (missing, arguments) => Part::Text(missing, arguments),
                    };
                }
                Part::Body(missing) => {
                    let taken = missing.min(bytes.len() as u64);
                    bytes = &bytes[taken as usize..];
                    self.part = Part::Body(missing - taken);
                    self.end_of_body(&mut counted);
                }
                Part::Start | Part::Arguments(_) | Part::Head(_) => {
                    let Some(end) = memchr::memchr(b'\n', bytes) else {
                        self.line.extend_from_slice(bytes);
                        let is_endless = self.line.len() > LONGEST_LINE;
                        return if is_endless { Err(Malformed) } else { Ok(counted) };
                    };
                    let (line, rest) = bytes.split_at(end + 1);
                    bytes = rest;
                    if self.line.is_empty() {
                        self.take_line(line.trim_ascii_end(), &mut counted)?;
                    } else {
                        let mut whole = std::mem::take(&mut self.line);
                        whole.extend_from_slice(line);
                        self.take_line(whole.trim_ascii_end(), &mut counted)?;
                    }
                }
            }
        }
        Ok(counted)
    }

    fn take_line(&mut self, line: &[u8], counted: &mut Counted) -> Result<(), Malformed> {
        match (self.part, line) {
            (Part::Start, []) => {}
            (Part::Start, [b'*', digits @ ..]) => match number(digits)? {
                0 => {}
                arguments => self.part = Part::Arguments(arguments),
            },
            (Part::Start, line) if line.ends_with(b" HTTP/1.1") => self.part = Part::Head(0),
            (Part::Start, _) => counted.commands += 1,
            (Part::Arguments(missing), [b'$', digits @ ..]) => {
                self.part = Part::Text(number(digits)? + 2, missing - 1);
            }
            (Part::Head(length), []) => {
                self.part = Part::Body(length);
                self.end_of_body(counted);
            }
            (Part::Head(_), line) => {
                if let Some(value) = header(line, b"content-length") {
                    self.part = Part::Head(number(value)?);
                } else if header(line, b"transfer-encoding").is_some() {
                    return Err(Malformed);
                }
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn end_of_body(&mut self, counted: &mut Counted) {
        if self.part == Part::Body(0) {
            self.part = Part::Start;
            counted.pages += 1;
        }
    }
}

/// The value of a header, if the line is of that name (in lower case).
fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let colon = memchr::memchr(b':', line)?;
    line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
}

fn number(digits: &[u8]) -> Result<u64, Malformed> {
    base::num::parse_u64(digits).filter(|number| *number < 1 << 40).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(stream: &[u8]) -> Result<(usize, usize), Malformed> {
        let whole = Framing::default().take(stream)?;
        let mut framing = Framing::default();
        let mut pieces = Counted::default();
        for byte in stream.chunks(1) {
            let counted = framing.take(byte)?;
            pieces.commands += counted.commands;
            pieces.pages += counted.pages;
        }
        assert_eq!(whole, pieces);
        Ok((whole.commands, whole.pages))
    }

    #[test]
    fn commands_are_counted_in_both_forms() {
        let stream = b"*2\r\n$3\r\nGET\r\n$3\r\na\nb\r\nPING\r\n\r\n*0\r\n*1\r\n$0\r\n\r\n";
        assert_eq!(count(stream), Ok((3, 0)));
    }

    #[test]
    fn pages_are_counted_with_their_bodies() {
        let stream = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST /a HTTP/1.1\r\nContent-Length: 3\r\n\
                       \r\na\nbGET /b HTTP/1.1\r\n\r\n";
        assert_eq!(count(stream), Ok((0, 3)));
    }

    #[test]
    fn other_bytes_are_refused() {
        for stream in ["*x\r\n", "*1\r\n+a\r\n", "*1\r\n$-1\r\n"] {
            assert_eq!(count(stream.as_bytes()), Err(Malformed), "{stream}");
        }
        assert_eq!(Framing::default().take(&[b'x'; LONGEST_LINE + 1]), Err(Malformed));
    }
}
