//! The format of `suite/*.t`.
//!
//! ```text
//! # a comment
//! == a sentence that says what the section shows
//! @resp2                             played in RESP2 only; also @resp3
//! @dunlin: since when                not played against the reference, which is older
//! @reference-differs: why            likewise; the expectations are ours
//! @server: --databases 4             in a server of its own, with these options
//! config set hash-max-listpack-entries 4
//! > ZADD z 1 a 2 b                   a command, in redis-cli's quoting
//! (integer) 2                        its reply, as redis-cli prints it
//! > ZSCORE z a
//! "1"
//! resp3:                             what RESP3 prints instead, where it differs
//! (double) 1
//! > [unordered,count] KEYS *         filters change a reply before it is compared
//! (integer) 1
//! 2> BLPOP l 0                       another connection; `(blocked)` waits until it is blocked
//! (blocked)
//! > TIME
//! ~ 1\) "\d+"                        a line as a regular expression
//! ...                                any number of lines
//! > [walk] SCAN 0 COUNT 1             follows the cursor to the end
//! 1) "z"
//! > [keep=id] CLIENT ID              keeps the reply for later commands
//! (kept)
//! > CLIENT KILL ID $(id)
//! (integer) 1
//! 2<                                 the next message on connection 2, or (closed)
//! 2>> "*1\r\n$4\r\nPING\r\n"         raw bytes, as they are
//! "+PONG\r\n"                        and the raw answer
//! sleep 5                            milliseconds
//! close 2                            closes connection 2
//! ```
//!
//! `(no reply)` as expectation sends the command and reads nothing. Two things need no `resp3:`
//! block: `(nil array)` is `(nil)` there, and the line `(push)` that opens a message is not there
//! in RESP2.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use regex_lite::Regex;

use crate::play::Filter;
use crate::quoting;

/// The protocol a section is played in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// What a connection speaks without HELLO.
    Resp2,
    /// After HELLO 3.
    Resp3,
}

impl Protocol {
    /// Both protocols, in the order in which they are played.
    pub const ALL: [Self; 2] = [Self::Resp2, Self::Resp3];

    /// The name that test names carry.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Resp2 => "resp2",
            Protocol::Resp3 => "resp3",
        }
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a command; `words` are its arguments.
    Command {
        /// The connection's number, 1 if none is written.
        connection: u8,
        /// What happens to the reply before it is compared.
        filters: Vec<Filter>,
        /// The command and its arguments.
        words: Vec<Vec<u8>>,
    },
    /// Reads one more reply or message.
    Receive {
        /// The connection's number.
        connection: u8,
        /// What happens to the reply before it is compared.
        filters: Vec<Filter>,
    },
    /// Sends bytes and reads bytes.
    Raw {
        /// The connection's number.
        connection: u8,
        /// What is sent; may be empty.
        bytes: Vec<u8>,
    },
    /// Changes a setting for the rest of the section.
    Config {
        /// The setting's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Waits this many milliseconds.
    Sleep(u64),
    /// Closes a connection.
    Close(u8),
}

/// The line that opens a push message, which RESP2 sends as a mere array.
const PUSH: &str = "(push)";

/// The expected lines of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The text in RESP2, and in RESP3 unless that has its own.
    pub common: Vec<String>,
    /// What is printed in RESP3.
    pub resp3: Option<Vec<String>>,
}

impl Expectation {
    /// The lines expected in `protocol`.
    #[must_use]
    pub fn lines(&self, protocol: Protocol) -> Vec<String> {
        match (protocol, &self.resp3) {
            (Protocol::Resp2, _) => self.common.iter().filter(|it| *it != PUSH).cloned().collect(),
            (Protocol::Resp3, Some(lines)) => lines.clone(),
            (Protocol::Resp3, None) => {
                self.common.iter().map(|line| line.replace("(nil array)", "(nil)")).collect()
            }
        }
    }

    /// The expectation for the output in both protocols, as short as possible.
    #[must_use]
    pub fn of_both(resp2: &[String], resp3: &[String]) -> Self {
        let candidates = [resp2, resp3].map(|lines| Self { common: lines.to_vec(), resp3: None });
        for shared in candidates {
            if shared.accepts(Protocol::Resp2, resp2) && shared.accepts(Protocol::Resp3, resp3) {
                return shared;
            }
        }
        Self { common: resp2.to_vec(), resp3: Some(resp3.to_vec()) }
    }

    /// Whether `actual` is as expected.
    #[must_use]
    pub fn accepts(&self, protocol: Protocol, actual: &[String]) -> bool {
        accepts(&self.lines(protocol), actual)
    }

