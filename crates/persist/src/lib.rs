//! Files that outlive the process: the append-only file and what surrounds it.
//!
//! | file | what it answers |
//! |---|---|
//! | [`disk`] | how does the process write, sync and rename, and how does a test make that fail? |
//! | [`journal`] | in which order do effects stand, and how do they get to their readers? |
//! | [`aof`] | what is the append-only file, when does it begin and end, and how is it read? |
//! | [`snapshot`] | how does the data of an instant become a file? |
//! | [`cuts`] | who may read the data of an instant now? |
//! | `shape`, `as_commands` | how does it become commands of an append-only file? |
//! | [`full_copy`] | what do replicas get before the stream of writes? |
//! | [`rdb`] | who asks for such files, and when? |
//! | [`load`] | how does all of it get back into the keyspace? |
//! | `delay` | how is a save or a load made to take long, for tests? |
//! | [`claim`] | which process may use these files? |
//! | [`config_file`] | how is the configuration file replaced? |
//! | [`originals`] | how is a file changed whose contents may still be wanted? |
//! | [`stale`] | what happens to files that a process has not finished? |
//! | [`check`] | what does `dunlin check` report about files, and what can it keep of damaged ones? |
//!
//! This is the crate that syncs, and it keeps this order: a file is synced before another one names
//! it, and a directory is synced after its names have changed.

pub mod aof;
mod as_commands;
pub mod check;
pub mod claim;
pub mod config_file;
pub mod cuts;
mod delay;
pub mod disk;
#[cfg(test)]
mod faults;
pub mod full_copy;
pub mod journal;
pub mod load;
pub mod originals;
pub mod rdb;
mod shape;
pub mod snapshot;
pub mod stale;
