//! The keyspace against a model, with locks taken in each of the ways; and its locks under threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::entry::{Entry, Value};
use crate::locks::gate::{Gate, Gates};
use crate::{Hash, Limits, Set, SetLimits, StringRef, StringValue, ValueMut, ValueRef};

const DATABASES: usize = 3;
const CLOCK: u64 = 1_000_000;
/// Sets beyond four members, or with a text among them, become tables.
const LIMITS: Limits = Limits { entries: 4, value: 64 };

/// Sets of texts are tables from the first member on.
const SET_LIMITS: SetLimits =
    SetLimits { integers: LIMITS.entries, listpack: Limits { entries: 0, value: 0 } };

/// The value of a key: enough kinds for every way in which an entry owns its value.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    Text(Vec<u8>),
    Members(BTreeSet<Vec<u8>>),
    /// The fields of a hash, and when they expire.
    Fields(BTreeMap<Vec<u8>, Option<u64>>),
}

impl Content {
    fn value(&self) -> Value<'static> {
        match self {
            Content::Text(bytes) if bytes.len() % 7 == 3 => {
                Value::String(StringValue::Shared(Arc::new(bytes.clone())))
            }
            Content::Text(bytes) => Value::String(StringValue::Plain(bytes.clone().into())),
            Content::Members(members) => {
                let mut set = Set::new();
                for member in members {
                    set.add(member, SET_LIMITS);
                }
                Value::Set(set)
            }
            Content::Fields(fields) => {
                let mut hash = Hash::new();
                for (field, at) in fields {
                    hash.set_timed(field, b"value", *at, LIMITS);
                }
                Value::Hash(hash)
            }
        }
    }

    /// When the first field expires.
    fn expiry(&self) -> Option<u64> {
        match self {
            Content::Fields(fields) => fields.values().flatten().min().copied(),
            _ => None,
        }
    }

    fn of(value: ValueRef<'_>) -> Content {
        match value {
            ValueRef::String(string) => Content::Text(string.bytes().to_vec()),
            ValueRef::Set(set) => {
                Content::Members(set.iter().map(|member| member.to_vec()).collect())
            }
            ValueRef::Hash(hash) => {
                Content::Fields(hash.iter().map(|(field, _, at)| (field.to_vec(), at)).collect())
            }
            other => panic!("nobody stored a {}", other.type_name()),
        }
    }
}

/// A key. There are few slots, so that tables fill, and few names, so that keys occur repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    database: usize,
    tag: u8,
    number: u16,
}

impl Name {
    fn bytes(self) -> Vec<u8> {
        let padding = if self.number.is_multiple_of(10) { 300 } else { 0 };
        format!("{{{}}}{:x<2$}", self.tag, self.number, padding).into_bytes()
    }

    fn slot(self) -> u16 {
        base::crc::key_slot(&self.bytes())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(Name, Content, Option<u64>),
    FindOrPut(Name, Content),
    Grow(Name, Vec<u8>),
    Expire(Name, Option<u64>),
    /// Deletes keys that have expired at a time, after a look at this many entries.
    DeleteExpired(Name, u64, usize),
    Remove(Name),
    Swap(usize, usize),
    TakeAll(usize),
    Floor(u64),
}

fn name() -> impl Strategy<Value = Name> {
    (0..DATABASES, 0u8..4, 0u16..60).prop_map(|(database, tag, number)| Name {
        database,
        tag,
        number,
    })
}

fn content() -> impl Strategy<Value = Content> {
    let member = "[0-9]{1,3}|[a-c]{1,20}".prop_map(String::into_bytes);
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Content::Text),
        1 => prop::collection::btree_set(member.clone(), 1..12).prop_map(Content::Members),
        1 => prop::collection::btree_map(member, expiry(), 1..12).prop_map(Content::Fields),
    ]
}

