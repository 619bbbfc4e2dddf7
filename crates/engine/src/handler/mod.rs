//! Pieces of replies, options and handlers that several families of commands share.

pub mod elements;
pub mod flush;
pub mod help;
pub mod scan;
pub mod scored;
pub mod walk;
