//! Clients that wait for a key: served, timed out, unblocked or gone, once.

use std::sync::Arc;

use explore::explore;
use explore::world::{Connection, Worker, engine};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const TIMED_OUT: &str = "*-1\r\n";

/// Serves a connection until it is blocked.
fn block(worker: &mut Worker, connection: &mut Connection, line: &'static str) {
    connection.send(line);
    while connection.waiter().is_none() {
        worker.serve(connection);
        thread::yield_now();
    }
}

/// Waits for the answer of the claimer of the waiter.
fn hear(worker: &Worker, connection: &mut Connection) {
    while !connection.take_inbox(worker) {
        thread::yield_now();
    }
}

/// Two clients wait for two keys, elements come to both keys, and time is up for one of the two. In
/// every order, no element is lost, none comes twice, and nothing is left behind.
#[test]
fn each_element_comes_once() {
    explore(|| {
        let engine = engine();
        let mut worker = Worker::new(&engine);
        let mut waiting = [worker.connect(), worker.connect()];
        for connection in &mut waiting {
            block(&mut worker, connection, "BLPOP a b 0");
        }
        let pushers = ["RPUSH a 1", "RPUSH b 2"].map(|line| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || assert_eq!(Worker::new(&engine).text(line), ":1\r\n"))
        });
        let [first, second] = &mut waiting;
        let waiter = first.waiter().expect("it is blocked");
        match waiter.claim() {
            true => first.end_wait(&worker, TIMED_OUT.as_bytes()),
            false => hear(&worker, first),
        }
        for pusher in pushers {
            pusher.join().expect("it pushes once");
        }
        hear(&worker, second);
        let mut replies = [first.replies(), second.replies()];
        let popped = |key, element| format!("*2\r\n$1\r\n{key}\r\n$1\r\n{element}\r\n");
        let (one, two) = (popped("a", "1"), popped("b", "2"));
        assert!(replies.contains(&one) || replies.contains(&two), "{replies:?}");
        let left: Vec<_> = ["LLEN a", "LLEN b"].map(|line| worker.text(line)).into();
        let kept = |reply: &String| replies.contains(reply);
        assert_eq!(left[0] == ":1\r\n", !kept(&one), "{replies:?}, {left:?}");
        assert_eq!(left[1] == ":1\r\n", !kept(&two), "{replies:?}, {left:?}");
        replies.sort();
        assert_ne!(replies[0], replies[1], "twice");
        leaves_nothing(&mut worker);
    });
}

/// Two others unblock a client, while an element comes and its time may be up. Exactly one of them
/// answers it, and only that one has unblocked it.
#[test]
fn a_client_is_answered_once() {
    explore(|| {
        let engine = engine();
        let mut worker = Worker::new(&engine);
        let mut waiting = worker.connect();
        block(&mut worker, &mut waiting, "BLPOP a 0");
        assert_eq!(waiting.id(), 1);
        let unblocking = ["CLIENT UNBLOCK 1 TIMEOUT", "CLIENT UNBLOCK 1 ERROR"].map(|line| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || Worker::new(&engine).text(line))
        });
        let pusher = thread::spawn({
            let engine = Arc::clone(&engine);
            move || Worker::new(&engine).text("RPUSH a 1")
        });
        let waiter = waiting.waiter().expect("it is blocked");
        let timed_out = thread_rng().r#gen() && waiter.claim();
        match timed_out {
            true => waiting.end_wait(&worker, TIMED_OUT.as_bytes()),
            false => hear(&worker, &mut waiting),
        }
        let unblocked = unblocking.map(|thread| thread.join().expect("it ends") == ":1\r\n");
        assert_eq!(pusher.join().expect("it ends"), ":1\r\n");
        let popped = worker.text("LLEN a") == ":0\r\n";
        let answers = [timed_out, popped, unblocked[0], unblocked[1]];
        assert_eq!(answers.iter().filter(|answered| **answered).count(), 1, "{answers:?}");
        let expected = match answers {
            [_, true, _, _] => "*2\r\n$1\r\na\r\n$1\r\n1\r\n",
            [_, _, _, true] => "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
            _ => TIMED_OUT,
        };
        assert_eq!(waiting.replies(), expected);
        assert!(!waiting.take_inbox(&worker), "a second answer");
        leaves_nothing(&mut worker);
    });
}

/// No client waits, and a key that comes serves none.
fn leaves_nothing(worker: &mut Worker) {
    worker.clean_slots();
    assert_eq!(worker.engine.blocked_clients(), 0);
    for key in [&b"a"[..], b"b"] {
        assert!(!worker.has_attachment(key), "something lies at the slot");
    }
}
