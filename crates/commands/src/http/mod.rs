//! What HTTP does with keys: commands without a name that a client could send.
//!
//! A request for a key becomes one of these commands. Each looks at the key, checks the request's
//! conditions against the key's version, and acts, all under the lock of the key's slot. Replies
//! are in RESP, as those of any command; `server` turns them into HTTP answers after the slot is
//! unlocked.

mod copies;
mod memory;
mod merge;
pub mod metadata;
mod metrics;
mod nodes;
mod overview;
pub mod rows;
mod views;

use base::limits;
use resp::args::Arguments;
use resp::reply::Reply;
use store::list::ListInput;
use store::pack::{End, INTEGER_TEXT_BYTES};
use store::{
    Entry, HashView, INLINE_MAX, Insertion, Key, List, Set, Stream, StreamId, StringValue,
    ValueRef, Zset,
};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ACCESS, ArgumentKind, BLOCKING, DELETE, DENYOOM, Docs, FAST, Flags, GOES_SHORT, Group,
    INTERNAL, KeySpec, LOADING, LOOKS, NEVER_QUEUED, NO_KEYS, OF_TREE, READONLY, READS_ALL, RO, RW,
    SKIP_MONITOR, SKIP_SLOWLOG, STALE, UPDATE, WRITE, argument, docs, key,
};
use engine::content_types::ContentTypes;
use engine::db::notify::{Class, Event};
use engine::engine::{Command, Context, Family, row};
use engine::handler::elements::ReplyElements;
use engine::journal::batch::ASIDE;
use engine::nodes::kept::PREFIX;
use metadata::{ABSENT, CREATED, FAILED, Metadata, REPLACED, UNCONDITIONAL};

const NOT_A_COLLECTION: CommandError = CommandError::text(
    "WRONGTYPE fields, range, limit and cursor are of collections, and this is a string",
);
const NO_CONTENT_TYPE: CommandError =
    CommandError::text("ERR the content type is too long, or has unusual characters");
const ONE_TOO_MANY: CommandError =
    CommandError::text("OOM the server keeps 255 different content types, and this is one more");
const NO_FIELDS: CommandError = CommandError::text("WRONGTYPE a list has no fields: use range");
const NO_STREAM_FIELDS: CommandError = CommandError::text(
    "WRONGTYPE the entries of a stream have fields, it has none: use limit and cursor",
);
const NO_RANGE: CommandError =
    CommandError::text("WRONGTYPE a range is of lists and sorted sets: use limit and cursor");
const NO_SUCH_CURSOR: CommandError =
    CommandError::text("WRONGTYPE the cursor is of another type of collection");
const NO_SCORE: CommandError = CommandError::text("UNFIT the scores of a sorted set are numbers");
const TOO_MUCH_AT_ONCE: CommandError =
    CommandError::text("ERR the values are too long for one answer: ask for fewer keys");
const TOO_LONG_TO_PATCH: CommandError =
    CommandError::text("WRONGTYPE the value of the key is too long to be patched");

/// The conditions of a request.
#[derive(Default)]
struct Conditions {
    /// If-Match: the key exists, and has one of these versions if any are named.
    exists: bool,
    matches: Vec<u64>,
    /// If-None-Match: `*`, or these versions.
    absent: bool,
    differs: Vec<u64>,
}

impl Conditions {
    /// The conditions that are the rest of the arguments.
    fn parse_all(args: &mut Args<'_>) -> Result<Conditions, CommandError> {
        let mut conditions = Conditions::default();
        while conditions.parse(args)? {}
        args.is_empty().then_some(conditions).ok_or(CommandError::SYNTAX)
    }

