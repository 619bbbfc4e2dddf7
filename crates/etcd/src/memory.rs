//! A tree in memory, for tests.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::event::Event;
use crate::node::Node;
use crate::tree::{Child, Tree};

#[derive(Default)]
pub(crate) struct Memory {
    /// The texts of children, by directory and name.
    directories: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    expiries: BTreeSet<(i64, Vec<u8>)>,
    /// The fields of events, by index.
    pub(crate) events: BTreeMap<u64, Vec<(String, Vec<u8>)>>,
    pub(crate) watched: Vec<Box<[u8]>>,
}

impl Memory {
    pub(crate) fn event(&self, index: u64) -> Event<'_> {
        let fields = self.events[&index].iter();
        Event::parse(fields.map(|(name, value)| (name.as_bytes(), &**value))).unwrap()
    }

    /// The places of directories that have children, and the number of nodes that expire.
    pub(crate) fn extent(&self) -> (Vec<String>, usize) {
        let places = self.directories.keys().map(|place| String::from_utf8(place.clone()).unwrap());
        (places.collect(), self.expiries.len())
    }
}

impl Tree for Memory {
    fn index(&self) -> Result<u64, Error> {
        Ok(self.events.keys().next_back().copied().unwrap_or(0))
    }

    fn node(&self, directory: &[u8], name: &[u8]) -> Result<Option<Node<'_>>, Error> {
        let text = self.directories.get(directory).and_then(|children| children.get(name));
        Ok(text.and_then(|text| Node::parse(text)))
    }

    fn children(&self, directory: &[u8]) -> Result<Vec<Child<'_>>, Error> {
        let children = self.directories.get(directory).into_iter().flatten();
        let mut all: Vec<Child<'_>> = Vec::new();
        for (name, text) in children.rev() {
            all.extend(Node::parse(text).map(|node| (Cow::Borrowed(&**name), node)));
        }
        Ok(all)
    }

    fn count(&self, directory: &[u8]) -> Result<usize, Error> {
        Ok(self.directories.get(directory).map_or(0, BTreeMap::len))
    }

    fn is_empty(&self, directory: &[u8]) -> Result<bool, Error> {
        Ok(!self.directories.contains_key(directory))
    }

    fn put(&mut self, directory: &[u8], name: &[u8], node: &Node<'_>) -> Result<(), Error> {
        let children = self.directories.entry(directory.to_vec()).or_default();
        children.insert(name.to_vec(), node.text());
        Ok(())
    }

    fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<(), Error> {
        if let Some(children) = self.directories.get_mut(directory) {
            children.remove(name);
            if children.is_empty() {
                self.directories.remove(directory);
            }
        }
        Ok(())
    }

    fn clear(&mut self, directory: &[u8]) {
        self.directories.remove(directory);
    }

    fn next_expiry(&self) -> Result<Option<(i64, Vec<u8>)>, Error> {
        Ok(self.expiries.first().cloned())
    }

    fn schedule(&mut self, path: &[u8], expires: Option<i64>) -> Result<(), Error> {
        self.expiries.retain(|(_, own)| own != path);
        self.expiries.extend(expires.map(|at| (at, path.to_vec())));
        Ok(())
    }

    fn record(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let fields = event.fields();
        let owned = fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec()));
        assert!(event.index() > self.index()?, "indexes ascend");
        self.events.insert(event.index(), owned.collect());
        Ok(())
    }

    fn watched_below(&self, path: &[u8]) -> Vec<Box<[u8]>> {
        let inside = [path, b"/"].concat();
        self.watched.iter().filter(|own| own.starts_with(&inside)).cloned().collect()
    }
}
