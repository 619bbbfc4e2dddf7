//! How a thread begins.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::system;

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
