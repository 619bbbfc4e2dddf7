//! Which changes a follower follows.

use crate::journal::change::{Change, Operation};

/// Which keys a follower follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Keys {
    /// Keys that begin with this.
    Prefix(Box<[u8]>),
    /// This key.
    One(Box<[u8]>),
}

/// Which changes a follower follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Filter {
    /// Changes in this database, or in all.
    pub database: Option<usize>,
    /// Changes of these keys.
    pub keys: Keys,
}

impl Filter {
    /// Whether the filter admits a change. A change of a whole database is a change of its keys.
    pub fn admits(&self, change: &Change<'_>) -> bool {
        let database = self.database.is_none_or(|own| change.database.is_none_or(|db| db == own));
        database
            && match (&self.keys, change.key) {
                (_, None) => self.hears_of_databases(change),
                (Keys::Prefix(prefix), Some(key)) => key.starts_with(prefix),
                (Keys::One(own), Some(key)) => **own == *key,
            }
    }

    /// Whether the follower is told of a change that has no key. An effect that concerns no key,
    /// such as a function that was loaded, is for followers of everything.
    fn hears_of_databases(&self, change: &Change<'_>) -> bool {
        use Operation::{Flush, Swap};
        let all = matches!(&self.keys, Keys::Prefix(prefix) if prefix.is_empty());
        all || matches!(change.operation, Flush | Swap(_))
    }
}
