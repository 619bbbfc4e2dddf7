//! A TCP socket or a unix socket.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use resp::output::Output;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::carrier::Carrier;
use super::{Received, Sent, Transport};

/// A connected socket that does not block.
pub(in crate::net) struct Socket(OwnedFd);

impl Socket {
    pub(in crate::net) fn tcp(socket: mio::net::TcpStream) -> Socket {
        Socket(socket.into())
    }

    pub(in crate::net) fn unix(socket: mio::net::UnixStream) -> Socket {
        Socket(socket.into())
    }

    #[inline]
    fn read_up_to(&self, buffer: &mut Vec<u8>, room: usize) -> rustix::io::Result<usize> {
        if buffer.capacity() - buffer.len() == room {
            return retry_on_intr(|| {
                let spare = rustix::buffer::spare_capacity(&mut *buffer);
                Ok(rustix::net::recv(self.as_fd(), spare, RecvFlags::empty())?.1)
            });
        }
        let from = buffer.len();
        buffer.resize(from + room, 0);
        let received = retry_on_intr(|| {
            Ok(rustix::net::recv(self.as_fd(), &mut buffer[from..], RecvFlags::empty())?.1)
        });
        buffer.truncate(from + received.unwrap_or(0));
        received
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Carrier for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = retry_on_intr(|| {
            Ok(rustix::net::recv(self.as_fd(), &mut *buffer, RecvFlags::empty())?.1)
        });
        Ok(received?)
    }

    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = retry_on_intr(|| match slices {
            [only] => rustix::net::send(self.as_fd(), only, SendFlags::NOSIGNAL),
            slices => rustix::io::writev(self.as_fd(), slices),
        });
        Ok(sent?)
    }
}

impl Transport for Socket {
    /// A socket that gives less than it was asked for has no more, unless there is urgent data.
    #[inline]
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        match self.read_up_to(buffer, room) {
            Ok(0) => Received::End,
            Ok(count) => Received::Bytes { count, drained: count < room },
            Err(Errno::WOULDBLOCK) => Received::Nothing,
            Err(_) => Received::Failed,
        }
    }

    #[inline]
    fn send(&mut self, output: &Output, limit: usize) -> Sent {
        let first = output.first_slice();
        let sent = if first.len() == output.len() {
            let part = &first[..first.len().min(limit)];
            retry_on_intr(|| rustix::net::send(self.as_fd(), part, SendFlags::NOSIGNAL))
        } else {
            let slices = output.io_slices(limit);
            retry_on_intr(|| rustix::io::writev(self.as_fd(), &slices))
        };
        match sent {
            Ok(count) => Sent::Bytes(count),
            Err(Errno::WOULDBLOCK) => Sent::Full,
            Err(_) => Sent::Failed,
        }
    }

    fn gather(&mut self) {
        // A unix socket has no packets.
        let _ = socket2::SockRef::from(&self.0).set_tcp_nodelay(false);
    }

    fn end_output(&mut self) {
        // Where that is refused the connection has ended already.
        let _ = rustix::net::shutdown(self.as_fd(), Shutdown::Write);
    }

    /// Registers for reading, for urgent data, and for writing.
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::PRIORITY | Interest::WRITABLE;
        registry.register(&mut SourceFd(&self.0.as_raw_fd()), token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut SourceFd(&self.0.as_raw_fd()))
    }

    fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
