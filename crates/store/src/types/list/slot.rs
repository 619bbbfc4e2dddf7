//! A node of a long list.

use std::sync::Arc;

use super::directory::Counted;
use super::limits::ListLimits;
use crate::garbage;
use crate::pack::{EMPTY_LISTPACK_BYTES, Encoded, End, Growth, NODE_HEAD_BYTES, Node};

/// A node, and how many elements it has: kept here, so that finding an index touches no node.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// Many small elements.
    Packed { count: u32, node: Node },
    /// One large element.
    Plain(Arc<Vec<u8>>),
}

impl Slot {
    pub(super) fn packed(node: Node) -> Self {
        Slot::Packed { count: node.len() as u32, node }
    }

    /// A node of the smallest size for one element.
    pub(super) fn with_element(element: &Encoded<'_>) -> Self {
        let size = NODE_HEAD_BYTES + EMPTY_LISTPACK_BYTES + element.len();
        let mut node = Node::new(size, End::Back);
        node.push(End::Back, element, Growth::Tight);
        Slot::Packed { count: 1, node }
    }

    /// Frees it, or puts it aside if it is large: the list's slot may be locked.
    pub(super) fn release(self) {
        if let Slot::Plain(text) = self {
            garbage::free_text(text);
        }
    }

    /// Bytes of its block.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Slot::Packed { node, .. } => node.block_size(),
            Slot::Plain(text) => text.capacity(),
        }
    }

    /// Bytes of its element, if that is a large one.
    pub(super) fn plain_bytes(&self) -> usize {
        match self {
            Slot::Packed { .. } => 0,
            Slot::Plain(text) => text.capacity(),
        }
    }

    /// Adds an element at an end if this node has room for it.
    #[inline]
    pub(super) fn try_push(
        &mut self,
        end: End,
        element: &Encoded<'_>,
        limits: &ListLimits,
    ) -> bool {
        let Slot::Packed { count, node } = self else { return false };
        let fits = |total| limits.fits(total, *count as usize, element.len());
        let pushed = node.push_if(end, element, limits.growth(), fits);
        *count += u32::from(pushed);
        pushed
    }

    /// Appends the elements of `next` if both together are small enough.
    pub(super) fn try_absorb(&mut self, next: &Slot, limits: &ListLimits) -> bool {
        let (Slot::Packed { count, node }, Slot::Packed { count: more, node: other }) =
            (self, next)
        else {
            return false;
        };
        let total = node.total_bytes() + other.total_bytes();
        if !limits.may_join(total, (*count + *more) as usize) {
            return false;
        }
        node.append(other, Growth::Tight);
        *count += *more;
        true
    }
}

impl Counted for Slot {
    #[inline]
    fn count(&self) -> usize {
        match self {
            Slot::Packed { count, .. } => *count as usize,
            Slot::Plain(_) => 1,
        }
    }
}
