//! What replies depend on, as commands show it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::args::OwnedArguments;
use resp::output::Output;
use resp::reply::Reply;

use engine::persistence::durability::{self, PRESSURE_PAUSE};
use engine::reclaim::expire::ExpireCycle;
use engine::turn::Turn;

use config::Config;

use super::{TestServer, server, server_with_scripts};

fn holding() -> TestServer {
    let server = server();
    server.journal.defers_replies.store(true, Relaxed);
    server
}

/// The offset on which the replies of a connection depend that sends only this command.
fn dependence(server: &mut TestServer, line: &str) -> u64 {
    let mut other = server.connect();
    server.text_as(&mut other, line);
    other.depends_on
}

#[test]
fn a_reply_depends_on_what_its_command_wrote_or_saw() {
    let mut server = holding();
    assert_eq!(dependence(&mut server, "GET a"), 0);
    assert_eq!(dependence(&mut server, "SET a 1"), 1);
    assert_eq!(dependence(&mut server, "SET b 1"), 2);
    assert_eq!(dependence(&mut server, "GET a"), 1);
    assert_eq!(dependence(&mut server, "DEL absent"), 0);
    assert_eq!(dependence(&mut server, "MGET a b c"), 2);
    assert_eq!(dependence(&mut server, "LPUSH a x"), 1, "an error tells of the key too");
    assert_eq!(dependence(&mut server, "PING"), 0);
    assert_eq!(dependence(&mut server, "DBSIZE"), 2, "it has looked everywhere");
    assert_eq!(dependence(&mut server, "DEL a"), 3);
    assert_eq!(dependence(&mut server, "GET a"), 3, "so does a nil");
    assert_eq!(dependence(&mut server, "FLUSHALL"), 4);
    assert_eq!(dependence(&mut server, "GET never-there"), 4);
}

#[test]
fn a_transaction_depends_on_all_that_it_touched_and_watched() {
    let mut server = holding();
    assert_eq!(dependence(&mut server, "SET seen 1"), 1);
    assert_eq!(dependence(&mut server, "SET watched 1"), 2);
    let mut other = server.connect();
    for line in ["WATCH watched", "MULTI", "GET seen"] {
        server.text_as(&mut other, line);
    }
    assert_eq!(dependence(&mut server, "SET watched 2"), 3);
    assert_eq!(server.text_as(&mut other, "EXEC"), "*-1\r\n");
    assert_eq!(other.depends_on, 3);
}

#[test]
fn a_transaction_that_looks_everywhere_depends_on_everything() {
    for line in ["DBSIZE", "KEYS *", "SCAN 0", "RANDOMKEY", "SORT list BY weight:*"] {
        let mut server = holding();
        assert_eq!(dependence(&mut server, "RPUSH list 1 2"), 1);
        assert_eq!(dependence(&mut server, "SET elsewhere 1"), 2);
        let mut other = server.connect();
        for line in ["MULTI", line, "GET never-there"] {
            server.text_as(&mut other, line);
        }
        server.text_as(&mut other, "EXEC");
        assert_eq!(other.depends_on, 2, "{line}");
    }
}

#[test]
fn a_message_that_one_writes_to_oneself_depends_on_what_was_written_before_it() {
    let mut server = holding();
    let mut other = server.connect();
    for line in ["HELLO 3", "SUBSCRIBE a"] {
        server.text_as(&mut other, line);
    }
    assert_eq!(dependence(&mut server, "SET key value"), 1);
    server.text("PUBLISH a written");
    let told = server.text_as(&mut other, "PUBLISH a mine");
    assert!(told.contains("written") && told.contains("mine"), "{told}");
    assert_eq!(other.depends_on, 1);
    // Waiting replies are written before the end of a subscription, too.
    assert_eq!(dependence(&mut server, "SET key value"), 2);
    server.text("PUBLISH a written");
    assert!(server.text_as(&mut other, "UNSUBSCRIBE a").contains("written"));
    assert_eq!(other.depends_on, 2);
}

