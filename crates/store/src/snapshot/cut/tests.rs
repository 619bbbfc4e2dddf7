//! Through all changes during a walk, the sink gets the data of the cut, each entry once.

use std::collections::BTreeMap;

use base::rng::Rng;
use proptest::prelude::*;

use super::*;
use crate::locks::gate::{Access, Gate, Gates};
use crate::pack::Element;
use crate::pack::End;
use crate::types::list::ListLimits;
use crate::types::stream::StreamLimits;
use crate::{
    EntryMut, Hash, Limits, List, Set, SetLimits, Stream, StreamId, StringValue, ValueMut, Zset,
};

const DATABASES: usize = 3;
const LIMITS: Limits = Limits { entries: 8, value: 64 };

/// Blocks of few entries, so that a stream has many.
const BLOCKS: StreamLimits = StreamLimits::new(4096, 5);
/// Sets of texts are tables from the first member on.
const SET_LIMITS: SetLimits =
    SetLimits { integers: LIMITS.entries, listpack: Limits { entries: 0, value: 0 } };

/// A value as text, to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Pieces(BTreeMap<Vec<u8>, Vec<u8>>),
}

fn pieces_of(value: ValueRef<'_>) -> Content {
    match value {
        ValueRef::String(string) => Content::Text(string.bytes().to_vec()),
        ValueRef::List(list) => {
            Content::List(list.iter().map(|item| item.as_element().to_vec()).collect())
        }
        ValueRef::Set(set) => {
            Content::Pieces(set.iter().map(|member| (member.to_vec(), Vec::new())).collect())
        }
        ValueRef::Hash(hash) => Content::Pieces(
            hash.iter()
                .map(|(field, value, at)| (field.to_vec(), timed(&value.to_vec(), at)))
                .collect(),
        ),
        ValueRef::Zset(zset) => Content::Pieces(
            zset.range(0..zset.len())
                .map(|(member, score)| (member.to_vec(), score.to_le_bytes().to_vec()))
                .collect(),
        ),
        ValueRef::Stream(stream) => Content::Pieces(
            stream
                .range(StreamId::MIN, StreamId::MAX)
                .map(|entry| {
                    let text =
                        |field: Option<(Element<'_>, _)>| field.map(|(name, _)| name.to_vec());
                    let name = text(entry.fields.clone().next()).unwrap_or_default();
                    (entry.id.to_bytes().to_vec(), name)
                })
                .collect(),
        ),
    }
}

/// A field's value with the time at which it expires.
fn timed(value: &[u8], expire_at: Option<u64>) -> Vec<u8> {
    [value, &expire_at.unwrap_or_default().to_le_bytes()].concat()
}

type Entries = BTreeMap<(usize, Vec<u8>), (Option<u64>, Content)>;

/// A collection whose pieces are coming.
struct Open {
    at: (usize, Vec<u8>),
    expire_at: Option<u64>,
    len: usize,
    pieces: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A string whose parts are coming.
struct OpenText {
    at: (usize, Vec<u8>),
    expire_at: Option<u64>,
    len: usize,
    text: Vec<u8>,
}

/// Collects the entries that are shown, and notices those shown twice.
#[derive(Default)]
struct Collector {
    entries: Entries,
    open: Option<Open>,
    /// When the first field of the next hash expires.
    earliest: Option<u64>,
    text: Option<OpenText>,
}

impl Collector {
    fn put(&mut self, at: (usize, Vec<u8>), expire_at: Option<u64>, content: Content) {
        let before = self.entries.insert(at.clone(), (expire_at, content));
        assert!(before.is_none(), "{at:?} was shown twice");
    }
}

impl Sink for Collector {
    fn entry(&mut self, head: &Head<'_>, value: ValueRef<'_>) {
        assert!(self.open.is_none() && self.text.is_none(), "nothing comes between pieces");
        self.put((head.database, head.key.to_vec()), head.expire_at, pieces_of(value));
    }

    fn begin(&mut self, head: &Head<'_>, kind: PieceKind, len: usize) {
        assert!(self.open.is_none() && self.text.is_none());
        self.earliest = if let PieceKind::Field(earliest) = kind { earliest } else { None };
        let at = (head.database, head.key.to_vec());
        self.open = Some(Open { at, expire_at: head.expire_at, len, pieces: BTreeMap::new() });
    }

    fn piece(&mut self, piece: Piece<'_>) {
        let (name, value) = match piece {
            Piece::Member(member) => (member.to_vec(), Vec::new()),
            Piece::Field(field, value, at) => {
                let earliest = self.earliest.filter(|&earliest| at.is_none_or(|at| at >= earliest));
                assert_eq!(earliest, self.earliest, "none expires before what was announced");
                (field.to_vec(), timed(value, at))
            }
            Piece::Scored(member, score) => (member.to_vec(), score.to_le_bytes().to_vec()),
        };
        let open = self.open.as_mut().expect("pieces come after a beginning");
        assert!(open.pieces.insert(name, value).is_none(), "a piece was shown twice");
    }

    fn end(&mut self) {
        let open = self.open.take().expect("an end has a beginning");
        assert_eq!(open.pieces.len(), open.len, "as many pieces as announced");
        self.put(open.at, open.expire_at, Content::Pieces(open.pieces));
    }

    fn begin_text(&mut self, head: &Head<'_>, len: usize) {
        assert!(self.open.is_none() && self.text.is_none());
        let at = (head.database, head.key.to_vec());
        self.text = Some(OpenText { at, expire_at: head.expire_at, len, text: Vec::new() });
    }

    fn text(&mut self, part: &[u8]) {
        let open = self.text.as_mut().expect("parts come after a beginning");
        open.text.extend_from_slice(part);
    }

    fn end_text(&mut self) {
        let open = self.text.take().expect("an end has a beginning");
        assert_eq!(open.text.len(), open.len, "as many bytes as announced");
        self.put(open.at, open.expire_at, Content::Text(open.text));
    }
}

/// A keyspace with a random hand at it.
struct World<'k> {
    space: &'k Keyspace<()>,
    gates: Gates,
    gate: Gate,
    random: Rng,
    /// Removed entries that a background thread would free later.
    garbage: Vec<crate::Removed>,
    tables: Vec<SlotTable>,
}

impl<'k> World<'k> {
    fn new(space: &'k Keyspace<()>, seed: u64) -> World<'k> {
        let gates = Gates::new();
        World {
            space,
            gate: gates.register(),
            gates,
            random: Rng::from_seed(seed),
            garbage: Vec::new(),
            tables: Vec::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.index(bound)
    }

    /// Two slots have most keys, so that their tables split and merge.
    fn key(&mut self) -> Vec<u8> {
        match self.below(10) {
            0 => format!("key:{}", self.below(20)),
            n => format!("{{{}}}:{}", n % 2, self.below(60)),
        }
        .into_bytes()
    }

    fn name(&mut self) -> Vec<u8> {
        format!("member:{}", self.below(1500)).into_bytes()
    }

    fn value(&mut self) -> Value<'static> {
        let len = match self.below(4) {
            0 => 3,
            1 => 70,
            2 => 200,
            _ => 1200,
        };
        let names: Vec<_> = (0..len).map(|_| self.name()).collect();
        match self.below(9) {
            8 => {
                let mut stream = Stream::new();
                for (ms, name) in (1..).zip(&names) {
                    stream.push(StreamId::new(ms, 0), [&name[..], b""].into_iter(), BLOCKS);
                }
                Value::Stream(stream)
            }
            0 => {
                let mut set = Set::new();
                names.iter().for_each(|name| {
                    set.add(name, SET_LIMITS);
                });
                Value::Set(set)
            }
            1 => {
                let mut hash = Hash::new();
                // A bucket of some of their fields is more than is read at once.
                let value = if len == 70 { vec![b'b'; 15_000] } else { b"before".to_vec() };
                let expires = self.below(2) == 0;
                names.iter().for_each(|name| {
                    let at = (expires && self.below(3) == 0).then(|| 1 + self.below(1000) as u64);
                    hash.set_timed(name, &value, at, LIMITS);
                });
                Value::Hash(hash)
            }
            2 => {
                let mut zset = Zset::new();
                for (rank, name) in names.iter().enumerate() {
                    zset.insert(name, rank as f64, LIMITS);
                }
                Value::Zset(zset)
            }
            3 => {
                let mut list = List::new();
                names
                    .iter()
                    .for_each(|name| list.push(End::Back, &name[..], &ListLimits::default()));
                Value::List(list)
            }
            4 => {
                let bytes = vec![b'x'; 16_000 + 100 * self.below(200)];
                Value::String(StringValue::Shared(Arc::new(bytes)))
            }
            _ => Value::String(StringValue::Plain(self.name().into())),
        }
    }

    /// One random change.
    fn change(&mut self) {
        let (database, name) = (self.below(DATABASES), self.key());
        let key = Key::new(&name);
        match self.below(40) {
            0..10 => self.put(database, &key),
            10..28 => self.modify(database, &key),
            28..33 => {
                let inside = self.gate.enter();
                let locked = self.space.try_lock_one(inside.pinned(), key.slot, 0);
                let mut locked = locked.unwrap();
                self.garbage.extend(locked.remove(database, &key));
            }
            33..35 => self.rename(database, &key),
            35 => self.look_for_change(database, &key),
            36..38 => self.garbage.clear(),
            38 => {
                let other = self.below(DATABASES);
                self.space.swap(&self.gates.stop_the_world(), database, other);
            }
            _ if self.below(20) == 0 => {
                self.tables.extend(self.space.take_all(&self.gates.stop_the_world(), database));
            }
            _ => self.tables.clear(),
        }
    }

    fn put(&mut self, database: usize, key: &Key<'_>) {
        let value = self.value();
        let expire_at = (self.below(3) == 0).then(|| 1 + self.below(1000) as u64);
        let inside = self.gate.enter();
        let mut locked = self.space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
        if let Some(mut entry) = locked.find_mut(database, key) {
            self.garbage.extend(entry.replace(value, expire_at));
        } else {
            locked.insert(database, key, value, expire_at);
        }
        Self::stamp(&mut locked, database, key);
    }

    /// Gives the entry the version of a write, if it is there.
    fn stamp(locked: &mut LockedSlots<'_, ()>, database: usize, key: &Key<'_>) {
        let version = locked.next_version(key.slot);
        if let Some(mut entry) = locked.find_mut(database, key) {
            entry.set_version(version);
        }
    }

    fn modify(&mut self, database: usize, key: &Key<'_>) {
        let names: Vec<_> = (0..1 + self.below(30)).map(|_| self.name()).collect();
        let (removes, position) = (self.below(2) == 0, self.below(50_000));
        let expire_at = (self.below(2) == 0).then(|| 1 + self.below(1000) as u64);
        let makes = self.below(3) == 0;
        let inside = self.gate.enter();
        let mut locked = self.space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
        if makes {
            locked.find_or_insert(database, key, || Value::Hash(Hash::new()));
        }
        let Some(mut entry) = locked.find_mut(database, key) else { return };
        for name in &names {
            match entry.value_mut() {
                ValueMut::Set(set) if removes && set.len() > 1 => drop(set.remove(name)),
                ValueMut::Set(set) => drop(set.add(name, SET_LIMITS)),
                ValueMut::Hash(hash) if removes && hash.len() > 1 => drop(hash.remove(name)),
                ValueMut::Hash(hash) if expire_at.is_some() => {
                    hash.set_expire_at(name, expire_at.filter(|at| at % 4 > 0));
                }
                ValueMut::Hash(hash) => drop(hash.set(name, b"after, and longer", LIMITS)),
                ValueMut::Zset(zset) if removes && zset.len() > 1 => drop(zset.remove(name)),
                ValueMut::Zset(zset) => drop(zset.insert(name, -1.0, LIMITS)),
                ValueMut::List(list) => list.push(End::Front, &name[..], &ListLimits::default()),
                ValueMut::Stream(stream) if removes => {
                    let first = stream.numbers().first_id;
                    stream.delete(first);
                }
                ValueMut::Stream(stream) => {
                    let id = stream.last_id().next().expect("far below the end");
                    stream.push(id, [&name[..], b"after"].into_iter(), BLOCKS);
                }
                ValueMut::String(_) if removes => entry.set_expire_at(expire_at),
                ValueMut::String(_) => {
                    let range = position..position + name.len();
                    let bytes = entry.string_range_mut(range.end, range);
                    bytes.expect("it is a string").copy_from_slice(name);
                }
            }
        }
        entry.note_fields();
        Self::stamp(&mut locked, database, key);
    }

    /// A write that finds nothing to change.
    fn look_for_change(&mut self, database: usize, key: &Key<'_>) {
        let inside = self.gate.enter();
        let mut locked = self.space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
        let _is_there = locked.find_mut(database, key).is_some();
    }

    fn rename(&mut self, database: usize, from: &Key<'_>) {
        let (name, target) = (self.key(), self.below(DATABASES));
        let to = Key::new(&name);
        let mut slots = vec![from.slot, to.slot];
        slots.sort_unstable();
        slots.dedup();
        let inside = self.gate.enter();
        let mut locked = self.space.try_lock_slots(inside.pinned(), &slots, 0).unwrap();
        if locked.find(target, &to).is_some() {
            return;
        }
        let Some(removed) = locked.remove(database, from) else { return };
        let value = removed.into_value();
        locked.note_placed(target, &to, &value);
        locked.insert(target, &to, value, None);
    }

    fn step(&self, walker: &mut Walker<'_, ()>, collector: &mut Collector) -> WalkProgress {
        walker.step(Access::Gate(&self.gate), collector)
    }

    fn content(&self) -> Entries {
        let mut entries = Entries::new();
        let inside = self.gate.enter();
        for database in 0..DATABASES {
            for slot in self.space.occupied(database) {
                let locked = self.space.try_lock_one(inside.pinned(), slot, 0).unwrap();
                let table = locked.table(database, slot).unwrap();
                let mut position = Some(0);
                while let Some(at) = position {
                    position = table.walk(at, |entry| {
                        let content = (entry.expire_at(), pieces_of(entry.value()));
                        entries.insert((database, entry.key().to_vec()), content);
                    });
                }
            }
        }
        entries
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn the_cut_is_shown_as_it_was(seed in any::<u64>(), before in 0usize..400, pace in 1usize..30) {
        let space = Keyspace::new(DATABASES);
        let mut world = World::new(&space, seed);
        (0..before).for_each(|_| world.change());
        let wanted = world.content();
        let mut collector = Collector::default();
        let mut walker = space.begin_cut(&world.gates.stop_the_world(), 0).expect("there is no other");
        prop_assert!(space.begin_cut(&world.gates.stop_the_world(), 0).is_none());
        let mut steps = 0;
        while world.step(&mut walker, &mut collector) != WalkProgress::Finished {
            (0..world.below(pace)).for_each(|_| world.change());
            steps += 1;
            prop_assert!(steps < 200_000, "the walk comes to its end");
        }
        drop(walker);
        prop_assert!(collector.open.is_none());
        prop_assert_eq!(collector.entries, wanted);
        prop_assert!(!space.cut_is_behind());
    }

    #[test]
    fn a_walk_that_is_given_up_hinders_no_other(seed in any::<u64>(), steps in 0usize..60) {
        let space = Keyspace::new(DATABASES);
        let mut world = World::new(&space, seed);
        (0..200).for_each(|_| world.change());
        for _ in 0..3 {
            let walker = space.begin_cut(&world.gates.stop_the_world(), 0);
            let mut walker = walker.expect("there is no other");
            let mut ignored = Collector::default();
            for _ in 0..steps {
                world.step(&mut walker, &mut ignored);
                world.change();
            }
        }
        world.garbage.clear();
        let wanted = world.content();
        let mut walker = space.begin_cut(&world.gates.stop_the_world(), 0).expect("the last one ended");
        let mut collector = Collector::default();
        while world.step(&mut walker, &mut collector) != WalkProgress::Finished {
            world.change();
        }
        prop_assert_eq!(collector.entries, wanted);
    }

    #[test]
    fn a_cut_of_some_slots_shows_these_alone(seed in any::<u64>(), before in 0usize..300, steps in 0usize..40) {
        let space = Keyspace::new(DATABASES);
        let mut world = World::new(&space, seed);
        (0..before).for_each(|_| world.change());
        let half: SlotSet = (0..SLOTS as u16).filter(|slot| slot % 2 == 0).collect();
        for slots in [Some(half.clone()), None, Some(half), None] {
            // One that is given up leaves its marks in all slots.
            let walker = space.begin_cut(&world.gates.stop_the_world(), 0);
            let mut walker = walker.expect("there is no other");
            let mut ignored = Collector::default();
            for _ in 0..steps {
                world.step(&mut walker, &mut ignored);
                world.change();
            }
            drop(walker);
            let mut wanted = world.content();
            wanted.retain(|(_, key), _| slots.as_ref().is_none_or(|own| own.has(Key::new(key).slot)));
            let walker = space.begin_cut_of(&world.gates.stop_the_world(), 0, slots);
            let mut walker = walker.expect("the last one ended");
            let mut collector = Collector::default();
            while world.step(&mut walker, &mut collector) != WalkProgress::Finished {
                world.change();
            }
            drop(walker);
            prop_assert_eq!(collector.entries, wanted);
        }
    }
}

/// Clients compare versions, as entity tags: a write that found nothing to change has left it
/// alone, whether or not a snapshot is being made.
#[test]
fn a_write_that_changes_nothing_beside_a_cut_makes_no_new_version() {
    let (space, gates) = (Keyspace::<()>::new(1), Gates::new());
    let gate = gates.register();
    let names: Vec<Vec<u8>> = (0..300).map(|n: u32| format!("key:{n}").into_bytes()).collect();
    let locked = |name: &[u8], action: &mut dyn FnMut(&mut LockedSlots<'_, ()>, Key<'_>)| {
        let (inside, key) = (gate.enter(), Key::new(name));
        let locked = space.try_lock_one(inside.pinned(), key.slot, 0);
        action(&mut locked.expect("nobody else is there"), key);
    };
    let version = |name: &[u8]| {
        let mut version = 0;
        locked(name, &mut |locked, key| version = locked.find(0, &key).unwrap().version());
        version
    };
    for name in &names {
        locked(name, &mut |locked, key| {
            let value = Value::String(StringValue::Plain(name[..].into()));
            locked.insert(0, &key, value, None);
        });
    }
    // Shows a cut, or some of it, while writes look for something to change.
    let walk = |steps: usize| {
        let mut walker = space.begin_cut(&gates.stop_the_world(), 0).expect("there is no other");
        let (mut collector, mut rest) = (Collector::default(), names.iter().rev());
        let ended = (0..steps).any(|_| {
            for name in rest.by_ref().take(3) {
                locked(name, &mut |locked, key| assert!(locked.find_mut(0, &key).is_some()));
                locked(name, &mut |locked, key| assert!(locked.find_mut(0, &key).is_some()));
            }
            walker.step(Access::Gate(&gate), &mut collector) == WalkProgress::Finished
        });
        assert_eq!(ended, collector.entries.len() == names.len(), "each is shown, and once");
        ended
    };
    let versions = || names.iter().map(|name| version(name)).collect::<Vec<u64>>();
    let before = versions();
    assert!(walk(usize::MAX) && walk(usize::MAX) && !walk(50));
    assert_eq!(versions(), before);
    // The marks of a snapshot that was given up are still there: the next one takes them away.
    assert!(walk(usize::MAX));
    let before = versions();
    assert!(walk(usize::MAX));
    assert_eq!(versions(), before);
}

/// A writer finds the cut, the walker ends, and only then the writer comes with a large collection.
#[test]
fn a_collection_that_comes_after_the_walkers_end_is_not_kept() {
    let space = Keyspace::<()>::new(1);
    let gates = Gates::new();
    let gate = gates.register();
    let key = Key::new(b"set");
    let mut set = Set::new();
    for n in 0..200 {
        set.add(format!("member:{n}").as_bytes(), SET_LIMITS);
    }
    {
        let inside = gate.enter();
        let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
        locked.insert(0, &key, Value::Set(set), None);
    }
    let walker = space.begin_cut(&gates.stop_the_world(), 0).expect("there is no other");
    let cut = space.cut().expect("it has begun");
    drop(walker);
    let inside = gate.enter();
    let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
    let word = locked.find(0, &key).unwrap().word;
    cut.take_over(0, word, false);
    let frozen = word.freezing().and_then(|table| table.frozen()).map(Arc::downgrade);
    // A thread that gives up a snapshot that nothing reads would leave the set to itself here.
    drop(locked.remove(0, &key));
    drop(cut);
    let left = frozen.and_then(|frozen| frozen.upgrade());
    assert!(left.is_none(), "the set is kept for a snapshot that has ended");
}

/// Asks at each large thing that is shown whether its slot is free and the walker's gate open.
struct Watchful<'k> {
    space: &'k Keyspace<()>,
    walkers: &'k Gate,
    other: &'k Gate,
    slot: u16,
    large: usize,
    small: usize,
    parts: usize,
}

impl Watchful<'_> {
    fn look(&mut self, bytes: usize) {
        if bytes < 100_000 {
            self.small += 1;
            return;
        }
        self.look_at_locks();
        self.large += 1;
    }

    fn look_at_locks(&self) {
        assert!(!self.walkers.is_entered(), "gates can be closed meanwhile");
        let inside = self.other.enter();
        assert!(self.space.try_lock_one(inside.pinned(), self.slot, 0).is_some());
    }
}

impl Sink for Watchful<'_> {
    fn entry(&mut self, _: &Head<'_>, value: ValueRef<'_>) {
        self.look(match value {
            ValueRef::String(string) => string.len(),
            ValueRef::List(list) => list.memory_usage(),
            ValueRef::Hash(hash) => hash.memory_usage(usize::MAX),
            ValueRef::Set(set) => set.memory_usage(usize::MAX),
            ValueRef::Zset(zset) => zset.memory_usage(usize::MAX),
            ValueRef::Stream(stream) => stream.memory_usage(usize::MAX),
        });
    }

    fn begin(&mut self, _: &Head<'_>, _: PieceKind, _: usize) {}

    fn piece(&mut self, piece: Piece<'_>) {
        self.look(piece.bytes());
    }

    fn end(&mut self) {}

    fn begin_text(&mut self, _: &Head<'_>, _: usize) {}

    fn text(&mut self, part: &[u8]) {
        self.look_at_locks();
        self.parts += part.len();
    }

    fn end_text(&mut self) {}
}

/// A hash whose blocks may be of any size.
const ROOMY: Limits = Limits { entries: 8, value: 1 << 20 };

#[test]
#[cfg_attr(miri, ignore = "much copying")]
fn large_values_are_shown_while_their_slot_is_free() {
    let space = Keyspace::<()>::new(1);
    let gates = Gates::new();
    let (gate, other) = (gates.register(), gates.register());
    let large = vec![b'x'; 200_000];
    let mut list = List::new();
    (0..3).for_each(|_| list.push(End::Back, &large[..], &ListLimits::default()));
    let (mut packed, mut table, mut small) = (Hash::new(), Hash::new(), Hash::new());
    packed.set(b"field", &large, ROOMY);
    for n in 0..5 {
        table.set(format!("field:{n}").as_bytes(), &large, LIMITS);
        small.set(format!("field:{n}").as_bytes(), b"value", LIMITS);
    }
    let mut stream = Stream::new();
    stream.push(StreamId::new(1, 0), [&b"field"[..], &large].into_iter(), BLOCKS);
    let values = [
        Value::Stream(stream),
        Value::String(StringValue::Shared(Arc::new(large))),
        Value::List(list),
        Value::Hash(packed),
        Value::Hash(table),
        Value::Hash(small),
    ];
    let slot = Key::new(b"{k}").slot;
    for (number, value) in values.into_iter().enumerate() {
        let name = format!("{{k}}:{number}").into_bytes();
        let inside = gate.enter();
        let mut locked = space.try_lock_one(inside.pinned(), slot, 0).unwrap();
        locked.insert(0, &Key::new(&name), value, None);
    }
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).expect("there is no other");
    let mut sink = Watchful {
        space: &space,
        walkers: &gate,
        other: &other,
        slot,
        large: 0,
        small: 0,
        parts: 0,
    };
    while walker.step(Access::Gate(&gate), &mut sink) != WalkProgress::Finished {}
    // The stream, the list, the packed hash, and five fields; and the small hash. And the string.
    assert_eq!((sink.large, sink.small, sink.parts), (8, 1, 200_000));
}

/// One key, whose cut was begun.
fn with_one(key: &Key<'_>, value: Value<'static>) -> (Keyspace<()>, Gates, Gate) {
    let (space, gates) = (Keyspace::<()>::new(DATABASES), Gates::new());
    let gate = gates.register();
    let inside = gate.enter();
    let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
    locked.insert(0, key, value, None);
    drop(locked);
    drop(inside);
    (space, gates, gate)
}

/// Changes the entry of a key.
fn change(space: &Keyspace<()>, gate: &Gate, key: &Key<'_>, action: impl FnOnce(EntryMut<'_>)) {
    let inside = gate.enter();
    let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
    action(locked.find_mut(0, key).unwrap());
}

