//! A thread beside the workers that does jobs of one kind, in the order in which they came. Each
//! job has a client that waits for it, so there are no more jobs than clients.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use engine::engine::Engine;
use parking_lot::Mutex;

use process::thread;

/// See the module's text.
pub struct JobThread<J> {
    /// `None` once the thread has been told to end.
    jobs: Mutex<Option<Sender<J>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Set once, when there is an engine.
    engine: Arc<OnceLock<Weak<Engine>>>,
}

impl<J: Send + 'static> JobThread<J> {
    /// Starts the thread, which does each job in this way.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        name: &str,
        mut work: impl FnMut(&Arc<Engine>, J) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let engine = Arc::<OnceLock<Weak<Engine>>>::default();
        let shared = Arc::clone(&engine);
        let thread = thread::start(name, move || {
            for job in receiver {
                // Clients give jobs, and clients are gone before the engine is.
                let Some(engine) = shared.get().and_then(Weak::upgrade) else { break };
                work(&engine, job);
                process::memory::publish();
            }
        })?;
        Ok(JobThread { jobs: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), engine })
    }

    /// Connects it with the engine whose clients it answers.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// Gives the thread a job, which it does after the earlier ones.
    pub fn add(&self, job: J) {
        if let Some(jobs) = &*self.jobs.lock() {
            // A panic of the thread has ended the process already.
            let _ = jobs.send(job);
        }
    }

    /// Has the remaining jobs done, and ends the thread. No client runs a command any more.
    pub fn stop(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}
