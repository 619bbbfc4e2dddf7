//! Finds where HTTP/1.1 responses end, in pieces of any size: heads are parsed, bodies are counted
//! down, and only the beginning of an error's is kept.

/// How long the head of a response may be.
const LONGEST_HEAD: usize = 64 * 1024;
/// Bytes that are kept of the body of an error.
const ERROR_BODY: usize = 300;
/// The status of an answer that sends the client to another address.
const SENT_ON: &[u8] = b"307";
/// Digits of a status.
const STATUS_LENGTH: usize = 3;
/// How many headers a response may have.
const MOST_HEADERS: usize = 100;

/// These bytes are no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no HTTP/1.1 response: {0}")]
pub(crate) struct ResponseError(&'static str);

/// Where a response stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// In its head.
    #[default]
    Head,
    /// This many bytes of its body are missing.
    Body(u64),
    /// In the line with the length of a chunk.
    ChunkLength,
    /// This many bytes of a chunk and its line end are missing.
    Chunk(u64),
    /// In the headers after the last chunk.
    Trailer,
    /// The end of the connection ends it.
    UntilClose,
}

/// The scanner of one connection.
#[derive(Debug, Default)]
pub(crate) struct ResponseScanner {
    part: Part,
    /// A head, or a line, whose end has not arrived.
    kept: Vec<u8>,
    /// Bytes of the response so far.
    length: u64,
    /// The status, if it is an error, and the beginning of its body behind a space. Of 307, where
    /// it sends the client.
    error: Option<Vec<u8>>,
    /// The server closes the connection after this response.
    closes: bool,
}

impl ResponseScanner {
    /// Takes the next bytes, and calls `reply` for each response that ends within them, with its
    /// length, and with its status when it is 400 or above, with the beginning of its body behind a
    /// space, or when it is 307, with the address behind a space. `is_bodiless` says that the
    /// responses are to HEAD, and have no body even if their heads announce one.
    ///
    /// # Errors
    /// [`ResponseError`]; the connection is of no use any more.
    pub(crate) fn scan(
        &mut self,
        mut bytes: &[u8],
        is_bodiless: bool,
        mut reply: impl FnMut(u64, Option<&[u8]>),
    ) -> Result<(), ResponseError> {
        while !bytes.is_empty() {
            let before = self.part;
            let taken = match self.part {
                Part::Head => self.take_head(bytes, is_bodiless)?,
                Part::Body(missing) => {
                    let taken = missing.min(bytes.len() as u64);
                    self.part = Part::Body(missing - taken);
                    taken as usize
                }
                Part::Chunk(missing) => {
                    let taken = missing.min(bytes.len() as u64);
                    let rest = missing - taken;
                    self.part = if rest == 0 { Part::ChunkLength } else { Part::Chunk(rest) };
                    taken as usize
                }
                Part::ChunkLength | Part::Trailer => self.take_line(bytes)?,
                Part::UntilClose => bytes.len(),
            };
            if matches!(before, Part::Body(_) | Part::Chunk(_) | Part::UntilClose) {
                self.keep(&bytes[..taken]);
            }
            self.length += taken as u64;
            bytes = &bytes[taken..];
            if self.part == Part::Body(0) {
                self.finish(&mut reply);
            }
        }
        Ok(())
    }

    /// The connection has ended, which may be how a response ends.
    pub(crate) fn end(&mut self, mut reply: impl FnMut(u64, Option<&[u8]>)) {
        if self.part == Part::UntilClose {
            self.finish(&mut reply);
        }
    }

    /// Whether the server announced that it closes the connection after the last response.
    pub(crate) fn closes(&self) -> bool {
        self.closes
    }

    /// Forgets the unfinished response, for a new connection.
    pub(crate) fn reset(&mut self) {
        *self = ResponseScanner::default();
    }

    fn finish(&mut self, reply: &mut impl FnMut(u64, Option<&[u8]>)) {
        self.part = Part::Head;
        let length = std::mem::take(&mut self.length);
        match self.error.take() {
            None => reply(length, None),
            Some(status) => reply(length, Some(&status)),
        }
    }

