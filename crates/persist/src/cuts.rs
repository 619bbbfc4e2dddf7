//! The right to read a cut. A snapshot and a rewrite of the append-only file both read one, and one
//! cut is read at a time, so they ask here first.
//!
//! The right is a value: its owner may begin a cut, and dropping it lets the next cut begin. A
//! [`Walker`] borrows the right, so no cut outlives it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use engine::engine::Engine;
use engine::session::attachment::Attachment;
use parking_lot::{Condvar, Mutex};
use store::SlotSet;
use store::cut::Walker;
use store::gate::StoppedWorld;

use process::thread;

/// Copies that wait to be written may take this share of the data's memory before writers have to
/// wait.
const BORNE_SHARE: usize = 4;

/// What a cut is read for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// An RDB file.
    Snapshot,
    /// The base of an append-only file.
    Rewrite,
    /// A copy for replicas.
    Replicas,
    /// Some slots for another server.
    Slots,
    /// Nothing: the server stops, and no cut is read any more.
    Nothing,
}

/// Why the right is recalled, so that a snapshot that is being written is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Recall {
    /// Other data takes the place of the present data: that of a primary.
    OtherData = 1,
    /// The server is about to stop. It counts more than the other reason.
    Stop = 2,
}

impl Recall {
    /// In words for the log.
    pub fn words(self) -> &'static str {
        match self {
            Recall::Stop => "the server is about to stop",
            Recall::OtherData => "the data of the primary takes the place of its data",
        }
    }
}

/// See the module's text.
#[derive(Default)]
pub struct Cuts {
    /// What the right is in use for.
    reader: Mutex<Option<Reader>>,
    given_back: Condvar,
    /// Why the right is recalled, as [`Recall`]; 0 if it is not.
    recalled: AtomicU8,
}

impl Cuts {
    /// Takes the right if nothing uses it.
    ///
    /// # Errors
    /// What uses it.
    pub fn try_take(self: &Arc<Self>, reader: Reader) -> Result<CutRight, Reader> {
        let mut present = self.reader.lock();
        match *present {
            Some(other) => Err(other),
            None => {
                *present = Some(reader);
                Ok(CutRight { cuts: Arc::clone(self), given_back: false })
            }
        }
    }

    /// Waits for the right. Returns none when the server stops.
    pub fn take(self: &Arc<Self>, reader: Reader) -> Option<CutRight> {
        let mut present = self.reader.lock();
        while let Some(other) = *present {
            if other == Reader::Nothing {
                return None;
            }
            self.given_back.wait(&mut present);
        }
        *present = Some(reader);
        // Those that wait for it wait in vain from now on.
        if reader == Reader::Nothing {
            self.given_back.notify_all();
        }
        Some(CutRight { cuts: Arc::clone(self), given_back: false })
    }

    /// Recalls the right and waits for it: a snapshot that is being written is given up. A rewrite
    /// ends for reasons of its own. Returns none when the server stops.
    pub fn take_at_once(self: &Arc<Self>, reader: Reader, why: Recall) -> Option<CutRight> {
        self.recall(why);
        let right = self.take(reader);
        // What somebody else recalls it for stays.
        let _ = self.recalled.compare_exchange(why as u8, 0, Ordering::Relaxed, Ordering::Relaxed);
        right
    }

    /// Recalls the right without waiting for it: no snapshot comes to its end from now on.
    pub fn recall(&self, why: Recall) {
        self.recalled.fetch_max(why as u8, Ordering::Relaxed);
    }

    /// Ends [`Cuts::recall`].
    pub fn go_on(&self) {
        self.recalled.store(0, Ordering::Relaxed);
    }

    /// Recalls the right for good: the server stops.
    pub fn end(self: &Arc<Self>) {
        if let Some(mut right) = self.take_at_once(Reader::Nothing, Recall::Stop) {
            right.given_back = true;
        }
    }

    /// Whether the right is recalled.
    pub fn is_recalled(&self) -> bool {
        self.recalled().is_some()
    }

    /// Why the right is recalled, if it is.
    pub fn recalled(&self) -> Option<Recall> {
        let all = [Recall::OtherData, Recall::Stop];
        let recalled = self.recalled.load(Ordering::Relaxed);
        all.into_iter().find(|why| *why as u8 == recalled)
    }

    /// Whether anything uses the right.
    pub fn is_taken(&self) -> bool {
        self.reader.lock().is_some()
    }
}

/// The right to read a cut. Dropping it gives it back.
#[must_use]
pub struct CutRight {
    cuts: Arc<Cuts>,
    /// Dropping it does nothing more.
    given_back: bool,
}

