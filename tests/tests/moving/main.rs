//! `dunlin move` between real servers, under clients that go on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod common;
mod last_steps;
mod late;
mod others;
mod questions;
mod rights;
mod waits;

use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tests::client::{Client, Reply};
use tests::observe::wait_for;
use tests::peers;
use tests::process::peak_resident_bytes;
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::sentinel::Sentinels;
use tests::server::{Server, Target};

use common::{begin, begin_in_vain, begin_until, checked, ended, interrupt, move_all, said, url};

const DATA: &[&str] = &[
    "SET text value",
    "SET later value PX 100000000",
    "RPUSH list a b c 1 2 3",
    "SADD set a b c",
    "HSET hash f v g w",
    "ZADD zset 1 a 2.5 b",
    "XADD stream 1-1 f v",
    "SELECT 5",
    "SET five 5",
    "SELECT 0",
];

/// A client that follows the directions: what an old server refuses, it asks of the other one.
/// Returns how many of its writes were acknowledged.
fn count_up(key: &str, servers: [u16; 2], ended: &AtomicBool) -> i64 {
    let mut at = 0;
    let mut client = Client::connect(servers[at]).unwrap();
    let mut counted = 0;
    while !ended.load(SeqCst) {
        match client.call(&["INCR", key]).unwrap() {
            Reply::Integer(_) => counted += 1,
            refused => {
                let text = refused.text().unwrap_or_default();
                assert!(text.starts_with(b"READONLY"), "{}", text.escape_ascii());
                at = 1 - at;
                client = Client::connect(servers[at]).unwrap();
            }
        }
    }
    counted
}

#[test]
fn clients_that_follow_lose_nothing_there_and_back() {
    let mut pairs = vec![
        (Target::Reference, Target::Dunlin),
        (Target::Valkey, Target::Dunlin),
        (Target::Dunlin, Target::Reference),
        (Target::Dunlin, Target::Dunlin),
    ];
    // It is there only after `make peers-newest`.
    if peers::newest("valkey-server").exists() {
        pairs.push((Target::NewestValkey, Target::Dunlin));
    }
    for (from, to) in pairs {
        let options = [("repl-diskless-sync-delay", "0"), ("enable-debug-command", "yes")];
        let [old, new] = [from, to].map(|target| Server::start(target, &options).unwrap());
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        for line in DATA {
            assert!(!first.call_text(line).unwrap().is_error(), "{line}");
        }
        assert_eq!(said(&mut first, "DEBUG POPULATE 20000 filler 100"), "OK");
        let ended = AtomicBool::new(false);
        let keys = ["a", "b", "c", "d"];
        let ports = [old.port(), new.port()];
        let counted: Vec<i64> = thread::scope(|scope| {
            let ended = &ended;
            let count = |key| scope.spawn(move || count_up(key, ports, ended));
            let counting: Vec<_> = keys.map(count).into();
            let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
            assert_eq!(code, Some(0), "{from:?} {to:?}: {text}");
            assert!(text.contains("writes were held for"), "{text}");
            let before = said(&mut second, "GET a");
            wait_for("clients go on at the new server", || said(&mut second, "GET a") != before);
            // The way back, while they write.
            wait_for("the old server follows", || {
                said(&mut first, "INFO replication").contains("master_link_status:up")
            });
            let (code, text) = move_all(&url(&new), &url(&old), &["--yes"]);
            assert_eq!(code, Some(0), "{to:?} {from:?}: {text}");
            let before = said(&mut first, "GET a");
            wait_for("clients go on at the old server", || said(&mut first, "GET a") != before);
            ended.store(true, SeqCst);
            counting.into_iter().map(|own| own.join().unwrap()).collect()
        });
        for (key, counted) in keys.into_iter().zip(counted) {
            assert_eq!(said(&mut first, &format!("GET {key}")), counted.to_string(), "{from:?}");
        }
        assert_eq!(said(&mut first, "DBSIZE"), (20_000 + 7 + 4).to_string());
        wait_for("the new server follows in turn, and has the same", || {
            said(&mut first, "DEBUG DIGEST") == said(&mut second, "DEBUG DIGEST")
        });
        assert!(said(&mut second, "SET x y").starts_with("READONLY"));
    }
}

