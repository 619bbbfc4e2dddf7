//! Which elements SORT returns, and in which order.

use std::cmp::Ordering;

use base::num;
use store::list::ListItem;
use store::pack::{Element, End, INTEGER_TEXT_BYTES};
use store::{List, ValueRef, Zset};

use super::pattern::Pattern;
use engine::command::error::CommandError;
use engine::db::Db;

const NOT_A_NUMBER: CommandError =
    CommandError::text("ERR One or more scores can't be converted into double");

/// The options that say which elements come, and in which order.
pub(super) struct Order<'a> {
    /// The pattern that leads to the weights; without it the elements are their own weights. A
    /// pattern that leads to no key means: do not sort.
    pub(super) by: Option<Pattern<'a>>,
    /// Weights are texts, not numbers.
    pub(super) alpha: bool,
    /// The greatest comes first.
    pub(super) descending: bool,
    /// Elements that are left out at the beginning. Negative numbers count as 0.
    pub(super) offset: i64,
    /// At most this many elements; negative for no bound.
    pub(super) count: i64,
}

impl Default for Order<'_> {
    fn default() -> Self {
        Order { by: None, alpha: false, descending: false, offset: 0, count: -1 }
    }
}

/// An element with its weight.
struct Weighted<'e> {
    number: f64,
    /// Nothing when BY leads to no value; such elements come first.
    text: Option<Element<'e>>,
    element: Element<'e>,
    /// Its place in the collection, which decides between equals.
    index: usize,
}

impl Order<'_> {
    fn sorts(&self) -> bool {
        self.by.is_none_or(Pattern::leads_to_keys)
    }

    /// Makes the order of a set's elements definite, as it must be before the result is stored.
    pub(super) fn settle(&mut self) {
        if !self.sorts() {
            (self.by, self.alpha) = (None, true);
        }
    }

    /// The requested elements, in order. The collection may be missing.
    pub(super) fn apply<'e>(
        &self,
        db: &'e Db<'_>,
        source: Option<ValueRef<'e>>,
    ) -> Result<Vec<Element<'e>>, CommandError> {
        match source {
            Some(ValueRef::List(list)) if !self.sorts() => Ok(self.part_of_list(list)),
            Some(ValueRef::Zset(zset)) if !self.sorts() => Ok(self.part_of_zset(zset)),
            Some(ValueRef::List(list)) => {
                self.sorted(db, list.iter().map(|item: ListItem<'e>| item.as_element()), list.len())
            }
            Some(ValueRef::Zset(zset)) => {
                self.sorted(db, zset.iter().map(|(member, _)| member), zset.len())
            }
            Some(ValueRef::Set(set)) if !self.sorts() => {
                let (start, end) = self.bounds(set.len());
                Ok(set.iter().skip(start).take(end - start).collect())
            }
            Some(ValueRef::Set(set)) => self.sorted(db, set.iter(), set.len()),
            Some(ValueRef::String(_) | ValueRef::Hash(_) | ValueRef::Stream(_)) | None => {
                Ok(Vec::new())
            }
        }
    }

    /// Where LIMIT begins and ends in a sequence of `len` elements.
    fn bounds(&self, len: usize) -> (usize, usize) {
        let start = usize::try_from(self.offset.max(0)).unwrap_or(len).min(len);
        let end = usize::try_from(self.count).map_or(len, |count| start.saturating_add(count));
        (start, end.min(len))
    }

    fn part_of_list<'e>(&self, list: &'e List) -> Vec<Element<'e>> {
        let (start, end) = self.bounds(list.len());
        if start == end {
            return Vec::new();
        }
        let items = if self.descending {
            list.range(list.len() - 1 - start, end - start, End::Back)
        } else {
            list.range(start, end - start, End::Front)
        };
        items.map(|item| item.as_element()).collect()
    }

    fn part_of_zset<'e>(&self, zset: &'e Zset) -> Vec<Element<'e>> {
        let (start, end) = self.bounds(zset.len());
        if self.descending {
            let ranks = zset.len() - end..zset.len() - start;
            return zset.range(ranks).rev().map(|(member, _)| member).collect();
        }
        zset.range(start..end).map(|(member, _)| member).collect()
    }

    fn sorted<'e>(
        &self,
        db: &'e Db<'_>,
        elements: impl Iterator<Item = Element<'e>>,
        len: usize,
    ) -> Result<Vec<Element<'e>>, CommandError> {
        let (mut weighted, mut all_are_numbers) = (Vec::with_capacity(len), true);
        for (index, element) in elements.enumerate() {
            let text = match self.by {
                Some(by) => by.look_up(db, element),
                None => Some(element),
            };
            let number = match text {
                Some(text) if !self.alpha => number(text),
                _ => Some(0.0),
            };
            // All weights are looked up in any case, and misses counted.
            all_are_numbers &= number.is_some();
            let number = number.unwrap_or_default();
            weighted.push(Weighted { number, text, element, index });
        }
        if !all_are_numbers {
            return Err(NOT_A_NUMBER);
        }
        let (start, end) = self.bounds(len);
        if end < weighted.len() {
            weighted.select_nth_unstable_by(end, |one, other| self.compare(one, other));
            weighted.truncate(end);
        }
        weighted.sort_unstable_by(|one, other| self.compare(one, other));
        Ok(weighted[start..].iter().map(|weighted| weighted.element).collect())
    }

    fn compare(&self, one: &Weighted<'_>, other: &Weighted<'_>) -> Ordering {
        let order = if self.alpha {
            match (one.text, other.text) {
                (Some(one), Some(other)) => compare_texts(one, other),
                (one, other) => one.is_some().cmp(&other.is_some()),
            }
        } else {
            let numbers = one.number.partial_cmp(&other.number).unwrap_or(Ordering::Equal);
            numbers.then_with(|| compare_texts(one.element, other.element))
        };
        let order = if self.descending { order.reverse() } else { order };
        order.then(one.index.cmp(&other.index))
    }
}

