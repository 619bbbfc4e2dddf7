//! Numbers for people.

/// A number of bytes: `512B`, `1.50K`, `3.00G`.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let (mut size, mut unit) = (bytes as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2}{}", UNITS[unit])
}

/// A share in percent, of two digits at least before the point.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:05.2}%", share(part, whole))
}

/// A share in percent.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([human(0), human(1023), human(1024)], ["0B", "1023B", "1.00K"]);
        assert_eq!([human(4728), human(5 << 30), human(u64::MAX)], ["4.62K", "5.00G", "16.00E"]);
        assert_eq!(
            [percent(0, 5), percent(10, 48), percent(3, 3)],
            ["00.00%", "20.83%", "100.00%"]
        );
        assert_eq!(percent(0, 0), "00.00%");
    }
}
