//! Dunlin as the replica of real servers: what it gets, what it shows, and what it survives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tests::client::{Client, Reply};
use tests::peers;
use tests::proxy::Proxy;
use tests::replication::{Traffic, first_difference};
use tests::server::{Server, Target};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn text(client: &mut Client, command: &str) -> String {
    let reply = client.call_text(command).unwrap();
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// A field of INFO.
fn field(client: &mut Client, section: &str, name: &str) -> String {
    let page = text(client, &format!("INFO {section}"));
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn follow(replica: &Server, port: u16) -> Client {
    let mut client = replica.connect().unwrap();
    assert_eq!(text(&mut client, &format!("REPLICAOF 127.0.0.1 {port}")), "OK");
    client
}

/// Waits until a replica has all that its primary has written.
fn catch_up(primary: &mut Client, replica: &mut Client) {
    wait_until("the replica catches up", || {
        let written = field(primary, "replication", "master_repl_offset");
        field(replica, "replication", "master_link_status") == "up"
            && field(replica, "replication", "slave_repl_offset") == written
    });
}

/// The servers have the same data.
fn assert_same(primary: &mut Client, replica: &mut Client, server: &Server) {
    catch_up(primary, replica);
    // What has expired at the primary and is still there counts for it, and not for the replica.
    let begun = Instant::now();
    let mut difference = || first_difference(primary, replica).unwrap();
    while let Some(different) = difference() {
        assert!(begun.elapsed() < PATIENCE / 4, "{different}\n{}", server.log_tail());
        sleep(Duration::from_millis(100));
    }
    let sizes = [primary, replica].map(|client| {
        let page = text(client, "INFO keyspace");
        let fields = page.lines().filter(|line| line.starts_with("db"));
        let count = |line: &str| line.split(',').take(2).collect::<Vec<_>>().join(",");
        fields.map(count).collect::<Vec<_>>()
    });
    assert_eq!(sizes[0], sizes[1]);
}

/// Data of all types, some of which expires.
const DATA: &[&str] = &[
    "SET text value",
    "SET number 12345",
    "SET later value PX 100000000",
    "SETRANGE long 100000 end",
    "RPUSH list a b c 1 2 3",
    "SADD integers 1 2 3",
    "SADD set a b c",
    "HSET hash f v g w",
    "HSET timed f v g w h x",
    "HPEXPIRE timed 100000000 FIELDS 2 f g",
    "ZADD zset 1 a 2.5 b inf c",
    "GEOADD places 13.361389 38.115556 Palermo",
    "PFADD log a b c d",
    "XADD stream 1-1 f v",
    "XADD stream 2-1 f v g w",
    "XGROUP CREATE stream group 0",
    "XREADGROUP GROUP group reader COUNT 1 STREAMS stream >",
    "EXPIRE list 100000",
    "SELECT 3",
    "SET other database",
    "SELECT 0",
];

const LIBRARY: &str = "#!lua name=own\nredis.register_function{function_name='five', \
                       callback=function() return 5 end, flags={'no-writes'}}";

fn fill(client: &mut Client) {
    let has_timed_fields = !client.call_text("HTTL none FIELDS 1 f").unwrap().is_error();
    for line in DATA.iter().filter(|line| has_timed_fields || !line.starts_with("HPEXPIRE")) {
        let reply = client.call_text(line).unwrap();
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    for number in 0..2000 {
        client.send(&["ZADD", "many", &number.to_string(), &format!("member:{number}")]).unwrap();
        client.send(&["HSET", "fields", &format!("f{number}"), "v"]).unwrap();
        client.send(&["RPUSH", "elements", &format!("element number {number}")]).unwrap();
    }
    for _ in 0..6000 {
        client.receive().unwrap();
    }
    client.call(&["FUNCTION", "LOAD", LIBRARY]).unwrap();
}

/// The servers that Dunlin follows.
fn primaries() -> Vec<Target> {
    let mut primaries = vec![Target::Reference, Target::Valkey];
    if peers::newest("valkey-server").exists() {
        primaries.push(Target::NewestValkey);
    }
    primaries
}

#[test]
fn all_data_arrives() {
    for target in primaries() {
        for diskless in ["yes", "no"] {
            for load in ["disabled", "swapdb"] {
                let options = [("repl-diskless-sync", diskless), ("repl-diskless-sync-delay", "0")];
                let primary = Server::start(target, &options).unwrap();
                let mut writer = primary.connect().unwrap();
                fill(&mut writer);
                if target == Target::NewestValkey {
                    // It has commands of its own for that, and the same ones too.
                    writer.call_text("PERSIST list").unwrap();
                }
                let replica = Server::start(Target::Dunlin, &[("repl-diskless-load", load)]);
                let replica = replica.unwrap();
                let mut reader = replica.connect().unwrap();
                reader.call_text("SET old data").unwrap();
                let mut reader = follow(&replica, primary.port());
                assert_same(&mut writer, &mut reader, &replica);
                for line in ["PEXPIRETIME later", "HPEXPIRETIME timed FIELDS 3 f g h", "GET old"] {
                    if target == Target::Valkey && line.starts_with("HP") {
                        // Valkey 8 has no such times.
                        continue;
                    }
                    let (one, other) =
                        (writer.call_text(line).unwrap(), reader.call_text(line).unwrap());
                    assert_eq!(one, other, "{line}");
                }
                assert_eq!(reader.call_text("FCALL_RO five 0").unwrap(), Reply::Integer(5));
                // The stream goes on.
                writer.call_text("SET after sync").unwrap();
                writer.call_text("SELECT 5").unwrap();
                writer.call_text("SET five 5").unwrap();
                writer.call_text("SELECT 0").unwrap();
                assert_same(&mut writer, &mut reader, &replica);
                assert!(!replica.log().contains("CRITICAL"), "{}", replica.log_tail());
            }
        }
    }
}

#[test]
fn random_commands_lead_to_the_same_data() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let mut writer = primary.connect().unwrap();
    let mut reader = follow(&replica, primary.port());
    for seed in 0..4 {
        Traffic::new(seed).write(&mut writer, 4000).unwrap();
        assert_same(&mut writer, &mut reader, &replica);
    }
    assert!(!replica.log().contains("CRITICAL"), "{}", replica.log_tail());
    assert_eq!(field(&mut writer, "stats", "sync_full"), "1");
}

#[test]
fn a_link_that_is_cut_goes_on_where_it_was() {
    for target in [Target::Reference, Target::Valkey] {
        let options = [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "64mb")];
        let primary = Server::start(target, &options).unwrap();
        let proxy = Proxy::start(primary.port()).unwrap();
        let replica = Server::start(Target::Dunlin, &[]).unwrap();
        let mut writer = primary.connect().unwrap();
        fill(&mut writer);
        let mut reader = follow(&replica, proxy.port());
        catch_up(&mut writer, &mut reader);
        let mut traffic = Traffic::new(7);
        for round in 0..20 {
            // In the middle of a transaction, half of the time.
            writer.call_text("MULTI").unwrap();
            for number in 0..500 {
                writer.call(&["RPUSH", "together", &format!("{round}:{number}")]).unwrap();
            }
            if round % 2 == 0 {
                proxy.cut();
            }
            writer.call_text("EXEC").unwrap();
            traffic.write(&mut writer, 100).unwrap();
            proxy.cut();
            traffic.write(&mut writer, 50).unwrap();
            let length = reader.call_text("LLEN together").unwrap();
            if let Reply::Integer(length) = length {
                assert_eq!(length % 500, 0, "a transaction is applied as a whole");
            }
            catch_up(&mut writer, &mut reader);
            if round % 5 == 4 {
                assert_same(&mut writer, &mut reader, &replica);
            }
            writer.call_text("DEL together").unwrap();
        }
        assert_same(&mut writer, &mut reader, &replica);
        assert_eq!(field(&mut writer, "stats", "sync_full"), "1", "{}", replica.log_tail());
        let partial: u32 = field(&mut writer, "stats", "sync_partial_ok").parse().unwrap();
        assert!(partial >= 15, "{partial} partial syncs");
    }
}

#[test]
fn a_primary_that_comes_back_is_followed_again() {
    let mut primary =
        Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let mut writer = primary.connect().unwrap();
    fill(&mut writer);
    let mut reader = follow(&replica, primary.port());
    assert_same(&mut writer, &mut reader, &replica);
    writer.call_text("SAVE").unwrap();
    primary.kill();
    wait_until("the link is down", || {
        field(&mut reader, "replication", "master_link_status") == "down"
    });
    assert_eq!(text(&mut reader, "GET text"), "value", "old data are served");
    assert_ne!(field(&mut reader, "replication", "master_link_down_since_seconds"), "-1");
    reader.call_text("CONFIG SET replica-serve-stale-data no").unwrap();
    let down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    for line in ["GET text", "PING", "EVAL return(1) 0"] {
        assert_eq!(text(&mut reader, line), down, "{line}");
    }
    primary.start_again().unwrap();
    let mut writer = primary.connect().unwrap();
    writer.call_text("SET again 1").unwrap();
    assert_same(&mut writer, &mut reader, &replica);
    assert_eq!(text(&mut reader, "GET again"), "1");
}

#[test]
fn a_replica_leaves_writes_and_expiry_to_its_primary() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let mut writer = primary.connect().unwrap();
    let mut reader = follow(&replica, primary.port());
    catch_up(&mut writer, &mut reader);
    let refused = "READONLY You can't write against a read only replica.";
    for line in ["SET k v", "FLUSHALL", "LPOP list", "SWAPDB 0 1", "BLPOP list 1"] {
        assert_eq!(text(&mut reader, line), refused, "{line}");
    }
    let script = reader.call(&["EVAL", "return redis.call('set', 'k', 'v')", "1", "k"]).unwrap();
    assert!(String::from_utf8_lossy(script.text().unwrap()).starts_with(refused));
    assert_eq!(text(&mut reader, "MULTI"), "OK");
    assert_eq!(text(&mut reader, "SET k v"), refused);
    let discarded = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(text(&mut reader, "EXEC"), discarded);
    assert!(text(&mut reader, "WAIT 0 0").starts_with("ERR WAIT cannot be used with replica"));
    // What has expired is hidden, and stays until the primary deletes it.
    writer.call_text("DEBUG SET-ACTIVE-EXPIRE 0").unwrap();
    writer.call_text("SET short v PX 50").unwrap();
    writer.call_text("HSET h f v g w").unwrap();
    writer.call_text("HPEXPIRE h 50 FIELDS 1 f").unwrap();
    catch_up(&mut writer, &mut reader);
    sleep(Duration::from_millis(200));
    assert_eq!(reader.call_text("GET short").unwrap(), Reply::Nil);
    assert_eq!(reader.call_text("HGET h f").unwrap(), Reply::Nil);
    assert_eq!(reader.call_text("DBSIZE").unwrap(), Reply::Integer(2));
    writer.call_text("GET short").unwrap();
    writer.call_text("DEBUG SET-ACTIVE-EXPIRE 1").unwrap();
    wait_until("the primary's deletions arrive", || {
        reader.call_text("DBSIZE").unwrap() == Reply::Integer(1)
    });
    assert_same(&mut writer, &mut reader, &replica);
    // Readers who wait are woken, and a transaction that watches fails.
    let mut waiting = replica.connect().unwrap();
    waiting.send(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]).unwrap();
    let mut watching = replica.connect().unwrap();
    for line in ["WATCH watched", "MULTI"] {
        watching.call_text(line).unwrap();
    }
    sleep(Duration::from_millis(100));
    writer.call_text("XADD s 1-1 f v").unwrap();
    writer.call_text("SET watched v").unwrap();
    assert!(matches!(waiting.receive().unwrap(), tests::client::Received::Reply(_)));
    catch_up(&mut writer, &mut reader);
    assert_eq!(watching.call_text("EXEC").unwrap(), Reply::NilArray);
    // A writable replica takes writes of its own.
    reader.call_text("CONFIG SET replica-read-only no").unwrap();
    assert_eq!(text(&mut reader, "SET own v"), "OK");
}

