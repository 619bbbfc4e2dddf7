//! The steps of a move. Up to the promotion each step can be undone, and a failure undoes them: the
//! old server's writes go on, and the new server is a primary of its own again.
//!
//! What keeps every acknowledged write: the old server leads and its writes are paused, for long,
//! before its offset is read for the last time; the new one is promoted only when it has reached
//! that offset in the same stream; and the old one is a replica before its writes go on, so it
//! refuses them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::targets::Interrupt;

use crate::check;
use crate::clock::Moment;
use crate::compare::Comparison;
use crate::copy::{COPIES_IN_VAIN, Written, wait_for_copy};
use crate::failure::Failure;
use crate::last_steps::{conclude, tell_of_password, turn};
use crate::options::Options;
use crate::print::say;
use crate::server::{LONG_PAUSE, Pauses, Server, Writes};
use crate::undo::{Before, Role, undo};

/// How often a comparison is tried, and the pause in between: a key may expire between its two
/// looks, and where clocks differ it is gone at one server before the other.
const COMPARISONS: usize = 3;
const BETWEEN_COMPARISONS: Duration = Duration::from_millis(200);
/// How long a new server holds its own clients' writes at most before it is a replica: longer than
/// the few commands in between, none of which takes longer than ten seconds. After half of it the
/// tool pauses them and looks once more.
const WHILE_LOOKED_AT: Duration = Duration::from_secs(60);

/// Moves everything. The user may have agreed that a pause ends which the old server has, as long
/// as these are its pauses.
pub(crate) fn move_all(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    agreed: Option<Pauses>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let before = Before::of(to, options)?;
    let moved = begin(from, to, options, agreed, &before)
        .and_then(|()| compare_all(from, to, options, interrupt))
        .map_err(Failure::Unmoved)
        .and_then(|comparison| change_over(from, to, options, &comparison, interrupt));
    let held = match moved {
        Ok(held) => held,
        Err(Failure::Unmoved(problem)) => return Err(undo(from, to, &before, &problem)),
        Err(unfinished) => return Err(unfinished),
    };
    let turned = turn(from, to, options);
    // They are of no use to a primary.
    let put_back = before.put_back_settings(to).or_else(|_| {
        to.renew()?;
        before.put_back_settings(to)
    });
    turned.map_err(Failure::Unfinished)?;
    say(&format!(
        "done in {:.1} s; writes were held for {} ms",
        begun.elapsed().as_secs_f64(),
        held.as_millis()
    ));
    if matches!(before.role, Role::Replica) {
        tell_of_password(from, to);
    }
    say("CONFIG REWRITE at both servers keeps their parts over a restart");
    if let Err(problem) = put_back {
        say(&format!("note settings of a replica are left over: {problem}"));
    }
    conclude(from, to, options).map_err(Failure::Unfinished)
}

/// Lets the new server follow the old one, and clients write to the old one.
fn begin(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    agreed: Option<Pauses>,
    before: &Before<'_>,
) -> Result<(), String> {
    let is_paused = matches!(from.writes()?, Writes::Waiting);
    // One that has begun since the last look was told to nobody.
    let problem = match is_paused {
        true => {
            let is_same = agreed == Some(from.pauses()?);
            check::pause_of_others(from, to, options, is_same)?
        }
        false => None,
    };
    if let Some(problem) = problem {
        return Err(problem);
    }
    match before.role {
        Role::Replica => to.refuse_writes()?,
        Role::Primary { .. } => {
            to.prepare_to_follow(&from.address)?;
            // What it has may be more than the check has seen, and no more comes from here on,
            // unless this tool has stood still until the pause has ended.
            loop {
                let paused = Moment::now();
                to.pause_writes(WHILE_LOOKED_AT)?;
                if let Some(problem) = check::unnamed_loss(from, to, options)? {
                    return Err(problem);
                }
                if paused.elapsed() < WHILE_LOOKED_AT / 2 {
                    break;
                }
            }
            to.replicate(&options.seen_from)?;
        }
    }
    // A pause would hold the stream back, and later all clients. What it has held it refuses as a
    // replica.
    to.let_write()?;
    if is_paused {
        from.let_write()?;
        say("writes were held at the old server: they go on until this move holds them");
    }
    Ok(())
}

