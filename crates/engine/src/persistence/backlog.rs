//! The last part of the journal, in memory, for clients that follow it: CHANGES, and the change stream
//! of HTTP.
//!
//! A position in the journal is a history and an offset. The history stays the same as long as offsets
//! go on without a gap. A server that starts begins another history where the append-only file ends:
//! not everything that followers were told may have reached the disk, and this server knows nothing of
//! a position after the end of its history. The file notes in annotations where histories begin, so
//! that its content is kept here again after a start.
//!
//! Nothing is kept, and nothing put together, before a client follows for the first time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, OnceLock};

use base::limits;
use base::passing::Passing;
use base::size_class::good_size;
use store::sync::thread::{self, Thread};
use store::sync::{AtomicBool, AtomicU64, Mutex};

use super::batch::Batch;

/// The name of no history: after a gap, before another history has begun. No client follows from there.
const NO_HISTORY: &str = "none";

/// The effects of one command or transaction.
pub struct Record {
    /// The offset after them.
    pub end: u64,
    /// The effects.
    pub batch: Batch,
    /// Its bytes count while it is there, wherever that is.
    memory: Passing,
}

impl Record {
    /// A record of effects that the calling thread has just put together.
    pub fn new(end: u64, batch: Batch) -> Record {
        // The counts of references, and the record itself; its place in the backlog.
        let frame = good_size(size_of::<[usize; 2]>() + size_of::<Record>()) + size_of::<usize>();
        Record { end, memory: Passing::new(frame + batch.allocated()), batch }
    }
}

/// A place in the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The name of the history.
    pub history: String,
    /// Bytes of effects before it.
    pub offset: u64,
}

impl Position {
    /// Parses the form that [`Position`]'s `Display` writes.
    pub fn parse(text: &[u8]) -> Option<Position> {
        let text = std::str::from_utf8(text).ok()?;
        let (history, offset) = text.split_once(':')?;
        let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| is_number)?;
        // Positions occur in headers and in lines of events.
        let is_name =
            !history.is_empty() && history.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name.then(|| Position { history: history.to_owned(), offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.history, self.offset)
    }
}

/// From where a client wants to follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Since {
    /// From now on.
    Now,
    /// From the oldest that is kept.
    Oldest,
    /// After this.
    Position(Position),
}

/// The requested part is not kept, or never was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The oldest position from which one can follow.
    pub oldest: String,
    /// The present one.
    pub newest: String,
}

impl fmt::Display for Gone {
    /// An error reply, without the dash before it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "GONE oldest={} newest={} what follows that position is not kept: read the keys anew, and \
             follow from newest",
            self.oldest, self.newest
        )
    }
}

/// The offset at which a history begins.
#[derive(Clone, Debug)]
struct History {
    name: String,
    from: u64,
}

#[derive(Default)]
struct Kept {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    /// The offset before the first record.
    start: u64,
    /// The offset after the last.
    end: u64,
    /// The oldest first; where one begins, the one before ends.
    histories: VecDeque<History>,
    /// The content came from a file, and the journal does not go on from there yet.
    loaded: bool,
    /// Some history has begun in this process.
    named: bool,
}

/// See the module's text.
pub struct Backlog {
    on: AtomicBool,
    /// Bytes that are kept.
    limit: AtomicU64,
    /// When a client followed last, in milliseconds of the steady clock.
    used_at: AtomicU64,
    kept: Mutex<Kept>,
    /// The thread that tells followers, while it has nothing to do.
    resting: AtomicBool,
    teller: OnceLock<Thread>,
}

impl Default for Backlog {
    /// One that keeps nothing yet.
    fn default() -> Backlog {
        Backlog {
            on: AtomicBool::new(false),
            limit: AtomicU64::new(limits::DEFAULT_CHANGES_BACKLOG),
            used_at: AtomicU64::new(0),
            kept: Mutex::default(),
            resting: AtomicBool::new(false),
            teller: OnceLock::new(),
        }
    }
}

impl Backlog {
    /// Whether a history has begun here before: the next one needs another name.
    pub fn has_histories(&self) -> bool {
        self.kept.lock().named
    }

    /// Whether anything is kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// How much is kept, in bytes.
    pub fn set_limit(&self, bytes: u64) {
        if self.limit.swap(bytes, Relaxed) != bytes {
            self.kept.lock().shorten(bytes);
        }
    }

