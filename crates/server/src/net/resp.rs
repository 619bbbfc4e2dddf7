//! RESP, the protocol of Redis, as a connection speaks it.

use std::ops::Range;

use base::limits::{COMMANDS_PER_TURN, REPLICATED_ARGUMENT};
use engine::db::slot_access::SlotAccess;
use engine::engine::busy::Busy;
use engine::engine::{Engine, Row};
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Request, Requests};
use resp::args::{ArgRange, Arguments};
use resp::output::Output;
use resp::reply::Reply;
use resp::request::{BigArgument, Limits, Parsed, Parser, ProtocolError};
use store::gate::Pinned;

use super::batch::{CommandBatch, Item};
use super::deferred::Deferred;
use super::intake::Intake;
use super::pending::Executed;
use super::protocol::{In, Parts, Protocol};

/// How a client of TLS begins (RFC 8446, section 5.1). It would wait for an answer, and the parser
/// for the end of a line, which need not be among what follows.
const HELLO_OF_TLS: &[u8] = b"\x16\x03";

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

/// What to send to a client that is refused.
pub(super) fn refuse(_status: u16, error: &[u8]) -> Output {
    let mut output = Output::new();
    output.push(error);
    output
}

/// Commands of one connection that follow each other in the batch.
struct Run<'c> {
    items: &'c [Item],
    batch: &'c CommandBatch,
    resp: &'c Resp,
    input: &'c [u8],
    deferred_replies: &'c mut Deferred,
}

impl Requests for Run<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.items.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Request<'_> {
        let item = &self.items[index];
        let argv = self.resp.arguments(self.input, &self.batch.args[item.args.clone()]);
        Request { argv, row: item.row, keys: &self.batch.keys[item.keys.clone()], busy: None }
    }

    fn defer_reply(&mut self, from: u64, offset: u64) {
        self.deferred_replies.add(from, offset);
    }
}

/// Runs a command, which writes its reply where it is sent from.
#[inline]
fn run(
    (engine, turn): In<'_>,
    request: Request<'_>,
    slot_access: SlotAccess<'_>,
    (session, output): (&mut Session, &mut Output),
) -> Executed {
    let from = output.end();
    let outcome = engine.execute(turn, session, request, slot_access, output);
    Executed { outcome, next: None, from, replied: output.end() > from }
}

impl Resp {
    /// Gives the parser the big argument, if it is complete.
    #[inline]
    fn supply_big(&mut self) {
        if self.big.as_ref().is_some_and(|big| big.missing() == 0)
            && let Some(big) = self.big.take()
        {
            self.parser.supply_big(big);
        }
    }

    /// Takes the error to answer: its text.
    fn take_error(&mut self) -> Option<Vec<u8>> {
        let error = self.error.take()?;
        Some([b"ERR ", &*error.message()].concat())
    }
}

