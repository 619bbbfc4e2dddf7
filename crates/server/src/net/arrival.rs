//! A new connection on its way from the acceptor to its worker, and the connection of a replica on
//! its way to the thread that serves replicas.

use std::sync::Arc;

use engine::session::client::Client;
use engine::session::replicas::introduction::SyncRequest;

use super::protocol::Speaks;
use super::transport::{AnyTransport, Origin};

/// A new connection.
pub(super) struct Arrival {
    pub(super) transport: AnyTransport,
    pub(super) origin: Origin,
    pub(super) speaks: Speaks,
    /// The names of users that its certificate has, if such a name makes a client that user.
    pub(super) names: Vec<Vec<u8>>,
    /// The client's number: they follow the order in which connections were accepted.
    pub(super) id: u64,
}

/// The connection of a replica.
pub(super) struct Handover {
    pub(super) transport: AnyTransport,
    pub(super) client: Arc<Client>,
    /// What it has sent after its request.
    pub(super) input: Vec<u8>,
    pub(super) request: SyncRequest,
}
