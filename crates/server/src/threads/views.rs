//! The threads that ask databases for the results of views, keep them, and forget them.
//!
//! Each connection to a database belongs to one thread, so no statement ever runs on a worker.
//! Requests for a result that is not kept join one flight: one statement, whose result is kept and
//! answered to all of them. A worker that asks holds a slot, so it only looks into a map here and
//! puts a request into a queue of bounded length.
//!
//! `results` keeps results under keys, and forgets them.
//!
//! A result that was read before a tag was forgotten must not be kept after it. So every view has
//! an epoch, which grows when one of its tags is forgotten. A flight knows the epoch in which it
//! began, and its result is kept only while that is still the view's epoch. Newcomers join no
//! flight of an earlier one.
//!
//! When the file of views is read anew, a new pool of threads replaces the present one. The old
//! pool does its remaining work and ends, and keeps nothing more. Results of views that have
//! changed are forgotten; until they are, requests for them do not look at kept results. After a
//! restart with another file nobody forgets them, but their keys name another definition, so nobody
//! finds them either.

mod results;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::sleep;
use std::time::Duration;

use arc_swap::ArcSwap;
use config::Config;
use engine::engine::Engine;
use engine::host::{LogLevel, ViewRequest};
use engine::session::attachment::Waiter;
use parking_lot::Mutex;
use resp::output::Output;
use views::{Connection, Failure, Offer, View, Views};

use crate::threads::internal_client::InternalClient;
use crate::threads::views::results::Results;
use process::log::Log;
use process::paths::{path, reason};
use process::thread;

/// Requests that wait for the connections of one database.
const QUEUE: usize = 4096;
/// Milliseconds after a failure in which no stale result is asked for anew, and no thread tries to
/// reach a database that could not be reached.
const PAUSE_AFTER_FAILURE: u64 = 1000;
/// The pause before results that cannot be forgotten now are tried again.
const PAUSE_OF_SETTLING: Duration = Duration::from_millis(100);

const TOO_MANY: &[u8] = b"-BUSY too many requests wait for the database\r\n";
const FAILED: &[u8] = b"-DATABASE the database does not answer as it should: see the log\r\n";
const REFUSED: &[u8] = b"-REFUSED the database refuses the request: see the log\r\n";
const NO_VIEW: &[u8] = b"-ERR there is no such view\r\n";

/// A request on its way to a thread.
enum Job {
    Fill {
        key: Box<[u8]>,
        epoch: u64,
    },
    Change {
        view: Box<[u8]>,
        body: Box<[u8]>,
        waiter: Waiter,
    },
    Forget {
        tag: Box<[u8]>,
        waiter: Waiter,
    },
    /// The results of views that are others now.
    Settle,
}

/// A result that is being asked for.
struct Flight {
    epoch: u64,
    waiters: Vec<Waiter>,
    /// It renews a stale result, which clients have already.
    renews: bool,
}

impl Flight {
    /// Whether anybody wants its result: not if all who asked have gone.
    fn is_wanted(&self) -> bool {
        self.renews || self.waiters.iter().any(|waiter| waiter.wait.is_waiting())
    }
}

/// State that all pools share, one after the other.
struct Common {
    log: Arc<Log>,
    /// Set once, when there is an engine.
    engine: OnceLock<Weak<Engine>>,
    results: Results,
    /// The present pool, when there is one.
    pool: OnceLock<ArcSwap<Pool>>,
    /// The internal clients of threads that have ended.
    clients: Mutex<Vec<InternalClient>>,
}

/// State that the threads of a pool share.
struct Shared {
    offer: Arc<Offer>,
    common: Arc<Common>,
    flights: Mutex<HashMap<Box<[u8]>, Flight>>,
    /// By the names of the views.
    epochs: HashMap<String, AtomicU64>,
    /// By the numbers of the databases: until when a stale result is not asked for again, in
    /// milliseconds of the monotonic clock.
    rests_until: Vec<AtomicU64>,
    /// By the numbers of the databases too: until when no thread tries to reach a database that
    /// could not be reached.
    unreachable_until: Vec<AtomicU64>,
    /// By the numbers of the databases: locked by the thread that connects. The statements that
    /// begin a connection may create and fill a table, and if two do so at once, the database
    /// refuses one.
    connecting: Vec<Mutex<()>>,
    /// Another pool has replaced it and knows better which results to keep.
    is_retired: AtomicBool,
}

/// The threads for the views of a file. They end when it is dropped.
struct Pool {
    shared: Arc<Shared>,
    /// By the databases' numbers; the last one is that of the thread that forgets results.
    queues: Vec<SyncSender<Job>>,
}

