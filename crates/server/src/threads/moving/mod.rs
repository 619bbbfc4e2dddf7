//! The threads that move keys to other servers: MIGRATE.
//!
//! While a key is on its way, commands that would change it wait
//! ([`engine::engine::moving_keys`]), and all others go on. A key that the target has taken is
//! deleted here if it still has the version that was sent. If it does not, because something has
//! changed it that does not name it, it stays, and the client is told. So at each instant the
//! newest value is here or there, and whatever fails, no value is lost.
//!
//! In a cluster the slot of a key may go to another node meanwhile. What is here is old then: it is
//! not sent any more, and the client is told where the key is. If the target has taken it before,
//! the client is told that it was not deleted.
//!
//! Keys go out in batches of bounded size, one value of any size among them, and are deleted when
//! the replies to their batch have come. A value is in memory once more while it is sent.
//!
//! A content type is no part of a payload that others understand. The target is told of it when it
//! has taken the value, and the key is deleted here after that.
//!
//! Connections are kept for some seconds: who moves many keys sends many commands.

pub(in crate::threads) mod target;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base::clock;
use engine::command::error::CommandError;
use engine::engine::Engine;
use engine::host::Migration;
use engine::session::attachment::Waiter;
use http::reply::{Piece, Pieces};
use parking_lot::{Condvar, Mutex, RwLock};
use process::thread;
use resp::args::OwnedArguments;
use resp::client::encode_command;
use resp::output::Output;
use resp::reply::Reply;

use crate::threads::internal_client::InternalClient;
use target::{Address, Patience, Target, Trouble};

/// Threads at most. Each sends the keys of one command at a time, and waits as long as the command
/// allows for a target that does not answer.
const THREADS: usize = 16;
/// After this time a command that nobody waits for any more gives up, if the target was not sent a
/// key. One whose client has sent it and gone is done as in Redis, if the target answers.
const PATIENCE_OF_NOBODY: Duration = Duration::from_secs(1);
/// When so many commands wait for a thread, those go whose clients have gone.
const CROWD: usize = 1000;
/// Connections that are kept at most, as in Redis.
const TARGETS_KEPT: usize = 64;
/// How long a connection is kept after its use, as in Redis.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// A batch ends with the value with which it has this many bytes, or this many keys.
const BATCH_BYTES: usize = 1024 * 1024;
/// See [`BATCH_BYTES`].
const BATCH_KEYS: usize = 1000;
/// The pause before something that is locked by others is tried again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the deletion of a key that the target has taken is tried.
const PATIENCE_OF_DELETING: Duration = Duration::from_secs(10);

/// How servers begin their refusal of a command that they do not have: they know no content types.
const UNKNOWN_COMMAND: &str = "ERR unknown command";

const CHANGED: &str = "ERR Keys were changed while they were moved, by commands that do not name \
                       them: what is here was kept, and the target has earlier values";
const KEPT: &str = "ERR The target has taken keys that could not be deleted here";

/// What tells connections apart: host, port, the words of AUTH, and whether it is encrypted.
type TargetId = (Vec<u8>, u16, Vec<Vec<u8>>, bool);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<(Migration, Waiter)>,
    threads: usize,
    idle: usize,
}

#[derive(Default)]
struct Shared {
    /// Set once, when there is an engine.
    engine: OnceLock<Weak<Engine>>,
    queue: Mutex<Queue>,
    more: Condvar,
    targets: Mutex<HashMap<TargetId, (Target, Instant)>>,
    /// What encrypts connections, if the settings ask for that.
    active: Arc<tls::Active>,
    /// True when the server stops: then nothing is deleted any more. Shared by threads that delete.
    is_stopped: RwLock<bool>,
}

/// See the module's text. The threads begin when they are needed.
pub struct Movers {
    shared: Arc<Shared>,
}

/// A key that was read.
struct Item {
    /// Its place among the keys of the command.
    index: usize,
    version: i64,
    /// When it expires, in milliseconds; 0 for never.
    expire_at: u64,
    /// What the internal command has answered: the payload and the content type are in there.
    reply: Output,
}

impl Item {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        match Pieces::of(&self.reply).nth(index) {
            Some(Piece::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    fn payload(&self) -> Option<&[u8]> {
        self.bytes(3)
    }

    fn content_type(&self) -> Option<&[u8]> {
        self.bytes(4).filter(|name| !name.is_empty())
    }
}

/// How a command ends that has not failed.
enum End {
    Moved,
    NoKey,
}

/// The keys of a command, held until this is dropped.
struct Hold<'e>(&'e Engine, &'e OwnedArguments);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.held_keys.release(self.1.view());
    }
}

