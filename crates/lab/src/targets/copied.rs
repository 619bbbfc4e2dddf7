//! Replicas get what was written to their primary before anything is measured.

use std::time::{Duration, Instant};

use super::interrupt::Interrupt;
use super::member::Member;

/// How long one of them may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks.
const POLL: Duration = Duration::from_millis(5);

/// Waits until each of these replicas has the stream up to where its primary is now.
///
/// # Errors
/// One of them has not got so far in [`PATIENCE`], or the lab is to end.
pub(super) fn wait<'m>(
    primary: &Member,
    replicas: impl Iterator<Item = &'m Member>,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let mut wanted = None;
    for replica in replicas {
        let end = match wanted {
            Some(end) => end,
            None => *wanted.insert(wait_for(primary, 0, interrupt)?),
        };
        wait_for(replica, end, interrupt)?;
    }
    Ok(())
}

/// Waits until a process has the stream up to this offset. Returns up to where it has it.
fn wait_for(member: &Member, end: u64, interrupt: &Interrupt) -> Result<u64, String> {
    let begin = Instant::now();
    loop {
        let offset = member.stream_offset();
        if let Some(offset) = offset.filter(|offset| *offset >= end) {
            return Ok(offset);
        }
        if interrupt.is_set() {
            return Err("interrupted".to_owned());
        }
        if begin.elapsed() > PATIENCE {
            let at = match offset {
                Some(offset) => format!("is at offset {offset}"),
                None => "says no offset".to_owned(),
            };
            return Err(format!(
                "{} {at} after {PATIENCE:?}: replicas are to have what was filled in, up to {end}",
                member.name()
            ));
        }
        std::thread::sleep(POLL);
    }
}
