//! The stream of writes: where its commands end, and which of them belong together.
//!
//! Each byte of the stream counts for the offset. A replica counts whole commands only, and a
//! transaction, from MULTI to EXEC, as one: a link that breaks in the middle goes on before it. A
//! [`Unit`] is what counts as one. It has the bytes as they came, so that they can be handed on.
//!
//! A primary sends commands as arrays of bulk strings in their shortest form, and nothing else.
//! Between two of them a line end says that it is alive, and does not count.

use std::ops::Range;

use base::limits::{MAX_ARGUMENTS, REPLICATED_ARGUMENT, REPLICATED_UNIT};
use memchr::memchr;
use resp::args::{ArgRange, Arguments};
use resp::aside::words_aside;

use crate::error::LinkError;

/// Longest line with a number: a sign, 19 digits and the line end.
const LONGEST_LINE: usize = 23;

/// Bytes of space that are kept between units.
const SPACE_KEPT: usize = 1024 * 1024;

/// What the next byte of the buffer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A command, or a line end between two.
    Command,
    /// The length of an argument.
    Length,
    /// An argument of this many bytes, and its line end.
    Argument(usize),
}

/// Where a command lies.
#[derive(Clone, Debug)]
struct Span {
    /// In the buffer.
    bytes: Range<usize>,
    /// Its arguments among all.
    arguments: Range<usize>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Stream {
    buffer: Vec<u8>,
    /// The units that were returned last.
    units: Vec<Place>,
    /// The unit that is being received begins here.
    begin: usize,
    /// Its first command.
    first: usize,
    /// All before this was looked at.
    at: usize,
    next: Next,
    /// Arguments that the command still has to get.
    missing: usize,
    /// The commands of all these units, the last of which may be incomplete.
    commands: Vec<Span>,
    ranges: Vec<ArgRange>,
    /// A transaction is open.
    together: bool,
    /// What follows the units is no stream of commands.
    error: Option<LinkError>,
    /// The offset after the last unit that was returned.
    offset: u64,
}

/// Where a unit lies.
#[derive(Clone, Debug)]
struct Place {
    /// Its commands among all.
    commands: Range<usize>,
    /// The offset after it.
    end: u64,
}

/// Units that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Units<'s> {
    places: &'s [Place],
    buffer: &'s [u8],
    commands: &'s [Span],
    ranges: &'s [ArgRange],
}

impl<'s> Units<'s> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The one with this number.
    pub fn at(&self, index: usize) -> Unit<'s> {
        let Place { commands, end } = &self.places[index];
        let commands = &self.commands[commands.clone()];
        Unit { buffer: self.buffer, commands, ranges: self.ranges, end: *end }
    }

    /// The bytes of their stream that are in memory.
    pub fn around(&self) -> &'s [u8] {
        self.buffer
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Unit<'s>> + use<'s> {
        let all = *self;
        (0..all.len()).map(move |index| all.at(index))
    }
}

/// What counts as one: a command, or a transaction from MULTI to EXEC.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'s> {
    buffer: &'s [u8],
    commands: &'s [Span],
    ranges: &'s [ArgRange],
    /// The offset after it.
    pub end: u64,
}

impl<'s> Unit<'s> {
    /// Its bytes, as they came.
    pub fn bytes(&self) -> &'s [u8] {
        &self.buffer[self.place()]
    }

    /// Where it lies in the bytes of its stream that are in memory.
    pub fn place(&self) -> Range<usize> {
        let begin = self.commands.first().map_or(0, |first| first.bytes.start);
        begin..self.commands.last().map_or(0, |last| last.bytes.end)
    }

    /// The offset before it.
    pub fn begin(&self) -> u64 {
        self.end - self.bytes().len() as u64
    }

    /// Its commands: one, or those of a transaction with MULTI and EXEC.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = Arguments<'s>> + use<'s> {
        let unit = *self;
        self.commands.iter().map(move |span| unit.command(span))
    }

    /// The first of them.
    #[inline]
    pub fn first(&self) -> Arguments<'s> {
        self.command(&self.commands[0])
    }

    #[inline]
    fn command(&self, span: &Span) -> Arguments<'s> {
        let bytes = &self.buffer[span.bytes.clone()];
        let argv = Arguments::new(&self.ranges[span.arguments.clone()], bytes, &[], &[]);
        argv.skip(words_aside(|index| argv.get(index)))
    }

    /// The bytes of its stream that are in memory.
    pub fn around(&self) -> &'s [u8] {
        self.buffer
    }

    /// Whether it is this command alone.
    pub fn is(&self, name: &str) -> bool {
        let mut commands = self.commands();
        let first = commands.next().and_then(|argv| argv.get(0));
        commands.len() == 0 && first.is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()))
    }
}