#[test]
fn a_promoted_replica_keeps_its_data() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let mut writer = primary.connect().unwrap();
    fill(&mut writer);
    let mut reader = follow(&replica, primary.port());
    assert_same(&mut writer, &mut reader, &replica);
    let history = field(&mut writer, "replication", "master_replid");
    assert_eq!(field(&mut reader, "replication", "master_replid"), history);
    let digest = text(&mut reader, "DEBUG DIGEST");
    let offset: u64 = field(&mut reader, "replication", "slave_repl_offset").parse().unwrap();
    // As Sentinel sends it.
    for line in ["MULTI", "SLAVEOF NO ONE", "CONFIG REWRITE", "CLIENT KILL TYPE normal"] {
        reader.call_text(line).unwrap();
    }
    reader.call_text("CLIENT KILL TYPE pubsub").unwrap();
    let replies = reader.call_text("EXEC").unwrap().elements().unwrap();
    assert_eq!(replies[0], Reply::Status(b"OK".to_vec()));
    assert_eq!(text(&mut reader, "DEBUG DIGEST"), digest);
    assert_eq!(field(&mut reader, "replication", "role"), "master");
    assert_eq!(field(&mut reader, "replication", "master_replid2"), history);
    assert!(
        field(&mut reader, "replication", "master_repl_offset").parse::<u64>().unwrap() >= offset
    );
    writer.call_text("SET text other").unwrap();
    assert_eq!(text(&mut reader, "SET own v"), "OK");
    sleep(Duration::from_millis(300));
    assert_eq!(text(&mut reader, "GET text"), "value", "the old primary has no say any more");
    // It may become a replica again.
    let mut reader = follow(&replica, primary.port());
    assert_same(&mut writer, &mut reader, &replica);
    assert_eq!(reader.call_text("GET own").unwrap(), Reply::Nil);
}

