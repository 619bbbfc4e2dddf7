//! What clients have done and seen, as lines of text: they are in the simulated world, and the
//! checker is not.

use std::fmt::Write as _;
use std::str::SplitWhitespace;

use anyhow::{Context, Result, bail};

use crate::history::{Action, NEVER, Operation, State, Time};

/// What a process of clients leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// When its clock began: nanoseconds of the wall clock, or of the world's time when it was
    /// read.
    pub(crate) began: Time,
    pub(crate) operations: Vec<Operation>,
    pub(crate) violations: Vec<String>,
    pub(crate) state: State,
}

fn optional(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl Record {
    /// The lines.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("began {}\n", self.began);
        for Operation { action, begin, end } in &self.operations {
            let words = match action {
                Action::Write { register, value } => format!("write {register} {value}"),
                Action::Read { register, value } => format!("read {register} {}", optional(*value)),
                Action::Mark { number, flush } => format!("mark {number} {}", u64::from(*flush)),
                Action::Push { element } => format!("push {element}"),
                Action::Pop { element } => format!("pop {element}"),
                Action::PopUnanswered { most } => format!("unanswered {most}"),
                Action::Settle { element } => format!("settle {element}"),
                Action::Assured { register, value, copies } => {
                    format!("assured {register} {value} {copies}")
                }
                Action::Swap { counter, from, to, seen } => {
                    format!("swap {counter} {} {to} {seen}", optional(*from))
                }
            };
            let _ = writeln!(
                text,
                "{words} {begin} {}",
                optional(Some(*end).filter(|it| *it != NEVER))
            );
        }
        for (register, value) in &self.state.registers {
            let _ = writeln!(text, "register {register} {value}");
        }
        for (counter, value) in &self.state.counters {
            let _ = writeln!(text, "counter {counter} {value}");
        }
        for element in &self.state.elements {
            let _ = writeln!(text, "element {element}");
        }
        for element in &self.state.pending {
            let _ = writeln!(text, "pending {element}");
        }
        let _ = writeln!(text, "sign {}", self.state.mark);
        for violation in &self.violations {
            let _ = writeln!(text, "! {}", violation.replace('\n', " "));
        }
        text.push_str("complete\n");
        text
    }

    /// Reads what [`Record::text`] has written, in a world that began at that time of the wall
    /// clock.
    pub(crate) fn read(text: &str, origin: Time) -> Result<Record> {
        let mut record = Record::default();
        let mut is_complete = false;
        for line in text.lines() {
            if let Some(violation) = line.strip_prefix("! ") {
                record.violations.push(violation.to_owned());
                continue;
            }
            is_complete = line == "complete";
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_default();
            record.take(kind, &mut words, origin).with_context(|| line.to_owned())?;
        }
        anyhow::ensure!(is_complete, "the record of the clients has no end");
        Ok(record)
    }

    fn take(&mut self, kind: &str, words: &mut SplitWhitespace<'_>, origin: Time) -> Result<()> {
        let state = &mut self.state;
        match kind {
            "began" => self.began = number(words)?.saturating_sub(origin),
            "register" => drop(state.registers.insert(index(words)?, number(words)?)),
            "counter" => drop(state.counters.insert(index(words)?, number(words)?)),
            "element" => drop(state.elements.insert(number(words)?)),
            "pending" => drop(state.pending.insert(number(words)?)),
            "sign" => state.mark = number(words)?,
            "complete" => {}
            _ => {
                let action = action(kind, words, self.began)?;
                let begin = self.began + number(words)?;
                let end = maybe(words)?.map_or(NEVER, |end| self.began + end);
                self.operations.push(Operation { action, begin, end });
            }
        }
        Ok(())
    }
}

fn action(kind: &str, words: &mut SplitWhitespace<'_>, began: Time) -> Result<Action> {
    Ok(match kind {
        "write" => Action::Write { register: index(words)?, value: number(words)? },
        "read" => Action::Read { register: index(words)?, value: maybe(words)? },
        "mark" => Action::Mark { number: number(words)?, flush: number(words)? == 1 },
        "push" => Action::Push { element: number(words)? },
        "pop" => Action::Pop { element: number(words)? },
        "unanswered" => Action::PopUnanswered { most: index(words)? },
        "settle" => Action::Settle { element: number(words)? },
        "assured" => Action::Assured {
            register: index(words)?,
            value: number(words)?,
            copies: number(words)?,
        },
        "swap" => Action::Swap {
            counter: index(words)?,
            from: maybe(words)?,
            to: number(words)?,
            seen: began + number(words)?,
        },
        _ => bail!("an unknown kind of line"),
    })
}

fn maybe(words: &mut SplitWhitespace<'_>) -> Result<Option<u64>> {
    let word = words.next().context("a word is missing")?;
    if word == "-" { Ok(None) } else { Ok(Some(word.parse()?)) }
}

fn number(words: &mut SplitWhitespace<'_>) -> Result<u64> {
    maybe(words)?.context("a number is missing")
}

fn index(words: &mut SplitWhitespace<'_>) -> Result<usize> {
    Ok(usize::try_from(number(words)?)?)
}
