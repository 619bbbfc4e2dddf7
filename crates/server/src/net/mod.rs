//! Connections: from bytes on a socket to commands and back.
//!
//! An acceptor thread takes connections and gives each to the worker that has the fewest. From then
//! on the worker owns it: it reads, parses, executes and writes, without a hop to another thread.
//! [`worker`] has the turn of a worker, the loop in which all of this happens.
//!
//! The connections of replicas leave their workers: [`replicas`] has the thread that serves them.
//!
//! A connection that is to be encrypted shakes hands on another thread before ([`handshakes`]).
//!
//! A connection is a [`transport`], which carries bytes, and a [`protocol`], which turns bytes into
//! commands ([`resp`], [`http`]). A listener has one of each.

mod accept;
mod arrival;
mod batch;
mod coalesce;
mod connection;
mod deferred;
mod handshakes;
mod http;
mod intake;
pub mod mailbox;
mod parked;
pub mod pending;
mod protected;
mod protocol;
mod replicas;
mod resp;
mod timers;
mod transport;
mod trial;
mod withheld;
mod worker;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use engine::engine::Engine;
use persist::cuts::Cuts;
use views::Offer;

pub use accept::Listener;
pub use http::ChangeEvents;
pub use mailbox::Wakers;
pub use protocol::Speaks;

use accept::Acceptor;

use process::thread;

/// The running workers and the acceptor.
pub struct Workers {
    wakers: Arc<Wakers>,
    acceptor: Acceptor,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `threads` workers, and the thread that serves replicas. Connections come when
    /// [`Workers::listen`] is called.
    ///
    /// # Errors
    /// When a poll instance or a thread cannot be made.
    pub fn start(
        engine: Arc<Engine>,
        wakers: Arc<Wakers>,
        offer: &Arc<ArcSwap<Offer>>,
        cuts: &Arc<Cuts>,
        threads: usize,
    ) -> io::Result<Workers> {
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let (engine, offer) = (Arc::clone(&engine), Arc::clone(offer));
            let worker = worker::Worker::new(engine, &wakers, offer, index)?;
            handles.push(thread::start(format!("worker-{index}"), move || worker.run())?);
        }
        handles.push(replicas::start(Arc::clone(&engine), &wakers, cuts)?);
        let acceptor = Acceptor::start(engine, Arc::clone(&wakers), threads)?;
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