fn expiry() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(1u64..1000)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (name(), content(), expiry()).prop_map(|(name, content, at)| Step::Put(name, content, at)),
        20 => (name(), content()).prop_map(|(name, content)| Step::FindOrPut(name, content)),
        10 => (name(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(name, added)| Step::Grow(name, added)),
        15 => (name(), expiry()).prop_map(|(name, at)| Step::Expire(name, at)),
        15 => (name(), 1u64..600, prop_oneof![1usize..10, Just(usize::MAX)])
            .prop_map(|(name, now, entries)| Step::DeleteExpired(name, now, entries)),
        20 => name().prop_map(Step::Remove),
        2 => (0..DATABASES, 0..DATABASES).prop_map(|(one, other)| Step::Swap(one, other)),
        1 => (0..DATABASES).prop_map(Step::TakeAll),
        1 => (CLOCK / 2..CLOCK * 2).prop_map(Step::Floor),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    content: Content,
    expire_at: Option<u64>,
    version: u64,
}

/// The keyspace and its expected contents.
struct Rig {
    keyspace: Keyspace<u32>,
    gates: Gates,
    gate: Gate,
    model: BTreeMap<Name, Known>,
    /// The last version that each slot gave.
    versions: BTreeMap<u16, u64>,
    floor: u64,
    steps: usize,
}

impl Rig {
    fn new() -> Rig {
        let gates = Gates::new();
        Rig {
            keyspace: Keyspace::new(DATABASES),
            gate: gates.register(),
            gates,
            model: BTreeMap::new(),
            versions: BTreeMap::new(),
            floor: 0,
            steps: 0,
        }
    }

    /// Holds a slot, in each of the three ways in turn, and acts on the model as well.
    fn act<T>(
        &mut self,
        name: Name,
        act: impl FnOnce(&mut LockedSlots<'_, u32>, &Key<'_>, &mut BTreeMap<Name, Known>) -> T,
    ) -> T {
        let bytes = name.bytes();
        let key = Key::new(&bytes);
        self.steps += 1;
        let Rig { keyspace, gates, gate, model, .. } = self;
        match self.steps % 3 {
            0 => {
                let inside = gate.enter();
                let locked = keyspace.try_lock_slots(inside.pinned(), &[key.slot], CLOCK);
                act(&mut locked.expect("nobody holds it"), &key, model)
            }
            1 => {
                let reservation = keyspace.reserve();
                let inside = gate.enter();
                let locked = keyspace.try_lock_all(inside.pinned(), &reservation, CLOCK);
                act(&mut locked.expect("nobody holds any"), &key, model)
            }
            _ => {
                let stopped = gates.stop_the_world();
                let mut locked = keyspace.all_slots(&stopped, CLOCK);
                act(&mut locked, &key, model)
            }
        }
    }

    /// Notes a version that a slot gave: it is above all before it.
    fn note_version(&mut self, name: Name, version: u64) {
        let last = self.versions.entry(name.slot()).or_default();
        assert!(version > *last && version > CLOCK && version > self.floor);
        *last = version;
    }

    fn put(&mut self, name: Name, content: Content, expire_at: Option<u64>) {
        let version = self.act(name, |locked, key, model| {
            let value = content.value();
            let version = if model.contains_key(&name) {
                let version = locked.next_version(key.slot);
                let mut entry = locked.find_mut(name.database, key).expect("the model has it");
                drop(entry.replace(value, expire_at));
                entry.set_version(version);
                version
            } else {
                locked.insert(name.database, key, value, expire_at).version()
            };
            model.insert(name, Known { content, expire_at, version });
            version
        });
        self.note_version(name, version);
    }

