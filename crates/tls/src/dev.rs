//! Certificates for trials: an authority that nobody else knows, a server, and a client.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// How long they hold.
const LASTS: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks may differ by this much.
const EARLIER: Duration = Duration::from_secs(3600);

/// The files of [`make`].
pub const FILES: [&str; 6] =
    ["ca.crt", "ca.key", "server.crt", "server.key", "client.crt", "client.key"];

/// Makes all of them in a directory, which it creates. The server's certificate is for these names
/// and addresses, besides those of this machine to itself.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn make(directory: &Path, names: &[String]) -> Result<(), String> {
    let failed = |error: rcgen::Error| error.to_string();
    if let Some(file) = FILES.iter().find(|file| directory.join(file).exists()) {
        return Err(format!("{} is there already", directory.join(file).display()));
    }
    // All of them before the first is written: a name that is none leaves nothing behind.
    let mut made = Vec::new();
    let authority_key = KeyPair::generate().map_err(failed)?;
    let mut authority = parameters("Dunlin trial authority", &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&authority_key).map_err(failed)?;
    made.push(("ca", certificate.pem(), authority_key.serialize_pem()));
    let issuer = Issuer::new(authority, authority_key);
    let mut of_server: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    of_server.extend(names.iter().cloned());
    let server = (ExtendedKeyUsagePurpose::ServerAuth, "server", of_server);
    let client = (ExtendedKeyUsagePurpose::ClientAuth, "client", Vec::new());
    for (purpose, name, names) in [server, client] {
        let key = KeyPair::generate().map_err(failed)?;
        let mut own = parameters(name, &names)?;
        own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        own.extended_key_usages = match purpose {
            // A server is a client of its primary.
            ExtendedKeyUsagePurpose::ServerAuth => {
                vec![purpose, ExtendedKeyUsagePurpose::ClientAuth]
            }
            purpose => vec![purpose],
        };
        own.use_authority_key_identifier_extension = true;
        let certificate = own.signed_by(&key, &issuer).map_err(failed)?;
        made.push((name, certificate.pem(), key.serialize_pem()));
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    made.iter().try_for_each(|(name, certificate, key)| write(directory, name, certificate, key))
}

fn parameters(name: &str, names: &[String]) -> Result<CertificateParams, String> {
    let made = CertificateParams::new(names.to_vec());
    let mut own = made.map_err(|error| format!("{}: {error}", names.join(" ")))?;
    own.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = date_time_ymd(1970, 1, 1) + now;
    (own.not_before, own.not_after) = (now - EARLIER, now + LASTS);
    Ok(own)
}

/// Writes a certificate, and its key for nobody but the user.
fn write(directory: &Path, name: &str, certificate: &str, key: &str) -> Result<(), String> {
    for (ending, text, mode) in [("crt", certificate, 0o644), ("key", key, 0o600)] {
        let path = directory.join(format!("{name}.{ending}"));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(mode).open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
