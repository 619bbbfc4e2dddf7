//! The context in which received bytes are looked at.

use config::Config;
use engine::command::Spec;
use engine::engine::Engine;
use engine::session::client::Client;
use views::{Offer, View};

/// See the module's text.
#[derive(Clone, Copy)]
pub(super) struct Intake<'a> {
    pub(super) engine: &'a Engine,
    pub(super) config: &'a Config,
    /// Their number: others have another one.
    pub(super) config_generation: u64,
    /// The views of databases.
    pub(super) offer: &'a Offer,
    /// The client that sends it.
    pub(super) client: &'a Client,
    /// The client has shown who it is.
    pub(super) authenticated: bool,
    /// It is another server that brings slots, which may: it sends what that one has, whatever
    /// clients may send here.
    pub(super) brings_slots: bool,
    /// Which commands it calls by their own names, as another node does that does not know how
    /// this one has renamed them.
    pub(super) by_own_name: Option<fn(&Spec) -> bool>,
    /// Which connection it is of.
    pub(super) connection_index: usize,
    /// Milliseconds of the monotonic clock.
    pub(super) monotonic: u64,
}

impl Intake<'_> {
    /// Whether a view is one for writing.
    pub(super) fn writes_through(&self, view: &[u8]) -> bool {
        let name = std::str::from_utf8(view).ok();
        name.and_then(|name| self.offer.views.views.get(name)).is_some_and(View::is_written)
    }
}
