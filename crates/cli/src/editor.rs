//! What helps to type a line: completion, hints, colours, and whether it goes on in the next line.

use crate::docs::Docs;
use crate::hints;

/// Words that this tool understands itself.
const OWN: [&str; 10] = [
    "help",
    "connect",
    "clear",
    "quit",
    "exit",
    ":help",
    ":monitor",
    ":set hints",
    ":set nohints",
    "?",
];

/// See the module's text.
pub(crate) struct LineHelper {
    pub(crate) docs: Docs,
    pub(crate) shows_hints: bool,
    pub(crate) colors: bool,
}

/// The words before the last one, and the last one with its offset. A number at the front is left
/// out.
fn split(line: &str) -> (Vec<String>, &str, usize) {
    let start = line.rfind([' ', '\t']).map_or(0, |at| at + 1);
    let mut words: Vec<String> = match resp::words::split(&line.as_bytes()[..start]) {
        Ok(words) => {
            words.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned()).collect()
        }
        Err(_) => line[..start].split_whitespace().map(str::to_owned).collect(),
    };
    if words.first().is_some_and(|word| word.parse::<i64>().is_ok()) {
        words.remove(0);
    }
    (words, &line[start..], start)
}

/// Whether a quote is open at the end.
pub(crate) fn is_open(line: &str) -> bool {
    let bytes = line.as_bytes();
    let (mut quote, mut at) = (None, 0);
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(b'"'), b'\\') => at += 1,
            (Some(b'\''), b'\\') if next == Some(&b'\'') => at += 1,
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
        at += 1;
    }
    quote.is_some()
}

impl LineHelper {
    fn candidates(&self, words: &[String], last: &str) -> Vec<String> {
        let mut found = Vec::new();
        match words.first().map(|word| word.to_ascii_lowercase()) {
            None => {
                found.extend(self.docs.0.iter().map(|doc| doc.name[0].clone()));
                found.extend(OWN.iter().map(|word| (*word).to_owned()));
            }
            Some(word) if word == "help" || word == "?" => {
                if words.len() == 1 {
                    found.extend(self.docs.groups().iter().map(|group| format!("@{group}")));
                }
                self.names_after(&words[1..], &mut found);
            }
            Some(word) if word == ":set" => {
                found.extend(["hints", "nohints"].map(str::to_owned));
            }
            Some(_) => {
                self.names_after(words, &mut found);
                if let Some((doc, length)) = self.docs.find(words) {
                    found.extend(hints::next_tokens(&doc.args, &words[length..]));
                }
            }
        }
        found.retain(|word| {
            word.get(..last.len()).is_some_and(|start| start.eq_ignore_ascii_case(last))
        });
        found.sort();
        found.dedup();
        found
    }

    /// The words that go on the names of commands which begin with these words.
    fn names_after(&self, words: &[String], found: &mut Vec<String>) {
        for doc in &self.docs.0 {
            let begins = words.iter().zip(&doc.name);
            if doc.name.len() > words.len()
                && begins.clone().all(|(word, name)| word.eq_ignore_ascii_case(name))
            {
                found.push(doc.name[words.len()].clone());
            }
        }
    }

    /// What may stand in place of the last word, and where that word begins.
    pub(crate) fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let (words, last, start) = split(line);
        // Letters stay in the case in which they are typed.
        let is_lower = last.chars().any(|letter| letter.is_ascii_lowercase())
            || (last.is_empty() && words.iter().any(|word| *word == word.to_ascii_lowercase()));
        let cased = |word: String| if is_lower { word.to_ascii_lowercase() } else { word };
        (start, self.candidates(&words, last).into_iter().map(cased).collect())
    }

    /// What is shown behind the line.
    pub(crate) fn hint(&self, line: &str) -> Option<String> {
        if !self.shows_hints || line.trim().is_empty() {
            return None;
        }
        let (mut words, last, _) = split(line);
        let ends_word = last.is_empty();
        if !ends_word {
            words.push(last.to_owned());
        }
        let (doc, length) = self.docs.find(&words)?;
        let missing = hints::missing(&doc.args, &words[length..])?;
        let space = if ends_word { "" } else { " " };
        (!missing.is_empty()).then(|| format!("{space}{missing}"))
    }

    /// The line with its colours.
    pub(crate) fn paint(&self, line: &str) -> String {
        if self.colors { colored(line, &self.docs) } else { line.to_owned() }
    }

    /// The hint with its colour.
    pub(crate) fn paint_hint(&self, hint: &str) -> String {
        if self.colors { format!("\x1b[90m{hint}\x1b[0m") } else { hint.to_owned() }
    }
}

/// A line with the name of a known command bold, strings in quotes green and numbers cyan.
fn colored(line: &str, docs: &Docs) -> String {
    let (words, last, _) = split(line);
    let all: Vec<String> = words.into_iter().chain([last.to_owned()]).collect();
    let mut name_words = docs.find(&all).map_or(0, |(_, length)| length);
    let (mut colored, mut rest) = (String::new(), line);
    while !rest.is_empty() {
        let space = rest.len() - rest.trim_start().len();
        colored.push_str(&rest[..space]);
        rest = &rest[space..];
        let length = word_length(rest);
        let word = &rest[..length];
        rest = &rest[length..];
        let is_number = !word.is_empty() && word.parse::<f64>().is_ok();
        let code = match word.chars().next() {
            Some('"' | '\'') => "32",
            _ if is_number => "36",
            Some(_) if name_words > 0 => {
                name_words -= 1;
                "1"
            }
            _ => "",
        };
        match code {
            "" => colored.push_str(word),
            code => colored.push_str(&format!("\x1b[{code}m{word}\x1b[0m")),
        }
    }
    colored
}

/// The length of the word at the front, with its quotes.
fn word_length(text: &str) -> usize {
    let mut open = false;
    for (at, letter) in text.char_indices() {
        if letter == '"' || letter == '\'' {
            open = is_open(&text[..at + 1]);
        }
        if letter.is_whitespace() && !open {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper() -> LineHelper {
        LineHelper { docs: Docs::own(), shows_hints: true, colors: true }
    }

    #[test]
    fn open_quotes() {
        for line in ["set k \"a", "set k 'it", "set k \"a\\\"", "set 'a\\'"] {
            assert!(is_open(line), "{line}");
        }
        for line in ["", "set k \"a\"", "set k 'it\\'s'", r#"set k "a'b""#, r"set k a\b"] {
            assert!(!is_open(line), "{line}");
        }
    }

    #[test]
    fn completions() {
        let helper = helper();
        let all = |line: &str| {
            let (words, last, start) = split(line);
            (start, helper.candidates(&words, last))
        };
        assert_eq!(all("hinc"), (0, vec!["HINCRBY".to_owned(), "HINCRBYFLOAT".to_owned()]));
        assert_eq!(all("config res"), (7, vec!["RESETSTAT".to_owned()]));
        assert!(all("help @hyp").1.contains(&"@hyperloglog".to_owned()));
        assert!(all("5 set k v n").1.contains(&"NX".to_owned()));
        assert_eq!(all(":set no").1, ["nohints"]);
    }

    #[test]
    fn colors_change_no_letter() {
        let line = "5 config  GET \"a b\" 'c' nothing";
        let colored = colored(line, &Docs::own());
        assert!(colored.contains("\x1b[32m\"a b\"\x1b[0m"), "{colored}");
        let mut plain = colored;
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[32m", "\x1b[36m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, line);
    }
}
