//! The server without input and output: commands, checks, locking, effects.
//!
//! The engine opens no socket and no file and starts no thread. It is [`engine::Engine::execute`]
//! (session, request, reply) plus effects behind small traits, so that workers, tests and fuzzers
//! drive it alike.
//!
//! | room | what it answers |
//! |---|---|
//! | [`run`] | how does a command run, from start to end? |
//! | [`scripting`] | how does a script run, and call commands? |
//! | [`wait`] | how do clients begin to wait and to watch keys, and how are they served? |
//! | [`changes`] | how do clients that follow the journal get changes? |
//! | [`clients`] | what is done with connected clients: shown, told, closed? |
//! | [`admission`] | may a command run, and when? |
//! | [`persistence`] | what does a reply depend on, and how is data loaded? |
//! | [`reclaim`] | what gives memory back? |
//! | [`handler`] | which pieces do families of commands share? |
//! | [`turn`] | what do the commands of one batch share, and which commands are they? |
//! | [`engine`] | what do all connections share, and what does one running command get? |
//! | [`nodes`] | where is the tree of `/v2/keys`, and which clients watch it? |
//! | [`replication`] | is the server a primary or a replica, and how is its link? |
//! | `memory` | how much memory is in use, and which key could go? |
//! | [`db`] | what does a command see of the keys, and what effects does it leave? |
//! | [`cluster`] | which slots does this server serve, as a node of a cluster? |
//! | [`files`] | what state are the files of data in? |
//! | [`script`] | which scripts are known, and what does the engine ask of their interpreter? |
//! | [`host`] | what does the engine ask the world outside? |
//! | [`session`] | who is connected, and what does each wait for? |
//! | [`users`] | who may log in, and what may each do? |
//! | [`journal`] | what is the stream of writes? |
//! | [`observe`] | what can an operator look at? |
//! | [`content_types`] | what do keys have besides their values? |
//! | [`command`] | what is known of a command without running it? |
//!
//! A room imports only rooms that stand below it here; `tests/tests/tidy/rules.rs` lists which.
//!
//! # How it is driven
//!
//! A thread that runs commands has a gate, a turn, and a session for each client. It repeats these
//! steps. [`run::drive`] does so for a thread that may wait, and the server's workers do so for
//! many connections at once.
//!
//! 1. [`turn::Turn::begin`] reads the clock and the settings, once for a batch.
//! 2. Enter the gate. Nothing may wait from here to 5: not for a lock, a disk or a socket.
//! 3. [`engine::Engine::prepare`] finds the row of a command and hashes its keys.
//! 4. [`engine::Engine::execute`] makes the checks, runs it and writes the reply. The
//!    [`turn::request::Outcome`] says whether the command is done, waits, or has to be tried again.
//!    In the last case it has touched nothing.
//! 5. Leave the gate.
//! 6. [`turn::Turn::announce_appends`] tells the journal of all that the batch has appended.
//! 7. Send the replies, as far as the journal has released them.
//!
//! The order that must hold:
//!
//! | before this | this must have happened |
//! |---|---|
//! | another client sees a change | nothing: it sees it when the slot is unlocked |
//! | a slot is unlocked | the effects are in the journal, and publications in their queue |
//! | a publication is delivered | its effects are in the journal |
//! | a reply leaves, `appendfsync always` | all that the reply tells of is synced ([`session::Session::depends_on`]) |
//! | a reply leaves, otherwise | the session's own writes are given to the system |
//! | a thread waits, for whatever reason | it has left its gate and holds no slot |
//! | memory of a table is freed | every gate has been open once since the table was replaced |

/// The version of Redis that Dunlin imitates: the answer to clients that ask.
pub const REDIS_VERSION: &str = "8.0.2";

/// Dunlin's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod admission;
pub mod changes;
pub mod clients;
pub mod cluster;
pub mod command;
pub mod content_types;
pub mod db;
pub mod engine;
pub mod files;
pub mod handler;
pub mod host;
pub mod journal;
pub mod memory;
#[cfg(any(test, feature = "explore", feature = "testing"))]
pub mod no_host;
pub mod nodes;
pub mod observe;
pub mod persistence;
pub mod reclaim;
pub mod replication;
pub mod run;
pub mod script;
pub mod scripting;
pub mod session;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod turn;
pub mod users;
pub mod wait;
