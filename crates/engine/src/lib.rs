//! The server without input and output: commands, checks, locking, effects.
//!
//! The engine opens no socket and no file and starts no thread. It is [`engine::Engine::execute`]
//! (session, request, reply) plus effects behind small traits, so that workers, tests and fuzzers drive
//! it alike.
//!
//! | room | what it answers |
//! |---|---|
//! | [`engine`] | what do all connections share, and what is a command? |
//! | [`run`] | how does a command run, from start to end? |
//! | [`command`], [`registry`] | what is known of a command, and how is it found? |
//! | [`handler`] | what does a handler work with? |
//! | [`commands`] | the families of commands, which no other room imports: an engine receives them |
//! | [`script`] | what does the engine know of scripts? |
//! | [`session`] | which clients are connected? |
//! | [`wait`] | which clients wait for keys, and which watch them? |
//! | [`changes`] | which clients follow the journal, and how? |
//! | [`persistence`] | what does the engine know of data on disk? |
//! | [`reclaim`] | what gives memory back? |
//! | [`observe`] | what can an operator look at? |
//! | [`host`] | what does the engine ask the world outside? |
//! | [`http`] | what do keys have for HTTP besides their values? |
//! | [`nodes`] | where is the tree of `/v2/keys`, and which clients watch it? |
//!
//! Files import in one direction, within rooms and between them.

/// The version of Redis that Dunlin imitates: the answer to clients that ask.
pub const REDIS_VERSION: &str = "8.0.2";

/// Dunlin's own version.
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
