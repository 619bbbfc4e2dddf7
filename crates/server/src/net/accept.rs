//! The acceptor: one thread that takes new connections and gives them to workers.
//!
//! One thread for all listeners distributes connections evenly. Sockets shared by all workers would
//! not: the first worker to wake would take most.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::observe::stats::ThreadStats;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use parking_lot::Mutex;

use super::arrival::{Arrival, Speaks};
use super::mailbox::{WAKE, Wakers};
use super::protected::protected;
use super::transport::Transport;

/// A listening socket.
pub enum Listener {
    /// TCP.
    Tcp(std::net::TcpListener, Speaks),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

enum Source {
    Tcp(mio::net::TcpListener, Speaks),
    Unix(mio::net::UnixListener, String),
}

impl Source {
    fn deregister(mut self, registry: &Registry) -> io::Result<()> {
        match &mut self {
            Source::Tcp(listener, _) => registry.deregister(listener),
            Source::Unix(listener, _) => registry.deregister(listener),
        }
    }
}

/// How long to wait before the next accept after a failed one.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

/// The least time between two lines in the log about failed accepts.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(1);

/// What came of a listener's turn. The largest of all says how long the thread may sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Accepted {
    /// No connection waits any more. An event announces the next one.
    All,
    /// This listener has had its turn. No event announces the connections that still wait.
    Part,
    /// Accepting has failed. No event announces them either.
    Failed,
}

impl Accepted {
    /// How long the next look at the listeners may wait for an event; for ever when absent.
    fn pause(self) -> Option<Duration> {
        match self {
            Accepted::All => None,
            Accepted::Part => Some(Duration::ZERO),
            // Most likely out of descriptors: wait a little rather than spin.
            Accepted::Failed => Some(PAUSE_AFTER_FAILURE),
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
    pub(super) fn start(engine: Arc<Engine>, wakers: Arc<Wakers>) -> io::Result<Acceptor> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let orders = Arc::new(Orders::default());
        let stats = engine.stats.register("acceptor");
        let accepting = Accepting {
            engine,
            wakers,
            poll,
            orders: Arc::clone(&orders),
            stats,
            sources: Vec::new(),
            complained: Cell::new(None),
        };
        let thread = std::thread::Builder::new().name("acceptor".to_string());
        Ok(Acceptor { orders, waker, thread: thread.spawn(move || accepting.run())? })
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
    poll: Poll,
    orders: Arc<Orders>,
    stats: Arc<ThreadStats>,
    sources: Vec<Source>,
    /// When the log last told of a failed accept.
    complained: Cell<Option<Instant>>,
}

impl Accepting {
    fn run(mut self) {
        let mut events = Events::with_capacity(16);
        let mut pause = None;
        while !self.orders.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, pause)
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.engine.host.log(LogLevel::Warning, &format!("Accepting failed: {error}"));
                return;
            }
            let replaced = self.orders.listeners.lock().take();
            if let Some(listeners) = replaced {
                self.replace(listeners);
            }
            // All of them: a listener that was just registered may have had connections before, and one
            // that has had its turn may have more.
            let accepted = (0..self.sources.len()).map(|index| self.accept_some(index)).max();
            pause = accepted.unwrap_or(Accepted::All).pause();
        }
    }

    fn replace(&mut self, listeners: Vec<Listener>) {
        for source in self.sources.drain(..) {
            // The giver of the socket may have it too, so that closing ours would not take it out of
            // the poll instance.
            if let Err(error) = source.deregister(self.poll.registry()) {
                let line = format!("A listening socket cannot be put away: {error}");
                self.engine.host.log(LogLevel::Warning, &line);
            }
        }
        for (index, listener) in listeners.into_iter().enumerate() {
            match self.register(index, listener) {
                Ok(source) => self.sources.push(source),
                Err(error) => {
                    let line = format!("A listening socket cannot be used: {error}");
                    self.engine.host.log(LogLevel::Warning, &line);
                }
            }
        }
    }

    fn register(&self, index: usize, listener: Listener) -> io::Result<Source> {
        let registry = self.poll.registry();
        match listener {
            Listener::Tcp(listener, speaks) => {
                listener.set_nonblocking(true)?;
                let mut listener = mio::net::TcpListener::from_std(listener);
                registry.register(&mut listener, Token(index), Interest::READABLE)?;
                Ok(Source::Tcp(listener, speaks))
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                let path = address.as_pathname().map(|path| path.display().to_string());
                let mut listener = mio::net::UnixListener::from_std(listener);
                registry.register(&mut listener, Token(index), Interest::READABLE)?;
                Ok(Source::Unix(listener, path.unwrap_or_default()))
            }
        }
    }

    /// Accepts connections of one listener, so many that other listeners and the stop wait for a moment
    /// at most.
    fn accept_some(&self, index: usize) -> Accepted {
        for _ in 0..limits::ACCEPTS_PER_TURN {
            let accepted = match &self.sources[index] {
                Source::Tcp(listener, speaks) => listener.accept().map(|(socket, peer)| {
                    let transport = Transport::tcp(socket, peer);
                    (transport, *speaks, Some(peer))
                }),
                Source::Unix(listener, path) => listener.accept().map(|(socket, _)| {
                    let transport = Transport::unix(socket, path);
                    (transport, Speaks::Resp, None)
                }),
            };
            match accepted {
                Ok((transport, speaks, peer)) => self.admit(transport, speaks, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Accepted::All;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.complain(&error);
                    return Accepted::Failed;
                }
            }
        }
        Accepted::Part
    }

    /// Tells the log of a failed accept. The next attempt follows soon, and most likely fails as well.
    fn complain(&self, error: &io::Error) {
        let last = self.complained.get();
        if last.is_none_or(|last| last.elapsed() >= BETWEEN_COMPLAINTS) {
            self.complained.set(Some(Instant::now()));
            let line = format!("Accepting client connection: {error}");
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }

    /// Gives a connection to a worker, or refuses it with the reason.
    fn admit(&self, transport: Transport, speaks: Speaks, peer: Option<SocketAddr>) {
        let config = self.engine.config.load();
        if self.wakers.connections() >= config.maxclients as usize {
            self.stats.rejected_connections.add(1);
            return refuse(&transport, speaks, 503, b"-ERR max number of clients reached\r\n");
        }
        if let Some(text) = peer.and_then(|peer| protected(&config, &peer)) {
            self.stats.rejected_connections.add(1);
            return refuse(&transport, speaks, 403, text);
        }
        transport.set_keepalive(config.tcp_keepalive);
        self.stats.connections_received.add(1);
        let id = self.engine.next_client_id();
        self.wakers.deliver(Arrival { transport, speaks, id });
    }
}

/// Tells the client why, if the socket takes it, and closes. The text is an error in RESP.
fn refuse(transport: &Transport, speaks: Speaks, status: u16, text: &[u8]) {
    let output = match speaks {
        Speaks::Resp => {
            let mut output = resp::output::Output::new();
            output.push(text);
            output
        }
        Speaks::Http => {
            let text = text.strip_prefix(b"-").unwrap_or(text).trim_ascii_end();
            super::http::refuse(status, text, base::clock::now_us() / 1000)
        }
    };
    let _ = transport.write(&output, usize::MAX);
}
