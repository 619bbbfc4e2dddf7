//! Making written data durable: when a sync is due, and which thread does it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use config::AppendFsync;
use store::sync::thread;
use store::sync::{AtomicBool, Mutex};

use super::pending::{Errors, Left, SyncElsewhere, Syncer};
use super::{Before, REST_MAX, Writer};
use crate::disk;
use process::system;

/// Syncs to be done in this order.
struct Syncs {
    left: Vec<Left>,
    /// The number of the present file's series, and its syncs.
    present: Option<(u64, disk::SyncElsewhere)>,
}

impl Syncs {
    fn perform(self) -> Errors {
        let mut errors = Errors::new();
        for Left { mut file, series, .. } in self.left {
            errors.extend(file.sync().err().map(|error| (series, error)));
        }
        // A file must not be durable in a part that follows a gap.
        if let Some((series, sync)) = self.present
            && errors.iter().all(|(failed, _)| *failed != series)
        {
            errors.extend(sync().err().map(|error| (series, error)));
        }
        errors
    }
}

impl Writer {
    /// Begins and ends syncs where that is due.
    pub(super) fn look_after_syncs(&mut self) {
        if self.syncing.as_ref().is_some_and(|syncing| syncing.done.load(Ordering::Acquire)) {
            self.end_syncing();
        }
        let config = &self.shared.config;
        let synced = self.shared.progress.synced.load(Ordering::Relaxed);
        let flushes = self.shared.flush_to.load(Ordering::Relaxed) > synced;
        let unsynced = self.unsynced_since.is_some() || !self.left.is_empty();
        let policy = config.policy();
        if policy == AppendFsync::Always && (flushes || (unsynced && !config.syncs_paused())) {
            self.sync();
        } else if self.syncing.is_none() {
            let is_old = |since: Instant| since.elapsed() >= self.shared.timing.sync_age;
            let must_sync = policy == AppendFsync::EverySecond
                && !config.syncs_paused()
                && self.unsynced_since.is_some_and(is_old);
            self.begin_syncing(flushes || must_sync);
        }
    }

    /// The longest rest until the next sync is due.
    pub(super) fn until_next_sync(&self) -> Duration {
        let sync_at = self.unsynced_since.map(|since| since + self.shared.timing.sync_age);
        let left = sync_at.map(|sync_at| sync_at.saturating_duration_since(Instant::now()));
        // A sync that is due and must wait (under the policy `no`) does not make the thread spin.
        left.filter(|left| !left.is_zero()).unwrap_or(REST_MAX).min(REST_MAX)
    }

    /// Since when data is not durable, besides what is in `syncing`.
    fn oldest(&self) -> Option<Instant> {
        self.left.first().map(|left| left.since).or(self.unsynced_since)
    }

    /// Makes written data durable, on this thread.
    pub(super) fn sync(&mut self) {
        self.end_syncing();
        let Some(since) = self.oldest() else { return };
        let began = Instant::now();
        let target = self.shared.progress.written.load(Ordering::Relaxed);
        let mut errors = Syncs { left: std::mem::take(&mut self.left), present: None }.perform();
        if self.unsynced_since.take().is_some()
            && errors.iter().all(|(series, _)| *series != self.series)
            && let Some(output) = &mut self.output
        {
            errors.extend(output.file.sync().err().map(|error| (self.series, error)));
        }
        self.conclude(&errors, target, began.elapsed(), since);
    }

