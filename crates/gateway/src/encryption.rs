//! How ureq's connections are made and encrypted, by the settings that all clients of this program
//! have. A failure before a request could be sent is marked as such.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};

/// No connection was made: nothing of a request has left.
#[derive(Debug)]
pub(crate) struct NotConnected(Error);

impl fmt::Display for NotConnected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Error::Io(error) => write!(formatter, "{error}"),
            Error::Rustls(error) => write!(formatter, "{error}"),
            Error::Timeout(_) => formatter.write_str("no connection in time"),
            error => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for NotConnected {}

impl NotConnected {
    pub(crate) fn because(error: Error) -> Error {
        Error::Other(Box::new(NotConnected(error)))
    }
}

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) config: Arc<ClientConfig>,
}

impl Connector<()> for Connecting {
    type Out = Either<Box<dyn Transport>, Encrypted>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        self.open(details).map(Some).map_err(NotConnected::because)
    }
}

impl Connecting {
    fn open(
        &self,
        details: &ConnectionDetails,
    ) -> Result<Either<Box<dyn Transport>, Encrypted>, Error> {
        let plain = TcpConnector::default().connect(details, None::<()>)?;
        let plain: Box<dyn Transport> = Box::new(plain.ok_or(Error::ConnectionFailed)?);
        if !details.needs_tls() {
            return Ok(Either::A(plain));
        }
        let host = details.uri.host().ok_or(Error::HostNotFound)?;
        let name = tls::client::server_name(host)
            .map_err(|problem| Error::Io(std::io::Error::other(problem)))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let mut socket = TransportAdapter::new(plain, Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(Either::B(Encrypted { buffers, stream: StreamOwned::new(connection, socket) }))
    }
}

/// A connection that is encrypted.
pub(crate) struct Encrypted {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Encrypted")
    }
}

impl Transport for Encrypted {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let length = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(length);
        Ok(length > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
