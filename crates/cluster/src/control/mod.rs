//! The machine in each node that decides. It is told what happens, and says what is to be done; it
//! does nothing itself.

mod event;
mod quorum;

pub use event::{Action, Event, Millis, Recovered, RequestId, Setup, Ticket};
pub use quorum::{Group, Quorum};
