//! Requests of HTTP. The first byte says in what pieces the rest arrives.

#![no_main]

use base::limits;
use http::request::{Body, Head, Parsed, Parser};
use http::target::{self, Target};
use http::{json, tag};
use libfuzzer_sys::fuzz_target;

/// A request as it was parsed.
type Found = (String, Vec<u8>);

const MOST: u64 = 1 << 20;

/// Takes a request apart as the server does.
fn take(head: &Head<'_>, body: Body<'_>) -> Found {
    let body = match body {
        Body::Here(bytes) => bytes.to_vec(),
        Body::Apart(bytes) => bytes,
    };
    assert!(body.len() as u64 <= MOST, "the bound holds");
    let mut decoded = Vec::new();
    if let Ok(target) = Target::split(head.target.as_bytes()) {
        let _ = target::decode(target.path, &mut decoded);
        for (name, value) in target.parameters() {
            let _ = target::decode_query(name, &mut decoded);
            let _ = target::decode_query(value, &mut decoded);
        }
    }
    assert!(decoded.len() <= limits::HTTP_TARGET, "decoding makes nothing longer");
    let _ = tag::parse(head.all("if-match"), true);
    let mut words = Vec::new();
    let _ = json::read_command(&body, &mut |word| words.push(word));
    let _ = json::read_commands(&body, |word| words.extend(word));
    for word in words {
        match word {
            json::Word::Plain(range) => assert!(std::str::from_utf8(&body[range]).is_ok()),
            json::Word::Escaped(range) => _ = json::unescape(&body[range], &mut Vec::new()),
        }
    }
    (format!("{} {} {}", head.method, head.target, head.closes()), body)
}

/// Feeds the bytes in pieces of `step`: the requests that are found, and how that ends.
fn parse(bytes: &[u8], step: usize) -> (Vec<Found>, Option<u16>) {
    let mut parser = Parser::default();
    let (mut buffer, mut found, mut sent) = (Vec::new(), Vec::new(), 0);
    loop {
        match parser.parse(&buffer, MOST, take) {
            Parsed::Request(request) => {
                found.push(request);
                let done = parser.compact_when_due(buffer.len());
                buffer.drain(..done);
            }
            Parsed::Head { .. } => {}
            Parsed::Refused(refusal) => return (found, Some(refusal.status)),
            Parsed::Incomplete if sent == bytes.len() => return (found, None),
            Parsed::Incomplete => {
                let part = &bytes[sent..bytes.len().min(sent + step)];
                sent += match parser.receives_apart() {
                    Some((body, room)) => {
                        let part = &part[..part.len().min(room)];
                        body.extend_from_slice(part);
                        part.len()
                    }
                    None => {
                        buffer.extend_from_slice(part);
                        part.len()
                    }
                };
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&step, bytes)) = input.split_first() else { return };
    let (pieces, whole) = (parse(bytes, usize::from(step) + 1), parse(bytes, usize::MAX / 2));
    assert_eq!(pieces, whole, "pieces make no difference");
});
