//! Where connections come from: a socket that listens, and the transport of what it accepts.

use std::fmt::{Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use config::Config;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use super::any::AnyTransport;
use super::socket::Socket;
use super::tls::Tls;

/// A connection that was just accepted.
pub(in crate::net) struct Accepted {
    pub(in crate::net) transport: AnyTransport,
    pub(in crate::net) origin: Origin,
}

/// Where a connection comes from.
pub(in crate::net) struct Origin {
    /// The client's address, or the path of the unix socket.
    pub(in crate::net) address: String,
    /// The server's address, or the path of the unix socket.
    pub(in crate::net) local_address: String,
    /// The client's address on the network, unless it came by a unix socket.
    pub(in crate::net) peer: Option<SocketAddr>,
}

impl Display for Origin {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let Origin { address, local_address, .. } = self;
        write!(formatter, "addr={address} laddr={local_address}")
    }
}

/// A place where connections arrive.
pub(in crate::net) trait Source: Send {
    /// Accepts the next connection, with the settings that concern its transport. When none waits,
    /// the error is [`io::ErrorKind::WouldBlock`], and an event announces the next one.
    fn accept(&self, config: &Config) -> io::Result<Accepted>;

    /// Has connections that arrive announced with this token, edge-triggered.
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()>;

    /// Takes that back. Others may have the socket too, so that closing it here does not.
    fn deregister(&mut self, registry: &Registry) -> io::Result<()>;
}

impl Source for TcpListener {
    fn accept(&self, config: &Config) -> io::Result<Accepted> {
        let (socket, peer) = TcpListener::accept(self)?;
        let local = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let socket = Socket::tcp(socket, config.tcp_keepalive);
        let origin = Origin { address: peer.to_string(), local_address: local, peer: Some(peer) };
        Ok(Accepted { transport: AnyTransport::Socket(socket), origin })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self, token, Interest::READABLE)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(self)
    }
}

/// A TCP socket that listens, and what encrypts the connections that arrive there. Their handshakes
/// have not begun when they are accepted.
pub(in crate::net) struct TlsSource {
    pub(in crate::net) listener: TcpListener,
    pub(in crate::net) active: Arc<tls::Active>,
    pub(in crate::net) speaks_http: bool,
}

impl Source for TlsSource {
    fn accept(&self, config: &Config) -> io::Result<Accepted> {
        let (socket, peer) = self.listener.accept()?;
        let local = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let socket = Socket::tcp(socket, config.tcp_keepalive);
        let origin = Origin { address: peer.to_string(), local_address: local, peer: Some(peer) };
        let by = self.active.for_client(self.speaks_http);
        let by = by.ok_or_else(|| io::Error::other("there are no certificates"))?;
        Ok(Accepted { transport: AnyTransport::Tls(Box::new(Tls::new(socket, by)?)), origin })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.listener)
    }
}

/// A unix socket that listens, and its path.
pub(in crate::net) struct UnixSource(pub(in crate::net) UnixListener, pub(in crate::net) String);

impl Source for UnixSource {
    fn accept(&self, _: &Config) -> io::Result<Accepted> {
        let UnixSource(listener, path) = self;
        let (socket, _) = listener.accept()?;
        let address = format!("{path}:0");
        let origin = Origin { address: address.clone(), local_address: address, peer: None };
        Ok(Accepted { transport: AnyTransport::Socket(Socket::unix(socket)), origin })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.0, token, Interest::READABLE)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.0)
    }
}
