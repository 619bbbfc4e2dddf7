//! A large string at an instant, read in pieces while it goes on being changed in place.
//!
//! A string shares its buffer with its readers, and a writer copies all of it before it changes it
//! while there are readers. That is too slow for a snapshot: it reads for seconds, and copying a
//! string of 500 MB takes a fifth of a second with the slot locked. So a snapshot that is about to
//! read a large string registers it, and a writer that changes the string meanwhile saves the
//! pieces that it changes, unless they were read. This works only while there is no other reader of
//! the buffer.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use crate::locks::sync::{Mutex, fence};
use crate::snapshot::cut_memory::CutMemory;
use crate::types::string;

/// Strings of more bytes than this are read in pieces. Fewer in tests, which have many of them.
pub(crate) const LARGE_TEXT: usize = if cfg!(test) { 16 * 1024 } else { 1 << 20 };
/// Bytes of a piece: a writer waits while they are copied.
const PIECE: usize = if cfg!(test) { 4096 } else { 64 * 1024 };

/// State that a snapshot shares with the writers of a string that it reads.
pub(crate) struct FrozenText {
    /// Invariant: the bytes below `len` are those of the instant, except pieces that were saved.
    /// While the string is in the list of [`frozen`], they are read, and the buffer is moved, only
    /// under the lock of `reading`. A writer saves the pieces of the bytes that it changes under
    /// that lock before it changes them.
    buffer: Arc<Vec<u8>>,
    len: usize,
    reading: Mutex<Reading>,
    /// Bytes of it that count as kept, because no key has it any more.
    kept: AtomicUsize,
    /// Bytes that were saved or kept and not yet read, of everything that the snapshot reads.
    memory: Arc<CutMemory>,
}

#[derive(Default)]
struct Reading {
    /// Pieces that were read.
    pieces: usize,
    /// Parts that were changed later, as they were at the cut, by their numbers.
    saved: BTreeMap<usize, Box<[u8]>>,
}

/// The strings that are being read, by the addresses of their buffers.
static FROZEN: LazyLock<Mutex<HashMap<usize, Weak<FrozenText>>>> = LazyLock::new(Mutex::default);

fn address(buffer: &Arc<Vec<u8>>) -> usize {
    Arc::as_ptr(buffer).addr()
}

impl FrozenText {
    /// Begins to read a string as it is now. The caller holds the lock of its slot.
    pub(crate) fn new(buffer: &Arc<Vec<u8>>, memory: &Arc<CutMemory>) -> Arc<FrozenText> {
        let text = Arc::new(FrozenText {
            buffer: Arc::clone(buffer),
            len: buffer.len(),
            reading: Mutex::default(),
            kept: AtomicUsize::new(0),
            memory: Arc::clone(memory),
        });
        let mut frozen = FROZEN.lock();
        let position = frozen.entry(address(buffer)).or_default();
        // A buffer that two keys share is read twice, and never changes meanwhile.
        if position.strong_count() == 0 {
            *position = Arc::downgrade(&text);
        }
        drop(frozen);
        text
    }

    /// Bytes of the string.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Reads the next piece into a buffer. Returns whether there was one.
    pub(crate) fn read(&self, piece: &mut Vec<u8>) -> bool {
        piece.clear();
        let mut reading = self.reading.lock();
        let number = reading.pieces;
        if number * PIECE >= self.len {
            return false;
        }
        reading.pieces += 1;
        match reading.saved.remove(&number) {
            Some(saved) => {
                self.memory.remove_copied(saved.len());
                piece.extend_from_slice(&saved);
            }
            None => piece.extend_from_slice(self.piece(number)),
        }
        true
    }

    /// A piece as it is now. Must be called under the lock of `reading`, and not of one that was
    /// read.
    fn piece(&self, number: usize) -> &[u8] {
        let start = number * PIECE;
        let bytes = PIECE.min(self.len - start);
        // SAFETY: the buffer has at least `len` bytes, and is not moved under this lock; a writer
        // that changes bytes of this piece has saved it before, by the invariant. Not taken from a
        // slice of all bytes, because other bytes may be written now.
        unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().add(start), bytes) }
    }

    /// Saves those pieces of a range that were not read.
    fn save(&self, reading: &mut Reading, range: &Range<usize>) {
        let first = (range.start / PIECE).max(reading.pieces);
        let behind = range.end.min(self.len).div_ceil(PIECE);
        for number in first..behind {
            reading.saved.entry(number).or_insert_with(|| {
                let piece = self.piece(number);
                self.memory.add_copied(piece.len());
                piece.into()
            });
        }
    }
}

impl Drop for FrozenText {
    fn drop(&mut self) {
        let mut frozen = FROZEN.lock();
        let address = address(&self.buffer);
        // Another one may have been entered since this one could last be reached.
        if frozen.get(&address).is_some_and(|other| other.strong_count() == 0) {
            frozen.remove(&address);
        }
        drop(frozen);
        let saved = self.reading.get_mut().saved.values().map(|piece| piece.len()).sum();
        self.memory.remove_copied(saved);
        self.memory.remove_kept(*self.kept.get_mut());
    }
}

