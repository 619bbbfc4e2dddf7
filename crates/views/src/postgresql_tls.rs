//! PostgreSQL's connections, encrypted.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tls::ClientSettings;
use tls::client::{TrustFiles, Verification};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

use crate::encryption::{Encryption, Trust};

/// Makes connections encrypted, in one way.
#[derive(Clone)]
pub(crate) struct Connector(Arc<ClientConfig>);

impl Connector {
    /// A connector that encrypts in this way.
    ///
    /// # Errors
    /// The file of trusted authorities cannot be read; the text is for the operator.
    pub(crate) fn new(encryption: &Encryption) -> Result<Connector, String> {
        let verification = match encryption.trust {
            Trust::Anybody => Verification::None,
            Trust::Signed => Verification::Authority,
            Trust::Host => Verification::Name,
        };
        let trust = TrustFiles { file: encryption.authorities.clone(), directory: None };
        let settings = ClientSettings { trust, verification, ..ClientSettings::default() };
        Ok(Connector(settings.read()?.config))
    }
}

/// A connector for one host.
pub(crate) struct ToHost(Connector, ServerName<'static>);

/// An encrypted stream.
pub(crate) struct Stream<S>(Box<Encrypted<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = ToHost;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, Self::Error> {
        Ok(ToHost(self.clone(), ServerName::try_from(host)?.to_owned()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToHost {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let ToHost(Connector(config), host) = self;
        Box::pin(async move {
            let encrypted = TlsConnector::from(config).connect(host, stream).await?;
            Ok(Stream(Box::new(encrypted)))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
