//! Signals, received by a thread of their own.
//!
//! They are blocked everywhere and taken by `sigwait`, so that no code ever runs in the middle of
//! other code.

use crate::system;

/// The requests of an operator by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Caught {
    /// The name of the signal.
    pub fn name(self) -> &'static str {
        match self {
            Caught::Interrupt => "SIGINT",
            Caught::Terminate => "SIGTERM",
        }
    }
}

const CAUGHT: [i32; 2] = [libc::SIGINT, libc::SIGTERM];

/// Sets the signals up. Must be called before any thread starts.
pub fn prepare() {
    // A closed terminal does not end a server; a closed socket is noticed by the write to it.
    system::ignore_signal(libc::SIGHUP);
    system::ignore_signal(libc::SIGPIPE);
    // A write to a file that has reached its allowed size fails with an error.
    system::ignore_signal(libc::SIGXFSZ);
    system::block_signals(&CAUGHT);
}

/// Waits for the next signal.
pub fn wait() -> Caught {
    if system::wait_for_signal(&CAUGHT) == libc::SIGINT {
        Caught::Interrupt
    } else {
        Caught::Terminate
    }
}
