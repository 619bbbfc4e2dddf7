//! Who an end of a connection is: its certificates, and the key that they are for.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;

use crate::certificate::{self, Expiry};
use crate::key;

/// Where an identity lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The password of the key, or nothing.
    pub password: Vec<u8>,
}

/// An identity that was read.
pub(crate) struct Identity {
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) expiry: Option<Expiry>,
}

impl IdentityFiles {
    /// Reads the files. `kind` says whose they are.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub(crate) fn read(
        &self,
        kind: &'static str,
        provider: &CryptoProvider,
    ) -> Result<Identity, String> {
        let failed = |error: String| format!("Failed to load certificate: {error}");
        let chain = certificate::read(&self.certificate).map_err(failed)?;
        let failed = |error: String| format!("Failed to load private key: {error}");
        let key = key::read(&self.key, &self.password).map_err(failed)?;
        let key = provider.key_provider.load_private_key(key).map_err(|error| {
            failed(format!(
                "{}: {error}; keys of RSA, of ECDSA with P-256 or P-384, and of Ed25519 can be used",
                self.key.display()
            ))
        })?;
        let own = chain.first().and_then(|first| certificate::contents(first));
        let own = own.ok_or_else(|| {
            format!("Failed to load certificate: {}: it is damaged", self.certificate.display())
        })?;
        // rustls compares them too, but not where the certificate is of an old version.
        if key.public_key().is_some_and(|public| public[..] != own.public_key[..]) {
            return Err(format!(
                "Failed to load private key: {}: it is not the key of the certificate {}",
                self.key.display(),
                self.certificate.display()
            ));
        }
        let expiry = certificate::expiry(kind, &chain);
        Ok(Identity { key: Arc::new(CertifiedKey::new(chain, key)), expiry })
    }
}
