//! Certificates for a test: an authority that nobody else trusts, and a server that it vouches for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use tempfile::TempDir;

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
        let directory = self.directory.path();
        let extensions = directory.join(format!("{name}.names"));
        fs::write(extensions, format!("subjectAltName={names}\n"))?;
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for arguments in [
            format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"),
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
