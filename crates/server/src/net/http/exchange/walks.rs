//! Requests about all keys that begin with the same bytes: SCAN finds them, one step after the
//! other.

use std::collections::BTreeMap;

use base::limits;
use commands::http::metadata::{FAILED, REPLACED, UNCONDITIONAL};
use http::json;
use http::reply::{Piece, Pieces};
use http::translation::{self, Form, Strings};
use resp::args::OwnedArguments;

/// Keys that one step looks at.
const MOST_AT_ONCE: usize = 1000;

/// Characters that have a meaning in a pattern lose it.
fn literally(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(prefix.len() + 2);
    for &byte in prefix {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern
}

/// Keys that begin with the same bytes.
pub(in crate::net::http) struct List {
    pattern: Vec<u8>,
    limit: usize,
    names: Vec<u8>,
    found: usize,
    steps: usize,
    /// Keys that the next step looks at, and the same as text.
    looks_at: (usize, String),
}

impl List {
    pub(in crate::net::http) fn new(prefix: &[u8], limit: usize) -> List {
        let pattern = [&literally(prefix)[..], b"*"].concat();
        let mut list = List {
            pattern,
            limit,
            names: Vec::new(),
            found: 0,
            steps: 0,
            looks_at: (0, String::new()),
        };
        list.look_at(limit);
        list
    }

    /// The command that goes on at a cursor.
    pub(in crate::net::http) fn scan<'w>(&'w self, cursor: &'w [u8]) -> [&'w [u8]; 6] {
        [b"SCAN", cursor, b"MATCH", &self.pattern, b"COUNT", self.looks_at.1.as_bytes()]
    }

    fn look_at(&mut self, keys: usize) {
        let keys = keys.clamp(1, MOST_AT_ONCE);
        self.looks_at = (keys, keys.to_string());
    }

    /// Chooses how many keys the next step looks at, after a step that has found this many names:
    /// as many as should contain the missing names, if the next keys are like these.
    fn look_for_the_rest(&mut self, names: usize) {
        let looked_at = self.looks_at.0;
        self.look_at(match names {
            0 => looked_at * 4,
            _ => (self.limit.saturating_sub(self.found) * looked_at).div_ceil(names),
        });
    }

    /// Takes the result of a SCAN. Returns the answer's text, or the next command.
    pub(super) fn take(
        &mut self,
        pieces: &mut Pieces<'_>,
    ) -> Option<Result<Vec<u8>, OwnedArguments>> {
        let Some(Piece::Array(2)) = pieces.next() else { return None };
        let Some(Piece::Bytes(cursor)) = pieces.next() else { return None };
        let Some(Piece::Array(count)) = pieces.next() else { return None };
        for _ in 0..count {
            if self.found > 0 {
                self.names.push(b',');
            }
            translation::write(pieces, Form::Json(Strings::Tagged), &mut self.names)?;
            self.found += 1;
        }
        self.steps += 1;
        self.look_for_the_rest(count);
        if cursor != b"0" && self.found < self.limit && self.steps < limits::HTTP_LIST_STEPS {
            return Some(Err(owned(&self.scan(cursor))));
        }
        let mut text = b"{\"keys\":[".to_vec();
        text.append(&mut self.names);
        text.extend_from_slice(b"],\"cursor\":");
        match cursor {
            b"0" => text.extend_from_slice(b"null"),
            cursor => json::write_text(&mut text, cursor),
        }
        text.push(b'}');
        Some(Ok(text))
    }
}

/// A key that is deleted with those below it.
pub(in crate::net::http) struct Tree {
    pattern: Vec<u8>,
    /// One command deletes keys of one slot, as a node of a cluster takes it.
    by_slot: bool,
    deleted: i64,
    /// Where the search goes on; absent before it has begun.
    cursor: Option<Vec<u8>>,
    /// The last command deletes keys that were found, and these delete the others.
    deletes: bool,
    left: Vec<OwnedArguments>,
}

impl Tree {
    pub(in crate::net::http) fn new(key: &[u8], by_slot: bool) -> Tree {
        let pattern = [&literally(key)[..], b"/*"].concat();
        Tree { pattern, by_slot, deleted: 0, cursor: None, deletes: false, left: Vec::new() }
    }

    /// How many keys are deleted.
    pub(super) fn deleted(&self) -> i64 {
        self.deleted
    }

