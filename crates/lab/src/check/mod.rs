//! The checker of writes: it writes with sequence numbers while a server is being broken, and reads
//! everything back afterwards. It finds acknowledged writes that are gone and reads that were older
//! than what had been acknowledged before them, and measures how long it took until the server
//! served as before.
//!
//! A writer has keys of its own and one write open at a time. Whenever any connection of the
//! checker is lost, and before and after each event, all writers turn to new keys (the next
//! *generation*). So no later write overwrites an earlier one, and no loss can hide.

mod history;
pub mod place;
mod recovery;
pub mod sentinels;
mod traffic;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::clock;

pub use recovery::{is_judged, recovery_seconds};

use crate::experiment::case::{CheckRule, Followed};
use crate::results::Check;
use crate::targets::connection::Connection;
use history::{History, Verdict};
use place::Place;
use resp::client::Value;
use traffic::{Manners, Shared};

/// How many GETs are in flight at once when everything is read back.
const BATCH: usize = 200;
/// How long reading back may wait for a server that is not there yet.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many losses are described.
const EXAMPLES: usize = 5;
/// The width of a bucket of the checker's own timeline, in seconds.
pub(crate) const BUCKET_SECONDS: f64 = 0.1;
/// Throughput counts as recovered when it is high for this many buckets.
const WINDOW: usize = 5;

/// A running checker.
#[derive(Debug)]
pub struct Checker {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<History>>,
    readers: Vec<JoinHandle<()>>,
}

