//! The store of a tree.

use std::borrow::Cow;

use crate::error::Error;
use crate::event::Event;
use crate::node::Node;

/// A child of a directory: its name, and its node.
pub type Child<'t> = (Cow<'t, [u8]>, Node<'t>);

/// Access to nodes and events. Directories are named with a slash at their end. Nodes below a
/// directory do not prove that the directory itself exists: [`crate::change`] goes down from the
/// root.
///
/// A failed operation changes nothing. A change that is refused because of its values was refused
/// before anything was changed, as long as the data that is read first has the expected type.
pub trait Tree {
    /// The index of the last event.
    ///
    /// # Errors
    /// There is something else where events are kept.
    fn index(&self) -> Result<u64, Error>;

    /// A child of a directory.
    ///
    /// # Errors
    /// There is something else in the directory's place.
    fn node(&self, directory: &[u8], name: &[u8]) -> Result<Option<Node<'_>>, Error>;

    /// All children of a directory, in any order.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn children(&self, directory: &[u8]) -> Result<Vec<Child<'_>>, Error>;

    /// How many children a directory has, about: texts that are no nodes may count.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn count(&self, directory: &[u8]) -> Result<usize, Error>;

    /// Whether a directory has no children.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn is_empty(&self, directory: &[u8]) -> Result<bool, Error>;

    /// Puts a child into a directory, and replaces what was there.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn put(&mut self, directory: &[u8], name: &[u8], node: &Node<'_>) -> Result<(), Error>;

    /// Takes a child out of a directory.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<(), Error>;

    /// Removes all children of a directory, and other data in its place.
    fn clear(&mut self, directory: &[u8]);

    /// The node that expires next, and when.
    ///
    /// # Errors
    /// A value of another kind is in the place where this is kept.
    fn next_expiry(&self) -> Result<Option<(i64, Vec<u8>)>, Error>;

    /// Notes when a node expires, or that it does not.
    ///
    /// # Errors
    /// As [`Tree::next_expiry`].
    fn schedule(&mut self, path: &[u8], expires: Option<i64>) -> Result<(), Error>;

    /// Adds an event, whose index is above all others.
    ///
    /// # Errors
    /// As [`Tree::index`].
    fn record(&mut self, event: &Event<'_>) -> Result<(), Error>;

    /// Watched paths below this one.
    fn watched_below(&self, path: &[u8]) -> Vec<Box<[u8]>>;
}