    /// Keeps the beginning of the body of an error.
    fn keep(&mut self, body: &[u8]) {
        let Some(error) = self.error.as_mut().filter(|error| !error.starts_with(SENT_ON)) else {
            return;
        };
        if error.len() == STATUS_LENGTH && !body.is_empty() {
            error.push(b' ');
        }
        let room = (STATUS_LENGTH + 1 + ERROR_BODY).saturating_sub(error.len());
        error.extend_from_slice(&body[..room.min(body.len())]);
    }

    /// Looks for the end of a head; returns how many bytes belong to it.
    fn take_head(&mut self, bytes: &[u8], is_bodiless: bool) -> Result<usize, ResponseError> {
        let kept = self.kept.len();
        // The usual head comes in one piece and is understood where it lies.
        if kept == 0
            && let Some(at) = memchr::memmem::find(bytes, b"\r\n\r\n")
        {
            self.understand(&bytes[..at + 4], is_bodiless)?;
            return Ok(at + 4);
        }
        let room = LONGEST_HEAD.saturating_sub(kept).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        let from = kept.saturating_sub(3);
        let Some(at) = memchr::memmem::find(&self.kept[from..], b"\r\n\r\n") else {
            if self.kept.len() == LONGEST_HEAD {
                return Err(ResponseError("its head is too long"));
            }
            return Ok(bytes.len());
        };
        let end = from + at + 4;
        let head = std::mem::take(&mut self.kept);
        self.understand(&head[..end], is_bodiless)?;
        Ok(end - kept)
    }