#[test]
fn what_a_library_does_or_lists_depends_on_its_change() {
    let mut server = server_with_scripts(Config::default());
    server.journal.defers_replies.store(true, Relaxed);
    let missing = dependence(&mut server, "FCALL f 0");
    assert_eq!(missing, 0);
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    server.session = server.connect();
    assert_eq!(server.run(&["FUNCTION", "LOAD", code]), b"$3\r\nlib\r\n");
    let loaded = server.session.depends_on;
    assert!(loaded > 0);
    let written = dependence(&mut server, "SET elsewhere 1");
    for line in ["FCALL f 0", "FCALL_RO f 0", "FCALL nosuch 0"] {
        assert_eq!(dependence(&mut server, line), loaded, "{line}");
    }
    for line in ["FUNCTION LIST", "FUNCTION DUMP"] {
        assert_eq!(dependence(&mut server, line), written, "{line}");
        let mut other = server.connect();
        for line in ["MULTI", line, "EXEC"] {
            server.text_as(&mut other, line);
        }
        assert_eq!(other.depends_on, written, "{line}");
    }
    let deleted = dependence(&mut server, "FUNCTION DELETE lib");
    assert_eq!(dependence(&mut server, "FCALL f 0"), deleted, "it is gone");
}

/// Clients do not wait for a FLUSHALL if they ask for nothing that it could have removed.
#[test]
fn a_reply_without_data_depends_on_nothing() {
    let mut server = holding();
    assert_eq!(dependence(&mut server, "SET key value"), 1);
    for line in ["FLUSHALL", "SWAPDB 0 1"] {
        let written = dependence(&mut server, line);
        let mut other = server.connect();
        for line in ["PING", "ECHO text", "MULTI", "PING", "EXEC", "COMMAND COUNT"] {
            server.text_as(&mut other, line);
            assert_eq!(other.depends_on, 0, "{line}");
        }
        server.text_as(&mut other, "GET never-there");
        assert_eq!(other.depends_on, written);
    }
}

/// A message about a write leaves only after the journal has the write, so that its receivers can
/// wait for it.
#[test]
fn nobody_hears_of_a_write_before_the_journal() {
    let mut server = holding();
    server.text("CONFIG SET notify-keyspace-events KEA");
    let mut others = [server.connect(), server.connect(), server.connect()];
    let lines = ["MONITOR", "SUBSCRIBE a", "PSUBSCRIBE __key*"];
    for (other, line) in others.iter_mut().zip(lines) {
        server.text_as(other, line);
    }
    let clients: Vec<_> = others.iter().map(|other| Arc::clone(&other.client)).collect();
    server.text("MULTI");
    server.text("SET key value");
    server.text("PUBLISH a written");
    others.iter().for_each(|other| drop(crate::testing::messages(other)));
    *server.journal.appending.lock() = Some(Box::new(move || {
        for client in &clients {
            assert!(client.inbox.lock().pushes.is_empty(), "it is told too early");
        }
    }));
    let appended = server.journal.end();
    assert_eq!(server.text("EXEC"), "*2\r\n+OK\r\n:1\r\n");
    assert!(server.journal.end() > appended);
    for other in &others {
        assert!(!crate::testing::messages(other).is_empty());
    }
}

/// No deletion could be made durable: expired keys count as absent and stay.
#[test]
fn nothing_expires_and_nothing_is_evicted_while_nothing_keeps_it() {
    let mut server = holding();
    server.now = Some(1_000_000);
    assert_eq!(dependence(&mut server, "SET key value PX 10"), 1);
    assert_eq!(dependence(&mut server, "PFADD count a b c"), 2);
    *server.journal.failure.lock() = Some("No space left on device".to_owned());
    server.now = Some(1_000_011);
    for line in ["GET key", "TTL key", "EXISTS key", "MGET key other", "PFCOUNT count"] {
        assert!(dependence(&mut server, line) <= 2, "{line}");
    }
    assert_eq!(server.text("GET key"), "$-1\r\n");
    let mut turn = Turn::new(&server.engine, "expiry");
    ExpireCycle::default().round(&server.engine, &mut turn, &server.gate);
    server.text("CONFIG SET maxmemory-policy allkeys-random");
    server.text("CONFIG SET maxmemory 1");
    assert_eq!(server.text("GET key"), "$-1\r\n");
    assert_eq!(server.journal.end(), 2, "nothing was appended");
    assert_eq!(server.text("DBSIZE"), ":2\r\n", "nothing was deleted");
    server.text("CONFIG SET maxmemory 0");
    *server.journal.failure.lock() = None;
    assert_eq!(server.text("GET key"), "$-1\r\n");
    assert_eq!(server.text("DBSIZE"), ":1\r\n");
}

#[test]
fn writes_from_before_replies_waited_count_as_the_last_write() {
    let mut server = server();
    assert_eq!(dependence(&mut server, "SET a 1"), 0, "nobody keeps account");
    server.journal.defers_replies.store(true, Relaxed);
    assert_eq!(dependence(&mut server, "GET a"), 1);
}

