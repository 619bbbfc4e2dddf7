//! The CLIENT KILLs that wait until the clients that they have killed are closed.
//!
//! CLIENT KILL is a fence: once it has answered, no command of these clients runs, and nothing is
//! served or delivered to them. A killed client may be in the middle of a command on another
//! worker. So its own worker closes it, and KILL answers when all killed clients are closed.
//! Meanwhile no thread serves them, and they begin no further command.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::session::attachment::Waiter;
use crate::session::client::Client;

/// A CLIENT KILL that has not answered yet.
struct Killing {
    waiter: Waiter,
    /// How many of its clients are not closed yet.
    open: AtomicUsize,
}

/// See the module's text. By the number of each client that was killed.
#[derive(Default)]
pub(crate) struct Killings(Mutex<HashMap<u64, Vec<Arc<Killing>>>>);

impl Killings {
    /// Lets a client wait for the end of others.
    pub(crate) fn add(&self, waiter: Waiter, clients: &[Arc<Client>]) {
        let killing = Arc::new(Killing { waiter, open: AtomicUsize::new(clients.len()) });
        let mut killings = self.0.lock();
        for client in clients {
            killings.entry(client.id).or_default().push(Arc::clone(&killing));
        }
    }

    /// A client is closed. Returns those that have waited for the last time.
    pub(crate) fn end(&self, client: &Client) -> impl Iterator<Item = Waiter> {
        let killings = self.0.lock().remove(&client.id).into_iter().flatten();
        killings
            .filter(|killing| killing.open.fetch_sub(1, AcqRel) == 1)
            .map(|killing| killing.waiter.clone())
    }
}
