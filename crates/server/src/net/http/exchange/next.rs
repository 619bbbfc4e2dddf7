//! What comes after a reply that belongs to a request.

use engine::journal::filter::Filter;
use resp::args::OwnedArguments;

use super::streaming::Streaming;

/// The next step after a reply.
pub(in super::super) enum Next {
    /// The answer is written.
    Answered,
    /// More replies are to come.
    Waits,
    /// Run this; its reply comes next.
    Runs(OwnedArguments),
    /// Read a key with these words, as GET of a key does.
    Reads(OwnedArguments),
    /// The head of the answer is written: changes after this offset follow.
    Follows(Filter, u64),
    /// Wait with these words for the durability that the client has chosen; the answer comes then.
    AwaitsCopies(OwnedArguments),
    /// Wait for an event of the tree with these words.
    Watches(OwnedArguments),
    /// The same, after the written part is sent.
    GoesOn(OwnedArguments),
    /// The answer is begun, and goes on as the client takes it.
    Streams(Box<Streaming>),
    /// The answer breaks off.
    Breaks,
}
