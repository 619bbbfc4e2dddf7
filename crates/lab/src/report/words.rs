//! Words and names that several parts of a report have.

use std::collections::BTreeSet;

use super::number;
use crate::results::{Contrast, Difference};

/// A name that no other file has, since different names may have the same letters and digits.
pub(super) fn free_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut free = name.to_owned();
    let mut count = 2;
    while !taken.insert(free.clone()) {
        free = format!("{name}-{count}");
        count += 1;
    }
    free
}

/// How two figures lie to each other: `0.59×`, `0.97×, tie`. Of nothing there is no multiple.
pub(super) fn contrast(contrast: Contrast) -> String {
    let ratio = contrast.ratio.map(number::ratio);
    match (contrast.difference, ratio) {
        (Difference::Tie, Some(ratio)) => format!("{ratio}, tie"),
        (Difference::Tie, None) => "tie".to_owned(),
        (_, Some(ratio)) => ratio,
        (Difference::Higher, None) => "more than 0".to_owned(),
        (Difference::Lower, None) => "less".to_owned(),
    }
}

/// A command as a shell takes it: words that need quotes have them. Between several stands `&`.
pub(crate) fn command_line(command: &[String]) -> String {
    let plain = |word: &str| {
        word == "&"
            || !word.is_empty()
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c))
    };
    let words = command.iter().map(|word| {
        if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    words.collect::<Vec<String>>().join(" ")
}
