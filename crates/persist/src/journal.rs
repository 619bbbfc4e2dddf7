//! The journal of a running server: the one ordered stream of effects, and its readers.
//!
//! | file | what it answers |
//! |---|---|
//! | `stream` | in which order do effects stand, and at which offsets? |
//! | `queue` | which of them wait for the file? |
//! | `before` | what does a file say of the one before it? |
//! | [`engine::journal::backlog`] | which of them are kept for followers? |
//! | `writer` | how do they get into a file, and when are they safe there? |
//! | `shared` | what do the threads concerned tell each other? |
//!
//! Which files there are is up to `persist::aof`: the journal is given a file that is open already.
//! It imports nothing of `aof`.
//!
//! Threads that hold slots append to a queue in memory. A thread of its own takes what has
//! gathered, writes it and has it synced. So a slow disk delays only the replies that depend on it,
//! and everything appended during a sync shares the next one. Under `everysec` and `no`, where a
//! reply depends on no sync, a worker gives its effects to the system before its replies leave. So
//! the end of this process loses nothing that was acknowledged. While a sync of the same file makes
//! writing slow, or another worker has been writing for long, the worker leaves the writing to the
//! thread, which does it at once. The replies then wait for the thread.
//!
//! A position in the stream is an offset: its bytes since the journal began, counted over all
//! files, and also while there is none. Three offsets show the progress: appended, written, synced.
//! What a file says besides the stream does not count: annotations, and the SELECT that it begins
//! with where the stream has none. On a replica the stream is its primary's, and the file also has
//! what clients of the replica have written, if they may. Messages that a primary publishes count
//! too, and are not in its file, which then says at which offset it goes on.
//!
//! Effects are encoded once, in blocks that the file's writer and followers read without a lock.
//! Followers get the appended effects in the same order, from a part of the stream that is kept in
//! memory while there are followers, with or without a file. Annotations in the file say where the
//! histories of followers' positions begin.
//!
//! To continue in another file, the journal exchanges handles. The next file is open, and in the
//! list of files, before the cut. The old file is synced after the cut, and `synced` waits for
//! that. The next file begins with the length of the old one, and says later that the old one has
//! become durable.
//!
//! When a write fails, the unwritten effects stay in memory and are tried again every second, one
//! complete command after the other. When a sync fails, the file is given up: the kernel has
//! forgotten the pages, and a second sync that succeeds says nothing about them. The file then gets
//! nothing more, until the journal goes on in another one, at a cut, for which a base is written.
//! In both cases writes are refused meanwhile. The stream goes on: followers miss nothing, and
//! effects that were under way when the file was given up are told to them when the base has them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::limits;
use config::AppendFsync;
use engine::journal::backlog::{Backlog, Position};
use engine::journal::{EffectBatch, Journal, State};
use store::sync::thread::{self, JoinHandle, Thread};
use store::sync::{AtomicBool, AtomicU8, AtomicU64, Condvar, Mutex, fence};

use process::system;

mod before;
mod queue;
mod shared;
mod stream;
mod writer;

use shared::{JournalConfig, Progress, Shared};
use stream::Stream;
use writer::Writer;

pub use before::{BEFORE_MAX, Before};
pub use queue::{COUNTED, HISTORY, Opened, SELECTED, TIMESTAMP, UNCOUNTED, UNKNOWN};
pub use shared::{Failure, Metrics, Observer, Operation, Timing};

/// How long a worker waits for another worker that writes.
const PATIENCE: Duration = Duration::from_micros(200);

