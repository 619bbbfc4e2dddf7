//! The machine in each node that decides. It is told what happens, and says what is to be done; it
//! does nothing itself.
//!
//! [`Control::handle`] takes over one event and looks at everything once (`machine.rs`): its place
//! at etcd (`session.rs`), whether it is primary or replica (`role.rs`), and as a primary until
//! when it acknowledges (`serving.rs`), whether it lets go (`handover.rs`), who counts
//! (`members.rs`) and which slots leave (`migrations.rs`).

mod event;
mod handover;
mod lineage;
mod machine;
mod members;
mod migrations;
mod mirror;
mod quorum;
mod role;
mod serving;
mod session;
mod state;

pub use event::{Action, Announced, Event, Millis, Recovered, RequestId, Setup, Ticket};
pub use lineage::Lineage;
pub use mirror::picture;
pub use quorum::{Group, Quorum};
pub use state::Control;
#[cfg(test)]
pub(crate) use state::Rule;
