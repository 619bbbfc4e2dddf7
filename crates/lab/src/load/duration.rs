//! Times on a command line.

/// Seconds, of `2`, `0.5`, `100ms`, `2.5s`, `3m`, `1h`.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, scale) =
        unit.map_or((text, 1.0), |(unit, scale)| (text.strip_suffix(unit).unwrap_or(text), *scale));
    if !number.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    number.parse::<f64>().ok().map(|number| number * scale).filter(|seconds| seconds.is_finite())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_are_understood() {
        for (text, seconds) in [("2", 2.0), ("0.5s", 0.5), ("3m", 180.0), ("1h", 3600.0)] {
            assert_eq!(parse(text), Some(seconds));
        }
        assert!(parse("100ms").is_some_and(|seconds| (seconds - 0.1).abs() < 1e-9));
        for text in ["", "s", "-1", "1d", "nan", "inf"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
