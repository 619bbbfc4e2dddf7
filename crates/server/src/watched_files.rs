//! The thread of a container that looks whether files with secrets and certificates have changed.
//!
//! Whatever runs containers replaces such files while they are in use, and tells nobody: Kubernetes
//! does so a minute after a Secret has changed. Outside of containers an operator replaces them,
//! and tells the server by a signal or by CONFIG SET, once all of them are there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use config::{Config, DirectiveId};
use engine::engine::Engine;
use process::paths::{path, reason};
use process::thread;
use rustix::fs::Access;

use crate::host::Outside;
use crate::threads::internal_client::InternalClient;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// A setting whose value is the text of a file.
#[derive(Clone, Debug)]
pub struct SecretFile {
    /// The setting.
    pub directive: DirectiveId,
    /// The file.
    pub path: PathBuf,
}

impl SecretFile {
    /// Its text without blanks and ends of lines after it.
    ///
    /// # Errors
    /// The file cannot be read, or is empty; the text says so.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let shown = self.path.display();
        let text = fs::read(&self.path).map_err(|error| format!("{shown}: {}", reason(&error)))?;
        match text.trim_ascii_end() {
            b"" => Err(format!("{shown} is empty")),
            secret => Ok(secret.to_vec()),
        }
    }
}

/// The running thread.
pub struct WatchedFiles {
    /// Dropped to stop it.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl WatchedFiles {
    /// Starts the thread. It watches these files, those of TLS, and those of users.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        engine: &Arc<Engine>,
        outside: &Arc<Outside>,
        secrets: Vec<SecretFile>,
    ) -> io::Result<WatchedFiles> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (engine, outside) = (Arc::clone(engine), Arc::clone(outside));
        let thread = thread::start("files", move || {
            let mut watch = Watch::new(engine, outside, secrets);
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                watch.look();
            }
        })?;
        Ok(WatchedFiles { stop, thread })
    }

    /// Ends the thread after its present look.
    pub fn stop(self) {
        drop(self.stop);
        // A panic has ended the process already.
        let _ = self.thread.join();
    }
}

/// What tells a file from the one that replaces it: device, number, size and time of change. A file
/// that is not there has none.
type Stamp = Option<[i64; 5]>;

fn stamp(file: &Path) -> Stamp {
    // Of the file that symbolic links lead to: Kubernetes exchanges a link.
    let found = fs::metadata(file).ok()?;
    let (device, number, size) = (found.dev(), found.ino(), found.size());
    let words = [device, number, size].map(u64::cast_signed);
    Some([words[0], words[1], words[2], found.mtime(), found.mtime_nsec()])
}

/// A file, as it was when it was read last.
type Seen = (PathBuf, Stamp);

fn look_at(files: Vec<PathBuf>) -> Vec<Seen> {
    files.into_iter().map(|file| (file.clone(), stamp(&file))).collect()
}

struct Watch {
    engine: Arc<Engine>,
    outside: Arc<Outside>,
    client: InternalClient,
    secrets: Vec<(SecretFile, Stamp)>,
    certificates: Vec<Seen>,
    users: Vec<Seen>,
}

impl Watch {
    fn new(engine: Arc<Engine>, outside: Arc<Outside>, secrets: Vec<SecretFile>) -> Watch {
        let client = InternalClient::new(Arc::clone(&engine), "files");
        let config = engine.config.load();
        let secrets = secrets.into_iter().map(|own| (stamp(&own.path), own));
        Watch {
            secrets: secrets.map(|(stamp, own)| (own, stamp)).collect(),
            certificates: look_at(files_of_tls(&config)),
            users: look_at(files_of_users(&config)),
            client,
            engine,
            outside,
        }
    }

