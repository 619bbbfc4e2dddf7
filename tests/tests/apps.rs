//! What people run on Redis: the programs in `tests/apps/` give job queues and locks of other
//! projects some thousand jobs to do, kill workers in the middle, and check that every job ran.

use std::fs::{File, read_to_string};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::tempdir;
use tests::peers;
use tests::server::{Server, Target, repository};

/// The programs have deadlines of their own, and each keeps a processor busy: one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a program with the ports of this many new servers; its report is the failure's text.
fn run(mut program: Command, name: &str, servers: usize) -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = [("threads", "4"), ("appendonly", "yes"), ("appendfsync", "everysec")];
    let start = |_| Server::start(Target::Dunlin, &options);
    let mut servers = (0..servers).map(start).collect::<Result<Vec<_>>>()?;
    program.arg(repository().join("tests/apps").join(name)).stdin(Stdio::null());
    program.args(servers.iter().map(|server| server.port().to_string()));
    let directory = tempdir()?;
    let report = directory.path().join("report");
    let file = File::create(&report)?;
    program.stdout(file.try_clone()?).stderr(file);
    // The workers of a program that failed would go on for ever: they end with it.
    let mut program = program.process_group(0).spawn()?;
    let status = program.wait();
    let _ = kill_process_group(Pid::from_child(&program), Signal::KILL);
    if !status?.success() {
        bail!("{}\nthe server's log:\n{}", read_to_string(report)?, servers[0].log_tail());
    }
    for server in &mut servers {
        ensure!(server.is_running(), "a server is gone:\n{}", server.log_tail());
    }
    Ok(())
}

fn node() -> Command {
    let mut node = Command::new("node");
    node.env("NODE_PATH", peers::directory().join("apps/node/node_modules"));
    node
}

fn python() -> Command {
    let mut python = Command::new(peers::directory().join("apps/python/bin/python"));
    // What is imported by name is not compiled into the repository.
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[test]
fn bullmq() -> Result<()> {
    run(node(), "bullmq.js", 1)
}

#[test]
fn rq() -> Result<()> {
    run(python(), "rq_jobs.py", 1)
}

#[test]
fn dramatiq() -> Result<()> {
    run(python(), "dramatiq_jobs.py", 1)
}

#[test]
fn redlock() -> Result<()> {
    run(node(), "redlock.js", 3)
}

#[test]
fn locks_in_python() -> Result<()> {
    run(python(), "locks.py", 3)
}