    /// Whether the whole expectation is one of the marks in parentheses that tell the player
    /// what to do, such as `(blocked)`.
    #[must_use]
    pub fn is_mark(&self, mark: &str) -> bool {
        self.common.len() == 1 && self.common[0] == mark
    }
}

/// Matches lines against literal lines, `~ regex` lines and `...`.
fn accepts(expected: &[String], actual: &[String]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return actual.is_empty() };
    if first == "..." {
        return (0..=actual.len()).any(|skipped| accepts(rest, &actual[skipped..]));
    }
    let Some((line, others)) = actual.split_first() else { return false };
    let fits = match first.strip_prefix("~ ") {
        Some(pattern) => Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|it| it.is_match(line)),
        None => first == line,
    };
    fits && accepts(rest, others)
}

/// One step of a section, and its expected result.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// What should come of it.
    pub expected: Expectation,
    /// The line of the step in its file, counted from 0.
    pub line: usize,
    /// The lines of the file with the expectation, for rewriting.
    span: Range<usize>,
}

/// A sequence of steps that starts from an empty keyspace and default settings.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The sentence that names it.
    pub title: String,
    /// The one protocol that it is played in, or none for both.
    pub only: Option<Protocol>,
    /// Why the reference does not play it.
    pub not_for_reference: Option<String>,
    /// Options of a server started for this section alone.
    pub server: Vec<(String, String)>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The line of the title, counted from 0.
    pub line: usize,
}

impl Section {
    /// The protocols that it is played in.
    #[must_use]
    pub fn protocols(&self) -> Vec<Protocol> {
        match self.only {
            Some(only) => vec![only],
            None => Protocol::ALL.to_vec(),
        }
    }
}

/// One file of the suite.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The file.
    pub path: PathBuf,
    /// Its name without extension.
    pub family: String,
    /// Its sections in order.
    pub sections: Vec<Section>,
    lines: Vec<String>,
}

impl Transcript {
    /// Reads all transcripts of a directory, by name.
    ///
    /// # Errors
    /// A file cannot be read or has a mistake in it; the message says where.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>> {
        let mut paths: Vec<_> = fs::read_dir(directory)
            .with_context(|| format!("reading {}", directory.display()))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "t"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// Reads one transcript.
    ///
    /// # Errors
    /// As [`Transcript::read_all`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let family = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let lines: Vec<_> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        let sections = parse(&lines).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), family, sections, lines })
    }

    /// Writes the file back with the present expectations of the steps.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<()> {
        let mut text = String::new();
        let mut push = |lines: &[String]| {
            for line in lines {
                text.push_str(line);
                text.push('\n');
            }
        };
        let mut at = 0;
        for step in self.sections.iter().flat_map(|section| &section.steps) {
            push(&self.lines[at..step.span.start]);
            push(&step.expected.common);
            if let Some(lines) = &step.expected.resp3 {
                push(&["resp3:".to_owned()]);
                push(lines);
            }
            at = step.span.end;
        }
        push(&self.lines[at..]);
        if fs::read_to_string(&self.path).ok().as_ref() != Some(&text) {
            fs::write(&self.path, text)?;
        }
        Ok(())
    }
}

fn parse(lines: &[String]) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        let failed = || format!("line {}: {line}", at + 1);
        if line.is_empty() || is_comment(line) {
            at += 1;
            continue;
        }
        if let Some(title) = line.strip_prefix("== ") {
            if sections.iter().any(|section| section.title == title) {
                bail!("{}: the title is taken", failed());
            }
            sections.push(Section { title: title.to_owned(), line: at, ..Section::default() });
            at += 1;
            continue;
        }
        let Some(section) = sections.last_mut() else { bail!("{}: before == title", failed()) };
        if line.starts_with('@') {
            mark(section, line).with_context(failed)?;
            at += 1;
            continue;
        }
        let Some(action) = action(line).with_context(failed)? else {
            bail!("{}: neither a step nor an expectation of one", failed())
        };
        let start = at + 1;
        let mut end = start;
        while end < lines.len() && is_expectation(&lines[end]) {
            end += 1;
        }
        let expected = expectation(&lines[start..end]);
        section.steps.push(Step { action, expected, line: at, span: start..end });
        at = end;
    }
    Ok(sections)
}

