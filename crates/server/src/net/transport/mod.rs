//! What carries a connection's bytes. A transport does not know the protocol that is spoken over
//! it.
//!
//! [`Transport`] is what a connection asks of it, and [`Source`] is where connections come from.
//! The back-ends are [`socket`], for TCP and unix sockets, [`tls`], for encrypted connections over
//! TCP, and a pair of ends in memory, for tests. [`AnyTransport`] is one of them.
//!
//! Each transport is registered once, edge-triggered, for everything that can happen to it
//! ([`Readiness`]). So no transport asks for an event. A connection calls [`Transport::receive`]
//! until it gives [`Received::Nothing`] or says that it is drained, and [`Transport::send`] until
//! it gives [`Sent::Full`]. After either, it waits for an event.
//!
//! ## TLS
//!
//! That back-end owns a socket and a session that translates. It encrypts the bytes that it is
//! given, and *holds back* those that the socket does not take. The session also sends bytes of its
//! own: its part of the handshake, a new key, a warning before it ends. Hands are shaken on
//! other threads ([`super::handshakes`]): a connection has ended its handshake when it begins.

mod any;
mod carrier;
#[cfg(test)]
pub(super) mod memory;
mod socket;
mod source;
mod tls;

use std::io;

use mio::event::Event;
use mio::{Registry, Token};
use resp::output::Output;

pub(super) use any::AnyTransport;
pub(super) use source::{Accepted, Origin, Source, TcpSource, TlsSource, UnixSource};
pub(super) use tls::{Progress, Tls};

/// The result of one attempt to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// This many bytes, at least one. If `drained`, no more are there: an event announces the next
    /// bytes. Fewer bytes than there was room for do not mean that.
    Bytes { count: usize, drained: bool },
    /// No bytes are there: an event announces the next ones.
    Nothing,
    /// More may be there, but what has come lately took time and said little: others have their
    /// turn before it is looked at.
    Later,
    /// The peer has ended its stream, and all of it was received. It may still take what is sent.
    End,
    /// The transport has failed. What comes after the bytes received so far is lost.
    Failed,
}

/// The result of one attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It has taken this many bytes, at least one. It may take more.
    Bytes(usize),
    /// It takes nothing now: an event announces when it does.
    Full,
    /// It has failed, or the peer has closed the connection. It takes nothing any more.
    Failed,
}

/// The result of passing on what was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing is held back any more.
    All,
    /// Some of it is, until an event announces that more can be passed on.
    Part,
    /// The transport has failed. What it held back is lost.
    Failed,
}

/// What an event says of a transport.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Readiness {
    /// It may have something to receive, or has failed.
    pub(super) readable: bool,
    /// The peer has ended its stream: the end comes after what is still to be received.
    pub(super) read_closed: bool,
    /// The peer has sent urgent data, which cuts a read short.
    pub(super) urgent: bool,
    /// It may take more, or has failed.
    pub(super) writable: bool,
}

impl From<&Event> for Readiness {
    #[inline]
    fn from(event: &Event) -> Readiness {
        Readiness {
            readable: event.is_readable(),
            read_closed: event.is_read_closed(),
            urgent: event.is_priority(),
            writable: event.is_writable(),
        }
    }
}

/// See the module's text.
///
/// No method waits. A back-end tries again by itself when a signal interrupts a system call. When a
/// back-end is dropped it closes its connection, and what it holds back is lost.
///
/// TLS: it sends its warning of the end when it is dropped, as far as the socket takes it.
pub(super) trait Transport: Send {
    /// Receives at most `room` bytes, and appends them to `buffer`, which has the capacity for
    /// them.
    ///
    /// TLS: it reads what the socket has until its session has enough plain text, or the socket has
    /// no more. It is drained when the socket is and the session has no plain text left; bytes of
    /// an incomplete record do not count, because an event announces their rest. When only a
    /// handshake went on, it says that nothing is there. When a client sends many records without
    /// data, it says [`Received::Later`] now and then. What the session wants to say then makes
    /// it [want to write](Transport::wants_write). A stream that ends without the peer's warning
    /// has failed: somebody may have cut it off.
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received;

    /// Takes up to `limit` bytes from the front of the output, which is not empty. The caller
    /// removes them from the output, and never offers them again. It may not take those bytes back:
    /// they must be durable.
    ///
    /// TLS: it encrypts what it takes and passes on what the socket takes of that. It takes
    /// nothing, and is full, while it holds back as much as a few records: what waits is to wait in
    /// the output, where it is counted and limited. During the handshake it is full as well. It
    /// asks to be called again by wanting to write after the handshake has ended.
    fn send(&mut self, output: &Output, limit: usize) -> Sent;

    /// Passes on what it holds back, as far as that goes. To be called before anything is sent,
    /// when an event has said that it is writable, or it [wants to write](Transport::wants_write).
    ///
    /// TLS: it gives the socket what the session has ready. When nothing is left after
    /// [`Transport::end_output`], it ends the socket's output.
    #[inline]
    fn flush(&mut self) -> Flushed {
        Flushed::All
    }

    /// Bytes that it has taken, or has to say of its own, and could not pass on yet. They count as
    /// output that waits: for limits, for the time after which a client is stuck, and before the
    /// connection is closed.
    ///
    /// TLS: what the session has encrypted and the socket has not taken.
    #[inline]
    fn held_back(&self) -> usize {
        0
    }

    /// Bytes of memory that it takes besides the socket's own, which is the system's.
    ///
    /// TLS: the session, with what it has received or encrypted and not passed on.
    #[inline]
    fn memory(&self) -> usize {
        0
    }

    /// Whether it should be flushed, or offered output, though no event has said that it is
    /// writable.
    ///
    /// TLS: its session has something to say, for example after [`Transport::receive`], or the
    /// handshake has just ended. Not after it was found full, before an event: the caller would try
    /// without end.
    #[inline]
    fn wants_write(&self) -> bool {
        false
    }

    /// Whether it wants to write, and [`Transport::send`] passes that on before what it takes, so
    /// that both go in one packet.
    ///
    /// TLS: a ticket for another session goes with the first reply.
    #[inline]
    fn says_with_output(&self) -> bool {
        false
    }

    /// Lets the system gather small packets to fewer and larger ones, which come later.
    #[inline]
    fn gather(&mut self) {}

    /// Ends what is sent. What the peer sends can be received still.
    ///
    /// TLS: its session says that it ends. The socket's output ends after that has been passed on.
    fn end_output(&mut self);

    /// Has all events at this transport announced with this token. An event that is due already is
    /// announced as well.
    ///
    /// TLS: it registers its socket.
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()>;

    /// Has no events announced there any more: another thread takes it over.
    fn deregister(&mut self, registry: &Registry) -> io::Result<()>;

    /// The number of its file descriptor, to be shown, or -1.
    fn descriptor(&self) -> i32;
}