/// Views that can be served from now on.
pub struct Next {
    offer: Arc<Offer>,
    pool: Pool,
}

impl Next {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.offer.views.views.len()
    }
}

/// See the module's text.
pub struct Keeper {
    common: Arc<Common>,
    /// The views that the present pool serves.
    offer: Arc<ArcSwap<Offer>>,
}

/// A reply of few bytes.
fn said(reply: &[u8]) -> Output {
    let mut output = Output::new();
    output.push(reply);
    output
}

impl Keeper {
    /// Reads the file with the views of databases, if the settings name one.
    ///
    /// # Errors
    /// What is wrong with it, for the operator. After the first line it may show a part of the
    /// file.
    pub fn read(config: &Config) -> Result<Views, String> {
        if config.views_file.is_empty() {
            return Ok(Views::default());
        }
        let text = std::fs::read_to_string(path(&config.views_file));
        text.map_err(|error| reason(&error)).and_then(|text| Views::parse(&text))
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn start(views: Views, log: &Arc<Log>) -> io::Result<Keeper> {
        let common = Arc::new(Common {
            log: Arc::clone(log),
            engine: OnceLock::new(),
            results: Results::default(),
            pool: OnceLock::new(),
            clients: Mutex::default(),
        });
        let offer = Arc::new(Offer::new(views, BTreeSet::new()));
        let pool = Pool::start(&common, Arc::clone(&offer))?;
        common.pool.get_or_init(|| ArcSwap::from_pointee(pool));
        Ok(Keeper { common, offer: Arc::new(ArcSwap::new(offer)) })
    }

    /// Prepares everything that may fail for serving other views.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn prepare(&self, views: Views) -> io::Result<Next> {
        let before = self.offer.load_full();
        let mut changed = views.changed_since(&before.views);
        if !before.is_settled() {
            // Results that were to be forgotten may still be there.
            changed.extend(before.changed.iter().cloned());
        }
        let offer = Arc::new(Offer::new(views, changed));
        offer.take_over(&before);
        let pool = Pool::start(&self.common, Arc::clone(&offer))?;
        Ok(Next { offer, pool })
    }

    /// Serves other views from now on. The present ones are those of [`Keeper::prepare`].
    pub fn replace(&self, Next { offer, pool }: Next) {
        let Some(present) = self.common.pool.get() else { return };
        let before = self.offer.load_full();
        let to_settle = pool.queues.last().filter(|_| !offer.is_settled()).cloned();
        // In this order: a client that has had the result of a new statement must not get that of
        // an old one again, which may still be kept.
        self.offer.store(offer);
        let retired = present.swap(Arc::new(pool));
        // Code that forgets results from now on tells the new pool.
        self.offer.load().take_over(&before);
        // A thread that is about to keep a result does so before anything is forgotten: see
        // [`Worker::settle`]. It is not waited for here, where the caller may hold slots that it
        // needs.
        retired.shared.is_retired.store(true, SeqCst);
        // The first job of its own queue: there is room.
        to_settle.into_iter().for_each(|queue| drop(queue.try_send(Job::Settle)));
    }

    /// Connects it with the engine whose clients it answers.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.common.engine.get_or_init(|| Arc::downgrade(engine));
    }

    /// The views that can be asked for.
    pub fn offer(&self) -> &Arc<ArcSwap<Offer>> {
        &self.offer
    }

    /// Has a thread carry out the request, and answers the waiter.
    pub fn ask(&self, request: ViewRequest, waiter: Option<Waiter>) {
        if let Some(pool) = self.common.pool.get() {
            pool.load().ask(request, waiter);
        }
    }

    /// Nothing is kept any more: the data is about to be saved for the last time.
    pub fn stop(&self) {
        self.common.results.stop();
    }
}

impl Pool {
    fn start(common: &Arc<Common>, offer: Arc<Offer>) -> io::Result<Pool> {
        let views = &offer.views;
        let shared = Arc::new(Shared {
            common: Arc::clone(common),
            flights: Mutex::default(),
            epochs: views.views.keys().map(|name| (name.clone(), AtomicU64::new(0))).collect(),
            rests_until: views.databases.iter().map(|_| AtomicU64::new(0)).collect(),
            unreachable_until: views.databases.iter().map(|_| AtomicU64::new(0)).collect(),
            connecting: views.databases.iter().map(|_| Mutex::default()).collect(),
            is_retired: AtomicBool::new(false),
            offer,
        });
        let mut queues = Vec::new();
        let views = &shared.offer.views;
        if views.views.is_empty() && shared.offer.changed.is_empty() {
            return Ok(Pool { shared, queues });
        }
        let databases = views.databases.iter().map(|database| database.connections);
        for (number, threads) in databases.chain([1]).enumerate() {
            let (sender, receiver) = mpsc::sync_channel(QUEUE);
            let receiver = Arc::new(Mutex::new(receiver));
            for thread in 0..threads {
                let name = format!("view-{number}-{thread}");
                let (shared, receiver) = (Arc::clone(&shared), Arc::clone(&receiver));
                let work = move || {
                    Worker { shared, database: number, client: None, connection: None }
                        .run(&receiver)
                };
                thread::start(name, work)?;
            }
            queues.push(sender);
        }
        Ok(Pool { shared, queues })
    }

