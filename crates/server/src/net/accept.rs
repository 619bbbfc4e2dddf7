//! The acceptor: one thread that takes new connections and gives them to workers, those of TLS
//! after their handshake.
//!
//! One thread for all listeners distributes connections evenly. Sockets shared by all workers would
//! not: the first worker to wake would take most.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::limits;
use engine::engine::Engine;
use engine::host::{Frequent, LogLevel};
use engine::observe::stats::ThreadStats;
use mio::{Events, Poll, Token, Waker};
use parking_lot::Mutex;

use super::arrival::Arrival;
use super::handshakes::{Handshakes, Shaking, TICK};
use super::mailbox::{WAKE, Wakers};
use super::protected::{refuse, refuse_unprotected};
use super::protocol::Speaks;
use super::transport::{Accepted, AnyTransport, Source, TcpSource, TlsSource, UnixSource};
use process::thread;

/// Where connections arrive, over which transport, and the protocol that is spoken there.
pub struct Listener {
    source: Box<dyn Source>,
    speaks: Speaks,
    /// Connections may wait there.
    may_wait: bool,
}

impl Listener {
    fn new(source: Box<dyn Source>, speaks: Speaks) -> Listener {
        // Some may have come before it is looked after.
        Listener { source, speaks, may_wait: true }
    }

    /// A TCP socket that listens and does not block.
    pub fn tcp(listener: std::net::TcpListener, speaks: Speaks) -> Listener {
        let source = TcpSource::new(mio::net::TcpListener::from_std(listener));
        Listener::new(Box::new(source), speaks)
    }

    /// A TCP socket that listens and does not block, for encrypted connections.
    pub fn tls(
        listener: std::net::TcpListener,
        speaks: Speaks,
        active: &Arc<tls::Active>,
    ) -> Listener {
        let tcp = TcpSource::new(mio::net::TcpListener::from_std(listener));
        let speaks_http = speaks.is_http();
        let source = TlsSource { tcp, active: Arc::clone(active), speaks_http };
        Listener::new(Box::new(source), speaks)
    }

    /// A unix socket that listens and does not block.
    ///
    /// # Errors
    /// Its address cannot be found.
    pub fn unix(
        listener: std::os::unix::net::UnixListener,
        speaks: Speaks,
    ) -> io::Result<Listener> {
        let address = listener.local_addr()?;
        let path = address.as_pathname().map(|path| path.display().to_string());
        let listener = mio::net::UnixListener::from_std(listener);
        let source = UnixSource(listener, path.unwrap_or_default());
        Ok(Listener::new(Box::new(source), speaks))
    }
}

/// The token of the first listener. Those before it are of connections that shake hands.
const LISTENERS: usize = usize::MAX / 2;
/// Events that are looked at before new connections are: so many handshakes go on meanwhile.
const EVENTS: usize = 16;
/// How long to wait before the next accept after a failed one.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

/// What came of a listener's turn. The largest of all says how long the thread may sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// No connection waits any more. An event announces the next one.
    All,
    /// This listener has had its turn. No event announces the connections that still wait.
    Part,
    /// Accepting has failed. No event announces them either.
    Failed,
}

impl Outcome {
    /// How long the next look at the listeners may wait for an event; for ever when absent.
    fn pause(self) -> Option<Duration> {
        match self {
            Outcome::All => None,
            Outcome::Part => Some(Duration::ZERO),
            // Most likely out of descriptors: wait a little rather than spin.
            Outcome::Failed => Some(PAUSE_AFTER_FAILURE),
        }
    }
}

/// What the owner of the thread tells it.
#[derive(Default)]
struct Orders {
    listeners: Mutex<Option<Vec<Listener>>>,
    stopping: AtomicBool,
}

/// The running acceptor thread.
pub(super) struct Acceptor {
    orders: Arc<Orders>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl Acceptor {
    pub(super) fn start(
        engine: Arc<Engine>,
        wakers: Arc<Wakers>,
        workers: usize,
    ) -> io::Result<Acceptor> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let orders = Arc::new(Orders::default());
        let stats = engine.stats.register("acceptor");
        let handshakes = Handshakes::start(&engine, &wakers, workers, &stats)?;
        let accepting = Accepting {
            engine,
            wakers,
            handshakes,
            poll,
            orders: Arc::clone(&orders),
            stats,
            listeners: Vec::new(),
        };
        let thread = thread::start("acceptor", move || accepting.run())?;
        Ok(Acceptor { orders, waker, thread })
    }

    pub(super) fn listen(&self, listeners: Vec<Listener>) {
        *self.orders.listeners.lock() = Some(listeners);
        self.wake();
    }

    pub(super) fn stop(self) {
        self.orders.stopping.store(true, Ordering::Release);
        self.wake();
        // It ends when it next looks at the orders; a panic has aborted the process already.
        let _ = self.thread.join();
    }

