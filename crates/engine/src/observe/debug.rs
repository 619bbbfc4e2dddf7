//! What DEBUG commands switch.

use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Switches that DEBUG commands flip.
pub struct DebugConfig {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON.
    pub pause_cron: AtomicBool,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: list elements of at least this many bytes get a node of
    /// their own.
    pub quicklist_packed_threshold: AtomicUsize,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: whether the checksums of RDB files and of RESTORE's
    /// payload may be wrong.
    pub skip_checksum_validation: AtomicBool,
}

/// [`DebugConfig::quicklist_packed_threshold`] unless DEBUG sets it.
pub const DEFAULT_PACKED_THRESHOLD: usize = 1 << 30;

impl Default for DebugConfig {
    fn default() -> DebugConfig {
        DebugConfig {
            active_expire: AtomicBool::new(true),
            pause_cron: AtomicBool::new(false),
            quicklist_packed_threshold: AtomicUsize::new(DEFAULT_PACKED_THRESHOLD),
            skip_checksum_validation: AtomicBool::new(false),
        }
    }
}