    fn find_or_put(&mut self, name: Name, content: Content) {
        let version = self.act(name, |locked, key, model| {
            let version = locked.next_version(key.slot);
            let (mut entry, added) = locked.find_or_insert(name.database, key, || content.value());
            assert_eq!(added, !model.contains_key(&name));
            entry.set_version(version);
            let known = model.entry(name).or_insert(Known { content, expire_at: None, version });
            known.version = version;
            version
        });
        self.note_version(name, version);
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Put(name, content, expire_at) => self.put(name, content, expire_at),
            Step::FindOrPut(name, content) => self.find_or_put(name, content),
            Step::Grow(name, added) => self.act(name, |locked, key, model| {
                let entry = locked.find_mut(name.database, key);
                let (Some(mut entry), Some(known)) = (entry, model.get_mut(&name)) else { return };
                match &mut known.content {
                    Content::Text(bytes) => {
                        let old = bytes.len();
                        bytes.extend_from_slice(&added);
                        let position = entry.string_mut(bytes.len()).expect("it is a string");
                        position[old..].copy_from_slice(&added);
                    }
                    Content::Members(members) => {
                        let ValueMut::Set(set) = entry.value_mut() else { panic!("it is a set") };
                        assert_eq!(set.add(&added, SET_LIMITS), members.insert(added));
                    }
                    Content::Fields(fields) => {
                        let ValueMut::Hash(hash) = entry.value_mut() else {
                            panic!("it is a hash")
                        };
                        let at = Some(added.len() as u64 * 20).filter(|at| at % 3 > 0);
                        hash.set_timed(&added, b"value", at, LIMITS);
                        entry.note_fields();
                        fields.insert(added, at);
                    }
                }
            }),
            Step::Expire(name, at) => self.act(name, |locked, key, model| {
                let entry = locked.find_mut(name.database, key);
                assert_eq!(entry.is_some(), model.contains_key(&name));
                let (Some(mut entry), Some(known)) = (entry, model.get_mut(&name)) else { return };
                entry.set_expire_at(at);
                known.expire_at = at;
            }),
            Step::DeleteExpired(name, now, entries) => self.act(name, |locked, key, model| {
                delete_expired_keys(locked, key, model, name, now, entries);
            }),
            Step::Remove(name) => self.act(name, |locked, key, model| {
                let removed = locked.remove(name.database, key);
                let known = model.remove(&name);
                assert_eq!(removed.is_some(), known.is_some());
                let (Some(removed), Some(known)) = (removed, known) else { return };
                assert_eq!(removed.entry().key(), key.bytes);
                // A value that leaves its entry outlives it.
                let version = removed.entry().version();
                assert_eq!(version, known.version);
                drop(removed.into_value());
            }),
            Step::Swap(one, other) => {
                self.keyspace.swap(&self.gates.stop_the_world(), one, other);
                let model = std::mem::take(&mut self.model).into_iter().map(|(name, known)| {
                    let database = match name.database {
                        database if database == one => other,
                        database if database == other => one,
                        database => database,
                    };
                    (Name { database, ..name }, known)
                });
                self.model = model.collect();
            }
            Step::TakeAll(database) => {
                let taken = self.keyspace.take_all(&self.gates.stop_the_world(), database);
                let before = self.model.len();
                self.model.retain(|name, _| name.database != database);
                let taken: usize = taken.iter().map(SlotTable::len).sum();
                assert_eq!(taken, before - self.model.len());
            }
            Step::Floor(floor) => {
                self.keyspace.raise_floor(floor);
                self.floor = self.floor.max(floor);
            }
        }
    }

    /// Everything that reads, against the model.
    fn check(&self) {
        for database in 0..DATABASES {
            let known = || self.model.iter().filter(|(name, _)| name.database == database);
            let expiring = known().filter(|(_, known)| known.expire_at.is_some()).count();
            let slots: BTreeSet<u16> = known().map(|(name, _)| name.slot()).collect();
            assert_eq!(self.keyspace.len(database), known().count());
            assert_eq!(self.keyspace.is_empty(database), slots.is_empty());
            assert_eq!(self.keyspace.expires(database), expiring);
            let timed = known().filter(|(_, known)| known.content.expiry().is_some()).count();
            assert_eq!(self.keyspace.field_expires(database), timed);
            assert!(self.keyspace.occupied(database).eq(slots.iter().copied()));
            match self.keyspace.random_slot(database) {
                Some(slot) => assert!(slots.contains(&slot)),
                None => assert!(slots.is_empty()),
            }
            for &slot in &slots {
                self.check_slot(database, slot);
            }
        }
    }

    fn check_slot(&self, database: usize, slot: u16) {
        let inside = self.gate.enter();
        let locked = self.keyspace.try_lock_slots(inside.pinned(), &[slot], CLOCK);
        let locked = locked.expect("nobody holds it");
        let table = locked.table(database, slot).expect("the slot is occupied");
        let mut left: BTreeMap<_, _> = self
            .model
            .iter()
            .filter(|(name, _)| name.database == database && name.slot() == slot)
            .map(|(name, known)| (name.bytes(), known))
            .collect();
        assert_eq!(table.len(), left.len());
        assert_eq!(self.keyspace.slot_len(database, slot), left.len());
        let times = left.values().filter_map(|known| known.expire_at);
        assert_eq!(table.expires(), times.clone().count());
        assert_eq!(self.keyspace.slot_expires(database, slot), times.clone().count());
        let times = times.chain(left.values().filter_map(|known| known.content.expiry()));
        assert!(times.min().is_none_or(|first| table.next_expiry() <= first));
        let drawn = table.random().expect("the slot is occupied");
        assert!(left.contains_key(drawn.key()));

        let mut position = Some(0);
        while let Some(at) = position {
            position = table.walk(at, |entry| {
                let known = left.remove(entry.key()).expect("known, and met once");
                assert_eq!(Content::of(entry.value()), known.content);
                assert_eq!(entry.expire_at(), known.expire_at);
                assert_eq!(entry.version(), known.version);
                let found = locked.find(database, &Key::new(entry.key())).expect("it was met");
                assert_eq!(found.key().as_ptr(), entry.key().as_ptr());
            });
        }
        assert!(left.is_empty(), "a walk meets every key");
    }
}

