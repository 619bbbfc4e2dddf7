//! MIGRATE between Dunlin, Redis and Valkey, and to targets that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use tests::client::{Client, Received, Reply};
use tests::observe::{PATIENCE, wait_for};
use tests::process::peak_resident_bytes;
use tests::server::{Server, Target};

/// A reply in one line.
fn said(client: &mut Client, command: &str) -> String {
    let reply = client.call_text(command).unwrap();
    match &reply {
        Reply::Integer(number) => number.to_string(),
        reply => String::from_utf8_lossy(reply.text().unwrap_or(b"nil")).into_owned(),
    }
}

fn dunlin() -> (Server, Client) {
    let server = Server::start(Target::Dunlin, &[("enable-debug-command", "yes")]).unwrap();
    let client = server.connect().unwrap();
    (server, client)
}

/// Data of all types.
const DATA: &[&str] = &[
    "SET text value",
    "SET number 12345 PX 100000000",
    "SETRANGE long 100000 end",
    "RPUSH list a b c 1 2 3",
    "PEXPIRE list 200000000",
    "SADD integers 1 2 3",
    "SADD set a b c",
    "HSET hash f v g w",
    "ZADD zset 1 a 2.5 b inf c",
    "PFADD log a b c d",
    "XADD stream 1-1 f v",
    "XADD stream 2-1 f v g w",
    "XGROUP CREATE stream group 0",
    "XREADGROUP GROUP group reader COUNT 1 STREAMS stream >",
];

const KEYS: &[&str] =
    &["text", "number", "long", "list", "integers", "set", "hash", "zset", "log", "stream"];

/// What tells values apart, with their times to live.
fn digests(client: &mut Client, keys: &[&str]) -> Vec<(Reply, bool)> {
    let of = |key: &&str| {
        let digest = client.call(&["DEBUG", "DIGEST-VALUE", key]).unwrap();
        // The time on the way counts, so the ends differ by a little.
        let Reply::Integer(left) = client.call(&["PTTL", key]).unwrap() else { panic!("no time") };
        assert!(left == -1 || (1..=200_000_000).contains(&left), "{key} {left}");
        (digest, left > 0)
    };
    keys.iter().map(of).collect()
}

#[test]
fn all_types_move_between_all_servers() {
    let pairs = [
        (Target::Dunlin, Target::Reference),
        (Target::Dunlin, Target::Valkey),
        (Target::Dunlin, Target::Dunlin),
        (Target::Reference, Target::Dunlin),
        (Target::Valkey, Target::Dunlin),
    ];
    for (from, to) in pairs {
        let options = [("enable-debug-command", "yes")];
        let [source, target] = [from, to].map(|one| Server::start(one, &options).unwrap());
        let [mut near, mut far] = [&source, &target].map(|one| one.connect().unwrap());
        for line in DATA {
            assert!(!near.call_text(line).unwrap().is_error(), "{line}");
        }
        let mut keys = KEYS.to_vec();
        if from != Target::Valkey && to != Target::Valkey {
            assert_eq!(said(&mut near, "HSET timed f v g w"), "2");
            near.call_text("HPEXPIRE timed 100000000 FIELDS 1 f").unwrap();
            keys.push("timed");
        }
        let before = digests(&mut near, &keys);
        let port = target.port().to_string();
        let move_keys = |near: &mut Client, keys: &[&str]| {
            let begin = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            near.call(&[&begin[..], keys].concat()).unwrap()
        };
        // One in a command of its own, the others and two that are not there together.
        assert_eq!(
            said(&mut near, &format!("MIGRATE 127.0.0.1 {port} text 0 5000")),
            "OK",
            "{from:?} {to:?}"
        );
        assert_eq!(move_keys(&mut near, &["text", "none"]).text(), Some(&b"NOKEY"[..]));
        let rest = [&["none"], &keys[1..], &["nothing"]].concat();
        assert_eq!(move_keys(&mut near, &rest).text(), Some(&b"OK"[..]), "{from:?} {to:?}");
        assert_eq!(said(&mut near, "DBSIZE"), "0");
        assert_eq!(digests(&mut far, &keys), before, "{from:?} {to:?}");
        assert_eq!(said(&mut far, "DBSIZE"), keys.len().to_string());
    }
}

