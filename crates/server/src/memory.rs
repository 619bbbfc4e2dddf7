//! How much memory is in use.
//!
//! `maxmemory` needs that number before each command, and the allocator's own statistics are far too
//! slow for that. The allocator counts in thread-local variables how much a thread has allocated and
//! freed in its life. Each thread publishes these once per turn, and the sum over all threads is the
//! memory in use. A thread that frees what another allocated has a negative balance: only the sum means
//! anything. Passing memory has a balance of its own, because it does not count against `maxmemory`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use base::passing;
use engine::host::MemoryFigures;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemalloc_ctl::{background_thread, epoch, max_background_threads, stats};

/// Threads with a balance of their own; those beyond share the last.
const PLACES: usize = 1280;

/// The balances of a thread, alone on their cache lines.
#[repr(align(128))]
struct Balances {
    /// Bytes without passing memory.
    counted: AtomicI64,
    passing: AtomicI64,
}

static BALANCES: [Balances; PLACES] =
    [const { Balances { counted: AtomicI64::new(0), passing: AtomicI64::new(0) } }; PLACES];
static PLACES_TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The balances that a thread has published.
struct Account {
    place: usize,
    counted: Cell<i64>,
    passing: Cell<i64>,
    /// Absent where another allocator is in use.
    counters: Option<(ThreadLocal<u64>, ThreadLocal<u64>)>,
}

impl Account {
    fn open() -> Account {
        let counters = allocatedp::read().ok().zip(deallocatedp::read().ok());
        let place = PLACES_TAKEN.fetch_add(1, Relaxed).min(PLACES - 1);
        Account { place, counted: Cell::new(0), passing: Cell::new(0), counters }
    }

    /// Bytes that this thread has allocated so far, less those that it has freed, without passing memory.
    #[inline]
    fn balance(&self) -> i64 {
        let Some((allocated, freed)) = self.counters else { return 0 };
        let all = allocated.get().wrapping_sub(freed.get()).cast_signed();
        all.wrapping_sub(passing::balance())
    }

    fn publish(&self) {
        let own = &BALANCES[self.place];
        self.put(&own.counted, &self.counted, self.balance());
        self.put(&own.passing, &self.passing, passing::balance());
    }

    fn put(&self, place: &AtomicI64, published: &Cell<i64>, balance: i64) {
        let before = published.replace(balance);
        if self.place < PLACES - 1 {
            // No other thread writes there.
            place.store(balance, Relaxed);
        } else {
            place.fetch_add(balance.wrapping_sub(before), Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.publish();
    }
}

thread_local! {
    static ACCOUNT: Account = Account::open();
}

/// Publishes the balance of the calling thread. Must be called at the end of each turn.
#[inline]
pub fn publish() {
    // A thread that is ending has published already.
    let _ = ACCOUNT.try_with(Account::publish);
}

/// Bytes that the calling thread has allocated so far, less those that it has freed, without passing
/// memory.
#[inline]
pub fn balance() -> i64 {
    ACCOUNT.try_with(Account::balance).unwrap_or(0)
}

/// Bytes in use, all threads together, as of their last [`publish`].
pub fn used() -> usize {
    sum(|own| own.counted.load(Relaxed).wrapping_add(own.passing.load(Relaxed)))
}

/// The same, without passing memory.
pub fn counted() -> usize {
    sum(|own| own.counted.load(Relaxed))
}

fn sum(figure: impl Fn(&Balances) -> i64) -> usize {
    let taken = PLACES_TAKEN.load(Relaxed).min(PLACES);
    let sum = BALANCES[..taken].iter().fold(0i64, |sum, own| sum.wrapping_add(figure(own)));
    usize::try_from(sum).unwrap_or(0)
}

/// Lets the allocator return unused pages from a thread of its own, not from the thread that happens to
/// free. Must be called after going into the background.
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
pub fn figures() -> MemoryFigures {
    publish();
    // The statistics are as of the last epoch. An allocator without them leaves zeros.
    let _ = epoch::advance();
    let system = rustix::system::sysinfo();
    MemoryFigures {
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
        let figures = figures();
        assert!(figures.process_resident > 0 && figures.system_total > figures.process_resident);
    }
}
