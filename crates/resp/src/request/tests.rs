//! The parser against the answers of a reference server, and against itself on any split of a
//! stream.

use proptest::prelude::*;

use super::*;
use crate::client::encode_command;

/// A connection as the network layer drives it: a buffer that is compacted after each read.
#[derive(Default)]
struct Connection {
    parser: Parser,
    buffer: Vec<u8>,
    taken: Option<BigArgument>,
    limits: Limits,
    /// The commands found, and the wire bytes of commands and empty lines.
    commands: Vec<Vec<Vec<u8>>>,
    consumed: u64,
    /// Which of the commands the parser said to begin like the one before.
    alike: Vec<bool>,
    /// How many of the commands were available as they were received.
    as_received: usize,
    error: Option<ProtocolError>,
}

impl Connection {
    fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.taken.take() {
                Some(mut big) => {
                    let (part, rest) = bytes.split_at(bytes.len().min(big.missing()));
                    big.make_room();
                    big.bytes.extend_from_slice(part);
                    bytes = rest;
                    if big.missing() == 0 {
                        self.parser.supply_big(big);
                    } else {
                        self.taken = Some(big);
                    }
                }
                None => {
                    self.buffer.extend_from_slice(bytes);
                    bytes = &[];
                }
            }
            self.parse_all();
        }
    }

    fn parse_all(&mut self) {
        if self.taken.is_some() || self.error.is_some() {
            return;
        }
        let mut args = Vec::new();
        let mut ends = vec![0];
        loop {
            match self.parser.parse(&self.buffer, &self.limits, &mut args) {
                Parsed::Command { argc, consumed, alike } => {
                    assert_eq!(ends[ends.len() - 1] + argc, args.len());
                    ends.push(args.len());
                    self.alike.push(alike);
                    self.consumed += consumed;
                }
                Parsed::Empty { consumed } => self.consumed += consumed,
                Parsed::BigArgument { length } => {
                    let big = self.parser.take_big(&self.buffer).unwrap();
                    assert_eq!(big.bytes.len() + big.missing(), length);
                    if big.missing() > 0 {
                        self.taken = Some(big);
                        break;
                    }
                    self.parser.supply_big(big);
                }
                Parsed::Incomplete => break,
                Parsed::Protocol(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        for pair in ends.windows(2) {
            let arguments = self.parser.arguments(&self.buffer, &args[pair[0]..pair[1]]);
            if let Some(received) = arguments.as_received() {
                let mut encoded = Vec::new();
                encode_command(arguments.iter(), &mut encoded);
                assert_eq!(received, encoded, "nothing but the command itself");
                self.as_received += 1;
            }
            let command: Vec<_> = arguments.iter().map(<[u8]>::to_vec).collect();
            if self.alike[self.commands.len()] {
                let before = &self.commands[self.commands.len() - 1];
                assert_eq!((before.len(), &before[0]), (command.len(), &command[0]));
            }
            self.commands.push(command);
        }
        let done = self.parser.compact_if_worthwhile(self.buffer.len());
        self.buffer.drain(..done);
    }
}

fn receive(bytes: &[u8]) -> Connection {
    let mut connection = Connection::default();
    connection.receive(bytes);
    connection
}

/// The error that `bytes` lead to, as the client reads it.
fn error_after(bytes: &[u8], authenticated: bool) -> Option<String> {
    let mut connection = Connection::default();
    connection.limits.authenticated = authenticated;
    connection.receive(bytes);
    assert!(connection.commands.is_empty());
    connection.error.map(|error| error.to_string())
}

fn array(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn commands_and_what_is_skipped() {
    let connection = receive(
        b"*0\r\n*1\r\n$4\r\nPING\r\n\r\n\n  \r\n*-1\r\n*-99999999999\r\nSET \"a b\" c\r\n\
          *2\r\n$3\r\nGET\r\n$0\r\n\r\nPI",
    );
    let expected: [&[&[u8]]; 3] = [&[b"PING"], &[b"SET", b"a b", b"c"], &[b"GET", b""]];
    assert_eq!(connection.commands, expected);
    assert_eq!((connection.error, &connection.buffer[..]), (None, &b"PI"[..]));
    assert!(connection.parser.is_idle());
}

#[test]
fn line_ends_are_two_bytes_of_any_kind() {
    let connection = receive(b"*1\rX$4\rXPINGXXPING\r\r\n");
    assert_eq!(connection.commands, [[b"PING"], [b"PING"]]);
}

#[test]
fn errors_as_the_reference_words_them() {
    let cases: &[(&[u8], &str)] = &[
        (b"*\r\n", "invalid multibulk length"),
        (b"*+1\r\n$4\r\nPING\r\n", "invalid multibulk length"),
        (b"*01\r\n$4\r\nPING\r\n", "invalid multibulk length"),
        (b"* 1\r\n", "invalid multibulk length"),
        (b"*1x\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\nPING\r\n", "expected \\'$\\', got \\'P\\'"),
        (b"*1\r\n:1\r\n", "expected \\'$\\', got \\':\\'"),
        (b"*1\r\n\r\n", "expected \\'$\\', got \\'\\r\\'"),
        (b"*1\r\n\xff4\r\n", "expected \\'$\\', got \\'\\xff\\'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$4x\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"PING \"a\r\n", "unbalanced quotes in request"),
        (b"\"a\r\nb\"\r\n", "unbalanced quotes in request"),
    ];
    for (bytes, text) in cases {
        let expected = Some(format!("Protocol error: {text}"));
        assert_eq!(error_after(bytes, true), expected, "{}", bytes.escape_ascii());
    }
    assert_eq!(
        ProtocolError::ExpectedDollar(0xff).message(),
        b"Protocol error: expected '$', got '\xff'"
    );
}

#[test]
fn lines_that_do_not_end() {
    let endless = |start: &[u8], length: usize| [start, &b"1".repeat(length)].concat();
    let cases = [
        (endless(b"", 65_537), Some("too big inline request")),
        (endless(b"", 65_536), None),
        (endless(b"*", 65_536), Some("too big mbulk count string")),
        (endless(b"*", 65_535), None),
        (endless(b"*1\r\n$", 65_536), Some("too big bulk count string")),
        (endless(b"*1\r\n$", 65_535), None),
    ];
    for (bytes, text) in cases {
        let expected = text.map(|text| format!("Protocol error: {text}"));
        assert_eq!(error_after(&bytes, true), expected, "{} bytes", bytes.len());
    }
}

#[test]
fn what_waits_for_more() {
    for bytes in ["*1048577\r\n", "*2147483647\r\n", "*1\r", "*1\r\n\n", "*1\r\n$3\r\nab", "*", "x"]
    {
        assert_eq!(error_after(bytes.as_bytes(), true), None, "{bytes:?}");
    }
}

#[test]
fn little_is_accepted_before_authentication() {
    let cases = [
        ("*10\r\n", None),
        ("*11\r\n", Some("unauthenticated multibulk length")),
        ("*2147483648\r\n", Some("invalid multibulk length")),
        ("*1\r\n$16384\r\n", None),
        ("*1\r\n$16385\r\n", Some("unauthenticated bulk length")),
    ];
    for (text, error) in cases {
        let expected = error.map(|text| format!("Protocol error: {text}"));
        assert_eq!(error_after(text.as_bytes(), false), expected, "{text:?}");
    }
}

#[test]
fn big_arguments_are_received_on_their_own() {
    let value: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
    let words = [b"MSET".to_vec(), b"a".to_vec(), value.clone(), b"b".to_vec(), value.clone()];
    let stream = [array(&words), b"PING\r\n".to_vec()].concat();
    for piece in [1000, 4096, 65_536, 150_000] {
        let mut connection = Connection::default();
        for bytes in stream.chunks(piece) {
            connection.receive(bytes);
            assert!(connection.buffer.len() <= piece + 100, "the buffer does not pile up");
        }
        assert_eq!(connection.commands.len(), 2);
        assert_eq!(connection.commands[0], words);
        assert_eq!(connection.consumed, stream.len() as u64);
        assert!(connection.parser.memory() < 100_000);
    }
}

#[test]
fn a_big_argument_can_be_kept_without_copying() {
    let mut parser = Parser::new();
    let mut args = Vec::new();
    let limits = Limits::default();
    let buffer = b"*2\r\n$4\r\nECHO\r\n$40000\r\nabc";
    let parsed = parser.parse(buffer, &limits, &mut args);
    assert_eq!(parsed, Parsed::BigArgument { length: 40_000 });
    assert_eq!(parser.parse(buffer, &limits, &mut args), parsed, "until it is taken");
    let mut big = parser.take_big(buffer).unwrap();
    assert_eq!(parser.compact(), buffer.len());
    assert_eq!((big.missing(), big.bytes.capacity() >= 40_000), (39_997, true));
    big.bytes.resize(40_000, b'x');
    let address = big.bytes.as_ptr();
    parser.supply_big(big);
    assert_eq!(parser.parse(b"\r", &limits, &mut args), Parsed::Incomplete);
    let consumed = buffer.len() as u64 - 3 + 40_000 + 2;
    let parsed = parser.parse(b"\r\n", &limits, &mut args);
    assert_eq!(parsed, Parsed::Command { argc: 2, consumed, alike: false });
    let arguments = parser.arguments(b"\r\n", &args);
    assert_eq!(arguments.at(0), b"ECHO");
    assert!(arguments.shared(1).is_some_and(|shared| shared.as_ptr() == address));
    assert_eq!(parser.compact(), 2);
    assert!(parser.take_big(b"").is_none());
}

#[test]
fn announcing_much_allocates_little() {
    let mut parser = Parser::new();
    let buffer = b"*2000000000\r\n$500000000\r\nx";
    parser.parse(buffer, &Limits::default(), &mut Vec::new());
    assert!(parser.memory() < 1000);
    let mut big = parser.take_big(buffer).unwrap();
    assert!(big.bytes.capacity() <= limits::BIG_ARGUMENT_EAGER);
    big.bytes.resize(big.bytes.capacity(), 0);
    big.make_room();
    assert_eq!(big.bytes.capacity(), 500_000_000, "what has arrived is copied no more");
}

/// A stream of commands in either form, with their meanings.
fn streams() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<Vec<u8>>>)> {
    let argument = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..20),
        2 => proptest::collection::vec(any::<u8>(), 90..1100),
        1 => (32_000usize..34_000).prop_map(|length| vec![b'v'; length]),
    ];
    let command = prop_oneof![
        6 => proptest::collection::vec(argument, 1..15)
            .prop_map(|words| (array(&words), Some(words))),
        2 => proptest::collection::vec("[a-z]{1,9}", 1..5).prop_map(|words| {
            let line = words.join("  ") + "\r\n";
            (line.into_bytes(), Some(words.into_iter().map(String::into_bytes).collect()))
        }),
        1 => "[a-z \"\\\\]{0,9}".prop_map(|text| {
            let quoted: String = text.bytes().map(|byte| format!("\\x{byte:02X}")).collect();
            (format!("ECHO \"{quoted}\"\n").into_bytes(), Some(vec![b"ECHO".to_vec(), text.into()]))
        }),
        1 => prop_oneof![Just("\r\n"), Just("*0\r\n"), Just("*-1\r\n"), Just(" \n")]
            .prop_map(|text| (text.as_bytes().to_vec(), None)),
    ];
    proptest::collection::vec(command, 0..8).prop_map(|commands| {
        let bytes = commands.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        (bytes, commands.into_iter().filter_map(|(_, words)| words).collect())
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_commands(
        (stream, commands) in streams(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut connection = Connection::default();
        for pair in cuts.windows(2) {
            connection.receive(&stream[pair[0]..pair[1]]);
        }
        prop_assert_eq!(connection.error, None);
        prop_assert_eq!(&connection.commands, &commands);
        prop_assert_eq!(connection.consumed, stream.len() as u64);
        prop_assert!(connection.buffer.is_empty());
    }

    #[test]
    fn byte_by_byte_gives_the_same_commands(
        words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 1..12),
    ) {
        let mut connection = Connection::default();
        for byte in array(&words) {
            connection.receive(&[byte]);
        }
        prop_assert_eq!(connection.commands, [words]);
    }

    #[test]
    fn garbage_never_panics(
        pieces in proptest::collection::vec("[*$0-9a\r\n\"'\\\\ ]{0,12}", 0..8),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut connection = Connection::default();
        pieces.iter().for_each(|piece| connection.receive(piece.as_bytes()));
        connection.receive(&bytes);
        receive(&bytes);
    }
}

#[test]
fn a_command_in_the_shortest_form_is_had_as_it_was_received() {
    for (stream, expected) in [
        (&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n"[..], 2),
        (b"*2\r\n$3\r\nGET\r\n$12\r\n123456789012\r\n", 1),
        (b"GET k\r\n", 0),
        // A value that looks like the header of the inline command after it.
        (b"*2\r\n$4\r\nECHO\r\n$6\r\n*2\r\n$3\r\nGET      k\r\n", 1),
        (b"*2\r\n$4\r\nECHO\r\n$6\r\n*2\r\n$3\r\nGET   $1 k\r\n", 1),
    ] {
        let connection = receive(stream);
        assert_eq!(connection.error, None);
        assert_eq!(connection.as_received, expected, "{}", stream.escape_ascii());
    }
}

#[test]
fn neighbours_that_begin_alike_are_told() {
    let lines = [
        ("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", false),
        ("*2\r\n$3\r\nGET\r\n$12\r\naaaaaaaaaaaa\r\n", true),
        ("*2\r\n$3\r\nget\r\n$1\r\na\r\n", false),
        ("*3\r\n$3\r\nget\r\n$1\r\na\r\n$1\r\nb\r\n", false),
        ("*3\r\n$3\r\nget\r\n$1\r\na\r\n$1\r\nb\r\n", true),
        ("get a\r\n", false),
        // The command parsed in between was not a neighbour that could be compared.
        ("*3\r\n$3\r\nget\r\n$1\r\na\r\n$1\r\nb\r\n", false),
        ("*1\r\n$7\r\nCOMMAND\r\n", false),
        // Seventeen bytes: too long to be compared at once.
        ("*1\r\n$7\r\nCOMMAND\r\n", false),
        ("*2\r\n$6\r\nEXISTS\r\n$0\r\n\r\n", false),
        ("*2\r\n$6\r\nEXISTS\r\n$0\r\n\r\n", true),
        ("*2\r\n$6\r\nEXISTT\r\n$0\r\n\r\n", false),
    ];
    let stream: String = lines.iter().map(|(line, _)| *line).collect();
    let connection = receive(stream.as_bytes());
    assert_eq!(connection.alike, lines.map(|(_, alike)| alike));
    assert_eq!(connection.commands[1], [b"GET".to_vec(), vec![b'a'; 12]]);
    // The same in pieces, each of which ends within a command or between two.
    for piece in 1..40 {
        let mut pieces = Connection::default();
        stream.as_bytes().chunks(piece).for_each(|bytes| pieces.receive(bytes));
        assert_eq!(pieces.commands, connection.commands, "in pieces of {piece}");
    }
}

#[test]
fn a_long_buffer_is_moved_once_on_average() {
    const REQUESTS: usize = 10_000;
    let request = array(&[b"PING".to_vec()]);
    let mut buffer = request.repeat(REQUESTS);
    // The last one has arrived in part.
    buffer.truncate(buffer.len() - 3);
    let (whole, mut parser) = (buffer.len(), Parser::new());
    let (mut found, mut moved) = (0, 0);
    while found < REQUESTS - 1 {
        let mut args = Vec::new();
        for _ in 0..10 {
            if let Parsed::Command { .. } = parser.parse(&buffer, &Limits::default(), &mut args) {
                found += 1;
            }
        }
        let arguments = parser.arguments(&buffer, &args);
        assert!(arguments.iter().all(|argument| argument == b"PING"));
        let done = parser.compact_if_worthwhile(buffer.len());
        if done > 0 {
            buffer.drain(..done);
            moved += buffer.len();
        }
    }
    assert!(moved <= whole, "{moved} bytes of {whole} were moved");
    buffer.extend_from_slice(b"G\r\n");
    let mut args = Vec::new();
    let parsed = parser.parse(&buffer, &Limits::default(), &mut args);
    assert!(matches!(parsed, Parsed::Command { argc: 1, .. }));
    assert_eq!(parser.arguments(&buffer, &args).at(0), b"PING");
    assert_eq!(parser.compact_if_worthwhile(buffer.len()), buffer.len());
}

/// Each piece of a command would take a millisecond, if it cost all arguments that came before.
#[test]
fn a_piece_of_a_command_costs_no_more_than_itself() {
    const ARGUMENTS: usize = 2_000_000;
    const PIECES: usize = 200_000;
    let patience = std::time::Duration::from_secs(30);
    let begin = std::time::Instant::now();
    let mut connection = Connection::default();
    let mut bytes = format!("*{}\r\n", ARGUMENTS + PIECES).into_bytes();
    bytes.extend(b"$0\r\n\r\n".repeat(ARGUMENTS));
    connection.receive(&bytes);
    for _ in 0..PIECES {
        connection.receive(b"$0\r\n\r\n");
        assert!(begin.elapsed() < patience, "the pieces take too long");
    }
    assert_eq!(connection.commands.len(), 1);
    assert_eq!(connection.commands[0].len(), ARGUMENTS + PIECES);
}
