//! BGREWRITEAOF, WAITAOF and WAIT.

use crate::command::{
    ADMIN, ArgumentKind, BLOCKING, Command, Group, NO_ASYNC_LOADING, NOSCRIPT, argument,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use crate::persistence::append_only::RewriteAnswer;
use crate::wait::awaited::{Awaited, Wait};
use crate::wait::sync::{NO_FILE, SyncWait};
use crate::wait::waiting::Waiter;

/// BGREWRITEAOF
fn bgrewriteaof(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    // Within a transaction it is only scheduled, as in Redis.
    match cx.engine.storage.rewrite_append_only(!cx.may_block()) {
        RewriteAnswer::Started => {
            cx.reply.simple(b"Background append only file rewriting started");
        }
        RewriteAnswer::Scheduled => {
            cx.reply.simple(b"Background append only file rewriting scheduled");
        }
        RewriteAnswer::InProgress => {
            return Err(CommandError::text(
                "ERR Background append only file rewriting already in progress",
            ));
        }
    }
    Ok(())
}

/// WAITAOF numlocal numreplicas timeout
fn waitaof(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let not_local = CommandError::text("ERR value is out of range, value must between 0 and 1");
    let local = args.i64()?;
    let local = u64::try_from(local).ok().filter(|local| *local <= 1).ok_or(not_local)?;
    let no_count = CommandError::text("ERR value is out of range, must be positive");
    let replicas = args.at_least(0, no_count)? as u64;
    let timeout = args.timeout_in_milliseconds()?;
    let sync = SyncWait { offset: cx.session.written_to, local: Some(local), replicas };
    wait_for_copies(cx, sync, timeout)
}

/// WAIT numreplicas timeout
fn wait(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let replicas = u64::try_from(args.i64()?).unwrap_or(0);
    let timeout = args.timeout_in_milliseconds()?;
    let sync = SyncWait { offset: cx.session.written_to, local: None, replicas };
    wait_for_copies(cx, sync, timeout)
}

/// Answers how many copies there are, as soon as there are enough, or when the time is up.
fn wait_for_copies(cx: &mut Context<'_>, sync: SyncWait, timeout: Option<u64>) -> CommandResult {
    let journal = &*cx.engine.journal;
    let deadline = timeout.map(|timeout| cx.db.steady.saturating_add(timeout));
    if sync.is_in_vain(journal) {
        return Err(CommandError::text(NO_FILE));
    }
    if sync.is_over(journal) || !cx.may_block() {
        sync.reply(journal, &mut cx.reply);
        return Ok(());
    }
    if sync.local.is_some() {
        // A client that asks in this way need not wait for the next second.
        journal.request_sync(sync.offset);
    }
    let wait = Wait::new(Awaited::Sync(sync), cx.db.index, cx.session.resp3, deadline);
    cx.block = Some(Waiter::new(&cx.session.client, wait));
    Ok(())
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bgrewriteaof", bgrewriteaof, 1, Group::Server, "1.0.0")
        .flags(ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
        .categories(&["dangerous"])
        .docs("O(1)", "Begins to rewrite the append-only file, as short as the data allows."),
    Command::new("waitaof", waitaof, 4, Group::Generic, "7.2.0")
        .flags(BLOCKING)
        .categories(&["connection"])
        .docs("O(1)", "Waits until the writes of this connection are durable.")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .arguments(&[
            argument("numlocal", ArgumentKind::Integer),
            argument("numreplicas", ArgumentKind::Integer),
            argument("timeout", ArgumentKind::Integer),
        ]),
    Command::new("wait", wait, 3, Group::Generic, "3.0.0")
        .flags(BLOCKING)
        .categories(&["connection"])
        .docs("O(1)", "Waits for replicas. There are none, so it answers 0 when the time is up.")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .arguments(&[
            argument("numreplicas", ArgumentKind::Integer),
            argument("timeout", ArgumentKind::Integer),
        ]),
];
