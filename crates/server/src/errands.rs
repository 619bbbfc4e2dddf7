//! The thread for work that could make a worker wait for a slow disk: the file that FLUSHALL writes,
//! and CONFIG REWRITE. Only the client that asked waits for its errand.

use std::io;

use engine::engine::Errand;
use engine::wait::waiting::Waiter;

use crate::assistant::Assistant;

/// The thread. A job is the waiting client, and its errand.
pub type Errands = Assistant<(Waiter, Errand)>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<Errands> {
    Assistant::start("errands", |engine, (waiter, errand): (Waiter, Errand)| {
        let reply = errand(engine);
        engine.answer(&waiter, &reply);
    })
}
