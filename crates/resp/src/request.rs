//! Requests: from the bytes of a connection to the arguments of its commands.
//!
//! A command is an array of bulk strings (`*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n`) or a line of words.
//! Its arguments stay where they were received; the parser only notes where. It is made for
//! pipelines:
//!
//! - A command that lies completely in the buffer takes a fast path without any state.
//! - When a command has arrived in part, its parsed part is kept, so nothing is parsed twice,
//!   however small the pieces are.
//! - An argument of [`limits::BIG_ARGUMENT`] bytes or more, of which a part is still missing, is
//!   announced by [`Parsed::BigArgument`]: the caller takes it over with [`Parser::take_big`],
//!   receives the rest straight into that allocation, and gives it back with
//!   [`Parser::supply_big`].
//!
//! As Redis does, the parser takes any two bytes for a client's line ends, and looks at lengths
//! strictly. Files are read with [`Limits::exact_line_ends`].

use std::sync::Arc;

use base::limits;
use base::num::parse_i64;

use crate::args::{ArgRange, Arguments, MAX_IN_BUFFER, MAX_OFFSET};
use crate::words::{self, Word};

/// The present limits of one connection's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest argument in bytes: `proto-max-bulk-len`, or `u64::MAX` for a link to the primary.
    pub max_bulk: u64,
    /// Whether the connection has authenticated (or need not): if not, only little is accepted.
    pub authenticated: bool,
    /// Whether line ends must be exact: in a file they prove that the bytes before them were
    /// written completely.
    pub exact_line_ends: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let max_bulk = limits::DEFAULT_MAX_BULK;
        Limits { max_bulk, authenticated: true, exact_line_ends: false }
    }
}

/// The result of [`Parser::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole command; its ranges were appended to the caller's list.
    Command {
        /// The number of arguments, at least one.
        argc: usize,
        /// The bytes that it took on the wire, including those that were received into a big
        /// argument.
        consumed: u64,
        /// The previous command that this parser found had as many arguments, and the same name.
        alike: bool,
    },
    /// An empty line or an array without elements: nothing to do, nothing to answer.
    Empty {
        /// The bytes it took on the wire.
        consumed: u64,
    },
    /// The buffer ends within a command (or between two): more bytes are needed.
    Incomplete,
    /// The next argument is big and has not arrived in full: see [`Parser::take_big`].
    BigArgument {
        /// Its length in bytes.
        length: usize,
    },
    /// The connection is beyond repair: the client is told so, and it is closed.
    Protocol(ProtocolError),
}

/// Why a connection is beyond repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The line with the number of arguments does not end.
    MultibulkCountTooLong,
    /// The number of arguments is no number, or out of range.
    InvalidMultibulkLength,
    /// Too many arguments for a connection that has not authenticated.
    UnauthenticatedMultibulkLength,
    /// An argument begins with this byte instead of a dollar sign.
    ExpectedDollar(u8),
    /// The line with the length of an argument does not end.
    BulkCountTooLong,
    /// The length of an argument is no number, or out of range.
    InvalidBulkLength,
    /// Too long an argument for a connection that has not authenticated.
    UnauthenticatedBulkLength,
    /// No line end is where there should be one: see [`Limits::exact_line_ends`].
    ExpectedLineEnd,
    /// An inline command does not end.
    InlineTooLong,
    /// An inline command has a quote that is not closed.
    UnbalancedQuotes,
    /// What has come begins as a client of TLS does.
    Encrypted,
}

impl ProtocolError {
    /// The text for the client, without `-ERR ` before it and with any byte it sent as it is.
    pub fn message(self) -> Vec<u8> {
        let text = match self {
            ProtocolError::MultibulkCountTooLong => "too big mbulk count string",
            ProtocolError::InvalidMultibulkLength => "invalid multibulk length",
            ProtocolError::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            ProtocolError::ExpectedDollar(_) => "expected '$', got '",
            ProtocolError::BulkCountTooLong => "too big bulk count string",
            ProtocolError::InvalidBulkLength => "invalid bulk length",
            ProtocolError::UnauthenticatedBulkLength => "unauthenticated bulk length",
            ProtocolError::ExpectedLineEnd => "expected a line end",
            ProtocolError::InlineTooLong => "too big inline request",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
            ProtocolError::Encrypted => "the client speaks TLS, and this port does not",
        };
        let mut message = [b"Protocol error: ", text.as_bytes()].concat();
        if let ProtocolError::ExpectedDollar(byte) = self {
            message.extend_from_slice(&[byte, b'\'']);
        }
        message
    }
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.message().escape_ascii())
    }
}

