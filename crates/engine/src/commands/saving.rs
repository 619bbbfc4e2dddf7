//! SAVE, BGSAVE and LASTSAVE. Other clients go on while data is saved, also during SAVE.

use crate::command::{
    ADMIN, Command, FAST, Group, LOADING, NO_ASYNC_LOADING, NO_MULTI, NOSCRIPT, STALE, word,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use crate::persistence::saving::{Accepted, Refusal, SaveRequest};
use crate::script::slow::Need;

/// SAVE
fn save(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    refuse_beside_script(cx)?;
    let waiter = cx.wait_for_host();
    let accepted = cx.engine.storage.save(SaveRequest::Answer(waiter.clone()));
    accepted.map(drop).map_err(|refusal| {
        cx.block = None;
        refused(refusal)
    })
}

/// BGSAVE [SCHEDULE]
fn bgsave(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let schedule = args.word("schedule");
    if !args.is_empty() {
        return Err(CommandError::SYNTAX);
    }
    refuse_beside_script(cx)?;
    // The save of a transaction belongs to the time after it: the gates open when it is done.
    let in_transaction = !cx.may_block();
    let begun = (!in_transaction).then(|| cx.wait_for_host());
    let request = SaveRequest::Background { schedule: schedule || in_transaction, begun };
    match cx.engine.storage.save(request) {
        Ok(Accepted::Started) if !in_transaction => return Ok(()),
        Ok(Accepted::Started | Accepted::Scheduled) => {}
        Err(refusal) => {
            if !in_transaction {
                cx.block = None;
            }
            return Err(refused(refusal));
        }
    }
    if !in_transaction {
        cx.block = None;
    }
    cx.reply.simple(b"Background saving scheduled");
    Ok(())
}

/// Refuses to save while a slow script runs: the file shows an instant in which no script runs, and the
/// script may never end.
fn refuse_beside_script(cx: &Context<'_>) -> CommandResult {
    match cx.engine.scripts.slow.refusal(Need::Thread) {
        Some(busy) => Err(busy),
        None => Ok(()),
    }
}

fn refused(refusal: Refusal) -> CommandError {
    CommandError::text(match refusal {
        Refusal::InProgress => "ERR Background save already in progress",
        Refusal::NoThread => "ERR",
        Refusal::Rewriting => {
            "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
             SCHEDULE in order to schedule a BGSAVE whenever possible."
        }
    })
}

/// LASTSAVE
fn lastsave(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.saving.last_save().cast_signed());
    Ok(())
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("save", save, 1, Group::Server, "1.0.0")
        .flags(ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI)
        .categories(&["dangerous"])
        .docs("O(N) for N keys in all databases.", "Saves all data to a file, and answers then."),
    Command::new("bgsave", bgsave, -1, Group::Server, "1.0.0")
        .flags(ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
        .categories(&["dangerous"])
        .docs("O(1)", "Begins to save all data to a file.")
        .arguments(&[word("schedule", "SCHEDULE").since("3.2.2").optional()])
        .history(&[("3.2.2", "Takes `SCHEDULE`.")]),
    Command::new("lastsave", lastsave, 1, Group::Server, "1.0.0")
        .flags(LOADING | STALE | FAST)
        .categories(&["admin", "dangerous"])
        .docs("O(1)", "Tells when data was last saved, in seconds of Unix time.")
        .tips(&["nondeterministic_output"]),
];
