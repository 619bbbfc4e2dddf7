//! SAVE, BGSAVE and LASTSAVE. Other clients go on while data is saved, also during SAVE.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, Docs, FAST, Group, IN_DANGEROUS, LOADING, NO_ASYNC_LOADING, NO_KEYS, NO_MULTI, NOSCRIPT,
    STALE, docs, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::files::saving::{Accepted, Refusal, SaveRequest};
use engine::script::slow::Need;

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

/// Refuses to save while a slow script runs: the file shows an instant in which no script runs, and
/// the script may never end.
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

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([
    row("save", save, 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI | IN_DANGEROUS, NO_KEYS),
    row("bgsave", bgsave, -1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | IN_DANGEROUS, NO_KEYS),
    row("lastsave", lastsave, 1, LOADING | STALE | FAST | IN_DANGEROUS, NO_KEYS)
        .categories(&["admin"]),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("save", "1.0.0", "Saves all data to a file, and answers then.")
        .cost("O(N) for N keys in all databases."),
    docs("bgsave", "1.0.0", "Begins to save all data to a file.")
        .cost("O(1)")
        .arguments(&[word("schedule", "SCHEDULE").since("3.2.2").optional()])
        .history(&[("3.2.2", "Takes `SCHEDULE`.")]),
    docs("lastsave", "1.0.0", "Tells when data was last saved, in seconds of Unix time.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
];
