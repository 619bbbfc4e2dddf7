//! Clients that write to whoever is primary, and what became of their writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Reply, SILENCE};
use tests::cluster::Deployment;
use tests::observe::wait_until;

/// Keys that were written, and acknowledged.
pub(crate) struct Written {
    keys: Vec<String>,
}

impl Written {
    /// Which of them a node does not have.
    pub(crate) fn lost(&self, port: u16) -> Result<Vec<&str>> {
        let mut client = Client::connect(port)?;
        let mut lost = Vec::new();
        let mut count = |keys: &[String]| {
            let words = ["EXISTS"].into_iter().chain(keys.iter().map(String::as_str));
            match client.call(&words.collect::<Vec<_>>())? {
                Reply::Integer(count) => Ok(count as usize),
                other => bail!("{}: {other:?}", keys[0]),
            }
        };
        for keys in self.keys.chunks(1000) {
            if count(keys)? == keys.len() {
                continue;
            }
            for key in keys {
                if count(std::slice::from_ref(key))? == 0 {
                    lost.push(&**key);
                }
            }
        }
        Ok(lost)
    }

    /// Fails if the node that leads lacks one of them, or there are fewer than that.
    pub(crate) fn check(&self, deployment: &Deployment, least: usize) -> Result<()> {
        let primary = deployment.wait_for_primary()?;
        let (lost, count) = (self.lost(deployment.nodes[primary].port())?, self.keys.len());
        ensure!(lost.is_empty(), "{lost:?} of {count} are lost\n{}", deployment.logs());
        ensure!(count >= least, "only {count} were written");
        Ok(())
    }
}

/// A client that writes one key after the other, at whichever node takes it.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<Vec<String>>,
}

impl Writer {
    pub(crate) fn start(ports: Vec<u16>) -> Writer {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stops, counts) = (Arc::clone(&stop), Arc::clone(&acknowledged));
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let writer = WRITERS.fetch_add(1, Relaxed);
        let thread = std::thread::spawn(move || {
            let (mut written, mut at, mut number) = (Vec::new(), 0, 0);
            let mut client: Option<Client> = None;
            while !stops.load(Relaxed) {
                number += 1;
                if client.is_none() {
                    at += 1;
                    client = Client::connect(ports[at % ports.len()]).ok();
                }
                let key = format!("{{w}}:{writer}:{number}");
                let write = |own: &mut Client| own.call_within(&["SET", &key, "x"], SILENCE);
                let reply = client.as_mut().map(write);
                match reply {
                    Some(Ok(Reply::Status(_))) => {
                        written.push(key);
                        counts.fetch_add(1, Relaxed);
                    }
                    _ => {
                        client = None;
                        sleep(Duration::from_millis(1));
                    }
                }
            }
            written
        });
        Writer { stop, acknowledged, thread }
    }

    /// How many writes were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Relaxed)
    }

    /// Waits until so many more writes are acknowledged. Returns how long that took.
    pub(crate) fn wait_for_more(&self, count: u64) -> Result<Duration> {
        let (begun, before) = (Instant::now(), self.acknowledged());
        wait_until("writes are acknowledged", || Ok(self.acknowledged() >= before + count))?;
        Ok(begun.elapsed())
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Written {
        self.stop.store(true, Relaxed);
        Written { keys: self.thread.join().expect("no panic") }
    }
}
