//! A PostgreSQL from Debian's package, with a user for a test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::peers;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of a user who owns nothing.
const NOBODY: u32 = 65534;

/// Names of files in its directory.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

/// A running PostgreSQL; dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Postgresql {
    child: Child,
    port: u16,
    /// Removed behind the process.
    _directory: TempDir,
}

/// How to start a program as a user other than root, whom it refuses: the words before it.
fn wrappers() -> Vec<Vec<String>> {
    if !rustix::process::geteuid().is_root() {
        return vec![Vec::new()];
    }
    let words = |text: String| text.split(' ').map(str::to_owned).collect();
    vec![
        words(format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups")),
        // If this user cannot read what root has made: another name for root.
        words(format!("unshare --user --map-user={NOBODY}")),
    ]
}

fn command(wrapper: &[String], program: &str) -> Command {
    let path = peers::directory().join("postgresql/bin").join(program);
    let Some((first, rest)) = wrapper.split_first() else { return Command::new(path) };
    let mut command = Command::new(first);
    command.args(rest).arg(path);
    command
}

impl Postgresql {
    /// Serves an empty database for a user `dunlin` with the password `secret`. Nothing if this
    /// machine cannot run a program as a user other than root.
    ///
    /// # Errors
    /// The package is missing, or the server does not start in time.
    pub fn start() -> Result<Option<Postgresql>> {
        Postgresql::make(None)
    }

    /// The same, with these certificates for connections that are to be encrypted.
    ///
    /// # Errors
    /// As [`Postgresql::start`].
    pub fn start_encrypted(certificates: &Certificates) -> Result<Option<Postgresql>> {
        Postgresql::make(Some(certificates))
    }

    fn make(certificates: Option<&Certificates>) -> Result<Option<Postgresql>> {
        let runs = |wrapper: &Vec<String>| {
            let mut version = command(wrapper, "postgres");
            let version = version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        };
        ensure!(runs(&Vec::new()), "there is no PostgreSQL: scripts/install-peers brings it");
        let Some(wrapper) = wrappers().into_iter().find(runs) else { return Ok(None) };
        let directory = tempfile::Builder::new().prefix("dunlin-postgresql-").tempdir()?;
        let (data, password) = (directory.path().join("data"), directory.path().join("password"));
        fs::create_dir(&data)?;
        fs::write(&password, "secret\n")?;
        let mut own = vec![directory.path().to_owned(), data.clone(), password.clone()];
        if let Some(certificates) = certificates {
            for (from, name) in [(certificates.server(), CERTIFICATE), (certificates.key(), KEY)] {
                let to = directory.path().join(name);
                fs::copy(from, &to)?;
                // It takes no key that others may read.
                fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
                own.push(to);
            }
        }
        if wrapper.first().is_some_and(|word| word == "setpriv") {
            for path in own {
                chown(path, Some(NOBODY), Some(NOBODY))?;
            }
        }
        let made = command(&wrapper, "initdb")
            .args(["--username=dunlin", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"])
            .args(["--no-sync", "--pgdata"])
            .arg(&data)
            .arg(format!("--pwfile={}", password.display()))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .output()?;
        let complaints = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "the database cannot be made: {complaints}");
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = serve(&wrapper, directory.path(), port)?;
        Ok(Some(Postgresql { child, port, _directory: directory }))
    }

    /// Its address for a file of views.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://dunlin:secret@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends the process as fast as an orderly end allows.
    pub fn stop(&mut self) {
        // All of it fails only if it is gone already.
        if let Some(pid) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(wrapper: &[String], place: &Path, port: u16) -> Result<Child> {
    let log = place.join("log");
    let file = fs::File::create(&log)?;
    let mut command = command(wrapper, "postgres");
    if place.join(KEY).exists() {
        for (name, file) in [("ssl_cert_file", CERTIFICATE), ("ssl_key_file", KEY)] {
            command.args(["-c", &format!("{name}={}", place.join(file).display())]);
        }
        command.args(["-c", "ssl=on"]);
    }
    let mut child = command
        .arg("-D")
        .arg(place.join("data"))
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""])
        .args(["-c", "fsync=off", "-c", "jit=off"])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("PostgreSQL does not start")?;
    let begun = Instant::now();
    while !fs::read_to_string(&log)?.contains("ready to accept connections") {
        let ended = child.try_wait()?.is_some();
        if ended || begun.elapsed() > PATIENCE {
            // It is of no use, and may be gone.
            let _ = child.kill();
            let _ = child.wait();
            bail!("PostgreSQL does not start:\n{}", fs::read_to_string(&log)?);
        }
        sleep(Duration::from_millis(50));
    }
    Ok(child)
}
