//! XINFO.

use resp::reply::Reply;
use store::stream::{Consumer, Group, Stream, StreamNumbers};
use store::{Key, StreamId};

use super::{ReplyStreams, StreamContext};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// Entries and pending entries that FULL shows without a count.
const USUAL_COUNT: usize = 10;

/// The error of a command that needs a group of an existing stream.
pub(super) fn no_such_group(key: &Key<'_>, group: &[u8]) -> CommandError {
    let texts = ["NOGROUP No such consumer group '", "' for key name '", "'"];
    CommandError::quoting_two(texts, [group, key.bytes])
}

/// XINFO CONSUMERS key group
pub(super) fn consumers(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name) = (args.key()?, args.bytes()?);
    let now = cx.stream_now();
    let stream = cx.db.stream(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    let group = stream.group(name).ok_or_else(|| no_such_group(&key, name))?;
    let reply = &mut cx.reply;
    reply.array(group.consumers_len());
    for consumer in group.consumers() {
        reply.map(4);
        reply.label("name");
        reply.bulk(consumer.name());
        reply.label("pending");
        reply.integer(consumer.pending_len() as i64);
        reply.label("idle");
        reply.integer(now.saturating_sub(consumer.seen_ms).max(0));
        reply.label("inactive");
        let inactive = consumer.active_ms.map(|active| now.saturating_sub(active).max(0));
        reply.integer(inactive.unwrap_or(-1));
    }
    Ok(())
}

/// XINFO GROUPS key
pub(super) fn groups(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let key = args.key()?;
    let stream = cx.db.stream(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    let reply = &mut cx.reply;
    reply.array(stream.group_count());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.label("name");
        reply.bulk(name);
        reply.label("consumers");
        reply.integer(group.consumers_len() as i64);
        reply.label("pending");
        reply.integer(group.pending_len() as i64);
        answer_position(reply, stream.numbers(), group);
    }
    Ok(())
}

/// How far a group is: the last three pairs of GROUPS, and three of FULL.
fn answer_position(reply: &mut Reply<'_>, numbers: &StreamNumbers, group: &Group) {
    reply.label("last-delivered-id");
    reply.stream_id(group.last_id);
    reply.label("entries-read");
    answer_number(reply, group.entries_read.map(u64::cast_signed));
    reply.label("lag");
    answer_number(reply, numbers.lag(group));
}

fn answer_number(reply: &mut Reply<'_>, number: Option<i64>) {
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

/// XINFO STREAM key [FULL [COUNT count]]
pub(super) fn stream(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let key = args.key()?;
    let stream = cx.db.stream(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    let full = parse_full(args)?;
    let reply = &mut cx.reply;
    reply.map(if full.is_some() { 9 } else { 10 });
    answer_numbers(reply, stream);
    match full {
        Some(count) => answer_full(reply, stream, count),
        None => answer_ends(reply, stream),
    }
    Ok(())
}

/// Reads `[FULL [COUNT count]]`: how many entries FULL shows, if it was given.
fn parse_full(args: &mut Args<'_>) -> Result<Option<usize>, CommandError> {
    let subcommand = args.argv().at(1);
    let unknown = || CommandError::subcommand_syntax("xinfo", subcommand);
    if args.is_empty() {
        return Ok(None);
    }
    if !args.word("full") {
        return Err(unknown());
    }
    if args.is_empty() {
        return Ok(Some(USUAL_COUNT));
    }
    if args.len() != 2 || !args.word("count") {
        return Err(unknown());
    }
    Ok(Some(match args.i64()? {
        0 => usize::MAX,
        count => usize::try_from(count).unwrap_or(USUAL_COUNT),
    }))
}

fn answer_numbers(reply: &mut Reply<'_>, stream: &Stream) {
    let numbers = stream.numbers();
    reply.label("length");
    reply.integer(numbers.len.cast_signed());
    // The field names of Redis's index of blocks.
    reply.label("radix-tree-keys");
    reply.integer(stream.block_count() as i64);
    reply.label("radix-tree-nodes");
    reply.integer(stream.node_count() as i64);
    reply.label("last-generated-id");
    reply.stream_id(numbers.last_id);
    reply.label("max-deleted-entry-id");
    reply.stream_id(numbers.max_deleted_id);
    reply.label("entries-added");
    reply.integer(numbers.entries_added.cast_signed());
    reply.label("recorded-first-entry-id");
    reply.stream_id(numbers.first_id);
}

fn answer_ends(reply: &mut Reply<'_>, stream: &Stream) {
    reply.label("groups");
    reply.integer(stream.group_count() as i64);
    let first = stream.range(StreamId::MIN, StreamId::MAX).next();
    let last = stream.range_back(StreamId::MIN, StreamId::MAX).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        reply.label(name);
        match entry {
            Some(entry) => reply.stream_entry(&entry),
            None => reply.null(),
        }
    }
}

fn answer_full(reply: &mut Reply<'_>, stream: &Stream, count: usize) {
    reply.label("entries");
    reply.array(stream.len().min(count));
    for entry in stream.range(StreamId::MIN, StreamId::MAX).take(count) {
        reply.stream_entry(&entry);
    }
    reply.label("groups");
    reply.array(stream.group_count());
    for (name, group) in stream.groups() {
        reply.map(7);
        reply.label("name");
        reply.bulk(name);
        answer_position(reply, stream.numbers(), group);
        reply.label("pel-count");
        reply.integer(group.pending_len() as i64);
        reply.label("pending");
        reply.array(group.pending_len().min(count));
        for (id, pending) in group.pending_from(StreamId::MIN).take(count) {
            let consumer = group.consumer(pending.consumer);
            reply.array(4);
            reply.stream_id(id);
            reply.bulk(consumer.map_or(b"", Consumer::name));
            reply.integer(pending.delivered_ms);
            reply.integer(pending.deliveries.cast_signed());
        }
        reply.label("consumers");
        reply.array(group.consumers_len());
        group.consumers().for_each(|consumer| answer_consumer(reply, group, consumer, count));
    }
}

fn answer_consumer(reply: &mut Reply<'_>, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply.label("name");
    reply.bulk(consumer.name());
    reply.label("seen-time");
    reply.integer(consumer.seen_ms);
    reply.label("active-time");
    reply.integer(consumer.active_ms.unwrap_or(-1));
    reply.label("pel-count");
    reply.integer(consumer.pending_len() as i64);
    reply.label("pending");
    reply.array(consumer.pending_len().min(count));
    for id in consumer.pending_from(StreamId::MIN).take(count) {
        let pending = group.pending(id);
        reply.array(3);
        reply.stream_id(id);
        reply.integer(pending.map_or(0, |pending| pending.delivered_ms));
        reply.integer(pending.map_or(0, |pending| pending.deliveries.cast_signed()));
    }
}
