//! A transport of any kind.

use std::io;

use mio::{Registry, Token};
use resp::output::Output;

use super::socket::Socket;
use super::tls::Tls;
use super::{Flushed, Received, Sent, Transport};

/// See the module's text.
pub(in crate::net) enum AnyTransport {
    /// A TCP or unix socket: the usual kind, called without a detour.
    Socket(Socket),
    /// An encrypted TCP connection.
    Tls(Box<Tls>),
    /// One of a test.
    #[cfg(test)]
    Other(Box<dyn Transport>),
}

/// Calls the back-end.
macro_rules! with_back_end {
    ($any:expr, $own:ident => $call:expr) => {
        match $any {
            AnyTransport::Socket($own) => $call,
            AnyTransport::Tls($own) => $call,
            #[cfg(test)]
            AnyTransport::Other($own) => $call,
        }
    };
}

impl Transport for AnyTransport {
    #[inline]
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        with_back_end!(self, own => own.receive(buffer, room))
    }

    #[inline]
    fn send(&mut self, output: &Output, limit: usize) -> Sent {
        with_back_end!(self, own => own.send(output, limit))
    }

    #[inline]
    fn flush(&mut self) -> Flushed {
        with_back_end!(self, own => own.flush())
    }

    #[inline]
    fn held_back(&self) -> usize {
        with_back_end!(self, own => own.held_back())
    }

    #[inline]
    fn memory(&self) -> usize {
        with_back_end!(self, own => own.memory())
    }

    #[inline]
    fn wants_write(&self) -> bool {
        with_back_end!(self, own => own.wants_write())
    }

    #[inline]
    fn says_with_output(&self) -> bool {
        with_back_end!(self, own => own.says_with_output())
    }

    fn gather(&mut self) {
        with_back_end!(self, own => own.gather());
    }

    fn end_output(&mut self) {
        with_back_end!(self, own => own.end_output());
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        with_back_end!(self, own => own.register(registry, token))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        with_back_end!(self, own => own.deregister(registry))
    }

    fn descriptor(&self) -> i32 {
        with_back_end!(self, own => own.descriptor())
    }
}
