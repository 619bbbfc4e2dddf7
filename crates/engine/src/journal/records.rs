//! The effects in the stream's bytes: where those end that belong together, and what they are.

use std::ops::Range;
use std::sync::Arc;

use crate::journal::block::Block;

/// A part of a block.
#[derive(Clone)]
pub struct Piece {
    /// The block.
    pub block: Arc<Block>,
    /// The part of its bytes.
    pub range: Range<usize>,
}

impl Piece {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.range.clone()]
    }

    /// The journal's offset after it.
    pub fn end(&self) -> u64 {
        self.block.start() + self.range.end as u64
    }
}

/// The effects of one command or transaction.
#[derive(Clone)]
pub struct Record {
    piece: Piece,
    /// The database that is selected before them.
    selected: Option<usize>,
    /// The one that is selected behind them.
    selected_after: Option<usize>,
}

impl Record {
    /// The journal's offset after them.
    pub fn end(&self) -> u64 {
        self.piece.end()
    }

    /// Bytes of the stream that they are.
    pub fn bytes(&self) -> usize {
        self.piece.range.len()
    }

    /// The commands with their databases, in order; without SELECT, MULTI and EXEC.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let (bytes, mut at) = (self.piece.bytes(), 0);
        let mut database = self.selected.unwrap_or_default();
        std::iter::from_fn(move || {
            loop {
                let command = RawCommand::read(bytes, at)?;
                let own = &bytes[at..command.end];
                at = command.end;
                match command.role(bytes) {
                    Role::Select(number) => database = number,
                    Role::Multi | Role::Exec => {}
                    Role::Effect => return Some((database, own)),
                }
            }
        })
    }

    /// The database that is selected behind them.
    pub(super) fn selected_after(&self) -> Option<usize> {
        self.selected_after
    }
}

/// The records of a block, from one of them on.
pub(super) struct Records<'b> {
    block: &'b Arc<Block>,
    bytes: &'b [u8],
    at: usize,
    selected: Option<usize>,
}

impl<'b> Records<'b> {
    /// All of them.
    pub(super) fn of(block: &'b Arc<Block>) -> Records<'b> {
        Records::behind(block, 0, block.selected())
    }

    /// Those after this part of the block, behind which this database is selected.
    pub(super) fn behind(block: &'b Arc<Block>, at: usize, selected: Option<usize>) -> Records<'b> {
        Records { block, bytes: block.bytes(), at, selected }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let (start, before) = (self.at, self.selected);
        let (mut at, mut selected, mut together) = (start, before, false);
        loop {
            // What is left is nothing, or a SELECT alone.
            let command = RawCommand::read(self.bytes, at)?;
            at = command.end;
            match command.role(self.bytes) {
                Role::Select(number) => selected = Some(number),
                Role::Multi => together = true,
                Role::Effect if together => {}
                Role::Effect | Role::Exec => break,
            }
        }
        (self.at, self.selected) = (at, selected);
        let piece = Piece { block: Arc::clone(self.block), range: start..at };
        Some(Record { piece, selected: before, selected_after: selected })
    }
}

/// The commands in bytes of the stream, each with its bytes.
pub fn commands(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let end = RawCommand::read(bytes, at)?.end;
        Some(&bytes[std::mem::replace(&mut at, end)..end])
    })
}

/// A command in the stream's bytes.
struct RawCommand {
    end: usize,
    name: Range<usize>,
    first: Range<usize>,
}

/// The role of a command in the stream.
enum Role {
    Select(usize),
    Multi,
    Exec,
    Effect,
}

impl RawCommand {
    /// The command at a place, if there is a whole one.
    fn read(bytes: &[u8], at: usize) -> Option<RawCommand> {
        let (count, mut at) = number(bytes, at)?;
        let (mut name, mut first) = (0..0, 0..0);
        for index in 0..count {
            let (length, from) = number(bytes, at)?;
            let word = from..from.checked_add(length)?;
            at = word.end.checked_add(2).filter(|end| *end <= bytes.len())?;
            match index {
                0 => name = word,
                1 => first = word,
                _ => {}
            }
        }
        (at <= bytes.len()).then_some(RawCommand { end: at, name, first })
    }

