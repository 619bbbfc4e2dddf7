//! What writes and syncs: a thread of its own, and, where no reply waits for a sync, also whoever
//! has appended ([`Writer::write_now`]).
//!
//! Under `everysec` another thread does the waiting of a sync, so that a slow disk does not keep
//! what follows in this process's memory: what was written survives its end.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;
use engine::config::AppendFsync;
use parking_lot::Mutex;

use super::queue::{Chunk, Switch, Work};
use super::{Failure, Operation, Shared};
use crate::persist::directory::Opened;
use crate::persist::disk::{DiskFile, write_all_vectored};

/// The longest rest, should an appender have forgotten to say that it appended.
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
}

/// A sync that another thread waits for.
struct SyncElsewhere {
    thread: JoinHandle<(io::Result<()>, Duration)>,
    /// The thread ends now.
    done: Arc<AtomicBool>,
    /// The offset behind what it makes durable.
    target: u64,
    /// When the oldest of that was appended.
    since: Instant,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    output: Option<Output>,
    /// The number of the series that the file belongs to.
    series: u64,
    /// The series has failed: nothing is written until the next one begins.
    failed: bool,
    work: Vec<Work>,
    /// Pieces that go out with one call.
    batch: Vec<Chunk>,
    /// When the queue was last taken, and when it was before: what was taken last was appended
    /// between the two.
    taken: Instant,
    taken_before: Instant,
    /// Since when something that was taken is neither durable nor in `syncing`.
    unsynced_since: Option<Instant>,
    syncing: Option<SyncElsewhere>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Writer {
        Writer {
            shared,
            output: None,
            series: 0,
            failed: false,
            work: Vec::new(),
            batch: Vec::new(),
            taken: Instant::now(),
            taken_before: Instant::now(),
            unsynced_since: None,
            syncing: None,
        }
    }

    /// Writes what was appended, from the thread that appended it and before its replies leave, so
    /// that the end of this process loses none of it. Whether that was possible: not while a sync
    /// makes writing slow, and never the changing of files.
    pub(super) fn write_now(&mut self) -> bool {
        if self.syncing.is_some() || !self.shared.settings.write_delay().is_zero() {
            return false;
        }
        self.note_taking();
        let took_all = self.shared.queue.lock().take_writes(&mut self.work);
        self.perform();
        took_all
    }

    /// One round of the thread. Says how long it may rest, and by which means; nothing at the end.
    fn round(&mut self) -> Option<Rest> {
        let stopping = self.shared.stopping.load(Ordering::Acquire);
        let idle = !self.take();
        self.perform();
        if stopping && idle {
            self.sync();
            return None;
        }
        if self.syncing.as_ref().is_some_and(|syncing| syncing.done.load(Ordering::Acquire)) {
            self.end_syncing();
        }
        if self.is_waited_for() {
            self.sync();
        } else if self.sync_is_due() {
            self.begin_syncing();
        }
        if self.shared.settings.changed.swap(false, Ordering::Acquire) {
            self.tell_progress();
        }
        Some(if idle { Rest::Idle(self.until_due()) } else { Rest::Gathering })
    }

    /// The longest rest until the next sync is due.
    fn until_due(&self) -> Duration {
        let due = self.unsynced_since.map(|since| since + self.shared.timing.sync_age);
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        // A sync that is due and waits (for the policy `no`) does not make the thread spin.
        left.filter(|left| !left.is_zero()).unwrap_or(REST_MAX).min(REST_MAX)
    }

    /// Takes what there is to do; whether there is anything.
    fn take(&mut self) -> bool {
        self.note_taking();
        self.shared.queue.lock().take(&mut self.work);
        !self.work.is_empty()
    }

    fn note_taking(&mut self) {
        self.taken_before = std::mem::replace(&mut self.taken, Instant::now());
    }

    fn perform(&mut self) {
        let mut work = std::mem::take(&mut self.work);
        for item in work.drain(..) {
            match item {
                Work::Write(chunk) => {
                    self.batch.push(chunk);
                    if self.batch.len() == limits::WRITE_SLICES {
                        self.write_batch();
                    }
                }
                Work::Switch(switch) => {
                    self.write_batch();
                    self.switch(switch);
                }
            }
        }
        self.work = work;
        self.write_batch();
    }

