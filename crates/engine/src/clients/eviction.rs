//! `maxmemory-clients`: when all clients together take more memory than that, the largest clients
//! are closed, until the others fit.
//!
//! Each worker updates the sum for the connections that it serves, so checking the sum costs one
//! load. All clients are looked at only when the sum is too large.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::Engine;
use crate::host::LogLevel;
use crate::session::client::{Client, Clients, flag};
use crate::turn::Turn;
use config::Config;

/// A lower limit counts as this one: with less no client could talk to the server, not even to
/// raise it.
const LEAST_LIMIT: u64 = 128 * 1024;

/// Milliseconds between two looks at every client. If the only clients left are those that may not
/// be closed, a look at them each turn would cost time and free nothing.
const PAUSE_MS: u64 = 10;

impl Clients {
    /// Brings a client's part of the sum up to date. Must be called by its worker alone.
    pub fn count_memory(&self, client: &Client) {
        let now = client.memory();
        let before = client.counted_memory.swap(now, Relaxed);
        if now != before {
            self.memory.fetch_add(now.wrapping_sub(before), Relaxed);
        }
    }

    /// Removes a closed client from the sum.
    pub(crate) fn discount_memory(&self, client: &Client) {
        self.memory.fetch_sub(client.counted_memory.swap(0, Relaxed), Relaxed);
    }

    /// Whether it is time to look at every client again; true for one thread only.
    fn may_look(&self, now: u64) -> bool {
        let next = self.next_look.load(Relaxed);
        now >= next
            && self.next_look.compare_exchange(next, now + PAUSE_MS, Relaxed, Relaxed).is_ok()
    }
}

impl Engine {
    /// Closes the largest clients while all together take more than `maxmemory-clients`. Must be
    /// called each turn, after [`Clients::count_memory`].
    pub fn evict_clients(&self, turn: &mut Turn) {
        let Some(limit) = memory_limit(&turn.config) else { return };
        if self.clients.memory.load(Relaxed) < limit || !self.clients.may_look(turn.monotonic) {
            return;
        }
        // Clients that are being closed already keep their memory for a moment only. What replicas
        // may take has a limit of its own, and so has what those may that bring slots or messages
        // of another node.
        const OF_SERVERS: u32 = flag::REPLICA | flag::BRINGS_SLOTS | flag::SPEAKS_FOR_NODE;
        let counts = |own: &Client| !own.is_killed() && !own.has_flag(OF_SERVERS);
        let open = self.clients.all().into_iter().filter(|client| counts(client));
        let open: Vec<(usize, Arc<Client>)> =
            open.map(|client| (client.memory(), client)).collect();
        let mut sum: usize = open.iter().map(|(bytes, _)| bytes).sum();
        let mut evictable = open;
        evictable.retain(|(_, client)| !client.has_flag(flag::NO_EVICT));
        evictable.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
        for (bytes, client) in evictable {
            if sum < limit {
                return;
            }
            let line = match turn.config.hide_user_data_from_log {
                true => format!("id={}", client.id).into_bytes(),
                false => client.describe(turn.monotonic, self.commands),
            };
            let line = format!("Evicting client: {}", String::from_utf8_lossy(&line));
            self.host.log(LogLevel::Verbose, &line);
            client.kill();
            self.host.wake(&client);
            turn.stats.evicted_clients.add(1);
            sum -= bytes;
        }
    }
}

/// The bytes from which clients are closed, if there is such a limit. A share of `maxmemory` is no
/// limit when `maxmemory` is not set.
pub fn memory_limit(config: &Config) -> Option<usize> {
    let limit = config.maxmemory_clients.bytes(config.maxmemory)?;
    Some(usize::try_from(limit.max(LEAST_LIMIT)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::MemoryLimit;

    #[test]
    fn the_limit_is_at_least_128_kilobytes() {
        let mut config = Config::default();
        assert_eq!(memory_limit(&config), None);
        config.maxmemory_clients = MemoryLimit::Bytes(1);
        assert_eq!(memory_limit(&config), Some(128 * 1024));
        config.maxmemory_clients = MemoryLimit::Percent(10);
        assert_eq!(memory_limit(&config), None);
        config.maxmemory = 10 << 20;
        assert_eq!(memory_limit(&config), Some(1 << 20));
    }
}
