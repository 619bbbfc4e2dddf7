//! How much memory is in use.
//!
//! `maxmemory` needs that number before each command, and the allocator's own statistics are far
//! too slow for that. The allocator counts in thread-local variables how much a thread has
//! allocated and freed in its life. Each thread publishes these once per turn, and the sum over all
//! threads is the memory in use. A thread that frees what another allocated has a negative balance:
//! only the sum means anything. So every thread that hands memory to another one, or frees memory
//! of another one, has to publish for as long as it runs. Otherwise the sum stays wrong for ever. A
//! thread that has published once does so at its end, too. Passing memory has a balance of its own,
//! because it does not count against `maxmemory`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};

use base::passing;
use engine::host::MemoryMetrics;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemalloc_ctl::{background_thread, epoch, max_background_threads, stats};

/// Threads at a time with a balance of their own; those beyond share the last.
const BALANCES_MAX: usize = 1280;

/// The balances of a thread, and of those that had its place before, alone on their cache lines.
#[repr(align(128))]
struct Balances {
    /// A thread has the place.
    taken: AtomicBool,
    /// Bytes without passing memory.
    counted: AtomicI64,
    passing: AtomicI64,
}

impl Balances {
    const fn none() -> Balances {
        Balances {
            taken: AtomicBool::new(false),
            counted: AtomicI64::new(0),
            passing: AtomicI64::new(0),
        }
    }
}

static BALANCES: [Balances; BALANCES_MAX] = [const { Balances::none() }; BALANCES_MAX];
/// Places up to here have been taken at some time.
static PLACES_USED: AtomicUsize = AtomicUsize::new(0);

/// The balances that a thread has published.
struct Account {
    index: usize,
    counted: Published,
    passing: Published,
    /// What it had allocated when this was made, until it publishes for the first time.
    opened: Cell<Option<i64>>,
    /// Bytes of the system's list of what ends with the thread. They are freed after it has
    /// published for the last time, so they do not count.
    own: Cell<i64>,
    /// Absent where another allocator is in use.
    counters: Option<(ThreadLocal<u64>, ThreadLocal<u64>)>,
}

impl Account {
    fn open() -> Account {
        let counters = allocatedp::read().ok().zip(deallocatedp::read().ok());
        let is_free = |own: &Balances| !own.taken.load(Relaxed) && !own.taken.swap(true, Acquire);
        let free = BALANCES[..BALANCES_MAX - 1].iter().position(is_free);
        let index = free.unwrap_or(BALANCES_MAX - 1);
        PLACES_USED.fetch_max(index + 1, Relaxed);
        let own = &BALANCES[index];
        let [counted, passing] = match free {
            Some(_) => [&own.counted, &own.passing].map(|index| index.load(Relaxed)),
            None => [0, 0],
        };
        let [counted, passing] = [counted, passing].map(Published::after);
        let account = Account {
            index,
            counted,
            passing,
            opened: Cell::new(None),
            own: Cell::new(0),
            counters,
        };
        account.opened.set(Some(account.all()));
        account
    }

    /// Bytes that this thread has allocated so far, less those that it has freed.
    #[inline]
    fn all(&self) -> i64 {
        let Some((allocated, freed)) = self.counters else { return 0 };
        allocated.get().wrapping_sub(freed.get()).cast_signed()
    }

    /// The same, without passing memory.
    #[inline]
    fn balance(&self) -> i64 {
        self.all().wrapping_sub(self.own.get()).wrapping_sub(passing::balance())
    }

    /// Must be called first of all.
    #[inline]
    fn note_opened(&self) {
        if let Some(opened) = self.opened.take() {
            // Since then the list was made, if this is the first thing in it, and nothing else.
            self.own.set(self.all().wrapping_sub(opened));
        }
    }

    fn publish(&self) {
        self.note_opened();
        let own = &BALANCES[self.index];
        self.put(&own.counted, &self.counted, self.balance());
        self.put(&own.passing, &self.passing, passing::balance());
    }

    fn put(&self, shared: &AtomicI64, published: &Published, balance: i64) {
        let before = published.last.replace(balance);
        if self.is_alone() {
            // No other thread writes there.
            shared.store(published.earlier.wrapping_add(balance), Relaxed);
        } else {
            shared.fetch_add(balance.wrapping_sub(before), Relaxed);
        }
    }

    /// Whether no other thread has its place.
    fn is_alone(&self) -> bool {
        self.index < BALANCES_MAX - 1
    }
}

/// What a thread has published of one balance.
struct Published {
    /// The balance of earlier threads, which have left their place to this one.
    earlier: i64,
    last: Cell<i64>,
}

