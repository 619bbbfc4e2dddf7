//! What one load saw: histograms, every second, errors, and how the generator itself did.

mod latency;
mod recording;

pub use latency::{Latency, LatencyError};
pub use recording::{Generator, OperationRecord, Recording, Second};
