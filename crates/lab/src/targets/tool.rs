//! Tools that the lab runs as a user would: the program's own, such as `dunlin move`, and others.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Interrupt;
use super::connection::Endpoint;
use super::directory::Directory;

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks at whether it is over.
const POLL: Duration = Duration::from_millis(5);

/// A server as tools name it, without its password.
pub(crate) fn url(server: &Endpoint) -> String {
    let scheme = if server.encryption.is_some() { "rediss" } else { "redis" };
    format!("{scheme}://{}:{}", server.host, server.port)
}

/// Runs one of the program's own tools to its end. Returns what it has printed.
///
/// # Errors
/// How it has ended and what it complained of, if it has failed.
pub(crate) fn run(
    words: &[&str],
    password: Option<&str>,
    halt: &Interrupt,
) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    run_program(&own, words, password, halt)
}

/// The same with another program.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_program(
    program: &Path,
    words: &[&str],
    password: Option<&str>,
    halt: &Interrupt,
) -> Result<String, String> {
    run_logged(program, words, password, halt).map_err(|error| {
        let tool = words.first().copied().unwrap_or_default();
        let name = program.file_name().unwrap_or_default().display();
        format!("{name} {tool}: {error}")
    })
}

fn run_logged(
    program: &Path,
    words: &[&str],
    password: Option<&str>,
    halt: &Interrupt,
) -> io::Result<String> {
    // Files never make it wait for a reader.
    let directory = Directory::fresh(None)?;
    let [said, complaints] = ["said", "complaints"].map(|name| directory.path().join(name));
    let mut child = Command::new(program)
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
        let complaints = match complaints.as_str() {
            "" => fs::read_to_string(said)?.lines().last().unwrap_or_default().to_owned(),
            _ => complaints,
        };
        return Err(io::Error::other(format!("{status}: {complaints}")));
    }
    fs::read_to_string(said)
}
