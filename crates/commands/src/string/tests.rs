//! What string commands leave in the journal, what they send without copying it, and that a
//! transaction sees them.

use std::sync::Arc;

use resp::args::OwnedArguments;
use resp::output::Output;

use crate::testing::TestServer;
use engine::db::slot_access::SlotAccess;
use engine::turn::request::Request;

const NOW: u64 = 1_000_000;

/// What a command left in the journal, as lines of words.
fn journal(server: &mut TestServer, line: &str) -> Vec<String> {
    let reply = server.text(line);
    assert!(!reply.starts_with('-'), "{line}: {reply}");
    let effects = server.journal.take();
    let text = |argv: &[Vec<u8>]| {
        let words = argv.iter().map(|word| String::from_utf8_lossy(word).into_owned());
        words.collect::<Vec<_>>().join(" ")
    };
    effects.iter().map(|effect| text(&effect.argv)).collect()
}

#[test]
fn the_journal_gets_times_and_results_not_requests() {
    let mut server = crate::testing::server();
    server.now = Some(NOW);
    let cases: &[(&str, &[&str])] = &[
        ("SET k v", &["SET k v"]),
        ("SET k v EX 100", &["SET k v PXAT 1100000"]),
        ("SET k w PX 500 GET", &["SET k w PXAT 1000500"]),
        ("SET k x EXAT 2000", &["SET k x PXAT 2000000"]),
        ("SET k y KEEPTTL", &["SET k y KEEPTTL"]),
        ("SET k z XX KEEPTTL GET", &["SET k z KEEPTTL"]),
        ("SET k v NX", &[]),
        ("SET k v NX GET", &[]),
        ("SET k v IFEQ y", &[]),
        ("SET k v IFEQ z", &["SET k v"]),
        ("SET k w IFEQ v EX 5", &["SET k w PXAT 1005000"]),
        ("SETEX k 10 v", &["SET k v PXAT 1010000"]),
        ("PSETEX k 10 v", &["SET k v PXAT 1000010"]),
        ("SETNX k v", &[]),
        ("GETSET k x", &["SET k x"]),
        ("GETEX k", &[]),
        ("GETEX k EX 100", &["PEXPIREAT k 1100000"]),
        ("GETEX k PERSIST", &["PERSIST k"]),
        ("GETEX k PERSIST", &[]),
        ("GETEX k PXAT 1", &["DEL k"]),
        ("GETDEL k", &[]),
        ("MSET a 1 b 2", &["MSET a 1 b 2"]),
        ("MSETNX b 1 c 2", &[]),
        ("GETDEL b", &["DEL b"]),
        ("INCRBY a 5", &["INCRBY a 5"]),
        ("INCRBYFLOAT a 1.5", &["SET a 7.5 KEEPTTL"]),
        ("SETRANGE a 0 ", &[]),
        ("APPEND a ", &["APPEND a "]),
        ("SETBIT a 0 0", &[]),
        ("BITFIELD a GET u8 0", &[]),
        ("PFADD h x", &["PFADD h x"]),
        ("PFADD h x", &[]),
        ("PFCOUNT h", &["PFCOUNT h"]),
        ("PFCOUNT h", &[]),
    ];
    for (line, expected) in cases {
        assert_eq!(journal(&mut server, line), *expected, "{line}");
    }
}

#[test]
fn the_millisecond_of_its_expiry_is_the_last_of_a_key() {
    let mut server = crate::testing::server();
    server.now = Some(NOW);
    server.text("SET k 1 PX 5");
    server.text("HSET h f 1 g 2");
    server.text("HPEXPIRE h 5 FIELDS 1 f");
    server.now = Some(NOW + 5);
    assert_eq!(server.text("PTTL k"), ":0\r\n");
    assert_eq!(server.text("HPTTL h FIELDS 1 f"), "*1\r\n:0\r\n");
    assert_eq!(server.text("INCR k"), ":2\r\n");
    server.now = Some(NOW + 6);
    assert_eq!(server.text("PTTL k"), ":-2\r\n");
    assert_eq!(server.text("HPTTL h FIELDS 1 f"), "*1\r\n:-2\r\n");
}

#[test]
fn an_expired_key_is_deleted_before_it_is_set_anew() {
    let mut server = crate::testing::server();
    for line in ["SET k w", "SET k w GET", "INCR k", "APPEND k x", "SETBIT k 1 1", "PFADD k a"] {
        server.now = Some(NOW);
        journal(&mut server, "SET k 1 PX 5");
        server.now = Some(NOW + 6);
        let effects = journal(&mut server, line);
        assert_eq!(effects[..2], ["MULTI", "DEL k"], "{line}");
        assert_eq!(server.text("TTL k"), ":-1\r\n", "{line}");
        server.text("DEL k");
        server.journal.take();
    }
}

#[test]
fn a_change_in_place_is_seen_by_watchers() {
    for line in ["INCR k", "APPEND k x", "SETRANGE k 0 x", "SET k x", "SETBIT k 1 1", "GETDEL k"] {
        let mut server = crate::testing::server();
        server.text("SET k 1");
        server.text("WATCH k");
        let other = server.connect();
        let watching = std::mem::replace(&mut server.session, other);
        server.text(line);
        server.session = watching;
        server.text("MULTI");
        assert_eq!(server.text("EXEC"), "*-1\r\n", "{line}");
    }
}

/// Runs a command whose last argument came in a buffer of its own.
fn run_big(server: &mut TestServer, words: &[&str], big: Option<&Arc<Vec<u8>>>) -> Output {
    let mut argv: OwnedArguments = words.iter().collect();
    if let Some(big) = big {
        argv.push_shared(Arc::clone(big));
    }
    let mut keys = Vec::new();
    let row = server.engine.prepare(argv.view(), &mut keys);
    let request = Request { argv: argv.view(), row, keys: &keys, busy: None };
    let mut output = Output::new();
    server.begin_turn();
    let TestServer { engine, session, turn, gate, .. } = server;
    let inside = gate.enter();
    let slot_access = SlotAccess::Ordinary(inside.pinned());
    engine.execute(turn, session, request, slot_access, &mut output);
    output
}

#[test]
fn a_large_string_is_stored_and_sent_without_a_copy() {
    let mut server = crate::testing::server();
    server.journal.set_listening(false);
    let big = Arc::new(vec![b'x'; 100_000]);
    run_big(&mut server, &["SET", "k"], Some(&big));
    assert_eq!(Arc::strong_count(&big), 2, "the store has it");
    let output = run_big(&mut server, &["GET", "k"], None);
    assert_eq!(Arc::strong_count(&big), 3, "the output has it");
    // A change while it is being sent does not show in the reply.
    run_big(&mut server, &["SETRANGE", "k", "0", "y"], None);
    assert_eq!(&output.to_vec()[..11], b"$100000\r\nxx");
    drop(output);
    assert_eq!(Arc::strong_count(&big), 1, "the store has its own now");
    assert_eq!(server.text("GETRANGE k 0 1"), "$2\r\nyx\r\n");
}
