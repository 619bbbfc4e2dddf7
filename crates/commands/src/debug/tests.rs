//! DEBUG as its tests use it.

use super::*;
use crate::testing::TestServer;
use config::{Config, Permission};

fn server() -> TestServer {
    crate::testing::server_with(Config {
        enable_debug_command: Permission::Yes,
        ..Config::default()
    })
}

#[test]
fn only_permitted_clients_may_use_debug() {
    let mut server = crate::testing::server();
    assert!(server.text("DEBUG HELP").starts_with("-ERR DEBUG command not allowed. If the"));
    server.engine.config.update(|config| config.enable_debug_command = Permission::Local);
    assert!(
        server.text("DEBUG HELP").starts_with("-ERR DEBUG"),
        "the test's address is no local one"
    );
}

#[test]
fn tools_are_in_order_and_described() {
    assert!(TOOLS.is_sorted_by_key(|tool| tool.name));
    for tool in TOOLS {
        assert!(tool.help[0].starts_with(&tool.name.to_ascii_uppercase()), "{}", tool.name);
    }
    let mut server = server();
    let error = |name| {
        format!(
            "-ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP.\r\n"
        )
    };
    assert_eq!(server.text("DEBUG Nosuch"), error("Nosuch"));
    assert_eq!(server.text("DEBUG POPULATE"), error("POPULATE"));
    assert_eq!(server.text("DEBUG digest x"), error("digest"));
    assert_eq!(server.text("DEBUG REPLYBUFFER foo 1"), error("REPLYBUFFER"));
    assert!(server.text("DEBUG HELP").contains("+SLEEP <seconds>\r\n"));
}

#[test]
fn digests_are_those_of_the_reference() {
    let mut server = server();
    let zeros = format!("+{}\r\n", "0".repeat(40));
    assert_eq!(server.text("DEBUG DIGEST"), zeros);
    server.text("SADD s a b c");
    server.text("HSET h f v g w");
    server.text("RPUSH l 1 2 3");
    server.text("SELECT 1");
    server.text("RPUSH m b a");
    server.text("RPUSH o a b");
    assert_eq!(
        server.text("DEBUG DIGEST-VALUE m o nokey"),
        format!(
            "*3\r\n+332bd4d2165f2dd7611ec5bfb352131693765663\r\n\
             +62f55a532623cf6c3d81081db480b6fd8461eb3f\r\n{zeros}"
        )
    );
    server.text("SELECT 0");
    assert_eq!(
        server.text("DEBUG DIGEST-VALUE s h l"),
        "*3\r\n+593c2414786d75446e97f4ea5d4b731f3313da72\r\n\
         +d127864ed50239662bf61bafc9bda63c17da5b37\r\n+4ee6e075f07dc1413244a0d85654cd725e5ce13d\r\n"
    );
    // Of scores: one in full, one with an exponent.
    server.text("ZADD z 10000000 m");
    server.text("ZADD y 1e17 m");
    assert_eq!(
        server.text("DEBUG DIGEST-VALUE z y"),
        "*2\r\n+2a05888aba5449f6d6a4e5348e8093573fcb806c\r\n\
         +70af2b12199c199e3b8261113e3a31ab1dc7490d\r\n"
    );
    let all = server.text("DEBUG DIGEST");
    server.text("MULTI");
    server.text("DEBUG DIGEST");
    assert_eq!(server.text("EXEC"), format!("*1\r\n{all}"));
    server.text("SADD s d");
    assert_ne!(server.text("DEBUG DIGEST"), all);
}

#[test]
fn populate_adds_what_is_not_there_and_journals_nothing() {
    let mut server = server();
    server.text("SADD key:1 a");
    server.journal.take();
    assert_eq!(server.text("DEBUG POPULATE 3"), "+OK\r\n");
    assert_eq!(server.text("DEBUG POPULATE 2 pre 10"), "+OK\r\n");
    assert_eq!(server.text("DBSIZE"), ":5\r\n");
    assert_eq!(server.text("SCARD key:1"), ":1\r\n");
    let key = Key::new(b"pre:1");
    let inside = server.gate.enter();
    let locked = server.engine.lock_slot(inside.pinned(), key.slot);
    let entry = locked.find(0, &key).expect("it was added");
    assert!(
        matches!(entry.value(), store::ValueRef::String(text) if *text.bytes() == *b"value:1\0\0\0")
    );
    assert!(entry.version() > 0);
    drop(locked);
    drop(inside);
    for line in ["DEBUG POPULATE -1", "DEBUG POPULATE x", "DEBUG POPULATE 1 k -1"] {
        assert_eq!(server.text(line), "-ERR value is out of range, must be positive\r\n");
    }
    server.text("MULTI");
    server.text("DEBUG POPULATE 4");
    assert_eq!(server.text("EXEC"), "*1\r\n+OK\r\n");
    assert_eq!(server.text("DBSIZE"), ":6\r\n");
    assert!(server.journal.take().is_empty());
}

