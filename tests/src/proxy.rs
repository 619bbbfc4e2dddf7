//! A proxy between two servers that cuts, delays and splits what it passes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::{sleep, spawn};
use std::time::Duration;

use anyhow::Result;

/// How often connections look at what the test wants of them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The longest piece.
const PIECE_MAX: usize = 16 * 1024;

struct Shared {
    /// Connections made before this number changed are cut.
    epoch: AtomicU64,
    /// Connections that were made, and those that are open.
    made: AtomicU64,
    open: AtomicU64,
    /// The pause before each piece, in microseconds, and the length of pieces.
    pause: AtomicU64,
    piece: AtomicUsize,
    /// Nothing passes, and nothing ends.
    is_held: AtomicBool,
    /// New connections are ended at once.
    refuses: AtomicBool,
    ended: AtomicBool,
}

/// See the module's text. It ends when it is dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts one that passes on to this port of the loopback.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(to: u16) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            epoch: AtomicU64::new(0),
            made: AtomicU64::new(0),
            open: AtomicU64::new(0),
            pause: AtomicU64::new(0),
            piece: AtomicUsize::new(PIECE_MAX),
            is_held: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        spawn(move || {
            while !own.ended.load(SeqCst) {
                match listener.accept() {
                    Ok((near, _)) if !own.refuses.load(SeqCst) => connect(near, to, &own),
                    Ok(_) => {}
                    Err(_) => sleep(Duration::from_millis(2)),
                }
            }
        });
        Ok(Proxy { port, shared })
    }

    /// The port that it listens at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.shared.epoch.fetch_add(1, SeqCst);
    }

    /// How many connections there were.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.shared.made.load(SeqCst)
    }

    /// Whether a connection is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.shared.open.load(SeqCst) > 0
    }

    /// Passes on in pieces of this length at most, each after a pause.
    pub fn split(&self, piece: usize, pause: Duration) {
        self.shared.piece.store(piece.clamp(1, PIECE_MAX), SeqCst);
        let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.shared.pause.store(pause, SeqCst);
    }

    /// Lets nothing pass, as a network that has lost its way does, or lets it pass again.
    pub fn hold(&self, is_held: bool) {
        self.shared.is_held.store(is_held, SeqCst);
    }

    /// Ends new connections at once, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
    }
}

fn connect(near: TcpStream, to: u16, shared: &Arc<Shared>) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
    let clones = near.try_clone().and_then(|near| Ok((near, far.try_clone()?)));
    let Ok((near_too, far_too)) = clones else { return };
    shared.made.fetch_add(1, SeqCst);
    let began = shared.epoch.load(SeqCst);
    for (from, to) in [(near, far), (far_too, near_too)] {
        let own = Arc::clone(shared);
        own.open.fetch_add(1, SeqCst);
        spawn(move || {
            pass_on(&from, &to, began, &own);
            // The other end may have ended it already.
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            own.open.fetch_sub(1, SeqCst);
        });
    }
}

/// Passes bytes on until the connection ends or is cut.
fn pass_on(mut from: &TcpStream, mut to: &TcpStream, began: u64, shared: &Shared) {
    let is_over = || shared.ended.load(SeqCst) || shared.epoch.load(SeqCst) != began;
    let is_set = from.set_nonblocking(false).and(from.set_read_timeout(Some(LOOK_EVERY)));
    // A receiver that takes nothing must not keep the proxy from its end.
    if is_set.and(to.set_write_timeout(Some(LOOK_EVERY))).is_err() {
        return;
    }
    let is_patient = |kind: ErrorKind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut buffer = [0; PIECE_MAX];
    while !is_over() {
        if shared.is_held.load(SeqCst) {
            sleep(LOOK_EVERY);
            continue;
        }
        let piece = shared.piece.load(SeqCst);
        let read = match from.read(&mut buffer[..piece]) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if is_patient(error.kind()) => continue,
            Err(_) => return,
        };
        let pause = shared.pause.load(SeqCst);
        if pause > 0 {
            sleep(Duration::from_micros(pause));
        }
        let mut left = &buffer[..read];
        while !left.is_empty() && !is_over() {
            match to.write(left) {
                Ok(0) => return,
                Ok(count) => left = &left[count..],
                Err(error) if is_patient(error.kind()) => {}
                Err(_) => return,
            }
        }
    }
}
