//! Client libraries follow a failover: redis-py, ioredis, go-redis and Jedis write all the time
//! through their own support for Sentinel, and go on at the new primary.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};
use tests::client::Client;
use tests::observe::wait_until;
use tests::peers;
use tests::server::{Target, repository};

use crate::deployment::{Deployment, watch};

/// Writes that show that a client works.
const ENOUGH: u64 = 20;

/// A client that writes its numbers to a key of its name.
struct Library {
    name: &'static str,
    child: Child,
    /// The program ends when this is closed.
    input: Option<ChildStdin>,
    /// The last number that was acknowledged.
    last: Arc<AtomicU64>,
    reads: Option<JoinHandle<()>>,
    complaints: Option<JoinHandle<String>>,
}

/// The commands that start the clients, by the keys that they write.
fn programs() -> Vec<(&'static str, Command)> {
    let scripts = repository().join("tests/tests/clients/sentinel");
    let mut python = Command::new(peers::directory().join("python/bin/python"));
    python.arg(scripts.join("redis_py.py"));
    let mut node = Command::new("node");
    node.arg(scripts.join("ioredis.js"));
    node.env("NODE_PATH", peers::directory().join("node/node_modules"));
    let go = Command::new(peers::directory().join("go/bin/go-redis-sentinel"));
    let mut java = Command::new("java");
    java.arg("-cp").arg(peers::directory().join("jedis/*"));
    java.arg(scripts.join("jedis/Writer.java"));
    vec![("redis-py", python), ("ioredis", node), ("go-redis", go), ("jedis", java)]
}

impl Library {
    fn start(name: &'static str, mut command: Command, sentinels: &str) -> Result<Library> {
        command.arg(sentinels).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let last = Arc::<AtomicU64>::default();
        let (shared, output) = (Arc::clone(&last), child.stdout.take().context("it is piped")?);
        let reads = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(number) = line.parse() {
                    shared.store(number, Relaxed);
                }
            }
        });
        let mut errors = child.stderr.take().context("it is piped")?;
        let complaints = thread::spawn(move || {
            let mut text = Vec::new();
            // What was read until then is told.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (reads, complaints) = (Some(reads), Some(complaints));
        Ok(Library { name, input: child.stdin.take(), child, last, reads, complaints })
    }

    fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    /// Ends it. Returns whether it ended well, and what it has complained about.
    fn finish(&mut self) -> Result<(bool, String)> {
        drop(self.input.take());
        let mut status = None;
        let ended = wait_until("the client ends", || {
            status = self.child.try_wait()?;
            Ok(status.is_some())
        });
        if ended.is_err() {
            self.child.kill()?;
        }
        let complaints = self.complaints.take().and_then(|thread| thread.join().ok());
        if let Some(reads) = self.reads.take() {
            let _ = reads.join();
        }
        Ok((status.is_some_and(|status| status.success()), complaints.unwrap_or_default()))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until each of them has written on, and tells what they complain about if one has not.
fn wait_until_they_write(libraries: &mut [Library], since: &[u64], what: &str) -> Result<()> {
    for place in 0..libraries.len() {
        let library = &mut libraries[place];
        let writes = wait_until(what, || Ok(library.last() >= since[place] + ENOUGH));
        if writes.is_err() {
            let (_, complaints) = library.finish()?;
            return writes.with_context(|| format!("{}: {complaints}", library.name));
        }
    }
    Ok(())
}

#[test]
fn client_libraries_go_on_at_the_new_primary() -> Result<()> {
    let mut deployment = Deployment::start(&[Target::Dunlin; 3], &[])?;
    let sentinels = watch("redis-sentinel", &deployment)?;
    let ports: Vec<String> = sentinels.ports().iter().map(u16::to_string).collect();
    let ports = ports.join(",");
    let mut libraries = Vec::new();
    for (name, program) in programs() {
        libraries.push(Library::start(name, program, &ports)?);
    }
    let none = vec![0; libraries.len()];
    wait_until_they_write(&mut libraries, &none, "it writes")?;
    let old = deployment.servers[0].port();
    deployment.servers[0].kill();
    let new = sentinels.wait_for_another(old)?;
    // A number that was read late may have been acknowledged before the kill.
    let written: Vec<u64> = libraries.iter().map(Library::last).collect();
    wait_until_they_write(&mut libraries, &written, "it goes on after the failover")?;
    let mut client = Client::connect(new)?;
    for library in &mut libraries {
        let (ended_well, complaints) = library.finish()?;
        ensure!(ended_well, "{}: {complaints}", library.name);
        // Nobody else writes it, so it is where the client has written last.
        let value = client.call(&["GET", library.name])?;
        let value = String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
        ensure!(value == library.last().to_string(), "{}: {value}, {complaints}", library.name);
    }
    Ok(())
}
