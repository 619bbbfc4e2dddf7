//! The kernel's figures for a process and its children: processor time and memory.
#![allow(unsafe_code)] // One system call that has no safe wrapper: the processor clock of a process.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Processor time and memory of a process and of all that it has started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// User processor time, in seconds.
    pub(crate) cpu_user_seconds: f64,
    /// System processor time, in seconds.
    pub(crate) cpu_system_seconds: f64,
    /// Resident bytes, summed.
    pub(crate) rss_bytes: u64,
    /// Proportional bytes, summed.
    pub(crate) pss_bytes: u64,
}

impl Usage {
    /// Both together.
    pub(crate) fn and(self, other: Usage) -> Usage {
        Usage {
            cpu_user_seconds: self.cpu_user_seconds + other.cpu_user_seconds,
            cpu_system_seconds: self.cpu_system_seconds + other.cpu_system_seconds,
            rss_bytes: self.rss_bytes + other.rss_bytes,
            pss_bytes: self.pss_bytes + other.pss_bytes,
        }
    }
}

/// The fields of /proc/PID/stat that are of use here, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    user: u64,
    system: u64,
    /// The times of children that have ended.
    children_user: u64,
    children_system: u64,
}

/// How often the tree is read again when it has changed meanwhile.
const LOOKS: u32 = 4;

/// Looks at a process and all processes that it has started; nothing when it is gone.
///
/// A fork between two looks would count shared pages twice: whole in the parent, which had them for
/// itself a moment ago, and half in the child. So the looks follow each other closely, and count
/// only when the tree is the same before and after.
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let mut members = tree(pid);
    let mut usage = None;
    for _ in 0..LOOKS {
        let memory: Vec<Usage> = members.iter().map(|member| memory(*member)).collect();
        usage = sum(&members, &memory);
        let now = tree(pid);
        if now == members {
            break;
        }
        members = now;
    }
    usage
}

/// A process and all that it has started, each before its children.
fn tree(pid: u32) -> Vec<u32> {
    let mut members = vec![pid];
    let mut at = 0;
    while let Some(&member) = members.get(at) {
        members.extend(children(member));
        at += 1;
    }
    members
}

/// Adds up the numbers; nothing when the first process is gone.
fn sum(members: &[u32], memory: &[Usage]) -> Option<Usage> {
    let mut all = cpu(*members.first()?)?;
    for (place, (member, memory)) in members.iter().zip(memory).enumerate() {
        all.rss_bytes += memory.rss_bytes;
        all.pss_bytes += memory.pss_bytes;
        if let Some(cpu) = (place > 0).then(|| cpu(*member)).flatten() {
            all.cpu_user_seconds += cpu.cpu_user_seconds;
            all.cpu_system_seconds += cpu.cpu_system_seconds;
        }
    }
    Some(all)
}

/// The processor time of one process, and of its children that have ended.
fn cpu(pid: u32) -> Option<Usage> {
    let stat = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    let second = ticks_per_second();
    let ticks = |count: u64| count as f64 / second;
    let mut usage = Usage {
        cpu_user_seconds: ticks(stat.children_user),
        cpu_system_seconds: ticks(stat.children_system),
        ..Usage::default()
    };
    // The sum is known to the nanosecond; how it divides, to the tick.
    let exact = cpu_seconds(pid).unwrap_or_else(|| ticks(stat.user + stat.system));
    let all = (stat.user + stat.system).max(1) as f64;
    let user = if stat.user + stat.system == 0 { 0.5 } else { stat.user as f64 / all };
    usage.cpu_user_seconds += exact * user;
    usage.cpu_system_seconds += exact * (1.0 - user);
    Some(usage)
}

/// Resident and proportional bytes of one process.
fn memory(pid: u32) -> Usage {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let rss = rollup_bytes(&rollup, "Rss:");
    let rss_bytes = rss.or_else(|| statm_bytes(pid)).unwrap_or(0);
    // A kernel without the proportional share: the resident bytes are the nearest there is.
    let pss_bytes = rollup_bytes(&rollup, "Pss:").unwrap_or(rss_bytes);
    Usage { rss_bytes, pss_bytes, ..Usage::default() }
}

fn rollup_bytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn statm_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The processes that this one has started and that still run.
fn children(pid: u32) -> Vec<u32> {
    if !lists_children() {
        return children_by_parent(pid);
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let text: String = lists.map(Result::unwrap_or_default).collect();
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Whether this kernel lists the children of each thread; some are built without.
fn lists_children() -> bool {
    static LISTS: LazyLock<bool> =
        LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
    *LISTS
}

/// The same by looking at the parent of every process there is, which takes longer.
fn children_by_parent(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        parent(&stat) == Some(pid)
    };
    numbers.filter(is_child).collect()
}

fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The second field is the program's name, which may contain anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        user: number(11)?,
        system: number(12)?,
        children_user: number(13)?,
        children_system: number(14)?,
    })
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second().max(1) as f64
}

/// The processor time of all threads of a process, those that have ended too.
fn cpu_seconds(pid: u32) -> Option<f64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to variables of ours of the right type, and nothing else.
    let failed = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    if failed { None } else { Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read_whatever_it_is_called() {
        let line = "42 (a) b) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 9 20 0 4 0 100 1 2\n";
        let stat = parse_stat(line).expect("it is such a line");
        let expected = Stat { user: 150, system: 50, children_user: 7, children_system: 9 };
        assert_eq!(stat, expected);
        assert_eq!(parse_stat("42 (short) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "5581-7ffd ---p 00000000 00:00 0 [rollup]\nRss:   2048 kB\nPss:  512 kB\n";
        assert_eq!(rollup_bytes(text, "Rss:"), Some(2 << 20));
        assert_eq!(rollup_bytes(text, "Pss:"), Some(512 << 10));
        assert_eq!(rollup_bytes(text, "Uss:"), None);
    }

    #[test]
    fn this_process_has_used_time_and_memory() {
        let usage = usage(std::process::id()).expect("it runs");
        assert!(usage.cpu_user_seconds + usage.cpu_system_seconds > 0.0);
        assert!(usage.rss_bytes > 100_000 && usage.pss_bytes > 0);
        assert!(usage.rss_bytes >= usage.pss_bytes);
    }

    #[test]
    fn a_process_that_is_gone_has_nothing() {
        assert_eq!(super::usage(u32::MAX), None);
    }

    #[test]
    fn children_are_found_and_counted() {
        let mut child =
            std::process::Command::new("sleep").arg("600").spawn().expect("there is sleep");
        assert!(children(std::process::id()).contains(&child.id()));
        // Also where the kernel does not list them.
        assert!(children_by_parent(std::process::id()).contains(&child.id()));
        assert!(children_by_parent(child.id()).is_empty());
        assert_eq!(parent("42 (a) b) S 17 42 42 0"), Some(17));
        let members = tree(std::process::id());
        assert!(members[0] == std::process::id() && members.contains(&child.id()));
        let memory = [Usage { pss_bytes: 5, ..Usage::default() }; 2];
        let both = sum(&[child.id(), child.id()], &memory).expect("it runs");
        assert_eq!(both.pss_bytes, 10);
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
    }
}
