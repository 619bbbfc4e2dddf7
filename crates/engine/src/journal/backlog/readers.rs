//! Those who read the backlog, and rest while there is nothing new.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use store::sync::thread;
use store::sync::{AtomicBool, Mutex, fence};

/// One of them.
pub struct Reader {
    resting: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// See the module's text.
pub(super) struct Readers {
    all: Mutex<Vec<Arc<Reader>>>,
    /// One of them rests.
    resting: AtomicBool,
    /// The one of the thread that tells followers.
    publisher: OnceLock<Arc<Reader>>,
}

impl Default for Readers {
    fn default() -> Readers {
        Readers {
            all: Mutex::default(),
            resting: AtomicBool::new(false),
            publisher: OnceLock::new(),
        }
    }
}

impl Readers {
    /// Adds one.
    pub(super) fn add(&self, wake: Box<dyn Fn() + Send + Sync>) -> Arc<Reader> {
        let reader = Arc::new(Reader { resting: AtomicBool::new(false), wake });
        self.all.lock().push(Arc::clone(&reader));
        reader
    }

    /// Removes one.
    pub(super) fn remove(&self, reader: &Arc<Reader>) {
        self.all.lock().retain(|own| !Arc::ptr_eq(own, reader));
    }

    /// Lets a reader be woken, once, unless there is something for it already. Returns whether it
    /// rests.
    pub(super) fn begin_rest(&self, reader: &Reader, there_is_more: impl FnOnce() -> bool) -> bool {
        reader.resting.store(true, SeqCst);
        self.resting.store(true, SeqCst);
        // A thread that publishes after this look finds the reader resting: see `wake`.
        fence(SeqCst);
        let rests = !there_is_more();
        if !rests {
            reader.resting.store(false, SeqCst);
        }
        rests
    }

    /// Wakes those that rest.
    #[inline]
    pub(super) fn wake(&self) {
        // After what was published: a reader that does not see that is seen resting here.
        fence(SeqCst);
        if self.resting.load(Relaxed) {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        if self.resting.swap(false, SeqCst) {
            for reader in &*self.all.lock() {
                if reader.resting.swap(false, SeqCst) {
                    (reader.wake)();
                }
            }
        }
    }

    /// Lets the calling thread, which tells followers, rest for this long at most, unless there is
    /// something for it already.
    pub(super) fn rest(&self, longest: Duration, there_is_more: impl FnOnce() -> bool) {
        let reader = self.publisher.get_or_init(|| {
            let publisher = thread::current();
            self.add(Box::new(move || publisher.unpark()))
        });
        if self.begin_rest(reader, there_is_more) {
            thread::park_timeout(longest);
            reader.resting.store(false, SeqCst);
        }
    }
}
