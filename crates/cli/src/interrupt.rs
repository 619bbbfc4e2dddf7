//! Ctrl-C, as a flag that is looked at between two steps.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on Ctrl-C, and SIGTERM, only set the flag.
pub(crate) fn catch() -> io::Result<()> {
    flag::register(SIGINT, Arc::clone(&ASKED))?;
    flag::register(SIGTERM, Arc::clone(&ASKED)).map(drop)
}

/// Whether it was pressed since [`take`] was called the last time.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// The same; the flag is off afterwards.
pub(crate) fn take() -> bool {
    ASKED.swap(false, Ordering::Relaxed)
}
