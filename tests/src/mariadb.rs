//! A MariaDB from Debian's package, with a database and a user for a test.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::certificates::Certificates;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names of files in its directory.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

/// A running MariaDB; dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Mariadb {
    child: Child,
    port: u16,
    directory: TempDir,
}

/// The places where the package has the statements that make the system's tables: their name has
/// changed with the releases.
fn statements(name: &str) -> Result<String> {
    for folder in ["/usr/share/mysql", "/usr/share/mariadb"] {
        for prefix in ["mysql", "mariadb"] {
            let path = PathBuf::from(folder).join(format!("{prefix}_{name}.sql"));
            if path.exists() {
                return Ok(fs::read_to_string(path)?);
            }
        }
    }
    bail!("mariadb-server-core has no {name}: scripts/install-peers brings it")
}

fn command(data: &Path) -> Command {
    let mut command = Command::new("/usr/sbin/mariadbd");
    command.args(["--no-defaults", "--user=root", "--skip-log-bin"]);
    command.arg(format!("--datadir={}", data.display()));
    command
}

impl Mariadb {
    /// Makes a database `company` for a user `dunlin` with the password `secret`, and serves it.
    ///
    /// # Errors
    /// The package is missing, or the server does not start in time.
    pub fn start() -> Result<Mariadb> {
        Mariadb::make(None)
    }

    /// The same, with these certificates for connections that are to be encrypted.
    ///
    /// # Errors
    /// As [`Mariadb::start`].
    pub fn start_encrypted(certificates: &Certificates) -> Result<Mariadb> {
        Mariadb::make(Some(certificates))
    }

    fn make(certificates: Option<&Certificates>) -> Result<Mariadb> {
        let directory = tempfile::Builder::new().prefix("dunlin-mariadb-").tempdir()?;
        let data = directory.path().join("data");
        fs::create_dir(&data)?;
        let mut begin =
            "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n".to_owned();
        for name in ["system_tables", "performance_tables", "system_tables_data"] {
            begin += &statements(name)?;
            begin.push('\n');
        }
        begin += "FLUSH PRIVILEGES;\nCREATE DATABASE company;\n\
                  CREATE USER dunlin@'127.0.0.1' IDENTIFIED BY 'secret';\n\
                  GRANT ALL ON company.* TO dunlin@'127.0.0.1';\n";
        let mut child = command(&data)
            .arg("--bootstrap")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        child.stdin.take().context("standard input was piped")?.write_all(begin.as_bytes())?;
        ensure!(child.wait()?.success(), "the tables of MariaDB cannot be made");
        if let Some(certificates) = certificates {
            fs::copy(certificates.server(), directory.path().join(CERTIFICATE))?;
            fs::copy(certificates.key(), directory.path().join(KEY))?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = serve(&directory, port)?;
        Ok(Mariadb { child, port, directory })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for a file of views.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mariadb://dunlin:secret@127.0.0.1:{}/company", self.port)
    }

    /// Ends the process at once.
    pub fn kill(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, with the same data at the same port.
    ///
    /// # Errors
    /// As [`Mariadb::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.kill();
        self.child = serve(&self.directory, self.port)?;
        Ok(())
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(directory: &TempDir, port: u16) -> Result<Child> {
    let place = directory.path();
    let log = place.join("log");
    let file = fs::File::create(&log)?;
    let mut command = command(&place.join("data"));
    if place.join(KEY).exists() {
        command.arg(format!("--ssl-cert={}", place.join(CERTIFICATE).display()));
        command.arg(format!("--ssl-key={}", place.join(KEY).display()));
    }
    let mut child = command
        .args([format!("--port={port}"), "--bind-address=127.0.0.1".to_owned()])
        .arg(format!("--socket={}", place.join("socket").display()))
        .arg(format!("--pid-file={}", place.join("pid").display()))
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    let begun = Instant::now();
    while !fs::read_to_string(&log)?.contains("ready for connections") {
        let ended = child.try_wait()?.is_some();
        if ended || begun.elapsed() > PATIENCE {
            // It is of no use, and may be gone.
            let _ = child.kill();
            let _ = child.wait();
            bail!("MariaDB does not start:\n{}", fs::read_to_string(&log)?);
        }
        sleep(Duration::from_millis(50));
    }
    Ok(child)
}
