//! What is found and prefetched before a command runs: its row, its keys, and where they lie.

use resp::args::Arguments;
use smallvec::SmallVec;
use store::gate::Pinned;

use crate::command::args::KeyAt;
use crate::command::keys::{add_key, collect_keys};
use crate::engine::{Engine, Row};

/// Keys behind full buckets whose entries are prefetched together, at most.
const CHAINED_AT_ONCE: usize = 64;

impl Engine {
    /// Finds the row of a command of a file, a link or the server itself, and hashes its keys, so
    /// that their slots and entries can be prefetched before it runs. Appends to `keys`.
    #[inline]
    pub fn prepare(&self, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) -> Option<&'static Row> {
        // A Redis with `rename-command` writes and sends commands by the names that clients use.
        let row = self.commands.resolve(argv).or_else(|| self.client_names.resolve(argv))?;
        self.find_keys(row, argv, keys);
        Some(row)
    }

    /// The part of [`Engine::prepare`] that hashes keys.
    #[inline(always)]
    pub fn find_keys(&self, row: &Row, argv: Arguments<'_>, keys: &mut Vec<KeyAt>) {
        if row.command.accepts(argv.len()) {
            if row.one_key {
                add_key(argv, 1, keys);
            } else {
                collect_keys(row.command, argv, keys);
            }
        }
    }

    /// [`Engine::find_keys`] for a command that may have the only key of the one before it, which
    /// is known then: these bytes, there.
    #[inline(always)]
    pub fn find_keys_behind(
        &self,
        known: Option<(&[u8], KeyAt)>,
        row: &Row,
        argv: Arguments<'_>,
        keys: &mut Vec<KeyAt>,
    ) {
        match known {
            Some((bytes, key))
                if row.one_key
                    && row.command.accepts(argv.len())
                    && argv.get(1).is_some_and(|own| base::bytes::same(own, bytes)) =>
            {
                keys.push(key);
            }
            _ => self.find_keys(row, argv, keys),
        }
    }

    /// Prefetches the slots of keys. First of three steps, each over a whole batch.
    #[inline]
    pub fn prefetch_slots(&self, keys: &[KeyAt]) {
        each_other(keys, |key| self.keyspace.prefetch_slot(key.slot));
    }

    /// Prefetches the buckets of keys.
    #[inline]
    pub fn prefetch_buckets(&self, pinned: Pinned<'_>, database: usize, keys: &[KeyAt]) {
        each_other(keys, |key| {
            self.keyspace.prefetch_bucket(pinned, database, key.slot, key.hash);
        });
    }

    /// Prefetches the entries of keys.
    #[inline]
    pub fn prefetch_entries(&self, pinned: Pinned<'_>, database: usize, keys: &[KeyAt]) {
        let mut chained: SmallVec<[&KeyAt; CHAINED_AT_ONCE]> = SmallVec::new();
        each_other(keys, |key| {
            let goes_on = self.keyspace.prefetch_entry(pinned, database, key.slot, key.hash);
            if goes_on && chained.len() < CHAINED_AT_ONCE {
                chained.push(key);
            }
        });
        for key in chained {
            self.keyspace.prefetch_chained(pinned, database, key.slot, key.hash);
        }
    }
}

/// Visits keys, but not one that was visited just before: a pipeline often has to do with one key.
#[inline]
fn each_other<'k>(keys: &'k [KeyAt], mut visit: impl FnMut(&'k KeyAt)) {
    let mut last = None;
    for key in keys {
        if last.replace(key.hash) != Some(key.hash) {
            visit(key);
        }
    }
}
