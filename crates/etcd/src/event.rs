//! Events: what has happened to a node, as it is stored and as it is answered.

use std::borrow::Cow;

use crate::json::Object;
use crate::node::Node;

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The action.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Action {
            $($(#[$doc])* $name,)*
        }

        impl Action {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Action::$name => $text,)*
                }
            }

            fn parse(text: &[u8]) -> Option<Action> {
                let all = [$(Action::$name),*];
                all.into_iter().find(|action| action.name().as_bytes() == text)
            }
        }
    };
}

actions! {
    /// A value was stored, whatever was there before.
    Set = "set";
    /// Something was put where nothing was.
    Create = "create";
    /// An existing node has changed.
    Update = "update";
    /// A node has changed, because it was as expected.
    CompareAndSwap = "compareAndSwap";
    /// It was deleted.
    Delete = "delete";
    /// It was deleted, since it was as expected.
    CompareAndDelete = "compareAndDelete";
    /// Its time was up.
    Expire = "expire";
}

impl Action {
    fn takes_away_directories(self) -> bool {
        matches!(self, Action::Delete | Action::Expire)
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'e> {
    /// The action.
    pub action: Action,
    /// To which node.
    pub path: Cow<'e, [u8]>,
    /// The node after it; the index of its last change is the event's own.
    pub node: Node<'e>,
    /// How it was before.
    pub prev: Option<Node<'e>>,
    /// When, in milliseconds of Unix time.
    pub at: i64,
    /// Only its time to live has changed: waiting clients are not told.
    pub refresh: bool,
}

impl Event<'_> {
    /// Its place in the order of all.
    pub fn index(&self) -> u64 {
        self.node.modified
    }

    /// Whether it made the node.
    pub fn is_created(&self) -> bool {
        match self.action {
            Action::Create => true,
            Action::Set => self.prev.is_none(),
            _ => false,
        }
    }

    /// Whether a directory has gone, with everything below it.
    pub fn takes_away_a_directory(&self) -> bool {
        let was_directory = self.prev.as_ref().is_some_and(Node::is_directory);
        self.action.takes_away_directories() && was_directory
    }

    /// Appends it as JSON, with the end of line that it is answered with.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.text("action", self.action.name().as_bytes());
        self.node.write(object.member("node"), &self.path, self.at);
        if let Some(prev) = &self.prev {
            prev.write(object.member("prevNode"), &self.path, self.at);
        }
        object.end();
        out.push(b'\n');
    }

    /// Appends the outcome, without the changed values. Deletions include them all the same.
    pub fn write_outcome(&self, out: &mut Vec<u8>) {
        if matches!(self.action, Action::Delete | Action::CompareAndDelete | Action::Expire) {
            return self.write(out);
        }
        let mut object = Object::begin(out);
        object.text("action", self.action.name().as_bytes());
        object.end();
        out.push(b'\n');
    }

    /// The fields in which it is stored, names and values. None of them is a number alone.
    pub fn fields(&self) -> Vec<(&'static str, Cow<'_, [u8]>)> {
        let mut fields = vec![
            ("action", Cow::Borrowed(self.action.name().as_bytes())),
            ("key", Cow::Borrowed(&*self.path)),
            ("at", Cow::Owned(format!("{}ms", self.at).into_bytes())),
            ("node", Cow::Owned(self.node.text())),
        ];
        if let Some(prev) = &self.prev {
            fields.push(("prev", Cow::Owned(prev.text())));
        }
        if self.refresh {
            fields.push(("refresh", Cow::Borrowed(b"true")));
        }
        fields
    }
}

impl<'e> Event<'e> {
    /// Reads such fields. Returns nothing if they are not an event.
    pub fn parse(fields: impl Iterator<Item = (&'e [u8], &'e [u8])>) -> Option<Event<'e>> {
        let (mut action, mut path, mut node, mut prev, mut at) = (None, None, None, None, None);
        let mut refresh = false;
        for (name, value) in fields {
            match name {
                b"action" => action = Some(Action::parse(value)?),
                b"key" => path = Some(value),
                b"node" => node = Some(Node::parse(value)?),
                b"prev" => prev = Some(Node::parse(value)?),
                b"at" => at = Some(base::num::parse_i64(value.strip_suffix(b"ms")?)?),
                b"refresh" => refresh = true,
                _ => {}
            }
        }
        let path = Cow::Borrowed(path.filter(|path| path.starts_with(b"/"))?);
        Some(Event { action: action?, path, node: node?, prev, at: at?, refresh })
    }
}
