//! Numbers for people, in as many letters as fit into a column.

/// Bytes: `512B`, `1.5K`, `3.0G`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "K", "M", "G", "T", "P", "E"];
    let (mut size, mut unit) = (value, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{size:.0}B") } else { format!("{size:.1}{}", UNITS[unit]) }
}

/// A count: `999`, `1.2k`, `3.4M`.
pub(crate) fn count(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let (mut size, mut unit) = (value, 0);
    while size >= 10_000.0 || (unit > 0 && size >= 1000.0) {
        if unit + 1 == UNITS.len() {
            break;
        }
        size /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{size:.0}") } else { format!("{size:.1}{}", UNITS[unit]) }
}

/// How often a second.
pub(crate) fn rate(value: f64) -> String {
    if value > 0.0 && value < 10.0 { format!("{value:.1}") } else { count(value) }
}

/// A time: `12us`, `3.4ms`, `5.6s`, `7m`, `8h`, `9d`.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        value if value <= 0.0 => "0".to_owned(),
        value if value < 0.001 => format!("{:.1}us", value * 1e6),
        value if value < 1.0 => format!("{:.1}ms", value * 1e3),
        value if value < 120.0 => format!("{value:.0}s"),
        value if value < 7200.0 => format!("{:.0}m", value / 60.0),
        value if value < 172_800.0 => format!("{:.0}h", value / 3600.0),
        value => format!("{:.0}d", value / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([bytes(0.0), bytes(1536.0), bytes(3e12)], ["0B", "1.5K", "2.7T"]);
        assert_eq!([count(9999.0), count(10_000.0), count(2.5e9)], ["9999", "10.0k", "2.5G"]);
        assert_eq!([rate(0.0), rate(0.5), rate(12.4)], ["0", "0.5", "12"]);
        assert_eq!([seconds(0.0), seconds(0.000_012), seconds(0.0034)], ["0", "12.0us", "3.4ms"]);
        assert_eq!([seconds(5.0), seconds(600.0), seconds(1e6)], ["5s", "10m", "12d"]);
    }
}
