//! Parts that were removed from a collection and take long to free: large blocks, whole nodes of a
//! list.
//!
//! A collection changes while its slot is locked, and freeing a large block means giving pages back
//! to the system. So code that removes elements frees the small ones at once, and puts the others
//! into a list of its thread. After the slots are unlocked, or before the next command of the same
//! script or transaction, that thread [takes](take) the list, and frees its contents or has another
//! thread free them. Until then they count as memory in use.
#![allow(unsafe_code)]

use std::alloc::{Layout, dealloc};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;

/// Blocks of more bytes than this are put aside: those that the allocator takes page by page. It
/// serves smaller ones from slabs, which is quicker than to put them aside.
const ASIDE_BYTES: usize = 14 * 1024;

/// A block that nothing uses any more. Dropping it frees it.
pub(crate) struct Block(NonNull<u8>, Layout);

// SAFETY: it has only one owner; which thread frees it does not matter.
unsafe impl Send for Block {}

impl Block {
    /// Takes a block over.
    ///
    /// # Safety
    /// The block was allocated with this layout, and nothing else frees it.
    pub(crate) unsafe fn new(block: NonNull<u8>, layout: Layout) -> Block {
        Block(block, layout)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.1.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nothing else frees it, by the promise of
        // the caller of `new`.
        unsafe { dealloc(self.0.as_ptr(), self.1) };
    }
}

/// Something that was put aside.
#[expect(dead_code, reason = "it is kept to be dropped")]
enum Part {
    Block(Block),
    Text(Arc<Vec<u8>>),
    Other(Box<dyn Send>),
}

/// Parts that were put aside. Dropping them frees them.
#[derive(Default)]
pub struct Garbage {
    parts: Vec<Part>,
    bytes: usize,
}

