//! What an operator can look at: counters, logs of commands, delays, and which keys are hot; and
//! what DEBUG commands switch. The rest of the engine writes to these.

pub mod command_log;
pub mod debug;
pub mod history;
pub mod hot_keys;
pub mod latency;
pub mod redaction;
pub mod stats;
