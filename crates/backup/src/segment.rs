//! A piece of the stream as a file: an append-only file that any server of the family reads, with
//! lines between commands that say where and when.
//!
//! ```text
//! #TS:1790000000\r\n                       the second in which the commands after it arrived
//! #AT:4711:1790000000123:150\r\n           the offset before them, the millisecond, their bytes
//! <150 bytes: whole commands and transactions, as they came>
//! ```
//!
//! The bytes after each `#AT:` are a *block*. Those of all blocks together are the stream.

use std::io::{BufRead, BufReader, Read};

use crate::moment::Moment;
use crate::position::Position;

const AT: &str = "#AT:";
/// How the line begins that says in which second the next commands arrived, as Redis has it.
pub(crate) const TIMESTAMP: &str = "#TS:";
/// Longest line between blocks.
const LONGEST_LINE: u64 = 128;
/// Blocks that arrive within so many milliseconds of the first of them are one.
const BLOCK_MS: u64 = 10;
/// A block is not made longer than this.
const BLOCK_BYTES: usize = 256 * 1024;

/// A segment that is still growing.
pub(crate) struct Growing {
    pub(crate) line: u64,
    pub(crate) from: Position,
    /// The offset after its last block.
    pub(crate) to: u64,
    pub(crate) first_time: Moment,
    pub(crate) last_time: Moment,
    /// The file so far, apart from the last block.
    bytes: Vec<u8>,
    /// The block that grows: its offset, when the first of its bytes arrived, and these.
    block: Option<(u64, Moment, Vec<u8>)>,
    second: Option<u64>,
    /// Some of it changes data.
    pub(crate) has_effects: bool,
}

impl Growing {
    pub(crate) fn new(line: u64, from: Position, now: Moment) -> Growing {
        Growing {
            line,
            from,
            to: from.offset,
            first_time: now,
            last_time: now,
            bytes: Vec::new(),
            block: None,
            second: None,
            has_effects: false,
        }
    }

    /// Adds whole units that have just arrived, which follow on what is there.
    pub(crate) fn add(&mut self, units: &[u8], now: Moment) {
        // The clock may have been set back. Times of the stream never go back.
        let now = now.max(self.last_time);
        if let Some((_, begun, block)) = &self.block
            && (now.0 - begun.0 >= BLOCK_MS || block.len() + units.len() > BLOCK_BYTES)
        {
            self.end_block();
        }
        let (.., block) = self.block.get_or_insert((self.to, now, Vec::new()));
        block.extend_from_slice(units);
        self.to += units.len() as u64;
        self.last_time = now;
    }

    fn end_block(&mut self) {
        let Some((offset, _, block)) = self.block.take() else { return };
        // What a block says is the time of the last of it.
        let time = self.last_time;
        let second = time.0 / 1000;
        if self.second.replace(second) != Some(second) {
            self.bytes.extend_from_slice(format!("{TIMESTAMP}{second}\r\n").as_bytes());
        }
        let line = format!("{AT}{offset}:{}:{}\r\n", time.0, block.len());
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.extend_from_slice(&block);
    }

    /// The file as it is now.
    pub(crate) fn file(&mut self) -> &[u8] {
        self.end_block();
        &self.bytes
    }

    /// How long the file is by now, nearly.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len() + self.block.as_ref().map_or(0, |(.., block)| block.len())
    }
}

/// Whole units of the stream, which arrived together.
pub(crate) struct Block {
    /// The offset before them.
    pub(crate) offset: u64,
    pub(crate) time: Moment,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a segment front to back.
pub(crate) struct Blocks<R> {
    input: BufReader<R>,
    /// Where the next block has to begin.
    offset: u64,
    to: u64,
}

impl<R: Read> Blocks<R> {
    /// The blocks of a file that has the stream between these offsets.
    pub(crate) fn new(file: R, from: u64, to: u64) -> Blocks<R> {
        Blocks { input: BufReader::with_capacity(64 * 1024, file), offset: from, to }
    }

