//! How a command runs: the checks, the locks, the handler, and what follows from it.
//!
//! | file | what it answers |
//! |---|---|
//! | `call` | what happens to a command, from its arrival to its last effect? |
//! | `plain` | what is the short path of most commands? |
//! | [`drive`] | how does a thread run it that may wait? |
//! | `admission` | may it run, and when? |
//! | `consists`, `slots` | which commands does a request consist of, and which slots do they name? |
//! | [`authority`] | with what authority does it use slots? |
//! | [`request`], [`turn`] | what comes with it, and what is its outcome? |
//! | [`busy`] | who is told that a thread is busy? |
//! | [`effects`] | what has it done besides its reply? |
//! | `pause` | what suspends it? |
//! | `noting` | what is recorded of it after it has run? |
//!
//! `call`, `plain` and `admission` import every other room: this is where they meet. The other files
//! import no more than they consist of.

mod admission;
pub mod authority;
pub mod busy;
pub(crate) mod call;
pub mod consists;
pub mod drive;
pub mod effects;
pub(crate) mod noting;
pub(crate) mod pause;
pub(crate) mod plain;
pub mod request;
pub(crate) mod slots;
pub mod turn;
