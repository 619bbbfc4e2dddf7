//! Writing and syncing: by a thread of its own, and, when no reply waits for a sync, also by the
//! thread that has appended ([`Writer::write_now`]).
//!
//! Unless replies wait for syncs, another thread does the syncs ([`syncing`]), and the writer is in
//! use only while it writes. So a slow disk does not keep later effects in this process's memory,
//! and written effects survive its end.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::limits;
use base::passing::PassingBytes;
use config::AppendFsync;
use store::sync::{Mutex, fence, thread};

use self::pending::{Left, SyncElsewhere};
use super::before::Before;
use super::queue::{Bytes, Chunk, Opened, Switch, Work};
use super::shared::{Failure, Operation, Shared};
use crate::disk::{DiskFile, write_all_vectored};

mod pending;
mod syncing;

/// The longest rest, in case an appender forgot to say that it appended.
const REST_MAX: Duration = Duration::from_millis(100);

/// With this much to write the thread does not pause, in bytes.
const NO_PAUSE: u64 = 1024 * 1024;

/// Shorter writes are never noted by LATENCY, which counts milliseconds.
const NOTED: Duration = Duration::from_millis(1);

/// The present file.
struct Output {
    file: Box<dyn DiskFile>,
    /// Its length up to the last piece that was written as a whole.
    length: u64,
    /// Something follows that length that could not be cut off.
    torn: bool,
    /// It does not say yet that the files before it have become durable.
    follows_unsynced: bool,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    output: Option<Output>,
    /// The number of the file's series.
    series: u64,
    /// The series was given up: nothing is written until the next one begins.
    given_up: bool,
    /// Writing has failed: when it is tried again.
    stuck: Option<Instant>,
    work: VecDeque<Work>,
    /// What the present file is to say next of those before it.
    before: Option<Before>,
    /// Pieces that go out with one call.
    batch: Vec<Chunk>,
    /// When the queue was last taken, and when before that: the last effects were appended between
    /// the two.
    taken: Instant,
    taken_before: Instant,
    /// Since when something written to the present file is neither durable nor in `syncing`.
    unsynced_since: Option<Instant>,
    /// Files before the present one, in their order, that are neither durable nor in `syncing`.
    left: Vec<Left>,
    syncing: Option<SyncElsewhere>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Writer {
        Writer {
            shared,
            output: None,
            series: 0,
            given_up: false,
            stuck: None,
            work: VecDeque::new(),
            before: None,
            batch: Vec::new(),
            taken: Instant::now(),
            taken_before: Instant::now(),
            unsynced_since: None,
            left: Vec::new(),
            syncing: None,
        }
    }

    /// Writes appended effects, from the thread that appended them and before its replies leave, so
    /// that the end of this process loses none of them. Returns whether that was possible: it is
    /// not while a sync of the same file makes writing slow.
    pub(super) fn write_now(&mut self) -> bool {
        let is_slow = self.syncing.as_ref().is_some_and(|syncing| syncing.slows_writing);
        if is_slow || self.stuck.is_some() || !self.shared.config.write_delay().is_zero() {
            return false;
        }
        self.take();
        self.perform();
        self.stuck.is_none()
    }

    /// Tries at once again to write the unwritten effects.
    pub(super) fn retry(&mut self) {
        if self.stuck.is_some() {
            self.stuck = Some(Instant::now());
            self.take();
            self.perform();
        }
    }

    /// One round of the thread. Returns how long it may rest, and how; nothing at the end.
    fn round(&mut self) -> Option<Rest> {
        let stopping = self.shared.stopping.load(Ordering::Acquire);
        let idle = !self.take();
        self.perform();
        if stopping && idle {
            self.retry();
            self.sync();
            if self.before.is_some() {
                self.perform();
                self.sync();
            }
            return None;
        }
        self.look_after_syncs();
        if self.shared.config.changed.swap(false, Ordering::Acquire) {
            self.tell_progress();
        }
        // During a sync, appenders leave the writing to this thread, so it has to be quick.
        let listens = idle || self.syncing.is_some();
        Some(if listens { Rest::Idle(self.until_next_sync()) } else { Rest::Gathering })
    }

    /// Takes new work. Returns whether there is any.
    fn take(&mut self) -> bool {
        self.taken_before = std::mem::replace(&mut self.taken, Instant::now());
        let stream = &self.shared.stream;
        let is_last = self.shared.stopping.load(Ordering::Relaxed);
        stream.queue.lock().take(&mut self.work, &stream.backlog, is_last)
    }

