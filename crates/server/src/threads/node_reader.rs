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

const CHANGED: &[u8] = b"-NODURABLE the server is no longer the primary that was asked, and it is \
    not known who has what was read or removed\r\n";

/// A job is the words of a request, the client that waits for its answer, and the term of
/// replication in which it was admitted.
type Job = (OwnedArguments, Waiter, u64);

/// The thread.
pub type NodeReader = JobThread<Job>;

/// Starts it.
///
/// # Errors
/// The thread cannot be made.
pub fn start() -> io::Result<NodeReader> {
    let mut client: Option<InternalClient> = None;
    JobThread::start("listings", move |engine, (argv, waiter, term): Job| {
        // Many may ask and go before it is their turn. What removes nodes was accepted all the
        // same.
        let reads = argv.view().get(METHOD).is_some_and(|method| method == b"GET");
        if reads && !waiter.wait.is_waiting() {
            return;
        }
        let row = commands::http_rows().node_list;
        let own = || InternalClient::new(Arc::clone(engine), "listings");
        let client = client.get_or_insert_with(own);
        match client.run_row(row, &argv) {
            // What is read waits for copies in a cluster alone.
            Some(reply) if reads && !engine.cluster.is_enabled() => {
                engine.answer_with(&waiter, reply);
            }
            Some(reply) => match client.tree_state() {
                // Of a later term nobody could say what of this one others have.
                (seen, _) if seen != term && !reply.begins_at(0, b'-') => {
                    engine.answer(&waiter, CHANGED);
                }
                (_, offset) => engine.answer_after(&waiter, reply, offset),
            },
            None => engine.answer(&waiter, LOCKED),
        }
    })
}

#[cfg(test)]
mod tests {
    use config::{Config, PrimaryAddress};
    use engine::session::awaited::{Awaited, Wait};
    use engine::testing::TestServer;

    use super::*;

    /// What a client gets for this request that was admitted in this term, and the offset of the
    /// journal on which it depends.
    fn answer(server: &TestServer, words: &[&str], term: u64) -> (String, u64) {
        let wait = Wait::new(Awaited::Host, 0, false, None);
        let waiter = Waiter::new(&server.session.client, wait);
        let reader = start().unwrap();
        reader.connect(&server.engine);
        let words = words.iter().map(|word| word.as_bytes());
        reader.add((words.collect(), waiter, term));
        reader.stop();
        let served = server.session.client.inbox.lock().served.take().unwrap();
        (String::from_utf8(served.reply.to_vec()).unwrap(), served.write_offset)
    }

    #[test]
    fn what_was_admitted_in_another_term_is_not_answered_as_if_others_had_it() {
        let server = TestServer::with(commands::registry(), Config::default());
        let engine = &server.engine;
        let mut client = InternalClient::new(Arc::clone(engine), "test");
        let rows = commands::http_rows();
        let put = |client: &mut InternalClient, path: &str| {
            let words = ["NODE", "{etcd}/", "PUT", path, "value", "v"];
            let words = words.iter().map(|word| word.as_bytes()).collect();
            client.run_row(rows.node_put, &words).unwrap().to_vec()
        };
        assert!(put(&mut client, "/d/a").starts_with(b"*4\r\n:201"));
        let remove = ["NODE", "{etcd}/", "DELETE", "/d", "recursive", "true"];
        let term = engine.replication.term();
        let (reply, offset) = answer(&server, &remove, term);
        assert!(reply.starts_with("*4\r\n:200"), "{reply}");
        assert_eq!(offset, engine.journal.end());
        assert!(offset > 0);

        put(&mut client, "/d/a");
        let (seen, offset) = client.tree_state();
        let primary = PrimaryAddress { host: b"h".to_vec(), port: 1 };
        engine.change_part(&engine.gates.stop_the_world(), Some(primary));
        assert_eq!(engine.nodes.written(), 0);
        assert_eq!(client.tree_state(), (seen, offset), "it is what the command could see");
        let (reply, _) = answer(&server, &remove, term);
        assert!(reply.starts_with("-READONLY"), "{reply}");
        let read = ["NODE", "{etcd}/", "GET", "/d/a"];
        let (reply, _) = answer(&server, &read, engine.replication.term());
        assert!(reply.contains("/d/a"), "it is not removed: {reply}");

        engine.change_part(&engine.gates.stop_the_world(), None);
        let (reply, _) = answer(&server, &remove, term);
        assert!(reply.starts_with("-NODURABLE"), "{reply}");
    }
}
