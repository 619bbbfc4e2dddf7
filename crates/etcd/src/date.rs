//! Dates and durations in JSON.

use std::io::Write;

/// Appends a millisecond of Unix time as RFC 3339 has it, in UTC, without zeros at the end.
pub fn write(out: &mut Vec<u8>, unix_ms: i64) {
    let (second, millisecond) = (unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000));
    let (days, rest) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    // Years that begin in March, so that the leap day is a year's last; eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month < 3);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    // Memory takes everything.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if millisecond > 0 {
        let _ = write!(out, ".{millisecond:03}");
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// A duration in milliseconds as Go prints it: `1h2m3.5s`.
pub fn duration(ms: u64) -> String {
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let mut text = String::new();
    if hours > 0 {
        text += &format!("{hours}h");
    }
    if hours > 0 || minutes > 0 {
        text += &format!("{minutes}m");
    }
    let seconds = format!("{}.{:03}", ms / 1000 % 60, ms % 1000);
    text + seconds.trim_end_matches('0').trim_end_matches('.') + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_386_187_281_874, "2013-12-04T20:01:21.874Z"),
            (1_709_164_800_500, "2024-02-29T00:00:00.5Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_868_800_050, "2000-03-01T00:00:00.05Z"),
        ] {
            let mut text = Vec::new();
            write(&mut text, ms);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
    }

    #[test]
    fn durations() {
        for (ms, expected) in
            [(0, "0s"), (1500, "1.5s"), (60_000, "1m0s"), (3_723_010, "1h2m3.01s"), (10_000, "10s")]
        {
            assert_eq!(duration(ms), expected);
        }
    }
}
