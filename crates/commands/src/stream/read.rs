//! XREAD and XREADGROUP, at once or when there is something to read.
//!
//! A client that waits is served by the same request again, from the one key that changed. XREAD
//! wakes all clients that read there. Clients that share a group are served in turn, as long as
//! there are entries that no consumer of the group has got. They wait for the group, too: when the
//! group is removed, they get the error that they would have got without waiting. With CLAIM, the
//! command of a waiting client runs again when an entry may have been pending for long enough.

use resp::args::{Arguments, OwnedArguments};
use smallvec::SmallVec;
use store::stream::{Delivery, PendingEntry, Stream, StreamIds};
use store::{Key, StreamId, ValueRef};

use super::claim::{Claims, claim_idle, propagate_claims};
use super::{GroupPosition, ReplyStreams, StreamContext, event, parse_id, text_of};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{ACCESS, KeyFlags, RO};
use engine::engine::{Context, WaitFor};
use engine::session::awaited::AwaitedValue;

/// A client that waits and claims looks at pending entries again after this many milliseconds at
/// least.
const CLAIM_PAUSE_LEAST: u64 = 10;
/// And at most after this time: entries may grow older in other ways than by waiting.
const CLAIM_PAUSE_MOST: u64 = 1000;

/// The arguments of XREAD and XREADGROUP.
struct ReadRequest<'a> {
    /// Group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    /// Entries become pending.
    pending: bool,
    /// Entries of each stream at most.
    count: usize,
    /// Entries that have been pending for this many milliseconds are read first, whichever consumer
    /// has them.
    claim: Option<i64>,
    /// Wait if there is nothing: for this many milliseconds, or for ever.
    block: Option<Option<u64>>,
    /// The argument that gives the time.
    block_at: usize,
    keys: Vec<Key<'a>>,
    /// From where to read each.
    ids: SmallVec<[&'a [u8]; 4]>,
    /// Which argument the first of these is.
    ids_at: usize,
}

/// From where to read a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// After this id; in a group, of the pending entries.
    After(StreamId),
    /// After the entries that the group has got.
    New,
}