    /// Notes that a client follows.
    pub fn note_use(&self, steady: u64) {
        self.used_at.store(steady, Relaxed);
    }

    /// For how many milliseconds no client has followed.
    pub fn unused_for(&self, steady: u64) -> u64 {
        steady.saturating_sub(self.used_at.load(Relaxed))
    }

    // ---- What the journal says ------------------------------------------------------------------

    /// Begins to keep effects after this offset. With a gap before it, or for the first time, a history
    /// of this name begins. Returns what to note in the file.
    pub fn begin(&self, end: u64, name: String) -> Option<Position> {
        let mut kept = self.kept.lock();
        if !self.on.swap(true, Relaxed) {
            (kept.start, kept.end) = (end, end);
        }
        if !kept.histories.is_empty() {
            return None;
        }
        kept.begin_history(name, end);
        kept.current(end)
    }

    /// Stops keeping effects. The history goes on if offsets do.
    pub fn end(&self, goes_on: bool) {
        let mut kept = self.kept.lock();
        self.on.store(false, Relaxed);
        kept.clear();
        if !goes_on {
            kept.histories.clear();
        }
    }

    /// The next effects do not follow the earlier ones.
    pub fn break_off(&self) {
        let mut kept = self.kept.lock();
        kept.clear();
        kept.histories.clear();
    }

    /// The journal begins another series of files at this offset, with data of its own. If the present
    /// history was broken off or loaded, one of this name follows.
    pub fn begin_series(&self, end: u64, name: String) {
        let mut kept = self.kept.lock();
        let loaded = std::mem::take(&mut kept.loaded);
        if (self.is_on() && kept.histories.is_empty()) || loaded {
            if kept.records.is_empty() {
                (kept.start, kept.end) = (end, end);
            }
            kept.begin_history(name, end);
        }
    }

    /// The offset at which the journal goes on after its end was loaded from a file.
    pub fn loaded_end(&self) -> Option<u64> {
        let kept = self.kept.lock();
        kept.loaded.then_some(kept.end)
    }

    /// The present history, at an offset: a file notes it at its beginning.
    pub fn current(&self, end: u64) -> Option<Position> {
        self.kept.lock().current(end)
    }

    /// Keeps appended effects. Must be called in the order of the journal.
    #[inline]
    pub fn push(&self, record: Arc<Record>) {
        let mut kept = self.kept.lock();
        kept.push(record);
        kept.shorten(self.limit.load(Relaxed));
    }

    // ---- What a file says -----------------------------------------------------------------------

    /// Notes a line of a file: a history begins, or goes on, at an offset.
    pub fn load_history(&self, position: Position) {
        let mut kept = self.kept.lock();
        if !kept.loaded || kept.end != position.offset {
            kept.clear();
            kept.histories.clear();
            (kept.start, kept.end) = (position.offset, position.offset);
        }
        kept.loaded = true;
        if kept.histories.back().is_none_or(|last| last.name != position.history) {
            kept.begin_history(position.history, position.offset);
        }
        self.on.store(true, Relaxed);
    }

    /// The next effects have no known position in a file, so the loaded ones are dropped.
    pub fn forget_loaded(&self) {
        let mut kept = self.kept.lock();
        if std::mem::take(&mut kept.loaded) {
            kept.clear();
            kept.histories.clear();
            self.on.store(false, Relaxed);
        }
    }

    // ---- Those who follow -----------------------------------------------------------------------

    /// The offset after everything that was kept.
    pub fn newest(&self) -> u64 {
        self.kept.lock().end
    }

