//! etcd as the simulation has it: one linearizable store with leases that end late but never
//! early, watches with gaps, and compaction.

use std::collections::BTreeMap;

use crate::store::{
    Answer, Compare, Failure, LeaseId, Operation, Pair, Request, Revision, Transaction, WatchEvent,
};

/// A lease and when it may end, in the world's milliseconds.
#[derive(Clone)]
struct Lease {
    ttl_ms: u64,
    ends: u64,
}

/// What etcd was asked for.
#[derive(Default, Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) transactions: u64,
    pub(super) failed_transactions: u64,
    pub(super) keep_alives: u64,
    pub(super) events: u64,
}

/// What an etcd does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Whatever needs space.
    Space,
    /// All transactions: nobody has the right.
    Transactions,
    /// Everything: nobody is there to connect to.
    Connections,
    /// The next one that deletes a primary's key, after it was carried out: etcd looks at its space
    /// then.
    TooLate,
    /// The next one that needs space, after it was carried out, and then whatever needs space.
    Last,
}

/// The store.
#[derive(Clone)]
pub(super) struct Etcd {
    pub(super) revision: Revision,
    pub(super) pairs: BTreeMap<String, Pair>,
    leases: BTreeMap<LeaseId, Lease>,
    last_lease: LeaseId,
    /// All changes after the compacted revision.
    changes: Vec<WatchEvent>,
    compacted: Revision,
    pub(super) counts: Counts,
    /// What it refuses.
    pub(super) refuses: Option<Refusal>,
}

impl Etcd {
    pub(super) fn new() -> Self {
        Etcd {
            revision: 1,
            pairs: BTreeMap::new(),
            leases: BTreeMap::new(),
            last_lease: 100,
            changes: Vec::new(),
            compacted: 0,
            counts: Counts::default(),
            refuses: None,
        }
    }

    pub(super) fn carry_out(&mut self, now: u64, request: &Request) -> Result<Answer, Failure> {
        if self.is_refused(request) {
            let failure = match self.refuses {
                Some(Refusal::Space) => Failure::NoSpace,
                _ => Failure::NotDone,
            };
            return Err(failure("it is refused".into()));
        }
        match request {
            Request::Read { prefix } => {
                self.counts.reads += 1;
                let pairs = self.pairs.range(prefix.clone()..);
                let pairs = pairs.take_while(|(key, _)| key.starts_with(prefix));
                let pairs = pairs.map(|(_, pair)| pair.clone()).collect();
                Ok(Answer::Pairs { revision: self.revision, pairs })
            }
            Request::Transaction(transaction) => {
                let done = self.transact(transaction);
                let is_leader = |key: &str| key.contains("/leaders/");
                let releases = transaction
                    .operations
                    .iter()
                    .any(|own| matches!(own, Operation::Delete { key } if is_leader(key)));
                let is_done = matches!(done, Ok(Answer::Transaction { succeeded: true, .. }));
                let ends = transaction.operations.iter().any(is_put) && is_done;
                let next = match self.refuses {
                    Some(Refusal::TooLate) if releases => Some(None),
                    Some(Refusal::Last) if ends => Some(Some(Refusal::Space)),
                    _ => None,
                };
                if let Some(next) = next {
                    self.refuses = next;
                    return Err(Failure::NoSpace("database space exceeded".into()));
                }
                done
            }
            Request::Grant { ttl_s } => {
                self.last_lease += 1;
                let ttl_ms = ttl_s.unsigned_abs() * 1000;
                self.leases.insert(self.last_lease, Lease { ttl_ms, ends: now + ttl_ms });
                Ok(Answer::Granted { lease: self.last_lease, ttl_s: *ttl_s })
            }
            Request::KeepAlive { lease } => {
                self.counts.keep_alives += 1;
                let ttl_s = self.leases.get_mut(lease).map_or(0, |lease| {
                    lease.ends = now + lease.ttl_ms;
                    (lease.ttl_ms / 1000) as i64
                });
                Ok(Answer::KeptAlive { ttl_s })
            }
            Request::Revoke { lease } => {
                self.end(*lease);
                Ok(Answer::Revoked)
            }
        }
    }

    fn is_refused(&self, request: &Request) -> bool {
        match (self.refuses, request) {
            (Some(Refusal::Space | Refusal::Transactions), Request::Transaction(own)) => {
                self.refuses == Some(Refusal::Transactions) || own.operations.iter().any(is_put)
            }
            (Some(Refusal::Space), Request::Grant { .. }) | (Some(Refusal::Connections), _) => true,
            _ => false,
        }
    }

