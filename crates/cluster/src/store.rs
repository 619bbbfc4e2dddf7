//! What a node asks of etcd, and what etcd answers: carried out by a gateway, modelled by the
//! simulation. The words are those of etcd's third API.

use std::fmt;

/// A number by which etcd counts its changes. It rises with each, over all keys.
pub type Revision = i64;

/// The number of a lease. 0 stands for "no lease".
pub type LeaseId = i64;

/// What a transaction requires of keys before it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key was created at this revision; 0: there is no such key.
    Created {
        /// The key as a whole.
        key: String,
        /// The revision, or 0.
        revision: Revision,
    },
    /// The key was last written at this revision; 0: there is no such key.
    Modified {
        /// The key as a whole.
        key: String,
        /// The revision, or 0.
        revision: Revision,
    },
    /// The key is there, with this value.
    Value {
        /// The key as a whole.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
}

impl Compare {
    /// The key is not there.
    pub fn is_absent(key: impl Into<String>) -> Self {
        Compare::Created { key: key.into(), revision: 0 }
    }

    /// The key that it is about.
    pub fn key(&self) -> &str {
        match self {
            Compare::Created { key, .. }
            | Compare::Modified { key, .. }
            | Compare::Value { key, .. } => key,
        }
    }
}

/// What a transaction writes. No key may be written twice in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores a value.
    Put {
        /// The key as a whole.
        key: String,
        /// Its new value.
        value: Vec<u8>,
        /// The lease with which the key ends; 0: none.
        lease: LeaseId,
    },
    /// Deletes a key, if it is there.
    Delete {
        /// The key as a whole.
        key: String,
    },
}

impl Operation {
    /// The key that it writes.
    pub fn key(&self) -> &str {
        match self {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        }
    }
}

/// Writes that are all done at one revision when all comparisons hold, and not at all otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// What has to be so.
    pub compares: Vec<Compare>,
    /// What is done then.
    pub operations: Vec<Operation>,
}

/// What a node asks of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// All keys that begin with `prefix`, as of one revision (a linearizable range).
    Read {
        /// How the keys begin.
        prefix: String,
    },
    /// A transaction.
    Transaction(Transaction),
    /// A new lease.
    Grant {
        /// How long it shall last, in seconds; etcd may give more.
        ttl_s: i64,
    },
    /// Renews a lease.
    KeepAlive {
        /// Which.
        lease: LeaseId,
    },
    /// Ends a lease and all keys under it.
    Revoke {
        /// Which.
        lease: LeaseId,
    },
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key as a whole.
    pub key: String,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision at which the key was created (since it was last absent).
    pub created: Revision,
    /// The revision at which it was last written.
    pub modified: Revision,
    /// The lease with which it ends; 0: none.
    pub lease: LeaseId,
}

/// etcd's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Request::Read`].
    Pairs {
        /// The revision as of which the keys were read.
        revision: Revision,
        /// All keys, in any order.
        pairs: Vec<Pair>,
    },
    /// To [`Request::Transaction`].
    Transaction {
        /// Whether all comparisons held, and everything was written.
        succeeded: bool,
        /// etcd's revision then. If it succeeded, the revision of what was written.
        revision: Revision,
    },
    /// To [`Request::Grant`].
    Granted {
        /// The new lease.
        lease: LeaseId,
        /// How long it lasts from now on, in seconds.
        ttl_s: i64,
    },
    /// To [`Request::KeepAlive`].
    KeptAlive {
        /// How long it lasts from now on, in seconds; 0: there is no such lease any more.
        ttl_s: i64,
    },
    /// To [`Request::Revoke`]: the lease has ended (or had ended before).
    Revoked,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request was not carried out, and will not be.
    NotDone(String),
    /// etcd says that it has no space. It may say so after it has carried the request out: what is
    /// read from then on shows that.
    NoSpace(String),
    /// It may have been carried out, or may still be.
    Unknown(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::NotDone(text) | Failure::NoSpace(text) | Failure::Unknown(text)) = self;
        formatter.write_str(text)
    }
}

/// One change that a watch reports. A transaction's changes have the same revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// A key was written.
    Put(Pair),
    /// A key was deleted, by a request or with its lease.
    Delete {
        /// The key as a whole.
        key: String,
        /// The revision of the deletion.
        revision: Revision,
    },
}

impl WatchEvent {
    /// The key that has changed.
    pub fn key(&self) -> &str {
        match self {
            WatchEvent::Put(pair) => &pair.key,
            WatchEvent::Delete { key, .. } => key,
        }
    }

    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        match self {
            WatchEvent::Put(pair) => pair.modified,
            WatchEvent::Delete { revision, .. } => *revision,
        }
    }
}
