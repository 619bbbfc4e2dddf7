//! `dunlin backup` takes all data of a target and the stream behind it, as a user would, and checks
//! what it has.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::Encryption;
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;
use crate::targets::directory::Directory;

/// How long a backup may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks at whether it is over.
const POLL: Duration = Duration::from_millis(5);

/// The name of such events.
pub(super) const BACKUP: &str = "backup";

/// Takes a backup, which is thrown away afterwards. Returns what the tool said last: up to where it
/// reaches.
///
/// # Errors
/// The tool's words when it has failed.
pub(super) fn back_up(server: &Endpoint, halt: &Interrupt) -> Result<String, String> {
    let scheme = if server.encryption.is_some() { "rediss" } else { "redis" };
    let url = format!("{scheme}://{}:{}", server.host, server.port);
    let directory = Directory::fresh(None).map_err(|error| error.to_string())?;
    let log = directory.path().join("said");
    let to = directory.path().join("store");
    let to = to.to_str().ok_or("a path of text")?;
    let mut words = vec!["backup", "--from", &url, "--to", to];
    words.extend(server.encryption.as_ref().map(Encryption::options).unwrap_or_default());
    let said = run(&words, server.password.as_deref(), &log, halt)?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

fn run(
    words: &[&str],
    password: Option<&str>,
    log: &Path,
    halt: &Interrupt,
) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("dunlin backup: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let file = std::fs::File::create(log).map_err(failed)?;
    let mut command = Command::new(program);
    command.args(words).envs(password.map(|password| ("REDISCLI_AUTH", password)));
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
    let mut child = command.spawn().map_err(failed)?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if halt.is_set() || begin.elapsed() > PATIENCE {
            child.kill().map_err(failed)?;
        }
        std::thread::sleep(POLL);
    };
    let said = std::fs::read_to_string(log).map_err(failed)?;
    match status.success() {
        true => Ok(said),
        false => Err(format!("{status}: {}", said.trim().replace('\n', " | "))),
    }
}
