//! What one operator does alone: a key under a lease in etcd says who does it. The lease ends a
//! while after a process that was killed, and the key with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use base::clock::{monotonic_ms, now_ms};
use base::rng;
use cluster::store::{Answer, Compare, Failure, Operation, Request, Transaction};
use serde_json::{Value, json};

use crate::record::Store;
use crate::trouble::Trouble;

/// How long a claim lasts after its process was killed.
const TTL_S: i64 = 15;
/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(4);
/// How long before its end a claim counts as lost, in milliseconds: what is decided by it takes a
/// moment.
const MARGIN_MS: u64 = 1000;
/// How long etcd may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is done alone goes on only while this says so.
pub(crate) struct Claim {
    key: String,
    value: Vec<u8>,
    is_lost: AtomicBool,
    /// Until when the lease certainly lasts, by this process's clock.
    until: AtomicU64,
}

impl Claim {
    /// What a transaction requires that is carried out only while the claim lasts.
    pub(crate) fn holds(&self) -> Compare {
        Compare::Value { key: self.key.clone(), value: self.value.clone() }
    }

    /// Who else reads etcd has to find the claim there: else it is another etcd.
    pub(crate) fn is_in(&self, store: &Store) -> Result<bool, Trouble> {
        Ok(store.read()?.value(&self.key) == Some(&self.value[..]))
    }

    /// The lease was renewed for so many seconds by what was `asked` at that time.
    fn renew(&self, asked: u64, ttl_s: i64) {
        let ttl_ms = u64::try_from(ttl_s).unwrap_or(0).saturating_mul(1000);
        let until = asked.saturating_add(ttl_ms).saturating_sub(MARGIN_MS);
        self.until.fetch_max(until, Relaxed);
    }

    /// # Errors
    /// The lease could not be renewed in time: another operator may do the same by now.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let is_over = monotonic_ms() >= self.until.load(Relaxed);
        match is_over || self.is_lost.load(Relaxed) {
            true => {
                let text = "etcd has not kept the claim to be the only one who does this: give the \
                            command again";
                Err(Trouble::Failed(text.to_owned()))
            }
            false => Ok(()),
        }
    }
}

/// Does something that one operator at most does with a cluster at a time.
pub(crate) fn alone(
    store: &Store,
    what: &str,
    act: impl FnOnce(&Claim) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let asked = monotonic_ms();
    let (lease, ttl_s) = match store.ask(&Request::Grant { ttl_s: TTL_S }, PATIENCE) {
        Ok(Answer::Granted { lease, ttl_s }) => (lease, ttl_s),
        other => return Err(unclear(other.err())),
    };
    let revoke = || {
        // If that fails, it ends by itself.
        let _ = store.ask(&Request::Revoke { lease }, PATIENCE);
    };
    let claim = Claim {
        key: format!("{}operators/{what}", store.keys.prefix()),
        value: own_value(),
        is_lost: AtomicBool::new(false),
        until: AtomicU64::new(0),
    };
    claim.renew(asked, ttl_s);
    if let Err(trouble) = put(store, what, &claim, lease) {
        revoke();
        return Err(trouble);
    }
    let (end, ends) = mpsc::channel::<()>();
    let done = thread::scope(|scope| {
        let claim = &claim;
        let renew = move || {
            while ends.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) {
                let asked = monotonic_ms();
                match store.ask(&Request::KeepAlive { lease }, RENEW) {
                    Ok(Answer::KeptAlive { ttl_s }) if ttl_s > 0 => claim.renew(asked, ttl_s),
                    Ok(_) => claim.is_lost.store(true, Relaxed),
                    // It may be renewed yet, until it ends by the clock.
                    Err(_) => {}
                }
            }
        };
        thread::Builder::new()
            .spawn_scoped(scope, renew)
            .map_err(|error| Trouble::Failed(format!("a thread cannot be started: {error}")))?;
        let done = act(claim);
        drop(end);
        done
    });
    revoke();
    done
}

/// Who does it. When it began is in milliseconds since 1970.
fn own_value() -> Vec<u8> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // Other processes may have the same number, in other containers.
    let id = format!("{:016x}", rng::entropy_u64());
    let (process, since) = (std::process::id(), now_ms());
    cluster::keys::encode(
        &json!({"host": host.trim(), "process": process, "since": since, "id": id}),
    )
}

fn put(store: &Store, what: &str, claim: &Claim, lease: i64) -> Result<(), Trouble> {
    let (key, value) = (claim.key.clone(), claim.value.clone());
    let request = Request::Transaction(Transaction {
        compares: vec![Compare::is_absent(key.clone())],
        operations: vec![Operation::Put { key: key.clone(), value, lease }],
    });
    match store.ask(&request, PATIENCE) {
        Ok(Answer::Transaction { succeeded: true, .. }) => return Ok(()),
        Ok(Answer::Transaction { .. }) => {}
        other => return Err(unclear(other.err())),
    }
    let other = match store.ask(&Request::Read { prefix: key.clone() }, PATIENCE) {
        Ok(Answer::Pairs { pairs, .. }) => pairs.into_iter().find(|pair| pair.key == key),
        other => return Err(unclear(other.err())),
    };
    let other: Option<Value> = other.and_then(|pair| cluster::keys::decode(&pair.value));
    let who = other.map_or_else(
        || "another operator does it".to_owned(),
        |other| {
            let seconds = now_ms().saturating_sub(other["since"].as_u64().unwrap_or(0)) / 1000;
            let host = other["host"].as_str().unwrap_or_default();
            format!("process {} on {host} has been at it for {seconds} s", other["process"])
        },
    );
    Err(Trouble::Failed(format!(
        "one {what} at a time, and {who}. If that was killed, its claim ends {TTL_S} s later"
    )))
}

fn unclear(failure: Option<Failure>) -> Trouble {
    Trouble::Failed(match failure {
        Some(failure) => {
            format!("etcd does not say whether this operator is the only one: {failure}")
        }
        None => "etcd has answered another question".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_ends_by_the_clock_although_nobody_has_said_so() {
        let claim = Claim {
            key: String::new(),
            value: Vec::new(),
            is_lost: AtomicBool::new(false),
            until: AtomicU64::new(0),
        };
        let now = monotonic_ms();
        claim.renew(now - 14_500, 15);
        assert!(claim.check().is_err(), "half a second is less than the margin");
        claim.renew(now, 15);
        assert!(claim.check().is_ok());
        // A late answer to an old question takes nothing away.
        claim.renew(now - 14_500, 15);
        assert!(claim.check().is_ok());
        claim.is_lost.store(true, Relaxed);
        assert!(claim.check().is_err());
    }
}
