//! What an operator or a client can look at: counters, logs of commands, delays, MONITOR, what takes
//! the memory, which keys are hot, and notifications of keys that change.
//!
//! The rest of the engine writes to all of these except `memory`, and they import little of the engine.

pub mod command_log;
pub mod hot_keys;
pub mod latency;
pub(crate) mod memory;
pub mod monitor;
pub mod notify;
pub(crate) mod redaction;
pub mod stats;
