//! The reply parser against the output of the reply writer, and against garbage.

use base::limits;
use proptest::prelude::*;

use super::*;
use crate::output::Output;
use crate::reply::Reply;

fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, ReplyError> {
    ReplyParser::new().next(bytes)
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

#[test]
fn each_kind_is_read() {
    let cases = [
        ("+OK\r\n", Value::Simple(b"OK".to_vec())),
        ("+\r\n", Value::Simple(Vec::new())),
        ("-ERR x\r\n", Value::Error(b"ERR x".to_vec())),
        (":-12\r\n", Value::Integer(-12)),
        ("$-1\r\n", Value::Null),
        ("*-1\r\n", Value::NullArray),
        ("_\r\n", Value::Null),
        ("$4\r\na\r\nb\r\n", bulk("a\r\nb")),
        ("!5\r\nERR x\r\n", Value::Error(b"ERR x".to_vec())),
        ("=6\r\ntxt:Hi\r\n", Value::Verbatim(*b"txt", b"Hi".to_vec())),
        (",1.5\r\n", Value::Double(b"1.5".to_vec())),
        ("#t\r\n", Value::Boolean(true)),
        ("#f\r\n", Value::Boolean(false)),
        ("(123\r\n", Value::BigNumber(b"123".to_vec())),
        ("*0\r\n", Value::Array(Vec::new())),
        (
            "*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
            Value::Array(vec![Value::Integer(1), Value::Array(vec![bulk("a")])]),
        ),
        (
            "%1\r\n+k\r\n~1\r\n:1\r\n",
            Value::Map(vec![(Value::Simple(b"k".to_vec()), Value::Set(vec![Value::Integer(1)]))]),
        ),
        (">1\r\n_\r\n", Value::Push(vec![Value::Null])),
        (
            "*1\r\n|1\r\n+a\r\n:1\r\n:2\r\n",
            Value::Array(vec![Value::Attributed(
                vec![(Value::Simple(b"a".to_vec()), Value::Integer(1))],
                Box::new(Value::Integer(2)),
            )]),
        ),
        ("|0\r\n:2\r\n", Value::Attributed(Vec::new(), Box::new(Value::Integer(2)))),
    ];
    for (text, value) in cases {
        // The following bytes belong to the next reply.
        let bytes = format!("{text}+next\r\n");
        assert_eq!(parse(bytes.as_bytes()), Ok(Some((value, text.len()))), "{text:?}");
        for cut in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..cut]), Ok(None), "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn what_is_no_reply() {
    let deep = "*1\r\n".repeat(limits::MAX_REPLY_NESTING + 1);
    let endless = format!("*{}", "1".repeat(limits::MAX_INLINE));
    let cases = [
        ("hello\r\n", ReplyError::UnknownKind(b'h')),
        ("\r\n", ReplyError::UnknownKind(b'\r')),
        ("\n", ReplyError::UnknownKind(b'\n')),
        ("*1\r\n?\r\n", ReplyError::UnknownKind(b'?')),
        ("$x\r\n", ReplyError::InvalidNumber),
        ("$-2\r\n", ReplyError::InvalidNumber),
        ("*99999999999999999\r\n", ReplyError::InvalidNumber),
        ("$99999999999999\r\n", ReplyError::InvalidNumber),
        (":x\r\n", ReplyError::InvalidNumber),
        ("#x\r\n", ReplyError::InvalidNumber),
        ("=2\r\nab\r\n", ReplyError::InvalidNumber),
        (&deep, ReplyError::TooDeep),
        (&endless, ReplyError::LineTooLong),
    ];
    for (text, error) in cases {
        assert_eq!(parse(text.as_bytes()), Err(error), "{:.20}", text);
    }
}

#[test]
fn numbers_and_bytes_of_values() {
    assert_eq!(bulk("1.5").as_f64(), Some(1.5));
    assert_eq!(Value::Double(b"inf".to_vec()).as_f64(), Some(f64::INFINITY));
    assert_eq!(Value::Integer(2).as_f64(), Some(2.0));
    assert_eq!((Value::Null.as_f64(), Value::Null.as_bytes()), (None, None));
    assert_eq!(Value::Simple(b"OK".to_vec()).as_bytes(), Some(&b"OK"[..]));
    assert!(Value::Error(Vec::new()).is_error());
}

