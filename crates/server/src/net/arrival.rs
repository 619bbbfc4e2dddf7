//! A connection between the thread that accepts it and the worker that it is given to.

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
}