/// Takes a step of a look for expired keys, and deletes those that it shows.
fn delete_expired_keys(
    locked: &mut LockedSlots<'_, u32>,
    key: &Key<'_>,
    model: &mut BTreeMap<Name, Known>,
    name: Name,
    now: u64,
    entries: usize,
) {
    let in_slot = |other: &Name| (other.database, other.tag) == (name.database, name.tag);
    let table = locked.table_mut(name.database, key.slot);
    let is_whole = table.looking.is_none();
    let mut expiry: Vec<Box<[u8]>> = Vec::new();
    let look = table.look_for_expired(now, entries, |entry| expiry.push(entry.key().into()));
    assert!(look.finished || look.entries >= entries);
    let mut emptied = false;
    for bytes in expiry {
        let key = Key::new(&bytes);
        let known = model.iter_mut().find(|(other, _)| in_slot(other) && *other.bytes() == *bytes);
        let (&shown, known) = known.expect("what is shown is there");
        let is_over = known.expire_at.is_some_and(|at| at < now);
        let is_empty = !is_over && remove_expired_fields(locked, &key, shown.database, known, now);
        // The hash's own expiry lies in the future, so the expiry of its fields was looked at.
        emptied |= is_empty && known.expire_at.is_some();
        if is_over || is_empty {
            assert!(locked.remove(shown.database, &key).is_some());
            model.remove(&shown);
        }
    }
    if look.finished && is_whole {
        let times = model.iter().filter(|(other, _)| in_slot(other));
        let first = times.flat_map(|(_, known)| [known.expire_at, known.content.expiry()]);
        let first = first.flatten().min();
        assert!(first.is_none_or(|first| first >= now), "all that were due are gone");
        let next = locked.table_mut(name.database, key.slot).next_expiry();
        let first = first.unwrap_or(u64::MAX);
        assert!(next == first || (emptied && next < first), "{next} is told, and it is {first}");
    }
}

