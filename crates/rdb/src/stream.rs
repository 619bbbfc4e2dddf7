//! Streams: blocks of entries as the store has them, what is known of all entries, and the groups.
//!
//! ```text
//! blocks, each (id, listpack)
//! entries, last id                                             an id is two lengths
//! first id, largest deleted id, entries ever added             since the second form
//! groups, each (name, last id, entries read since the second form,
//!               pending entries, each (id, time, deliveries),
//!               consumers, each (name, when seen, when active since the third form, ids),
//!               ids of pending entries that no consumer has, since the fifth form)
//! settings, producers, each (name, its ids, each (id, id of the entry)), two counts
//!                                                              since the fourth form
//! ```
//! The fourth form is that of Redis 8.6 and the fifth that of Redis 8.8. What is new in them has no
//! meaning here, so a stream that has some of it is refused, but for the settings and counts.
//!
//! Ids of blocks and of pending entries have 16 bytes, the highest first; times are milliseconds in
//! eight bytes, the lowest first.

use std::borrow::Cow;
use std::io::{self, Write};

use store::StreamId;
use store::stream::{Group, Malformed, Stream, StreamBuilder, StreamNumbers};

use crate::layout::Layout;
use crate::read::{Input, ReadError, Reader};
use crate::write::Writer;

/// The number for an unknown time or number.
const UNKNOWN: i64 = -1;

impl From<Malformed> for ReadError {
    fn from(malformed: Malformed) -> ReadError {
        ReadError::Malformed(match malformed {
            Malformed::Block | Malformed::Listpack(_) => "a block of a stream does not add up",
            Malformed::Order => "the ids of a stream do not ascend",
            Malformed::Count => "a stream has another number of entries than its count",
            Malformed::PendingEntry => "a pending entry is not exactly one consumer's",
            Malformed::Consumer | Malformed::Group => "a consumer or a group occurs twice",
        })
    }
}

/// A stream has this, which Redis 8.4 does not know either.
fn unsupported(what: &'static str) -> ReadError {
    ReadError::Unsupported(Cow::Borrowed(what))
}

impl<W: Write> Writer<W> {
    /// Writes a stream in the second or the third form.
    pub(crate) fn stream(&mut self, stream: &Stream, layout: Layout) -> io::Result<()> {
        self.length(stream.block_count() as u64)?;
        for (master, listpack) in stream.blocks() {
            self.string(&master.to_bytes())?;
            self.string(listpack)?;
        }
        let numbers = stream.numbers();
        self.length(numbers.len)?;
        for id in [numbers.last_id, numbers.first_id, numbers.max_deleted_id] {
            self.id(id)?;
        }
        self.length(numbers.entries_added)?;
        self.length(stream.group_count() as u64)?;
        stream.groups().try_for_each(|(name, group)| self.group(name, group, layout))
    }

    fn group(&mut self, name: &[u8], group: &Group, layout: Layout) -> io::Result<()> {
        self.string(name)?;
        self.id(group.last_id)?;
        self.length(group.entries_read.unwrap_or(UNKNOWN.cast_unsigned()))?;
        self.length(group.pending_len() as u64)?;
        for (id, pending) in group.pending_from(StreamId::MIN) {
            self.bytes(&id.to_bytes())?;
            self.bytes(&pending.delivered_ms.to_le_bytes())?;
            self.length(pending.deliveries)?;
        }
        self.length(group.consumers_len() as u64)?;
        for consumer in group.consumers() {
            self.string(consumer.name())?;
            self.bytes(&consumer.seen_ms.to_le_bytes())?;
            if matches!(layout, Layout::Stream3) {
                self.bytes(&consumer.active_ms.unwrap_or(UNKNOWN).to_le_bytes())?;
            }
            self.length(consumer.pending_len() as u64)?;
            for id in consumer.pending_from(StreamId::MIN) {
                self.bytes(&id.to_bytes())?;
            }
        }
        Ok(())
    }

    fn id(&mut self, id: StreamId) -> io::Result<()> {
        self.length(id.ms)?;
        self.length(id.seq)
    }
}

impl Reader<'_> {
    /// Reads a stream of any form.
    pub(crate) fn stream(&mut self, layout: Layout) -> Result<Stream, ReadError> {
        let mut builder = StreamBuilder::new();
        for _ in 0..self.length()? {
            let master = self.string()?;
            let master = <[u8; 16]>::try_from(&*master);
            let master = master.map_err(|_| ReadError::Malformed("an id that is none"))?;
            builder.add_block(StreamId::from_bytes(master), &self.string()?)?;
        }
        let len = self.length()?;
        let last_id = self.id()?;
        let (first_id, max_deleted_id, entries_added) = match layout {
            Layout::Stream1 => (StreamId::MIN, StreamId::MIN, len),
            _ => (self.id()?, self.id()?, self.length()?),
        };
        let numbers = StreamNumbers { len, last_id, first_id, max_deleted_id, entries_added };
        let mut stream = builder.finish(numbers)?;
        for _ in 0..self.length()? {
            let name = self.string()?;
            let group = self.group(layout, &stream)?;
            if !stream.add_group(&name, group) {
                return Err(Malformed::Group.into());
            }
        }
        if layout >= Layout::Stream4 {
            self.producers()?;
        }
        Ok(stream)
    }

    /// Reads what is known of the ids that producers have given (XADD with IDMP), unless some of
    /// them are still to be told from new ones.
    fn producers(&mut self) -> Result<(), ReadError> {
        let (_duration, _most) = (self.length()?, self.length()?);
        for _ in 0..self.length()? {
            self.string()?;
            if self.length()? > 0 {
                return Err(unsupported("ids of a producer (XADD with IDMP)"));
            }
        }
        let (_added, _duplicates) = (self.length()?, self.length()?);
        Ok(())
    }

    fn group(&mut self, layout: Layout, stream: &Stream) -> Result<Group, ReadError> {
        let last_id = self.id()?;
        let entries_read = match layout {
            Layout::Stream1 => stream.numbers().entries_up_to(last_id),
            _ => Some(self.length()?).filter(|read| i64::try_from(*read).is_ok()),
        };
        let mut group = Group::new(last_id, entries_read);
        for _ in 0..self.length()? {
            let id = StreamId::from_bytes(self.array()?);
            let delivered_ms = i64::from_le_bytes(self.array()?);
            group.load_pending(id, delivered_ms, self.length()?)?;
        }
        for _ in 0..self.length()? {
            let name = self.string()?;
            let seen_ms = i64::from_le_bytes(self.array()?);
            let active_ms = match layout {
                Layout::Stream3 | Layout::Stream4 | Layout::Stream5 => {
                    i64::from_le_bytes(self.array()?)
                }
                _ => seen_ms,
            };
            let active_ms = Some(active_ms).filter(|active| *active >= 0);
            let consumer = group.load_consumer(&name, seen_ms, active_ms)?;
            for _ in 0..self.length()? {
                group.load_owner(StreamId::from_bytes(self.array()?), consumer)?;
            }
        }
        if layout >= Layout::Stream5 && self.length()? > 0 {
            return Err(unsupported("pending entries that no consumer has (XNACK)"));
        }
        group.finish_loading()?;
        Ok(group)
    }

    fn id(&mut self) -> Result<StreamId, ReadError> {
        Ok(StreamId::new(self.length()?, self.length()?))
    }
}
