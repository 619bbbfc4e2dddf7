//! The structures of everything that is larger than a packed block.

use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) mod dict;
pub mod ranked;
pub mod retire;

/// Whether tables of keys may get more and fewer buckets: see [`set_resizing`].
static RESIZING: AtomicBool = AtomicBool::new(true);

/// Makes the tables of keys keep their sizes, whatever enters and leaves them, or lets them follow
/// again: DEBUG DICT-RESIZING. Chains grow meanwhile. A table follows at its next changes, one
/// bucket at each.
pub fn set_resizing(on: bool) {
    RESIZING.store(on, Ordering::Relaxed);
}

fn is_resizing() -> bool {
    RESIZING.load(Ordering::Relaxed)
}
