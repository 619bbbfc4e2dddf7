//! The keyspace: slots, tables, entries and the data types.
//!
//! Reading order: [`keyspace`] (slots and their locks), `entry` (one key and its value in one
//! allocation), `table::dict` (how both are found), then the types, one file each.

mod backlog;
pub mod bitmap;
pub mod cut;
mod entry;
pub mod evict;
pub mod freeze;
mod frozen_text;
pub mod garbage;
pub mod gate;
pub mod geo;
mod hash;
pub mod hyperloglog;
pub mod keyspace;
pub mod list;
mod member;
pub mod pack;
mod packed;
pub mod promote;
pub mod reserve;
mod set;
mod sizes;
pub mod stream;
mod string;
pub mod sync;
pub mod table;
mod waits;
mod zset;

pub use entry::{Entry, EntryMut, INLINE_MAX, Removed, Value, ValueMut, ValueRef};
pub use hash::{Field, Hash, HashIter, HashView};
pub use keyspace::{Held, Key, Keyspace, Look, SlotTable};
pub use list::List;
pub use packed::{Limits, Malformed, SetLimits};
pub use set::{Set, SetIter};
pub use sizes::Sizes;
pub use stream::{Stream, StreamId};
pub use string::{EMBSTR_MAX, StringBytes, StringRef, StringValue};
pub use zset::{Insertion, LexBound, ScoreBound, Zset, ZsetBuilder, ZsetRange};
