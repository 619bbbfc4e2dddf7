//! What happens before what, by the orderings that the code asks for.
//!
//! The explorer runs one thread at a time. Memory is sequentially consistent then, and an ordering
//! that is too weak for other processors changes nothing that a thread reads. So each thread has a
//! vector clock: a store with `Release` leaves the clock of its thread at the atomic, and a load
//! with `Acquire` takes it over. A thread that uses what another one has made, and has no lock for
//! that, asks [`check_seen`] whether it may rely on it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// For each thread, by its number, how many of its events are known.
type Clock = Vec<u64>;

#[derive(Default)]
struct Thread {
    clock: Clock,
    /// What its loads have found since its last fence, if they took nothing over.
    found: Clock,
    /// The clock at its last fence: stores without `Release` leave this.
    fenced: Clock,
}

#[derive(Default)]
struct History {
    threads: Vec<Option<Thread>>,
    /// What the last store has left at an atomic, by its address.
    left: HashMap<usize, Clock>,
    /// Which thread has made a block, and when.
    made: HashMap<u64, (usize, u64)>,
}

thread_local! {
    /// One thread runs all that are explored.
    static HISTORY: RefCell<History> = RefCell::default();
}

fn join(clock: &mut Clock, other: &Clock) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    clock.iter_mut().zip(other).for_each(|(known, &events)| *known = events.max(*known));
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// A thread, one event later. A new one knows what every thread has done, since it is not seen who
/// has started it.
fn thread(threads: &mut Vec<Option<Thread>>, number: usize) -> &mut Thread {
    if threads.len() <= number {
        threads.resize_with(number + 1, || None);
    }
    if threads[number].is_none() {
        let mut clock = vec![0; number + 1];
        threads.iter().flatten().for_each(|other| join(&mut clock, &other.clock));
        threads[number] = Some(Thread { clock, ..Thread::default() });
    }
    let thread = threads[number].as_mut().expect("it is there by now");
    thread.clock[number] += 1;
    thread
}

impl History {
    fn load(&mut self, number: usize, at: usize, order: Ordering) {
        let thread = thread(&mut self.threads, number);
        if let Some(left) = self.left.get(&at) {
            join(if acquires(order) { &mut thread.clock } else { &mut thread.found }, left);
        }
    }

    /// `follows` says that the store is part of an operation that has read the last one.
    fn store(&mut self, number: usize, at: usize, order: Ordering, follows: bool) {
        let thread = thread(&mut self.threads, number);
        let leaves = if releases(order) { &thread.clock } else { &thread.fenced };
        let left = self.left.entry(at).or_default();
        if !follows {
            left.clear();
        }
        join(left, leaves);
    }

    fn fence(&mut self, number: usize, order: Ordering) {
        let thread = thread(&mut self.threads, number);
        if acquires(order) {
            join(&mut thread.clock, &thread.found);
            thread.found.clear();
        }
        if releases(order) {
            thread.fenced.clone_from(&thread.clock);
        }
    }
}

/// What an operation at an atomic does.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Load,
    Store,
    Both,
}

/// Forgets all.
pub(super) fn begin() {
    HISTORY.take();
}

/// A thread has done something at an atomic.
pub(super) fn note<A>(number: Option<usize>, atomic: &A, access: Access, order: Ordering) {
    let Some(number) = number else { return };
    let at = std::ptr::from_ref(atomic).addr();
    HISTORY.with_borrow_mut(|history| {
        if !matches!(access, Access::Store) {
            history.load(number, at, order);
        }
        if !matches!(access, Access::Load) {
            history.store(number, at, order, matches!(access, Access::Both));
        }
    });
}

/// A thread has passed a fence.
pub(super) fn note_fence(number: Option<usize>, order: Ordering) {
    let Some(number) = number else { return };
    HISTORY.with_borrow_mut(|history| history.fence(number, order));
}

/// A thread makes a block, which it fills before others may find it.
pub(super) fn note_made(number: Option<usize>, block: u64) {
    let Some(number) = number else { return };
    HISTORY.with_borrow_mut(|history| {
        let now = thread(&mut history.threads, number).clock[number];
        history.made.insert(block, (number, now));
    });
}

/// A thread has found a block.
///
/// # Panics
/// If it may find the block as it was before it was made.
pub(super) fn check_seen(number: Option<usize>, block: u64) {
    let Some(number) = number else { return };
    HISTORY.with_borrow_mut(|history| {
        let Some((maker, made)) = history.made.get(&block).copied() else { return };
        let thread = thread(&mut history.threads, number);
        let known = thread.clock.get(maker).copied().unwrap_or_default();
        assert!(known >= made, "the block was published with an ordering that is too weak");
    });
}
