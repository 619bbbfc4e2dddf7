//! A stream in parts, of which each is a stream: for who sends a large one to another server, which
//! then has exactly the same.

use super::group::{Consumer, Group, PendingEntry};
use super::id::StreamId;
use super::malformed::Malformed;
use super::{Stream, StreamNumbers};

/// What a pending entry, a consumer or a group counts for, besides its name.
const WEIGHT: usize = 64;

/// A part takes no more than this only because it repeats names that are as long.
const MOST_FOR_NAMES: usize = 16 << 20;

/// A part, as far as it is put together.
struct Part<'f> {
    stream: Stream,
    /// What it has that no part before it has.
    weight: usize,
    /// The names in it that a part before it has, too.
    repeated: usize,
    /// A part that weighs more is given away.
    most: usize,
    /// The numbers that each part has, but for those of its own entries.
    numbers: StreamNumbers,
    give: &'f mut dyn FnMut(Stream),
}

impl Part<'_> {
    /// Makes room for something: another part may begin with it. A part that repeats long names
    /// has as much besides, if there is as much. Otherwise all parts together would be many times
    /// as large as the stream.
    fn make_room(&mut self, weight: usize) {
        let most = self.most.max(self.repeated.min(MOST_FOR_NAMES));
        if self.weight > 0 && self.weight + weight > most {
            self.give_away();
        }
        self.weight += weight;
    }

    fn give_away(&mut self) {
        let mut next = Stream::new();
        next.0.numbers = StreamNumbers { len: 0, first_id: StreamId::MIN, ..self.numbers };
        let mut full = std::mem::replace(&mut self.stream, next);
        full.0.find_first();
        (self.give)(full);
        (self.weight, self.repeated) = (0, 0);
    }

    /// A group that this part or one before it has, in this part.
    fn group(&mut self, name: &[u8], whole: &Group) -> &mut Group {
        if self.stream.group(name).is_none() {
            self.repeated += name.len();
            self.stream.add_group(name, whole.without_consumers());
        }
        self.stream.group_mut(name).expect("it is there")
    }

    /// The number in this part of a consumer that this part or one before it has.
    fn consumer(&mut self, name: &[u8], whole: &Group, own: &Consumer) -> u32 {
        let group = self.group(name, whole);
        if let Some(number) = group.number_of(own.name()) {
            return number;
        }
        let number = group.note_consumer(own);
        self.repeated += own.name().len();
        number
    }
}

impl Stream {
    /// Gives parts away that take not much more than so many bytes each, if no block and no name
    /// does. The first one has all that a stream has of which this is enough; [`Stream::absorb`]
    /// puts the others behind it. Blocks come first. The parts take together not many times what
    /// the stream takes: pending entries come by consumer, so that few names are repeated.
    pub fn divide(&self, most: usize, give: &mut dyn FnMut(Stream)) {
        let numbers = StreamNumbers { len: 0, first_id: StreamId::MIN, ..*self.numbers() };
        let mut part = Part { stream: Stream::new(), weight: 0, repeated: 0, most, numbers, give };
        part.stream.0.numbers = numbers;
        for (master, block) in self.0.blocks.iter() {
            part.make_room(block.listpack().as_bytes().len());
            part.stream.0.blocks.insert(*master, block.clone());
            part.stream.0.numbers.len += block.live();
        }
        for (name, group) in self.groups() {
            part.make_room(WEIGHT + name.len());
            part.stream.add_group(name, group.without_consumers());
            for consumer in group.consumers() {
                part.make_room(WEIGHT + consumer.name().len());
                part.group(name, group).note_consumer(consumer);
                for id in consumer.pending_from(StreamId::MIN) {
                    let Some(pending) = group.pending(id) else { continue };
                    part.make_room(WEIGHT);
                    let consumer = part.consumer(name, group, consumer);
                    part.group(name, group).assign(id, PendingEntry { consumer, ..pending });
                }
            }
        }
        part.give_away();
    }

    /// Adds what a later part of a stream has. Its numbers are those of the whole.
    ///
    /// # Errors
    /// Its entries are not behind those that are there.
    pub fn absorb(&mut self, part: &Stream) -> Result<(), Malformed> {
        let last = self.last_entry_id();
        let is_behind = |master: &StreamId| last.is_none_or(|last| last < *master);
        let has_reached = last.is_none_or(|last| last <= part.last_id());
        if !has_reached || !part.0.blocks.first().is_none_or(|(master, _)| is_behind(master)) {
            return Err(Malformed::Order);
        }
        let len = self.0.numbers.len + part.0.numbers.len;
        for (master, block) in part.0.blocks.iter() {
            self.0.blocks.insert(*master, block.clone());
        }
        self.0.numbers = StreamNumbers { len, ..part.0.numbers };
        self.0.find_first();
        for (name, more) in part.groups() {
            if self.group(name).is_none() {
                self.add_group(name, Group::default());
            }
            if let Some(group) = self.group_mut(name) {
                group.absorb(more);
            }
        }
        Ok(())
    }
}

impl Group {
    /// A group with the same numbers.
    fn without_consumers(&self) -> Group {
        Group::new(self.last_id, self.entries_read)
    }

    /// Adds a consumer, or notes the times of it. Returns its number.
    fn note_consumer(&mut self, own: &Consumer) -> u32 {
        let (number, _) = self.add_consumer(own.name(), own.seen_ms);
        if let Some(consumer) = self.consumer_mut(number) {
            (consumer.seen_ms, consumer.active_ms) = (own.seen_ms, own.active_ms);
        }
        number
    }

    fn absorb(&mut self, part: &Group) {
        (self.last_id, self.entries_read) = (part.last_id, part.entries_read);
        for consumer in part.consumers() {
            self.note_consumer(consumer);
        }
        for (id, pending) in part.pending_from(StreamId::MIN) {
            let owner = part.consumer(pending.consumer);
            if let Some(consumer) = owner.and_then(|own| self.number_of(own.name())) {
                self.assign(id, PendingEntry { consumer, ..pending });
            }
        }
    }
}
