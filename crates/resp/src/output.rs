//! Output that waits to be sent on a connection.
//!
//! Replies are mostly small, so they are collected in one buffer, in order. A large string is not
//! copied into it: a reference to it is recorded with its offset in the buffer, and a vectored
//! write sends both interleaved: `buffer[..a], string, buffer[a..]` and so on.

use std::borrow::Cow;
use std::collections::{VecDeque, vec_deque};
use std::io::IoSlice;
use std::sync::Arc;

use base::limits;
use smallvec::SmallVec;

/// A string that is sent from where it lies.
#[derive(Clone, Debug)]
struct Shared {
    /// It goes before this offset of the buffer.
    at: usize,
    bytes: Arc<Vec<u8>>,
}

/// Bytes waiting to be sent, in order. A copy shares the large strings.
#[derive(Clone, Debug)]
pub struct Output {
    /// The small replies, and the bytes around the shared strings.
    pub(crate) buffer: Vec<u8>,
    /// How much of the buffer was sent.
    sent: usize,
    shared: VecDeque<Shared>,
    /// How much of the first shared string was sent.
    shared_sent: usize,
    /// Bytes of the shared strings that wait.
    shared_len: usize,
    /// Bytes sent since the beginning.
    total_sent: u64,
    /// Bytes that may wait: see [`Output::set_limit`].
    limit: usize,
    /// Where the bytes that are lost would begin: see [`Output::is_over_limit`].
    lost_from: Option<Mark>,
    /// Everything is copied into the buffer: see [`Output::never_share`].
    copies: bool,
}

impl Default for Output {
    fn default() -> Self {
        Output {
            buffer: Vec::new(),
            sent: 0,
            shared: VecDeque::new(),
            shared_sent: 0,
            shared_len: 0,
            total_sent: 0,
            limit: usize::MAX,
            lost_from: None,
            copies: false,
        }
    }
}

/// The waiting bytes of an [`Output`], slice after slice. Each string that is sent from where it
/// lies is a slice of its own.
#[derive(Clone, Debug, Default)]
pub struct Slices<'o> {
    buffer: &'o [u8],
    /// How much of the buffer was visited.
    at: usize,
    shared: vec_deque::Iter<'o, Shared>,
    /// How much of the next shared string was sent.
    skip: usize,
    /// A shared string that comes next.
    apart: Option<&'o [u8]>,
}

impl<'o> Iterator for Slices<'o> {
    type Item = &'o [u8];

    #[inline]
    fn next(&mut self) -> Option<&'o [u8]> {
        loop {
            if let Some(apart) = self.apart.take().filter(|apart| !apart.is_empty()) {
                return Some(apart);
            }
            let until = match self.shared.next() {
                Some(shared) => {
                    self.apart = shared.bytes.get(std::mem::take(&mut self.skip)..);
                    shared.at
                }
                None => self.buffer.len(),
            };
            let from = std::mem::replace(&mut self.at, until);
            if from < until {
                return Some(&self.buffer[from..until]);
            }
            self.apart?;
        }
    }
}

/// A place in an [`Output`], from where a reply can be taken back or given its length afterwards.
/// Valid until bytes before it are taken back, or bytes were sent ([`Output::advance`]).
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    at: usize,
    shared: usize,
    shared_len: usize,
    /// Whether bytes were lost before this place.
    behind_loss: bool,
}

impl Output {
    /// Nothing to send yet.
    pub fn new() -> Self {
        Output::default()
    }

    /// Bytes waiting to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.sent + self.shared_len
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position of the end in the stream of all bytes ever written: those sent and those that wait.
    #[inline]
    pub fn end(&self) -> u64 {
        self.total_sent + self.len() as u64
    }

