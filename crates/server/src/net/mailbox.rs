//! How other threads reach a worker: new connections, and clients that have something in their
//! inbox.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mio::Token;
use store::sync::thread::{self, Thread};
use store::sync::{AtomicBool, Mutex, RwLock, fence};

use super::arrival::Arrival;

/// The token of a thread's waker. Connections have their places as tokens.
pub(super) const WAKE: Token = Token(usize::MAX);

/// Wakes a worker that waits at its sockets.
type Waker = Box<dyn Fn() + Send + Sync>;

/// Mail for one worker.
pub struct Mailbox {
    waker: Waker,
    /// Set while a wake-up is under way, so that many messages cost one.
    woken: AtomicBool,
    /// The worker sleeps without looking at its sockets.
    napping: AtomicBool,
    /// The worker's thread, from its first nap on.
    thread: OnceLock<Thread>,
    pub(super) stopping: AtomicBool,
    /// The worker has replies or clients that wait for the journal.
    awaits_journal: AtomicBool,
    journal_progressed: AtomicBool,
    journal_failed: AtomicBool,
    /// A script keeps the worker busy for long.
    pub(super) runs_slow_script: AtomicBool,
    /// Connections that the worker has or is about to get.
    pub(super) connections: AtomicUsize,
    letters: Mutex<Letters>,
}

#[derive(Default)]
struct Letters {
    arrivals: Vec<Arrival>,
    clients: Vec<u64>,
}

/// Taken by the worker as a whole.
#[derive(Default)]
pub struct Mail {
    pub(super) arrivals: Vec<Arrival>,
    /// Clients whose inboxes have something.
    pub clients: Vec<u64>,
    /// The journal is further than it was.
    pub journal_progressed: bool,
    /// The journal has failed: replies wait for it in vain.
    pub journal_failed: bool,
}

impl Mailbox {
    fn new(waker: Waker) -> Mailbox {
        Mailbox {
            waker,
            woken: AtomicBool::new(false),
            napping: AtomicBool::new(false),
            thread: OnceLock::new(),
            stopping: AtomicBool::new(false),
            awaits_journal: AtomicBool::new(false),
            journal_progressed: AtomicBool::new(false),
            journal_failed: AtomicBool::new(false),
            runs_slow_script: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            letters: Mutex::default(),
        }
    }

    /// A script keeps the worker busy for long.
    pub(super) fn note_slow_script(&self) {
        self.runs_slow_script.store(true, Ordering::Relaxed);
    }

    fn wake(&self) {
        // One order for both marks: either the worker sees that it is woken, or it is seen napping.
        if self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.napping.load(Ordering::SeqCst) {
            self.thread.get().inspect(|thread| thread.unpark());
        } else {
            (self.waker)();
        }
    }

    /// How long the worker may wait at its sockets: `longest` if there is no mail. If there is, an
    /// earlier look at the sockets may have consumed its wake-up.
    pub fn wait(&self, longest: Duration) -> Duration {
        if self.woken.load(Ordering::Acquire) { Duration::ZERO } else { longest }
    }

    /// Sleeps until there is mail, but not longer than `longest`. Data that arrives at the sockets
    /// meanwhile does not wake it. Returns whether there is mail.
    pub fn nap(&self, longest: Duration) -> bool {
        self.thread.get_or_init(thread::current);
        self.napping.store(true, Ordering::SeqCst);
        if !self.woken.load(Ordering::SeqCst) {
            thread::park_timeout(longest);
        }
        self.napping.store(false, Ordering::SeqCst);
        self.woken.load(Ordering::SeqCst)
    }

