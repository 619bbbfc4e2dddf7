//! A new connection on its way from the acceptor to its worker.

use super::transport::Transport;

/// The protocol of the clients of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// The protocol of Redis.
    Resp,
    /// HTTP/1.1.
    Http,
}

/// A new connection.
pub(super) struct Arrival {
    pub(super) transport: Transport,
    pub(super) speaks: Speaks,
    /// The client's number: they follow the order in which connections were accepted.
    pub(super) id: u64,
}
