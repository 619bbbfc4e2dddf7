//! The data types, one file each: how their values lie in memory, and how they change.
//!
//! `member` is an element of a set, and `packed` says when a small collection is one block; `sizes`
//! estimates what large collections take.

pub(crate) mod hash;
pub mod list;
pub(crate) mod member;
pub(crate) mod packed;
pub(crate) mod set;
pub(crate) mod sizes;
pub mod stream;
pub(crate) mod string;
pub(crate) mod zset;
