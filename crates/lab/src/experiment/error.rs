//! What is wrong with an experiment's file, by file, line and field.

use std::fmt;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file's name.
    pub file: String,
    /// The line, from 1; 0 when the mistake is in none.
    pub line: usize,
    /// The field, with the section that it stands in; may be empty.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

impl FileError {
    /// A mistake at a byte of the text.
    pub fn at(file: &str, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        FileError {
            file: file.to_owned(),
            line,
            field: field_at(text, line),
            message: message.into(),
        }
    }

    /// A mistake that no line alone has made.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        FileError { file: file.to_owned(), line: 0, field: String::new(), message: message.into() }
    }

    /// An error of the TOML reader, in the same form.
    pub fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let mut message = error.message().trim().to_owned();
        // "unknown field `x`, expected one of `a`, `b`": the long list helps less than one good
        // guess.
        if message.starts_with("unknown field") {
            let mut words = message.split('`').skip(1).step_by(2);
            if let Some(unknown) = words.next() {
                let known: Vec<&str> = words.collect();
                message = format!(
                    "there is no field '{unknown}' here{}",
                    guess(unknown, known.iter().copied())
                );
            }
        }
        match error.span() {
            Some(span) => Self::at(file, text, span.start, message),
            None => Self::whole(file, message),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(formatter, ": {}", self.field)?;
        }
        write!(formatter, ": {}", self.message)
    }
}

impl std::error::Error for FileError {}

/// The key that a line sets, and the section that it stands in: `connections in [[load]]`.
fn field_at(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let section = lines.iter().rev().map(|line| line.trim()).find(|line| line.starts_with('['));
    let section = section.and_then(|header| header.split('#').next()).map_or("", str::trim);
    let key = lines.last().and_then(|line| line.split_once('=')).map_or("", |(key, _)| key.trim());
    match (key, section) {
        ("", "") => String::new(),
        ("", section) => section.to_owned(),
        (key, "") => key.to_owned(),
        (key, section) => format!("{key} in {section}"),
    }
}

/// The end of a sentence that names what was probably meant: `; did you mean 'keys'?`
pub fn guess<'a>(unknown: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let nearest = known.clone().map(|word| (distance(unknown, word), word)).min();
    match nearest {
        Some((distance, word)) if distance <= 1 + unknown.len() / 4 => {
            format!("; did you mean '{word}'?")
        }
        _ => {
            let known: Vec<&str> = known.collect();
            if known.is_empty() {
                String::new()
            } else {
                format!("; there are {}", known.join(", "))
            }
        }
    }
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=right.len()).collect();
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let same = usize::from(left[i - 1] != right[j - 1]);
            let mut best =
                (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            let swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if swapped {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_guessed_and_a_far_one_is_not() {
        let known = ["connections", "keys", "size"];
        assert_eq!(guess("conections", known.into_iter()), "; did you mean 'connections'?");
        assert_eq!(guess("kesy", known.into_iter()), "; did you mean 'keys'?");
        assert_eq!(guess("colour", known.into_iter()), "; there are connections, keys, size");
        assert_eq!(guess("colour", std::iter::empty()), "");
    }

    #[test]
    fn a_line_is_named_with_its_field_and_section() {
        let text = "name = \"x\"\n\n[[load]] # the only one\nconnections = 5\n";
        let error = FileError::at("a.toml", text, text.find('5').expect("it is there"), "too few");
        assert_eq!(error.to_string(), "a.toml:4: connections in [[load]]: too few");
        let error = FileError::at("a.toml", text, 0, "no");
        assert_eq!(error.to_string(), "a.toml:1: name: no");
    }
}