/// All that is left of a walk.
fn rest(mut walker: Walker<'_, ()>, gate: &Gate) -> Entries {
    let mut collector = Collector::default();
    while walker.step(Access::Gate(gate), &mut collector) != WalkProgress::Finished {}
    collector.entries
}

#[test]
fn a_large_string_is_changed_where_it_lies_while_it_is_walked() {
    let key = Key::new(b"key");
    let before = vec![b'x'; 2_000_000];
    let value = Value::String(StringValue::Shared(Arc::new(before.clone())));
    let (space, gates, gate) = with_one(&key, value);
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    let mut collector = Collector::default();
    let mut places = Vec::new();
    for round in 0..10 {
        change(&space, &gate, &key, |mut entry| {
            let bytes = entry.string_range_mut(2_000_000 + round, 1_000_000..1_000_005).unwrap();
            bytes.copy_from_slice(b"after");
            places.push(bytes.as_ptr());
        });
        walker.step(Access::Gate(&gate), &mut collector);
    }
    assert!(places.windows(2).skip(1).all(|pair| pair[0] == pair[1]), "it was not copied");
    assert!((1..100_000).contains(&space.cut_memory()), "and only a little of it was saved");
    while walker.step(Access::Gate(&gate), &mut collector) != WalkProgress::Finished {}
    assert_eq!(space.cut_memory(), 0);
    drop(walker);
    let shown = collector.entries.remove(&(0, b"key".to_vec()));
    assert!(shown == Some((None, Content::Text(before))), "it was shown as it was");
}

