//! The thread that tells followers of the journal what has happened.
//!
//! It is woken when effects were appended, or have become durable if followers wait for that, and rests
//! otherwise. While much happens it pauses between two looks, so that many changes share the work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;
use engine::changes::telling::Form;
use engine::engine::Engine;

/// The longest rest.
const REST_MAX: Duration = Duration::from_millis(500);

/// The rest while something must not be seen yet: a write that is on its way to its file.
const REST_MIN: Duration = Duration::from_millis(2);

/// The pause after something was told.
const PAUSE: Duration = Duration::from_micros(500);

/// The running thread.
pub struct Telling {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Telling {
    /// Starts the thread, which writes changes in this form.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(engine: Arc<Engine>, form: &'static (dyn Form + Sync)) -> io::Result<Telling> {
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = std::thread::Builder::new().name("changes".to_owned()).spawn(move || {
            let mut told_positions = Instant::now();
            while !stop.load(Relaxed) {
                round(&engine, form, &mut told_positions);
                crate::memory::publish();
            }
        })?;
        Ok(Telling { stopping, thread })
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
fn round(engine: &Engine, form: &dyn Form, told_positions: &mut Instant) {
    let Some(backlog) = engine.journal.changes() else { return std::thread::park() };
    let seen = backlog.newest();
    while engine.tell_changes(form) {}
    let heartbeat = Duration::from_millis(limits::CHANGES_HEARTBEAT_MS);
    if told_positions.elapsed() >= heartbeat {
        *told_positions = Instant::now();
        engine.tell_positions(form);
    }
    let config = engine.config.load();
    backlog.set_limit(config.changes_backlog_size);
    let patience = u64::from(config.changes_backlog_ttl) * 1000;
    engine.let_changes_go(base::clock::steady_ms(), patience);
    drop(config);
    if !engine.listeners.is_empty() && engine.journal.shown() < seen {
        std::thread::park_timeout(REST_MIN);
    } else {
        backlog.rest(seen, REST_MAX);
        if !engine.listeners.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
}
