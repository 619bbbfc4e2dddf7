//! Effects that belong together, in the bytes of the journal's stream.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use resp::args::Arguments;
use resp::client::{encode_command, write_header};

pub use resp::aside::{ASIDE, words_aside};

/// Where bytes of the stream are written to.
pub trait Sink {
    /// Writes bytes behind those before.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What stands before effects that belong together.
pub(super) const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";

/// What stands behind them.
pub(super) const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// No SELECT of the stream is longer.
const SELECT_MAX: usize = b"*2\r\n$6\r\nSELECT\r\n$20\r\n\r\n".len() + 20;

/// Where a command of a batch ends, and the database that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    database: usize,
    end: usize,
}

/// A big argument of a client, which the batch refers to: a copy would cost as much as storing it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shared {
    /// Where it stands in the batch's own bytes: within a command, before the end of a line.
    at: usize,
    argument: Arc<Vec<u8>>,
}

/// Effects that belong together, in the order in which they happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectBatch {
    /// Commands in RESP, without what is shared.
    bytes: Vec<u8>,
    shared: Vec<Shared>,
    parts: Vec<Part>,
}

/// Bytes of space that a cleared batch keeps.
const BYTES_KEPT: usize = 64 * 1024;

impl EffectBatch {
    /// Bytes that [`EffectBatch::write_to`] writes at most, whatever is selected.
    #[inline]
    pub(super) fn most_in_stream(&self) -> usize {
        match self.parts.len() {
            0 => 0,
            1 => self.bytes_of_commands() + SELECT_MAX,
            _ => self.most_together(),
        }
    }

    fn bytes_of_commands(&self) -> usize {
        self.bytes.len() + self.shared.iter().map(|own| own.argument.len()).sum::<usize>()
    }

    fn most_together(&self) -> usize {
        let changes = self.parts.windows(2).filter(|pair| pair[0].database != pair[1].database);
        let selects = (1 + changes.count()) * SELECT_MAX;
        self.bytes_of_commands() + MULTI.len() + EXEC.len() + selects
    }

    /// The database of the first command.
    #[inline]
    pub fn first_database(&self) -> Option<usize> {
        self.parts.first().map(|part| part.database)
    }

    /// Commands in it.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Commands that go into the stream, without SELECT: several are wrapped in MULTI and EXEC.
    #[inline]
    pub(crate) fn len_in_stream(&self) -> usize {
        self.len() + if self.len() > 1 { 2 } else { 0 }
    }

    /// Whether nothing happened.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a command.
    pub fn push<'c>(&mut self, database: usize, argv: impl Iterator<Item = &'c [u8]> + Clone) {
        encode_command(argv, &mut self.bytes);
        self.parts.push(Part { database, end: self.bytes.len() });
    }

    /// Adds a command as it was received. Big arguments are shared.
    #[inline]
    pub(crate) fn push_request(&mut self, database: usize, argv: Arguments<'_>) {
        match argv.as_received() {
            Some(bytes) => self.bytes.extend_from_slice(bytes),
            None => self.encode_request(argv),
        }
        self.parts.push(Part { database, end: self.bytes.len() });
    }

    fn encode_request(&mut self, argv: Arguments<'_>) {
        write_header(&mut self.bytes, b'*', argv.len() as u64);
        for (index, argument) in argv.iter().enumerate() {
            write_header(&mut self.bytes, b'$', argument.len() as u64);
            match argv.shared(index) {
                Some(shared) => {
                    let (at, argument) = (self.bytes.len(), Arc::clone(shared));
                    self.shared.push(Shared { at, argument });
                }
                None => self.bytes.extend_from_slice(argument),
            }
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Takes away all commands but the first `count`.
    pub(crate) fn split_off(&mut self, count: usize) -> EffectBatch {
        let start = self.start_of(count);
        let bytes = self.bytes.split_off(start);
        let mut shared = self.shared.split_off(self.shared_before(start));
        shared.iter_mut().for_each(|own| own.at -= start);
        let mut parts = self.parts.split_off(count);
        parts.iter_mut().for_each(|part| part.end -= start);
        EffectBatch { bytes, shared, parts }
    }

    /// Adds the commands of another batch.
    pub(crate) fn extend(&mut self, other: &EffectBatch) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let shared = other.shared.iter().cloned();
        self.shared.extend(shared.map(|own| Shared { at: start + own.at, ..own }));
        self.parts.extend(other.parts.iter().map(|part| Part { end: start + part.end, ..*part }));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT);
        self.shared.clear();
        self.parts.clear();
    }

    /// How many of the shared arguments stand before a place in the own bytes.
    fn shared_before(&self, place: usize) -> usize {
        self.shared.partition_point(|own| own.at < place)
    }

    /// The commands with their databases, in order.
    pub fn commands(&self) -> impl Iterator<Item = (usize, Cow<'_, [u8]>)> {
        self.parts.iter().enumerate().map(|(index, part)| {
            let range = self.start_of(index)..part.end;
            let is_whole = self.shared_before(range.start) == self.shared_before(range.end);
            let command = match is_whole {
                true => Cow::Borrowed(&self.bytes[range]),
                false => {
                    let mut command = Vec::new();
                    self.write_commands(&mut command, range);
                    Cow::Owned(command)
                }
            };
            (part.database, command)
        })
    }

    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.parts[before].end)
    }

    /// Writes the batch in the form of the stream: several commands within MULTI and EXEC, so that
    /// they replay as one, and SELECT when the database differs from `selected`, that of the
    /// command before, which this updates.
    #[inline]
    pub fn write_to(&self, out: &mut impl Sink, selected: &mut Option<usize>) {
        let Some(first) = self.parts.first() else { return };
        select(out, selected, first.database);
        match self.parts.len() {
            1 if self.shared.is_empty() => out.put(&self.bytes),
            1 => self.write_commands(out, 0..self.bytes.len()),
            _ => self.write_together(out, selected),
        }
    }

    fn write_together(&self, out: &mut impl Sink, selected: &mut Option<usize>) {
        out.put(MULTI);
        for (index, part) in self.parts.iter().enumerate() {
            select(out, selected, part.database);
            self.write_commands(out, self.start_of(index)..part.end);
        }
        out.put(EXEC);
    }

    /// Writes the commands in a range of the own bytes, with what they share.
    fn write_commands(&self, out: &mut impl Sink, range: Range<usize>) {
        let mut from = range.start;
        let shared = self.shared_before(range.start)..self.shared_before(range.end);
        for own in &self.shared[shared] {
            out.put(&self.bytes[from..own.at]);
            out.put(&own.argument);
            from = own.at;
        }
        out.put(&self.bytes[from..range.end]);
    }
}

