//! Signals, received by a thread of their own.
//!
//! They are blocked everywhere and taken by `sigwait`, so that no code ever runs in the middle of
//! other code.

use crate::system;

/// The requests of an operator by signal, or of a terminal that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

impl Caught {
    /// The name of the signal.
    pub fn name(self) -> &'static str {
        match self {
            Caught::Interrupt => "SIGINT",
            Caught::Terminate => "SIGTERM",
            Caught::HangUp => "SIGHUP",
        }
    }
}

const CAUGHT: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Sets the signals up. Must be called before any thread starts.
pub fn prepare() {
    // A closed socket is noticed by the write to it.
    system::ignore_signal(libc::SIGPIPE);
    // A write to a file that has reached its allowed size fails with an error.
    system::ignore_signal(libc::SIGXFSZ);
    system::block_signals(&CAUGHT);
}

/// Waits for the next signal. Also returns whether the process's own parent has sent it, which is
/// the service manager if there is one.
pub fn wait() -> (Caught, bool) {
    let (number, sender) = system::wait_for_signal(&CAUGHT);
    let caught = match number {
        libc::SIGINT => Caught::Interrupt,
        libc::SIGHUP => Caught::HangUp,
        _ => Caught::Terminate,
    };
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    (caught, sender != 0 && sender == parent)
}
