//! The threads that shake hands with the clients of TLS.
//!
//! A handshake takes as long as thousands of commands. So a connection comes to its worker when its
//! handshake has ended: the clients of a worker never wait for that of another one. A client that
//! is slow to shake hands keeps nothing but its connection, and not for long.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::{clock, limits};
use config::TlsAuthClientsUser;
use engine::engine::Engine;
use engine::host::{Frequent, LogLevel};
use engine::observe::stats::ThreadStats;
use mio::{Events, Poll, Token, Waker};
use parking_lot::Mutex;
use process::thread;
use tls::NameSource;

use super::arrival::Arrival;
use super::mailbox::{WAKE, Wakers};
use super::protected::refuse_unprotected;
use super::protocol::Speaks;
use super::transport::{AnyTransport, Origin, Progress, Tls, Transport};

/// Workers for which there is a thread.
const WORKERS_PER_THREAD: usize = 4;
/// How often it looks for handshakes that take too long.
const TICK: Duration = Duration::from_millis(500);

/// A connection that shakes hands.
pub(super) struct Shaking {
    pub(super) tls: Box<Tls>,
    pub(super) origin: Origin,
    pub(super) speaks: Speaks,
}

/// What others leave for a thread.
struct Orders {
    arrived: Mutex<Vec<Shaking>>,
    /// Set while a wake-up is under way, so that many connections cost one.
    woken: AtomicBool,
    stopping: AtomicBool,
    waker: Waker,
}

/// See the module's text.
pub(super) struct Handshakes {
    threads: Vec<(Arc<Orders>, JoinHandle<()>)>,
    next: AtomicUsize,
    /// How many shake hands.
    count: Arc<AtomicUsize>,
}

impl Handshakes {
    /// Starts threads for so many workers.
    pub(super) fn start(
        engine: &Arc<Engine>,
        wakers: &Arc<Wakers>,
        workers: usize,
    ) -> io::Result<Handshakes> {
        let count = Arc::<AtomicUsize>::default();
        let mut threads = Vec::new();
        for number in 0..workers.div_ceil(WORKERS_PER_THREAD) {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), WAKE)?;
            let (arrived, woken) = (Mutex::default(), AtomicBool::default());
            let stopping = AtomicBool::default();
            let orders = Arc::new(Orders { arrived, woken, stopping, waker });
            let name = format!("handshakes-{number}");
            let shaker = Shaker {
                engine: Arc::clone(engine),
                wakers: Arc::clone(wakers),
                stats: engine.stats.register(&name),
                orders: Arc::clone(&orders),
                count: Arc::clone(&count),
                poll,
                shaking: Vec::new(),
                free: Vec::new(),
            };
            threads.push((orders, thread::start(name, move || shaker.run())?));
        }
        Ok(Handshakes { threads, next: AtomicUsize::new(0), count })
    }

    /// How many connections shake hands.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Has a thread shake hands, and give the connection to a worker.
    pub(super) fn add(&self, shaking: Shaking) {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len();
        let (orders, _) = &self.threads[number];
        self.count.fetch_add(1, Ordering::Relaxed);
        orders.arrived.lock().push(shaking);
        if !orders.woken.swap(true, Ordering::AcqRel) {
            // The only failure is a full counter, which wakes the thread as well.
            let _ = orders.waker.wake();
        }
    }

    /// Ends them, and with them what has not ended.
    pub(super) fn stop(self) {
        for (orders, thread) in self.threads {
            orders.stopping.store(true, Ordering::Release);
            let _ = orders.waker.wake();
            // A panic has ended the process already.
            let _ = thread.join();
        }
    }
}

/// A thread's own state.
struct Shaker {
    engine: Arc<Engine>,
    wakers: Arc<Wakers>,
    stats: Arc<ThreadStats>,
    orders: Arc<Orders>,
    count: Arc<AtomicUsize>,
    poll: Poll,
    /// By the tokens of their sockets, each with the time at which it is given up.
    shaking: Vec<Option<(Shaking, u64)>>,
    free: Vec<usize>,
}

