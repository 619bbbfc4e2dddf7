//! A small sorted set: a listpack of members and scores in turn, ascending by score and member.
//!
//! A score that is an integer is stored as one, any other as the text of 17 digits that Redis
//! prints, so that the block is the same byte for byte.

use std::cmp::Ordering;
use std::ops::Range;

use base::num::{parse_f64, write_f64};

use crate::pack::{
    Element, Elements, Encoded, INTEGER_TEXT_BYTES, Listpack, ListpackSlice, Position,
};
use crate::types::packed::{Malformed, has_duplicates};

/// Bytes of the longest text of a score: sign, 17 digits, a point, an exponent of five.
pub(super) const SCORE_TEXT_BYTES: usize = 24;

/// Integer scores up to here are stored as integers: half the range of 64 bits, as in Redis.
const INTEGER_SCORES: f64 = (1u64 << 62) as f64;

/// Hands the stored form of a score to `write`.
fn with_encoded<T>(score: f64, write: impl FnOnce(Encoded<'_>) -> T) -> T {
    if score.trunc() == score && score.abs() <= INTEGER_SCORES {
        return write(Encoded::integer(score as i64));
    }
    let mut text = Vec::with_capacity(SCORE_TEXT_BYTES);
    write_f64(&mut text, score);
    write(Encoded::text(&text))
}

/// Reads a score from outside. NaN is not one.
fn read_score(element: Element<'_>) -> Option<f64> {
    match element {
        Element::Int(value) => Some(value as f64),
        Element::Str(text) => parse_f64(text),
    }
}

/// Reads a stored score.
#[inline]
fn score(element: Element<'_>) -> f64 {
    read_score(element).expect("scores are checked on the way in")
}

/// Compares a stored pair with another one.
fn compare(pair: (Element<'_>, f64), other_score: f64, other_member: &[u8]) -> Ordering {
    let (member, score) = pair;
    score
        .partial_cmp(&other_score)
        .expect("no score is NaN")
        .then_with(|| member.as_bytes(&mut [0; INTEGER_TEXT_BYTES]).cmp(other_member))
}

/// Checks a listpack from outside.
pub(super) fn validate(listpack: &ListpackSlice) -> Result<(), Malformed> {
    if !listpack.len().is_multiple_of(2) {
        return Err(Malformed::Unpaired);
    }
    if !listpack.elements().skip(1).step_by(2).all(|element| read_score(element).is_some()) {
        return Err(Malformed::Score);
    }
    let (mut buffer, mut previous) = ([0; INTEGER_TEXT_BYTES], None);
    for (member, score) in range(listpack, 0..usize::MAX) {
        if previous.is_some_and(|pair| {
            compare(pair, score, member.as_bytes(&mut buffer)) != Ordering::Less
        }) {
            return Err(Malformed::Order);
        }
        previous = Some((member, score));
    }
    if has_duplicates(listpack.elements().step_by(2)) {
        return Err(Malformed::Duplicate);
    }
    Ok(())
}

/// A member's position and score.
pub(super) fn find(listpack: &ListpackSlice, member: &[u8]) -> Option<(Position, f64)> {
    let position = listpack.find(member, 1)?;
    Some((position, pair_at(listpack, position).1))
}

/// The member at a position, and its score.
pub(super) fn pair_at(listpack: &ListpackSlice, position: Position) -> (Element<'_>, f64) {
    let (member, next) = listpack.element_and_next(position);
    let next = next.expect("a score follows each member");
    (member, score(listpack.element(next)))
}

/// Number of members in front of `member`, if it is there.
pub(super) fn rank(listpack: &ListpackSlice, member: &[u8]) -> Option<usize> {
    let position = listpack.find(member, 1)?;
    let before = listpack.iter().take_while(|&(other, _)| other < position).count();
    Some(before / 2)
}

/// Inserts a member that is not there yet.
pub(super) fn insert(listpack: &mut Listpack, member: &[u8], score: f64) {
    with_encoded(score, |score_entry| match place_for(listpack, member, score) {
        Some(position) => {
            listpack.insert_before(position, member);
            listpack.insert_after(position, score_entry);
        }
        None => listpack.extend_back([Encoded::text(member), score_entry]),
    });
}

/// Where a new member belongs: before which member, or at the end.
fn place_for(listpack: &ListpackSlice, member: &[u8], score: f64) -> Option<Position> {
    // Many sorted sets grow at their end.
    let last = listpack.last().and_then(|position| listpack.prev(position))?;
    if compare(pair_at(listpack, last), score, member) == Ordering::Less {
        return None;
    }
    let mut position = listpack.first();
    while let Some(here) = position
        && compare(pair_at(listpack, here), score, member) == Ordering::Less
    {
        position = listpack.next(here).and_then(|score| listpack.next(score));
    }
    position
}

/// Number of members at the front for which `before` is true.
pub(super) fn count_while(
    listpack: &ListpackSlice,
    mut before: impl FnMut(Element<'_>, f64) -> bool,
) -> usize {
    range(listpack, 0..usize::MAX).take_while(|&(member, score)| before(member, score)).count()
}

/// The pairs whose ranks are in `ranks`, cut to those present.
pub(super) fn range(listpack: &ListpackSlice, ranks: Range<usize>) -> Pairs<'_> {
    let len = listpack.len() / 2;
    let end = ranks.end.min(len);
    let start = ranks.start.min(end);
    if start == end {
        return Pairs { front: Elements::default(), back: Elements::default(), left: 0 };
    }
    Pairs {
        front: listpack.elements_from(2 * start),
        back: listpack.elements_through(2 * end - 1),
        left: end - start,
    }
}

/// Iterator over members with their scores, from either end.
pub(super) struct Pairs<'a> {
    front: Elements<'a>,
    back: Elements<'a>,
    left: usize,
}

impl Pairs<'_> {
    pub(super) fn len(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((self.front.next()?, score(self.front.next()?)))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let score = score(self.back.next_back()?);
        Some((self.back.next_back()?, score))
    }
}