impl std::error::Error for ProtocolError {}

/// Either a value to go on with, or what to tell the caller at once.
type ParseStep<T> = Result<T, Parsed>;

/// How a command begins, up to the end of its name: its neighbours mostly begin alike, and then
/// need not be parsed that far.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Its bytes, and zeros.
    bytes: u128,
    /// Which bits of that belong to it.
    mask: u128,
    length: u8,
    argc: u16,
    /// Where in it the name lies, and its length.
    name: [u8; 2],
}

impl Head {
    /// The beginning of the command at `start`, if it is no longer than can be compared at once.
    fn new(buffer: &[u8], start: usize, argc: usize, name: ArgRange) -> Option<Head> {
        let name = name.buffer_span()?;
        let length = name.end + 2 - start;
        if length > size_of::<u128>() {
            return None;
        }
        let mask = u128::MAX >> (u128::BITS as usize - 8 * length);
        let bytes = u128::from_le_bytes(*buffer.get(start..)?.first_chunk()?) & mask;
        let (at, name) = (name.start - start, name.len());
        let argc = u16::try_from(argc).ok()?;
        Some(Head { bytes, mask, length: length as u8, argc, name: [at as u8, name as u8] })
    }

    /// Whether the command at `start` begins so.
    #[inline]
    fn begins(&self, buffer: &[u8], start: usize) -> bool {
        let beginning = buffer.get(start..).and_then(|rest| rest.first_chunk());
        let same = |bytes: &[u8; 16]| u128::from_le_bytes(*bytes) & self.mask == self.bytes;
        beginning.is_some_and(same) && start + usize::from(self.length) <= MAX_OFFSET
    }

    /// The number of arguments of a command at `start` that begins so, its name, and where that
    /// ends.
    #[inline]
    fn at(&self, start: usize) -> (usize, ArgRange, usize) {
        let [name, length] = self.name.map(usize::from);
        let name = ArgRange::in_buffer(start + name, length);
        (usize::from(self.argc), name, start + usize::from(self.length))
    }
}

/// The state of one connection's input.
///
/// The caller owns the read buffer and appends to it. [`Parser::parse`] is called with all of it
/// until it returns [`Parsed::Incomplete`]. After the found commands were executed,
/// [`Parser::compact`] tells how much of the buffer's front is no longer needed.
#[derive(Debug, Default)]
pub struct Parser {
    /// All bytes of the buffer before this were parsed.
    position: usize,
    /// How the last command began, if it was parsed the short way.
    head: Option<Head>,
    /// Bytes after `position` that are known to contain no line end.
    scanned: usize,
    /// The command that has arrived in part, if `in_command`.
    in_command: bool,
    partial: Partial,
    /// Arguments that were unquoted or moved; those of finished commands first.
    side: Vec<u8>,
    finished_side: usize,
    /// Big arguments; those of finished commands first.
    big: Vec<Arc<Vec<u8>>>,
    finished_big: usize,
    /// Bytes of memory of the big arguments.
    big_memory: usize,
}

/// A command whose beginning was parsed.
#[derive(Debug, Default)]
struct Partial {
    /// The arguments so far.
    ranges: Vec<ArgRange>,
    /// How many of them, from the first on, certainly lie outside the buffer.
    detached: usize,
    /// Arguments still to come, without the one announced.
    remaining: usize,
    /// Where its part of the buffer begins.
    start: usize,
    /// Its bytes on the wire that lie before `start`, or never were in the buffer.
    elsewhere: u64,
    /// The length of the big argument that was announced and not yet supplied.
    announced: Option<usize>,
    /// Bytes of the announced argument that [`Parser::take_big`] copied from the buffer.
    copied: usize,
    /// Whether the line end after a big argument is still to come.
    expects_line_end: bool,
}

/// A big argument while it is received: the caller appends the missing bytes to `bytes`.
#[derive(Debug)]
pub struct BigArgument {
    /// The bytes that have arrived.
    pub bytes: Vec<u8>,
    length: usize,
}

impl BigArgument {
    /// How many bytes are still to be received.
    pub fn missing(&self) -> usize {
        self.length - self.bytes.len().min(self.length)
    }

