//! XRANGE and XREVRANGE.

use super::{ReplyStreams, parse_end, parse_start};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// XRANGE key start end [COUNT count]
pub(super) fn xrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    range(cx, args, false)
}

/// XREVRANGE key end start [COUNT count]
pub(super) fn xrevrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    range(cx, args, true)
}

fn range(cx: &mut Context<'_>, args: &mut Args<'_>, backwards: bool) -> CommandResult {
    let key = args.key()?;
    let (first, second) = (args.bytes()?, args.bytes()?);
    let (start, end) = if backwards { (second, first) } else { (first, second) };
    let (start, end) = (parse_start(start)?, parse_end(end)?);
    let mut count = None;
    while !args.is_empty() {
        if args.len() < 2 || !args.word("count") {
            return Err(CommandError::SYNTAX);
        }
        count = Some(usize::try_from(args.i64()?).unwrap_or(0));
    }
    let Some(stream) = cx.db.stream(&key)? else {
        cx.reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        cx.reply.null_array();
        return Ok(());
    }
    let count = count.unwrap_or(usize::MAX);
    let (mark, mut entries) = (cx.reply.mark(), 0);
    let reply = &mut cx.reply;
    let mut show = |entry| {
        reply.stream_entry(&entry);
        entries += 1;
    };
    if backwards {
        stream.range_back(start, end).take(count).for_each(&mut show);
    } else {
        stream.range(start, end).take(count).for_each(&mut show);
    }
    cx.reply.close_array(mark, entries);
    Ok(())
}
