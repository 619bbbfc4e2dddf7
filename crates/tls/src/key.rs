//! Private keys, which a password may encrypt.

use std::path::Path;

use pkcs8::EncryptedPrivateKeyInfo;
use pkcs8::der::{Document, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The line with which an encrypted key begins.
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END_OF_ENCRYPTED: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// Reads the private key of a file.
///
/// # Errors
/// There is none that can be used.
pub(crate) fn read(path: &Path, password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let wrong = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let text = String::from_utf8_lossy(&text);
    if let Some(section) = encrypted_section(&text) {
        return decrypt(section, password).map_err(|error| wrong(&error));
    }
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(wrong(
            &"it is encrypted in an old form, which is not read; `openssl pkcs8 -topk8` writes \
              the present one",
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
    key.map_err(|_| wrong(&"there is no private key in it"))
}

/// The lines of an encrypted key.
fn encrypted_section(text: &str) -> Option<&str> {
    let from = text.find(ENCRYPTED)?;
    let length = text[from..].find(END_OF_ENCRYPTED)? + END_OF_ENCRYPTED.len();
    Some(&text[from..from + length])
}

fn decrypt(section: &str, password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if password.is_empty() {
        return Err("the key is encrypted, and there is no password for it".to_owned());
    }
    let (_, document) = Document::from_pem(section).map_err(|error| error.to_string())?;
    let encrypted = EncryptedPrivateKeyInfo::try_from(document.as_bytes());
    let encrypted = encrypted.map_err(|error| error.to_string())?;
    let decrypted: Result<SecretDocument, _> = encrypted.decrypt(password);
    let key = decrypted.map_err(
        |_| "the password does not decrypt it, or another cipher than AES has encrypted it",
    )?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}
