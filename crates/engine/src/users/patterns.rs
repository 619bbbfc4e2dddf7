//! Patterns of names, arranged so that a name is compared with few of them.
//!
//! Each command of a user with rules asks for its keys. So the answer takes no longer when there
//! are more patterns: they hang in a compressed trie, each at the end of its head, which is its
//! text up to the first special byte. A name goes down the trie as far as it agrees, and is
//! compared with the patterns that it passes. A pattern whose head is followed by a star alone
//! matches every name that passes it; only the others are read byte by byte.

use std::ops::Range;

use base::hash::hash;
use base::{bytes, glob};
use hashbrown::HashTable;

/// Reads of keys, writes of keys: a set of bits.
pub(crate) type Access = u8;
/// What a key's value is may be told.
pub(crate) const READ: Access = 1;
/// The key may be changed.
pub(crate) const WRITE: Access = 2;

/// A pattern of names, and what may be done with these.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: Box<[u8]>,
    pub(crate) access: Access,
}

/// How a pattern goes on after its head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Not at all: it matches its own text alone.
    None,
    /// With a star: it matches all that begins so.
    Star,
    /// In another way.
    Glob,
}

/// A number of a pattern or of a node.
type Number = u32;

/// The number of the node without a text, below which all others are.
const ROOT: usize = 0;

/// Bytes of a text that are compared at once.
const WORD: usize = size_of::<u64>();

/// Set in what a node allows, if a pattern allows anything there.
const SOMETHING: Access = 1 << 7;

/// A node of the trie: what the patterns below it have in common, after that of the node above.
#[derive(Clone, Default, Debug)]
struct Node {
    /// Where its text lies in [`Patterns::heads`].
    text: Range<Number>,
    /// The beginning of its text, and the bits of this that count.
    word: u64,
    mask: u64,
    /// What the pattern allows that has a star here, and nothing after it.
    star: Access,
    /// What the pattern allows that ends here.
    literal: Access,
    /// Whether there are patterns that go on otherwise.
    has_globs: bool,
    /// All patterns whose heads end here.
    patterns: Vec<Number>,
    /// The nodes below, by the first bytes of their texts, in the order of these.
    below: Vec<(u8, Number)>,
}

/// See the module's text.
#[derive(Clone, Default, Debug)]
pub(crate) struct Patterns {
    /// In the order in which they were added.
    all: Vec<Pattern>,
    /// The numbers of all of them, by their texts.
    by_text: HashTable<Number>,
    /// The root is the first, if there is any pattern.
    nodes: Vec<Node>,
    /// The texts of all nodes.
    heads: Vec<u8>,
    /// The nodes right below the root, by their first bytes; the root itself where there is none.
    first: Option<Box<[Number; 256]>>,
}

/// How names begin of which each is allowed what one of them was: in so few bytes that a look at
/// them costs next to nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    word: u64,
    mask: u64,
    length: usize,
}

impl Beginning {
    /// The first bytes of a name; none if they are too many.
    pub(crate) fn of(name: &[u8], length: usize) -> Option<Beginning> {
        let mask = (length <= WORD).then(|| mask(length))?;
        Some(Beginning { word: word(name) & mask, mask, length })
    }

    /// Whether a name begins so.
    #[inline]
    pub(crate) fn begins(&self, name: &[u8]) -> bool {
        name.len() >= self.length && (word(name) ^ self.word) & self.mask == 0
    }
}

/// The bits of a word that stand for so many bytes of a text.
fn mask(length: usize) -> u64 {
    let bits = u64::BITS as usize / WORD * length.min(WORD);
    u64::MAX.checked_shr(u64::BITS - bits as u32).unwrap_or(0)
}

/// The length of a pattern's head, and what comes after it.
fn head(text: &[u8]) -> (usize, Tail) {
    let is_special = |byte: &u8| b"*?[\\".contains(byte);
    match text.iter().position(is_special) {
        None => (text.len(), Tail::None),
        Some(at) if text[at..] == *b"*" => (at, Tail::Star),
        Some(at) => (at, Tail::Glob),
    }
}

/// The first bytes of a text as a number, the first byte the lowest.
#[inline]
fn word(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    }
}

impl Pattern {
    #[inline]
    fn allows(&self, access: Access) -> bool {
        self.access & access == access
    }

