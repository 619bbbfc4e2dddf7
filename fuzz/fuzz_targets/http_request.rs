//! Requests of HTTP. The first byte says in what pieces the rest arrives.

#![no_main]

use fuzz::bounded;
use http::request::{Body, Head, Parsed, Parser};
use http::target::{self, Target};
use http::{json, tag, weight};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// A request as it was parsed: its head, and its body.
type Found = (String, Vec<u8>);

/// Bytes of a body at most.
const MOST: u64 = 1 << 20;

/// Bytes that are always there: room for a body that is announced as large.
const LEAST: usize = (64 << 10) + MOST as usize;

/// Bytes that a byte of input may take: a word of a command takes two, and is a range here.
const PER_BYTE: usize = 200;

/// Takes a request apart as the server does.
fn take(head: &Head<'_>, body: Body<'_>) -> Found {
    let body = match body {
        Body::Here(bytes) => bytes.to_vec(),
        Body::Apart(bytes) => bytes,
    };
    assert!(body.len() as u64 <= MOST, "the bound holds");
    address(head.target);
    let _ = tag::parse(head.all("if-match"), true);
    let _ = weight::takes(head.all("accept-encoding"), "gzip");
    commands(&body);
    (format!("{head:?} {}", head.closes()), body)
}

fn address(text: &str) {
    let Ok(target) = Target::split(text.as_bytes()) else { return };
    let mut decoded = Vec::new();
    let is_valid = target::decode(target.path, &mut decoded).is_ok();
    assert!(decoded.len() <= target.path.len(), "decoding makes nothing longer");
    assert!(target::is_encoded(target.path) || is_valid && decoded == target.path);
    for (name, value) in target.parameters() {
        for text in [name, value] {
            let mut decoded = Vec::new();
            let is_valid = target::decode_query(text, &mut decoded).is_ok();
            assert!(decoded.len() <= text.len(), "decoding makes nothing longer");
            assert!(target::is_encoded_in_query(text) || is_valid && decoded == text);
        }
    }
}

/// Reads a body as a command, and as many. What JSON has there, another library decides.
fn commands(body: &[u8]) {
    let mut words = Vec::new();
    let is_array =
        json::read_words(body, usize::MAX, &mut |word| words.push(text(body, word))).is_ok();
    if let Some(expected) = words_of(body) {
        assert!(is_array && words.len() == expected.len(), "an array of words is read");
        let same = words.iter().zip(&expected).all(|(word, expected)| is_word(word, expected));
        assert!(same, "words are what they are to others");
    }
    let is_command = json::read_command(body, &mut |_| ()).is_ok();
    assert!(is_array || !is_command, "a command is an array of words");
    let mut all = Vec::new();
    let _ = json::read_commands(body, |word| all.extend(word.map(|word| text(body, word))));
}

/// A word; nothing if it has a wrong escape.
fn text(body: &[u8], word: json::Word) -> Option<String> {
    match word {
        json::Word::Plain(range) => {
            Some(std::str::from_utf8(&body[range]).expect("it was checked").to_owned())
        }
        json::Word::Escaped(range) => {
            let mut text = Vec::new();
            json::unescape(&body[range], &mut text).ok()?;
            Some(String::from_utf8(text).expect("a string of JSON is text"))
        }
    }
}

/// The words of an array of JSON that has nothing else, and one at least.
fn words_of(body: &[u8]) -> Option<Vec<Value>> {
    let Ok(Value::Array(items)) = serde_json::from_slice(body) else { return None };
    let is_word = |item: &Value| item.is_string() || item.is_number() || item.is_boolean();
    (!items.is_empty() && items.iter().all(is_word)).then_some(items)
}

/// Whether this is the text of a word. Of a number it has the digits that were written.
fn is_word(text: &Option<String>, expected: &Value) -> bool {
    let Some(text) = text else { return false };
    match expected {
        Value::String(expected) => text == expected,
        expected => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *expected),
    }
}

/// Feeds the bytes in pieces of `step`: the requests that are found, and how that ends.
fn parse(bytes: &[u8], step: usize) -> (Vec<Found>, Option<u16>) {
    let mut parser = Parser::default();
    let (mut buffer, mut found, mut sent) = (Vec::new(), Vec::new(), 0);
    loop {
        match parser.parse(&buffer, MOST, take) {
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
    let whole = bounded(bytes.len(), LEAST, PER_BYTE, || parse(bytes, usize::MAX / 2));
    let pieces = parse(bytes, usize::from(step) + 1);
    assert_eq!(pieces, whole, "pieces make no difference");
});