impl Shaker {
    fn run(mut self) {
        // Those who are connected come before those who want to be.
        base::time_slice::yield_to_others();
        let mut events = Events::with_capacity(limits::EVENTS_PER_TURN);
        let mut next_tick = 0;
        while !self.orders.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, Some(TICK))
                && error.kind() != io::ErrorKind::Interrupted
            {
                let line = format!("Waiting for handshakes failed: {error}");
                self.engine.host.log(LogLevel::Warning, &line);
            }
            for event in &events {
                if event.token() != WAKE {
                    self.step(event.token().0, event.is_read_closed());
                }
            }
            // Who comes after this wakes it again.
            self.orders.woken.store(false, Ordering::Release);
            let arrived = std::mem::take(&mut *self.orders.arrived.lock());
            arrived.into_iter().for_each(|shaking| self.begin(shaking));
            let now = clock::monotonic_ms();
            if now >= next_tick {
                next_tick = now + TICK.as_millis() as u64;
                self.give_up_late(now);
            }
            // Workers free what came with a connection.
            process::memory::publish();
        }
    }

    fn begin(&mut self, mut shaking: Shaking) {
        let index = self.free.pop().unwrap_or(self.shaking.len());
        if let Err(error) = shaking.tls.register(self.poll.registry(), Token(index)) {
            self.free.push(index);
            self.count.fetch_sub(1, Ordering::Relaxed);
            return self.complain(&shaking.origin, &error.to_string());
        }
        if index == self.shaking.len() {
            self.shaking.push(None);
        }
        // An event tells what the client has sent already.
        self.shaking[index] = Some((shaking, clock::monotonic_ms() + limits::TLS_HANDSHAKE_MS));
    }

    /// Goes on with a handshake. `ends` says that the client will send nothing more.
    fn step(&mut self, index: usize, ends: bool) {
        let Some((shaking, _)) = self.shaking.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        match shaking.tls.shake_hands(ends) {
            Progress::Waits => {}
            Progress::Done => {
                if let Some(mut shaking) = self.remove(index) {
                    match shaking.tls.deregister(self.poll.registry()) {
                        Ok(()) => self.deliver(shaking),
                        Err(error) => self.complain(&shaking.origin, &error.to_string()),
                    }
                }
            }
            Progress::Failed(reason) => self.end(index, &reason),
        }
    }

    fn remove(&mut self, index: usize) -> Option<Shaking> {
        let (shaking, _) = self.shaking.get_mut(index)?.take()?;
        self.free.push(index);
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(shaking)
    }

    fn end(&mut self, index: usize, reason: &str) {
        if let Some(shaking) = self.remove(index) {
            self.complain(&shaking.origin, reason);
        }
    }

    /// Tells the log why a handshake has failed.
    fn complain(&self, origin: &Origin, reason: &str) {
        self.engine.host.log_frequent(Frequent::Handshake, LogLevel::Warning, &|| {
            format!("Error accepting a client connection: {reason} ({origin})")
        });
    }

    /// Gives a connection to a worker, or refuses it with the reason.
    fn deliver(&self, shaking: Shaking) {
        let Shaking { tls, origin, speaks } = shaking;
        let config = self.engine.config.load();
        let source = match config.tls_auth_clients_user {
            TlsAuthClientsUser::Off => None,
            TlsAuthClientsUser::Cn => Some(NameSource::CommonName),
            TlsAuthClientsUser::Uri => Some(NameSource::Uri),
        };
        let names = source.map(|source| tls.names(source)).unwrap_or_default();
        let mut transport = AnyTransport::Tls(tls);
        let settings = (&**config, &self.engine.users);
        if refuse_unprotected(settings, &*self.engine.host, &origin, (&mut transport, speaks)) {
            return self.stats.rejected_connections.add(1);
        }
        self.stats.connections_received.add(1);
        let id = self.engine.next_client_id();
        self.wakers.deliver(Arrival { transport, origin, speaks, names, id });
    }

    fn give_up_late(&mut self, now: u64) {
        for index in 0..self.shaking.len() {
            if self.shaking[index].as_ref().is_some_and(|(_, until)| *until <= now) {
                self.end(index, "the handshake took too long");
            }
        }
    }
}