    fn ask(&self, request: ViewRequest, waiter: Option<Waiter>) {
        match (request, waiter) {
            (ViewRequest::Fill { key }, waiter) => self.fill(key, waiter),
            (ViewRequest::Change { view, body }, Some(waiter)) => {
                let name = std::str::from_utf8(&view).unwrap_or_default();
                let views = &self.shared.offer.views.views;
                let Some(database) = views.get(name).map(|view| view.database) else {
                    return self.shared.answer(&waiter, NO_VIEW);
                };
                self.put(database, Job::Change { view, body, waiter });
            }
            (ViewRequest::Forget { tag }, Some(waiter)) => {
                self.shared.begin_epochs(&tag);
                match self.queues.len().checked_sub(1) {
                    Some(last) => self.put(last, Job::Forget { tag, waiter }),
                    None => self.shared.answer(&waiter, b":0\r\n"),
                }
            }
            (_, None) => {}
        }
    }

    fn fill(&self, key: Box<[u8]>, waiter: Option<Waiter>) {
        let shared = &self.shared;
        // The file may have been read anew since the request came.
        let present = shared.offer.views.present_key(&key).map(|key| key.into_bytes().into());
        let key: Box<[u8]> = present.unwrap_or(key);
        let Ok((view, _)) = shared.offer.views.at_key(&key) else {
            return waiter.into_iter().for_each(|waiter| shared.answer(&waiter, NO_VIEW));
        };
        let rests = shared.rests_until[view.database].load(SeqCst) > base::clock::monotonic_ms();
        if waiter.is_none() && rests {
            return;
        }
        let epoch = shared.epoch(&view.name);
        {
            let mut flights = shared.flights.lock();
            let renews = waiter.is_none();
            if let Some(flight) = flights.get_mut(&key).filter(|flight| flight.epoch == epoch) {
                flight.waiters.extend(waiter);
                flight.renews |= renews;
                return;
            }
            let waiters = waiter.into_iter().collect();
            let earlier = flights.insert(key.clone(), Flight { epoch, waiters, renews });
            if let (Some(earlier), Some(flight)) = (earlier, flights.get_mut(&key)) {
                // Clients that wait for a result that was forgotten meanwhile get the newer one as
                // well.
                flight.waiters.extend(earlier.waiters);
                flight.renews |= earlier.renews;
            }
        }
        self.put(view.database, Job::Fill { key, epoch });
    }

    fn put(&self, queue: usize, job: Job) {
        match self.queues[queue].try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => match job {
                Job::Fill { key, epoch } => self.shared.land(&key, epoch, &said(TOO_MANY)),
                Job::Change { waiter, .. } | Job::Forget { waiter, .. } => {
                    self.shared.answer(&waiter, TOO_MANY);
                }
                Job::Settle => {}
            },
        }
    }
}

impl Shared {
    /// Whether a database could not be reached a moment ago.
    fn is_unreachable(&self, database: usize) -> bool {
        self.unreachable_until[database].load(SeqCst) > base::clock::monotonic_ms()
    }

    /// Opens a connection to a database, one thread after the other.
    fn connect(&self, database: usize) -> Result<Connection, Failure> {
        let _turn = self.connecting[database].lock();
        if self.is_unreachable(database) {
            let reason = "it could not be reached a moment ago".to_owned();
            return Err(Failure { reason, lost: true, refused: false });
        }
        let opened = Connection::open(&self.offer.views.databases[database]);
        if opened.is_err() {
            let until = base::clock::monotonic_ms() + PAUSE_AFTER_FAILURE;
            self.unreachable_until[database].store(until, SeqCst);
        }
        opened
    }

    fn answer(&self, waiter: &Waiter, reply: &[u8]) {
        if let Some(engine) = self.common.engine.get().and_then(Weak::upgrade) {
            engine.answer(waiter, reply);
        }
    }

