//! Where connections come from: a socket that listens, and the transport of what it accepts.

use std::cell::Cell;
use std::fmt::{Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

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

/// A TCP socket that listens. It has the options that its connections are to have: Linux gives each
/// connection those of the socket at which it has arrived, which saves five system calls for each.
pub(in crate::net) struct TcpSource {
    listener: TcpListener,
    /// After how many seconds without traffic its connections are probed (0: never), once it has
    /// been told.
    keepalive: Cell<Option<u32>>,
    /// Some connections may have arrived before it had its options.
    has_older: Cell<bool>,
}

impl TcpSource {
    pub(in crate::net) fn new(listener: TcpListener) -> TcpSource {
        TcpSource { listener, keepalive: Cell::new(None), has_older: Cell::new(true) }
    }

    /// Accepts the next connection, whose options are those of the settings.
    fn accept_socket(&self, config: &Config) -> io::Result<(Socket, Origin)> {
        let keepalive = config.tcp_keepalive;
        let before = self.keepalive.replace(Some(keepalive));
        if before != Some(keepalive) {
            self.has_older.set(true);
            set_options(&self.listener, keepalive);
            if keepalive == 0 && before.is_some() {
                // Those that have arrived already keep the probes: they do no harm.
                let _ = SockRef::from(&self.listener).set_keepalive(false);
            }
        }
        let (socket, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                if error.kind() == io::ErrorKind::WouldBlock {
                    self.has_older.set(false);
                }
                return Err(error);
            }
        };
        if self.has_older.get() {
            set_options(&socket, keepalive);
        }
        let local = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let origin = Origin { address: peer.to_string(), local_address: local, peer: Some(peer) };
        Ok((Socket::tcp(socket), origin))
    }
}

/// Has a socket send at once, and probe its peer after so many seconds without traffic (0: never).
/// One that refuses it is slower, or notices a dead peer later: no reason to refuse it.
fn set_options(socket: &impl AsFd, keepalive: u32) {
    let socket = SockRef::from(socket);
    let _ = socket.set_tcp_nodelay(true);
    if keepalive > 0 {
        let interval = Duration::from_secs(u64::from((keepalive / 3).max(1)));
        let probes = TcpKeepalive::new()
            .with_time(Duration::from_secs(u64::from(keepalive)))
            .with_interval(interval)
            .with_retries(3);
        let _ = socket.set_tcp_keepalive(&probes);
    }
}

impl Source for TcpSource {
    fn accept(&self, config: &Config) -> io::Result<Accepted> {
        let (socket, origin) = self.accept_socket(config)?;
        Ok(Accepted { transport: AnyTransport::Socket(socket), origin })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.listener)
    }
}

/// A TCP socket that listens, and what encrypts the connections that arrive there. Their handshakes
/// have not begun when they are accepted.
pub(in crate::net) struct TlsSource {
    pub(in crate::net) tcp: TcpSource,
    pub(in crate::net) active: Arc<tls::Active>,
    pub(in crate::net) speaks_http: bool,
}

impl Source for TlsSource {
    fn accept(&self, config: &Config) -> io::Result<Accepted> {
        let (socket, origin) = self.tcp.accept_socket(config)?;
        let by = self.active.for_client(self.speaks_http);
        let by = by.ok_or_else(|| io::Error::other("there are no certificates"))?;
        Ok(Accepted { transport: AnyTransport::Tls(Box::new(Tls::new(socket, by)?)), origin })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.tcp.register(registry, token)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.tcp.deregister(registry)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of the next connection.
    fn accepted(source: &TcpSource, config: &Config) -> (bool, bool, Duration) {
        let socket = loop {
            match source.accept_socket(config) {
                Ok((socket, _)) => break socket,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        let own = SockRef::from(&socket);
        let probes = own.keepalive().expect("it is a socket");
        let time = own.tcp_keepalive_time().expect("it is a socket of TCP");
        (own.tcp_nodelay().expect("it is a socket of TCP"), probes, time)
    }

    #[test]
    fn each_connection_has_the_options_of_the_settings() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it is a socket");
        let address = listener.local_addr().expect("it listens");
        let connect = || std::net::TcpStream::connect(address).expect("it listens");
        let mut config = Config { tcp_keepalive: 100, ..Config::default() };
        let of = |seconds| (true, true, Duration::from_secs(seconds));
        // This one comes before the socket has been told anything.
        let mut clients = vec![connect()];
        let source = TcpSource::new(TcpListener::from_std(listener));
        assert_eq!(accepted(&source, &config), of(100));
        assert!(source.accept_socket(&config).is_err() && !source.has_older.get());
        clients.push(connect());
        assert_eq!(accepted(&source, &config), of(100));
        // This one has the old options.
        clients.push(connect());
        config.tcp_keepalive = 30;
        assert_eq!(accepted(&source, &config), of(30));
        clients.push(connect());
        assert_eq!(accepted(&source, &config), of(30));
        config.tcp_keepalive = 0;
        assert!(source.accept_socket(&config).is_err());
        clients.push(connect());
        let (sends_at_once, probes, _) = accepted(&source, &config);
        assert!(sends_at_once && !probes);
    }
}