#[test]
fn threads_that_begin_later_change_nothing_unless_they_have_written() {
    let mut server = holding();
    assert_eq!(dependence(&mut server, "SET a 1"), 1);
    assert_eq!(dependence(&mut server, "SET b 1"), 2);
    let late = engine::turn::Turn::new(&server.engine, "late");
    assert!(late.defers_replies());
    assert_eq!(dependence(&mut server, "GET a"), 1);
    server.engine.slot_offsets.begin(true, || 2);
    assert_eq!(dependence(&mut server, "GET a"), 2, "it may have been that one's write");
    server.journal.defers_replies.store(false, Relaxed);
    assert_eq!(dependence(&mut server, "SET a 2"), 0, "nobody keeps account");
    server.journal.defers_replies.store(true, Relaxed);
    assert_eq!(dependence(&mut server, "GET b"), 3);
}

/// What a thread has seen while there was no file says nothing of what comes after it, whoever
/// writes that.
#[test]
fn what_was_seen_without_a_file_covers_no_later_write() {
    let mut server = server();
    server.text("SET a 1");
    assert_eq!(server.turn.awaits_write(&server.engine, &server.session), None);
    *server.journal.released.lock() = Some(1);
    let mut other = server.connect();
    other.write_offset = 2;
    assert_eq!(server.turn.awaits_write(&server.engine, &other), Some(2));
    assert_eq!(server.turn.awaits_write(&server.engine, &server.session), None);
    server.text("SET a 2");
    server.turn.announce_appends(&server.engine);
    assert_eq!(server.turn.awaits_write(&server.engine, &server.session), Some(2));
    *server.journal.released.lock() = Some(2);
    assert_eq!(server.turn.awaits_write(&server.engine, &server.session), None);
}

#[test]
fn writes_are_refused_while_nothing_keeps_them() {
    let mut server = server();
    assert_eq!(server.text("SET a 1"), "+OK\r\n");
    *server.journal.failure.lock() = Some("No space left on device".to_owned());
    let refusal = "MISCONF Errors writing to the AOF file: No space left on device\r\n";
    assert_eq!(server.text("SET a 2"), format!("-{refusal}"));
    assert_eq!(server.text("PING"), format!("-{refusal}"));
    assert_eq!(server.text("GET a"), "$1\r\n1\r\n");
    server.text("MULTI");
    assert_eq!(server.text("SET a 3"), format!("-{refusal}"));
    assert!(server.text("EXEC").starts_with("-EXECABORT "));
    *server.journal.failure.lock() = None;
    assert_eq!(server.text("SET a 2"), "+OK\r\n");
}

/// Until when a command waits for the disk.
fn delayed_until(server: &TestServer, line: &str) -> Option<u64> {
    let argv: OwnedArguments = line.split(' ').collect();
    let row = server.engine.commands.resolve(argv.view()).expect("it is there");
    let command = (&row.command.spec, argv.view());
    durability::delayed_until(&server.engine, &server.turn, &server.session, command)
}

#[test]
fn writes_wait_while_the_disk_does_not_keep_up() {
    let mut server = server();
    server.text("SET a 1");
    server.journal.pressed.store(true, Relaxed);
    server.begin_turn();
    assert_eq!(delayed_until(&server, "set"), Some(server.turn.monotonic + PRESSURE_PAUSE));
    assert_eq!(delayed_until(&server, "flushall"), Some(server.turn.monotonic + PRESSURE_PAUSE));
    assert_eq!(delayed_until(&server, "get"), None);
    assert_eq!(server.text("GET a"), "$1\r\n1\r\n");
    server.journal.pressed.store(false, Relaxed);
    assert_eq!(server.text("SET a 2"), "+OK\r\n");
}