    /// Whether this reply says that the first command, about the key itself, was refused.
    pub(super) fn is_refused(&self, mut pieces: Pieces<'_>) -> bool {
        let refused = [FAILED, UNCONDITIONAL].map(Piece::Integer);
        self.cursor.is_none()
            && pieces.next() == Some(Piece::Array(2))
            && pieces.next().is_some_and(|one| refused.contains(&one))
    }

    /// Takes the reply of the last command. Returns the next one, if there is one.
    pub(super) fn take(&mut self, pieces: &mut Pieces<'_>) -> Option<Option<OwnedArguments>> {
        match (pieces.next()?, &self.cursor) {
            (Piece::Integer(count), Some(_)) if self.deletes => self.deleted += count,
            // The slot has left since the keys were found.
            (Piece::Error(text), Some(_)) if self.deletes && text.starts_with(b"MOVED ") => {}
            (Piece::Array(2), None) => {
                // The key itself: see [`Tree::is_refused`].
                self.deleted += i64::from(pieces.next()? == Piece::Integer(REPLACED));
                return Some(Some(self.scan(b"0")));
            }
            (Piece::Array(2), Some(_)) => {
                let Some(Piece::Bytes(cursor)) = pieces.next() else { return None };
                self.cursor = Some(cursor.to_vec());
                self.find(pieces)?;
            }
            _ => return None,
        }
        Some(self.go_on())
    }

    fn scan(&mut self, cursor: &[u8]) -> OwnedArguments {
        self.cursor = Some(cursor.to_vec());
        owned(&[b"SCAN", cursor, b"MATCH", &self.pattern, b"COUNT", b"1000"])
    }

    /// Takes the keys that a step has found.
    fn find(&mut self, pieces: &mut Pieces<'_>) -> Option<()> {
        let Some(Piece::Array(count)) = pieces.next() else { return None };
        let mut slots = BTreeMap::<Option<u16>, Vec<&[u8]>>::new();
        for _ in 0..count {
            let Some(Piece::Bytes(key)) = pieces.next() else { return None };
            let slot = self.by_slot.then(|| base::crc::key_slot(key));
            slots.entry(slot).or_insert_with(|| vec![b"UNLINK"]).push(key);
        }
        self.left = slots.values().map(|words| owned(words)).collect();
        Some(())
    }

    /// The next command after one that has found or deleted keys.
    fn go_on(&mut self) -> Option<OwnedArguments> {
        let next = self.left.pop();
        self.deletes = next.is_some();
        match self.cursor.take()? {
            cursor if self.deletes => {
                self.cursor = Some(cursor);
                next
            }
            cursor if cursor == b"0" => None,
            cursor => Some(self.scan(&cursor)),
        }
    }
}

fn owned(words: &[&[u8]]) -> OwnedArguments {
    words.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_deletes_the_keys_of_each_slot_apart() {
        let mut tree = Tree::new(b"t", true);
        let mut take = |reply: &[u8]| {
            let next = tree.take(&mut Pieces::new(reply)).unwrap();
            next.map(|own| {
                own.view()
                    .iter()
                    .map(<[u8]>::escape_ascii)
                    .map(|w| w.to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let scan = |cursor: u8| Some(format!("SCAN {cursor} MATCH t/* COUNT 1000"));
        assert_eq!(take(b"*2\r\n:1\r\n_\r\n"), scan(0));
        let found = b"*2\r\n$1\r\n7\r\n*3\r\n$5\r\nt/{a}\r\n$5\r\nt/{b}\r\n$6\r\nt/{a}1\r\n";
        // `a` is in slot 15495, `b` in 3300.
        assert_eq!(take(found).as_deref(), Some("UNLINK t/{a} t/{a}1"));
        assert_eq!(take(b":2\r\n").as_deref(), Some("UNLINK t/{b}"));
        assert_eq!(take(b"-MOVED 3300 127.0.0.1:7002\r\n"), scan(7));
        assert_eq!(take(b"*2\r\n$1\r\n0\r\n*0\r\n"), None);
    }

    #[test]
    fn a_prefix_is_no_pattern() {
        let list = List::new(b"a*[b]?\\", 1);
        assert_eq!(list.pattern, b"a\\*\\[b\\]\\?\\\\*");
        assert!(base::glob::matches(&list.pattern, b"a*[b]?\\c"));
    }
}
