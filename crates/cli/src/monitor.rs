//! The commands of other clients, as far as they are wanted.

use base::glob;
use resp::client::Value;
use std::io;

use crate::print::complain;
use crate::session::{Failed, Session};

/// Which commands are shown.
pub(crate) struct Filter {
    /// One of them has to fit, if there is any.
    admits: Vec<Vec<u8>>,
    /// None of them may fit.
    refuses: Vec<Vec<u8>>,
}

impl Filter {
    /// Patterns as SCAN has them; those that begin with `!` name what is not shown.
    pub(crate) fn new(patterns: &[Vec<u8>]) -> Filter {
        let (mut admits, mut refuses) = (Vec::new(), Vec::new());
        for pattern in patterns {
            match pattern.strip_prefix(b"!") {
                Some(pattern) => refuses.push(pattern.to_vec()),
                None => admits.push(pattern.clone()),
            }
        }
        Filter { admits, refuses }
    }

    /// Whether a line such as `1700000000.123456 [0 127.0.0.1:5000] "get" "key"` is shown. A
    /// pattern fits if it is one of the name of the command, an argument or the client's address.
    fn shows(&self, line: &[u8]) -> bool {
        let Some((client, words)) = parts(line) else { return true };
        let fits = |pattern: &Vec<u8>| {
            glob::matches(pattern, client)
                || words.first().is_some_and(|name| glob::matches_ignoring_case(pattern, name))
                || words.iter().skip(1).any(|word| glob::matches(pattern, word))
        };
        (self.admits.is_empty() || self.admits.iter().any(fits)) && !self.refuses.iter().any(fits)
    }
}

/// The client's address and the words of the command in a line.
fn parts(line: &[u8]) -> Option<(&[u8], Vec<Vec<u8>>)> {
    let start = line.iter().position(|byte| *byte == b'[')?;
    let end = start + line[start..].windows(2).position(|pair| pair == b"] ")?;
    let client = line[start + 1..end].splitn(2, |byte| *byte == b' ').nth(1)?;
    Some((client, resp::words::split(&line[end + 2..]).ok()?))
}

/// Shows commands until Ctrl-C, or until the server ends the connection.
pub(crate) fn run(session: &mut Session, filter: &Filter) -> Result<(), Failed> {
    let begun = session.ask(&["MONITOR"])?;
    session.show(&begun, false);
    loop {
        let Some(connection) = session.connection() else { return Err(Failed) };
        match connection.receive() {
            Ok(Value::Simple(line)) if !filter.shows(&line) => {}
            Ok(Value::Error(text)) => {
                complain(&String::from_utf8_lossy(&text));
                return Err(Failed);
            }
            Ok(value) => session.show(&value, false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                crate::interrupt::take();
                // Replies would stand between further lines.
                return session.connect().map(drop);
            }
            Err(error) => return Err(session.lose(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_chosen() {
        let shows = |patterns: &[&str], line: &str| {
            let patterns: Vec<Vec<u8>> =
                patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect();
            Filter::new(&patterns).shows(line.as_bytes())
        };
        let line = r#"1700000000.123456 [0 127.0.0.1:5000] "GET" "user:1 \x00]""#;
        assert!(shows(&[], line));
        assert!(shows(&["user:*"], line) && shows(&["get"], line) && shows(&["127.0.*"], line));
        assert!(!shows(&["set"], line) && !shows(&["user"], line));
        assert!(!shows(&["!get"], line) && !shows(&["user:*", "!GET"], line));
        assert!(shows(&["nothing", "user:1*", "!set"], line));
        assert!(shows(&["x"], "OK"), "what is no line of a command is always shown");
        assert!(shows(&["unix*"], r#"1.1 [3 unix:/tmp/s] "ping""#));
        assert!(shows(&["lua"], r#"1.1 [3 lua] "get" "a""#));
    }
}
