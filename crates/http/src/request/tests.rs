use proptest::prelude::*;

use super::*;

const LARGE: u64 = 1 << 40;

/// A found request: its method and address, and its body.
type Found = (String, Vec<u8>);

/// Feeds `bytes` in pieces of `step` bytes; returns the found requests, and the refusal at the end
/// if there is one.
fn parsed(bytes: &[u8], step: usize, max_body: u64) -> (Vec<Found>, Option<u16>) {
    let mut parser = Parser::default();
    let (mut buffer, mut found) = (Vec::new(), Vec::new());
    let mut sent = 0;
    loop {
        let take = |head: &Head<'_>, body: Body<'_>| {
            let body = match body {
                Body::Here(bytes) => bytes.to_vec(),
                Body::Apart(bytes) => bytes,
            };
            (format!("{} {}", head.method, head.target), body)
        };
        match parser.parse(&buffer, max_body, take) {
            Parsed::Request(request) => {
                found.push(request);
                buffer.drain(parser.compact_if_worthwhile(buffer.len()));
            }
            Parsed::Head { .. } => {}
            Parsed::Refused(refusal) => return (found, Some(refusal.status)),
            Parsed::Incomplete if sent == bytes.len() => return (found, None),
            Parsed::Incomplete => {
                buffer.drain(parser.compact_if_worthwhile(buffer.len()));
                let part = &bytes[sent..bytes.len().min(sent + step)];
                match parser.receives_apart() {
                    Some((body, room)) => {
                        let part = &part[..part.len().min(room)];
                        body.extend_from_slice(part);
                        sent += part.len();
                    }
                    None => {
                        buffer.extend_from_slice(part);
                        sent += part.len();
                    }
                }
            }
        }
    }
}

fn refused(text: &str) -> Option<u16> {
    let (_, whole) = parsed(text.as_bytes(), usize::MAX, LARGE);
    let (_, bytes) = parsed(text.as_bytes(), 1, LARGE);
    assert_eq!(whole, bytes, "{text:?}");
    whole
}

#[test]
fn requests_are_found_in_any_pieces() {
    let large = vec![b'x'; limits::BIG_ARGUMENT + 5];
    let mut bytes = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    bytes.extend_from_slice(b"PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    let length = format!("PUT /c HTTP/1.1\r\nContent-Length: {}\r\n\r\n", large.len());
    bytes.extend_from_slice(length.as_bytes());
    bytes.extend_from_slice(&large);
    bytes.extend_from_slice(
        b"POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n\
          0\r\nTrailer: z\r\n\r\n\r\nGET /e HTTP/1.0\r\n\r\n",
    );
    for step in [1, 2, 7, 100, 5000, 40_000, usize::MAX / 2] {
        let (found, refused) = parsed(&bytes, step, LARGE);
        assert_eq!(refused, None, "{step}");
        let names: Vec<_> = found.iter().map(|(head, _)| head.split(' ').nth(1).unwrap()).collect();
        assert_eq!(names, ["/a", "/b", "/c", "/d", "/e"], "{step}");
        let bodies: Vec<_> = found.iter().map(|(_, body)| &body[..]).collect();
        assert_eq!(bodies, [&b""[..], b"abc", &large, b"abc0123456789", b""], "{step}");
    }
}

#[test]
fn what_others_may_read_differently_is_refused() {
    let with = |lines: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{lines}\r\nabc\r\n\r\n");
    for (lines, status) in [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", 400),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", 400),
        ("Content-Length: 3, 3\r\n", 400),
        ("Content-Length: +3\r\n", 400),
        ("Content-Length: 0x3\r\n", 400),
        ("Content-Length: -1\r\n", 400),
        ("Content-Length:\r\n", 400),
        ("Content-Length : 3\r\n", 400),
        ("Content-Length: 99999999999999999999\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: chunked, chunked\r\n", 501),
        ("Transfer-Encoding: xchunked\r\n", 501),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        ("X: a\r\n b\r\n", 400),
        ("X: a\nContent-Length: 3\r\n", 400),
        ("X: a\rb\r\n", 400),
        ("X\0: a\r\n", 400),
        ("X: a\0\r\n", 400),
        (": a\r\n", 400),
        (" X: a\r\n", 400),
    ] {
        assert_eq!(refused(&with(lines)), Some(status), "{lines:?}");
    }
    for (text, status) in [
        ("GET / HTTP/2.0\r\n\r\n", 505),
        ("GET /\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\n\r\n", 400),
        ("\x16\x03\x01\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: x\n\n", 400),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("*1\r\n$4\r\nPING\r\n\r\n", 400),
    ] {
        assert_eq!(refused(text), Some(status), "{text:?}");
    }
}