/// See the module's text.
pub struct ServerJournal {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    thread: Thread,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl ServerJournal {
    /// Starts the thread. Nothing is journaled before [`ServerJournal::begin_file`].
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        policy: AppendFsync,
        timing: Timing,
        observer: Arc<dyn Observer>,
    ) -> io::Result<ServerJournal> {
        let shared = Arc::new(Shared {
            stream: Stream::default(),
            has_file: AtomicBool::new(false),
            beginning: AtomicBool::new(false),
            cannot_begin: Mutex::new(None),
            is_stuck_beginning: AtomicBool::new(false),
            progress: Progress::default(),
            config: JournalConfig {
                policy: AtomicU8::new(policy as u8),
                syncs_paused: AtomicBool::new(false),
                changed: AtomicBool::new(false),
                write_delay_us: AtomicU64::new(0),
            },
            timing,
            metrics: Metrics::default(),
            locked_long: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            flush_to: AtomicU64::new(0),
            replaced_to: AtomicU64::new(0),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            refusal: Mutex::new(None),
            refusing: AtomicBool::new(false),
            refused_from: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
            settled: Condvar::new(),
            observer,
        });
        let writer = Arc::new(Mutex::new(Writer::new(Arc::clone(&shared))));
        let thread = thread::Builder::new().name("journal".to_owned());
        let handle = {
            let (shared, writer) = (Arc::clone(&shared), Arc::clone(&writer));
            thread.spawn(move || {
                system::keep_report_stack();
                writer::run(&shared, &writer);
            })?
        };
        let thread = handle.thread().clone();
        Ok(ServerJournal { shared, writer, thread, handle: Mutex::new(Some(handle)) })
    }

    /// Whether effects go to a file.
    #[inline]
    pub fn has_file(&self) -> bool {
        self.shared.has_file.load(Ordering::Relaxed)
    }

    /// Announces that something was appended. Must be called without locks, once for many appends,
    /// before the replies leave. Writes the effects if replies depend on no sync, or else tells the
    /// thread, which costs next to nothing while it is busy. Returns [`ServerJournal::released`]:
    /// replies that depend on more have to wait, also those of writers under `everysec` and `no`.
    #[inline]
    pub fn notify(&self) -> u64 {
        if self.has_file() {
            self.write_or_tell();
        }
        if self.shared.stream.backlog.is_on() {
            self.shared.stream.backlog.wake();
        }
        self.released()
    }

    #[inline]
    fn write_or_tell(&self) {
        let at_once = self.shared.config.policy() != AppendFsync::Always
            && !self.shared.locked_long.load(Ordering::Relaxed);
        if !at_once || !self.write_now() {
            self.tell_thread();
        }
    }

    fn write_now(&self) -> bool {
        match self.writer.try_lock_for(PATIENCE) {
            Some(mut writer) => writer.write_now(),
            None => {
                self.shared.locked_long.store(true, Ordering::Relaxed);
                self.thread.unpark();
                false
            }
        }
    }

    fn tell_thread(&self) {
        // The thread announces its rest before it looks at the queue a last time. A thread that
        // appends after that look has had the queue's lock after it, so it sees the announcement
        // here.
        if self.shared.resting.load(Ordering::Relaxed)
            && self.shared.resting.swap(false, Ordering::Relaxed)
        {
            self.thread.unpark();
        }
    }

    /// Begins a file that does not follow the present one: a base for this cut is going
    /// to be written. So a journal that has failed works again. Returns the offset of the cut.
    ///
    /// Must be called with the world stopped: it takes locks that are never held for long, and
    /// memory.
    pub fn begin_file(&self, opened: Opened) -> u64 {
        let offset = self.shared.stream.begin_file(opened, || self.shared.forget_failure());
        self.shared.has_file.store(true, Ordering::Relaxed);
        self.wake();
        offset
    }

    /// Says that the journal is turned on but has no file with a base yet, or that this is over.
    /// Nothing that is written meanwhile counts as durable: under `always` replies wait for the
    /// base, and writes for the cut from which it is made.
    pub fn note_beginning(&self, beginning: bool) {
        if beginning && !self.shared.beginning.load(Ordering::Relaxed) {
            self.shared.refused_from.store(self.appended(), Ordering::Relaxed);
        }
        *self.shared.cannot_begin.lock() = None;
        self.shared.is_stuck_beginning.store(false, Ordering::Relaxed);
        self.shared.beginning.store(beginning, Ordering::Release);
        self.shared.config.changed.store(true, Ordering::Release);
        self.wake();
    }

