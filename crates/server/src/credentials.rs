//! Secrets that the service manager hands over as files: `LoadCredential=` of systemd.
//!
//! A file in `$CREDENTIALS_DIRECTORY` that is named after a directive sets it: a secret is the
//! file's text, and where the directive names a file, it is that one. So no secret stands on a
//! command line or in the file of the configuration. See [systemd's page].
//!
//! [systemd's page]: https://systemd.io/CREDENTIALS/

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use config::{DirectiveId, Location, Origin, Provided};
use process::paths::reason;

/// Directives that name a file with a secret, or with what goes with one.
const FILES: [&str; 7] = [
    "aclfile",
    "tls-key-file",
    "tls-cert-file",
    "tls-client-key-file",
    "tls-client-cert-file",
    "tls-ca-cert-file",
    "views-file",
];

/// What the directory has: settings, and names that are no setting's.
#[derive(Default)]
pub(crate) struct Credentials {
    /// The settings.
    pub(crate) settings: Vec<Provided>,
    /// Files that are for others, such as the password of a view's database.
    pub(crate) others: Vec<String>,
}

impl Credentials {
    /// Reads those of this process, if there are any.
    ///
    /// # Errors
    /// One of them cannot be read, or is empty.
    pub(crate) fn read() -> Result<Credentials, config::LoadError> {
        match std::env::var_os("CREDENTIALS_DIRECTORY") {
            Some(directory) => Credentials::read_from(&PathBuf::from(directory)),
            None => Ok(Credentials::default()),
        }
    }

    fn read_from(directory: &Path) -> Result<Credentials, config::LoadError> {
        let mut credentials = Credentials::default();
        let entries =
            fs::read_dir(directory).map_err(|error| failed(directory, &reason(&error)))?;
        for entry in entries {
            let path = entry.map_err(|error| failed(directory, &reason(&error)))?.path();
            credentials.add(&path)?;
        }
        // The order in a directory says nothing.
        credentials.settings.sort_by_key(|one| one.directive);
        credentials.others.sort();
        Ok(credentials)
    }

    fn add(&mut self, path: &Path) -> Result<(), config::LoadError> {
        let name = path.file_name().unwrap_or_default();
        let directive = DirectiveId::find(name.as_bytes());
        let value = match directive {
            Some(own) if FILES.contains(&own.name()) => path.as_os_str().as_bytes().to_vec(),
            Some(own) if own.directive().is_secret() => read_secret(path)?,
            _ => {
                self.others.push(name.to_string_lossy().into_owned());
                return Ok(());
            }
        };
        let origin = Origin::Credential(path.as_os_str().as_bytes().to_vec());
        let provided =
            directive.map(|directive| Provided { origin, directive, words: vec![value] });
        self.settings.extend(provided);
        Ok(())
    }
}

/// The text of a file, without the end of its line.
fn read_secret(path: &Path) -> Result<Vec<u8>, config::LoadError> {
    let text = fs::read(path).map_err(|error| failed(path, &reason(&error)))?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    let secret = line.strip_suffix(b"\r").unwrap_or(line);
    if secret.is_empty() {
        // No password is what nobody can have meant.
        return Err(failed(path, "it is empty"));
    }
    Ok(secret.to_vec())
}

fn failed(path: &Path, reason: &str) -> config::LoadError {
    let origin = Origin::Credential(path.as_os_str().as_bytes().to_vec());
    let location = Location { origin, line: 1, text: Vec::new() };
    config::LoadError { location: Some(location), message: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_directives() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        put("requirepass", "geheim \n");
        put("aclfile", "user ann on\n");
        put("port", "7000");
        put("database", "x");
        let Credentials { settings, others } = Credentials::read_from(directory.path()).unwrap();
        let settings: Vec<_> =
            settings.iter().map(|own| (own.directive.name(), own.words[0].clone())).collect();
        let file = directory.path().join("aclfile").as_os_str().as_bytes().to_vec();
        assert_eq!(settings.len(), 2);
        assert!(settings.contains(&("requirepass", b"geheim ".to_vec())));
        assert!(settings.contains(&("aclfile", file)));
        assert_eq!(others, ["database", "port"], "neither is a secret");
        put("masterauth", "\n");
        assert!(Credentials::read_from(directory.path()).is_err());
        assert!(Credentials::read_from(Path::new("/nowhere")).is_err());
    }
}
