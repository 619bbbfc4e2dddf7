//! A client's connection, encrypted or not, that blocks for as long as its socket does.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// See the module's text. What it reads and writes is what the program on top says.
#[derive(Debug)]
pub enum Stream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted.
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Encrypts a connection that was just opened. Ends the handshake before it returns. When the
    /// socket's time for a read or a write is over, it is tried again if `goes_on` says so.
    ///
    /// # Errors
    /// The handshake fails: the error says why.
    pub fn encrypt(
        mut socket: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<Stream> {
        let mut session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            match session.complete_io(&mut socket) {
                Err(error) if is_time_over(&error) && goes_on() => {}
                done => drop(done?),
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

fn is_time_over(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

impl Read for Stream {
    /// An end that the peer has not announced is an error, since somebody may have cut the stream
    /// off.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Encrypted(own) => own.read(buffer),
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
