//! The keyspace: slots, tables, entries and the data types.
//!
//! Reading order: [`keyspace`] (slots and their locks), `entry` (one key and its value in one
//! allocation), `table::dict` (how both are found), then the [`types`], one file each.

mod entry;
pub mod evict;
pub mod garbage;
pub mod keyspace;
pub mod locks;
pub mod pack;
mod slot_set;
pub mod snapshot;
pub mod table;
pub mod types;

pub use keyspace::promote;
pub use locks::{gate, reserve, sync};
pub use snapshot::{cut, freeze};
pub use types::{list, stream};

pub use entry::{Entry, EntryMut, INLINE_MAX, Removed, Value, ValueMut, ValueRef};
pub use keyspace::{Key, Keyspace, LockedSlots, Look, SlotTable};
pub use slot_set::{SharedSlotSet, SlotSet};
pub use types::hash::{Field, Hash, HashIter, HashView};
pub use types::list::List;
pub use types::packed::{Limits, Malformed, SetLimits};
pub use types::set::{Set, SetIter};
pub use types::sizes::Sizes;
pub use types::stream::{Stream, StreamId};
pub use types::string::{EMBSTR_MAX, StringBytes, StringRef, StringValue};
pub use types::zset::{Insertion, LexBound, ScoreBound, Zset, ZsetBuilder, ZsetRange};
