//! XADD, XDEL, XTRIM and XSETID.

use smallvec::SmallVec;
use store::stream::{Deletion, References, Stream, StreamIds, StreamLimits, Trim, TrimTo};
use store::{Key, StreamId, Value, ValueMut};

use super::{INVALID_ID, ReplyStreams, StreamContext, event, parse_id, text_of};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// At most this many bytes of texts in an entry: Redis packs an entry into one listpack of this
/// size.
const LARGEST_ENTRY: usize = 1 << 30;

const NOT_ABOVE: CommandError = CommandError::text(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);
const LIMIT_OF_EXACT: CommandError =
    CommandError::text("ERR syntax error, LIMIT cannot be used without the special ~ option");
const EXHAUSTED: CommandError = CommandError::text(
    "ERR The stream has exhausted the last possible ID, unable to add more items",
);

/// The id that XADD is asked to give.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WantedId {
    /// `*`
    Any,
    /// `milliseconds-*`
    Within(u64),
    /// This one.
    Exactly(StreamId),
}

impl WantedId {
    fn parse(text: &[u8]) -> Result<WantedId, CommandError> {
        if let Some(ms) = text.strip_suffix(b"-*")
            && !ms.contains(&b'-')
        {
            return Ok(WantedId::Within(parse_id(ms, 0)?.ms));
        }
        match text {
            b"-" | b"+" => Err(INVALID_ID),
            text => parse_id(text, 0).map(WantedId::Exactly),
        }
    }

    /// The id, after the last one.
    fn choose(self, last: StreamId, now_ms: u64) -> Result<StreamId, CommandError> {
        let id = match self {
            WantedId::Any if now_ms > last.ms => StreamId::new(now_ms, 0),
            WantedId::Any => return last.next().ok_or(EXHAUSTED),
            WantedId::Within(ms) if ms == last.ms => {
                let seq = last.seq.checked_add(1).ok_or(NOT_ABOVE)?;
                StreamId::new(ms, seq)
            }
            WantedId::Within(ms) => StreamId::new(ms, 0),
            WantedId::Exactly(id) => id,
        };
        if id > last { Ok(id) } else { Err(NOT_ABOVE) }
    }
}

/// Reads KEEPREF, DELREF or ACKED. Returns nothing if the next word is none of them.
fn parse_references(args: &mut Args<'_>) -> Option<References> {
    if args.word("keepref") {
        Some(References::Keep)
    } else if args.word("delref") {
        Some(References::Delete)
    } else if args.word("acked") {
        Some(References::Acknowledged)
    } else {
        None
    }
}

/// The options MAXLEN and MINID.
#[derive(Clone, Copy, Default)]
struct TrimOption {
    to: Option<TrimTo>,
    references: Option<References>,
    by_blocks: bool,
    limit: Option<i64>,
}