impl Garbage {
    /// About how many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

thread_local! {
    /// Whether there is anything in the list: asked after each command, so it costs one load.
    static ANY: Cell<bool> = const { Cell::new(false) };
    static ASIDE: RefCell<Garbage> = const { RefCell::new(Garbage { parts: Vec::new(), bytes: 0 }) };
}

/// Frees a block, or puts it aside if it is large.
///
/// # Safety
/// The block was allocated with this layout, and nothing uses it any more.
#[inline]
pub(crate) unsafe fn free_block(block: NonNull<u8>, layout: Layout) {
    // SAFETY: by the caller's promise.
    unsafe {
        if layout.size() > ASIDE_BYTES {
            return put_aside(Part::Block(Block::new(block, layout)), layout.size());
        }
        dealloc(block.as_ptr(), layout);
    }
}

/// Frees a text if nothing else has it, or puts it aside if it is large.
#[inline]
pub(crate) fn free_text(text: Arc<Vec<u8>>) {
    let bytes = text.capacity();
    if bytes > ASIDE_BYTES {
        put_aside(Part::Text(text), bytes);
    }
}

/// Puts something of about this many bytes aside.
#[cold]
pub(crate) fn put_others_aside(parts: impl Send + 'static, bytes: usize) {
    put_aside(Part::Other(Box::new(parts)), bytes);
}

#[cold]
fn put_aside(part: Part, bytes: usize) {
    ANY.set(true);
    ASIDE.with_borrow_mut(|aside| {
        aside.parts.push(part);
        aside.bytes += bytes;
    });
}

/// Whether this thread has put something aside.
#[inline]
pub fn is_there() -> bool {
    ANY.get()
}

/// Takes what this thread has put aside.
pub fn take() -> Garbage {
    ANY.set(false);
    ASIDE.take()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;
    use crate::pack::End;
    use crate::types::list::{ListInput, ListLimits};
    use crate::types::stream::{Delivery, Group, Stream, StreamId, StreamLimits, Trim, TrimTo};
    use crate::{Hash, Limits, List, Set, SetLimits, Zset};

    const LIMITS: Limits = Limits { entries: 0, value: 0 };

    /// What an action puts aside.
    fn aside(action: impl FnOnce()) -> (usize, usize) {
        drop(take());
        action();
        let there = is_there();
        let garbage = take();
        assert_eq!((there, is_there()), (!garbage.parts.is_empty(), false));
        (garbage.parts.len(), garbage.bytes())
    }

    #[test]
    fn large_members_are_put_aside_and_small_ones_are_not() {
        let mut hash = Hash::new();
        hash.set(b"large", &[1; 100_000], LIMITS);
        hash.set(b"small", b"value", LIMITS);
        assert_eq!(aside(|| assert!(hash.remove(b"small"))), (0, 0));
        let replaced = aside(|| assert!(!hash.set(b"large", &[2; 300_000], LIMITS)));
        assert_eq!((replaced.0, replaced.1 / 100_000), (1, 1));
        let removed = aside(|| assert!(hash.remove(b"large")));
        assert_eq!((removed.0, removed.1 / 100_000), (1, 3));
        let limits = SetLimits { integers: 0, listpack: LIMITS };
        let (mut set, member) = (Set::new(), [7; 20_000]);
        set.add(&member, limits);
        assert_eq!(aside(|| assert!(set.remove(&member))).0, 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "much copying")]
    fn large_elements_of_lists_are_put_aside_and_so_are_many_nodes() {
        let limits = ListLimits::default();
        let mut list = List::new();
        for number in 0..200_000 {
            list.push(End::Back, ListInput::Int(number), &limits);
        }
        let nodes = list.node_count();
        for large in [&[1; 100_000][..], &[2; 200_000], &[3; 300_000]] {
            list.push(End::Back, large, &limits);
        }
        let popped = aside(|| assert!(list.pop_with(End::Back, |_| ()).is_some()));
        assert_eq!((popped.0, popped.1 / 100_000), (1, 3));
        let set = aside(|| assert!(list.set(-1, &b"small"[..], &limits)));
        assert_eq!((set.0, set.1 / 100_000), (1, 2));
        let removed = aside(|| assert_eq!(list.remove(0, &[1; 100_000], &limits), 1));
        assert_eq!((removed.0, removed.1 / 100_000), (1, 1));
        assert_eq!(aside(|| assert_eq!(list.trim(0, -11), 10)), (0, 0));
        let trimmed = aside(|| assert_eq!(list.trim(0, 999), 200_001 - 10 - 1000));
        assert!(trimmed.0 == 1 && trimmed.1 > nodes * 4000, "{trimmed:?}");
        list.check();
        assert_eq!(list.len(), 1000);
    }

    #[test]
    fn most_of_a_sorted_set_is_put_aside_when_little_stays() {
        let filled = |members: u32| {
            let mut zset = Zset::new();
            for number in 0..members {
                zset.insert(format!("member:{number}").as_bytes(), f64::from(number), LIMITS);
            }
            zset
        };
        let mut zset = filled(5000);
        let taken = aside(|| assert_eq!(zset.remove_ranks(10..4990), 4980));
        assert!(taken.0 == 1 && taken.1 > 5000 * 16, "{taken:?}");
        zset.check();
        let scores: Vec<f64> = zset.iter().map(|(_, score)| score).collect();
        let expected: Vec<f64> = (0..10).chain(4990..5000).map(f64::from).collect();
        assert_eq!((zset.encoding(), scores), ("skiplist", expected));
        assert_eq!(zset.score(b"member:4995"), Some(4995.0));
        let mut zset = filled(5000);
        assert_eq!(aside(|| assert_eq!(zset.remove_ranks(0..9000), 5000)).0, 1);
        assert!(zset.is_empty());
        let mut zset = filled(5000);
        assert_eq!(aside(|| assert_eq!(zset.remove_ranks(0..2500), 2500)).0, 0);
        zset.check();
    }

    #[test]
    fn many_blocks_of_a_stream_are_put_aside_and_so_are_large_groups() {
        let limits = StreamLimits::new(4096, 100);
        let mut stream = Stream::new();
        for ms in 1..=20_000 {
            let fields = [&b"field"[..], b"value"];
            stream.push(StreamId { ms, seq: 0 }, fields.into_iter(), limits);
        }
        stream.add_group(b"group", Group::new(StreamId::MIN, None));
        let (consumer, _) = stream.group_mut(b"group").unwrap().add_consumer(b"me", 1);
        let delivery = Delivery { consumer, now_ms: 1, count: 10_000, pending: true };
        assert_eq!(stream.deliver(b"group", &delivery, |_| ()).len(), 10_000);
        let trim = |to| Trim { to: TrimTo::Len(to), by_blocks: false, limit: None };
        assert_eq!(aside(|| assert_eq!(stream.trim(&trim(19_000)), 1000)), (0, 0));
        let trimmed = aside(|| assert_eq!(stream.trim(&trim(50)), 18_950));
        assert!(trimmed.0 == 1 && trimmed.1 > 190 * 1000, "{trimmed:?}");
        assert_eq!(aside(|| assert!(stream.remove_group(b"group"))).0, 1);
        stream.check();
    }

    #[test]
    fn what_is_taken_is_freed_by_whoever_drops_it() {
        struct NotesDrop(Arc<AtomicBool>);
        impl Drop for NotesDrop {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let freed = Arc::new(AtomicBool::new(false));
        drop(take());
        put_others_aside(NotesDrop(Arc::clone(&freed)), 5);
        let garbage = take();
        assert!(!freed.load(Relaxed) && garbage.bytes() == 5);
        std::thread::spawn(move || drop(garbage)).join().unwrap();
        assert!(freed.load(Relaxed));
    }
}
