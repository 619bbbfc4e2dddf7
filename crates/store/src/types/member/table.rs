//! A table of members, found by name, and how a snapshot reads it.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::sync::Arc;

use base::hash::hash;
use base::limits::{FREED_AT_ONCE, FREED_AT_ONCE_BYTES, PREFETCH_MAX};
use base::rng::Rng;
use smallvec::SmallVec;

use super::{Member, Plain, Scored, Shape, Valued, layout, text_bytes, write_text};
use crate::pack::good_size;
use crate::snapshot::freeze::{Freeze, Freezing, Frozen, Piece, PieceKind};
use crate::table::dict::{Position, Table, prefetch};
use crate::types::packed::choose;

/// So many members stay near by being used: the processor's cache has room for them.
const CACHED_ANYWAY: usize = 2048;
/// How many members an iteration prefetches at once, at least.
const BATCH: usize = 16;

/// A table that owns its members.
///
/// Invariant: its words are the addresses of live members of shape `S` with different names, which
/// belong to this table alone.
pub(crate) struct Members<S: Shape> {
    table: Table,
    /// A snapshot reads the table: code that changes a member calls [`Members::before_change`].
    freeze: Option<Box<Freeze>>,
    shape: PhantomData<S>,
}

/// The hash of the member with this word.
///
/// # Safety
/// `word` is a live member's.
unsafe fn hash_of<S: Shape>(word: u64) -> u64 {
    // SAFETY: by the caller's promise.
    hash(unsafe { Member::<S>::from_word(word) }.name())
}

impl<S: Shape> Members<S> {
    pub(crate) const fn new() -> Self {
        Members { table: Table::new(), freeze: None, shape: PhantomData }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The member with this word of the table.
    #[inline]
    fn member(&self, word: u64) -> Member<'_, S> {
        // SAFETY: the table's words are live members, which do not change while it is borrowed.
        unsafe { Member::from_word(word) }
    }

    #[inline]
    fn locate(&self, hash: u64, name: &[u8]) -> Option<Position> {
        self.table.find(hash, |word| self.member(word).name() == name)
    }

    /// Adds a member whose name is not there yet. The table owns it from now on.
    fn put(&mut self, hash: u64, member: Member<'static, S>) {
        self.before_change(hash);
        // SAFETY: the table's words are live members.
        self.table.insert(hash, member.word(), |word| unsafe { hash_of::<S>(word) });
    }

