//! The thread that carries out long requests for `/v2/keys`: reads with long answers, such as a
//! directory of a hundred thousand nodes or everything below a directory, and removals of such
//! directories. Each request sees one instant, because the thread holds the slot of the tree
//! meanwhile. So only clients that use the tree wait.

use std::io;
use std::sync::Arc;

use engine::session::attachment::Waiter;
use resp::args::OwnedArguments;

use crate::threads::internal_client::InternalClient;
use crate::threads::job_thread::JobThread;

/// Which word of a request is its method.
const METHOD: usize = 2;
const LOCKED: &[u8] = b"-BUSY the tree is locked by somebody else for too long\r\n";

/// The thread. A job is the words of a request, and the client that waits for its answer.
pub type NodeReader = JobThread<(OwnedArguments, Waiter)>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<NodeReader> {
    let mut client: Option<InternalClient> = None;
    JobThread::start("listings", move |engine, (argv, waiter): (OwnedArguments, Waiter)| {
        // Many may ask and go before it is their turn. What removes nodes was accepted all the
        // same.
        let reads = argv.view().get(METHOD).is_some_and(|method| method == b"GET");
        if reads && !waiter.wait.is_waiting() {
            return;
        }
        let row = commands::http_rows().node_list;
        let own = || InternalClient::new(Arc::clone(engine), "listings");
        match client.get_or_insert_with(own).run_row(row, &argv) {
            // What is read waits for copies in a cluster alone.
            Some(reply) if reads && !engine.cluster.is_enabled() => {
                engine.answer_with(&waiter, reply);
            }
            Some(reply) => engine.answer_after(&waiter, reply, engine.nodes.written()),
            None => engine.answer(&waiter, LOCKED),
        }
    })
}
