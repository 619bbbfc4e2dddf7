//! Files that outlive the process: the append-only file and what surrounds it.
//!
//! | file | what it answers |
//! |---|---|
//! | [`disk`] | how does the process write, sync and rename, and how does a test make that fail? |
//! | [`manifest`] | which files make up the data, in which order? |
//! | [`directory`] | how does that list change, so that it is right whenever the machine stops? |
//! | [`aof`] | which commands does a file hold, and where does it end or break? |
//! | [`journal`] | how do effects get from the engine to the file, and when are they safe? |
//! | [`append_only`] | when does the append-only file begin, end, and become shorter? |
//! | `delay` | how is a save or a load made to take long, for tests? |
//! | [`snapshot`] | how does the data of an instant become a file? |
//! | [`saver`] | who asks for such files, and when? |
//! | [`load`] | how does all of it get back into the keyspace? |
//! | [`claim`] | who may use these files? |
//! | [`stale`] | what becomes of files that a process has not finished? |
//! | [`check`] | what does `dunlin check` say of files, and what can it keep of damaged ones? |
//!
//! This is the room that syncs. Order is what it is about: a file is synced before another one
//! names it, and a directory is synced after its names have changed.

pub mod aof;
pub mod append_only;
mod as_commands;
pub mod check;
pub mod claim;
mod delay;
pub mod directory;
pub mod disk;
#[cfg(test)]
mod faults;
pub mod journal;
pub mod load;
pub mod manifest;
mod rewrite;
pub mod saver;
pub mod snapshot;
pub mod stale;
