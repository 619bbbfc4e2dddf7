//! What carries a connection's bytes: a TCP socket or a unix socket.
//!
//! A transport does not know the protocol that is spoken over it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use mio::{Interest, Registry, Token};
use resp::output::Output;

/// The result of one attempt to receive.
pub(super) enum Received {
    /// This many bytes, at least one. If `drained`, no more are there: an event announces the next
    /// bytes.
    Bytes { count: usize, drained: bool },
    /// No bytes are there: an event announces the next ones.
    Nothing,
    /// A signal came in between: try again.
    Interrupted,
    /// The peer has ended the stream, or the socket has failed.
    End,
}

/// The socket of a connection, with the facts known when it was accepted.
pub(super) struct Transport {
    socket: Socket,
    /// The client's address, or the path of the unix socket.
    pub(super) address: String,
    /// The server's address, or the path of the unix socket.
    pub(super) local_address: String,
}

enum Socket {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Transport {
    pub(super) fn tcp(socket: mio::net::TcpStream, peer: SocketAddr) -> Transport {
        let local = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
        // A socket that refuses the option is slower, not wrong.
        let _ = socket.set_nodelay(true);
        Transport { address: peer.to_string(), local_address: local, socket: Socket::Tcp(socket) }
    }

    pub(super) fn unix(socket: mio::net::UnixStream, path: &str) -> Transport {
        let address = format!("{path}:0");
        Transport { address: address.clone(), local_address: address, socket: Socket::Unix(socket) }
    }

    pub(super) fn is_unix(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    pub(super) fn descriptor(&self) -> i32 {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }

    /// Sends keep-alive probes after this many seconds without traffic.
    pub(super) fn set_keepalive(&self, seconds: u32) {
        if seconds == 0 || self.is_unix() {
            return;
        }
        let interval = std::time::Duration::from_secs(u64::from((seconds / 3).max(1)));
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(std::time::Duration::from_secs(u64::from(seconds)))
            .with_interval(interval)
            .with_retries(3);
        // Without probes a dead peer is noticed later: no reason to refuse it.
        let _ = socket2::SockRef::from(&self.as_fd()).set_tcp_keepalive(&keepalive);
    }

    /// Ends what is sent. What the peer sends can be received still.
    pub(super) fn end_output(&self) {
        // Where that is refused the connection has ended already.
        let _ = rustix::net::shutdown(self.as_fd(), rustix::net::Shutdown::Write);
    }

    /// Registers with a poll instance, for reading, for urgent data, and for writing, edge-triggered.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::PRIORITY | Interest::WRITABLE;
        match &mut self.socket {
            Socket::Tcp(socket) => registry.register(socket, token, interest),
            Socket::Unix(socket) => registry.register(socket, token, interest),
        }
    }

    /// Receives at most `room` bytes, and appends them to `buffer`, which has the capacity for them.
    ///
    /// A socket that gives less than it was asked for has no more, unless there is urgent data.
    pub(super) fn receive(&self, buffer: &mut Vec<u8>, room: usize) -> Received {
        match self.read_up_to(buffer, room) {
            Ok(0) => Received::End,
            Ok(count) => Received::Bytes { count, drained: count < room },
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Received::Nothing,
                io::ErrorKind::Interrupted => Received::Interrupted,
                _ => Received::End,
            },
        }
    }

    fn read_up_to(&self, buffer: &mut Vec<u8>, room: usize) -> io::Result<usize> {
        if buffer.capacity() - buffer.len() == room {
            let spare = rustix::buffer::spare_capacity(buffer);
            return Ok(rustix::net::recv(self.as_fd(), spare, rustix::net::RecvFlags::empty())?.1);
        }
        let from = buffer.len();
        buffer.resize(from + room, 0);
        let received =
            rustix::net::recv(self.as_fd(), &mut buffer[from..], rustix::net::RecvFlags::empty());
        buffer.truncate(from + received.map_or(0, |(_, count)| count));
        Ok(received?.1)
    }

    /// Sends up to `limit` bytes of the output; returns how many were taken.
    pub(super) fn write(&self, output: &Output, limit: usize) -> io::Result<usize> {
        let first = output.first_slice();
        if first.len() == output.len() {
            let part = &first[..first.len().min(limit)];
            return Ok(rustix::net::send(self.as_fd(), part, rustix::net::SendFlags::NOSIGNAL)?);
        }
        Ok(rustix::io::writev(self.as_fd(), &output.io_slices(limit))?)
    }
}