fn compare_texts(one: Element<'_>, other: Element<'_>) -> Ordering {
    if let (Element::Str(one), Element::Str(other)) = (one, other) {
        return one.cmp(other);
    }
    let mut buffers = [[0; INTEGER_TEXT_BYTES]; 2];
    let [first, second] = &mut buffers;
    one.as_bytes(first).cmp(other.as_bytes(second))
}

/// Reads a weight as bounds of scores are read: an empty text is zero, and a number that is too
/// large is infinity.
fn number(element: Element<'_>) -> Option<f64> {
    match element {
        Element::Int(number) => Some(number as f64),
        Element::Str(text) => num::parse_f64_lenient(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_the_reference_reads_them() {
        let number = |text: &'static str| number(Element::Str(text.as_bytes()));
        assert_eq!(number(""), Some(0.0));
        assert_eq!(number("1e400"), Some(f64::INFINITY));
        assert_eq!(number("-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(number("1\0z"), Some(1.0));
        for wrong in [" ", "3 ", " 3", "a", "nan", "0x10", "1,5"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn limits_are_cut_to_what_is_there() {
        let bounds = |offset, count| Order { offset, count, ..Order::default() }.bounds(6);
        assert_eq!(bounds(0, -1), (0, 6));
        assert_eq!(bounds(2, 2), (2, 4));
        assert_eq!(bounds(4, 100), (4, 6));
        assert_eq!(bounds(100, 1), (6, 6));
        assert_eq!(bounds(0, 0), (0, 0));
        assert_eq!(bounds(-5, 2), (0, 2));
        assert_eq!(bounds(i64::MAX, i64::MAX), (6, 6));
        assert_eq!(bounds(i64::MIN, i64::MIN), (0, 6));
    }
}
