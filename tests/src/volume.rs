//! Separate file systems, which can be full or read-only.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// A file system in memory; dropping it unmounts it.
#[derive(Debug)]
pub struct Volume(TempDir);

impl Volume {
    /// Mounts one with this size in bytes. If that is not permitted, returns `None`, and standard
    /// error says which test was skipped.
    ///
    /// # Errors
    /// There is no directory to mount it at.
    pub fn mount(bytes: u64, test: &str) -> Result<Option<Volume>> {
        let place = tempfile::Builder::new().prefix("dunlin-volume-").tempdir()?;
        let options = format!("size={bytes}");
        match run(&["mount", "-t", "tmpfs", "-o", &options, "dunlin-test"], place.path()) {
            Ok(()) => Ok(Some(Volume(place))),
            Err(error) => {
                // Past the capture of the test's output: a reader must not take it for having run.
                let _ = writeln!(io::stderr(), "SKIPPED {test}: {error}");
                Ok(None)
            }
        }
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes it read-only, or writable again.
    ///
    /// # Errors
    /// A process has a file open for writing there.
    pub fn set_read_only(&self, read_only: bool) -> Result<()> {
        let options = if read_only { "remount,ro" } else { "remount,rw" };
        run(&["mount", "-o", options], self.path())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Lazily, in case a server that failed a test still has files there. If it fails even so,
        // nobody can be told.
        let _ = run(&["umount", "-l"], self.0.path());
    }
}

/// Runs a command with a path as its last argument.
fn run(words: &[&str], path: &Path) -> Result<()> {
    let (program, arguments) = words.split_first().context("a command")?;
    let output = Command::new(program)
        .args(arguments)
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} does not start"))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