/// Waits for the copy, and compares it with the old server's data.
fn compare_all(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Comparison, String> {
    for _ in 0..COPIES_IN_VAIN {
        let lag = wait_for_copy(from, to, options, interrupt)?;
        say(&format!("the new server follows, {lag} bytes behind"));
        let comparison = Comparison::before(from, to, options, interrupt)?;
        // Clients have written meanwhile.
        let lag = wait_for_copy(from, to, options, interrupt)?;
        say(&format!("the new server follows, {lag} bytes behind"));
        if !comparison.is_outdated(from)? {
            return Ok(comparison);
        }
        say("a replica has got all data once more meanwhile: comparing again");
    }
    Err(format!(
        "all data was asked of the old server during each of {COPIES_IN_VAIN} comparisons: nobody \
         knows whether by the new one"
    ))
}

/// Holds writes, waits for the last of them, compares, and promotes. Returns how long writes were
/// held until the new server took them.
fn change_over(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    comparison: &Comparison,
    interrupt: &Interrupt,
) -> Result<Duration, Failure> {
    if interrupt.is_set() {
        return Err("interrupted".to_owned().into());
    }
    // A pause that is not this tool's own may be there because another server leads.
    match from.writes()? {
        Writes::Taken => {}
        Writes::Waiting => {
            return Err("somebody else holds the old server's writes".to_owned().into());
        }
        Writes::Unknown(answer) => {
            return Err(format!("the old server answers to a write: {answer}").into());
        }
    }
    let begun = Moment::now();
    from.pause_writes(options.pause)?;
    // Half of the time is for the promotion.
    let is_late = || begun.elapsed() * 2 > options.pause;
    let is_over = || begun.elapsed() >= options.pause;
    Written::by(from)?.wait_for(to, &is_late)?;
    if comparison.is_outdated(from)? {
        return Err("the new server has got all data once more, which is not compared"
            .to_owned()
            .into());
    }
    let in_time = || match is_late() {
        true => Err("the comparison takes too long while writes are held".to_owned()),
        false => Ok(()),
    };
    let mut problem = None;
    for attempt in 0..COMPARISONS {
        if attempt > 0 {
            sleep(BETWEEN_COMPARISONS);
        }
        problem = comparison.difference(from, to, &in_time)?;
        if problem.is_none() {
            break;
        }
    }
    if let Some(problem) = problem {
        return Err(format!("the servers differ: {problem}").into());
    }
    if is_late() || interrupt.is_set() {
        return Err("writes were held for too long, or somebody has interrupted".to_owned().into());
    }
    // From here on a write at the old server would be lost, so its pause must not end by itself.
    from.pause_writes(LONG_PAUSE)?;
    // Somebody else may have ended the first one, and clients may have written before this one.
    Written::by(from)?.wait_for(to, &is_over)?;
    if is_over() {
        return Err("the pause of writes may have ended too early".to_owned().into());
    }
    promote(to)?;
    say("the new server leads");
    Ok(begun.elapsed())
}

/// Makes the new server a primary. When the reply is lost, its role tells. Where nobody knows that,
/// the old one must not take writes.
fn promote(to: &mut Server) -> Result<(), Failure> {
    let Err(problem) = to.call(&["REPLICAOF", "NO", "ONE"]) else { return Ok(()) };
    let unknown = |other: String| {
        Failure::Unfinished(format!(
            "{problem}; {other}\nNobody knows whether the new server leads: the pause of the old \
             server's writes goes on for up to an hour, and the same command, given again, finds \
             that out"
        ))
    };
    to.renew_if_it_can().map_err(unknown)?;
    match to.info("replication").map_err(unknown)?.get("role") {
        Some(role) if role == "master" => Ok(()),
        _ => Err(problem.into()),
    }
}
