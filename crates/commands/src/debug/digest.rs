//! DEBUG DIGEST: 20 bytes that are equal for equal data.
//!
//! The digest of a key mixes its name, its type and its value. Elements with an order are mixed in
//! one after another. Elements without an order (members of sets, fields of hashes, and the keys
//! themselves) are combined by exclusive or. The digest is the same as the reference's, so two
//! servers of either kind can be compared.

use sha1::{Digest as _, Sha1};
use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::{Entry, StreamId, ValueRef};

use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// Positions of a walk that are visited while a slot is locked.
const POSITIONS_PER_LOCK: usize = 256;

/// See the module's text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// Combines with data whose position does not matter.
    fn combine(&mut self, data: &[u8]) {
        let hash = Sha1::digest(data);
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Combines with data whose position matters.
    fn mix(&mut self, data: &[u8]) {
        self.combine(data);
        self.0 = Sha1::digest(self.0).into();
    }

    fn mix_element(&mut self, element: Element<'_>) {
        self.mix(element.as_bytes(&mut [0; INTEGER_TEXT_BYTES]));
    }

    /// 40 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Mixes in type, value and whether it expires, but not the key's name.
    pub(super) fn mix_value(&mut self, entry: Entry<'_>) {
        let kind: u32 = match entry.value() {
            ValueRef::String(_) => 0,
            ValueRef::List(_) => 1,
            ValueRef::Set(_) => 2,
            ValueRef::Zset(_) => 3,
            ValueRef::Hash(_) => 4,
            ValueRef::Stream(_) => 6,
        };
        self.mix(&kind.to_be_bytes());
        match entry.value() {
            ValueRef::String(string) => self.mix(&string.bytes()),
            ValueRef::List(list) => {
                list.iter().for_each(|item| self.mix_element(item.as_element()))
            }
            ValueRef::Set(set) => {
                for member in set {
                    self.combine(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES]));
                }
            }
            ValueRef::Hash(hash) => {
                for (field, value, expire_at) in hash {
                    let mut pair = Digest::default();
                    pair.mix_element(field);
                    pair.mix_element(value);
                    if expire_at.is_some() {
                        pair.combine(b"!!hexpire!!");
                    }
                    self.combine(&pair.0);
                }
            }
            ValueRef::Stream(stream) => {
                for entry in stream.range(StreamId::MIN, StreamId::MAX) {
                    self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                    for (name, value) in entry.fields {
                        self.mix_element(name);
                        self.mix_element(value);
                    }
                }
            }
            ValueRef::Zset(zset) => {
                for (member, score) in zset {
                    let mut pair = Digest::default();
                    let mut text = Vec::new();
                    base::num::write_shortest(&mut text, score);
                    pair.mix_element(member);
                    pair.mix(&text);
                    self.combine(&pair.0);
                }
            }
        }
        if entry.expire_at().is_some() {
            self.combine(b"!!expire!!");
        }
    }
}

/// The digest of all databases. Each slot is looked at on its own, so it may or may not contain
/// what is written meanwhile.
pub(super) fn of_all(cx: &mut Context<'_>) -> Result<Digest, CommandError> {
    let keyspace = &cx.engine.keyspace;
    let mut total = Digest::default();
    for database in 0..keyspace.databases() {
        if keyspace.is_empty(database) {
            continue;
        }
        total.mix(&(database as u32).to_be_bytes());
        for slot in keyspace.occupied(database) {
            combine_slot(cx, database, slot, &mut total)?;
        }
    }
    Ok(total)
}

fn combine_slot(
    cx: &mut Context<'_>,
    database: usize,
    slot: u16,
    total: &mut Digest,
) -> CommandResult {
    let mut position = Some(0);
    while let Some(from) = position {
        position = cx.with_slot(slot, |locked, _| {
            let table = locked.table(database, slot)?;
            let mut next = Some(from);
            for _ in 0..POSITIONS_PER_LOCK {
                next = table.walk(next?, |entry| {
                    let mut digest = Digest::default();
                    digest.mix(entry.key());
                    digest.mix_value(entry);
                    total.combine(&digest.0);
                });
            }
            next
        })?;
    }
    Ok(())
}
