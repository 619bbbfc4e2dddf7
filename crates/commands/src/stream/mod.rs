//! Streams. `change` adds, deletes and trims entries, `range` reads ranges, `read` has XREAD and
//! XREADGROUP, `group` and `pending` manage groups and their pending entries, `claim` takes pending
//! entries over, and `info` has XINFO.
//!
//! Most of these commands enter the journal in another form: with the id that was chosen, with the
//! exact result of an approximate trim, or as the state of the group after the command.

mod change;
mod claim;
mod group;
mod info;
mod pending;
mod range;
mod read;
mod rows;

use base::num;
use resp::reply::Reply;
use store::stream::{Group, Stream, StreamEntry, StreamLimits};
use store::{Key, StreamId};

use engine::command::error::CommandError;
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

pub(crate) use rows::FAMILY;

const INVALID_ID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

/// Longer ids are refused unread.
const LONGEST_ID: usize = 127;

/// The text of the largest id has this many bytes: twice the digits of a number, and the dash.
const LONGEST_TEXT: usize = 41;

/// An id as text, with the memory for it.
struct IdText {
    /// The text is at the end.
    bytes: [u8; LONGEST_TEXT],
    at: usize,
}

impl IdText {
    /// Puts a number before the text.
    #[inline]
    fn put_before(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        let end = self.at;
        self.at -= digits.len();
        self.bytes[self.at..end].copy_from_slice(digits);
    }
}

impl std::ops::Deref for IdText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.at..]
    }
}

fn event(name: &'static str) -> Event {
    Event(Class::STREAM, name)
}

/// An id in decimal.
#[inline]
fn text_of(id: StreamId) -> IdText {
    let mut text = IdText { bytes: [b'-'; LONGEST_TEXT], at: LONGEST_TEXT };
    text.put_before(id.seq);
    // A dash is there already.
    text.at -= 1;
    text.put_before(id.ms);
    text
}

/// Reads a part of an id as C's `strtoull` does: a negative number counts from the end.
fn id_part(text: &[u8]) -> Option<u64> {
    if let Some(value) = num::parse_i64(text) {
        return u64::try_from(value).ok();
    }
    match text.trim_ascii_start() {
        [b'-', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => {
            num::parse_u64_lenient(digits).map(u64::wrapping_neg)
        }
        _ => num::parse_u64_lenient(text),
    }
}

/// Reads the form that ids nearly always have: digits, a dash, and digits.
fn plain_id(text: &[u8]) -> Option<StreamId> {
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let (ms, behind) = plain_digits(text)?;
    match plain_digits(behind.strip_prefix(b"-")?)? {
        (seq, []) => Some(StreamId::new(ms, seq)),
        _ => None,
    }
}

/// The number at the beginning of a text, if it has digits, but not as many as might need more than
/// 64 bits; and the text after it.
fn plain_digits(text: &[u8]) -> Option<(u64, &[u8])> {
    const FEW: usize = 18;
    let (mut value, mut count) = (0u64, 0);
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // More digits than a few may wrap around; they are refused.
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        count += 1;
    }
    (1..=FEW).contains(&count).then(|| (value, &text[count..]))
}

/// Reads an id: `milliseconds[-number]`, where the number may be missing.
fn parse_id(text: &[u8], missing: u64) -> Result<StreamId, CommandError> {
    if let Some(id) = plain_id(text) {
        return Ok(id);
    }
    if text.len() > LONGEST_ID {
        return Err(INVALID_ID);
    }
    // C's strings end at a zero.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (ms, seq) = match text.iter().position(|byte| *byte == b'-') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let ms = id_part(ms).ok_or(INVALID_ID)?;
    let seq = seq.map_or(Some(missing), id_part).ok_or(INVALID_ID)?;
    Ok(StreamId::new(ms, seq))
}

/// Reads an id, or `-` or `+` for the smallest and the largest one.
fn parse_id_or_end(text: &[u8], missing: u64) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse_id(text, missing),
    }
}

/// Reads the first id of a range: `(` excludes the id after it.
fn parse_start(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', _, ..] => {
            let id = parse_id(&text[1..], 0)?;
            id.next().ok_or(CommandError::text("ERR invalid start ID for the interval"))
        }
        _ => parse_id_or_end(text, 0),
    }
}

/// Reads the last id of a range: `(` excludes the id after it.
fn parse_end(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', _, ..] => {
            let id = parse_id(&text[1..], u64::MAX)?;
            id.previous().ok_or(CommandError::text("ERR invalid end ID for the interval"))
        }
        _ => parse_id_or_end(text, u64::MAX),
    }
}

/// The error of a command that needs a group.
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    no_group_in(key, group, "'")
}

