//! What a connection must not be sent any more: a node of a cluster that has lost the right to
//! serve acknowledges nothing, also when its process was stopped for a while before its replies had
//! left. See [`engine::cluster`].

use super::Connection;

impl Connection {
    /// Whether it would be told of a write now of which it does not know yet, or that lies in its
    /// output for a client that takes it slowly.
    #[inline]
    pub(in crate::net) fn is_to_be_told(&self) -> bool {
        self.session.write_offset != self.told
    }

    /// Whether anything is to be sent.
    pub(in crate::net) fn has_replies(&self) -> bool {
        !self.output.is_empty()
    }

    /// Notes that it knows of all its writes, if so.
    #[inline]
    pub(in crate::net) fn note_told(&mut self) {
        if self.is_all_sent() {
            self.told = self.session.write_offset;
        }
    }
}