#[test]
fn an_append_only_file_of_a_replica_has_what_it_took_in() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let mut replica = Server::start(Target::Dunlin, &[("appendonly", "yes")]).unwrap();
    let mut writer = primary.connect().unwrap();
    let mut reader = replica.connect().unwrap();
    reader.call_text("SET old data").unwrap();
    fill(&mut writer);
    let mut reader = follow(&replica, primary.port());
    assert_same(&mut writer, &mut reader, &replica);
    wait_until("the file of the new data is there", || {
        field(&mut reader, "persistence", "aof_rewrite_in_progress") == "0"
            && field(&mut reader, "persistence", "aof_rewrite_scheduled") == "0"
    });
    Traffic::new(3).write(&mut writer, 1000).unwrap();
    assert_same(&mut writer, &mut reader, &replica);
    let digest = text(&mut reader, "DEBUG DIGEST");
    reader.call_text("REPLICAOF NO ONE").unwrap();
    assert_eq!(text(&mut reader, "DEBUG DIGEST"), digest);
    assert_eq!(replica.terminate().unwrap(), Some(0));
    replica.start_again().unwrap();
    let mut reader = replica.connect().unwrap();
    assert_eq!(text(&mut reader, "DEBUG DIGEST"), digest);
}

/// A primary that answers the handshake, and then sends this.
fn false_primary(answers: Vec<Vec<u8>>) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::<AtomicU64>::default();
    let served = Arc::clone(&count);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let number = served.fetch_add(1, SeqCst) as usize;
            let answer = answers[number % answers.len()].clone();
            let _ = socket.set_read_timeout(Some(Duration::from_millis(500)));
            let mut buffer = [0; 4096];
            let mut asked = Vec::new();
            // PING, four or five words of REPLCONF, PSYNC.
            while let Ok(read) = socket.read(&mut buffer) {
                if read == 0 {
                    break;
                }
                asked.extend_from_slice(&buffer[..read]);
                if asked.windows(5).any(|word| word == b"PSYNC") {
                    break;
                }
                let _ = socket.write_all(b"+OK\r\n");
            }
            let _ = socket.write_all(&answer);
            let _ = socket.read(&mut buffer);
        }
    });
    (port, count)
}