impl Protocol for Resp {
    fn parse(&mut self, input: &[u8], intake: Intake<'_>, batch: &mut CommandBatch) -> bool {
        let Intake { engine, config, authenticated, brings_slots, .. } = intake;
        let Intake { by_own_name, connection_index, .. } = intake;
        let share = if authenticated { COMMANDS_PER_TURN } else { 1 };
        let max_bulk = match brings_slots {
            true => config.proto_max_bulk_len.max(REPLICATED_ARGUMENT as u64),
            false => config.proto_max_bulk_len,
        };
        let limits = Limits { max_bulk, authenticated, exact_line_ends: false };
        let mut parsed = 0;
        // Where the only key of the last command is, and its argument, as long as each has the same
        // one.
        let mut last: Option<(usize, usize)> = None;
        let mut repeats = true;
        while parsed < share && self.big.is_none() {
            let first = batch.args.len();
            match self.parser.parse(input, &limits, &mut batch.args) {
                Parsed::Command { alike, .. } => {
                    let arguments = self.parser.arguments(input, &batch.args[first..]);
                    let keys = batch.keys.len();
                    let known = self.row.filter(|_| alike);
                    let own = || {
                        let may = by_own_name?;
                        engine.commands.resolve(arguments).filter(|row| may(&row.command.spec))
                    };
                    let row = known.or_else(own);
                    let row = row.or_else(|| engine.client_names.resolve(arguments));
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
                    batch.add(connection_index, row, first, keys);
                    parsed += 1;
                    if self.parser.position() == input.len() {
                        break;
                    }
                }
                Parsed::Empty { .. } => {}
                Parsed::Incomplete => {
                    let is_next = self.parser.is_idle();
                    if is_next && input[self.parser.position()..].starts_with(HELLO_OF_TLS) {
                        self.error = Some(ProtocolError::Encrypted);
                    }
                    break;
                }
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

    #[inline]
    fn arguments<'a>(&'a self, input: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a> {
        self.parser.arguments(input, ranges)
    }

    #[inline]
    fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        let big = self.big.as_mut()?;
        big.make_room();
        let room = (big.bytes.capacity() - big.bytes.len()).min(big.missing());
        Some((&mut big.bytes, room))
    }

    #[inline]
    fn is_receiving_apart(&self) -> bool {
        self.big.is_some()
    }

    #[inline]
    fn note_received(&mut self) {
        self.supply_big();
    }

    #[inline]
    fn has_refused(&self) -> bool {
        self.error.is_some()
    }

    #[inline]
    fn done(&self) -> usize {
        self.parser.done()
    }

    #[inline]
    fn compact_if_worthwhile(&mut self, length: usize) -> Range<usize> {
        0..self.parser.compact_if_worthwhile(length)
    }

    #[inline]
    fn memory(&self) -> usize {
        self.parser.memory()
    }

    #[inline]
    fn unfinished(&self, length: usize) -> usize {
        length - self.parser.position()
    }

    #[inline]
    fn apart_memory(&self) -> (usize, usize) {
        self.big.as_ref().map_or((0, 0), |big| (big.bytes.len(), big.bytes.capacity()))
    }

    #[inline]
    fn run_fast(
        &mut self,
        (engine, turn): In<'_>,
        items: &[Item],
        batch: &CommandBatch,
        pinned: Pinned<'_>,
        parts: Parts<'_>,
    ) -> usize {
        let Parts { input, session, output, deferred_replies, .. } = parts;
        let own = items
            .iter()
            .take_while(|item| item.connection_index == items[0].connection_index)
            .count();
        let mut run = Run { items: &items[..own], batch, resp: self, input, deferred_replies };
        engine.execute_fast(turn, session, &mut run, pinned, output)
    }

    #[inline]
    fn run_parsed(
        &mut self,
        within: In<'_>,
        item: &Item,
        batch: &CommandBatch,
        (slot_access, busy): (SlotAccess<'_>, Option<&dyn Busy>),
        parts: Parts<'_>,
    ) -> Executed {
        let argv = self.arguments(parts.input, &batch.args[item.args.clone()]);
        let keys = &batch.keys[item.keys.clone()];
        let request = Request { argv, row: item.row, keys, busy };
        run(within, request, slot_access, (parts.session, parts.output))
    }

    fn run(
        &mut self,
        within: In<'_>,
        request: Request<'_>,
        slot_access: SlotAccess<'_>,
        parts: Parts<'_>,
    ) -> Executed {
        run(within, request, slot_access, (parts.session, parts.output))
    }

    #[inline]
    fn has_answer(&self) -> bool {
        self.error.is_some()
    }

    fn answer_ready(&mut self, _: u64, session: &mut Session, output: &mut Output) {
        if let Some(text) = self.take_error() {
            Reply::new(output, session.resp3).error(&text);
            session.close = true;
        }
    }

    fn reply(
        &mut self,
        _: (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
        parts: Parts<'_>,
    ) -> bool {
        let Parts { session, output, .. } = parts;
        let start = output.mark();
        let written = write(session, &mut Reply::new(output, session.resp3));
        if written && !session.end_reply() {
            output.rollback(start);
        }
        written
    }

    #[inline]
    fn is_admitted(&self, session: &Session) -> bool {
        session.user.is_admitted()
    }

    /// The output limit ends a client that reads nothing while it sends. A client that sends no
    /// more would wait for ever.
    fn is_to_be_taken(&self, ended: bool) -> bool {
        ended
    }
}
