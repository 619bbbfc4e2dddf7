//! Answers, written into a connection's output.

use std::cell::Cell;
use std::io::Write;
use std::sync::Arc;

use base::limits;
use flate2::Compression;
use flate2::write::GzEncoder;
use resp::output::Output;

use crate::tag::{self, Tag};

/// JSON, as its type is called.
pub const JSON: &str = "application/json";

/// The parts of a request on which each of its answers depends.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// HEAD: the answer has no body.
    pub head: bool,
    /// The connection is closed after it.
    pub close: bool,
    /// HTTP/1.0, which knows no chunks.
    pub is_1_0: bool,
    /// HTTP/1.0 that keeps the connection open.
    pub keeps_1_0: bool,
    /// The client takes gzip.
    pub gzip: bool,
    /// Some web pages may read answers, so that an answer depends on the page that asks.
    pub varies: bool,
    /// The web page that asks, if pages from its origin may read the answer.
    pub origin: Option<Box<[u8]>>,
    /// The identifier that the client gave to the request.
    pub id: Option<Box<[u8]>>,
    /// The position in the journal that the answer belongs to.
    pub position: Option<Box<[u8]>>,
    /// The address of the request as it came, where another server may have to answer it.
    pub target: Option<Box<str>>,
    /// Where the request is answered instead, if it is.
    pub location: Option<Box<str>>,
    /// Where the server and the request are in the stream of writes.
    pub whereabouts: Option<Box<Whereabouts>>,
}

/// What an answer says of the stream of writes.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    /// The position after the write that the request was.
    pub written: Option<String>,
    /// How old the data of a replica may be.
    pub staleness: Option<String>,
    /// The primary of a replica that has refused a write.
    pub primary: Option<String>,
}

/// The word for a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        428 => "Precondition Required",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Unknown",
    }
}

/// An answer whose head is being written.
pub struct Answer<'a> {
    output: &'a mut Output,
    envelope: &'a Envelope,
    status: u16,
    /// The tag that is written when it is known whether the body is compressed.
    tag: Option<Tag>,
    /// It is said that the answer depends on what the client takes.
    varies: bool,
}

