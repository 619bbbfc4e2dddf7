//! What keeps a tree.

use std::borrow::Cow;

use crate::error::Error;
use crate::event::Event;
use crate::node::Node;

/// A child of a directory: its name, and what it is.
pub type Child<'t> = (Cow<'t, [u8]>, Node<'t>);

/// Where nodes and events are. Directories are named with a slash at their end. That there are nodes
/// below a directory does not say that the directory itself is there: [`crate::change`] goes down from
/// the root.
///
/// What fails is not done; a change that is refused because of its values was refused before anything
/// was changed, as long as what is read first is of the kind that is expected.
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

    /// Whether a directory has no children.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn is_empty(&self, directory: &[u8]) -> Result<bool, Error>;

    /// Puts a child into a directory, whatever was there.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn put(&mut self, directory: &[u8], name: &[u8], node: &Node<'_>) -> Result<(), Error>;

    /// Takes a child out of a directory.
    ///
    /// # Errors
    /// As [`Tree::node`].
    fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<(), Error>;

    /// Removes all children of a directory, and whatever else is in its place.
    fn clear(&mut self, directory: &[u8]);

    /// The node that expires next, and when.
    ///
    /// # Errors
    /// There is something else where that is kept.
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

    /// Paths below this one that somebody watches.
    fn watched_below(&self, path: &[u8]) -> Vec<Box<[u8]>>;
}
