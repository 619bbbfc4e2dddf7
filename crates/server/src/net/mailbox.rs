//! How other threads reach a worker: new connections, and clients that have something in their
//! inbox.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::journal::Journal;
use mio::Token;
use store::sync::thread::{self, Thread};
use store::sync::{AtomicBool, Mutex, RwLock, fence};

use super::arrival::{Arrival, Handover};

/// The token of a thread's waker. Connections have their indexes as tokens.
pub(super) const WAKE: Token = Token(usize::MAX);

/// Wakes a worker that waits at its sockets.
type Waker = Box<dyn Fn() + Send + Sync>;

/// The messages for one worker.
pub struct Mailbox {
    waker: Waker,
    /// Set while a wake-up is under way, so that many messages cost one.
    woken: AtomicBool,
    /// The worker sleeps without looking at its sockets.
    asleep: AtomicBool,
    /// The worker's thread, from its first sleep on.
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
    queued: Mutex<Queued>,
    /// New connections come to it.
    serves_clients: bool,
}

#[derive(Default)]
struct Queued {
    arrivals: Vec<Arrival>,
    handovers: Vec<Handover>,
    clients: Vec<u64>,
}

/// Taken by the worker as a whole.
#[derive(Default)]
pub struct Messages {
    pub(super) arrivals: Vec<Arrival>,
    /// Connections of replicas.
    pub(super) handovers: Vec<Handover>,
    /// Clients whose inboxes have something.
    pub clients: Vec<u64>,
    /// The journal is further than it was.
    pub journal_progressed: bool,
    /// The journal has failed: replies wait for it in vain.
    pub journal_failed: bool,
}

impl Mailbox {
    fn new(waker: Waker, serves_clients: bool) -> Mailbox {
        Mailbox {
            waker,
            woken: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
            stopping: AtomicBool::new(false),
            awaits_journal: AtomicBool::new(false),
            journal_progressed: AtomicBool::new(false),
            journal_failed: AtomicBool::new(false),
            runs_slow_script: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            queued: Mutex::default(),
            serves_clients,
        }
    }

    /// A script keeps the worker busy for long.
    pub(super) fn note_slow_script(&self) {
        self.runs_slow_script.store(true, Ordering::Relaxed);
    }

    pub(super) fn wake(&self) {
        // One order for both marks: either the worker sees that it is woken, or it is seen asleep.
        if self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.asleep.load(Ordering::SeqCst) {
            self.thread.get().inspect(|thread| thread.unpark());
        } else {
            (self.waker)();
        }
    }

    /// How long the worker may wait at its sockets: `longest` if there is no message. If there is,
    /// an earlier look at the sockets may have consumed its wake-up.
    pub fn wait(&self, longest: Duration) -> Duration {
        if self.woken.load(Ordering::Acquire) { Duration::ZERO } else { longest }
    }

    /// Sleeps until there is a message, but not longer than `longest`. Data that arrives at the
    /// sockets meanwhile does not wake it. Returns whether there is a message.
    pub fn sleep(&self, longest: Duration) -> bool {
        self.thread.get_or_init(thread::current);
        self.asleep.store(true, Ordering::SeqCst);
        if !self.woken.load(Ordering::SeqCst) {
            thread::park_timeout(longest);
        }
        self.asleep.store(false, Ordering::SeqCst);
        self.woken.load(Ordering::SeqCst)
    }

    /// Asks for a letter as soon as the journal is further, because a reply waits for it. The
    /// caller looks at the journal once more afterwards: its earlier progress was not announced.
    pub fn await_journal(&self, journal: &dyn Journal) {
        self.awaits_journal.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // In this order: news of an earlier write ends what the journal was asked for. It must find
        // this worker waiting, which then asks again.
        journal.notify_when_released();
    }