#[test]
fn passwords_are_used_and_the_old_server_can_stay_paused() {
    let old = Server::start(Target::Reference, &[("requirepass", "old secret")]).unwrap();
    let new = Server::start(Target::Dunlin, &[("requirepass", "new")]).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call(&["AUTH", "old secret"]).unwrap();
    second.call_text("AUTH new").unwrap();
    first.call_text("SET k v").unwrap();
    let from = format!("redis://:old%20secret@127.0.0.1:{}", old.port());
    let to = format!("redis://default:new@127.0.0.1:{}", new.port());
    let (code, text) = move_all(&from, &to, &["--yes", "--after", "paused"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(said(&mut second, "GET k"), "v");
    assert_eq!(said(&mut second, "SET k w"), "OK");
    assert_eq!(
        second.call_text("CONFIG GET masterauth").unwrap().elements().unwrap()[1].text(),
        Some(&b""[..])
    );
    assert_eq!(said(&mut first, "GET k"), "v", "reads go on");
    first.send(&["SET", "k", "lost"]).unwrap();
    assert!(!first.has_input(Duration::from_millis(200)).unwrap(), "it stays paused");
}

#[test]
fn the_check_says_what_does_not_move() {
    let old = Server::start(Target::Reference, &[("maxmemory-policy", "allkeys-lru")]).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call_text("ACL SETUSER ann on >pw ~* +@all").unwrap();
    first.call_text("EVAL 'return 1' 0").unwrap();
    checked(
        &old,
        &new,
        &[
            "note users of the ACL do not move: ann",
            "note maxmemory-policy is 'allkeys-lru' at the old server, and 'noeviction'",
            "Nothing stands in the way",
        ],
    );
    first.call_text("VADD vectors VALUES 2 1 1 element").unwrap();
    checked(&old, &new, &["STOP database 0 has 1 vector sets"]);
    first.call_text("DEL vectors").unwrap();
    second.call_text("SET k v").unwrap();
    checked(&old, &new, &["STOP the new server has 1 keys"]);
    second.call_text("DEL k").unwrap();
    second.call_text("CONFIG SET maxmemory 1000").unwrap();
    checked(&old, &new, &["STOP the old server uses "]);
    let (code, text) = move_all(&url(&old), &url(&old).replace("127.0.0.1", "localhost"), &[]);
    assert!(code == Some(3) && text.contains("STOP both are the same server"), "{text}");
    let cluster = Server::start(Target::Reference, &[("cluster-enabled", "yes")]).unwrap();
    checked(&cluster, &new, &["STOP the old server is part of a cluster"]);
    let many = Server::start(Target::Reference, &[("databases", "40")]).unwrap();
    let mut third = many.connect().unwrap();
    third.call_text("SELECT 30").unwrap();
    third.call_text("SET k v").unwrap();
    second.call_text("CONFIG SET maxmemory 0").unwrap();
    checked(&many, &new, &["STOP database 30 has keys, and the new server has 16 databases"]);
    third.call_text(&format!("REPLICAOF 127.0.0.1 {}", old.port())).unwrap();
    checked(&many, &new, &["STOP the old server is itself a replica"]);
    checked(&old, &many, &["note the new server is a replica of the old one already"]);
    assert_eq!(said(&mut second, "DBSIZE"), "0", "nothing has changed");
}

#[test]
fn no_password_of_a_link_is_printed() {
    let [old, new] = ["first-secret", "second-secret"].map(|password| {
        let options = [("primaryauth", password), ("primaryuser", password)];
        Server::start(Target::Valkey, &options).unwrap()
    });
    let (code, text) = move_all(&url(&old), &url(&new), &["--check"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn passwords_are_read_from_files_and_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "own secret\n").unwrap();
    let file = file.to_str().unwrap();
    let [old, new] = [Target::Reference, Target::Dunlin]
        .map(|target| Server::start(target, &[("requirepass", "own secret")]).unwrap());
    let rest = ["--check", "--from-password-file", file, "--to-password-file", file];
    let (code, text) = move_all(&url(&old), &url(&new), &rest);
    assert_eq!(code, Some(0), "{text}");
    for wrong in [
        &["--frm", "redis://:secret@h"][..],
        &["--to=redis://:secret@h", "x"],
        &["--to=redis://:secret@h"],
        &["--from-address", "redis://:secret@h"],
        &["--to", "redis://:a/secret@h"],
    ] {
        let (code, text) = move_all(&url(&old), &url(&new), wrong);
        assert_eq!(code, Some(2), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_copy_that_never_begins_is_not_waited_for() {
    let old = Server::start(Target::Reference, &[]).unwrap();
    for to in [Target::Dunlin, Target::Valkey] {
        let new = Server::start(to, &[]).unwrap();
        let place = format!("127.0.0.1:{}", tests::server::free_port().unwrap());
        let valkey = Server::start(Target::Valkey, &[]).unwrap();
        let from = if to == Target::Valkey { &valkey } else { &old };
        let rest = ["--yes", "--begin", "1", "--from-address", &place];
        let (code, text) = move_all(&url(from), &url(&new), &rest);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("the new server does not follow"), "{to:?}: {text}");
        assert!(said(&mut new.connect().unwrap(), "INFO replication").contains("role:master"));
    }
}

#[test]
fn an_interrupt_puts_everything_back() {
    let old = Server::start(Target::Reference, &[]).unwrap();
    let new = Server::start(Target::Dunlin, &[("masterauth", "before")]).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call_text("SET k v").unwrap();
    // The new server does not find the old one.
    let mut child = begin(&url(&old), &url(&new), &["--yes", "--from-address", "127.0.0.1:1"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("waiting for the copy")));
    assert!(said(&mut second, "INFO replication").contains("role:slave"));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut problem = String::new();
    child.stderr.take().unwrap().read_to_string(&mut problem).unwrap();
    assert!(problem.contains("interrupted\nThe old server leads on. "), "{problem}");
    assert!(said(&mut second, "INFO replication").contains("role:master"));
    let setting = second.call_text("CONFIG GET masterauth").unwrap().elements().unwrap();
    assert_eq!(setting[1].text(), Some(&b"before"[..]));
    assert_eq!(said(&mut first, "SET k w"), "OK");
}

/// Small values of all types.
const VALUES: &[&str] = &[
    "SET text value",
    "SET later value PXAT 88888888888888",
    "RPUSH list a b c",
    "SADD set a b c",
    "SADD numbers 1 2 3",
    "HSET hash f v g w",
    "HSET timed f v g w",
    "HPEXPIREAT timed 66666666666666 FIELDS 1 f",
    "ZADD zset 1 a 2.5 b",
    "XADD stream 1-1 f v",
    "XGROUP CREATE stream group 0",
    "XGROUP CREATE stream taken 0",
    "XREADGROUP GROUP taken owner STREAMS stream >",
    "SELECT 5",
    "SET five 5",
];

/// Makes large ones.
const LARGE: &str = "redis.call('SET', 'large-text', string.rep('x', 1000000))
for i = 1, 1500 do
  redis.call('RPUSH', 'large-list', i) redis.call('SADD', 'large-set', 'm' .. i)
  redis.call('HSET', 'large-hash', 'f' .. i, i) redis.call('ZADD', 'large-zset', i, 'm' .. i)
  redis.call('XADD', 'large-stream', i .. '-1', 'f', i)
end
return redis.call('HPEXPIREAT', 'large-hash', 66666666666666, 'FIELDS', 1, 'f700')";

/// What makes a replica differ, what makes it alike again, and what is said of it.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("SET five 6", "SET five 5", r#""five" of database 5 (value)"#),
    ("SET text valuf", "SET text value", r#""text" of database 0 (value)"#),
    ("DEL text", "SET text value", r#"there; "text" of database 0 (type)"#),
    ("PERSIST later", "PEXPIREAT later 88888888888888", r#""later" of database 0 (time to live)"#),
    ("LSET list 1 x", "LSET list 1 b", r#""list" of database 0 (value)"#),
    ("RPUSH list x", "RPOP list", r#""list" of database 0 (length)"#),
    ("SREM set c", "SADD set c", r#""set" of database 0 (length)"#),
    ("HSET hash f x", "HSET hash f v", r#""hash" of database 0 (value)"#),
    (
        "HPERSIST timed FIELDS 1 f",
        "HPEXPIREAT timed 66666666666666 FIELDS 1 f",
        r#""timed" of database 0 (times of fields)"#,
    ),
    ("ZADD zset 3 b", "ZADD zset 2.5 b", r#""zset" of database 0 (value)"#),
    (
        "XGROUP CREATE stream other 0",
        "XGROUP DESTROY stream other",
        r#""stream" of database 0 (consumer groups)"#,
    ),
    (
        "SETRANGE large-text 700000 y",
        "SETRANGE large-text 700000 x",
        r#""large-text" of database 0 (value)"#,
    ),
    (
        "LSET large-list 1200 x",
        "LSET large-list 1200 1201",
        r#""large-list" of database 0 (value)"#,
    ),
    ("SMOVE large-set set m1100", "SMOVE set large-set m1100", r#""large-set" of database 0"#),
    (
        "HSET large-hash f1400 x",
        "HSET large-hash f1400 1400",
        r#""large-hash" of database 0 (value)"#,
    ),
    (
        "HPERSIST large-hash FIELDS 1 f700",
        "HPEXPIREAT large-hash 66666666666666 FIELDS 1 f700",
        r#""large-hash" of database 0 (value)"#,
    ),
    (
        "ZADD large-zset 1 m1300",
        "ZADD large-zset 1300 m1300",
        r#""large-zset" of database 0 (value)"#,
    ),
    ("XSETID stream 5-1", "XSETID stream 1-1", r#""stream" of database 0 (last id, or counters)"#),
    (
        "XSETID stream 1-1 ENTRIESADDED 9 MAXDELETEDID 0-0",
        "XSETID stream 1-1 ENTRIESADDED 1 MAXDELETEDID 0-0",
        r#""stream" of database 0 (last id, or counters)"#,
    ),
    (
        "XCLAIM stream taken other 0 1-1 JUSTID",
        "XCLAIM stream taken owner 0 1-1 JUSTID",
        r#""stream" of database 0 (pending entries)"#,
    ),
    ("XDEL large-stream 900-1", "DEL large-stream", r#""large-stream" of database 0 (length)"#),
    // Nothing takes that back.
    (
        "XSETID stream 1-1 ENTRIESADDED 1 MAXDELETEDID 0-7",
        "PING",
        r#""stream" of database 0 (last id, or counters)"#,
    ),
];

#[test]
fn what_differs_is_found_before_the_promotion() {
    for (from, to) in [(Target::Reference, Target::Dunlin), (Target::Dunlin, Target::Reference)] {
        let options = [("repl-diskless-sync-delay", "0"), ("replica-read-only", "no")];
        let [old, new] = [from, to].map(|target| Server::start(target, &options).unwrap());
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        for line in VALUES {
            assert!(!first.call_text(line).unwrap().is_error(), "{line}");
        }
        first.call_text("SELECT 0").unwrap();
        let reply = first.call(&["EVAL", LARGE, "0"]).unwrap();
        assert!(!reply.is_error(), "{reply:?}");
        assert!(!first.call(&["SET", "", "of no name"]).unwrap().is_error());
        // More than a few keys that are drawn could show.
        first.call_text("SELECT 9").unwrap();
        for number in 0..3000 {
            first.send(&["SET", &format!("filler:{number}"), "same"]).unwrap();
        }
        for _ in 0..3000 {
            first.receive().unwrap();
        }
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        let moved = |expected: &str, case: &str| {
            let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
            assert_eq!(code, Some(1), "{case}: {text}");
            assert!(text.contains("the servers differ: "), "{case}: {text}");
            assert!(
                text.contains(expected) && text.contains("The old server leads on"),
                "{case}: {text}"
            );
        };
        second.call_text("SELECT 9").unwrap();
        second.call_text("SET filler:1234 diff").unwrap();
        moved(r#""filler:1234" of database 9 (value)"#, "one of many");
        second.call_text("SET filler:1234 same").unwrap();
        second.call_text("SELECT 5").unwrap();
        for (change, undo, expected) in DIFFERENCES {
            if !change.contains("five") {
                second.call_text("SELECT 0").unwrap();
            }
            assert!(!second.call_text(change).unwrap().is_error(), "{change}");
            moved(expected, change);
            assert!(!second.call_text(undo).unwrap().is_error(), "{undo}");
        }
        assert_eq!(said(&mut first, "SET more data"), "OK", "its writes go on");
        assert!(said(&mut second, "INFO replication").contains("role:slave"));
    }
}

#[test]
fn what_replicas_of_redis_do_not_hear_of_consumers_is_in_nobodys_way() {
    let old = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    let mut first = old.connect().unwrap();
    for line in ["XADD stream 1-1 f v", "XGROUP CREATE stream group 0"] {
        assert!(!first.call_text(line).unwrap().is_error(), "{line}");
    }
    follow(&new, old.port()).unwrap();
    catch_up(&old, &new).unwrap();
    for line in [
        "XREADGROUP GROUP group one STREAMS stream >",
        "XREADGROUP GROUP group one STREAMS stream 0",
        "XREADGROUP GROUP group idle STREAMS stream >",
    ] {
        assert!(!first.call_text(line).unwrap().is_error(), "{line}");
    }
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_hash_whose_fields_have_all_expired_is_in_nobodys_way() {
    let old = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let new = Server::start(Target::Reference, &[]).unwrap();
    let mut first = old.connect().unwrap();
    follow(&new, old.port()).unwrap();
    catch_up(&old, &new).unwrap();
    // It stays until somebody removes it.
    for line in ["DEBUG SET-ACTIVE-EXPIRE 0", "HSET hash f v", "HPEXPIRE hash 100 FIELDS 1 f"] {
        assert!(!first.call_text(line).unwrap().is_error(), "{line}");
    }
    wait_for("its fields expire", || {
        let left = first.call_text("HPTTL hash FIELDS 1 f").unwrap().elements().unwrap();
        left == [Reply::Integer(-2)]
    });
    assert_eq!(said(&mut first, "EXISTS hash"), "1");
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn data_that_is_not_understood_is_told_to_who_moves_it() {
    let old = Server::start(Target::Reference, &[]).unwrap();
    let other = Server::start(Target::Reference, &[]).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    // The check sees one server, and the new one gets the data of another.
    let reply = other.connect().unwrap().call_text("VADD vectors VALUES 2 1 1 element").unwrap();
    assert!(!reply.is_error(), "{reply:?}");
    let place = format!("127.0.0.1:{}", other.port());
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--from-address", &place]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the new server cannot take the data: its data is of no use"), "{text}");
    assert!(text.contains("vectors") && text.contains("The old server leads on"), "{text}");
    assert!(said(&mut second, "INFO replication").contains("role:master"));
    assert_eq!(said(&mut first, "SET k v"), "OK");
}

#[test]
fn a_server_that_cannot_load_the_data_is_not_waited_for() {
    let old = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let mut first = old.connect().unwrap();
    first.call_text("SET k v").unwrap();
    // The check knows that Valkey takes no files of Redis 7.4 and later.
    let new = Server::start(Target::Valkey, &[]).unwrap();
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("does not load the data of Redis 8.0"), "{text}");
    assert!(said(&mut new.connect().unwrap(), "INFO replication").contains("role:master"));
    assert_eq!(said(&mut first, "SET k w"), "OK");
}

/// Redis 7.0 is there only after `make peers-newest`.
#[test]
fn a_server_that_begins_again_and_again_is_not_waited_for() {
    if !peers::oldest("redis-server").exists() {
        println!("there is no old server to try");
        return;
    }
    let old = Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let mut first = old.connect().unwrap();
    let new = Server::start(Target::Oldest, &[]).unwrap();
    checked(
        &old,
        &new,
        &["STOP Redis 7.0", "of RDB files it refuses: CONFIG SET rdb-version 10 at the old server"],
    );
    checked(&new, &old, &["note the old server cannot follow the new one if it needs all data"]);
    first.call_text("SET k v").unwrap();
    let later = Server::start(Target::Reference, &[]).unwrap();
    checked(&later, &new, &["STOP Redis 7.0", "move to Dunlin, and from there to the new server"]);
    assert_eq!(said(&mut first, "CONFIG SET rdb-version 10"), "OK");
    checked(&old, &new, &["Nothing stands in the way"]);
    // It is another one when the copy begins.
    let way = Proxy::start(old.port()).unwrap();
    way.hold(true);
    let place = format!("127.0.0.1:{}", way.port());
    let child = begin_in_vain(&url(&old), &url(&new), &place, &[]);
    assert_eq!(said(&mut first, "CONFIG SET rdb-version 11"), "OK");
    way.hold(false);
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("times, and the new one does not follow: its log says why"), "{text}");
    assert!(text.contains("The old server leads on"), "{text}");
    assert!(said(&mut new.connect().unwrap(), "INFO replication").contains("role:master"));
    assert_eq!(said(&mut first, "SET k w"), "OK");
    assert_eq!(said(&mut first, "CONFIG SET rdb-version 10"), "OK");
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn nobody_writes_to_the_new_server_while_it_follows() {
    for to in [Target::Dunlin, Target::Reference] {
        for follows in [false, true] {
            let old =
                Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
            let new = Server::start(to, &[("replica-read-only", "no")]).unwrap();
            let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
            first.call_text("SET k v").unwrap();
            let way = Proxy::start(old.port()).unwrap();
            if follows {
                follow(&new, way.port()).unwrap();
                catch_up(&old, &new).unwrap();
                way.refuse(true);
                way.cut();
                wait_for("the link breaks", || {
                    said(&mut second, "INFO replication").contains("master_link_status:down")
                });
            } else {
                way.hold(true);
            }
            let child =
                begin_in_vain(&url(&old), &url(&new), &format!("127.0.0.1:{}", way.port()), &[]);
            let reply = said(&mut second, "SET k other");
            assert!(reply.starts_with("READONLY"), "{to:?} {follows}: {reply}");
            way.refuse(false);
            way.hold(false);
            let (code, text) = ended(child);
            assert_eq!(code, Some(0), "{text}");
            assert_eq!(said(&mut second, "GET k"), "v");
            let setting = second.call_text("CONFIG GET replica-read-only").unwrap();
            assert_eq!(setting.elements().unwrap()[1].text(), Some(&b"no"[..]), "as it was");
        }
    }
}

#[test]
fn an_old_server_that_is_made_a_replica_meanwhile_moves_nothing() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let [old, leader] =
            [from, Target::Reference].map(|own| Server::start(own, &options).unwrap());
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let way = Proxy::start(old.port()).unwrap();
        way.hold(true);
        leader.connect().unwrap().call_text("SET k v").unwrap();
        let child =
            begin_in_vain(&url(&old), &url(&new), &format!("127.0.0.1:{}", way.port()), &[]);
        // Its clients write to the other server from now on, and nobody holds their writes.
        follow(&old, leader.port()).unwrap();
        catch_up(&leader, &old).unwrap();
        way.hold(false);
        let (code, text) = ended(child);
        assert_eq!(code, Some(1), "{from:?}: {text}");
        assert!(text.contains("the old server is no primary any more"), "{text}");
        assert!(text.contains("The old server is a replica of 127.0.0.1:"), "{text}");
        assert!(!text.contains("leads on"), "{text}");
        assert!(said(&mut new.connect().unwrap(), "INFO replication").contains("role:master"));
    }
}

#[test]
fn a_new_server_that_follows_another_one_is_not_promoted() {
    let options = [("repl-diskless-sync-delay", "0")];
    for to in [Target::Dunlin, Target::Reference] {
        let old = Server::start(Target::Reference, &options).unwrap();
        let other = Server::start(Target::Reference, &options).unwrap();
        let new = Server::start(to, &options).unwrap();
        // They look alike.
        for server in [&old, &other] {
            server.connect().unwrap().call_text("SET k v").unwrap();
        }
        let place = format!("127.0.0.1:{}", other.port());
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--from-address", &place]);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("the new server follows another one"), "{text}");
        assert!(said(&mut new.connect().unwrap(), "INFO replication").contains("role:master"));
        assert_eq!(said(&mut old.connect().unwrap(), "SET k w"), "OK");
    }
}

#[test]
fn one_move_at_a_time() {
    let options = [("repl-diskless-sync-delay", "0")];
    let [old, new, third] = [Target::Reference, Target::Dunlin, Target::Dunlin]
        .map(|target| Server::start(target, &options).unwrap());
    let mut child = begin_in_vain(&url(&old), &url(&new), "127.0.0.1:1", &[]);
    for (from, to) in [(&old, &new), (&new, &old), (&old, &third), (&third, &new)] {
        let (code, text) = move_all(&url(from), &url(to), &["--yes"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("STOP another 'dunlin move' is at work"), "{text}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("nobody is at work", || {
        let is_at_work = |server: &Server| {
            said(&mut server.connect().unwrap(), "CLIENT LIST").contains("name=dunlin-move")
        };
        !is_at_work(&old) && !is_at_work(&new)
    });
    said(&mut new.connect().unwrap(), "REPLICAOF NO ONE");
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn nothing_moves_that_sentinels_watch() {
    let old = Server::start(Target::Reference, &[]).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    let program = tests::peers::program("redis-sentinel");
    let sentinels = Sentinels::start(&program, old.port(), 60_000).unwrap();
    let mut first = old.connect().unwrap();
    wait_for("they watch", || said(&mut first, "CLIENT LIST").matches("-cmd ").count() == 3);
    checked(&old, &new, &["STOP a Sentinel watches the old server"]);
    checked(&new, &old, &["STOP a Sentinel watches the new server"]);
    drop(sentinels);
    wait_for("they are gone", || !said(&mut first, "CLIENT LIST").contains("-cmd "));
    checked(&old, &new, &["Nothing stands in the way"]);
}

#[test]
fn settings_are_put_back_although_a_connection_is_lost() {
    let old = Server::start(Target::Reference, &[("requirepass", "own")]).unwrap();
    let new = Server::start(Target::Dunlin, &[("masterauth", "before")]).unwrap();
    let from = format!("redis://:own@127.0.0.1:{}", old.port());
    let child = begin_in_vain(&from, &url(&new), "127.0.0.1:1", &[]);
    let mut second = new.connect().unwrap();
    let setting = |second: &mut Client| {
        let reply = second.call_text("CONFIG GET masterauth").unwrap().elements().unwrap();
        String::from_utf8_lossy(reply[1].text().unwrap()).into_owned()
    };
    assert_eq!(setting(&mut second), "own");
    second.call_text("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    let (code, text) = ended(child);
    assert!(code == Some(1) && text.contains("The old server leads on"), "{text}");
    assert_eq!(setting(&mut second), "before");
    assert!(said(&mut second, "INFO replication").contains("role:master"));
}

#[test]
fn large_elements_are_compared_in_little_memory() {
    let options = [("repl-diskless-sync-delay", "0")];
    let [old, new] =
        [Target::Reference, Target::Dunlin].map(|target| Server::start(target, &options).unwrap());
    let mut first = old.connect().unwrap();
    let fill = "for k = 1, 20 do for i = 1, 400 do
        redis.call('RPUSH', 'list' .. k, string.rep('x', 10000) .. i)
        redis.call('HSET', 'hash' .. k, i, string.rep('y', 5000) .. i) end end";
    assert!(!first.call(&["EVAL", fill, "0"]).unwrap().is_error());
    follow(&new, old.port()).unwrap();
    catch_up(&old, &new).unwrap();
    let mut child = begin(&url(&old), &url(&new), &["--yes"]);
    let mut peak = 0;
    let status = loop {
        peak = peak_resident_bytes(child.id()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(status.success());
    assert!(peak > 0 && peak < 40 * 1024 * 1024, "{peak}");
}

#[test]
fn a_link_that_breaks_while_keys_are_compared_is_waited_for() {
    let options = [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "64mb")];
    let [old, new] =
        [Target::Reference, Target::Dunlin].map(|target| Server::start(target, &options).unwrap());
    let mut first = old.connect().unwrap();
    let fill = |value: &str| {
        format!("for i = 1, 40000 do redis.call('SET', 'key' .. i, '{value}' .. i) end")
    };
    assert!(!first.call(&["EVAL", &fill("earlier"), "0"]).unwrap().is_error());
    let way = Proxy::start(old.port()).unwrap();
    let place = format!("127.0.0.1:{}", way.port());
    let rest = ["--yes", "--from-address", &place];
    let (child, _rest) = begin_until(&url(&old), &url(&new), &rest, "the new server follows");
    way.refuse(true);
    way.cut();
    assert!(!first.call(&["EVAL", &fill("later"), "0"]).unwrap().is_error());
    // Time in which it sees many keys that differ.
    thread::sleep(Duration::from_secs(3));
    way.refuse(false);
    let (code, text) = ended(child);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(said(&mut new.connect().unwrap(), "GET key40000"), "later40000");
}

#[test]
fn times_of_fields_are_not_lost_at_a_server_that_knows_none() {
    let options = [("repl-diskless-sync-delay", "0"), ("enable-debug-command", "yes")];
    let [old, new] =
        [Target::Dunlin, Target::Valkey].map(|target| Server::start(target, &options).unwrap());
    let mut first = old.connect().unwrap();
    assert_eq!(said(&mut first, "HSET hash f v g w"), "2");
    // It gets a time after the check.
    let way = Proxy::start(old.port()).unwrap();
    follow(&new, way.port()).unwrap();
    catch_up(&old, &new).unwrap();
    way.hold(true);
    assert!(!first.call(&["SET", "large", &"x".repeat(1_000_000)]).unwrap().is_error());
    let place = format!("127.0.0.1:{}", way.port());
    let rest = ["--yes", "--from-address", &place];
    let (child, _rest) = begin_until(&url(&old), &url(&new), &rest, "bytes behind");
    first.call_text("HPEXPIRE hash 1000000 FIELDS 1 f").unwrap();
    way.hold(false);
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("1 hashes have fields that expire"), "{text}");
    // And before it.
    assert_eq!(said(&mut first, "SET large gone"), "OK", "its writes go on");
    checked(&old, &new, &["STOP 1 hashes have fields that expire"]);
}

#[test]
fn keys_do_not_count_as_used_when_they_are_compared() {
    let options = [("repl-diskless-sync-delay", "0"), ("maxmemory-policy", "allkeys-lru")];
    for from in [Target::Reference, Target::Valkey, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let mut first = old.connect().unwrap();
        for line in ["SET text value", "RPUSH list a b c", "HSET hash f v"] {
            assert!(!first.call_text(line).unwrap().is_error(), "{line}");
        }
        let idle = |first: &mut Client, key: &str| {
            said(first, &format!("OBJECT IDLETIME {key}")).parse::<u64>().unwrap()
        };
        wait_for("nobody uses them for a while", || idle(&mut first, "hash") >= 2);
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        for key in ["text", "list", "hash"] {
            assert!(idle(&mut first, key) >= 2, "{from:?} {key}");
        }
    }
}
