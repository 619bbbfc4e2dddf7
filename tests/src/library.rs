//! Programs of `tests/clients` that write on and on through a client library, and say what was
//! acknowledged, one line each. They end with their standard input.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};

use crate::observe::wait_until;
use crate::peers;
use crate::server::repository;

/// See the module's text. Dropping it ends the program.
#[derive(Debug)]
pub struct Library {
    name: &'static str,
    child: Child,
    /// The program ends when this is closed.
    input: Option<ChildStdin>,
    said: Arc<Mutex<Vec<String>>>,
    reads: Option<JoinHandle<()>>,
    complaints: Option<JoinHandle<String>>,
}

/// The commands that start the clients of a folder of `tests/clients`, by the names of their
/// libraries.
#[must_use]
pub fn programs(folder: &str) -> Vec<(&'static str, Command)> {
    let scripts = repository().join("tests/tests/clients").join(folder);
    let mut python = Command::new(peers::directory().join("python/bin/python"));
    python.arg(scripts.join("redis_py.py"));
    let mut node = Command::new("node");
    node.arg(scripts.join("ioredis.js"));
    node.env("NODE_PATH", peers::directory().join("node/node_modules"));
    let go = Command::new(peers::directory().join(format!("go/bin/go-redis-{folder}")));
    let mut all = vec![("redis-py", python), ("ioredis", node), ("go-redis", go)];
    for name in ["jedis", "lettuce"] {
        let source = scripts.join(name).join("Writer.java");
        if source.exists() {
            let mut java = Command::new("java");
            java.arg("-XX:TieredStopAtLevel=1").arg("-cp");
            java.arg(peers::directory().join(name).join("*")).arg(source);
            all.push((name, java));
        }
    }
    if scripts.join("redis-rs").exists() {
        let rust = peers::directory().join(format!("rust/bin/redis-rs-{folder}"));
        all.push(("redis-rs", Command::new(rust)));
    }
    all
}

impl Library {
    /// Starts a program with the ports to which it is to connect.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(name: &'static str, mut command: Command, ports: &[u16]) -> Result<Library> {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        command.arg(ports.join(","));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (shared, output) = (Arc::clone(&said), child.stdout.take().context("it is piped")?);
        let reads = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(line);
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
        Ok(Library { name, input: child.stdin.take(), child, said, reads, complaints })
    }

    /// The name of the library.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How many lines it has said.
    #[must_use]
    pub fn count(&self) -> usize {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The lines that it has said, without so many at the beginning.
    #[must_use]
    pub fn said(&self, after: usize) -> Vec<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.get(after..).unwrap_or_default().to_vec()
    }

    /// Whether the program still runs.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it. Returns whether it ended well, and what it has complained about.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn finish(&mut self) -> Result<(bool, String)> {
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

/// Waits until something is so of each of some libraries, and tells what they complain about if it
/// never is.
///
/// # Errors
/// It never is, or a program has ended.
pub fn wait_for_each(
    libraries: &mut [Library],
    what: &str,
    is_so: impl Fn(usize, &Library) -> bool,
) -> Result<()> {
    for (place, library) in libraries.iter_mut().enumerate() {
        let waited = wait_until(what, || {
            ensure!(library.is_running(), "it has ended");
            Ok(is_so(place, library))
        });
        if waited.is_err() {
            let (_, complaints) = library.finish()?;
            return waited.with_context(|| format!("{}: {complaints}", library.name));
        }
    }
    Ok(())
}
