//! The protocol of a connection: how its bytes become commands, and replies become bytes.
//!
//! [`Protocol`] is what a connection asks of it, in six parts: it parses, runs, answers, says who
//! its client is and how much waits, and stops. [`AnyProtocol`] is one of those that the server
//! speaks, and [`Speaks`] says which of them a listener's clients speak: `protocol/any.rs` is the
//! list of all.

mod any;

use std::ops::Range;

use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::engine::busy::Busy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::Request;
use resp::args::{ArgRange, Arguments};
use resp::output::Output;
use resp::reply::Reply;
use store::gate::Pinned;

use super::batch::{CommandBatch, Item};
use super::deferred::Deferred;
use super::intake::Intake;
use super::pending::{Executed, PendingCommands};

pub(super) use any::AnyProtocol;
pub use any::Speaks;

/// The parts of a connection that its protocol uses when a command runs.
pub(super) struct Parts<'c> {
    pub(super) input: &'c [u8],
    pub(super) session: &'c mut Session,
    pub(super) output: &'c mut Output,
    pub(super) deferred_replies: &'c mut Deferred,
    pub(super) pending: &'c mut PendingCommands,
}

/// A turn, and the engine that it is of.
pub(super) type In<'a> = (&'a Engine, &'a mut Turn);

/// See the module's text. Where a method has a body, most protocols need no other.
pub(super) trait Protocol {
    // ---- It parses ------------------------------------------------------------------------------

    /// Parses received bytes into the batch, up to the connection's share of the turn. Returns
    /// whether more commands may lie in `input`.
    fn parse(&mut self, input: &[u8], intake: Intake<'_>, batch: &mut CommandBatch) -> bool;

    /// The arguments for ranges that [`Protocol::parse`] has put into the batch.
    fn arguments<'a>(&'a self, input: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a>;

    /// The allocation for the bytes received next, with the room in it, if they do not belong into
    /// the input.
    fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)>;

    /// Whether the bytes received next go into an allocation of their own.
    fn is_receiving_apart(&self) -> bool;

    /// Notes that something was received.
    #[inline]
    fn note_received(&mut self) {}

    /// Whether it has met input that ends the connection, and looks at nothing that comes after it.
    fn has_refused(&self) -> bool;

    /// Whether the client has sent something that was refused before it had arrived in full.
    #[inline]
    fn may_be_sending(&self) -> bool {
        false
    }

    /// Refuses a request that takes too long to arrive. Returns whether there is one. To be asked
    /// now and then. While input `waits`, the client is not late.
    #[inline]
    fn refuse_late(&mut self, _input: &[u8], _monotonic: u64, _waits: bool) -> bool {
        false
    }

    /// How many bytes at the front of the input are finished with.
    fn done(&self) -> usize;

    /// Forgets executed commands. Returns which bytes to remove from an input of this length.
    fn compact_if_worthwhile(&mut self, length: usize) -> Range<usize>;

    /// Bytes of memory that arguments outside of the input take.
    fn memory(&self) -> usize;

    /// Bytes of an input of this length that belong to no argument yet. In HTTP also the arguments
    /// of a request that has not arrived in full. In RESP these do not count, as in Redis.
    fn unfinished(&self, length: usize) -> usize;

    /// Bytes received into an allocation of their own, and bytes allocated for them.
    fn apart_memory(&self) -> (usize, usize);

    // ---- It runs --------------------------------------------------------------------------------

    /// Runs commands of the batch on the fast path, from the first of `items` on, up to the first
    /// that has to take the slow one or is another connection's. Returns how many have run.
    fn run_fast(
        &mut self,
        within: In<'_>,
        items: &[Item],
        batch: &CommandBatch,
        pinned: Pinned<'_>,
        parts: Parts<'_>,
    ) -> usize;