impl Stream {
    /// The stream after this offset.
    pub fn new(offset: u64) -> Stream {
        Stream {
            buffer: Vec::new(),
            units: Vec::new(),
            begin: 0,
            first: 0,
            at: 0,
            next: Next::Command,
            missing: 0,
            commands: Vec::new(),
            ranges: Vec::new(),
            together: false,
            error: None,
            offset,
        }
    }

    /// The offset after the last unit that was returned.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that have arrived, and are not in any unit yet.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.begin
    }

    /// The bytes that are in memory. They stay where they are until others arrive.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.forget_returned();
        if self.begin > 0 {
            self.compact();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Finds the next units, as far as they have arrived: `most` at most, and none if nothing has
    /// arrived as a whole.
    ///
    /// # Errors
    /// What has arrived is not a stream of commands. All units before it were returned.
    pub fn next_units(&mut self, most: usize) -> Result<Units<'_>, LinkError> {
        self.forget_returned();
        while self.error.is_none() && self.units.len() < most {
            match self.find_unit() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => self.error = Some(error),
            }
        }
        match self.error.clone().filter(|_| self.units.is_empty()) {
            Some(error) => Err(error),
            None => Ok(Units {
                places: &self.units,
                buffer: &self.buffer,
                commands: &self.commands,
                ranges: &self.ranges,
            }),
        }
    }

    /// Finds the end of the unit that is being received. Returns whether it has arrived.
    fn find_unit(&mut self) -> Result<bool, LinkError> {
        while self.scan()? {
            if self.ends_unit()? {
                self.offset += (self.at - self.begin) as u64;
                let commands = self.first..self.commands.len();
                self.first = commands.end;
                self.units.push(Place { commands, end: self.offset });
                self.begin = self.at;
                return Ok(true);
            }
        }
        if self.buffer.len() - self.begin > REPLICATED_UNIT {
            return Err(LinkError::Malformed(format!(
                "a command or a transaction of more than {REPLICATED_UNIT} bytes"
            )));
        }
        Ok(false)
    }

    fn forget_returned(&mut self) {
        self.units.clear();
        let commands = std::mem::take(&mut self.first);
        if commands == 0 {
            return;
        }
        let arguments = self.commands[commands - 1].arguments.end;
        self.commands.drain(..commands);
        self.ranges.drain(..arguments);
        for command in &mut self.commands {
            let Range { start, end } = command.arguments.clone();
            command.arguments = start - arguments..end - arguments;
        }
    }

    /// Moves what is left to the front of the buffer.
    fn compact(&mut self) {
        let removed = std::mem::take(&mut self.begin);
        self.buffer.drain(..removed);
        if self.buffer.is_empty() {
            self.buffer.shrink_to(SPACE_KEPT);
        }
        self.at -= removed;
        for command in &mut self.commands {
            command.bytes = command.bytes.start - removed..command.bytes.end - removed;
        }
    }

    /// Looks at more bytes. Returns whether a command has ended.
    fn scan(&mut self) -> Result<bool, LinkError> {
        loop {
            match self.next {
                Next::Command => {
                    if !self.begin_command()? {
                        return Ok(false);
                    }
                }
                Next::Length => {
                    let Some(length) = self.number(b'$', REPLICATED_ARGUMENT as u64)? else {
                        return Ok(false);
                    };
                    self.next = Next::Argument(length);
                }
                Next::Argument(length) => {
                    let end = self.at + length;
                    let Some(line_end) = self.buffer.get(end..end + 2) else { return Ok(false) };
                    if line_end != b"\r\n" {
                        return Err(LinkError::malformed("an argument ends with", line_end));
                    }
                    if self.end_argument(length)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Reads how many arguments the next command has. Returns whether that has arrived.
    fn begin_command(&mut self) -> Result<bool, LinkError> {
        if self.commands.len() == self.first {
            // Line ends between units: the primary is alive.
            let rest = &self.buffer[self.at..];
            self.at += rest.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            self.begin = self.at;
        }
        let begin = self.at;
        let Some(count) = self.number(b'*', MAX_ARGUMENTS.unsigned_abs())? else {
            return Ok(false);
        };
        if count == 0 {
            return Err(LinkError::Malformed("a command without a name".into()));
        }
        let arguments = self.ranges.len()..self.ranges.len();
        self.commands.push(Span { bytes: begin..self.at, arguments });
        (self.missing, self.next) = (count, Next::Length);
        Ok(true)
    }

    /// An argument has arrived that begins here. Returns whether its command has ended.
    fn end_argument(&mut self, length: usize) -> Result<bool, LinkError> {
        let command = self.commands.last_mut().expect("it has begun");
        let start = self.at - command.bytes.start;
        if start + length + 2 > REPLICATED_UNIT {
            return Err(LinkError::Malformed(format!(
                "a command of more than {REPLICATED_UNIT} bytes"
            )));
        }
        self.ranges.push(ArgRange::in_buffer(start, length));
        self.at += length + 2;
        self.missing -= 1;
        command.bytes.end = self.at;
        command.arguments.end = self.ranges.len();
        if self.missing > 0 {
            self.next = Next::Length;
            return Ok(false);
        }
        self.ranges[command.arguments.start].begins_plain_command();
        self.next = Next::Command;
        Ok(true)
    }

    /// Reads a line with this mark and a number of at most `most` in its shortest form.
    fn number(&mut self, mark: u8, most: u64) -> Result<Option<usize>, LinkError> {
        let rest = &self.buffer[self.at..];
        let line = &rest[..rest.len().min(LONGEST_LINE)];
        if line.first().is_some_and(|first| *first != mark) {
            let what = format!("'{}' was expected, and came", char::from(mark));
            return Err(LinkError::malformed(&what, &rest[..rest.len().min(64)]));
        }
        let Some(end) = memchr(b'\n', line) else {
            if line.len() == LONGEST_LINE {
                return Err(LinkError::malformed("a number that does not end", line));
            }
            return Ok(None);
        };
        let digits = line[1..end].strip_suffix(b"\r");
        let number = digits.and_then(|digits| {
            let is_shortest = digits == b"0" || digits.first().is_some_and(|own| *own != b'0');
            let is_number = is_shortest && digits.iter().all(u8::is_ascii_digit);
            if is_number { base::num::parse_i64(digits) } else { None }
        });
        let number = number.and_then(|number| u64::try_from(number).ok());
        match number.filter(|number| *number <= most) {
            Some(number) => {
                self.at += end + 1;
                Ok(Some(number as usize))
            }
            None => Err(LinkError::malformed("no length of a stream is", &line[..end])),
        }
    }

    /// A command has ended. Returns whether its unit has, too.
    fn ends_unit(&mut self) -> Result<bool, LinkError> {
        let command = self.commands.last().expect("it has ended");
        let bytes = &self.buffer[command.bytes.clone()];
        let argv = Arguments::new(&self.ranges[command.arguments.clone()], bytes, &[], &[]);
        let is = |name: &[u8]| argv.at(0).eq_ignore_ascii_case(name);
        match (self.together, is(b"multi"), is(b"exec")) {
            (true, true, _) => Err(LinkError::Malformed("MULTI within a transaction".into())),
            (false, _, true) => Err(LinkError::Malformed("EXEC without MULTI".into())),
            (_, begins, ends) => {
                self.together = (self.together || begins) && !ends;
                Ok(!self.together)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(commands: &[&[&str]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            resp::client::encode_command(command.iter(), &mut bytes);
        }
        bytes
    }

    /// The units that arrive in these pieces: words, bytes and end of each.
    fn receive(pieces: &[&[u8]]) -> Result<Vec<(String, Vec<u8>, u64)>, LinkError> {
        let mut stream = Stream::new(1000);
        let mut units = Vec::new();
        for piece in pieces {
            stream.push(piece);
            loop {
                let found = stream.next_units(2)?;
                if found.is_empty() {
                    break;
                }
                for unit in found.iter() {
                    let words = unit.commands().map(|argv| {
                        assert!(argv.as_received().is_some());
                        let words = argv.iter().map(String::from_utf8_lossy);
                        words.collect::<Vec<_>>().join(" ")
                    });
                    let words = words.collect::<Vec<_>>().join("; ");
                    assert_eq!(unit.end - unit.begin(), unit.bytes().len() as u64);
                    units.push((words, unit.bytes().to_vec(), unit.end));
                }
            }
        }
        Ok(units)
    }

    const COMMANDS: &[&[&str]] = &[
        &["SELECT", "0"],
        &["set", "key", ""],
        &["MULTI"],
        &["SELECT", "3"],
        &["set", "other", "a\r\nb*1\r\n"],
        &["EXEC"],
        &["REPLCONF", "GETACK", "*"],
    ];

    #[test]
    fn a_stream_may_be_split_anywhere() {
        let bytes = encoded(COMMANDS);
        let whole = receive(&[&bytes]).unwrap();
        let words: Vec<&str> = whole.iter().map(|(words, ..)| words.as_str()).collect();
        let together = "MULTI; SELECT 3; set other a\r\nb*1\r\n; EXEC";
        assert_eq!(words, ["SELECT 0", "set key ", together, "REPLCONF GETACK *"]);
        let all: Vec<u8> = whole.iter().flat_map(|(_, bytes, _)| bytes.clone()).collect();
        assert_eq!(all, bytes);
        assert_eq!(whole.last().unwrap().2, 1000 + bytes.len() as u64);
        for one in 0..=bytes.len() {
            for other in one..=bytes.len() {
                let pieces = [&bytes[..one], &bytes[one..other], &bytes[other..]];
                assert_eq!(receive(&pieces).unwrap(), whole, "{one} {other}");
            }
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(receive(&each).unwrap(), whole);
    }

    #[test]
    fn a_sign_of_life_does_not_count() {
        let mut bytes = b"\n".to_vec();
        bytes.extend(encoded(&[&["PING"]]));
        bytes.extend(b"\n\r\n");
        bytes.extend(encoded(&[&["PING"]]));
        let units = receive(&[&bytes]).unwrap();
        assert_eq!(units.iter().map(|unit| unit.2).collect::<Vec<_>>(), [1014, 1028]);
        let mut stream = Stream::new(0);
        stream.push(&bytes);
        let unit = stream.next_units(1).unwrap().at(0);
        assert!(unit.is("ping") && !unit.is("pong"));
    }

    #[test]
    fn what_comes_before_an_error_counts() {
        let mut bytes = encoded(COMMANDS);
        bytes.extend(b"nonsense");
        let mut stream = Stream::new(0);
        stream.push(&bytes);
        assert_eq!(stream.next_units(100).unwrap().len(), 4);
        for _ in 0..2 {
            assert!(stream.next_units(100).is_err());
        }
    }

    #[test]
    fn what_is_no_stream_is_an_error() {
        let nested = encoded(&[&["MULTI"], &["multi"]]);
        let lone = encoded(&[&["exec"]]);
        for (bytes, text) in [
            (&b"PING\r\n"[..], "'*' was expected, and came: \"PING\\r\\n\""),
            (b"*0\r\n", "a command without a name"),
            (b"*-1\r\n", "no length of a stream is: \"*-1\\r\""),
            (b"*01\r\n", "no length of a stream is: \"*01\\r\""),
            (b"*1\n", "no length of a stream is: \"*1\""),
            (b"*2147483648\r\n", "no length of a stream is: \"*2147483648\\r\""),
            (b"*1\r\n$-1\r\n", "no length of a stream is: \"$-1\\r\""),
            (b"*1\r\n$99999999999\r\n", "no length of a stream is: \"$99999999999\\r\""),
            (b"*1\r\n:1\r\n", "'$' was expected, and came: \":1\\r\\n\""),
            (b"*1\r\n$1\r\nabc", "an argument ends with: \"bc\""),
            (
                b"*11111111111111111111111111",
                "a number that does not end: \"*1111111111111111111111\"",
            ),
            (b"+OK\r\n", "'*' was expected, and came: \"+OK\\r\\n\""),
            (&nested, "MULTI within a transaction"),
            (&lone, "EXEC without MULTI"),
        ] {
            assert_eq!(receive(&[bytes]).unwrap_err().to_string(), text);
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            assert!(receive(&each).is_err());
        }
    }

    #[test]
    fn a_huge_length_takes_no_memory() {
        let mut stream = Stream::new(0);
        stream.push(b"*2147483647\r\n$536870912\r\nabc");
        assert!(stream.next_units(9).unwrap().is_empty());
        assert!(stream.buffer.capacity() < 1000 && stream.ranges.capacity() < 1000);
        assert_eq!(stream.waiting(), 28);
    }
}
