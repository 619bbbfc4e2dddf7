//! A connection over a transport in memory.

use std::sync::Arc;

use base::limits;
use engine::session::awaited::{Awaited, Wait};
use engine::session::client::Client;
use engine::session::{Session, User};

use super::{Connection, Stuck};
use crate::net::pending::WaitsFor;
use crate::net::protocol::Speaks;
use crate::net::transport::memory::{Far, HELLO, pair, shy_pair, veiled_pair};
use crate::net::transport::{AnyTransport, Transport};

fn connection((transport, far): (AnyTransport, Far)) -> (Connection, Far) {
    let client = Client::new(1, 0, "there".to_string(), "here".to_string(), -1, 0);
    let session = Session::new(Arc::new(client), User::nobody());
    (Connection::new(transport, Speaks::RESP.open(0), session), far)
}

/// Has the connection notice what has happened to its transport.
fn announce(connection: &mut Connection, far: &Far) {
    connection.note_readiness(far.readiness());
}

#[test]
fn a_client_that_reads_too_little_for_long_is_stuck() {
    let mut stuck = Stuck::default();
    let patience = limits::PATIENCE_OF_SENDING_MS;
    assert!(!stuck.note(true, 100, 1000));
    assert!(!stuck.note(true, 100, 1000 + patience));
    assert!(stuck.note(true, 101, 1001 + patience), "a byte a minute");
    let mut stuck = Stuck::default();
    assert!(!stuck.note(true, 100, 1000));
    assert!(!stuck.note(true, 61_540, 1001 + patience), "a kilobyte a second");
    assert!(!stuck.note(true, 61_540, 1001 + 2 * patience));
    assert!(!stuck.note(false, 61_540, 1003 + 2 * patience), "nothing waits for it");
    assert!(!stuck.note(true, 61_540, 1004 + 3 * patience), "that has come just now");
    assert!(stuck.note(true, 61_540, 1005 + 4 * patience));
}

#[test]
fn a_short_read_does_not_say_that_no_more_is_there() {
    let (mut connection, far) = connection(pair(1000));
    far.0.lock().to_server.most_at_once = 3;
    far.send(b"PIN");
    far.send(b"G\r\n");
    assert_eq!(connection.receive(1000), 3);
    assert!(connection.readable, "it has the rest");
    assert_eq!(connection.receive(1000), 3);
    assert!(!connection.readable && !connection.ended);
    assert_eq!(connection.input, b"PING\r\n");
    assert_eq!(connection.receive(1000), 0, "an event comes first");
    far.send(b"x");
    announce(&mut connection, &far);
    assert_eq!(connection.receive(1000), 1);
}

#[test]
fn a_stream_that_stalls_is_no_end() {
    let (mut connection, far) = connection(pair(1000));
    far.send(b"PING");
    far.0.lock().to_server.stalled = true;
    assert_eq!(connection.receive(1000), 0);
    assert!(!connection.readable && !connection.ended);
    far.0.lock().to_server.stalled = false;
    announce(&mut connection, &far);
    assert_eq!(connection.receive(1000), 4);
}

#[test]
fn what_came_before_the_end_is_received_and_the_end_is_no_failure() {
    for (fails, reason) in
        [(false, "the client closed the connection"), (true, "the connection failed")]
    {
        let (mut connection, far) = connection(pair(1000));
        far.send(b"PING\r\n");
        if fails {
            assert_eq!(connection.receive(1000), 6);
            far.0.lock().to_server.failed = true;
            announce(&mut connection, &far);
        } else {
            far.0.lock().to_server.ended = true;
            announce(&mut connection, &far);
            assert_eq!(connection.receive(1000), 6);
        }
        assert!(connection.readable && !connection.ended);
        connection.output.push(b"+PONG\r\n");
        assert_eq!(connection.receive(1000), 0);
        assert!(connection.ended && !connection.readable);
        assert!(!connection.is_finished(false), "the answer is to be sent");
        assert_eq!(connection.send(1000), 7);
        assert!(connection.is_finished(false));
        assert_eq!(connection.why_finished(), reason);
        assert!(connection.close_reason.is_none());
        assert_eq!(far.received(), b"+PONG\r\n");
    }
}

