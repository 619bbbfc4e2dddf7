//! Processor time of the calling thread.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Usage {
    /// What the calling thread has used since it began.
    pub(crate) fn of_this_thread() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a live variable of the right type, and all-zero bytes are a
        // valid value of it in case the call fails, which it does for no thread.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
    }

    /// What was used since an earlier look.
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        Usage { user: self.user - earlier.user, system: self.system - earlier.system }
    }

    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }
}