    /// Notes that a reply waits for the journal. The caller looks at the journal once more afterwards:
    /// its earlier progress was not announced.
    pub fn await_journal(&self) {
        self.awaits_journal.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes all mail. Later mail comes with a wake-up.
    pub fn take(&self) -> Mail {
        // A sender leaves its mail before it sets the mark. So the mark goes first: a sender that finds
        // it still set has left its mail before what follows here.
        if !self.woken.load(Ordering::Acquire) || !self.woken.swap(false, Ordering::AcqRel) {
            return Mail::default();
        }
        let Letters { arrivals, clients } = std::mem::take(&mut *self.letters.lock());
        let journal_progressed = self.journal_progressed.swap(false, Ordering::Acquire);
        let journal_failed = self.journal_failed.swap(false, Ordering::Acquire);
        Mail { arrivals, clients, journal_progressed, journal_failed }
    }
}

/// The mailboxes of all workers.
#[derive(Default)]
pub struct Wakers {
    mailboxes: RwLock<Vec<Arc<Mailbox>>>,
}

impl Wakers {
    /// No workers yet: waking does nothing.
    pub fn new() -> Wakers {
        Wakers::default()
    }

    /// Makes the mailbox of the next worker; `wake` wakes the worker while it waits at its sockets.
    pub fn register(&self, wake: impl Fn() + Send + Sync + 'static) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(Box::new(wake)));
        self.mailboxes.write().push(Arc::clone(&mailbox));
        mailbox
    }

    /// Tells a worker to look at a client's inbox.
    pub fn wake(&self, worker: usize, client: u64) {
        if let Some(mailbox) = self.mailboxes.read().get(worker) {
            mailbox.letters.lock().clients.push(client);
            mailbox.wake();
        }
    }

    /// Tells the workers that wait for the journal that it has advanced.
    pub fn note_journal_progress(&self) {
        // After the journal has published how far it is: see `await_journal`.
        fence(Ordering::SeqCst);
        for mailbox in self.mailboxes.read().iter() {
            if mailbox.awaits_journal.load(Ordering::Relaxed)
                && mailbox.awaits_journal.swap(false, Ordering::Relaxed)
            {
                mailbox.journal_progressed.store(true, Ordering::Release);
                mailbox.wake();
            }
        }
    }

    /// Tells all workers that replies wait for the journal in vain.
    pub fn note_journal_failure(&self) {
        for mailbox in self.mailboxes.read().iter() {
            mailbox.journal_failed.store(true, Ordering::Release);
            mailbox.wake();
        }
    }

    /// Gives a connection to the worker that has the fewest, among those that no script keeps busy: a
    /// new client may want to end the script.
    pub(super) fn deliver(&self, arrival: Arrival) {
        let mailboxes = self.mailboxes.read();
        let fewest = |mailbox: &&Arc<Mailbox>| {
            let is_stuck = mailbox.runs_slow_script.load(Ordering::Relaxed);
            (is_stuck, mailbox.connections.load(Ordering::Relaxed))
        };
        let Some(mailbox) = mailboxes.iter().min_by_key(fewest) else { return };
        mailbox.connections.fetch_add(1, Ordering::Relaxed);
        mailbox.letters.lock().arrivals.push(arrival);
        mailbox.wake();
    }

    /// Connections of all workers.
    pub(super) fn connections(&self) -> usize {
        let mailboxes = self.mailboxes.read();
        mailboxes.iter().map(|mailbox| mailbox.connections.load(Ordering::Relaxed)).sum()
    }

    /// Tells all workers to end.
    pub(super) fn stop(&self) {
        for mailbox in self.mailboxes.read().iter() {
            mailbox.stopping.store(true, Ordering::Release);
            mailbox.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test runs.
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn mail_ends_a_nap_whether_it_comes_before_or_during_it() {
        let wakers = Arc::new(Wakers::new());
        let mailbox = wakers.register(|| ());
        for client in 0..1000 {
            let wakers = Arc::clone(&wakers);
            let sender = std::thread::spawn(move || wakers.wake(0, client));
            assert!(mailbox.nap(LONG));
            assert_eq!(mailbox.take().clients, [client]);
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_nap_ends_without_mail_too() {
        let wakers = Wakers::new();
        let mailbox = wakers.register(|| ());
        assert!(!mailbox.nap(Duration::from_millis(1)));
        wakers.wake(0, 1);
        assert!(mailbox.nap(LONG));
    }
}
