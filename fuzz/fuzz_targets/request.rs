//! Requests of a client, in RESP and in lines. The input is everything that one connection sends.

#![no_main]

use base::limits::BIG_ARGUMENT_EAGER;
use fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use resp::request::{Limits, Parsed, Parser, ProtocolError};

/// Bytes that are always there: one argument that is announced as large.
const LEAST: usize = (64 << 10) + BIG_ARGUMENT_EAGER;

/// Bytes that a byte of input may take: a word of a line takes two, and is a vector here.
const PER_BYTE: usize = 100;

/// Commands, and what ended them if it was not the end of the input.
type Found = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Parses input that arrives in pieces of this many bytes.
fn parse(input: &[u8], size: usize, limits: &Limits) -> Found {
    let mut parser = Parser::new();
    let (mut buffer, mut commands) = (Vec::new(), Vec::new());
    let (mut ranges, mut big) = (Vec::new(), None);
    for mut piece in input.chunks(size.max(1)) {
        while !piece.is_empty() {
            piece = match big.take() {
                None => {
                    buffer.extend_from_slice(piece);
                    &[]
                }
                Some(argument) => receive(&mut parser, &mut big, argument, piece),
            };
            while big.is_none() {
                ranges.clear();
                match parser.parse(&buffer, limits, &mut ranges) {
                    Parsed::Command { argc, consumed, .. } => {
                        assert!(argc > 0 && argc == ranges.len() && consumed > 0);
                        let arguments = parser.arguments(&buffer, &ranges);
                        commands.push(arguments.iter().map(<[u8]>::to_vec).collect());
                    }
                    Parsed::Empty { consumed } => assert!(consumed > 0, "it gets on"),
                    Parsed::Incomplete => break,
                    Parsed::BigArgument { .. } => {
                        big = parser.take_big(&buffer);
                        if let Some(argument) = big.take_if(|argument| argument.missing() == 0) {
                            parser.supply_big(argument);
                        }
                    }
                    Parsed::Protocol(error) => return (commands, Some(error)),
                }
            }
            buffer.drain(..parser.compact());
        }
    }
    (commands, None)
}

/// Gives an argument the bytes that it misses, and returns the others.
fn receive<'p>(
    parser: &mut Parser,
    big: &mut Option<resp::request::BigArgument>,
    mut argument: resp::request::BigArgument,
    piece: &'p [u8],
) -> &'p [u8] {
    let (own, rest) = piece.split_at(piece.len().min(argument.missing()));
    argument.make_room();
    argument.bytes.extend_from_slice(own);
    match argument.missing() {
        0 => parser.supply_big(argument),
        _ => *big = Some(argument),
    }
    rest
}

fuzz_target!(|input: &[u8]| {
    // The last byte, which ends a line in sane input, chooses.
    let choice = input.last().copied().unwrap_or_default();
    let limits = Limits { authenticated: choice % 8 != 0, ..Limits::default() };
    let whole = bounded(input.len(), LEAST, PER_BYTE, || parse(input, input.len(), &limits));
    let in_pieces = parse(input, 1 + usize::from(choice) / 2, &limits);
    assert_eq!(whole, in_pieces, "in pieces it is the same");
});