/// Fields of a hash that expire are of no use to a Valkey 8: it says so, and nothing is lost.
#[test]
fn a_value_that_the_target_cannot_load_stays() {
    let (_source, mut near) = dunlin();
    let target = Server::start(Target::Valkey, &[]).unwrap();
    near.call_text("HSET timed f v").unwrap();
    near.call_text("HPEXPIRE timed 100000000 FIELDS 1 f").unwrap();
    near.call_text("SET text value").unwrap();
    let line = format!("MIGRATE 127.0.0.1 {} \"\" 0 5000 KEYS", target.port());
    let words: Vec<&str> = line.split(' ').chain(["timed", "text"]).collect();
    let words: Vec<&str> =
        words.into_iter().map(|word| if word == "\"\"" { "" } else { word }).collect();
    let reply = near.call(&words).unwrap();
    let expected = "ERR Target instance replied with error: ERR DUMP payload version or checksum";
    let text = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
    assert!(reply.is_error() && text.starts_with(expected), "{text}");
    assert_eq!(said(&mut near, "HGET timed f"), "v");
    assert_eq!(said(&mut near, "EXISTS text"), "0", "the other one has moved");
    assert_eq!(said(&mut target.connect().unwrap(), "GET text"), "value");
}

#[test]
fn the_answers_are_those_of_redis() {
    let target = Server::start(Target::Reference, &[]).unwrap();
    let locked = Server::start(Target::Reference, &[("requirepass", "secret")]).unwrap();
    let (port, other) = (target.port(), locked.port());
    let mut far = target.connect().unwrap();
    let mut all = Vec::new();
    for server in [Target::Reference, Target::Dunlin] {
        let server = Server::start(server, &[]).unwrap();
        let mut near = server.connect().unwrap();
        far.call_text("FLUSHALL").unwrap();
        let mut inner = locked.connect().unwrap();
        inner.call_text("AUTH secret").unwrap();
        inner.call_text("FLUSHALL").unwrap();
        let lines = [
            format!("127.0.0.1 {port} k 0 1000"),
            format!("127.0.0.1 {port} k 3 1000"),
            format!("127.0.0.1 {port} k 0 1000 COPY"),
            format!("127.0.0.1 {port} k 0 1000 COPY REPLACE"),
            format!("127.0.0.1 {port} none 0 1000"),
            "127.0.0.1 1 none 0 1000".to_owned(),
            "127.0.0.1 1 none x 1000".to_owned(),
            "127.0.0.1 1 none 0 x".to_owned(),
            "127.0.0.1 1 none 0 -5".to_owned(),
            "127.0.0.1 1 k 0 1000".to_owned(),
            "127.0.0.1 x k 0 1000".to_owned(),
            "nohost.invalid 1 k 0 1000".to_owned(),
            format!("127.0.0.1 {port} k 99 1000"),
            format!("127.0.0.1 {port} k 0 1000 KEYS k"),
            format!("127.0.0.1 {port} k 0 1000 other"),
            format!("127.0.0.1 {port} k 0 1000 AUTH"),
            format!("127.0.0.1 {port} k 0 1000 AUTH2 a"),
            format!("127.0.0.1 {other} k 0 1000"),
            format!("127.0.0.1 {other} k 0 1000 AUTH wrong"),
            format!("127.0.0.1 {other} k 0 1000 AUTH2 nobody secret"),
            format!("127.0.0.1 {other} k 0 1000 AUTH secret COPY"),
            format!("127.0.0.1 {other} k 0 1000 AUTH2 default secret"),
            format!("127.0.0.1 {other} k 0 1000 REPLACE AUTH2 default secret"),
            format!("127.0.0.1 {other} k 0"),
        ];
        let mut replies = Vec::new();
        for line in lines {
            near.call_text("SET k value").unwrap();
            let reply = said(&mut near, &format!("MIGRATE {line}"));
            replies.push(format!("{line}: {reply} {}", said(&mut near, "EXISTS k")));
        }
        let errors = said(&mut near, "INFO errorstats");
        replies.extend(errors.lines().skip(1).map(str::to_owned));
        all.push(replies);
    }
    assert_eq!(all[0], all[1]);
}

