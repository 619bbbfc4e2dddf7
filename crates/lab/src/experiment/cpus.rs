//! Which processors a thread, and what it starts, may use.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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
        cpus.extend(number(first)?..=number(last)?);
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

/// Those of the list that this process may use. A machine with fewer processors than an experiment
/// wishes for uses what it has.
pub(crate) fn available(cpus: Vec<usize>) -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return cpus };
    cpus.into_iter().filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// How many processors this process may use.
pub(crate) fn count() -> usize {
    sched_getaffinity(None).map_or(1, |allowed| allowed.count() as usize).max(1)
}

/// Does something while this thread may use only these processors. Threads and processes that it
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(parse("0-2,4"), Ok(vec![0, 1, 2, 4]));
        assert_eq!(format(&[0, 1, 2, 4]), "0-2,4");
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("1-0"), Ok(vec![]));
        assert!(parse("zero").is_err());
        assert!(parse("0-999999").is_err());
    }

    #[test]
    fn a_thread_is_bound_for_the_time_of_an_action() {
        let before = count();
        let inside = within(&available(vec![0]), count).expect("the processor is ours");
        assert!(inside == 1 || before == inside);
        assert_eq!(count(), before);
    }
}
