//! The server without input and output: commands, checks, locking, effects.
//!
//! The engine opens no socket and no file and starts no thread. It is [`engine::Engine::execute`]
//! (session, request, reply) plus effects behind small traits, so that workers, tests and fuzzers
//! drive it alike.
//!
//! | room | what it answers |
//! |---|---|
//! | [`engine`] | what do all connections share, and what is a command to that? |
//! | [`run`] | what is the way of a command? |
//! | [`command`], [`registry`] | what is known of a command, and how is it found? |
//! | [`handler`] | what does a handler work with? |
//! | [`commands`] | the families, which no other room imports: an engine is given them |
//! | [`script`] | what are scripts to it? |
//! | [`session`] | who is connected? |
//! | [`wait`] | who waits, and who watches? |
//! | [`changes`] | who follows the journal, and how? |
//! | [`persistence`] | what is known of data that outlives the process? |
//! | [`reclaim`] | what gives memory back? |
//! | [`observe`] | what may an operator look at? |
//! | [`host`] | what is asked of the world outside? |
//! | [`http`] | what are keys to HTTP besides their values? |
//! | [`nodes`] | where is the tree of `/v2/keys`, and who watches it? |
//!
//! Files import in one direction, within rooms and between them.

/// The version of Redis whose behaviour this is: what clients are told when they ask.
pub const REDIS_VERSION: &str = "8.0.2";

/// The server's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod changes;
pub mod command;
pub mod commands;
pub mod compatibility;
pub mod engine;
pub mod handler;
pub mod host;
pub mod http;
#[cfg(any(test, feature = "explore"))]
pub mod no_host;
pub mod nodes;
pub mod observe;
pub mod persistence;
pub mod reclaim;
pub mod registry;
pub mod run;
pub mod script;
pub mod session;
#[cfg(test)]
mod testing;
pub mod wait;