/// A target whose answers a test gives. What it has received of the connection is told first.
struct Puppet {
    port: u16,
    received: Receiver<Vec<u8>>,
    answers: Sender<Option<Vec<u8>>>,
}

impl Puppet {
    /// It answers the SELECT by itself.
    fn new() -> Puppet {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, received) = mpsc::channel();
        let (answers, told) = mpsc::channel::<Option<Vec<u8>>>();
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &tell, &told);
            }
        });
        Puppet { port, received, answers }
    }

    /// Waits until a RESTORE has begun to arrive.
    fn wait_for_key(&self) {
        let bytes = self.received.recv_timeout(PATIENCE).unwrap();
        assert!(bytes.windows(7).any(|part| part == b"RESTORE"), "{}", bytes.escape_ascii());
    }

    fn answer(&self, bytes: &[u8]) {
        self.answers.send(Some(bytes.to_vec())).unwrap();
    }

    fn close(&self) {
        self.answers.send(None).unwrap();
    }
}

fn serve(mut stream: TcpStream, tell: &Sender<Vec<u8>>, told: &Receiver<Option<Vec<u8>>>) {
    let mut piece = [0; 64 * 1024];
    let mut is_first = true;
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        if is_first {
            is_first = false;
            stream.write_all(b"+OK\r\n").unwrap();
            continue;
        }
        let _ = tell.send(piece[..count].to_vec());
        while let Ok(Some(bytes)) = told.recv() {
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
        return;
    }
}

/// Sends MIGRATE of one key from a connection of its own, which answers later.
fn begin(server: &Server, port: u16, rest: &str) -> Client {
    let mut client = server.connect().unwrap();
    let line = format!("MIGRATE 127.0.0.1 {port} {rest}");
    client.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
    client
}

fn answer_of(mut client: Client) -> String {
    let Received::Reply(reply) = client.receive().unwrap() else { panic!("no reply") };
    String::from_utf8_lossy(reply.text().unwrap()).into_owned()
}

#[test]
fn only_writes_to_a_key_on_its_way_wait() {
    let (server, mut near) = dunlin();
    near.call_text("SET k 1").unwrap();
    let puppet = Puppet::new();
    let moving = begin(&server, puppet.port, "k 0 60000");
    puppet.wait_for_key();
    // Everybody reads, and writes something else.
    assert_eq!(said(&mut near, "GET k"), "1");
    assert_eq!(said(&mut near, "INCR other"), "1");
    let waiting: Vec<Client> = [
        &["INCR", "k"][..],
        &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"],
        &["MSET", "a", "1", "k", "5"],
        &["MIGRATE", "127.0.0.1", "1", "k", "0", "1000"],
    ]
    .iter()
    .map(|words| {
        let mut client = server.connect().unwrap();
        client.send(words).unwrap();
        client
    })
    .collect();
    let mut transaction = server.connect().unwrap();
    for words in [&["MULTI"][..], &["SET", "a", "2"], &["EXEC"]] {
        transaction.call(words).unwrap();
    }
    wait_for("four clients wait", || {
        let list = said(&mut near, "CLIENT LIST");
        let idle = |line: &&str| {
            ["cmd=incr ", "cmd=eval ", "cmd=mset "].iter().any(|own| line.contains(own))
        };
        list.lines().filter(idle).count() == 3
    });
    for _ in 0..50 {
        assert_eq!(said(&mut near, "GET k"), "1");
        assert_eq!(said(&mut near, "GET a"), "2");
    }
    puppet.close();
    assert_eq!(answer_of(moving), "IOERR error or timeout reading to target instance");
    // All of them go on, in whatever order.
    for mut client in waiting {
        client.receive().unwrap();
    }
    assert_eq!(said(&mut near, "EXISTS k"), "1");
}