#[test]
fn what_does_not_fit_is_sent_after_an_event() {
    let (mut connection, far) = connection(pair(10));
    connection.readable = false;
    far.0.lock().to_client.most_at_once = 4;
    connection.output.push(b"0123456789abcdef");
    assert_eq!(connection.send(1000), 10, "in pieces");
    assert!(!connection.writable && !connection.wants_another_turn(0));
    assert_eq!(connection.send(1000), 0);
    assert_eq!(far.received(), b"0123456789");
    announce(&mut connection, &far);
    assert!(connection.wants_another_turn(0));
    assert_eq!(connection.send(3), 3, "its share of the turn");
    assert_eq!(connection.send(1000), 3);
    assert_eq!(far.received(), b"abcdef");
    assert!(connection.is_all_sent());
}

#[test]
fn sending_to_a_peer_that_has_gone_closes_the_connection() {
    let (mut connection, far) = connection(pair(10));
    far.0.lock().to_client.failed = true;
    connection.output.push(b"+OK\r\n");
    assert_eq!(connection.send(1000), 0);
    assert_eq!(connection.close_reason, Some("the connection failed while writing"));
}

#[test]
fn replies_that_wait_for_the_journal_are_not_given_to_the_transport() {
    for make in [pair(1000), veiled_pair(1000, 1000)] {
        let (mut connection, far) = connection(make);
        connection.output.push(b"+free\r\n");
        connection.session.depends_on = 5;
        connection.defer_replies(connection.output.end());
        connection.output.push(b"+bound\r\n");
        connection.send(1000);
        connection.send(1000);
        assert_eq!(far.received(), b"+free\r\n");
        assert!(!connection.is_all_sent());
        connection.deferred_replies.release(5, |_| ());
        connection.send(1000);
        connection.send(1000);
        assert_eq!(far.received(), b"+bound\r\n");
        assert!(connection.is_all_sent());
    }
}

#[test]
fn what_a_transport_holds_back_counts_as_output() {
    let (mut connection, far) = connection(veiled_pair(4, 20));
    connection.output.push(&[b'x'; 30]);
    assert_eq!(connection.send(1000), 20, "it takes no more than it may hold back");
    assert_eq!((connection.output.len(), connection.transport.held_back()), (10, 20));
    assert!(connection.has_output() && !connection.is_all_sent());
    connection.publish();
    assert_eq!(connection.session.client.output_bytes.load(super::Relaxed), 30);
    connection.output.set_limit(29);
    connection.look_at_output_limit();
    assert_eq!(connection.close_reason, Some(super::OVER_OUTPUT_LIMIT), "30 bytes wait");
    connection.close_reason = None;
    connection.output.set_limit(30);
    connection.look_at_output_limit();
    assert_eq!(connection.close_reason, None);
    connection.ended = true;
    let mut all = Vec::new();
    for _ in 0..20 {
        assert!(!connection.is_finished(false));
        connection.send(1000);
        let passed = far.received();
        all.extend_from_slice(&passed);
        announce(&mut connection, &far);
        if connection.is_all_sent() {
            break;
        }
        assert!(connection.wants_another_turn(0));
    }
    assert_eq!(all, [b'x'; 30]);
    assert!(connection.is_finished(false));
}

#[test]
fn a_transport_that_is_full_is_not_asked_again_before_an_event() {
    let (mut connection, far) = connection(veiled_pair(4, 20));
    connection.readable = false;
    connection.output.push(&[b'x'; 10]);
    connection.send(1000);
    connection.send(1000);
    assert_eq!(far.received().len(), 4);
    assert!(!connection.writable && connection.transport.held_back() == 6);
    assert!(!connection.wants_another_turn(0));
    announce(&mut connection, &far);
    assert!(connection.wants_another_turn(0));
    connection.send(1000);
    assert_eq!(connection.transport.held_back(), 2);
}

#[test]
fn a_client_that_reads_nothing_of_held_back_bytes_is_stuck() {
    let (mut connection, far) = connection(veiled_pair(4, 20));
    connection.output.push(&[b'x'; 10]);
    connection.ended = true;
    connection.send(1000);
    connection.send(1000);
    assert!(connection.output.is_empty());
    let patience = limits::PATIENCE_OF_SENDING_MS;
    assert!(!connection.is_stuck(1000));
    assert!(connection.is_stuck(1001 + patience));
    while connection.transport.held_back() > 0 {
        far.received();
        announce(&mut connection, &far);
        connection.send(1000);
    }
    assert!(!connection.is_stuck(1002 + patience), "it has taken all");
}