    /// Says why the first base could not be written. Under `always` writes are refused until it is.
    pub fn note_no_beginning(&self, reason: String) {
        *self.shared.cannot_begin.lock() = Some(reason);
        self.shared.is_stuck_beginning.store(true, Ordering::Relaxed);
    }

    /// Whether effects are kept, if at all, in files that count only when a base is complete.
    #[inline]
    fn lacks_base(&self) -> bool {
        self.refuses_writes() || self.shared.beginning.load(Ordering::Acquire)
    }

    /// Goes on in another file, which follows the present one. The present one is synced later,
    /// while the next is written. A journal that has given up its file stays where it is, and
    /// `opened` is closed: nothing can follow a gap. Returns the offset of the change.
    ///
    /// Must be called as [`ServerJournal::begin_file`].
    pub fn rotate(&self, opened: Opened) -> u64 {
        let offset = self.shared.stream.rotate(opened);
        self.wake();
        offset
    }

    /// Notes that a base has everything up to this offset, that of a [`ServerJournal::rotate`]:
    /// effects before it that could not be written need not be written any more.
    pub fn note_replaced(&self, offset: u64) {
        self.shared.replaced_to.fetch_max(offset, Ordering::Release);
        self.wake();
    }

    /// Tries at once again to write the unwritten effects.
    ///
    /// # Errors
    /// [`Failure`]: it failed again, or the file was given up.
    pub fn retry(&self) -> Result<(), Failure> {
        self.writer.lock().retry();
        self.failure().map_or(Ok(()), Err)
    }

    /// Ends the series of files: the present one is synced and closed. Must be called as
    /// [`ServerJournal::begin_file`]. Returns the offset of the end.
    pub fn end_file(&self) -> u64 {
        self.note_no_file();
        let offset = self.shared.stream.end_file();
        self.shared.ended_at.store(offset, Ordering::Relaxed);
        self.wake();
        offset
    }

    /// From now on nothing goes to a file. What was appended before still becomes durable.
    fn note_no_file(&self) {
        self.shared.ended_at.store(self.appended(), Ordering::Relaxed);
        self.shared.has_file.store(false, Ordering::Release);
    }