    /// The next block; none after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, String> {
        loop {
            let mut line = Vec::new();
            let mut limited = self.input.by_ref().take(LONGEST_LINE);
            limited.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
            if line.is_empty() {
                if self.offset != self.to {
                    return Err(format!("it ends at offset {}, not {}", self.offset, self.to));
                }
                return Ok(None);
            }
            let text = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix("\r\n"));
            let text = text.filter(|text| text.starts_with('#'));
            let text = text.ok_or_else(|| format!("no block begins after {}", self.offset))?;
            let Some(fields) = text.strip_prefix(AT) else { continue };
            let fields: Vec<u64> =
                fields.split(':').map_while(|field| field.parse().ok()).collect();
            let [offset, time, length] = fields[..] else {
                return Err(format!("'{text}' says nothing"));
            };
            if offset != self.offset || length > self.to.saturating_sub(offset) {
                return Err(format!("a block at {offset} where {} was expected", self.offset));
            }
            let mut bytes = Vec::new();
            let mut limited = self.input.by_ref().take(length);
            limited.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if bytes.len() as u64 != length {
                return Err(format!("it ends within the block at {offset}"));
            }
            self.offset += length;
            return Ok(Some(Block { offset, time: Moment(time), bytes }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replication::id::HistoryId;

    #[test]
    fn what_is_written_is_read() {
        let history = HistoryId::parse(&[b'a'; 40]).unwrap();
        let from = Position { history, offset: 100 };
        let mut growing = Growing::new(1, from, Moment(1_790_000_000_000));
        let expected: [(u64, u64, &[u8]); 4] = [
            (100, 1_790_000_000_004, b"first second"),
            (112, 1_790_000_000_999, b"third"),
            (117, 1_790_000_001_000 + 9, b"fourth"),
            // The clock was set back.
            (123, 1_790_000_001_500, b"fifth"),
        ];
        growing.add(b"first", Moment(1_790_000_000_000));
        growing.add(b" second", Moment(1_790_000_000_004));
        growing.add(b"third", Moment(1_790_000_000_999));
        growing.add(b"fourth", Moment(1_790_000_001_009));
        growing.add(b"fi", Moment(1_790_000_001_500));
        growing.add(b"fth", Moment(1_790_000_000_700));
        let file = growing.file().to_vec();
        assert_eq!(growing.to, 128);
        let text = String::from_utf8(file.clone()).unwrap();
        assert_eq!(text.matches("#TS:").count(), 2, "{text}");
        let mut blocks = Blocks::new(&file[..], 100, 128);
        for (offset, time, bytes) in expected {
            let block = blocks.next().unwrap().unwrap();
            assert_eq!((block.offset, block.time, &block.bytes[..]), (offset, Moment(time), bytes));
        }
        assert!(blocks.next().unwrap().is_none());
        for cut in 0..file.len() {
            let mut blocks = Blocks::new(&file[..cut], 100, 128);
            let end = loop {
                match blocks.next() {
                    Ok(Some(_)) => {}
                    other => break other.map(|_| ()),
                }
            };
            assert!(end.is_err(), "{cut}");
        }
    }

    /// None of the pauses within is as long as a block.
    #[test]
    fn a_stream_that_never_pauses_has_blocks_as_short_as_others() {
        let history = HistoryId::parse(&[b'a'; 40]).unwrap();
        let mut growing = Growing::new(1, Position { history, offset: 0 }, Moment(1000));
        for ms in (0..1000).step_by(5) {
            growing.add(b"unit", Moment(1000 + ms));
        }
        let (file, to) = (growing.file().to_vec(), growing.to);
        let mut blocks = Blocks::new(&file[..], 0, to);
        let mut count = 0;
        while let Some(block) = blocks.next().unwrap() {
            assert_eq!(block.bytes, b"unitunit");
            assert_eq!(block.time, Moment(1005 + 10 * count));
            count += 1;
        }
        assert_eq!(count, 100);
    }
}
