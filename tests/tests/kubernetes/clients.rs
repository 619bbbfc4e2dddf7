//! Clients that write and read while pods come and go, and remember what was acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::PATIENCE;

/// Between two tries of a client that has nobody to ask.
const PAUSE: Duration = Duration::from_millis(5);

/// What all clients of a load have met.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Writes are acknowledged when a replica has them: others may go with a primary that is lost.
    pub(crate) is_replicated: bool,
    /// Requests that were answered.
    pub(crate) answered: AtomicU64,
    /// Requests that were sent and not answered, or answered with an error: a client sees an error.
    pub(crate) errors: AtomicU64,
    /// Clients go on until this is set.
    pub(crate) enough: AtomicBool,
    /// The longest time that a request took with all its tries, in microseconds.
    pub(crate) longest: AtomicU64,
}

/// The counters of a client: what was acknowledged last.
struct Counters {
    client: usize,
    acknowledged: [u64; 8],
    /// What was sent last, acknowledged or not.
    sent: [u64; 8],
}

/// How a client finds somebody to ask.
pub(crate) type Way<'w> = dyn Fn() -> Option<SocketAddr> + Sync + 'w;

/// A connection to whoever the way leads to, with the password given.
pub(crate) fn connect(way: &Way<'_>, password: &str) -> Result<Client> {
    let mut client = Client::connect_at(way().context("nobody is ready")?, None)?;
    let reply = client.call(&["AUTH", password])?;
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(client)
}

impl Load {
    /// Requests that were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until so many more requests were answered.
    pub(crate) fn wait_for(&self, more: u64) -> Result<()> {
        let (begun, from) = (Instant::now(), self.answered());
        while self.answered() < from + more {
            ensure!(begun.elapsed() < PATIENCE, "clients stand still at {}", self.answered());
            sleep(PAUSE);
        }
        Ok(())
    }

    /// A line for people.
    pub(crate) fn figures(&self) -> String {
        let (answered, errors) = (self.answered(), self.errors.load(Ordering::Relaxed));
        let share = errors as f64 * 100.0 / (answered + errors).max(1) as f64;
        let longest = self.longest.load(Ordering::Relaxed) / 1000;
        format!(
            "{answered} answers, {errors} errors ({share:.3} %), the longest after {longest} ms"
        )
    }

    /// Whether at most one request of a thousand met an error.
    pub(crate) fn check_errors(&self) -> Result<()> {
        let errors = self.errors.load(Ordering::Relaxed);
        ensure!(errors * 1000 <= self.answered(), "{}", self.figures());
        Ok(())
    }

    /// Writes and reads in turn until it is enough. Then all that was acknowledged is there.
    ///
    /// # Errors
    /// Something acknowledged is not there, during the load or after it.
    pub(crate) fn run(&self, client: usize, way: &Way<'_>, password: &str) -> Result<()> {
        let mut own = Counters { client, acknowledged: [0; 8], sent: [0; 8] };
        let mut connection = None;
        let mut turn = 0;
        while !self.enough.load(Ordering::Relaxed) {
            turn += 1;
            let begun = Instant::now();
            let at = turn / 2 % 8;
            let is_write = turn % 2 == 0;
            if is_write {
                own.sent[at] += 1;
            }
            while !self.try_once(&mut own, (at, is_write), &mut connection, (way, password))? {
                ensure!(begun.elapsed() < PATIENCE, "a request finds nobody");
                sleep(PAUSE);
            }
            let took = begun.elapsed().as_micros() as u64;
            let _ = self.longest.fetch_max(took, Ordering::Relaxed);
            let _ = self.answered.fetch_add(1, Ordering::Relaxed);
        }
        for at in 0..8 {
            let begun = Instant::now();
            while !self.try_once(&mut own, (at, false), &mut connection, (way, password))? {
                ensure!(begun.elapsed() < PATIENCE, "a request finds nobody");
                sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Whether it was answered.
    fn try_once(
        &self,
        own: &mut Counters,
        (at, is_write): (usize, bool),
        connection: &mut Option<Client>,
        (way, password): (&Way<'_>, &str),
    ) -> Result<bool> {
        if connection.is_none() {
            // Nothing was asked yet: a client tries another server.
            *connection = connect(way, password).ok();
            if let Some(client) = connection.as_mut().filter(|_| self.is_replicated)
                && client.call(&["CLIENT", "DURABILITY", "REPLICAS", "1"]).is_err()
            {
                *connection = None;
            }
        }
        let Some(client) = connection else { return Ok(false) };
        let key = format!("client:{}:{at}", own.client);
        let value = own.sent[at].to_string();
        let words: &[&str] = if is_write { &["SET", &key, &value] } else { &["GET", &key] };
        let received = client.send(words).and_then(|()| client.receive());
        let Ok(Received::Reply(reply)) = received else {
            let _ = self.errors.fetch_add(1, Ordering::Relaxed);
            *connection = None;
            return Ok(false);
        };
        match &reply {
            Reply::Error(_) => {
                let _ = self.errors.fetch_add(1, Ordering::Relaxed);
                *connection = None;
                return Ok(false);
            }
            _ if is_write => own.acknowledged[at] = own.sent[at],
            Reply::Nil => ensure!(own.acknowledged[at] == 0, "{key} is lost"),
            reply => {
                let text = reply.text().map(String::from_utf8_lossy).context("a text")?;
                let (value, known) = (text.parse::<u64>()?, own.acknowledged[at]);
                let may_be = known..=own.sent[at];
                ensure!(may_be.contains(&value), "{key} is {value}, acknowledged was {known}");
            }
        }
        Ok(true)
    }
}