    fn epoch(&self, view: &str) -> u64 {
        self.epochs.get(view).map_or(0, |epoch| epoch.load(SeqCst))
    }

    /// For the views with this tag, results that were asked for up to now are no longer kept.
    fn begin_epochs(&self, tag: &[u8]) {
        self.offer.forget(tag, base::clock::now_ms());
        for name in self.views_with(tag) {
            if let Some(epoch) = self.epochs.get(name) {
                epoch.fetch_add(1, SeqCst);
            }
        }
    }

    /// Whether a flight's statement is to run. A flight that nobody waits for any more ends here,
    /// as does one whose waiters a later flight has taken over.
    fn takes_off(&self, key: &[u8], epoch: u64) -> bool {
        let mut flights = self.flights.lock();
        let Some(flight) = flights.get(key).filter(|flight| flight.epoch == epoch) else {
            return false;
        };
        let is_wanted = flight.is_wanted();
        if !is_wanted {
            flights.remove(key);
        }
        is_wanted
    }

    /// The views with a tag. A tag that is the name of a view may be one of an earlier file.
    fn views_with<'v>(&'v self, tag: &'v [u8]) -> impl Iterator<Item = &'v str> {
        let views = self.offer.views.views.values();
        let tagged = views.filter(move |view| view.tags.iter().any(|own| own.as_bytes() == tag));
        let own = std::str::from_utf8(tag).ok().filter(|own| self.offer.changed.contains(*own));
        tagged.map(|view| &*view.name).chain(own)
    }

    /// Ends a flight, and answers its waiters.
    fn land(&self, key: &[u8], epoch: u64, reply: &Output) {
        let flight = {
            let mut flights = self.flights.lock();
            // A later flight may have taken its place, and its waiters.
            let own = flights.get(key).is_some_and(|flight| flight.epoch == epoch);
            if own { flights.remove(key) } else { None }
        };
        let Some(engine) = self.common.engine.get().and_then(Weak::upgrade) else { return };
        for waiter in flight.into_iter().flat_map(|flight| flight.waiters) {
            engine.answer_with(&waiter, reply.clone());
        }
    }
}

/// A thread.
struct Worker {
    shared: Arc<Shared>,
    database: usize,
    client: Option<InternalClient>,
    connection: Option<Connection>,
}

