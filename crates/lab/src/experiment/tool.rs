//! The program's own tools, such as `dunlin move`, which the lab runs as a user would.

use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;
use crate::targets::directory::Directory;

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks at whether it is over.
const POLL: Duration = Duration::from_millis(5);

/// A server as tools name it, without its password.
pub(super) fn url(server: &Endpoint) -> String {
    let scheme = if server.encryption.is_some() { "rediss" } else { "redis" };
    format!("{scheme}://{}:{}", server.host, server.port)
}

/// Runs a tool to its end. Returns what it has printed.
///
/// # Errors
/// How it has ended and what it complained of, if it has failed.
pub(super) fn run(
    words: &[&str],
    password: Option<&str>,
    halt: &Interrupt,
) -> Result<String, String> {
    run_logged(words, password, halt).map_err(|error| {
        let tool = words.first().copied().unwrap_or_default();
        format!("dunlin {tool}: {error}")
    })
}

fn run_logged(words: &[&str], password: Option<&str>, halt: &Interrupt) -> io::Result<String> {
    // Files never make it wait for a reader.
    let directory = Directory::fresh(None)?;
    let [said, complaints] = ["said", "complaints"].map(|name| directory.path().join(name));
    let mut child = Command::new(std::env::current_exe()?)
        .args(words)
        .envs(password.map(|password| ("REDISCLI_AUTH", password)))
        .stdin(Stdio::null())
        .stdout(File::create(&said)?)
        .stderr(File::create(&complaints)?)
        .spawn()?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if halt.is_set() || begin.elapsed() > PATIENCE {
            child.kill()?;
        }
        std::thread::sleep(POLL);
    };
    if !status.success() {
        let complaints = fs::read_to_string(complaints)?.trim().replace('\n', " | ");
        return Err(io::Error::other(format!("{status}: {complaints}")));
    }
    fs::read_to_string(said)
}
