//! The locks and atomics through which threads meet, and the threads themselves.
//!
//! They are those of `parking_lot` and of the standard library. With the feature `explore`, which
//! only the schedule explorer sets (`explore`, a workspace of its own), each of their uses is also
//! a point at which the explorer may let another thread go on. The explorer runs all threads as
//! coroutines of one thread, so everything between two such points happens at once. Time does not
//! pass there: a pause may end at any point, and so may the patience of a thread that has tried to
//! lock something in vain.
//!
//! Miri has the explorer's locks as well, because it does not support the system calls of
//! `parking_lot`.

#[cfg(feature = "explore")]
pub use explored::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Hooks, fence, point, set_hooks, spin_loop, thread,
};
#[cfg(feature = "explore")]
pub(crate) use explored::{check_seen, note_made};
#[cfg(any(feature = "explore", miri))]
pub use locks::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(any(feature = "explore", miri)))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "explore"))]
pub use std::hint::spin_loop;
#[cfg(not(feature = "explore"))]
pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence};
#[cfg(not(feature = "explore"))]
pub use std::thread;

#[cfg(feature = "explore")]
mod order;

/// A block is made, to be found by threads without a lock: does nothing.
#[cfg(not(feature = "explore"))]
#[inline]
pub(crate) fn note_made(_: u64) {}

/// Where another thread may go on: does nothing.
#[cfg(not(feature = "explore"))]
#[inline]
pub fn point() {}

#[cfg(any(feature = "explore", miri))]
mod locks {
    #![allow(unsafe_code, missing_docs)]

    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use parking_lot::lock_api;

    use super::{point, spin_loop};

    /// A lock whose waiters try repeatedly: a deadlock shows as a schedule without an end.
    pub struct RawMutex(std::sync::atomic::AtomicBool);

    // SAFETY: the thread that has turned the flag on is alone until it turns it off.
    unsafe impl lock_api::RawMutex for RawMutex {
        #[expect(clippy::declare_interior_mutable_const, reason = "as the trait has it")]
        const INIT: RawMutex = RawMutex(std::sync::atomic::AtomicBool::new(false));
        type GuardMarker = lock_api::GuardSend;

        fn lock(&self) {
            while !self.try_lock() {
                spin_loop();
            }
        }

        fn try_lock(&self) -> bool {
            point();
            #[cfg(feature = "explore")]
            super::explored::note(&self.0, super::order::Access::Both, Ordering::Acquire);
            !self.0.swap(true, Ordering::Acquire)
        }

        unsafe fn unlock(&self) {
            #[cfg(feature = "explore")]
            super::explored::note(&self.0, super::order::Access::Store, Ordering::Release);
            self.0.store(false, Ordering::Release);
            point();
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// How often a thread tries to lock something before its patience ends.
    const TRIES: usize = 3;

    // SAFETY: as above.
    unsafe impl lock_api::RawMutexTimed for RawMutex {
        type Duration = Duration;
        type Instant = Instant;

        fn try_lock_for(&self, _: Duration) -> bool {
            (0..TRIES).any(|tries| {
                if tries > 0 {
                    spin_loop();
                }
                lock_api::RawMutex::try_lock(self)
            })
        }

        fn try_lock_until(&self, _: Instant) -> bool {
            self.try_lock_for(Duration::ZERO)
        }
    }

    /// A thread that waits for it wakes at any time, and looks again.
    #[derive(Default)]
    pub struct Condvar;

    impl Condvar {
        /// No thread waits yet.
        pub const fn new() -> Condvar {
            Condvar
        }

        /// Lets others have the lock for a moment.
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            MutexGuard::unlocked(guard, spin_loop);
        }

        /// Wakes the waiting threads.
        pub fn notify_all(&self) {
            point();
        }
    }

    /// See [`parking_lot::Mutex`].
    pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
    /// See [`parking_lot::MutexGuard`].
    pub type MutexGuard<'m, T> = lock_api::MutexGuard<'m, RawMutex, T>;

    /// Readers exclude each other as well, which rules out nothing that can happen to writers.
    #[derive(Default)]
    pub struct RwLock<T>(Mutex<T>);

    impl<T> RwLock<T> {
        pub fn new(value: T) -> RwLock<T> {
            RwLock(Mutex::new(value))
        }

        pub fn read(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }

        pub fn write(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
    }
}

#[cfg(feature = "explore")]
mod explored {
    #![allow(missing_docs)]

    use std::cell::Cell;
    use std::sync::atomic::Ordering;

    use super::order::{self, Access};

    /// The explorer's functions.
    #[derive(Clone, Copy)]
    pub struct Hooks {
        /// Called where another thread may go on.
        pub point: fn(),
        /// Called when another thread has to go on first.
        pub wait: fn(),
        /// Starts a thread.
        pub spawn: fn(Box<dyn FnOnce() + Send>),
        /// The number of the present thread.
        pub number: fn() -> usize,
    }

    thread_local! {
        static HOOKS: Cell<Option<Hooks>> = const { Cell::new(None) };
    }

