//! An encrypted TCP connection: a socket, and a session of TLS that translates.
//!
//! What the socket has is read into a buffer of the thread's own, and goes through the session into
//! the connection's buffer. What the connection sends is encrypted from where it lies, and passed
//! on at once as far as the socket takes it.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;

use base::limits;
use mio::{Registry, Token};
use resp::output::Output;
use rustls::{Error, InvalidMessage, ProtocolVersion, ServerConfig, ServerConnection};
use tls::NameSource;

use super::carrier::Carrier;
use super::socket::Socket;
use super::{Flushed, Received, Sent, Transport};

/// Encrypted bytes that are read at once: two records of the largest size.
const SCRATCH: usize = 32 * 1024;

/// Encrypted bytes of a handshake that are taken at once. No message of one has more than 64
/// kilobytes, and few come before the server answers.
const LONGEST_HANDSHAKE: usize = 4 * limits::TLS_WASTED;

/// Bytes that a session takes besides the structure itself, after its handshake: keys, and a buffer
/// for what it reads. An estimate.
const SESSION: usize = 8 * 1024;

thread_local! {
    static ENCRYPTED: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// How far a handshake is.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::net) enum Progress {
    /// It has ended well.
    Done,
    /// An event announces when it goes on.
    Waits,
    /// It has failed, for this reason.
    Failed(String),
}

/// Why nothing more is read now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// There is no room for more, or others have their turn first.
    Room,
    /// The socket has no more.
    Drained,
    /// The peer has said that it ends.
    End,
    /// The session or the socket has failed.
    Failed,
}

/// What came of a read from the socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// As much as there was room for.
    All,
    /// Less.
    Less,
    /// Nothing, now or any more.
    Nothing,
}

/// See the module's text.
pub(in crate::net) struct Tls<C: Carrier = Socket> {
    socket: C,
    session: ServerConnection,
    /// Encrypted bytes that were read, and not given to the session yet.
    carried: Vec<u8>,
    /// Bytes that the session has decrypted, and nobody has taken yet.
    plain: usize,
    /// Encrypted bytes that have come and were no data, since the socket had no more. A client can
    /// send records for ever that cost time and say nothing, such as new keys.
    wasted: usize,
    /// Encrypted bytes that the socket did not take.
    held: usize,
    /// The peer has said that it ends.
    peer_ended: bool,
    /// While it shakes hands: no event will tell that the peer's bytes end.
    hears_end: bool,
    /// What is received has failed.
    input_failed: Option<String>,
    /// What is sent has failed.
    output_failed: bool,
    /// The socket's output ends when all is passed on.
    ends: bool,
}

/// Writes to the socket, and notes how much it was offered.
struct Passing<'s, C> {
    socket: &'s mut C,
    offered: usize,
}

impl<C: Carrier> Write for Passing<'_, C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.offered = slices.iter().map(|slice| slice.len()).sum();
        self.socket.write(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a client seems to speak that does not begin with a record of TLS, by its first bytes.
fn spoken_instead(first: &[u8]) -> &'static str {
    const METHODS: [&str; 8] =
        ["GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS ", "CONNECT "];
    let word = first.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    match first {
        _ if METHODS.iter().any(|method| first.starts_with(method.as_bytes())) => {
            "it speaks HTTP without TLS"
        }
        [b'*', digit, ..] if digit.is_ascii_digit() => "it speaks RESP without TLS",
        // A command as people type it.
        _ if word > 0 && matches!(first[word..], [] | [b' ' | b'\r' | b'\n', ..]) => {
            "it sends text without TLS"
        }
        _ => "most likely it does not speak TLS",
    }
}

impl<C: Carrier> Tls<C> {
    /// A connection whose handshake has not begun.
    pub(in crate::net) fn new(socket: C, config: Arc<ServerConfig>) -> io::Result<Tls<C>> {
        let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
        session.set_buffer_limit(Some(limits::TLS_HELD_BACK));
        Ok(Tls {
            socket,
            session,
            carried: Vec::new(),
            plain: 0,
            wasted: 0,
            held: 0,
            peer_ended: false,
            hears_end: false,
            input_failed: None,
            output_failed: false,
            ends: false,
        })
    }

