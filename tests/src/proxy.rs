//! A proxy between two servers that cuts, delays and splits what it passes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use anyhow::Result;

/// How often connections look at what the test wants of them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The longest piece.
const PIECE_MAX: usize = 16 * 1024;

/// Which of the two ways of a connection is meant: to the server, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From those who connect.
    There,
    /// To them.
    Back,
}

/// What a test does to some connections through a proxy.
#[derive(Debug)]
pub struct Link {
    /// Connections made before this number changed are cut.
    epoch: AtomicU64,
    /// Connections that were made, and those that are open.
    made: AtomicU64,
    open: AtomicU64,
    /// The pause before each piece, in microseconds, and the length of pieces.
    pause: AtomicU64,
    piece: AtomicUsize,
    /// Nothing passes on this way, and nothing ends.
    is_held: [AtomicBool; 2],
    /// New connections are ended at once.
    refuses: AtomicBool,
    /// The connection on which the first bytes pass to the server is cut when it answers; the
    /// second ones are passed on in place of the answer.
    unanswered: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
    /// The connection on which these bytes come stands still before they pass, and whether one
    /// does.
    late: Mutex<Option<Vec<u8>>>,
    is_late: AtomicBool,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            epoch: AtomicU64::new(0),
            made: AtomicU64::new(0),
            open: AtomicU64::new(0),
            pause: AtomicU64::new(0),
            piece: AtomicUsize::new(PIECE_MAX),
            is_held: Default::default(),
            refuses: AtomicBool::new(false),
            unanswered: Mutex::default(),
            late: Mutex::default(),
            is_late: AtomicBool::new(false),
        }
    }
}

impl Link {
    /// Cuts all connections.
    pub fn cut(&self) {
        self.epoch.fetch_add(1, SeqCst);
    }

    /// How many connections there were.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(SeqCst)
    }

    /// Whether a connection is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(SeqCst) > 0
    }

    /// Passes on in pieces of this length at most, each after a pause.
    pub fn split(&self, piece: usize, pause: Duration) {
        self.piece.store(piece.clamp(1, PIECE_MAX), SeqCst);
        let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.pause.store(pause, SeqCst);
    }

    /// Lets nothing pass, as a network that has lost its way does, or lets it pass again.
    pub fn hold(&self, is_held: bool) {
        self.hold_one(Way::There, is_held);
        self.hold_one(Way::Back, is_held);
    }

    /// Lets nothing pass on one way, or lets it pass again.
    pub fn hold_one(&self, way: Way, is_held: bool) {
        self.is_held[way as usize].store(is_held, SeqCst);
    }

    /// Ends new connections at once, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, SeqCst);
    }

    /// Loses the answer to the next request with these bytes, which pass as one piece, and cuts its
    /// connection.
    pub fn lose_answer_to(&self, request: &[u8]) {
        self.answer(request, b"");
    }

    /// The same, and whoever has asked gets another answer in its place.
    pub fn answer(&self, request: &[u8], answer: &[u8]) {
        *self.unanswered() = Some((request.to_owned(), answer.to_owned()));
    }

    /// Whether that has not happened yet.
    #[must_use]
    pub fn will_lose_an_answer(&self) -> bool {
        self.unanswered().is_some()
    }

    /// Keeps the next request with these bytes, which come as one piece, and what comes after it on
    /// its connection. All others go on.
    pub fn keep_back(&self, request: &[u8]) {
        *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.to_owned());
    }

    /// Whether a request is kept.
    #[must_use]
    pub fn keeps_one_back(&self) -> bool {
        self.is_late.load(SeqCst)
    }

    /// Passes it on.
    pub fn pass_late(&self) {
        self.is_late.store(false, SeqCst);
    }

    fn unanswered(&self) -> MutexGuard<'_, Option<(Vec<u8>, Vec<u8>)>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is passed on in place of the answer to this piece, if that is to be lost.
    fn instead(&self, piece: &[u8]) -> Option<Vec<u8>> {
        self.unanswered().take_if(|(bytes, _)| is_in(bytes, piece)).map(|(_, answer)| answer)
    }

    /// Waits if this piece is to be late.
    fn wait_if_late(&self, piece: &[u8], is_over: &dyn Fn() -> bool) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.take_if(|bytes| is_in(bytes, piece)).is_none() {
            return;
        }
        drop(late);
        self.is_late.store(true, SeqCst);
        while self.is_late.load(SeqCst) && !is_over() {
            sleep(LOOK_EVERY);
        }
    }
}