#[test]
fn hostile_targets_cost_nothing() {
    let (server, mut near) = dunlin();
    near.call_text("SET k value PX 100000000").unwrap();
    let unclear = "IOERR the target instance does not answer as Redis does";
    let reading = "IOERR error or timeout reading to target instance";
    let long = vec![b'x'; 1024 * 1024];
    let huge = format!("-{}\r\n", "y".repeat(60_000));
    let cases: [(&[u8], &str); 8] = [
        (b"garbage\r\n", unclear),
        (b"$1000000000000\r\n", unclear),
        (b"*1000000000\r\n*1000000000\r\n", unclear),
        (b"+OK\n", unclear),
        (&long, unclear),
        (b"+O", reading),
        (b"", reading),
        (huge.as_bytes(), "ERR Target instance replied with error: yyy"),
    ];
    for (bytes, expected) in cases {
        let puppet = Puppet::new();
        let moving = begin(&server, puppet.port, "k 0 60000");
        puppet.wait_for_key();
        puppet.answer(bytes);
        puppet.close();
        let answer = answer_of(moving);
        assert!(
            answer.starts_with(expected),
            "{}: {answer}",
            bytes[..bytes.len().min(50)].escape_ascii()
        );
        assert_eq!(said(&mut near, "GET k"), "value");
        assert_eq!(said(&mut near, "APPEND k x"), "6", "it is held no more");
        near.call_text("SET k value KEEPTTL").unwrap();
    }
    // Silence.
    let puppet = Puppet::new();
    assert_eq!(answer_of(begin(&server, puppet.port, "k 0 50")), reading);
    // One that reads nothing of a value that does not fit into its buffers.
    near.call_text("CONFIG SET rdbcompression no").unwrap();
    near.call_text("SETRANGE large 50000000 x").unwrap();
    let answer = answer_of(begin(&server, Puppet::new().port, "large 0 50"));
    assert_eq!(answer, "IOERR error or timeout writing to target instance");
    assert_eq!(said(&mut near, "STRLEN large"), "50000001");
    // The server itself.
    let own = server.port();
    for rest in ["k 0 60000", "k 0 60000 REPLACE", "k 1 60000"] {
        assert_eq!(answer_of(begin(&server, own, rest)), "ERR The target instance is this server");
    }
    assert_eq!(said(&mut near, "GET k"), "value");
    assert_eq!(said(&mut near, "DBSIZE"), "2");
}

#[test]
fn what_changes_a_key_without_its_name_is_not_lost() {
    let changed = "ERR Keys were changed while they were moved";
    let script = "return redis.call('SET', 'k', 'new')";
    for (words, expected) in [
        (&["FLUSHALL"][..], "nil"),
        (&["EVAL", script, "0"], "new"),
        (&["SWAPDB", "0", "1"], "other"),
    ] {
        let (server, mut near) = dunlin();
        near.call_text("SET k old").unwrap();
        near.call_text("SELECT 1").unwrap();
        near.call_text("SET k other").unwrap();
        near.call_text("SELECT 0").unwrap();
        let puppet = Puppet::new();
        let moving = begin(&server, puppet.port, "k 0 60000");
        puppet.wait_for_key();
        assert!(!near.call(words).unwrap().is_error());
        puppet.answer(b"+OK\r\n");
        assert!(answer_of(moving).starts_with(changed), "{words:?}");
        assert_eq!(said(&mut near, "GET k"), expected, "{words:?}");
    }
}

