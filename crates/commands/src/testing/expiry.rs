//! What a server does with expired keys when another server decides about expiry, as the primary of
//! a replica does. Clients may write here.

use std::sync::atomic::Ordering::Relaxed;

use engine::persistence::loading::Expired;
use engine::reclaim::expire::ExpireCycle;
use engine::session::Session;

use super::{TestServer, messages, server};

/// A server that leaves expiry to another one, with a key, a hash and a field that have expired,
/// and a client that hears of what happens to keys.
fn server_that_leaves_it() -> (TestServer, Session) {
    let mut server = server();
    let now = server.turn.now;
    server.now = Some(now - 1000);
    server.text("CONFIG SET notify-keyspace-events EA");
    server.text("CONFIG SET replica-read-only no");
    server.text("SET k old PX 10");
    server.text("SET {k}kept v");
    server.text("HSET {k}h f v");
    server.text("PEXPIRE {k}h 10");
    server.text("HSETEX {k}fields PX 10 FIELDS 1 f v");
    server.text("HSET {k}fields kept v");
    let mut subscriber = server.connect();
    server.text_as(&mut subscriber, "PSUBSCRIBE __key*__:*");
    messages(&subscriber);
    server.engine.expires_elsewhere.store(true, Relaxed);
    server.now = Some(now);
    server.journal.take();
    (server, subscriber)
}

#[test]
fn what_another_server_deletes_is_absent_and_stays() {
    let (mut server, subscriber) = server_that_leaves_it();
    let stored = server.engine.keyspace.len(0);
    for (read, answer) in [
        ("GET k", "$-1\r\n"),
        ("EXISTS k {k}h", ":0\r\n"),
        ("TTL k", ":-2\r\n"),
        ("TYPE {k}h", "+none\r\n"),
        ("HGET {k}h f", "$-1\r\n"),
        ("HMGET {k}fields f kept", "*2\r\n$-1\r\n$1\r\nv\r\n"),
        ("HGETALL {k}fields", "*2\r\n$4\r\nkept\r\n$1\r\nv\r\n"),
        ("KEYS k*", "*0\r\n"),
        ("SCAN 0 MATCH k* COUNT 100000", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DEL k", ":0\r\n"),
        ("PERSIST k", ":0\r\n"),
        ("HDEL {k}h f", ":0\r\n"),
    ] {
        assert_eq!(server.text(read), answer, "{read}");
    }
    for _ in 0..20 {
        assert_ne!(server.text("RANDOMKEY"), "$1\r\nk\r\n");
    }
    assert_eq!(server.engine.keyspace.len(0), stored);
    assert_eq!(server.journal.take().len(), 0);
    assert!(!messages(&subscriber).contains("expired"));
    assert_eq!(server.turn.stats.expired_keys.get(), 0);
    assert_eq!(server.turn.stats.expired_subkeys.get(), 0);
}

#[test]
fn active_expiry_leaves_it() {
    let (mut server, subscriber) = server_that_leaves_it();
    let stored = server.engine.keyspace.len(0);
    let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
    cycle.round(&server.engine, &mut server.turn, &gate);
    assert_eq!((server.engine.keyspace.len(0), server.journal.take().len()), (stored, 0));
    assert!(!messages(&subscriber).contains("expired"));
    // It goes when this server decides again.
    server.engine.expires_elsewhere.store(false, Relaxed);
    cycle.round(&server.engine, &mut server.turn, &gate);
    assert_eq!(server.engine.keyspace.len(0), stored - 2);
}

#[test]
fn a_change_replaces_it_without_a_deletion() {
    let (mut server, subscriber) = server_that_leaves_it();
    let stored = server.engine.keyspace.len(0);
    server.text("SET k new");
    server.text("RPUSH {k}h element");
    let effects: Vec<_> = server.journal.take().into_iter().map(|own| own.argv).collect();
    assert!(effects.iter().all(|argv| !matches!(&*argv[0], b"DEL" | b"UNLINK")));
    assert_eq!(effects.len(), 2);
    assert_eq!(server.text("GET k"), "$3\r\nnew\r\n");
    assert_eq!(server.text("TTL k"), ":-1\r\n");
    assert_eq!(server.text("LLEN {k}h"), ":1\r\n");
    assert_eq!(server.engine.keyspace.len(0), stored);
    assert!(!messages(&subscriber).contains("expired"));
}

#[test]
fn a_time_that_is_over_is_set_where_another_server_decides() {
    let (mut server, _) = server_that_leaves_it();
    let stored = server.engine.keyspace.len(0);
    assert_eq!(server.text("PEXPIREAT {k}kept 1"), ":1\r\n");
    assert_eq!(server.text("GET {k}kept"), "$-1\r\n");
    assert_eq!(server.engine.keyspace.len(0), stored);
    let effects = server.journal.take();
    assert!(effects.iter().all(|effect| effect.argv[0] != b"DEL"));
}

#[test]
fn a_snapshot_keeps_it_where_another_server_decides() {
    let server = server();
    assert_eq!(server.engine.expired_in_snapshot(), Expired::Drop);
    server.engine.expires_elsewhere.store(true, Relaxed);
    assert_eq!(server.engine.expired_in_snapshot(), Expired::Keep);
}

#[test]
fn conditions_about_fields_delete_none_where_another_server_decides() {
    let (mut server, subscriber) = server_that_leaves_it();
    let stored = server.engine.keyspace.len(0);
    assert_eq!(server.text("HSETEX {k}fields FXX FIELDS 2 f w missing w"), ":0\r\n");
    assert_eq!(server.text("HLEN {k}fields"), ":2\r\n", "also the one whose time is over");
    assert_eq!((server.engine.keyspace.len(0), server.journal.take().len()), (stored, 0));
    assert_eq!(server.turn.stats.expired_subkeys.get(), 0);
    assert!(!messages(&subscriber).contains("expired"));
}
