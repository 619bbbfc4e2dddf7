//! What a request is looked at with.

use config::Config;
use engine::engine::Engine;
use engine::session::client::Client;
use views::Views;

/// See the module's text.
#[derive(Clone, Copy)]
pub(in crate::net) struct Intake<'a> {
    pub(in crate::net) engine: &'a Engine,
    pub(in crate::net) config: &'a Config,
    /// The views of databases.
    pub(in crate::net) views: &'a Views,
    /// Who sends it.
    pub(in crate::net) client: &'a Client,
    /// Which connection it is of.
    pub(in crate::net) place: usize,
    /// Milliseconds of the steady clock.
    pub(in crate::net) steady: u64,
}
