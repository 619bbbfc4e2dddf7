//! What a target is, before anything is started.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A server: how to start it, or where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name in tables.
    pub name: String,
    /// How it comes to be there.
    pub origin: Origin,
    /// The processors it may use; empty: any.
    pub cpus: Vec<usize>,
    /// Environment variables besides those of the lab itself.
    pub environment: BTreeMap<String, String>,
    /// The password that clients send.
    pub password: Option<String>,
    /// What shows that it is ready.
    pub probe: Probe,
}

/// How a target comes to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The lab starts this program with these arguments.
    Command {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// It is running.
    Running {
        /// A name or an address.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// It cannot be measured on this machine, for this reason.
    Missing(String),
}

/// What shows that a target is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// PING is answered, and not with LOADING.
    Ping,
    /// `GET /` is answered as HTTP.
    Http,
    /// A connection is accepted.
    Connect,
}
