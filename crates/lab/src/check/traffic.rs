//! The writers and readers of the checker.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::rng::Rng;
use resp::client::Value;

use super::history::{History, sequence, value};
use super::place::{Place, Stop};
use crate::targets::connection::Connection;

/// The pause between two attempts to connect, and after a server has answered that it is loading.
const RETRY: Duration = Duration::from_millis(20);
/// Between two writes of a writer. The checker should look, not load.
const WRITE_PAUSE: Duration = Duration::from_micros(200);
/// Between two reads of a reader.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// How errors begin that send a writer elsewhere. What was written is not there.
const LEFT: [&str; 4] = ["READONLY", "MOVED", "ASK", "TRYAGAIN"];

/// How writers write.
#[derive(Clone, Debug)]
pub(super) struct Manners {
    /// How long a reply may take before its connection counts as lost.
    pub(super) patience: Duration,
    /// The words that a writer's connection begins with, if any: what they ask for holds for its
    /// writes.
    pub(super) greeting: Vec<String>,
    /// A write that was answered with an error may be there nevertheless.
    pub(super) is_unsure: bool,
    /// The words that follow each write, if any: it counts if the answer is 1 or more.
    pub(super) confirmation: Vec<String>,
}

/// What an answer says of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Acknowledged,
    /// It is not there.
    Refused,
    /// It is there, or not: nobody counts on it.
    Unsure,
    /// The server takes no writes any more.
    Left,
}

impl Manners {
    /// Reads the answers to a write.
    fn judge(&self, write: &Value, confirmation: Option<&Value>) -> Answer {
        match (write, confirmation) {
            (Value::Error(text), _)
                if LEFT.iter().any(|word| text.starts_with(word.as_bytes())) =>
            {
                Answer::Left
            }
            // The write may be there, and only its promise was not kept.
            (Value::Error(_), _) if self.is_unsure => Answer::Unsure,
            (Value::Error(_), _) => Answer::Refused,
            (_, None | Some(Value::Integer(1..))) => Answer::Acknowledged,
            _ => Answer::Unsure,
        }
    }
}

/// State that writers and readers share.
#[derive(Debug)]
pub(super) struct Shared {
    run: u64,
    zero: Instant,
    stopped: AtomicBool,
    /// Grows whenever a connection is lost, or the server is broken or emptied.
    generation: AtomicU64,
    stale_reads: AtomicU64,
    /// Writes that were answered with an error.
    refused: AtomicU64,
    place: Place,
    tag: String,
    manners: Manners,
    /// By writer and slot: the generation and the number of the last acknowledged write.
    last: Vec<Vec<Mutex<(u64, u64)>>>,
}

impl Shared {
    pub(super) fn new(
        (run, zero): (u64, Instant),
        (writers, keys): (usize, usize),
        place: Place,
        manners: Manners,
    ) -> Self {
        let slots = || (0..keys).map(|_| Mutex::new((0, 0))).collect();
        Shared {
            run,
            zero,
            stopped: AtomicBool::new(false),
            generation: AtomicU64::new(1),
            stale_reads: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            tag: place.tag(),
            place,
            manners,
            last: (0..writers).map(|_| slots()).collect(),
        }
    }

