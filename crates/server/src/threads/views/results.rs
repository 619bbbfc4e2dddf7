//! The kept results of views, and the lists by which they are forgotten.
//!
//! Results are kept by commands as clients send them, so they are journalled, expire and are
//! evicted as anything else is. The keys of a tag are members of a sorted set, of the name that
//! [`tag_key`] makes, by the time when they expire: expired ones are taken out when another one is
//! added.
//!
//! A result that was read before a tag was forgotten must not be kept after it. So the results of a
//! view are not kept while they are being forgotten. Each view has a lock of its own, so a slot
//! that another thread keeps locked delays no other view.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::reply::{Piece, Pieces};
use parking_lot::{Mutex, RwLock};
use views::View;

use crate::threads::internal_client::InternalClient;

/// Keys of a tag that are deleted by one command.
const KEYS_AT_ONCE: usize = 100;
/// How long a client waits beyond its statement for a result to be kept, at each step of that.
/// Nothing is lost with a result that is not kept: the next client asks the database again.
const PATIENCE_OF_KEEPING: Duration = Duration::from_millis(20);

const LOCKED: &[u8] = b"-BUSY the results are locked by somebody else for too long\r\n";
const STOPPING: &[u8] = b"-BUSY the server stops\r\n";

/// What all pools of threads share of the results.
#[derive(Default)]
pub(super) struct Results {
    /// True when the server stops: then nothing is kept or forgotten any more.
    is_stopped: RwLock<bool>,
    /// By the names of views: shared by the threads that keep a result, and exclusive to the one
    /// that forgets them.
    views: Mutex<HashMap<String, Arc<RwLock<()>>>>,
}

/// The sorted set of the keys that have a tag.
fn tag_key(tag: &[u8]) -> Vec<u8> {
    [b"view-tag:", tag].concat()
}

/// Deletes keys. Returns how many there were.
///
/// # Errors
/// The reply of the command, if it was refused.
fn unlink(client: &mut InternalClient, keys: &[&[u8]]) -> Result<usize, Vec<u8>> {
    let words: Vec<&[u8]> = [&b"UNLINK"[..]].iter().chain(keys).copied().collect();
    let reply = client.run(&words).unwrap_or_else(|| LOCKED.to_vec());
    match Pieces::new(&reply).next() {
        Some(Piece::Integer(count)) => Ok(usize::try_from(count).unwrap_or(0)),
        _ => Err(reply),
    }
}

/// The keys with a tag.
///
/// # Errors
/// The reply of the command, if it was refused.
fn keys_with(client: &mut InternalClient, tag_key: &[u8]) -> Result<Vec<Box<[u8]>>, Vec<u8>> {
    let reply = client.run(&[b"ZRANGE", tag_key, b"0", b"-1"]).unwrap_or_else(|| LOCKED.to_vec());
    let mut pieces = Pieces::new(&reply);
    let count = match pieces.next() {
        Some(Piece::Array(count)) => count,
        // Where it is no list of results, there is none that could be deleted.
        _ if reply.starts_with(b"-WRONGTYPE") => 0,
        _ => return Err(reply),
    };
    let keys = (0..count).filter_map(|_| match pieces.next() {
        Some(Piece::Bytes(key)) => Some(key.into()),
        _ => None,
    });
    Ok(keys.collect())
}

impl Results {
    fn lock_of(&self, view: &str) -> Arc<RwLock<()>> {
        Arc::clone(self.views.lock().entry(view.to_owned()).or_default())
    }

    /// Nothing is kept or forgotten any more. Returns when no thread does.
    pub(super) fn stop(&self) {
        *self.is_stopped.write() = true;
    }

    /// Whether the server stops.
    pub(super) fn is_stopped(&self) -> bool {
        *self.is_stopped.read()
    }

