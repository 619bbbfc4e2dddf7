//! The service manager that has started the process: what it gives to the process, and what it is
//! told.
//!
//! systemd waits for messages at `$NOTIFY_SOCKET` ([sd_notify(3)]) and passes listening sockets on
//! ([sd_listen_fds(3)]). Upstart waits until the process stops itself. As in Redis, `supervised`
//! says whether the process looks for one of them.
//!
//! [sd_notify(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
//! [sd_listen_fds(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use config::{Config, Supervised};
pub use sd_notify::NotifyState as Message;

use crate::log::Log;
use crate::{paths, system};

/// The service manager that started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// It waits for messages to `$NOTIFY_SOCKET`.
    Systemd,
    /// It waits for the process to stop itself.
    Upstart,
}

/// Finds out which supervisor the process has, from the settings and the environment. Upstart is
/// told at once that the server runs, as by Redis.
pub fn find(config: &Config, log: &Log) -> Option<Supervisor> {
    let has = |variable| std::env::var_os(variable).is_some();
    let found = match config.supervised {
        Supervised::No => return None,
        Supervised::Systemd => Supervisor::Systemd,
        Supervised::Upstart => Supervisor::Upstart,
        Supervised::Auto if has("UPSTART_JOB") => Supervisor::Upstart,
        Supervised::Auto if has("NOTIFY_SOCKET") => Supervisor::Systemd,
        Supervised::Auto => return None,
    };
    match found {
        Supervisor::Systemd if !has("NOTIFY_SOCKET") => {
            log.warning("systemd supervision error: NOTIFY_SOCKET not found!");
            return None;
        }
        Supervisor::Systemd => log.notice("Supervised by systemd"),
        Supervisor::Upstart if !has("UPSTART_JOB") => {
            log.warning("upstart supervision requested, but UPSTART_JOB not found!");
            return None;
        }
        Supervisor::Upstart => {
            log.notice("Supervised by upstart, will stop to signal readiness.");
            if let Err(error) = stop_until_continued() {
                log.warning(format!("Cannot stop for upstart: {}", paths::reason(&error)));
            }
        }
    }
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
}

/// Sends systemd a message. The server runs without it as well, so a failure is only logged.
pub fn tell_systemd(told: &[Message<'_>], log: &Log) {
    if let Err(error) = sd_notify::notify(told) {
        log.warning(format!("Cannot notify the service manager: {}", paths::reason(&error)));
    }
}

/// How long systemd waits for a sign of life before it ends the process, if it watches.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// The descriptors that systemd has passed to this process, with their names, in its order. To be
/// called once.
///
/// # Errors
/// The environment contradicts what is open.
pub fn inherited() -> io::Result<Vec<(String, OwnedFd)>> {
    // What is for another process has names of its own, which do not fit no descriptor at all.
    if sd_notify::listen_fds()?.next().is_none() {
        return Ok(Vec::new());
    }
    let passed = sd_notify::listen_fds_with_names()?;
    passed.map(|(number, name)| Ok((name, system::take_inherited(number)?))).collect()
}

fn stop_until_continued() -> io::Result<()> {
    let own = rustix::process::getpid();
    Ok(rustix::process::kill_process(own, rustix::process::Signal::STOP)?)
}
