//! How hands are shaken with the clients of TLS, beside the workers.
//!
//! A handshake takes as long as thousands of commands. So a connection comes to its worker when its
//! handshake has ended: the clients of a worker never wait for that of another one. A client that
//! is slow to shake hands keeps nothing but its connection, and not for long. The thread that
//! accepts connections shakes hands as well, which saves a change of threads for each; where there
//! are many workers, others help it.

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
use mio::event::Event;
use mio::{Events, Poll, Registry, Token, Waker};
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
pub(super) const TICK: Duration = Duration::from_millis(500);

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
    /// Those on the thread that accepts.
    own: Shaker,
    helpers: Vec<(Arc<Orders>, JoinHandle<()>)>,
    next: usize,
}

impl Handshakes {
    /// Those of a server with so many workers. The thread that accepts has these figures.
    pub(super) fn start(
        engine: &Arc<Engine>,
        wakers: &Arc<Wakers>,
        workers: usize,
        stats: &Arc<ThreadStats>,
    ) -> io::Result<Handshakes> {
        let own = Shaker {
            engine: Arc::clone(engine),
            wakers: Arc::clone(wakers),
            stats: Arc::clone(stats),
            count: Arc::default(),
            shaking: Vec::new(),
            free: Vec::new(),
            next_look: 0,
        };
        let mut helpers = Vec::new();
        for number in 1..workers.div_ceil(WORKERS_PER_THREAD) {
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
                count: Arc::clone(&own.count),
                shaking: Vec::new(),
                free: Vec::new(),
                next_look: 0,
            };
            let helper = Helper { shaker, orders: Arc::clone(&orders), poll };
            helpers.push((orders, thread::start(name, move || helper.run())?));
        }
        Ok(Handshakes { own, helpers, next: 0 })
    }

    /// How many connections shake hands.
    pub(super) fn count(&self) -> usize {
        self.own.count.load(Ordering::Relaxed)
    }

    /// Those on the thread that accepts.
    pub(super) fn own(&mut self) -> &mut Shaker {
        &mut self.own
    }

    /// Shakes hands with a client here, by events of this registry, or has another thread do it.
    pub(super) fn add(&mut self, registry: &Registry, shaking: Shaking) {
        self.own.count.fetch_add(1, Ordering::Relaxed);
        self.next = (self.next + 1) % (self.helpers.len() + 1);
        let Some((orders, _)) = self.helpers.get(self.next) else {
            return self.own.begin(registry, shaking);
        };
        orders.arrived.lock().push(shaking);
        if !orders.woken.swap(true, Ordering::AcqRel) {
            // The only failure is a full counter, which wakes the thread as well.
            let _ = orders.waker.wake();
        }
    }

    /// Ends them all, and with them what has not ended.
    pub(super) fn stop(self) {
        for (orders, thread) in self.helpers {
            orders.stopping.store(true, Ordering::Release);
            let _ = orders.waker.wake();
            // A panic has ended the process already.
            let _ = thread.join();
        }
    }
}

/// A thread that does nothing else.
struct Helper {
    shaker: Shaker,
    orders: Arc<Orders>,
    poll: Poll,
}

impl Helper {
    fn run(mut self) {
        // Those who are connected come before those who want to be.
        base::time_slice::yield_to_others();
        let mut events = Events::with_capacity(limits::EVENTS_PER_TURN);
        while !self.orders.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, Some(TICK))
                && error.kind() != io::ErrorKind::Interrupted
            {
                let line = format!("Waiting for handshakes failed: {error}");
                self.shaker.engine.host.log(LogLevel::Warning, &line);
            }
            for event in &events {
                if event.token() != WAKE {
                    self.shaker.step(self.poll.registry(), event);
                }
            }
            // Who comes after this wakes it again.
            self.orders.woken.store(false, Ordering::Release);
            let arrived = std::mem::take(&mut *self.orders.arrived.lock());
            for shaking in arrived {
                self.shaker.begin(self.poll.registry(), shaking);
            }
            self.shaker.look();
            // Workers free what came with a connection.
            process::memory::publish();
        }
    }
}

/// The handshakes of one thread.
pub(super) struct Shaker {
    engine: Arc<Engine>,
    wakers: Arc<Wakers>,
    stats: Arc<ThreadStats>,
    /// How many shake hands, on all threads.
    count: Arc<AtomicUsize>,
    /// By the tokens of their sockets, each with the time at which it is given up.
    shaking: Vec<Option<(Shaking, u64)>>,
    free: Vec<usize>,
    next_look: u64,
}

impl Shaker {
    /// Whether nobody shakes hands here.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.shaking.len()
    }

    fn begin(&mut self, registry: &Registry, mut shaking: Shaking) {
        let index = self.free.pop().unwrap_or(self.shaking.len());
        if index == self.shaking.len() {
            self.shaking.push(None);
        }
        if let Err(error) = shaking.tls.register(registry, Token(index)) {
            self.free.push(index);
            self.count.fetch_sub(1, Ordering::Relaxed);
            return self.complain(&shaking.origin, &error.to_string());
        }
        // An event tells what the client has sent already.
        self.shaking[index] = Some((shaking, clock::monotonic_ms() + limits::TLS_HANDSHAKE_MS));
    }

    /// Goes on with the handshake of which an event tells.
    pub(super) fn step(&mut self, registry: &Registry, event: &Event) {
        let Token(index) = event.token();
        let Some((shaking, _)) = self.shaking.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        match shaking.tls.shake_hands(event.is_read_closed()) {
            Progress::Waits => {}
            Progress::Done => {
                if let Some(mut shaking) = self.remove(index) {
                    match shaking.tls.deregister(registry) {
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

    /// Gives up those that take too long, if it has not looked at them just now.
    pub(super) fn look(&mut self) {
        let now = clock::monotonic_ms();
        if now < self.next_look {
            return;
        }
        self.next_look = now + TICK.as_millis() as u64;
        for index in 0..self.shaking.len() {
            if self.shaking[index].as_ref().is_some_and(|(_, until)| *until <= now) {
                self.end(index, "the handshake took too long");
            }
        }
    }
}