    /// Takes all messages. A later one comes with a wake-up.
    pub fn take(&self) -> Messages {
        // A sender leaves its message before it sets the mark. So the mark goes first: a sender
        // that finds it still set has left its message before what follows here.
        if !self.woken.load(Ordering::Acquire) || !self.woken.swap(false, Ordering::AcqRel) {
            return Messages::default();
        }
        let Queued { arrivals, handovers, clients } = std::mem::take(&mut *self.queued.lock());
        let journal_progressed = self.journal_progressed.swap(false, Ordering::Acquire);
        let journal_failed = self.journal_failed.swap(false, Ordering::Acquire);
        Messages { arrivals, handovers, clients, journal_progressed, journal_failed }
    }
}

/// The mailboxes of all workers.
#[derive(Default)]
pub struct Wakers {
    mailboxes: RwLock<Vec<Arc<Mailbox>>>,
    /// The one of the thread that serves replicas.
    replicas: OnceLock<Arc<Mailbox>>,
}

impl Wakers {
    /// No workers yet: waking does nothing.
    pub fn new() -> Wakers {
        Wakers::default()
    }

    /// Makes the mailbox of the next worker; `wake` wakes the worker while it waits at its sockets.
    pub fn register(&self, wake: impl Fn() + Send + Sync + 'static) -> Arc<Mailbox> {
        self.add(Mailbox::new(Box::new(wake), true)).1
    }

    /// Makes the mailbox of the thread that serves replicas. Also returns the number by which its
    /// clients have it woken.
    pub(super) fn register_replicas(
        &self,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (usize, Arc<Mailbox>) {
        let (number, mailbox) = self.add(Mailbox::new(Box::new(wake), false));
        self.replicas.get_or_init(|| Arc::clone(&mailbox));
        (number, mailbox)
    }

    fn add(&self, mailbox: Mailbox) -> (usize, Arc<Mailbox>) {
        let mailbox = Arc::new(mailbox);
        let mut mailboxes = self.mailboxes.write();
        mailboxes.push(Arc::clone(&mailbox));
        (mailboxes.len() - 1, mailbox)
    }

    /// Gives a connection to the thread that serves replicas.
    pub(super) fn hand_over(&self, handover: Handover) {
        let Some(mailbox) = self.replicas.get() else { return };
        mailbox.connections.fetch_add(1, Ordering::Relaxed);
        mailbox.queued.lock().handovers.push(handover);
        mailbox.wake();
    }

    /// Tells a worker to look at a client's inbox.
    pub fn wake(&self, worker: usize, client: u64) {
        if let Some(mailbox) = self.mailboxes.read().get(worker) {
            mailbox.queued.lock().clients.push(client);
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

    /// Gives a connection to the worker that has the fewest, among those that no script keeps busy:
    /// a new client may want to end the script.
    pub(super) fn deliver(&self, arrival: Arrival) {
        let mailboxes = self.mailboxes.read();
        let fewest = |mailbox: &&Arc<Mailbox>| {
            let is_stuck = mailbox.runs_slow_script.load(Ordering::Relaxed);
            (is_stuck, mailbox.connections.load(Ordering::Relaxed))
        };
        let serving = mailboxes.iter().filter(|own| own.serves_clients);
        let Some(mailbox) = serving.min_by_key(fewest) else { return };
        mailbox.connections.fetch_add(1, Ordering::Relaxed);
        mailbox.queued.lock().arrivals.push(arrival);
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
    fn a_message_ends_a_sleep_whether_it_comes_before_or_during_it() {
        let wakers = Arc::new(Wakers::new());
        let mailbox = wakers.register(|| ());
        for client in 0..1000 {
            let wakers = Arc::clone(&wakers);
            let sender = std::thread::spawn(move || wakers.wake(0, client));
            assert!(mailbox.sleep(LONG));
            assert_eq!(mailbox.take().clients, [client]);
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_sleep_ends_without_a_message_too() {
        let wakers = Wakers::new();
        let mailbox = wakers.register(|| ());
        assert!(!mailbox.sleep(Duration::from_millis(1)));
        wakers.wake(0, 1);
        assert!(mailbox.sleep(LONG));
    }
}
