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
    let loaded =
        cx.engine.storage.load_data(cx.engine, Source::Snapshot(duplicates), stopped_world(cx));
    if !save || loaded.is_err() {
        begin_anew(cx);
    }
    loaded.map_err(|_| {
        CommandError::text("ERR Error trying to load the RDB dump, check server logs.")
    })?;
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

/// LOADAOF
pub(super) fn load_append_only(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    // Then the files have all data.
    let journal = &cx.engine.journal;
    let is_kept = journal.has_file() && !journal.beginning() && !journal.state().failed;
    empty_all(cx);
    let loaded = cx.engine.storage.load_data(cx.engine, Source::AppendOnly, stopped_world(cx));
    if !is_kept || loaded.is_err() {
        begin_anew(cx);
    }
    loaded.map_err(|_| {
        CommandError::text("ERR Error trying to load the AOF files, check server logs.")
    })?;
    // The loaded data is in the file.
    cx.engine.saving.note_kept(cx.engine.stats.changes());
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

/// The data may be others than before. A node of a cluster knows by the name of its history to
/// which epoch its data belong: there the history stays.
fn begin_anew(cx: &mut Context<'_>) {
    // What the same transaction has written before is of the stream up to now.
    cx.engine.settle(&mut cx.db);
    if !cx.engine.cluster.is_enabled() {
        cx.engine.begin_anew(stopped_world(cx));
    }
}

fn empty_all(cx: &mut Context<'_>) {
    empty(cx, 0..cx.engine.keyspace.databases());
}
