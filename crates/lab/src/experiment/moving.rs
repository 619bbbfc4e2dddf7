//! `dunlin move` takes the data of one process of a target to another one, as a user would.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::Encryption;
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;

/// How long a move may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks at whether it is over.
const POLL: Duration = Duration::from_millis(5);

/// The name of such events.
pub(super) const MOVE: &str = "move";
/// What stands before the time for which writes were held, in milliseconds.
pub(super) const HELD: &str = "writes were held for ";

/// Moves all data. Returns the tool's words about how long writes were held.
///
/// # Errors
/// The tool's words when it has failed.
pub(super) fn move_all(from: &Endpoint, to: &Endpoint, halt: &Interrupt) -> Result<String, String> {
    if from.password.is_some() || to.password.is_some() {
        return Err("servers with passwords are not moved by the lab".to_owned());
    }
    let url = |endpoint: &Endpoint| {
        let scheme = if endpoint.encryption.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://{}:{}", endpoint.host, endpoint.port)
    };
    // The tool has one set of certificates for both.
    let encryption = match (&from.encryption, &to.encryption) {
        (Some(one), Some(other)) if one != other => {
            return Err("servers with different certificates are not moved by the lab".to_owned());
        }
        (one, other) => one.as_ref().or(other.as_ref()),
    };
    let failed = |error: std::io::Error| format!("dunlin move: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["move", "--from", &url(from), "--to", &url(to), "--yes"]);
    command.args(encryption.map(Encryption::options).unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    // It says little, so that it never waits for a reader.
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
    let (mut said, mut complaints) = (String::new(), String::new());
    if let (Some(mut out), Some(mut errors)) = (child.stdout.take(), child.stderr.take()) {
        out.read_to_string(&mut said).map_err(failed)?;
        errors.read_to_string(&mut complaints).map_err(failed)?;
    }
    if !status.success() {
        return Err(format!("{status}: {}", complaints.trim().replace('\n', " | ")));
    }
    let held = said.lines().find(|line| line.contains(HELD));
    held.map(str::to_owned).ok_or_else(|| "it does not say how long writes were held".to_owned())
}

/// The milliseconds in these words.
pub(super) fn held_ms(words: &str) -> Option<f64> {
    let (_, rest) = words.split_once(HELD)?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_from_the_words() {
        assert_eq!(held_ms("done in 1.5 s; writes were held for 37 ms"), Some(37.0));
        assert_eq!(held_ms("done in 1.5 s"), None);
    }
}
