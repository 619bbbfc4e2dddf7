//! PostgreSQL's connections, encrypted.

use std::fs;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
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
        let roots = trusted(encryption.authorities.as_deref())?;
        let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build();
        let inner = verifier.map_err(|error| error.to_string())?;
        let verifier = Verifier { trust: encryption.trust, inner };
        let config = ClientConfig::builder().dangerous();
        let config = config.with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Connector(Arc::new(config.with_no_client_auth())))
    }
}

/// Those who are trusted: the authorities of a file alone, as PostgreSQL's own tools have it, or
/// else those of the public. If both were, anybody with a certificate could pretend to be a
/// database whose name is not looked at.
fn trusted(file: Option<&Path>) -> Result<RootCertStore, String> {
    let Some(path) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut roots = RootCertStore::empty();
    let wrong = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let text = fs::read(path).map_err(|error| wrong(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"there is no certificate in it"));
    }
    Ok(roots)
}

/// Looks at the server's certificate as closely as is asked for. That the server has the key of it
/// is looked at always.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(own, between, name, ocsp, now);
        match (self.trust, &verified) {
            (Trust::Anybody, _)
            | (
                Trust::Signed,
                Err(Error::InvalidCertificate(
                    CertificateError::NotValidForName
                    | CertificateError::NotValidForNameContext { .. },
                )),
            ) => Ok(ServerCertVerified::assertion()),
            _ => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
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

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBhDCCASugAwIBAgIUQ0gAGqp8V5Yb8s3xaEzVGIcVvz8wCgYIKoZIzj0EAwIw\n\
FzEVMBMGA1UEAwwMQW4gYXV0aG9yaXR5MCAXDTI2MTEyNTAzMzUxOVoYDzIxMjYx\n\
MTAxMDMzNTE5WjAXMRUwEwYDVQQDDAxBbiBhdXRob3JpdHkwWTATBgcqhkjOPQIB\n\
BggqhkjOPQMBBwNCAATJRW0Q9C7i0Y2wn+iB2nmGJ4JJrpKpovhe01+ifnYZbUx/\n\
juzUFgGgL/MaJMzoE1cUSu6wOmZbyas4F88E428Ho1MwUTAdBgNVHQ4EFgQUkaDf\n\
UbD3xKyspb7sMm9bmwW55FkwHwYDVR0jBBgwFoAUkaDfUbD3xKyspb7sMm9bmwW5\n\
5FkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAf6h5U7bZFXZf9\n\
cH1OkcQ20B89AjoVk6rU98AoHlRkCAIgFLfyZultiw6uOzOghqPxrizqf8V4nLuM\n\
QQ1UgurvkCQ=\n\
-----END CERTIFICATE-----\n";

    #[test]
    fn named_authorities_are_the_only_trusted_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let with = |text: &str| {
            fs::write(&path, text).unwrap();
            trusted(Some(&path)).map(|roots| roots.len())
        };
        assert_eq!(with(AUTHORITY), Ok(1));
        assert!(with("").unwrap_err().contains("no certificate"));
        assert!(trusted(None).unwrap().len() > 1);
        assert!(trusted(Some(&directory.path().join("absent"))).is_err());
    }
}