#[test]
fn insides_are_shown() {
    let mut server = server();
    server.text("RPUSH l a b");
    server.text("HSET h f v");
    server.text("SADD s a");
    let text = server.text("DEBUG OBJECT l");
    assert!(text.contains(" encoding:listpack serializedlength:"), "{text}");
    assert!(!text.contains(" ql_nodes:"), "{text}");
    server.text("CONFIG SET list-max-listpack-size 2");
    server.text("RPUSH q a b c");
    let text = server.text("DEBUG OBJECT q");
    assert!(text.contains(" encoding:quicklist serializedlength:"), "{text}");
    assert!(text.contains(" ql_nodes:2 ql_avg_node:1.50 ql_listpack_max:2 "), "{text}");
    server.text("DEL q");
    server.text("CONFIG SET set-max-listpack-entries 0");
    server.text("DEL s");
    server.text("SADD s a");
    assert_eq!(server.text("DEBUG OBJECT nokey"), "-ERR no such key\r\n");
    assert_eq!(server.text("DEBUG LISTPACK h"), "+Listpack structure printed on stdout\r\n");
    assert_eq!(server.text("DEBUG LISTPACK l"), "+Listpack structure printed on stdout\r\n");
    assert_eq!(server.text("DEBUG LISTPACK s"), "-ERR Not a listpack encoded object.\r\n");
    assert!(server.text("DEBUG HTSTATS-KEY s").contains(" elements: 1\n"));
    assert!(server.text("DEBUG HTSTATS-KEY h").starts_with("-ERR The value stored"));
    let text = server.text("DEBUG HTSTATS 0");
    assert!(text.contains("[Dictionary HT]\n tables: 3\n buckets: 3\n elements: 3\n"), "{text}");
    assert!(server.text("DEBUG HTSTATS 1").contains("No stats available"));
    assert_eq!(server.text("DEBUG HTSTATS 99"), "-ERR Out of range database\r\n");
}

#[test]
fn switches_and_sizes_are_set() {
    let mut server = server();
    assert_eq!(server.text("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK\r\n");
    assert!(!server.engine.debug.active_expire.load(Relaxed));
    assert_eq!(server.text("DEBUG SET-ACTIVE-EXPIRE 1"), "+OK\r\n");
    assert!(server.engine.debug.active_expire.load(Relaxed));
    assert_eq!(server.text("DEBUG QUICKLIST-PACKED-THRESHOLD 100b"), "+OK\r\n");
    assert_eq!(server.turn.packed_threshold, 100, "in the same turn");
    for size in ["5gb", "abc", "4293918721"] {
        let error = "-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n";
        assert_eq!(server.text(&format!("DEBUG QUICKLIST-PACKED-THRESHOLD {size}")), error);
    }
    assert_eq!(server.text("DEBUG QUICKLIST-PACKED-THRESHOLD 0"), "+OK\r\n");
    assert_eq!(server.turn.packed_threshold, DEFAULT_PACKED_THRESHOLD);
    let before = server.engine.replication_id.lock().clone();
    assert_eq!(server.text("DEBUG CHANGE-REPL-ID"), "+OK\r\n");
    assert_ne!(*server.engine.replication_id.lock(), before);
}

#[test]
fn patterns_are_matched() {
    let mut server = server();
    assert_eq!(server.text("DEBUG STRINGMATCH-LEN a*[c-e] abbbd"), ":1\r\n");
    assert_eq!(server.text("DEBUG STRINGMATCH-LEN a*[c-e] abbb"), ":0\r\n");
}

#[test]
fn tables_keep_their_size_while_they_are_told_to() {
    let buckets = |server: &mut TestServer| {
        let page = server.text("DEBUG HTSTATS 0");
        let size = page.split("\n buckets: ").nth(1).expect("a size");
        size.lines().next().and_then(|line| line.trim().parse::<u64>().ok()).expect("a number")
    };
    let fill = |server: &mut TestServer, range: std::ops::Range<u32>| {
        range.for_each(|number| drop(server.text(&format!("SET {{slot}}{number} v"))));
    };
    let mut server = server();
    fill(&mut server, 0..100);
    let before = buckets(&mut server);
    server.text("DEBUG DICT-RESIZING 0");
    fill(&mut server, 100..400);
    assert_eq!(buckets(&mut server), before);
    server.text("DEBUG DICT-RESIZING 1");
    fill(&mut server, 400..700);
    assert!(buckets(&mut server) > before);
    assert_eq!(server.text("GET {slot}333"), "$1\r\nv\r\n");
}
