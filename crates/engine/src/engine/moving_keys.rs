//! Keys that are on their way to another server: MIGRATE holds them, and commands that would change
//! them wait.
//!
//! The names count in all databases, because a transaction may select another one. What changes a
//! key without naming it is not kept away: FLUSHALL, SWAPDB, a script that has not declared the
//! key, eviction, expiry. So MIGRATE also looks at the version of a key before it deletes the key.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use resp::args::Arguments;

/// See the module's text.
#[derive(Default)]
pub struct HeldKeys {
    /// How many there are: the only field to look at while there are none.
    count: AtomicUsize,
    names: Mutex<HashSet<Box<[u8]>>>,
}

impl HeldKeys {
    /// Holds all of these keys, if nobody holds one of them. Returns whether it does. A thread that
    /// was in its gate before may not know it yet.
    pub fn hold(&self, keys: Arguments<'_>) -> bool {
        let mut names = self.names.lock();
        if keys.iter().any(|key| names.contains(key)) {
            return false;
        }
        names.extend(keys.iter().map(Box::from));
        self.count.store(names.len(), Relaxed);
        true
    }

    /// Lets go of keys that [`HeldKeys::hold`] holds.
    pub fn release(&self, keys: Arguments<'_>) {
        let mut names = self.names.lock();
        for key in keys.iter() {
            names.remove(key);
        }
        self.count.store(names.len(), Relaxed);
    }

    /// Whether any key is held.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Whether one of these keys is held.
    pub fn have_any<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>) -> bool {
        let names = self.names.lock();
        keys.any(|key| names.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::args::OwnedArguments;

    #[test]
    fn keys_are_held_together_or_not_at_all() {
        let own = HeldKeys::default();
        let [one, two]: [OwnedArguments; 2] =
            [["a", "b", "a"], ["b", "c", "d"]].map(|keys| keys.iter().collect());
        assert!(own.hold(one.view()) && !own.hold(two.view()));
        assert!(own.have_any([&b"b"[..]].into_iter()) && !own.have_any([&b"c"[..]].into_iter()));
        own.release(one.view());
        assert!(!own.are_any() && own.hold(two.view()) && own.are_any());
    }
}
