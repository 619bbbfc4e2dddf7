//! The recording of one load: histograms, every second, errors, and the generator's own condition.

mod latency;
mod recording;

pub use latency::{Latency, LatencyError};
pub(crate) use recording::TENTHS;
pub use recording::{Generator, OperationRecord, Recording, Second};
