//! Requests as bytes that are ready to be sent except for some digits: the parts that all requests
//! share are laid out once, when the load begins.

use std::ops::Range;

use super::{HttpRequest, HttpWork, Keys, Operation, RespWork, Size};
use base::rng::Rng;
use resp::client::encode_command;

/// The digits of a number in a key, as in redis-benchmark.
pub(crate) const DIGITS: usize = 12;
const NUMBER: &str = "__rand_int__";
const KEY: &str = "__key__";
const DATA: &str = "__data__";
/// Stands for digits while a request is laid out. No byte of UTF-8 text has this value.
const MARK: u8 = 0xff;

/// A request, ready but for the numbers of its keys.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// The request, with zeros for the numbers.
    pub(crate) bytes: Vec<u8>,
    /// Where numbers begin.
    pub(crate) holes: Vec<usize>,
    /// Where the key of a command is, if it has one: the first word with a placeholder of a key, or
    /// else the first after the command's name.
    pub(crate) key: Option<Range<usize>>,
}

/// The templates of one operation: one per size, or a single one if it carries no data.
pub(crate) type Templates = Vec<Template>;

/// Lays out the commands of a plan.
pub(crate) fn of_commands(work: &RespWork, seed: u64) -> Vec<Templates> {
    let lay_out = |operation: &Operation, data: &[u8]| {
        let words = operation.arguments.iter();
        let expanded: Vec<Vec<u8>> = words.map(|word| expand(word, &work.keys, data)).collect();
        let mut bytes = Vec::new();
        match &expanded[..] {
            [line] if line.ends_with(b"\r\n") => bytes.extend_from_slice(line),
            words => encode_command(words.iter(), &mut bytes),
        }
        let is_key = |word: &String| word.contains(NUMBER) || word.contains(KEY);
        let key = operation.arguments.iter().skip(1).position(is_key).unwrap_or(0) + 1;
        Template { key: place_of(key, &expanded), ..finish(bytes) }
    };
    let data = |operation: &Operation| operation.arguments.iter().any(|word| word.contains(DATA));
    work.operations
        .iter()
        .map(|operation| {
            per_size(data(operation), &work.sizes, seed, |data| lay_out(operation, data))
        })
        .collect()
}

/// Lays out the HTTP requests of a plan; `host` is the header's value.
pub(crate) fn of_http(work: &HttpWork, host: &str, seed: u64) -> Vec<Templates> {
    let lay_out = |request: &HttpRequest, data: &[u8]| {
        let mut bytes = format!("{} ", request.method).into_bytes();
        bytes.extend(expand(&request.path, &work.keys, data));
        bytes.extend_from_slice(format!(" HTTP/1.1\r\nHost: {host}\r\n").as_bytes());
        for (name, value) in &request.headers {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend(expand(value, &work.keys, data));
            bytes.extend_from_slice(b"\r\n");
        }
        if !work.keep_alive {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        if let Some(body) = &request.body {
            let body = expand(body, &work.keys, data);
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend(body);
        } else {
            bytes.extend_from_slice(b"\r\n");
        }
        finish(bytes)
    };
    let data = |request: &HttpRequest| {
        let mut texts = request.headers.values().chain(&request.body);
        texts.any(|text| text.contains(DATA)) || request.path.contains(DATA)
    };
    work.requests
        .iter()
        .map(|request| per_size(data(request), &work.sizes, seed, |data| lay_out(request, data)))
        .collect()
}

fn per_size(
    has_data: bool,
    sizes: &[Size],
    seed: u64,
    lay_out: impl Fn(&[u8]) -> Template,
) -> Templates {
    if has_data {
        sizes.iter().map(|size| lay_out(&data(size.bytes, seed))).collect()
    } else {
        vec![lay_out(&[])]
    }
}

/// Letters and digits without a pattern, so that they are not easier to store than usual data.
pub(crate) fn data(length: usize, seed: u64) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = Rng::from_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    for byte in &mut bytes {
        *byte = LETTERS[usize::from(*byte % 64)];
    }
    bytes
}