#[test]
fn what_no_primary_says_costs_a_line_of_the_log() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let full = |rest: &[u8]| [format!("+FULLRESYNC {id} 0\r\n").as_bytes(), rest].concat();
    let empty = b"REDIS0012\xff\0\0\0\0\0\0\0\0";
    let whole = full(&[format!("${}\r\n", empty.len()).as_bytes(), empty].concat());
    let follows = |rest: &[u8]| [&whole[..], rest].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"+FULLRESYNC x\r\n".to_vec(), "a full sync of no history"),
        (full(b"$99999999999999999999999\r\n"), "no file begins with this line"),
        (full(b"$9223372036854775807\r\nREDIS0012"), "the connection is lost"),
        (full(b"$20\r\nnonsense and nonsense"), "Wrong signature trying to load DB"),
        (full(b"$9\r\nREDIS9999"), "Can't handle RDB format version 9999"),
        (full(b"$16\r\nREDIS0012\x63\x03key\x01v"), "Unknown RDB encoding type 99"),
        (full(b"-ERR no memory\r\n"), "it refuses: ERR no memory"),
        (full(&vec![b'x'; 100_000]), "a line that does not end"),
        (b"-NOMASTERLINK Can't SYNC\r\n".to_vec(), "it cannot yet: NOMASTERLINK"),
        (follows(b"*1\r\n$99999999999\r\n"), "no length of a stream"),
        (follows(b"GET / HTTP/1.1\r\n"), "'*' was expected"),
        (follows(b"*1\r\n$4\r\nEXEC\r\n"), "EXEC without MULTI"),
    ];
    for (answer, expected) in cases {
        let replica = Server::start(Target::Dunlin, &[]).unwrap();
        let mut client = replica.connect().unwrap();
        client.call_text("SET own data").unwrap();
        let (port, count) = false_primary(vec![answer.clone()]);
        let mut client = follow(&replica, port);
        wait_until(expected, || replica.log().contains(expected));
        let kept = text(&mut client, "GET own");
        let is_taken_in = answer.starts_with(&whole);
        assert_eq!(kept == "data", !is_taken_in, "{expected}");
        sleep(Duration::from_millis(1500));
        assert!(count.load(SeqCst) < 8, "{expected}: it tries again and again");
        assert_eq!(text(&mut client, "REPLICAOF NO ONE"), "OK");
        assert_eq!(text(&mut client, "SET k v"), "OK");
    }
}

