//! A target's process. It is started in a directory of its own. Dropping this ends the process and
//! all processes that it has started. When the lab itself is killed, the kernel ends the process; a
//! child that it has forked (a server that saves) finishes its work and ends by itself.
#![allow(unsafe_code)] // The child asks the kernel to end with its parent, between fork and exec.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process, kill_process_group};

use super::cgroup::Cgroup;
use super::cpus;
use crate::redact::Redactor;

/// How to start a process.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Environment variables besides those of the lab.
    pub(crate) environment: BTreeMap<String, String>,
    /// The processors it may use; empty: any.
    pub(crate) cpus: Vec<usize>,
    /// Its working directory; its output goes to `server.log` in it.
    pub(crate) directory: PathBuf,
    /// The cgroup of it and all processes that it starts, if they are starved.
    pub(crate) cgroup: Option<Arc<Cgroup>>,
}

/// A running process. Dropping it ends the process and all that it has started.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Pid,
    stopped: bool,
    ended: bool,
}

impl Launch {
    /// Starts the process. It ends when the thread that called this ends, even by a signal that
    /// cannot be caught.
    ///
    /// # Errors
    /// The program does not start.
    pub(crate) fn start(&self) -> io::Result<Process> {
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(&self.environment).env("LC_ALL", "C");
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // Ctrl-C in a terminal goes to the lab alone, which then ends its servers in order.
        command.process_group(0);
        let parent = rustix::process::getpid();
        let entrances = self.cgroup.as_ref().map(|cgroup| cgroup.entrances()).transpose()?;
        let entrances = entrances.unwrap_or_default();
        // SAFETY: the closure makes system calls, and neither allocates nor takes a lock.
        unsafe {
            command.pre_exec(move || {
                for entrance in &entrances {
                    rustix::io::write(entrance, b"0")?;
                }
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have gone before that took effect.
                if getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(io::Error::from_raw_os_error(libc::ESRCH))
                }
            });
        }
        let child = cpus::within(&self.cpus, || command.spawn())??;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("a process id out of range"))?;
        running().insert(group.as_raw_nonzero().get());
        Ok(Process { child, group, stopped: false, ended: false })
    }

    /// The command line as a person would type it, without passwords: reports are published.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        let words: Vec<String> = std::iter::once(program).chain(self.arguments.clone()).collect();
        Redactor::default().words(&words)
    }

    /// The last lines that the process has written.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("server.log")
    }
}

impl Process {
    /// Starts a program. It works in `directory`, and its output goes to `server.log` there.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(program: &Path, arguments: &[String], directory: &Path) -> io::Result<Process> {
        let launch = Launch {
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            environment: BTreeMap::new(),
            cpus: Vec::new(),
            directory: directory.to_owned(),
            cgroup: None,
        };
        launch.start()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process has ended, if it has.
    pub fn ending(&mut self) -> Option<String> {
        if self.ended {
            return self.child.try_wait().ok().flatten().map(|status| status.to_string());
        }
        if !has_ended(self.group) {
            return None;
        }
        // The processes that it has started go before it is waited for: after that, the number of
        // its group may be another's.
        running().remove(&self.group.as_raw_nonzero().get());
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().ok()?;
        self.ended = true;
        Some(status.to_string())
    }

    /// Ends the process, and all that it has started and left in its group, at once.
    pub(crate) fn kill(&mut self) {
        if !self.ended {
            // The process has not been waited for, so its number is still its own.
            running().remove(&self.group.as_raw_nonzero().get());
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.wait();
            self.ended = true;
        }
    }

    /// Stops the process where it is.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.check_it_is_there()?;
        kill_process(self.group, Signal::STOP)?;
        self.stopped = true;
        Ok(())
    }

    /// Lets a stopped process go on.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn go_on(&mut self) -> io::Result<()> {
        self.check_it_is_there()?;
        kill_process(self.group, Signal::CONT)?;
        self.stopped = false;
        Ok(())
    }

    /// After it was waited for, its number may belong to another process.
    fn check_it_is_there(&self) -> io::Result<()> {
        if self.ended { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    }

    /// Asks the process to end, and ends it when it does not within `patience`.
    pub fn terminate(&mut self, patience: Duration) {
        if self.ended {
            return;
        }
        if self.stopped {
            let _ = self.go_on();
        }
        let _ = kill_process(self.group, Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < patience {
            // Does not wait for it, so that its number stays its own until its group is ended.
            if has_ended(self.group) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends all processes of the lab, with all that they have started: the lab itself is about to end
/// without looking back.
pub(crate) fn kill_all() {
    for group in std::mem::take(&mut *running()).into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The groups of processes that run and have not been waited for.
fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a child has ended and only waits to be waited for.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

/// This many different ports of the loopback interface that were free a moment ago.
///
/// # Errors
/// There are none.
pub(crate) fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<io::Result<_>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::directory::Directory;

    fn shell(script: &str, directory: &Path) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: BTreeMap::new(),
            cpus: Vec::new(),
            directory: directory.to_owned(),
            cgroup: None,
        }
    }

    fn is_running(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn dropping_a_process_ends_what_it_has_started_too() {
        let directory = Directory::fresh(None).expect("there is room");
        let launch = shell("sleep 600 & echo $! > child; wait", directory.path());
        let process = launch.start().expect("there is a shell");
        let file = directory.path().join("child");
        let child = loop {
            match fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        assert!(is_running(&child));
        drop(process);
        // The shell's child is not ours to wait for: init does, a little later.
        wait_for_end(&child);
    }

    fn wait_for_end(process: &str) {
        for _ in 0..1000 {
            if !is_running(process) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("process {process} is still there");
    }

    #[test]
    fn what_a_process_that_ended_by_itself_has_started_ends_too() {
        let directory = Directory::fresh(None).expect("there is room");
        let launch = shell("sleep 600 & echo $! > child; exit 1", directory.path());
        let mut process = launch.start().expect("there is a shell");
        while process.ending().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let child = fs::read_to_string(directory.path().join("child")).expect("it was written");
        wait_for_end(&child);
    }

    #[test]
    fn what_it_wrote_last_is_kept() {
        let directory = Directory::fresh(None).expect("there is room");
        let launch = shell("echo first; echo second >&2; exit 3", directory.path());
        let mut process = launch.start().expect("there is a shell");
        let ending = loop {
            match process.ending() {
                Some(ending) => break ending,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        assert!(ending.contains('3'), "{ending}");
        assert_eq!(launch.log_tail(), "first | second");
    }

    #[test]
    fn one_that_has_ended_is_not_stopped() {
        let directory = Directory::fresh(None).expect("there is room");
        let mut process = shell("sleep 600", directory.path()).start().expect("there is a shell");
        process.stop().expect("it runs");
        process.go_on().expect("it is stopped");
        process.kill();
        let gone = Some(libc::ESRCH);
        assert_eq!(process.stop().expect_err("it is gone").raw_os_error(), gone);
        assert_eq!(process.go_on().expect_err("it is gone").raw_os_error(), gone);
        assert!(!process.stopped);
    }

    #[test]
    fn one_that_ignores_the_question_is_ended_all_the_same() {
        let directory = Directory::fresh(None).expect("there is room");
        let launch = shell("trap '' TERM; while :; do sleep 1; done", directory.path());
        let mut process = launch.start().expect("there is a shell");
        process.terminate(Duration::from_millis(50));
        assert!(process.ending().is_some());
    }
}
