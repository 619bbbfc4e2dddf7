//! How a thread begins.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::system;

/// Has a thread of this name do `work`, and waits for it: what the thread becomes, the caller does
/// not.
///
/// # Errors
/// The system provides no thread.
pub fn apart<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = Builder::new().name(name.to_owned()).spawn_scoped(scope, || {
            system::keep_report_stack();
            work()
        })?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Starts a thread of this name that does `work`.
///
/// # Errors
/// The system provides no thread.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        system::keep_report_stack();
        work()
    })
}