    /// Keeps a result under its key, if it `may` still be kept when no thread forgets results of
    /// its view, and if its slots can be had at once.
    pub(super) fn keep(
        &self,
        client: &mut InternalClient,
        view: &View,
        key: &[u8],
        json: &[u8],
        may: impl FnOnce() -> bool,
    ) {
        let is_stopped = self.is_stopped.read();
        let own = self.lock_of(&view.name);
        let Some(_keeping) = own.try_read_for(PATIENCE_OF_KEEPING) else { return };
        if *is_stopped || !may() {
            return;
        }
        client.with_patience(PATIENCE_OF_KEEPING, |client| write(client, view, key, json));
    }

    /// Deletes the results with these tags, which only these views have. Returns how many.
    ///
    /// # Errors
    /// The reply of the first command that was refused. The others were tried all the same.
    pub(super) fn forget<'v>(
        &self,
        client: &mut InternalClient,
        tags: &[&[u8]],
        views: impl Iterator<Item = &'v str>,
    ) -> Result<usize, Vec<u8>> {
        let is_stopped = self.is_stopped.read();
        if *is_stopped {
            return Err(STOPPING.to_vec());
        }
        // In the order of their names, so that no two threads wait for each other.
        let names: BTreeSet<&str> = views.collect();
        let locks: Vec<_> = names.into_iter().map(|name| self.lock_of(name)).collect();
        let _forgetting: Vec<_> = locks.iter().map(|lock| lock.write()).collect();
        let (mut forgotten, mut refusal) = (0, None);
        for tag in tags {
            match forget_tag(client, &tag_key(tag)) {
                (count, Ok(())) => forgotten += count,
                (_, Err(refused)) => refusal = refusal.or(Some(refused)),
            }
        }
        refusal.map_or(Ok(forgotten), Err)
    }

    /// Whether there is no list of results with this tag.
    pub(super) fn has_none(client: &mut InternalClient, tag: &[u8]) -> bool {
        client.run(&[b"EXISTS", &tag_key(tag)]).is_some_and(|reply| reply == b":0\r\n")
    }
}

/// Writes a result and its place in the lists of its tags.
fn write(client: &mut InternalClient, view: &View, key: &[u8], json: &[u8]) {
    let time = (view.ttl + view.stale).as_millis();
    let now = u128::from(base::clock::now_us() / 1000);
    let (expires, now) = ((now + time).to_string(), now.to_string());
    let time = time.to_string();
    let time = time.as_bytes();
    for tag in &view.tags {
        let tag = tag_key(tag.as_bytes());
        // Without its tags it could not be forgotten.
        if !client.succeeds(&[b"ZADD", &tag, expires.as_bytes(), key]) {
            return;
        }
        client.run(&[b"ZREMRANGEBYSCORE", &tag, b"-inf", now.as_bytes()]);
        client.run(&[b"PEXPIRE", &tag, time, b"NX"]);
        client.run(&[b"PEXPIRE", &tag, time, b"GT"]);
    }
    if client.succeeds(&[b"SET", key, json, b"PX", time]) {
        client.run(&[b"CONTENTTYPE", key, b"application/json"]);
    }
}

/// Deletes the results in a list, and the list when nothing is left to delete. Returns how many
/// there were, and the first refusal.
fn forget_tag(client: &mut InternalClient, tag_key: &[u8]) -> (usize, Result<(), Vec<u8>>) {
    let keys = match keys_with(client, tag_key) {
        Ok(keys) => keys,
        Err(refused) => return (0, Err(refused)),
    };
    let (mut forgotten, mut outcome) = (0, Ok(()));
    for keys in keys.chunks(KEYS_AT_ONCE) {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        match unlink(client, &keys) {
            Ok(count) => forgotten += count,
            Err(refused) => outcome = outcome.and(Err(refused)),
        }
    }
    // The list says what is left to delete, so it stays with that.
    let outcome = outcome.and_then(|()| unlink(client, &[tag_key]).map(drop));
    (forgotten, outcome)
}