    /// Bytes of memory that this keeps alive; shared strings count in full.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
            + self.shared.capacity() * size_of::<Shared>()
            + self.shared_len
            + self.shared_sent
    }

    /// Copies large strings too, so that all waiting bytes lie in one piece: [`Output::unsent`].
    pub fn never_share(&mut self) {
        self.copies = true;
    }

    /// Whether large strings are copied.
    #[inline]
    pub(crate) fn copies(&self) -> bool {
        self.copies
    }

    /// All waiting bytes, of an output that shares nothing.
    pub fn unsent(&self) -> &[u8] {
        debug_assert!(self.copies, "strings are elsewhere");
        &self.buffer[self.sent..]
    }

    /// Forgets all waiting bytes, and keeps some of the space.
    pub fn forget_all(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(limits::READ_BUFFER);
        self.sent = 0;
        self.lost_from = None;
    }

    /// Chooses how many bytes may wait at most.
    #[inline]
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// How many bytes may wait at most.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether more bytes wait than may, or would wait if the buffer had taken everything that was
    /// written.
    ///
    /// A single reply can exceed any memory, so the buffer looks at the limit whenever it has to
    /// grow, and drops everything that is written from then on. Such an output must not be sent:
    /// its connection must be closed. When a reply is taken back, so is its loss.
    #[inline]
    pub fn is_over_limit(&self) -> bool {
        self.len() > self.limit || self.lost_from.is_some()
    }

    /// Makes room for this many more bytes in the buffer. Returns false if they would be lost.
    #[inline]
    pub(crate) fn make_room(&mut self, more: usize) -> bool {
        self.buffer.capacity() - self.buffer.len() >= more || self.grow(more)
    }

    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        self.lose_what_exceeds(more);
        if self.lost_from.is_none() {
            self.buffer.reserve(more);
        }
        self.lost_from.is_none()
    }

    /// Drops everything that is written from here on, if the limit does not allow `more` bytes,
    /// together with everything written since that was first the case.
    pub fn lose_what_exceeds(&mut self, more: usize) {
        if self.lost_from.is_none() && self.len().saturating_add(more) > self.limit {
            self.lost_from = Some(self.mark());
        }
        if let Some(lost_from) = self.lost_from {
            self.truncate(lost_from);
        }
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        if self.make_room(bytes.len()) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Appends bytes by reference, or by copy when they are few.
    pub fn push_shared(&mut self, bytes: &Arc<Vec<u8>>) {
        if bytes.len() < limits::SHARED_REPLY || self.copies {
            return self.push(bytes);
        }
        if self.len().saturating_add(bytes.len()) > self.limit || self.lost_from.is_some() {
            return self.lose_what_exceeds(bytes.len());
        }
        self.shared_len += bytes.len();
        self.shared.push_back(Shared { at: self.buffer.len(), bytes: Arc::clone(bytes) });
    }

    /// Appends all waiting bytes of another output. Large strings are not copied.
    pub fn append(&mut self, other: &Output) {
        let mut at = other.sent;
        let mut skip = other.shared_sent;
        for shared in &other.shared {
            self.push(&other.buffer[at..shared.at]);
            at = shared.at;
            match std::mem::take(&mut skip) {
                0 => self.push_shared(&shared.bytes),
                sent => self.push(&shared.bytes[sent..]),
            }
        }
        self.push(&other.buffer[at..]);
    }

    /// The present end, to come back to.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            at: self.buffer.len(),
            shared: self.shared.len(),
            shared_len: self.shared_len,
            behind_loss: self.lost_from.is_some(),
        }
    }

    /// The bytes written since `mark`, apart from strings that are sent from where they lie.
    pub fn since(&self, mark: Mark) -> &[u8] {
        &self.buffer[mark.at..]
    }

    /// How many bytes were written since `mark`, strings that are sent from where they lie
    /// included.
    #[inline]
    pub fn len_since(&self, mark: Mark) -> usize {
        (self.buffer.len() + self.shared_len).saturating_sub(mark.at + mark.shared_len)
    }

    /// Takes back all that was written since `mark`.
    pub fn rollback(&mut self, mark: Mark) {
        if mark.behind_loss {
            return self.lose_what_exceeds(0);
        }
        self.lost_from = None;
        self.truncate(mark);
    }

    fn truncate(&mut self, mark: Mark) {
        self.buffer.truncate(mark.at);
        self.shared.truncate(mark.shared);
        self.shared_len = mark.shared_len;
    }

    /// Whether what was written from this position of the stream of all bytes on begins with this
    /// byte. Nothing of it was sent.
    pub fn begins_at(&self, position: u64, byte: u8) -> bool {
        let (at, first) = self.place_of(position);
        let is_apart = self.shared.get(first).is_some_and(|shared| shared.at == at);
        !is_apart && self.buffer.get(at) == Some(&byte)
    }

    /// Where in the buffer the bytes from this position on begin, none of which was sent, and which
    /// shared string is the first of them.
    fn place_of(&self, position: u64) -> (usize, usize) {
        let count = self.end().saturating_sub(position) as usize;
        let (mut first, mut apart) = (self.shared.len(), 0);
        while let Some(last) = first.checked_sub(1).and_then(|last| self.shared.get(last)) {
            let with_it = apart + last.bytes.len();
            if self.buffer.len() - last.at + with_it > count {
                break;
            }
            (first, apart) = (first - 1, with_it);
        }
        (self.buffer.len().saturating_sub(count - apart), first)
    }

    /// Takes away what was written from this position of the stream of all bytes on, of which
    /// nothing was sent. Strings that are sent from where they lie stay where they are.
    #[must_use]
    pub fn split_off(&mut self, position: u64) -> Output {
        let (at, first) = self.place_of(position);
        let mut shared = self.shared.split_off(first);
        shared.iter_mut().for_each(|own| own.at -= at);
        let shared_len = shared.iter().map(|own| own.bytes.len()).sum();
        self.shared_len -= shared_len;
        let buffer = self.buffer[at..].to_vec();
        self.buffer.truncate(at);
        Output { buffer, shared, shared_len, copies: self.copies, ..Output::new() }
    }

    /// Inserts bytes at `mark`, before everything written since.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        if self.lost_from.is_some() || !self.make_room(bytes.len()) {
            return;
        }
        let end = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if mark.at < end {
            self.buffer.copy_within(mark.at..end, mark.at + bytes.len());
            self.buffer[mark.at..mark.at + bytes.len()].copy_from_slice(bytes);
        }
        for shared in self.shared.range_mut(mark.shared..) {
            shared.at += bytes.len();
        }
    }

    /// The waiting bytes in order, as slices that are not empty.
    pub fn slices(&self) -> Slices<'_> {
        Slices {
            buffer: &self.buffer,
            at: self.sent,
            shared: self.shared.iter(),
            skip: self.shared_sent,
            apart: None,
        }
    }

    /// The first `limit` waiting bytes for a vectored write, at most [`limits::WRITE_SLICES`]
    /// slices.
    pub fn io_slices(&self, limit: usize) -> SmallVec<[IoSlice<'_>; 8]> {
        let mut left = limit;
        self.slices()
            .take(limits::WRITE_SLICES)
            .map_while(|slice| {
                let part = &slice[..slice.len().min(left)];
                left -= part.len();
                (!part.is_empty()).then(|| IoSlice::new(part))
            })
            .collect()
    }

    /// The first waiting bytes that lie together, for a plain write. Empty if nothing waits.
    #[inline]
    pub fn first_slice(&self) -> &[u8] {
        if self.shared.is_empty() {
            return &self.buffer[self.sent..];
        }
        self.slices().next().unwrap_or(&[])
    }

    /// The first waiting string that is sent from where it lies.
    pub fn first_shared(&self) -> Option<&Arc<Vec<u8>>> {
        self.shared.front().map(|shared| &shared.bytes)
    }

    /// Forgets all waiting bytes, as if they had been sent.
    #[inline]
    pub fn clear(&mut self) {
        self.advance(usize::MAX);
        self.lost_from = None;
    }

    /// All waiting bytes as one slice: where they lie if they lie together, else a copy.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let first = self.first_slice();
        if first.len() == self.len() { Cow::Borrowed(first) } else { Cow::Owned(self.to_vec()) }
    }

    /// All waiting bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().collect::<Vec<_>>().concat()
    }

    /// Forgets the first `count` waiting bytes: they were sent. A larger count means all.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        let all = self.buffer.len() - self.sent;
        if count < all || !self.shared.is_empty() || self.buffer.capacity() > limits::OUTPUT_KEPT {
            return self.advance_in_part(count);
        }
        self.total_sent += all as u64;
        self.buffer.clear();
        self.sent = 0;
    }

    fn advance_in_part(&mut self, count: usize) {
        let mut left = count.min(self.len());
        self.total_sent += left as u64;
        while left > 0 {
            let until = self.shared.front().map_or(self.buffer.len(), |shared| shared.at);
            let own = left.min(until - self.sent);
            self.sent += own;
            left -= own;
            if self.sent < until {
                break;
            }
            left -= self.advance_shared(left);
        }
        self.release_sent();
    }

    /// Advances in the first shared string by at most `count`; returns by how much.
    fn advance_shared(&mut self, count: usize) -> usize {
        let Some(first) = self.shared.front() else { return 0 };
        let waiting = first.bytes.len() - self.shared_sent;
        let part = count.min(waiting);
        self.shared_len -= part;
        self.shared_sent += part;
        if part == waiting {
            self.shared.pop_front();
            self.shared_sent = 0;
        }
        part
    }

    /// Reuses the space of sent bytes: at once when all are sent, else when they are most of the
    /// buffer, so that each byte is moved once on average.
    fn release_sent(&mut self) {
        if self.sent == self.buffer.len() && self.shared.is_empty() {
            self.buffer.clear();
            self.buffer.shrink_to(limits::OUTPUT_KEPT);
            self.sent = 0;
        } else if self.sent > limits::OUTPUT_KEPT && self.sent > self.buffer.len() / 2 {
            let sent = std::mem::take(&mut self.sent);
            self.buffer.drain(..sent);
            self.shared.iter_mut().for_each(|shared| shared.at -= sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_shares_what_is_large() {
        let string = large(b'x');
        let mut first = Output::new();
        first.push(b"before");
        first.push_shared(&string);
        first.push(b"after");
        let mut second = Output::new();
        second.push(b"own");
        second.append(&first);
        second.append(&first.clone());
        let text = first.to_vec();
        assert_eq!(second.to_vec(), [b"own", &text[..], &text].concat());
        assert_eq!(Arc::strong_count(&string), 4);
        first.advance(7);
        second.clear();
        second.append(&first);
        assert_eq!(second.to_vec(), text[7..]);
    }

    #[test]
    fn what_was_written_last_is_taken_away_in_one_piece() {
        let string = large(b'x');
        for parts in 0..5 {
            let mut output = Output::new();
            output.push(b"gone");
            output.advance(4);
            let write = |output: &mut Output, part| match part % 3 {
                0 => output.push(b"small"),
                1 => output.push_shared(&string),
                _ => output.push(b"-error"),
            };
            (0..parts).for_each(|part| write(&mut output, part));
            let (from, kept) = (output.end(), output.to_vec());
            (parts..5).for_each(|part| write(&mut output, part));
            assert_eq!(output.begins_at(from, b'-'), parts == 2);
            let all = output.to_vec();
            let taken = output.split_off(from);
            assert_eq!((output.to_vec(), output.end()), (kept, from));
            output.append(&taken);
            assert_eq!(output.to_vec(), all);
            assert_eq!(output.split_off(output.end()).len(), 0);
        }
    }

    use crate::reply::Reply;
    use proptest::prelude::*;

    fn large(byte: u8) -> Arc<Vec<u8>> {
        Arc::new(vec![byte; limits::SHARED_REPLY])
    }

    #[test]
    fn only_bytes_that_lie_apart_are_copied_together() {
        let mut output = Output::new();
        assert!(matches!(output.bytes(), Cow::Borrowed(b"")));
        output.push(b"before");
        assert!(matches!(output.bytes(), Cow::Borrowed(b"before")));
        let string = large(b'x');
        output.push_shared(&string);
        assert_eq!(output.bytes(), [b"before", &string[..]].concat());
        output.advance(b"before".len());
        assert_eq!(output.bytes().as_ptr(), string.as_ptr());
        output.push(b"after");
        assert_eq!(output.bytes(), [&string[..], b"after"].concat());
    }

    #[test]
    fn large_strings_are_sent_from_where_they_lie() {
        let mut output = Output::new();
        let string = large(b'x');
        output.push(b"before");
        output.push_shared(&string);
        output.push(b"after");
        let addresses: Vec<_> =
            output.io_slices(usize::MAX).iter().map(|slice| slice.as_ptr()).collect();
        assert_eq!((addresses.len(), addresses[1]), (3, string.as_ptr()));
        assert_eq!(output.io_slices(7).iter().map(|slice| slice.len()).sum::<usize>(), 7);
        assert!(output.io_slices(0).is_empty());
        assert_eq!(Arc::strong_count(&string), 2);
        output.advance(6 + string.len());
        assert_eq!((Arc::strong_count(&string), output.first_slice()), (1, &b"after"[..]));
        output.advance(usize::MAX);
        assert!(output.is_empty() && output.first_slice().is_empty());
        assert_eq!(output.end(), 11 + limits::SHARED_REPLY as u64);
    }

    #[test]
    fn memory_is_given_back_when_all_is_sent() {
        let mut output = Output::new();
        output.push(&vec![0; 1 << 20]);
        output.push_shared(&large(1));
        assert!(output.memory() > 1 << 20);
        output.advance(output.len());
        assert!(output.memory() <= limits::OUTPUT_KEPT + 1024);
    }

    #[test]
    fn rollback_takes_back_shared_strings_too() {
        let mut output = Output::new();
        output.push(b"kept");
        let mark = output.mark();
        output.push(b"gone");
        output.push_shared(&large(b'x'));
        output.rollback(mark);
        assert_eq!(output.to_vec(), b"kept");
        assert_eq!(output.len(), 4);
    }

    #[test]
    fn no_reply_takes_more_memory_than_the_limit_and_a_little() {
        const LIMIT: usize = 1 << 20;
        let mut output = Output::new();
        output.set_limit(LIMIT);
        let mut reply = Reply::new(&mut output, true);
        let outer = reply.mark();
        for _ in 0..100_000 {
            let inner = reply.mark();
            reply.bulk(&[b'x'; 1000]);
            reply.bulk_shared(&large(b'y'));
            reply.double(0.1);
            reply.verbatim(b"txt", &[b'z'; 100]);
            reply.simple(b"text");
            reply.close_map(inner, 2);
        }
        reply.close_array(outer, 100_000);
        assert!(output.is_over_limit());
        assert!(output.memory() < 3 * LIMIT, "{}", output.memory());
    }

    #[test]
    fn only_rolling_back_the_cut_off_reply_ends_the_overflow() {
        let mut output = Output::new();
        output.set_limit(100_000);
        output.push(b"kept");
        for shared in [false, true] {
            let before = output.mark();
            let large = Arc::new(vec![0; 100_000]);
            match shared {
                true => output.push_shared(&large),
                false => output.push(&large),
            }
            assert!(output.is_over_limit());
            let after = output.mark();
            output.push(b"more");
            output.rollback(after);
            assert!(output.is_over_limit(), "the loss was before that");
            output.rollback(before);
            assert!(!output.is_over_limit());
            assert_eq!(output.to_vec(), b"kept");
        }
    }

    #[test]
    fn a_limit_counts_what_waits_and_not_what_was_sent() {
        let mut output = Output::new();
        output.set_limit(10);
        for _ in 0..3 {
            output.push(b"0123456789");
            assert!(!output.is_over_limit());
            output.advance(10);
        }
        output.push(b"0123456789");
        output.push(b"x");
        assert!(output.is_over_limit());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(Vec<u8>),
        Shared(u8),
        InsertAtMark(Vec<u8>, Vec<u8>),
        Advance(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..60_000);
        let step = prop_oneof![
            bytes().prop_map(Step::Push),
            any::<u8>().prop_map(Step::Shared),
            (bytes(), proptest::collection::vec(any::<u8>(), 0..9))
                .prop_map(|(bytes, header)| Step::InsertAtMark(bytes, header)),
            (0usize..90_000).prop_map(Step::Advance),
        ];
        proptest::collection::vec(step, 0..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn equals_one_long_buffer(steps in steps()) {
            let mut output = Output::new();
            let (mut model, mut sent) = (Vec::new(), 0);
            for step in steps {
                match step {
                    Step::Push(bytes) => {
                        output.push(&bytes);
                        model.extend(bytes);
                    }
                    Step::Shared(byte) => {
                        output.push_shared(&large(byte));
                        model.extend_from_slice(&large(byte));
                    }
                    Step::InsertAtMark(bytes, header) => {
                        let mark = output.mark();
                        output.push(&bytes);
                        output.push_shared(&large(7));
                        output.insert(mark, &header);
                        model.extend(header);
                        model.extend(bytes);
                        model.extend_from_slice(&large(7));
                    }
                    Step::Advance(count) => {
                        output.advance(count);
                        let count = count.min(model.len());
                        model.drain(..count);
                        sent += count;
                    }
                }
                prop_assert_eq!(output.len(), model.len());
                prop_assert_eq!(output.end(), (sent + model.len()) as u64);
                prop_assert!(output.to_vec() == model);
            }
        }
    }
}
