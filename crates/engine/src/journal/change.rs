//! A change of a key, as followers are told of it.

use std::rc::Rc;

use resp::reply::Reply;

/// What happened to a key, or to a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'r> {
    /// It is this string, which expires at a millisecond of Unix time if one is given.
    Set(&'r [u8], Option<i64>),
    /// It is gone.
    Delete,
    /// It was changed by a command.
    Update,
    /// All keys of the database are gone; without a database, all keys of all databases.
    Flush,
    /// The database has exchanged its keys with this one.
    Swap(usize),
}

/// A change of one key, or of a whole database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change<'r> {
    /// The number of the database; none if all databases are concerned.
    pub database: Option<usize>,
    /// The key, if one alone is concerned.
    pub key: Option<&'r [u8]>,
    /// What happened.
    pub operation: Operation<'r>,
    /// The words of the effect, where the key was changed by it and its value is not told. All keys
    /// of an effect share them: it may have a great many.
    pub words: Option<Rc<[&'r [u8]]>>,
}

impl Change<'_> {
    /// Answers the change as names and values. The last of several changes made at once carries the
    /// position after it.
    pub fn reply(&self, position: Option<&str>, reply: &mut Reply<'_>) {
        let (name, value, expires) = match self.operation {
            Operation::Set(value, expires) => ("set", Some(value), expires),
            Operation::Delete => ("delete", None, None),
            Operation::Update => ("update", None, None),
            Operation::Flush => ("flush", None, None),
            Operation::Swap(_) => ("swap", None, None),
        };
        let with = match self.operation {
            Operation::Swap(other) => Some(other),
            _ => None,
        };
        let fields =
            1 + [position.is_some(), self.database.is_some(), self.key.is_some(), value.is_some()]
                .into_iter()
                .chain([expires.is_some(), with.is_some(), self.words.is_some()])
                .filter(|there| *there)
                .count();
        reply.map(fields);
        if let Some(position) = position {
            reply.bulk(b"position");
            reply.bulk(position.as_bytes());
        }
        reply.bulk(b"op");
        reply.bulk(name.as_bytes());
        if let Some(database) = self.database {
            reply.bulk(b"db");
            reply.integer(database as i64);
        }
        if let Some(other) = with {
            reply.bulk(b"with");
            reply.integer(other as i64);
        }
        if let Some(key) = self.key {
            reply.bulk(b"key");
            reply.bulk(key);
        }
        if let Some(value) = value {
            reply.bulk(b"value");
            reply.bulk(value);
        }
        if let Some(expires) = expires {
            reply.bulk(b"expires_at");
            reply.integer(expires);
        }
        if let Some(words) = &self.words {
            reply.bulk(b"command");
            reply.array(words.len());
            words.iter().for_each(|word| reply.bulk(word));
        }
    }
}