#[test]
fn commands_are_encoded() {
    let mut bytes = Vec::new();
    encode_command(["SET", "k", ""].iter(), &mut bytes);
    assert_eq!(bytes, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

/// The possible answers of a handler.
#[derive(Clone, Debug)]
enum Answer {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    BulkInt(i64),
    Shared(usize),
    Null,
    NullArray,
    Array(Vec<Answer>, bool),
    Map(Vec<(Answer, Answer)>, bool),
    Set(Vec<Answer>, bool),
    Push(Vec<Answer>),
    Double(f64),
    Boolean(bool),
    BigNumber(u128),
    Verbatim(String),
    Attributed(Vec<(Answer, Answer)>, Box<Answer>),
}

fn answers() -> impl Strategy<Value = Answer> {
    let leaf = prop_oneof![
        "[ -~]{0,20}".prop_map(Answer::Simple),
        "ERR [ -~]{0,20}".prop_map(Answer::Error),
        any::<i64>().prop_map(Answer::Integer),
        (0i64..300).prop_map(Answer::Integer),
        proptest::collection::vec(any::<u8>(), 0..120).prop_map(Answer::Bulk),
        any::<i64>().prop_map(Answer::BulkInt),
        (16_000usize..17_000).prop_map(Answer::Shared),
        Just(Answer::Null),
        Just(Answer::NullArray),
        any::<f64>().prop_map(Answer::Double),
        any::<bool>().prop_map(Answer::Boolean),
        any::<u128>().prop_map(Answer::BigNumber),
        "[ -~\r\n]{0,20}".prop_map(Answer::Verbatim),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let list = || proptest::collection::vec(inner.clone(), 0..6);
        let pairs = || proptest::collection::vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            (list(), any::<bool>()).prop_map(|(list, late)| Answer::Array(list, late)),
            (pairs(), any::<bool>()).prop_map(|(pairs, late)| Answer::Map(pairs, late)),
            (list(), any::<bool>()).prop_map(|(list, late)| Answer::Set(list, late)),
            list().prop_map(Answer::Push),
            (pairs(), inner.clone())
                .prop_map(|(pairs, answer)| Answer::Attributed(pairs, Box::new(answer))),
        ]
    })
}

fn write_pairs(pairs: &[(Answer, Answer)], reply: &mut Reply<'_>) {
    for (key, value) in pairs {
        write(key, reply);
        write(value, reply);
    }
}

/// Writes an answer, with lengths before or after the elements as it asks.
fn write(answer: &Answer, reply: &mut Reply<'_>) {
    let mark = reply.mark();
    match answer {
        Answer::Simple(text) => reply.simple(text.as_bytes()),
        Answer::Error(text) => reply.error(text.as_bytes()),
        Answer::Integer(value) => reply.integer(*value),
        Answer::Bulk(bytes) => reply.bulk(bytes),
        Answer::BulkInt(value) => reply.bulk_int(*value),
        Answer::Shared(length) => reply.bulk_shared(&vec![b's'; *length].into()),
        Answer::Null => reply.null(),
        Answer::NullArray => reply.null_array(),
        Answer::Array(list, late) => {
            if !late {
                reply.array(list.len());
            }
            list.iter().for_each(|answer| write(answer, reply));
            if *late {
                reply.close_array(mark, list.len());
            }
        }
        Answer::Map(pairs, late) => {
            if !late {
                reply.map(pairs.len());
            }
            write_pairs(pairs, reply);
            if *late {
                reply.close_map(mark, pairs.len());
            }
        }
        Answer::Set(list, late) => {
            if !late {
                reply.set(list.len());
            }
            list.iter().for_each(|answer| write(answer, reply));
            if *late {
                reply.close_set(mark, list.len());
            }
        }
        Answer::Push(list) => {
            reply.push(list.len());
            list.iter().for_each(|answer| write(answer, reply));
        }
        Answer::Double(value) => reply.double(*value),
        Answer::Boolean(value) => reply.boolean(*value),
        Answer::BigNumber(value) => reply.big_number(value.to_string().as_bytes()),
        Answer::Verbatim(text) => reply.verbatim(b"txt", text.as_bytes()),
        Answer::Attributed(pairs, answer) => {
            if reply.attribute(pairs.len()) {
                write_pairs(pairs, reply);
            }
            write(answer, reply);
        }
    }
}

