//! Reading commands from a file: an increment, a base written as commands, or the part of an old
//! append-only file after its RDB part.
//!
//! The file is a stream of commands in RESP. Lines between commands that begin with `#` are
//! annotations; `#TS:` and a number says that the next commands were written at that Unix second or
//! later. When a process or a machine stops, the file may end within a command: that is a tear, and
//! cutting it off loses nothing that was ever acknowledged. Anything else that is not a command is
//! damage. A transaction counts as a whole: a file that ends before its EXEC is good up to its
//! MULTI.

use std::fmt;
use std::io::{self, Read};

use base::limits;
use engine::journal::backlog::Position;
use engine::journal::batch::words_aside;
use resp::args::{ArgRange, Arguments};
use resp::request::{Limits, Parsed, Parser, ProtocolError};

use crate::journal::{Before, COUNTED, HISTORY, SELECTED, TIMESTAMP, UNCOUNTED, UNKNOWN};

/// Whether a file with these first bytes begins with data in the RDB format.
pub fn begins_with_rdb(first: &[u8]) -> bool {
    first.starts_with(b"REDIS") || first.starts_with(b"VALKEY")
}

/// The next item of a file.
#[derive(Debug)]
pub enum Item<'a> {
    /// A command. MULTI and EXEC are reported like any other.
    Command(Arguments<'a>),
    /// A Unix time in seconds; the next commands were written then or later.
    Timestamp(i64),
    /// Nothing comes any more.
    End(Ending),
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// After a command.
    Complete,
    /// It breaks off.
    Torn {
        /// The file is intact up to this offset, and may be cut off there.
        good: u64,
        /// What comes after it.
        tear: Tear,
    },
    /// It contains something that is not a command.
    Damaged {
        /// The file is good up to this offset.
        good: u64,
        /// Where the invalid command begins. Within a transaction that is after `good`.
        at: u64,
        /// What is wrong with it.
        damage: Damage,
    },
}

/// How a file breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// Within a command.
    Command,
    /// Within a transaction.
    Transaction,
    /// In zeros: the file system had reserved space that was never written.
    Zeros,
}

/// Why something is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A command or an annotation should begin here, and this byte does.
    Start(u8),
    /// A command without a name.
    NoArguments,
    /// An annotation does not end.
    LongAnnotation,
    /// A number or a mark within a command is wrong.
    Protocol(ProtocolError),
    /// MULTI within a transaction.
    NestedMulti,
    /// EXEC without MULTI.
    LoneExec,
    /// SELECT of a number that is no database anywhere.
    Select,
}

impl fmt::Display for Tear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Tear::Command => "the file ends within a command",
            Tear::Transaction => "the file ends within a transaction",
            Tear::Zeros => "the file ends in zeros",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Start(byte) => {
                write!(formatter, "a command begins with '*', not with '{}'", byte.escape_ascii())
            }
            Damage::NoArguments => formatter.write_str("a command without a name"),
            Damage::LongAnnotation => formatter.write_str("an annotation that does not end"),
            Damage::Protocol(error) => error.fmt(formatter),
            Damage::NestedMulti => formatter.write_str("MULTI within a transaction"),
            Damage::LoneExec => formatter.write_str("EXEC without MULTI"),
            Damage::Select => formatter.write_str("SELECT without the number of a database"),
        }
    }
}

/// The database that the arguments of SELECT name, if a server may have a database with that
/// number.
pub fn selected(arguments: Arguments<'_>) -> Option<usize> {
    let index = base::num::parse_i64(arguments.get(1)?)?;
    let index = usize::try_from(index).ok()?;
    (arguments.len() == 2 && index < limits::MAX_DATABASES).then_some(index)
}

/// Least bytes read from the file at once.
const READ_SIZE: usize = 1024 * 1024;

const LIMITS: Limits = Limits { max_bulk: u64::MAX, authenticated: true, exact_line_ends: true };

/// Reads a file from front to end. Memory is bounded by the longest command that the file really
/// contains, whatever lengths it announces.
pub struct Scanner<R> {
    input: R,
    /// Bytes that were read and not returned yet; the parser sees them from `start` on.
    buffer: Vec<u8>,
    start: usize,
    parser: Parser,
    ranges: Vec<ArgRange>,
    /// The offset in the file after the last item.
    offset: u64,
    /// Where the last item begins.
    item: u64,
    /// Where the transaction began that is open.
    transaction: Option<u64>,
    ending: Option<Ending>,
    history: Option<Position>,
    selected: Option<Option<usize>>,
    counted: bool,
    uncounted: bool,
    /// An annotation has said that the next command is one that was not applied.
    announces_unknown: bool,
    unknown: bool,
    follows_durable: bool,
}

/// [`Item`] without its arguments.
enum RawItem {
    Command,
    Timestamp(i64),
    End(Ending),
}

