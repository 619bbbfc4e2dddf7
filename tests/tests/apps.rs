//! What people run on Redis: the programs in `tests/apps/` give job queues and locks of other
//! projects some thousand jobs to do, kill workers in the middle, and check that every job ran.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use tests::peers;
use tests::server::{Server, Target, repository};

/// The programs have deadlines of their own, and each keeps a processor busy: one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a program with the ports of so many new servers; its report is the failure's text.
fn run(mut program: Command, name: &str, servers: usize) -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = [("threads", "4"), ("appendonly", "yes"), ("appendfsync", "everysec")];
    let start = |_| Server::start(Target::Dunlin, &options);
    let mut servers = (0..servers).map(start).collect::<Result<Vec<_>>>()?;
    program.arg(repository().join("tests/apps").join(name)).stdin(Stdio::null());
    program.args(servers.iter().map(|server| server.port().to_string()));
    let output = program.output()?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        bail!("{report}\n{complaints}\nthe server's log:\n{}", servers[0].log_tail());
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
