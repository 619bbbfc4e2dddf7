//! Certificates for a test: an authority that nobody else trusts, and a server that it vouches for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Error, Result, ensure};
use rustls::ClientConfig;
use tempfile::TempDir;
use tls::client::{ClientSettings, IdentityFiles, TrustFiles};

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The file of the key.
    pub key: PathBuf,
}

/// See the module's text. Dropping it removes the files.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
}

fn openssl(directory: &Path, arguments: &str) -> Result<()> {
    let made =
        Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output()?;
    let complaints = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "openssl {arguments}: {complaints}");
    Ok(())
}

impl Certificates {
    /// Makes them, for a server at 127.0.0.1 and not for one called `localhost`.
    ///
    /// # Errors
    /// There is no openssl: `scripts/install-peers` brings it.
    pub fn make() -> Result<Certificates> {
        let directory = tempfile::Builder::new().prefix("dunlin-certificates-").tempdir()?;
        fs::write(directory.path().join("names"), "subjectAltName=IP:127.0.0.1\n")?;
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for arguments in [
            format!("req -x509 {key} -keyout authority.key -out authority.pem -subj /CN=authority -days 9"),
            format!("req {key} -keyout server.key -out server.csr -subj /CN=server"),
            "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -set_serial 1 -days 9 \
             -extfile names -out server.pem"
                .to_owned(),
        ] {
            openssl(directory.path(), &arguments)?;
        }
        Ok(Certificates { directory })
    }

    /// Makes another one that the authority vouches for, whose files have this name. `names` are
    /// those of a `subjectAltName`, and it holds for so many days from now on.
    ///
    /// # Errors
    /// As [`Certificates::make`].
    pub fn issue(&self, name: &str, names: &str, days: i32) -> Result<Identity> {
        self.issue_for(name, &format!("/CN={name}"), names, days)
    }

    /// As [`Certificates::issue`], for a subject as openssl writes it; `/` has no name at all.
    ///
    /// # Errors
    /// As [`Certificates::make`].
    pub fn issue_for(&self, name: &str, subject: &str, names: &str, days: i32) -> Result<Identity> {
        let directory = self.directory.path();
        let extensions = directory.join(format!("{name}.names"));
        fs::write(extensions, format!("subjectAltName={names}\n"))?;
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for arguments in [
            format!("req {key} -keyout {name}.key -out {name}.csr -subj {subject}"),
            format!(
                "x509 -req -in {name}.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
                 -days {days} -extfile {name}.names -out {name}.pem"
            ),
        ] {
            openssl(directory, &arguments)?;
        }
        let file = |ending: &str| directory.join(format!("{name}.{ending}"));
        Ok(Identity { certificate: file("pem"), key: file("key") })
    }

    /// Encrypts a key with a password, into another file.
    ///
    /// # Errors
    /// As [`Certificates::make`].
    pub fn encrypt(&self, key: &Path, password: &str, form: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(format!("encrypted-{}.key", form.len()));
        let (from, to) = (key.display(), path.display());
        let arguments = format!("{form} -in {from} -out {to} -passout pass:{password}");
        openssl(self.directory.path(), &arguments)?;
        Ok(path)
    }

    /// The authority's certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    /// The server's certificate.
    #[must_use]
    pub fn server(&self) -> PathBuf {
        self.directory.path().join("server.pem")
    }

    /// The server's key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.directory.path().join("server.key")
    }

    /// The server's certificate and key.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.server(), key: self.key() }
    }
}

/// Servers that speak to each other and to their clients over TLS alone, each with the same
/// certificate.
#[derive(Clone, Debug)]
pub struct Encryption {
    certificates: Arc<Certificates>,
    config: Arc<ClientConfig>,
}

impl Encryption {
    /// Makes the certificates.
    ///
    /// # Errors
    /// As [`Certificates::make`].
    pub fn make() -> Result<Encryption> {
        let certificates = Arc::new(Certificates::make()?);
        let Identity { certificate, key } = certificates.identity();
        let settings = ClientSettings {
            trust: TrustFiles { file: Some(certificates.authority()), directory: None },
            identity: Some(IdentityFiles { certificate, key, password: Vec::new() }),
            ..ClientSettings::default()
        };
        let config = settings.read().map_err(Error::msg)?.config;
        Ok(Encryption { certificates, config })
    }

    /// The files.
    #[must_use]
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// What a client goes by.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The settings of a server, or of a Sentinel, that listens at this port alone.
    #[must_use]
    pub fn settings(&self, port: u16) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.display().to_string();
        vec![
            ("port", "0".to_owned()),
            ("tls-port", port.to_string()),
            ("tls-replication", "yes".to_owned()),
            ("tls-cert-file", text(self.certificates.server())),
            ("tls-key-file", text(self.certificates.key())),
            ("tls-ca-cert-file", text(self.certificates.authority())),
        ]
    }
}
