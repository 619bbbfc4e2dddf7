//! What an operator or a client may look at: counters, slow commands, delays, MONITOR, and
//! notifications of keys that change.

pub mod latency;
pub mod monitor;
pub mod notify;
pub(crate) mod redaction;
pub mod slowlog;
pub mod stats;
