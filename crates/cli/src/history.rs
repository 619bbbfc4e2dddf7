//! The history of the lines that were typed: a file in the form of redis-cli's, a line an entry.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::quote::quoted;

/// The lines that are kept, as in redis-cli.
pub(crate) const LINES_MAX: usize = 100;

/// Names the file; an empty name or `/dev/null` turns the history off.
const VARIABLE: &str = "REDISCLI_HISTFILE";
/// Its usual name, in the home directory.
const USUAL: &str = ".rediscli_history";

/// The file of the history, if there is to be one.
pub(crate) fn file() -> Option<PathBuf> {
    dotfile(VARIABLE, USUAL)
}

/// A file that a variable names, or that has its usual name in the home directory.
pub(crate) fn dotfile(variable: &str, usual: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) if path.is_empty() || path == "/dev/null" => None,
        Some(path) => Some(path.into()),
        None => {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(usual))
        }
    }
}

/// The lines of the file; none if it cannot be read.
pub(crate) fn load(path: &PathBuf) -> Vec<String> {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].iter().map(|line| (*line).to_owned()).collect()
}

/// Writes all lines, into a file that nobody else may read.
pub(crate) fn save<'l>(path: &PathBuf, lines: impl Iterator<Item = &'l String>) -> io::Result<()> {
    let mut text = String::new();
    lines.for_each(|line| text.extend([line, "\n"]));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A line as an entry: one that goes over several lines is written with its words in quotes.
pub(crate) fn entry(line: &str, words: &[Vec<u8>]) -> String {
    if !line.contains('\n') {
        return line.to_owned();
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Settings with passwords, and who uses them.
const SECRETS: [&str; 6] = [
    "masterauth",
    "masteruser",
    "primaryauth",
    "requirepass",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
];

/// Whether a command may have a password in it, so that it is not kept.
pub(crate) fn is_sensitive(words: &[Vec<u8>]) -> bool {
    let lower: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let word = |index: usize| lower.get(index).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("auth", _) => true,
        ("acl", "setuser" | "deluser") => true,
        ("config", "set") => lower[2..].iter().step_by(2).any(|name| SECRETS.contains(&&**name)),
        ("hello", _) => lower.iter().skip(2).any(|word| word == "auth"),
        ("migrate", _) => {
            let options = lower.iter().skip(6).take_while(|word| *word != "keys");
            options.into_iter().any(|word| word == "auth" || word == "auth2")
        }
        ("sentinel", "config") => {
            word(2) == "set" && lower[3..].iter().any(|word| word.starts_with("sentinel-"))
        }
        ("sentinel", "set") => {
            lower.iter().skip(3).step_by(2).any(|word| word.starts_with("auth-"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        let is_kept = |line: &str| {
            let words: Vec<Vec<u8>> =
                line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            !is_sensitive(&words)
        };
        for line in [
            "AUTH secret",
            "auth ann secret",
            "acl SETUSER ann >secret",
            "config set maxmemory 1 requirepass secret",
            "HELLO 3 SETNAME me AUTH ann secret",
            "migrate h 1 k 0 100 COPY AUTH secret",
            "migrate h 1 k 0 100 AUTH2 ann secret KEYS a",
            "sentinel set m auth-pass secret",
        ] {
            assert!(!is_kept(line), "{line}");
        }
        for line in [
            "get auth",
            "config set maxmemory 1",
            "config get requirepass",
            "hello 3",
            "acl whoami",
            "migrate h 1 k 0 100 COPY KEYS auth",
        ] {
            assert!(is_kept(line), "{line}");
        }
    }

    #[test]
    fn lines_over_several_lines_become_one() {
        let words = [b"set".to_vec(), b"k".to_vec(), b"a\nb".to_vec()];
        assert_eq!(entry("set k 'a\nb'", &words), r#""set" "k" "a\nb""#);
        assert_eq!(entry("set k 'a b'", &words), "set k 'a b'");
    }
}