impl Movers {
    /// No threads yet. `active` is what encrypts connections, if the settings ask for that.
    pub fn new(active: &Arc<tls::Active>) -> Movers {
        let shared = Shared { active: Arc::clone(active), ..Shared::default() };
        Movers { shared: Arc::new(shared) }
    }

    /// Connects it with the engine whose keys it moves.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.shared.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// Has a thread move keys, and answers the waiter.
    pub fn add(&self, migration: Migration, waiter: Waiter) {
        let mut queue = self.shared.queue.lock();
        if queue.jobs.len() >= CROWD {
            queue.jobs.retain(|(_, waiter)| !is_gone(waiter));
        }
        queue.jobs.push_back((migration, waiter));
        if queue.idle < queue.jobs.len() && queue.threads < THREADS {
            let shared = Arc::clone(&self.shared);
            let name = format!("moving-{}", queue.threads);
            let work = {
                let name = name.clone();
                move || shared.work(&name)
            };
            // If there is no further thread, the others do it, or the next one.
            if thread::start(name, work).is_ok() {
                queue.threads += 1;
            }
        }
        self.shared.more.notify_one();
    }

    /// Nothing is deleted any more: the data was saved for the last time.
    pub fn stop(&self) {
        *self.shared.is_stopped.write() = true;
    }
}

impl Shared {
    fn work(&self, name: &str) {
        let mut client: Option<InternalClient> = None;
        loop {
            let (migration, waiter) = self.next_job();
            let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return };
            let own = || InternalClient::new(Arc::clone(&engine), name);
            let client = client.get_or_insert_with(own);
            let (shared, migration, waiter) = (self, &migration, &waiter);
            let end = Moving { shared, engine: &engine, migration, waiter, client }.run();
            let mut output = Output::new();
            let mut reply = Reply::new(&mut output, false);
            match end {
                Ok(End::Moved) => reply.ok(),
                Ok(End::NoKey) => reply.simple(b"NOKEY"),
                Err(text) => {
                    let error = CommandError::line(text.into_bytes());
                    engine.stats.count_error(&error.code());
                    reply.error(error.as_bytes());
                }
            }
            engine.answer_after(waiter, output, client.write_offset());
            process::memory::publish();
        }
    }

    /// Waits for work, and lets old connections go meanwhile.
    fn next_job(&self) -> (Migration, Waiter) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return job;
            }
            queue.idle += 1;
            self.more.wait_for(&mut queue, KEPT_FOR);
            queue.idle -= 1;
            self.targets.lock().retain(|_, (_, used_at)| used_at.elapsed() < KEPT_FOR);
        }
    }

    fn is_stopped(&self) -> bool {
        *self.is_stopped.read()
    }

    /// Whether the server stops, or nobody waits any more for the answer of what has begun then.
    /// What the target was sent already is brought to its end all the same.
    fn is_unwanted(&self, waiter: &Waiter, begun: Instant) -> bool {
        self.is_stopped() || begun.elapsed() > PATIENCE_OF_NOBODY && is_gone(waiter)
    }
}

/// Whether the client has gone.
fn is_gone(waiter: &Waiter) -> bool {
    waiter.client.is_killed() || !waiter.wait.is_waiting()
}

/// One command on its way.
struct Moving<'m> {
    shared: &'m Shared,
    engine: &'m Engine,
    migration: &'m Migration,
    waiter: &'m Waiter,
    client: &'m mut InternalClient,
}

