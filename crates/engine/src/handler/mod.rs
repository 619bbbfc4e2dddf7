//! What a handler works with: its arguments, the database that it sees, its errors, and pieces of
//! replies and options that several families share.
//!
//! May import the whole engine, except the families of commands.

pub mod args;
pub mod context;
pub mod db;
pub(crate) mod elements;
pub mod error;
pub mod fields;
pub(crate) mod flush;
pub mod help;
pub(crate) mod scan;
pub(crate) mod scored;
