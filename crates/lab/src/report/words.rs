//! Words and names that several parts of a report have.

use std::collections::BTreeSet;

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
