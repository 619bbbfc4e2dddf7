//! The server without input and output: commands, checks, locking, effects.
//!
//! The engine opens no socket and no file and starts no thread. It is [`engine::Engine::execute`]
//! (session, request, reply) plus effects behind small traits, so that workers, tests and fuzzers
//! drive it alike. Reading order: `call` (the way of a command), `context` and `db` (what handlers
//! see), then the families in `commands`.

/// The version of Redis whose behaviour this is: what clients are told when they ask.
pub const REDIS_VERSION: &str = "7.0.15";

/// The server's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod append_only;
pub mod args;
mod blocking;
mod call;
pub mod client;
pub mod command;
mod commands;
pub mod compatibility;
pub mod config;
pub mod context;
pub mod db;
pub mod durability;
pub mod effects;
mod elements;
pub mod engine;
pub mod error;
pub mod expire;
mod flush;
pub mod help;
pub mod journal;
pub mod latency;
mod left_behind;
pub mod loading;
mod memory;
pub mod monitor;
pub mod notify;
pub mod pubsub;
mod redaction;
pub mod saving;
mod scan;
mod scored;
pub mod session;
pub mod slowlog;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod waiting;
pub mod watching;