    /// The place of the member with this name; valid until the table changes.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<Position> {
        self.locate(hash(name), name)
    }

    /// The member at a position that was just found.
    #[inline]
    pub(crate) fn at(&self, position: Position) -> Member<'_, S> {
        self.member(self.table.word(position))
    }

    /// The member with this name.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<Member<'_, S>> {
        Some(self.at(self.find(name)?))
    }

    /// Prefetches the members with these names, if there are so many members that they may be far.
    pub(crate) fn prefetch(&self, names: &[&[u8]]) {
        if self.len() > CACHED_ANYWAY {
            let hashes: SmallVec<[u64; PREFETCH_MAX]> =
                names.iter().map(|name| hash(name)).collect();
            self.table.prefetch(&hashes);
        }
    }

    /// Removes the member at a position that was just found.
    pub(crate) fn remove_at(&mut self, position: Position) {
        self.before_change_at(position);
        let word = self.table.remove(position);
        // SAFETY: the member has left its table, and nothing borrows from it.
        unsafe { self.release(word) }
    }

    /// Frees a member, or leaves it to the snapshot that reads it.
    ///
    /// # Safety
    /// The member has left the table, and nothing else uses it.
    #[inline]
    unsafe fn release(&self, word: u64) {
        // SAFETY: by the caller's promise.
        let member = unsafe { Member::<S>::from_word(word) };
        if self.freeze.as_ref().is_none_or(|freeze| !member.is_kept_by(&freeze.frozen)) {
            // SAFETY: by the caller's promise.
            unsafe { member.release() }
        }
    }

    /// Removes the member with this name. Returns whether it was there.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        let position = self.find(name);
        position.map(|position| self.remove_at(position)).is_some()
    }

    /// All members, in no order that means anything.
    pub(crate) fn iter(&self) -> MemberIter<'_, S> {
        MemberIter { members: self, bucket: 0, batch: SmallVec::new(), left: self.len() }
    }

    /// Shows the members at `position` of a scan; see [`Table::walk`].
    pub(crate) fn scan(&self, position: u32, mut visit: impl FnMut(Member<'_, S>)) -> Option<u32> {
        self.table.walk(position, |word| visit(self.member(word)))
    }

    /// A member chosen with equal chances.
    pub(crate) fn random(&self, rng: &mut Rng) -> Option<Member<'_, S>> {
        let word = self.table.random(|bound| rng.below(bound))?;
        Some(self.member(word))
    }

    /// Shows up to `count` different members, each set of them with equal chances.
    pub(crate) fn random_distinct<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Member<'a, S>),
    ) {
        // Drawing until a new one comes is quick while most are new.
        if count > self.len() / 3 {
            return choose(self.iter(), self.len(), count, rng, visit);
        }
        let mut seen = HashSet::with_capacity(count);
        while seen.len() < count {
            let Some(member) = self.random(rng) else { return };
            if seen.insert(member.word()) {
                visit(member);
            }
        }
    }

    /// How many chains of buckets have n members each.
    pub(crate) fn chain_histogram(&self) -> Vec<usize> {
        self.table.chain_histogram()
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        // Freeing a member reads its lengths too, so that looking at them here costs little.
        self.len() > FREED_AT_ONCE
            || self.iter().map(Member::bytes).sum::<usize>() > FREED_AT_ONCE_BYTES
    }

    /// Bytes that table and members take, the members' estimated from the first `samples` of them.
    pub(crate) fn memory(&self, samples: usize) -> usize {
        let sampled = samples.min(self.len());
        let bytes: usize = self.iter().take(sampled).map(|member| good_size(member.bytes())).sum();
        let all = bytes as u128 * self.len() as u128 / sampled.max(1) as u128;
        self.table.memory() + all as usize
    }

    /// Asserts the invariants.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self) {
        // SAFETY: the table's words are live members.
        self.table.check(|word| unsafe { hash_of::<S>(word) });
        let mut names = HashSet::new();
        assert!(self.iter().all(|member| names.insert(member.name())), "names are unique");
        assert_eq!(names.len(), self.len());
    }
}

impl Members<Plain> {
    /// Adds a member. Returns whether it is new.
    pub(crate) fn add(&mut self, name: &[u8]) -> bool {
        let hash = hash(name);
        let is_new = self.locate(hash, name).is_none();
        if is_new {
            self.put(hash, Member::allocate(name, None));
        }
        is_new
    }
}

impl Members<Valued> {
    /// Adds a field whose name is not there yet. Returns it.
    pub(crate) fn put_field(
        &mut self,
        name: &[u8],
        value: &[u8],
        expire_at: Option<u64>,
    ) -> Member<'_, Valued> {
        let member = Member::new(name, value, expire_at);
        self.put(hash(name), member);
        member
    }

    /// Gives the field at a position that was just found another value, and another time, if any,
    /// at which it expires. An index by time is not told.
    pub(crate) fn set_value(&mut self, position: Position, value: &[u8], expire_at: Option<u64>) {
        self.before_change_at(position);
        let old = self.at(position);
        let offset = old.value_offset();
        let fits = old.has_room_for(expire_at)
            && layout(offset + text_bytes(value)) == layout(old.bytes());
        let is_lent = |freeze: &Freeze| freeze.frozen.has_lent(old.block_number());
        if fits && !self.freeze.as_deref().is_some_and(is_lent) {
            // SAFETY: the block has room for this value, and we are borrowed mutably.
            unsafe { write_text(old.base().add(offset), value) }
            self.set_time(position, expire_at);
        } else {
            let new = Member::new(old.name(), value, expire_at);
            self.put_in_place(position, new);
        }
    }

    /// Gives the field at a position that was just found another time at which it expires, or none.
    /// An index by time is not told.
    pub(crate) fn set_expire_at(&mut self, position: Position, expire_at: Option<u64>) {
        self.before_change_at(position);
        let old = self.at(position);
        if old.has_room_for(expire_at) {
            self.set_time(position, expire_at);
        } else {
            let new = Member::new(old.name(), old.value(), expire_at);
            self.put_in_place(position, new);
        }
    }

    /// Gives the field at a position, which has room for it, another time or none, where it lies.
    /// Who reads its texts for a snapshot does not look at the time.
    fn set_time(&mut self, position: Position, expire_at: Option<u64>) {
        let old = self.at(position).word();
        // SAFETY: the member at this position, which is borrowed mutably, and is replaced at once.
        let new = unsafe { Member::<Valued>::from_word(old).with_time(expire_at) }.word();
        if new != old {
            self.table.replace(position, new);
        }
    }

    /// Replaces a member by a new one with the same name. Frees the old one.
    fn put_in_place(&mut self, position: Position, new: Member<'static, Valued>) {
        let old = self.at(position).word();
        self.table.replace(position, new.word());
        // SAFETY: the old member has left the table, and nothing borrows from it.
        unsafe { self.release(old) }
    }
}