    /// Goes on with the handshake as far as the socket allows it. `ends` says that the peer will
    /// send nothing more: otherwise another event tells what it sends, and its end.
    pub(in crate::net) fn shake_hands(&mut self, ends: bool) -> Progress {
        self.hears_end = ends;
        let (mut is_drained, mut taken) = (false, 0);
        loop {
            // What a session of TLS 1.3 says after the handshake, tickets, can wait for the first
            // reply.
            if !self.session.is_handshaking()
                && self.session.protocol_version() == Some(ProtocolVersion::TLSv1_3)
            {
                return Progress::Done;
            }
            if self.pass_on() == Flushed::Failed {
                return Progress::Failed("the connection failed".to_owned());
            }
            if !self.session.is_handshaking() {
                return Progress::Done;
            }
            if is_drained {
                return Progress::Waits;
            }
            // What comes after the handshake stays in the session.
            let pause = self.read(&mut Vec::new(), &mut 0);
            if let Some(reason) = self.input_failed.take() {
                // The session tells the peer why.
                self.pass_on();
                return Progress::Failed(reason);
            }
            match pause {
                // One that ends right after its handshake has shaken hands well.
                Pause::End if self.session.is_handshaking() => {
                    return Progress::Failed("the client ended it".to_owned());
                }
                // No event tells of what the socket has still: it is looked at now, not for ever.
                Pause::Room if self.session.is_handshaking() => {
                    taken += std::mem::take(&mut self.wasted);
                    if taken > LONGEST_HANDSHAKE {
                        return Progress::Failed("its handshake does not end".to_owned());
                    }
                }
                pause => is_drained = pause == Pause::Drained,
            }
        }
    }

    /// The names that the client's certificate has there. None if it has shown no certificate.
    pub(in crate::net) fn names(&self, source: NameSource) -> Vec<Vec<u8>> {
        let shown = self.session.peer_certificates().and_then(<[_]>::first);
        shown.map(|certificate| tls::names(certificate, source)).unwrap_or_default()
    }

    /// Reads what the socket has, through the session, until there is no more room.
    fn read(&mut self, buffer: &mut Vec<u8>, room: &mut usize) -> Pause {
        let (from, mut drained) = (buffer.len(), false);
        loop {
            self.take_plain(buffer, room);
            if self.plain > 0 {
                return Pause::Room;
            }
            if self.input_failed.is_some() {
                return Pause::Failed;
            }
            if self.peer_ended {
                return Pause::End;
            }
            if self.carried.is_empty() {
                if drained {
                    self.wasted = 0;
                    return Pause::Drained;
                }
                if self.wasted > limits::TLS_WASTED {
                    return Pause::Room;
                }
                drained = match self.read_socket(buffer, room) {
                    Read::All => false,
                    // The end may come after it. Whoever gets bytes looks for that, and whoever
                    // gets none would not; in a handshake, an event tells of it.
                    Read::Less => {
                        let shakes_hands = self.session.is_handshaking() && !self.hears_end;
                        shakes_hands || buffer.len() > from || self.plain > 0
                    }
                    Read::Nothing => true,
                };
            } else {
                let carried = std::mem::take(&mut self.carried);
                self.give_to_session(&carried, buffer, room);
            }
            if *room == 0 && !self.session.is_handshaking() {
                return Pause::Room;
            }
        }
    }