    /// The offset before the oldest that is kept.
    pub fn oldest(&self) -> u64 {
        self.kept.lock().start
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    /// The error for a client whose next changes are not kept any more.
    pub fn gone(&self, shown: u64) -> Gone {
        let kept = self.kept.lock();
        kept.gone(shown.min(kept.end))
    }

    /// The position of an offset.
    pub fn position(&self, offset: u64) -> String {
        self.kept.lock().position(offset)
    }

    /// The offset from which to follow. Effects after `shown` may not be seen yet.
    ///
    /// # Errors
    /// It is not kept.
    pub fn resolve(&self, since: &Since, shown: u64) -> Result<u64, Gone> {
        let kept = self.kept.lock();
        let now = shown.min(kept.end).max(kept.start);
        match since {
            Since::Now => Ok(now),
            Since::Oldest => Ok(kept.start),
            Since::Position(position) => {
                let Some(end) = kept.end_of(position) else { return Err(kept.gone(now)) };
                let known = (kept.start..=end).contains(&position.offset);
                known.then_some(position.offset).ok_or_else(|| kept.gone(now))
            }
        }
    }

    /// Reads the records after an offset, `count` at most, none after `shown`.
    ///
    /// # Errors
    /// It is not kept any more.
    pub fn read(&self, from: u64, shown: u64, count: usize) -> Result<Vec<Arc<Record>>, Gone> {
        let kept = self.kept.lock();
        if from < kept.start {
            return Err(kept.gone(shown.min(kept.end)));
        }
        let first = kept.records.partition_point(|record| record.end <= from);
        let records = kept.records.range(first..).take(count);
        Ok(records.take_while(|record| record.end <= shown).map(Arc::clone).collect())
    }

    // ---- Who tells them -------------------------------------------------------------------------

    /// Has the thread that tells followers look at the appended effects. Costs next to nothing while
    /// that thread is busy.
    #[inline]
    pub fn wake(&self) {
        if self.resting.load(SeqCst) && self.resting.swap(false, SeqCst) {
            self.teller.get().inspect(|teller| teller.unpark());
        }
    }

    /// Lets the calling thread rest until there is something to tell, `longest` at most. It does not
    /// rest when there is something after `seen`, the end of the journal when it looked last.
    pub fn rest(&self, seen: u64, longest: std::time::Duration) {
        self.teller.get_or_init(thread::current);
        self.resting.store(true, SeqCst);
        // A thread that appends after this look finds the thread resting.
        if self.kept.lock().end <= seen {
            thread::park_timeout(longest);
        }
        self.resting.store(false, SeqCst);
    }
}

impl Kept {
    fn push(&mut self, record: Arc<Record>) {
        self.end = record.end;
        self.bytes += record.memory.bytes();
        self.records.push_back(record);
    }

    /// Drops the oldest effects until at most this many bytes are kept. The newest batch stays, however
    /// large it is, so that clients that keep up hear of it.
    fn shorten(&mut self, limit: u64) {
        while self.bytes as u64 > limit
            && self.records.len() > 1
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= oldest.memory.bytes();
            self.start = oldest.end;
        }
        while self.histories.get(1).is_some_and(|next| next.from < self.start) {
            self.histories.pop_front();
        }
    }

    fn clear(&mut self) {
        self.records = VecDeque::new();
        self.bytes = 0;
        self.start = self.end;
    }

    fn begin_history(&mut self, name: String, from: u64) {
        self.named = true;
        self.histories.push_back(History { name, from });
        if self.histories.len() > limits::CHANGES_HISTORIES {
            self.histories.pop_front();
        }
    }

    fn current(&self, offset: u64) -> Option<Position> {
        let last = self.histories.back()?;
        Some(Position { history: last.name.clone(), offset })
    }

    fn position(&self, offset: u64) -> String {
        let own = self.histories.iter().rev().find(|history| history.from <= offset);
        let history = own.or(self.histories.front()).map_or(NO_HISTORY, |history| &history.name);
        Position { history: history.to_owned(), offset }.to_string()
    }

    /// Where the history of a position ends, if this server knows that history.
    fn end_of(&self, position: &Position) -> Option<u64> {
        let at = self.histories.iter().position(|own| own.name == position.history)?;
        if position.offset < self.histories[at].from {
            return None;
        }
        Some(self.histories.get(at + 1).map_or(self.end, |next| next.from))
    }