impl Members<Scored> {
    /// Adds a member whose name is not there yet.
    fn put_scored(&mut self, hash: u64, name: &[u8], score: f64) -> Member<'_, Scored> {
        let member = Member::allocate(name, None);
        // SAFETY: nothing else knows the member yet.
        unsafe { member.set_score(score) }
        self.put(hash, member);
        member
    }

    /// Adds a member. Returns it, unless its name is there already.
    pub(crate) fn add_scored(&mut self, name: &[u8], score: f64) -> Option<Member<'_, Scored>> {
        let hash = hash(name);
        self.locate(hash, name).is_none().then(|| self.put_scored(hash, name, score))
    }

    /// The member with this name, and whether it was added by this call.
    pub(crate) fn get_or_add(&mut self, name: &[u8], score: f64) -> (Member<'_, Scored>, bool) {
        let hash = hash(name);
        match self.locate(hash, name) {
            Some(position) => (self.at(position), false),
            None => (self.put_scored(hash, name, score), true),
        }
    }

    /// Gives the member at a position that was just found another score. An index by score is not
    /// told.
    pub(crate) fn set_score(&mut self, position: Position, score: f64) {
        self.before_change_at(position);
        // SAFETY: the members are borrowed mutably.
        unsafe { self.at(position).set_score(score) }
    }

    /// Adds a copy of a member of another table, whose name is not there yet.
    pub(crate) fn add_copy(&mut self, member: Member<'_, Scored>) -> Member<'_, Scored> {
        let copy = member.duplicate();
        self.put(hash(copy.name()), copy);
        copy
    }

    /// Removes this member.
    ///
    /// # Safety
    /// It is a member of this table, and is not used afterwards.
    pub(crate) unsafe fn remove_member(&mut self, member: Member<'static, Scored>) {
        let position = self.table.find(hash(member.name()), |word| word == member.word());
        self.remove_at(position.expect("a member of this table"));
    }
}

// ---- Snapshots
// --------------------------------------------------------------------------------------

impl<S: Shape> Members<S> {
    /// Must be called before a member with this hash is added, removed or changed: hands its bucket
    /// over to the snapshot that has not read it yet.
    #[inline]
    pub(crate) fn before_change(&mut self, hash: u64) {
        if self.freeze.is_some() {
            self.hand_over_bucket_of(hash);
        }
    }

    /// [`Members::before_change`] of the member at a position.
    #[inline]
    pub(crate) fn before_change_at(&mut self, position: Position) {
        if self.freeze.is_some() {
            self.hand_over_bucket_of(hash(self.at(position).name()));
        }
    }

    #[cold]
    fn hand_over_bucket_of(&mut self, changed: u64) {
        let Some(mut freeze) = self.freeze.take_if(|freeze| !freeze.frozen.is_given_up()) else {
            self.freeze = None;
            return;
        };
        let home = Table::<false>::home_of(changed, freeze.buckets());
        if freeze.wants(Table::<false>::position_of(changed), home) {
            let mut handed = SmallVec::<[Member<'_, S>; 8]>::new();
            {
                self.table.for_each_of_former(home, freeze.buckets(), |word| {
                    let member = self.member(word);
                    let own = hash(member.name());
                    let wanted = Table::<false>::home_of(own, freeze.buckets()) == home
                        && freeze.wants(Table::<false>::position_of(own), home);
                    if wanted {
                        handed.push(member);
                    }
                });
            }
            freeze.frozen.hand_over(|push| {
                handed.iter().for_each(|member| member.hand_to(&freeze.frozen, push));
            });
            freeze.mark(home);
        }
        self.freeze = Some(freeze);
    }

    /// Hands over everything that the snapshot has not read, since the table is about to go.
    fn hand_over_rest(&mut self) {
        let Some(frozen) = self.frozen().filter(|frozen| !frozen.is_given_up()).cloned() else {
            return;
        };
        frozen.hand_over(|push| {
            self.read_frozen(usize::MAX, usize::MAX, &mut *push);
        });
        frozen.complete();
    }
}

impl<S: Shape> Freezing for Members<S> {
    fn kind(&self) -> PieceKind {
        S::KIND
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn freeze(&mut self, frozen: Arc<Frozen>) {
        self.freeze = Some(Box::new(Freeze::new(frozen, self.table.bucket_count())));
    }

    fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.freeze.as_ref().map(|freeze| &freeze.frozen)
    }

