//! Views: results of a database's statements that are kept under keys.
//!
//! Only the host knows what a view is. This module sees keys whose values the host can fetch. A
//! value is kept while it is fresh and for some time after that. During that second time the value
//! is still answered while the host fetches a new one. So the expiry of the key shows how old its
//! value is.

use store::ValueRef;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;
use engine::host::ViewRequest;

use super::reply_version;

const IN_A_TRANSACTION: CommandError =
    CommandError::text("ERR a request to a database cannot be part of a transaction");

/// GET of a view. The arguments are its key; for how many milliseconds a value is fresh and stale;
/// ANEW when the kept value may belong to another view; and SINCE with a millisecond of Unix time,
/// when values kept before that do not count. Answers where the value came from (`hit`, `stale` or
/// `miss`), its version, its age and for how long it is fresh, in seconds, and the value.
pub(super) fn view(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let fresh = args.at_least(1, CommandError::OUT_OF_RANGE)? as u64;
    let stale = args.at_least(0, CommandError::OUT_OF_RANGE)? as u64;
    let anew = args.word("ANEW");
    let since = match args.word("SINCE") {
        true => args.at_least(0, CommandError::OUT_OF_RANGE)? as u64,
        false => 0,
    };
    let (now, stats) = (cx.db.now, cx.db.stats);
    let kept = cx.db.find(&key).filter(|_| !anew).and_then(|entry| {
        match (entry.value(), entry.expire_at()) {
            (ValueRef::String(string), Some(at)) if at >= since.saturating_add(fresh + stale) => {
                Some((string, at, entry.version()))
            }
            // It was forgotten and could not be deleted, or another client has stored something
            // there.
            _ => None,
        }
    });
    let request = ViewRequest::Fill { key: key.bytes.into() };
    let Some((string, expire_at, version)) = kept else {
        if !cx.may_block() {
            return Err(IN_A_TRANSACTION);
        }
        stats.view_misses.add(1);
        let waiter = cx.wait_for_reading(args.argv());
        cx.engine.host.ask_view(request, Some(waiter));
        return Ok(());
    };
    let age = now.saturating_sub(expire_at.saturating_sub(fresh + stale));
    let is_fresh = age < fresh;
    cx.reply.array(5);
    cx.reply.bulk(if is_fresh { b"hit" } else { b"stale" });
    reply_version(&mut cx.reply, version);
    cx.reply.integer((age / 1000) as i64);
    cx.reply.integer((fresh / 1000) as i64);
    cx.reply.string(string);
    if is_fresh {
        stats.view_hits.add(1);
    } else {
        stats.view_stale.add(1);
        cx.engine.host.ask_view(request, None);
    }
    Ok(())
}

/// POST of a view: its name and the body of the request. Answers how many rows have changed.
pub(super) fn change(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let request = ViewRequest::Change { view: args.bytes()?.into(), body: args.bytes()?.into() };
    ask(cx, request)
}

/// Forgets all results with a tag. Answers how many.
pub(super) fn forget(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let request = ViewRequest::Forget { tag: args.bytes()?.into() };
    ask(cx, request)
}

fn ask(cx: &mut Context<'_>, request: ViewRequest) -> CommandResult {
    if !cx.may_block() {
        return Err(IN_A_TRANSACTION);
    }
    let waiter = cx.wait_for_host();
    cx.engine.host.ask_view(request, Some(waiter));
    Ok(())
}
