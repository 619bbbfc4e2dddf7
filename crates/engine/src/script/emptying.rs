//! Which scripts stop the world from the start: those that may empty or exchange databases.
//!
//! Such commands need the world stopped, and a script that has written cannot wait for that. So a
//! script whose text or arguments name such a command runs with the world stopped. A script that
//! puts the name together while it runs can begin again if it has not written.

use resp::args::Arguments;

/// The commands that stop the world, and that scripts may call. They are looked for in texts,
/// before any row is at hand; a test of the table of commands compares them with the flags of the
/// rows.
const NAMES: [&[u8]; 3] = [b"flushall", b"flushdb", b"swapdb"];

/// Whether a text has one of the names in it.
pub fn is_named_in(text: &[u8]) -> bool {
    let begins = |at: usize| NAMES.iter().any(|name| begins_with(&text[at..], name));
    (0..text.len()).any(|at| matches!(text[at] | 0x20, b'f' | b's') && begins(at))
}

fn begins_with(text: &[u8], name: &[u8]) -> bool {
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Whether one of the names is among some words.
pub(crate) fn is_among(words: Arguments<'_>) -> bool {
    words.iter().any(|word| NAMES.iter().any(|name| word.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_are() {
        for text in ["flushall", "redis.call('FlushDB')", "f swapdb", "sswapdb"] {
            assert!(is_named_in(text.as_bytes()), "{text}");
        }
        for text in ["", "f", "flush all", "flushal", "redis.call('set', KEYS[1], 's')"] {
            assert!(!is_named_in(text.as_bytes()), "{text}");
        }
    }
}
