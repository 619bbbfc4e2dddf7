//! Requests: where each one ends, and the contents of its head.
//!
//! A request is looked at when all of its head has arrived, and again when its body has. A request
//! that another party on the way could read differently is refused, and the connection closed: two
//! lengths, a length beside a transfer coding, line ends without a carriage return.

use std::mem::MaybeUninit;
use std::ops::Range;

use base::bytes::make_room;
use base::limits;
use resp::args::ArgRange;

/// The most bytes of a number that gives the length of a body.
const LENGTH_DIGITS: usize = 15;

/// A request that cannot be answered as it is: its status, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// A sentence for the reader of the answer.
    pub reason: &'static str,
}

const fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// The head of a request, as it lies in the connection's input.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h> {
    /// The method, in the case that it was sent in.
    pub method: &'h str,
    /// The path and the query.
    pub target: &'h str,
    /// Whether it is of HTTP/1.0.
    pub is_1_0: bool,
    headers: &'h [httparse::Header<'h>],
    /// A bit for each length that a header's name has: most questions concern an absent header, and
    /// this answers them.
    lengths: u64,
}

impl<'h> Head<'h> {
    /// The value of the first header of a name.
    #[inline]
    pub fn header(&self, name: &str) -> Option<&'h [u8]> {
        if self.lengths & length_bit(name) == 0 {
            return None;
        }
        let found = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value)
    }

    /// The values of all headers of a name.
    #[inline]
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'h [u8]> + use<'h, 'n> {
        let none = self.lengths & length_bit(name) == 0;
        let headers = if none { &[][..] } else { self.headers }.iter();
        let named = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value)
    }

    /// Whether the connection is closed after the answer.
    pub fn closes(&self) -> bool {
        let says = |word| self.all("connection").any(|value| has_word(value, word));
        if self.is_1_0 { !says("keep-alive") } else { says("close") }
    }
}

/// The bit of [`Head`] for names of this length; long ones share the last.
#[inline]
fn length_bit(name: &str) -> u64 {
    1 << name.len().min(63)
}

/// Whether a list separated by commas has a word, in any case.
pub fn has_word(list: &[u8], word: &str) -> bool {
    list.split(|byte| *byte == b',')
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

/// The body of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Body<'b> {
    /// In the input.
    Here(&'b [u8]),
    /// Received or decoded into an allocation of its own.
    Apart(Vec<u8>),
}

/// The result of [`Parser::parse`].
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// A complete request, as the caller's type.
    Request(T),
    /// More bytes are needed.
    Incomplete,
    /// The head of a request whose body has not arrived, in these bytes of the input: the caller
    /// decides whether it wants the body before it is received. Returned once; [`Parser::parse`]
    /// goes on with the body.
    Head {
        /// Where the head begins.
        from: usize,
        /// Where it ends.
        to: usize,
    },
    /// The next bytes cannot be understood.
    Refused(Refusal),
}

/// A body that is being received.
#[derive(Debug)]
struct Receiving {
    /// Bytes of the head.
    head: usize,
    framing: Framing,
    /// Bytes that were decoded, or received into an allocation of their own.
    bytes: Vec<u8>,
    /// Whether all of the body goes to `bytes`.
    apart: bool,
    /// The part of such a body that came with the head is there, so that no more of it comes to the
    /// input. Until then what comes has its place behind that part.
    has_first_part: bool,
    /// Most bytes that the body may have.
    most: u64,
    /// For a chunked body: bytes after the head that were decoded and are still in the buffer,
    /// bytes that the present chunk lacks, and whether the line end after a chunk is due.
    decoded: usize,
    chunk: usize,
    expects_line_end: bool,
}

/// The state of one connection's input.
///
/// The caller owns the read buffer and appends to it; [`Parser::parse`] is called with all of it.
/// After the found requests were handled, [`Parser::compact_if_worthwhile`] tells which part of it
/// is no longer needed.
#[derive(Debug, Default)]
pub struct Parser {
    /// All bytes of the buffer before this were parsed.
    position: usize,
    /// Bytes after `position` that are known to contain no end of a head.
    scanned: usize,
    receiving: Option<Receiving>,
}

