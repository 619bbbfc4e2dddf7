//! A map that keeps the order in which its keys were added. A key is taken out in a time that
//! hardly grows with their number: who sends rules may send a million of them, and take back each.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// See the module's text.
#[derive(Clone)]
pub(super) struct Ordered<K, V> {
    /// Each key's place in the order, and its value.
    by_key: BTreeMap<K, (u64, V)>,
    in_order: BTreeMap<u64, K>,
    next: u64,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Ordered { by_key: BTreeMap::new(), in_order: BTreeMap::new(), next: 0 }
    }
}

impl<K: Ord + Clone, V> Ordered<K, V> {
    /// Adds a key behind all others. One that is there already moves there.
    pub(super) fn put_last(&mut self, key: K, value: V) {
        let place = self.next;
        self.next += 1;
        if let Some((before, _)) = self.by_key.insert(key.clone(), (place, value)) {
            self.in_order.remove(&before);
        }
        self.in_order.insert(place, key);
    }

    /// Takes a key out. Whether it was there.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let removed = self.by_key.remove(key);
        removed.is_some_and(|(place, _)| self.in_order.remove(&place).is_some())
    }

    /// Takes all keys out that lie in a range.
    pub(super) fn remove_range<Q: Ord + ?Sized>(&mut self, range: impl RangeBounds<Q>)
    where
        K: Borrow<Q>,
    {
        let found: Vec<K> = self.by_key.range(range).map(|(key, _)| key.clone()).collect();
        for key in &found {
            self.remove(key.borrow());
        }
    }

    /// Whether a key is there.
    pub(super) fn has<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.by_key.contains_key(key)
    }

    /// Takes all keys out.
    pub(super) fn clear(&mut self) {
        *self = Ordered::default();
    }

    /// The keys, in their order, with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.in_order.values().map(|key| {
            let (_, value) = &self.by_key[key];
            (key, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_move_to_its_end() {
        let mut all = Ordered::default();
        for (key, value) in [("b", 1), ("a", 2), ("a|x", 3), ("c", 4), ("a|y", 5), ("b", 6)] {
            all.put_last(key, value);
        }
        let shown = |all: &Ordered<&'static str, i32>| {
            all.iter().map(|(key, value)| format!("{key}{value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&all), "a2 a|x3 c4 a|y5 b6");
        all.remove_range("a|".."a}");
        assert_eq!(shown(&all), "a2 c4 b6");
        assert!(all.remove("c") && !all.remove("c") && all.has("a") && !all.has("c"));
        assert_eq!(shown(&all), "a2 b6");
        all.clear();
        assert_eq!(shown(&all), "");
    }
}