/// Removes the fields of a hash that have expired. Returns whether none is left.
fn remove_expired_fields(
    locked: &mut LockedSlots<'_, u32>,
    key: &Key<'_>,
    database: usize,
    known: &mut Known,
    now: u64,
) -> bool {
    let Content::Fields(fields) = &mut known.content else { panic!("only hashes have fields") };
    let mut entry = locked.find_mut(database, key).expect("what is shown is there");
    let ValueMut::Hash(hash) = entry.value_mut() else { panic!("it is a hash") };
    let expiry = hash.expired(now, usize::MAX);
    assert!(!expiry.is_empty() && expiry.iter().all(|field| hash.remove(field)));
    entry.note_fields();
    fields.retain(|_, at| at.is_none_or(|at| at >= now));
    fields.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn behaves_as_a_map_for_each_database(steps in prop::collection::vec(step(), 1..400)) {
        let mut rig = Rig::new();
        for (count, step) in steps.into_iter().enumerate() {
            rig.apply(step);
            if count % 40 == 0 {
                rig.check();
            }
        }
        rig.check();
    }
}

#[test]
fn slots_are_locked_all_or_none() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slots: &[u16]| keyspace.try_lock_slots(inside.pinned(), slots, CLOCK);
    let locked = try_lock_slots(&[3, 7]).expect("nobody else is there");
    assert!(locked.contains(3) && locked.contains(7) && !locked.contains(4));
    assert!(try_lock_slots(&[1, 5, 7, 9]).is_none());
    drop(try_lock_slots(&[1, 5, 9]).expect("the failed attempt let go of 1 and 5"));
    let detached = locked.detach();
    assert!(try_lock_slots(&[7]).is_none(), "locks on their way are locks");
    drop(keyspace.attach(inside.pinned(), detached));
    drop(try_lock_slots(&[3, 7]).expect("unlocked again"));
}

#[test]
fn slots_are_added_in_any_order_or_missed() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slots: &[u16]| keyspace.try_lock_slots(inside.pinned(), slots, CLOCK);
    let (locked, other) = (try_lock_slots(&[7]).unwrap(), try_lock_slots(&[5]).unwrap());
    assert!(
        locked.try_acquire(9, None) && locked.try_acquire(3, None) && locked.try_acquire(9, None)
    );
    assert!(locked.contains(3) && locked.contains(9) && locked.missed().is_none());
    assert!(!locked.try_acquire(5, None) && locked.missed() == Some(5) && !locked.contains(5));
    assert!(try_lock_slots(&[3]).is_none() && try_lock_slots(&[9]).is_none());
    drop(locked);
    drop(try_lock_slots(&[3, 7, 9]).expect("what was added is unlocked as well"));
    drop(other);
}

#[test]
fn newcomers_cannot_lock_reserved_slots() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slots: &[u16]| keyspace.try_lock_slots(inside.pinned(), slots, CLOCK);
    let (first, second) = (keyspace.reserve(), keyspace.reserve());
    assert!(first.is_first() && !second.is_first());
    let reserved = |own: &Reservation, slots: &[u16]| {
        keyspace.try_lock_reserved(inside.pinned(), own, slots, CLOCK)
    };
    let holder = try_lock_slots(&[5]).unwrap();
    assert!(reserved(&first, &[3, 5, 7]).is_none());
    drop(try_lock_slots(&[3, 7]).expect("only what was found locked is reserved"));
    drop(holder);
    assert!(
        try_lock_slots(&[5]).is_none() && try_lock_slots(&[4, 5]).is_none(),
        "the slot is reserved"
    );
    let brief = keyspace.try_lock_briefly(inside.pinned(), 5, CLOCK);
    drop(brief.expect("a snapshot goes on, even while nobody can use the reservation"));
    assert!(keyspace.is_busy(5, None) && !keyspace.is_busy(5, Some(&first)));
    let locked = reserved(&first, &[3, 5, 7]).expect("all are free for whoever has reserved them");
    drop(first);
    assert!(try_lock_slots(&[5]).is_none() && second.is_first());
    drop(locked);
    drop(try_lock_slots(&[5]).expect("neither locked nor reserved"));
    drop(keyspace.try_lock_all(inside.pinned(), &second, CLOCK).expect("all are free"));
    drop((second, keyspace.reserve()));
    assert!(keyspace.reserve().is_first(), "who has gone away is before nobody");
}

