//! How a command runs: the checks, the locks, the handler, and what follows from it.
//!
//! | file | what it answers |
//! |---|---|
//! | `call` | what happens to a command, from its arrival to its last effect? |
//! | `preparing` | which row and which keys does it have, and how are they prefetched? |
//! | `fast_path` | what is the fast path of most commands? |
//! | `dividing` | which commands run in parts? |
//! | `handling` | what happens around its handler? |
//! | `settling` | what follows from it, under the locks and after them? |
//! | [`drive`] | how does a thread that may wait run it? |
//! | `accounting` | what is recorded of it after it has run? |
//!
//! This is where the other rooms meet.

pub(crate) mod accounting;
pub(crate) mod call;
mod dividing;
pub mod drive;
pub(crate) mod fast_path;
mod handling;
mod preparing;
mod settling;
