//! Looks at a target several times a second while the load runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::case::Sampling;
use crate::results::Sample;
use crate::targets::connection::{Connection, Endpoint, info_fields};
use crate::targets::tree::{self, Usage};

/// How long INFO may take. A server that is stopped or saves in the foreground does not answer, and
/// its process is looked at all the same.
const PATIENCE: Duration = Duration::from_millis(300);

/// Looks at a target until it is finished.
#[derive(Debug)]
pub(crate) struct Sampler {
    thread: Option<JoinHandle<Vec<Sample>>>,
    end: Option<Sender<()>>,
}

/// The target to look at, and the fields to read.
struct Watch {
    zero: Instant,
    pids: Vec<Arc<AtomicU32>>,
    endpoint: Endpoint,
    sampling: Sampling,
    connection: Option<Connection>,
}

impl Sampler {
    /// Begins. Times are counted from `zero`; the numbers of processes may change.
    pub(crate) fn start(
        zero: Instant,
        pids: Vec<Arc<AtomicU32>>,
        endpoint: Endpoint,
        sampling: Sampling,
    ) -> Self {
        let (end, ended) = mpsc::channel();
        let mut watch = Watch { zero, pids, endpoint, sampling, connection: None };
        let thread = std::thread::spawn(move || {
            step_back();
            let mut samples = vec![watch.sample()];
            let mut due = zero.elapsed().as_secs_f64();
            loop {
                due += watch.sampling.every;
                let pause = (due - zero.elapsed().as_secs_f64()).max(0.0);
                match ended.recv_timeout(Duration::from_secs_f64(pause)) {
                    Err(RecvTimeoutError::Timeout) => samples.push(watch.sample()),
                    _ => break,
                }
                // Samples that were missed while the target did not answer are not made up for.
                due = due.max(zero.elapsed().as_secs_f64() - watch.sampling.every);
            }
            samples.push(watch.sample());
            samples
        });
        Sampler { thread: Some(thread), end: Some(end) }
    }

    /// Takes a last sample and returns all.
    pub(crate) fn finish(mut self) -> Vec<Sample> {
        self.end = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Watch {
    fn sample(&mut self) -> Sample {
        let at = self.zero.elapsed().as_secs_f64();
        let pids = self.pids.iter().map(|pid| pid.load(Ordering::Acquire)).filter(|pid| *pid > 0);
        let usages: Vec<Usage> = pids.filter_map(tree::usage).collect();
        let is_elsewhere = usages.is_empty();
        let Usage { cpu_user_seconds, cpu_system_seconds, rss_bytes, pss_bytes } =
            usages.into_iter().fold(Usage::default(), Usage::and);
        let mut sample = Sample {
            at,
            cpu_user_seconds,
            cpu_system_seconds,
            rss_bytes,
            pss_bytes,
            info: BTreeMap::new(),
        };
        let Some(fields) = self.info(is_elsewhere) else { return sample };
        for name in &self.sampling.info {
            if let Some(value) = number(&fields, name) {
                sample.info.insert(name.clone(), value);
            }
        }
        if is_elsewhere {
            // A process that is not the lab's own: its own figures.
            sample.cpu_user_seconds = number(&fields, "used_cpu_user").unwrap_or(0.0);
            sample.cpu_system_seconds = number(&fields, "used_cpu_sys").unwrap_or(0.0);
            sample.rss_bytes = number(&fields, "used_memory_rss").unwrap_or(0.0) as u64;
            sample.pss_bytes = sample.rss_bytes;
        }
        sample
    }

    /// The text of INFO, if it is needed and available.
    fn info(&mut self, is_elsewhere: bool) -> Option<String> {
        if self.sampling.info.is_empty() && !is_elsewhere {
            return None;
        }
        if self.connection.is_none() {
            self.connection = self.endpoint.connect(PATIENCE).ok();
        }
        let reply = self.connection.as_mut()?.call(&["INFO"]);
        match reply {
            Ok(reply) => Some(String::from_utf8_lossy(reply.as_bytes()?).into_owned()),
            Err(_) => {
                self.connection = None;
                None
            }
        }
    }
}

/// Summing up the memory of a large process takes the kernel milliseconds, which the load on the
/// same processor must not wait for. Where it is not allowed, looking is as urgent as loading.
fn step_back() {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
}

fn number(fields: &str, name: &str) -> Option<f64> {
    let (_, value) = info_fields(fields).find(|(field, _)| *field == name)?;
    value.trim().trim_end_matches('%').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_info_are_numbers_where_they_are() {
        let text = "# Memory\r\nused_memory:1024\r\nused_memory_human:1K\r\nshare:12.5%\r\n";
        assert_eq!(number(text, "used_memory"), Some(1024.0));
        assert_eq!(number(text, "share"), Some(12.5));
        assert_eq!(number(text, "used_memory_human"), None);
        assert_eq!(number(text, "used"), None);
    }
}