    /// Takes one of the options that all writes share. Returns whether there was one.
    fn parse(&mut self, args: &mut Args<'_>) -> Result<bool, CommandError> {
        if args.word("EXISTS") {
            self.exists = true;
        } else if args.word("MATCH") {
            self.exists = true;
            self.matches.push(version(args)?);
        } else if args.word("ABSENT") {
            self.absent = true;
        } else if args.word("DIFFERS") {
            self.differs.push(version(args)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether a key of this version meets them; `None` when the key does not exist.
    fn admit(&self, present: Option<u64>) -> bool {
        match present {
            None => !self.exists,
            Some(version) => {
                (self.matches.is_empty() || self.matches.contains(&version))
                    && !self.absent
                    && !self.differs.contains(&version)
            }
        }
    }

    fn are_none(&self) -> bool {
        !self.exists && !self.absent && self.differs.is_empty()
    }
}

fn version(args: &mut Args<'_>) -> Result<u64, CommandError> {
    Ok(args.i64()?.cast_unsigned())
}

/// Checks the conditions for a write of a key. Returns nothing when the write is refused; the reply
/// is written then.
fn admit(cx: &mut Context<'_>, key: &Key<'_>, conditions: &Conditions) -> Option<Option<u64>> {
    // A client that has seen fields whose time is over now has another version.
    cx.db.delete_expired_fields(key, 1);
    // Not found for a change: that would give the key another version although a snapshot must
    // still read it.
    let present = cx.db.peek(key).map(Entry::version);
    let refused = if !conditions.admit(present) {
        FAILED
    } else if present.is_some() && conditions.are_none() && cx.db.config.http_require_match {
        UNCONDITIONAL
    } else {
        return Some(present);
    };
    reply_outcome(cx, refused, present.unwrap_or(0));
    None
}

/// Answers the outcome of a write, and the version of the key.
fn reply_outcome(cx: &mut Context<'_>, outcome: i64, version: u64) {
    cx.reply.array(2);
    cx.reply.integer(outcome);
    cx.reply.integer(version.cast_signed());
}

/// The outcome of a write that was admitted, with the version that the key has now.
fn reply_written(cx: &mut Context<'_>, key: &Key<'_>, before: Option<u64>) {
    let version = cx.db.peek(key).map_or(0, Entry::version);
    reply_outcome(cx, if before.is_some() { REPLACED } else { CREATED }, version);
}

/// Sets the content type of a key, here and in the journal.
fn set_content_type_id(cx: &mut Context<'_>, key: &Key<'_>, content_type_id: u8) {
    cx.db.set_content_type_id(key, content_type_id);
    if cx.is_journaling() {
        let name = cx.engine.content_types.name(content_type_id).unwrap_or_default();
        let [command, info] = ASIDE;
        cx.propagate(&[command, info, b"CONTENTTYPE", key.bytes, &name]);
    }
}

/// The number of a content type; 0 for no particular one.
fn content_type_id_of(cx: &Context<'_>, name: &[u8]) -> Result<u8, CommandError> {
    if name.is_empty() {
        return Ok(0);
    }
    if !ContentTypes::is_name(name) {
        return Err(NO_CONTENT_TYPE);
    }
    cx.engine.content_types.content_type_id(name).ok_or(ONE_TOO_MANY)
}

/// CONTENTTYPE key [content-type]
fn content_type(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if args.is_empty() {
        let content_type_id = cx.db.find_untouched(&key).map_or(0, Entry::content_type_id);
        match cx.engine.content_types.name(content_type_id) {
            Some(name) => cx.reply.bulk(&name),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let name = args.bytes()?;
    args.end()?;
    let content_type_id = content_type_id_of(cx, name)?;
    let Some(entry) = cx.db.find_mut(&key) else {
        cx.reply.integer(0);
        return Ok(());
    };
    if entry.as_ref().value().as_string().is_none() {
        return Err(CommandError::WRONG_TYPE);
    }
    cx.db.changed(&key, Event(Class::STRING, "contenttype"));
    set_content_type_id(cx, &key, content_type_id);
    cx.reply.integer(1);
    Ok(())
}

/// Which part of a collection is asked for.
#[derive(Default)]
struct Part<'a> {
    fields: Option<Vec<&'a [u8]>>,
    range: Option<(i64, i64)>,
    limit: Option<usize>,
    cursor: u64,
    /// The cursor of a stream: the last answered entry.
    after: Option<StreamId>,
    /// Only the value is answered, without the cursor of the next page.
    alone: bool,
}

impl<'a> Part<'a> {
    /// All of it.
    const ALL: Part<'static> =
        Part { fields: None, range: None, limit: None, cursor: 0, after: None, alone: false };

    fn parse(args: &mut Args<'a>) -> Result<Part<'a>, CommandError> {
        let mut part = Part::default();
        while !args.is_empty() {
            if args.word("FIELDS") {
                let count = args.at_least(1, CommandError::OUT_OF_RANGE)?;
                let fields = (0..count.min(args.len())).map(|_| args.bytes());
                part.fields = Some(fields.collect::<Result<_, _>>()?);
            } else if args.word("RANGE") {
                part.range = Some((args.i64()?, args.i64()?));
            } else if args.word("LIMIT") {
                part.limit = Some(args.at_least(1, CommandError::OUT_OF_RANGE)?);
            } else if args.word("CURSOR") {
                part.take_cursor(args.bytes()?)?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(part)
    }

    /// Reads a number, or the two numbers of an entry of a stream with a dash between them.
    fn take_cursor(&mut self, text: &[u8]) -> CommandResult {
        let number =
            |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        match text.iter().position(|byte| *byte == b'-') {
            None => self.cursor = number(text).ok_or(CommandError::INVALID_CURSOR)?,
            Some(dash) => {
                let (ms, seq) = (number(&text[..dash]), number(&text[dash + 1..]));
                let id = ms.zip(seq).map(|(ms, seq)| StreamId::new(ms, seq));
                self.after = Some(id.ok_or(CommandError::INVALID_CURSOR)?);
            }
        }
        Ok(())
    }

    fn is_all(&self) -> bool {
        let from_the_start = self.cursor == 0 && self.after.is_none();
        self.fields.is_none() && self.range.is_none() && self.limit.is_none() && from_the_start
    }

    /// The fields that are asked for.
    fn fields(&self) -> &[&'a [u8]] {
        self.fields.as_deref().unwrap_or_default()
    }

    /// The ranks that are asked for in a collection of this length, and the cursor of the next
    /// ones.
    fn ranks(&self, length: usize) -> (usize, usize, Option<u64>) {
        let (from, to) = match self.range {
            None => (0, length),
            Some((start, stop)) => {
                let at = |index: i64| match usize::try_from(index) {
                    Ok(index) => index.min(length),
                    Err(_) => length.saturating_sub(index.unsigned_abs() as usize),
                };
                let end = if stop < 0 && stop.unsigned_abs() as usize > length {
                    0
                } else {
                    (at(stop) + 1).min(length)
                };
                (at(start), end)
            }
        };
        let from = from.saturating_add(self.cursor as usize).min(to.max(from));
        let end = self.limit.map_or(to, |limit| to.min(from.saturating_add(limit)));
        (from, end.max(from), (end < to).then(|| (self.cursor as usize + end - from) as u64))
    }
}

/// GET and HEAD of a key: the facts about it, the cursor of the next page, and its value. Nothing
/// when the key does not exist.
fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let parsed;
    let part = match args.is_empty() {
        true => &Part::ALL,
        false => {
            parsed = Part::parse(args)?;
            &parsed
        }
    };
    let entry = cx.db.find(&key);
    may_read(cx, entry, args.argv())?;
    note_expired_fields(cx, &key, entry);
    reply_entry(&mut cx.reply, &cx.engine.content_types, entry, part, cx.db.now)
}

/// Whether the client's user may read a value of this type: it needs the command that reads one.
#[inline]
fn may_read(cx: &Context<'_>, entry: Option<Entry<'_>>, argv: Arguments<'_>) -> CommandResult {
    let Some(entry) = entry.filter(|_| cx.session.user.is_restricted()) else { return Ok(()) };
    let name = match entry.value() {
        ValueRef::String(_) => "get",
        ValueRef::Hash(_) => "hgetall",
        ValueRef::List(_) => "lrange",
        ValueRef::Set(_) => "smembers",
        ValueRef::Zset(_) => "zrange",
        ValueRef::Stream(_) => "xrange",
    };
    cx.may_act_as(name, argv)
}

/// Has the fields of a hash removed whose time is over, when the command ends: see [`version_of`].
#[inline]
fn note_expired_fields(cx: &Context<'_>, key: &Key<'_>, entry: Option<Entry<'_>>) {
    if let Some(ValueRef::Hash(hash)) = entry.map(Entry::value) {
        cx.db.note_expired_fields(key, Some(HashView::new(hash, cx.db.now)));
    }
}

fn reply_entry(
    reply: &mut Reply<'_>,
    content_types: &ContentTypes,
    entry: Option<Entry<'_>>,
    part: &Part<'_>,
    now: u64,
) -> CommandResult {
    let Some(entry) = entry else {
        reply.null();
        return Ok(());
    };
    let content_type = match entry.content_type_id() {
        0 => None,
        content_type_id => content_types.name(content_type_id),
    };
    let metadata = Metadata {
        version: version_of(entry, now),
        expire_at: entry.expire_at(),
        type_name: entry.value().type_name(),
        content_type: content_type.as_deref(),
    };
    metadata.begin_reply(reply);
    if part.after.is_some() && entry.value().type_name() != "stream" {
        return Err(NO_SUCH_CURSOR);
    }
    reply_part(reply, entry, part, now)
}

/// Answers the cursor of the next page, and the value or the part of it that is asked for.
fn reply_part(reply: &mut Reply<'_>, entry: Entry<'_>, part: &Part<'_>, now: u64) -> CommandResult {
    match entry.value() {
        ValueRef::String(string) => {
            if !part.is_all() {
                return Err(NOT_A_COLLECTION);
            }
            reply_cursor(reply, part, None);
            reply.string(string);
        }
        ValueRef::List(list) => reply_list(reply, list, part)?,
        ValueRef::Set(set) => reply_set(reply, set, part)?,
        ValueRef::Hash(hash) => reply_hash(reply, HashView::new(hash, now), part)?,
        ValueRef::Zset(zset) => reply_zset(reply, zset, part),
        ValueRef::Stream(stream) => reply_stream(reply, stream, part)?,
    }
    Ok(())
}

/// Answers a version in hexadecimal digits, as its tag shows them.
fn reply_version(reply: &mut Reply<'_>, version: u64) {
    let mut digits = [0; 16];
    let length = (u64::BITS - version.leading_zeros()).div_ceil(4).max(1) as usize;
    for (place, digit) in digits[..length].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(version >> (4 * place) & 15) as usize];
    }
    reply.bulk(&digits[..length]);
}

fn reply_cursor(reply: &mut Reply<'_>, part: &Part<'_>, cursor: Option<u64>) {
    match cursor {
        _ if part.alone => {}
        Some(cursor) => reply.bulk_int(cursor.cast_signed()),
        None => reply.null(),
    }
}

fn reply_list(reply: &mut Reply<'_>, list: &List, part: &Part<'_>) -> CommandResult {
    if part.fields.is_some() {
        return Err(NO_FIELDS);
    }
    let (from, to, cursor) = part.ranks(list.len());
    reply_cursor(reply, part, cursor);
    reply.array(to - from);
    if from < to {
        list.range(from, to - from, End::Front).for_each(|item| reply.item(item));
    }
    Ok(())
}

fn reply_set(reply: &mut Reply<'_>, set: &Set, part: &Part<'_>) -> CommandResult {
    if part.range.is_some() {
        return Err(NO_RANGE);
    }
    if part.fields.is_some() {
        reply.null();
        reply.map(part.fields().len());
        for member in part.fields() {
            reply.bulk(member);
            reply.boolean(set.contains(member));
        }
        return Ok(());
    }
    if part.limit.is_none() && part.cursor == 0 {
        reply_cursor(reply, part, None);
        reply.array(set.len());
        set.iter().for_each(|member| reply.element(member));
        return Ok(());
    }
    reply_scanned(reply, part, |position, reply, count| {
        set.scan(position, |member| {
            reply.element(member);
            *count += 1;
        })
    });
    Ok(())
}

fn reply_hash(reply: &mut Reply<'_>, hash: HashView<'_>, part: &Part<'_>) -> CommandResult {
    if part.range.is_some() {
        return Err(NO_RANGE);
    }
    if part.fields.is_some() {
        reply.null();
        reply.map(part.fields().len());
        for field in part.fields() {
            reply.bulk(field);
            match hash.get(field) {
                Some(value) => reply.element(value),
                None => reply.null(),
            }
        }
        return Ok(());
    }
    if part.limit.is_none() && part.cursor == 0 {
        reply_cursor(reply, part, None);
        reply.map(hash.len());
        for (field, value, _) in hash.iter() {
            reply.element(field);
            reply.element(value);
        }
        return Ok(());
    }
    let mark = reply.mark();
    let (mut pairs, mut next) = (0, Some(part.cursor as u32));
    while let Some(position) = next.filter(|_| pairs < part.limit.unwrap_or(usize::MAX)) {
        next = hash.scan(position, |field, value| {
            reply.element(field);
            reply.element(value);
            pairs += 1;
        });
    }
    reply.close_map(mark, pairs);
    insert_cursor(reply, mark, next);
    Ok(())
}

/// Answers members from the cursor on, in steps, until there are as many as were asked for.
fn reply_scanned(
    reply: &mut Reply<'_>,
    part: &Part<'_>,
    mut step: impl FnMut(u32, &mut Reply<'_>, &mut usize) -> Option<u32>,
) {
    let mark = reply.mark();
    let (mut count, mut next) = (0, Some(part.cursor as u32));
    while let Some(position) = next.filter(|_| count < part.limit.unwrap_or(usize::MAX)) {
        next = step(position, reply, &mut count);
    }
    reply.close_array(mark, count);
    insert_cursor(reply, mark, next);
}

/// The cursor stands before the members, but is known only after them.
fn insert_cursor(reply: &mut Reply<'_>, mark: resp::output::Mark, next: Option<u32>) {
    match next {
        Some(next) => insert_bulk(reply, mark, &next.to_string()),
        None => reply.output().insert(mark, b"_\r\n"),
    }
}

fn reply_zset(reply: &mut Reply<'_>, zset: &Zset, part: &Part<'_>) {
    if part.fields.is_some() {
        reply.null();
        reply.map(part.fields().len());
        for member in part.fields() {
            reply.bulk(member);
            match zset.score(member) {
                Some(score) => reply.double(score),
                None => reply.null(),
            }
        }
        return;
    }
    let (from, to, cursor) = part.ranks(zset.len());
    reply_cursor(reply, part, cursor);
    reply.array(to - from);
    let mut text = [0; INTEGER_TEXT_BYTES];
    for (member, score) in zset.range(from..to) {
        reply.map(2);
        reply.bulk(b"member");
        reply.bulk(member.as_bytes(&mut text));
        reply.bulk(b"score");
        reply.double(score);
    }
}

/// The oldest entries come first. If more follow, the cursor is the last answered entry.
fn reply_stream(reply: &mut Reply<'_>, stream: &Stream, part: &Part<'_>) -> CommandResult {
    if part.fields.is_some() {
        return Err(NO_STREAM_FIELDS);
    }
    if part.range.is_some() {
        return Err(NO_RANGE);
    }
    if part.cursor != 0 {
        return Err(NO_SUCH_CURSOR);
    }
    let from = part.after.map_or(Some(StreamId::MIN), StreamId::next);
    let mut entries =
        from.into_iter().flat_map(|from| stream.range(from, StreamId::MAX)).peekable();
    let mark = reply.mark();
    let (mut count, mut last) = (0, StreamId::MIN);
    let limit = part.limit.unwrap_or(usize::MAX);
    while let Some(entry) = entries.next_if(|_| count < limit) {
        reply.map(2);
        reply.bulk(b"id");
        reply.bulk(text_of(entry.id).as_bytes());
        reply.bulk(b"fields");
        reply.map(entry.fields.len());
        for (name, value) in entry.fields.clone() {
            reply.element(name);
            reply.element(value);
        }
        (count, last) = (count + 1, entry.id);
    }
    reply.close_array(mark, count);
    match entries.peek() {
        Some(_) => insert_bulk(reply, mark, &text_of(last)),
        None if part.alone => {}
        None => reply.output().insert(mark, b"_\r\n"),
    }
    Ok(())
}

fn text_of(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn insert_bulk(reply: &mut Reply<'_>, mark: resp::output::Mark, text: &str) {
    reply.output().insert(mark, format!("${}\r\n{text}\r\n", text.len()).as_bytes());
}

/// GET of many keys: for each a map of what clients see of it, or nothing.
fn mget(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (now, mark) = (cx.db.now, cx.reply.mark());
    cx.reply.array(args.len());
    while !args.is_empty() {
        let key = args.key()?;
        match cx.db.find(&key) {
            None => cx.reply.null(),
            Some(entry) => {
                may_read(cx, Some(entry), args.argv())?;
                begin_entry(&mut cx.reply, &cx.engine.content_types, entry, now);
                reply_part(&mut cx.reply, entry, &Part { alone: true, ..Part::ALL }, now)?;
            }
        }
        if cx.reply.output().since(mark).len() > limits::HTTP_MGET_REPLY {
            return Err(TOO_MUCH_AT_ONCE);
        }
        cx.reply.output().lose_what_exceeds(0);
    }
    Ok(())
}

/// Begins the map of a key, up to the value.
fn begin_entry(reply: &mut Reply<'_>, content_types: &ContentTypes, entry: Entry<'_>, now: u64) {
    reply.map(5);
    reply.bulk(b"etag");
    match version_of(entry, now) {
        0 => reply.null(),
        version => reply.bulk(format!("\"{version:x}\"").as_bytes()),
    }
    reply.bulk(b"ttl");
    match entry.expire_at().map(|at| at.saturating_sub(now)) {
        Some(left) => reply.double_text(format!("{}.{:03}", left / 1000, left % 1000).as_bytes()),
        None => reply.null(),
    }
    reply.bulk(b"type");
    reply.bulk(entry.value().type_name().as_bytes());
    reply.bulk(b"content_type");
    match content_types.name(entry.content_type_id()) {
        Some(name) => reply.bulk(&name),
        None => reply.null(),
    }
    reply.bulk(b"value");
}

/// The version of a key, or 0 if fields of it have expired that are still stored: what clients see
/// is another value than before that, and it gets its next version when they are removed.
fn version_of(entry: Entry<'_>, now: u64) -> u64 {
    match entry.value() {
        ValueRef::Hash(hash) if HashView::new(hash, now).hides_some() => 0,
        _ => entry.version(),
    }
}

/// PUT of a key: `[TTL milliseconds] [TYPE content-type]` and conditions.
fn put(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let (bytes, buffer) = args.big()?;
    let mut conditions = Conditions::default();
    let (mut expire_at, mut kind) = (None, 0);
    while !args.is_empty() {
        if conditions.parse(args)? {
            continue;
        }
        if args.word("TTL") {
            let ttl = args.at_least(1, CommandError::OUT_OF_RANGE)? as u64;
            expire_at = Some(cx.db.now.saturating_add(ttl).min(i64::MAX as u64));
        } else if args.word("TYPE") {
            kind = content_type_id_of(cx, args.bytes()?)?;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let Some(before) = admit(cx, &key, &conditions) else { return Ok(()) };
    let value = match buffer {
        Some(buffer) if bytes.len() > INLINE_MAX => StringValue::Shared(buffer),
        _ => StringValue::from_bytes(bytes),
    };
    cx.db.set_string(&key, value, expire_at, Event(Class::STRING, "set"));
    if expire_at.is_some() {
        cx.db.notify(&key, Event(Class::GENERIC, "expire"));
    }
    journal_set(cx, &key, bytes, expire_at);
    if kind != 0 {
        set_content_type_id(cx, &key, kind);
    }
    reply_written(cx, &key, before);
    Ok(())
}

fn journal_set(cx: &mut Context<'_>, key: &Key<'_>, bytes: &[u8], expire_at: Option<u64>) {
    cx.propagate_nothing();
    if !cx.is_journaling() {
        return;
    }
    match expire_at {
        Some(at) => {
            cx.propagate(&[b"SET", key.bytes, bytes, b"PXAT", at.to_string().as_bytes()]);
        }
        None => cx.propagate(&[b"SET", key.bytes, bytes]),
    }
}

/// PATCH of a key: a JSON merge patch, and conditions. The expiry and the content type stay.
fn patch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, patch) = (args.key()?, args.bytes()?);
    let conditions = Conditions::parse_all(args)?;
    let Some(before) = admit(cx, &key, &conditions) else { return Ok(()) };
    if before.is_none() {
        reply_outcome(cx, ABSENT, 0);
        return Ok(());
    }
    let expire_at = cx.db.expire_at(&key);
    let kind = cx.db.peek(&key).map_or(0, Entry::content_type_id);
    let merged = match cx.db.string(&key)? {
        Some(string) if string.len() > limits::HTTP_PATCHED => return Err(TOO_LONG_TO_PATCH),
        Some(string) => merge::merged(&string.bytes(), patch)?,
        None => return Err(CommandError::NO_SUCH_KEY),
    };
    if merged.len() as u64 > cx.db.config.proto_max_bulk_len {
        return Err(CommandError::STRING_TOO_LONG);
    }
    let event = Event(Class::STRING, "set");
    cx.db.set_string(&key, StringValue::from_bytes(&merged), expire_at, event);
    journal_set(cx, &key, &merged, expire_at);
    if kind != 0 {
        set_content_type_id(cx, &key, kind);
    }
    reply_written(cx, &key, before);
    Ok(())
}

/// DELETE of a key, and conditions.
fn delete(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let conditions = Conditions::parse_all(args)?;
    let Some(before) = admit(cx, &key, &conditions) else { return Ok(()) };
    if before.is_none() {
        reply_outcome(cx, ABSENT, 0);
        return Ok(());
    }
    cx.db.remove(&key);
    cx.db.changed(&key, Event(Class::GENERIC, "del"));
    let lazily = cx.db.config.lazyfree_lazy_user_del;
    cx.propagate(&[if lazily { b"UNLINK" } else { b"DEL" }, key.bytes]);
    reply_outcome(cx, REPLACED, 0);
    Ok(())
}

/// The condition of a transaction. It is checked now. If it does not stay true until EXEC, EXEC
/// fails.
fn watch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let conditions = Conditions::parse_all(args)?;
    let now = cx.db.now;
    let present = cx.db.find_untouched(&key).map(|entry| version_of(entry, now));
    let admitted = conditions.admit(present);
    if admitted {
        cx.watch(&key);
    }
    reply_outcome(cx, if admitted { REPLACED } else { FAILED }, present.unwrap_or(0));
    Ok(())
}

/// POST to a key: `LIST`, `FRONT`, `SET`, `HASH` or `ZSET`, or `ITEMS` or `PAIRS` where the type is
/// that of the key, or a list or a hash; conditions; `VALUES` and the values.
fn push(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, form) = (args.key()?, args.bytes()?);
    let mut conditions = Conditions::default();
    while conditions.parse(args)? {}
    if !args.word("VALUES") {
        return Err(CommandError::SYNTAX);
    }
    let Some(before) = admit(cx, &key, &conditions) else { return Ok(()) };
    let type_name = cx.db.peek(&key).map(|entry| entry.value().type_name());
    let target = match (form, type_name) {
        (b"ITEMS", None | Some("list")) => "LIST",
        (b"ITEMS", Some("set")) => "SET",
        (b"PAIRS", None | Some("hash")) => "HASH",
        (b"PAIRS", Some("zset")) => "ZSET",
        (b"LIST", _) => "LIST",
        (b"FRONT", _) => "FRONT",
        (b"SET", _) => "SET",
        (b"HASH", _) => "HASH",
        (b"ZSET", _) => "ZSET",
        _ => return Err(CommandError::WRONG_TYPE),
    };
    let name = match target {
        "LIST" => "rpush",
        "FRONT" => "lpush",
        "SET" => "sadd",
        "HASH" => "hset",
        _ => "zadd",
    };
    cx.may_act_as(name, args.argv())?;
    let values: Vec<&[u8]> = args.rest().iter().collect();
    let (command, changes): (&[u8], u64) = match target {
        "LIST" | "FRONT" => push_to_list(cx, &key, target == "FRONT", &values)?,
        "SET" => add_to_set(cx, &key, &values)?,
        "HASH" => set_fields(cx, &key, &values)?,
        _ => set_scores(cx, &key, &values)?,
    };
    if changes > 0 && cx.is_journaling() {
        let mut effect = vec![command, key.bytes];
        match target {
            "ZSET" => effect.extend(values.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]])),
            _ => effect.extend(&values),
        }
        cx.propagate(&effect);
    }
    cx.propagate_nothing();
    reply_written(cx, &key, before);
    Ok(())
}

fn push_to_list(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    front: bool,
    values: &[&[u8]],
) -> Result<(&'static [u8], u64), CommandError> {
    let limits = cx.db.list_limits();
    let (end, event) = if front { (End::Front, "lpush") } else { (End::Back, "rpush") };
    cx.db.add_to_list(key, Event(Class::LIST, event), |list| {
        values.iter().for_each(|value| list.push(end, ListInput::Bytes(value), &limits));
        values.len() as u64
    })?;
    Ok((if front { b"LPUSH" } else { b"RPUSH" }, values.len() as u64))
}

fn add_to_set(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    values: &[&[u8]],
) -> Result<(&'static [u8], u64), CommandError> {
    let limits = cx.db.set_limits();
    let mut changes = 0;
    cx.db.add_to_set(key, Event(Class::SET, "sadd"), |set| {
        changes = values.iter().filter(|value| set.add(value, limits)).count() as u64;
        changes
    })?;
    Ok((b"SADD", changes))
}

fn set_fields(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    values: &[&[u8]],
) -> Result<(&'static [u8], u64), CommandError> {
    let limits = cx.db.hash_limits();
    cx.db.add_to_hash(key, Event(Class::HASH, "hset"), |hash| {
        let pairs = values.chunks_exact(2);
        pairs.for_each(|pair| _ = hash.set(pair[0], pair[1], limits));
        values.len() as u64 / 2
    })?;
    // As HSET does: a field that is set again has changed.
    Ok((b"HSET", values.len() as u64 / 2))
}

fn set_scores(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    values: &[&[u8]],
) -> Result<(&'static [u8], u64), CommandError> {
    let score = |text: &[u8]| {
        let number = base::num::parse_f64(text).filter(|number| !number.is_nan());
        number.ok_or(NO_SCORE)
    };
    let pairs = values.chunks_exact(2).map(|pair| Ok((pair[0], score(pair[1])?)));
    let pairs = pairs.collect::<Result<Vec<_>, CommandError>>()?;
    let limits = cx.db.zset_limits();
    let mut changes = 0;
    cx.db.add_to_zset(key, Event(Class::ZSET, "zadd"), |zset| {
        let inserted = pairs.iter().map(|(member, score)| zset.insert(member, *score, limits));
        changes = inserted.filter(|insertion| *insertion != Insertion::Same).count() as u64;
        changes
    })?;
    Ok((b"ZADD", changes))
}

const READS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];
/// What a GET may be: the type of the value decides.
const READING: &[&str] = &["get", "hgetall", "lrange", "smembers", "zrange", "xrange"];
/// What a POST may be: the type of the value decides.
const PUSHING: &[&str] = &["rpush", "lpush", "sadd", "hset", "zadd"];
/// What may be followed by a wait for copies of it: it tells nothing and changes nothing.
const AWAITING: &[&str] = &["set", "del", "rpush", "lpush", "sadd", "hset", "zadd", "waitaof"];
/// What the dashboard asks again and again, for microseconds or a few milliseconds: in logs it
/// would take the place of what they are read for.
const UNSEEN: Flags = SKIP_SLOWLOG | SKIP_MONITOR;
const CHANGES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE, 1)];

