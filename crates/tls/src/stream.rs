//! A client's connection, encrypted or not, that blocks for as long as its socket does.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// Reads from the socket for one read of data: the largest record comes in five of them.
const READS: usize = 8;
/// What it means when the answer to a handshake is none.
const HINT: &str = "most likely the server does not speak TLS at this port";

/// See the module's text. What it reads and writes is what the program on top says.
#[derive(Debug)]
pub enum Stream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted.
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Encrypts a connection that was just opened. Ends the handshake before it returns. Between
    /// two pieces of it, and when the socket's time for a read or a write is over, it goes on
    /// unless `is_over` says that it has taken too long.
    ///
    /// # Errors
    /// The handshake fails: the error says why, and what that most likely means.
    pub fn encrypt(
        mut socket: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<Stream> {
        let mut session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut is_answered = false;
        while session.is_handshaking() || session.wants_write() {
            match go_on(&mut session, &mut socket) {
                Ok(Some(0)) => return Err(ended(is_answered)),
                Ok(came) => is_answered |= came.is_some(),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(ended(is_answered));
                }
                Err(error) if is_no_tls(&error) && !is_answered => {
                    let text = format!("its answer to a TLS handshake is no TLS ({error}): {HINT}");
                    return Err(io::Error::new(ErrorKind::InvalidData, text));
                }
                Err(error) if is_time_over(&error) => {}
                Err(error) => return Err(error),
            }
            let goes_on = session.is_handshaking() || session.wants_write();
            if goes_on && is_over() {
                let text = match is_answered {
                    true => "it does not end its TLS handshake in time".to_owned(),
                    false => format!("it does not answer a TLS handshake: {HINT}"),
                };
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
        Ok(Stream::Encrypted(Box::new(StreamOwned::new(session, socket))))
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Encrypted(own) => &own.sock,
        }
    }
}

/// Says what the session has to say, and reads once. Returns how many bytes have come, if it is not
/// at its end without any.
fn go_on(session: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<Option<usize>> {
    pass_on(session, socket)?;
    match session.is_handshaking() {
        true => take_in(session, socket).map(Some),
        false => Ok(None),
    }
}

/// Gives the socket what the session has ready.
fn pass_on(session: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while session.wants_write() {
        if session.write_tls(socket)? == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

/// Reads from the socket once, and has the session understand it. Returns how many bytes have come.
fn take_in(session: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<usize> {
    let count = session.read_tls(socket)?;
    session.process_new_packets().map_err(|error| {
        // The session tells the server why, if the socket takes it.
        let _ = session.write_tls(socket);
        io::Error::new(ErrorKind::InvalidData, error)
    })?;
    Ok(count)
}

/// Why a handshake has ended that the server has closed.
fn ended(is_answered: bool) -> io::Error {
    let text = match is_answered {
        true => "it has closed the connection during the TLS handshake".to_owned(),
        false => format!("it has closed the connection instead of a TLS handshake: {HINT}"),
    };
    io::Error::new(ErrorKind::UnexpectedEof, text)
}

/// Whether what has come is not even a record of TLS.
fn is_no_tls(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(rustls::Error::InvalidMessage(_)))
}

fn is_time_over(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Reads what the session has decrypted, or what it makes of what the socket has.
fn read(
    session: &mut ClientConnection,
    socket: &mut TcpStream,
    buffer: &mut [u8],
) -> io::Result<usize> {
    for _ in 0..READS {
        match session.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
        pass_on(session, socket)?;
        take_in(session, socket)?;
    }
    match session.reader().read(buffer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::Interrupted.into()),
        done => done,
    }
}

impl Read for Stream {
    /// An end that the peer has not announced is an error, since somebody may have cut the stream
    /// off. When much has come that is no data, or only parts of them, the error is
    /// [`ErrorKind::Interrupted`]: whoever waits can look at other things before the next read.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Encrypted(own) => read(&mut own.conn, &mut own.sock, buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Encrypted(own) => own.write(bytes),
        }
    }

    /// Passes on what was taken.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Encrypted(own) => own.flush(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Stream::Encrypted(own) = self {
            own.conn.send_close_notify();
            // The peer learns it as far as the socket takes it: nobody waits for it here.
            let _ = own.sock.set_nonblocking(true);
            let StreamOwned { conn, sock } = &mut **own;
            let _ = conn.write_tls(sock);
        }
    }
}
