//! TLS, for a server and for a client: what the settings say becomes what a connection needs.
//!
//! | file | what it answers |
//! |---|---|
//! | `key`, `certificate`, `identity` | who is this end, and how does it prove that? |
//! | `trust` | whom does this end believe? |
//! | `choices` | which versions and ciphers are offered? |
//! | `sessions` | which sessions can be resumed? |
//! | `server`, `client` | what does an end of a connection go by? |
//! | `active` | what do new connections go by now? |
//! | `stream` | a client's connection that blocks |
//! | `dev` | certificates for trials |
//!
//! The protocol itself is rustls's. Errors are texts for an operator.

mod active;
mod certificate;
mod choices;
pub mod client;
pub mod dev;
mod identity;
mod key;
pub mod server;
mod sessions;
pub mod stream;
mod trust;

pub use active::{Active, Ends};
pub use certificate::{Expiry, NameSource, names};
pub use client::ClientSettings;
pub use server::{ClientCertificates, ServerSettings};
pub use stream::Stream;
