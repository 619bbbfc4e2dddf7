//! Watches a server until a condition holds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::Client;
use crate::server::Server;

/// A test waits at most this long for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tries again until `attempt` succeeds.
///
/// # Errors
/// Those of `attempt`, and [`PATIENCE`] at its end.
pub fn wait_until(what: &str, mut attempt: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !attempt()? {
        ensure!(begin.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Looks again until something is so, which can always be asked.
///
/// # Panics
/// It does not come to that within [`PATIENCE`].
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = wait_until(what, || Ok(is_so()));
    assert!(waited.is_ok(), "{what} does not happen");
}

/// A field of INFO, as text.
///
/// # Errors
/// No field has that name.
pub fn figure(client: &mut Client, name: &str) -> Result<String> {
    let info = client.call_text("INFO everything")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let prefix = format!("{name}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned));
    line.with_context(|| format!("no {name} in INFO"))
}

/// A field of INFO that is a whole number.
///
/// # Errors
/// No field has that name, or it is something else.
pub fn number(client: &mut Client, name: &str) -> Result<u64> {
    figure(client, name)?.parse().with_context(|| format!("{name} is no number"))
}

/// How many events of a kind the log tells of, and in how many lines.
///
/// # Errors
/// A line names no address.
pub fn told(server: &Server, text: &str) -> Result<(u64, u64)> {
    let (mut events, mut lines) = (0, 0);
    for line in server.log().lines().filter(|line| line.contains(text)) {
        ensure!(line.contains("127.0.0.1:"), "{line}");
        let more = line.strip_suffix(" more like this)").and_then(|line| line.rsplit_once(" ("));
        events += 1 + more.map_or(Ok(0), |(_, count)| count.parse::<u64>())?;
        lines += 1;
    }
    Ok((events, lines))
}

/// Causes events, and looks whether the log tells of all of them in a line a second at most.
///
/// # Errors
/// It does not, or those of `cause`.
pub fn log_stays_short(
    server: &Server,
    text: &str,
    count: u64,
    mut cause: impl FnMut() -> Result<()>,
) -> Result<()> {
    let begun = Instant::now();
    for _ in 0..count {
        cause()?;
    }
    wait_until("the log", || Ok(told(server, text)?.0 >= count)).with_context(|| server.log())?;
    let most = begun.elapsed().as_secs() + 2;
    let (events, lines) = told(server, text)?;
    ensure!(events == count && lines <= most, "{events} events in {lines} lines");
    Ok(())
}
