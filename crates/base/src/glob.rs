//! Glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET understand them.
//!
//! `*` any bytes, `?` one byte, `[abc]`, `[a-z]` and `[^a]` one byte of a class, `\` takes the next
//! byte as it is. Patterns and texts are bytes, not characters. A class that is never closed ends
//! with the pattern, and a range may run in either direction.
//!
//! Instead of recursion the matcher remembers the last `*` only: the part before it has matched,
//! and trying an earlier `*` with a longer text could only leave less text for the rest. So the
//! time is at most the product of the two lengths, for every pattern. Redis bounds its recursion: a
//! pattern whose stars go deeper matches nothing. This matcher does the same.

use crate::limits::MAX_PATTERN_STARS;

/// Whether the whole of `text` matches `pattern`.
///
/// An empty text is matched by the empty pattern alone, not even by `*`, as in Redis: the commands
/// that take every key for `*` test for that pattern themselves.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, Case::Sensitive)
}

/// [`matches()`], but ASCII letters of either case are equal (except after `\` inside a class,
/// where Redis compares exactly).
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, Case::Ignored)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Sensitive,
    Ignored,
}

impl Case {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Case::Sensitive => byte,
            Case::Ignored => byte.to_ascii_lowercase(),
        }
    }
}

fn run(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at_pattern, mut at_text) = (0, 0);
    // After a `*`: where the pattern goes on, and the text position from which it was last tried.
    let mut star: Option<(usize, usize)> = None;
    let mut stars = 0;
    loop {
        let rest = &pattern[at_pattern..];
        if at_text == text.len() {
            // Restarting from the star would leave even less text for what remains.
            return rest.iter().all(|&byte| byte == b'*');
        }
        if rest.first() == Some(&b'*') {
            at_pattern += rest.iter().take_while(|&&byte| byte == b'*').count();
            if at_pattern == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > MAX_PATTERN_STARS {
                return false;
            }
            star = Some((at_pattern, at_text));
            continue;
        }
        if let Some(length) = match_one(rest, text[at_text], case) {
            at_pattern += length;
            at_text += 1;
            continue;
        }
        match star {
            Some((after_star, tried)) => {
                at_pattern = after_star;
                at_text = tried + 1;
                star = Some((after_star, at_text));
                if at_text == text.len() {
                    return false;
                }
            }
            None => return false,
        }
    }
}

/// Matches the first element of `pattern` (no star) with `byte`; the element's length if it does.
fn match_one(pattern: &[u8], byte: u8, case: Case) -> Option<usize> {
    let (matched, length) = match pattern {
        [] => (false, 0),
        [b'?', ..] => (true, 1),
        [b'[', class @ ..] => {
            let (matched, length) = match_class(class, byte, case);
            (matched, 1 + length)
        }
        [b'\\', literal, ..] => (case.fold(*literal) == case.fold(byte), 2),
        [literal, ..] => (case.fold(*literal) == case.fold(byte), 1),
    };
    matched.then_some(length)
}

