//! What requests do to a tree.

use std::borrow::Cow;

use crate::error::{Code, Error};
use crate::event::{Action, Event};
use crate::node::{Content, Node};
use crate::path;
use crate::request::{Method, Operation, Request};
use crate::tree::Tree;

/// A time before this, in milliseconds of Unix time, means that a node stays for ever: the
/// beginning of 2000.
const EARLIEST_EXPIRY: i64 = 946_684_800_000;

/// What has happened to a tree.
#[derive(Debug)]
pub struct Change {
    /// The event.
    pub event: Event<'static>,
    /// Watched paths below a directory that was removed, at which there was a node.
    pub gone: Vec<Box<[u8]>>,
}

/// Finds a node.
///
/// # Errors
/// There is none, or a value is where a directory should be.
pub fn find<'t>(tree: &'t impl Tree, path: &[u8]) -> Result<Node<'t>, Error> {
    let mut node = Node::ROOT;
    let mut directory = b"/".to_vec();
    for name in path::names(path) {
        let own = directory.strip_suffix(b"/").unwrap_or_default();
        if !node.is_directory() {
            return Err(Error::new(Code::NotDirectory, own, tree.index()?));
        }
        let Some(child) = tree.node(&directory, name)? else {
            let cause = path::child(&directory, name);
            return Err(Error::new(Code::KeyNotFound, &cause, tree.index()?));
        };
        node = child;
        directory.extend_from_slice(name);
        directory.push(b'/');
    }
    Ok(node)
}

fn next_index(tree: &impl Tree) -> Result<u64, Error> {
    // Only another command on the tree's keys can have set it so high.
    tree.index()?.checked_add(1).ok_or_else(|| Error::internal(b"the index is at its end"))
}

/// Carries out a request that changes something.
///
/// # Errors
/// Its conditions are not met, or the tree does not have the required form.
pub fn apply(tree: &mut impl Tree, request: &Request<'_>, now: i64) -> Result<Change, Error> {
    let index = tree.index()?;
    let next = next_index(tree)?;
    let mut writing = Writing { tree, request, index, next, now };
    match request.operation() {
        Operation::Set => writing.set(),
        Operation::Create => writing.create(),
        Operation::Update => writing.update(),
        Operation::CompareAndSwap => writing.swap(),
        Operation::Delete => writing.delete(),
        Operation::CompareAndDelete => writing.compare_and_delete(),
        Operation::Get => Err(Error::internal(b"a read changes nothing")),
    }
}

/// Whether more than `most` nodes go with what a request removes.
#[must_use]
pub fn removes_many(tree: &impl Tree, request: &Request<'_>, most: usize) -> bool {
    request.operation() == Operation::Delete
        && request.recursive
        && find(tree, request.path).is_ok_and(|node| node.is_directory())
        && holds_many(tree, request.path, most)
}

/// Whether more than `most` nodes go with the node that expires next, and its time has come.
///
/// # Errors
/// The tree does not have the required form.
pub fn expires_many(tree: &impl Tree, now: i64, most: usize) -> Result<bool, Error> {
    let next = tree.next_expiry()?.filter(|(at, _)| *at <= now);
    Ok(next.is_some_and(|(_, path)| holds_many(tree, &path, most)))
}

/// Whether more than `most` nodes are below a directory. Looks at no more than about that many.
fn holds_many(tree: &impl Tree, path: &[u8], most: usize) -> bool {
    let mut left = most;
    let mut directories = vec![path::inside(path).into_owned()];
    while let Some(directory) = directories.pop() {
        // Other data in place of a directory holds no nodes.
        let Some(rest) = left.checked_sub(tree.count(&directory).unwrap_or(0)) else {
            return true;
        };
        left = rest;
        for (name, child) in tree.children(&directory).unwrap_or_default() {
            if child.is_directory() {
                directories.push(path::inside(&path::child(&directory, &name)).into_owned());
            }
        }
    }
    false
}

/// Removes the node that expires next, if its time has come. Returns nothing if there is none. To
/// be called until then, or as often as there is time for.
///
/// # Errors
/// The tree does not have the required form.
pub fn expire(tree: &mut impl Tree, now: i64) -> Result<Option<ExpiryStep>, Error> {
    let Some((_, path)) = tree.next_expiry()?.filter(|(at, _)| *at <= now) else {
        return Ok(None);
    };
    let found = match find(&*tree, &path) {
        // A path can be written in several ways; nodes have one of them.
        _ if path::clean(&path) != path => None,
        Ok(node) => Some(node.into_owned()),
        Err(error) if matches!(error.code, Code::KeyNotFound | Code::NotDirectory) => None,
        Err(error) => return Err(error),
    };
    let expires = found.as_ref().and_then(|node| node.expires);
    let Some(node) = found.filter(|_| expires.is_some_and(|at| at <= now)) else {
        // The keys of the tree were changed by other commands.
        tree.schedule(&path, expires)?;
        return Ok(Some(ExpiryStep::Corrected));
    };
    let next = next_index(tree)?;
    let gone = take_away(tree, &path, &node)?;
    let event = ended(Action::Expire, &path, &node, next, now);
    tree.record(&event)?;
    Ok(Some(ExpiryStep::Expired(Change { event, gone })))
}