    /// Has another thread make durable what is in files before the present one, and with
    /// `with_present` also what is in that one.
    fn begin_syncing(&mut self, with_present: bool) {
        let Some(since) = self.oldest() else { return };
        let present = match (&self.output, self.unsynced_since) {
            (Some(output), Some(_)) if with_present => output.file.sync_elsewhere().map(Some),
            _ => Ok(None),
        };
        // Without a file number to spare, this one does it.
        let Ok(present) = present else { return self.sync() };
        let target = match (&present, self.left.last()) {
            (Some(_), _) => self.shared.progress.written.load(Ordering::Relaxed),
            (None, Some(left)) => left.end,
            (None, None) => return,
        };
        let slows_writing = present.is_some();
        if slows_writing {
            self.unsynced_since = None;
        }
        let present = present.map(|sync| (self.series, sync));
        let syncs = Syncs { left: std::mem::take(&mut self.left), present };
        let syncs = Arc::new(Mutex::new(Some(syncs)));
        match spawn(&syncs) {
            Ok((thread, done)) => {
                self.syncing = Some(SyncElsewhere { thread, done, target, since, slows_writing });
            }
            // Without a thread to spare, this one does it.
            Err(_) => {
                let began = Instant::now();
                let errors = syncs.lock().take().map(Syncs::perform).unwrap_or_default();
                self.conclude(&errors, target, began.elapsed(), since);
            }
        }
    }

    /// Waits for the other thread's syncs, if there are any.
    fn end_syncing(&mut self) {
        let Some(SyncElsewhere { thread, target, since, .. }) = self.syncing.take() else { return };
        let Ok((errors, took)) = thread.join() else {
            unreachable!("a panic has ended the process already");
        };
        self.conclude(&errors, target, took, since);
    }

    fn conclude(&mut self, errors: &Errors, target: u64, took: Duration, since: Instant) {
        self.note_sync(took, since.elapsed());
        errors.iter().for_each(|(series, error)| self.give_up(*series, error));
        // A file that another series has replaced does not delay that series.
        if errors.is_empty() || self.output.is_some() {
            self.note_durable(target);
        }
        if errors.is_empty() && self.left.is_empty() && self.syncing.is_none() {
            self.note_durable_before();
            self.note_durable_if_all_is();
        }
    }

    /// Lets the present file say that those before it are durable, unless it has.
    fn note_durable_before(&mut self) {
        if let Some(output) = &mut self.output
            && std::mem::take(&mut output.follows_unsynced)
        {
            self.before = Some(Before::Durable);
        }
    }

    /// Everything up to `synced` is durable.
    pub(super) fn note_durable(&self, synced: u64) {
        self.shared.progress.note_synced(synced);
        self.note_age();
        self.tell_progress();
    }

    /// Notes since when data is not durable. Data that has become durable, or need not any more,
    /// does not count as a late disk.
    pub(super) fn note_age(&self) {
        let progress = &self.shared.progress;
        match self.syncing.as_ref().map(|syncing| syncing.since).or_else(|| self.oldest()) {
            Some(since) => progress.set_unsynced_since(since),
            None => progress.unsynced_since_ns.store(0, Ordering::Relaxed),
        }
    }

    fn note_sync(&self, took: Duration, age: Duration) {
        let metrics = &self.shared.metrics;
        metrics.syncs.add(1);
        metrics.sync_durations.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        let policy = self.shared.config.policy();
        if policy == AppendFsync::EverySecond && age > self.shared.timing.late {
            metrics.delayed_syncs.add(1);
        }
        if policy == AppendFsync::Always {
            self.shared.observer.took("aof-fsync-always", took);
        }
    }
}

/// Begins a thread that performs the syncs. If there is no thread, the syncs are still there.
fn spawn(syncs: &Arc<Mutex<Option<Syncs>>>) -> io::Result<(Syncer, Arc<AtomicBool>)> {
    let (this, done) = (thread::current(), Arc::new(AtomicBool::new(false)));
    let (syncs, is_done) = (Arc::clone(syncs), Arc::clone(&done));
    let thread = thread::Builder::new().name("journal-sync".to_owned()).spawn(move || {
        system::keep_report_stack();
        // It frees what the journal's thread has made.
        process::memory::publish();
        let began = Instant::now();
        let syncs = syncs.lock().take();
        let errors = syncs.map(Syncs::perform).unwrap_or_default();
        is_done.store(true, Ordering::Release);
        this.unpark();
        (errors, began.elapsed())
    })?;
    Ok((thread, done))
}