#[test]
fn a_large_field_is_lent_to_a_walk_and_not_copied() {
    let key = Key::new(b"key");
    let mut hash = Hash::new();
    for field in [&b"later"[..], b"gone", b"other"] {
        hash.set_timed(field, &vec![field[0]; 500_000], Some(5), LIMITS);
    }
    let (space, gates, gate) = with_one(&key, Value::Hash(hash.clone()));
    let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    let hash_of = |entry: EntryMut<'_>, action: &mut dyn FnMut(&mut Hash)| {
        let ValueMut::Hash(hash) = entry.into_value_mut() else { panic!("it is a hash") };
        action(hash);
    };
    change(&space, &gate, &key, |entry| {
        hash_of(entry, &mut |hash| hash.set_expire_at(b"later", Some(9)));
    });
    assert!(space.cut_memory() < 10_000, "a time is changed where it lies");
    change(&space, &gate, &key, |entry| {
        hash_of(entry, &mut |hash| {
            assert!(hash.remove(b"gone"));
            assert!(!hash.set_timed(b"other", &[b'n'; 500_000], Some(5), LIMITS));
            assert!(hash.get(b"other").is_some_and(|value| value.equals(&[b'n'; 500_000])));
        });
    });
    let kept = space.cut_memory();
    assert!((1_000_000..1_600_000).contains(&kept), "{kept} bytes");
    let shown = rest(walker, &gate).remove(&(0, b"key".to_vec()));
    assert_eq!(shown, Some((None, pieces_of(ValueRef::Hash(&hash)))));
    assert_eq!(space.cut_memory(), 0);
    change(&space, &gate, &key, |entry| {
        hash_of(entry, &mut |hash| {
            hash.check();
            assert_eq!(hash.len(), 2);
        });
    });
}