#[test]
fn a_transport_says_that_it_ends_before_a_connection_that_lingers_is_closed() {
    let (mut connection, far) = connection(veiled_pair(1000, 20));
    far.send(b"more");
    assert!(connection.lingers(1000));
    assert!(!connection.is_all_sent(), "it has to say that it ends");
    connection.send(1000);
    assert!(connection.is_all_sent());
    assert_eq!(far.received(), b"<end>");
    assert!(far.0.lock().to_client.ended);
    far.0.lock().to_server.ended = true;
    announce(&mut connection, &far);
    assert!(!connection.lingers(1001), "the client has ended its stream too");
}

/// Has the connection do everything that it wants to do before the next event, and send back what
/// it receives.
fn take_turns(connection: &mut Connection) {
    for turn in 0.. {
        assert!(turn < 100, "it goes on without end");
        connection.receive(connection.reading_share());
        let received = std::mem::take(&mut connection.input);
        connection.output.push(&received);
        connection.send(1000);
        if !connection.wants_another_turn(0) {
            break;
        }
    }
}

#[test]
fn a_session_behind_a_handshake_loses_nothing_whatever_pieces_it_comes_in() {
    const HEARD: &[u8] = b"hello, here I am";
    const SAID: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let expected = [HELLO, b"+early\r\n", SAID].concat();
    for (capacity, most_at_once, gives) in [(1, 1, 1), (3, 1, 2), (7, 2, 100), (1000, 1000, 1)] {
        let (mut connection, far) = connection(shy_pair(capacity, 20, (HEARD.len(), gives)));
        far.0.lock().to_client.most_at_once = most_at_once;
        far.0.lock().to_server.most_at_once = most_at_once;
        connection.output.push(b"+early\r\n");
        take_turns(&mut connection);
        assert!(!connection.writable, "it waits for the handshake");
        let (to_send, mut sent, mut all) = ([HEARD, SAID].concat(), 0, Vec::new());
        for _ in 0..1000 {
            // An event announces a change, and nothing else.
            let count = far.send(&to_send[sent..]);
            let received = far.received();
            sent += count;
            let changed = count > 0 || !received.is_empty();
            all.extend_from_slice(&received);
            if changed {
                announce(&mut connection, &far);
                take_turns(&mut connection);
            } else if sent == to_send.len() {
                break;
            }
        }
        assert_eq!(all, expected, "{capacity} {most_at_once} {gives}");
        assert!(connection.is_all_sent());
        far.0.lock().to_server.ended = true;
        announce(&mut connection, &far);
        take_turns(&mut connection);
        assert!(connection.is_finished(false));
    }
}

#[test]
fn who_gives_up_a_wait_is_told_what_was_owed_and_served_no_more() {
    let (mut connection, far) = connection(pair(4));
    let wait = Arc::new(Wait::new(Awaited::Host, 0, false, None));
    connection.pending.waits_for = WaitsFor::Blocked(Arc::clone(&wait));
    connection.output.push(b"+free\r\n");
    connection.session.depends_on = 5;
    connection.defer_replies(connection.output.end());
    connection.output.push(b"+bound\r\n");
    connection.give_up(false);
    assert!(!connection.is_finished(false), "it waits");
    far.0.lock().to_server.ended = true;
    announce(&mut connection, &far);
    connection.receive(1000);
    connection.give_up(false);
    assert!(!wait.claim(), "nobody serves it");
    let mut all = Vec::new();
    while all.len() < 7 {
        assert!(!connection.is_finished(false));
        connection.send(1000);
        all.extend(far.received());
        announce(&mut connection, &far);
    }
    connection.send(1000);
    assert!(!connection.is_finished(false), "the rest is to become durable");
    connection.deferred_replies.release(5, |_| ());
    while all.len() < 15 {
        assert!(!connection.is_finished(false));
        connection.send(1000);
        all.extend(far.received());
        announce(&mut connection, &far);
    }
    assert_eq!(all, b"+free\r\n+bound\r\n");
    assert!(connection.is_finished(false));
}
