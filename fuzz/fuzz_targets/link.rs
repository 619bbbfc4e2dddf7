//! What a primary sends over a link, up to the end of the input: its side of the handshake, the
//! data of a full sync, and the stream. The first two bytes say in what pieces it arrives, and what
//! the replica asks for.

#![no_main]

use fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use replication::handshake::{Handshake, Introduction, Offer, Step, Wanted};
use replication::id::HistoryId;
use replication::line::Lines;
use replication::payload::{End, Payload};
use replication::stream::Stream;

/// Bytes that are always there: what the replica says, and errors with words of the primary.
const LEAST: usize = 64 << 10;

/// Bytes that a byte of input may take: six bytes are an argument of a command, which is a range.
const PER_BYTE: usize = 40;

const HISTORY: &[u8] = b"0123456789abcdef0123456789abcdef01234567";

/// What is made of the input.
#[derive(PartialEq, Debug, Default)]
struct Found {
    offer: Option<Offer>,
    /// The data of the full sync, as far as it is known not to be the mark.
    data: Vec<u8>,
    is_complete: bool,
    units: Vec<(Vec<u8>, u64)>,
    error: Option<String>,
}

/// Where the link is.
enum Part {
    Handshake(Handshake, Lines),
    Beginning(Lines),
    Data(Payload),
    Stream(Stream),
}

/// The offset at which the stream begins.
fn start(offer: Option<Offer>) -> u64 {
    match offer {
        Some(Offer::All { offset, .. }) => offset.min(u64::MAX / 2),
        _ => 0,
    }
}

/// Takes a piece as the link does. Returns what comes next, or why there is nothing more.
fn take(mut part: Part, mut bytes: &[u8], found: &mut Found) -> Result<Part, String> {
    while !bytes.is_empty() {
        part = match part {
            Part::Handshake(mut handshake, mut lines) => {
                let line = lines.next(&mut bytes).map_err(|error| error.to_string())?;
                let step = line.map(|line| handshake.take(&line)).transpose();
                match step.map_err(|error| error.to_string())? {
                    Some(Step::Done(offer)) => {
                        found.offer = Some(offer);
                        match offer {
                            Offer::Rest { .. } => Part::Stream(Stream::new(7)),
                            _ => Part::Beginning(Lines::default()),
                        }
                    }
                    _ => Part::Handshake(handshake, lines),
                }
            }
            Part::Beginning(mut lines) => {
                let line = lines.next(&mut bytes).map_err(|error| error.to_string())?;
                let end = line.map(|line| End::parse(&line)).transpose();
                match end.map_err(|error| error.to_string())?.flatten() {
                    Some(end) => Part::Data(Payload::new(end)),
                    None => Part::Beginning(lines),
                }
            }
            Part::Data(mut payload) => {
                let taken = payload.take(bytes, &mut found.data);
                assert!(taken <= bytes.len() && payload.received() == found.data.len() as u64);
                bytes = &bytes[taken..];
                match payload.is_over() {
                    true => {
                        found.is_complete = true;
                        Part::Stream(Stream::new(start(found.offer)))
                    }
                    false => Part::Data(payload),
                }
            }
            Part::Stream(mut stream) => {
                stream.push(bytes);
                bytes = &[];
                loop {
                    let units = stream.next_units(2).map_err(|error| error.to_string())?;
                    if units.is_empty() {
                        break;
                    }
                    for unit in units.iter() {
                        let whole = unit.bytes();
                        assert_eq!(unit.begin() + whole.len() as u64, unit.end);
                        assert!(unit.commands().len() > 0, "a unit has a command");
                        assert!(unit.commands().all(|argv| argv.get(0).is_some()), "with a name");
                        found.units.push((whole.to_vec(), unit.end));
                    }
                }
                Part::Stream(stream)
            }
        };
    }
    Ok(part)
}

/// What is made of the bytes when they arrive in pieces of `step`.
fn follow(bytes: &[u8], step: usize, wanted: Wanted) -> Found {
    let introduction = Introduction { password: b"secret".to_vec(), ..Introduction::default() };
    let (handshake, _) = Handshake::begin(introduction, wanted);
    let mut found = Found::default();
    let mut part = Part::Handshake(handshake, Lines::default());
    for piece in bytes.chunks(step) {
        part = match take(part, piece, &mut found) {
            Ok(part) => part,
            Err(error) => {
                // It shows what has arrived by then, which depends on the pieces.
                found.error = error.split(':').next().map(str::to_owned);
                break;
            }
        };
    }
    found
}

fuzz_target!(|input: &[u8]| {
    let [step, asks, bytes @ ..] = input else { return };
    let history = HistoryId::parse(HISTORY).expect("it is one");
    let wanted = match asks % 2 {
        0 => Wanted::All,
        _ => Wanted::From { history, first: 8 },
    };
    let length = bytes.len().max(1);
    let whole = bounded(bytes.len(), LEAST, PER_BYTE, || follow(bytes, length, wanted));
    let mut pieces = follow(bytes, usize::from(*step) + 1, wanted);
    // The end of the data may be the beginning of the mark, so as much of it is withheld.
    if !whole.is_complete {
        assert!(whole.data.starts_with(&pieces.data) || pieces.data.starts_with(&whole.data));
        pieces.data.clone_from(&whole.data);
    }
    assert_eq!(pieces, whole, "pieces make no difference");
});