impl Published {
    fn after(earlier: i64) -> Published {
        Published { earlier, last: Cell::new(0) }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.publish();
        if self.is_alone() {
            // The next one goes on from this balance.
            BALANCES[self.index].taken.store(false, Release);
        }
    }
}

thread_local! {
    static ACCOUNT: Account = Account::open();
}

/// Publishes the balance of the calling thread. Threads that do not live for long do so at their
/// beginning: they publish again at their end. Must be called at the end of each turn.
#[inline]
pub fn publish() {
    // A thread that is ending has published already.
    let _ = ACCOUNT.try_with(Account::publish);
}

/// Bytes that the calling thread has allocated so far, less those that it has freed, without
/// passing memory.
#[inline]
pub fn balance() -> i64 {
    let balance = |own: &Account| {
        own.note_opened();
        own.balance()
    };
    ACCOUNT.try_with(balance).unwrap_or(0)
}

/// Bytes in use, all threads together, as of their last [`publish`].
pub fn used() -> usize {
    sum(|own| own.counted.load(Relaxed).wrapping_add(own.passing.load(Relaxed)))
}

/// The same, without passing memory.
pub fn counted() -> usize {
    sum(|own| own.counted.load(Relaxed))
}

fn sum(metric: impl Fn(&Balances) -> i64) -> usize {
    let used = PLACES_USED.load(Relaxed);
    let sum = BALANCES[..used].iter().fold(0i64, |sum, own| sum.wrapping_add(metric(own)));
    usize::try_from(sum).unwrap_or(0)
}

/// Lets the allocator return unused pages from a thread of its own, not from the thread that
/// happens to free. Must be called after going into the background.
///
/// # Errors
/// The allocator's words.
pub fn start_background_return() -> Result<(), String> {
    max_background_threads::write(1)
        .and_then(|()| background_thread::write(true))
        .map_err(|error| error.to_string())
}

/// The allocator and its version.
pub fn allocator() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let version = tikv_jemalloc_ctl::version::read().unwrap_or("unknown");
        // The part after the dash names the build of the version.
        format!("jemalloc-{}", version.split('-').next().unwrap_or(version))
    })
}

/// The allocator's and the system's view. This takes tens of microseconds.
pub fn metrics() -> MemoryMetrics {
    publish();
    // The statistics are as of the last epoch. An allocator without them leaves zeros.
    let _ = epoch::advance();
    let system = rustix::system::sysinfo();
    MemoryMetrics {
        allocated: stats::allocated::read().unwrap_or(0),
        active: stats::active::read().unwrap_or(0),
        resident: stats::resident::read().unwrap_or(0),
        retained: stats::retained::read().unwrap_or(0),
        mapped: stats::mapped::read().unwrap_or(0),
        metadata: stats::metadata::read().unwrap_or(0),
        process_resident: process_resident().unwrap_or(0),
        system_total: system.totalram as usize * system.mem_unit as usize,
    }
}

/// Bytes of physical memory that the process occupies.
fn process_resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// One test, because the sum belongs to the whole process.
    #[test]
    fn the_sum_follows_allocations_of_all_threads() {
        const SIZE: usize = 64 << 20;
        publish();
        let before = used();
        let allocate = || {
            let block = vec![1u8; SIZE];
            super::publish();
            block
        };
        let block = std::thread::spawn(allocate).join().unwrap();
        publish();
        let between = used();
        drop(block);
        publish();
        let after = used();
        assert!(between >= before + SIZE / 2, "{before} {between}");
        assert!(after + SIZE / 2 <= between, "{between} {after}");
        let passes = std::thread::spawn(|| {
            let passes = passing::PassingBytes::with_capacity(SIZE);
            super::publish();
            passes
        });
        let passes = passes.join().unwrap();
        assert!(used() >= after + SIZE / 2, "it is in use");
        assert!(counted() < after + SIZE / 2, "but is no data");
        drop(passes);
        publish();
        assert!(used() < after + SIZE / 2 && counted() + SIZE / 2 > after);
        // More threads than there are places, one after the other.
        let before = used();
        for _ in 0..BALANCES_MAX + 100 {
            let block = std::thread::spawn(|| {
                super::publish();
                vec![1u8; SIZE / BALANCES_MAX]
            });
            drop(block.join().unwrap());
        }
        publish();
        let drift = used().abs_diff(before);
        assert!(drift < SIZE / 2, "{drift}");
        assert!(PLACES_USED.load(Relaxed) < BALANCES_MAX, "a place is used again");
        let metrics = metrics();
        assert!(metrics.process_resident > 0 && metrics.system_total > metrics.process_resident);
    }
}
