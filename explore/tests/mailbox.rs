//! Wake-ups of a worker.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use explore::explore;
use explore::world::NoJournal;
use server::net::Wakers;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use store::sync::AtomicBool;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(1);

/// Messages come, and the journal goes on, while the worker looks at its sockets, sleeps for a
/// moment, and waits. A look takes the wake-up that has come; the worker must not wait while a
/// message is there, nor when one came while it took earlier ones. It would sleep for ever here.
#[test]
fn no_wake_up_is_missed() {
    explore(|| {
        let (wakers, event) = (Arc::new(Wakers::new()), Arc::new(AtomicBool::new(false)));
        let mailbox = wakers.register({
            let event = Arc::clone(&event);
            move || event.store(true, SeqCst)
        });
        let synced = Arc::new(AtomicBool::new(false));
        let senders = [1, 2].map(|client| {
            let wakers = Arc::clone(&wakers);
            thread::spawn(move || wakers.wake(0, client))
        });
        let journal = thread::spawn({
            let (wakers, synced) = (Arc::clone(&wakers), Arc::clone(&synced));
            move || {
                synced.store(true, SeqCst);
                wakers.note_journal_progress();
            }
        });
        mailbox.await_journal(&NoJournal);
        let mut told = synced.load(SeqCst);
        let mut clients = Vec::new();
        while clients.len() < 2 || !told {
            match thread_rng().gen_range(0..3) {
                0 => drop(event.swap(false, SeqCst)),
                1 => drop(mailbox.sleep(LONG)),
                _ => {}
            }
            if !mailbox.wait(LONG).is_zero() {
                while !event.swap(false, SeqCst) {
                    thread::yield_now();
                }
            }
            let messages = mailbox.take();
            clients.extend(messages.clients);
            told |= messages.journal_progressed;
        }
        clients.sort_unstable();
        assert_eq!(clients, [1, 2]);
        for thread in senders.into_iter().chain([journal]) {
            thread.join().expect("it ends");
        }
    });
}
