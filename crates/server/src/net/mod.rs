//! Connections: from bytes on a socket to commands and back.
//!
//! An acceptor thread takes connections and gives each to the worker that has the fewest. From then on
//! the worker owns it: it reads, parses, executes and writes, without a hop to another thread.
//! [`worker`] has the turn of a worker, the loop in which all of this happens.
//!
//! A connection is a [`transport`], which carries bytes, and a protocol, which turns bytes into
//! commands ([`resp`], [`http`]).

mod accept;
mod arrival;
mod batch;
mod coalesce;
mod connection;
mod http;
pub mod mailbox;
mod parked;
pub mod pending;
mod protected;
mod protocol;
mod resp;
mod timers;
mod transport;
mod trial;
mod worker;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use engine::engine::Engine;
use views::Offer;

pub use accept::Listener;
pub use arrival::Speaks;
pub use http::ChangeEvents;
pub use mailbox::Wakers;

use accept::Acceptor;

/// The running workers and the acceptor.
pub struct Workers {
    wakers: Arc<Wakers>,
    acceptor: Acceptor,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `threads` workers. Connections come when [`Workers::listen`] is called.
    ///
    /// # Errors
    /// When a poll instance or a thread cannot be made.
    pub fn start(
        engine: Arc<Engine>,
        wakers: Arc<Wakers>,
        offer: &Arc<ArcSwap<Offer>>,
        threads: usize,
    ) -> io::Result<Workers> {
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let (engine, offer) = (Arc::clone(&engine), Arc::clone(offer));
            let worker = worker::Worker::new(engine, &wakers, offer, index)?;
            let thread = std::thread::Builder::new().name(format!("worker-{index}"));
            handles.push(thread.spawn(move || worker.run())?);
        }
        let acceptor = Acceptor::start(engine, Arc::clone(&wakers))?;
        Ok(Workers { wakers, acceptor, threads: handles })
    }

    /// Replaces the listening sockets. Connections that exist stay.
    pub fn listen(&self, listeners: Vec<Listener>) {
        self.acceptor.listen(listeners);
    }

    /// Stops accepting, lets each worker finish its turn and send waiting output, and joins them.
    pub fn stop(self) {
        self.acceptor.stop();
        self.wakers.stop();
        for thread in self.threads {
            // A worker that panicked has aborted the process already.
            let _ = thread.join();
        }
    }
}