#[inline]
fn select(out: &mut impl Sink, selected: &mut Option<usize>, database: usize) {
    if *selected != Some(database) {
        *selected = Some(database);
        out.put(&select_command(database));
    }
}

/// SELECT, in RESP.
#[cold]
pub fn select_command(database: usize) -> Vec<u8> {
    let (number, mut out) = (database.to_string(), Vec::new());
    encode_command([b"SELECT", number.as_bytes()].into_iter(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use resp::args::ArgRange;

    use super::*;

    fn command(words: &[&'static str]) -> impl Iterator<Item = &'static [u8]> + Clone {
        words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn one_command_stands_alone_and_several_are_a_transaction() {
        let mut batch = EffectBatch::default();
        let (mut out, mut selected) = (Vec::new(), None);
        batch.write_to(&mut out, &mut selected);
        assert_eq!((out.as_slice(), selected), (&b""[..], None));
        batch.push(0, command(&["DEL", "k"]));
        batch.write_to(&mut out, &mut selected);
        assert_eq!(out, b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
        out.clear();
        batch.push(12, command(&["DEL", "k"]));
        batch.write_to(&mut out, &mut selected);
        assert_eq!(
            out,
            b"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n\
              *2\r\n$3\r\nDEL\r\n$1\r\nk\r\n*1\r\n$4\r\nEXEC\r\n"
        );
        assert_eq!(selected, Some(12));
    }

    /// A request whose last argument is a big one.
    fn push_big(batch: &mut EffectBatch, database: usize, big: &Arc<Vec<u8>>) {
        let big = [Arc::clone(big)];
        let ranges = [ArgRange::in_side(0, 3), ArgRange::in_side(3, 1), ArgRange::in_big(0)];
        batch.push_request(database, Arguments::new(&ranges, &[], b"SETk", &big));
    }

    #[test]
    fn big_arguments_are_shared_and_nobody_sees_that() {
        let (big, mut shares, mut copies) =
            (Arc::new(vec![b'x'; 70_000]), EffectBatch::default(), EffectBatch::default());
        for database in [0, 0, 3, 3, 0] {
            push_big(&mut shares, database, &big);
            copies.push(database, [&b"SET"[..], b"k", &big].into_iter());
            for batch in [&mut shares, &mut copies] {
                batch.push(1, command(&["DEL", "k"]));
            }
        }
        assert!(shares.bytes.len() < 1000 && Arc::strong_count(&big) == 6);
        let stream = |batch: &EffectBatch| {
            let (mut out, mut selected) = (Vec::new(), Some(0));
            batch.write_to(&mut out, &mut selected);
            assert!(out.len() <= batch.most_in_stream());
            (out, selected)
        };
        for count in 0..=shares.len() {
            let (mut first, mut same) = (shares.clone(), copies.clone());
            let (second, second_copy) = (first.split_off(count), same.split_off(count));
            assert_eq!((stream(&first), stream(&second)), (stream(&same), stream(&second_copy)));
            first.extend(&second);
            assert_eq!(first, shares);
        }
        shares.clear();
        assert_eq!((&shares, Arc::strong_count(&big)), (&EffectBatch::default(), 1));
    }

    #[test]
    fn no_batch_is_longer_in_the_stream_than_was_said() {
        for count in 0..4 {
            let mut batch = EffectBatch::default();
            (0..count).for_each(|_| batch.push(usize::MAX, command(&["A"])));
            for part in batch.parts.iter_mut().skip(1).step_by(2) {
                part.database -= 1;
            }
            let (mut out, mut selected) = (Vec::new(), None);
            batch.write_to(&mut out, &mut selected);
            assert_eq!(out.is_empty(), count == 0);
            assert!(out.len() <= batch.most_in_stream(), "{count}");
        }
    }

    #[test]
    fn what_was_split_off_is_joined_again() {
        let mut whole = EffectBatch::default();
        for (database, word) in [(0, "A"), (1, "BB"), (2, "CCC")] {
            whole.push(database, command(&[word]));
        }
        for count in 0..=3 {
            let mut first = whole.clone();
            let second = first.split_off(count);
            assert_eq!((first.len(), second.len()), (count, 3 - count));
            first.extend(&second);
            assert_eq!(first, whole);
        }
    }
}