#[test]
fn a_command_reserves_each_slot_that_it_finds_locked() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slot| keyspace.try_lock_slots(inside.pinned(), &[slot], CLOCK);
    let reservation = keyspace.reserve();
    for holder in (0..20).map_while(try_lock_slots) {
        assert!(keyspace.try_lock_all(inside.pinned(), &reservation, CLOCK).is_none());
        drop(holder);
    }
    assert!(try_lock_slots(16_383).is_none());
    drop(keyspace.try_lock_all(inside.pinned(), &reservation, CLOCK).expect("all are free"));
    drop(reservation);
    drop(try_lock_slots(16_383).expect("nobody keeps it"));
}

/// One command needs all slots while a long command holds one: commands that do not need the same
/// slot do not wait.
#[test]
fn a_slot_locked_for_long_keeps_nobody_from_other_slots() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slot| keyspace.try_lock_slots(inside.pinned(), &[slot], CLOCK);
    let reservation = keyspace.reserve();
    let try_lock_all = || keyspace.try_lock_all(inside.pinned(), &reservation, CLOCK);
    let long = try_lock_slots(500).expect("it is free");
    for _ in 0..1000 {
        assert!(try_lock_all().is_none());
        reservation.note_locked(500);
        drop(try_lock_slots(16_383).expect("it is free"));
    }
    // Also where many other slots were in the way before.
    drop(long);
    for holder in (0..20).map_while(try_lock_slots) {
        assert!(try_lock_all().is_none());
        drop(holder);
    }
    let long = keyspace.try_lock_briefly(inside.pinned(), 500, CLOCK).expect("it is free");
    assert!(try_lock_all().is_none() && try_lock_slots(16_383).is_none());
    let tries = (0..10_000).take_while(|_| try_lock_all().is_none() && try_lock_slots(7).is_none());
    assert!(tries.count() < 1000, "all are kept for nothing");
    drop(try_lock_slots(16_383).expect("it is free"));
    drop(long);
    assert!(try_lock_slots(500).is_none());
    drop(try_lock_all().expect("all are free"));
}

/// The worker of a command that has reserved a slot may be busy with something else for seconds.
#[test]
fn a_reservation_that_nobody_uses_keeps_nobody_away() {
    let keyspace = Keyspace::<()>::new(1);
    let gate = Gates::new().register();
    let inside = gate.enter();
    let try_lock_slots = |slot| keyspace.try_lock_slots(inside.pinned(), &[slot], CLOCK);
    let reservation = keyspace.reserve();
    let try_reserved = || keyspace.try_lock_reserved(inside.pinned(), &reservation, &[5], CLOCK);
    let holder = try_lock_slots(5);
    assert!(try_reserved().is_none());
    drop(holder);
    assert!(try_lock_slots(5).is_none());
    keyspace.reserved.lapse();
    assert!(!keyspace.is_busy(5, None));
    let holder = try_lock_slots(5).expect("nobody else wants it now");
    assert!(try_reserved().is_none());
    drop(holder);
    assert!(try_lock_slots(5).is_none(), "it is wanted again");
    drop(try_reserved().expect("it is free"));
}