/// The result of [`expire`].
#[derive(Debug)]
pub enum ExpiryStep {
    /// A node has expired.
    Expired(Change),
    /// The recorded expiry of a node was out of date.
    Corrected,
}

/// The event of a node that is gone.
fn ended(action: Action, path: &[u8], node: &Node<'_>, index: u64, now: i64) -> Event<'static> {
    let content = if node.is_directory() { Content::Directory } else { Content::Gone };
    Event {
        action,
        path: Cow::Owned(path.to_vec()),
        node: Node { created: node.created, modified: index, expires: None, content },
        prev: Some(node.clone().into_owned()),
        at: now,
        refresh: false,
    }
}

/// Removes a node with everything below it. Returns the watched paths there.
fn take_away(tree: &mut impl Tree, path: &[u8], node: &Node<'_>) -> Result<Vec<Box<[u8]>>, Error> {
    let mut gone = Vec::new();
    let (directory, name) = path::split(path);
    if node.is_directory() {
        gone = tree.watched_below(path);
        gone.retain(|path| find(&*tree, path).is_ok());
        let mut directories = vec![path::inside(path).into_owned()];
        while let Some(directory) = directories.pop() {
            let mut scheduled = Vec::new();
            // Other data in place of a directory goes with it.
            for (name, child) in tree.children(&directory).unwrap_or_default() {
                if !child.is_directory() && child.expires.is_none() {
                    // That is all of most: their paths are not needed.
                    continue;
                }
                let path = path::child(&directory, &name);
                if child.is_directory() {
                    directories.push(path::inside(&path).into_owned());
                }
                if child.expires.is_some() {
                    scheduled.push(path);
                }
            }
            scheduled.iter().try_for_each(|path| tree.schedule(path, None))?;
            tree.clear(&directory);
        }
    }
    tree.remove(directory, name)?;
    if node.expires.is_some() {
        tree.schedule(path, None)?;
    }
    Ok(gone)
}

/// A request at work.
struct Writing<'w, 'r, T> {
    tree: &'w mut T,
    request: &'w Request<'r>,
    index: u64,
    next: u64,
    now: i64,
}

impl<T: Tree> Writing<'_, '_, T> {
    fn refused<R>(&self, code: Code, cause: &[u8]) -> Result<R, Error> {
        Err(Error::new(code, cause, self.index))
    }

    fn find(&self) -> Result<Node<'static>, Error> {
        find(&*self.tree, self.request.path).map(Node::into_owned)
    }

    /// The root cannot be changed.
    fn refuse_root(&self) -> Result<(), Error> {
        if self.request.path == b"/" { self.refused(Code::RootReadOnly, b"/") } else { Ok(()) }
    }

    fn set(&mut self) -> Result<Change, Error> {
        let request = self.request;
        let prev = match self.find() {
            Ok(node) => Some(node),
            Err(error) if error.code == Code::KeyNotFound && !request.refresh => None,
            Err(error) => return Err(error),
        };
        let value = match &prev {
            Some(prev) if request.refresh => prev.value().to_vec(),
            _ => request.value.to_vec(),
        };
        self.put_new(request.path, &value, Action::Set)
    }

    fn create(&mut self) -> Result<Change, Error> {
        let request = self.request;
        if request.method == Method::Post {
            let name = format!("{:020}", self.next);
            let path = path::child(&path::inside(request.path), name.as_bytes());
            return self.put_new(&path, request.value, Action::Create);
        }
        self.put_new(request.path, request.value, Action::Create)
    }

    /// Puts a node where none exists, or for [`Action::Set`] no directory, together with the
    /// directories above it.
    fn put_new(&mut self, path: &[u8], value: &[u8], action: Action) -> Result<Change, Error> {
        if path == b"/" {
            return self.refused(Code::RootReadOnly, b"/");
        }
        let missing = self.missing_above(path)?;
        let (directory, name) = path::split(path);
        let there = match missing.is_empty() {
            true => self.tree.node(directory, name)?.map(Node::into_owned),
            false => None,
        };
        match &there {
            Some(node) if action == Action::Set && node.is_directory() => {
                return self.refused(Code::NotFile, path);
            }
            Some(_) if action != Action::Set => return self.refused(Code::NodeExists, path),
            _ => {}
        }
        for path in &missing {
            let own = Node { created: self.next, modified: self.next, ..Node::ROOT };
            let (directory, name) = path::split(path);
            self.tree.put(directory, name, &own)?;
            self.tree.clear(&path::inside(path));
        }
        let content = match self.request.dir {
            true => Content::Directory,
            false => Content::Value(Cow::Owned(value.to_vec())),
        };
        let expires = self.request.expires(self.now).filter(|at| *at >= EARLIEST_EXPIRY);
        let node = Node { created: self.next, modified: self.next, expires, content };
        if self.request.dir {
            self.tree.clear(&path::inside(path));
        }
        self.finish(action, path, node, there)
    }

    /// The missing directories above a path, from the top.
    fn missing_above(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let (directory, _) = path::split(path);
        let mut missing = Vec::new();
        for above in path::and_above(directory.strip_suffix(b"/").unwrap_or_default()) {
            if above == b"/" || above.is_empty() {
                continue;
            }
            if missing.is_empty() {
                let (directory, name) = path::split(above);
                match self.tree.node(directory, name)? {
                    Some(node) if node.is_directory() => continue,
                    Some(_) => return self.refused(Code::NotDirectory, above),
                    None => {}
                }
            }
            missing.push(above.to_vec());
        }
        Ok(missing)
    }

    fn update(&mut self) -> Result<Change, Error> {
        self.refuse_root()?;
        let (request, prev) = (self.request, self.find()?);
        if prev.is_directory() && !request.value.is_empty() {
            return self.refused(Code::NotFile, request.path);
        }
        self.replace(Action::Update, prev)
    }

    fn swap(&mut self) -> Result<Change, Error> {
        self.refuse_root()?;
        let prev = self.find()?;
        self.compare(&prev)?;
        self.replace(Action::CompareAndSwap, prev)
    }

    /// Changes an existing node.
    fn replace(&mut self, action: Action, prev: Node<'static>) -> Result<Change, Error> {
        let request = self.request;
        let content = match prev.content {
            Content::Directory => Content::Directory,
            _ if request.refresh => prev.content.clone(),
            _ => Content::Value(Cow::Owned(request.value.to_vec())),
        };
        let expires = request.expires(self.now);
        let node = Node { created: prev.created, modified: self.next, expires, content };
        self.finish(action, request.path, node, Some(prev))
    }

    /// Puts the node there and records the event.
    fn finish(
        &mut self,
        action: Action,
        path: &[u8],
        node: Node<'static>,
        prev: Option<Node<'static>>,
    ) -> Result<Change, Error> {
        let (directory, name) = path::split(path);
        let kept = match &prev {
            // An update of a directory does not touch its contents, and it keeps its index.
            Some(prev) if prev.is_directory() => Node { modified: prev.modified, ..node.clone() },
            _ => node.clone(),
        };
        self.tree.put(directory, name, &kept)?;
        let before = prev.as_ref().and_then(|prev| prev.expires);
        if node.expires != before {
            self.tree.schedule(path, node.expires)?;
        }
        let (at, refresh) = (self.now, self.request.refresh && action != Action::Create);
        let path = Cow::Owned(path.to_vec());
        let event = Event { action, path, node, prev, at, refresh };
        self.tree.record(&event)?;
        Ok(Change { event, gone: Vec::new() })
    }

    /// Whether a value is as expected.
    fn compare(&self, node: &Node<'_>) -> Result<(), Error> {
        let request = self.request;
        if node.is_directory() {
            // The root has no name.
            let name = if request.path == b"/" { b"" } else { request.path };
            return self.refused(Code::NotFile, name);
        }
        let index = request.prev_index == 0 || request.prev_index == node.modified;
        let value = request.prev_value.is_empty() || *request.prev_value == *node.value();
        let values = [b"[", request.prev_value, b" != ", node.value(), b"]"].concat();
        let indexes = format!("[{} != {}]", request.prev_index, node.modified).into_bytes();
        match (value, index) {
            (true, true) => Ok(()),
            (false, true) => self.refused(Code::TestFailed, &values),
            (true, false) => self.refused(Code::TestFailed, &indexes),
            (false, false) => {
                self.refused(Code::TestFailed, &[&values[..], b" ", &indexes].concat())
            }
        }
    }

    fn delete(&mut self) -> Result<Change, Error> {
        self.refuse_root()?;
        let (request, node) = (self.request, self.find()?);
        if node.is_directory() {
            if !request.dir && !request.recursive {
                return self.refused(Code::NotFile, request.path);
            }
            let inside = path::inside(request.path);
            if !request.recursive && !self.tree.is_empty(&inside)? {
                return self.refused(Code::DirectoryNotEmpty, request.path);
            }
        }
        self.end(Action::Delete, &node)
    }

    fn compare_and_delete(&mut self) -> Result<Change, Error> {
        let node = self.find()?;
        self.compare(&node)?;
        self.end(Action::CompareAndDelete, &node)
    }

    fn end(&mut self, action: Action, node: &Node<'_>) -> Result<Change, Error> {
        let path = self.request.path;
        let gone = take_away(self.tree, path, node)?;
        let event = ended(action, path, node, self.next, self.now);
        self.tree.record(&event)?;
        Ok(Change { event, gone })
    }
}
