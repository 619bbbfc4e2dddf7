//! A connection's socket, which never blocks, and the session that encrypts it, if it is to be.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use socket2::Socket;

use super::socket;

/// What encrypts the connections of a load.
pub(crate) type Encryption = (Arc<ClientConfig>, ServerName<'static>);

/// The most that one read takes out of a session.
const RECORD: usize = 32 * 1024;

/// See the module's text.
#[derive(Debug)]
pub(crate) enum Channel {
    Plain(Socket),
    Encrypted(Box<(Socket, ClientConnection)>),
}

/// A socket for a session.
struct Wire<'s>(&'s Socket);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        socket::read(self.0, buffer)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match socket::write(self.0, bytes)? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether there was anything to be done.
fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives the socket what the session has ready.
fn pass_on((socket, session): &mut (Socket, ClientConnection)) -> io::Result<()> {
    while session.wants_write() && unless_blocked(session.write_tls(&mut Wire(socket)))?.is_some() {
    }
    Ok(())
}

/// Takes in what the socket has, once. `None` when it has nothing, 0 at the end of the stream.
fn take_in((socket, session): &mut (Socket, ClientConnection)) -> io::Result<Option<usize>> {
    let count = unless_blocked(session.read_tls(&mut Wire(socket)))?;
    session.process_new_packets().map_err(io::Error::other)?;
    Ok(count)
}

impl Channel {
    /// Over a socket that is being opened.
    ///
    /// # Errors
    /// The name cannot be asked for.
    pub(crate) fn new(socket: Socket, encryption: Option<&Encryption>) -> io::Result<Channel> {
        let Some((config, name)) = encryption else { return Ok(Channel::Plain(socket)) };
        let session = ClientConnection::new(Arc::clone(config), name.clone());
        Ok(Channel::Encrypted(Box::new((socket, session.map_err(io::Error::other)?))))
    }

    pub(crate) fn socket(&self) -> &Socket {
        match self {
            Channel::Plain(socket) => socket,
            Channel::Encrypted(own) => &own.0,
        }
    }

    /// Goes on with the handshake. Returns whether it has ended.
    ///
    /// # Errors
    /// The connection is lost, or one end does not believe the other.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        let Channel::Encrypted(own) = self else { return Ok(true) };
        loop {
            pass_on(own)?;
            if !own.1.is_handshaking() {
                return Ok(true);
            }
            match take_in(own)? {
                None => return Ok(false),
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) => {}
            }
        }
    }

    /// Whether it goes on with a session of an earlier connection.
    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Encrypted(own) => own.1.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Whether encrypted bytes wait for the socket.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Encrypted(own) => own.1.wants_write(),
        }
    }

    /// Reads the available bytes: `None` when there are none, 0 at the end of the stream.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Channel::Plain(socket) => socket::read(socket, buffer),
            Channel::Encrypted(own) => read(own, buffer),
        }
    }

    /// Writes as much as is taken now, which may be nothing.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Channel::Plain(socket) => socket::write(socket, bytes),
            Channel::Encrypted(own) => {
                pass_on(own)?;
                let taken = if own.1.wants_write() { 0 } else { own.1.writer().write(bytes)? };
                pass_on(own)?;
                Ok(taken)
            }
        }
    }
}

fn read(own: &mut (Socket, ClientConnection), buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let mut length = 0;
    // As much as there is, so that few waits are needed for it.
    while buffer.len() - length >= RECORD {
        let taken = take_in(own)?;
        // What the session has to say to that.
        pass_on(own)?;
        match own.1.reader().read(&mut buffer[length..]) {
            Ok(0) => return Ok(Some(length)),
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Without a word: the bytes before it count.
            Err(_) if length > 0 => return Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
            Err(error) => return Err(error),
        }
        if taken.is_none() {
            break;
        }
    }
    Ok((length > 0).then_some(length))
}