    fn perform(&mut self) {
        self.pass_over_what_is_replaced();
        if self.stuck.is_some_and(|at| Instant::now() < at) {
            return;
        }
        loop {
            self.begin_batch();
            while self.batch.len() < limits::WRITE_SLICES
                && let Some(Work::Write(chunk)) =
                    self.work.pop_front_if(|item| matches!(item, Work::Write(_)))
            {
                self.batch.push(chunk);
            }
            if !self.write_batch() {
                return;
            }
            match self.work.pop_front() {
                Some(Work::Switch(switch)) => self.switch(switch),
                Some(write) => self.work.push_front(write),
                None => return,
            }
        }
    }

    /// Begins a batch with what the file has to say of those before it.
    fn begin_batch(&mut self) {
        if self.batch.is_empty()
            && let Some(before) = self.before.take()
            && self.output.is_some()
        {
            let mut bytes = PassingBytes::default();
            bytes.change(|bytes| before.write(bytes));
            // It is no part of the stream.
            let end = self.shared.progress.written.load(Ordering::Relaxed);
            self.batch.push(Chunk { bytes: Bytes::Own(bytes), end });
        }
    }

    /// Writes the batch. Returns false when it could not write all of it; the rest stays in the
    /// batch.
    fn write_batch(&mut self) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        if self.batch.iter().all(|chunk| chunk.bytes().is_empty()) && self.stuck.is_none() {
            self.pass_over_batch();
            return true;
        }
        let delay = self.shared.config.write_delay();
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        let slowed = self.syncing.as_ref().is_some_and(|syncing| syncing.slows_writing);
        let (written, outcome) = match &mut self.output {
            Some(output) => {
                if self.unsynced_since.is_none() {
                    self.unsynced_since = Some(self.taken_before);
                    if self.syncing.is_none() && self.left.is_empty() {
                        self.shared.progress.set_unsynced_since(self.taken_before);
                    }
                }
                output.write(&self.batch, &self.shared, slowed)
            }
            // Between a file that was given up and the next one nothing is kept.
            None => (self.batch.len(), Ok(())),
        };
        self.give_back(written);
        if let Err(error) = outcome {
            return self.note_stuck(&error);
        }
        if self.stuck.take().is_some() {
            self.note_recovery();
        }
        self.tell_what_is_written();
        true
    }

    /// The batch has nothing for the file: only the offset is another one.
    fn pass_over_batch(&mut self) {
        let end = self.batch.drain(..).next_back().map(|chunk| chunk.end);
        if let Some(end) = end.filter(|_| self.output.is_some()) {
            self.shared.progress.note_written(end);
        }
        self.note_durable_if_all_is();
        self.tell_what_is_written();
    }

    /// If nothing is left to be synced, everything that was written is durable, up to an offset
    /// that may come after the last sync.
    fn note_durable_if_all_is(&self) {
        let is_all_synced =
            self.unsynced_since.is_none() && self.left.is_empty() && self.syncing.is_none();
        if is_all_synced && self.output.is_some() {
            let written = self.shared.progress.written.load(Ordering::Relaxed);
            if self.shared.progress.synced.load(Ordering::Relaxed) < written {
                self.note_durable(written);
            }
        }
    }

    /// Drops the first chunks of the batch. Blocks that nobody else needs are used again.
    fn give_back(&mut self, count: usize) {
        let mut blocks = self.batch.drain(..count).filter_map(Chunk::into_spare).peekable();
        if blocks.peek().is_some() {
            self.shared.stream.queue.lock().give_back(blocks);
        }
    }

    /// Forgets unwritten effects that need not be written: a base has them, or is going to.
    fn pass_over_what_is_replaced(&mut self) {
        if self.stuck.is_none() {
            return;
        }
        let replaced = self.shared.replaced_to.load(Ordering::Acquire);
        let ends_it = |item: &Work| match item {
            Work::Switch(switch) => !switch.follows || switch.offset <= replaced,
            Work::Write(_) => false,
        };
        let Some(place) = self.work.iter().rposition(ends_it) else { return };
        self.work.drain(..place);
        self.batch.clear();
        self.stuck = None;
        if let Some(Work::Switch(Switch { follows: true, offset, .. })) = self.work.front() {
            let offset = *offset;
            (self.output, self.unsynced_since) = (None, None);
            self.note_age();
            self.settle(offset);
            self.note_recovery();
        }
    }

    /// Ends the present file and continues in the next.
    fn switch(&mut self, switch: Switch) {
        if switch.follows && self.given_up {
            return;
        }
        let ended = self.output.take();
        let length = ended.as_ref().map(|ended| ended.length);
        if let (Some(since), Some(Output { file, .. })) = (self.unsynced_since.take(), ended) {
            self.left.push(Left { file, series: self.series, end: switch.offset, since });
        }
        let is_durable = self.left.is_empty() && self.syncing.is_none();
        if let Some(syncing) = &mut self.syncing {
            syncing.slows_writing = false;
        }
        self.series = switch.series;
        self.given_up = false;
        let replaces = !switch.follows && switch.opened.is_some();
        self.before = match (switch.follows, length) {
            (true, Some(_)) if is_durable => Some(Before::Durable),
            (true, Some(length)) => Some(Before::Written(length)),
            // A base has what came before.
            (_, _) => None,
        };
        if let Some(Opened { file, length, is_behind_durable, .. }) = switch.opened {
            if is_behind_durable {
                self.before = Some(Before::Durable);
            }
            let follows_unsynced = matches!(self.before, Some(Before::Written(_)));
            self.output = Some(Output { file, length, torn: false, follows_unsynced });
            self.shared.progress.file_length.store(length, Ordering::Relaxed);
        }
        let progress = &self.shared.progress;
        progress.note_written(switch.offset);
        if replaces || (self.left.is_empty() && self.syncing.is_none()) {
            self.settle(switch.offset);
        } else if let Some(left) = self.left.last_mut() {
            // Effects of the file that are not in it were given up.
            left.end = switch.offset;
        } else if let Some(syncing) = &mut self.syncing {
            syncing.target = switch.offset;
        }
        self.tell_what_is_written();
    }

    /// Notifies the threads that wait until more is written, if there are any.
    fn tell_what_is_written(&self) {
        // After it was noted what is written: who is not seen here sees that.
        fence(Ordering::SeqCst);
        let awaited = &self.shared.progress.write_awaited;
        // The observer knows by then which threads asked.
        let is_awaited = awaited.load(Ordering::Relaxed) && awaited.swap(false, Ordering::Acquire);
        if is_awaited || self.shared.config.syncs_paused() {
            self.tell_progress();
        }
    }

    /// Everything up to `offset` is durable, or replaced by a base.
    fn settle(&self, offset: u64) {
        self.shared.progress.note_written(offset);
        self.shared.progress.note_synced(offset);
        self.tell_progress();
    }

    /// Tells the observer, and threads that wait for a flush.
    fn tell_progress(&self) {
        self.shared.observer.progressed(self.shared.progress.synced.load(Ordering::Relaxed));
        self.shared.stream.backlog.wake();
        // Under the lock, so that no thread begins to wait between looking and being told.
        let _waiting = self.shared.failure.lock();
        self.shared.settled.notify_all();
    }

    fn failure(&self, operation: Operation, error: &io::Error) -> Failure {
        Failure {
            operation,
            errno: error.raw_os_error(),
            reason: error.to_string(),
            synced: self.shared.progress.synced.load(Ordering::Relaxed),
        }
    }

    /// Keeps unwritten effects, to be tried again. When another series is to begin already they are
    /// of no use. Returns whether there is anything to go on with.
    #[cold]
    fn note_stuck(&mut self, error: &io::Error) -> bool {
        let failure = self.failure(Operation::Write, error);
        let queue = self.shared.stream.queue.lock();
        if !queue.is_present(self.series) {
            drop(queue);
            self.drop_file();
            return true;
        }
        let is_news = self.stuck.replace(Instant::now() + self.shared.timing.retry).is_none();
        if is_news {
            self.shared.failed.store(true, Ordering::Relaxed);
            *self.shared.failure.lock() = Some(failure.clone());
            self.shared.settled.notify_all();
            drop(queue);
            self.shared.observer.failed(&failure);
        }
        false
    }

    /// The unwritten effects are written, or need not be.
    #[cold]
    fn note_recovery(&self) {
        let queue = self.shared.stream.queue.lock();
        if queue.is_present(self.series) {
            self.shared.forget_failure();
            drop(queue);
            self.shared.observer.recovered();
        }
        self.tell_progress();
    }

    /// A sync of a file of this series has failed.
    #[cold]
    fn give_up(&mut self, series: u64, error: &io::Error) {
        let failure = self.failure(Operation::Sync, error);
        if series == self.series {
            // Durable effects after a gap do not count.
            self.left.retain(|left| left.series != series);
            self.drop_file();
        }
        let mut queue = self.shared.stream.queue.lock();
        if queue.is_present(series) {
            // Followers go on: the stream has no gap.
            queue.refuse();
            self.shared.given_up.store(true, Ordering::Relaxed);
            self.shared.failed.store(true, Ordering::Relaxed);
        }
        // When nothing has followed, a thread may still wait for the contents of the file.
        if queue.is_present(series) || queue.is_closed() {
            *self.shared.failure.lock() = Some(failure.clone());
            self.shared.settled.notify_all();
        }
        drop(queue);
        self.shared.observer.failed(&failure);
    }

    /// In any case, nothing more is written to the present file.
    fn drop_file(&mut self) {
        self.given_up = true;
        (self.output, self.stuck, self.unsynced_since) = (None, None, None);
        self.before = None;
        self.batch.clear();
        self.note_age();
    }
}