/// The value that a client must read for an answer.
fn expected(answer: &Answer, resp3: bool) -> Value {
    let all = |list: &[Answer]| list.iter().map(|answer| expected(answer, resp3)).collect();
    let both = |pairs: &[(Answer, Answer)]| {
        pairs.iter().map(|(key, value)| (expected(key, resp3), expected(value, resp3))).collect()
    };
    match answer {
        Answer::Simple(text) => Value::Simple(text.clone().into()),
        Answer::Error(text) => Value::Error(text.clone().into()),
        Answer::Integer(value) => Value::Integer(*value),
        Answer::Bulk(bytes) => Value::Bulk(bytes.clone()),
        Answer::BulkInt(value) => bulk(&value.to_string()),
        Answer::Shared(length) => Value::Bulk(vec![b's'; *length]),
        Answer::NullArray if !resp3 => Value::NullArray,
        Answer::Null | Answer::NullArray => Value::Null,
        Answer::Array(list, _) => Value::Array(all(list)),
        Answer::Map(pairs, _) if resp3 => Value::Map(both(pairs)),
        Answer::Map(pairs, _) => {
            let flat = pairs.iter().flat_map(|(key, value)| [key, value]);
            Value::Array(flat.map(|answer| expected(answer, resp3)).collect())
        }
        Answer::Set(list, _) if resp3 => Value::Set(all(list)),
        Answer::Push(list) if resp3 => Value::Push(all(list)),
        Answer::Set(list, _) | Answer::Push(list) => Value::Array(all(list)),
        Answer::Double(value) => {
            let mut text = Vec::new();
            num::write_f64(&mut text, *value);
            if resp3 { Value::Double(text) } else { Value::Bulk(text) }
        }
        Answer::Boolean(value) if resp3 => Value::Boolean(*value),
        Answer::Boolean(value) => Value::Integer(i64::from(*value)),
        Answer::BigNumber(value) if resp3 => Value::BigNumber(value.to_string().into()),
        Answer::BigNumber(value) => bulk(&value.to_string()),
        Answer::Verbatim(text) if resp3 => Value::Verbatim(*b"txt", text.clone().into()),
        Answer::Verbatim(text) => bulk(text),
        Answer::Attributed(pairs, answer) if resp3 => {
            Value::Attributed(both(pairs), Box::new(expected(answer, resp3)))
        }
        Answer::Attributed(_, answer) => expected(answer, resp3),
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read(
        list in proptest::collection::vec(answers(), 1..4),
        resp3: bool,
        piece in 1usize..3000,
    ) {
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, resp3);
        list.iter().for_each(|answer| write(answer, &mut reply));
        let (mut parser, mut buffer, mut values) = (ReplyParser::new(), Vec::new(), Vec::new());
        for bytes in output.to_vec().chunks(piece) {
            buffer.extend_from_slice(bytes);
            while let Some((value, length)) = parser.next(&buffer).unwrap() {
                let at_once = parse(&buffer).map(|found| found.map(|(_, length)| length));
                prop_assert_eq!(at_once, Ok(Some(length)));
                buffer.drain(..length);
                values.push(value);
            }
        }
        let wanted: Vec<Value> = list.iter().map(|answer| expected(answer, resp3)).collect();
        prop_assert_eq!(values, wanted);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn garbage_never_panics(
        lines in proptest::collection::vec("[-+:$*%~>|_#,(=!][-0-9a-z]{0,4}(\r\n|\n)", 0..12),
        bytes in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let _ = parse(lines.concat().as_bytes());
        let _ = parse(&bytes);
    }
}
