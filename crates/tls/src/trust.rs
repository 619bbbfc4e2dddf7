//! The authorities whose certificates an end of a connection believes.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::certificate::{self, Expiry};

/// Where their certificates lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustFiles {
    /// A file with any number of them.
    pub file: Option<PathBuf>,
    /// A directory whose files have them.
    pub directory: Option<PathBuf>,
}

/// Authorities, and until when all of them hold.
pub(crate) struct Trust {
    pub(crate) roots: RootCertStore,
    pub(crate) expiry: Option<Expiry>,
}

impl TrustFiles {
    /// Whether nobody is named.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.directory.is_none()
    }

    /// Reads them.
    ///
    /// # Errors
    /// A file cannot be read, or there is no certificate.
    pub(crate) fn read(&self) -> Result<Trust, String> {
        let failed = |error: String| {
            format!("Failed to configure ca certificate(s) file/directory: {error}")
        };
        let mut all: Vec<CertificateDer<'static>> = Vec::new();
        if let Some(file) = &self.file {
            all.extend(certificate::read(file).map_err(failed)?);
        }
        if let Some(directory) = &self.directory {
            let found = in_directory(directory).map_err(failed)?;
            if found.is_empty() {
                let name = directory.display();
                return Err(failed(format!("{name}: no file in it has a certificate")));
            }
            all.extend(found);
        }
        let expiry = certificate::expiry("ca", &all);
        let mut roots = RootCertStore::empty();
        for certificate in all {
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        Ok(Trust { roots, expiry })
    }
}

/// The certificates of all files of a directory. Files of other contents are passed over, as links
/// to the same file under another name are common there.
fn in_directory(directory: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut found: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in paths.iter().filter_map(|path| certificate::read(path).ok()).flatten() {
        if !found.contains(&certificate) {
            found.push(certificate);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_directory_are_all_that_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        crate::dev::make(directory.path(), &[]).unwrap();
        let file = |name: &str| Some(directory.path().join(name));
        let of = |file, directory| TrustFiles { file, directory }.read().map(|own| own.roots.len());
        assert_eq!(of(file("ca.crt"), None), Ok(1));
        // Keys lie beside the three certificates, and another file has none.
        std::fs::write(directory.path().join("notes"), "").unwrap();
        assert_eq!(of(None, Some(directory.path().to_owned())), Ok(3));
        assert!(of(file("notes"), None).unwrap_err().contains("no certificate"));
        assert!(of(file("absent"), None).is_err());
    }
}
