//! The answer to a read.

use std::vec::IntoIter;

use crate::change::find;
use crate::error::Error;
use crate::json::Object;
use crate::node::Node;
use crate::path;
use crate::tree::{Child, Tree};

/// Bytes that a node takes in an answer, about, besides its value.
const NODE: usize = 128;

/// A directory; some of its children are written.
struct Open<'t> {
    own: Node<'t>,
    directory: Vec<u8>,
    left: IntoIter<Child<'t>>,
}

struct Listing<'t, T> {
    tree: &'t T,
    sorted: bool,
    now: i64,
    /// Bytes of the whole answer at most.
    most: usize,
    /// Directories within each other: they may be as deep as addresses are long.
    open: Vec<Open<'t>>,
}

/// Appends a node and its children as JSON, at a millisecond of Unix time; with `recursive`, all
/// nodes below. Stops, and returns false, as soon as the text is sure to get longer than `most`
/// bytes.
///
/// # Errors
/// The node does not exist.
pub fn write_node(
    tree: &impl Tree,
    at: &[u8],
    (recursive, sorted): (bool, bool),
    (now, most): (i64, usize),
    out: &mut Vec<u8>,
) -> Result<bool, Error> {
    let node = find(tree, at)?;
    let mut listing = Listing { tree, sorted, now, most, open: Vec::new() };
    out.extend_from_slice(b"{\"action\":\"get\",\"node\":");
    if !listing.write(node, at, true, out)? {
        return Ok(false);
    }
    while let Some(open) = listing.open.last_mut() {
        if out.len() > most {
            return Ok(false);
        }
        if let Some((name, node)) = open.left.next() {
            let at = path::child(&open.directory, &name);
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            if !listing.write(node, &at, recursive, out)? {
                return Ok(false);
            }
        } else if let Some(open) = listing.open.pop() {
            out.push(b']');
            open.own.write_tail(Object::resume(out));
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(out.len() <= most)
}

impl<'t, T: Tree> Listing<'t, T> {
    /// Writes a node; if its children are written too, only its beginning. Returns false if these
    /// are too many.
    fn write(
        &mut self,
        node: Node<'t>,
        at: &[u8],
        with_children: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let left = self.most.saturating_sub(out.len());
        let mut object = Object::begin(out);
        node.write_head(&mut object, at, self.now);
        let directory = path::inside(at).into_owned();
        let mut children = Vec::new();
        if node.is_directory() && with_children {
            let count = self.tree.count(&directory)?;
            if count.saturating_mul(NODE) > left {
                return Ok(false);
            }
            children = self.children(&directory)?;
        }
        if children.is_empty() {
            node.write_tail(object);
        } else {
            object.member("nodes").push(b'[');
            self.open.push(Open { own: node, directory, left: children.into_iter() });
        }
        Ok(true)
    }

    /// The children that a directory shows.
    fn children(&self, directory: &[u8]) -> Result<Vec<Child<'t>>, Error> {
        let mut children = self.tree.children(directory)?;
        children.retain(|(name, _)| !path::is_hidden(name));
        if self.sorted {
            children.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        Ok(children)
    }
}
