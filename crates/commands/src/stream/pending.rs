//! XPENDING.

use resp::reply::Reply;
use store::StreamId;
use store::stream::{Group, PendingEntry};

use super::{ReplyStreams, StreamContext, group_of, parse_end, parse_start};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// Which pending entries are asked for.
struct Selection<'a> {
    min_idle: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Selection<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Selection<'a>, CommandError> {
        // Redis ignores a word after all others.
        if !(3..=6).contains(&args.len()) {
            return Err(CommandError::SYNTAX);
        }
        let mut min_idle = 0;
        if args.word("idle") {
            min_idle = args.i64()?;
            if args.len() < 3 {
                return Err(CommandError::SYNTAX);
            }
        }
        let (start, end) = (args.bytes()?, args.bytes()?);
        let count = usize::try_from(args.i64()?).unwrap_or(0);
        let (start, end) = (parse_start(start)?, parse_end(end)?);
        Ok(Selection { min_idle, start, end, count, consumer: args.bytes().ok() })
    }
}

/// XPENDING key group [[IDLE min-idle-time] start end count [consumer]]
pub(super) fn xpending(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, name) = (args.key()?, args.bytes()?);
    let selection = match args.is_empty() {
        true => None,
        false => Some(Selection::parse(args)?),
    };
    let now = cx.stream_now();
    let stream = cx.db.stream(&key)?;
    let (_, group) = group_of(stream, &key, name)?;
    match selection {
        None => summary(&mut cx.reply, group),
        Some(selection) => list(&mut cx.reply, group, &selection, now),
    }
    Ok(())
}

fn summary(reply: &mut Reply<'_>, group: &Group) {
    reply.array(4);
    reply.integer(group.pending_len() as i64);
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    reply.stream_id(first);
    reply.stream_id(last);
    let (mark, mut consumers) = (reply.mark(), 0);
    for consumer in group.consumers().filter(|consumer| consumer.pending_len() > 0) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending_len() as i64);
        consumers += 1;
    }
    reply.close_array(mark, consumers);
}

fn list(reply: &mut Reply<'_>, group: &Group, selection: &Selection<'_>, now: i64) {
    let (mark, mut entries) = (reply.mark(), 0);
    let mut show = |id: StreamId, pending: PendingEntry| {
        let idle = now.saturating_sub(pending.delivered_ms);
        if entries == selection.count || idle < selection.min_idle && selection.min_idle != 0 {
            return entries < selection.count;
        }
        let consumer = group.consumer(pending.consumer);
        reply.array(4);
        reply.stream_id(id);
        reply.bulk(consumer.map_or(b"", |consumer| consumer.name()));
        reply.integer(idle.max(0));
        reply.integer(pending.deliveries.cast_signed());
        entries += 1;
        entries < selection.count
    };
    let within = |id: &StreamId| *id <= selection.end;
    match selection.consumer {
        None => {
            let mut pending = group.pending_from(selection.start);
            let _ =
                pending.by_ref().take_while(|(id, _)| within(id)).all(|(id, own)| show(id, own));
        }
        Some(name) => {
            let own = group.number_of(name).and_then(|number| group.consumer(number));
            if let Some(own) = own {
                let mut ids = own.pending_from(selection.start).take_while(within);
                let _ = ids.all(|id| group.pending(id).is_none_or(|pending| show(id, pending)));
            }
        }
    }
    reply.close_array(mark, entries);
}
