//! The checker of writes: it writes with sequence numbers while a server is being broken, and reads
//! everything back afterwards. It says which acknowledged writes are gone, which reads were older
//! than what had been acknowledged before them, and how long it took until all was well again.
//!
//! A writer has keys of its own and one write open at a time. Whenever any connection of the checker
//! is lost, all writers turn to new keys (the next *generation*): what was written before the fault
//! is never overwritten after it, so that nothing lost can hide.

mod history;
mod recovery;
mod traffic;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::clock;

pub use recovery::recovery_seconds;

use crate::experiment::case::CheckRule;
use crate::experiment::connection::Door;
use crate::results::Check;
use history::{History, Verdict};
use resp::client::Value;
use traffic::Shared;

/// How many GETs are on their way at once when everything is read back.
const BATCH: usize = 200;
/// How long the reading back may wait for a server that is not there yet.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many losses are described.
const EXAMPLES: usize = 5;
/// The width of a bucket of the checker's own timeline, in seconds.
const BUCKET_SECONDS: f64 = 0.1;
/// Throughput counts as recovered when it is high for so many buckets.
const WINDOW: usize = 5;

/// A running checker.
#[derive(Debug)]
pub struct Checker {
    shared: Arc<Shared>,
    door: Door,
    writers: Vec<JoinHandle<History>>,
    readers: Vec<JoinHandle<()>>,
}

impl Checker {
    /// Starts to write and to read. Times are counted from `zero`.
    pub fn start(rule: &CheckRule, door: &Door, zero: Instant) -> Self {
        // Another run's keys on the same server are not ours.
        let run = clock::now_us();
        let shared = Arc::new(Shared::new(run, rule.writers, rule.keys, zero));
        let writers = (0..rule.writers).map(|writer| {
            let (shared, door) = (Arc::clone(&shared), door.clone());
            std::thread::spawn(move || traffic::write(&shared, &door, writer))
        });
        let readers = (0..rule.readers).map(|reader| {
            let (shared, door) = (Arc::clone(&shared), door.clone());
            std::thread::spawn(move || traffic::read(&shared, &door, reader))
        });
        Checker {
            writers: writers.collect(),
            readers: readers.collect(),
            door: door.clone(),
            shared: Arc::clone(&shared),
        }
    }

    /// Ends the traffic, reads everything back and judges. `fault` is when the server was broken, in
    /// seconds from zero.
    ///
    /// # Errors
    /// The data cannot be read back.
    pub fn finish(mut self, fault: Option<f64>) -> io::Result<Check> {
        let ended = self.shared.seconds();
        self.shared.stop();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        let histories: Vec<History> =
            self.writers.drain(..).filter_map(|writer| writer.join().ok()).collect();
        let mut check = self.judge(&histories, fault.unwrap_or(ended))?;
        check.stale_reads = self.shared.stale_reads();
        check.recovery_seconds = fault.and_then(|fault| {
            let times = histories.iter().flat_map(History::times);
            let buckets = recovery::buckets(times, BUCKET_SECONDS, ended);
            recovery_seconds(&buckets, BUCKET_SECONDS, WINDOW, fault)
        });
        Ok(check)
    }

    fn judge(&self, histories: &[History], fault: f64) -> io::Result<Check> {
        let mut check = Check::default();
        let mut oldest: Option<f64> = None;
        let mut connection = self.patient_connection()?;
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
                    note(&mut check, &mut oldest, &command[1], &verdict, fault);
                }
            }
        }
        check.oldest_lost_seconds = oldest.map(|at| (fault - at).max(0.0));
        Ok(check)
    }

    /// A connection to a server that may only just be coming back.
    fn patient_connection(&self) -> io::Result<crate::experiment::connection::Connection> {
        let start = Instant::now();
        loop {
            let ready =
                self.door.connect(Duration::from_secs(5)).and_then(
                    |mut connection| match connection.call(&["PING"])? {
                        Value::Error(text) if text.starts_with(b"LOADING") => {
                            Err(io::ErrorKind::WouldBlock.into())
                        }
                        _ => Ok(connection),
                    },
                );
            match ready {
                Ok(connection) => return Ok(connection),
                Err(error) if start.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

impl Drop for Checker {
    /// A checker that is not finished ends all the same.
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// Adds a verdict on one key to the whole.
fn note(check: &mut Check, oldest: &mut Option<f64>, key: &str, verdict: &Verdict, fault: f64) {
    match verdict {
        Verdict::Whole => return,
        Verdict::Lost { count, oldest: at, .. } => {
            check.lost += count;
            *oldest = Some(oldest.map_or(*at, |before| before.min(*at)));
        }
        Verdict::Wrong(_) => check.wrong += 1,
    }
    if check.examples.len() < EXAMPLES {
        check.examples.push(match verdict {
            Verdict::Lost { found: Some(found), newest, oldest, .. } => format!(
                "{key}: write {newest} was acknowledged, the server has write {found}; the oldest \
                 lost one was acknowledged {:.3} s before the fault",
                fault - oldest
            ),
            Verdict::Lost { newest, .. } => {
                format!("{key}: write {newest} was acknowledged, the key is gone")
            }
            Verdict::Wrong(text) => format!("{key}: nobody wrote '{text}'"),
            Verdict::Whole => return,
        });
    }
}
