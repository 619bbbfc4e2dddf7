//! The protocol of a connection: how its bytes become commands, and replies become bytes.

use std::ops::Range;
use std::sync::Arc;

use engine::changes::listeners::Listener;
use engine::session::Session;
use resp::args::{ArgRange, Arguments};
use resp::output::Output;

use super::batch::Batch;
use super::http::{Http, Intake};
use super::pending::Pending;
use super::resp::Resp;

/// See the module's text.
#[expect(
    clippy::large_enum_variant,
    reason = "most connections speak RESP, whose state is to lie in the connection itself"
)]
pub(super) enum Protocol {
    Resp(Resp),
    Http(Box<Http>),
}

impl Protocol {
    /// Parses received bytes into the batch, up to the connection's share of the turn. Returns whether
    /// more commands may lie in `input`.
    #[inline]
    pub(super) fn parse(
        &mut self,
        input: &[u8],
        session: &Session,
        intake: Intake<'_>,
        batch: &mut Batch,
    ) -> bool {
        match self {
            Protocol::Resp(resp) => {
                let connection = (intake.place, session.authenticated);
                resp.parse(input, connection, (intake.engine, intake.config), batch)
            }
            Protocol::Http(http) => http.parse(input, intake, batch),
        }
    }

    /// The arguments for ranges that [`Protocol::parse`] has put into the batch.
    #[inline]
    pub(super) fn arguments<'a>(
        &'a self,
        input: &'a [u8],
        ranges: &'a [ArgRange],
    ) -> Arguments<'a> {
        match self {
            Protocol::Resp(resp) => resp.arguments(input, ranges),
            Protocol::Http(http) => http.input.arguments(input, ranges),
        }
    }

    /// The allocation for the bytes received next, with the room in it, if they do not belong into the
    /// input.
    #[inline]
    pub(super) fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        match self {
            Protocol::Resp(resp) => resp.receives_big(),
            Protocol::Http(http) => http.input.receives_apart(),
        }
    }

    /// Whether the bytes received next go into an allocation of their own.
    #[inline]
    pub(super) fn is_receiving_apart(&self) -> bool {
        match self {
            Protocol::Resp(resp) => resp.is_receiving_big(),
            Protocol::Http(http) => http.input.is_receiving_apart(),
        }
    }

    /// Notes that something was received.
    #[inline]
    pub(super) fn note_received(&mut self) {
        if let Protocol::Resp(resp) = self {
            resp.supply_big();
        }
    }

    /// Whether there is an answer without a command: to an error in the input, or to a request that
    /// needs no command.
    #[inline]
    pub(super) fn has_answer(&self) -> bool {
        match self {
            Protocol::Resp(resp) => resp.is_broken(),
            Protocol::Http(http) => http.has_answer(),
        }
    }

    /// Whether it has met input that ends the connection, and looks at nothing that comes after it.
    #[inline]
    pub(super) fn has_refused(&self) -> bool {
        match self {
            Protocol::Resp(resp) => resp.is_broken(),
            Protocol::Http(http) => http.input.has_refused(),
        }
    }

    /// Whether the client has sent something that was refused before it had arrived in full.
    #[inline]
    pub(super) fn may_be_sending(&self) -> bool {
        match self {
            Protocol::Resp(_) => false,
            Protocol::Http(http) => http.input.may_be_sending(),
        }
    }

    /// The listener of this connection, if it follows changes.
    #[inline]
    pub(super) fn following(&self) -> Option<&Arc<Listener>> {
        match self {
            Protocol::Resp(_) => None,
            Protocol::Http(http) => http.following(),
        }
    }

    /// Tells a client of HTTP whose request waits that the server stops: it could not tell the end of the
    /// connection from a fault of the network.
    pub(super) fn stop(&mut self, (now, steady): (u64, u64), output: &mut Output) {
        if let Protocol::Http(http) = self {
            http.exchanges.stop((now, steady), output);
        }
    }

    /// Whether a request goes on after the written part is sent.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        match self {
            Protocol::Resp(_) => false,
            Protocol::Http(http) => http.goes_on(),
        }
    }

    /// Whether an answer goes on when the client has taken what is written.
    #[inline]
    pub(super) fn streams(&self) -> bool {
        match self {
            Protocol::Resp(_) => false,
            Protocol::Http(http) => http.exchanges.streams(),
        }
    }

    /// Whether a request waits for a change of a key, and takes nothing from the data.
    pub(super) fn only_waits(&self) -> bool {
        match self {
            Protocol::Resp(_) => false,
            Protocol::Http(http) => http.exchanges.only_waits(),
        }
    }

    /// The command with which it does.
    pub(super) fn go_on(&mut self) -> Option<Pending> {
        match self {
            Protocol::Resp(_) => None,
            Protocol::Http(http) => http.go_on(),
        }
    }

    /// How many bytes at the front of the input are finished with.
    #[inline]
    pub(super) fn done(&self) -> usize {
        match self {
            Protocol::Resp(resp) => resp.done(),
            Protocol::Http(http) => http.input.done(),
        }
    }

    /// Forgets executed commands. Returns which bytes to remove from an input of this length.
    #[inline]
    pub(super) fn compact_when_due(&mut self, length: usize) -> Range<usize> {
        match self {
            Protocol::Resp(resp) => 0..resp.compact_when_due(length),
            Protocol::Http(http) => http.input.compact_when_due(length),
        }
    }

    /// Bytes of memory that arguments outside of the input take.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        match self {
            Protocol::Resp(resp) => resp.memory(),
            Protocol::Http(http) => http.input.memory(),
        }
    }

    /// Bytes of an input of this length that belong to no argument yet. In HTTP also the arguments of a
    /// request that has not arrived in full. In RESP these do not count, as in Redis.
    #[inline]
    pub(super) fn unfinished(&self, length: usize) -> usize {
        match self {
            Protocol::Resp(resp) => length - resp.position(),
            Protocol::Http(http) => length - http.input.done() + http.input.length(),
        }
    }

    /// Bytes of an answer that is not in the output yet.
    #[inline]
    pub(super) fn gathered_length(&self) -> usize {
        match self {
            Protocol::Resp(_) => 0,
            Protocol::Http(http) => http.exchanges.gathered_length(),
        }
    }

    /// Bytes of memory for that.
    #[inline]
    pub(super) fn gathered(&self) -> usize {
        match self {
            Protocol::Resp(_) => 0,
            Protocol::Http(http) => http.exchanges.gathered(),
        }
    }

    /// Bytes received into an allocation of their own, and bytes allocated for them.
    #[inline]
    pub(super) fn apart_memory(&self) -> (usize, usize) {
        match self {
            Protocol::Resp(resp) => resp.big_memory(),
            Protocol::Http(http) => http.input.body_memory(),
        }
    }

    /// Writes an answer that needs no command, when nothing precedes it: see [`Protocol::has_answer`].
    pub(super) fn answer_ready(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        match self {
            Protocol::Resp(resp) => {
                if let Some(text) = resp.take_error() {
                    resp::reply::Reply::new(output, session.resp3).error(&text);
                    session.close = true;
                }
            }
            Protocol::Http(http) => session.close |= http.answer_ready(now, output),
        }
    }
}