    fn role(&self, bytes: &[u8]) -> Role {
        let name = &bytes[self.name.clone()];
        match name.len() {
            6 if name.eq_ignore_ascii_case(b"SELECT") => {
                let number = base::num::parse_i64(&bytes[self.first.clone()]);
                Role::Select(number.and_then(|own| own.try_into().ok()).unwrap_or_default())
            }
            5 if name.eq_ignore_ascii_case(b"MULTI") => Role::Multi,
            4 if name.eq_ignore_ascii_case(b"EXEC") => Role::Exec,
            _ => Role::Effect,
        }
    }
}

/// The number in the line at a place, after its mark, and where the next line begins.
#[inline]
fn number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        at += 1;
        match *bytes.get(at)? {
            digit @ b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(usize::from(digit - b'0'))?;
            }
            b'\r' => return Some((value, at + 2)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::EffectBatch;
    use crate::journal::backlog::Backlog;
    use crate::journal::tail::Tail;

    fn commands(record: &Record) -> Vec<String> {
        let text = |(database, command): (usize, &[u8])| {
            let words = String::from_utf8_lossy(command).into_owned();
            let words: Vec<_> = words.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect();
            format!("{database}: {}", words.join(" "))
        };
        record.commands().map(text).collect()
    }

    #[test]
    fn a_record_is_what_was_appended_at_once() {
        let (mut tail, backlog) = (Tail::default(), Backlog::default());
        tail.go_on_from(1000, None);
        let batches: [&[(usize, &[&str])]; 4] = [
            &[(3, &["SET", "k", "v"])],
            &[(3, &["DEL", "a"])],
            &[(3, &["DEL", "a"]), (4, &["INCR", "b"]), (0, &["DEL", "multi"])],
            &[(0, &["SET", "select", ""])],
        ];
        let ends = batches.map(|commands| {
            let mut batch = EffectBatch::default();
            for (database, words) in commands {
                batch.push(*database, words.iter().map(|word| word.as_bytes()));
            }
            tail.append(&batch, &backlog)
        });
        // What other servers send.
        let foreign = "*2\r\n$6\r\nselect\r\n$1\r\n7\r\n*1\r\n$4\r\nping\r\n";
        let last = tail.append_raw(foreign.as_bytes(), Some(7), &backlog);
        let select = b"*2\r\n$6\r\nSELECT\r\n$1\r\n8\r\n";
        tail.append_raw(select, Some(8), &backlog);
        let (block, _) = tail.present().unwrap();
        let records: Vec<_> = Records::of(block).collect();
        let found: Vec<_> = records.iter().map(Record::end).collect();
        assert_eq!(found, [&ends[..], &[last]].concat());
        let texts: Vec<_> = records.iter().map(|record| commands(record).join("; ")).collect();
        let expected = [
            "3: SET k v",
            "3: DEL a",
            "3: DEL a; 4: INCR b; 0: DEL multi",
            "0: SET select ",
            "7: ping",
        ];
        assert_eq!(texts, expected);
        for (index, record) in records.iter().enumerate() {
            let at = (record.end() - block.start()) as usize;
            let rest = Records::behind(block, at, record.selected_after());
            let rest: Vec<_> = rest.map(|record| commands(&record).join("; ")).collect();
            assert_eq!(rest, expected[index + 1..]);
        }
    }

    #[test]
    fn bytes_that_are_no_commands_are_no_records() {
        for wrong in [
            "",
            "*",
            "*1",
            "*0\r",
            "*1\r\n",
            "*1\r\n$4\r\nPIN",
            "*9\r\n$4\r\nPING\r\n",
            "xy\r\n",
            "*1\r\n$99999999999999999999\r\n",
            "*1\r\n$18446744073709551615\r\nx\r\n",
        ] {
            let (mut tail, backlog) = (Tail::default(), Backlog::default());
            tail.append_raw(wrong.as_bytes(), None, &backlog);
            let (block, _) = tail.present().unwrap();
            assert_eq!(Records::of(block).count(), 0, "{wrong}");
        }
    }
}
