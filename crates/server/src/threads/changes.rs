//! The thread that tells followers of the journal what has happened.
//!
//! It is woken when effects were appended, or have become durable if followers wait for that, and
//! rests otherwise. While much happens it pauses between two looks, so that many changes share the
//! work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;
use engine::changes::delivery::Form;
use engine::engine::Engine;

use process::thread;

/// The longest rest.
const REST_MAX: Duration = Duration::from_millis(500);

/// The rest while something must not be seen yet: a write that is on its way to its file.
const REST_MIN: Duration = Duration::from_millis(2);

/// The pause after something was told.
const PAUSE: Duration = Duration::from_micros(500);

/// The pause while nobody follows: replicas keep the journal, and each turn of a worker would wake
/// this thread for nothing.
const PAUSE_ALONE: Duration = Duration::from_millis(10);

/// The running thread.
pub struct ChangeDelivery {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl ChangeDelivery {
    /// Starts the thread, which writes changes in this form.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        engine: Arc<Engine>,
        form: &'static (dyn Form + Sync),
    ) -> io::Result<ChangeDelivery> {
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = thread::start("changes", move || {
            let mut delivered_positions = Instant::now();
            while !stop.load(Relaxed) {
                round(&engine, form, &mut delivered_positions);
                process::memory::publish();
            }
        })?;
        Ok(ChangeDelivery { stopping, thread })
    }

    /// Ends the thread.
    pub fn stop(self) {
        self.stopping.store(true, Relaxed);
        self.thread.thread().unpark();
        // A panic has ended the process already.
        let _ = self.thread.join();
    }
}

/// Tells what has happened, and rests.
fn round(engine: &Engine, form: &dyn Form, delivered_positions: &mut Instant) {
    let Some(backlog) = engine.journal.changes() else { return std::thread::park() };
    let seen = backlog.newest();
    while engine.deliver_changes(form) {}
    let heartbeat = Duration::from_millis(limits::CHANGES_HEARTBEAT_MS);
    if delivered_positions.elapsed() >= heartbeat {
        *delivered_positions = Instant::now();
        engine.deliver_positions(form);
    }
    let config = engine.config.load();
    // Replicas and followers of changes share what is kept.
    let for_replicas = match engine.replicas.patience(&config) {
        0 => 0,
        // The limit is one of memory, of which a block or two may be unused.
        _ => config.repl_backlog_size.saturating_add(config.repl_backlog_size / 8),
    };
    backlog.set_limit(config.changes_backlog_size.max(for_replicas));
    let patience = u64::from(config.changes_backlog_ttl) * 1000;
    let patience = patience.max(engine.replicas.patience(&config));
    engine.let_changes_go(base::clock::monotonic_ms(), patience);
    drop(config);
    if !engine.followers.is_empty() && engine.journal.shown() < seen {
        std::thread::park_timeout(REST_MIN);
    } else {
        backlog.rest(seen, REST_MAX);
        std::thread::sleep(if engine.followers.is_empty() { PAUSE_ALONE } else { PAUSE });
    }
}
