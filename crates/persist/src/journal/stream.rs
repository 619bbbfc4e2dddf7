//! The stream itself: effects in one order, each with an offset, for a file and for followers.
//!
//! The queue encodes it, and knows whether there is a file. What becomes of the file changes
//! nothing in the stream. Followers read the backlog, with or without a file.

use std::sync::atomic::Ordering;

use engine::journal::EffectBatch;
use engine::journal::backlog::{Backlog, Position};
use store::sync::{AtomicBool, AtomicU64, Mutex};

use super::queue::{Opened, Queue};

/// See the module's text.
#[derive(Default)]
pub(super) struct Stream {
    /// What waits for the file. Its lock orders the stream.
    pub(super) queue: Mutex<Queue>,
    /// The offset after everything. Written with the queue locked.
    appended: AtomicU64,
    /// The part that is kept for followers.
    pub(super) backlog: Backlog,
    /// Whether the file says when things happened.
    timestamps: AtomicBool,
}

impl Stream {
    /// Appends a batch: see [`super::ServerJournal`].
    #[inline]
    pub(super) fn append(&self, batch: &EffectBatch) -> u64 {
        let second = self.second();
        let mut queue = self.queue.lock();
        let offset = queue.append(batch, second, &self.backlog);
        self.appended.store(offset, Ordering::Relaxed);
        offset
    }

    /// Writes a batch into the file alone. Returns the end of the stream.
    pub(super) fn append_beside(&self, batch: &EffectBatch) -> u64 {
        let mut queue = self.queue.lock();
        queue.append_beside(batch);
        queue.end()
    }

    /// Appends whole effects of another server's stream, or a command or transaction of it that
    /// this server does not know.
    pub(super) fn append_raw(
        &self,
        bytes: &[u8],
        selected_after: Option<usize>,
        is_unknown: bool,
    ) -> u64 {
        let second = self.second();
        let mut queue = self.queue.lock();
        if is_unknown {
            queue.note_unknown(second, &self.backlog);
        }
        let offset = queue.append_raw(bytes, selected_after, second, &self.backlog);
        self.appended.store(offset, Ordering::Relaxed);
        offset
    }

    /// Lets the file say what time it is before the next effects.
    pub(super) fn note_time(&self) {
        self.queue.lock().note_time(now_seconds());
    }

    /// Appends commands that the file does not get.
    pub(super) fn append_messages(&self, bytes: &[u8]) {
        let mut queue = self.queue.lock();
        let offset = queue.append_messages(bytes, &self.backlog);
        self.appended.store(offset, Ordering::Relaxed);
    }

    /// The time for the file, if it wants it.
    #[inline]
    fn second(&self) -> Option<u64> {
        let annotate = self.timestamps.load(Ordering::Relaxed);
        annotate.then(now_seconds)
    }

    /// Begins a series of files. `started` is called with the queue locked, before anything
    /// changes. Returns the offset at which the file begins.
    pub(super) fn begin_file(&self, opened: Opened, started: impl FnOnce()) -> u64 {
        let mut queue = self.queue.lock();
        started();
        // Offsets go on from the end of the loaded file.
        if let Some((end, selected)) = self.backlog.loaded_end() {
            queue.go_on_from(end, selected);
            self.appended.store(end, Ordering::Relaxed);
        }
        self.backlog.begin_series(queue.end(), engine::engine::random_id());
        let offset = queue.begin(opened);
        self.note_history(&mut queue);
        offset
    }

    /// Goes on in another file. Returns the offset at which it begins.
    pub(super) fn rotate(&self, opened: Opened) -> u64 {
        let mut queue = self.queue.lock();
        let offset = queue.rotate(opened);
        self.note_history(&mut queue);
        offset
    }

    /// Ends the series of files. Returns the offset after it.
    pub(super) fn end_file(&self) -> u64 {
        let mut queue = self.queue.lock();
        if !self.backlog.is_on() {
            // Nothing counts what is written from now on.
            self.backlog.end(false);
        }
        queue.finish()
    }

    /// Notes at the beginning of a file which history goes on there, if there can be followers.
    fn note_history(&self, queue: &mut Queue) {
        if let Some(position) = self.backlog.current(queue.end()) {
            queue.note_history(&position);
        }
    }

    /// Begins to keep effects for followers, in a history of this name unless an earlier one goes
    /// on.
    pub(super) fn keep_changes(&self, history: String) {
        // The client that is going to follow is not there yet.
        self.backlog.note_use(base::clock::monotonic_ms());
        let mut queue = self.queue.lock();
        // What is kept begins with a block.
        queue.close_block();
        let noted = self.backlog.begin(queue.end(), history);
        if let Some(position) = noted {
            queue.note_history(&position);
        }
    }

    /// Takes over a history: see [`engine::journal::Journal::adopt`].
    pub(super) fn adopt(&self, position: Position, selected: Option<usize>) {
        self.backlog.note_use(base::clock::monotonic_ms());
        let mut queue = self.queue.lock();
        let (noted, goes_on) = self.backlog.adopt(queue.end(), position);
        if !goes_on {
            queue.select(selected);
        }
        if let Some(position) = noted {
            queue.note_history(&position);
        }
    }

    /// Ends that.
    pub(super) fn let_changes_go(&self) {
        let mut queue = self.queue.lock();
        self.backlog.end(!queue.is_closed());
        queue.close_block();
    }

    /// The offset after everything that was appended.
    #[inline]
    pub(super) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// Changes whether the file says when things happened.
    pub(super) fn set_timestamps(&self, enabled: bool) {
        self.timestamps.store(enabled, Ordering::Relaxed);
    }
}

fn now_seconds() -> u64 {
    base::clock::now_us() / 1_000_000
}