    /// Makes room for the next bytes, if there is none: see [`base::bytes::make_room`].
    pub fn make_room(&mut self) {
        let missing = self.missing();
        base::bytes::make_room(&mut self.bytes, missing);
    }
}

impl Parser {
    /// A parser at the beginning of a connection.
    pub fn new() -> Self {
        Parser::default()
    }

    /// Looks for the next command in `buffer`: the whole read buffer, with the bytes that were
    /// parsed already. The ranges of a complete command are appended to `args`; otherwise `args`
    /// stays as it is.
    #[inline]
    pub fn parse(&mut self, buffer: &[u8], limits: &Limits, args: &mut Vec<ArgRange>) -> Parsed {
        if !self.in_command
            && limits.authenticated
            && let Some(parsed) = self.parse_whole(buffer, limits, args)
        {
            return parsed;
        }
        self.head = None;
        self.parse_step(buffer, limits, args).unwrap_or_else(|parsed| parsed)
    }

    /// The fast path: an array of short arguments that lies completely in the buffer. `None` for
    /// everything else, whether incomplete, unusual or wrong.
    #[inline]
    fn parse_whole(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<ArgRange>,
    ) -> Option<Parsed> {
        let start = self.position;
        let known = self.head.as_ref().filter(|head| head.begins(buffer, start));
        let (argc, name, mut at) = match known {
            Some(head) => head.at(start),
            None => {
                let (argc, at) = short_count(buffer, start, b'*').filter(|(argc, _)| *argc > 0)?;
                let (name, at) = short_argument(buffer, at, limits)?;
                (argc, name, at)
            }
        };
        let alike = known.is_some();
        let first = args.len();
        args.push(name);
        for _ in 1..argc {
            match short_argument(buffer, at, limits) {
                Some((range, next)) => {
                    args.push(range);
                    at = next;
                }
                None => {
                    args.truncate(first);
                    return None;
                }
            }
        }
        args[first].begins_plain_command();
        if !alike {
            self.head = Head::new(buffer, start, argc, name);
        }
        self.position = at;
        self.scanned = 0;
        Some(Parsed::Command { argc, consumed: (at - start) as u64, alike })
    }

    /// The long way, which can stop and continue anywhere.
    fn parse_step(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<ArgRange>,
    ) -> ParseStep<Parsed> {
        // An argument beyond that could not be recorded; the caller's own bound is far below.
        let buffer = &buffer[..buffer.len().min(MAX_OFFSET)];
        if !self.in_command {
            match buffer.get(self.position) {
                None => return Err(Parsed::Incomplete),
                Some(b'*') => self.begin_array(buffer, limits)?,
                Some(_) => return self.parse_inline(buffer, args),
            }
        }
        self.parse_arguments(buffer, limits)?;
        Ok(self.finish_array(args))
    }

    fn begin_array(&mut self, buffer: &[u8], limits: &Limits) -> ParseStep<()> {
        let start = self.position;
        let too_long = ProtocolError::MultibulkCountTooLong;
        let (count, next) = self.count_line(buffer, limits, too_long)?;
        let count = count
            .filter(|count| *count <= limits::MAX_ARGUMENTS)
            .ok_or(Parsed::Protocol(ProtocolError::InvalidMultibulkLength))?;
        if !limits.authenticated && count > limits::UNAUTHENTICATED_MAX_ARGUMENTS {
            return Err(Parsed::Protocol(ProtocolError::UnauthenticatedMultibulkLength));
        }
        self.advance(next);
        if count <= 0 {
            return Err(Parsed::Empty { consumed: (next - start) as u64 });
        }
        self.in_command = true;
        self.partial.start = start;
        self.partial.remaining = count as usize;
        Ok(())
    }

    fn parse_arguments(&mut self, buffer: &[u8], limits: &Limits) -> ParseStep<()> {
        if let Some(length) = self.partial.announced {
            return Err(Parsed::BigArgument { length });
        }
        if self.partial.expects_line_end {
            if buffer.len() < self.position + 2 {
                return Err(Parsed::Incomplete);
            }
            self.pass_line_end(buffer, self.position, limits)?;
            self.partial.expects_line_end = false;
        }
        while self.partial.remaining > 0 {
            let (start, length) = self.argument_header(buffer, limits)?;
            let end = start.saturating_add(length);
            let arrived = end.saturating_add(2) <= buffer.len();
            if length > MAX_IN_BUFFER || (!arrived && length >= limits::BIG_ARGUMENT) {
                self.advance(start);
                self.partial.remaining -= 1;
                self.partial.announced = Some(length);
                return Err(Parsed::BigArgument { length });
            }
            if !arrived {
                return Err(Parsed::Incomplete);
            }
            self.pass_line_end(buffer, end, limits)?;
            self.partial.ranges.push(ArgRange::in_buffer(start, length));
            self.partial.remaining -= 1;
        }
        Ok(())
    }

