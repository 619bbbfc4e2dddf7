//! What requests find: the views, and which kept results are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use crate::definition::Views;

/// See the module's text.
#[derive(Debug)]
pub struct Offer {
    /// The contents of the file.
    pub views: Views,
    /// Views that may have kept results of an earlier file's definition.
    pub changed: BTreeSet<String>,
    settled: AtomicBool,
    /// By the names of the views: when their results were last forgotten, in milliseconds of Unix
    /// time; 0 if never.
    forgotten: BTreeMap<String, AtomicU64>,
}

impl Offer {
    /// The views, when earlier views were served whose results must be forgotten.
    #[must_use]
    pub fn new(views: Views, changed: BTreeSet<String>) -> Offer {
        let settled = AtomicBool::new(changed.is_empty());
        let forgotten = views.views.keys().map(|name| (name.clone(), AtomicU64::new(0))).collect();
        Offer { views, changed, settled, forgotten }
    }

    /// Says that the results of views with a tag which were kept before a millisecond of Unix time
    /// are of no use.
    ///
    /// They are deleted as well. But that may fail, or leave some out: the list of a tag's results
    /// is a key, which may have been evicted.
    pub fn forget(&self, tag: &[u8], now: u64) {
        for (name, view) in &self.views.views {
            if view.tags.iter().any(|own| own.as_bytes() == tag) {
                self.forget_before(name, now);
            }
        }
    }

    fn forget_before(&self, name: &str, time: u64) {
        if let Some(forgotten) = self.forgotten.get(name) {
            forgotten.fetch_max(time, SeqCst);
        }
    }

    /// When the results of a view were forgotten last. A clock that was set back must not make that
    /// the future.
    #[must_use]
    pub fn forgotten_at(&self, name: &str, now: u64) -> Option<u64> {
        let at = self.forgotten.get(name).map_or(0, |forgotten| forgotten.load(SeqCst));
        (1..=now).contains(&at).then_some(at)
    }

    /// Takes over the results still to be forgotten from the offer that this one replaces.
    pub fn take_over(&self, before: &Offer) {
        for (name, forgotten) in &before.forgotten {
            self.forget_before(name, forgotten.load(SeqCst));
        }
    }

    /// Says that those results are forgotten.
    pub fn settle(&self) {
        self.settled.store(true, SeqCst);
    }

    /// Whether no such result is kept any more.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled.load(SeqCst)
    }

    /// Whether a kept result of a view may belong to another one, which had its name before.
    #[must_use]
    pub fn is_settling(&self, name: &str) -> bool {
        !self.is_settled() && self.changed.contains(name)
    }
}
