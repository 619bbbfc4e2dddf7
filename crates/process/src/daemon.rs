//! The process among others: going into the background, telling the service manager, the pid file,
//! the out-of-memory score, huge pages.

use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use config::{Config, OomScoreAdj, Supervised};

use crate::log::Log;
use crate::paths;
use crate::system::{self, Forked};

/// Where a daemon writes its process id by default.
const USUAL_PID_FILE: &str = "/var/run/dunlin.pid";
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

/// The service manager that started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// It waits for a message to `$NOTIFY_SOCKET`.
    Systemd,
    /// It waits for the process to stop itself.
    Upstart,
}

/// Finds out which supervisor the process has, from the settings and the environment.
pub fn supervisor(config: &Config, log: &Log) -> Option<Supervisor> {
    let has = |variable| std::env::var_os(variable).is_some();
    let found = match config.supervised {
        Supervised::No => return None,
        Supervised::Systemd => Supervisor::Systemd,
        Supervised::Upstart => Supervisor::Upstart,
        Supervised::Auto if has("UPSTART_JOB") => Supervisor::Upstart,
        Supervised::Auto if has("NOTIFY_SOCKET") => Supervisor::Systemd,
        Supervised::Auto => return None,
    };
    let manager = found.name();
    let variable = match found {
        Supervisor::Systemd => "NOTIFY_SOCKET",
        Supervisor::Upstart => "UPSTART_JOB",
    };
    if !has(variable) {
        log.warning(format!("{manager} supervision requested, but {variable} not found!"));
        return None;
    }
    log.notice(format!("Supervised by {manager}: telling it when the server is ready"));
    Some(found)
}

impl Supervisor {
    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Supervisor::Systemd => "systemd",
            Supervisor::Upstart => "upstart",
        }
    }

    /// Tells it that the server serves.
    pub fn ready(self, log: &Log) {
        let told = match self {
            Supervisor::Systemd => notify(b"STATUS=Ready to accept connections\nREADY=1\n"),
            Supervisor::Upstart => stop_until_continued(),
        };
        if let Err(error) = told {
            log.warning(format!("Cannot notify the service manager: {}", paths::reason(&error)));
        }
    }

    /// Tells it that the server is about to end.
    pub fn stopping(self) {
        if self == Supervisor::Systemd {
            // The service manager learns of the end in any case, from the end itself.
            let _ = notify(b"STOPPING=1\n");
        }
    }
}

fn notify(message: &[u8]) -> io::Result<()> {
    let path = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}

fn stop_until_continued() -> io::Result<()> {
    let own = rustix::process::getpid();
    Ok(rustix::process::kill_process(own, rustix::process::Signal::STOP)?)
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
        match fs::write(&path, format!("{}\n", std::process::id())) {
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
