//! Which known word was meant?

/// The known word that is most like a mistyped one, if one is like it at all.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_ascii_lowercase();
    // A typing error or two, fewer in short words.
    let most = (word.len() / 4).clamp(1, 3);
    let measured = known.map(|other| (distance(word.as_bytes(), other.as_bytes()), other));
    measured.filter(|(distance, _)| *distance <= most).min().map(|(_, other)| other)
}

/// How many bytes must be added, removed or changed, or neighbours exchanged, to turn one word into
/// the other.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (line, byte) in one.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, against) in other.iter().enumerate() {
            let changed = rows[line][column] + usize::from(byte != against);
            let mut least = changed.min(rows[line][column + 1] + 1).min(row[column] + 1);
            if line > 0 && column > 0 && one[line - 1] == *against && *byte == other[column - 1] {
                least = least.min(rows[line - 1][column - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognized_and_another_word_is_not() {
        let known = ["maxmemory", "maxmemory-policy", "save", "port"];
        let nearest = |word| nearest(word, known.into_iter());
        assert_eq!(nearest("maxmemroy"), Some("maxmemory"));
        assert_eq!(nearest("MaxMemoryPolicy"), Some("maxmemory-policy"));
        assert_eq!(nearest("prt"), Some("port"));
        assert_eq!(nearest("safe"), Some("save"));
        assert_eq!(nearest("prot"), Some("port"));
        assert_eq!(nearest("loadmodule"), None);
        assert_eq!(nearest(""), None);
    }
}