fn is_in(bytes: &[u8], piece: &[u8]) -> bool {
    piece.windows(bytes.len()).any(|window| window == bytes)
}

/// See the module's text. It ends when it is dropped. Its link says what happens to connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    to: Arc<AtomicU16>,
    ended: Arc<AtomicBool>,
    link: Arc<Link>,
}

impl Deref for Proxy {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Proxy {
    /// Starts one that passes on to this port of the loopback.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(to: u16) -> Result<Proxy> {
        Proxy::start_with(to, |_, link| Arc::clone(link))
    }

    /// Starts one whose connections belong to links that are chosen by the port from which they
    /// come. The proxy's own link is there for those that no other has.
    ///
    /// # Errors
    /// No port is free.
    pub fn start_with(
        to: u16,
        choose: impl Fn(u16, &Arc<Link>) -> Arc<Link> + Send + 'static,
    ) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (to, ended) = (Arc::new(AtomicU16::new(to)), Arc::<AtomicBool>::default());
        let link = Arc::<Link>::default();
        let proxy = Proxy { port, to, ended, link };
        let (to, ended) = (Arc::clone(&proxy.to), Arc::clone(&proxy.ended));
        let own = Arc::clone(&proxy.link);
        spawn(move || {
            while !ended.load(SeqCst) {
                let Ok((near, place)) = listener.accept() else {
                    sleep(Duration::from_millis(2));
                    continue;
                };
                let link = choose(place.port(), &own);
                if !link.refuses.load(SeqCst) {
                    connect(near, to.load(SeqCst), &link, &ended);
                }
            }
        });
        Ok(proxy)
    }

    /// The port that it listens at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Passes new connections on to another port.
    pub fn lead_to(&self, port: u16) {
        self.to.store(port, SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, SeqCst);
    }
}

fn connect(near: TcpStream, to: u16, link: &Arc<Link>, ended: &Arc<AtomicBool>) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
    // Small pieces are passed on at once.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let clones = near.try_clone().and_then(|near| Ok((near, far.try_clone()?)));
    let Ok((near_too, far_too)) = clones else { return };
    link.made.fetch_add(1, SeqCst);
    let began = link.epoch.load(SeqCst);
    let instead = Arc::<OnceLock<Vec<u8>>>::default();
    for (way, from, to) in [(Way::There, near, far), (Way::Back, far_too, near_too)] {
        let (own, ended, instead) = (Arc::clone(link), Arc::clone(ended), Arc::clone(&instead));
        own.open.fetch_add(1, SeqCst);
        spawn(move || {
            let is_over = || ended.load(SeqCst) || own.epoch.load(SeqCst) != began;
            pass_on(&from, &to, (&own, way), &instead, &is_over);
            // The other end may have ended it already.
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            own.open.fetch_sub(1, SeqCst);
        });
    }
}

/// Passes bytes on until the connection ends or is cut.
fn pass_on(
    mut from: &TcpStream,
    mut to: &TcpStream,
    (link, way): (&Link, Way),
    instead: &OnceLock<Vec<u8>>,
    is_over: &dyn Fn() -> bool,
) {
    let is_set = from.set_nonblocking(false).and(from.set_read_timeout(Some(LOOK_EVERY)));
    // A receiver that takes nothing must not keep the proxy from its end.
    if is_set.and(to.set_write_timeout(Some(LOOK_EVERY))).is_err() {
        return;
    }
    let is_patient = |kind: ErrorKind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut buffer = [0; PIECE_MAX];
    while !is_over() {
        if link.is_held[way as usize].load(SeqCst) {
            sleep(LOOK_EVERY);
            continue;
        }
        let piece = link.piece.load(SeqCst);
        let read = match from.read(&mut buffer[..piece]) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if is_patient(error.kind()) => continue,
            Err(_) => return,
        };
        match (way, instead.get()) {
            (Way::There, _) => {
                link.instead(&buffer[..read]).into_iter().for_each(|own| drop(instead.set(own)));
                link.wait_if_late(&buffer[..read], is_over);
            }
            (Way::Back, None) => {}
            (Way::Back, Some(answer)) => {
                // Who has asked may have gone.
                let _ = to.write_all(answer);
                return;
            }
        }
        // It may have been held while this waited for the piece.
        while link.is_held[way as usize].load(SeqCst) && !is_over() {
            sleep(LOOK_EVERY);
        }
        let pause = link.pause.load(SeqCst);
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
