//! RESP, the protocol of Redis, as a connection speaks it.

use base::limits::COMMANDS_PER_TURN;
use config::Config;
use engine::engine::{Engine, Row};
use resp::args::{ArgRange, Arguments};
use resp::request::{BigArgument, Limits, Parsed, Parser, ProtocolError};

use super::batch::Batch;

/// The state of one connection's input.
#[derive(Default)]
pub(super) struct Resp {
    parser: Parser,
    /// The row of the last command, which serves a next command of the same name.
    row: Option<&'static Row>,
    /// An argument that is being received into its own allocation.
    big: Option<BigArgument>,
    /// The input is broken from here on; answered after the earlier commands have run.
    error: Option<ProtocolError>,
}

impl Resp {
    /// Parses commands of the connection at `place` into the batch, up to its share of the turn.
    /// Returns whether more of them may lie in `input`.
    pub(super) fn parse(
        &mut self,
        input: &[u8],
        (place, authenticated): (usize, bool),
        (engine, config): (&Engine, &Config),
        batch: &mut Batch,
    ) -> bool {
        let share = if authenticated { COMMANDS_PER_TURN } else { 1 };
        let max_bulk = config.proto_max_bulk_len;
        let limits = Limits { max_bulk, authenticated, exact_line_ends: false };
        let mut parsed = 0;
        // Where the only key of the last command is, and its argument, as long as each has the same one.
        let mut last: Option<(usize, usize)> = None;
        let mut repeats = true;
        while parsed < share && self.big.is_none() {
            let first = batch.args.len();
            match self.parser.parse(input, &limits, &mut batch.args) {
                Parsed::Command { alike, .. } => {
                    let arguments = self.parser.arguments(input, &batch.args[first..]);
                    let keys = batch.keys.len();
                    let known = self.row.filter(|_| alike);
                    let row = known.or_else(|| engine.commands.resolve(arguments));
                    self.row = row.filter(|row| row.is_found_by_name());
                    if let Some(row) = row {
                        let known = last.take().map(|(key, at)| {
                            let bytes = self.parser.arguments(input, &batch.args[at..=at]).at(0);
                            (bytes, batch.keys[key])
                        });
                        engine.find_keys_behind(known, row, arguments, &mut batch.keys);
                        if let Some((_, known)) = known {
                            repeats =
                                batch.keys.get(keys).is_some_and(|key| key.hash == known.hash);
                        }
                        if let [only] = &batch.keys[keys..]
                            && repeats
                            && only.index == 1
                        {
                            last = Some((keys, first + 1));
                        }
                    }
                    batch.add(place, row, first, keys);
                    parsed += 1;
                    if self.parser.position() == input.len() {
                        break;
                    }
                }
                Parsed::Empty { .. } => {}
                Parsed::Incomplete => break,
                Parsed::BigArgument { .. } => {
                    self.big = self.parser.take_big(input);
                    self.supply_big();
                }
                Parsed::Protocol(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        // A full share may leave commands in the buffer: they come next turn.
        parsed == share
    }

    /// The argument to which the bytes received next belong, with the room in it.
    pub(super) fn receives_big(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        let big = self.big.as_mut()?;
        big.make_room();
        let room = (big.bytes.capacity() - big.bytes.len()).min(big.missing());
        Some((&mut big.bytes, room))
    }

    /// Whether the bytes received next belong to such an argument.
    pub(super) fn is_receiving_big(&self) -> bool {
        self.big.is_some()
    }

    /// Gives the parser the big argument, if it is complete.
    pub(super) fn supply_big(&mut self) {
        if self.big.as_ref().is_some_and(|big| big.missing() == 0)
            && let Some(big) = self.big.take()
        {
            self.parser.supply_big(big);
        }
    }

    /// The arguments for ranges that [`Resp::parse`] has put into the batch.
    #[inline]
    pub(super) fn arguments<'a>(
        &'a self,
        input: &'a [u8],
        ranges: &'a [ArgRange],
    ) -> Arguments<'a> {
        self.parser.arguments(input, ranges)
    }

    /// Whether there is an error to answer.
    pub(super) fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    /// Takes the error to answer: its text.
    pub(super) fn take_error(&mut self) -> Option<Vec<u8>> {
        let error = self.error.take()?;
        Some([b"ERR ", &*error.message()].concat())
    }

    /// How many bytes at the front of the input are finished with.
    #[inline]
    pub(super) fn done(&self) -> usize {
        self.parser.done()
    }

    /// Forgets commands that were executed: see [`Parser::compact_when_due`].
    #[inline]
    pub(super) fn compact_when_due(&mut self, length: usize) -> usize {
        self.parser.compact_when_due(length)
    }

    /// Bytes of memory that arguments outside of the input take.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.parser.memory()
    }

    /// How many bytes at the front of the input were parsed.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.parser.position()
    }

    /// Bytes of the argument that is being received, and bytes allocated for it.
    #[inline]
    pub(super) fn big_memory(&self) -> (usize, usize) {
        self.big.as_ref().map_or((0, 0), |big| (big.bytes.len(), big.bytes.capacity()))
    }
}
