//! The memory of a client, and its line in CLIENT LIST.

use std::sync::atomic::Ordering::Relaxed;

use crate::engine::Registry;
use crate::session::Session;
use crate::session::client::{Client, flag};

impl Client {
    /// Bytes of memory that the connection takes.
    pub fn memory(&self) -> usize {
        size_of::<Client>()
            + size_of::<Session>()
            + self.address.capacity()
            + self.local_address.capacity()
            + self.certificate_names.iter().map(|name| name.capacity()).sum::<usize>()
            + self.names.lock().memory()
            + self.transport_memory.load(Relaxed)
            + self.query_bytes.load(Relaxed)
            + self.query_free.load(Relaxed)
            + self.argument_bytes.load(Relaxed)
            + self.output_memory.load(Relaxed)
            + self.queued_bytes.load(Relaxed)
            + self.subscription_bytes.load(Relaxed)
            + self.watched_bytes.load(Relaxed)
            + self.wait.lock().as_ref().map_or(0, |wait| wait.memory())
            + self.inbox.lock().bytes
    }

    /// Whether a key that it watches has changed.
    fn has_lost_its_watch(&self) -> bool {
        self.watch.lock().as_ref().is_some_and(|flag| flag.has_changed())
    }

    /// How many keys it watches. As in Redis, none as soon as one of them has changed by itself.
    pub(crate) fn watches(&self) -> u32 {
        let is_given_up = self.watch.lock().as_ref().is_some_and(|flag| flag.is_given_up());
        if is_given_up { 0 } else { self.watched.load(Relaxed) }
    }

    /// The letters of CLIENT LIST's `flags`, in Redis's order.
    pub fn flag_letters(&self) -> String {
        let letters = [
            (self.has_flag(flag::REPLICA), 'S'),
            (self.has_flag(flag::MONITOR), 'O'),
            (self.has_flag(flag::PUBSUB), 'P'),
            (self.has_flag(flag::MULTI), 'x'),
            (self.has_flag(flag::BLOCKED), 'b'),
            (self.has_lost_its_watch(), 'd'),
            (self.has_flag(flag::CLOSING), 'c'),
            (self.is_killed(), 'A'),
            (self.has_flag(flag::UNIX), 'U'),
            (self.has_flag(flag::READS_FROM_REPLICA), 'r'),
            (self.has_flag(flag::NO_EVICT), 'e'),
            (self.has_flag(flag::NO_TOUCH), 'T'),
            (self.has_flag(flag::IMPORT_SOURCE), 'I'),
        ];
        let set = letters.into_iter().filter(|(is_set, _)| *is_set);
        let text: String = set.map(|(_, letter)| letter).collect();
        if text.is_empty() { "N".to_string() } else { text }
    }

    /// The line of CLIENT LIST, without its end. `now` is [`crate::turn::Turn::monotonic`].
    ///
    /// Arguments stay where they were received until a command is complete, so `argv-mem` counts
    /// the complete commands that wait. The output is one buffer here. It is shown in Redis's
    /// terms, which keeps the first 16 kB apart from a list of blocks of that size, so that `omem`
    /// means the same to programs that watch it.
    pub fn describe(&self, now: u64, commands: &Registry) -> Vec<u8> {
        const BLOCK: usize = 16 * 1024;
        let age = |since: u64| now.saturating_sub(since) / 1000;
        let waiting = self.output_bytes.load(Relaxed);
        let (buffered, listed) = (waiting.min(BLOCK), waiting.saturating_sub(BLOCK));
        let names = self.names.lock().clone();
        let mut line = format!("id={} addr={} laddr={}", self.id, self.address, self.local_address);
        line.push_str(&format!(" fd={} name=", self.descriptor));
        let mut line = line.into_bytes();
        line.extend_from_slice(&names.name);
        let rest = format!(
            " age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} watch={} qbuf={} qbuf-free={} \
             argv-mem={} multi-mem={} rbs={} rbp={} obl={buffered} oll={} omem={listed} tot-mem={} \
             events={} cmd={} user=",
            age(self.connected_at),
            age(self.last_interaction.load(Relaxed)),
            self.flag_letters(),
            self.database.load(Relaxed),
            self.channels.load(Relaxed),
            self.patterns.load(Relaxed),
            self.shard_channels.load(Relaxed),
            i64::from(self.queued.load(Relaxed)) - 1,
            self.watches(),
            self.query_bytes.load(Relaxed),
            self.query_free.load(Relaxed),
            self.argument_bytes.load(Relaxed),
            self.queued_bytes.load(Relaxed),
            self.output_memory.load(Relaxed),
            self.output_peak.load(Relaxed),
            listed.div_ceil(BLOCK),
            self.memory(),
            if waiting > 0 { "rw" } else { "r" },
            self.last_command_name(commands),
        );
        line.extend_from_slice(rest.as_bytes());
        line.extend_from_slice(names.user());
        let protocol = self.protocol.load(Relaxed);
        line.extend_from_slice(format!(" redir=-1 resp={protocol} lib-name=").as_bytes());
        line.extend_from_slice(&names.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&names.library_version);
        line.extend_from_slice(format!(" io-thread={}", self.worker.load(Relaxed)).as_bytes());
        line
    }

    fn last_command_name(&self, commands: &Registry) -> String {
        match self.last_command.load(Relaxed) {
            0 => "NULL".to_string(),
            number => commands.rows()[number - 1].command.full_name(),
        }
    }
}