impl Parser {
    /// Looks for the next request in `buffer`, and has `visit` look at it; its body may have at
    /// most `max_body` bytes.
    pub fn parse<'b, T>(
        &mut self,
        buffer: &'b [u8],
        max_body: u64,
        visit: impl FnOnce(&Head<'_>, Body<'b>) -> T,
    ) -> Parsed<T> {
        if self.receiving.is_some() {
            return self.receive(buffer, visit);
        }
        // A client may send line ends after a body.
        while buffer[self.position..].starts_with(b"\r\n") {
            self.position += 2;
            self.scanned = 0;
        }
        let rest = &buffer[self.position..];
        if rest.is_empty() {
            return Parsed::Incomplete;
        }
        let head = &rest[..rest.len().min(limits::HTTP_HEAD)];
        match end_of_head(head, self.scanned.min(head.len())) {
            Ok(Some(end)) => {
                self.scanned = 0;
                self.take_head(buffer, end, max_body, visit)
            }
            Ok(None) if head.len() < rest.len() => Parsed::Refused(HEAD_TOO_LONG),
            Ok(None) => {
                self.scanned = head.len();
                Parsed::Incomplete
            }
            Err(refusal) => Parsed::Refused(refusal),
        }
    }

    fn take_head<'b, T>(
        &mut self,
        buffer: &'b [u8],
        length: usize,
        max_body: u64,
        visit: impl FnOnce(&Head<'_>, Body<'b>) -> T,
    ) -> Parsed<T> {
        let (from, to) = (self.position, self.position + length);
        let behind = &buffer[to..];
        let found = with_head(&buffer[from..to], |head| {
            let framing = framing(head)?;
            Ok(match framing {
                Framing::Length(length) if length as u64 > max_body => return Err(TOO_LARGE),
                Framing::Length(length) if length <= behind.len() => {
                    Ok((visit(head, Body::Here(&behind[..length])), length))
                }
                Framing::Length(_) | Framing::Chunked => Err(framing),
            })
        });
        let framing = match found.and_then(|found| found) {
            Err(refusal) => return Parsed::Refused(refusal),
            Ok(Ok((made, length))) => {
                self.position = to + length;
                return Parsed::Request(made);
            }
            Ok(Err(framing)) => framing,
        };
        let apart = matches!(framing, Framing::Length(length) if length >= limits::BIG_ARGUMENT);
        self.receiving = Some(Receiving {
            head: length,
            framing,
            bytes: Vec::new(),
            apart,
            has_first_part: false,
            most: max_body,
            decoded: 0,
            chunk: 0,
            expects_line_end: false,
        });
        Parsed::Head { from, to }
    }

    /// Goes on with a body.
    fn receive<'b, T>(
        &mut self,
        buffer: &'b [u8],
        visit: impl FnOnce(&Head<'_>, Body<'b>) -> T,
    ) -> Parsed<T> {
        let from = self.position;
        let Some(receiving) = &mut self.receiving else { return Parsed::Incomplete };
        let to = from + receiving.head;
        let behind = &buffer[to..];
        let (body, length) = match receiving.framing {
            Framing::Length(length) if receiving.apart => {
                // The part that came with the head; the rest is received where it stays.
                let missing = length - receiving.bytes.len();
                let part = &behind[receiving.decoded.min(behind.len())..];
                let part = &part[..part.len().min(missing)];
                receiving.bytes.extend_from_slice(part);
                receiving.decoded += part.len();
                receiving.has_first_part = true;
                if receiving.bytes.len() < length {
                    return Parsed::Incomplete;
                }
                (Body::Apart(std::mem::take(&mut receiving.bytes)), receiving.decoded)
            }
            Framing::Length(length) if behind.len() < length => return Parsed::Incomplete,
            Framing::Length(length) => (Body::Here(&behind[..length]), length),
            Framing::Chunked => match receiving.decode(behind) {
                Ok(Some(length)) => (Body::Apart(std::mem::take(&mut receiving.bytes)), length),
                Ok(None) => return Parsed::Incomplete,
                Err(refusal) => return Parsed::Refused(refusal),
            },
        };
        self.receiving = None;
        self.position = to + length;
        match with_head(&buffer[from..to], |head| visit(head, body)) {
            Ok(made) => Parsed::Request(made),
            Err(refusal) => Parsed::Refused(refusal),
        }
    }

    /// Bounds the body in progress, whose head [`Parser::parse`] has returned, by what its request
    /// may have.
    pub fn limit_body(&mut self, most: u64) {
        if let Some(receiving) = &mut self.receiving {
            receiving.most = receiving.most.min(most);
        }
    }

    /// The bytes from the next request on, if no body is being received.
    #[inline]
    pub fn next_head<'b>(&self, buffer: &'b [u8]) -> Option<&'b [u8]> {
        self.receiving.is_none().then(|| &buffer[self.position..])
    }

    /// Passes over a request that the caller has understood without [`Parser::parse`]: this many of
    /// those bytes.
    #[inline]
    pub fn pass(&mut self, length: usize) {
        self.position += length;
        self.scanned = 0;
    }

    /// Whether a part of a request has arrived, and the rest has not.
    pub fn is_within_request(&self, buffer: &[u8]) -> bool {
        self.receiving.is_some() || self.position < buffer.len()
    }

    /// Whether a body is being received.
    pub fn is_within_body(&self) -> bool {
        self.receiving.is_some()
    }

    /// Bytes received so far of the body in progress, with those in the buffer.
    pub fn body_so_far(&self, buffer: &[u8]) -> usize {
        let Some(receiving) = &self.receiving else { return 0 };
        let behind = buffer.len().saturating_sub(self.position + receiving.head);
        receiving.bytes.len() + behind - receiving.decoded.min(behind)
    }

    /// Where to receive the next bytes, with the room there, if not in the buffer.
    pub fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        let receiving = self.receiving.as_mut().filter(|own| own.apart && own.has_first_part)?;
        let Framing::Length(length) = receiving.framing else { return None };
        let bytes = &mut receiving.bytes;
        let missing = length - bytes.len();
        if missing == 0 {
            return None;
        }
        make_room(bytes, missing);
        let room = (bytes.capacity() - bytes.len()).min(missing);
        Some((bytes, room))
    }

    /// Whether the next bytes go there.
    pub fn is_receiving_apart(&self) -> bool {
        self.receiving.as_ref().is_some_and(|own| own.apart && own.has_first_part)
    }

    /// How many bytes at the front of the buffer are finished with.
    pub fn done(&self) -> usize {
        self.position
    }

    /// Forgets handled bytes when they are at least as long as the rest. Returns which bytes the
    /// caller must remove from the buffer: those of handled requests at its front, or decoded
    /// chunks after the head of the present one. The head stays until its body is complete.
    pub fn compact_if_worthwhile(&mut self, length: usize) -> Range<usize> {
        if self.position > 0 && self.position >= length - self.position {
            return 0..std::mem::take(&mut self.position);
        }
        match &mut self.receiving {
            Some(chunked) if chunked.framing == Framing::Chunked => {
                let from = self.position + chunked.head;
                let rest = length - from - chunked.decoded;
                let done = if chunked.decoded >= rest { chunked.decoded } else { 0 };
                chunked.decoded -= done;
                from..from + done
            }
            _ => 0..0,
        }
    }

    /// Bytes of memory that bodies take, used and allocated.
    pub fn memory(&self) -> (usize, usize) {
        let receiving = self.receiving.as_ref();
        let (used, room) = receiving.map_or((0, 0), |own| (own.bytes.len(), own.bytes.capacity()));
        (used, room)
    }
}