impl<R: Read> Scanner<R> {
    /// Begins with the first byte of `input`, which lies at `offset` in the file.
    pub fn new(input: R, offset: u64) -> Scanner<R> {
        Scanner {
            input,
            buffer: Vec::new(),
            start: 0,
            parser: Parser::new(),
            ranges: Vec::new(),
            offset,
            item: offset,
            transaction: None,
            ending: None,
            history: None,
            selected: None,
            counted: false,
            uncounted: false,
            announces_unknown: false,
            unknown: false,
            follows_durable: false,
        }
    }

    /// The position in the journal that an annotation has given to the last item.
    pub fn take_history(&mut self) -> Option<Position> {
        self.history.take()
    }

    /// The database that is selected in the journal at that position, or that none is known to be,
    /// if an annotation has said so. Files of before have no such annotation.
    pub fn take_selected(&mut self) -> Option<Option<usize>> {
        self.selected.take()
    }

    /// Whether an annotation has said that the next command, or the last one, is the file's own,
    /// and no part of the journal's stream.
    pub fn take_uncounted(&mut self) -> bool {
        std::mem::take(&mut self.uncounted)
    }

    /// Whether an annotation has said that the next command, or the last one, is a SELECT of the
    /// journal's stream.
    pub fn take_counted(&mut self) -> bool {
        std::mem::take(&mut self.counted)
    }

