//! What takes memory, by type and by prefix, and the largest keys: from a random sample, or from a
//! walk over all keys.
//!
//! Each key of the sample is looked at under the lock of its slot alone, one slot at a time. The
//! whole search ends after [`PATIENCE_NS`], with what was seen until then. The keys are drawn one
//! by one, so an early end makes the sample smaller but not uneven. A database of no more keys than
//! the sample is shown as a whole, if time allows.
//!
//! A walk has many steps, each a request that says where the last one has ended. A step looks at as
//! many keys as a sample, and tells in full what it has seen, so that its client can add it up.

use std::collections::HashMap;

use base::clock::Ticks;
use base::limits::SLOTS;
use resp::reply::Reply;
use store::{Entry, SlotTable, ValueRef};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::scan;
use engine::handler::walk::{Cursor, Walk, walk};
use engine::reclaim::eviction::entry_memory;

/// Keys that are looked at unless the request gives another number.
const SAMPLES: usize = 1000;
/// No further key is looked at after this many nanoseconds: clients of the same worker wait
/// meanwhile.
const PATIENCE_NS: u64 = 3_000_000;
/// Keys that a step of a walk looks at between two looks at the time.
const STRIDE: usize = 100;
/// The size of a large collection is estimated from this many members.
const MEMBERS: usize = 5;
/// The largest keys, and prefixes, that are shown.
const TOLD: usize = 50;
/// A prefix has at most this many bytes: the rest of a long key says nothing about its kind.
const LONGEST_PREFIX: usize = 128;
/// Bounds of the classes of sizes, in bytes.
const SIZES: [usize; 9] = [64, 256, 1024, 4096, 16_384, 65_536, 1_048_576, 16_777_216, usize::MAX];

/// The parameters of a request.
struct Question<'a> {
    samples: usize,
    /// The separator that ends a part of a key.
    separator: &'a [u8],
    /// How many parts make a prefix.
    depth: usize,
}

/// Keys of one kind.
#[derive(Clone, Copy, Default)]
struct Sum {
    keys: usize,
    bytes: usize,
}

impl Sum {
    fn add(&mut self, bytes: usize) {
        self.keys += 1;
        self.bytes += bytes;
    }
}

struct Large {
    bytes: usize,
    key: Box<[u8]>,
    type_name: &'static str,
    elements: usize,
    expire_at: Option<u64>,
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    all: Sum,
    types: HashMap<&'static str, Sum>,
    prefixes: HashMap<Box<[u8]>, Sum>,
    sizes: [Sum; SIZES.len()],
    largest: Vec<Large>,
}

impl Seen {
    fn add(&mut self, entry: Entry<'_>, overhead: usize, question: &Question<'_>) {
        let bytes = entry_memory(entry, MEMBERS) + overhead;
        self.all.add(bytes);
        self.types.entry(entry.value().type_name()).or_default().add(bytes);
        let prefix = prefix_of(entry.key(), question);
        match self.prefixes.get_mut(prefix) {
            Some(sum) => sum.add(bytes),
            None => self.prefixes.entry(prefix.into()).or_default().add(bytes),
        }
        let class = SIZES.iter().position(|bound| bytes <= *bound).unwrap_or(SIZES.len() - 1);
        self.sizes[class].add(bytes);
        self.note_large(entry, bytes);
    }

    fn note_large(&mut self, entry: Entry<'_>, bytes: usize) {
        let is_full = self.largest.len() >= TOLD;
        if is_full && self.largest.last().is_some_and(|least| least.bytes >= bytes) {
            return;
        }
        // A key may be drawn twice.
        if self.largest.iter().any(|large| *large.key == *entry.key()) {
            return;
        }
        let place = self.largest.partition_point(|large| large.bytes >= bytes);
        let large = Large {
            bytes,
            key: entry.key().into(),
            type_name: entry.value().type_name(),
            elements: elements(entry.value()),
            expire_at: entry.expire_at(),
        };
        self.largest.insert(place, large);
        self.largest.truncate(TOLD);
    }
}

/// How many elements a value has; bytes of a string.
fn elements(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(string) => string.len(),
        ValueRef::List(list) => list.len(),
        ValueRef::Set(set) => set.len(),
        ValueRef::Hash(hash) => hash.len(),
        ValueRef::Zset(zset) => zset.len(),
        ValueRef::Stream(stream) => stream.len(),
    }
}

/// The first parts of a key with their separators; nothing when the key has no such part.
fn prefix_of<'k>(key: &'k [u8], question: &Question<'_>) -> &'k [u8] {
    let part = &key[..key.len().min(LONGEST_PREFIX)];
    let ends = memchr::memmem::find_iter(part, question.separator);
    let end = ends.take(question.depth).last();
    end.map_or(b"", |end| &part[..end + question.separator.len()])
}

