//! What an operator or a client may look at: counters, logs of commands, delays, MONITOR, where the
//! memory is, which keys are hot, and notifications of keys that change.
//!
//! All but `memory` are written to by the rest of the engine, and import little of it.

pub mod command_log;
pub mod hot_keys;
pub mod latency;
pub(crate) mod memory;
pub mod monitor;
pub mod notify;
pub(crate) mod redaction;
pub mod stats;
