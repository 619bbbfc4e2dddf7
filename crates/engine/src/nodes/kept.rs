//! The tree, in the keyspace.

use std::borrow::Cow;

use base::limits;
use etcd::change::{self, Change, ExpiryStep};
use etcd::error::Error;
use etcd::event::Event;
use etcd::node::Node;
use etcd::tree::{Child, Tree};
use store::pack::Element;
use store::stream::{StreamEntry, StreamLimits, Trim, TrimTo};
use store::{Entry, HashView, Key, Stream, StreamId, Value, ValueMut, ValueRef};

use crate::command::error::CommandError;
use crate::db::Db;
use crate::db::effects::Woken;
use crate::db::notify::{Class, Event as KeyEvent};
use crate::nodes::hub::{Hub, event_reply};

/// The beginning of all keys of the tree.
pub const PREFIX: &[u8] = b"{etcd}";
/// The stream of events.
const EVENTS: &[u8] = b"{etcd}:events";
/// The nodes that expire.
pub(crate) const EXPIRIES: &[u8] = b"{etcd}:expiries";

/// The key that a directory's children are kept in; it is named with a slash at its end.
pub fn directory_key(directory: &[u8]) -> Vec<u8> {
    [PREFIX, directory].concat()
}

/// See the module's text. Database 0 is selected, and the caller holds the slot of the tree.
pub struct Kept<'k, 'd> {
    /// The keys, of which it is some.
    pub db: &'k mut Db<'d>,
    /// The clients that watch it.
    pub hub: &'k Hub,
}

fn refused(error: &CommandError) -> Error {
    Error::internal(error.as_bytes())
}

impl Kept<'_, '_> {
    /// The time, as nodes have it.
    pub fn now(&self) -> i64 {
        self.db.now.cast_signed()
    }

    fn events(&self) -> Result<Option<&Stream>, Error> {
        match self.db.peek(&Key::new(EVENTS)).map(Entry::value) {
            None => Ok(None),
            Some(ValueRef::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(refused(&CommandError::WRONG_TYPE)),
        }
    }

    /// The index of the oldest kept event, if there is any.
    pub fn oldest(&self) -> Result<Option<u64>, Error> {
        let events = self.events()?.filter(|events| !events.is_empty());
        Ok(events.map(|events| events.numbers().first_id.ms))
    }

    /// The first wanted event from an index on, if one is kept.
    pub fn first_event(
        &self,
        since: u64,
        is_wanted: impl Fn(&Event<'_>) -> bool,
    ) -> Result<Option<Event<'_>>, Error> {
        let Some(events) = self.events()? else { return Ok(None) };
        let mut entries = events.range(StreamId::new(since, 0), StreamId::MAX);
        Ok(entries.find_map(|entry| event_of(entry).filter(&is_wanted)))
    }

    /// Removes nodes whose time is up, `most` at most. Returns how many it has looked at.
    pub fn expire(&mut self, most: usize) -> Result<usize, Error> {
        for looked_at in 0..most {
            match change::expire(self, self.now())? {
                None => return Ok(looked_at),
                Some(ExpiryStep::Corrected) => {}
                Some(ExpiryStep::Expired(change)) => {
                    self.hub.count_expired();
                    self.publish(&change);
                }
            }
        }
        Ok(most)
    }

    /// Tells waiting clients of a change. They hear of it after the slot is unlocked.
    pub fn publish(&mut self, change: &Change) {
        let claimed = self.hub.claim(change);
        let Some((last, others)) = claimed.split_last() else { return };
        let reply = event_reply(&change.event);
        let woken = &mut self.db.effects.woken;
        woken.extend(others.iter().map(|waiter| Woken::by_command(waiter.clone(), reply.clone())));
        woken.push(Woken::by_command(last.clone(), reply));
    }

    fn journal(&mut self, words: &[&[u8]]) {
        let database = self.db.index;
        self.db.effects.journal_command(database, words.iter().copied());
        self.db.effects.changes_tree = true;
    }
}

/// The event in an entry of the stream.
fn event_of(entry: StreamEntry<'_>) -> Option<Event<'_>> {
    let text = |element| match element {
        Element::Str(text) => Some(text),
        Element::Int(_) => None,
    };
    let mut is_text = true;
    let fields = entry.fields.map_while(|(name, value)| {
        let field = text(name).zip(text(value));
        is_text &= field.is_some();
        field
    });
    let event = Event::parse(fields)?;
    (is_text && event.index() == entry.id.ms).then_some(event)
}

/// A child as a field of a hash. A field's own expiry is not the node's.
fn child_of<'h>((name, text, _): (Element<'h>, Element<'h>, Option<u64>)) -> Option<Child<'h>> {
    let name = match name {
        Element::Str(name) => Cow::Borrowed(name),
        Element::Int(_) => Cow::Owned(name.to_vec()),
    };
    match text {
        Element::Str(text) => Some((name, Node::parse(text)?)),
        Element::Int(_) => None,
    }
}

impl Tree for Kept<'_, '_> {
    fn index(&self) -> Result<u64, Error> {
        let kept = self.events()?.map_or(0, |events| events.last_id().ms);
        Ok(kept.max(self.hub.last()))
    }

    fn node(&self, directory: &[u8], name: &[u8]) -> Result<Option<Node<'_>>, Error> {
        let hash =
            self.db.hash(&Key::new(&directory_key(directory))).map_err(|error| refused(&error))?;
        Ok(hash.and_then(|hash| match hash.get(name)? {
            Element::Str(text) => Node::parse(text),
            Element::Int(_) => None,
        }))
    }

    fn children(&self, directory: &[u8]) -> Result<Vec<Child<'_>>, Error> {
        let hash =
            self.db.hash(&Key::new(&directory_key(directory))).map_err(|error| refused(&error))?;
        Ok(hash.map(|hash| hash.iter().filter_map(child_of).collect()).unwrap_or_default())
    }