/// What the thread does between two rounds.
enum Rest {
    /// Waits for something to do, at most this long.
    Idle(Duration),
    /// Lets effects gather, unless a thread waits for them.
    Gathering,
}

/// The life of the thread.
pub(super) fn run(shared: &Shared, writer: &Mutex<Writer>) {
    loop {
        let rest = writer.lock().round();
        let is_wanted = shared.locked_long.swap(false, Ordering::Relaxed);
        // Pieces that workers allocated may have been freed here.
        process::memory::publish();
        match rest {
            None => break,
            Some(Rest::Idle(longest)) => shared.rest(longest),
            // A thread has appended meanwhile and could not write.
            Some(Rest::Gathering) if is_wanted => {}
            Some(Rest::Gathering) => shared.pause(),
        }
    }
}

impl Shared {
    fn rest(&self, longest: Duration) {
        self.resting.store(true, Ordering::Relaxed);
        // With the lock: see `notify`.
        if self.stream.queue.lock().is_empty() {
            thread::park_timeout(longest);
        }
        self.resting.store(false, Ordering::Relaxed);
    }

    fn pause(&self) {
        let written = self.progress.written.load(Ordering::Relaxed);
        let pending = self.stream.appended().saturating_sub(written);
        if self.config.policy() != AppendFsync::Always && pending < NO_PAUSE {
            thread::park_timeout(self.timing.pause);
        }
    }
}

