//! The contents of a file of commands.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::verdict::{DATABASES, Verdict, beyond};
use crate::aof::reader::{Ending, Item, Scanner, selected};

/// Names of commands that are counted one by one; a damaged file may contain any number of them.
const NAMES_MAX: usize = 1000;

/// A report shows this many of the most frequent command names.
const NAMES_SHOWN: usize = 12;

/// See the module's text.
pub(super) struct Contents {
    commands: u64,
    transactions: u64,
    by_name: BTreeMap<Vec<u8>, u64>,
    /// The first command that the server does not know, and where it is.
    unknown: Option<(Vec<u8>, u64)>,
    /// How many a load leaves out, since a replica that wrote them has not applied them.
    left_out: u64,
    /// The first database that a server does not have by default, and where it is used.
    beyond: Option<(usize, u64)>,
    /// The first time and the last one.
    times: Option<(i64, i64)>,
    /// The first time that is later than was asked for, and the offset before it. Nothing is read
    /// beyond that.
    pub(super) later: Option<(i64, u64)>,
    pub(super) ending: Ending,
}

impl Contents {
    /// Reads to the end of `input`, which begins at `offset` in the file, or to the first time
    /// later than `until`.
    pub(super) fn read(input: impl Read, offset: u64, until: Option<i64>) -> io::Result<Contents> {
        let mut contents = Contents {
            commands: 0,
            transactions: 0,
            by_name: BTreeMap::new(),
            unknown: None,
            left_out: 0,
            beyond: None,
            times: None,
            later: None,
            ending: Ending::Complete,
        };
        let mut scanner = Scanner::new(input, offset);
        loop {
            // An annotation within a transaction: going back leads to before it.
            let before = scanner.good();
            match scanner.next()? {
                Item::Command(arguments) => {
                    let name = arguments.at(0).to_ascii_uppercase();
                    let database = selected(arguments).filter(|_| name == b"SELECT");
                    let at = scanner.item_offset();
                    if let Some(index) = database.filter(|index| *index >= DATABASES) {
                        contents.beyond.get_or_insert((index, at));
                    }
                    contents.count(name, at, scanner.is_unknown());
                }
                Item::Timestamp(second) => {
                    if until.is_some_and(|until| second > until) {
                        contents.later = Some((second, before));
                        return Ok(contents);
                    }
                    let first = contents.times.map_or(second, |(first, _)| first);
                    contents.times = Some((first, second));
                }
                Item::End(ending) => {
                    contents.ending = ending;
                    return Ok(contents);
                }
            }
        }
    }

    fn count(&mut self, name: Vec<u8>, at: u64, is_left_out: bool) {
        self.commands += 1;
        self.transactions += u64::from(name == b"EXEC");
        self.left_out += u64::from(is_left_out);
        if !is_left_out && self.unknown.is_none() && commands::registry().find(&name).is_none() {
            self.unknown = Some((name.clone(), at));
        }
        if let Some(count) = self.by_name.get_mut(&name) {
            *count += 1;
        } else if self.by_name.len() < NAMES_MAX {
            self.by_name.insert(name, 1);
        }
    }

    /// The verdict, apart from damage, on everything before `end`.
    pub(super) fn verdict(&self, end: u64) -> Verdict {
        let unknown = self.unknown.as_ref().map(|(_, at)| *at);
        let beyond = self.beyond.map(|(_, at)| at);
        match [unknown, beyond].into_iter().flatten().any(|at| at < end) {
            true => Verdict::Unsupported,
            false => Verdict::Good,
        }
    }

    /// Whether it is said when something happened.
    pub(super) fn has_times(&self) -> bool {
        self.times.is_some() || self.later.is_some()
    }

    /// The report.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.push(format!("{} commands, {} transactions", self.commands, self.transactions));
        let mut names: Vec<_> = self.by_name.iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown = names.iter().take(NAMES_SHOWN);
        let shown: Vec<_> =
            shown.map(|(name, count)| format!("{} {count}", name.escape_ascii())).collect();
        if !shown.is_empty() {
            let more = if names.len() > NAMES_SHOWN { ", and others" } else { "" };
            lines.push(format!("{}{more}", shown.join(", ")));
        }
        if let Some((first, last)) = self.times {
            lines.push(format!("times from {first} to {last}"));
        }
        if self.left_out > 0 {
            let count = self.left_out;
            lines.push(format!(
                "{count} commands of a primary that a load leaves out: a replica did not know them"
            ));
        }
        if let Some((name, at)) = &self.unknown {
            let name = name.escape_ascii();
            lines.push(format!("UNKNOWN command {name} at offset {at}"));
        }
        if let Some((index, at)) = self.beyond {
            lines.push(format!("offset {at}: {}", beyond(index)));
        }
        lines
    }
}