    fn count(&self, directory: &[u8]) -> Result<usize, Error> {
        let hash =
            self.db.hash(&Key::new(&directory_key(directory))).map_err(|error| refused(&error))?;
        Ok(hash.map_or(0, HashView::len))
    }

    fn is_empty(&self, directory: &[u8]) -> Result<bool, Error> {
        let hash =
            self.db.hash(&Key::new(&directory_key(directory))).map_err(|error| refused(&error))?;
        Ok(hash.is_none_or(HashView::is_empty))
    }

    fn put(&mut self, directory: &[u8], name: &[u8], node: &Node<'_>) -> Result<(), Error> {
        let (directory_key, text, limits) =
            (directory_key(directory), node.text(), self.db.hash_limits());
        let event = KeyEvent(Class::HASH, "hset");
        let put = self.db.add_to_hash(&Key::new(&directory_key), event, |hash| {
            hash.set(name, &text, limits);
            1
        });
        put.map_err(|error| refused(&error))?;
        self.journal(&[b"HSET", &directory_key, name, &text]);
        Ok(())
    }

    fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<(), Error> {
        let directory_key = directory_key(directory);
        let mut removed = 0;
        let taken = self.db.take_from_hash(
            &Key::new(&directory_key),
            KeyEvent(Class::HASH, "hdel"),
            |hash| {
                removed = u64::from(hash.remove(name));
                removed
            },
        );
        taken.map_err(|error| refused(&error))?;
        if removed > 0 {
            self.journal(&[b"HDEL", &directory_key, name]);
        }
        Ok(())
    }

    fn clear(&mut self, directory: &[u8]) {
        let directory_key = directory_key(directory);
        let key = Key::new(&directory_key);
        if self.db.remove(&key) {
            self.db.changed(&key, KeyEvent(Class::GENERIC, "del"));
            self.journal(&[b"UNLINK", &directory_key]);
        }
    }

    fn next_expiry(&self) -> Result<Option<(i64, Vec<u8>)>, Error> {
        let expiries = self.db.zset(&Key::new(EXPIRIES)).map_err(|error| refused(&error))?;
        let first = expiries.and_then(|expiries| expiries.range(0..1).next());
        Ok(first.map(|(path, at)| (at as i64, path.to_vec())))
    }

    fn schedule(&mut self, path: &[u8], expires: Option<i64>) -> Result<(), Error> {
        let (key, limits) = (Key::new(EXPIRIES), self.db.zset_limits());
        if let Some(at) = expires {
            let event = KeyEvent(Class::ZSET, "zadd");
            let added = self.db.add_to_zset(&key, event, |expiries| {
                expiries.insert(path, at as f64, limits);
                1
            });
            added.map_err(|error| refused(&error))?;
            self.journal(&[b"ZADD", EXPIRIES, at.to_string().as_bytes(), path]);
            return Ok(());
        }
        let mut removed = false;
        let taken = self.db.take_from_zset(&key, KeyEvent(Class::ZSET, "zrem"), |expiries| {
            removed = expiries.remove(path).is_some();
            u64::from(removed)
        });
        taken.map_err(|error| refused(&error))?;
        if removed {
            self.journal(&[b"ZREM", EXPIRIES, path]);
        }
        Ok(())
    }

    fn record(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let config = self.db.config;
        let limits =
            StreamLimits::new(config.stream_node_max_bytes, config.stream_node_max_entries);
        let fields = event.fields();
        let fields: Vec<&[u8]> =
            fields.iter().flat_map(|(name, value)| [name.as_bytes(), &**value]).collect();
        let id = StreamId::new(event.index(), 0);
        let trim = Trim { to: TrimTo::Len(limits::ETCD_EVENTS), by_blocks: false, limit: None };
        let add = |events: &mut Stream| {
            events.push(id, fields.iter().copied(), limits);
            events.trim(&trim)
        };
        let (key, added) = (Key::new(EVENTS), KeyEvent(Class::STREAM, "xadd"));
        let there = self.db.change(&key, added, |entry| match entry.value_mut() {
            ValueMut::Stream(events) => Ok(add(events)),
            _ => Err(CommandError::WRONG_TYPE),
        });
        if there.map_err(|error| refused(&error))?.is_none() {
            let mut events = Stream::new();
            let _trimmed = add(&mut events);
            self.db.set(&key, Value::Stream(events), None);
            self.db.changed(&key, added);
        }
        self.db.wake_waiters(&key);
        self.hub.note_index(event.index());
        let (most, id) = (limits::ETCD_EVENTS.to_string(), format!("{}-0", event.index()));
        let mut words: Vec<&[u8]> =
            vec![b"XADD", EVENTS, b"MAXLEN", b"=", most.as_bytes(), id.as_bytes()];
        words.extend(fields);
        self.journal(&words);
        Ok(())
    }

    fn watched_below(&self, path: &[u8]) -> Vec<Box<[u8]>> {
        self.hub.below(path)
    }
}
