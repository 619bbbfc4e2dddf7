//! What a command is: a row of data beside its handler.
//!
//! `spec` has what can be known of a command without running it, and imports nothing of the engine
//! except arguments. `row` is how families write their rows.

pub(crate) mod keys;
pub(crate) mod names;
mod row;
mod spec;

pub use crate::engine::{Command, Handler};
pub use spec::*;
