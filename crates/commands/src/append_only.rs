//! BGREWRITEAOF, WAITAOF and WAIT.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ArgumentKind, BLOCKING, Docs, Flags, Group, IN_CONNECTION, IN_DANGEROUS,
    NO_ASYNC_LOADING, NO_KEYS, NOSCRIPT, argument, docs,
};
use engine::engine::{Command, Context, Family, row};
use engine::files::append_only::RewriteAnswer;
use engine::session::attachment::Waiter;
use engine::session::awaited::{Awaited, Wait};
use engine::session::sync::{NO_FILE, SyncWait};

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
    if cx.engine.replication.is_replica() {
        return Err(CommandError::text(WAITAOF_ON_REPLICA));
    }
    let local = args.i64()?;
    let local = u64::try_from(local).ok().filter(|local| *local <= 1).ok_or(not_local)?;
    let no_count = CommandError::text("ERR value is out of range, must be positive");
    let replicas = args.at_least(0, no_count)? as u64;
    let timeout = args.timeout_in_milliseconds()?;
    let sync =
        SyncWait { offset: cx.session.write_offset, local: Some(local), replicas, of_shard: false };
    wait_for_copies(cx, sync, timeout)
}

const WAIT_ON_REPLICA: &str = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
     replica is configured to be writable (which is not the default) writes to replicas are just \
     local and are not propagated.";

const WAITAOF_ON_REPLICA: &str = "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas \
     are just local and are not propagated.";

/// WAIT numreplicas timeout
fn wait(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if cx.engine.replication.is_replica() {
        return Err(CommandError::text(WAIT_ON_REPLICA));
    }
    let replicas = u64::try_from(args.i64()?).unwrap_or(0);
    let timeout = args.timeout_in_milliseconds()?;
    let sync = SyncWait { offset: cx.session.write_offset, local: None, replicas, of_shard: false };
    wait_for_copies(cx, sync, timeout)
}

/// Answers how many copies there are, as soon as there are enough, or when the time is up.
fn wait_for_copies(cx: &mut Context<'_>, sync: SyncWait, timeout: Option<u64>) -> CommandResult {
    let (journal, replicas) = (&*cx.engine.journal, &cx.engine.replicas);
    let deadline = timeout.map(|timeout| cx.db.monotonic.saturating_add(timeout));
    if sync.is_in_vain(journal) {
        return Err(CommandError::text(NO_FILE));
    }
    if cx.db.config.cluster_enabled && cx.engine.replication.may_have_lost(sync.offset) {
        // This was a replica since, which has taken all data of another primary in.
        sync.reply_without_copies(&mut cx.reply);
        return Ok(());
    }
    if sync.is_over(journal, || replicas.copies(&sync)) || !cx.may_block() {
        sync.reply(journal, replicas.copies(&sync), &mut cx.reply);
        return Ok(());
    }
    if sync.local.is_some() {
        // A client that asks in this way need not wait for the next second.
        journal.request_sync(sync.offset);
    }
    if sync.replicas > 0 {
        replicas.ask();
    }
    let wait = Wait::new(Awaited::Sync(sync), cx.db.index, cx.session.resp3, deadline);
    cx.block = Some(Waiter::new(&cx.session.client, wait));
    Ok(())
}

/// Flags of BGREWRITEAOF.
const REWRITING: Flags = ADMIN | NOSCRIPT | NO_ASYNC_LOADING | IN_DANGEROUS;

/// The command that rewrites the file.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

/// The commands that wait for the writes before them.
pub(crate) const WAITING: Family = Family::new(WAITING_COMMANDS, WAITING_DOCS);

const COMMANDS: &[Command] =
    &Group::Server.rows([row("bgrewriteaof", bgrewriteaof, 1, REWRITING, NO_KEYS)]);

const WAITING_COMMANDS: &[Command] = &Group::Generic.rows([
    row("waitaof", waitaof, 4, BLOCKING | IN_CONNECTION, NO_KEYS),
    row("wait", wait, 3, BLOCKING | IN_CONNECTION, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs(
    "bgrewriteaof",
    "1.0.0",
    "Begins to rewrite the append-only file, as short as the data allows.",
)
.cost("O(1)")];

const WAITING_DOCS: &[Docs] = &[
    docs(
        "waitaof",
        "7.2.0",
        "Waits until the writes of this connection are durable, here and at replicas.",
    )
    .cost("O(1)")
    .arguments(&[
        argument("numlocal", ArgumentKind::Integer),
        argument("numreplicas", ArgumentKind::Integer),
        argument("timeout", ArgumentKind::Integer),
    ])
    .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
    docs("wait", "3.0.0", "Waits until replicas have the writes of this connection.")
        .cost("O(1)")
        .arguments(&[
            argument("numreplicas", ArgumentKind::Integer),
            argument("timeout", ArgumentKind::Integer),
        ])
        .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
];