    /// Runs a command of the batch.
    fn run_parsed(
        &mut self,
        within: In<'_>,
        item: &Item,
        batch: &CommandBatch,
        with: (SlotAccess<'_>, Option<&dyn Busy>),
        parts: Parts<'_>,
    ) -> Executed;

    /// Runs a command whose arguments lie elsewhere.
    fn run(
        &mut self,
        within: In<'_>,
        request: Request<'_>,
        slot_access: SlotAccess<'_>,
        parts: Parts<'_>,
    ) -> Executed;

    // ---- It answers -----------------------------------------------------------------------------

    /// Whether there is an answer without a command: to an error in the input, or to a request that
    /// needs no command.
    fn has_answer(&self) -> bool;

    /// Writes an answer that needs no command, when nothing precedes it: see
    /// [`Protocol::has_answer`].
    fn answer_ready(&mut self, now: u64, session: &mut Session, output: &mut Output);

    /// Writes the answers to earlier requests that need no command. When they choke the connection,
    /// the next command has to wait: what it replies would be taken for theirs.
    #[inline]
    fn answer_earlier(&mut self, _now: u64, _output: &mut Output) {}

    /// Writes the reply of a command that has waited, if `write` returns that there is one. Returns
    /// whether there is.
    fn reply(
        &mut self,
        within: (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
        parts: Parts<'_>,
    ) -> bool;

    /// Whether a request goes on when the client has taken what is written, with another piece of
    /// its answer or with another command.
    #[inline]
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether that is a piece of its answer, which is there already.
    #[inline]
    fn streams(&self) -> bool {
        false
    }

    /// Lets such a request go on.
    #[inline]
    fn go_on(&mut self, _now: u64, _parts: Parts<'_>) {}

    /// Whether the client has nothing more to say, and its answer goes on until it leaves.
    #[inline]
    fn is_endless(&self) -> bool {
        false
    }

    /// Whether the client is told of changes until it leaves.
    #[inline]
    fn follows(&self) -> bool {
        false
    }

    /// Whether such a client is behind: its worker has to read on for it.
    #[inline]
    fn is_behind(&self) -> bool {
        false
    }

    /// Reads on for it, for a while.
    #[inline]
    fn read_on(&mut self, _engine: &Engine, _session: &mut Session, _output: &mut Output) {}

    /// Ends the stream of a client that follows a key whose slot has left this node of a cluster.
    fn leave_slots(&mut self, _session: &mut Session, _output: &mut Output) {}

    // ---- It says who its client is --------------------------------------------------------------

    /// Whether its client has shown who it is, or need not. In HTTP each request shows it anew, and
    /// the last one counts.
    fn is_admitted(&self, session: &Session) -> bool;

    // ---- It says how much waits -----------------------------------------------------------------

    /// Whether so much output waits for the client that it gets no more before it has taken some. A
    /// client of Redis may let as much wait as `client-output-buffer-limit` says.
    #[inline]
    fn is_choked(&self, _unsent: impl FnOnce() -> usize) -> bool {
        false
    }

    /// Whether the client has to take what waits for it, or is stuck. `ended` says whether it has
    /// ended its stream.
    fn is_to_be_taken(&self, ended: bool) -> bool;

    /// Bytes of an answer that is not in the output yet.
    #[inline]
    fn gathered_length(&self) -> usize {
        0
    }

    /// Bytes of memory for that.
    #[inline]
    fn gathered(&self) -> usize {
        0
    }

    /// Why a client with so much input ends, if it has nothing to say.
    #[inline]
    fn objection(&self, _input: usize) -> Option<&'static str> {
        None
    }

    // ---- It stops -------------------------------------------------------------------------------

    /// Whether the client may end its stream while its command is blocked, and read the answer. A
    /// command that takes something when it is served would take it for nobody if the client has
    /// gone.
    #[inline]
    fn only_waits(&self) -> bool {
        false
    }

    /// Whether a client that ends its stream while its script runs has given it up.
    #[inline]
    fn gives_up_at_end(&self) -> bool {
        false
    }

    /// Tells a client whose request waits that the server stops, if it could not tell the end of
    /// the connection from a fault of the network.
    fn stop(&mut self, _times: (u64, u64), _output: &mut Output) {}

    /// Takes the connection out of what others know of it, because it is closed.
    #[inline]
    fn leave(&mut self, _engine: &Engine) {}
}
