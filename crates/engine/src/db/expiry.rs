//! Decides who may delete expired keys and fields. No other code decides that.
//!
//! For commands, an expired key or an expired field of a hash is absent. Deleting it is a separate
//! step, because a deletion is a write: the journal gets it, and other clients hear of it. So all
//! code that deletes it asks here first: a command that meets it, a command that changes something
//! in its place, a walk (SCAN, KEYS, RANDOMKEY), active expiry, a command that sets a time in the
//! past, and the loader of a file.
//!
//! While the data stands still (`Engine::stands_still`), nothing is deleted that no command
//! asked to delete.

use config::Config;

/// Who decides when data expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// This server: it deletes what has expired.
    Deletes,
    /// This server, which imports data now (`import-mode`): the source may still prolong what has
    /// expired. It stays until something changes in its place.
    Waits,
    /// Another server, which says when to delete it. Until then it is absent, and stays. What a
    /// command of this server puts in its place replaces it.
    Elsewhere,
}

impl Expiry {
    /// As the settings say. `elsewhere` says whether another server decides.
    #[inline]
    pub(crate) fn of(config: &Config, elsewhere: bool) -> Expiry {
        match (elsewhere, config.import_mode) {
            (true, _) => Expiry::Elsewhere,
            (false, true) => Expiry::Waits,
            (false, false) => Expiry::Deletes,
        }
    }

    /// Whether it may be deleted because somebody came across it: a read, a walk, or active expiry.
    #[inline]
    pub(crate) fn deletes_met(self, stands_still: bool) -> bool {
        self == Expiry::Deletes && !stands_still
    }

    /// Whether it is deleted before a command changes something in its place.
    #[inline]
    pub(crate) fn deletes_before_change(self) -> bool {
        self != Expiry::Elsewhere
    }

    /// Whether a command that sets a time which is over deletes at once. Otherwise it sets that
    /// time.
    #[inline]
    pub(crate) fn deletes_at_once(self) -> bool {
        self == Expiry::Deletes
    }

    /// Whether what has expired in a snapshot is left out when that is loaded.
    pub(crate) fn drops_when_loaded(self) -> bool {
        self != Expiry::Elsewhere
    }
}
