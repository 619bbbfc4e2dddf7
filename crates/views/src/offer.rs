//! What requests find: the views, and whose results are kept.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::definition::Views;

/// See the module's text.
#[derive(Debug)]
pub struct Offer {
    /// What the file says.
    pub views: Views,
    /// Views of which results may be kept that an earlier file has defined.
    pub changed: BTreeSet<String>,
    settled: AtomicBool,
}

impl Offer {
    /// The views, when others have been served before whose results are to be forgotten.
    #[must_use]
    pub fn new(views: Views, changed: BTreeSet<String>) -> Offer {
        let settled = AtomicBool::new(changed.is_empty());
        Offer { views, changed, settled }
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

    /// Whether what is kept of a view may be of another one, which had its name before.
    #[must_use]
    pub fn is_settling(&self, name: &str) -> bool {
        !self.is_settled() && self.changed.contains(name)
    }
}
