//! The locks and atomics by which threads meet at a keyspace.
//!
//! They are those of `parking_lot` and of the standard library. With the feature `explore`, which
//! nothing but the schedule explorer sets (`explore`, a workspace of its own), each of their uses is
//! also a point at which the explorer may let another thread go on. The explorer runs all threads as
//! coroutines of one, so what lies between two such points happens at once.

#[cfg(feature = "explore")]
pub use explored::set_point;
#[cfg(feature = "explore")]
pub(crate) use explored::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, RwLock, spin_loop};
#[cfg(not(feature = "explore"))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "explore"))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(feature = "explore"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

#[cfg(feature = "explore")]
mod explored {
    #![allow(unsafe_code)]

    use std::cell::Cell;
    use std::sync::atomic::Ordering;

    use parking_lot::lock_api;

    thread_local! {
        static POINT: Cell<fn()> = const { Cell::new(|| {}) };
    }

    /// Sets what is called where another thread may go on.
    pub fn set_point(point: fn()) {
        POINT.set(point);
    }

    fn point() {
        POINT.get()();
    }

    /// One more turn of a loop that waits for another thread.
    pub(crate) fn spin_loop() {
        point();
    }

    /// A lock whose waiters try again and again: a deadlock shows as a schedule without an end.
    pub(crate) struct RawMutex(std::sync::atomic::AtomicBool);

    // SAFETY: whoever has turned the flag on is alone until it is turned off.
    unsafe impl lock_api::RawMutex for RawMutex {
        #[expect(clippy::declare_interior_mutable_const, reason = "as the trait has it")]
        const INIT: RawMutex = RawMutex(std::sync::atomic::AtomicBool::new(false));
        type GuardMarker = lock_api::GuardSend;

        fn lock(&self) {
            while !self.try_lock() {}
        }

        fn try_lock(&self) -> bool {
            point();
            !self.0.swap(true, Ordering::Acquire)
        }

        unsafe fn unlock(&self) {
            self.0.store(false, Ordering::Release);
            point();
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    pub(crate) type Mutex<T> = lock_api::Mutex<RawMutex, T>;
    pub(crate) type MutexGuard<'m, T> = lock_api::MutexGuard<'m, RawMutex, T>;

    /// Readers exclude each other as well, which takes nothing from what can happen to writers.
    pub(crate) struct RwLock<T>(Mutex<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> RwLock<T> {
            RwLock(Mutex::new(value))
        }

        pub(crate) fn read(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }

        pub(crate) fn write(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, $($arithmetic:ident)*) => {
            #[derive(Default)]
            pub(crate) struct $name(std::sync::atomic::$name);

            #[allow(dead_code, reason = "each type has the same methods")]
            impl $name {
                pub(crate) const fn new(value: $value) -> $name {
                    $name(std::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    point();
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    point();
                    self.0.store(value, order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.swap(value, order)
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    self.0.compare_exchange(current, new, success, failure)
                }

                pub(crate) fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(current, new, success, failure)
                }

                $(pub(crate) fn $arithmetic(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.$arithmetic(value, order)
                })*
            }
        };
    }

    atomic!(AtomicBool, bool, fetch_or fetch_and);
    atomic!(AtomicU32, u32, fetch_or fetch_and fetch_add fetch_sub fetch_max);
    atomic!(AtomicU64, u64, fetch_or fetch_and fetch_add fetch_sub fetch_max);
}
