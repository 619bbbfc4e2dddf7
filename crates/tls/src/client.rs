//! What a client goes by: whom it believes, and who it is if the server asks.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::certificate::Expiry;
pub use crate::choices::ChoiceWords;
use crate::choices::Choices;
pub use crate::identity::IdentityFiles;
pub use crate::trust::TrustFiles;

/// How closely the server's certificate is looked at. That the server has the key of it is looked
/// at always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// An authority vouches for it, and it is for the name of the server.
    #[default]
    Name,
    /// An authority vouches for it.
    Authority,
    /// Not at all.
    None,
}

/// The settings of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whom it believes: those that are named alone, or else those that the public believes. If
    /// both were, anybody with a certificate could pretend to be a server whose name is not looked
    /// at.
    pub trust: TrustFiles,
    /// Who it is.
    pub identity: Option<IdentityFiles>,
    /// How closely it looks.
    pub verification: Verification,
    /// Versions and ciphers.
    pub choices: ChoiceWords,
    /// The protocols that it offers to speak.
    pub alpn: Vec<Vec<u8>>,
}

/// What a client goes by, and until when certificates hold.
pub struct Client {
    /// For the handshake.
    pub config: Arc<ClientConfig>,
    /// Its own, if it has one, and those of its authorities.
    pub expiries: Vec<Expiry>,
}

impl ClientSettings {
    /// The settings as options of a command line give them.
    pub fn of_options(authority: Option<&str>, own: Option<(&str, &str)>) -> ClientSettings {
        let trust = match authority.map(Path::new) {
            Some(path) if path.is_dir() => {
                TrustFiles { directory: Some(path.to_owned()), file: None }
            }
            path => TrustFiles { file: path.map(Path::to_owned), directory: None },
        };
        let identity = own.map(|(certificate, key)| IdentityFiles {
            certificate: certificate.into(),
            key: key.into(),
            password: Vec::new(),
        });
        ClientSettings { trust, identity, ..ClientSettings::default() }
    }

    /// Reads the files and understands the settings.
    ///
    /// # Errors
    /// Something is missing or wrong.
    pub fn read(&self) -> Result<Client, String> {
        let Choices { versions, provider } = self.choices.read()?;
        let mut expiries = Vec::new();
        let roots = match self.trust.is_empty() {
            true => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
            false => {
                let trust = self.trust.read()?;
                expiries.extend(trust.expiry);
                trust.roots
            }
        };
        let inner =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| error.to_string())?;
        let verifier = Verifier { verification: self.verification, inner };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let identity = files.read("client", &provider)?;
                expiries.extend(identity.expiry);
                let own = rustls::sign::SingleCertAndKey::from(identity.key);
                builder.with_client_cert_resolver(Arc::new(own))
            }
        };
        config.alpn_protocols.clone_from(&self.alpn);
        Ok(Client { config: Arc::new(config), expiries })
    }
}

/// The name of a host for the handshake.
///
/// # Errors
/// It cannot be the name of one.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let name = name.split('%').next().unwrap_or(name);
    ServerName::try_from(name.to_owned()).map_err(|_| format!("'{host}' is no name of a host"))
}

#[derive(Debug)]
struct Verifier {
    verification: Verification,
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
        // The name is looked at last: a certificate with a wrong one has passed all else.
        let verified = self.inner.verify_server_cert(own, between, name, ocsp, now);
        match (self.verification, &verified) {
            (Verification::None, _)
            | (
                Verification::Authority,
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