#[test]
fn chunks_are_read_strictly() {
    let with = |body: &str| format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    for broken in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x1\r\n",
        "1\r\nabc",
        "1\n",
        "1\r\na\n",
        "ffffffffffffffff\r\n",
        "fffffffffffff\r\n",
        " 1\r\na\r\n",
        "1\r\r\na\r\n",
        "1;a\rb\r\na\r\n",
        "1;a\0b\r\na\r\n",
        // A party that ends trailers here sees a request after them.
        "0\r\nX: y\n\nGET /hidden HTTP/1.1\r\n\r\n",
        "0\r\nX: y\n\r\n",
    ] {
        assert_eq!(refused(&with(broken)), Some(400), "{broken:?}");
    }
    let long = format!("0\r\nX: {}", "y".repeat(limits::HTTP_HEAD));
    assert_eq!(refused(&with(&long)), Some(431));
    let (found, refusal) = parsed(with("1\t ;x\r\na\r\n0\r\nX: y\r\n\r\n").as_bytes(), 3, LARGE);
    assert_eq!((found.len(), refusal), (1, None), "blanks may stand behind the digits");
    for (length, refusal) in
        [(limits::HTTP_CHUNK_LINE, None), (limits::HTTP_CHUNK_LINE + 1, Some(400))]
    {
        let line = format!("1;{}", "x".repeat(length - 2));
        assert_eq!(refused(&with(&format!("{line}\r\na\r\n0\r\n\r\n"))), refusal, "{length}");
        assert_eq!(refused(&with(&format!("{line}xx"))), Some(400), "before it has arrived");
    }
    assert_eq!(refused(&with("fffffffffff\r\n")), Some(413));
}

#[test]
fn decoded_chunks_do_not_stay_in_the_buffer() {
    let ignore = |_: &Head<'_>, _: Body<'_>| ();
    let mut parser = Parser::default();
    let mut buffer = b"GET /a HTTP/1.1\r\n\r\n".to_vec();
    buffer.extend_from_slice(b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let heads = buffer.len();
    assert_eq!(parser.parse(&buffer, LARGE, ignore), Parsed::Request(()));
    assert!(matches!(parser.parse(&buffer, LARGE, ignore), Parsed::Head { .. }));
    // Its extension makes each chunk 250 times as long as what it carries.
    let chunk = format!("1;{}\r\nx\r\n", "e".repeat(250));
    for _ in 0..1000 {
        buffer.extend_from_slice(chunk.as_bytes());
        assert_eq!(parser.parse(&buffer, LARGE, ignore), Parsed::Incomplete);
        buffer.drain(parser.compact_if_worthwhile(buffer.len()));
        assert!(buffer.len() <= heads + chunk.len(), "{} bytes", buffer.len());
    }
    buffer.extend_from_slice(b"0\r\n\r\nGET /c HTTP/1.1\r\n\r\n");
    let body = |head: &Head<'_>, body: Body<'_>| {
        (head.target.to_owned(), body == Body::Apart(vec![b'x'; 1000]))
    };
    assert_eq!(parser.parse(&buffer, LARGE, body), Parsed::Request(("/b".into(), true)));
    assert_eq!(parser.parse(&buffer, LARGE, body), Parsed::Request(("/c".into(), false)));
}

#[test]
fn a_body_that_comes_before_the_caller_has_looked_again_keeps_its_order() {
    let body: Vec<u8> = (0..limits::BIG_ARGUMENT).map(|at| (at / 7) as u8).collect();
    let (first, second) = body.split_at(1000);
    let head = format!("PUT / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut buffer = [head.as_bytes(), first].concat();
    let mut parser = Parser::default();
    let take = |_: &Head<'_>, body: Body<'_>| match body {
        Body::Here(bytes) => bytes.to_vec(),
        Body::Apart(bytes) => bytes,
    };
    assert!(matches!(parser.parse(&buffer, LARGE, take), Parsed::Head { .. }));
    for part in second.chunks(10_000) {
        match parser.receives_apart() {
            Some((bytes, _)) => bytes.extend_from_slice(part),
            None => buffer.extend_from_slice(part),
        }
    }
    assert_eq!(parser.parse(&buffer, LARGE, take), Parsed::Request(body));
}

#[test]
fn what_is_too_long_is_refused_before_it_has_arrived() {
    let head = limits::HTTP_HEAD;
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(head))), Some(431));
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(head))), Some(431));
    let many = "X: y\r\n".repeat(limits::HTTP_HEADERS + 1);
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(431));
    let target = "x".repeat(limits::HTTP_TARGET);
    assert_eq!(refused(&format!("GET /{target} HTTP/1.1\r\n\r\n")), Some(414));
    let (_, status) = parsed(b"PUT / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", 5, 10);
    assert_eq!(status, Some(413));
    let chunked = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\n";
    assert_eq!(parsed(chunked, 5, 10).1, Some(413));
}

proptest! {
    #[test]
    fn pieces_never_change_what_is_found(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "GET / HTTP/1.1\r\n", "Host: x\r\n", "\r\n", "Content-Length: 3\r\n",
                "Transfer-Encoding: chunked\r\n", "abc", "3\r\n", "0\r\n", "\n", " ",
            ]),
            0..20,
        ),
        step in 1usize..9,
    ) {
        let bytes = parts.concat();
        let whole = parsed(bytes.as_bytes(), usize::MAX / 2, LARGE);
        prop_assert_eq!(parsed(bytes.as_bytes(), step, LARGE), whole);
    }
}
