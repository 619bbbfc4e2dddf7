//! The way of a command: checks, locks, handler, and what follows from it.
//!
//! Imports every other room: this is where they meet.

pub(crate) mod call;
pub mod effects;