/// Matches a class, given the text after its `[`: the verdict, and the length including the `]`.
fn match_class(class: &[u8], byte: u8, case: Case) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &class[at..] {
            [] => break,
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [from, b'-', to, ..] => {
                let (low, high) = (case.fold(*from.min(to)), case.fold(*from.max(to)));
                found |= (low..=high).contains(&case.fold(byte));
                at += 3;
            }
            [literal, ..] => {
                found |= case.fold(*literal) == case.fold(byte);
                at += 1;
            }
        }
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_go_as_deep_as_in_the_reference() {
        let text = "a".repeat(1500);
        assert!(matches("a*".repeat(1001).as_bytes(), text.as_bytes()));
        assert!(!matches("a*".repeat(1002).as_bytes(), text.as_bytes()));
        assert!(matches(format!("{}a", "*".repeat(1100)).as_bytes(), text.as_bytes()));
    }

    /// Pattern, text and the answer of a reference server's KEYS (`**` where KEYS treats `*`
    /// specially).
    const CASES: &[(&str, &str, bool)] = &[
        ("**", "", false),
        ("", "", true),
        ("", "a", false),
        ("a*", "a", true),
        ("a**", "a", true),
        ("*a*b*c", "xxaxbxc", true),
        ("h?llo", "hello", true),
        ("?", "\u{e9}", false),
        ("?", "", false),
        ("?*", "", false),
        ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("[a", "a", true),
        ("[a", "b", false),
        ("[", "a", false),
        ("[", "[", false),
        ("[^", "a", true),
        ("[^a", "b", true),
        ("[^a", "a", false),
        ("[a-", "a", true),
        ("[a-", "-", true),
        ("[a-c", "b", true),
        ("[c-a]", "b", true),
        ("[\\]]", "]", true),
        ("[\\]", "\\", false),
        ("[]", "a", false),
        ("[]a]", "a", false),
        ("[^]", "a", true),
        ("[^]a]", "b", false),
        ("\\", "\\", true),
        ("a\\", "a\\", true),
        ("\\*", "*", true),
        ("\\a", "a", true),
        ("\\\\", "\\", true),
        ("*\\", "x\\", true),
        ("[a-]", "-", false),
        ("[a-]", "]", true),
        ("[a-]]", "]", true),
        ("[a-]b", "b", true),
        ("[\\a-z]", "b", false),
        ("[a-\\z]", "b", false),
        ("[a-\\z]", "z", true),
        ("[!a]", "b", false),
        ("[!a]", "!", true),
        ("a[", "a", false),
        ("a[", "ab", false),
        ("*[a", "ba", true),
        ("[[]", "[", true),
        ("[-a]", "-", true),
        ("[\\", "\\", true),
        ("[a\\", "a", true),
        ("[a\\", "\\", true),
        ("[^\\", "\\", false),
        ("[a-\\", "b", false),
        ("[--0]", ".", true),
    ];

    #[test]
    fn the_reference_agrees() {
        for (pattern, text, expected) in CASES {
            let matched = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(matched, *expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn case_is_ignored_on_request() {
        // As COMMAND LIST FILTERBY PATTERN answers for the command `get`.
        let cases = [
            ("[G]ET", true),
            ("[g]ET", true),
            ("[F-H]ET", true),
            ("[f-H]ET", false),
            ("[H-f]ET", false),
            ("[\\G]ET", false),
            ("[\\g]ET", true),
            ("\\G\\E\\T", true),
            ("[^G]ET", false),
            ("[Z-a]et", false),
            ("[@-Z]et", true),
            ("[@-g]et", true),
        ];
        for (pattern, expected) in cases {
            assert_eq!(matches_ignoring_case(pattern.as_bytes(), b"get"), expected, "{pattern}");
        }
        assert!(!matches(b"GET", b"get"));
    }

    #[test]
    fn many_stars_stay_polynomial() {
        // A backtracking matcher would not end within the age of the universe.
        let pattern = b"a*".repeat(60);
        let mut text = b"a".repeat(5000);
        text.push(b'b');
        assert!(matches(&pattern, &text));
        let mut pattern = pattern;
        pattern.push(b'c');
        assert!(!matches(&pattern, &text));
    }

    /// The definition itself, by recursion.
    fn model(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), None) => model(&pattern[1..], text),
            (Some(b'*'), Some(_)) => model(&pattern[1..], text) || model(pattern, &text[1..]),
            (_, None) | (None, _) => false,
            (Some(_), Some(&byte)) => match_one(pattern, byte, Case::Sensitive)
                .is_some_and(|length| model(&pattern[length..], &text[1..])),
        }
    }

    proptest! {
        #[test]
        fn equals_the_recursive_definition(
            pattern in "[ab*?\\[\\]^\\-\\\\]{0,8}",
            text in "[ab\\-\\]]{1,8}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), model(pattern, text));
        }
    }
}