    /// Sets the explorer's functions. Until then nothing is explored.
    pub fn set_hooks(hooks: Hooks) {
        HOOKS.set(Some(hooks));
        order::begin();
    }

    fn number() -> Option<usize> {
        HOOKS.get().map(|hooks| (hooks.number)())
    }

    /// The present thread does something at an atomic.
    pub(super) fn note<A>(atomic: &A, access: Access, order: Ordering) {
        order::note(number(), atomic, access, order);
    }

    /// A block is made, to be found by threads without a lock.
    pub(crate) fn note_made(block: u64) {
        order::note_made(number(), block);
    }

    /// A thread without the lock has found a block, and relies on what is in it.
    ///
    /// # Panics
    /// If the orderings do not promise that it sees what was put there.
    pub(crate) fn check_seen(block: u64) {
        order::check_seen(number(), block);
    }

    /// Where another thread may go on.
    pub fn point() {
        if let Some(hooks) = HOOKS.get() {
            (hooks.point)();
        }
    }

    /// One more turn of a loop that waits for another thread.
    pub fn spin_loop() {
        if let Some(hooks) = HOOKS.get() {
            (hooks.wait)();
        }
    }

    /// Memory is sequentially consistent here; `order` notes what the ordering promises.
    pub fn fence(order: Ordering) {
        point();
        order::note_fence(number(), order);
    }

    /// Threads of the explorer.
    pub mod thread {
        use std::io;
        use std::sync::Arc;
        use std::sync::atomic::Ordering;
        use std::time::Duration;

        use super::super::Mutex;
        use super::{AtomicBool, HOOKS, point, spin_loop};

        /// A thread, to be woken. A resting thread wakes by itself.
        #[derive(Clone)]
        pub struct Thread;

        impl Thread {
            /// Ends the thread's rest.
            pub fn unpark(&self) {
                point();
            }
        }

        /// The present thread.
        pub fn current() -> Thread {
            Thread
        }

        /// Rests until another thread wakes it, or for some time.
        pub fn park_timeout(_: Duration) {
            spin_loop();
        }

        /// Rests for some time.
        pub fn sleep(_: Duration) {
            spin_loop();
        }

        /// The result of a thread, and whether it has ended.
        struct Shared<T> {
            value: Mutex<Option<T>>,
            ended: AtomicBool,
        }

        /// See [`std::thread::JoinHandle`].
        pub struct JoinHandle<T>(Arc<Shared<T>>);

        impl<T> JoinHandle<T> {
            /// Waits until the thread has ended. A panic of it ends everything.
            pub fn join(self) -> std::thread::Result<T> {
                while !self.0.ended.load(Ordering::Acquire) {
                    spin_loop();
                }
                Ok(self.0.value.lock().take().expect("it has ended"))
            }

            /// The thread itself.
            pub fn thread(&self) -> &Thread {
                &Thread
            }
        }

        /// See [`std::thread::Builder`].
        #[derive(Default)]
        pub struct Builder;

        impl Builder {
            /// A thread without a name.
            pub fn new() -> Builder {
                Builder
            }

            /// Names make no difference.
            pub fn name(self, _: String) -> Builder {
                self
            }

            /// Starts a thread.
            ///
            /// # Errors
            /// There is no explorer.
            pub fn spawn<T: Send + 'static>(
                self,
                run: impl FnOnce() -> T + Send + 'static,
            ) -> io::Result<JoinHandle<T>> {
                let hooks = HOOKS.get().ok_or(io::ErrorKind::Unsupported)?;
                let shared =
                    Arc::new(Shared { value: Mutex::new(None), ended: AtomicBool::new(false) });
                let own = Arc::clone(&shared);
                (hooks.spawn)(Box::new(move || {
                    let value = run();
                    *own.value.lock() = Some(value);
                    own.ended.store(true, Ordering::Release);
                }));
                Ok(JoinHandle(shared))
            }
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, $($arithmetic:ident)*) => {
            #[derive(Default)]
            #[repr(transparent)]
            pub struct $name(std::sync::atomic::$name);

            #[allow(dead_code, reason = "each type has the same methods")]
            impl $name {
                pub const fn new(value: $value) -> $name {
                    $name(std::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    point();
                    note(self, Access::Load, order);
                    self.0.load(order)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    point();
                    note(self, Access::Store, order);
                    self.0.store(value, order);
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    point();
                    note(self, Access::Both, order);
                    self.0.swap(value, order)
                }

                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    let result = self.0.compare_exchange(current, new, success, failure);
                    match result {
                        Ok(_) => note(self, Access::Both, success),
                        Err(_) => note(self, Access::Load, failure),
                    }
                    result
                }

                $(pub fn $arithmetic(&self, value: $value, order: Ordering) -> $value {
                    point();
                    note(self, Access::Both, order);
                    self.0.$arithmetic(value, order)
                })*
            }
        };
    }

    atomic!(AtomicBool, bool, fetch_or fetch_and);
    atomic!(AtomicU8, u8,);
    atomic!(AtomicU32, u32, fetch_or fetch_and fetch_add fetch_sub fetch_max);
    atomic!(AtomicU64, u64, fetch_or fetch_and fetch_add fetch_sub fetch_max);
}