    fn write_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let delay = self.shared.settings.write_delay();
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        let written = match &mut self.output {
            Some(output) => {
                if self.unsynced_since.is_none() {
                    self.unsynced_since = Some(self.taken_before);
                    if self.syncing.is_none() {
                        self.shared.progress.set_unsynced_since(self.taken_before);
                    }
                }
                output.write(&self.batch, &self.shared, self.syncing.is_some())
            }
            // Between a failure and the next file nothing is kept.
            None => Ok(()),
        };
        self.shared.queue.lock().give_back(self.batch.drain(..));
        if let Err(error) = written {
            self.fail(Operation::Write, &error);
        } else if self.shared.settings.syncs_paused() {
            self.tell_progress();
        }
    }

    /// Ends the present file and opens the next.
    fn switch(&mut self, switch: Switch) {
        self.sync();
        self.output = None;
        if switch.follows && self.failed {
            return;
        }
        self.series = switch.series;
        self.failed = false;
        match switch.opener.map(|open| open()) {
            None => self.settle(switch.offset),
            Some(Ok(Opened { file, length, .. })) => {
                self.output = Some(Output { file, length });
                self.shared.progress.file_length.store(length, Ordering::Relaxed);
                self.settle(switch.offset);
            }
            Some(Err(error)) => self.fail(Operation::Open, &error),
        }
    }

    /// Everything up to `offset` is in files that are closed, or replaced by a base.
    fn settle(&mut self, offset: u64) {
        self.shared.progress.written.store(offset, Ordering::Release);
        self.shared.progress.synced.store(offset, Ordering::Release);
        self.tell_progress();
    }

    /// Whether a sync is due that somebody waits for.
    fn is_waited_for(&self) -> bool {
        let settings = &self.shared.settings;
        let flush_to = self.shared.flush_to.load(Ordering::Relaxed);
        flush_to > self.shared.progress.synced.load(Ordering::Relaxed)
            || (self.unsynced_since.is_some()
                && !settings.syncs_paused()
                && settings.policy() == AppendFsync::Always)
    }

    /// Whether a sync is due that nobody waits for.
    fn sync_is_due(&self) -> bool {
        let settings = &self.shared.settings;
        let is_old = |since: Instant| since.elapsed() >= self.shared.timing.sync_age;
        self.syncing.is_none()
            && self.unsynced_since.is_some_and(is_old)
            && !settings.syncs_paused()
            && settings.policy() == AppendFsync::EverySecond
    }

    /// Makes durable what was written.
    fn sync(&mut self) {
        self.end_syncing();
        let Some(since) = self.unsynced_since.take() else { return };
        let Some(output) = &mut self.output else { return self.note_durable(None) };
        let began = Instant::now();
        let synced = output.file.sync();
        let target = self.shared.progress.written.load(Ordering::Relaxed);
        self.note_sync(began.elapsed(), since.elapsed());
        match synced {
            Ok(()) => self.note_durable(Some(target)),
            Err(error) => self.fail(Operation::Sync, &error),
        }
    }

    /// Has another thread make durable what was written.
    fn begin_syncing(&mut self) {
        let (Some(since), Some(output)) = (self.unsynced_since, &self.output) else { return };
        let (this, done) = (std::thread::current(), Arc::new(AtomicBool::new(false)));
        let is_done = Arc::clone(&done);
        let thread = output.file.sync_elsewhere().and_then(|sync| {
            std::thread::Builder::new().name("journal-sync".to_owned()).spawn(move || {
                let began = Instant::now();
                let synced = sync();
                is_done.store(true, Ordering::Release);
                this.unpark();
                (synced, began.elapsed())
            })
        });
        match thread {
            Ok(thread) => {
                let target = self.shared.progress.written.load(Ordering::Relaxed);
                self.unsynced_since = None;
                self.syncing = Some(SyncElsewhere { thread, done, target, since });
            }
            // Without a file number or a thread to spare, this one does it.
            Err(_) => self.sync(),
        }
    }

    /// Waits for the other thread's sync, if there is one.
    fn end_syncing(&mut self) {
        let Some(SyncElsewhere { thread, target, since, .. }) = self.syncing.take() else { return };
        let Ok((synced, took)) = thread.join() else {
            unreachable!("a panic has ended the process already");
        };
        self.note_sync(took, since.elapsed());
        match synced {
            Ok(()) => self.note_durable(Some(target)),
            Err(error) => self.fail(Operation::Sync, &error),
        }
    }

    /// Everything that was written up to `synced` is durable, or of no use any more.
    fn note_durable(&self, synced: Option<u64>) {
        let progress = &self.shared.progress;
        if let Some(synced) = synced {
            progress.synced.store(synced, Ordering::Release);
        }
        match self.unsynced_since {
            Some(since) => progress.set_unsynced_since(since),
            None => progress.unsynced_since_ns.store(0, Ordering::Relaxed),
        }
        self.tell_progress();
    }

    fn note_sync(&self, took: Duration, age: Duration) {
        let figures = &self.shared.figures;
        figures.syncs.add(1);
        figures.sync_durations.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        let policy = self.shared.settings.policy();
        if policy == AppendFsync::EverySecond && age > self.shared.timing.late {
            figures.delayed_syncs.add(1);
        }
        if policy == AppendFsync::Always {
            self.shared.observer.took("aof-fsync-always", took);
        }
    }

    /// Tells the observer, and those who wait for a flush.
    fn tell_progress(&self) {
        self.shared.observer.progressed(self.shared.progress.synced.load(Ordering::Relaxed));
        // With the lock, so that nobody begins to wait between looking and being told.
        let _waiting = self.shared.failure.lock();
        self.shared.settled.notify_all();
    }

    /// Gives the file up. When another series is to begin already, that is all.
    fn fail(&mut self, operation: Operation, error: &io::Error) {
        self.failed = true;
        self.output = None;
        self.unsynced_since = None;
        // Whatever comes of it, the file is given up.
        self.syncing = None;
        self.shared.progress.unsynced_since_ns.store(0, Ordering::Relaxed);
        let failure = Failure {
            operation,
            errno: error.raw_os_error(),
            reason: error.to_string(),
            synced: self.shared.progress.synced.load(Ordering::Relaxed),
        };
        let mut queue = self.shared.queue.lock();
        if queue.refuse(self.series) {
            self.shared.failed.store(true, Ordering::Relaxed);
            *self.shared.failure.lock() = Some(failure.clone());
            self.shared.settled.notify_all();
        }
        drop(queue);
        self.shared.observer.failed(&failure);
    }
}

