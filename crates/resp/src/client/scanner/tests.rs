use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::client::ReplyParser;

/// The results of a scanner for bytes that come in pieces: lengths and errors.
fn scan(pieces: &[&[u8]]) -> Result<Vec<(u64, Option<String>)>, ReplyError> {
    let mut scanner = ReplyScanner::default();
    let mut replies = Vec::new();
    for piece in pieces {
        scanner.scan(piece, |length, error| {
            replies.push((length, error.map(|e| String::from_utf8_lossy(e).into_owned())));
        })?;
    }
    Ok(replies)
}

#[test]
fn replies_of_all_kinds_are_found() {
    let stream: &[&[u8]] = &[
        b"+OK\r\n",
        b":12\r\n",
        b"$3\r\nabc\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n*1\r\n$1\r\n\n\r\n:1\r\n",
        b"%1\r\n+k\r\n~2\r\n#t\r\n_\r\n",
        b"|1\r\n+a\r\n+b\r\n+reply\r\n",
        b",1.5\r\n",
        b"(123456789012345678901234567890\r\n",
        b"=7\r\ntxt:abc\r\n",
    ];
    let lengths: Vec<u64> = stream.iter().map(|reply| reply.len() as u64).collect();
    let all = stream.concat();
    let expected: Vec<_> = lengths.iter().map(|length| (*length, None)).collect();
    assert_eq!(scan(&[&all]), Ok(expected.clone()));
    let single: Vec<&[u8]> = all.chunks(1).collect();
    assert_eq!(scan(&single), Ok(expected));
}

#[test]
fn errors_are_told_and_only_those_of_requests() {
    let said = scan(&[b"-ERR no\r\n*1\r\n-ERR inner\r\n-MISCONF", b" x\r\n!3\r\nabc\r\n"]);
    let texts: Vec<_> = said.expect("replies").into_iter().map(|(_, error)| error).collect();
    let owned = |text: &str| Some(text.to_owned());
    assert_eq!(texts, [owned("ERR no"), None, owned("MISCONF x"), owned("error")]);
}

#[test]
fn the_line_of_an_error_may_be_long_and_come_in_pieces() {
    let long = format!("-ERR {}", "x".repeat(1000));
    let said = scan(&[long.as_bytes(), b"\r", b"\n+OK\r\n"]).expect("replies");
    assert_eq!(said.len(), 2);
    assert_eq!(said[0].0, 1007);
    assert!(said[0].1.as_ref().is_some_and(|error| error.starts_with("ERR xxx")));
}

#[test]
fn a_push_answers_nothing() {
    let said = scan(&[b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"]).expect("replies");
    assert_eq!(said.len(), 1);
}

#[test]
fn a_scan_ends_where_it_is_told_to() {
    let bytes = b">1\r\n:1\r\n+OK\r\n$2\r\nab\r\n";
    for (enough, taken) in [(1, 8), (2, 13), (3, bytes.len()), (4, bytes.len())] {
        let mut left = enough;
        let found = ReplyScanner::default().scan_until(bytes, |_| {
            left -= 1;
            left == 0
        });
        assert_eq!(found, Ok(taken));
    }
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(scan(&[b"HTTP/1.1\r\n"]), Err(ReplyError::UnknownKind(b'H')));
    assert_eq!(scan(&[b"$x\r\n"]), Err(ReplyError::InvalidNumber));
    assert_eq!(scan(&[b"$\n"]), Err(ReplyError::InvalidNumber));
    assert_eq!(scan(&[b"*02\n"]), Err(ReplyError::InvalidNumber), "a line ends in both bytes");
    assert_eq!(scan(&[&[b'$'; 100]]), Err(ReplyError::LineTooLong));
    let deep = b"*1\r\n".repeat(limits::MAX_REPLY_NESTING + 1);
    assert_eq!(scan(&[&deep]), Err(ReplyError::TooDeep));
}

/// A reply as a server would write it.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let string = vec(any::<u8>(), 0..200).prop_map(|text| {
        [format!("${}\r\n", text.len()).into_bytes(), text, b"\r\n".to_vec()].concat()
    });
    let leaf = prop_oneof![
        "[+(][a-z0-9]{0,90}".prop_map(|line| format!("{line}\r\n").into_bytes()),
        "[:,][1-9][0-9]{0,17}".prop_map(|line| format!("{line}\r\n").into_bytes()),
        string,
        Just(b"$-1\r\n".to_vec()),
        Just(b"_\r\n".to_vec()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        vec(inner, 0..5).prop_flat_map(|replies| {
            let body = replies.concat();
            let (count, pairs) = (replies.len(), replies.len() / 2);
            let array = format!("*{count}\r\n").into_bytes();
            let set = format!("~{count}\r\n").into_bytes();
            let mut map = format!("%{pairs}\r\n").into_bytes();
            map.extend(replies[..2 * pairs].concat());
            prop_oneof![Just([array, body.clone()].concat()), Just([set, body].concat()), Just(map)]
        })
    })
}

proptest! {
    #[test]
    fn any_pieces_give_what_the_parser_finds(
        replies in vec(reply(), 1..8), cuts in vec(any::<prop::sample::Index>(), 0..12)
    ) {
        let stream = replies.concat();
        let mut parser = ReplyParser::new();
        let (mut rest, mut expected) = (&stream[..], Vec::new());
        while let Some((_, length)) = parser.next(rest).expect("replies") {
            expected.push((length as u64, None));
            rest = &rest[length..];
        }
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(scan(&pieces), Ok(expected));
    }
}