const BARE_LINE_END: Refusal =
    refusal(400, "a line does not end in a carriage return and a line feed");
const HEAD_TOO_LONG: Refusal = refusal(431, "the head of the request is too long");
const TOO_LARGE: Refusal = refusal(413, "the body is too large");
const LENGTH_NOT_CLEAR: Refusal = refusal(400, "the length of the body is not clear");
const BAD_CHUNK: Refusal = refusal(400, "the body is not chunked as announced");

impl Receiving {
    /// Decodes chunks from `behind`, everything that has arrived after the head. Returns the length
    /// of the encoded body when all of it has arrived.
    fn decode(&mut self, behind: &[u8]) -> Result<Option<usize>, Refusal> {
        loop {
            let rest = &behind[self.decoded..];
            if self.chunk > 0 {
                let part = &rest[..rest.len().min(self.chunk)];
                self.bytes.extend_from_slice(part);
                self.chunk -= part.len();
                self.decoded += part.len();
                if self.chunk > 0 {
                    return Ok(None);
                }
                self.expects_line_end = true;
            } else if self.expects_line_end {
                match rest {
                    [b'\r', b'\n', ..] => self.decoded += 2,
                    [] | [b'\r'] => return Ok(None),
                    _ => return Err(BAD_CHUNK),
                }
                self.expects_line_end = false;
            } else {
                let Some((line, size)) = chunk_size(rest)? else { return Ok(None) };
                if size == 0 {
                    return Ok(end_of_trailers(&rest[line..])?.map(|end| self.decoded + line + end));
                }
                if (self.bytes.len() as u64).saturating_add(size) > self.most {
                    return Err(TOO_LARGE);
                }
                self.decoded += line;
                self.chunk = size as usize;
            }
        }
    }
}

