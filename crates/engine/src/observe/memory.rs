//! What takes the memory: the figures of INFO, MEMORY STATS and MEMORY DOCTOR.

use store::gate::Presence;

use crate::engine::Engine;
use crate::host::MemoryFigures;

/// The size of a database's tables is taken from this many slots; with more, it is estimated.
const SLOTS_SAMPLED: usize = 512;

/// Memory in bytes, at one moment.
pub(crate) struct Overview {
    /// In use.
    pub(crate) used: usize,
    /// The most that was ever in use.
    pub(crate) peak: usize,
    /// In use before there was any data.
    pub(crate) startup: usize,
    /// Buffers and queues of clients.
    pub(crate) clients: usize,
    /// How many there are.
    pub(crate) client_count: usize,
    /// Tables of the keyspace, by database: (number, bytes).
    pub(crate) tables: Vec<(usize, usize)>,
    /// Keys in all databases.
    pub(crate) keys: usize,
    /// The allocator's and the system's view.
    pub(crate) figures: MemoryFigures,
}

impl Overview {
    /// Memory that is not data: start-up, clients, tables.
    pub(crate) fn overhead(&self) -> usize {
        self.startup + self.clients + self.tables.iter().map(|(_, bytes)| bytes).sum::<usize>()
    }

    /// Keys and values.
    pub(crate) fn dataset(&self) -> usize {
        self.used.saturating_sub(self.overhead())
    }

    /// The memory taken since the start.
    pub(crate) fn net(&self) -> usize {
        self.used.saturating_sub(self.startup)
    }

    /// The data's share of the memory taken since the start, in percent.
    pub(crate) fn dataset_percentage(&self) -> f64 {
        100.0 * ratio(self.dataset(), self.net())
    }

    /// The memory in use as a share of the highest use so far, in percent.
    pub(crate) fn peak_percentage(&self) -> f64 {
        100.0 * ratio(self.used, self.peak)
    }

    /// Ratios and differences in bytes: of pages in use to bytes given out, of resident memory to
    /// memory in use, of the process to the allocator, of the process to the bytes in use.
    pub(crate) fn fragmentation(&self) -> Fragmentation {
        let figures = &self.figures;
        let pair = |one: usize, other: usize| (ratio(one, other), one as i64 - other as i64);
        Fragmentation {
            allocator: pair(figures.active, figures.allocated),
            allocator_resident: pair(figures.resident, figures.active),
            resident_overhead: pair(figures.process_resident, figures.resident),
            total: pair(figures.process_resident, self.used),
        }
    }
}

/// Each as a factor and in bytes.
pub(crate) struct Fragmentation {
    /// Pages in use over bytes given out.
    pub(crate) allocator: (f64, i64),
    /// Pages that are resident over pages in use.
    pub(crate) allocator_resident: (f64, i64),
    /// The memory of the process relative to that of the allocator.
    pub(crate) resident_overhead: (f64, i64),
    /// The memory of the process relative to the bytes in use.
    pub(crate) total: (f64, i64),
}

/// A quotient, 0 where it has no meaning.
fn ratio(one: usize, other: usize) -> f64 {
    if other == 0 { 0.0 } else { one as f64 / other as f64 }
}

impl Engine {
    /// Looks at what takes the memory. Bounded: large keyspaces are sampled, and a locked slot is
    /// skipped, so that a command that holds slots may call this.
    pub(crate) fn memory_overview(&self, presence: Presence<'_>) -> Overview {
        let used = self.host.used_memory();
        self.memory.note_peak(used);
        let clients = self.clients.all();
        let databases = 0..self.keyspace.databases();
        let filled = databases.filter(|&database| !self.keyspace.is_empty(database));
        let filled: Vec<usize> = filled.collect();
        let table_bytes = |&database: &usize| (database, self.table_bytes(presence, database));
        Overview {
            used,
            peak: self.memory.peak(),
            startup: self.memory.startup(),
            clients: clients.iter().map(|client| client.memory()).sum(),
            client_count: clients.len(),
            keys: filled.iter().map(|&database| self.keyspace.len(database)).sum(),
            tables: filled.iter().map(table_bytes).collect(),
            figures: self.host.memory(),
        }
    }

    /// Bytes of a database's tables, estimated if there are many.
    fn table_bytes(&self, presence: Presence<'_>, database: usize) -> usize {
        let slots: Vec<u16> = self.keyspace.occupied(database).collect();
        let step = slots.len().div_ceil(SLOTS_SAMPLED).max(1);
        let clock = base::clock::now_us();
        let (mut seen, mut bytes) = (0, 0);
        for &slot in slots.iter().step_by(step) {
            let held = self.keyspace.try_hold_one(presence, slot, clock);
            let Some(held) = held else { continue };
            if let Some(table) = held.table(database, slot) {
                (seen, bytes) = (seen + 1, bytes + table.overhead());
            }
        }
        (bytes * slots.len()).checked_div(seen).unwrap_or(0)
    }
}