/// The command of this family that clients know.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

/// The internal commands of this family, which only [`rows::HttpRows`] has.
pub(crate) const INTERNALS: Family = Family::new(INTERNAL_COMMANDS, INTERNAL_DOCS);

const COMMANDS: &[Command] =
    &Group::String.rows([row("contenttype", content_type, -2, WRITE | FAST, CHANGES)]);

const INTERNAL_COMMANDS: &[Command] = &Group::Generic.under("http").rows([
    row("get", get, -2, READONLY | FAST | INTERNAL | GOES_SHORT, READS).stands_for(READING),
    row("mget", mget, -2, READONLY | FAST | INTERNAL, READS_ALL).stands_for(READING),
    row("put", put, -3, WRITE | DENYOOM | INTERNAL, CHANGES).stands_for(&["set"]),
    row("patch", patch, -3, WRITE | DENYOOM | INTERNAL, CHANGES).stands_for(&["set"]),
    row("push", push, -5, WRITE | DENYOOM | INTERNAL, CHANGES).stands_for(PUSHING),
    row("delete", delete, -2, WRITE | INTERNAL, CHANGES).stands_for(&["del"]),
    row("watch", watch, -2, READONLY | FAST | NEVER_QUEUED | INTERNAL, LOOKS)
        .stands_for(&["watch"]),
    row("memory", memory::memory, -1, READONLY | INTERNAL | UNSEEN, NO_KEYS)
        .stands_for(&["memory|usage"])
        .below(b"", RO | ACCESS),
    row("overview", overview::overview, 2, LOADING | STALE | INTERNAL | UNSEEN, NO_KEYS)
        .stands_for(&["info"]),
    row("hotkeys", overview::hot_keys, 2, LOADING | STALE | INTERNAL, NO_KEYS)
        .stands_for(&["info"])
        .below(b"", RO | ACCESS)
        .databases(overview::of_all_databases),
    row("view", views::view, -4, READONLY | INTERNAL, READS).stands_for(&["get"]),
    row("viewchange", views::change, 3, WRITE | INTERNAL, NO_KEYS)
        .stands_for(&["set"])
        .below(b"", RW | ACCESS | UPDATE),
    row("viewforget", views::forget, 2, WRITE | INTERNAL, NO_KEYS)
        .stands_for(&["del"])
        .below(b"", RW | DELETE),
    row("nodeget", nodes::request, -4, READONLY | INTERNAL | OF_TREE, READS)
        .stands_for(&["hget"])
        .below(PREFIX, RO | ACCESS),
    row("nodelist", nodes::list, -4, READONLY | INTERNAL | OF_TREE, READS)
        .stands_for(&["hgetall"])
        .below(PREFIX, RO | ACCESS),
    row("nodeput", nodes::request, -4, WRITE | DENYOOM | INTERNAL | OF_TREE, CHANGES)
        .stands_for(&["hset"])
        .below(PREFIX, RW | ACCESS | UPDATE),
    row("nodedelete", nodes::request, -4, WRITE | INTERNAL | OF_TREE, CHANGES)
        .stands_for(&["hdel"])
        .below(PREFIX, RW | ACCESS | UPDATE),
    row("nodewait", nodes::wait, 6, READONLY | BLOCKING | INTERNAL | OF_TREE, READS)
        .stands_for(&["hget"])
        .below(PREFIX, RO | ACCESS),
    row("awaitcopies", copies::await_copies, 5, BLOCKING | INTERNAL, NO_KEYS).stands_for(AWAITING),
    row("metrics", metrics::metrics, -1, LOADING | STALE | INTERNAL, NO_KEYS).stands_for(&["info"]),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs(
    "contenttype",
    "7.0.0",
    "Answers or sets the content type with which HTTP serves a string.",
)
.cost("O(1)")
.arguments(&[key("key", 0), argument("content-type", ArgumentKind::String).optional()])];

/// The cost of all of them.
const PER_ELEMENT: &str = "O(N) for N elements that are answered or stored.";

const INTERNAL_DOCS: &[Docs] = &[
    docs("http|get", "7.0.0", "Answers a key.").cost(PER_ELEMENT),
    docs("http|mget", "7.0.0", "Answers many keys.").cost(PER_ELEMENT),
    docs("http|put", "7.0.0", "Stores a string.").cost(PER_ELEMENT),
    docs("http|patch", "7.0.0", "Changes JSON.").cost(PER_ELEMENT),
    docs("http|push", "7.0.0", "Adds elements.").cost(PER_ELEMENT),
    docs("http|delete", "7.0.0", "Deletes a key.").cost(PER_ELEMENT),
    docs("http|watch", "7.0.0", "Decides about a transaction.").cost(PER_ELEMENT),
    docs("http|memory", "7.0.0", "Estimates what takes memory.").cost(PER_ELEMENT),
    docs("http|overview", "7.0.0", "Answers how the server does.").cost(PER_ELEMENT),
    docs("http|hotkeys", "7.0.0", "Answers hot keys.").cost(PER_ELEMENT),
    docs("http|view", "7.0.0", "Answers a result of a database.").cost(PER_ELEMENT),
    docs("http|viewchange", "7.0.0", "Changes rows of a database.").cost(PER_ELEMENT),
    docs("http|viewforget", "7.0.0", "Forgets results of databases.").cost(PER_ELEMENT),
    docs("http|nodeget", "7.0.0", "Answers a node.").cost(PER_ELEMENT),
    docs("http|nodelist", "7.0.0", "Answers a node and much below.").cost(PER_ELEMENT),
    docs("http|nodeput", "7.0.0", "Writes a node.").cost(PER_ELEMENT),
    docs("http|nodedelete", "7.0.0", "Deletes a node.").cost(PER_ELEMENT),
    docs("http|nodewait", "7.0.0", "Answers an event of a node.").cost(PER_ELEMENT),
    docs("http|awaitcopies", "7.0.0", "Waits for copies of writes.").cost("O(1)"),
    docs("http|metrics", "7.0.0", "Answers figures.").cost(PER_ELEMENT),
];
