//! Clocks: the wall clock in Unix time, clocks that never step, and a cheap timer for short spans.
//!
//! Setting the wall clock moves dates, and nothing else: deadlines, pauses and ages are measured by
//! [`monotonic_ms`].
//!
//! Reading the system's clock costs 20 to 50 ns, which matters when every command is timed twice.
//! [`Ticks`] reads the processor's time stamp counter if the counter runs at a constant rate, after
//! [`calibrate`] has measured that rate against the monotonic clock. Before the calibration and on
//! other processors, [`Ticks`] reads the monotonic clock. It does so too where the system does not
//! offer the counter as a clock: because the counter has drifted, or because time is simulated
//! (`crates/simulation`).
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds that [`shift_wall_clock`] has added.
static SHIFT_US: AtomicI64 = AtomicI64::new(0);

/// Sets this process's wall clock forward or back, as an administrator does to the machine's. For
/// tests of what must not change then.
pub fn shift_wall_clock(microseconds: i64) {
    SHIFT_US.fetch_add(microseconds, Ordering::Relaxed);
}

/// Microseconds since 1970-01-01 UTC. Zero on a machine whose clock stands before that.
#[inline]
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_micros() as u64);
    now.saturating_add_signed(SHIFT_US.load(Ordering::Relaxed))
}

/// Milliseconds since 1970-01-01 UTC. Zero on a machine whose clock stands before that.
#[inline]
pub fn now_ms() -> u64 {
    now_us() / 1000
}

/// Microseconds on a clock that never steps: it shows the wall clock's time at the first call in
/// the process, and from then on the time that has passed since, also while the machine was
/// suspended: a lease that others count goes on meanwhile. Not for dates.
#[inline]
pub fn monotonic_us() -> u64 {
    static START: OnceLock<(u64, u64)> = OnceLock::new();
    let (begun, then) = START.get_or_init(|| (since_boot_us(), now_us()));
    then + (since_boot_us() - begun)
}

/// Microseconds since the machine was started. It costs what [`Instant::now`] does. It asks the C
/// library, which asks the system where `crates/simulation` has taken away the quick way. rustix
/// finds that way nevertheless.
#[inline]
fn since_boot_us() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes to `time`, which is of the type that it expects.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// Milliseconds of [`monotonic_us`].
#[inline]
pub fn monotonic_ms() -> u64 {
    monotonic_us() / 1000
}

/// Nanoseconds on a clock that never steps back. Its zero is the first call in the process.
#[inline]
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Nanoseconds per tick of the counter, times 2^32. Zero: not calibrated, or the counter is unfit.
static NANOS_PER_TICK: AtomicU64 = AtomicU64::new(0);

/// How long [`calibrate`] observes the counter. Reading the clocks is uncertain by some 50 ns,
/// which over this span is 5 in a million.
const CALIBRATION_NS: u64 = 10_000_000;

/// A point in time, for measuring short spans on one thread: `Ticks::now().elapsed_ns()`.
///
/// On x86-64 this is the time stamp counter once calibrated: a few nanoseconds to read. The default
/// is a moment before all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u64);

impl Ticks {
    /// A moment after all others.
    pub const LAST: Ticks = Ticks(u64::MAX);

    /// The present moment.
    #[inline]
    pub fn now() -> Self {
        if NANOS_PER_TICK.load(Ordering::Relaxed) == 0 {
            Ticks(monotonic_ns())
        } else {
            Ticks(counter())
        }
    }

    /// Nanoseconds from `earlier` to `self`; zero when `earlier` is the later one.
    #[inline]
    pub fn since_ns(self, earlier: Ticks) -> u64 {
        let ticks = self.0.saturating_sub(earlier.0);
        match NANOS_PER_TICK.load(Ordering::Relaxed) {
            0 => ticks,
            scale => ((u128::from(ticks) * u128::from(scale)) >> 32) as u64,
        }
    }

    /// Nanoseconds that have passed since `self`.
    #[inline]
    pub fn elapsed_ns(self) -> u64 {
        Ticks::now().since_ns(self)
    }
}

/// Measures the counter's rate, once, for about 10 ms. Must be called at start, before any
/// [`Ticks`] is taken: those taken before mean something else afterwards.
pub fn calibrate() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if !counter_is_invariant() || !system_trusts_counter() {
            return;
        }
        let (start_ns, start_ticks) = (monotonic_ns(), counter());
        let mut elapsed_ns = 0;
        while elapsed_ns < CALIBRATION_NS {
            std::hint::spin_loop();
            elapsed_ns = monotonic_ns() - start_ns;
        }
        let ticks = counter().saturating_sub(start_ticks);
        if let Some(scale) = (u128::from(elapsed_ns) << 32).checked_div(u128::from(ticks)) {
            // A counter slower than 1 tick in 4 seconds is no counter; the cast cannot truncate
            // then.
            NANOS_PER_TICK.store(u64::try_from(scale).unwrap_or(0), Ordering::Relaxed);
        }
    });
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: RDTSC is part of every x86-64 processor and only reads a register; Linux leaves it
    // enabled for user code unless a process forbids it for itself, which nothing here does.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    let largest_leaf = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    largest_leaf >= POWER_MANAGEMENT
        && core::arch::x86_64::__cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

/// Whether the system has the counter among its clocks. A system that does not list its clocks is
/// believed to have it.
fn system_trusts_counter() -> bool {
    const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let sources = std::fs::read_to_string(SOURCES);
    sources.map_or(true, |sources| sources.split_whitespace().any(|source| source == "tsc"))
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    monotonic_ns()
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_is_in_this_century() {
        let year_2020_ms = 1_577_836_800_000;
        assert!(now_ms() > year_2020_ms);
        assert!(now_us() / 1000 >= now_ms() - 1000);
    }

    #[test]
    fn monotonic_clock_never_steps_back() {
        let mut last = monotonic_ns();
        for _ in 0..1000 {
            let next = monotonic_ns();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn ticks_agree_with_the_monotonic_clock() {
        calibrate();
        let (ticks, start_ns) = (Ticks::now(), monotonic_ns());
        while monotonic_ns() - start_ns < 1_000_000 {
            std::hint::spin_loop();
        }
        let span_ns = ticks.elapsed_ns();
        // The outer span contains the inner one, except for the error of calibration.
        assert!(span_ns > 990_000, "{span_ns}");
        assert_eq!(ticks.since_ns(Ticks::now()), 0);
    }
}