    fn wake(&self) {
        // The only failure is a full counter, which wakes the thread as well.
        let _ = self.waker.wake();
    }
}

/// The thread's own state.
struct Accepting {
    engine: Arc<Engine>,
    wakers: Arc<Wakers>,
    handshakes: Handshakes,
    poll: Poll,
    orders: Arc<Orders>,
    stats: Arc<ThreadStats>,
    listeners: Vec<Listener>,
}

impl Accepting {
    fn run(mut self) {
        // Those who are connected come before those who want to be.
        base::time_slice::yield_to_others();
        let mut events = Events::with_capacity(EVENTS);
        let mut pause = None;
        while !self.orders.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, pause)
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.engine.host.log(LogLevel::Warning, &format!("Accepting failed: {error}"));
                break;
            }
            let mut count = 0;
            for event in &events {
                count += 1;
                match event.token() {
                    WAKE => {}
                    Token(token) if token >= LISTENERS => {
                        // It may have been of one that is put away.
                        if let Some(listener) = self.listeners.get_mut(token - LISTENERS) {
                            listener.may_wait = true;
                        }
                    }
                    _ => self.handshakes.own().step(self.poll.registry(), event),
                }
            }
            let replaced = self.orders.listeners.lock().take();
            if let Some(listeners) = replaced {
                self.replace(listeners);
            }
            // Events of listeners may be among those that were not taken.
            let accepted = (0..self.listeners.len())
                .filter_map(|index| {
                    let may_wait = self.listeners[index].may_wait || count == EVENTS;
                    may_wait.then(|| self.accept_some(index))
                })
                .max();
            pause = accepted.unwrap_or(Outcome::All).pause();
            let shaker = self.handshakes.own();
            if !shaker.is_idle() {
                shaker.look();
                pause = Some(pause.unwrap_or(TICK));
            }
            // Workers free what came with a connection.
            process::memory::publish();
        }
        self.handshakes.stop();
    }

    fn replace(&mut self, listeners: Vec<Listener>) {
        for mut listener in self.listeners.drain(..) {
            // The giver of the socket may have it too, so that closing ours would not take it out
            // of the poll instance.
            if let Err(error) = listener.source.deregister(self.poll.registry()) {
                let line = format!("A listening socket cannot be put away: {error}");
                self.engine.host.log(LogLevel::Warning, &line);
            }
        }
        for mut listener in listeners {
            let token = Token(LISTENERS + self.listeners.len());
            match listener.source.register(self.poll.registry(), token) {
                Ok(()) => self.listeners.push(listener),
                Err(error) => {
                    let line = format!("A listening socket cannot be used: {error}");
                    self.engine.host.log(LogLevel::Warning, &line);
                }
            }
        }
    }

    /// Accepts connections of one listener, but only as many that other listeners and the stop wait
    /// for a moment at most.
    fn accept_some(&mut self, index: usize) -> Outcome {
        for _ in 0..limits::ACCEPTS_PER_TURN {
            let Listener { source, speaks, may_wait } = &mut self.listeners[index];
            let speaks = *speaks;
            match source.accept(&self.engine.config.load()) {
                Ok(accepted) => self.admit(accepted, speaks),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    *may_wait = false;
                    return Outcome::All;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    *may_wait = true;
                    self.log(Frequent::Accept, &|| format!("Accepting client connection: {error}"));
                    return Outcome::Failed;
                }
            }
        }
        self.listeners[index].may_wait = true;
        Outcome::Part
    }

    fn log(&self, kind: Frequent, line: &dyn Fn() -> String) {
        self.engine.host.log_frequent(kind, LogLevel::Warning, line);
    }

    /// Gives a connection to a worker, or refuses it with the reason.
    fn admit(&mut self, accepted: Accepted, speaks: Speaks) {
        let Accepted { mut transport, origin } = accepted;
        let config = self.engine.config.load();
        if self.wakers.connections() + self.handshakes.count() >= config.maxclients as usize {
            self.stats.rejected_connections.add(1);
            self.log(Frequent::Refused, &|| {
                format!("Refused a connection: max number of clients reached ({origin})")
            });
            // Before a handshake it cannot be told.
            return refuse(&mut transport, speaks, 503, b"-ERR max number of clients reached\r\n");
        }
        let mut transport = match transport {
            AnyTransport::Tls(tls) => {
                let shaking = Shaking { tls, origin, speaks };
                return self.handshakes.add(self.poll.registry(), shaking);
            }
            other => other,
        };
        let settings = (&**config, &self.engine.users);
        if refuse_unprotected(settings, &*self.engine.host, &origin, (&mut transport, speaks)) {
            return self.stats.rejected_connections.add(1);
        }
        self.stats.connections_received.add(1);
        let id = self.engine.next_client_id();
        self.wakers.deliver(Arrival { transport, origin, speaks, names: Vec::new(), id });
    }
}