    fn understand(&mut self, head: &[u8], is_bodiless: bool) -> Result<(), ResponseError> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(ResponseError("its head is incomplete")),
            Err(_) => return Err(ResponseError("its head is malformed")),
        }
        let status = response.code.unwrap_or(0);
        self.error = (status >= 400).then(|| format!("{status:03}").into_bytes());
        self.closes = response.version == Some(0);
        let (mut length, mut is_chunked) = (None, false);
        if status == 307 {
            let location =
                response.headers.iter().find(|own| own.name.eq_ignore_ascii_case("location"));
            let location = location.map_or(&b""[..], |own| own.value.trim_ascii());
            self.error = Some([SENT_ON, b" ", location].concat());
        }
        for header in &*response.headers {
            let value = header.value.trim_ascii();
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(value).ok();
                let number = text.and_then(|text| text.parse::<u64>().ok());
                length = Some(number.ok_or(ResponseError("its length is no number"))?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                self.closes = !value.eq_ignore_ascii_case(b"keep-alive")
                    && (self.closes || value.eq_ignore_ascii_case(b"close"));
            }
        }
        self.part = match (status, is_chunked, length) {
            // An interim response: the one that counts follows.
            (100..200, ..) => Part::Head,
            (204 | 304, ..) => Part::Body(0),
            _ if is_bodiless => Part::Body(0),
            (_, true, _) => Part::ChunkLength,
            (_, false, Some(length)) => Part::Body(length),
            (_, false, None) => {
                self.closes = true;
                Part::UntilClose
            }
        };
        Ok(())
    }

    /// Takes a line of the chunked encoding; returns how many bytes belong to it.
    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, ResponseError> {
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |at| at + 1);
        if self.kept.len() + taken > LONGEST_HEAD {
            return Err(ResponseError("a line of it is too long"));
        }
        self.kept.extend_from_slice(&bytes[..taken]);
        if end.is_none() {
            return Ok(taken);
        }
        let line = std::mem::take(&mut self.kept);
        let line = line.trim_ascii_end();
        if self.part == Part::Trailer {
            if line.is_empty() {
                self.part = Part::Body(0);
            }
            return Ok(taken);
        }
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let text = std::str::from_utf8(digits.trim_ascii()).unwrap_or_default();
        let length = u64::from_str_radix(text, 16)
            .ok()
            .filter(|length| *length < 1 << 60)
            .ok_or(ResponseError("the length of a chunk is no number"))?;
        self.part = if length == 0 { Part::Trailer } else { Part::Chunk(length + 2) };
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = Result<Vec<(u64, Option<String>)>, ResponseError>;

    fn scan(scanner: &mut ResponseScanner, pieces: &[&[u8]], is_bodiless: bool) -> Seen {
        let mut seen = Vec::new();
        for piece in pieces {
            scanner.scan(piece, is_bodiless, |length, error| {
                seen.push((length, error.map(|e| String::from_utf8_lossy(e).into_owned())));
            })?;
        }
        Ok(seen)
    }

    fn both(stream: &[u8], is_bodiless: bool) -> Vec<(u64, Option<String>)> {
        let whole = scan(&mut ResponseScanner::default(), &[stream], is_bodiless);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        let pieces = scan(&mut ResponseScanner::default(), &single, is_bodiless);
        assert_eq!(whole, pieces);
        whole.expect("responses")
    }

    #[test]
    fn bodies_end_where_their_length_says() {
        let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 Not Found\r\n\
                       content-length: 0\r\n\r\n";
        let seen = both(stream, false);
        assert_eq!(seen[0].1, None);
        assert_eq!(seen[1].1.as_deref(), Some("404"));
        assert_eq!(seen.iter().map(|(length, _)| *length).sum::<u64>(), stream.len() as u64);
    }

    #[test]
    fn chunks_and_trailers_are_followed() {
        let stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\n\
                       HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(both(stream, false).len(), 2);
    }

    #[test]
    fn an_answer_may_name_another_address() {
        let stream = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://a:1/x\r\n\
                       Content-Length: 4\r\n\r\nbody";
        assert_eq!(both(stream, false)[0].1.as_deref(), Some("307 http://a:1/x"));
    }

    #[test]
    fn interim_responses_and_heads_alone_have_no_body() {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        assert_eq!(both(interim, false).len(), 1);
        let heads = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nHTTP/1.1 304 Same\r\n\r\n";
        assert_eq!(both(heads, true).len(), 2);
    }

    #[test]
    fn the_body_of_an_error_says_what_is_wrong() {
        let stream = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n\
                       4\r\nbusy\r\n4\r\n now\r\n0\r\n\r\n\
                       HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nno!";
        let texts: Vec<_> = both(stream, false).into_iter().filter_map(|(_, text)| text).collect();
        assert_eq!(texts, ["503 busy\r\n now\r\n", "400 no!"]);
        let long = format!("HTTP/1.1 500 No\r\nContent-Length: 9000\r\n\r\n{}", "x".repeat(9000));
        let texts = both(long.as_bytes(), false);
        assert_eq!(texts[0].1.as_ref().map(String::len), Some(STATUS_LENGTH + 1 + ERROR_BODY));
    }

    #[test]
    fn the_end_of_the_connection_may_end_a_body() {
        let mut scanner = ResponseScanner::default();
        let seen = scan(&mut scanner, &[b"HTTP/1.0 500 No\r\n\r\nabc", b"def"], false);
        assert_eq!(seen, Ok(Vec::new()));
        let mut ended = 0;
        scanner.end(|_, error| {
            ended += 1;
            assert_eq!(error, Some(&b"500 abcdef"[..]));
        });
        assert_eq!(ended, 1);
        assert!(scanner.closes());
    }

    #[test]
    fn the_server_may_close_the_connection() {
        for (head, closes) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false),
        ] {
            let mut scanner = ResponseScanner::default();
            assert_eq!(scan(&mut scanner, &[head.as_bytes()], false).map(|seen| seen.len()), Ok(1));
            assert_eq!(scanner.closes(), closes, "{head}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in
            ["-ERR unknown command\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
        {
            assert!(scan(&mut ResponseScanner::default(), &[bytes.as_bytes()], false).is_err());
        }
        let long = [b'x'; LONGEST_HEAD + 1];
        assert!(scan(&mut ResponseScanner::default(), &[&long], false).is_err());
    }
}