impl Checker {
    /// Starts to write and to read. Times are counted from `zero`.
    pub fn start(rule: &CheckRule, place: Place, zero: Instant) -> Self {
        // Another run's keys on the same server are not ours.
        let run = clock::now_us();
        let manners = Manners {
            patience: Duration::from_secs_f64(rule.timeout),
            greeting: rule.greeting.clone(),
            // A node that looks again before it answers may have written already.
            is_unsure: !rule.greeting.is_empty() || rule.followed == Followed::Cluster,
            confirmation: rule.confirmation.clone(),
        };
        let size = (rule.writers, rule.keys);
        let shared = Arc::new(Shared::new((run, zero), size, place, manners));
        let writers = (0..rule.writers).map(|writer| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || traffic::write(&shared, writer))
        });
        let readers = (0..rule.readers).map(|reader| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || traffic::read(&shared, reader))
        });
        Checker {
            writers: writers.collect(),
            readers: readers.collect(),
            shared: Arc::clone(&shared),
        }
    }

    /// Whether clients go elsewhere when a server is gone or refuses.
    pub fn leaves(&self) -> bool {
        self.shared.place().is_left()
    }

    /// Turns all writers to new keys. Must be called before and after each event at the server.
    pub fn turner(&self) -> Arc<dyn Fn() + Send + Sync> {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || shared.next_generation())
    }

    /// Ends the traffic, reads everything back and judges. `faults` are when the server was broken,
    /// and `emptied` when its data was deleted on purpose, in seconds from zero and in order. A
    /// server that does not answer is waited for, until `gives_up`.
    ///
    /// # Errors
    /// The data cannot be read back.
    pub fn finish(
        mut self,
        faults: &[f64],
        emptied: &[f64],
        gives_up: &mut dyn FnMut() -> bool,
    ) -> io::Result<Check> {
        let ended = self.shared.seconds();
        self.shared.stop();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        let histories: Vec<History> =
            self.writers.drain(..).filter_map(|writer| writer.join().ok()).collect();
        let mut causes = [faults, emptied, &[ended]].concat();
        causes.sort_by(f64::total_cmp);
        let mut check = self.judge(&histories, &causes, gives_up)?;
        check.stale_reads = self.shared.stale_reads();
        check.refused = self.shared.refused();
        let times = || histories.iter().flat_map(History::times);
        check.longest_gap_seconds = recovery::longest_gap(times().collect(), ended);
        check.usual_gap_seconds = recovery::usual_gap(times().collect(), faults, ended);
        let times = times();
        let buckets = recovery::buckets(times, BUCKET_SECONDS, ended);
        check.recovery_seconds = recovery_seconds(&buckets, BUCKET_SECONDS, WINDOW, faults);
        Ok(check)
    }

    /// `faults` end with the end of the traffic, after which nothing was acknowledged.
    fn judge(
        &self,
        histories: &[History],
        faults: &[f64],
        gives_up: &mut dyn FnMut() -> bool,
    ) -> io::Result<Check> {
        let mut check = Check::default();
        let mut connection = self.patient_connection(gives_up)?;
        for (writer, history) in histories.iter().enumerate() {
            check.acknowledged += history.acknowledged();
            check.unknown += history.unknown();
            let places: Vec<(u64, usize)> = history.places().collect();
            for batch in places.chunks(BATCH) {
                let commands: Vec<[String; 2]> = batch
                    .iter()
                    .map(|(generation, slot)| {
                        ["GET".to_owned(), self.shared.key(writer, *generation, *slot)]
                    })
                    .collect();
                connection.send(commands.iter().map(|command| &command[..]))?;
                for (place, command) in batch.iter().zip(&commands) {
                    let value = connection.receive()?;
                    if let Value::Error(text) = &value {
                        return Err(io::Error::other(String::from_utf8_lossy(text).into_owned()));
                    }
                    let verdict = history.judge(writer, *place, value.as_bytes());
                    note(&mut check, &command[1], &verdict, faults);
                }
            }
        }
        Ok(check)
    }

    /// A connection to a server that may be just coming back.
    fn patient_connection(&self, gives_up: &mut dyn FnMut() -> bool) -> io::Result<Connection> {
        let start = Instant::now();
        loop {
            let connection = self.shared.place().connect(Duration::from_secs(5));
            let ready =
                connection.and_then(|(mut connection, _)| match connection.call(&["PING"])? {
                    Value::Error(text) if text.starts_with(b"LOADING") => {
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    _ => Ok(connection),
                });
            match ready {
                Ok(connection) => return Ok(connection),
                Err(error) if start.elapsed() > PATIENCE || gives_up() => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

impl Drop for Checker {
    /// A checker that is not finished ends nevertheless.
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// How long before the next fault a write was acknowledged, in seconds.
fn age(at: f64, faults: &[f64]) -> f64 {
    faults.iter().find(|fault| **fault >= at).map_or(0.0, |fault| fault - at)
}

/// Adds the verdict on one key to the total.
fn note(check: &mut Check, key: &str, verdict: &Verdict, faults: &[f64]) {
    match verdict {
        Verdict::Whole => return,
        Verdict::Lost { count, oldest, .. } => {
            check.lost += count;
            let age = age(*oldest, faults);
            check.oldest_lost_seconds =
                Some(check.oldest_lost_seconds.map_or(age, |other| other.max(age)));
        }
        Verdict::Wrong(_) => check.wrong += 1,
    }
    if check.examples.len() < EXAMPLES {
        check.examples.push(match verdict {
            Verdict::Lost { found: Some(found), newest, oldest, .. } => format!(
                "{key}: write {newest} was acknowledged, the server has write {found}; the oldest \
                 lost one was acknowledged {:.3} s before the fault",
                age(*oldest, faults)
            ),
            Verdict::Lost { newest, .. } => {
                format!("{key}: write {newest} was acknowledged, the key is gone")
            }
            Verdict::Wrong(text) => format!("{key}: '{text}' was never written"),
            Verdict::Whole => return,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_loss_ends_at_the_next_fault() {
        let mut check = Check::default();
        let faults = [10.0, 20.0, 30.0];
        let lost = |oldest| Verdict::Lost { count: 2, oldest, newest: 5, found: Some(3) };
        note(&mut check, "a", &lost(9.5), &faults);
        assert_eq!(check.oldest_lost_seconds, Some(0.5));
        // Long before the last fault, and shortly before the fault that lost it.
        note(&mut check, "b", &lost(19.25), &faults);
        assert_eq!(check.oldest_lost_seconds, Some(0.75));
        note(&mut check, "c", &Verdict::Whole, &faults);
        assert_eq!((check.lost, check.examples.len()), (4, 2));
        assert!(check.examples[1].ends_with("0.750 s before the fault"), "{:?}", check.examples);
        assert_eq!(age(31.0, &faults), 0.0);
    }
}
