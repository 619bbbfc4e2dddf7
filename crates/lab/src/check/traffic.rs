//! The writers and readers of the checker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::rng::Rng;
use resp::client::Value;

use super::history::{History, sequence, value};
use crate::targets::connection::{Connection, Endpoint};

/// How long a reply may take before its connection counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect, and after a server has answered that it is loading.
const RETRY: Duration = Duration::from_millis(20);
/// Between two writes of a writer. The checker should look, not load.
const WRITE_PAUSE: Duration = Duration::from_micros(200);
/// Between two reads of a reader.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// State that writers and readers share.
#[derive(Debug)]
pub(super) struct Shared {
    run: u64,
    zero: Instant,
    stopped: AtomicBool,
    /// Grows whenever a connection is lost, or the server is broken or emptied.
    generation: AtomicU64,
    stale_reads: AtomicU64,
    /// By writer and slot: the generation and the number of the last acknowledged write.
    last: Vec<Vec<Mutex<(u64, u64)>>>,
}

impl Shared {
    pub(super) fn new(run: u64, writers: usize, keys: usize, zero: Instant) -> Self {
        let slots = || (0..keys).map(|_| Mutex::new((0, 0))).collect();
        Shared {
            run,
            zero,
            stopped: AtomicBool::new(false),
            generation: AtomicU64::new(1),
            stale_reads: AtomicU64::new(0),
            last: (0..writers).map(|_| slots()).collect(),
        }
    }

    pub(super) fn key(&self, writer: usize, generation: u64, slot: usize) -> String {
        format!("check:{}:{writer}:{generation}:{slot}", self.run)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn stale_reads(&self) -> u64 {
        self.stale_reads.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn set_last(&self, writer: usize, (generation, slot): (u64, usize), sequence: u64) {
        let mut last = self.last[writer][slot].lock().unwrap_or_else(PoisonError::into_inner);
        *last = (generation, sequence);
    }

    fn last(&self, writer: usize, slot: usize) -> (u64, u64) {
        *self.last[writer][slot].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection, as soon as there is one; none when the checker ends before.
    fn connect(&self, endpoint: &Endpoint) -> Option<Connection> {
        while !self.is_stopped() {
            match endpoint.connect(PATIENCE) {
                Ok(connection) => return Some(connection),
                Err(_) => std::thread::sleep(RETRY),
            }
        }
        None
    }
}

/// Writes one value after the other until the checker ends, and remembers all of them.
pub(super) fn write(shared: &Shared, endpoint: &Endpoint, writer: usize) -> History {
    let mut history = History::default();
    let mut number = 0;
    let keys = shared.last[writer].len();
    while let Some(mut connection) = shared.connect(endpoint) {
        while !shared.is_stopped() {
            number += 1;
            let place = (shared.generation(), number as usize % keys);
            let key = shared.key(writer, place.0, place.1);
            let value = value(writer, place, number);
            match connection.call(&["SET", &key, &value]) {
                // Refused: it does not count, and was not acknowledged.
                Ok(Value::Error(_)) => std::thread::sleep(RETRY),
                Ok(_) => {
                    history.acknowledge(place, number, shared.seconds());
                    shared.set_last(writer, place, number);
                    std::thread::sleep(WRITE_PAUSE);
                }
                Err(_) => {
                    history.lose_sight(place, number);
                    shared.next_generation();
                    break;
                }
            }
        }
    }
    history
}

/// Reads acknowledged values, over a connection that has not written them.
pub(super) fn read(shared: &Shared, endpoint: &Endpoint, reader: usize) {
    let mut random = Rng::from_seed(reader as u64 + 1);
    while let Some(mut connection) = shared.connect(endpoint) {
        while !shared.is_stopped() {
            std::thread::sleep(READ_PAUSE);
            let writer = random.next_u64() as usize % shared.last.len();
            let slot = random.next_u64() as usize % shared.last[writer].len();
            // Acknowledged before the read is sent: the read must show this value or a later one. A
            // value of an earlier generation may be lost, which is found in the end and is not a
            // stale read.
            let (generation, acknowledged) = shared.last(writer, slot);
            if acknowledged == 0 || generation != shared.generation() {
                continue;
            }
            match connection.call(&["GET", &shared.key(writer, generation, slot)]) {
                Ok(Value::Error(_)) => std::thread::sleep(RETRY),
                Ok(value) => {
                    let found = value.as_bytes();
                    let found = found.and_then(|text| sequence(writer, (generation, slot), text));
                    if found.is_none_or(|found| found < acknowledged) {
                        shared.stale_reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(_) => {
                    shared.next_generation();
                    break;
                }
            }
        }
    }
}
