//! What a request waits for that has written, and whose client has chosen a durability.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::persistence::chosen::Reached;
use engine::session::attachment::Waiter;
use engine::session::awaited::{Awaited, Wait};
use engine::session::sync::SyncWait;

/// Waits for copies of everything up to an offset: AWAITCOPIES offset numlocal numreplicas ofshard.
/// What it answers says nothing: whoever asks looks again.
pub(super) fn await_copies(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut number = || args.at_least(0, CommandError::OUT_OF_RANGE).map(|number| number as u64);
    let (offset, local, replicas, of_shard) = (number()?, number()?, number()?, number()? > 0);
    let sync = SyncWait { offset, local: (local > 0).then_some(local), replicas, of_shard };
    if cx.engine.reached(&sync) != Reached::NotYet || !cx.may_block() {
        cx.reply.ok();
        return Ok(());
    }
    cx.engine.ask_for(&sync);
    let deadline = cx.db.monotonic.saturating_add(cx.db.config.durability_timeout);
    let wait = Wait::new(Awaited::Sync(sync), cx.db.index, cx.session.resp3, Some(deadline));
    cx.block = Some(Waiter::new(&cx.session.client, wait));
    Ok(())
}