    fn look(&mut self) {
        let config = self.engine.config.load();
        let certificates = look_at(files_of_tls(&config));
        if changed(&self.certificates, &certificates) {
            // Between two changes of settings.
            self.engine.config.update(|config| self.outside.reload_certificates(config));
        }
        self.certificates = certificates;
        let users = look_at(files_of_users(&config));
        if changed(&self.users, &users) {
            self.read_users(&config);
        }
        self.users = users;
        for at in 0..self.secrets.len() {
            let (file, seen) = &self.secrets[at];
            let now = stamp(&file.path);
            if *seen == now {
                continue;
            }
            let (file, name) = (file.clone(), file.directive.name());
            self.secrets[at].1 = now;
            match file.read() {
                Ok(secret) => {
                    let set = self.client.run(&[b"CONFIG", b"SET", name.as_bytes(), &secret]);
                    let unchanged = format!("{name} is unchanged");
                    self.tell(&format!("{name} read again"), &unchanged, set);
                }
                Err(error) => {
                    self.outside.log.warning(format!("{name} is unchanged: {error}"));
                }
            }
        }
    }

    fn read_users(&self, config: &Config) {
        let read = self.engine.host.read_users(&config.aclfile).map_err(String::into_bytes);
        let log = &self.outside.log;
        match read.and_then(|text| self.engine.load_users(&text, None)) {
            Ok(()) => log.notice("Users read again"),
            Err(error) => {
                let error = String::from_utf8_lossy(&error).into_owned();
                log.warning(format!("Users are unchanged: {error}"));
            }
        }
    }

    fn tell(&self, done: &str, undone: &str, reply: Option<Vec<u8>>) {
        let log = &self.outside.log;
        match reply {
            Some(reply) if reply.starts_with(b"+") => log.notice(done),
            Some(reply) => {
                let error = String::from_utf8_lossy(reply.trim_ascii_end()).into_owned();
                log.warning(format!("{undone}: {error}"));
            }
            None => log.warning(format!("{undone}: the server is busy")),
        }
    }
}

/// Whether a file that both list has changed. Where the settings name another one, it was read when
/// they were set.
fn changed(before: &[Seen], now: &[Seen]) -> bool {
    now.iter().any(|(file, stamp)| {
        let known = before.iter().find(|(own, _)| own == file);
        // One that is gone for a moment is read when it is there again.
        known.is_some_and(|(_, seen)| seen != stamp && stamp.is_some())
    })
}

fn files_of_tls(config: &Config) -> Vec<PathBuf> {
    let single = [
        &config.tls_cert_file,
        &config.tls_key_file,
        &config.tls_client_cert_file,
        &config.tls_client_key_file,
        &config.tls_ca_cert_file,
        &config.tls_ca_cert_dir,
    ];
    let several = config.tls_sni_cert_files.iter();
    let named = single.into_iter().chain(several).filter(|file| !file.is_empty());
    named.map(|file| path(file).to_owned()).collect()
}

/// The file of users, if it is one that somebody else keeps: what this server may write itself can
/// be older than the users that it has.
fn files_of_users(config: &Config) -> Vec<PathBuf> {
    let file = path(&config.aclfile);
    let is_ours = || rustix::fs::access(file, Access::WRITE_OK).is_ok();
    if config.aclfile.is_empty() || is_ours() { Vec::new() } else { vec![file.to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_is_seen_when_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let look = || look_at(vec![file.clone()]);
        fs::write(&file, "one").unwrap();
        let first = look();
        assert!(!changed(&first, &look()));
        fs::rename(&file, directory.path().join("old")).unwrap();
        let gone = look();
        assert!(!changed(&first, &gone));
        fs::write(&file, "two").unwrap();
        assert!(changed(&gone, &look()) && changed(&first, &look()));
        // One that was not watched before was read by whoever has named it.
        assert!(!changed(&[], &look()));
    }

    #[test]
    fn a_secret_is_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let directive = DirectiveId::find(b"requirepass").unwrap();
        let file = SecretFile { directive, path };
        assert!(file.read().is_err());
        fs::write(&file.path, " secret\n").unwrap();
        assert_eq!(file.read().unwrap(), b" secret");
        fs::write(&file.path, "\n").unwrap();
        assert!(file.read().unwrap_err().ends_with("is empty"));
    }
}
