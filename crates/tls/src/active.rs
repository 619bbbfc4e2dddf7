//! What new connections of a server go by now. It is replaced as a whole; connections that are open
//! keep what they began with.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::{ClientConfig, ServerConfig};

use crate::certificate::Expiry;
use crate::client::Client;
use crate::server::Server;

/// Both ends of a server: for clients that come to it, and for servers that it connects to.
pub struct Ends {
    /// For clients that come, if any may.
    pub server: Option<Server>,
    /// For connections that it opens.
    pub client: Client,
}

/// See the module's text.
#[derive(Default)]
pub struct Active(ArcSwapOption<Ends>);

impl Active {
    /// Replaces all. Returns what was there before.
    pub fn replace(&self, ends: Option<Arc<Ends>>) -> Option<Arc<Ends>> {
        self.0.swap(ends)
    }

    /// What there is now.
    pub fn ends(&self) -> Option<Arc<Ends>> {
        self.0.load_full()
    }

    /// Whether there is anything to go by.
    pub fn is_on(&self) -> bool {
        self.0.load().is_some()
    }

    /// Whether clients may come.
    pub fn takes_clients(&self) -> bool {
        self.0.load().as_ref().is_some_and(|ends| ends.server.is_some())
    }

    /// For a client that comes and speaks HTTP, or else the protocol of Redis.
    pub fn for_client(&self, speaks_http: bool) -> Option<Arc<ServerConfig>> {
        let ends = self.0.load();
        let server = ends.as_ref()?.server.as_ref()?;
        Some(Arc::clone(if speaks_http { &server.http } else { &server.plain }))
    }

    /// For a connection that the server opens.
    pub fn for_server(&self) -> Option<Arc<ClientConfig>> {
        Some(Arc::clone(&self.0.load().as_ref()?.client.config))
    }

    /// Until when its certificates hold, one entry a kind.
    pub fn expiries(&self) -> Vec<Expiry> {
        let ends = self.0.load();
        let Some(ends) = &*ends else { return Vec::new() };
        let mut first: Vec<Expiry> = Vec::new();
        let of_server = ends.server.iter().flat_map(|server| &server.expiries);
        for own in of_server.chain(&ends.client.expiries) {
            match first.iter_mut().find(|other| other.kind == own.kind) {
                Some(other) if other.not_after <= own.not_after => {}
                Some(other) => other.clone_from(own),
                None => first.push(own.clone()),
            }
        }
        first
    }
}