#[test]
fn what_was_lent_to_a_walk_that_is_given_up_is_freed() {
    let key = Key::new(b"key");
    let mut set = Set::new();
    (0..5).for_each(|n| assert!(set.add(&[n; 200_000], SET_LIMITS)));
    let (space, gates, gate) = with_one(&key, Value::Set(set));
    let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    let remove = |member: u8| {
        change(&space, &gate, &key, |entry| {
            let ValueMut::Set(set) = entry.into_value_mut() else { panic!("it is a set") };
            assert!(set.remove(&[member; 200_000]));
        });
    };
    remove(0);
    let memory = Arc::clone(&space.cut().unwrap().memory);
    assert!(memory.bytes() >= 200_000);
    drop(walker);
    assert_eq!(memory.bytes(), 0);
    (1..5).for_each(remove);
}

#[test]
#[cfg_attr(miri, ignore = "much copying")]
fn removed_entries_count_until_written_and_let_writers_go_on() {
    let text = |bytes: usize| Value::String(StringValue::Shared(Arc::new(vec![0; bytes])));
    let mut list = List::new();
    let limits = ListLimits::new(-2, 1024);
    (0..2000).for_each(|_| list.push(End::Back, &[b'x'; 100][..], &limits));
    let mut set = Set::new();
    (0..2000_u32).for_each(|n| assert!(set.add(&[n.to_le_bytes(); 25].concat(), SET_LIMITS)));
    let values: [(&[u8], Value<'static>, usize); 4] = [
        (b"text", text(14_000), 14_000),
        (b"long text", text(CUT_MEMORY_MAX + 1), CUT_MEMORY_MAX),
        (b"list", Value::List(list), 200_000),
        (b"set", Value::Set(set), 200_000),
    ];
    for (name, value, bytes) in values {
        let key = Key::new(name);
        let (space, gates, gate) = with_one(&key, value);
        let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
        {
            let inside = gate.enter();
            let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
            drop(locked.remove(0, &key).unwrap());
        }
        let kept = space.cut_memory();
        assert!((bytes..bytes + bytes / 2).contains(&kept), "{kept} of {bytes} bytes");
        assert!(!space.cut_is_behind());
        let memory = Arc::clone(&space.cut().unwrap().memory);
        if bytes < CUT_MEMORY_MAX {
            assert_eq!(rest(walker, &gate).len(), 1);
        } else {
            drop(walker);
        }
        assert_eq!(memory.bytes(), 0, "{}", name.escape_ascii());
    }
}

#[test]
#[cfg_attr(miri, ignore = "much copying")]
fn writers_wait_when_copies_exceed_the_bound() {
    let (space, gates) = (Keyspace::<()>::new(DATABASES), Gates::new());
    let gate = gates.register();
    let key = |number: u32| format!("key:{number}").into_bytes();
    let each = |action: &mut dyn FnMut(&mut LockedSlots<'_, ()>, &Key<'_>)| {
        for number in 0..5000 {
            let (name, inside) = (key(number), gate.enter());
            let key = Key::new(&name);
            let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
            action(&mut locked, &key);
        }
    };
    let value = [b'x'; 14_000];
    each(&mut |locked, key| {
        locked.insert(0, key, Value::String(StringValue::from_bytes(&value)), None);
    });
    let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    each(&mut |locked, key| assert!(locked.find_mut(0, key).is_some()));
    assert!(space.cut_is_behind());
    walker.bear(100 << 20);
    assert!(!space.cut_is_behind());
    walker.bear(0);
    assert!(!space.cut_is_behind(), "it does not become less");
    drop(walker);
}

#[test]
fn a_string_that_is_replaced_counts_and_one_that_is_changed_does_not() {
    let key = Key::new(b"key");
    let text = || Value::String(StringValue::Shared(Arc::new(vec![0; 2_000_000])));
    let (space, gates, gate) = with_one(&key, text());
    let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    change(&space, &gate, &key, |mut entry| {
        entry.string_range_mut(2_000_000, 0..1).unwrap()[0] = 1;
    });
    assert!(space.cut_memory() < 100_000, "it is read where it lies");
    change(&space, &gate, &key, |mut entry| drop(entry.replace(text(), None)));
    assert!((2_000_000..2_100_000).contains(&space.cut_memory()));
    change(&space, &gate, &key, |mut entry| drop(entry.replace(text(), None)));
    assert!((2_000_000..2_100_000).contains(&space.cut_memory()), "what came later does not count");
    let memory = Arc::clone(&space.cut().unwrap().memory);
    assert_eq!(rest(walker, &gate).len(), 1);
    assert_eq!(memory.bytes(), 0);
}

#[test]
fn a_table_that_becomes_a_listpack_is_walked_to_its_end() {
    let key = Key::new(b"key");
    let mut set = Set::new();
    let name = |n: u32| format!("member:{n}").into_bytes();
    (0..500).for_each(|n| assert!(set.add(&name(n), SET_LIMITS)));
    assert!(set.add(&[7; 50_000], SET_LIMITS));
    let wanted = pieces_of(ValueRef::Set(&set));
    let (space, gates, gate) = with_one(&key, Value::Set(set));
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    let mut collector = Collector::default();
    change(&space, &gate, &key, |entry| {
        let ValueMut::Set(set) = entry.into_value_mut() else { panic!("it is a set") };
        assert!((5..500).all(|n| set.remove(&name(n))) && set.remove(&[7; 50_000]));
        set.repack(SetLimits { integers: 0, listpack: Limits { entries: 8, value: 64 } });
        assert_eq!(set.encoding(), "listpack");
    });
    let finished = (0..1000)
        .any(|_| walker.step(Access::Gate(&gate), &mut collector) == WalkProgress::Finished);
    assert!(finished, "nobody looks for the table for ever");
    assert_eq!(collector.entries.remove(&(0, b"key".to_vec())), Some((None, wanted)));
    assert_eq!(space.cut_memory(), 0);
}

/// Notes where the large values that are shown lie.
struct Positions<'k> {
    walkers: &'k Gate,
    at: Vec<*const u8>,
}