    pub(super) fn key(&self, writer: usize, generation: u64, slot: usize) -> String {
        format!("{}check:{}:{writer}:{generation}:{slot}", self.tag, self.run)
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

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Where clients write.
    pub(super) fn place(&self) -> &Place {
        &self.place
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
    fn connect(&self) -> Option<(Connection, Stop)> {
        while !self.is_stopped() {
            match self.place.connect(self.manners.patience) {
                Ok(connection) => return Some(connection),
                Err(_) => std::thread::sleep(RETRY),
            }
        }
        None
    }

    /// The same for a writer.
    fn connect_to_write(&self) -> Option<(Connection, Stop)> {
        let greeting = &self.manners.greeting;
        while let Some((mut connection, stop)) = self.connect() {
            if greeting.is_empty() {
                return Some((connection, stop));
            }
            match connection.call(greeting) {
                Ok(reply) if !reply.is_error() => return Some((connection, stop)),
                _ => std::thread::sleep(RETRY),
            }
        }
        None
    }

    /// Sends a write, and what is to follow it.
    fn set(&self, connection: &mut Connection, key: &str, value: &str) -> io::Result<Answer> {
        let write = ["SET", key, value].map(str::to_owned);
        let confirmation = &self.manners.confirmation;
        let follows = (!confirmation.is_empty()).then_some(&confirmation[..]);
        connection.send([&write[..]].into_iter().chain(follows))?;
        let reply = connection.receive()?;
        let confirmed = follows.map(|_| connection.receive()).transpose()?;
        Ok(self.manners.judge(&reply, confirmed.as_ref()))
    }
}

/// Writes one value after the other until the checker ends, and remembers all of them.
pub(super) fn write(shared: &Shared, writer: usize) -> History {
    let mut history = History::default();
    let mut number = 0;
    let keys = shared.last[writer].len();
    while let Some((mut connection, stop)) = shared.connect_to_write() {
        while !shared.is_stopped() {
            number += 1;
            let place = (shared.generation(), number as usize % keys);
            let key = shared.key(writer, place.0, place.1);
            let value = value(writer, place, number);
            let answer = shared.set(&mut connection, &key, &value);
            if matches!(answer, Ok(Answer::Refused | Answer::Left)) {
                shared.refused.fetch_add(1, Ordering::Relaxed);
            }
            match answer {
                Ok(Answer::Acknowledged) => {
                    history.acknowledge(place, number, shared.seconds());
                    shared.set_last(writer, place, number);
                    std::thread::sleep(WRITE_PAUSE);
                }
                Ok(Answer::Unsure) => {
                    history.lose_sight(place, number);
                    // A node of a cluster answers at once that it does not serve now.
                    if !shared.tag.is_empty() {
                        std::thread::sleep(RETRY);
                    }
                }
                // It does not count, and was not acknowledged.
                Ok(Answer::Refused) => std::thread::sleep(RETRY),
                Ok(Answer::Left) => {
                    std::thread::sleep(RETRY);
                    if shared.place.is_left() {
                        shared.place.leave(stop);
                        shared.next_generation();
                        break;
                    }
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
pub(super) fn read(shared: &Shared, reader: usize) {
    let mut random = Rng::from_seed(reader as u64 + 1);
    while let Some((mut connection, stop)) = shared.connect() {
        while !shared.is_stopped() && !shared.place.has_left(stop) {
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
                    // What was acknowledged elsewhere is not looked for here.
                    let is_old = found.is_none_or(|found| found < acknowledged);
                    if is_old && !shared.place.has_left(stop) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_counts_only_when_all_that_was_asked_for_is_so() {
        let manners = |greeting: &[&str]| Manners {
            patience: Duration::from_secs(1),
            greeting: greeting.iter().map(|word| (*word).to_owned()).collect(),
            is_unsure: !greeting.is_empty(),
            confirmation: Vec::new(),
        };
        let (plain, durable) = (manners(&[]), manners(&["CLIENT", "DURABILITY", "REPLICAS", "1"]));
        let error = |text: &str| Value::Error(text.as_bytes().to_vec());
        let ok = Value::Simple(b"OK".to_vec());
        assert_eq!(plain.judge(&ok, None), Answer::Acknowledged);
        assert_eq!(plain.judge(&ok, Some(&Value::Integer(1))), Answer::Acknowledged);
        assert_eq!(plain.judge(&ok, Some(&Value::Integer(0))), Answer::Unsure);
        assert_eq!(plain.judge(&ok, Some(&error("UNBLOCKED"))), Answer::Unsure);
        assert_eq!(plain.judge(&error("MISCONF"), None), Answer::Refused);
        assert_eq!(durable.judge(&error("NODURABLE"), None), Answer::Unsure);
        assert_eq!(durable.judge(&error("READONLY"), None), Answer::Left);
        assert_eq!(plain.judge(&error("MOVED 0 a:1"), None), Answer::Left);
    }
}
