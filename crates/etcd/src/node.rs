//! Nodes: as they are stored, and as they are answered.

use std::borrow::Cow;

use crate::date;
use crate::json::Object;

/// The contents of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<'n> {
    /// A directory. Its children lie elsewhere.
    Directory,
    /// A value.
    Value(Cow<'n, [u8]>),
    /// It was a value, and is gone.
    Gone,
}

/// A node, without its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node<'n> {
    /// The index at which it was made.
    pub created: u64,
    /// The index at which it was changed last.
    pub modified: u64,
    /// When it goes, in milliseconds of Unix time.
    pub expires: Option<i64>,
    /// Its contents.
    pub content: Content<'n>,
}

impl<'n> Node<'n> {
    /// The root, which is there from the beginning.
    pub const ROOT: Node<'static> =
        Node { created: 0, modified: 0, expires: None, content: Content::Directory };

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.content == Content::Directory
    }

    /// Its value; nothing if it is a directory.
    pub fn value(&self) -> &[u8] {
        match &self.content {
            Content::Value(value) => value,
            Content::Directory | Content::Gone => b"",
        }
    }

    /// The same node, on its own.
    pub fn into_owned(self) -> Node<'static> {
        let content = match self.content {
            Content::Value(value) => Content::Value(Cow::Owned(value.into_owned())),
            Content::Directory => Content::Directory,
            Content::Gone => Content::Gone,
        };
        Node { content, created: self.created, modified: self.modified, expires: self.expires }
    }

    /// The text that it is kept as: `7 9 - =value`, or `7 7 1767225600000 /` for a directory that
    /// expires.
    pub fn text(&self) -> Vec<u8> {
        let expires = self.expires.map_or("-".to_owned(), |at| at.to_string());
        let mut text = format!("{} {} {expires} ", self.created, self.modified).into_bytes();
        match &self.content {
            Content::Directory => text.push(b'/'),
            Content::Gone => text.push(b'-'),
            Content::Value(value) => {
                text.push(b'=');
                text.extend_from_slice(value);
            }
        }
        text
    }

    /// Reads such a text.
    pub fn parse(text: &'n [u8]) -> Option<Node<'n>> {
        let mut parts = text.splitn(4, |byte| *byte == b' ');
        let mut number = || base::num::parse_u64(parts.next()?);
        let (created, modified) = (number()?, number()?);
        let expires = match parts.next()? {
            b"-" => None,
            at => Some(base::num::parse_i64(at)?),
        };
        let content = match parts.next()? {
            b"/" => Content::Directory,
            b"-" => Content::Gone,
            [b'=', value @ ..] => Content::Value(Cow::Borrowed(value)),
            _ => return None,
        };
        Some(Node { created, modified, expires, content })
    }

    /// Writes the JSON before the children, at a millisecond of Unix time.
    pub(crate) fn write_head(&self, object: &mut Object<'_>, path: &[u8], now: i64) {
        if path != b"/" {
            object.text("key", path);
        }
        match &self.content {
            Content::Value(value) => object.text("value", value),
            Content::Directory => object.member("dir").extend_from_slice(b"true"),
            Content::Gone => {}
        }
        let Some(expires) = self.expires else { return };
        let text = object.member("expiration");
        text.push(b'"');
        date::write(text, expires);
        text.push(b'"');
        let left = expires.saturating_sub(now);
        object.number("ttl", left / 1000 + i64::from(left % 1000 > 0));
    }

    /// Writes the JSON after the children.
    pub(crate) fn write_tail(&self, mut object: Object<'_>) {
        object.index("modifiedIndex", self.modified);
        object.index("createdIndex", self.created);
        object.end();
    }

    /// Writes it without children.
    pub(crate) fn write(&self, out: &mut Vec<u8>, path: &[u8], now: i64) {
        let mut object = Object::begin(out);
        self.write_head(&mut object, path, now);
        self.write_tail(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        for text in ["7 9 - =a value", "7 9 1767225600000 =", "1 1 -5 /", "1 2 - -", "1 1 - =="] {
            let node = Node::parse(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(node.text()).unwrap(), text);
        }
        for text in
            ["", "1", "1 2 3", "1 2 - ", "1 2 - x", "x 2 - /", "1 2 x /", "1 2 - //", "-1 2 - /"]
        {
            assert_eq!(Node::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn seconds_to_live_are_rounded_up() {
        let told = |expires| {
            let content = Content::Value(Cow::Borrowed(b""));
            let node = Node { created: 1, modified: 2, expires: Some(expires), content };
            let mut out = Vec::new();
            node.write(&mut out, b"/a", 1000);
            String::from_utf8(out).unwrap()
        };
        let start = "{\"key\":\"/a\",\"value\":\"\",\"expiration\":\"1970-01-01T00:00:";
        let end = "\"modifiedIndex\":2,\"createdIndex\":1}";
        assert_eq!(told(2001), format!("{start}02.001Z\",\"ttl\":2,{end}"));
        assert_eq!(told(2000), format!("{start}02Z\",\"ttl\":1,{end}"));
        assert_eq!(told(1000), format!("{start}01Z\",{end}"));
    }
}