impl Positions<'_> {
    fn note(&mut self, text: &[u8]) {
        assert!(!self.walkers.is_entered(), "gates can be closed meanwhile");
        self.at.push(text.as_ptr());
    }
}

/// The values of a hash that are no numbers.
fn large_values(hash: &Hash) -> Vec<&[u8]> {
    hash.iter()
        .filter_map(|(_, value, _)| match value {
            Element::Str(text) => Some(text),
            Element::Int(_) => None,
        })
        .collect()
}

impl Sink for Positions<'_> {
    fn entry(&mut self, _: &Head<'_>, value: ValueRef<'_>) {
        let ValueRef::Hash(hash) = value else { panic!("it is a hash") };
        large_values(hash).into_iter().for_each(|text| self.note(text));
    }

    fn begin(&mut self, _: &Head<'_>, _: PieceKind, _: usize) {}

    fn piece(&mut self, piece: Piece<'_>) {
        let Piece::Field(_, value, _) = piece else { panic!("it is a field") };
        self.note(value);
    }

    fn end(&mut self) {}

    fn begin_text(&mut self, _: &Head<'_>, _: usize) {}

    fn text(&mut self, _: &[u8]) {}

    fn end_text(&mut self) {}
}

#[test]
fn tables_moved_into_the_cut_are_shown_where_they_lie() {
    let (packed_key, table_key) = (Key::new(b"{k}:packed"), Key::new(b"{k}:table"));
    let (mut packed, mut table) = (Hash::new(), Hash::new());
    packed.set(b"field", &[b'x'; 200_000], ROOMY);
    for n in 0..5 {
        table.set(format!("field:{n}").as_bytes(), &[b'x'; 200_000], LIMITS);
    }
    let (space, gates, gate) = with_one(&packed_key, Value::Hash(packed));
    let mut wanted = Vec::new();
    {
        let inside = gate.enter();
        let mut locked = space.try_lock_one(inside.pinned(), table_key.slot, 0).unwrap();
        locked.insert(0, &table_key, Value::Hash(table), None);
        for key in [&packed_key, &table_key] {
            let Some(ValueRef::Hash(hash)) = locked.find(0, key).map(Entry::value) else {
                panic!()
            };
            wanted.extend(large_values(hash).into_iter().map(<[u8]>::as_ptr));
        }
    }
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    assert_eq!(space.take_all(&gates.stop_the_world(), 0).len(), 0, "the walker has it");
    let mut sink = Positions { walkers: &gate, at: Vec::new() };
    while walker.step(Access::Gate(&gate), &mut sink) != WalkProgress::Finished {}
    sink.at.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(sink.at, wanted);
}

#[test]
fn a_set_that_took_the_place_of_what_was_taken_away_is_read_to_its_end() {
    let key = Key::new(b"key");
    let mut set = Set::new();
    (0..500).for_each(|n| assert!(set.add(format!("member:{n}").as_bytes(), SET_LIMITS)));
    let members = pieces_of(ValueRef::Set(&set));
    let text = Value::String(StringValue::Plain(b"text".as_slice().into()));
    let (space, gates, gate) = with_one(&key, text);
    let with_slot = |action: &mut dyn FnMut(&mut LockedSlots<'_, ()>)| {
        let inside = gate.enter();
        action(&mut space.try_lock_one(inside.pinned(), key.slot, 0).unwrap());
    };
    let mut set = Some(Value::Set(set));
    with_slot(&mut |locked| {
        locked.insert(1, &key, set.take().unwrap(), None);
    });
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    let mut collector = Collector::default();
    with_slot(&mut |locked| {
        let entry = locked.find_mut(1, &key).unwrap();
        let ValueMut::Set(set) = entry.into_value_mut() else { panic!("it is a set") };
        assert!(set.remove(b"member:7"));
    });
    // The text is removed, the set takes its place while it is read, and is removed too.
    assert_eq!(space.take_all(&gates.stop_the_world(), 0).len(), 0);
    walker.step(Access::Gate(&gate), &mut collector);
    assert!(collector.open.is_some());
    with_slot(&mut |locked| {
        let value = locked.remove(1, &key).unwrap().into_value();
        locked.note_placed(0, &key, &value);
        locked.insert(0, &key, value, None);
    });
    assert_eq!(
        space.take_all(&gates.stop_the_world(), 0).len(),
        1,
        "the walker needs no table twice"
    );
    let finished = (0..1000)
        .any(|_| walker.step(Access::Gate(&gate), &mut collector) == WalkProgress::Finished);
    assert!(finished, "the set is found");
    let name = b"key".to_vec();
    let text = Content::Text(b"text".to_vec());
    let wanted = Entries::from([((0, name.clone()), (None, text)), ((1, name), (None, members))]);
    assert_eq!(collector.entries, wanted);
}

mod fields;
mod order;
mod taken;
