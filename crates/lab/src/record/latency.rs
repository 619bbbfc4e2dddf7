//! Latencies as an HDR histogram: three significant digits from a microsecond to a hundred seconds,
//! in memory that depends on the longest latency only (16 kB up to a millisecond, 150 kB at most).
//! Two of them add up to the histogram of all their values.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// The shortest time that is distinguished, in nanoseconds.
const SHORTEST: u64 = 1_000;
/// The longest time; longer ones count as this.
const LONGEST: u64 = 100_000_000_000;
/// 1.23 ms differs from 1.24 ms.
const DIGITS: u8 = 3;

/// A histogram of durations in nanoseconds. In text it is the base64 form of the HDR histogram's
/// compressed encoding (version 2), which other tools read.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Latency {
    histogram: Histogram<u64>,
}

/// Text that is no histogram.
#[derive(Debug, thiserror::Error)]
#[error("this is no histogram: {0}")]
pub struct LatencyError(String);

impl Latency {
    /// Without a value.
    pub fn new() -> Self {
        // It grows with the longest value: a run keeps one for each of its seconds, and few see
        // more than some milliseconds.
        let mut histogram = Histogram::new_with_bounds(SHORTEST, 2 * SHORTEST, DIGITS)
            .unwrap_or_else(|_| unreachable!("the bounds are in order"));
        histogram.auto(true);
        Latency { histogram }
    }

    /// Counts one duration.
    pub fn record(&mut self, nanoseconds: u64) {
        self.record_many(nanoseconds, 1);
    }

    /// Counts the same duration several times.
    pub fn record_many(&mut self, nanoseconds: u64, times: u64) {
        // Up to the longest time it grows as it must.
        let _ = self.histogram.record_n(nanoseconds.min(LONGEST), times);
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Latency) {
        // It grows to the size of the other, which is never longer than the longest time.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The value that a share of all values (0.999) does not exceed, in milliseconds.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        milliseconds(self.histogram.value_at_quantile(share))
    }

    /// The largest value, in milliseconds; 0 when there is none.
    pub fn max_ms(&self) -> f64 {
        milliseconds(self.histogram.max())
    }

    /// The smallest value, in milliseconds; 0 when there is none.
    pub fn min_ms(&self) -> f64 {
        if self.histogram.is_empty() { 0.0 } else { milliseconds(self.histogram.min()) }
    }

    /// The mean, in milliseconds; 0 when there is none.
    pub fn mean_ms(&self) -> f64 {
        self.histogram.mean() / 1e6
    }

    /// The histogram itself, for formats that others defined.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

impl fmt::Debug for Latency {
    /// In short: the counts would fill a screen.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Latency {{ count: {}, p50: {} ms, p99: {} ms, max: {} ms }}",
            self.count(),
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.max_ms()
        )
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Latency> for String {
    fn from(latency: Latency) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&latency.histogram, &mut bytes)
            .unwrap_or_else(|_| unreachable!("memory takes every write"));
        STANDARD.encode(bytes)
    }
}

impl TryFrom<String> for Latency {
    type Error = LatencyError;

    fn try_from(text: String) -> Result<Self, LatencyError> {
        let bytes = STANDARD.decode(text).map_err(|error| LatencyError(error.to_string()))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|error| LatencyError(error.to_string()))?;
        let mut latency = Latency::new();
        latency.histogram.add(&histogram).map_err(|error| LatencyError(error.to_string()))?;
        Ok(latency)
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_is_the_same_histogram() {
        let mut latency = Latency::new();
        for value in [1_500, 2_000_000, 2_000_000, 90_000_000_000] {
            latency.record(value);
        }
        let text = String::from(latency.clone());
        let back = Latency::try_from(text).expect("what was written can be read");
        assert_eq!(back, latency);
        assert_eq!(back.count(), 4);
        assert!((back.quantile_ms(0.5) - 2.0).abs() < 0.01);
    }

    #[test]
    fn two_halves_add_up_to_the_whole() {
        let (mut whole, mut left, mut right) = (Latency::new(), Latency::new(), Latency::new());
        for value in 1..2_000u64 {
            whole.record(value * 1_000);
            if value % 2 == 0 { &mut left } else { &mut right }.record(value * 1_000);
        }
        left.merge(&right);
        assert_eq!(left, whole);
    }

    #[test]
    fn what_is_out_of_bounds_counts_as_the_bound() {
        let mut latency = Latency::new();
        latency.record(u64::MAX);
        latency.record(0);
        assert_eq!(latency.count(), 2);
        assert!((latency.max_ms() - 100_000.0).abs() < 100.0);
    }

    #[test]
    fn other_text_is_refused() {
        assert!(Latency::try_from("so it goes".to_owned()).is_err());
        assert!(Latency::try_from("aGVsbG8=".to_owned()).is_err());
    }
}