#[test]
#[should_panic(expected = "did not name")]
fn a_command_cannot_touch_what_it_did_not_name() {
    let keyspace = Keyspace::<()>::new(1);
    let key = Key::new(b"somewhere");
    let gate = Gates::new().register();
    let inside = gate.enter();
    let locked = keyspace.try_lock_slots(inside.pinned(), &[key.slot ^ 1], CLOCK);
    locked.expect("nobody else is there").find(0, &key);
}

#[test]
fn attachments_belong_to_slots_and_not_to_databases() {
    let (keyspace, gates) = (Keyspace::<u32>::new(2), Gates::new());
    let gate = gates.register();
    let inside = gate.enter();
    let locked = keyspace.try_lock_slots(inside.pinned(), &[9], CLOCK);
    let mut locked = locked.expect("nobody else is there");
    assert!(locked.attachment(9).is_none());
    *locked.attachment_mut(9) = Some(Box::new(41));
    drop(locked);
    drop(inside);
    keyspace.swap(&gates.stop_the_world(), 0, 1);
    keyspace.take_all(&gates.stop_the_world(), 0);
    let inside = gate.enter();
    let locked = keyspace.try_lock_slots(inside.pinned(), &[9], CLOCK);
    let mut locked = locked.expect("nobody else is there");
    assert_eq!(locked.attachment_mut(9).take().as_deref(), Some(&41));
    assert!(locked.attachment(9).is_none());
}

#[test]
fn two_keyspaces_exchange_their_data() {
    let gates = Gates::new();
    let (own, mut other) = (Keyspace::<u32>::new(3), Keyspace::<u32>::new(3));
    let key = Key::new(b"key");
    let put = |keyspace: &Keyspace<u32>, database, text: &'static [u8], clock| {
        let gate = gates.register();
        let inside = gate.enter();
        let locked = keyspace.try_lock_slots(inside.pinned(), &[key.slot], clock);
        let mut locked = locked.expect("nobody else is there");
        *locked.attachment_mut(key.slot) = Some(Box::new(clock as u32));
        locked.insert(database, &key, Value::String(StringValue::Plain(text.into())), Some(7));
        locked.next_version(key.slot)
    };
    put(&own, 0, b"own", CLOCK);
    let newest = put(&own, 1, b"own", 2 * CLOCK);
    put(&other, 0, b"other", CLOCK);
    put(&other, 2, b"other", CLOCK);
    own.exchange(&gates.stop_the_world(), &mut other);
    let content = |keyspace: &Keyspace<u32>| {
        let gate = gates.register();
        let inside = gate.enter();
        let locked = keyspace.try_lock_slots(inside.pinned(), &[key.slot], CLOCK);
        let mut locked = locked.expect("nobody else is there");
        let texts = [0, 1, 2].map(|database| {
            let entry = locked.find(database, &key)?;
            match entry.value() {
                ValueRef::String(text) => Some(text.bytes().to_vec()),
                _ => None,
            }
        });
        (texts, locked.attachment(key.slot).copied(), locked.next_version(key.slot))
    };
    let (texts, attachment, version) = content(&own);
    assert_eq!(texts.map(|text| text.unwrap_or_default()), [&b"other"[..], b"", b"other"]);
    assert_eq!(attachment, Some(2 * CLOCK as u32), "it belongs to the slot");
    assert!(version > newest);
    let lengths = |keyspace: &Keyspace<u32>| [0, 1, 2].map(|index| keyspace.len(index));
    assert_eq!((lengths(&own), lengths(&other)), ([1, 0, 1], [1, 1, 0]));
    assert_eq!(own.expires(2), 1);
    let (texts, ..) = content(&other);
    assert_eq!(texts.map(|text| text.unwrap_or_default()), [&b"own"[..], b"own", b""]);
}

/// The amount under a key.
fn amount(locked: &LockedSlots<'_, ()>, key: &Key<'_>) -> i64 {
    match locked.find(0, key).map(Entry::value) {
        Some(ValueRef::String(StringRef::Int(amount))) => amount,
        other => panic!("an amount is an integer: {other:?}"),
    }
}