#[test]
fn what_copies_nothing_goes_on_beside_a_snapshot_that_does_not_keep_up() {
    let mut server = server();
    let value = "x".repeat(14_000);
    (0..5000).for_each(|n| drop(server.text(&format!("SET key:{n} {value}"))));
    let engine = Arc::clone(&server.engine);
    let walker = engine.keyspace.begin_cut(&engine.gates.stop_the_world(), 0).expect("no other");
    for number in (0..5000).take_while(|_| !engine.keyspace.cut_is_behind()) {
        server.text(&format!("SETBIT key:{number} 0 1"));
    }
    server.begin_turn();
    let waits = |server: &TestServer, line: &str| delayed_until(server, line).is_some();
    for line in ["set k v", "del k", "eval return 0", "evalsha 0 0", "fcall f 0"] {
        assert!(waits(&server, line), "{line}");
    }
    for line in ["flushall", "flushdb", "swapdb 0 1", "get k", "eval flushall 0", "eval_ro x 0"] {
        assert!(!waits(&server, line), "{line}");
    }
    for (queued, expected) in [
        (&["get a", "set a 1"][..], true),
        (&["get a"], false),
        (&["set a 1", "flushall", "set a 2"], false),
        (&["set a 1", "eval FlushDB 0"], false),
        (&["set a 1", "eval x 0"], true),
    ] {
        server.text("MULTI");
        queued.iter().for_each(|line| assert_eq!(server.text(line), "+QUEUED\r\n", "{line}"));
        assert_eq!(waits(&server, "exec"), expected, "{queued:?}");
        server.text("DISCARD");
    }
    drop(walker);
}

#[test]
fn client_unblock_ends_waiting_for_a_sync_once() {
    let mut server = server();
    let mut other = server.connect();
    let request = format!("CLIENT UNBLOCK {}", other.client.id);
    assert_eq!(server.text(&request), ":0\r\n", "it does not wait");
    server.text_as(&mut other, "SET a 1");
    for (how, answer) in [
        ("", "*2\r\n:0\r\n:0\r\n"),
        (" TIMEOUT", "*2\r\n:0\r\n:0\r\n"),
        (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
    ] {
        assert_eq!(server.text_as(&mut other, "WAITAOF 1 0 0"), "", "it waits");
        let wait = other.client.wait.lock().clone().expect("it waits");
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, false);
        assert!(!server.engine.settle_sync_wait(&other, &wait, 0, &mut reply));
        assert_eq!(server.text(&format!("{request}{how}")), ":1\r\n");
        assert_eq!(server.text(&request), ":0\r\n", "once");
        assert!(server.engine.settle_sync_wait(&other, &wait, 0, &mut reply));
        assert_eq!(String::from_utf8_lossy(&output.to_vec()), answer, "{how}");
        assert_eq!(server.engine.blocked_clients(), 0);
    }
    assert!(server.text("INFO errorstats").contains("errorstat_UNBLOCKED:count=1"));
}

#[test]
fn waitaof_answers_when_the_own_writes_are_durable() {
    let mut server = server();
    assert_eq!(server.text("WAITAOF 1 0 0"), "*2\r\n:1\r\n:0\r\n", "nothing was written");
    server.text("SET a 1");
    assert_eq!(server.text("WAITAOF 0 0 0"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(server.text("WAITAOF 1 0 0"), "", "it waits");
    assert_eq!(server.engine.blocked_clients(), 1);
    let wait = server.session.client.wait.lock().clone().expect("it waits");
    assert!(wait.claim());
    let inside = server.gate.enter();
    server.engine.end_wait(inside.pinned(), &server.session, &wait);
    drop(inside);
    server.text("MULTI");
    server.text("WAITAOF 1 0 0");
    assert_eq!(server.text("EXEC"), "*1\r\n*2\r\n:0\r\n:0\r\n", "no waiting there");
    server.journal.synced.store(1, Relaxed);
    assert_eq!(server.text("WAITAOF 1 0 0"), "*2\r\n:1\r\n:0\r\n");
    let refused = server.text("WAITAOF 2 0 0");
    assert_eq!(refused, "-ERR value is out of range, value must between 0 and 1\r\n");
    assert_eq!(server.text("WAITAOF 0 0 -1"), "-ERR timeout is negative\r\n");
    server.journal.set_listening(false);
    assert!(server.text("WAITAOF 1 0 0").starts_with("-ERR WAITAOF cannot be used"));
}

#[test]
fn what_a_replica_reads_by_a_script_waits_for_nobody() {
    let mut server = server_with_scripts(Config::default());
    assert_eq!(server.text("CLIENT DURABILITY REPLICAS 1"), "+OK\r\n");
    let script = ["EVAL", "return 1", "0"];
    assert_eq!(server.run(&script), b":1\r\n");
    assert!(server.session.owed.take().is_some(), "it may tell of what others have written");
    assert_eq!(server.text("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    assert_eq!(server.run(&script), b":1\r\n");
    assert!(server.session.owed.is_none(), "no replica would ever confirm it");
}
