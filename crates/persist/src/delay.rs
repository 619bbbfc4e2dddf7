//! Waiting after each key that is saved or loaded: `rdb-key-save-delay` and `key-load-delay`. With
//! them tests make a save or a load of little data take as long as they need.

use std::time::{Duration, Instant};

/// The shortest wait: a shorter sleep takes about as long anyway.
const GRAIN: Duration = Duration::from_micros(100);
/// How long it sleeps before it looks at the setting again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Keys whose waiting time is not over yet.
#[derive(Default)]
pub(super) struct Delay {
    keys: u64,
}

impl Delay {
    /// Waits for this many more keys. `per_key` is the setting, which may change meanwhile:
    /// microseconds to wait after each key; -N waits one microsecond per N keys. Returns `false` at
    /// once when `go_on` does.
    pub(super) fn wait(
        &mut self,
        keys: u64,
        per_key: impl Fn() -> i32,
        mut go_on: impl FnMut() -> bool,
    ) -> bool {
        self.keys += keys;
        let begun = Instant::now();
        let whole = || total(self.keys, per_key());
        if whole() < GRAIN {
            // Time without a delay leaves nothing to make up for when one is set.
            self.keys = if per_key() == 0 { 0 } else { self.keys };
            return true;
        }
        while let Some(left) = whole().checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if !go_on() {
                return false;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        self.keys = 0;
        true
    }
}

fn total(keys: u64, per_key: i32) -> Duration {
    let nanoseconds = match per_key {
        0 => 0,
        1.. => keys.saturating_mul(u64::from(per_key.unsigned_abs()) * 1000),
        _ => keys.saturating_mul(1000) / u64::from(per_key.unsigned_abs()),
    };
    Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_settings() {
        assert_eq!(total(1000, 0), Duration::ZERO);
        assert_eq!(total(10, 25), Duration::from_micros(250));
        assert_eq!(total(3000, -10), Duration::from_micros(300));
        assert_eq!(total(u64::MAX, i32::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(total(u64::MAX, i32::MIN), Duration::from_nanos(u64::MAX / (1 << 31)));
    }

    #[test]
    fn it_waits_for_all_keys_and_not_when_told_to_stop() {
        let mut delay = Delay::default();
        let begun = Instant::now();
        assert!((0..100).all(|_| delay.wait(1, || 30, || true)));
        // Up to the grain may still be owed.
        assert!(begun.elapsed() >= Duration::from_micros(2800), "{:?}", begun.elapsed());
        assert!(!delay.wait(1, || i32::MAX, || false));
        let looks = std::cell::Cell::new(0);
        let changing = || if looks.replace(looks.get() + 1) < 2 { i32::MAX } else { 0 };
        assert!(delay.wait(1, changing, || true), "a setting that changes counts at once");
    }
}
