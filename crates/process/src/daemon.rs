//! The process among others: going into the background, the pid file, the out-of-memory score, huge
//! pages.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use config::{Config, OomScoreAdj};

use crate::log::Log;
use crate::paths;
use crate::system::{self, Forked};

/// Where a daemon writes its process id by default.
const USUAL_PID_FILE: &str = "/var/run/dunlin.pid";
/// Anybody may know the process.
const PID_FILE_MODE: u32 = 0o644;
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Goes into the background: the calling process ends, its child carries on, without a terminal.
/// Must be called before the first thread starts.
///
/// # Errors
/// The system's.
pub fn daemonize() -> io::Result<()> {
    if system::fork_before_threads()? == Forked::Parent {
        std::process::exit(0);
    }
    rustix::process::setsid()?;
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

/// The file with the process id while the server runs.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes it where the settings say; a daemon always has one. The server runs without it as
    /// well, so a failure is only logged.
    pub fn write(config: &Config, is_daemon: bool, log: &Log) -> Option<PidFile> {
        let path = match config.pidfile.as_slice() {
            b"" if is_daemon => Path::new(USUAL_PID_FILE),
            b"" => return None,
            given => paths::path(given),
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let written = fs::write(&path, format!("{}\n", std::process::id()))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(PID_FILE_MODE)));
        match written {
            Ok(()) => Some(PidFile(path)),
            Err(error) => {
                let reason = paths::reason(&error);
                log.warning(format!("Failed to write PID file {}: {reason}", path.display()));
                None
            }
        }
    }

    /// Removes it.
    pub fn remove(self, log: &Log) {
        log.notice("Removing the pid file.");
        if let Err(error) = fs::remove_file(&self.0) {
            log.warning(format!("Cannot remove the pid file: {}", paths::reason(&error)));
        }
    }
}

/// The score by which the kernel picks a process to end when memory runs out.
pub struct OomScore {
    at_start: i32,
    /// Whether this process has changed it.
    adjusted: AtomicBool,
}

impl OomScore {
    /// Remembers the score that the process was started with.
    pub fn read() -> OomScore {
        let text = fs::read_to_string(OOM_SCORE).unwrap_or_default();
        OomScore { at_start: text.trim().parse().unwrap_or(0), adjusted: AtomicBool::new(false) }
    }

    /// Makes the settings take effect. Switched off, they give back the score at start, if it was
    /// ever changed.
    ///
    /// # Errors
    /// The kernel refuses: only a privileged process lowers its score.
    pub fn apply(&self, config: &Config) -> io::Result<()> {
        let value = config.oom_score_adj_values[0];
        let score = match config.oom_score_adj {
            OomScoreAdj::No if !self.adjusted.load(Relaxed) => return Ok(()),
            OomScoreAdj::No => self.at_start,
            OomScoreAdj::Absolute => value,
            OomScoreAdj::Yes | OomScoreAdj::Relative => self.at_start.saturating_add(value),
        };
        fs::write(OOM_SCORE, score.clamp(-1000, 1000).to_string())?;
        self.adjusted.store(true, Relaxed);
        Ok(())
    }
}

/// Switches huge pages off for the process if the settings say so, and if the system would use them
/// unasked.
pub fn apply_huge_pages(config: &Config, log: &Log) {
    let system = fs::read_to_string(HUGE_PAGES).unwrap_or_default();
    if !config.disable_thp || !system.contains("[always]") {
        return;
    }
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        log.warning(format!("Cannot switch huge pages off: {}", paths::reason(&error.into())));
    }
}
