//! The thread that carries out requests for `/v2/keys` that take long: reads with long answers, of a directory
//! of a hundred thousand nodes or of all that is below one, and removals of such directories. Each is of one
//! instant: the thread holds the slot of the tree meanwhile, so that others wait for it who want the tree, and
//! nobody else.

use std::io;
use std::sync::Arc;

use engine::wait::waiting::Waiter;
use resp::args::OwnedArguments;

use crate::assistant::Assistant;
use crate::hand::Hand;

/// Which word of a request is its method.
const METHOD: usize = 2;
const LOCKED: &[u8] = b"-BUSY the tree is locked by somebody else for too long\r\n";

/// The thread. A job is the words of a request, and who waits for its answer.
pub type Listings = Assistant<(OwnedArguments, Waiter)>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<Listings> {
    let mut hand: Option<Hand> = None;
    Assistant::start("listings", move |engine, (argv, waiter): (OwnedArguments, Waiter)| {
        // Many may ask and go before it is their turn. What removes nodes was accepted all the same.
        let reads = argv.view().get(METHOD).is_some_and(|method| method == b"GET");
        if reads && !waiter.wait.is_waiting() {
            return;
        }
        let row = engine.commands.http().node_list;
        let own = || Hand::new(Arc::clone(engine), "listings");
        match hand.get_or_insert_with(own).run_row(row, &argv) {
            Some(reply) => engine.answer_with(&waiter, reply),
            None => engine.answer(&waiter, LOCKED),
        }
    })
}