/// `[WALK cursor] [SAMPLES count] [SEPARATOR text] [DEPTH parts]`
pub(super) fn memory(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut question = Question { samples: SAMPLES, separator: b":", depth: 1 };
    let mut from = None;
    while !args.is_empty() {
        if args.word("WALK") {
            from = Some(Cursor::from_number(scan::cursor(args)?));
        } else if args.word("SAMPLES") {
            question.samples = args.at_least(1, CommandError::OUT_OF_RANGE)?;
        } else if args.word("SEPARATOR") {
            question.separator = args.bytes()?;
        } else if args.word("DEPTH") {
            question.depth = args.at_least(1, CommandError::OUT_OF_RANGE)?;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    if question.separator.is_empty() {
        return Err(CommandError::text("ERR a separator is not empty"));
    }
    let total = cx.db.locked.space().len(cx.db.index);
    let mut seen = Seen::default();
    if let Some(from) = from {
        let next = see_next(cx, from, &question, &mut seen)?;
        let (now, part) = (cx.db.now, Part::Step { of: total, next });
        reply_seen(&mut cx.reply, &seen, part, now);
        return Ok(());
    }
    let whole = total <= question.samples;
    let whole = if whole { see_all(cx, &question, &mut seen) } else { false };
    if !whole {
        seen = Seen::default();
        see_some(cx, &question, &mut seen);
    }
    // A slot that another thread has locked is skipped.
    cx.db.locked.forgive_missed();
    let now = cx.db.now;
    let total = if whole { seen.all.keys } else { total };
    reply_seen(&mut cx.reply, &seen, Part::Sample { of: total, whole }, now);
    Ok(())
}

/// What part of the keys was looked at.
#[derive(Clone, Copy)]
enum Part {
    /// Some of all keys, or the whole.
    Sample { of: usize, whole: bool },
    /// A step of a walk over all keys, and where the next one begins.
    Step { of: usize, next: Option<Cursor> },
}

/// Looks at the next keys of a walk. Returns where to go on, or nothing at the end.
fn see_next(
    cx: &Context<'_>,
    from: Cursor,
    question: &Question<'_>,
    seen: &mut Seen,
) -> Result<Option<Cursor>, CommandError> {
    let (db, begun) = (&cx.db, Ticks::now());
    let mut cursor = from;
    while seen.all.keys < question.samples {
        let wanted = STRIDE.min(question.samples - seen.all.keys);
        let end = walk(db, cx.slot_access, cursor, wanted, |table, entry, is_live| {
            if is_live {
                seen.add(entry, overhead(table), question);
            }
        });
        cursor = match end {
            Walk::Finished => return Ok(None),
            Walk::Paused(next) => next,
            Walk::Missed(next) => {
                // Without any progress the command is tried again, when the slot is free.
                if next == from && seen.all.keys == 0 {
                    return Err(CommandError::MISSED_SLOT);
                }
                db.locked.forgive_missed();
                return Ok(Some(next));
            }
        };
        if begun.elapsed_ns() > PATIENCE_NS {
            break;
        }
    }
    Ok(Some(cursor))
}

/// Looks at all keys of the database. Returns whether there was time for that.
fn see_all(cx: &Context<'_>, question: &Question<'_>, seen: &mut Seen) -> bool {
    let (db, begun) = (&cx.db, Ticks::now());
    for slot in db.locked.space().occupied(db.index) {
        if begun.elapsed_ns() > PATIENCE_NS {
            return false;
        }
        let shown = db.with_slot(cx.slot_access, slot, |locked| {
            let Some(table) = locked.table(db.index, slot) else { return };
            let overhead = overhead(table);
            let mut next = Some(0);
            while let Some(position) = next {
                next = table.walk(position, |entry| {
                    if entry.expire_at().is_none_or(|at| !db.has_expired(at)) {
                        seen.add(entry, overhead, question);
                    }
                });
            }
        });
        if shown.is_none() {
            return false;
        }
    }
    true
}

/// Looks at random keys; each has the same chance.
fn see_some(cx: &Context<'_>, question: &Question<'_>, seen: &mut Seen) {
    let (db, begun) = (&cx.db, Ticks::now());
    let space = db.locked.space();
    let (mut slots, mut ends, mut end) = (Vec::with_capacity(SLOTS), Vec::new(), 0);
    for slot in space.occupied(db.index) {
        end += space.slot_len(db.index, slot);
        slots.push(slot);
        ends.push(end);
    }
    for draw in 0..question.samples {
        if end == 0 || (draw % 16 == 15 && begun.elapsed_ns() > PATIENCE_NS) {
            return;
        }
        let place = base::rng::below(end as u64) as usize;
        let slot = slots[ends.partition_point(|end| *end <= place)];
        db.with_slot(cx.slot_access, slot, |locked| {
            let Some(table) = locked.table(db.index, slot) else { return };
            if let Some(entry) = table.random()
                && entry.expire_at().is_none_or(|at| !db.has_expired(at))
            {
                seen.add(entry, overhead(table), question);
            }
        });
    }
}

/// The bytes of a table per key.
fn overhead(table: &SlotTable) -> usize {
    table.overhead().div_ceil(table.len().max(1))
}

/// Answers a sum over the sample and the estimate for all `total` keys, of which `seen` were looked
/// at.
fn reply_sum(reply: &mut Reply<'_>, sum: Sum, total: usize, seen: usize) {
    let scaled = |count: usize| (count as u128 * total as u128 / seen.max(1) as u128) as i64;
    reply.bulk(b"keys");
    reply.integer(scaled(sum.keys));
    reply.bulk(b"bytes");
    reply.integer(scaled(sum.bytes));
}

fn reply_seen(reply: &mut Reply<'_>, seen: &Seen, part: Part, now: u64) {
    let count = seen.all.keys;
    // What a step has seen stands for nothing else.
    let (pairs, total, whole) = match part {
        Part::Sample { of, whole } => (8, of, whole),
        Part::Step { next, .. } => (10, count, next.is_none()),
    };
    reply.map(pairs);
    reply_sum(reply, seen.all, total, count);
    reply.bulk(b"sampled");
    reply.integer(count as i64);
    reply.bulk(b"complete");
    reply.boolean(whole);
    let most = match part {
        Part::Sample { .. } => TOLD,
        Part::Step { of, next } => {
            reply.bulk(b"of");
            reply.integer(of as i64);
            reply.bulk(b"cursor");
            match next {
                Some(next) => reply.bulk(next.to_number().to_string().as_bytes()),
                None => reply.null(),
            }
            usize::MAX
        }
    };
    reply.bulk(b"types");
    let mut types: Vec<_> = seen.types.iter().map(|(name, sum)| (name.as_bytes(), *sum)).collect();
    reply_kinds(reply, ("type", most), &mut types, total, count);
    reply.bulk(b"prefixes");
    let mut prefixes: Vec<_> = seen.prefixes.iter().map(|(name, sum)| (&**name, *sum)).collect();
    reply_kinds(reply, ("prefix", most), &mut prefixes, total, count);
    reply.bulk(b"sizes");
    reply.array(SIZES.len());
    for (bound, sum) in SIZES.iter().zip(seen.sizes) {
        reply.map(3);
        reply.bulk(b"up_to");
        match *bound {
            usize::MAX => reply.null(),
            bound => reply.integer(bound as i64),
        }
        reply_sum(reply, sum, total, count);
    }
    reply.bulk(b"largest");
    reply.array(seen.largest.len());
    for large in &seen.largest {
        reply.map(5);
        reply.bulk(b"key");
        reply.bulk(&large.key);
        reply.bulk(b"type");
        reply.bulk(large.type_name.as_bytes());
        reply.bulk(b"bytes");
        reply.integer(large.bytes as i64);
        reply.bulk(b"elements");
        reply.integer(large.elements as i64);
        reply.bulk(b"ttl");
        match large.expire_at {
            Some(at) => reply.integer(at.saturating_sub(now) as i64 / 1000),
            None => reply.null(),
        }
    }
}

/// Answers `most` kinds of keys; those that take most come first.
fn reply_kinds(
    reply: &mut Reply<'_>,
    (what, most): (&str, usize),
    kinds: &mut [(&[u8], Sum)],
    total: usize,
    seen: usize,
) {
    kinds.sort_by_key(|(name, sum)| (std::cmp::Reverse(sum.bytes), *name));
    reply.array(kinds.len().min(most));
    for (name, sum) in kinds.iter().take(most) {
        reply.map(3);
        reply.bulk(what.as_bytes());
        reply.bulk(name);
        reply_sum(reply, *sum, total, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_with_a_separator() {
        let prefix = |key: &'static str, separator: &str, depth| {
            let question = Question { samples: 1, separator: separator.as_bytes(), depth };
            std::str::from_utf8(prefix_of(key.as_bytes(), &question)).unwrap()
        };
        assert_eq!(prefix("user:7:name", ":", 1), "user:");
        assert_eq!(prefix("user:7:name", ":", 2), "user:7:");
        assert_eq!(prefix("user:7:name", ":", 9), "user:7:");
        assert_eq!(prefix("a//b//c", "//", 1), "a//");
        assert_eq!(prefix("plain", ":", 1), "");
    }
}