fn is_comment(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

/// Whether a line after a step belongs to its expectation.
fn is_expectation(line: &str) -> bool {
    !line.is_empty()
        && !is_comment(line)
        && !line.starts_with("== ")
        && !line.starts_with('@')
        && !matches!(action(line), Ok(Some(_)) | Err(_))
}

fn expectation(lines: &[String]) -> Expectation {
    match lines.iter().position(|line| line == "resp3:") {
        Some(at) => {
            Expectation { common: lines[..at].to_vec(), resp3: Some(lines[at + 1..].to_vec()) }
        }
        None => Expectation { common: lines.to_vec(), resp3: None },
    }
}

/// Applies an `@` line to its section.
fn mark(section: &mut Section, line: &str) -> Result<()> {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    let value = value.trim();
    match name {
        "@resp2" => section.only = Some(Protocol::Resp2),
        "@resp3" => section.only = Some(Protocol::Resp3),
        "@dunlin" | "@reference-differs" => section.not_for_reference = Some(value.to_owned()),
        "@server" => {
            let words = quoting::split(value)?;
            for pair in words.chunks(2) {
                let [name, value] = pair else { bail!("an option without its value") };
                let name = String::from_utf8(name.clone())?;
                let value = String::from_utf8(value.clone())?;
                section.server.push((name.trim_start_matches("--").to_owned(), value));
            }
        }
        _ => bail!("an unknown mark"),
    }
    Ok(())
}

/// Reads a line as a step, if it is one.
fn action(line: &str) -> Result<Option<Action>> {
    let digits = line.len() - line.trim_start_matches(|byte: char| byte.is_ascii_digit()).len();
    let connection = if digits == 0 { 1 } else { line[..digits].parse::<u8>().unwrap_or(0) };
    let rest = &line[digits..];
    if connection > 0 {
        if let Some(text) = rest.strip_prefix(">>") {
            let words = quoting::split(&quoting::expand(text)?)?;
            return Ok(Some(Action::Raw { connection, bytes: words.concat() }));
        }
        if let Some(text) = rest.strip_prefix("> ") {
            let (filters, text) = filters(text)?;
            let words = quoting::split(&quoting::expand(text)?)?;
            return Ok(Some(Action::Command { connection, filters, words }));
        }
        if let Some(text) = rest.strip_prefix('<') {
            let (filters, text) = filters(text)?;
            if !text.trim().is_empty() {
                bail!("nothing is sent by `<`");
            }
            return Ok(Some(Action::Receive { connection, filters }));
        }
    }
    if let Some(setting) = line.strip_prefix("config set ") {
        let words = quoting::split(setting)?;
        let [name, value] = words.as_slice() else { bail!("config set takes a name and a value") };
        let name = String::from_utf8(name.clone())?;
        return Ok(Some(Action::Config { name, value: String::from_utf8(value.clone())? }));
    }
    if let Some(milliseconds) = line.strip_prefix("sleep ") {
        return Ok(Some(Action::Sleep(milliseconds.parse()?)));
    }
    if let Some(connection) = line.strip_prefix("close ") {
        return Ok(Some(Action::Close(connection.parse()?)));
    }
    Ok(None)
}

/// Takes `[a,b]` off the front of a command.
fn filters(text: &str) -> Result<(Vec<Filter>, &str)> {
    let text = text.trim_start();
    let Some((names, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) else {
        return Ok((Vec::new(), text));
    };
    Ok((names.split(',').map(Filter::named).collect::<Result<_>>()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn sections_steps_and_expectations_are_told_apart() {
        let text = "# c\n== one\n@resp3\nconfig set a b\n> [unordered] GET k\n1) \"x\"\n2) 1# \
                    (nil)\nresp3:\n(nil)\n\n2<\n(closed)\n2>> \"a\\r\\n\"\n== two\nclose 2";
        let sections = parse(&lines(text)).unwrap();
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].only, Some(Protocol::Resp3));
        assert_eq!(sections[0].steps.len(), 4);
        assert_eq!(sections[0].steps[1].expected.common.len(), 2);
        assert_eq!(sections[0].steps[1].expected.resp3, Some(lines("(nil)")));
        assert!(sections[0].steps[2].expected.is_mark("(closed)"));
        assert!(parse(&lines("> GET k")).is_err());
        assert!(parse(&lines("== t\nnonsense")).is_err());
    }

    #[test]
    fn patterns_match_lines_and_gaps() {
        let expected = lines("a\n...\n~ b\\d+\n");
        assert!(accepts(&expected, &lines("a\nx\ny\nb12")));
        assert!(accepts(&expected, &lines("a\nb1")));
        assert!(!accepts(&expected, &lines("a\nb1\nc")));
        assert!(!accepts(&expected, &lines("a\nxb1")));
    }
}
