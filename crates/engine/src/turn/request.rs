//! A command to run, and its outcome.

use std::sync::Arc;

use resp::args::Arguments;
use resp::output::Output;

use crate::command::args::KeyAt;
use crate::engine::Row;
use crate::engine::busy::Busy;
use crate::session::Session;
use crate::session::awaited::Wait;
use crate::turn::Turn;

/// A command to run.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// Its arguments, the name first. Never empty.
    pub argv: Arguments<'r>,
    /// The result of [`crate::engine::Engine::prepare`].
    pub row: Option<&'static Row>,
    /// Its keys, hashed by [`crate::engine::Engine::prepare`], in the order of the arguments.
    pub keys: &'r [KeyAt],
    /// Is told if it is a script that takes long.
    pub busy: Option<&'r dyn Busy>,
}

/// A command to run, and what it runs with.
pub struct Call<'c> {
    /// The turn of the thread.
    pub turn: &'c mut Turn,
    /// The session of its client.
    pub session: &'c mut Session,
    /// The command.
    pub request: Request<'c>,
    /// Gets the reply.
    pub output: &'c mut Output,
}

/// Commands of one connection that follow each other.
pub trait Requests {
    /// How many there are.
    fn count(&self) -> usize;

    /// The one with this number, which is below the count.
    fn at(&self, index: usize) -> Request<'_>;

    /// The reply of a command, which begins at this place of the output, waits for this offset of
    /// the journal: see [`crate::persistence::durability`].
    fn defer_reply(&mut self, from: u64, offset: u64);
}

/// The outcome of a command.
pub enum Outcome {
    /// It ran, or was refused: the reply is written.
    Done,
    /// Its client waits. Nothing was written; the inbox will have the reply. The caller must claim
    /// the wait at its deadline, or when the connection goes. A wait for a sync the caller settles
    /// itself: [`crate::engine::Engine::settle_sync_wait`].
    Blocked(Arc<Wait>),
    /// A slot stayed locked. Nothing was touched: try again later. Which slot that was is in
    /// [`crate::turn::Turn::contended_slot`].
    Contended,
    /// It has to run as an exclusive command. Nothing was touched.
    NeedsAllSlots,
    /// It has to run with the world stopped. Nothing was touched.
    NeedsStoppedWorld,
    /// It is suspended until this time, as [`crate::turn::Turn::monotonic`]: by CLIENT PAUSE, or
    /// because the disk does not keep up. It has touched nothing.
    Paused(u64),
}

impl Outcome {
    /// Whether the command must run again: one whose client waits has run to its end.
    #[inline]
    pub fn runs_again(&self) -> bool {
        !matches!(self, Outcome::Done | Outcome::Blocked(_))
    }
}
