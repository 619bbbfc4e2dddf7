//! Sockets, threads and files around the engine.
//!
//! | room | what it answers |
//! |---|---|
//! | [`boot`] | in which order does a server start and stop? |
//! | [`net`] | how do bytes come in and go out? |
//! | [`host`] | what does the engine get when it asks for the world outside? |
//! | [`listen`] | on which sockets does it listen? |
//! | `connecting` | how does a connection to another server begin? |
//! | `credentials` | which secrets does the service manager hand over? |
//! | `encryption` | what do the settings say of TLS? |
//! | [`primary`] | how does a replica follow its primary? |
//! | [`threads`] | what do threads do beside the workers? |
//! | [`files`] | where does the configuration come from, and where is it rewritten? |
//! | [`users`] | which users does a server start with? |
//! | [`watched_files`] | which thread sees that files with secrets were replaced? |
//!
//! Rooms do not import each other, but for `connecting`; `boot` and `host` connect them.

pub mod boot;
mod connecting;
mod credentials;
mod encryption;
pub mod files;
pub mod host;
pub mod listen;
pub mod net;
pub mod primary;
pub mod threads;
pub mod users;
pub mod watched_files;
