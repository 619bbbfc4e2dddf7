//! The thread that answers reads of `/v2/keys` whose answers are long: a directory of a hundred thousand
//! nodes, or all that is below one. They are answered one after another, each from one instant: the thread
//! holds the slot of the tree meanwhile, so that others wait for it who want the tree, and nobody else.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use engine::engine::Engine;
use engine::wait::waiting::Waiter;
use parking_lot::Mutex;
use resp::args::OwnedArguments;

use crate::hand::Hand;

const LOCKED: &[u8] = b"-BUSY the tree is locked by somebody else for too long\r\n";

/// The words of a read, and who waits for its answer.
type Job = (OwnedArguments, Arc<Waiter>);

/// See the module's text.
pub struct Listings {
    /// `None` once the thread has been told to end.
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Set once, when there is an engine.
    engine: Arc<OnceLock<Weak<Engine>>>,
}

impl Listings {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start() -> io::Result<Listings> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let shared = Arc::<OnceLock<Weak<Engine>>>::default();
        let engine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("listings".to_owned()).spawn(move || {
            let mut hand: Option<Hand> = None;
            for (argv, waiter) in receiver {
                // Many may ask and go before it is their turn.
                if !waiter.is_waiting() {
                    continue;
                }
                // Clients ask, and they go before the engine does.
                let Some(engine) = shared.get().and_then(Weak::upgrade) else { break };
                let row = engine.commands.http().node_list;
                let own = || Hand::new(Arc::clone(&engine), "listings");
                match hand.get_or_insert_with(own).run_row(row, &argv) {
                    Some(reply) => engine.answer_with(&waiter, reply),
                    None => engine.answer(&waiter, LOCKED),
                }
                crate::memory::publish();
            }
        })?;
        Ok(Listings { jobs: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), engine })
    }

    /// Connects it with the engine whose clients it answers.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// Has the thread answer this when it has answered what came before.
    pub fn add(&self, argv: OwnedArguments, waiter: Arc<Waiter>) {
        if let Some(jobs) = &*self.jobs.lock() {
            // A panic of the thread has ended the process already.
            let _ = jobs.send((argv, waiter));
        }
    }

    /// Answers what is left, and ends the thread. No client runs a command any more.
    pub fn stop(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}
