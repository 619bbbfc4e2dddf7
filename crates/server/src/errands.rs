//! The thread for work that could make a worker wait for a slow disk: the file that FLUSHALL writes,
//! and CONFIG REWRITE. Errands are done one after another, in the order in which they came. Only the
//! client that asked waits for its errand.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use engine::engine::{Engine, Errand};
use engine::wait::waiting::Waiter;
use parking_lot::Mutex;

/// The waiting client, and its errand.
type Job = (Arc<Waiter>, Errand);

/// See the module's text.
pub struct Errands {
    /// `None` once the thread has been told to end.
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Set once, when there is an engine.
    engine: Arc<OnceLock<Weak<Engine>>>,
}

impl Errands {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start() -> io::Result<Errands> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let engine = Arc::<OnceLock<Weak<Engine>>>::default();
        let shared = Arc::clone(&engine);
        let thread = std::thread::Builder::new().name("errands".to_owned()).spawn(move || {
            for (waiter, errand) in receiver {
                // Clients give errands, and clients are gone before the engine is.
                let Some(engine) = shared.get().and_then(Weak::upgrade) else { break };
                let reply = errand(&engine);
                engine.answer(&waiter, &reply);
                crate::memory::publish();
            }
        })?;
        Ok(Errands { jobs: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), engine })
    }

    /// Connects it with the engine whose clients it answers.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// Gives the thread an errand, which it carries out after the earlier ones.
    pub fn add(&self, waiter: Arc<Waiter>, errand: Errand) {
        if let Some(jobs) = &*self.jobs.lock() {
            // A panic of the thread has ended the process already.
            let _ = jobs.send((waiter, errand));
        }
    }

    /// Finishes the remaining errands, and ends the thread. No client runs a command any more.
    pub fn stop(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}
