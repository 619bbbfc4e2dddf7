//! An answer that waits for the durability which the client of a request has chosen.

use engine::session::sync::SyncWait;
use resp::output::Output;

use super::next::Next;

/// An answer that waits.
pub(in super::super) struct Withheld {
    pub(super) sync: SyncWait,
    pub(super) answer: Output,
    pub(super) next: Next,
    /// The client has got the beginning of the answer.
    pub(super) has_begun: bool,
}
