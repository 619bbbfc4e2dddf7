//! Requests with the same headers as the one before.
//!
//! A client that keeps its connection sends the same headers with each GET, and often the same tag.
//! Their meaning does not change while the settings stay as they are. So for a GET of a key it is
//! enough to find the key, and to compare the bytes of the headers with those of the last request.

use base::limits;
use engine::session::User;
use http::answer::Envelope;

use super::exchange::{Exchange, PlainGet};

/// The beginning of a request that may be familiar.
const BEGIN: &[u8] = b"GET /v1/keys/";
/// The end of its first line.
const END: &[u8] = b" HTTP/1.1\r\n";
/// The end of a head.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";

/// Bytes that a key in an address may have here: they mean themselves.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~:/!$&'()*+,;=@";
    let mut at = 0;
    while at < others.len() {
        plain[others[at] as usize] = true;
        at += 1;
    }
    plain
};

/// The headers of a request, and what they mean.
pub(super) struct CachedHeaders {
    /// All lines after the first one, with the empty line.
    headers: Vec<u8>,
    /// Under these settings and users: see [`super::generation`].
    generation: u64,
    /// The user who has sent it.
    user: Option<User>,
    question: PlainGet,
    gzip: bool,
    varies: bool,
}

/// A request for a key whose headers are known.
pub(super) struct CachedRequest<'b> {
    /// The method.
    pub(super) method: &'b [u8],
    /// The key.
    pub(super) key: &'b [u8],
    pub(super) question: PlainGet,
    pub(super) envelope: Envelope,
}

/// The key in the first line of a request, and all that follows the line. Nothing if it is no GET
/// of a key, or if its address would have to be decoded.
#[inline]
fn split(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = request.strip_prefix(BEGIN)?;
    let length = rest.iter().position(|byte| !PLAIN[usize::from(*byte)])?;
    let fits = BEGIN.len() + length < limits::HTTP_TARGET;
    let (key, rest) = rest.split_at(length);
    Some((key, rest.strip_prefix(END).filter(|_| fits)?))
}

impl CachedHeaders {
    /// The request at the beginning of `bytes` if its headers are these, and its length.
    #[inline]
    pub(super) fn of<'b>(
        &self,
        bytes: &'b [u8],
        generation: u64,
    ) -> Option<(CachedRequest<'b>, usize)> {
        if self.generation != generation {
            return None;
        }
        let (key, rest) = split(bytes)?;
        if !rest.starts_with(&self.headers) {
            return None;
        }
        let (gzip, varies) = (self.gzip, self.varies);
        let envelope = Envelope { gzip, varies, ..Envelope::default() };
        let length = bytes.len() - rest.len() + self.headers.len();
        Some((
            CachedRequest { method: &bytes[..3], key, question: self.question, envelope },
            length,
        ))
    }

    /// Remembers a request that was understood, in place of the last one, if the headers of another
    /// one may tell the same.
    pub(super) fn note(
        cached_headers: &mut Option<Box<CachedHeaders>>,
        request: &[u8],
        exchange: &Exchange,
        generation: u64,
    ) {
        let (Some(question), Some((_, headers))) = (exchange.question(), split(request)) else {
            return;
        };
        // A body would follow the empty line.
        let end = memchr::memmem::find(headers, EMPTY_LINE).map(|at| at + EMPTY_LINE.len());
        if end != Some(headers.len()) || request.len() > limits::HTTP_CACHED_HEADERS {
            return;
        }
        let Envelope { gzip, varies, .. } = exchange.envelope;
        let noted = cached_headers.get_or_insert_with(|| {
            let headers = Vec::with_capacity(headers.len());
            Box::new(CachedHeaders { headers, generation, user: None, question, gzip, varies })
        });
        (noted.generation, noted.question) = (generation, question);
        noted.user = exchange.user().cloned();
        (noted.gzip, noted.varies) = (gzip, varies);
        noted.headers.clear();
        noted.headers.extend_from_slice(headers);
    }

    /// The user who has sent it.
    pub(super) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        size_of::<CachedHeaders>() + self.headers.capacity()
    }
}

#[cfg(test)]
mod tests {
    use http::answer::Envelope;
    use http::tag::{Tag, Variant};

    use super::*;
    use crate::net::http::exchange::{GetRequest, Kind};

    const REQUEST: &[u8] = b"GET /v1/keys/a:1 HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";

    fn asked(unless: Option<Tag>, envelope: Envelope) -> Exchange {
        Exchange::new(envelope, Kind::Get(GetRequest::Plain(PlainGet { unless })), 0)
    }

    fn noted(request: &[u8], exchange: &Exchange) -> Option<Box<CachedHeaders>> {
        let mut cached_headers = None;
        CachedHeaders::note(&mut cached_headers, request, exchange, 1);
        cached_headers
    }

    #[test]
    fn the_same_headers_are_recognised() {
        let exchange = asked(
            Some(Tag::new(7, Variant::Plain)),
            Envelope { gzip: true, ..Envelope::default() },
        );
        let cached_headers = noted(REQUEST, &exchange).unwrap();
        let other = b"GET /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nGET /";
        let (asked, length) = cached_headers.of(other, 1).unwrap();
        assert_eq!((asked.method, asked.key, length), (&b"GET"[..], &b"b"[..], other.len() - 5));
        assert!(asked.question.unless.is_some_and(|tag| tag.version() == 7));
        assert!(asked.envelope.gzip && !asked.envelope.close);
        assert!(cached_headers.of(other, 2).is_none(), "the settings are others");
        for strange in [
            &b"GET /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: z\r\n\r\n"[..],
            b"GET /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: y\r\n",
            b"GET /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: y\r\nZ: y\r\n\r\n",
            b"GET /v1/keys/b HTTP/1.0\r\nHost: a\r\nX: y\r\n\r\n",
            b"GET /v1/keys/b?db=1 HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
            b"GET /v1/keys/%62 HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
            b"HEAD /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
            b"\r\nGET /v1/keys/b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
            b"GET /v1/keys/b",
            b"",
        ] {
            assert!(cached_headers.of(strange, 1).is_none(), "{}", strange.escape_ascii());
        }
    }

    #[test]
    fn what_the_headers_do_not_decide_alone_is_not_remembered() {
        let plain = || asked(None, Envelope::default());
        assert!(noted(REQUEST, &plain()).is_some());
        let body = [REQUEST, b"body"].concat();
        assert!(noted(&body, &plain()).is_none());
        assert!(noted(&[REQUEST, b"\r\n\r\n"].concat(), &plain()).is_none());
        let long = [
            &b"GET /v1/keys/a HTTP/1.1\r\nX: "[..],
            &[b'x'; limits::HTTP_CACHED_HEADERS],
            b"\r\n\r\n",
        ];
        assert!(noted(&long.concat(), &plain()).is_none());
        let said: Option<Box<[u8]>> = Some(b"x"[..].into());
        for envelope in [
            Envelope { head: true, ..Envelope::default() },
            Envelope { close: true, ..Envelope::default() },
            Envelope { keeps_1_0: true, ..Envelope::default() },
            Envelope { origin: said.clone(), ..Envelope::default() },
            Envelope { id: said.clone(), ..Envelope::default() },
            Envelope { position: said, ..Envelope::default() },
        ] {
            assert!(noted(REQUEST, &asked(None, envelope)).is_none());
        }
        let other = Exchange::new(Envelope::default(), Kind::Write, 0);
        assert!(noted(REQUEST, &other).is_none());
    }
}