/// Moves amounts between two accounts at a time, like a command that names both.
fn move_amounts(keyspace: &Keyspace<()>, gates: &Gates, accounts: &[Vec<u8>], seed: u64) {
    let gate = gates.register();
    let mut rng = base::rng::Rng::from_seed(seed);
    let rounds = if cfg!(miri) { 12 } else { 1500 };
    for round in 0..rounds {
        let from = Key::new(&accounts[rng.index(accounts.len())]);
        let to = Key::new(&accounts[rng.index(accounts.len())]);
        if from.bytes == to.bytes {
            continue;
        }
        let slots = [from.slot.min(to.slot), from.slot.max(to.slot)];
        let slots = if slots[0] == slots[1] { &slots[..1] } else { &slots[..] };
        loop {
            let inside = gate.enter();
            if let Some(mut locked) = keyspace.try_lock_slots(inside.pinned(), slots, CLOCK) {
                let changes =
                    [(&from, -1), (&to, 1)].map(|(key, by)| (key, amount(&locked, key) + by));
                for (key, amount) in changes {
                    // Inserted anew at times, so that tables shrink and grow while other threads
                    // read.
                    let value = Value::String(StringValue::Int(amount));
                    if round % 3 == 0 {
                        drop(locked.remove(0, key));
                        locked.insert(0, key, value, None);
                    } else {
                        let mut entry = locked.find_mut(0, key).expect("accounts stay");
                        drop(entry.replace(value, None));
                    }
                }
                break;
            }
            drop(inside);
            thread::yield_now();
        }
    }
}

#[test]
fn sums_are_never_torn() {
    let (keyspace, gates) = (Keyspace::<()>::new(1), Gates::new());
    let accounts: Vec<_> = (0..8).map(|index| format!("account:{index}").into_bytes()).collect();
    for account in &accounts {
        let value = Value::String(StringValue::Int(100));
        keyspace.all_slots(&gates.stop_the_world(), CLOCK).insert(
            0,
            &Key::new(account),
            value,
            None,
        );
    }
    let sum = |locked: LockedSlots<'_, ()>| -> i64 {
        accounts.iter().map(|account| amount(&locked, &Key::new(account))).sum()
    };
    let moving = AtomicBool::new(true);
    thread::scope(|scope| {
        let (keyspace, gates, accounts) = (&keyspace, &gates, &accounts);
        let movers: Vec<_> = (1..=3)
            .map(|seed| scope.spawn(move || move_amounts(keyspace, gates, accounts, seed)))
            .collect();
        let (sum, moving) = (&sum, &moving);
        let by_exclusive = scope.spawn(move || {
            let gate = gates.register();
            while moving.load(Ordering::Relaxed) {
                let reservation = keyspace.reserve();
                let locked = std::iter::repeat_with(|| {
                    let inside = gate.enter();
                    let locked = keyspace.try_lock_all(inside.pinned(), &reservation, CLOCK);
                    locked.map(sum)
                });
                assert_eq!(locked.flatten().next(), Some(800));
                drop(reservation);
                thread::yield_now();
            }
        });
        let by_stopped_world = scope.spawn(move || {
            while moving.load(Ordering::Relaxed) {
                let stopped = gates.stop_the_world();
                assert_eq!(sum(keyspace.all_slots(&stopped, CLOCK)), 800);
                drop(stopped);
                thread::yield_now();
            }
        });
        let moved: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        moving.store(false, Ordering::Relaxed);
        assert!(moved.iter().all(Result::is_ok));
        assert!(by_exclusive.join().is_ok() && by_stopped_world.join().is_ok());
    });
    assert_eq!(sum(keyspace.all_slots(&gates.stop_the_world(), CLOCK)), 800);
    // SAFETY: no other thread is left.
    unsafe { crate::table::retire::collect(|| true) };
}