/// The time of a field may be over while its hash is on its way.
#[test]
fn a_field_that_expires_on_the_way_is_no_change() {
    let (server, mut near) = dunlin();
    let puppet = Puppet::new();
    for command in ["HSET k a 1 b 2", "HPEXPIRE k 300 FIELDS 1 a"] {
        assert!(!near.call_text(command).unwrap().is_error());
    }
    let moving = begin(&server, puppet.port, "k 0 60000");
    puppet.wait_for_key();
    // Keys that expire later are gone by then.
    near.call_text("SET later 1 PX 600").unwrap();
    wait_for("the time is over", || said(&mut near, "DBSIZE") == "1");
    puppet.answer(b"+OK\r\n");
    assert_eq!(answer_of(moving), "OK");
    assert_eq!(said(&mut near, "EXISTS k"), "0");
}

/// Clients that have gone wait for nothing, however much time they gave.
#[test]
fn a_silent_target_keeps_nothing_from_others() {
    let (server, mut near) = dunlin();
    let (other, mut far) = dunlin();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let clients: Vec<Client> = (0..12)
        .map(|number| {
            near.call_text(&format!("SET k{number} 1")).unwrap();
            begin(&server, port, &format!("k{number} 0 600000"))
        })
        .collect();
    near.call_text("SET own 1").unwrap();
    assert_eq!(answer_of(begin(&server, other.port(), "own 0 60000")), "OK");
    assert_eq!(said(&mut far, "GET own"), "1");
    drop(clients);
    // Nobody holds the keys any more.
    assert_eq!(said(&mut near, "SET k1 2"), "OK");
    assert_eq!(answer_of(begin(&server, other.port(), "k2 0 60000")), "OK");
}

#[test]
fn a_content_type_goes_with_its_key() {
    for (target, known) in [(Target::Dunlin, "text/html"), (Target::Reference, "")] {
        let (server, mut near) = dunlin();
        let other = Server::start(target, &[]).unwrap();
        let mut far = other.connect().unwrap();
        for command in ["SET page <p>", "CONTENTTYPE page text/html", "SET plain 1"] {
            assert!(!near.call_text(command).unwrap().is_error());
        }
        let moved = answer_of(begin(&server, other.port(), " 0 60000 KEYS plain page"));
        assert_eq!(moved, "OK", "{target:?}");
        assert_eq!(said(&mut near, "DBSIZE"), "0");
        assert_eq!(said(&mut far, "GET page"), "<p>");
        if !known.is_empty() {
            assert_eq!(said(&mut far, "CONTENTTYPE page"), known);
            assert_eq!(said(&mut far, "CONTENTTYPE plain"), "nil");
        }
        // What stays at the target keeps its own.
        near.call_text("SET page <q>").unwrap();
        near.call_text("CONTENTTYPE page text/plain").unwrap();
        let refused = answer_of(begin(&server, other.port(), "page 0 60000"));
        assert!(refused.contains("BUSYKEY"), "{refused}");
        if !known.is_empty() {
            assert_eq!(said(&mut far, "CONTENTTYPE page"), known);
        }
    }
}