/// A word with its placeholders filled in; numbers become marks, unless they stay as written.
fn expand(word: &str, keys: &Keys, data: &[u8]) -> Vec<u8> {
    let word = word.replace(KEY, &format!("key:{NUMBER}"));
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = &word[..];
    let number = if *keys == Keys::Literal { NUMBER.as_bytes() } else { &[MARK; DIGITS] };
    while !rest.is_empty() {
        let found = [(NUMBER, number), (DATA, data)]
            .into_iter()
            .filter_map(|(name, text)| Some((rest.find(name)?, name, text)))
            .min_by_key(|(at, ..)| *at);
        let Some((at, name, text)) = found else { break };
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.extend_from_slice(text);
        rest = &rest[at + name.len()..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Finds the marks and puts zeros there.
fn finish(mut bytes: Vec<u8>) -> Template {
    let mut holes = Vec::new();
    let mut from = 0;
    while let Some(offset) = memchr::memchr(MARK, &bytes[from..]) {
        let at = from + offset;
        holes.push(at);
        from = at + DIGITS;
        bytes[at..from].fill(b'0');
    }
    Template { bytes, holes, key: None }
}

/// Where a word of a command is after it was encoded, if there is such a word.
fn place_of(word: usize, words: &[Vec<u8>]) -> Option<Range<usize>> {
    // A number with the byte before it and the end of its line.
    let line = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 4;
    let length = words.get(word)?.len();
    let before: usize = words[..word].iter().map(|word| line(word.len()) + word.len() + 2).sum();
    let from = line(words.len()) + before + line(length);
    Some(from..from + length)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn command(words: &[&str]) -> Operation {
        let arguments = words.iter().map(|word| (*word).to_owned()).collect();
        Operation { name: words[0].to_owned(), weight: 1.0, arguments }
    }

    fn work(words: &[&str], keys: Keys) -> RespWork {
        let sizes = vec![Size { bytes: 4, weight: 9.0 }, Size { bytes: 100, weight: 1.0 }];
        RespWork { operations: vec![command(words)], keys, sizes, ..RespWork::default() }
    }

    #[test]
    fn placeholders_within_words_are_filled_in() {
        let work = work(&["SET", "__key__", "a__data__b__rand_int__"], Keys::Uniform { count: 9 });
        let templates = of_commands(&work, 1);
        assert_eq!(templates[0].len(), 2);
        let Template { bytes, holes, key } = &templates[0][0];
        assert_eq!(bytes.get(key.clone().expect("it has one")), Some(&b"key:000000000000"[..]));
        let text = String::from_utf8_lossy(bytes);
        let expected = "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$18\r\na";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("b000000000000\r\n"), "{text}");
        assert_eq!(holes.len(), 2);
        assert!(templates[0][1].bytes.windows(4).any(|window| window == b"$114"));
    }

    #[test]
    fn literal_keys_stay_as_they_are_written() {
        let templates = of_commands(&work(&["GET", "k:__rand_int__"], Keys::Literal), 1);
        assert_eq!(templates[0].len(), 1);
        assert_eq!(templates[0][0].bytes, b"*2\r\n$3\r\nGET\r\n$14\r\nk:__rand_int__\r\n");
        assert!(templates[0][0].holes.is_empty());
    }

    #[test]
    fn the_key_of_a_command_is_where_its_placeholder_is() {
        let key = |words: &[&str]| {
            let own = of_commands(&work(words, Keys::Uniform { count: 2 }), 1).remove(0).remove(0);
            own.key.map(|key| String::from_utf8_lossy(&own.bytes[key]).into_owned())
        };
        let script = ["EVAL", "return 1234567890", "1", "{k}:__rand_int__", "__data__"];
        assert_eq!(key(&script).as_deref(), Some("{k}:000000000000"));
        assert_eq!(key(&["GET", "a"]).as_deref(), Some("a"));
        assert_eq!(key(&["PING"]), None);
    }

    #[test]
    fn http_requests_know_the_length_of_their_body() {
        let request = HttpRequest {
            name: "POST".to_owned(),
            weight: 1.0,
            method: "POST".to_owned(),
            path: "/k/__rand_int__".to_owned(),
            headers: BTreeMap::from([("Accept".to_owned(), "*/*".to_owned())]),
            body: Some("v=__data__".to_owned()),
        };
        let keys = Keys::Uniform { count: 2 };
        let work = HttpWork { requests: vec![request], keys, ..HttpWork::default() };
        let templates = of_http(&work, "host:80", 1);
        let text = String::from_utf8_lossy(&templates[0][0].bytes).into_owned();
        let expected = "POST /k/000000000000 HTTP/1.1\r\nHost: host:80\r\nAccept: */*\r\n\
                        Content-Length: 5\r\n\r\nv=";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.len(), expected.len() + 3);
    }
}
