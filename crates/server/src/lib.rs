//! Sockets, threads and files around the engine.
//!
//! | room | what it answers |
//! |---|---|
//! | [`boot`] | in which order does a server start and stop? |
//! | [`net`] | how do bytes come in and go out? |
//! | [`host`] | what does the engine get when it asks for the world outside? |
//! | [`cron`] | what happens periodically? |
//! | [`listen`] | on which sockets does it listen? |
//! | [`process`] | how does the process behave towards its system and its operator? |
//! | [`memory`], [`freeing`] | how much memory is in use, and which thread gives it back? |
//! | [`changes`] | which thread tells the followers of the journal? |
//! | [`assistant`] | how does a thread do jobs for clients that wait? |
//! | [`errands`] | which thread does work that could make a worker wait for a slow disk? |
//! | [`listings`] | which thread answers reads of nodes that would keep a worker busy for long? |
//! | [`hand`] | with what does a thread run commands that serves no connection? |
//! | [`persist`] | which data outlives the process, and how? |
//! | [`views`] | which threads ask databases, and keep the results? |
//! | [`files`] | where does the configuration come from, and where is it rewritten? |
//!
//! Rooms do not import each other; `boot` and `host` connect them.

pub mod assistant;
pub mod boot;
pub mod changes;
pub mod cron;
pub mod errands;
pub mod files;
pub mod freeing;
pub mod hand;
pub mod host;
pub mod listen;
pub mod listings;
pub mod memory;
pub mod net;
pub mod persist;
pub mod process;
pub mod views;
