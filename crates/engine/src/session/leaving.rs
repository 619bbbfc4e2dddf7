//! How far a move of slots to another server is, for whoever looks.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// What the source of a move does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Step {
    /// It connects, and the target makes room.
    Connects = 0,
    /// It waits for the right to read a cut.
    Waits = 1,
    /// It sends the data of the slots.
    Copies = 2,
    /// It sends what is written to them meanwhile.
    Follows = 3,
    /// It has clients of the slots wait, and sends the rest.
    Holds = 4,
}

impl Step {
    /// As INFO shows it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Connects => "connecting",
            Step::Waits => "waiting",
            Step::Copies => "copying",
            Step::Follows => "following",
            Step::Holds => "holding",
        }
    }
}

/// See the module's text. Times are milliseconds of the monotonic clock.
pub struct Leaving {
    /// The name of the move.
    pub id: String,
    /// How many slots move.
    pub slots: usize,
    /// Where they go, as `host:port`.
    pub to: String,
    begun_ms: u64,
    step: AtomicU8,
    /// How often the copy was begun.
    pub tries: AtomicU64,
    /// Keys that were in the slots when the copy was begun.
    pub keys: AtomicU64,
    /// Keys of them that were sent.
    pub keys_sent: AtomicU64,
    /// Bytes of the copy that were sent.
    pub bytes_sent: AtomicU64,
    /// Bytes that were sent of what is written meanwhile.
    pub journal_bytes: AtomicU64,
    copy_begun_ms: AtomicU64,
    copy_ended_ms: AtomicU64,
    /// When it has last come nearer to its end; 0: not yet.
    progressed_ms: AtomicU64,
    /// The target has nearly everything: what is written meanwhile brings it no nearer.
    is_near: AtomicBool,
    /// The fewest bytes of the journal that were left to send.
    least_left: AtomicU64,
    /// Why it has last begun anew; empty if it has not.
    trouble: Mutex<String>,
}

impl Leaving {
    /// A move that begins at this time.
    pub fn new(id: &str, slots: usize, to: String, now_ms: u64) -> Leaving {
        Leaving {
            id: id.to_owned(),
            slots,
            to,
            begun_ms: now_ms,
            step: AtomicU8::new(0),
            tries: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            keys_sent: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            journal_bytes: AtomicU64::new(0),
            copy_begun_ms: AtomicU64::new(0),
            copy_ended_ms: AtomicU64::new(0),
            progressed_ms: AtomicU64::new(0),
            is_near: AtomicBool::new(false),
            least_left: AtomicU64::new(u64::MAX),
            trouble: Mutex::default(),
        }
    }

    /// It begins anew for this reason.
    pub fn note_trouble(&self, why: &str) {
        why.clone_into(&mut self.trouble.lock());
    }

    /// Why it has last begun anew; empty if it has not.
    pub fn trouble(&self) -> String {
        self.trouble.lock().clone()
    }

    /// It begins, for the first time or anew.
    pub fn note_try(&self) {
        self.tries.fetch_add(1, Relaxed);
        self.note(Step::Connects);
        self.is_near.store(false, Relaxed);
        self.least_left.store(u64::MAX, Relaxed);
        for count in [
            &self.keys,
            &self.keys_sent,
            &self.bytes_sent,
            &self.journal_bytes,
            &self.copy_begun_ms,
            &self.copy_ended_ms,
        ] {
            count.store(0, Relaxed);
        }
    }

    /// What it does from now on.
    pub fn note(&self, step: Step) {
        self.step.store(step as u8, Relaxed);
    }

    /// The copy of so many keys begins.
    pub fn note_copy(&self, keys: u64, now_ms: u64) {
        self.keys.store(keys, Relaxed);
        self.copy_begun_ms.store(now_ms, Relaxed);
        self.note(Step::Copies);
    }

    /// All of it is sent.
    pub fn note_copied(&self, keys: u64, now_ms: u64) {
        self.keys_sent.store(keys, Relaxed);
        self.copy_ended_ms.store(now_ms, Relaxed);
        self.progressed_ms.store(now_ms, Relaxed);
        self.note(Step::Follows);
    }

    /// So many bytes of the copy were sent.
    pub fn note_sent(&self, bytes: u64, now_ms: u64) {
        self.bytes_sent.fetch_add(bytes, Relaxed);
        self.progressed_ms.store(now_ms, Relaxed);
    }

    /// So many bytes were sent of what is written meanwhile, and so many of the journal are left.
    /// The move has come nearer to its end if there were never fewer.
    pub fn note_followed(&self, bytes: u64, left: u64, now_ms: u64) {
        self.journal_bytes.fetch_add(bytes, Relaxed);
        let is_nearer = self.least_left.fetch_min(left, Relaxed) > left;
        if is_nearer && !self.is_near.load(Relaxed) {
            self.progressed_ms.store(now_ms, Relaxed);
        }
    }

    /// The target has nearly everything.
    pub fn note_near(&self, now_ms: u64) {
        if !self.is_near.swap(true, Relaxed) {
            self.progressed_ms.store(now_ms, Relaxed);
        }
    }

    /// When it has last come nearer to its end; 0: not yet.
    pub fn progressed_ms(&self) -> u64 {
        self.progressed_ms.load(Relaxed)
    }

    /// What it does.
    pub fn step(&self) -> Step {
        match self.step.load(Relaxed) {
            0 => Step::Connects,
            1 => Step::Waits,
            2 => Step::Copies,
            3 => Step::Follows,
            _ => Step::Holds,
        }
    }

    /// Bytes of the copy a second, on average.
    pub fn bytes_per_second(&self, now_ms: u64) -> u64 {
        let begun = self.copy_begun_ms.load(Relaxed);
        let ended = match self.copy_ended_ms.load(Relaxed) {
            0 => now_ms,
            ended => ended,
        };
        let passed = if begun == 0 { 0 } else { ended.saturating_sub(begun) };
        self.bytes_sent.load(Relaxed).saturating_mul(1000) / passed.max(1)
    }

    /// For how many seconds it has been under way.
    pub fn seconds(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.begun_ms) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_copy() {
        let own = Leaving::new("m", 3, "h:1".into(), 1000);
        own.note_try();
        assert_eq!((own.bytes_per_second(5000), own.seconds(5000)), (0, 4));
        own.note_copy(10, 5000);
        own.bytes_sent.store(8000, Relaxed);
        assert_eq!(own.bytes_per_second(7000), 4000);
        own.note_copied(10, 9000);
        assert_eq!((own.bytes_per_second(90_000), own.step()), (2000, Step::Follows));
        own.note_try();
        assert_eq!((own.bytes_per_second(90_000), own.step()), (0, Step::Connects));
        assert_eq!(own.tries.load(Relaxed), 2);
    }

    #[test]
    fn what_is_written_brings_a_move_no_nearer_that_has_caught_up() {
        let own = Leaving::new("m", 3, "h:1".into(), 1000);
        own.note_try();
        assert_eq!(own.progressed_ms(), 0);
        own.note_sent(5, 2000);
        own.note_copied(1, 3000);
        own.note_followed(5, 100, 4000);
        own.note_followed(5, 100, 4500);
        assert_eq!(own.progressed_ms(), 4000);
        own.note_near(5000);
        own.note_followed(5, 0, 6000);
        own.note_near(7000);
        assert_eq!((own.progressed_ms(), own.journal_bytes.load(Relaxed)), (5000, 15));
        own.note_try();
        own.note_followed(5, 100, 8000);
        assert_eq!(own.progressed_ms(), 8000);
    }
}