    fn read_frozen(
        &mut self,
        count: usize,
        bytes: usize,
        visit: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        let Some(mut freeze) = self.freeze.take() else { return false };
        let (mut read, mut read_bytes) = (0, 0);
        while read < count && read_bytes < bytes && !freeze.is_finished() {
            // A bucket at a time, and where its members are large, a part of one. What lies at one
            // position is read at once, since a position in a table is one of the walk.
            let mut wanted = SmallVec::<[(u32, Member<'_, S>); 16]>::new();
            let mut next = self.table.walk(freeze.position(), |word| {
                let member = self.member(word);
                let own = hash(member.name());
                let home = Table::<false>::home_of(own, freeze.buckets());
                let position = Table::<false>::position_of(own);
                if freeze.wants(position, home) {
                    wanted.push((position, member));
                }
                read += 1;
            });
            // An empty bucket is some work, too.
            read += 1;
            let large = wanted.iter().map(|(_, member)| member.bytes()).sum::<usize>() > bytes;
            if large {
                wanted.sort_unstable_by_key(|&(position, _)| position);
            }
            let mut last = None;
            for &(position, member) in &wanted {
                if large && read_bytes >= bytes && last != Some(position) {
                    next = Some(position);
                    break;
                }
                last = Some(position);
                read_bytes += member.bytes();
                member.hand_to(&freeze.frozen, visit);
            }
            freeze.advance(next);
        }
        // A lent member comes back before the table forgets it.
        if freeze.is_finished() && !freeze.frozen.has_loans() {
            return false;
        }
        self.freeze = Some(freeze);
        true
    }
}

impl<S: Shape> Clone for Members<S> {
    fn clone(&self) -> Self {
        let mut copy = Members::new();
        for member in self.iter() {
            copy.put(hash(member.name()), member.duplicate());
        }
        copy
    }
}

impl<S: Shape> Drop for Members<S> {
    fn drop(&mut self) {
        let frozen = self.frozen().cloned();
        self.hand_over_rest();
        self.table.drain(|word| {
            // SAFETY: the members leave the table, and nothing borrows from them.
            let member = unsafe { Member::<S>::from_word(word) };
            if frozen.as_ref().is_none_or(|frozen| !member.is_kept_by(frozen)) {
                // SAFETY: as above.
                unsafe { member.free() }
            }
        });
    }
}

/// Iterator over members. Prefetches a batch of them before it shows the first, so that their cache
/// misses overlap, and goes through the buckets as they lie in memory.
pub(crate) struct MemberIter<'a, S: Shape> {
    members: &'a Members<S>,
    /// The next bucket to go through.
    bucket: u32,
    batch: SmallVec<[u64; 2 * BATCH]>,
    left: usize,
}

impl<S: Shape> MemberIter<'_, S> {
    #[cold]
    fn refill(&mut self) {
        let table = &self.members.table;
        while self.batch.len() < BATCH && (self.bucket as usize) < table.bucket_count() {
            // A walk's position is a hash's low bits reversed, and the low bits name the bucket.
            table.walk(self.bucket.reverse_bits(), |word| {
                prefetch(word as *const u8);
                self.batch.push(word);
            });
            self.bucket += 1;
        }
    }
}

impl<'a, S: Shape> Iterator for MemberIter<'a, S> {
    type Item = Member<'a, S>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a, S>> {
        if self.batch.is_empty() {
            self.refill();
        }
        let word = self.batch.pop()?;
        self.left -= 1;
        Some(self.members.member(word))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<S: Shape> ExactSizeIterator for MemberIter<'_, S> {}

impl<S: Shape> FusedIterator for MemberIter<'_, S> {}