    fn transact(&mut self, transaction: &Transaction) -> Result<Answer, Failure> {
        self.counts.transactions += 1;
        let mut keys: Vec<&str> = transaction.operations.iter().map(Operation::key).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "a key is written twice: {keys:?}");
        let holds = transaction.compares.iter().all(|compare| match compare {
            Compare::Created { key, revision } => {
                self.pairs.get(key).map_or(0, |pair| pair.created) == *revision
            }
            Compare::Modified { key, revision } => {
                self.pairs.get(key).map_or(0, |pair| pair.modified) == *revision
            }
            Compare::Value { key, value } => {
                self.pairs.get(key).is_some_and(|pair| pair.value == *value)
            }
        });
        if !holds {
            self.counts.failed_transactions += 1;
            return Ok(Answer::Transaction { succeeded: false, revision: self.revision });
        }
        let unknown = transaction.operations.iter().any(|operation| match operation {
            Operation::Put { lease, .. } => *lease != 0 && !self.leases.contains_key(lease),
            Operation::Delete { .. } => false,
        });
        if unknown {
            return Err(Failure::NotDone("requested lease not found".into()));
        }
        let revision = self.revision + 1;
        let mut has_changed = false;
        for operation in &transaction.operations {
            match operation {
                Operation::Put { key, value, lease } => {
                    let created = self.pairs.get(key).map_or(revision, |pair| pair.created);
                    let pair = Pair {
                        key: key.clone(),
                        value: value.clone(),
                        created,
                        modified: revision,
                        lease: *lease,
                    };
                    self.pairs.insert(key.clone(), pair.clone());
                    self.changes.push(WatchEvent::Put(pair));
                    has_changed = true;
                }
                Operation::Delete { key } => {
                    if self.pairs.remove(key).is_some() {
                        self.changes.push(WatchEvent::Delete { key: key.clone(), revision });
                        has_changed = true;
                    }
                }
            }
        }
        if has_changed {
            self.revision = revision;
        }
        Ok(Answer::Transaction { succeeded: true, revision: self.revision })
    }

    fn end(&mut self, lease: LeaseId) {
        if self.leases.remove(&lease).is_none() {
            return;
        }
        let keys: Vec<String> = self
            .pairs
            .values()
            .filter(|pair| pair.lease == lease)
            .map(|pair| pair.key.clone())
            .collect();
        if !keys.is_empty() {
            self.revision += 1;
        }
        for key in keys {
            self.pairs.remove(&key);
            self.changes.push(WatchEvent::Delete { key, revision: self.revision });
        }
    }

    /// Ends leases whose time is over.
    pub(super) fn expire(&mut self, now: u64) {
        let over: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.ends < now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|lease| self.end(lease));
    }

    /// All of it is lost, and it begins anew. No lease has the number of one before.
    pub(super) fn lose(&mut self) {
        let (last_lease, counts) = (self.last_lease, self.counts);
        *self = Etcd { last_lease, counts, ..Etcd::new() };
    }

    /// A backup takes its place, with a revision that is higher than any before.
    pub(super) fn restore(&mut self, saved: Etcd) {
        let (last_lease, counts, revision) = (self.last_lease, self.counts, self.revision + 1000);
        *self = Etcd { last_lease, counts, revision, refuses: None, ..saved };
        self.compact();
    }

    /// Another leader: all leases begin anew.
    pub(super) fn renew_all(&mut self, now: u64) {
        self.leases.values_mut().for_each(|lease| lease.ends = now + lease.ttl_ms);
    }

    /// Forgets changes up to now.
    pub(super) fn compact(&mut self) {
        self.compacted = self.revision;
        self.changes.clear();
    }

    /// The changes after `revision`; `None` when they are compacted.
    pub(super) fn changes_after(&mut self, revision: Revision) -> Option<Vec<WatchEvent>> {
        if revision < self.compacted {
            return None;
        }
        let first = self.changes.partition_point(|change| change.revision() <= revision);
        self.counts.events += (self.changes.len() - first) as u64;
        Some(self.changes[first..].to_vec())
    }
}

fn is_put(operation: &Operation) -> bool {
    matches!(operation, Operation::Put { .. })
}
