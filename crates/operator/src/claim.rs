//! What one operator does alone: a key under a lease in etcd says who does it. The lease ends a
//! while after a process that was killed, and the key with it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use base::clock::{monotonic_ms, now_ms};
use cluster::store::{Answer, Compare, Failure, Operation, Request, Transaction};
use serde_json::{Value, json};

use crate::record::Store;
use crate::trouble::Trouble;

/// How long a claim lasts after its process was killed.
const TTL_S: i64 = 15;
/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(4);
/// How long etcd may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is done alone goes on only while this says so.
pub(crate) struct Claim {
    is_lost: AtomicBool,
}

impl Claim {
    /// # Errors
    /// The lease could not be renewed in time: another operator may do the same by now.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        match self.is_lost.load(Relaxed) {
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
    let lease = match store.ask(&Request::Grant { ttl_s: TTL_S }, PATIENCE) {
        Ok(Answer::Granted { lease, .. }) => lease,
        other => return Err(unclear(other.err())),
    };
    let revoke = || {
        // If that fails, it ends by itself.
        let _ = store.ask(&Request::Revoke { lease }, PATIENCE);
    };
    if let Err(trouble) = put(store, what, lease) {
        revoke();
        return Err(trouble);
    }
    let claim = Claim { is_lost: AtomicBool::new(false) };
    let (end, ends) = mpsc::channel::<()>();
    let done = thread::scope(|scope| {
        let claim = &claim;
        let renew = move || {
            let mut renewed = monotonic_ms();
            while ends.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) {
                match store.ask(&Request::KeepAlive { lease }, RENEW) {
                    Ok(Answer::KeptAlive { ttl_s }) if ttl_s > 0 => renewed = monotonic_ms(),
                    Ok(_) => claim.is_lost.store(true, Relaxed),
                    Err(_) if monotonic_ms() - renewed > TTL_S as u64 * 1000 => {
                        claim.is_lost.store(true, Relaxed);
                    }
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

fn put(store: &Store, what: &str, lease: i64) -> Result<(), Trouble> {
    let key = format!("{}operators/{what}", store.keys.prefix());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // When it began is in milliseconds since 1970.
    let own = json!({"host": host.trim(), "process": std::process::id(), "since": now_ms()});
    let value = cluster::keys::encode(&own);
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
        Some(Failure::NotDone(text) | Failure::Unknown(text)) => {
            format!("etcd does not say whether this operator is the only one: {text}")
        }
        None => "etcd has answered another question".to_owned(),
    })
}
