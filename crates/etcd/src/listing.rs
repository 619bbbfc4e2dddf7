//! The answer to a read.

use std::vec::IntoIter;

use crate::change::find;
use crate::error::Error;
use crate::json::Object;
use crate::node::Node;
use crate::path;
use crate::tree::{Child, Tree};

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
    /// Directories within each other: they may be as deep as addresses are long.
    open: Vec<Open<'t>>,
}

/// Appends a node and its children as JSON, at a millisecond of Unix time; with `recursive`, all nodes
/// below.
///
/// # Errors
/// The node does not exist.
pub fn write_node(
    tree: &impl Tree,
    at: &[u8],
    (recursive, sorted): (bool, bool),
    now: i64,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let node = find(tree, at)?;
    let mut listing = Listing { tree, sorted, now, open: Vec::new() };
    out.extend_from_slice(b"{\"action\":\"get\",\"node\":");
    listing.write(node, at, true, out)?;
    while let Some(open) = listing.open.last_mut() {
        if let Some((name, node)) = open.left.next() {
            let at = path::child(&open.directory, &name);
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            listing.write(node, &at, recursive, out)?;
        } else if let Some(open) = listing.open.pop() {
            out.push(b']');
            open.own.write_tail(Object::resume(out));
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

impl<'t, T: Tree> Listing<'t, T> {
    /// Writes a node; if its children are written too, only its beginning.
    fn write(
        &mut self,
        node: Node<'t>,
        at: &[u8],
        with_children: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut object = Object::begin(out);
        node.write_head(&mut object, at, self.now);
        let directory = path::inside(at).into_owned();
        let children = match node.is_directory() && with_children {
            true => self.children(&directory)?,
            false => Vec::new(),
        };
        if children.is_empty() {
            node.write_tail(object);
        } else {
            object.member("nodes").push(b'[');
            self.open.push(Open { own: node, directory, left: children.into_iter() });
        }
        Ok(())
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
