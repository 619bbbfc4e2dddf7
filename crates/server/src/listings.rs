//! The thread that answers reads of `/v2/keys` whose answers are long: a directory of a hundred thousand
//! nodes, or all that is below one. Each answer is of one instant: the thread holds the slot of the tree
//! meanwhile, so that others wait for it who want the tree, and nobody else.

use std::io;
use std::sync::Arc;

use engine::wait::waiting::Waiter;
use resp::args::OwnedArguments;

use crate::assistant::Assistant;
use crate::hand::Hand;

const LOCKED: &[u8] = b"-BUSY the tree is locked by somebody else for too long\r\n";

/// The thread. A job is the words of a read, and who waits for its answer.
pub type Listings = Assistant<(OwnedArguments, Waiter)>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<Listings> {
    let mut hand: Option<Hand> = None;
    Assistant::start("listings", move |engine, (argv, waiter): (OwnedArguments, Waiter)| {
        // Many may ask and go before it is their turn.
        if !waiter.wait.is_waiting() {
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