impl<'a> Answer<'a> {
    /// Begins an answer; `now` is the time in milliseconds of Unix time.
    #[inline]
    pub fn begin(
        output: &'a mut Output,
        envelope: &'a Envelope,
        status: u16,
        now: u64,
    ) -> Answer<'a> {
        let mut answer = Answer { output, envelope, status, tag: None, varies: false };
        match status {
            200 => answer.put(b"HTTP/1.1 200 OK\r\n"),
            304 => answer.put(b"HTTP/1.1 304 Not Modified\r\n"),
            _ => answer.put_status(),
        }
        answer.put(&date_line(now / 1000));
        if envelope.close
            || envelope.keeps_1_0
            || envelope.origin.is_some()
            || envelope.varies
            || envelope.id.is_some()
            || envelope.position.is_some()
            || envelope.location.is_some()
            || envelope.whereabouts.is_some()
        {
            answer.put_envelope();
        }
        answer
    }

    fn put_status(&mut self) {
        let status = self.status;
        self.put(b"HTTP/1.1 ");
        self.put(itoa::Buffer::new().format(status).as_bytes());
        self.put(b" ");
        self.put(reason(status).as_bytes());
        self.put(b"\r\n");
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.output.push(bytes);
    }

    #[cold]
    fn put_envelope(&mut self) {
        let envelope = self.envelope;
        if envelope.close {
            self.put(b"Connection: close\r\n");
        } else if envelope.keeps_1_0 {
            self.put(b"Connection: keep-alive\r\n");
        }
        if let Some(id) = &envelope.id {
            self.header("X-Request-Id", id);
        }
        if let Some(position) = &envelope.position {
            self.header("X-Position", position);
        }
        if let Some(location) = envelope.location.as_deref().filter(|_| self.status == 307) {
            self.header("Location", location.as_bytes());
        }
        if let Some(whereabouts) = &envelope.whereabouts {
            for (name, value) in [
                ("Dunlin-Position", &whereabouts.written),
                ("Dunlin-Staleness-Ms", &whereabouts.staleness),
                ("Dunlin-Primary", &whereabouts.primary),
            ] {
                if let Some(value) = value {
                    self.header(name, value.as_bytes());
                }
            }
        }
        if let Some(origin) = &envelope.origin {
            self.header("Access-Control-Allow-Origin", origin);
            self.header(
                "Access-Control-Expose-Headers",
                b"ETag, Age, Dunlin-Position, Dunlin-Primary, Dunlin-Staleness-Ms, Warning, X-Cache, \
                  X-Cursor, X-Etcd-Cluster-Id, X-Etcd-Index, X-Position, X-Raft-Index, X-Raft-Term, X-Request-Id, X-Type",
            );
        }
        if envelope.origin.is_some() || envelope.varies {
            self.header("Vary", b"Origin");
        }
    }

    /// Adds a header. A line end in its value becomes a space: it would begin another header.
    #[inline]
    pub fn header(&mut self, name: &str, value: &[u8]) {
        self.put(name.as_bytes());
        self.put(b": ");
        match memchr::memchr2(b'\r', b'\n', value) {
            None => self.put(value),
            Some(_) => self.put_without_line_ends(value),
        }
        self.put(b"\r\n");
    }

    #[cold]
    fn put_without_line_ends(&mut self, value: &[u8]) {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let line: Vec<u8> =
            value.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect();
        self.put(&line);
    }

    /// Adds a header whose value is a number.
    #[inline]
    pub fn number(&mut self, name: &str, value: u64) {
        self.header(name, itoa::Buffer::new().format(value).as_bytes());
    }

    /// Adds the tag of a version, which has one form. 0 is no version.
    #[inline]
    pub fn version(&mut self, version: u64) {
        self.put_tag(version, "");
    }

    #[inline]
    fn put_tag(&mut self, version: u64, suffix: &str) {
        if version == 0 {
            return;
        }
        self.put(b"ETag: \"");
        self.put(tag::digits(version, &mut [0; 16]));
        self.put(suffix.as_bytes());
        self.put(b"\"\r\n");
    }

    /// Says what the body is, if that has a name. It may be compressed or not, so clients that take
    /// other codings get other bytes.
    pub fn represents(&mut self, tag: Option<Tag>) {
        self.tag = tag;
        self.varies = true;
        self.header("Vary", b"Accept-Encoding");
    }

    /// Says which of the tags of the client is meant by an answer without a body.
    pub fn represents_again(&mut self, tag: Tag) {
        self.tag = Some(tag);
    }

    fn put_pending_tag(&mut self, is_compressed: bool) {
        if let Some(tag) = self.tag.take() {
            let tag = if is_compressed { tag.compressed() } else { tag };
            self.put_tag(tag.version(), tag.suffix());
        }
    }

    /// Ends the answer with a body.
    #[inline]
    pub fn body(mut self, content_type: &[u8], body: &[u8]) {
        self.end_head(content_type, body.len());
        if !self.envelope.head {
            self.output.push(body);
        }
    }

    /// Ends the answer with a body that is sent from its place in memory.
    pub fn shared_body(mut self, content_type: &[u8], body: &Arc<Vec<u8>>) {
        self.end_head(content_type, body.len());
        if !self.envelope.head {
            self.output.push_shared(body);
        }
    }

    /// Ends the answer with a body that may be long text: compressed where the client takes that,
    /// and others need not wait for it for long.
    pub fn text_body(mut self, content_type: &str, body: &[u8]) {
        if !(limits::HTTP_GZIP_LEAST..=limits::HTTP_GZIP_MOST).contains(&body.len()) {
            return self.body(content_type.as_bytes(), body);
        }
        self.say_that_it_varies();
        if !self.envelope.gzip {
            return self.body(content_type.as_bytes(), body);
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        // Writing to memory does not fail; if it did, the body is sent uncompressed.
        match encoder.write_all(body).and_then(|()| encoder.finish()) {
            Ok(packed) => {
                self.header("Content-Encoding", b"gzip");
                self.put_pending_tag(true);
                self.body(content_type.as_bytes(), &packed);
            }
            Err(_) => self.body(content_type.as_bytes(), body),
        }
    }

    /// The same with text that is sent from where it lies, as far as it is not compressed.
    pub fn shared_text_body(mut self, content_type: &str, body: &Arc<Vec<u8>>) {
        let compresses = (limits::HTTP_GZIP_LEAST..=limits::HTTP_GZIP_MOST).contains(&body.len());
        if compresses && self.envelope.gzip {
            return self.text_body(content_type, body);
        }
        if compresses {
            self.say_that_it_varies();
        }
        self.shared_body(content_type.as_bytes(), body);
    }

    fn say_that_it_varies(&mut self) {
        if !std::mem::replace(&mut self.varies, true) {
            self.header("Vary", b"Accept-Encoding");
        }
    }

    fn end_head(&mut self, content_type: &[u8], length: usize) {
        self.put_pending_tag(false);
        self.put(b"Content-Type: ");
        self.put(content_type);
        self.put(b"\r\nContent-Length: ");
        self.put(itoa::Buffer::new().format(length).as_bytes());
        self.put(b"\r\n\r\n");
    }

    /// Ends the head of an answer whose body goes on until the connection ends.
    pub fn endless_body(mut self, content_type: &str) {
        self.put_pending_tag(false);
        self.header("Content-Type", content_type.as_bytes());
        self.put(b"\r\n");
    }

    /// Ends the head of an answer whose body comes in chunks.
    pub fn chunked_body(mut self, content_type: &str) {
        self.header("Transfer-Encoding", b"chunked");
        self.endless_body(content_type);
    }

    /// Ends the answer without a body.
    pub fn empty(mut self) {
        self.put_pending_tag(false);
        // These two never have a body, and so no length of one.
        if !matches!(self.status, 204 | 304) {
            self.put(b"Content-Length: 0\r\n");
        }
        self.put(b"\r\n");
    }

    /// Ends the answer with JSON that says what was wrong.
    pub fn error(self, text: &[u8]) {
        let mut body = b"{\"error\":".to_vec();
        crate::json::write_text(&mut body, text);
        body.push(b'}');
        self.body(JSON.as_bytes(), &body);
    }
}

