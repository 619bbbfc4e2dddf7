//! The commands, one file per family, each ending with its rows.
//!
//! Families never import each other; code that two of them need lives in the engine or in the store.

use std::sync::LazyLock;

use crate::command::Command;
use crate::registry::Registry;

mod append_only;
mod bitmap;
mod changes;
mod client;
mod cluster;
mod command_log;
mod config;
mod connection;
mod debug;
mod function;
mod geo;
mod hash;
pub(crate) mod http;
mod hyperloglog;
mod info;
mod introspection;
mod keys;
mod latency;
mod list;
mod memory;
mod module;
mod pubsub;
mod saving;
mod script;
mod server;
mod set;
mod sort;
mod stream;
mod string;
mod transactions;
mod zset;

/// All commands, for an engine.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(FAMILIES));
    &REGISTRY
}

/// All families' rows.
const FAMILIES: &[&[Command]] = &[
    string::COMMANDS,
    bitmap::COMMANDS,
    keys::COMMANDS,
    sort::COMMANDS,
    list::COMMANDS,
    set::COMMANDS,
    hash::COMMANDS,
    zset::COMMANDS,
    geo::COMMANDS,
    hyperloglog::COMMANDS,
    stream::COMMANDS,
    transactions::COMMANDS,
    script::COMMANDS,
    function::COMMANDS,
    pubsub::COMMANDS,
    connection::COMMANDS,
    client::COMMANDS,
    introspection::COMMANDS,
    config::COMMANDS,
    info::COMMANDS,
    cluster::COMMANDS,
    server::COMMANDS,
    module::COMMANDS,
    saving::COMMANDS,
    append_only::COMMANDS,
    latency::COMMANDS,
    command_log::COMMANDS,
    memory::COMMANDS,
    debug::COMMANDS,
    http::COMMANDS,
    changes::COMMANDS,
];