    /// Whether an annotation has said that the last command, or its transaction, was not applied
    /// when it came from another server, because a command of it was not known.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// The last command as it is written, with the words that stand aside.
    pub fn words(&self) -> Arguments<'_> {
        self.parser.arguments(self.view(), &self.ranges)
    }

    /// Whether an annotation has said by now that the files before this one are durable.
    pub fn follows_durable(&self) -> bool {
        self.follows_durable
    }

    /// The offset after the last item.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the last item begins.
    pub fn item_offset(&self) -> u64 {
        self.item
    }

    /// Whether a transaction is open: its EXEC is still to come.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The offset up to which the file is good: after the last command or transaction.
    pub fn good(&self) -> u64 {
        self.transaction.unwrap_or(self.offset)
    }

    /// Reads on. After the end, returns the end again.
    ///
    /// # Errors
    /// The file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "an item borrows from the scanner")]
    pub fn next(&mut self) -> io::Result<Item<'_>> {
        self.item = self.offset;
        Ok(match self.step()? {
            RawItem::Command => Item::Command(self.arguments()),
            RawItem::Timestamp(second) => Item::Timestamp(second),
            RawItem::End(ending) => {
                self.ending = Some(ending);
                Item::End(ending)
            }
        })
    }

    fn arguments(&self) -> Arguments<'_> {
        let all = self.words();
        all.skip(words_aside(|index| all.get(index)))
    }

    /// The bytes that the parser sees.
    fn view(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn step(&mut self) -> io::Result<RawItem> {
        if let Some(ending) = self.ending {
            return Ok(RawItem::End(ending));
        }
        self.ranges.clear();
        loop {
            if self.parser.is_idle() {
                match self.view().get(self.parser.position()).copied() {
                    Some(b'*') => {}
                    Some(b'#') => match self.annotation()? {
                        Some(step) => return Ok(step),
                        None => continue,
                    },
                    Some(byte) => return self.damaged(Damage::Start(byte)),
                    None if self.fill()? => continue,
                    None => return Ok(self.end_between_commands()),
                }
            }
            let view = &self.buffer[self.start..];
            match self.parser.parse(view, &LIMITS, &mut self.ranges) {
                Parsed::Command { consumed, .. } => {
                    self.offset += consumed;
                    let is_open = self.transaction.is_some();
                    self.unknown =
                        std::mem::take(&mut self.announces_unknown) || (self.unknown && is_open);
                    return Ok(self.note_transaction());
                }
                Parsed::Empty { .. } => return self.damaged(Damage::NoArguments),
                Parsed::Protocol(error) => return self.damaged(Damage::Protocol(error)),
                Parsed::Incomplete if self.fill()? => {}
                Parsed::BigArgument { .. } if self.read_big_argument()? => {}
                Parsed::Incomplete | Parsed::BigArgument { .. } => {
                    return Ok(RawItem::End(self.torn(Tear::Command)));
                }
            }
        }
    }

    fn end_between_commands(&self) -> RawItem {
        RawItem::End(match self.transaction {
            None => Ending::Complete,
            Some(_) => self.torn(Tear::Transaction),
        })
    }

    fn torn(&self, tear: Tear) -> Ending {
        Ending::Torn { good: self.good(), tear }
    }

    /// Reads more of the file; `false` at its end. Bytes that were returned are dropped.
    fn fill(&mut self) -> io::Result<bool> {
        self.start += self.parser.compact();
        self.buffer.drain(..self.start);
        self.start = 0;
        // A command longer than the buffer doubles it, so that nothing is moved too often.
        let size = READ_SIZE.max(self.buffer.len());
        self.buffer.reserve(size);
        Ok(self.input.by_ref().take(size as u64).read_to_end(&mut self.buffer)? > 0)
    }

    /// Reads the argument that the parser has announced; `false` if the file ends within it.
    fn read_big_argument(&mut self) -> io::Result<bool> {
        let Some(mut argument) = self.parser.take_big(&self.buffer[self.start..]) else {
            return Ok(false);
        };
        while argument.missing() > 0 {
            argument.make_room();
            let room = argument.bytes.capacity() - argument.bytes.len();
            let wanted = room.min(argument.missing()) as u64;
            if self.input.by_ref().take(wanted).read_to_end(&mut argument.bytes)? == 0 {
                return Ok(false);
            }
        }
        self.parser.supply_big(argument);
        Ok(true)
    }

    /// Skips the line at the present place. A time is reported; for others `None`.
    fn annotation(&mut self) -> io::Result<Option<RawItem>> {
        let length = loop {
            let line = &self.view()[self.parser.position()..];
            if let Some(end) = memchr::memchr(b'\n', line) {
                break end + 1;
            }
            if line.len() > limits::MAX_INLINE {
                return self.damaged(Damage::LongAnnotation).map(Some);
            }
            if !self.fill()? {
                return Ok(Some(RawItem::End(self.torn(Tear::Command))));
            }
        };
        self.start += self.parser.compact();
        let line = &self.buffer[self.start..self.start + length];
        let second = line.strip_prefix(TIMESTAMP).map(<[u8]>::trim_ascii_end);
        let second = second.and_then(base::num::parse_i64).map(RawItem::Timestamp);
        let selected = line.strip_prefix(SELECTED).map(<[u8]>::trim_ascii_end);
        let selected = selected.and_then(base::num::parse_i64).map(|own| usize::try_from(own).ok());
        self.selected = selected.or(self.selected.take());
        let history = line.strip_prefix(HISTORY).map(<[u8]>::trim_ascii_end);
        self.history = history.and_then(Position::parse).or(self.history.take());
        // It means the command right after it, which may have broken off.
        self.uncounted = line.trim_ascii_end() == UNCOUNTED;
        self.counted = line.trim_ascii_end() == COUNTED;
        self.announces_unknown = line.trim_ascii_end() == UNKNOWN;
        self.follows_durable |= Before::parse(line) == Some(Before::Durable);
        let step = second;
        self.start += length;
        self.offset += length as u64;
        if step.is_none() {
            self.item = self.offset;
        }
        Ok(step)
    }

    /// Keeps track of transactions after a command was read, and checks commands that decide where
    /// others act.
    fn note_transaction(&mut self) -> RawItem {
        let arguments = self.arguments();
        let name = arguments.at(0);
        if name.eq_ignore_ascii_case(b"SELECT") && selected(arguments).is_none() {
            return self.no_such(Damage::Select);
        }
        let (multi, exec) =
            (name.eq_ignore_ascii_case(b"MULTI"), name.eq_ignore_ascii_case(b"EXEC"));
        let damage = match (self.transaction, multi, exec) {
            (Some(_), true, _) => Damage::NestedMulti,
            (None, _, true) => Damage::LoneExec,
            (None, true, _) => {
                self.transaction = Some(self.item);
                return RawItem::Command;
            }
            (Some(_), _, true) => {
                self.transaction = None;
                return RawItem::Command;
            }
            _ => return RawItem::Command,
        };
        self.no_such(damage)
    }

    /// The last command should not be where it is.
    fn no_such(&mut self, damage: Damage) -> RawItem {
        self.offset = self.item;
        RawItem::End(Ending::Damaged { good: self.good(), at: self.item, damage })
    }

    /// The bytes here are not a command. They are a tear nevertheless if nothing but zeros is left.
    fn damaged(&mut self, damage: Damage) -> io::Result<RawItem> {
        Ok(RawItem::End(match self.only_zeros_are_left()? {
            true => self.torn(Tear::Zeros),
            false => Ending::Damaged { good: self.good(), at: self.offset, damage },
        }))
    }

    /// Whether the line at the present place breaks off in zeros that reach to the end of the file.
    fn only_zeros_are_left(&mut self) -> io::Result<bool> {
        let rest = &self.view()[self.parser.position()..];
        let Some(zero) = memchr::memchr(0, rest) else { return Ok(false) };
        let line_end = memchr::memchr(b'\n', &rest[..zero]);
        if line_end.is_some() || rest[zero..].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        loop {
            self.buffer.clear();
            let read = self.input.by_ref().take(READ_SIZE as u64).read_to_end(&mut self.buffer)?;
            if read == 0 || self.buffer.iter().any(|&byte| byte != 0) {
                return Ok(read == 0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