impl Output {
    /// Writes pieces in order, and returns how many of them are completely written. A partly
    /// written one is cut off again.
    fn write(
        &mut self,
        chunks: &[Chunk],
        shared: &Shared,
        slowed: bool,
    ) -> (usize, io::Result<()>) {
        let began = Instant::now();
        if self.torn
            && let Err(error) = self.file.truncate(self.length)
        {
            return (0, Err(error));
        }
        self.torn = false;
        let mut slices: Vec<_> = chunks.iter().map(|chunk| IoSlice::new(chunk.bytes())).collect();
        let mut written = 0;
        let outcome = write_all_vectored(&mut *self.file, &mut slices, &mut written);
        let mut whole = 0;
        for chunk in chunks {
            let Some(left) = written.checked_sub(chunk.bytes().len() as u64) else { break };
            written = left;
            whole += 1;
            self.length += chunk.bytes().len() as u64;
            debug_assert!(chunk.end <= shared.stream.appended(), "it was appended before");
            shared.progress.note_written(chunk.end);
        }
        shared.progress.file_length.store(self.length, Ordering::Relaxed);
        if outcome.is_err() && written > 0 {
            // Unless this is done later, the file ends in a tear, which loading cuts off.
            self.torn = self.file.truncate(self.length).is_err();
        }
        shared.metrics.writes.add(1);
        let took = began.elapsed();
        if took >= NOTED {
            let event = if slowed { "aof-write-pending-fsync" } else { "aof-write-alone" };
            shared.observer.took(event, took);
            shared.observer.took("aof-write", took);
        }
        (whole, outcome)
    }
}
