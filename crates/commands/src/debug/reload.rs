//! RELOAD and LOADAOF: load the data anew from its files, while all other threads stand still.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::flush::{empty, stopped_world};
use engine::persistence::loading::{Duplicates, Source};

/// RELOAD [NOSAVE] [NOFLUSH] [MERGE]
pub(super) fn reload(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (mut save, mut flush, mut duplicates) = (true, true, Duplicates::Refuse);
    while !args.is_empty() {
        if args.word("nosave") {
            save = false;
        } else if args.word("noflush") {
            flush = false;
        } else if args.word("merge") {
            duplicates = Duplicates::Replace;
        } else {
            return Err(CommandError::text(
                "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
            ));
        }
    }
    if save {
        let saved = cx.engine.storage.save_standing(cx.engine, stopped_world(cx));
        saved.map_err(|_| CommandError::text("ERR"))?;
    }
    if flush {
        empty_all(cx);
    }
    cx.engine
        .storage
        .load_data(cx.engine, Source::Snapshot(duplicates), stopped_world(cx))
        .map_err(|_| {
            CommandError::text("ERR Error trying to load the RDB dump, check server logs.")
        })?;
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

/// LOADAOF
pub(super) fn load_append_only(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    empty_all(cx);
    cx.engine.storage.load_data(cx.engine, Source::AppendOnly, stopped_world(cx)).map_err(
        |_| CommandError::text("ERR Error trying to load the AOF files, check server logs."),
    )?;
    // The loaded data is in the file.
    cx.engine.saving.note_kept(cx.engine.stats.changes());
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

fn empty_all(cx: &mut Context<'_>) {
    empty(cx, 0..cx.engine.keyspace.databases());
}
