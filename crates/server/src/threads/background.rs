//! The thread for work that could make a worker wait for the world outside: the file that FLUSHALL
//! writes, CONFIG REWRITE, and a CONFIG SET that opens files or sockets. Only the client that asked
//! waits for its job.

use std::io;

use engine::engine::storage::BackgroundJob;
use engine::session::attachment::Waiter;

use crate::threads::job_thread::JobThread;

/// The thread. A job comes with the client that waits for it.
pub type BackgroundJobs = JobThread<(Waiter, BackgroundJob)>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<BackgroundJobs> {
    JobThread::start("errands", |engine, (waiter, job): (Waiter, BackgroundJob)| {
        let reply = job(engine);
        engine.answer(&waiter, &reply);
    })
}
