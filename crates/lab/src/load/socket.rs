//! Sockets that never block: opening, reading, writing.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Address;

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    Internet(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// All places that an address may mean, in the order of the system's resolver.
    ///
    /// # Errors
    /// The name is not known.
    pub(crate) fn resolve(address: &Address) -> io::Result<Vec<Endpoint>> {
        if let Some(path) = &address.socket {
            return Ok(vec![Endpoint::Unix(path.into())]);
        }
        let places: Vec<Endpoint> =
            (&address.host[..], address.port).to_socket_addrs()?.map(Endpoint::Internet).collect();
        if places.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(places)
    }

    fn socket(&self) -> io::Result<(Socket, SockAddr)> {
        Ok(match self {
            Endpoint::Internet(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.set_tcp_nodelay(true)?;
                (socket, SockAddr::from(*address))
            }
            Endpoint::Unix(path) => {
                (Socket::new(Domain::UNIX, Type::STREAM, None)?, SockAddr::unix(path)?)
            }
        })
    }

    /// Begins to open a connection; it is open when it becomes writable and has no error.
    ///
    /// # Errors
    /// It fails at once.
    pub(crate) fn open(&self) -> io::Result<Socket> {
        let (socket, address) = self.socket()?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address) {
            Ok(()) => Ok(socket),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    /// Opens a connection that blocks.
    ///
    /// # Errors
    /// It is refused, or not open in time.
    pub(crate) fn open_blocking(&self, timeout: std::time::Duration) -> io::Result<Socket> {
        let (socket, address) = self.socket()?;
        match self {
            Endpoint::Internet(_) => socket.connect_timeout(&address, timeout)?,
            Endpoint::Unix(_) => socket.connect(&address)?,
        }
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(socket)
    }
}

/// Reads the available bytes: `None` when there are none, 0 at the end of the stream.
///
/// # Errors
/// The connection is lost.
#[inline]
pub(crate) fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(socket, buffer, RecvFlags::empty()) {
        Ok((_, length)) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes as much as the kernel takes now, which may be nothing.
///
/// # Errors
/// The connection is lost.
#[inline]
pub(crate) fn write(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::NOSIGNAL) {
        Ok(length) => Ok(length),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
