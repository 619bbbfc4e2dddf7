//! CLIENT DURABILITY, POSITION and READAFTER: what a connection chooses for its own writes and
//! reads.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::journal::backlog::Position;
use engine::session::choice::{Durability, READAFTER_TIMEOUT, ReadAfter};

const NO_DURABILITY: CommandError = CommandError::text(
    "ERR a durability is DEFAULT, MEMORY, FSYNC, QUORUM, or REPLICAS with a positive number and possibly FSYNC",
);
const NO_POSITION: CommandError =
    CommandError::text("ERR a position is one that CLIENT POSITION has answered");

/// CLIENT DURABILITY [DEFAULT | MEMORY | FSYNC | QUORUM | REPLICAS numreplicas [FSYNC]]
pub(super) fn durability(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.is_empty() {
        cx.reply.bulk(cx.session.durability.to_string().as_bytes());
        return Ok(());
    }
    let chosen = Durability::parse(args.rest().iter()).ok_or(NO_DURABILITY)?;
    if chosen == Durability::Quorum && !cx.db.config.cluster_enabled {
        let text = "ERR QUORUM is for nodes of a cluster: this server is none";
        return Err(CommandError::text(text));
    }
    cx.session.durability = chosen;
    cx.reply.ok();
    Ok(())
}

/// CLIENT POSITION
pub(super) fn position(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let position = cx.engine.position_after(cx.session.write_offset)?;
    cx.reply.bulk(position.to_string().as_bytes());
    Ok(())
}

/// CLIENT READAFTER position [TIMEOUT milliseconds]
pub(super) fn readafter(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let position = Position::parse(args.bytes()?).ok_or(NO_POSITION)?;
    let mut timeout = READAFTER_TIMEOUT;
    if args.word("timeout") {
        timeout = args.at_least(0, CommandError::TIMEOUT_NEGATIVE)? as u64;
    }
    if !args.is_empty() {
        return Err(CommandError::SYNTAX);
    }
    let reached = cx.engine.has_applied(&position)?.then(|| cx.engine.replication.breaks());
    let deadline = cx.db.monotonic.saturating_add(timeout);
    cx.session.read_after = Some(Box::new(ReadAfter { position, deadline, timeout, reached }));
    cx.reply.ok();
    Ok(())
}
