//! Which processors a thread, and the processes that it starts, may use.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// How urgent a generator with processors of its own is where it may not be a real-time thread, as
/// a nice value.
const GENERATOR_NICE: i32 = -10;

/// Reads a list as of taskset: `0`, `0-3`, `0,2`. Empty: any.
///
/// # Errors
/// What is wrong, for a reader.
pub(crate) fn parse(text: &str) -> Result<Vec<usize>, String> {
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| {
            let number = word.trim().parse::<usize>().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
            number.ok_or_else(|| format!("'{text}' is no list of processors, as 0 or 0-3 or 0,2"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            // It would be an empty list, which means any of them.
            return Err(format!("'{text}' is not a list of processors: {first} is after {last}"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The same list in short: `0-2,4`.
pub(crate) fn format(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The processors in a list: 0 is the first that this process may use, so that an experiment runs
/// as it is written where a container has only some of a machine's processors. If a machine has
/// fewer than the list, the present ones are used.
///
/// # Errors
/// No processor of the list is there: nothing would be bound, and nothing would show it.
pub(crate) fn available(cpus: &[usize]) -> Result<Vec<usize>, String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    select(cpus, &allowed)
}

fn select(cpus: &[usize], allowed: &[usize]) -> Result<Vec<usize>, String> {
    let found: Vec<usize> = cpus.iter().filter_map(|cpu| allowed.get(*cpu).copied()).collect();
    if found.is_empty() && !cpus.is_empty() {
        let count = allowed.len();
        return Err(format!(
            "there are {count} processors here, counted from 0, and none of these"
        ));
    }
    Ok(found)
}

/// How many processors this process may use.
pub(crate) fn count() -> usize {
    sched_getaffinity(None).map_or(1, |allowed| allowed.count() as usize).max(1)
}

/// Runs `action` while this thread may use only these processors. Threads and processes that it
/// starts meanwhile keep to them.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn within<T>(cpus: &[usize], action: impl FnOnce() -> T) -> io::Result<T> {
    if cpus.is_empty() {
        return Ok(action());
    }
    let before = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    sched_setaffinity(None, &set)?;
    let result = action();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

/// The same for a load: other work on those processors, such as the kernel's writes of the servers'
/// files, gives way to the threads that it starts meanwhile. Without that their requests leave
/// late, and the run says nothing about the server. They are real-time threads, which run as soon
/// as they are woken; of several loads there, those with a larger `priority`, from 1 on, go first.
/// Where the system does not allow that (it takes CAP_SYS_NICE), they are as urgent as they may be.
/// A load without processors of its own is never more urgent: it would take time from the server
/// that it measures.
///
/// # Errors
/// The system does not allow these processors.
pub(crate) fn load_within<T>(
    cpus: &[usize],
    priority: i32,
    action: impl FnOnce() -> T,
) -> io::Result<T> {
    if cpus.is_empty() {
        return Ok(action());
    }
    if let Some(ordinary) = base::time_slice::begin_real_time(priority) {
        let result = within(cpus, action);
        base::time_slice::end_real_time(ordinary);
        return result;
    }
    let before = getpriority_process(Some(gettid()))?;
    let raised = setpriority_process(Some(gettid()), GENERATOR_NICE).is_ok();
    let result = within(cpus, action);
    if raised {
        setpriority_process(Some(gettid()), before)?;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(parse("0-2,4"), Ok(vec![0, 1, 2, 4]));
        assert_eq!(format(&[0, 1, 2, 4]), "0-2,4");
        assert_eq!(parse(""), Ok(vec![]));
        assert!(parse("1-0").is_err_and(|message| message.contains("1 is after 0")));
        assert!(parse("zero").is_err());
        assert!(parse("0-999999").is_err());
    }

    #[test]
    fn processors_are_counted_among_those_that_are_ours() {
        assert_eq!(select(&[0], &[4, 6]), Ok(vec![4]));
        assert_eq!(select(&[0, 1, 2, 3], &[4, 6]), Ok(vec![4, 6]));
        assert_eq!(select(&[], &[4, 6]), Ok(vec![]));
        assert!(select(&[2], &[4, 6]).is_err_and(|message| message.contains("2 processors")));
    }

    #[test]
    fn a_thread_is_bound_for_the_time_of_an_action() {
        let before = count();
        let first = available(&[0]).expect("there is one");
        let inside = within(&first, count).expect("the processor is ours");
        assert_eq!(inside, 1);
        assert_eq!(count(), before);
    }

    #[test]
    fn only_a_load_with_processors_of_its_own_is_more_urgent() {
        // Of the kernel's account of a thread: its niceness, its priority in real time, its policy.
        let urgency = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux has it");
            let (_, fields) = stat.rsplit_once(')').expect("the name stands in brackets");
            // Behind the name are the fields from the third on; these are the 19th, 40th and 41st.
            let fields: Vec<i32> =
                fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
            [fields[16], fields[37], fields[38]]
        };
        let started = || std::thread::scope(|scope| scope.spawn(urgency).join()).expect("it reads");
        let before = urgency();
        let first = available(&[0]).expect("there is one");
        let inside = load_within(&first, 2, started).expect("the processor is ours");
        let ordinary = base::time_slice::begin_real_time(1);
        if let Some(ordinary) = ordinary {
            base::time_slice::end_real_time(ordinary);
            assert_eq!(inside, [before[0], 2, libc::SCHED_FIFO]);
        } else {
            assert!(inside[0] == before[0] || inside[0] == GENERATOR_NICE, "{inside:?}");
        }
        assert_eq!(urgency(), before);
        assert_eq!(load_within(&[], 2, started).expect("nothing is asked for"), before);
    }
}