    /// Whether it surely matches all names that begin with this.
    fn covers_prefix(&self, prefix: &[u8]) -> bool {
        match head(&self.text) {
            (_, Tail::None) => false,
            (length, Tail::Star) => prefix.starts_with(&self.text[..length]),
            (_, Tail::Glob) => self.text.iter().all(|byte| *byte == b'*'),
        }
    }
}

impl Patterns {
    /// All of them, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.all.iter()
    }

    /// Whether a pattern with this text is among them.
    pub(crate) fn has(&self, text: &[u8]) -> bool {
        self.find(text).is_some()
    }

    /// The number of the pattern with this text.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let is_it = |number: &Number| *self.all[*number as usize].text == *text;
        let found = self.by_text.find(hash(text), is_it)?;
        Some(*found as usize)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        *self = Patterns::default();
    }

    /// Adds a pattern, or what it allows to the one with the same text.
    pub(crate) fn add(&mut self, text: &[u8], access: Access) {
        let (length, tail) = head(text);
        let node = self.node_at(&text[..length]);
        let number = self.find(text).unwrap_or_else(|| {
            let number = self.all.len();
            self.all.push(Pattern { text: text.into(), access });
            self.nodes[node].patterns.push(number as Number);
            let Patterns { all, by_text, .. } = self;
            let hash_of = |number: &Number| hash(&all[*number as usize].text);
            by_text.insert_unique(hash(text), number as Number, hash_of);
            number
        });
        let pattern = &mut self.all[number];
        pattern.access |= access;
        let own = &mut self.nodes[node];
        match tail {
            Tail::None => own.literal = pattern.access | SOMETHING,
            Tail::Star => own.star = pattern.access | SOMETHING,
            Tail::Glob => own.has_globs = true,
        }
    }

    /// The node at the end of a head, which is made if there is none.
    fn node_at(&mut self, head: &[u8]) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
            self.first = Some(Box::new([ROOT as Number; 256]));
        }
        let (mut at, mut rest) = (ROOT, head);
        while let Some(first) = rest.first() {
            let below = &self.nodes[at].below;
            match below.binary_search_by_key(first, |(byte, _)| *byte) {
                Ok(place) => {
                    at = below[place].1 as usize;
                    let text = self.text(&self.nodes[at]);
                    let same = text.iter().zip(rest).take_while(|(own, other)| own == other);
                    let common = same.count();
                    if common < text.len() {
                        self.split(at, common);
                    }
                    rest = &rest[common..];
                }
                Err(place) => {
                    let begin = self.heads.len() as Number;
                    self.heads.extend_from_slice(rest);
                    let number = self.nodes.len();
                    let node = self.node(begin..self.heads.len() as Number);
                    self.nodes.push(node);
                    self.nodes[at].below.insert(place, (*first, number as Number));
                    if at == ROOT
                        && let Some(all) = &mut self.first
                    {
                        all[usize::from(*first)] = number as Number;
                    }
                    return number;
                }
            }
        }
        at
    }

    /// Divides a node after this many bytes. The upper part keeps the number.
    fn split(&mut self, at: usize, length: usize) {
        let text = self.nodes[at].text.clone();
        let middle = text.start + length as Number;
        let lower = self.node(middle..text.end);
        let number = self.nodes.len() as Number;
        let mut upper = self.node(text.start..middle);
        upper.below.push((self.heads[middle as usize], number));
        let old = std::mem::replace(&mut self.nodes[at], upper);
        let Node { text, word, mask, .. } = lower;
        self.nodes.push(Node { text, word, mask, ..old });
    }

    /// A node with this text, which lies there.
    fn node(&self, text: Range<Number>) -> Node {
        let own = &self.heads[text.start as usize..text.end as usize];
        let mask = mask(own.len());
        Node { text, word: word(own) & mask, mask, ..Node::default() }
    }

    #[inline]
    fn text(&self, node: &Node) -> &[u8] {
        &self.heads[node.text.start as usize..node.text.end as usize]
    }

    /// Whether a pattern among them matches a name and allows all this.
    #[inline]
    pub(crate) fn allow(&self, name: &[u8], access: Access) -> bool {
        self.allowed_by(name, access).is_some()
    }

    /// If a pattern among them matches a name and allows all this: how many bytes of the name show
    /// that. It is allowed for each name that begins with these; `usize::MAX` if only for this one.
    #[inline]
    pub(crate) fn allowed_by(&self, name: &[u8], access: Access) -> Option<usize> {
        let first = self.first.as_ref()?;
        let needed = access | SOMETHING;
        let (mut node, mut rest) = (&self.nodes[ROOT], name);
        loop {
            // No star matches the empty name.
            if node.star & needed == needed && !name.is_empty() {
                return Some((name.len() - rest.len()).max(1));
            }
            if node.has_globs && self.some_pattern_allows(node, name, access) {
                return Some(usize::MAX);
            }
            let Some(byte) = rest.first() else {
                return (node.literal & needed == needed).then_some(usize::MAX);
            };
            let next = if rest.len() == name.len() {
                match first[usize::from(*byte)] as usize {
                    ROOT => None,
                    number => Some(&self.nodes[number]),
                }
            } else {
                self.below(node, *byte)
            };
            let next = next?;
            (node, rest) = (next, self.without_text(next, rest)?);
        }
    }

    /// The node below whose text begins with this byte.
    #[inline]
    fn below(&self, node: &Node, first: u8) -> Option<&Node> {
        let place = node.below.binary_search_by_key(&first, |(byte, _)| *byte).ok()?;
        Some(&self.nodes[node.below[place].1 as usize])
    }

    /// What follows a node's text in a name, if the name begins with that.
    #[inline]
    fn without_text<'n>(&self, node: &Node, name: &'n [u8]) -> Option<&'n [u8]> {
        let length = (node.text.end - node.text.start) as usize;
        let (begin, after) = name.split_at_checked(length)?;
        let is_same = (word(name) ^ node.word) & node.mask == 0
            && (length <= WORD || bytes::same(&begin[WORD..], &self.text(node)[WORD..]));
        is_same.then_some(after)
    }

    #[inline(never)]
    fn some_pattern_allows(&self, node: &Node, name: &[u8], access: Access) -> bool {
        let mut own = node.patterns.iter().map(|number| &self.all[*number as usize]);
        own.any(|own| own.allows(access) && glob::matches(&own.text, name))
    }

    /// Whether all this is allowed for every name that begins so.
    pub(crate) fn allow_below(&self, prefix: &[u8], access: Access) -> bool {
        self.all.iter().any(|own| own.allows(access) && own.covers_prefix(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    /// Few bytes, so that patterns share heads and names match. Some begin alike for longer than a
    /// word.
    fn random(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
        let begins: &[u8] =
            [&b""[..], b"", b"common", b"commonly:", b"commonly:known:as:one:"][rng.index(5)];
        let rest = (0..rng.below(7)).map(|_| bytes[rng.index(bytes.len())]);
        begins.iter().copied().chain(rest).collect()
    }

    #[test]
    fn together_they_allow_what_each_allows() {
        let mut rng = Rng::from_seed(1);
        let (mut allowed, mut refused, mut begun) = (0, 0, 0);
        for _ in 0..2_000 {
            let mut patterns = Patterns::default();
            let mut added: Vec<(Vec<u8>, Access)> = Vec::new();
            for _ in 0..rng.below(20) {
                let (text, access) =
                    (random(&mut rng, b"aaabb**?[]\\"), 1 + rng.below(3) as Access);
                patterns.add(&text, access);
                match added.iter_mut().find(|(own, _)| *own == text) {
                    Some((_, own)) => *own |= access,
                    None => added.push((text, access)),
                }
            }
            let kept = patterns.iter().map(|own| (own.text.to_vec(), own.access));
            assert_eq!(kept.collect::<Vec<_>>(), added);
            for _ in 0..50 {
                let (name, access) = (random(&mut rng, b"aaabbb*]\\"), rng.below(4) as Access);
                let mut each = added.iter().filter(|(_, own)| own & access == access);
                let expected = each.any(|(text, _)| glob::matches(text, &name));
                assert_eq!(patterns.allow(&name, access), expected, "{added:?} {name:?} {access}");
                let length = patterns.allowed_by(&name, access);
                if let Some(alike) = length.and_then(|length| Beginning::of(&name, length)) {
                    let other =
                        [&name[..rng.index(name.len() + 1)], &random(&mut rng, b"ab")].concat();
                    assert!(!alike.begins(&other) || patterns.allow(&other, access), "{other:?}");
                    assert!(alike.begins(&name) && alike.begins(&[&*name, b"!"].concat()));
                    begun += 1;
                }
                *if expected { &mut allowed } else { &mut refused } += 1;
            }
        }
        assert!(allowed > 10_000 && refused > 10_000, "{allowed} {refused}");
        assert!(begun > 5_000, "{begun}");
    }
}