impl Worker {
    fn run(mut self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            // The lock is that of waiting: the thread that has it gets the next job.
            let job = jobs.lock().recv();
            let Ok(job) = job else { break };
            if self.client.is_none() {
                let common = &self.shared.common;
                let engine = common.engine.get().and_then(Weak::upgrade);
                let spare = common.clients.lock().pop();
                self.client =
                    spare.or_else(|| engine.map(|engine| InternalClient::new(engine, "view")));
            }
            match job {
                Job::Fill { key, epoch } => self.fill(&key, epoch),
                // CLIENT KILL has answered that nothing of its client runs any more.
                Job::Change { waiter, .. } if waiter.client.is_killed() => {}
                Job::Change { view, body, waiter } => {
                    let reply = self.change(&view, &body);
                    self.shared.answer(&waiter, &reply);
                }
                Job::Forget { tag, waiter } => {
                    let reply = match self.forget(&[&tag]) {
                        Ok(forgotten) => format!(":{forgotten}\r\n").into_bytes(),
                        Err(refusal) => refusal,
                    };
                    self.shared.answer(&waiter, &reply);
                }
                Job::Settle => self.settle(),
            }
            process::memory::publish();
        }
        self.shared.common.clients.lock().extend(self.client.take());
    }

    /// Forgets the results of views that another file has defined.
    fn settle(&mut self) {
        let offer = Arc::clone(&self.shared.offer);
        let names: Vec<&[u8]> = offer.changed.iter().map(String::as_bytes).collect();
        let shared = Arc::clone(&self.shared);
        while !shared.is_retired.load(SeqCst) && !shared.common.results.is_stopped() {
            // What is refused is tried again: see below.
            let _ = self.forget(&names);
            let Some(client) = &mut self.client else { return };
            if names.iter().all(|name| Results::has_none(client, name)) {
                return offer.settle();
            }
            // Writes are refused now, as they are when the disk is full.
            sleep(PAUSE_OF_SETTLING);
        }
    }

    fn fill(&mut self, key: &[u8], epoch: u64) {
        let shared = Arc::clone(&self.shared);
        let Ok((view, call)) = shared.offer.views.at_key(key) else {
            return shared.land(key, epoch, &said(NO_VIEW));
        };
        if !shared.takes_off(key, epoch) {
            return;
        }
        let json = match self.with_connection(view, false, |connection| connection.query(&call)) {
            Ok(json) => json,
            Err(reply) => return shared.land(key, epoch, &said(reply)),
        };
        self.keep(view, key, epoch, &json);
        let seconds = view.ttl.as_secs();
        let head = format!("*5\r\n$4\r\nmiss\r\n_\r\n:0\r\n:{seconds}\r\n${}\r\n", json.len());
        // All waiting clients get the same text, if it is long.
        let mut reply = said(head.as_bytes());
        reply.push_shared(&Arc::new(json));
        reply.push(b"\r\n");
        shared.land(key, epoch, &reply);
    }

    /// Keeps a result, unless it has been forgotten since it was asked for.
    fn keep(&mut self, view: &View, key: &[u8], epoch: u64, json: &[u8]) {
        let Some(client) = &mut self.client else { return };
        let shared = &self.shared;
        let may = || !shared.is_retired.load(SeqCst) && shared.epoch(&view.name) == epoch;
        shared.common.results.keep(client, view, key, json, may);
    }

    fn change(&mut self, view: &[u8], body: &[u8]) -> Vec<u8> {
        let shared = Arc::clone(&self.shared);
        let name = std::str::from_utf8(view).ok();
        let view = name.and_then(|name| shared.offer.views.views.get(name));
        let Some(view) = view else { return NO_VIEW.to_vec() };
        let call = match view.write(body) {
            Ok(call) => call,
            Err(reason) => return format!("-ERR {reason}\r\n").into_bytes(),
        };
        let changed = self.with_connection(view, true, |connection| connection.execute(&call));
        let tags: Vec<&[u8]> = view.tags.iter().map(String::as_bytes).collect();
        // If the answer was lost, the rows may have changed nevertheless.
        tags.iter().for_each(|tag| shared.begin_epochs(tag));
        if let Some(present) = shared.common.pool.get().map(ArcSwap::load)
            && !Arc::ptr_eq(&present.shared, &shared)
        {
            tags.iter().for_each(|tag| present.shared.begin_epochs(tag));
        }
        if let Err(refusal) = self.forget(&tags) {
            // This process does not answer them any more, but after a restart they are there again.
            let refusal = String::from_utf8_lossy(&refusal);
            let line = format!("View {}: results that it had: {}", view.name, refusal.trim());
            shared.common.log.warning(line);
        }
        match changed {
            Ok(changed) => format!(":{changed}\r\n").into_bytes(),
            Err(reply) => reply.to_vec(),
        }
    }

    /// Deletes the results with these tags. Returns how many.
    ///
    /// # Errors
    /// The reply of the first command that was refused. The others were tried all the same.
    fn forget(&mut self, tags: &[&[u8]]) -> Result<usize, Vec<u8>> {
        let Some(client) = &mut self.client else { return Ok(0) };
        let shared = &self.shared;
        let views = tags.iter().flat_map(|tag| shared.views_with(tag));
        shared.common.results.forget(client, tags, views)
    }

    /// Uses the thread's connection to the database of a view: once if the action `changes` rows. A
    /// failure is logged, and the reply for it returned.
    fn with_connection<T>(
        &mut self,
        view: &View,
        changes: bool,
        action: impl Fn(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, &'static [u8]> {
        // A connection that was idle for long may have been closed by the database. What reads is
        // then run again; what changes rows may have run, so the database is asked before.
        if changes && self.connection.as_mut().is_some_and(|own| !own.is_alive()) {
            self.connection = None;
        }
        let had_one = self.connection.is_some();
        if !had_one && self.shared.is_unreachable(self.database) {
            // Others have found out, and logged it. Each of those who wait would take as long to.
            return Err(FAILED);
        }
        let mut result = self.attempt(&action);
        if had_one && !changes && result.as_ref().is_err_and(|failure| failure.lost) {
            result = self.attempt(&action);
        }
        match result {
            Ok(value) => Ok(value),
            Err(failure) if failure.refused => {
                let line = format!("View {}: {failure}", view.name);
                self.shared.common.log.write(LogLevel::Verbose, &line);
                Err(REFUSED)
            }
            Err(failure) => {
                let until = base::clock::monotonic_ms() + PAUSE_AFTER_FAILURE;
                self.shared.rests_until[self.database].store(until, SeqCst);
                self.shared.common.log.warning(format!("View {}: {failure}", view.name));
                Err(FAILED)
            }
        }
    }

    fn attempt<T>(
        &mut self,
        action: impl Fn(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.shared.connect(self.database)?,
        };
        let result = action(&mut connection);
        if !result.as_ref().is_err_and(|failure| failure.lost) {
            self.connection = Some(connection);
        }
        result
    }
}