/// The same with other words behind the name of the group.
fn no_group_in(key: &[u8], group: &[u8], after: &str) -> CommandError {
    let texts = ["NOGROUP No such key '", "' or consumer group '", after];
    CommandError::quoting_two(texts, [key, group])
}

/// Streams, their ids and their entries as replies.
trait ReplyStreams {
    fn stream_id(&mut self, id: StreamId);
    fn stream_entry(&mut self, entry: &StreamEntry<'_>);
    /// The two parts of an entry, where more follow.
    fn stream_entry_parts(&mut self, entry: &StreamEntry<'_>);
    /// A fixed text, such as the name of a field of a reply.
    fn label(&mut self, text: &str);
}

impl ReplyStreams for Reply<'_> {
    #[inline]
    fn stream_id(&mut self, id: StreamId) {
        self.bulk(&text_of(id));
    }

    #[inline]
    fn stream_entry(&mut self, entry: &StreamEntry<'_>) {
        self.array(2);
        self.stream_entry_parts(entry);
    }

    #[inline]
    fn stream_entry_parts(&mut self, entry: &StreamEntry<'_>) {
        self.stream_id(entry.id);
        self.array(2 * entry.fields.len());
        for (name, value) in entry.fields.clone() {
            self.element(name);
            self.element(value);
        }
    }

    fn label(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }
}

/// What commands of streams do in their context.
trait StreamContext {
    /// The largest blocks.
    fn stream_limits(&self) -> StreamLimits;

    /// The time of the command, for streams. Time stands still while a file is replayed, but the
    /// consumers in the file count as active just now.
    fn stream_now(&self) -> i64;

    /// Adds a consumer to a group, unless it exists, and notes its activity. Returns its number.
    fn meet_consumer(
        &mut self,
        key: &Key<'_>,
        group: &[u8],
        consumer: &[u8],
    ) -> Result<u32, CommandError>;

    /// A group, for a change.
    fn group_mut(&mut self, key: &Key<'_>, group: &[u8]) -> Result<&mut Group, CommandError>;

    /// The journal records the position that a group has reached.
    fn propagate_group_position(&mut self, key: &Key<'_>, group: &[u8], stream: GroupPosition);
}

impl StreamContext for Context<'_> {
    fn stream_limits(&self) -> StreamLimits {
        let config = self.db.config;
        StreamLimits::new(config.stream_node_max_bytes, config.stream_node_max_entries)
    }

    fn stream_now(&self) -> i64 {
        let now = if self.session.replays { base::clock::now_ms() } else { self.db.now };
        now.cast_signed()
    }

    fn meet_consumer(
        &mut self,
        key: &Key<'_>,
        group: &[u8],
        consumer: &[u8],
    ) -> Result<u32, CommandError> {
        let now = self.stream_now();
        let own = self.db.stream_mut(key)?.and_then(|stream| stream.group_mut(group));
        let own = own.ok_or_else(|| no_group(key.bytes, group))?;
        let (number, is_new) = own.add_consumer(consumer, now);
        if let Some(consumer) = own.consumer_mut(number) {
            consumer.seen_ms = now;
        }
        if is_new {
            self.db.notify(key, event("xgroup-createconsumer"));
            self.add_dirty(1);
            self.propagate(&[b"XGROUP", b"CREATECONSUMER", key.bytes, group, consumer]);
        }
        Ok(number)
    }

    fn group_mut(&mut self, key: &Key<'_>, group: &[u8]) -> Result<&mut Group, CommandError> {
        let own = self.db.stream_mut(key)?.and_then(|stream| stream.group_mut(group));
        own.ok_or_else(|| no_group(key.bytes, group))
    }

    fn propagate_group_position(&mut self, key: &Key<'_>, group: &[u8], stream: GroupPosition) {
        if !self.is_journaling() {
            return self.propagate_nothing();
        }
        let read = stream.entries_read.map_or_else(|| "-1".to_owned(), |read| read.to_string());
        let id = text_of(stream.last_id);
        let read = read.as_bytes();
        self.propagate(&[b"XGROUP", b"SETID", key.bytes, group, &id, b"ENTRIESREAD", read]);
    }
}

/// How far a group has read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GroupPosition {
    last_id: StreamId,
    entries_read: Option<u64>,
}

impl GroupPosition {
    fn of(group: &Group) -> GroupPosition {
        GroupPosition { last_id: group.last_id, entries_read: group.entries_read }
    }
}

/// The group of a stream.
fn group_of<'s>(
    stream: Option<&'s Stream>,
    key: &Key<'_>,
    group: &[u8],
) -> Result<(&'s Stream, &'s Group), CommandError> {
    let found = stream.and_then(|stream| Some((stream, stream.group(group)?)));
    found.ok_or_else(|| no_group(key.bytes, group))
}
