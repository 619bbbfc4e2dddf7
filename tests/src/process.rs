//! What the system tells about a running process, and stopping it.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::observe::wait_until;

/// Bytes of memory that a process has resident, without the pages of its program file: those come
/// in as its code is first used.
///
/// # Errors
/// The process is gone.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssAnon:")
}

/// The most bytes of memory that a process ever had resident.
///
/// # Errors
/// The process is gone.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// Files and sockets that a process has open.
///
/// # Errors
/// The process is gone.
pub fn open_files(pid: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Which of some processes has the connection of IPv4 whose local port is that one.
///
/// # Errors
/// The system does not tell about connections.
pub fn owner_of_connection(port: u16, processes: &[u32]) -> Result<Option<usize>> {
    let table = fs::read_to_string("/proc/net/tcp")?;
    let own = format!(":{port:04X}");
    // The columns are: number, local and remote place, state, and others; the tenth is the inode.
    let inode = table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_open = *columns.get(3)? == "01" && columns.get(1)?.ends_with(&own);
        is_open.then(|| format!("socket:[{}]", columns.get(9).unwrap_or(&"0")))
    });
    let Some(inode) = inode else { return Ok(None) };
    Ok(processes.iter().position(|pid| {
        // One that is gone has none.
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|link| link.as_os_str() == &*inode)
    }))
}

/// Processor time that the threads of a process had used when each last went to sleep, in
/// nanoseconds.
///
/// # Errors
/// The process is gone, or the kernel does not count it.
pub fn scheduled_nanoseconds(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().context("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(sum)
}

/// Proportional bytes of a process and its children: a page that two of them share counts half in
/// each.
///
/// # Errors
/// The process is gone, or it belongs to another user.
pub fn proportional_bytes(pid: u32) -> Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).context("no Pss")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    // A child that has ended meanwhile no longer has memory.
    let ids = children.split_whitespace().filter_map(|child| child.parse().ok());
    Ok(kilobytes * 1024 + ids.filter_map(|child| proportional_bytes(child).ok()).sum::<u64>())
}

/// Stops a process, and waits until each of its threads stands still: until then it may answer.
///
/// # Errors
/// It does not stop.
pub fn stop(pid: u32) -> Result<()> {
    kill_process(process(pid)?, Signal::STOP)?;
    wait_until("the process stops", || {
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            // The state follows the name, which is in parentheses.
            let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
            if state != Some("T") {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Sends a process SIGTERM, and does not wait until it ends.
///
/// # Errors
/// There is none.
pub fn ask_to_end(pid: u32) -> Result<()> {
    Ok(kill_process(process(pid)?, Signal::TERM)?)
}

/// Kills a process.
///
/// # Errors
/// There is none.
pub fn kill(pid: u32) -> Result<()> {
    Ok(kill_process(process(pid)?, Signal::KILL)?)
}

/// Lets a process go on that was stopped.
///
/// # Errors
/// There is none.
pub fn resume(pid: u32) -> Result<()> {
    Ok(kill_process(process(pid)?, Signal::CONT)?)
}

fn process(pid: u32) -> Result<Pid> {
    Pid::from_raw(pid.cast_signed()).context("a process id")
}
