//! Which processor runs what.

use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tests::server::{Server, Target};

/// Lets this thread, and processes that it starts from now on, run only on these processors.
fn pin(processors: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    Ok(sched_setaffinity(None, &set)?)
}

/// The processors of a measurement: some for the server, one for the load.
pub(crate) struct Places {
    server: Vec<usize>,
    load: usize,
    all: Vec<usize>,
}

impl Places {
    /// Gives the server as many processors as it has threads, and the load the next one. If there
    /// are too few, they share the last.
    pub(crate) fn new(threads: usize) -> Result<Places> {
        let allowed = sched_getaffinity(None)?;
        let all: Vec<_> =
            (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
        let server = all.iter().copied().take(threads).collect();
        let load = all.get(threads).or(all.last()).copied().unwrap_or(0);
        Ok(Places { server, load, all })
    }

    /// Starts a server on its processors.
    pub(crate) fn start(&self, target: Target, threads: usize) -> Result<Server> {
        self.start_with(target, threads, &[])
    }

    /// Starts something on the servers' processors.
    pub(crate) fn on_servers<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        pin(&self.server)?;
        let started = start();
        pin(&[self.load])?;
        started
    }

    /// Starts a server on its processors, with further options.
    pub(crate) fn start_with(
        &self,
        target: Target,
        threads: usize,
        further: &[(&str, &str)],
    ) -> Result<Server> {
        let count = threads.to_string();
        let mut options = further.to_vec();
        if target == Target::Dunlin {
            options.push(("threads", count.as_str()));
        }
        self.on_servers(|| Server::start(target, &options))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // A thread that cannot be let off stays where it is: the next measurement reports it.
        let _ = pin(&self.all);
    }
}
