//! Ctrl-C: the first asks the lab to end in order, with its results so far. The second ends it at
//! once and removes its servers, their directories and their cgroups. A third does not wait for
//! that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::process::kill_all;
use super::{cgroup, directory};

/// Whether the lab was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// An interrupt that the signals of a terminal and of `kill` set.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn by_signals() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        let is_ending = Arc::new(AtomicBool::new(false));
        let all = [SIGINT, SIGTERM, SIGHUP];
        for signal in all {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&is_ending))?;
        }
        let mut signals = Signals::new(all)?;
        let asked = Arc::clone(&interrupt.0);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if asked.swap(true, Ordering::AcqRel) {
                    is_ending.store(true, Ordering::Release);
                    kill_all();
                    directory::remove_all();
                    cgroup::remove_all();
                    signal_hook::low_level::exit(128 + signal);
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Asks the lab to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The flag that is set then, for code that looks at it itself.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether it was asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
