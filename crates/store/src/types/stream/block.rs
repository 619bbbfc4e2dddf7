//! A block of a stream: some entries in one listpack, in the bytes that Redis uses.
//!
//! ```text
//! block  = live, deleted, number of names, name ..., 0, entry ...
//! entry  = flags, milliseconds, number, value ..., elements            (the names are the block's)
//!        | flags, milliseconds, number, n, (name, value) ..., elements
//! ```
//! The names are those of the entry that the block began with; most entries of a stream have the
//! same ones, and store their values only. Ids are the differences from the id that the block is
//! found by. `elements` is how many elements the entry has before this one, so that it can be read
//! backwards. A deleted entry stays where it is, with a flag.

use smallvec::SmallVec;

use super::id::StreamId;
use super::limits::StreamLimits;
use super::malformed::Malformed;
use crate::pack::{
    Element, Elements, Encoded, End, Growth, ListpackSlice, NODE_HEAD_BYTES, Node, Position,
};

const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;

/// Bytes that the flags of an entry take. A deletion writes them anew where they are.
const FLAGS_BYTES: u32 = 2;

/// Elements of an entry before its fields: flags and the parts of its id.
const ENTRY_HEAD: usize = 3;
/// Elements of a block before its names.
const BLOCK_HEAD: usize = 3;

/// The initial room of a block of few entries.
const FIRST_BYTES: usize = 64;

/// See the module's text.
#[derive(Clone)]
pub(super) struct Block {
    node: Node,
    /// As the block's own first elements say.
    live: u32,
    deleted: u32,
}

/// An entry of a stream.
#[derive(Clone)]
pub struct StreamEntry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Its fields.
    pub fields: Fields<'a>,
}

