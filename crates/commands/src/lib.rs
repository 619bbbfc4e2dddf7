//! The commands, one file per family, each with a table of its rows and one of their documentation.
//!
//! An engine receives them when it is made. Families never import each other; code that two of them
//! need lives in the engine or in the store. [`compatibility`] prints what Dunlin has of Redis.

use std::sync::LazyLock;

use engine::engine::{Family, Registry, Row};
use http::rows::HttpRows;
use keys::migrate::MoveRows;

mod acl;
mod append_only;
mod bitmap;
mod changes;
mod client;
mod cluster;
mod command_log;
pub mod compatibility;
mod config;
mod connection;
mod debug;
mod function;
mod geo;
mod hash;
pub mod http;
mod hyperloglog;
mod info;
mod introspection;
pub mod keys;
mod latency;
mod list;
mod memory;
mod module;
mod pubsub;
mod replication;
mod saving;
mod script;
mod server;
mod set;
mod slots;
mod sort;
mod stream;
mod string;
#[cfg(test)]
mod table;
#[cfg(test)]
mod testing;
mod transactions;
mod zset;

/// All commands, for an engine.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(FAMILIES));
    &REGISTRY
}

/// The internal commands of HTTP.
pub fn http_rows() -> &'static HttpRows {
    static ROWS: LazyLock<HttpRows> = LazyLock::new(|| HttpRows::find(registry().rows()));
    &ROWS
}

/// The internal commands of the thread that moves keys.
pub fn move_rows() -> &'static MoveRows {
    static ROWS: LazyLock<MoveRows> = LazyLock::new(|| MoveRows::find(registry().rows()));
    &ROWS
}

/// The internal command that takes in the data of a primary.
pub fn take_in_row() -> &'static Row {
    replication::primary::take_in_row(registry().rows())
}

/// The internal command by which a thread of the host changes the part of a node of a cluster.
pub fn part_row() -> &'static Row {
    replication::primary::part_row(registry().rows())
}

/// The row of the internal command by which a thread of the host goes on with a FAILOVER.
pub fn hand_over_row() -> &'static Row {
    replication::failover::hand_over_row(registry().rows())
}

/// All families.
const FAMILIES: &[Family] = &[
    string::FAMILY,
    bitmap::FAMILY,
    keys::FAMILY,
    keys::INTERNALS,
    sort::FAMILY,
    list::FAMILY,
    set::FAMILY,
    hash::FAMILY,
    zset::FAMILY,
    geo::FAMILY,
    hyperloglog::FAMILY,
    stream::FAMILY,
    transactions::FAMILY,
    script::FAMILY,
    function::FAMILY,
    pubsub::FAMILY,
    connection::FAMILY,
    acl::FAMILY,
    client::FAMILY,
    introspection::FAMILY,
    config::FAMILY,
    info::FAMILY,
    cluster::FAMILY,
    slots::FAMILY,
    server::FAMILY,
    keys::OF_NODES,
    replication::primary::FAMILY,
    replication::primary::INTERNALS,
    replication::failover::FAMILY,
    replication::failover::INTERNALS,
    module::FAMILY,
    saving::FAMILY,
    append_only::FAMILY,
    append_only::WAITING,
    replication::replicas::FAMILY,
    latency::FAMILY,
    command_log::FAMILY,
    memory::FAMILY,
    debug::FAMILY,
    http::FAMILY,
    http::INTERNALS,
    changes::FAMILY,
];
