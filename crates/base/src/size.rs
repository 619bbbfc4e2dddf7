//! Memory sizes as configuration files write them: `100`, `64mb`, `1k`, `1kb`.
//!
//! The unit with a `b` is a power of 1024, the one without is a power of 1000.

/// Reads a memory size in bytes, or `None` when `text` is not one.
///
/// Units are case-insensitive: none or `b`, `k` and `kb`, `m` and `mb`, `g` and `gb`. As in Redis,
/// missing digits count as zero, so that an empty string switches a limit off. A value beyond 64
/// bits is refused (Redis lets it wrap around).
pub fn parse_size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let mut value: u64 = 0;
    for digit in number {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    value.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn units_as_in_redis_conf() {
        let cases: &[(&str, u64)] = &[
            ("0", 0),
            ("", 0),
            ("kb", 0),
            ("007", 7),
            ("100", 100),
            ("1b", 1),
            ("1k", 1000),
            ("1kb", 1024),
            ("1K", 1000),
            ("1KB", 1024),
            ("5m", 5_000_000),
            ("5Mb", 5 << 20),
            ("1g", 1_000_000_000),
            ("1gb", 1 << 30),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text.as_bytes()), Some(*bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in ["-1", "+1", "1 kb", "1.5k", "0x10", "10%", "1t", "1tb", "1kbb", " 1"] {
            assert_eq!(parse_size(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_size(b"18446744073709551616"), None);
        assert_eq!(parse_size(b"20000000000gb"), None);
    }
}
