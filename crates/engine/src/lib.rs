//! The server without input and output: commands, checks, locking, effects.
//!
//! The engine opens no socket and no file and starts no thread. It is [`engine::Engine::execute`]
//! (session, request, reply) plus effects behind small traits, so that workers, tests and fuzzers
//! drive it alike. Reading order: `call` (the way of a command), `context` and `db` (what handlers
//! see), then the families in `commands`, which an engine is given as a [`registry::Registry`].

/// The version of Redis whose behaviour this is: what clients are told when they ask.
pub const REDIS_VERSION: &str = "7.0.15";

/// The server's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod command;
pub mod commands;
pub mod compatibility;
pub mod engine;
pub mod handler;
#[cfg(any(test, feature = "explore"))]
pub mod no_host;
pub mod observe;
pub mod persistence;
pub mod reclaim;
pub mod registry;
pub mod run;
pub mod session;
#[cfg(test)]
mod testing;
pub mod wait;
