//! Paths of nodes.

use std::borrow::Cow;

/// A path without empty segments and dots, and without a slash at its end.
pub fn clean(path: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(path.len() + 1);
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                let parent = clean.iter().rposition(|byte| *byte == b'/');
                clean.truncate(parent.unwrap_or(0));
            }
            name => {
                clean.push(b'/');
                clean.extend_from_slice(name);
            }
        }
    }
    if clean.is_empty() {
        clean.push(b'/');
    }
    clean
}

/// The clean address that clients are sent to instead of this one, except for a slash at its end.
/// `None` if it is clean already.
pub fn canonical(path: &[u8]) -> Option<Vec<u8>> {
    let mut clean = clean(path);
    if path.ends_with(b"/") && clean.len() > 1 {
        clean.push(b'/');
    }
    (clean != path).then_some(clean)
}

/// The names that lead from the root to a node.
pub fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// The directory of a node, with the slash at its end, and the node's own name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.split_at((slash + 1).min(path.len()))
}

/// A directory as the place of its children: with a slash at its end.
pub fn inside(path: &[u8]) -> Cow<'_, [u8]> {
    match path {
        b"/" => Cow::Borrowed(path),
        _ => Cow::Owned([path, b"/"].concat()),
    }
}

/// The path of a child in a directory that is given with its slash.
pub fn child(directory: &[u8], name: &[u8]) -> Vec<u8> {
    [directory, name].concat()
}

/// Whether directories do not show a node of this name.
pub fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'_')
}

/// Whether a node is hidden from a client that watches one above it: it, or a directory between
/// them, is hidden.
pub fn is_hidden_from(watched: &[u8], path: &[u8]) -> bool {
    path.get(watched.len()..).is_some_and(|below| names(below).any(is_hidden))
}

/// The path and those of all directories above it, the root first.
pub fn and_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
    let above = slashes.map(|(at, _)| &path[..at]);
    let whole = (path != b"/").then_some(path);
    std::iter::once(&b"/"[..]).chain(above).chain(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_clean() {
        for (path, expected) in [
            ("", "/"),
            ("/", "/"),
            ("//a///b/", "/a/b"),
            ("/a/./b/..", "/a"),
            ("/../../a", "/a"),
            ("/a/..", "/"),
            ("/_a/.b/..c", "/_a/.b/..c"),
        ] {
            assert_eq!(clean(path.as_bytes()), expected.as_bytes(), "{path}");
        }
        assert_eq!(canonical(b"/a/b/"), None);
        assert_eq!(canonical(b"/"), None);
        assert_eq!(canonical(b"/a//b/").as_deref(), Some(&b"/a/b/"[..]));
        assert_eq!(canonical(b"/a/../b").as_deref(), Some(&b"/b"[..]));
    }

    #[test]
    fn a_node_lies_in_a_directory() {
        assert_eq!(split(b"/a/b"), (&b"/a/"[..], &b"b"[..]));
        assert_eq!(split(b"/a"), (&b"/"[..], &b"a"[..]));
        assert_eq!(split(b"/"), (&b"/"[..], &b""[..]));
        assert_eq!(child(&inside(b"/a"), b"b"), b"/a/b");
        assert_eq!(child(&inside(b"/"), b"b"), b"/b");
        let above: Vec<_> = and_above(b"/a/bc/d").collect();
        assert_eq!(above, [&b"/"[..], b"/a", b"/a/bc", b"/a/bc/d"]);
        assert_eq!(and_above(b"/").count(), 1);
    }

    #[test]
    fn names_with_an_underscore_are_hidden() {
        assert!(is_hidden_from(b"/a", b"/a/_b/c"));
        assert!(is_hidden_from(b"/", b"/_a"));
        assert!(!is_hidden_from(b"/_a", b"/_a/b"));
        assert!(!is_hidden_from(b"/a/b/c", b"/a"), "who watches below is told of what is above");
    }
}
