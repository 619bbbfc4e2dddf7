//! Numbers and times as people write them.

use crate::results::Unit;

/// The thin space between groups of digits; it does not break.
const THIN: char = '\u{202f}';

/// A value with its unit, to three or four digits: `184 200`, `1.24 ms`, `38.1 MiB`.
pub(crate) fn show(unit: Unit, value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    match unit {
        Unit::PerSecond | Unit::Count => plain(value),
        Unit::Milliseconds => duration(value / 1e3),
        Unit::Microseconds => duration(value / 1e6),
        Unit::Seconds => duration(value),
        Unit::Bytes => bytes(value),
        Unit::Ratio => format!("{}×", digits(value, 3)),
        Unit::Percent => format!("{} %", digits(value, 3)),
        Unit::Processors => digits(value, 3),
    }
}

/// The same in as few characters as it can be said, for the ticks of an axis: `200k`, `1 ms`.
pub(crate) fn tick(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond | Unit::Count => thousands(value),
        // A time axis counts in seconds throughout, without repeating so.
        Unit::Seconds => digits(value, 4),
        _ => show(unit, value),
    }
}

/// A duration in the unit in which it has one to three digits before the point.
pub(crate) fn duration(seconds: f64) -> String {
    let size = seconds.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size < 0.999_5e-3 {
        format!("{} µs", digits(seconds * 1e6, 3))
    } else if size < 0.999_5 {
        format!("{} ms", digits(seconds * 1e3, 3))
    } else {
        format!("{} s", digits(seconds, 3))
    }
}

/// Bytes in powers of 1024.
pub(crate) fn bytes(value: f64) -> String {
    let mut value = value;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value.abs() < 1023.5 {
            return format!("{} {unit}", digits(value, 3));
        }
        value /= 1024.0;
    }
    format!("{} TiB", digits(value, 3))
}

/// So many significant digits, without an exponent and without zeros that say nothing.
fn digits(value: f64, significant: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (significant - 1 - magnitude).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Four significant digits, in groups of three.
fn plain(value: f64) -> String {
    if value.abs() < 1000.0 {
        return digits(value, 3);
    }
    let unit = 10f64.powi(value.abs().log10().floor() as i32 - 3);
    grouped((value / unit).round() * unit)
}

/// A whole number in groups of three digits.
pub(crate) fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut result = String::with_capacity(text.len() + text.len() / 3 + 1);
    if value <= -0.5 {
        result.push('-');
    }
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            result.push(THIN);
        }
        result.push(digit);
    }
    result
}

fn thousands(value: f64) -> String {
    let size = value.abs();
    if size >= 999_500_000.0 {
        format!("{}G", digits(value / 1e9, 3))
    } else if size >= 999_500.0 {
        format!("{}M", digits(value / 1e6, 3))
    } else if size >= 1_000.0 {
        format!("{}k", digits(value / 1e3, 3))
    } else {
        digits(value, 3)
    }
}

/// A multiple: `1.84×`, `12×`.
pub(crate) fn ratio(value: f64) -> String {
    if value >= 9.95 {
        return format!("{}×", grouped(value));
    }
    let decimals = if value >= 0.1 { 2 } else { 3 };
    format!("{value:.decimals$}×")
}

/// A moment of Unix time, in UTC: `2026-11-22 00:13`.
pub(crate) fn moment(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (year, month, day) = date(minutes / 1440);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// The same to the second, for the name of a file: `20261122-001356`.
pub(crate) fn stamp(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}{month:02}{day:02}-{hour:02}{minute:02}{:02}", seconds % 60)
}

/// Year, month and day of a day since 1 January 1970, counted in eras of 400 years that begin in
/// March, so that the leap day is a year's last.
fn date(day: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let day = day + 719_468;
    let (era, day) = (day / ERA, day % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// The number at the beginning of a parameter's value, with the sizes that people write: `100`,
/// `0.5`, `100kb`, `2mb`; none for `everysec`.
pub(crate) fn parameter(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" | "s" | "ms" | "%" => 1.0,
        "k" => 1e3,
        "kb" | "kib" => 1024.0,
        "m" => 1e6,
        "mb" | "mib" => 1024.0 * 1024.0,
        "g" => 1e9,
        "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_units() {
        assert_eq!(show(Unit::PerSecond, 184_213.4), "184\u{202f}200");
        assert_eq!(show(Unit::PerSecond, 12.34), "12.3");
        assert_eq!(show(Unit::Milliseconds, 0.0812), "81.2 µs");
        assert_eq!(show(Unit::Milliseconds, 1.0), "1 ms");
        assert_eq!(show(Unit::Milliseconds, 2_345.6), "2.35 s");
        assert_eq!(show(Unit::Bytes, 1024.0 * 1024.0 * 38.1), "38.1 MiB");
        assert_eq!(show(Unit::Count, 0.0), "0");
        assert_eq!(show(Unit::Percent, 12.0), "12 %");
        assert_eq!(show(Unit::Count, f64::NAN), "unknown");
        assert_eq!(ratio(1.8449), "1.84×");
        assert_eq!(ratio(1234.0), "1\u{202f}234×");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick(Unit::PerSecond, 200_000.0), "200k");
        assert_eq!(tick(Unit::PerSecond, 1_500_000.0), "1.5M");
        assert_eq!(tick(Unit::Milliseconds, 0.1), "100 µs");
        assert_eq!(tick(Unit::Seconds, 30.0), "30");
    }

    #[test]
    fn dates() {
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00");
        assert_eq!(moment(1_795_306_436_000), "2026-11-22 00:13");
        assert_eq!(moment(4_107_542_399_000), "2100-02-28 23:59");
        assert_eq!(stamp(1_795_306_436_000), "20261122-001356");
    }

    #[test]
    fn parameters() {
        assert_eq!(parameter("50"), Some(50.0));
        assert_eq!(parameter("100kb"), Some(102_400.0));
        assert_eq!(parameter("2 MB"), Some(2_097_152.0));
        assert_eq!(parameter("everysec"), None);
        assert_eq!(parameter("lrange_100"), None);
        assert_eq!(parameter("100:99,2mb:1"), None);
        assert_eq!(parameter(""), None);
    }
}
