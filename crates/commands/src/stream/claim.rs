//! XCLAIM and XAUTOCLAIM: entries that one consumer has not acknowledged become another's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use store::stream::{Group, PendingEntry, Stream};
use store::{Key, StreamId};

use super::change::parse_exact_id;
use super::{GroupPosition, ReplyStreams, StreamContext, no_group, parse_start, text_of};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// XAUTOCLAIM looks at this many pending entries for each that it may claim.
const LOOKS_PER_CLAIM: usize = 10;

/// Pending entries of one consumer with the same data, for the journal.
pub(super) struct Claims<'c> {
    pub(super) ids: &'c [StreamId],
    pub(super) pending: PendingEntry,
    /// the position that the group has reached.
    pub(super) last_id: Option<StreamId>,
}

/// The journal gets the new owner of these pending entries, since when, and how often they were
/// delivered.
pub(super) fn propagate_claims(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    (group, consumer): (&[u8], &[u8]),
    claims: &Claims<'_>,
) {
    if !cx.is_journaling() || claims.ids.is_empty() {
        return cx.propagate_nothing();
    }
    let ids: Vec<_> = claims.ids.iter().map(|id| text_of(*id)).collect();
    let time = claims.pending.delivered_ms.to_string();
    let deliveries = claims.pending.deliveries.to_string();
    let last_id = claims.last_id.map(text_of);
    let mut command: Vec<&[u8]> = vec![b"XCLAIM", key.bytes, group, consumer, b"0"];
    command.extend(ids.iter().map(|id| &id[..]));
    command.extend([b"TIME", time.as_bytes(), b"RETRYCOUNT", deliveries.as_bytes()]);
    command.extend([&b"FORCE"[..], b"JUSTID"]);
    if let Some(last_id) = &last_id {
        command.extend([&b"LASTID"[..], last_id]);
    }
    cx.propagate(&command);
}

/// Tells the journal that entries are no longer pending.
fn propagate_acknowledged(cx: &mut Context<'_>, key: &Key<'_>, group: &[u8], ids: &[StreamId]) {
    if !cx.is_journaling() || ids.is_empty() {
        return cx.propagate_nothing();
    }
    let ids: Vec<_> = ids.iter().map(|id| text_of(*id)).collect();
    let mut command: Vec<&[u8]> = vec![b"XACK", key.bytes, group];
    command.extend(ids.iter().map(|id| &id[..]));
    cx.propagate(&command);
}

/// The options of XCLAIM.
#[derive(Default)]
struct Options {
    force: bool,
    just_id: bool,
    delivered_ms: Option<i64>,
    deliveries: Option<u64>,
    last_id: StreamId,
}

impl Options {
    fn parse(args: &mut Args<'_>, now: i64) -> Result<Options, CommandError> {
        let mut options = Options::default();
        while !args.is_empty() {
            let more = args.len() > 1;
            let number = |args: &mut Args<'_>, option: &str| {
                args.i64().map_err(|_| {
                    CommandError::owned(format!("ERR Invalid {option} option argument for XCLAIM"))
                })
            };
            if args.word("force") {
                options.force = true;
            } else if args.word("justid") {
                options.just_id = true;
            } else if more && args.word("idle") {
                options.delivered_ms = Some(now.wrapping_sub(number(args, "IDLE")?));
            } else if more && args.word("time") {
                options.delivered_ms = Some(number(args, "TIME")?);
            } else if more && args.word("retrycount") {
                options.deliveries = u64::try_from(number(args, "RETRYCOUNT")?).ok();
            } else if more && args.word("lastid") {
                options.last_id = parse_exact_id(args.bytes()?)?;
            } else {
                let option = args.bytes()?;
                return Err(CommandError::quoting("ERR Unrecognized XCLAIM option '", option, "'"));
            }
        }
        Ok(options)
    }
}

/// The result of a claim.
#[derive(Default)]
struct Claimed {
    ids: Vec<(StreamId, PendingEntry)>,
    /// Pending entries that are no longer in the stream.
    deleted: Vec<StreamId>,
}

/// XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-ms]
///     [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]
pub(super) fn xclaim(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let now = cx.stream_now();
    let there = cx.db.stream(&key)?.is_some_and(|stream| stream.group(name).is_some());
    if !there {
        return Err(no_group(key.bytes, name));
    }
    let min_idle = parse_min_idle(args, "XCLAIM")?;
    let mut ids = Vec::new();
    while let Some(id) = args.peek().and_then(|text| parse_exact_id(text).ok()) {
        ids.push(id);
        args.skip(1);
    }
    let options = Options::parse(args, now)?;
    let group = cx.group_mut(&key, name)?;
    let moved_on = options.last_id > group.last_id;
    group.last_id = group.last_id.max(options.last_id);
    let position = GroupPosition::of(group);
    let number = cx.meet_consumer(&key, name, consumer)?;
    let Some(stream) = cx.db.stream_mut(&key)? else { return Ok(()) };
    let mut claimed = Claimed::default();
    for id in ids {
        if stream.get(id).is_none() {
            let group = stream.group_mut(name);
            if group.is_some_and(|group| group.acknowledge(id)) {
                claimed.deleted.push(id);
            }
            continue;
        }
        let Some(group) = stream.group_mut(name) else { continue };
        let before = group.pending(id);
        let too_young = |before: &PendingEntry| {
            min_idle > 0 && now.wrapping_sub(before.delivered_ms) < min_idle
        };
        if before.is_none() && !options.force || before.as_ref().is_some_and(too_young) {
            continue;
        }
        // An entry that was not pending counts as delivered once.
        let before = before.map_or(1, |before| before.deliveries);
        let counted = before.saturating_add(u64::from(!options.just_id));
        let deliveries = options.deliveries.unwrap_or(counted);
        let delivered_ms = options.delivered_ms.filter(|time| (0..=now).contains(time));
        let delivered_ms = delivered_ms.unwrap_or(now);
        let pending = PendingEntry { delivered_ms, deliveries, consumer: number };
        group.assign(id, pending);
        claimed.ids.push((id, pending));
    }
    note_active(stream, name, number, &claimed, now);
    let reply = &mut cx.reply;
    reply.array(claimed.ids.len());
    claimed.ids.iter().for_each(|(id, _)| answer(reply, stream, *id, options.just_id));
    if moved_on {
        // Together with entries it is a part of their change.
        cx.add_dirty(u64::from(claimed.ids.is_empty()));
        cx.propagate_group_position(&key, name, position);
    }
    settle(cx, &key, (name, consumer), &claimed);
    Ok(())
}

fn parse_min_idle(args: &mut Args<'_>, command: &str) -> Result<i64, CommandError> {
    let min_idle = args.i64().map_err(|_| {
        CommandError::owned(format!("ERR Invalid min-idle-time argument for {command}"))
    })?;
    Ok(min_idle.max(0))
}

/// Notes that a consumer has received something, if it has.
fn note_active(stream: &mut Stream, group: &[u8], consumer: u32, claimed: &Claimed, now: i64) {
    let own = stream.group_mut(group).and_then(|group: &mut Group| group.consumer_mut(consumer));
    if let Some(own) = own.filter(|_| !claimed.ids.is_empty()) {
        own.active_ms = Some(now);
    }
}

fn answer(reply: &mut resp::reply::Reply<'_>, stream: &Stream, id: StreamId, just_id: bool) {
    match stream.get(id).filter(|_| !just_id) {
        Some(entry) => reply.stream_entry(&entry),
        None => reply.stream_id(id),
    }
}

/// Counts and journals the claimed entries, and those that are no longer pending.
fn settle(cx: &mut Context<'_>, key: &Key<'_>, names: (&[u8], &[u8]), claimed: &Claimed) {
    cx.add_dirty((claimed.ids.len() + claimed.deleted.len()) as u64);
    cx.propagate_nothing();
    propagate_acknowledged(cx, key, names.0, &claimed.deleted);
    // Those that are alike go together.
    for alike in claimed.ids.chunk_by(|one, other| one.1 == other.1) {
        let ids: Vec<StreamId> = alike.iter().map(|(id, _)| *id).collect();
        let claims = Claims { ids: &ids, pending: alike[0].1, last_id: None };
        propagate_claims(cx, key, names, &claims);
    }
}

/// XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
pub(super) fn xautoclaim(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let now = cx.stream_now();
    // Counted as a read, as in Redis, with any options.
    let is_stream = cx.db.stream(&key).map(|_| ());
    let min_idle = parse_min_idle(args, "XAUTOCLAIM")?;
    let start = parse_start(args.bytes()?)?;
    let (mut count, mut just_id) = (100, false);
    while !args.is_empty() {
        if args.len() > 1 && args.word("count") {
            let most = i64::MAX / size_of::<StreamId>() as i64;
            let wanted = args.i64().ok().filter(|count| (1..=most).contains(count));
            let wanted = wanted.and_then(|count| usize::try_from(count).ok());
            count = wanted.ok_or(CommandError::text("ERR COUNT must be > 0"))?;
        } else if args.word("justid") {
            just_id = true;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    is_stream?;
    let number = cx.meet_consumer(&key, name, consumer)?;
    let Some(stream) = cx.db.stream_mut(&key)? else { return Ok(()) };
    let (claimed, next) = {
        let wanted = AwaitedValue { consumer: number, min_idle, count, just_id, now };
        wanted.claim(stream, name, start)
    };
    note_active(stream, name, number, &claimed, now);
    let reply = &mut cx.reply;
    reply.array(3);
    reply.stream_id(next);
    reply.array(claimed.ids.len());
    claimed.ids.iter().for_each(|(id, _)| answer(reply, stream, *id, just_id));
    reply.array(claimed.deleted.len());
    claimed.deleted.iter().for_each(|id| reply.stream_id(*id));
    settle(cx, &key, (name, consumer), &claimed);
    Ok(())
}

/// An entry that XREADGROUP has claimed.
pub(super) struct Idle {
    pub(super) id: StreamId,
    /// Milliseconds for which it was pending.
    pub(super) idle: i64,
    /// How often it had been delivered before.
    pub(super) before: u64,
}

/// What XREADGROUP has claimed.
pub(super) struct IdleClaimed {
    /// The claimed entries; those that were pending for longest come first.
    pub(super) entries: Vec<Idle>,
    claimed: Claimed,
}

impl IdleClaimed {
    /// Counts and journals it.
    pub(super) fn settle(&self, cx: &mut Context<'_>, key: &Key<'_>, names: (&[u8], &[u8])) {
        settle(cx, key, names, &self.claimed);
    }
}

/// Gives a consumer up to `count` entries that have been pending for this many milliseconds. An
/// entry that is no longer in the stream is no longer pending.
pub(super) fn claim_idle(
    stream: &mut Stream,
    (name, consumer): (&[u8], u32),
    (min_idle, count): (i64, usize),
    now: i64,
) -> IdleClaimed {
    let idle = |pending: &PendingEntry| now.saturating_sub(pending.delivered_ms);
    let pending = stream.group(name).into_iter().flat_map(|own| own.pending_from(StreamId::MIN));
    let claimable = pending.filter(|(_, own)| idle(own) >= min_idle);
    // Many may be claimable and few wanted, so that a heap is cheaper than sorting them all.
    let mut claimable: BinaryHeap<_> =
        claimable.map(|(id, own)| Reverse((own.delivered_ms, id))).collect::<Vec<_>>().into();
    let (mut entries, mut claimed) = (Vec::new(), Claimed::default());
    while entries.len() < count
        && let Some(Reverse((since, id))) = claimable.pop()
        && let Some(mut own) = stream.group(name).and_then(|group| group.pending(id))
    {
        if stream.get(id).is_none() {
            claimed.deleted.push(id);
            continue;
        }
        let idle = now.saturating_sub(since).max(0);
        entries.push(Idle { id, idle, before: own.deliveries });
        own.consumer = consumer;
        own.delivered_ms = now;
        own.deliveries = own.deliveries.saturating_add(1);
        claimed.ids.push((id, own));
    }
    if let Some(group) = stream.group_mut(name) {
        for id in &claimed.deleted {
            group.acknowledge(*id);
        }
        claimed.ids.iter().for_each(|(id, own)| group.assign(*id, *own));
    }
    note_active(stream, name, consumer, &claimed, now);
    IdleClaimed { entries, claimed }
}

/// The entries that XAUTOCLAIM looks for.
struct AwaitedValue {
    consumer: u32,
    min_idle: i64,
    count: usize,
    just_id: bool,
    now: i64,
}

impl AwaitedValue {
    /// Claims pending entries from one id on. Returns where to continue.
    fn claim(&self, stream: &mut Stream, name: &[u8], start: StreamId) -> (Claimed, StreamId) {
        let mut claimed = Claimed::default();
        let Some(group) = stream.group(name) else { return (claimed, StreamId::MIN) };
        let mut pending = group.pending_from(start);
        let mut left = self.count;
        for _ in 0..self.count.saturating_mul(LOOKS_PER_CLAIM) {
            if left == 0 {
                break;
            }
            let Some((id, mut own)) = pending.next() else { break };
            if stream.get(id).is_none() {
                claimed.deleted.push(id);
                left -= 1;
                continue;
            }
            if self.min_idle > 0 && self.now.wrapping_sub(own.delivered_ms) < self.min_idle {
                continue;
            }
            own.consumer = self.consumer;
            own.delivered_ms = self.now;
            own.deliveries = own.deliveries.saturating_add(u64::from(!self.just_id));
            claimed.ids.push((id, own));
            left -= 1;
        }
        let next = pending.next().map_or(StreamId::MIN, |(id, _)| id);
        drop(pending);
        if let Some(group) = stream.group_mut(name) {
            for id in &claimed.deleted {
                group.acknowledge(*id);
            }
            claimed.ids.iter().for_each(|(id, own)| group.assign(*id, *own));
        }
        (claimed, next)
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_group_that_moves_on_with_an_entry_is_one_change() {
        let mut server = crate::testing::server();
        server.text("XADD s 5-0 field value");
        server.text("XGROUP CREATE s g $");
        for (command, changes) in [
            ("XCLAIM s g ann 0 5 FORCE LASTID 5-11", 2),
            ("XCLAIM s g ann 0 6 FORCE LASTID 5-12", 1),
            ("XCLAIM s g ann 0 5 LASTID 5-13", 1),
            ("XCLAIM s g bob 0 6 5 LASTID 5-14", 2),
        ] {
            let before = server.engine.stats.changes();
            server.text(command);
            assert_eq!(server.engine.stats.changes() - before, changes, "{command}");
        }
    }
}
