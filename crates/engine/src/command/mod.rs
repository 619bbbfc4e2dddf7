//! What a command is: a row of data beside its handler.
//!
//! `spec` says what can be known of a command without running it, and imports nothing of the engine
//! but arguments; `row` is how families write their rows down.

pub(crate) mod keys;
pub(crate) mod names;
mod row;
mod spec;

pub use crate::engine::{Command, Handler};
pub use spec::*;
