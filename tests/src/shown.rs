//! Compares what a document shows with what came.
//!
//! `...` stands for anything, a line of `...` for any lines, and one long hexadecimal number is as
//! good as another.

/// What stands for anything.
const ANYTHING: &str = "...";

/// Hexadecimal digits from which on a number is one of many: an id, a tag, a position.
const LONG: usize = 11;

/// Whether the lines that came are those that the page shows. With `more`, others may follow.
#[must_use]
pub fn is_as_shown(shown: &[String], came: &str, more: bool) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| without_numbers(line.trim_end())).collect();
    let mut came: Vec<String> = came.lines().map(|line| without_numbers(line.trim_end())).collect();
    while came.last().is_some_and(String::is_empty) {
        came.pop();
    }
    lines_fit(&shown, &came, more)
}

fn lines_fit(shown: &[String], came: &[String], more: bool) -> bool {
    match shown {
        [] => more || came.is_empty(),
        [first, rest @ ..] if first == ANYTHING => {
            (0..=came.len()).any(|skipped| lines_fit(rest, &came[skipped..], more))
        }
        [first, rest @ ..] => match came {
            [one, others @ ..] => line_fits(first, one) && lines_fit(rest, others, more),
            [] => false,
        },
    }
}

/// Each part between dots is there, in their order, from the beginning to the end.
fn line_fits(shown: &str, came: &str) -> bool {
    let Some((first, rest)) = shown.split_once(ANYTHING) else { return shown == came };
    let Some(came) = came.strip_prefix(first) else { return false };
    let fits = |(at, _)| line_fits(rest, &came[at..]);
    came.char_indices().chain([(came.len(), ' ')]).any(fits)
}

/// A line with one mark in the place of each long hexadecimal number.
fn without_numbers(line: &str) -> String {
    let mut text = line.to_owned();
    for number in long_numbers(line) {
        text = text.replacen(&number, "<number>", 1);
    }
    text
}

/// The long hexadecimal numbers of a text, with the offset that follows one in a position.
fn long_numbers(text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    for word in text.split(|c: char| !matches!(c, '0'..='9' | 'a'..='f' | ':')) {
        let (number, offset) = word.split_once(':').unwrap_or((word, ""));
        let is_offset = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
        if number.len() >= LONG {
            numbers.push(if is_offset { word.to_owned() } else { number.to_owned() });
        }
    }
    numbers
}

/// What came in the place of each long number that the page shows.
#[must_use]
pub fn numbers_in_place(shown: &[String], came: &str) -> Vec<(String, String)> {
    let (shown, came) = (long_numbers(&shown.join("\n")), long_numbers(came));
    if shown.len() == came.len() { shown.into_iter().zip(came).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found() {
        let fits = |shown: &str, came: &str| {
            let shown: Vec<_> = shown.lines().map(str::to_owned).collect();
            is_as_shown(&shown, came, false)
        };
        assert!(fits("a\nb", "a\r\nb\n\n") && !fits("a\nb", "a\nc") && !fits("a", "a\nb"));
        assert!(
            fits("x ... y", "x 1 y") && !fits("x ... y", "x 1 z") && fits("took ...", "took 3 s")
        );
        assert!(fits("a\n...\nd", "a\nb\nc\nd") && !fits("a\n...\nd", "a\nb"));
        assert!(fits("\"660f03f1a5317\"", "\"770f03f1a5318\"") && !fits("660f03f1a5317", "12"));
        assert!(fits("id: 9f0b3ab4baff13:0", "id: 8f0b3ab4baff14:36"));
        assert!(is_as_shown(&["a".to_owned()], "a\nb", true));
        let numbers = numbers_in_place(&["\"9f0b3ab4baff13:0\"".to_owned()], "8f0b3ab4baff14:36");
        assert!(numbers == [("9f0b3ab4baff13:0".to_owned(), "8f0b3ab4baff14:36".to_owned())]);
    }
}