    /// Reads from the socket once.
    fn read_socket(&mut self, buffer: &mut Vec<u8>, room: &mut usize) -> Read {
        ENCRYPTED.with_borrow_mut(|scratch| match self.socket.read(scratch) {
            Ok(0) => {
                self.fail_input("the client closed the connection without a word".to_owned());
                Read::Nothing
            }
            Ok(count) => {
                self.wasted += count;
                self.give_to_session(&scratch[..count], buffer, room);
                if count < scratch.len() { Read::Less } else { Read::All }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
            Err(error) => {
                self.fail_input(error.to_string());
                Read::Nothing
            }
        })
    }

    /// Has the session decrypt what there is room for, and keeps the rest.
    fn give_to_session(&mut self, mut bytes: &[u8], buffer: &mut Vec<u8>, room: &mut usize) {
        let first = bytes;
        while !bytes.is_empty() && self.plain == 0 && !self.peer_ended {
            let before = bytes.len();
            // It takes some thousand bytes at a time.
            if let Err(error) = self.session.read_tls(&mut bytes) {
                return self.fail_input(error.to_string());
            }
            match self.session.process_new_packets() {
                Ok(state) => {
                    self.plain = state.plaintext_bytes_to_read();
                    self.peer_ended |= state.peer_has_closed();
                }
                Err(error) => {
                    let is_no_tls =
                        matches!(error, Error::InvalidMessage(InvalidMessage::InvalidContentType));
                    return self.fail_input(match is_no_tls && self.session.is_handshaking() {
                        true => format!("{}: {error}", spoken_instead(first)),
                        false => error.to_string(),
                    });
                }
            }
            self.take_plain(buffer, room);
            if bytes.len() == before && !self.peer_ended {
                return self.fail_input("its session takes nothing more".to_owned());
            }
        }
        // What comes after the end of a stream is of no use.
        if !bytes.is_empty() && !self.peer_ended {
            self.carried.extend_from_slice(bytes);
        }
    }

    /// Takes what the session has decrypted, as far as there is room for it.
    fn take_plain(&mut self, buffer: &mut Vec<u8>, room: &mut usize) {
        while self.plain > 0 && *room > 0 {
            let mut reader = self.session.reader();
            let Ok(first) = reader.fill_buf() else { return };
            let count = first.len().min(*room);
            buffer.extend_from_slice(&first[..count]);
            reader.consume(count);
            self.plain -= count;
            self.wasted = self.wasted.saturating_sub(count);
            *room -= count;
            if count == 0 {
                return;
            }
        }
    }

    fn fail_input(&mut self, reason: String) {
        self.input_failed.get_or_insert(reason);
    }

    /// Gives the socket what the session has ready.
    fn pass_on(&mut self) -> Flushed {
        if self.output_failed {
            return Flushed::Failed;
        }
        while self.session.wants_write() {
            let mut passing = Passing { socket: &mut self.socket, offered: 0 };
            match self.session.write_tls(&mut passing) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.held = passing.offered.max(1);
                    return Flushed::Part;
                }
                Err(_) => {
                    (self.held, self.output_failed) = (0, true);
                    return Flushed::Failed;
                }
            }
        }
        self.held = 0;
        if std::mem::take(&mut self.ends) {
            self.socket.end_output();
        }
        Flushed::All
    }
}

impl<C: Carrier> Transport for Tls<C> {
    /// A stream that ends without the peer's word has failed.
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        if self.wasted > limits::TLS_WASTED {
            self.wasted = 0;
            return Received::Later;
        }
        let (from, mut left) = (buffer.len(), room);
        let pause = self.read(buffer, &mut left);
        match (buffer.len() - from, pause) {
            (0, Pause::End) => Received::End,
            (0, Pause::Failed) => Received::Failed,
            (0, Pause::Drained) => Received::Nothing,
            (0, Pause::Room) => {
                self.wasted = 0;
                Received::Later
            }
            (count, pause) => Received::Bytes { count, drained: pause == Pause::Drained },
        }
    }

    fn send(&mut self, output: &Output, limit: usize) -> Sent {
        if self.output_failed {
            return Sent::Failed;
        }
        if self.held > 0 || self.session.is_handshaking() {
            return Sent::Full;
        }
        let slices = output.io_slices(limit);
        // A session that has used up its keys takes nothing until it has said so.
        for _ in 0..2 {
            let taken = match slices.as_slice() {
                [only] => self.session.writer().write(only),
                slices => self.session.writer().write_vectored(slices),
            };
            match (taken, self.pass_on()) {
                (Err(_), _) | (_, Flushed::Failed) => break,
                (Ok(0), Flushed::All) => {}
                (Ok(0), Flushed::Part) => return Sent::Full,
                (Ok(count), _) => return Sent::Bytes(count),
            }
        }
        Sent::Failed
    }

    fn flush(&mut self) -> Flushed {
        self.pass_on()
    }

    fn held_back(&self) -> usize {
        if self.session.wants_write() && !self.output_failed { self.held.max(1) } else { 0 }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + SESSION + self.carried.capacity() + self.plain + self.held_back()
    }

    #[inline]
    fn wants_write(&self) -> bool {
        self.held == 0 && self.session.wants_write() && !self.output_failed
    }

    #[inline]
    fn says_with_output(&self) -> bool {
        self.wants_write() && !self.session.is_handshaking()
    }

    fn gather(&mut self) {
        self.socket.gather();
    }

    fn end_output(&mut self) {
        self.session.send_close_notify();
        self.ends = true;
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.socket.register(registry, token)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }

    fn descriptor(&self) -> i32 {
        self.socket.descriptor()
    }
}

impl<C: Carrier> Drop for Tls<C> {
    fn drop(&mut self) {
        // A peer that is gone without a word is told nothing more.
        if !self.session.is_handshaking() && self.input_failed.is_none() {
            self.session.send_close_notify();
            self.pass_on();
        }
    }
}
