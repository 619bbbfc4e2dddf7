//! Times: milliseconds since 1970, which people and files see as RFC 3339 (jiff reads and writes
//! that).

use jiff::Timestamp;
use lab::targets::Interrupt;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Unix times with more digits than this are milliseconds.
const DIGITS_OF_SECONDS: usize = 11;

/// No clock that is right is so far ahead of another one.
const FAR_MS: u64 = 60 * 60 * 1000;

/// Milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// The present, on this machine's clock.
    pub(crate) fn now() -> Moment {
        Moment(base::clock::now_ms())
    }

    /// Whether it is so late that a clock was wrong.
    pub(crate) fn is_far_ahead_of(self, now: Moment) -> bool {
        self.0 > now.0.saturating_add(FAR_MS)
    }

    /// Reads a time of RFC 3339, or a Unix time in seconds (with a fraction) or milliseconds.
    pub(crate) fn parse(text: &str) -> Option<Moment> {
        let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
        if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
            if whole.len() > DIGITS_OF_SECONDS {
                return text.parse().ok().map(Moment);
            }
            let seconds: f64 = text.parse().ok()?;
            return Some(Moment((seconds * 1000.0).round() as u64));
        }
        let time: Timestamp = text.parse().ok()?;
        u64::try_from(time.as_millisecond()).ok().map(Moment)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = i64::try_from(self.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        match time {
            Some(time) => write!(formatter, "{time:.3}"),
            None => write!(formatter, "{}", self.0),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        let text = String::deserialize(deserializer)?;
        Moment::parse(&text).ok_or_else(|| D::Error::custom(format!("'{text}' is no time")))
    }
}

/// Waits, and returns whether the user has asked for the end meanwhile.
pub(crate) fn wait(ms: u64, interrupt: &Interrupt) -> bool {
    let end = base::clock::monotonic_ms() + ms;
    while base::clock::monotonic_ms() < end && !interrupt.is_set() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    interrupt.is_set()
}

/// Reads a length of time: seconds, or a number with `s`, `m`, `h` or `d` after it.
pub(crate) fn parse_duration_ms(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds: u64 = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds * 1000).filter(|length| *length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, ms) in [
            ("2026-11-27T20:00:00Z", 1_795_809_600_000),
            ("2026-11-27T21:00:00.5+01:00", 1_795_809_600_500),
            ("1795809600", 1_795_809_600_000),
            ("1795809600.25", 1_795_809_600_250),
            ("1795809600250", 1_795_809_600_250),
        ] {
            assert_eq!(Moment::parse(text), Some(Moment(ms)), "{text}");
        }
        for text in ["", "yesterday", "2026-11-27", "12:00", "-5", "1.2.3"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        assert_eq!(Moment(1_795_809_600_250).to_string(), "2026-11-27T20:00:00.250Z");
    }

    #[test]
    fn lengths_have_units() {
        let lengths = ["90", "90s", "2m", "3h", "7d"].map(parse_duration_ms);
        let expected = [90, 90, 120, 10_800, 604_800].map(|seconds| Some(seconds * 1000));
        assert_eq!(lengths, expected);
        for text in ["", "0", "-1", "1w", "m", "1.5h", "99999999999999999999"] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }
}