impl<'a> ReadRequest<'a> {
    fn parse(args: &mut Args<'a>, name: &str) -> Result<ReadRequest<'a>, CommandError> {
        let in_group = name == "xreadgroup";
        let only_in_group = |option: &str| {
            CommandError::owned(format!(
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ))
        };
        let (mut group, mut pending, mut claim) = (None, true, None);
        let (mut count, mut block, mut block_at) = (usize::MAX, None, 0);
        loop {
            let more = args.len() > 1;
            if more && args.word("block") {
                block_at = args.position();
                block = Some(args.timeout_in_milliseconds()?);
            } else if more && args.word("count") {
                // None and fewer are all.
                let wanted = Some(args.i64()?).filter(|wanted| *wanted > 0);
                count = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(count);
            } else if more && args.word("streams") {
                break;
            } else if args.len() > 2 && args.word("group") {
                if !in_group {
                    return Err(only_in_group("GROUP"));
                }
                group = Some((args.bytes()?, args.bytes()?));
            } else if more && args.word("claim") {
                if !in_group {
                    return Err(only_in_group("CLAIM"));
                }
                claim = Some(parse_idle(args)?);
            } else if args.word("noack") {
                if !in_group {
                    return Err(only_in_group("NOACK"));
                }
                pending = false;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        if !args.len().is_multiple_of(2) {
            let last = if in_group { "'>'" } else { "'+', or '$'" };
            let or = if in_group { " or " } else { ", " };
            return Err(CommandError::owned(format!(
                "ERR Unbalanced '{name}' list of streams: for each stream key an ID{or}{last} must be \
                 specified."
            )));
        }
        if in_group && group.is_none() {
            return Err(CommandError::text("ERR Missing GROUP option for XREADGROUP"));
        }
        let keys = args.keys(args.len() / 2)?;
        let ids_at = args.position();
        let ids = args.rest().iter().collect();
        Ok(ReadRequest { group, pending, count, claim, block, block_at, keys, ids, ids_at })
    }

    /// Where to read the stream of this index from.
    fn start(&self, cx: &Context<'_>, index: usize) -> Result<Start, CommandError> {
        let key = &self.keys[index];
        let stream = cx.db.stream(key)?;
        if let Some((group, _)) = self.group {
            stream.and_then(|stream| stream.group(group)).ok_or_else(|| no_group(key, group))?;
        }
        self.start_in(stream, self.ids[index])
    }

    fn start_in(&self, stream: Option<&Stream>, id: &[u8]) -> Result<Start, CommandError> {
        let meaningless = |sign: &str| {
            CommandError::owned(format!(
                "ERR The {sign} ID is meaningless in the context of XREADGROUP: you want to read the \
                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                 messages. The {sign} ID would just return an empty result set."
            ))
        };
        Ok(match id {
            b"$" if self.group.is_some() => return Err(meaningless("$")),
            b"+" if self.group.is_some() => return Err(meaningless("+")),
            b"$" => Start::After(stream.map_or(StreamId::MIN, Stream::last_id)),
            b"+" => {
                let last = stream.and_then(Stream::last_entry_id);
                Start::After(last.and_then(StreamId::previous).unwrap_or_default())
            }
            b">" if self.group.is_some() => Start::New,
            b">" => {
                return Err(CommandError::text(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ));
            }
            id => match super::change::parse_exact_id(id)? {
                // Redis does not tell it from the > ID.
                StreamId::MAX if self.group.is_some() => Start::New,
                id => Start::After(id),
            },
        })
    }

    /// Reads a stream and answers its key and its entries. Writes nothing and returns false if
    /// there is nothing to read.
    fn read(
        &self,
        cx: &mut Context<'_>,
        key: &Key<'_>,
        start: Start,
    ) -> Result<bool, CommandError> {
        if self.group.is_some() {
            // Redis looks for the group first, and then for the stream again.
            cx.db.stats.keyspace_hits.add(1);
        }
        match (self.group, start) {
            (Some((group, consumer)), Start::After(id)) => {
                self.read_pending(cx, key, (group, consumer), id)?;
                Ok(true)
            }
            (Some((group, consumer)), Start::New) => self.read_new(cx, key, (group, consumer)),
            (None, Start::After(id)) => self.read_after(cx, key, id),
            (None, Start::New) => Ok(false),
        }
    }

    fn read_after(
        &self,
        cx: &mut Context<'_>,
        key: &Key<'_>,
        id: StreamId,
    ) -> Result<bool, CommandError> {
        let Some(stream) = cx.db.stream(key)? else { return Ok(false) };
        let Some(from) = id.next().filter(|_| has_entry_after(stream, id)) else {
            return Ok(false);
        };
        let reply = &mut cx.reply;
        begin_stream(reply, key);
        let (mark, mut entries) = (reply.mark(), 0);
        for entry in stream.range(from, StreamId::MAX).take(self.count) {
            reply.stream_entry(&entry);
            entries += 1;
        }
        reply.close_array(mark, entries);
        Ok(true)
    }

    /// Reads entries that no consumer of the group has got, and before them those that others have
    /// had for long.
    fn read_new(
        &self,
        cx: &mut Context<'_>,
        key: &Key<'_>,
        (group, consumer): (&[u8], &[u8]),
    ) -> Result<bool, CommandError> {
        let number = cx.meet_consumer(key, group, consumer)?;
        let now_ms = cx.stream_now();
        let Some(stream) = cx.db.stream_mut(key)? else { return Ok(false) };
        let idle = self.claim.map(|min_idle| (min_idle, self.count));
        let claimed = idle.map(|idle| claim_idle(stream, (group, number), idle, now_ms));
        let taken = claimed.as_ref().map_or(0, |claimed| claimed.entries.len());
        let last = stream.group(group).map_or(StreamId::MAX, |group| group.last_id);
        let has_new = taken < self.count && has_entry_after(stream, last);
        let reply = &mut cx.reply;
        let begun = reply.mark();
        begin_stream(reply, key);
        let mark = reply.mark();
        for entry in claimed.iter().flat_map(|claimed| &claimed.entries) {
            reply.array(4);
            answer_parts(reply, stream, entry.id);
            reply.integer(entry.idle);
            reply.integer(entry.before.cast_signed());
        }
        let count = self.count - taken;
        let delivery = Delivery { consumer: number, now_ms, count, pending: self.pending };
        let mut given = StreamIds::new();
        if has_new {
            given = stream.deliver(group, &delivery, |entry| match self.claim {
                None => reply.stream_entry(entry),
                Some(_) => {
                    reply.array(4);
                    reply.stream_entry_parts(entry);
                    // It was never delivered, so it has waited for no consumer.
                    reply.integer(0);
                    reply.integer(0);
                }
            });
        }
        let entries = given.len();
        reply.close_array(mark, taken + entries);
        let position = stream.group(group).map(GroupPosition::of);
        if taken + entries == 0 {
            cx.reply.rollback(begun);
        }
        if let Some(claimed) = claimed {
            claimed.settle(cx, key, (group, consumer));
        }
        if has_new {
            cx.add_dirty(1);
            if self.pending {
                let pending =
                    PendingEntry { delivered_ms: now_ms, deliveries: 1, consumer: number };
                let last_id = given.last().copied();
                let claims = Claims { ids: &given, pending, last_id };
                propagate_claims(cx, key, (group, consumer), &claims);
            }
            if let Some(position) = position {
                cx.propagate_group_position(key, group, position);
            }
        }
        Ok(taken + entries > 0)
    }

    /// Reads again the entries that this consumer has got and not acknowledged.
    fn read_pending(
        &self,
        cx: &mut Context<'_>,
        key: &Key<'_>,
        (group, consumer): (&[u8], &[u8]),
        after: StreamId,
    ) -> CommandResult {
        let number = cx.meet_consumer(key, group, consumer)?;
        let now = cx.stream_now();
        let stream = cx.db.stream_mut(key)?.ok_or_else(|| no_group(key, group))?;
        let own = stream.group(group).and_then(|group| group.consumer(number));
        let own = own.ok_or_else(|| no_group(key, group))?;
        let ids: Vec<StreamId> = match after.next() {
            Some(from) => own.pending_from(from).take(self.count).collect(),
            None => Vec::new(),
        };
        let reply = &mut cx.reply;
        begin_stream(reply, key);
        reply.array(ids.len());
        let mut found = Vec::new();
        for id in ids {
            if let Some(entry) = stream.get(id) {
                reply.stream_entry(&entry);
                found.push(id);
            } else {
                reply.array(2);
                reply.stream_id(id);
                reply.null_array();
            }
        }
        let mut given = Vec::new();
        if let Some(group) = stream.group_mut(group) {
            for id in found {
                let Some(mut pending) = group.pending(id) else { continue };
                pending.deliveries = pending.deliveries.saturating_add(1);
                pending.delivered_ms = now;
                group.assign(id, pending);
                given.push((id, pending));
            }
        }
        cx.propagate_nothing();
        for (id, pending) in given {
            let claims = Claims { ids: &[id], pending, last_id: None };
            propagate_claims(cx, key, (group, consumer), &claims);
        }
        Ok(())
    }
}

/// Whether a stream has entries after an id.
fn has_entry_after(stream: &Stream, id: StreamId) -> bool {
    stream.last_id() > id && stream.last_entry_id().is_some_and(|last| last > id)
}

/// How long claimed entries must have been pending.
fn parse_idle(args: &mut Args<'_>) -> Result<i64, CommandError> {
    let idle = args
        .i64()
        .map_err(|_| CommandError::text("ERR min-idle-time is not an integer or out of range"))?;
    match idle {
        0.. => Ok(idle),
        _ => Err(CommandError::text("ERR min-idle-time must be a positive integer")),
    }
}

/// Writes the id and the fields of an existing entry.
fn answer_parts(reply: &mut resp::reply::Reply<'_>, stream: &Stream, id: StreamId) {
    match stream.get(id) {
        Some(entry) => reply.stream_entry_parts(&entry),
        None => {
            reply.stream_id(id);
            reply.null_array();
        }
    }
}

fn no_group(key: &Key<'_>, group: &[u8]) -> CommandError {
    super::no_group_in(key.bytes, group, "' in XREADGROUP with GROUP option")
}

/// Writes the part of the reply before the entries of a stream.
fn begin_stream(reply: &mut resp::reply::Reply<'_>, key: &Key<'_>) {
    if !reply.is_resp3() {
        reply.array(2);
    }
    reply.bulk(key.bytes);
}

/// Makes the `streams` that were written since `mark` a map, or an array of pairs.
fn close_streams(cx: &mut Context<'_>, mark: resp::output::Mark, streams: usize) {
    if cx.reply.is_resp3() {
        cx.reply.close_map(mark, streams);
    } else {
        cx.reply.close_array(mark, streams);
    }
}

/// The streams that a command reads: STREAMS may also be the name of a stream, a group or a
/// consumer.
pub(super) fn find_streams(argv: Arguments<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let mut index = 1;
    while index < argv.len() {
        let is = |word: &str| argv.at(index).eq_ignore_ascii_case(word.as_bytes());
        index += match () {
            () if is("streams") => {
                let first = index + 1;
                let count = (argv.len() - first) / 2;
                return (first..first + count).for_each(|index| visit(index, RO | ACCESS));
            }
            () if is("group") => 3,
            () if is("block") || is("count") || is("claim") => 2,
            () => 1,
        };
    }
}

/// XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]
pub(super) fn xread(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    read(cx, args, "xread")
}

/// XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK]
///     STREAMS key [key ...] id [id ...]
pub(super) fn xreadgroup(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    read(cx, args, "xreadgroup")
}

fn read(cx: &mut Context<'_>, args: &mut Args<'_>, name: &'static str) -> CommandResult {
    let request = ReadRequest::parse(args, name)?;
    let starts = (0..request.keys.len()).map(|index| request.start(cx, index));
    let starts = starts.collect::<Result<SmallVec<[Start; 4]>, _>>()?;
    let (mark, mut streams) = (cx.reply.mark(), 0);
    for (key, start) in request.keys.iter().zip(&starts) {
        streams += usize::from(request.read(cx, key, *start)?);
    }
    if request.group.is_some() {
        cx.propagate_nothing();
    }
    if streams > 0 {
        close_streams(cx, mark, streams);
        return Ok(());
    }
    match request.block.filter(|_| cx.may_block()) {
        None => cx.reply.null_array(),
        Some(timeout) => wait(cx, args, &request, &starts, timeout),
    }
    Ok(())
}

/// Lets the client wait for entries after those that are there now.
fn wait(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    request: &ReadRequest<'_>,
    starts: &[Start],
    timeout: Option<u64>,
) {
    let again_in = next_claim(cx, request).filter(|next| timeout.is_none_or(|all| *next < all));
    let mut argv = OwnedArguments::new();
    for (index, argument) in args.argv().iter().enumerate() {
        if let Some(next) = again_in.filter(|_| index == request.block_at) {
            // The time that is left when the command runs again.
            argv.push(timeout.map_or(0, |all| all - next).to_string().as_bytes());
            continue;
        }
        match index.checked_sub(request.ids_at).map(|index| starts[index]) {
            Some(Start::After(id)) => argv.push(&text_of(id)),
            _ => argv.push(argument),
        }
    }
    let (keys, argv) = (&request.keys[..], argv.view());
    let wanted =
        AwaitedValue::Stream(|value, key, argv| is_ready(value, key, argv).unwrap_or(true));
    cx.wait(&WaitFor { keys, destination: None, wanted, timeout, again_in, argv });
}

/// In how many milliseconds there may be an entry to claim, if the request claims. Entries that
/// others get meanwhile may qualify, too.
fn next_claim(cx: &Context<'_>, request: &ReadRequest<'_>) -> Option<u64> {
    let (group, min_idle) = (request.group?.0, request.claim?);
    let now = cx.stream_now();
    let oldest = request.keys.iter().filter_map(|key| {
        let own = cx.db.stream(key).ok()??.group(group)?;
        own.pending_from(StreamId::MIN).map(|(_, pending)| pending.delivered_ms).min()
    });
    let expire_at = oldest.min().map_or(now, |oldest| oldest.min(now)).saturating_add(min_idle);
    let wait = u64::try_from(expire_at.saturating_sub(now)).unwrap_or(0);
    Some(wait.clamp(CLAIM_PAUSE_LEAST, CLAIM_PAUSE_MOST))
}

/// The request of a client that waits.
fn waiting(argv: Arguments<'_>) -> Result<ReadRequest<'_>, CommandError> {
    let in_group = argv.at(0).eq_ignore_ascii_case(b"xreadgroup");
    let name = if in_group { "xreadgroup" } else { "xread" };
    ReadRequest::parse(&mut Args::new(argv, &[]), name)
}

/// Whether the value that a key has now ends the waiting for it.
fn is_ready(
    value: Option<ValueRef<'_>>,
    key: &Key<'_>,
    argv: Arguments<'_>,
) -> Result<bool, CommandError> {
    let request = waiting(argv)?;
    let stream = match value {
        Some(ValueRef::Stream(stream)) => stream,
        // A client that reads in a group gets an error now.
        _ => return Ok(request.group.is_some()),
    };
    if let Some((group, _)) = request.group {
        let group = stream.group(group);
        return Ok(group.is_none_or(|group| has_entry_after(stream, group.last_id)));
    }
    let mut own = request.keys.iter().zip(&request.ids).filter(|(own, _)| own.bytes == key.bytes);
    Ok(own.any(|(_, id)| parse_id(id, 0).is_ok_and(|id| has_entry_after(stream, id))))
}

/// Serves a waiting client from one of its keys.
pub(super) fn serve(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    argv: Arguments<'_>,
) -> Result<bool, CommandError> {
    let request = waiting(argv)?;
    let (mark, mut streams) = (cx.reply.mark(), 0);
    for index in 0..request.keys.len() {
        if request.keys[index].bytes == key.bytes {
            let start = request.start(cx, index)?;
            streams += usize::from(request.read(cx, key, start)?);
        }
    }
    close_streams(cx, mark, streams);
    Ok(streams > 0)
}

/// Notes that a group is gone: clients that read in it wait in vain.
pub(super) fn note_group_gone(cx: &mut Context<'_>, key: &Key<'_>) {
    cx.db.notify(key, event("xgroup-destroy"));
    cx.db.wake_waiters(key);
}
