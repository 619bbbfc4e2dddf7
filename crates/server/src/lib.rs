//! Sockets, threads and files around the engine.
//!
//! | room | what it answers |
//! |---|---|
//! | [`boot`] | in which order does a server start and stop? |
//! | [`net`] | how do bytes come in and go out? |
//! | [`host`] | what does the engine get when it asks for the world outside? |
//! | [`cron`] | what happens by itself, some times a second? |
//! | [`listen`] | on which sockets does it listen? |
//! | [`process`] | how does the process behave towards its system and its operator? |
//! | [`memory`], [`freeing`] | how much memory is in use, and who gives it back? |
//! | [`changes`] | who tells those who follow the journal? |
//! | [`errands`] | who does what a slow disk would make a worker wait for? |
//! | [`persist`] | what outlives the process, and how? |
//! | [`views`] | who asks databases, and keeps what they answer? |
//! | [`files`] | where does the configuration come from, and where is it rewritten? |
//!
//! Rooms do not import each other; `boot` and `host` wire them together.

pub mod boot;
pub mod changes;
pub mod cron;
pub mod errands;
pub mod files;
pub mod freeing;
pub mod host;
pub mod listen;
pub mod memory;
pub mod net;
pub mod persist;
pub mod process;
pub mod views;