    fn wake(&self) {
        self.shared.resting.store(false, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// Waits until everything appended so far is durable, under every policy.
    ///
    /// # Errors
    /// [`Failure`]: it never will be.
    pub fn flush(&self) -> Result<(), Failure> {
        let target = self.shared.stream.queue.lock().end_of_file();
        self.shared.flush_to.fetch_max(target, Ordering::Relaxed);
        self.wake();
        let mut failure = self.shared.failure.lock();
        loop {
            if let Some(failure) = &*failure {
                return Err(failure.clone());
            }
            if self.synced() >= target {
                return Ok(());
            }
            self.shared.settled.wait(&mut failure);
        }
    }

    /// Makes everything durable and ends the thread.
    pub fn stop(&self) {
        self.note_no_file();
        self.shared.stopping.store(true, Ordering::Release);
        self.wake();
        if let Some(handle) = self.handle.lock().take() {
            // A panic has ended the process already.
            let _ = handle.join();
        }
    }

    /// Changes `appendfsync`.
    pub fn set_policy(&self, policy: AppendFsync) {
        self.shared.config.policy.store(policy as u8, Ordering::Relaxed);
        self.shared.config.changed.store(true, Ordering::Release);
        self.wake();
    }

    /// Changes `aof-timestamp-enabled`: whether the file says when things happened.
    pub fn set_timestamps(&self, enabled: bool) {
        self.shared.stream.set_timestamps(enabled);
    }

    /// Lets syncs rest while a snapshot needs the disk (`no-appendfsync-on-rewrite`), or lets them
    /// go on.
    pub fn pause_syncs(&self, paused: bool) {
        if self.shared.config.syncs_paused.swap(paused, Ordering::Relaxed) != paused {
            self.shared.config.changed.store(true, Ordering::Release);
            self.wake();
        }
    }

    /// Makes the thread sleep before each write, for tests of clients that wait for it (`DEBUG
    /// AOF-FLUSH-SLEEP`).
    pub fn set_write_delay(&self, delay: Duration) {
        let microseconds = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.shared.config.write_delay_us.store(microseconds, Ordering::Relaxed);
    }

    /// Replies that depend on effects up to this offset may leave: under `always` the effects are
    /// durable, otherwise the system has them. Without a file none is waited for, except for the
    /// end of the last one under `always`.
    #[inline]
    pub fn released(&self) -> u64 {
        match self.shared.config.policy() {
            AppendFsync::Always if self.lacks_base() => {
                self.shared.refused_from.load(Ordering::Relaxed)
            }
            AppendFsync::Always if self.has_file() && self.shared.config.syncs_paused() => {
                self.written()
            }
            AppendFsync::Always if self.has_file() || !self.has_ended() => self.synced(),
            AppendFsync::EverySecond | AppendFsync::No if self.has_file() => self.written(),
            AppendFsync::Always | AppendFsync::EverySecond | AppendFsync::No => u64::MAX,
        }
    }

    /// Whether all is durable that went to a file, where there is none any more.
    fn has_ended(&self) -> bool {
        // With the store of `note_no_file`.
        fence(Ordering::Acquire);
        self.synced() >= self.shared.ended_at.load(Ordering::Relaxed)
    }

    /// Asks that the observer is notified as soon as more is released, also if no sync is needed
    /// for that. The observer must know already which worker to notify. The caller looks once more
    /// afterwards.
    pub fn notify_when_released(&self) {
        // Others may wait for a write, under the policy of a moment ago: what they asked for stays.
        if self.shared.config.policy() != AppendFsync::Always {
            self.shared.progress.write_awaited.store(true, Ordering::Release);
        }
        // Before the caller's look: what is written later finds the request.
        fence(Ordering::SeqCst);
    }

    /// The offset after everything that was appended.
    #[inline]
    pub fn appended(&self) -> u64 {
        self.shared.stream.appended()
    }

    /// The offset after everything that was given to the system.
    #[inline]
    pub fn written(&self) -> u64 {
        self.shared.progress.written.load(Ordering::Acquire)
    }

    /// The offset up to which everything survives a stop of the machine.
    #[inline]
    pub fn synced(&self) -> u64 {
        self.shared.progress.synced.load(Ordering::Acquire)
    }

    /// Bytes in memory that were not yet given to the system.
    pub fn pending(&self) -> u64 {
        self.appended().saturating_sub(self.written())
    }

    /// Whether `everysec` does not keep its promise, because the disk is slow.
    pub fn is_late(&self) -> bool {
        let since = self.shared.progress.unsynced_since_ns.load(Ordering::Relaxed);
        if since == 0 {
            return false;
        }
        let age = Duration::from_nanos(base::clock::monotonic_ns().saturating_sub(since));
        age > self.shared.timing.late
            && self.shared.config.policy() == AppendFsync::EverySecond
            && !self.shared.config.syncs_paused()
    }

    /// Whether connections that write should wait before they lock anything: the disk does not keep
    /// up, and memory would grow.
    pub fn is_pressed(&self) -> bool {
        (self.pending() > limits::JOURNAL_PENDING || self.is_late()) && !self.has_failed()
    }

    /// Whether a write or a sync has failed. Then writes must be refused.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Whether the file was given up, so that only [`ServerJournal::begin_file`] helps.
    pub fn has_given_up(&self) -> bool {
        self.shared.given_up.load(Ordering::Relaxed)
    }

    /// Why nothing is written, if so.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.failure.lock().clone()
    }

    /// Refuses writes for a reason, also while the journal works; or ends that. After a
    /// failure it goes on in a file that is worth nothing before its base is complete.
    pub fn refuse_writes(&self, reason: Option<String>) {
        let mut refusal = self.shared.refusal.lock();
        if reason.is_some() && refusal.is_none() {
            self.shared.refused_from.store(self.synced(), Ordering::Relaxed);
        }
        self.shared.refusing.store(reason.is_some(), Ordering::Release);
        *refusal = reason;
        self.shared.config.changed.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether writes are refused by [`ServerJournal::refuse_writes`].
    #[inline]
    pub fn refuses_writes(&self) -> bool {
        self.shared.refusing.load(Ordering::Relaxed)
    }

    /// The length of the present file, in bytes.
    pub fn file_length(&self) -> u64 {
        self.shared.progress.file_length.load(Ordering::Relaxed)
    }

    /// The metrics of the thread's work.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

impl Journal for ServerJournal {
    #[inline]
    fn has_file(&self) -> bool {
        ServerJournal::has_file(self)
    }

    /// Must be called under the locks of the slots concerned; it takes memory and no system call.
    /// The thread is told by [`ServerJournal::notify`], after the locks are released.
    ///
    /// When the file was given up the effects enter the stream all the same, but nothing that is
    /// not in a base makes them durable.
    #[inline]
    fn append(&self, batch: &EffectBatch) -> u64 {
        self.shared.stream.append(batch)
    }

    fn append_beside(&self, batch: &EffectBatch) -> u64 {
        self.shared.stream.append_beside(batch)
    }

    fn append_raw(&self, bytes: &[u8], selected_after: Option<usize>) -> u64 {
        self.shared.stream.append_raw(bytes, selected_after, false)
    }

    fn append_unknown(&self, bytes: &[u8], selected_after: Option<usize>) -> u64 {
        self.shared.stream.append_raw(bytes, selected_after, true)
    }

    fn note_time(&self) {
        self.shared.stream.note_time();
    }

    fn append_messages(&self, bytes: &[u8]) {
        self.shared.stream.append_messages(bytes);
    }

    fn adopt(&self, position: Position, selected: Option<usize>) {
        self.shared.stream.adopt(position, selected);
        self.wake();
    }

    fn selected(&self) -> Option<usize> {
        self.shared.stream.queue.lock().selected()
    }

    fn beginning(&self) -> bool {
        self.shared.beginning.load(Ordering::Acquire)
    }

    fn state(&self) -> State {
        let has_file = ServerJournal::has_file(self);
        let always = self.shared.config.policy() == AppendFsync::Always;
        let begins = always && self.beginning();
        let cannot_begin = begins && self.shared.is_stuck_beginning.load(Ordering::Relaxed);
        State {
            listening: has_file || self.shared.stream.backlog.is_on(),
            defers_replies: always && (has_file || begins || self.refuses_writes()),
            failed: (has_file && self.has_failed()) || cannot_begin || self.refuses_writes(),
            pressed: (has_file && self.is_pressed()) || (begins && !has_file && !cannot_begin),
        }
    }

    fn notify(&self) -> u64 {
        ServerJournal::notify(self)
    }

    fn end(&self) -> u64 {
        self.appended()
    }

    fn released(&self) -> u64 {
        ServerJournal::released(self)
    }

    fn notify_when_released(&self) {
        ServerJournal::notify_when_released(self);
    }

    fn synced(&self) -> u64 {
        // Effects after a gap count when the base does.
        match self.lacks_base() {
            true => self.shared.refused_from.load(Ordering::Relaxed),
            false => ServerJournal::synced(self),
        }
    }

    fn request_sync(&self, offset: u64) {
        self.shared.flush_to.fetch_max(offset, Ordering::Relaxed);
        self.wake();
    }

    fn changes(&self) -> Option<&Backlog> {
        Some(&self.shared.stream.backlog)
    }

    fn keep_changes(&self, history: String) {
        self.shared.stream.keep_changes(history);
        self.wake();
    }

    fn let_changes_go(&self) {
        self.shared.stream.let_changes_go();
    }

    fn shown(&self) -> u64 {
        let waits = ServerJournal::has_file(self) || self.refuses_writes();
        match self.shared.config.policy() {
            _ if !waits => u64::MAX,
            AppendFsync::Always => ServerJournal::released(self),
            AppendFsync::EverySecond | AppendFsync::No => self.written(),
        }
    }

    fn failure(&self) -> Option<String> {
        let refusal = self.shared.refusal.lock().clone();
        refusal
            .or_else(|| ServerJournal::failure(self).map(|failure| failure.reason()))
            .or_else(|| self.shared.cannot_begin.lock().clone())
    }
}

impl Drop for ServerJournal {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