/// The fields of an entry: names and values in turns.
#[derive(Clone)]
pub struct Fields<'a> {
    /// The names, where the block has them.
    names: Option<Elements<'a>>,
    rest: Elements<'a>,
    left: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Element<'a>, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = match &mut self.names {
            Some(names) => names.next(),
            None => self.rest.next(),
        };
        Some((name?, self.rest.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

fn integer(element: Option<Element<'_>>) -> i64 {
    match element {
        Some(Element::Int(value)) => value,
        _ => 0,
    }
}

/// An id at a distance from another one, which is an earlier one: differences wrap around.
fn id_at(master: StreamId, ms: i64, seq: i64) -> StreamId {
    StreamId {
        ms: master.ms.wrapping_add(ms.cast_unsigned()),
        seq: master.seq.wrapping_add(seq.cast_unsigned()),
    }
}

impl Block {
    /// A block whose names are these. The first one of a stream grows with its entries; those that
    /// follow have all their room from the beginning, until they are closed.
    pub(super) fn new<'f>(
        names: impl ExactSizeIterator<Item = &'f [u8]>,
        follows: bool,
        limits: StreamLimits,
    ) -> Block {
        let room = if follows { limits.block_bytes.min(LARGEST_AT_ONCE) } else { FIRST_BYTES };
        let mut head: SmallVec<[Encoded<'_>; 16]> = SmallVec::new();
        head.extend([0, 0, names.len() as i64].map(Encoded::integer));
        head.extend(names.map(Encoded::text));
        head.push(Encoded::integer(0));
        let mut node = Node::new(room, End::Back);
        node.push_all(&head, Growth::Tight);
        Block { node, live: 0, deleted: 0 }
    }

    /// Entries that are not deleted.
    pub(super) fn live(&self) -> u64 {
        u64::from(self.live)
    }

    /// Whether an entry whose texts have this many bytes goes into a new block. (Bytes are counted
    /// as Redis counts them, so that blocks end where its blocks end.)
    pub(super) fn is_full_for(&self, bytes: usize, limits: StreamLimits) -> bool {
        self.node.total_bytes().saturating_add(bytes) >= limits.block_bytes
            || u64::from(self.live) + u64::from(self.deleted) >= limits.block_entries
    }

    /// The listpack.
    pub(super) fn listpack(&self) -> &ListpackSlice {
        &self.node
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.node.block_size()
    }

    /// Adds an entry after all others. `fields` are names and values in turns.
    pub(super) fn push<'f>(
        &mut self,
        master: StreamId,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
        limits: StreamLimits,
    ) {
        let count = fields.len() / 2;
        let same = self.has_names(fields.clone().step_by(2), count);
        let mut entry: SmallVec<[Encoded<'_>; 24]> = SmallVec::new();
        entry.push(Encoded::integer(if same { SAME_NAMES } else { 0 }));
        entry.push(Encoded::integer(id.ms.wrapping_sub(master.ms).cast_signed()));
        entry.push(Encoded::integer(id.seq.wrapping_sub(master.seq).cast_signed()));
        if same {
            entry.extend(fields.skip(1).step_by(2).map(Encoded::text));
        } else {
            entry.push(Encoded::integer(count as i64));
            entry.extend(fields.map(Encoded::text));
        }
        entry.push(Encoded::integer(entry.len() as i64));
        let ceiling = limits.block_bytes.min(LARGEST_DOUBLED);
        self.node.push_all(&entry, Growth::Double(ceiling));
        self.live += 1;
        self.write_live();
    }

    /// Writes down how many entries there are that are not deleted.
    #[inline]
    fn write_live(&mut self) {
        let live = Encoded::integer(self.live.into());
        let Some(first) = self.node.first() else { return };
        if !self.node.overwrite(first, &live) {
            self.node.replace(first, &live, Growth::Tight);
        }
    }

    /// Whether the block's names are these.
    #[inline]
    fn has_names<'f>(&self, mut names: impl Iterator<Item = &'f [u8]>, count: usize) -> bool {
        let mut own = self.node.elements();
        own.pass(2);
        integer(own.next()) == count as i64
            && names.all(|name| own.next().is_some_and(|own| own.equals(name)))
    }

    /// Writes down how many entries there are of both kinds.
    fn write_counts(&mut self) {
        self.write_live();
        let Some(second) = self.node.first().and_then(|first| self.node.next(first)) else {
            return;
        };
        self.node.replace(second, &Encoded::integer(self.deleted.into()), Growth::Tight);
    }

    /// Gives back unused room, when no more entries will be added.
    pub(super) fn close(&mut self) {
        self.node.trim();
    }

    /// Deletes an entry, if it exists. If the last entry is deleted, the block is useless: the
    /// caller drops it.
    pub(super) fn delete(&mut self, master: StreamId, id: StreamId) -> bool {
        let mut walk = Walk::new(self, master);
        while let Some(entry) = walk.next_any() {
            if entry.id < id || entry.is_deleted() {
                continue;
            }
            let (found, marked) = (entry.id == id, (entry.at, entry.flags));
            if found {
                self.mark_deleted(&[marked]);
            }
            return found;
        }
        false
    }

    /// Deletes entries from the front on, as long as `goes` accepts their ids and the number
    /// deleted so far. Returns how many.
    pub(super) fn delete_first(
        &mut self,
        master: StreamId,
        mut goes: impl FnMut(StreamId, u64) -> bool,
    ) -> u64 {
        let mut marked: SmallVec<[(Position, i64); 32]> = SmallVec::new();
        let mut walk = Walk::new(self, master);
        while let Some(entry) = walk.next_any() {
            if !goes(entry.id, marked.len() as u64) {
                break;
            }
            if !entry.is_deleted() {
                marked.push((entry.at, entry.flags));
            }
        }
        self.mark_deleted(&marked);
        marked.len() as u64
    }

    /// Flags the entries at these positions as deleted; each comes with its present flags.
    fn mark_deleted(&mut self, entries: &[(Position, i64)]) {
        for &(at, flags) in entries {
            // Flags below 128 take the same room.
            self.node.replace(at, &Encoded::integer(flags | DELETED), Growth::Tight);
        }
        self.live -= entries.len() as u32;
        self.deleted += entries.len() as u32;
        self.write_counts();
    }

    /// The entries, ascending.
    pub(super) fn walk(&self, master: StreamId) -> Walk<'_> {
        Walk::new(self, master)
    }

    /// The last id, of a deleted entry as well.
    pub(super) fn last_id(&self, master: StreamId) -> StreamId {
        Walk::new(self, master).back_any().map_or(master, |entry| entry.id)
    }

    /// Takes over a listpack from outside, after looking at every entry. `None` if all entries are
    /// deleted.
    pub(super) fn from_listpack(
        master: StreamId,
        listpack: &ListpackSlice,
    ) -> Result<Option<Block>, Malformed> {
        let (live, deleted) = examine(master, listpack)?;
        let node = Node::from_listpack(listpack);
        Ok((live > 0).then_some(Block { node, live, deleted }))
    }

    /// Asserts the invariants.
    pub(super) fn check(&self, master: StreamId) {
        self.node.check();
        assert!(self.live > 0);
        assert_eq!(examine(master, &self.node), Ok((self.live, self.deleted)));
        let forth: Vec<StreamId> = self.walk(master).map(|entry| entry.id).collect();
        let mut back = Vec::new();
        let mut walk = self.walk(master);
        while let Some(entry) = walk.next_back() {
            back.insert(0, entry.id);
        }
        assert_eq!((forth.len(), forth), (self.live as usize, back));
    }
}

/// A block that follows another one gets this much room at once, at most.
const LARGEST_AT_ONCE: usize = 4096;

/// Blocks grow by doubling up to this many bytes.
const LARGEST_DOUBLED: usize = 1 << 20;

const _: () = assert!(FIRST_BYTES > NODE_HEAD_BYTES);

