//! The structures that everything bigger than a packed block is made of.

pub(crate) mod dict;
pub mod ranked;
pub mod retire;
