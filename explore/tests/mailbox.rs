//! Wake-ups of a worker.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use explore::explore;
use server::net::Wakers;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use store::sync::AtomicBool;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(1);

/// Letters come, and the journal goes on, while the worker looks at its sockets, naps, and sleeps. A
/// look takes the wake-up that has come; the worker must not sleep over the mail then, nor over mail
/// that came while it took earlier mail. It would sleep for ever here.
#[test]
fn no_wake_up_is_slept_over() {
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
        mailbox.await_journal();
        let mut told = synced.load(SeqCst);
        let mut clients = Vec::new();
        while clients.len() < 2 || !told {
            match thread_rng().gen_range(0..3) {
                0 => drop(event.swap(false, SeqCst)),
                1 => drop(mailbox.nap(LONG)),
                _ => {}
            }
            if !mailbox.wait(LONG).is_zero() {
                while !event.swap(false, SeqCst) {
                    thread::yield_now();
                }
            }
            let mail = mailbox.take();
            clients.extend(mail.clients);
            told |= mail.journal_progressed;
        }
        clients.sort_unstable();
        assert_eq!(clients, [1, 2]);
        for thread in senders.into_iter().chain([journal]) {
            thread.join().expect("it ends");
        }
    });
}