#[test]
fn a_password_is_shown_and_a_wrong_one_is_logged() {
    let options = [("requirepass", "secret"), ("repl-diskless-sync-delay", "0")];
    let primary = Server::start(Target::Reference, &options).unwrap();
    let mut writer = primary.connect().unwrap();
    assert_eq!(text(&mut writer, "AUTH secret"), "OK");
    writer.call_text("SET k v").unwrap();
    let replica = Server::start(Target::Dunlin, &[("masterauth", "wrong")]).unwrap();
    let mut reader = follow(&replica, primary.port());
    wait_until("the wrong password is refused", || replica.log().contains("AUTH: WRONGPASS"));
    assert_eq!(field(&mut reader, "replication", "master_link_down_since_seconds"), "-1");
    reader.call_text("CONFIG SET masterauth secret").unwrap();
    assert_same(&mut writer, &mut reader, &replica);
    assert_eq!(text(&mut reader, "GET k"), "v");
    let role = reader.call_text("ROLE").unwrap().elements().unwrap();
    assert_eq!(role[0], Reply::Bulk(b"slave".to_vec()));
    assert_eq!(role[3], Reply::Bulk(b"connected".to_vec()));
    let pair = reader.call_text("CONFIG GET replicaof").unwrap().elements().unwrap();
    assert_eq!(pair[1], Reply::Bulk(format!("127.0.0.1 {}", primary.port()).into_bytes()));
    // The primary knows where its replica is.
    let shown = field(&mut writer, "replication", "slave0");
    assert!(shown.contains(&format!("port={}", replica.port())), "{shown}");
}
