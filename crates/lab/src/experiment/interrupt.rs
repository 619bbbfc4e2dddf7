//! Ctrl-C: the first asks the lab to end in order, with what it has; the second ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the lab was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that the signals of a terminal and of `kill` set.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn by_signals() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag still down and only raises it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupt.0))?;
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Asks the lab to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// What is set when it was asked, for those that look at it themselves.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether it was asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
