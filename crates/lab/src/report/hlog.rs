//! Recordings as histogram logs, which the tools around HdrHistogram read and draw: a line per
//! second for all requests, then a line with a tag per operation for the whole run. Values are
//! nanoseconds.

use std::io;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::record::Recording;

/// The column of the largest value is in milliseconds, as is usual.
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// The log of one recording.
///
/// # Errors
/// Only those of memory that runs out.
pub(crate) fn hlog(title: &str, recording: &Recording) -> io::Result<Vec<u8>> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let start = SystemTime::UNIX_EPOCH + Duration::from_millis(recording.started_unix_ms);
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&one_line(title))
        .add_comment(
            "Response times in nanoseconds: a line per second; tagged lines hold one operation",
        )
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NANOSECONDS_PER_MILLISECOND)
        .begin_log_with(&mut log, &mut serializer)?;
    for second in &recording.timeline {
        let at = Duration::from_secs(u64::from(second.at));
        let left = (recording.seconds - f64::from(second.at)).clamp(0.001, 1.0);
        writer
            .write_histogram(second.response.histogram(), at, Duration::from_secs_f64(left), None)
            .map_err(failed)?;
    }
    let whole = Duration::try_from_secs_f64(recording.seconds).unwrap_or_default();
    for operation in &recording.operations {
        let name = tag_text(&operation.name);
        writer
            .write_histogram(operation.response.histogram(), Duration::ZERO, whole, Tag::new(&name))
            .map_err(failed)?;
    }
    drop(writer);
    Ok(log)
}

fn failed<E: std::fmt::Debug>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => io::Error::other(format!("{error:?}")),
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A tag ends at a comma or at a space.
fn tag_text(name: &str) -> String {
    let allowed = |c: char| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c };
    name.chars().map(allowed).collect()
}