impl TrimOption {
    /// Reads one of `MAXLEN|MINID [=|~] threshold` and `LIMIT count`. Returns whether there was
    /// one.
    fn parse(&mut self, args: &mut Args<'_>) -> Result<bool, CommandError> {
        let more = args.len() > 1;
        let by_len = more && args.word("maxlen");
        if by_len || (more && args.word("minid")) {
            if self.to.is_some() {
                return Err(CommandError::text(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            self.by_blocks = args.len() > 1 && args.word("~");
            if !self.by_blocks && args.len() > 1 {
                args.word("=");
            }
            self.to = Some(if by_len {
                let len = args.i64()?;
                let len = u64::try_from(len)
                    .map_err(|_| CommandError::text("ERR The MAXLEN argument must be >= 0."))?;
                TrimTo::Len(len)
            } else {
                TrimTo::From(parse_exact_id(args.bytes()?)?)
            });
            return Ok(true);
        }
        if more && args.word("limit") {
            let limit = args.i64()?;
            if limit < 0 {
                return Err(CommandError::text("ERR The LIMIT argument must be >= 0."));
            }
            self.limit = Some(limit);
            return Ok(true);
        }
        match parse_references(args) {
            Some(_) if self.references.is_some() => Err(CommandError::SYNTAX),
            Some(references) => {
                self.references = Some(references);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// The trim to carry out.
    fn finish(self, cx: &Context<'_>, limits: StreamLimits) -> Result<Option<Trim>, CommandError> {
        let Some(to) = self.to else {
            if self.limit.is_some_and(|limit| limit > 0) {
                return Err(CommandError::text(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                ));
            }
            return Ok(None);
        };
        if self.limit.is_some() && !self.by_blocks && !cx.session.repeats() {
            return Err(LIMIT_OF_EXACT);
        }
        let limit = match self.limit {
            _ if cx.session.repeats() || !self.by_blocks => None,
            Some(0) => None,
            Some(limit) => Some(limit.unsigned_abs()),
            None => Some(usual_limit(limits)),
        };
        Ok(Some(Trim { to, by_blocks: self.by_blocks, limit }))
    }
}

/// How many entries an approximate trim removes at most without a LIMIT.
fn usual_limit(limits: StreamLimits) -> u64 {
    limits.entries().saturating_mul(100).min(1_000_000)
}

/// XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [MAXLEN|MINID [=|~] threshold [LIMIT count]]
///     *|id field value [field value ...]
pub(super) fn xadd(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let limits = cx.stream_limits();
    let (mut option, mut only_existing) = (TrimOption::default(), false);
    let wanted = loop {
        match args.peek() {
            Some(b"*") => {
                args.skip(1);
                break WantedId::Any;
            }
            None => break WantedId::Any,
            Some(_) if option.parse(args)? => {}
            Some(_) if args.word("nomkstream") => only_existing = true,
            Some(_) => break WantedId::parse(args.bytes()?)?,
        }
    };
    let trim = option.finish(cx, limits)?;
    if trim.is_none() && option.limit.is_some() && !cx.session.repeats() {
        return Err(LIMIT_OF_EXACT);
    }
    let references = option.references.unwrap_or_default();
    let id_at = args.position() - 1;
    let fields = args.rest();
    if fields.len() < 2 || !fields.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(cx.row.command.name));
    }
    if wanted == WantedId::Exactly(StreamId::MIN) {
        return Err(CommandError::text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let fields: SmallVec<[&[u8]; 24]> = fields.iter().collect();
    let bytes: usize = fields.iter().map(|text| text.len()).sum();
    let now = cx.db.now;
    let add = |stream: &mut Stream| {
        let last = stream.last_id();
        if last == StreamId::MAX {
            return Err(EXHAUSTED);
        }
        let id = wanted.choose(last, now)?;
        if bytes > LARGEST_ENTRY {
            return Err(CommandError::text("ERR Elements are too large to be stored"));
        }
        stream.push(id, fields.iter().copied(), limits);
        let trimmed = trim.as_ref().map(|trim| stream.trim_with(trim, references));
        let (holes, trimmed) = trimmed.unwrap_or_default();
        Ok(Added { id, trimmed, holes, point: TrimPoint::of(stream) })
    };
    let added = cx.db.change(&key, event("xadd"), |entry| match entry.value_mut() {
        ValueMut::Stream(stream) => add(stream),
        _ => Err(CommandError::WRONG_TYPE),
    })?;
    let added = match added {
        Some(added) => added,
        None if only_existing => {
            cx.reply.null();
            return Ok(());
        }
        None => {
            let mut stream = Stream::new();
            let added = add(&mut stream)?;
            cx.db.set(&key, Value::Stream(stream), None);
            cx.db.changed(&key, event("xadd"));
            added
        }
    };
    cx.reply.stream_id(added.id);
    if trim.is_some() && added.trimmed > 0 {
        cx.db.notify(&key, event("xtrim"));
    }
    propagate_xadd(cx, args, (wanted, id_at), (trim, references), &added);
    cx.db.wake_waiters(&key);
    Ok(())
}

/// The result of XADD.
struct Added {
    id: StreamId,
    trimmed: u64,
    /// The removed entries, if they were not the first ones.
    holes: Vec<StreamId>,
    point: TrimPoint,
}

/// Where a stream begins after it was trimmed.
#[derive(Clone, Copy)]
struct TrimPoint {
    len: u64,
    first_id: StreamId,
}

impl TrimPoint {
    fn of(stream: &Stream) -> TrimPoint {
        let numbers = stream.numbers();
        TrimPoint { len: numbers.len, first_id: numbers.first_id }
    }

    /// The exact trim with the same result, in the form of a command.
    fn exactly(self, to: TrimTo) -> (&'static [u8], Vec<u8>) {
        match to {
            TrimTo::Len(_) => (b"MAXLEN", self.len.to_string().into_bytes()),
            // Nothing is left: all ids are below.
            TrimTo::From(_) if self.len == 0 => (b"MINID", text_of(StreamId::MAX).to_vec()),
            TrimTo::From(_) => (b"MINID", text_of(self.first_id).to_vec()),
        }
    }
}

/// The journal records the chosen id, and an approximate trim as an exact one.
fn propagate_xadd(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    (wanted, id_at): (WantedId, usize),
    (trim, references): (Option<Trim>, References),
    added: &Added,
) {
    let approximate = trim.is_some_and(|trim| trim.by_blocks || references != References::Keep);
    if !cx.is_journaling() || (matches!(wanted, WantedId::Exactly(_)) && !approximate) {
        return;
    }
    let argv = args.argv();
    let exact = trim.map(|trim| match trim.by_blocks {
        true => added.point.exactly(trim.to),
        false => match trim.to {
            TrimTo::Len(len) => (&b"MAXLEN"[..], len.to_string().into_bytes()),
            TrimTo::From(id) => (&b"MINID"[..], text_of(id).to_vec()),
        },
    });
    let id = text_of(added.id);
    let mut command: Vec<&[u8]> = vec![b"XADD", argv.at(1)];
    if references == References::Delete {
        command.push(b"DELREF");
    }
    // A trim that removed nothing needs no journal entry, and holes have entries of their own.
    let exact = exact.as_ref().filter(|_| added.trimmed > 0 && added.holes.is_empty());
    if let Some((word, threshold)) = exact {
        command.extend([*word, &b"="[..], &threshold[..]]);
    }
    command.push(&id);
    command.extend(argv.skip(id_at + 1).iter());
    cx.propagate(&command);
    propagate_deleted(cx, argv.at(1), &added.holes);
}

/// The journal gets that entries were deleted.
fn propagate_deleted(cx: &mut Context<'_>, key: &[u8], ids: &[StreamId]) {
    if ids.is_empty() || !cx.is_journaling() {
        return cx.propagate_nothing();
    }
    let ids: Vec<_> = ids.iter().map(|id| text_of(*id)).collect();
    let mut command: Vec<&[u8]> = vec![b"XDEL", key];
    command.extend(ids.iter().map(|id| &id[..]));
    cx.propagate(&command);
}

/// XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED]
pub(super) fn xtrim(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let mut option = TrimOption::default();
    while !args.is_empty() {
        if !option.parse(args)? {
            return Err(CommandError::SYNTAX);
        }
    }
    let limits = cx.stream_limits();
    let trim = option.finish(cx, limits)?.ok_or(CommandError::text(
        "ERR syntax error, XTRIM must be called with a trimming strategy",
    ))?;
    let Some(stream) = cx.db.stream_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let references = option.references.unwrap_or_default();
    let (holes, removed) = stream.trim_with(&trim, references);
    let point = TrimPoint::of(stream);
    if removed > 0 {
        cx.db.changed_times(&key, event("xtrim"), removed);
        let (word, threshold) = point.exactly(trim.to);
        match references {
            References::Acknowledged => propagate_deleted(cx, key.bytes, &holes),
            References::Delete => {
                cx.propagate(&[b"XTRIM", key.bytes, word, b"=", &threshold, b"DELREF"]);
            }
            References::Keep if trim.by_blocks => {
                cx.propagate(&[b"XTRIM", key.bytes, word, b"=", &threshold]);
            }
            References::Keep => {}
        }
    }
    cx.reply.integer(removed.cast_signed());
    Ok(())
}

/// XDEL key id [id ...]
pub(super) fn xdel(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let Some(stream) = cx.db.stream_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = parse_ids(args)?;
    let deleted = ids.iter().filter(|id| stream.delete(**id)).count();
    if deleted > 0 {
        cx.db.changed_times(&key, event("xdel"), deleted as u64);
    }
    cx.reply.integer(deleted as i64);
    Ok(())
}

/// Reads `[KEEPREF|DELREF|ACKED] IDS numids id [id ...]`; the word for references may also come
/// last.
fn parse_deletion(args: &mut Args<'_>) -> Result<(References, StreamIds), CommandError> {
    let before = parse_references(args);
    if !args.word("ids") {
        return Err(CommandError::SYNTAX);
    }
    let wrong = CommandError::text("ERR Number of IDs must be a positive integer");
    let count = args.at_least(1, wrong)?;
    let mismatch =
        CommandError::text("ERR The `numids` parameter must match the number of arguments");
    if count > args.len() {
        return Err(mismatch);
    }
    let ids = (0..count).map(|_| parse_exact_id(args.bytes()?)).collect::<Result<_, _>>()?;
    let behind = if before.is_none() { parse_references(args) } else { None };
    if !args.is_empty() {
        return Err(mismatch);
    }
    Ok((before.or(behind).unwrap_or_default(), ids))
}

/// How a deletion is answered.
fn shown(deletion: Deletion) -> i64 {
    match deletion {
        Deletion::Missing => -1,
        Deletion::Deleted => 1,
        Deletion::Referenced => 2,
    }
}

/// XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id ...]
pub(super) fn xdelex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let (references, ids) = parse_deletion(args)?;
    let mut deletions = vec![Deletion::Missing; ids.len()];
    let mut forgotten = 0;
    if let Some(stream) = cx.db.stream_mut(&key)? {
        for (id, deletion) in ids.iter().zip(&mut deletions) {
            *deletion = stream.delete_with(*id, references);
            // Groups may still have a pending entry of one that was deleted before.
            if *deletion == Deletion::Missing && references == References::Delete {
                forgotten += u64::from(stream.forget(*id));
            }
        }
    }
    cx.add_dirty(forgotten);
    settle_deletions(cx, &key, &deletions);
    Ok(())
}

/// XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id ...]
pub(super) fn xackdel(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, name) = (args.key()?, args.bytes()?);
    let (references, ids) = parse_deletion(args)?;
    let stream = cx.db.stream_mut(&key)?.filter(|stream| stream.group(name).is_some());
    let mut deletions = vec![Deletion::Missing; ids.len()];
    if let Some(stream) = stream {
        for (id, deletion) in ids.iter().zip(&mut deletions) {
            if stream.group_mut(name).is_some_and(|group| group.acknowledge(*id)) {
                *deletion = stream.delete_with(*id, references);
                if *deletion == Deletion::Missing {
                    // An entry that was deleted before counts as deleted now, for other groups too.
                    if references == References::Delete {
                        stream.forget(*id);
                    }
                    *deletion = Deletion::Deleted;
                }
            }
        }
    }
    let acknowledged = deletions.iter().filter(|own| **own != Deletion::Missing).count();
    cx.add_dirty(acknowledged as u64);
    settle_deletions(cx, &key, &deletions);
    Ok(())
}

/// Journals and answers the deletions.
fn settle_deletions(cx: &mut Context<'_>, key: &Key<'_>, deletions: &[Deletion]) {
    let deleted = deletions.iter().filter(|own| **own == Deletion::Deleted).count();
    if deleted > 0 {
        cx.db.changed_times(key, event("xdel"), deleted as u64);
    }
    cx.reply.array(deletions.len());
    deletions.iter().for_each(|own| cx.reply.integer(shown(*own)));
}

/// The ids that are left as arguments.
pub(super) fn parse_ids(args: &mut Args<'_>) -> Result<StreamIds, CommandError> {
    args.rest().iter().map(parse_exact_id).collect()
}

/// Reads an id that stands for itself.
pub(super) fn parse_exact_id(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"-" | b"+" => Err(INVALID_ID),
        text => parse_id(text, 0),
    }
}

/// XLEN key
pub(super) fn xlen(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let length = cx.db.stream(&key)?.map_or(0, Stream::len);
    cx.reply.integer(length as i64);
    Ok(())
}

/// XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]
pub(super) fn xsetid(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let id = parse_exact_id(args.bytes()?)?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::MIN);
    while !args.is_empty() {
        if args.len() > 1 && args.word("entriesadded") {
            let added = u64::try_from(args.i64()?);
            entries_added =
                Some(added.map_err(|_| CommandError::text("ERR entries_added must be positive"))?);
        } else if args.len() > 1 && args.word("maxdeletedid") {
            max_deleted_id = parse_exact_id(args.bytes()?)?;
            if id < max_deleted_id {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let stream = cx.db.stream_mut(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    check_new_last_id(stream, id, entries_added)?;
    let max_deleted_id = Some(max_deleted_id).filter(|id| !id.is_min());
    stream.set_last_id(id, entries_added, max_deleted_id);
    // As with groups, clients that watch the key are not told.
    cx.db.notify(&key, event("xsetid"));
    cx.add_dirty(1);
    cx.reply.ok();
    Ok(())
}

/// Whether a stream may have this last id.
fn check_new_last_id(stream: &Stream, id: StreamId, entries_added: Option<u64>) -> CommandResult {
    if id < stream.numbers().max_deleted_id {
        return Err(CommandError::text(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
        ));
    }
    if stream.last_entry_id().is_some_and(|last| id < last) {
        return Err(CommandError::text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if entries_added.is_some_and(|added| added < stream.numbers().len) {
        return Err(CommandError::text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    Ok(())
}