/// Writes a part of a body, which is not empty.
pub fn chunk(output: &mut Output, part: &[u8]) {
    output.push(format!("{:x}\r\n", part.len()).as_bytes());
    output.push(part);
    output.push(b"\r\n");
}

/// The same with a part that others may send too: it stays where it lies, if it is large.
pub fn chunk_shared(output: &mut Output, part: &Arc<Vec<u8>>) {
    output.push(format!("{:x}\r\n", part.len()).as_bytes());
    output.push_shared(part);
    output.push(b"\r\n");
}

/// Ends such a body.
pub fn last_chunk(output: &mut Output) {
    output.push(b"0\r\n\r\n");
}

/// Bytes of a line with a date.
const DATE_LINE: usize = 37;

/// The header with the date of a second.
#[inline]
fn date_line(second: u64) -> [u8; DATE_LINE] {
    thread_local! {
        static LAST: Cell<(u64, [u8; DATE_LINE])> = const { Cell::new((u64::MAX, [0; DATE_LINE])) };
    }
    let (last, line) = LAST.get();
    if last == second {
        return line;
    }
    let mut line = *b"Date: 29 bytes up to the year 9999.\r\n";
    line[6..35].copy_from_slice(&printed(second));
    LAST.set((second, line));
    line
}

/// A second as a date in the form of HTTP.
fn printed(second: u64) -> [u8; 29] {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, rest) = (second / 86_400, second % 86_400);
    // Years that begin in March, so that the leap day is a year's last; eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    let mut text = [b' '; 29];
    let mut rest_of_text = &mut text[..];
    // The form has 29 bytes up to the year 9999; a longer one is not written.
    let _ = write!(
        rest_of_text,
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_form_of_http() {
        let text = |second| String::from_utf8(printed(second).to_vec()).unwrap();
        assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(1_709_164_800), "Thu, 29 Feb 2024 00:00:00 GMT");
        assert_eq!(text(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
        assert_eq!(text(4_102_444_800), "Fri, 01 Jan 2100 00:00:00 GMT");
    }

    fn written(envelope: &Envelope, write: impl FnOnce(Answer<'_>)) -> String {
        let mut output = Output::new();
        write(Answer::begin(&mut output, envelope, 200, 0));
        String::from_utf8_lossy(&output.to_vec()).into_owned()
    }

    #[test]
    fn head_has_the_length_and_not_the_body() {
        let envelope = Envelope { head: true, ..Envelope::default() };
        let text = written(&envelope, |answer| answer.body(b"text/plain", b"abc"));
        assert!(text.ends_with("Content-Type: text/plain\r\nContent-Length: 3\r\n\r\n"), "{text}");
    }

    #[test]
    fn long_heads_come_whole() {
        let long = "x".repeat(300);
        let text = written(&Envelope::default(), |mut answer| {
            (0..4).for_each(|_| answer.header("X", long.as_bytes()));
            answer.body(b"text/plain", b"abc");
        });
        assert_eq!(text.matches(&format!("X: {long}\r\n")).count(), 4);
        assert_eq!(text.matches("\r\n").count(), 9, "{text}");
        assert!(text.ends_with("\r\n\r\nabc"));
    }

    #[test]
    fn what_is_compressed_has_another_tag() {
        let tag = Tag::new(0x1f, crate::tag::Variant::Text);
        let body = "text ".repeat(1000);
        for (gzip, etag) in [(false, "\"1f-text\""), (true, "\"1f-text-gzip\"")] {
            let envelope = Envelope { gzip, ..Envelope::default() };
            let text = written(&envelope, |mut answer| {
                answer.represents(Some(tag));
                answer.text_body(JSON, body.as_bytes());
            });
            assert!(text.contains(&format!("ETag: {etag}\r\n")), "{text}");
            assert_eq!(text.matches("Vary: Accept-Encoding").count(), 1, "{text}");
        }
    }

    #[test]
    fn long_text_is_compressed_for_clients_that_accept_it() {
        let body = "text ".repeat(1000);
        for gzip in [false, true] {
            let envelope = Envelope { gzip, ..Envelope::default() };
            let text = written(&envelope, |answer| answer.text_body(JSON, body.as_bytes()));
            assert_eq!(text.contains("Content-Encoding: gzip"), gzip);
            assert_eq!(text.len() < 1000, gzip);
            assert!(text.contains("Vary: Accept-Encoding"));
        }
        let envelope = Envelope { gzip: true, ..Envelope::default() };
        let text = written(&envelope, |answer| answer.text_body(JSON, b"{}"));
        assert!(text.ends_with("\r\n\r\n{}"));
        let long = vec![b' '; limits::HTTP_GZIP_MOST + 1];
        let text = written(&envelope, |answer| answer.text_body(JSON, &long));
        assert!(text.len() > long.len(), "others would wait");
    }
}
