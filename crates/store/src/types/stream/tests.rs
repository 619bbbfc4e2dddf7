//! Streams against a model, and malformed streams from files.

use std::collections::{BTreeMap, BTreeSet};

use base::rng::Rng;

use super::*;

type Entry = Vec<(Vec<u8>, Vec<u8>)>;

/// The expected contents of a stream.
#[derive(Clone, Default)]
struct Model {
    entries: BTreeMap<StreamId, Entry>,
    last_id: StreamId,
    max_deleted_id: StreamId,
    added: u64,
    /// Pending entries with the names of their consumers.
    pending: BTreeMap<StreamId, (Vec<u8>, u64)>,
    delivered: StreamId,
    consumers: BTreeSet<Vec<u8>>,
}

fn shown(entry: &StreamEntry<'_>) -> Entry {
    entry.fields.clone().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

fn compare(stream: &Stream, model: &Model) {
    stream.check();
    let numbers = StreamNumbers {
        len: model.entries.len() as u64,
        last_id: model.last_id,
        first_id: model.entries.keys().next().copied().unwrap_or_default(),
        max_deleted_id: model.max_deleted_id,
        entries_added: model.added,
    };
    assert_eq!(*stream.numbers(), numbers);
    let entries = stream.range(StreamId::MIN, StreamId::MAX);
    assert!(entries.map(|entry| (entry.id, shown(&entry))).eq(model.entries.clone()));
    let backwards = stream.range_back(StreamId::MIN, StreamId::MAX);
    let expected = model.entries.clone().into_iter().rev();
    assert!(backwards.map(|entry| (entry.id, shown(&entry))).eq(expected));
    let group = stream.group(b"group").expect("it is never removed");
    let pending = group.pending_from(StreamId::MIN).map(|(id, own)| {
        let consumer = group.consumer(own.consumer).expect("pending entries are somebody's");
        (id, (consumer.name().to_vec(), own.deliveries))
    });
    assert!(pending.eq(model.pending.clone()));
    let consumers = group.consumers().map(|consumer| consumer.name().to_vec());
    assert!(consumers.eq(model.consumers.clone()));
    assert_eq!(group.last_id, model.delivered);
}

/// What its parts make is the same stream, whatever their size.
fn compare_divided(stream: &Stream, model: &Model) {
    let in_full = |own: &Stream| {
        let blocks: Vec<_> = own.blocks().map(|(id, bytes)| (id, bytes.to_vec())).collect();
        let consumers = own.groups().flat_map(|(_, group)| group.consumers());
        let consumers: Vec<_> =
            consumers.map(|own| (own.name().to_vec(), own.seen_ms, own.active_ms)).collect();
        (*own.numbers(), blocks, consumers)
    };
    for most in [1, 500, 5000, usize::MAX] {
        let mut parts = Vec::new();
        stream.divide(most, &mut |part| parts.push(part));
        assert!(most < usize::MAX || parts.len() == 1);
        parts.iter().for_each(Stream::check);
        let mut parts = parts.iter();
        let mut joined = parts.next().expect("there is one").clone();
        parts.try_for_each(|part| joined.absorb(part)).unwrap();
        compare(&joined, model);
        assert_eq!(in_full(&joined), in_full(stream));
        // A part that comes again is none.
        if let Some(first) = stream.blocks().next() {
            let mut builder = StreamBuilder::new();
            builder.add_block(first.0, first.1).unwrap();
            let numbers = StreamNumbers { len: builder.len, ..*stream.numbers() };
            let again = builder.finish(numbers).unwrap();
            assert_eq!(joined.absorb(&again), Err(Malformed::Order));
        }
    }
}

/// What a stream takes in a payload, about.
fn weight(stream: &Stream) -> usize {
    let blocks: usize = stream.blocks().map(|(_, bytes)| bytes.len()).sum();
    let groups = stream.groups().map(|(name, group)| {
        let names = group.consumers().map(|own| 64 + own.name().len());
        64 + name.len() + 64 * group.pending_len() + names.sum::<usize>()
    });
    blocks + groups.sum::<usize>()
}

/// Names that are as long as clients like are not in more parts than it takes.
#[test]
fn parts_are_not_many_times_as_large_as_the_stream() {
    const MOST: usize = 64 * 1024;
    for (group_name, consumers, name, pending_each) in [
        (8, 600, 100_000, 1),
        (8, 60, 100_000, 40),
        (8, 3, 1_000_000, 3000),
        (1_000_000, 60, 20_000, 50),
        (500_000, 2, 500_000, 20_000),
        (1000, 2000, 10, 10),
        (1_000_000, 1, 8, 5000),
    ] {
        let mut stream = Stream::new();
        let limits = StreamLimits::new(4096, 100);
        stream.push(StreamId::new(1, 0), [&b"a"[..], b"b"].into_iter(), limits);
        let mut group = Group::new(StreamId::new(1, 0), Some(1));
        let long = |length: usize, number: usize| {
            let mut text = number.to_string().into_bytes();
            text.resize(length.max(text.len()), b'x');
            text
        };
        let added = (0..consumers).map(|number| group.add_consumer(&long(name, number), 1).0);
        let numbers: Vec<u32> = added.collect();
        // The owners take turns.
        for entry in 0..pending_each * consumers {
            let (id, consumer) = (StreamId::new(entry as u64 + 1, 0), numbers[entry % consumers]);
            group.assign(id, PendingEntry { delivered_ms: 1, deliveries: 1, consumer });
        }
        assert!(stream.add_group(&long(group_name, 0), group));
        let (whole, mut all, mut largest) = (weight(&stream), 0, 0);
        let mut joined: Option<Stream> = None;
        stream.divide(MOST, &mut |part| {
            part.check();
            all += weight(&part);
            largest = largest.max(weight(&part));
            match &mut joined {
                None => joined = Some(part),
                Some(joined) => joined.absorb(&part).unwrap(),
            }
        });
        let shown = format!("{group_name} {consumers} {name}: {all} of {whole}, {largest}");
        assert!(largest <= MOST + 2 * (group_name + name) + name + 1000, "{shown}");
        assert!(all <= 3 * whole + group_name + name, "{shown}");
        assert_eq!(weight(&joined.unwrap()), whole, "{shown}");
    }
}

struct World {
    rng: Rng,
    stream: Stream,
    model: Model,
    limits: StreamLimits,
}

impl World {
    fn new(seed: u64, limits: StreamLimits) -> World {
        let mut stream = Stream::new();
        assert!(stream.add_group(b"group", Group::new(StreamId::MIN, Some(0))));
        World { rng: Rng::from_seed(seed), stream, model: Model::default(), limits }
    }

    fn some_id(&mut self) -> StreamId {
        let last = self.model.last_id.ms as usize + 2;
        StreamId::new(self.rng.index(last) as u64, self.rng.index(3) as u64)
    }

    fn text(&mut self) -> Vec<u8> {
        match self.rng.index(4) {
            0 => self.rng.index(1_000_000).to_string().into_bytes(),
            1 => vec![b'x'; self.rng.index(200)],
            2 => format!("-{}", self.rng.index(70_000)).into_bytes(),
            _ => b"value".to_vec(),
        }
    }

    fn add(&mut self) {
        let last = self.model.last_id;
        let id = match self.rng.index(3) {
            0 => StreamId::new(last.ms + 1 + self.rng.index(70_000) as u64, 0),
            1 => StreamId::new(last.ms + 1, self.rng.index(3) as u64),
            _ => last.next().expect("far below the end"),
        };
        let names: &[&[u8]] = match self.rng.index(5) {
            0 => &[b"other"],
            1 => &[b"name", b"7", b"more"],
            _ => &[b"name", b"7"],
        };
        let entry: Entry = names.iter().map(|name| (name.to_vec(), self.text())).collect();
        let fields = entry.iter().flat_map(|(name, value)| [&name[..], &value[..]]);
        let fields: Vec<&[u8]> = fields.collect();
        self.stream.push(id, fields.iter().copied(), self.limits);
        self.model.entries.insert(id, entry.clone());
        self.model.last_id = id;
        self.model.added += 1;
    }

    fn delete(&mut self) {
        let wanted = self.some_id();
        let id = self.model.entries.range(wanted..).next().map_or(wanted, |(id, _)| *id);
        let there = self.model.entries.remove(&id).is_some();
        assert_eq!(self.stream.get(id).is_some(), there);
        assert_eq!(self.stream.delete(id), there);
        if there {
            self.model.max_deleted_id = self.model.max_deleted_id.max(id);
        }
    }

    fn trim(&mut self) {
        let to = match self.rng.index(2) {
            0 => TrimTo::Len(self.rng.index(self.model.entries.len() + 2) as u64),
            _ => TrimTo::From(self.some_id()),
        };
        let by_blocks = self.rng.index(2) == 0;
        let limit = by_blocks.then(|| self.rng.index(40) as u64).filter(|limit| *limit > 0);
        let removed = self.stream.trim(&Trim { to, by_blocks, limit });
        assert!(limit.is_none_or(|limit| removed <= limit));
        let wanted = match to {
            TrimTo::Len(len) => (self.model.entries.len() as u64).saturating_sub(len),
            TrimTo::From(id) => self.model.entries.range(..id).count() as u64,
        };
        if by_blocks {
            assert!(removed <= wanted);
        } else {
            assert_eq!(removed, wanted);
        }
        (0..removed).for_each(|_| drop(self.model.entries.pop_first()));
    }

    fn read(&mut self) {
        let name = vec![b'a' + self.rng.index(4) as u8];
        let group = self.stream.group_mut(b"group").expect("it is never removed");
        let (consumer, is_new) = group.add_consumer(&name, 5);
        assert_eq!(is_new, self.model.consumers.insert(name.clone()));
        let count = self.rng.index(20);
        let delivery = Delivery { consumer, now_ms: 6, count, pending: self.rng.index(3) > 0 };
        let mut got = Vec::new();
        let given = self.stream.deliver(b"group", &delivery, |entry| got.push(entry.id));
        assert_eq!(given[..], got[..]);
        let next = self.model.delivered.next().expect("far below the end");
        let expected = self.model.entries.range(next..).map(|(id, _)| *id).take(count);
        assert!(expected.eq(got.iter().copied()));
        self.model.delivered = got.last().copied().unwrap_or(self.model.delivered);
        if delivery.pending {
            self.model.pending.extend(got.into_iter().map(|id| (id, (name.clone(), 1))));
        }
    }

    fn acknowledge(&mut self) {
        let wanted = self.some_id();
        let id = self.model.pending.range(wanted..).next().map_or(wanted, |(id, _)| *id);
        let group = self.stream.group_mut(b"group").expect("it is never removed");
        assert_eq!(group.acknowledge(id), self.model.pending.remove(&id).is_some());
    }

    /// Several at once, in order and not.
    fn acknowledge_all(&mut self) {
        let from = self.some_id();
        let (skip, step) = (self.rng.index(3), 1 + self.rng.index(2));
        let pending = self.model.pending.range(from..).map(|(id, _)| *id);
        let mut ids: Vec<StreamId> = pending.skip(skip).step_by(step).take(30).collect();
        if self.rng.index(3) == 0 {
            let at = self.rng.index(ids.len() + 1);
            ids.insert(at, from);
            ids.rotate_left(at);
        }
        let group = self.stream.group_mut(b"group").expect("it is never removed");
        let acknowledged = group.acknowledge_all(&ids);
        let removed = ids.iter().filter(|id| self.model.pending.remove(id).is_some()).count();
        assert_eq!(acknowledged, removed);
    }

    /// The group goes back, or the stream's last id over what was deleted.
    fn go_back(&mut self) {
        if self.rng.index(2) == 0 {
            let position = self.some_id();
            self.stream.group_mut(b"group").expect("it is never removed").last_id = position;
            self.model.delivered = position;
            return;
        }
        let last = self.model.entries.keys().next_back().copied().unwrap_or(StreamId::new(1, 0));
        self.stream.set_last_id(last, None, None);
        self.model.last_id = last;
    }

    fn assign(&mut self) {
        let id = self.some_id();
        let group = self.stream.group_mut(b"group").expect("it is never removed");
        let name = [b'a' + self.rng.index(6) as u8];
        if let Some(consumer) = group.number_of(&name) {
            group.assign(id, PendingEntry { delivered_ms: 1, deliveries: 9, consumer });
            self.model.pending.insert(id, (name.to_vec(), 9));
        }
    }

    fn remove_consumer(&mut self) {
        let name = [b'a' + self.rng.index(6) as u8];
        let own = self.model.pending.values().filter(|(consumer, _)| *consumer == name).count();
        let known = self.model.consumers.remove(&name[..]);
        self.model.pending.retain(|_, (consumer, _)| *consumer != name);
        let group = self.stream.group_mut(b"group").expect("it is never removed");
        assert_eq!(group.remove_consumer(&name), known.then_some(own));
    }

    fn step(&mut self) {
        match self.rng.index(100) {
            0..50 => self.add(),
            50..65 => self.delete(),
            65..68 => self.trim(),
            68..80 => self.read(),
            80..88 => self.acknowledge(),
            88..92 => self.acknowledge_all(),
            92..94 => self.go_back(),
            94..98 => self.assign(),
            _ => self.remove_consumer(),
        }
    }
}

/// What a file would have of a stream, and the stream that is read from it.
fn reloaded(stream: &Stream) -> Stream {
    let mut builder = StreamBuilder::new();
    for (master, listpack) in stream.blocks() {
        builder.add_block(master, listpack).expect("we wrote it");
    }
    let numbers = StreamNumbers { first_id: StreamId::MAX, ..*stream.numbers() };
    let mut loaded = builder.finish(numbers).expect("we wrote it");
    for (name, group) in stream.groups() {
        let mut copy = Group::new(group.last_id, group.entries_read);
        for (id, own) in group.pending_from(StreamId::MIN) {
            copy.load_pending(id, own.delivered_ms, own.deliveries).expect("each once");
        }
        for own in group.consumers() {
            let number = copy.load_consumer(own.name(), own.seen_ms, own.active_ms);
            let number = number.expect("each once");
            for id in own.pending_from(StreamId::MIN) {
                copy.load_owner(id, number).expect("it is pending");
            }
        }
        copy.finish_loading().expect("all have owners");
        assert!(loaded.add_group(name, copy));
    }
    loaded
}

#[test]
fn behaves_as_the_model() {
    let limits = [(4096, 100), (300, 0), (0, 3), (4096, 1)];
    for (seed, (bytes, entries)) in limits.into_iter().enumerate() {
        let mut world = World::new(seed as u64, StreamLimits::new(bytes, entries));
        let mut copies = Vec::new();
        for step in 0..6_000 {
            world.step();
            if step % 600 == 599 {
                compare(&world.stream, &world.model);
                compare(&reloaded(&world.stream), &world.model);
                compare_divided(&world.stream, &world.model);
                copies.push((world.stream.clone(), world.model.clone()));
                for _ in 0..20 {
                    let (one, other) = (world.some_id(), world.some_id());
                    let (from, to) = (one.min(other), one.max(other));
                    let ids = world.model.entries.range(from..=to).map(|(id, _)| *id);
                    let range = world.stream.range(from, to).map(|entry| entry.id);
                    assert!(range.eq(ids.clone()));
                    let back = world.stream.range_back(from, to).map(|entry| entry.id);
                    assert!(back.eq(ids.rev()));
                }
            }
        }
        copies.iter().for_each(|(stream, model)| compare(stream, model));
    }
}

#[test]
fn entries_of_one_kind_share_their_names() {
    let mut stream = Stream::new();
    let value = [b'v'; 20];
    let fields: Vec<&[u8]> = ["first", "second", "third", "fourth", "fifth"]
        .map(str::as_bytes)
        .iter()
        .flat_map(|name| [*name, &value[..]])
        .collect();
    for ms in 1..=10_000 {
        stream.push(
            StreamId::new(1_700_000_000_000 + ms, 0),
            fields.iter().copied(),
            StreamLimits::new(4096, 100),
        );
    }
    stream.check();
    let each = stream.memory_usage(usize::MAX) / 10_000;
    assert!((110..135).contains(&each), "{each} bytes for 100 of text");
}

#[test]
fn ids_may_go_back_over_what_was_deleted() {
    let limits = StreamLimits::new(4096, 100);
    let mut stream = Stream::new();
    for ms in [1, 2, 9] {
        stream.push(StreamId::new(ms, 0), [&b"f"[..], b"v"].into_iter(), limits);
    }
    assert!(stream.delete(StreamId::new(9, 0)));
    stream.set_last_id(StreamId::new(2, 0), None, Some(StreamId::MIN));
    stream.push(StreamId::new(5, 0), [&b"f"[..], b"v"].into_iter(), limits);
    stream.check();
    assert!(stream.get(StreamId::new(5, 0)).is_some());
    assert!(!stream.delete(StreamId::new(9, 0)));
    assert!(stream.delete(StreamId::new(5, 0)));
    reloaded(&stream).check();
}

#[test]
fn a_group_reads_a_block_that_took_the_id_of_another() {
    let limits = StreamLimits::new(4096, 100);
    let mut stream = Stream::new();
    let push = |stream: &mut Stream, ms, value: &[u8]| {
        stream.push(StreamId::new(ms, 0), [&b"f"[..], value].into_iter(), limits);
    };
    (1..=3).for_each(|ms| push(&mut stream, ms, b"value"));
    let mut group = Group::new(StreamId::MIN, Some(0));
    let (consumer, _) = group.add_consumer(b"c", 1);
    assert!(stream.add_group(b"g", group));
    let read = |stream: &mut Stream| -> Vec<u64> {
        let delivery = Delivery { consumer, now_ms: 2, count: 2, pending: true };
        stream.deliver(b"g", &delivery, |_| {}).iter().map(|id| id.ms).collect()
    };
    assert_eq!(read(&mut stream), [1, 2]);
    (1..=3).for_each(|ms| assert!(stream.delete(StreamId::new(ms, 0))));
    stream.set_last_id(StreamId::MIN, None, None);
    // The entries have other lengths now.
    for ms in 1..=4 {
        push(&mut stream, ms, &[b'x'; 100]);
    }
    assert_eq!(read(&mut stream), [3, 4]);
    stream.check();
}

#[test]
fn damaged_blocks_are_refused_or_harmless() {
    let mut world = World::new(3, StreamLimits::new(400, 0));
    (0..60).for_each(|_| world.add());
    (0..20).for_each(|_| world.delete());
    let mut refused = 0;
    for (master, listpack) in world.stream.blocks() {
        for at in 0..listpack.len() {
            for change in [1, 2, 0x80] {
                let mut damaged = listpack.to_vec();
                damaged[at] ^= change;
                let mut builder = StreamBuilder::new();
                if builder.add_block(master, &damaged).is_err() {
                    refused += 1;
                    continue;
                }
                let numbers = StreamNumbers {
                    len: builder.len,
                    last_id: StreamId::MAX,
                    ..StreamNumbers::default()
                };
                let stream = builder.finish(numbers).expect("the number is right");
                stream.check();
            }
        }
    }
    assert!(refused > 1000);
}

#[test]
fn flags_in_a_longer_form_are_refused() {
    // Live and deleted entries, one name, and an entry of the block's names with one value.
    let block = |flags: &[u8]| {
        let head = b"\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01";
        let entry = [flags, b"\x00\x01\x00\x01\x81v\x02\x04\x01"].concat();
        let body = [&head[..], &entry, b"\xff"].concat();
        let total = (6 + body.len()) as u32;
        [&total.to_le_bytes()[..], b"\x0a\x00", &body].concat()
    };
    let added = |flags: &[u8]| StreamBuilder::new().add_block(StreamId::new(1, 0), &block(flags));
    assert_eq!(added(b"\x02\x01"), Ok(()));
    // The same number with 13, 16 and 64 bits.
    for flags in
        [&b"\xc0\x02\x02"[..], b"\xf1\x02\x00\x03", b"\xf4\x02\x00\x00\x00\x00\x00\x00\x00\x09"]
    {
        assert_eq!(added(flags), Err(Malformed::Block), "{}", flags.escape_ascii());
    }
}

#[test]
fn entries_that_groups_still_need_can_be_kept() {
    let stream = || {
        let mut stream = Stream::new();
        for ms in 1..=6 {
            let fields = [&b"f"[..], b"v"];
            stream.push(StreamId::new(ms, 0), fields.into_iter(), StreamLimits::new(4096, 2));
        }
        for name in [&b"one"[..], b"two"] {
            let mut group = Group::new(StreamId::MIN, Some(0));
            let (consumer, _) = group.add_consumer(b"c", 1);
            assert!(stream.add_group(name, group));
            let delivery = Delivery { consumer, now_ms: 2, count: 4, pending: true };
            assert_eq!(stream.deliver(name, &delivery, |_| {}).len(), 4);
        }
        for (group, ms) in [(&b"one"[..], 1), (b"two", 1), (b"one", 3), (b"one", 2)] {
            let group = stream.group_mut(group).expect("it was added");
            assert!(group.acknowledge(StreamId::new(ms, 0)));
        }
        stream
    };
    let left = |stream: &Stream| -> Vec<u64> {
        stream.check();
        stream.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id.ms).collect()
    };
    let all = Trim { to: TrimTo::Len(1), by_blocks: false, limit: None };
    let mut kept = stream();
    assert_eq!(kept.trim_with(&all, References::Acknowledged), (vec![StreamId::new(1, 0)], 1));
    assert_eq!(left(&kept), [2, 3, 4, 5, 6]);
    let mut forgotten = stream();
    assert_eq!(forgotten.trim_with(&all, References::Delete), (Vec::new(), 5));
    let pending =
        |stream: &Stream| stream.groups().map(|(_, own)| own.pending_len()).sum::<usize>();
    assert_eq!((left(&forgotten), pending(&forgotten)), (vec![6], 0));
    let mut plain = stream();
    assert_eq!(plain.trim_with(&all, References::Keep), (Vec::new(), 5));
    assert_eq!((left(&plain), pending(&plain)), (vec![6], 4));

    let mut stream = stream();
    let delete = |stream: &mut Stream, ms, how| stream.delete_with(StreamId::new(ms, 0), how);
    assert_eq!(delete(&mut stream, 9, References::Delete), Deletion::Missing);
    assert_eq!(delete(&mut stream, 2, References::Acknowledged), Deletion::Referenced);
    assert_eq!(delete(&mut stream, 6, References::Acknowledged), Deletion::Referenced);
    assert_eq!(delete(&mut stream, 1, References::Acknowledged), Deletion::Deleted);
    assert_eq!(delete(&mut stream, 4, References::Delete), Deletion::Deleted);
    assert_eq!(delete(&mut stream, 2, References::Keep), Deletion::Deleted);
    assert_eq!((left(&stream), pending(&stream)), (vec![3, 5, 6], 2));
}