impl Moving<'_> {
    /// Moves the keys. The error is that of the client.
    fn run(&mut self) -> Result<End, String> {
        let Migration { keys, copy, database, .. } = self.migration;
        self.client.select(*database);
        self.client.speak_like(&self.waiter.client);
        let _hold = match copy {
            true => None,
            false => Some(self.hold(keys).ok_or_else(|| Trouble::Stopping.to_string())?),
        };
        let mut next = 0;
        let mut target = None;
        let mut problem: Option<String> = None;
        loop {
            let batch = self.read_batch(&mut next)?;
            if batch.is_empty() {
                break;
            }
            let result = self.send_batch(&mut target, &batch);
            problem = problem.or(result?);
        }
        let Some(target) = target else { return Ok(End::NoKey) };
        self.keep(target);
        problem.map_or(Ok(End::Moved), Err)
    }

    /// Holds the keys, and waits until all threads know it. Nothing if that is not wanted any more.
    fn hold<'e>(&self, keys: &'e OwnedArguments) -> Option<Hold<'e>>
    where
        Self: 'e,
    {
        let begun = Instant::now();
        while !self.engine.held_keys.hold(keys.view()) {
            if self.shared.is_unwanted(self.waiter, begun) {
                return None;
            }
            sleep(PAUSE);
        }
        let hold = Hold(self.engine, keys);
        // A command that has passed its checks before may still run. When the world stands, there
        // is none.
        drop(self.engine.gates.stop_the_world());
        Some(hold)
    }

    /// Reads the next keys that are there.
    fn read_batch(&mut self, next: &mut usize) -> Result<Vec<Item>, String> {
        let keys = self.migration.keys.view();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while *next < keys.len() && bytes < BATCH_BYTES && batch.len() < BATCH_KEYS {
            let index = *next;
            *next += 1;
            let argv = [&b"READ"[..], keys.at(index)].into_iter().collect();
            let reply = self.run_row(commands::move_rows().read, &argv)?;
            let mut pieces = Pieces::of(&reply);
            let (Some(Piece::Array(_)), Some(Piece::Integer(version)), Some(Piece::Integer(at))) =
                (pieces.next(), pieces.next(), pieces.next())
            else {
                continue;
            };
            bytes += reply.len();
            batch.push(Item { index, version, expire_at: at.unsigned_abs(), reply });
        }
        Ok(batch)
    }

    /// Runs an internal command, when its slot can be had.
    fn run_row(
        &mut self,
        row: &'static engine::engine::Row,
        argv: &OwnedArguments,
    ) -> Result<Output, String> {
        let begun = Instant::now();
        loop {
            let is_stopped = self.shared.is_stopped.read();
            if *is_stopped {
                return Err(Trouble::Stopping.to_string());
            }
            if let Some(reply) = self.client.run_row(row, argv) {
                if let Some(Piece::Error(text)) = Pieces::of(&reply).next() {
                    return Err(String::from_utf8_lossy(text).into_owned());
                }
                return Ok(reply);
            }
            drop(is_stopped);
            if begun.elapsed() > PATIENCE_OF_DELETING {
                return Err("BUSY the key is locked by somebody else for too long".to_owned());
            }
            sleep(PAUSE);
        }
    }

    /// Sends a batch, and deletes what the target has taken. Returns the first thing that was wrong
    /// with a key; the error ends the command.
    fn send_batch(
        &mut self,
        target: &mut Option<Target>,
        batch: &[Item],
    ) -> Result<Option<String>, String> {
        let (shared, waiter, timeout) = (self.shared, self.waiter, self.migration.timeout);
        let begun = Instant::now();
        let is_stopped = || shared.is_stopped();
        let is_unwanted = || shared.is_unwanted(waiter, begun);
        let patience = Patience { timeout, is_stopped: &is_stopped };
        let before = Patience { timeout, is_stopped: &is_unwanted };
        let is_first = target.is_none();
        let (own, mut is_kept) = match target.take() {
            Some(own) => (own, false),
            None => self.open(before).map_err(|trouble| trouble.to_string())?,
        };
        let mut own = own;
        loop {
            match self.try_batch(&mut own, batch, patience) {
                Ok(problem) => {
                    *target = Some(own);
                    return Ok(problem);
                }
                // A connection that was kept may have ended meanwhile: nothing has come of it.
                Err((0, Trouble::Writing | Trouble::Ended)) if is_first && is_kept => {
                    is_kept = false;
                    own = self.connect(before).map_err(|trouble| trouble.to_string())?;
                }
                Err((_, trouble)) => return Err(trouble.to_string()),
            }
        }
    }

    /// Sends a batch. The error has how many replies have come.
    fn try_batch(
        &mut self,
        target: &mut Target,
        batch: &[Item],
        patience: Patience<'_>,
    ) -> Result<Option<String>, (usize, Trouble)> {
        let keys = self.migration.keys.view();
        let mut waiting = Vec::new();
        for item in batch {
            let Some(payload) = item.payload() else { continue };
            let ttl = match item.expire_at {
                0 => 0,
                at => at.saturating_sub(clock::now_us() / 1000).max(1),
            };
            let ttl = ttl.to_string();
            let mut words = vec![&b"RESTORE"[..], keys.at(item.index), ttl.as_bytes(), payload];
            if self.migration.replace {
                words.push(b"REPLACE");
            }
            if payload.len() < BATCH_BYTES / 4 {
                encode_command(words.into_iter(), &mut waiting);
                continue;
            }
            // A large one is sent from where it lies.
            let head = format!("*{}\r\n", words.len());
            waiting.extend_from_slice(head.as_bytes());
            for word in words {
                waiting.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                if word.len() < BATCH_BYTES / 4 {
                    waiting.extend_from_slice(word);
                } else {
                    target.send(&waiting, patience).map_err(|trouble| (0, trouble))?;
                    waiting.clear();
                    target.send(word, patience).map_err(|trouble| (0, trouble))?;
                }
                waiting.extend_from_slice(b"\r\n");
            }
        }
        target.send(&waiting, patience).map_err(|trouble| (0, trouble))?;
        let (mut problem, mut typed) = (None, Vec::new());
        for (count, item) in batch.iter().enumerate() {
            let reply = target.receive(patience).map_err(|trouble| (count, trouble))?;
            let outcome = match (reply, item.content_type()) {
                (Ok(()), None) => self.finish(item),
                (Ok(()), Some(name)) => {
                    typed.push((item, name));
                    Ok(())
                }
                (Err(text), _) => Err(Trouble::Refused(text).to_string()),
            };
            problem = problem.or(outcome.err());
        }
        let done = self.tell_types(target, &typed, patience);
        Ok(problem.or(done.map_err(|trouble| (batch.len(), trouble))?))
    }

    /// Tells the target the content types of what it has taken. Returns the first thing that was
    /// wrong with a key.
    fn tell_types(
        &mut self,
        target: &mut Target,
        typed: &[(&Item, &[u8])],
        patience: Patience<'_>,
    ) -> Result<Option<String>, Trouble> {
        let keys = self.migration.keys.view();
        let (mut waiting, mut problem) = (Vec::new(), None);
        for (item, name) in typed {
            let words = [&b"CONTENTTYPE"[..], keys.at(item.index), name];
            encode_command(words.into_iter(), &mut waiting);
        }
        target.send(&waiting, patience)?;
        for (item, _) in typed {
            let outcome = match target.receive_number(patience)? {
                Err(text) if !text.starts_with(UNKNOWN_COMMAND) => {
                    Err(Trouble::Refused(text).to_string())
                }
                _ => self.finish(item),
            };
            problem = problem.or(outcome.err());
        }
        Ok(problem)
    }

    /// The target has everything of a key.
    fn finish(&mut self, item: &Item) -> Result<(), String> {
        if self.migration.copy { Ok(()) } else { self.delete(item) }
    }

    /// Deletes a key that the target has taken.
    fn delete(&mut self, item: &Item) -> Result<(), String> {
        let key = self.migration.keys.view().at(item.index);
        let version = item.version.to_string();
        let argv = [&b"REMOVE"[..], key, version.as_bytes()].into_iter().collect();
        let reply = self.run_row(commands::move_rows().remove, &argv);
        let reply = reply.map_err(|error| format!("{KEPT}: {error}"))?;
        let has_expired = item.expire_at > 0 && item.expire_at <= clock::now_us() / 1000;
        match Pieces::of(&reply).next() {
            Some(Piece::Integer(1)) => Ok(()),
            Some(Piece::Integer(-1)) if has_expired => Ok(()),
            _ => Err(CHANGED.to_owned()),
        }
    }

    /// As in Redis, it is like a connection between the nodes of a cluster.
    fn is_encrypted(&self) -> bool {
        self.engine.config.load().tls_cluster
    }

    fn place(&self) -> TargetId {
        let Migration { host, port, credentials, .. } = self.migration;
        let words = credentials.view().iter().map(Vec::from).collect();
        (host.clone(), *port, words, self.is_encrypted())
    }

    /// A connection, and whether it was kept from an earlier command.
    fn open(&self, patience: Patience<'_>) -> Result<(Target, bool), Trouble> {
        let kept = self.shared.targets.lock().remove(&self.place());
        let usable = kept.filter(|(own, at)| at.elapsed() < KEPT_FOR && own.is_quiet());
        if let Some((mut own, _)) = usable
            && own.select(self.migration.target_database, patience).is_ok()
        {
            return Ok((own, true));
        }
        Ok((self.connect(patience)?, false))
    }

    fn connect(&self, patience: Patience<'_>) -> Result<Target, Trouble> {
        let Migration { host, port, credentials, target_database, .. } = self.migration;
        let host = std::str::from_utf8(host).map_err(|_| Trouble::Unknown)?;
        let address = Address {
            host,
            port: *port,
            active: self.is_encrypted().then_some(&self.shared.active),
        };
        Target::connect(self.engine, &address, credentials.view(), Some(*target_database), patience)
    }

    /// Keeps a connection for the next command.
    fn keep(&self, target: Target) {
        let mut targets = self.shared.targets.lock();
        if targets.len() < TARGETS_KEPT {
            targets.insert(self.place(), (target, Instant::now()));
        }
    }
}
