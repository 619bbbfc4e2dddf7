//! What takes the memory: the metrics of INFO, MEMORY STATS and MEMORY DOCTOR.

use store::gate::Pinned;

use crate::engine::Engine;
use crate::host::MemoryMetrics;

/// The size of a database's tables is taken from this many slots; with more, it is estimated.
const SLOTS_SAMPLED: usize = 512;

/// Memory in bytes, at one moment.
pub struct Overview {
    /// In use.
    pub used: usize,
    /// The most that was ever in use.
    pub peak: usize,
    /// In use before there was any data.
    pub startup: usize,
    /// Buffers and queues of clients.
    pub clients: usize,
    /// How many there are.
    pub client_count: usize,
    /// Tables of the keyspace, by database: (number, bytes).
    pub tables: Vec<(usize, usize)>,
    /// Keys in all databases.
    pub keys: usize,
    /// The allocator's and the system's view.
    pub metrics: MemoryMetrics,
}

impl Overview {
    /// Memory that is not data: start-up, clients, tables.
    pub fn overhead(&self) -> usize {
        self.startup + self.clients + self.tables.iter().map(|(_, bytes)| bytes).sum::<usize>()
    }

    /// Keys and values.
    pub fn dataset(&self) -> usize {
        self.used.saturating_sub(self.overhead())
    }

    /// The memory taken since the start.
    pub fn net(&self) -> usize {
        self.used.saturating_sub(self.startup)
    }

    /// The data's share of the memory taken since the start, in percent.
    pub fn dataset_percentage(&self) -> f64 {
        100.0 * ratio(self.dataset(), self.net())
    }

    /// The memory in use as a share of the highest use so far, in percent.
    pub fn peak_percentage(&self) -> f64 {
        100.0 * ratio(self.used, self.peak)
    }

    /// Ratios and differences in bytes: of pages in use to bytes given out, of resident memory to
    /// memory in use, of the process to the allocator, of the process to the bytes in use.
    pub fn fragmentation(&self) -> Fragmentation {
        let metrics = &self.metrics;
        let pair = |one: usize, other: usize| (ratio(one, other), one as i64 - other as i64);
        Fragmentation {
            allocator: pair(metrics.active, metrics.allocated),
            allocator_resident: pair(metrics.resident, metrics.active),
            resident_overhead: pair(metrics.process_resident, metrics.resident),
            total: pair(metrics.process_resident, self.used),
        }
    }
}

/// Each as a factor and in bytes.
pub struct Fragmentation {
    /// Pages in use over bytes given out.
    pub allocator: (f64, i64),
    /// Pages that are resident over pages in use.
    pub allocator_resident: (f64, i64),
    /// The memory of the process relative to that of the allocator.
    pub resident_overhead: (f64, i64),
    /// The memory of the process relative to the bytes in use.
    pub total: (f64, i64),
}

/// A quotient, 0 where it has no meaning.
fn ratio(one: usize, other: usize) -> f64 {
    if other == 0 { 0.0 } else { one as f64 / other as f64 }
}

impl Engine {
    /// Looks at what takes the memory. Bounded: large keyspaces are sampled, and a locked slot is
    /// skipped, so that a command that holds slots may call this.
    pub fn memory_overview(&self, pinned: Pinned<'_>) -> Overview {
        let used = self.host.used_memory();
        self.memory.note_peak(used);
        let clients = self.clients.all();
        let databases = 0..self.keyspace.databases();
        let filled = databases.filter(|&database| !self.keyspace.is_empty(database));
        let filled: Vec<usize> = filled.collect();
        let table_bytes = |&database: &usize| (database, self.table_bytes(pinned, database));
        Overview {
            used,
            peak: self.memory.peak(),
            startup: self.memory.startup(),
            clients: clients.iter().map(|client| client.memory()).sum(),
            client_count: clients.len(),
            keys: filled.iter().map(|&database| self.keyspace.len(database)).sum(),
            tables: filled.iter().map(table_bytes).collect(),
            metrics: self.host.memory(),
        }
    }

    /// Bytes of a database's tables, estimated if there are many.
    fn table_bytes(&self, pinned: Pinned<'_>, database: usize) -> usize {
        let slots: Vec<u16> = self.keyspace.occupied(database).collect();
        let step = slots.len().div_ceil(SLOTS_SAMPLED).max(1);
        let clock = base::clock::now_us();
        let (mut seen, mut bytes) = (0, 0);
        for &slot in slots.iter().step_by(step) {
            let locked = self.keyspace.try_lock_one(pinned, slot, clock);
            let Some(locked) = locked else { continue };
            if let Some(table) = locked.table(database, slot) {
                (seen, bytes) = (seen + 1, bytes + table.overhead());
            }
        }
        (bytes * slots.len()).checked_div(seen).unwrap_or(0)
    }
}