/// Checks a block's structure. Returns how many entries are live and deleted.
fn examine(master: StreamId, listpack: &ListpackSlice) -> Result<(u32, u32), Malformed> {
    let mut rest = listpack.elements();
    let number = |rest: &mut Elements<'_>| match rest.next() {
        Some(Element::Int(value)) => Ok(value),
        _ => Err(Malformed::Block),
    };
    let (live, deleted) = (number(&mut rest)?, number(&mut rest)?);
    let names = usize::try_from(number(&mut rest)?).map_err(|_| Malformed::Block)?;
    if rest.clone().take(names).count() < names {
        return Err(Malformed::Block);
    }
    rest.pass(names);
    if number(&mut rest)? != 0 {
        return Err(Malformed::Block);
    }
    let (mut found_live, mut found_deleted) = (0i64, 0i64);
    let mut last = None;
    while rest.current_position() < listpack.end_position() {
        let at = rest.current_position();
        let flags = number(&mut rest)?;
        // No server writes them in a longer form. A deletion would make it shorter, and move what
        // follows.
        if rest.current_position().bytes_after(at) != FLAGS_BYTES {
            return Err(Malformed::Block);
        }
        let (ms, seq) = (number(&mut rest)?, number(&mut rest)?);
        let (texts, head) = if flags & SAME_NAMES != 0 {
            (names, ENTRY_HEAD)
        } else {
            let count = usize::try_from(number(&mut rest)?).map_err(|_| Malformed::Block)?;
            (count.checked_mul(2).ok_or(Malformed::Block)?, ENTRY_HEAD + 1)
        };
        if !(0..128).contains(&flags) || rest.clone().take(texts).count() < texts {
            return Err(Malformed::Block);
        }
        rest.pass(texts);
        if number(&mut rest)? != (texts + head) as i64 {
            return Err(Malformed::Block);
        }
        let id = id_at(master, ms, seq);
        if flags & DELETED != 0 {
            // Its id may be above those after it: XSETID can go back over deleted entries.
            found_deleted += 1;
            continue;
        }
        if id < master || last.is_some_and(|last| id <= last) {
            return Err(Malformed::Order);
        }
        last = Some(id);
        found_live += 1;
    }
    let counted = (u32::try_from(found_live), u32::try_from(found_deleted));
    match counted {
        (Ok(live_found), Ok(deleted_found)) if (live, deleted) == (found_live, found_deleted) => {
            Ok((live_found, deleted_found))
        }
        _ => Err(Malformed::Count),
    }
}

/// An entry where it lies, perhaps a deleted one.
pub(super) struct Found<'a> {
    id: StreamId,
    flags: i64,
    /// Where its flags are.
    at: Position,
    fields: Fields<'a>,
}

impl Found<'_> {
    fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }
}

/// The entries of a block, from either end.
#[derive(Clone)]
pub(super) struct Walk<'a> {
    master: StreamId,
    names: Elements<'a>,
    name_count: usize,
    /// Where the first entry begins.
    first: Position,
    rest: Elements<'a>,
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(block: &'a Block, master: StreamId) -> Walk<'a> {
        let mut rest = block.node.elements();
        rest.pass(BLOCK_HEAD - 1);
        let name_count = integer(rest.next()) as usize;
        let names = rest.clone();
        rest.pass(name_count + 1);
        Walk { master, names, name_count, first: rest.current_position(), rest }
    }

    /// The block, and how many bytes after its first entry the next one begins.
    #[inline]
    pub(super) fn current_position(&self) -> (StreamId, u32) {
        (self.master, self.rest.current_position().bytes_after(self.first))
    }

    /// Passes over the entries before that position.
    pub(super) fn pass_to(&mut self, distance: u32) {
        self.rest.pass_to(self.first.plus(distance));
    }

    /// Reads the entry at the beginning of `rest`, and moves past it.
    #[inline]
    fn read(&self, rest: &mut Elements<'a>) -> Option<Found<'a>> {
        let at = rest.current_position();
        let Element::Int(flags) = rest.next()? else { return None };
        let (ms, seq) = (integer(rest.next()), integer(rest.next()));
        let id = id_at(self.master, ms, seq);
        let fields = if flags & SAME_NAMES != 0 {
            let fields = Fields {
                names: Some(self.names.clone()),
                rest: rest.clone(),
                left: self.name_count,
            };
            rest.pass(self.name_count);
            fields
        } else {
            let left = integer(rest.next()) as usize;
            let fields = Fields { names: None, rest: rest.clone(), left };
            rest.pass(2 * left);
            fields
        };
        rest.pass(1);
        Some(Found { id, flags, at, fields })
    }

    /// The next entry, deleted or not.
    #[inline]
    fn next_any(&mut self) -> Option<Found<'a>> {
        let mut rest = std::mem::take(&mut self.rest);
        let found = self.read(&mut rest);
        self.rest = rest;
        found
    }

    /// The last entry, deleted or not.
    fn back_any(&mut self) -> Option<Found<'a>> {
        let Element::Int(elements) = self.rest.next_back()? else { return None };
        let mut entry = self.rest.take_back(elements as usize);
        self.read(&mut entry)
    }

    /// The last entry that is not deleted.
    #[inline]
    pub(super) fn next_back(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            let found = self.back_any()?;
            if !found.is_deleted() {
                return Some(StreamEntry { id: found.id, fields: found.fields });
            }
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = StreamEntry<'a>;

    #[inline]
    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            let found = self.next_any()?;
            if !found.is_deleted() {
                return Some(StreamEntry { id: found.id, fields: found.fields });
            }
        }
    }
}