    /// Goes on after the line end of an argument, both of whose bytes have arrived.
    fn pass_line_end(&mut self, buffer: &[u8], at: usize, limits: &Limits) -> ParseStep<()> {
        if limits.exact_line_ends && buffer[at..at + 2] != *b"\r\n" {
            self.advance(at);
            return Err(Parsed::Protocol(ProtocolError::ExpectedLineEnd));
        }
        self.advance(at + 2);
        Ok(())
    }

    /// Reads `$<length>\r\n`: where the argument begins, and its length.
    fn argument_header(&mut self, buffer: &[u8], limits: &Limits) -> ParseStep<(usize, usize)> {
        let (length, start) = self.count_line(buffer, limits, ProtocolError::BulkCountTooLong)?;
        match buffer[self.position] {
            b'$' => {}
            other => return Err(Parsed::Protocol(ProtocolError::ExpectedDollar(other))),
        }
        let length = length
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length as u64 <= limits.max_bulk)
            .ok_or(Parsed::Protocol(ProtocolError::InvalidBulkLength))?;
        if !limits.authenticated && length as u64 > limits::UNAUTHENTICATED_MAX_BULK {
            return Err(Parsed::Protocol(ProtocolError::UnauthenticatedBulkLength));
        }
        Ok((start, length))
    }

    /// Reads a type byte and a number up to the line end: the number, if it is one, and where the
    /// next line begins.
    fn count_line(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        too_long: ProtocolError,
    ) -> ParseStep<(Option<i64>, usize)> {
        let line = &buffer[self.position..];
        let Some(end) = self.find_line_end(line, b'\r') else {
            let hopeless = line.len() > limits::MAX_INLINE;
            return Err(if hopeless { Parsed::Protocol(too_long) } else { Parsed::Incomplete });
        };
        // The byte after the carriage return must be there; for clients it may be any byte.
        if end + 1 == line.len() {
            return Err(Parsed::Incomplete);
        }
        if limits.exact_line_ends && line[end + 1] != b'\n' {
            return Err(Parsed::Protocol(ProtocolError::ExpectedLineEnd));
        }
        let number = line.get(1..end).and_then(parse_i64);
        Ok((number, self.position + end + 2))
    }

    /// Finds `delimiter` in the bytes after the position, and remembers how far it has looked.
    fn find_line_end(&mut self, line: &[u8], delimiter: u8) -> Option<usize> {
        let from = self.scanned.min(line.len());
        let found = memchr::memchr(delimiter, &line[from..]).map(|offset| from + offset);
        self.scanned = found.unwrap_or(line.len());
        found
    }

    fn advance(&mut self, position: usize) {
        self.position = position;
        self.scanned = 0;
    }

    fn finish_array(&mut self, args: &mut Vec<ArgRange>) -> Parsed {
        let argc = self.partial.ranges.len();
        let here = (self.position - self.partial.start) as u64;
        let consumed = self.partial.elsewhere + here;
        args.append(&mut self.partial.ranges);
        self.partial.ranges.shrink_to(limits::PARSER_KEPT_ARGUMENTS);
        self.partial.detached = 0;
        self.partial.elsewhere = 0;
        self.in_command = false;
        self.finished_side = self.side.len();
        self.finished_big = self.big.len();
        Parsed::Command { argc, consumed, alike: false }
    }

    fn parse_inline(&mut self, buffer: &[u8], args: &mut Vec<ArgRange>) -> ParseStep<Parsed> {
        let start = self.position;
        let rest = &buffer[start..];
        let Some(end) = self.find_line_end(rest, b'\n') else {
            let hopeless = rest.len() > limits::MAX_INLINE;
            let error = Parsed::Protocol(ProtocolError::InlineTooLong);
            return Err(if hopeless { error } else { Parsed::Incomplete });
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let first = args.len();
        let mut at = 0;
        loop {
            match words::next_word(line, &mut at, &mut self.side) {
                Ok(None) => break,
                Ok(Some(Word::Plain(from, to))) => {
                    args.push(ArgRange::in_buffer(start + from, to - from));
                }
                Ok(Some(Word::Unquoted(from, to))) => args.push(ArgRange::in_side(from, to - from)),
                Err(words::UnbalancedQuotes) => {
                    args.truncate(first);
                    return Err(Parsed::Protocol(ProtocolError::UnbalancedQuotes));
                }
            }
        }
        self.finished_side = self.side.len();
        self.advance(start + end + 1);
        let consumed = (end + 1) as u64;
        let argc = args.len() - first;
        Ok(if argc == 0 {
            Parsed::Empty { consumed }
        } else {
            Parsed::Command { argc, consumed, alike: false }
        })
    }

    /// Takes over the big argument that was just announced, with the part of it that has arrived.
    /// `None` if none was announced.
    ///
    /// The command's earlier arguments are moved out of the buffer, so that the buffer can be
    /// emptied while the rest is received.
    pub fn take_big(&mut self, buffer: &[u8]) -> Option<BigArgument> {
        let length = self.partial.announced?;
        self.detach(buffer);
        let arrived = &buffer[self.position..];
        let arrived = &arrived[..arrived.len().min(length)];
        let eager = length.min(limits::BIG_ARGUMENT_EAGER).max(arrived.len());
        let mut bytes = Vec::with_capacity(eager);
        bytes.extend_from_slice(arrived);
        self.partial.elsewhere += (self.position + arrived.len() - self.partial.start) as u64;
        self.partial.copied = arrived.len();
        self.advance(self.position + arrived.len());
        self.partial.start = self.position;
        Some(BigArgument { bytes, length })
    }

    /// Gives back the big argument, complete. Parsing goes on after it.
    ///
    /// # Panics
    /// If no argument was taken, or its length is not the announced one: errors of the caller,
    /// which would put the connection out of step.
    pub fn supply_big(&mut self, argument: BigArgument) {
        let announced = self.partial.announced.take();
        assert!(announced == Some(argument.bytes.len()), "big argument of another length");
        self.partial.elsewhere += (argument.bytes.len() - self.partial.copied) as u64;
        self.partial.copied = 0;
        let range = self.add_big(argument.bytes);
        self.partial.ranges.push(range);
        self.partial.expects_line_end = true;
    }

    fn add_big(&mut self, bytes: Vec<u8>) -> ArgRange {
        self.big_memory += bytes.capacity();
        self.big.push(Arc::new(bytes));
        ArgRange::in_big(self.big.len() - 1)
    }

    /// Moves the partial command's arguments from the buffer to the side. Those that were moved
    /// before are not looked at again: a command may have millions, and thousands of big ones.
    fn detach(&mut self, buffer: &[u8]) {
        for index in self.partial.detached..self.partial.ranges.len() {
            let Some(span) = self.partial.ranges[index].buffer_span() else { continue };
            let (from, length) = (self.side.len(), span.len());
            self.partial.ranges[index] = if from + length > MAX_OFFSET {
                self.add_big(buffer[span].to_vec())
            } else {
                self.side.extend_from_slice(&buffer[span]);
                ArgRange::in_side(from, length)
            };
        }
        self.partial.detached = self.partial.ranges.len();
    }

    /// The arguments at `ranges`: some that [`Parser::parse`] appended since the last
    /// [`Parser::compact`], with the buffer that it was given.
    #[inline]
    pub fn arguments<'a>(&'a self, buffer: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a> {
        Arguments::new(ranges, buffer, &self.side, &self.big)
    }

    /// Forgets all finished commands, whose ranges are invalid from now on. Returns how many bytes
    /// the caller must remove from the front of the buffer before it calls anything else here.
    pub fn compact(&mut self) -> usize {
        let done = self.done();
        self.forget(done);
        done
    }

    /// As [`Parser::compact`], for a buffer of this many bytes: it leaves the front of the buffer
    /// where it is until it is as long as the rest, so that each byte is moved once on average, and
    /// not each time that a part of a long buffer was executed.
    pub fn compact_if_worthwhile(&mut self, length: usize) -> usize {
        let done = self.done();
        let forgettable = if done >= length - done { done } else { 0 };
        self.forget(forgettable);
        forgettable
    }

    /// How many bytes at the front of the buffer are finished with.
    pub fn done(&self) -> usize {
        if self.in_command { self.partial.start } else { self.position }
    }

    /// Forgets finished commands, and this many bytes at the front of the buffer.
    fn forget(&mut self, buffer: usize) {
        let (side, big) = (self.finished_side, self.finished_big);
        // Nearly always nothing moves, and a command that arrives in many pieces may have millions
        // of arguments already.
        if self.in_command && (buffer > 0 || side > 0 || big > 0) {
            let first = if side > 0 || big > 0 { 0 } else { self.partial.detached };
            for range in &mut self.partial.ranges[first..] {
                range.rebase(buffer, side, big);
            }
        }
        self.position -= buffer;
        self.partial.start = self.partial.start.saturating_sub(buffer);
        if side > 0 {
            self.side.drain(..side);
            self.side.shrink_to(limits::BIG_ARGUMENT);
            self.finished_side = 0;
        }
        if big > 0 {
            let freed: usize = self.big.drain(..big).map(|argument| argument.capacity()).sum();
            self.big_memory -= freed;
            self.finished_big = 0;
        }
    }

    /// Whether the input ends between two commands: everything before the position was parsed.
    pub fn is_idle(&self) -> bool {
        !self.in_command
    }

    /// How much of the buffer was parsed.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes of memory of commands, beside the buffer. A big argument that was taken and not yet
    /// supplied does not count.
    pub fn memory(&self) -> usize {
        self.side.capacity()
            + self.partial.ranges.capacity() * size_of::<ArgRange>()
            + self.big_memory
    }

    /// Bytes of arguments beside the buffer, without the one that was taken and not yet supplied.
    pub fn length(&self) -> usize {
        // A big argument is allocated as long as it is.
        self.side.len() + self.big_memory
    }
}