/// Reads the line before a chunk: its length with the line end, and the chunk's length.
fn chunk_size(rest: &[u8]) -> Result<Option<(usize, u64)>, Refusal> {
    let Some(end) = memchr::memchr(b'\n', rest) else {
        // The carriage return may have come, and the line feed not yet.
        let too_long = rest.len() > limits::HTTP_CHUNK_LINE + 1;
        return if too_long { Err(BAD_CHUNK) } else { Ok(None) };
    };
    let line = rest[..end].strip_suffix(b"\r").ok_or(BARE_LINE_END)?;
    // Some take a carriage return alone for the end of a line.
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(BAD_CHUNK);
    }
    // The part after a semicolon is an extension; there are none in use.
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let text = std::str::from_utf8(digits).map_err(|_| BAD_CHUNK)?;
    let plain = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(size) if plain && line.len() <= limits::HTTP_CHUNK_LINE => Ok(Some((end + 1, size))),
        _ => Err(BAD_CHUNK),
    }
}

/// The length of the lines after the last chunk, with the empty one. Their contents are ignored,
/// but each must end as it should: otherwise the next request could begin elsewhere for another
/// party.
fn end_of_trailers(rest: &[u8]) -> Result<Option<usize>, Refusal> {
    if rest.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    match end_of_head(&rest[..rest.len().min(limits::HTTP_HEAD)], 0)? {
        None if rest.len() > limits::HTTP_HEAD => Err(refusal(431, "the trailers are too long")),
        end => Ok(end),
    }
}

/// The length of a head, with the empty line after it, if that has arrived. The bytes before `from`
/// were looked at.
///
/// # Errors
/// A line does not end as it should: another party could find another end.
#[inline]
fn end_of_head(head: &[u8], from: usize) -> Result<Option<usize>, Refusal> {
    let mut at = from;
    while let Some(length) = memchr::memchr(b'\n', &head[at..]) {
        at += length + 1;
        match head[..at] {
            [.., b'\r', b'\n', b'\r', b'\n'] => return Ok(Some(at)),
            [.., b'\r', b'\n'] => {}
            _ => return Err(BARE_LINE_END),
        }
    }
    Ok(None)
}

/// Takes a head apart that [`Parser::parse`] has found, and has `action` look at it.
///
/// # Errors
/// It is no head of a request, or another party may read it differently.
#[inline]
pub fn with_head<T>(bytes: &[u8], action: impl FnOnce(&Head<'_>) -> T) -> Result<T, Refusal> {
    let mut headers = [const { MaybeUninit::uninit() }; limits::HTTP_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(refusal(400, "the head of the request ends too early")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(refusal(431, "the request has too many headers"));
        }
        Err(httparse::Error::Version) => {
            return Err(refusal(505, "only HTTP/1.0 and HTTP/1.1 are spoken here"));
        }
        Err(_) => return Err(refusal(400, "the head of the request cannot be understood")),
    }
    let (Some(method), Some(target), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(refusal(400, "the head of the request cannot be understood"));
    };
    if target.len() > limits::HTTP_TARGET {
        return Err(refusal(414, "the address is too long"));
    }
    let headers = &*request.headers;
    let lengths = headers.iter().fold(0, |bits, header| bits | length_bit(header.name));
    Ok(action(&Head { method, target, is_1_0: version == 0, headers, lengths }))
}

/// How the body of a request ends.
#[inline]
fn framing(head: &Head<'_>) -> Result<Framing, Refusal> {
    let mut lengths = head.all("content-length");
    let mut codings = head.all("transfer-encoding");
    let (length, coding) = (lengths.next(), codings.next());
    if lengths.next().is_some() {
        return Err(LENGTH_NOT_CLEAR);
    }
    if codings.next().is_some() || (coding.is_some() && head.is_1_0) {
        return Err(refusal(400, "the coding of the body is not clear"));
    }
    match (coding, length) {
        (None, None) => Ok(Framing::Length(0)),
        (None, Some(length)) => {
            let plain = (1..=LENGTH_DIGITS).contains(&length.len())
                && length.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
            number.filter(|_| plain).map(Framing::Length).ok_or(LENGTH_NOT_CLEAR)
        }
        (Some(_), Some(_)) => Err(refusal(400, "a body is chunked or has a length, not both")),
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Some(_), None) => Err(refusal(501, "bodies may be chunked, and in no other coding")),
    }
}

/// The place of a part of `buffer` in it.
///
/// # Panics
/// If it is not a part of it.
pub fn range_in(buffer: &[u8], part: &[u8]) -> ArgRange {
    let start = (part.as_ptr() as usize).wrapping_sub(buffer.as_ptr() as usize);
    assert!(start <= buffer.len() && part.len() <= buffer.len() - start, "a part of the input");
    ArgRange::in_buffer(start, part.len())
}

#[cfg(test)]
mod tests;