/// Notes that a key's string is gone, or was replaced: a snapshot that reads the string keeps it
/// alive.
pub(crate) fn note_left(buffer: &Arc<Vec<u8>>) {
    let text = FROZEN.lock().get(&address(buffer)).and_then(Weak::upgrade);
    if let Some(text) = text
        && text.kept.swap(text.len, Ordering::Relaxed) == 0
    {
        text.memory.add_kept(text.len);
    }
}

/// Lengthens a string by zeros to `length`, unless it is longer, and returns a range of its bytes
/// for a change, if nothing has its buffer except the caller and a snapshot that reads it in
/// pieces. The caller holds the lock of its slot.
///
/// The returned bytes may be used as long as only the caller and the snapshot have the buffer.
pub(crate) fn change(
    buffer: &mut Arc<Vec<u8>>,
    length: usize,
    range: &Range<usize>,
) -> Option<NonNull<[u8]>> {
    let text = FROZEN.lock().get(&address(buffer)).and_then(Weak::upgrade)?;
    let mut reading = text.reading.lock();
    // One reference is the caller's, one is that of `text`, which is alive.
    if Arc::strong_count(buffer) != 2 {
        return None;
    }
    // Former readers read before they let go, and that happens before the caller writes.
    fence(Ordering::Acquire);
    text.save(&mut reading, range);
    // SAFETY: nothing else has the buffer, and the snapshot looks at it only under the lock that we
    // hold. No further handle can be made of the caller's, which is borrowed mutably, and the
    // snapshot makes none of its own.
    let buffer = unsafe { &mut *Arc::as_ptr(buffer).cast_mut() };
    if buffer.len() < length {
        string::grow_buffer(buffer, length);
    }
    assert!(range.start <= range.end && range.end <= buffer.len(), "a range of the string");
    // SAFETY: within the buffer, as was asked just now.
    let start = unsafe { NonNull::new_unchecked(buffer.as_mut_ptr().add(range.start)) };
    Some(NonNull::slice_from_raw_parts(start, range.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 3 * PIECE + 1000;

    fn text() -> Arc<Vec<u8>> {
        Arc::new((0..LEN).map(|at| (at / 1000) as u8).collect())
    }

    fn read(text: &FrozenText) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        while text.read(&mut piece) {
            all.extend_from_slice(&piece);
        }
        all
    }

    /// Overwrites a range in place. Returns whether that was possible.
    fn write(buffer: &mut Arc<Vec<u8>>, length: usize, range: Range<usize>) -> bool {
        let Some(mut bytes) = change(buffer, length, &range) else { return false };
        // SAFETY: the tests have the buffer for themselves.
        unsafe { bytes.as_mut() }.fill(0xff);
        assert!(buffer.len() >= length && buffer[range].iter().all(|&byte| byte == 0xff));
        true
    }

    #[test]
    fn what_is_changed_meanwhile_is_read_as_it_was() {
        let (mut buffer, memory) = (text(), Arc::default());
        let before = buffer.to_vec();
        let frozen = FrozenText::new(&buffer, &memory);
        let position = Arc::as_ptr(&buffer);
        assert!(write(&mut buffer, 0, PIECE + 5..PIECE + 6));
        assert_eq!(memory.bytes(), PIECE);
        let mut first = Vec::new();
        assert!(frozen.read(&mut first));
        assert!(write(&mut buffer, 0, 7..2 * PIECE + 1));
        assert_eq!(memory.bytes(), 2 * PIECE, "what was read is not saved");
        // The string grows, and bytes beyond the instant need not be saved.
        assert!(write(&mut buffer, 2 * LEN, LEN..2 * LEN));
        assert!(write(&mut buffer, 0, 0..0));
        assert_eq!([first, read(&frozen)].concat(), before);
        assert_eq!(memory.bytes(), 0);
        assert_eq!((Arc::as_ptr(&buffer), frozen.len()), (position, LEN));
    }

    #[test]
    fn nobody_else_may_have_the_buffer() {
        let (mut buffer, memory) = (text(), Arc::default());
        assert!(!write(&mut buffer, 0, 0..1), "nobody reads it in pieces");
        let frozen = FrozenText::new(&buffer, &memory);
        let reply = Arc::clone(&buffer);
        assert!(!write(&mut buffer, 0, 0..1));
        drop(reply);
        assert!(write(&mut buffer, 0, 0..1));
        let second = FrozenText::new(&buffer, &memory);
        assert!(!write(&mut buffer, 0, 0..1));
        drop(second);
        assert!(write(&mut buffer, 0, 0..1));
        drop(frozen);
        assert_eq!(memory.bytes(), 0);
        assert!(!write(&mut buffer, 0, 0..1));
        assert!(!FROZEN.lock().contains_key(&address(&buffer)));
    }

    #[test]
    fn a_string_is_changed_by_one_thread_and_read_by_another() {
        let (mut buffer, memory) = (text(), Arc::default());
        for round in 0..20 {
            let before = buffer.to_vec();
            let frozen = FrozenText::new(&buffer, &memory);
            let reader = std::thread::spawn(move || read(&frozen));
            for step in 0..200 {
                let at = (step * 7919 + round) % LEN;
                if let Some(mut byte) = change(&mut buffer, LEN + step, &(at..at + 1)) {
                    // SAFETY: nothing else has the buffer, and the piece was saved or read.
                    unsafe { byte.as_mut()[0] = step as u8 };
                }
            }
            assert_eq!(reader.join().unwrap(), before);
        }
    }
}
