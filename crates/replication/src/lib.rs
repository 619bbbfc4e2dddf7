//! The link between a primary and its replica, as state machines without input and output: bytes
//! and lines go in, and what they mean comes out. A thread of the server connects, reads and
//! writes.
//!
//! A link has three parts, one after the other:
//!
//! | module | question |
//! |---|---|
//! | [`handshake`] | how does a replica introduce itself, and what does the primary offer? |
//! | [`payload`] | where does the file with all data begin and end? |
//! | [`stream`] | where do commands and transactions of the stream of writes end? |
//! | [`id`] | what names a history of writes? |
//! | [`line`] | where does a line end that arrives in pieces? |
//! | [`error`] | why is a link of no use? |
//!
//! Whatever the other side sends, memory grows only with bytes that have arrived, and each length
//! has a bound.

pub mod error;
pub mod handshake;
pub mod id;
pub mod line;
pub mod payload;
pub mod stream;

pub use error::LinkError;
