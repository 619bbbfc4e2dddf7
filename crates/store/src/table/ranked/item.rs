//! What the tree asks of its elements.

/// What the tree needs to know of its elements.
///
/// An item is a small copyable handle of a score and a member, usually a pointer. The tree copies
/// handles freely and reads through them in every operation. So the caller that inserts an item
/// promises, until the item is removed again: the handle stays valid, its member does not change,
/// and its score changes only in [`rescore`](super::Ranked::rescore). A broken promise about score
/// or member makes answers wrong, nothing worse; the implementing type promises that reading
/// through the handle is sound. Scores are never NaN.
pub trait RankedItem: Copy {
    /// The score, by which elements are ordered first. Not NaN; `-0.0` equals `0.0`.
    fn score(&self) -> f64;

    /// The member, whose bytes order elements of equal scores.
    fn member(&self) -> &[u8];

    /// Hints that score and member are about to be read. Does nothing unless overridden.
    #[inline]
    fn prefetch(&self) {}
}