/// Clients count up keys while these move. Each key begins anew at the source after that, so both
/// numbers together are the number of answers.
#[test]
fn no_write_is_lost_while_keys_move() {
    let (source, mut near) = dunlin();
    let target = Server::start(Target::Reference, &[]).unwrap();
    let mut far = target.connect().unwrap();
    for round in 0..60 {
        let keys: Vec<String> = (0..3).map(|key| format!("{round}:{key}")).collect();
        let ended = AtomicBool::new(false);
        let counted: Vec<i64> = thread::scope(|scope| {
            let count = |number: usize| {
                let (keys, ended, source) = (&keys, &ended, &source);
                scope.spawn(move || {
                    let mut client = source.connect().unwrap();
                    let mut counted = 0;
                    while !ended.load(SeqCst) {
                        let key = &keys[number % 3];
                        let reply = match number / 3 {
                            0 => client.call(&["INCR", key]).unwrap(),
                            _ => {
                                client.call(&["MULTI"]).unwrap();
                                client.call(&["INCR", key]).unwrap();
                                client.call(&["EXEC"]).unwrap()
                            }
                        };
                        assert!(!reply.is_error(), "{reply:?}");
                        counted += 1;
                    }
                    counted
                })
            };
            let counting: Vec<_> = (0..6).map(count).collect();
            wait_for("all keys are there", || {
                let words = [&["EXISTS".to_owned()], &keys[..]].concat();
                near.call(&words).unwrap() == Reply::Integer(3)
            });
            let port = target.port().to_string();
            let begin = ["MIGRATE", "127.0.0.1", &port, "", "0", "60000", "KEYS"];
            let words: Vec<&str> =
                begin.into_iter().chain(keys.iter().map(String::as_str)).collect();
            assert_eq!(near.call(&words).unwrap().text(), Some(&b"OK"[..]));
            ended.store(true, SeqCst);
            let counts: Vec<i64> = counting.into_iter().map(|own| own.join().unwrap()).collect();
            (0..3).map(|key| counts[key] + counts[key + 3]).collect()
        });
        for (key, counted) in keys.iter().zip(counted) {
            let value = |client: &mut Client| {
                said(client, &format!("GET {key}")).parse::<i64>().unwrap_or(0)
            };
            assert_eq!(value(&mut near) + value(&mut far), counted, "{key}");
            assert!(value(&mut far) > 0);
        }
    }
}

#[test]
fn what_was_moved_stays_away_after_a_restart() {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let mut source = Server::start(Target::Dunlin, &options).unwrap();
    let target = Server::start(Target::Dunlin, &[]).unwrap();
    let mut near = source.connect().unwrap();
    near.call_text("MSET a 1 b 2").unwrap();
    let line = format!("MIGRATE 127.0.0.1 {} a 0 5000", target.port());
    assert_eq!(said(&mut near, &line), "OK");
    source.kill();
    source.start_again().unwrap();
    let mut near = source.connect().unwrap();
    assert_eq!((said(&mut near, "EXISTS a"), said(&mut near, "GET b")), ("0".into(), "2".into()));
    assert_eq!(said(&mut target.connect().unwrap(), "GET a"), "1");
}

#[test]
fn a_large_value_is_in_memory_twice_at_most() {
    const SIZE: u64 = 200 * 1024 * 1024;
    let (source, mut near) = dunlin();
    let (target, mut far) = dunlin();
    near.call_text(&format!("SETRANGE large {} x", SIZE - 1)).unwrap();
    near.call_text("CONFIG SET rdbcompression no").unwrap();
    let line = format!("MIGRATE 127.0.0.1 {} large 0 60000", target.port());
    assert_eq!(said(&mut near, &line), "OK");
    assert_eq!(said(&mut near, "EXISTS large"), "0");
    assert_eq!(said(&mut far, "STRLEN large"), SIZE.to_string());
    let peak = peak_resident_bytes(source.pid()).unwrap();
    assert!(peak < SIZE * 5 / 2, "{peak}");
}

#[test]
fn transactions_and_scripts_move_nothing() {
    let (_server, mut near) = dunlin();
    near.call_text("SET k value").unwrap();
    near.call_text("MULTI").unwrap();
    let refused = near.call_text("MIGRATE 127.0.0.1 1 k 0 1000").unwrap();
    assert_eq!(refused.text(), Some(&b"ERR Command not allowed inside a transaction"[..]));
    assert!(near.call_text("EXEC").unwrap().is_error());
    let script = "return redis.call('MIGRATE', '127.0.0.1', '1', KEYS[1], '0', '1000')";
    assert!(near.call(&["EVAL", script, "1", "k"]).unwrap().is_error());
    assert_eq!(said(&mut near, "GET k"), "value");
}