    fn gone(&self, now: u64) -> Gone {
        Gone { oldest: self.position(self.start), newest: self.position(now.max(self.start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(end: u64, value: &str) -> Arc<Record> {
        let mut batch = Batch::default();
        batch.push(0, [&b"SET"[..], b"k", value.as_bytes()].into_iter());
        Arc::new(Record::new(end, batch))
    }

    fn at(history: &str, offset: u64) -> Since {
        Since::Position(Position { history: history.into(), offset })
    }

    fn ends(records: &[Arc<Record>]) -> Vec<u64> {
        records.iter().map(|record| record.end).collect()
    }

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position { history: "ab12".into(), offset: 7 };
        assert_eq!(Position::parse(position.to_string().as_bytes()), Some(position));
        let long = "a:99999999999999999999";
        for wrong in ["", ":", "a:", ":1", "a:-1", "a:+1", "a:1x", "a\r\nX: y:1", "a b:1", long] {
            assert_eq!(Position::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn one_follows_from_every_position_that_is_kept() {
        let backlog = Backlog::default();
        assert_eq!(backlog.begin(100, "a".into()).unwrap().to_string(), "a:100");
        (1..=5).for_each(|n| backlog.push(record(100 + 10 * n, "x")));
        assert_eq!(backlog.resolve(&Since::Now, u64::MAX), Ok(150));
        assert_eq!(backlog.resolve(&Since::Now, 130), Ok(130), "no more than may be seen");
        assert_eq!(backlog.resolve(&Since::Oldest, u64::MAX), Ok(100));
        assert_eq!(backlog.resolve(&at("a", 120), u64::MAX), Ok(120));
        assert_eq!(ends(&backlog.read(120, u64::MAX, 10).unwrap()), [130, 140, 150]);
        assert_eq!(ends(&backlog.read(120, 140, 10).unwrap()), [130, 140]);
        assert_eq!(ends(&backlog.read(100, u64::MAX, 2).unwrap()), [110, 120]);
        for gone in [at("a", 99), at("a", 151), at("b", 120)] {
            let told = Gone { oldest: "a:100".into(), newest: "a:150".into() };
            assert_eq!(backlog.resolve(&gone, u64::MAX), Err(told));
        }
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let backlog = Backlog::default();
        backlog.begin(0, "a".into());
        (1..=100).for_each(|n| backlog.push(record(n, &"x".repeat(1000))));
        backlog.set_limit(10_000);
        let oldest = backlog.oldest();
        assert!((85..95).contains(&oldest), "{oldest}");
        assert!(backlog.read(oldest - 1, u64::MAX, 1).is_err());
        assert_eq!(ends(&backlog.read(oldest, u64::MAX, 1).unwrap()), [oldest + 1]);
        backlog.push(record(101, &"x".repeat(100_000)));
        assert_eq!((backlog.oldest(), backlog.newest()), (100, 101), "the newest stays");
    }

    #[test]
    fn a_start_begins_a_history_where_the_file_ends() {
        let backlog = Backlog::default();
        backlog.load_history(Position { history: "a".into(), offset: 50 });
        backlog.push(record(60, "x"));
        backlog.load_history(Position { history: "a".into(), offset: 60 });
        backlog.push(record(70, "x"));
        assert_eq!(backlog.loaded_end(), Some(70));
        backlog.begin_series(70, "b".into());
        assert_eq!(backlog.loaded_end(), None);
        assert_eq!(backlog.current(70).unwrap().to_string(), "b:70");
        backlog.push(record(80, "x"));
        assert_eq!(backlog.resolve(&at("a", 60), u64::MAX), Ok(60));
        assert_eq!(backlog.resolve(&at("a", 70), u64::MAX), Ok(70));
        assert!(backlog.resolve(&at("a", 71), u64::MAX).is_err(), "the disk has lost that");
        assert_eq!(backlog.resolve(&at("b", 80), u64::MAX), Ok(80));
        assert!(backlog.resolve(&at("b", 69), u64::MAX).is_err(), "there was no such position");
        assert_eq!((backlog.position(69), backlog.position(70)), ("a:69".into(), "b:70".into()));
    }

    #[test]
    fn behind_a_gap_there_is_another_history() {
        let backlog = Backlog::default();
        backlog.begin(0, "a".into());
        backlog.push(record(10, "x"));
        backlog.break_off();
        assert!(backlog.resolve(&at("a", 10), u64::MAX).is_err());
        let none =
            Position::parse(backlog.position(10).as_bytes()).expect("a position like others");
        assert!(backlog.resolve(&Since::Position(none), u64::MAX).is_err());
        backlog.begin_series(20, "b".into());
        backlog.push(record(30, "x"));
        assert_eq!(backlog.resolve(&at("b", 20), u64::MAX), Ok(20));
        backlog.end(true);
        assert_eq!(backlog.begin(40, "c".into()), None, "offsets have gone on");
        assert!(backlog.resolve(&at("b", 30), u64::MAX).is_err(), "nothing was kept meanwhile");
        assert_eq!(backlog.resolve(&at("b", 40), u64::MAX), Ok(40));
        backlog.end(false);
        assert_eq!(backlog.begin(40, "c".into()).unwrap().to_string(), "c:40");
    }
}