/// What the thread does between two rounds.
enum Rest {
    /// Waits for something to do, at most so long.
    Idle(Duration),
    /// Lets effects gather, unless somebody waits for them.
    Gathering,
}

/// The life of the thread.
pub(super) fn run(shared: &Shared, writer: &Mutex<Writer>) {
    loop {
        let rest = writer.lock().round();
        shared.held_long.store(false, Ordering::Relaxed);
        // Pieces that workers allocated may have been freed here.
        crate::memory::publish();
        match rest {
            None => break,
            Some(Rest::Idle(longest)) => shared.rest(longest),
            Some(Rest::Gathering) => shared.pause(),
        }
    }
}

impl Shared {
    fn rest(&self, longest: Duration) {
        self.resting.store(true, Ordering::Relaxed);
        // With the lock: see `nudge`.
        if self.queue.lock().is_empty() {
            std::thread::park_timeout(longest);
        }
        self.resting.store(false, Ordering::Relaxed);
    }

    fn pause(&self) {
        let (appended, written) = (&self.progress.appended, &self.progress.written);
        let pending =
            appended.load(Ordering::Relaxed).saturating_sub(written.load(Ordering::Relaxed));
        if self.settings.policy() != AppendFsync::Always && pending < NO_PAUSE {
            std::thread::park_timeout(self.timing.pause);
        }
    }
}

impl Output {
    /// Writes pieces behind one another. What was not written as a whole is cut off again.
    fn write(&mut self, chunks: &[Chunk], shared: &Shared, syncing: bool) -> io::Result<()> {
        let began = Instant::now();
        let mut slices: Vec<_> = chunks.iter().map(|chunk| IoSlice::new(&chunk.bytes)).collect();
        let mut written = 0;
        let outcome = write_all_vectored(&mut *self.file, &mut slices, &mut written);
        for chunk in chunks {
            let Some(left) = written.checked_sub(chunk.bytes.len() as u64) else { break };
            written = left;
            self.length += chunk.bytes.len() as u64;
            shared.progress.written.store(chunk.end, Ordering::Release);
        }
        shared.progress.file_length.store(self.length, Ordering::Relaxed);
        if outcome.is_err() {
            // If this fails too, the file ends in a tear, which loading cuts off.
            let _ = self.file.truncate(self.length);
        }
        shared.figures.writes.add(1);
        let took = began.elapsed();
        if took >= NOTED {
            let event = if syncing { "aof-write-pending-fsync" } else { "aof-write-alone" };
            shared.observer.took(event, took);
            shared.observer.took("aof-write", took);
        }
        outcome
    }
}
