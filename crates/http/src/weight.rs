//! Lists of what a client takes, each with its weight: `gzip;q=0.5, *`.

/// The weight of what a client takes as gladly as anything.
pub const WHOLE: u16 = 1000;

/// The names in such lists, in their order, with their weights in thousandths.
pub fn items<'v>(lists: impl Iterator<Item = &'v [u8]>) -> impl Iterator<Item = (&'v [u8], u16)> {
    lists.flat_map(|list| list.split(|byte| *byte == b',')).filter_map(|item| {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().filter(|name| !name.is_empty())?;
        let weight = parts.find_map(|part| match part {
            [b'q' | b'Q', b'=', weight @ ..] => Some(read(weight)),
            _ => None,
        });
        Some((name, weight.unwrap_or(WHOLE)))
    })
}

/// A weight such as `0.5`. What is none counts as the largest.
fn read(text: &[u8]) -> u16 {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    let number = number.filter(|number| (0.0..=1.0).contains(number)).unwrap_or(1.0);
    (number * f32::from(WHOLE)) as u16
}

/// Whether something is taken: by its own name, or by `*` where that is not in the lists.
pub fn takes<'v>(lists: impl Iterator<Item = &'v [u8]>, name: &str) -> bool {
    let (mut own, mut any) = (None, 0);
    for (item, weight) in items(lists) {
        if item.eq_ignore_ascii_case(name.as_bytes()) {
            own = Some(weight);
        } else if item == b"*" {
            any = weight;
        }
    }
    own.unwrap_or(any) > 0
}

/// The weight of a type of content such as `text/plain`, and the place in the lists of the item
/// that says so: the type itself, else `text/*`, else `*/*`. Nothing where none of these is there.
pub fn of_type<'v>(
    lists: impl Iterator<Item = &'v [u8]>,
    content_type: &str,
) -> Option<(u16, usize)> {
    let content_type = content_type.as_bytes();
    let end = content_type.iter().position(|byte| *byte == b'/').unwrap_or(content_type.len());
    let mut found: Option<(u8, u16, usize)> = None;
    for (place, (item, weight)) in items(lists).enumerate() {
        let precision = match item {
            _ if item.eq_ignore_ascii_case(content_type) => 2,
            [main @ .., b'/', b'*'] if main.eq_ignore_ascii_case(&content_type[..end]) => 1,
            b"*/*" => 0,
            _ => continue,
        };
        if found.is_none_or(|(best, most, _)| (precision, weight) > (best, most)) {
            found = Some((precision, weight, place));
        }
    }
    found.map(|(_, weight, place)| (weight, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists<'v>(text: &'v [&'v str]) -> impl Iterator<Item = &'v [u8]> {
        text.iter().map(|list| list.as_bytes())
    }

    #[test]
    fn what_is_taken_has_a_weight() {
        for (text, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.001", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*;q=0", false),
            ("gzip;q=1.5", true),
            ("gzipped", false),
            ("", false),
        ] {
            assert_eq!(takes(lists(&[text]), "gzip"), expected, "{text}");
        }
        assert!(takes(lists(&["br", "gzip"]), "gzip"), "lists may be in several lines");
    }

    #[test]
    fn the_most_precise_item_counts() {
        let of = |text| of_type(lists(&[text]), "text/plain");
        assert_eq!(of("text/plain;q=0.2, */*"), Some((200, 0)));
        assert_eq!(of("*/*;q=0.1, Text/*;q=0.5"), Some((500, 1)));
        assert_eq!(of("text/plain;format=flowed;q=0"), Some((0, 0)));
        assert_eq!(of("text/plain;q=0.1, text/plain;q=0.4"), Some((400, 1)));
        assert_eq!(of("application/json"), None);
    }
}
