//! Replies from values: strings and elements are written from where they are stored, in whatever
//! form.

use base::limits::{MAX_ELEMENTS, RANDOM_REPLY};
use base::rng::{self, Rng};
use resp::reply::Reply;
use store::StringRef;
use store::list::ListItem;
use store::pack::Element;

use crate::command::error::{CommandError, CommandResult};

/// This many members are drawn with repetition before the size of the reply is checked.
const DRAWS_AT_ONCE: usize = 1024;

/// A command may make a set, hash or sorted set of at most this many elements.
#[cfg(not(any(test, feature = "testing")))]
pub fn most_elements() -> usize {
    MAX_ELEMENTS
}

#[cfg(any(test, feature = "testing"))]
thread_local! {
    static MOST: std::cell::Cell<usize> = const { std::cell::Cell::new(MAX_ELEMENTS) };
}

/// The test of this thread sets the number: no test makes four thousand million.
#[cfg(any(test, feature = "testing"))]
pub fn most_elements() -> usize {
    MOST.get()
}

/// Lowers the maximum number of elements while a test runs `action`.
#[cfg(any(test, feature = "testing"))]
pub fn with_most_elements(most: usize, action: impl FnOnce()) {
    MOST.set(most);
    action();
    MOST.set(MAX_ELEMENTS);
}

/// Answers `count` members that are drawn with repetition: `draw` writes as many as it is told. The
/// client may ask for any number, even of a small collection, so the reply is bounded.
pub fn reply_repeating(
    reply: &mut Reply<'_>,
    count: usize,
    mut draw: impl FnMut(&mut Reply<'_>, usize, &mut Rng),
) -> CommandResult {
    let (start, mut left) = (reply.output().len(), count);
    while left > 0 {
        let draws = left.min(DRAWS_AT_ONCE);
        rng::with(|rng| draw(reply, draws, rng));
        left -= draws;
        if left > 0 && reply.output().len() - start > RANDOM_REPLY {
            return Err(CommandError::OUT_OF_RANGE);
        }
    }
    Ok(())
}

/// Writes strings, and elements of collections as strings.
pub trait ReplyElements {
    /// A string value. A large one is sent from where it lies.
    fn string(&mut self, string: StringRef<'_>);

    /// An element of a packed block or a member of a table.
    fn element(&mut self, element: Element<'_>);

    /// An element of a list. A large one is sent from where it lies.
    fn item(&mut self, item: ListItem<'_>);
}

impl ReplyElements for Reply<'_> {
    #[inline]
    fn string(&mut self, string: StringRef<'_>) {
        match string {
            StringRef::Int(value) => self.bulk_int(value),
            StringRef::Inline { bytes, .. } => self.bulk(bytes),
            StringRef::Shared(buffer) => self.bulk_shared(buffer),
        }
    }

    #[inline(always)]
    fn element(&mut self, element: Element<'_>) {
        match element {
            Element::Str(text) => self.bulk(text),
            Element::Int(value) => self.bulk_int(value),
        }
    }

    #[inline(always)]
    fn item(&mut self, item: ListItem<'_>) {
        match item {
            ListItem::Plain(text) => self.bulk_shared(text),
            _ => self.element(item.as_element()),
        }
    }
}