impl CutRight {
    /// Begins a cut: the data, and the libraries of functions, as they are now.
    pub fn begin<'c>(
        &'c self,
        engine: &'c Engine,
        stopped: &StoppedWorld<'_>,
    ) -> Walker<'c, Attachment> {
        let walker = engine.keyspace.begin_cut(stopped, base::clock::now_us());
        let walker = walker.expect("only one thread has the right, and no cut outlives it");
        walker.bear(engine.host.used_memory() / BORNE_SHARE);
        engine.scripts.functions.note_cut();
        walker
    }

    /// Begins a cut of the data of some slots.
    pub fn begin_slots<'c>(
        &'c self,
        engine: &'c Engine,
        stopped: &StoppedWorld<'_>,
        slots: SlotSet,
    ) -> Walker<'c, Attachment> {
        let walker = engine.keyspace.begin_cut_of(stopped, base::clock::now_us(), Some(slots));
        let walker = walker.expect("only one thread has the right, and no cut outlives it");
        walker.bear(engine.host.used_memory() / BORNE_SHARE);
        walker
    }

    /// Whether [`Cuts::take_at_once`] waits for it.
    pub fn is_recalled(&self) -> bool {
        self.cuts.is_recalled()
    }

    /// Why, if so.
    pub fn recalled(&self) -> Option<Recall> {
        self.cuts.recalled()
    }

    /// Gives it back. No thread sees the changes of `note` and still finds the right in use.
    pub fn give_back<T>(mut self, note: impl FnOnce() -> T) -> T {
        self.release(note)
    }

    fn release<T>(&mut self, note: impl FnOnce() -> T) -> T {
        let mut reader = self.cuts.reader.lock();
        let noted = note();
        *reader = None;
        self.given_back = true;
        self.cuts.given_back.notify_all();
        noted
    }
}

impl Drop for CutRight {
    fn drop(&mut self) {
        if !self.given_back {
            self.release(|| ());
        }
    }
}

/// Starts a thread that does `work` with `burden`, such as a right.
///
/// # Errors
/// The system provides no thread. The burden comes back.
pub fn spawn<T: Send + 'static>(
    name: &str,
    burden: T,
    work: impl FnOnce(T) + Send + 'static,
) -> Result<(), (io::Error, T)> {
    let burden = Arc::new(Mutex::new(Some(burden)));
    let carried = Arc::clone(&burden);
    let take = |burden: &Mutex<Option<T>>| burden.lock().take().expect("it is taken once");
    let spawned = thread::start(name, move || {
        process::memory::publish();
        work(take(&carried));
    });
    spawned.map(drop).map_err(|error| (error, take(&burden)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reader_at_a_time_has_the_right() {
        let cuts = Arc::new(Cuts::default());
        let right = cuts.try_take(Reader::Snapshot).ok().unwrap();
        assert_eq!(cuts.try_take(Reader::Rewrite).err(), Some(Reader::Snapshot));
        let taken_when_noted = right.give_back(|| cuts.reader.is_locked());
        assert!(taken_when_noted && !cuts.is_taken());
        assert!(cuts.take(Reader::Rewrite).is_some());
        assert!(!cuts.is_taken());
    }

    #[test]
    fn a_recalled_right_is_waited_for() {
        let cuts = Arc::new(Cuts::default());
        let right = cuts.take(Reader::Snapshot).unwrap();
        let other = Arc::clone(&cuts);
        let thread = std::thread::spawn(move || other.end());
        while !right.is_recalled() {
            std::thread::yield_now();
        }
        assert_eq!(right.recalled(), Some(Recall::Stop));
        drop(right);
        thread.join().unwrap();
        assert_eq!(cuts.try_take(Reader::Snapshot).err(), Some(Reader::Nothing));
        assert_eq!(cuts.recalled(), None);
    }

    #[test]
    fn nobody_waits_for_the_right_when_the_server_stops() {
        let cuts = Arc::new(Cuts::default());
        let right = cuts.take(Reader::Snapshot).unwrap();
        let waits = |reader| {
            let cuts = Arc::clone(&cuts);
            std::thread::spawn(move || cuts.take_at_once(reader, Recall::OtherData).is_none())
        };
        let early = waits(Reader::Replicas);
        let other = Arc::clone(&cuts);
        let end = std::thread::spawn(move || other.end());
        while right.recalled() != Some(Recall::Stop) {
            std::thread::yield_now();
        }
        drop(right);
        // The one that waits may be given the right before the end is.
        early.join().unwrap();
        end.join().unwrap();
        assert!(waits(Reader::Snapshot).join().unwrap());
        cuts.end();
    }

    #[test]
    fn a_thread_gets_the_right() {
        let cuts = Arc::new(Cuts::default());
        let right = cuts.take(Reader::Snapshot).unwrap();
        assert!(spawn("test", right, drop).is_ok());
        assert!(cuts.take(Reader::Rewrite).is_some());
    }
}
