//! What the system says about a running process.

use std::fs;

use anyhow::{Context, Result};

/// Bytes of memory that a process has resident.
///
/// # Errors
/// The process is gone.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// Processor time that a process has used, user and system, of all its threads, in seconds.
///
/// # Errors
/// The process is gone.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name before the last parenthesis may hold blanks; user time is the 12th field behind it.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> { Ok(fields.next().context("stat is short")?.parse()?) };
    let ticks = ticks()? + ticks()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Files and sockets that a process has open.
///
/// # Errors
/// The process is gone.
pub fn open_files(pid: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Processor time that the threads of a process had up to when each last went to sleep, in
/// nanoseconds: finer than [`cpu_seconds`], and dearer to ask for.
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
