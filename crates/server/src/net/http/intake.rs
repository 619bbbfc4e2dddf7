//! The context in which a request is looked at.

use config::Config;
use engine::engine::Engine;
use engine::session::client::Client;
use views::{Offer, View};

/// See the module's text.
#[derive(Clone, Copy)]
pub(in crate::net) struct Intake<'a> {
    pub(in crate::net) engine: &'a Engine,
    pub(in crate::net) config: &'a Config,
    /// Their number: others have another one.
    pub(in crate::net) settings: u64,
    /// The views of databases.
    pub(in crate::net) offer: &'a Offer,
    /// The client that sends it.
    pub(in crate::net) client: &'a Client,
    /// Which connection it is of.
    pub(in crate::net) place: usize,
    /// Milliseconds of the steady clock.
    pub(in crate::net) steady: u64,
}

impl Intake<'_> {
    /// Whether a view is one for writing.
    pub(super) fn writes_through(&self, view: &[u8]) -> bool {
        let name = std::str::from_utf8(view).ok();
        name.and_then(|name| self.offer.views.views.get(name)).is_some_and(View::is_written)
    }
}
