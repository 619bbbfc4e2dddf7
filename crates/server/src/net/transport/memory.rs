//! A transport in memory, for tests: one end is a connection's, the test has the other one. The
//! test decides how much fits, how much passes at once, and when a direction stalls, ends or fails.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use mio::{Registry, Token};
use parking_lot::Mutex;
use resp::output::Output;

use super::carrier::Carrier;
use super::{AnyTransport, Flushed, Readiness, Received, Sent, Transport};

/// One direction.
pub(in crate::net) struct Direction {
    bytes: VecDeque<u8>,
    /// Bytes that may be under way.
    pub(in crate::net) capacity: usize,
    /// Bytes that one call takes or gives.
    pub(in crate::net) most_at_once: usize,
    /// Nothing passes for now.
    pub(in crate::net) stalled: bool,
    /// The stream ends after the bytes that are under way.
    pub(in crate::net) ended: bool,
    /// It has failed.
    pub(in crate::net) failed: bool,
}

impl Direction {
    fn new(capacity: usize) -> Direction {
        Direction {
            bytes: VecDeque::new(),
            capacity,
            most_at_once: usize::MAX,
            stalled: false,
            ended: false,
            failed: false,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Sent {
        let room = if self.stalled { 0 } else { self.capacity - self.bytes.len() };
        match bytes.len().min(room).min(self.most_at_once) {
            _ if self.failed || self.ended => Sent::Failed,
            0 => Sent::Full,
            count => {
                self.bytes.extend(&bytes[..count]);
                Sent::Bytes(count)
            }
        }
    }

    fn take(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        let there = if self.stalled { 0 } else { self.bytes.len() };
        match there.min(room).min(self.most_at_once) {
            _ if self.failed => Received::Failed,
            0 if self.ended && self.bytes.is_empty() => Received::End,
            0 => Received::Nothing,
            count => {
                buffer.extend(self.bytes.drain(..count));
                Received::Bytes { count, drained: self.bytes.is_empty() && !self.ended }
            }
        }
    }
}

/// Both directions between a server and a client.
pub(in crate::net) struct Wire {
    pub(in crate::net) to_server: Direction,
    pub(in crate::net) to_client: Direction,
}

/// What an end takes, and does not pass on at once, as a session of TLS does.
#[derive(Default)]
struct Veil {
    /// What has come for the connection, which it has not received yet.
    plain: Vec<u8>,
    /// Bytes that it gives the connection at once.
    gives: usize,
    /// How many bytes it has to hear before it says [`HELLO`], and passes on anything else.
    handshake: usize,
    held_back: Vec<u8>,
    /// Bytes that it may hold back.
    most: usize,
    /// It has something to pass on, and was not found full.
    wants_write: bool,
    ends: bool,
}

/// What an end says for itself when it has heard enough.
pub(in crate::net) const HELLO: &[u8] = b"<hello>";

/// The connection's end.
pub(in crate::net) struct End {
    wire: Arc<Mutex<Wire>>,
    veil: Option<Veil>,
}

/// The test's end.
pub(in crate::net) struct Far(pub(in crate::net) Arc<Mutex<Wire>>);

/// Two ends, with this many bytes under way between them at most, in each direction.
pub(in crate::net) fn pair(capacity: usize) -> (AnyTransport, Far) {
    connect(capacity, None)
}

/// The same, with an end that holds back up to `most` bytes, which pass on when it is flushed.
pub(in crate::net) fn veiled_pair(capacity: usize, most: usize) -> (AnyTransport, Far) {
    connect(capacity, Some(Veil { most, gives: usize::MAX, ..Veil::default() }))
}

/// The same, with an end that first hears `handshake` bytes, and gives what comes after them
/// `gives` bytes at a time.
pub(in crate::net) fn shy_pair(
    capacity: usize,
    most: usize,
    (handshake, gives): (usize, usize),
) -> (AnyTransport, Far) {
    connect(capacity, Some(Veil { most, gives, handshake, ..Veil::default() }))
}

/// An end that carries the bytes of another transport, and the test's end.
pub(in crate::net) fn link(capacity: usize) -> (End, Far) {
    let (to_server, to_client) = (Direction::new(capacity), Direction::new(capacity));
    let wire = Arc::new(Mutex::new(Wire { to_server, to_client }));
    (End { wire: Arc::clone(&wire), veil: None }, Far(wire))
}

fn connect(capacity: usize, veil: Option<Veil>) -> (AnyTransport, Far) {
    let (mut end, far) = link(capacity);
    end.veil = veil;
    (AnyTransport::Other(Box::new(end)), far)
}

impl Far {
    /// Sends what fits. Returns how many bytes.
    pub(in crate::net) fn send(&self, bytes: &[u8]) -> usize {
        match self.0.lock().to_server.put(bytes) {
            Sent::Bytes(count) => count,
            Sent::Full | Sent::Failed => 0,
        }
    }

    /// Everything that has come.
    pub(in crate::net) fn received(&self) -> Vec<u8> {
        self.0.lock().to_client.bytes.drain(..).collect()
    }

    /// Bytes that the connection's end has not read yet.
    pub(in crate::net) fn unread(&self) -> usize {
        self.0.lock().to_server.bytes.len()
    }

    /// Whether nothing more fits in what is under way to the test.
    pub(in crate::net) fn is_full(&self) -> bool {
        let to_client = &self.0.lock().to_client;
        to_client.bytes.len() >= to_client.capacity
    }

    /// What an event would say of the connection's end now.
    pub(in crate::net) fn readiness(&self) -> Readiness {
        let Wire { to_server, to_client } = &*self.0.lock();
        let is_there = !to_server.stalled && !to_server.bytes.is_empty();
        Readiness {
            readable: is_there || to_server.ended || to_server.failed,
            read_closed: to_server.ended,
            urgent: false,
            writable: !to_client.stalled && to_client.bytes.len() < to_client.capacity,
        }
    }
}

impl Veil {
    /// Gives what it has, after it has taken all that the wire has.
    fn receive(&mut self, wire: &mut Direction, buffer: &mut Vec<u8>, room: usize) -> Received {
        let last = loop {
            match wire.take(&mut self.plain, usize::MAX) {
                Received::Bytes { .. } => {}
                last => break last,
            }
        };
        if self.handshake > 0 {
            let heard = self.handshake.min(self.plain.len());
            self.plain.drain(..heard);
            self.handshake -= heard;
            if self.handshake > 0 {
                return last;
            }
            self.held_back.extend_from_slice(HELLO);
            self.wants_write = true;
        }
        match self.plain.len().min(room).min(self.gives) {
            0 => last,
            count => {
                buffer.extend(self.plain.drain(..count));
                let drained = self.plain.is_empty() && last == Received::Nothing;
                Received::Bytes { count, drained }
            }
        }
    }
}

impl Transport for End {
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        let wire = &mut self.wire.lock().to_server;
        match &mut self.veil {
            Some(veil) => veil.receive(wire, buffer, room),
            None => wire.take(buffer, room),
        }
    }

    fn send(&mut self, output: &Output, limit: usize) -> Sent {
        let first = output.first_slice();
        let first = &first[..first.len().min(limit)];
        let Some(veil) = &mut self.veil else { return self.wire.lock().to_client.put(first) };
        match first.len().min(veil.most - veil.held_back.len()) {
            _ if veil.handshake > 0 => Sent::Full,
            0 => Sent::Full,
            count => {
                veil.held_back.extend_from_slice(&first[..count]);
                veil.wants_write = true;
                Sent::Bytes(count)
            }
        }
    }

    fn flush(&mut self) -> Flushed {
        let Some(veil) = &mut self.veil else { return Flushed::All };
        veil.wants_write = false;
        while !veil.held_back.is_empty() {
            match self.wire.lock().to_client.put(&veil.held_back) {
                Sent::Bytes(count) => drop(veil.held_back.drain(..count)),
                Sent::Full => return Flushed::Part,
                Sent::Failed => return Flushed::Failed,
            }
        }
        self.wire.lock().to_client.ended |= veil.ends;
        Flushed::All
    }

    fn held_back(&self) -> usize {
        self.veil.as_ref().map_or(0, |veil| veil.held_back.len())
    }

    fn wants_write(&self) -> bool {
        self.veil.as_ref().is_some_and(|veil| veil.wants_write)
    }

    fn end_output(&mut self) {
        match &mut self.veil {
            None => self.wire.lock().to_client.ended = true,
            // It says so first.
            Some(veil) => {
                veil.held_back.extend_from_slice(b"<end>");
                (veil.ends, veil.wants_write) = (true, true);
            }
        }
    }

    fn register(&mut self, _: &Registry, _: Token) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&mut self, _: &Registry) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> i32 {
        -1
    }
}

impl Carrier for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut taken = Vec::new();
        match self.wire.lock().to_server.take(&mut taken, buffer.len()) {
            Received::Bytes { count, .. } => {
                buffer[..count].copy_from_slice(&taken);
                Ok(count)
            }
            Received::End => Ok(0),
            Received::Nothing | Received::Later => Err(io::ErrorKind::WouldBlock.into()),
            Received::Failed => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        match self.wire.lock().to_client.put(&bytes) {
            Sent::Bytes(count) => Ok(count),
            Sent::Full => Err(io::ErrorKind::WouldBlock.into()),
            Sent::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut wire = self.wire.lock();
        wire.to_client.ended = true;
        wire.to_server.failed = true;
    }
}