/// Reads `<kind><count>\r\n` at `at`, a count of one to nine digits: the count, and where the next
/// line begins.
#[inline(always)]
fn short_count(buffer: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    // A whole command never ends within these five bytes: "$0\r\n" has a line end after it.
    let head: &[u8; 5] = buffer.get(at..)?.first_chunk()?;
    if head[0] != kind {
        return None;
    }
    let first = head[1].wrapping_sub(b'0');
    let second = head[2].wrapping_sub(b'0');
    if first < 10 && head[2..4] == *b"\r\n" {
        return Some((usize::from(first), at + 4));
    }
    if (1..10).contains(&first) && second < 10 && head[3..5] == *b"\r\n" {
        return Some((usize::from(first) * 10 + usize::from(second), at + 5));
    }
    longer_count(buffer, at + 1)
}

fn longer_count(buffer: &[u8], at: usize) -> Option<(usize, usize)> {
    let digits = &buffer[at..];
    // Three digits, as most that come here have.
    if let Some(
        [first @ b'1'..=b'9', second @ b'0'..=b'9', third @ b'0'..=b'9', b'\r', b'\n', ..],
    ) = digits.first_chunk::<5>()
    {
        let [first, second, third] = [first, second, third].map(|digit| usize::from(digit - b'0'));
        return Some((first * 100 + second * 10 + third, at + 5));
    }
    if digits.first() == Some(&b'0') {
        return None;
    }
    let mut count = 0;
    for (length, &byte) in digits.iter().enumerate().take(10) {
        match byte {
            b'0'..=b'9' => count = count * 10 + usize::from(byte - b'0'),
            b'\r' if length > 0 && digits.get(length + 1) == Some(&b'\n') => {
                return Some((count, at + length + 2));
            }
            _ => return None,
        }
    }
    None
}

/// Reads one whole argument at `at`: its range, and where the next one begins.
#[inline(always)]
fn short_argument(buffer: &[u8], at: usize, limits: &Limits) -> Option<(ArgRange, usize)> {
    let (length, start) = short_count(buffer, at, b'$')?;
    let end = start + length + 2;
    let line_end: &[u8; 2] = buffer.get(end - 2..end)?.first_chunk()?;
    let plain = u16::from_ne_bytes(*line_end) == u16::from_ne_bytes(*b"\r\n");
    let fits = end <= MAX_OFFSET && length <= MAX_IN_BUFFER && length as u64 <= limits.max_bulk;
    (plain && fits).then(|| (ArgRange::in_buffer(start, length), end))
}

#[cfg(test)]
mod tests;
