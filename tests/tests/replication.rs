//! Dunlin as the replica of real servers: what it gets, what it shows, and what it survives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

use std::sync::atomic::Ordering::SeqCst;
use std::thread::sleep;
use std::time::Duration;

use tests::client::{Client, Received, Reply};
use tests::false_primary::{EMPTY_FILE, FalseLink, FalsePrimary, HISTORY, full_sync};
use tests::observe::wait_for;
use tests::peers;
use tests::proxy::Proxy;
use tests::replication::{Traffic, catch_up_between, check_alike_between};
use tests::server::{Server, Target, free_port};

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
    tests::replication::follow(replica, port).unwrap();
    replica.connect().unwrap()
}

/// Waits until a replica has all that its primary has written.
fn catch_up(primary: &mut Client, replica: &mut Client) {
    catch_up_between(primary, replica).unwrap();
}

/// The servers have the same data.
fn assert_same(primary: &mut Client, replica: &mut Client, server: &Server) {
    if let Err(error) = check_alike_between(primary, replica) {
        panic!("{error:#}\n{}", server.log_tail());
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
fn a_node_of_redis_that_takes_over_a_slot_is_followed() {
    let nodes = [(); 2].map(|()| {
        let bus = free_port().unwrap().to_string();
        let options = [("cluster-enabled", "yes"), ("cluster-port", &*bus)];
        let options = [&options[..], &[("repl-diskless-sync-delay", "0")]].concat();
        (Server::start(Target::Reference, &options).unwrap(), bus)
    });
    let [(giver, giver_bus), (taker, _)] = nodes;
    let (mut from, mut to) = (giver.connect().unwrap(), taker.connect().unwrap());
    let mut replica = Server::start(Target::Dunlin, &[("appendonly", "yes")]).unwrap();
    let mut reader = follow(&replica, taker.port());
    let [giver_name, taker_name] = [&mut from, &mut to].map(|node| text(node, "CLUSTER MYID"));
    assert_eq!(text(&mut from, "CLUSTER ADDSLOTSRANGE 0 16383"), "OK");
    let meet = format!("CLUSTER MEET 127.0.0.1 {} {giver_bus}", giver.port());
    wait_for("the nodes know each other and their slots", || {
        // One that is not answered in time is forgotten.
        let has_met = text(&mut to, &meet) == "OK";
        let is_ready = |node: &mut Client, peer: &str| {
            let knows = text(node, "CLUSTER NODES").contains(peer);
            knows && text(node, "CLUSTER INFO").contains("cluster_state:ok")
        };
        has_met && is_ready(&mut from, &taker_name) && is_ready(&mut to, &giver_name)
    });
    assert_eq!(from.call_text("RPUSH {moved}list a b c").unwrap(), Reply::Integer(3));
    assert_eq!(text(&mut from, "SET {moved}later v PX 100000000"), "OK");
    let slot = from.call_text("CLUSTER KEYSLOT {moved}").unwrap();
    let Reply::Integer(slot) = slot else { panic!("{slot:?}") };
    for (node, peer) in
        [(&mut from, ("MIGRATING", taker_name)), (&mut to, ("IMPORTING", giver_name))]
    {
        let (verb, peer) = peer;
        wait_for("the slot is on its way", || {
            text(node, &format!("CLUSTER SETSLOT {slot} {verb} {peer}")) == "OK"
        });
    }
    let port = taker.port().to_string();
    let moved = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    let moved = from.call(&[&moved[..], &["{moved}list", "{moved}later"]].concat()).unwrap();
    assert_eq!(moved.text(), Some(&b"OK"[..]));
    // What is left to live is what goes over, so the node that takes it has a time of its own.
    assert_eq!(text(&mut to, "ASKING"), "OK");
    let expiry = to.call_text("PEXPIRETIME {moved}later").unwrap();
    assert!(matches!(expiry, Reply::Integer(1..)), "{expiry:?}");
    catch_up(&mut to, &mut reader);
    let shows = |replica: &Server| {
        let mut reader = replica.connect().unwrap();
        let log = replica.log_tail();
        assert_eq!(reader.call_text("LLEN {moved}list").unwrap(), Reply::Integer(3), "{log}");
        assert_eq!(reader.call_text("PEXPIRETIME {moved}later").unwrap(), expiry, "{log}");
    };
    shows(&replica);
    // Its file has the commands as they came. It starts as a server of its own.
    assert_eq!(replica.terminate().unwrap(), Some(0));
    replica.start_again().unwrap();
    shows(&replica);
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
    wait_for("the link is down", || {
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
    wait_for("the primary's deletions arrive", || {
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
    assert!(matches!(waiting.receive().unwrap(), Received::Reply(_)));
    catch_up(&mut writer, &mut reader);
    assert_eq!(watching.call_text("EXEC").unwrap(), Reply::NilArray);
    // A writable replica takes writes of its own.
    reader.call_text("CONFIG SET replica-read-only no").unwrap();
    assert_eq!(text(&mut reader, "SET own v"), "OK");
}

/// They began to wait while the replica took writes.
#[test]
fn who_waits_at_a_replica_that_takes_no_more_writes_changes_nothing() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let replica = Server::start(Target::Dunlin, &[("replica-read-only", "no")]).unwrap();
    let mut writer = primary.connect().unwrap();
    for line in ["XADD s 1-1 f v", "XGROUP CREATE s group $"] {
        assert!(!writer.call_text(line).unwrap().is_error(), "{line}");
    }
    let mut reader = follow(&replica, primary.port());
    catch_up(&mut writer, &mut reader);
    let waits = [
        "BLPOP pops 0",
        "BLMOVE list other LEFT RIGHT 0",
        "BZPOPMIN zset 0",
        "XREADGROUP GROUP group consumer BLOCK 0 STREAMS s >",
    ];
    let mut waiting = waits.map(|line| {
        let mut client = replica.connect().unwrap();
        client.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
        client
    });
    wait_for("they wait", || field(&mut reader, "clients", "blocked_clients") == "4");
    assert_eq!(text(&mut reader, "CONFIG SET replica-read-only yes"), "OK");
    for line in ["RPUSH pops x", "RPUSH list x", "ZADD zset 1 m", "XADD s 2-1 f v"] {
        assert!(!writer.call_text(line).unwrap().is_error(), "{line}");
    }
    for (line, client) in waits.iter().zip(&mut waiting) {
        let Received::Reply(reply) = client.receive().unwrap() else { panic!("{line}: closed") };
        let refused = b"READONLY You can't write against a read only replica.";
        assert_eq!(reply, Reply::Error(refused.to_vec()), "{line}");
    }
    catch_up(&mut writer, &mut reader);
    assert_same(&mut writer, &mut reader, &replica);
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
    wait_for("the file of the new data is there", || {
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

/// The words of the next acknowledgement: the offset, and that of the file if there is one.
fn acknowledged(link: &mut FalseLink) -> (u64, Option<u64>) {
    let words = link.next_command().unwrap();
    assert_eq!(words[..2], ["REPLCONF", "ACK"], "{words:?}");
    let synced = words.get(3).map(|word| {
        assert_eq!((word.as_str(), words.len()), ("FACK", 5), "{words:?}");
        words[4].parse().unwrap()
    });
    (words[2].parse().unwrap(), synced)
}

#[test]
fn a_replica_says_what_its_file_has() {
    for policy in ["always", "everysec"] {
        let options = [("appendonly", "yes"), ("appendfsync", policy)];
        let replica = Server::start(Target::Dunlin, &options).unwrap();
        let primary = FalsePrimary::listen().unwrap();
        let mut client = follow(&replica, primary.port().unwrap());
        let mut link = primary.accept().unwrap();
        link.send(&full_sync(1000, EMPTY_FILE)).unwrap();
        // It says nothing of the file before that has the new data.
        let mut said = acknowledged(&mut link);
        while said.1.is_none() {
            assert_eq!(said.0, 1000);
            said = acknowledged(&mut link);
        }
        assert_eq!(said, (1000, Some(1000)), "{policy}");
        let mut end = 1000;
        for write in ["*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"]
        {
            let asks = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
            link.send(format!("{write}{asks}").as_bytes()).unwrap();
            end += write.len() as u64;
            let mut said = acknowledged(&mut link);
            while said.0 < end {
                said = acknowledged(&mut link);
            }
            while said.1.unwrap() < end {
                said = acknowledged(&mut link);
            }
            end += asks.len() as u64;
            assert!(said.1 <= Some(said.0) && said.0 <= end, "{said:?}");
        }
        assert_eq!(text(&mut client, "CONFIG SET appendonly no"), "OK");
        while acknowledged(&mut link).1.is_some() {}
    }
}

/// What CONFIG SET says of the append-only file counts, also at the moment at which the data of the
/// primary takes the place of the present data.
#[test]
fn a_setting_that_changes_in_a_full_sync_is_not_undone() {
    const FILE: &[u8] = b"REDIS0011\xfe\0\0\x03new\x04data\xff\0\0\0\0\0\0\0\0";
    for (before, wanted) in [("yes", "no"), ("no", "yes")] {
        let options = [
            ("appendonly", before),
            ("threads", "3"),
            ("repl-diskless-load", "swapdb"),
            ("busy-reply-threshold", "1000000"),
        ];
        let mut replica = Server::start(Target::Dunlin, &options).unwrap();
        let primary = FalsePrimary::listen().unwrap();
        let mut client = follow(&replica, primary.port().unwrap());
        let mut link = primary.accept().unwrap();
        let begin = full_sync(0, FILE);
        let (begin, rest) = begin.split_at(begin.len() - FILE.len());
        link.send(begin).unwrap();
        wait_for("the file is expected", || {
            field(&mut client, "replication", "master_sync_in_progress") == "1"
        });
        // The data cannot change while a script runs.
        let mut runs = replica.connect().unwrap();
        let script = "local begun = os.clock() while os.clock() - begun < 3 do end return 1";
        runs.send(&["EVAL", script, "0"]).unwrap();
        wait_for("it runs", || text(&mut client, "CLIENT LIST").contains("cmd=eval"));
        link.send(rest).unwrap();
        wait_for("the data has come", || {
            replica.log().contains("Done loading RDB")
                && (before == "no" || field(&mut client, "persistence", "aof_enabled") == "0")
        });
        assert_eq!(text(&mut client, &format!("CONFIG SET appendonly {wanted}")), "OK");
        wait_for("the link is up", || {
            field(&mut client, "replication", "master_link_status") == "up"
        });
        let is_on = field(&mut client, "persistence", "aof_enabled");
        assert_eq!(is_on == "1", wanted == "yes", "{}", replica.log_tail());
        if is_on == "1" {
            wait_for("its first file is complete", || {
                replica.log().contains("rewrite finished successfully")
            });
            drop(link);
            replica.kill();
            replica.set_options(&[("appendonly", "yes")]);
            replica.start_again().unwrap();
            assert_eq!(text(&mut replica.connect().unwrap(), "GET new"), "data");
        }
    }
}

/// Primaries before Redis 7 send times that count from now on. A restart must not begin them anew.
#[test]
fn times_of_an_old_primary_go_on_over_a_restart() {
    let primary = FalsePrimary::listen().unwrap();
    let of = format!("127.0.0.1 {}", primary.port().unwrap());
    let options = [("appendonly", "yes"), ("replicaof", &*of)];
    let mut replica = Server::start(Target::Dunlin, &options).unwrap();
    let mut link = primary.accept().unwrap();
    link.send(&full_sync(0, EMPTY_FILE)).unwrap();
    // What comes before the first file is complete is in its base.
    wait_for("the first file is complete", || {
        replica.log().contains("rewrite finished successfully")
    });
    let mut stream = Vec::new();
    for line in [
        "SELECT 0",
        "SETEX a 1000 v",
        "SET b v",
        "EXPIRE b 1000",
        "MULTI",
        "SET c v EX 1000",
        "SET d v",
        "PEXPIRE d 1000000",
        "EXEC",
        "SET end v",
    ] {
        tests::client::encode(&line.split(' ').collect::<Vec<_>>(), &mut stream);
    }
    let script = "redis.call('SET', KEYS[1], 'v') redis.call('EXPIRE', KEYS[1], 1000)";
    tests::client::encode(&["EVAL", script, "1", "e"], &mut stream);
    link.send(&stream).unwrap();
    let mut client = replica.connect().unwrap();
    let ends = |client: &mut Client| {
        ["a", "b", "c", "d", "e"].map(|key| {
            let reply = client.call(&["PEXPIRETIME", key]).unwrap();
            let Reply::Integer(end) = reply else { panic!("{reply:?}") };
            end
        })
    };
    wait_for("it is applied", || ends(&mut client)[4] > 0);
    let before = ends(&mut client);
    // Longer than a second, up to which the file knows times.
    sleep(Duration::from_millis(2100));
    replica.kill();
    replica.start_again().unwrap();
    let after = ends(&mut replica.connect().unwrap());
    for (before, after) in before.into_iter().zip(after) {
        assert!((before - 1000..=before).contains(&after), "{before} became {after}");
    }
}

/// What would fail in the same way again is not asked for again soon: a primary would write all its
/// data for nobody.
#[test]
fn what_cannot_be_loaded_is_asked_for_once() {
    const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";
    // Without entries and groups, and with an id that a producer has given.
    const IDEMPOTENT: &[u8] = b"\x1a\x06events\0\0\0\0\0\0\0\0\0\0\x0a\x0a\x01\x01p\x01\x01i\x05\0\x01\0\xff\0\0\0\0\0\0\0\0";
    let known = b"\xfe\0\0\x05known\x01v";
    let cases: [(&[u8], &[u8], &str); 7] = [
        (b"REDIS0016", END, "Can't handle RDB format version 16 of Redis"),
        (b"VALKEY081", END, "Can't handle RDB format version 81 of Valkey"),
        (b"REDIS0013", IDEMPOTENT, "key \"events\", a stream"),
        (b"REDIS0014", b"\x1c\x05array...", "type 28 (an array), of key \"array\""),
        (b"REDIS0012", b"\xc7\x03odd...", "type 199, of key \"odd\""),
        (
            b"REDIS0011",
            b"\x07\x03own\x81\x12\x12\x12\x12\x12\x12\x12\x12\0",
            "key \"own\", a module",
        ),
        (b"REDIS0011", b"\xff12345678", "RDB CRC error"),
    ];
    for load in ["disabled", "swapdb"] {
        for (magic, rest, expected) in cases {
            let replica = Server::start(Target::Dunlin, &[("repl-diskless-load", load)]).unwrap();
            let mut client = replica.connect().unwrap();
            client.call_text("SET own data").unwrap();
            let file = [magic, known, rest].concat();
            let (port, count) = FalsePrimary::answering(vec![full_sync(0, &file)]).unwrap();
            let mut client = follow(&replica, port);
            wait_for(expected, || replica.log().contains(expected));
            assert!(replica.log().contains("Trying again in 10 s"), "{}", replica.log_tail());
            assert_eq!(count.load(SeqCst), 1, "{expected}");
            assert_eq!(text(&mut client, "GET own"), "data", "{expected}");
        }
    }
}

/// Redis up to 8.10, while there is nothing of a kind that only it has.
#[test]
fn newer_files_are_loaded_up_to_what_is_new() {
    for version in ["REDIS0013", "REDIS0014", "REDIS0015"] {
        let rest: &[u8] = b"\xfe\0\0\x03new\x04data\xff\0\0\0\0\0\0\0\0";
        let file = [version.as_bytes(), rest].concat();
        let replica = Server::start(Target::Dunlin, &[]).unwrap();
        let primary = FalsePrimary::listen().unwrap();
        let mut client = follow(&replica, primary.port().unwrap());
        let mut link = primary.accept().unwrap();
        link.send(&full_sync(0, &file)).unwrap();
        wait_for("it is loaded", || text(&mut client, "GET new") == "data");
    }
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
        let (port, count) = FalsePrimary::answering(vec![answer.clone()]).unwrap();
        let mut client = follow(&replica, port);
        wait_for(expected, || replica.log().contains(expected));
        let kept = text(&mut client, "GET own");
        let is_taken_in = answer.starts_with(&whole);
        assert_eq!(kept == "data", !is_taken_in, "{expected}");
        sleep(Duration::from_millis(1500));
        assert!(count.load(SeqCst) < 8, "{expected}: it tries again and again");
        assert_eq!(text(&mut client, "REPLICAOF NO ONE"), "OK");
        assert_eq!(text(&mut client, "SET k v"), "OK");
    }
}

/// A command as a stream has it.
fn encoded(command: &str) -> Vec<u8> {
    let words = command.split(' ');
    let begin = format!("*{}\r\n", words.clone().count());
    let words = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
    (begin + &words.collect::<String>()).into_bytes()
}

/// A primary has a say in the data, and in nothing else.
#[test]
fn a_primary_does_not_command_its_replica() {
    let options = [("enable-debug-command", "no"), ("appendonly", "yes")];
    let mut replica = Server::start(Target::Dunlin, &options).unwrap();
    let primary = FalsePrimary::listen().unwrap();
    let mut client = follow(&replica, primary.port().unwrap());
    let mut link = primary.accept().unwrap();
    link.send(&full_sync(0, EMPTY_FILE)).unwrap();
    let history = "a".repeat(40);
    let commands = [
        "DEBUG SEGFAULT",
        "SHUTDOWN NOSAVE",
        "CONFIG SET requirepass secret",
        "ACL SETUSER mallory on nopass ~* +@all",
        "REPLICAOF NO ONE",
        "FAILOVER ABORT",
        &format!("PSYNC {history} 1 FAILOVER"),
        "CLIENT KILL TYPE normal",
        "AUTH secret",
        "RESET",
        "MONITOR",
        "SUBSCRIBE channel",
        "MIGRATE 127.0.0.1 1 k 0 1000",
    ];
    let mut offset = 0;
    let mut send = |link: &mut FalseLink, command: &str| {
        let bytes = encoded(command);
        offset += bytes.len();
        link.send(&bytes).unwrap();
        offset.to_string()
    };
    for command in commands {
        send(&mut link, command);
        let name = command.split(' ').next().unwrap().to_lowercase();
        let line = format!("The primary's command '{name}' after offset");
        wait_for(&line, || replica.log().contains(&line));
    }
    assert_eq!(replica.log().matches("no stream of a primary contains").count(), commands.len());
    // What a stream contains counts after that as before, and so do the offsets.
    for command in ["PING", "SELECT 1", "MULTI", "SET k v", "EXEC", "PUBLISH channel message"] {
        send(&mut link, command);
    }
    for command in ["SCRIPT LOAD return", "COMMAND INFO CONTENTTYPE k type", "PFCOUNT log"] {
        send(&mut link, command);
    }
    let end = send(&mut link, "EVAL redis.call('incr','n') 0");
    wait_for("it has all", || field(&mut client, "replication", "slave_repl_offset") == end);
    assert_eq!(replica.log().matches("The primary's command").count(), commands.len());
    assert_eq!(text(&mut client, "SELECT 1"), "OK");
    for (key, value) in [("k", "v"), ("n", "1")] {
        assert_eq!(text(&mut client, &format!("GET {key}")), value);
    }
    // Its file has the stream as it came, and is read by the same rule.
    drop(link);
    replica.terminate().unwrap();
    replica.start_again().unwrap();
    let mut client = replica.connect().unwrap();
    assert_eq!(text(&mut client, "SELECT 1"), "OK");
    assert_eq!(text(&mut client, "GET n"), "1");
}

/// It stands behind words that others know.
#[test]
fn a_replica_does_what_only_dunlin_knows() {
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let primary = FalsePrimary::listen().unwrap();
    follow(&replica, primary.port().unwrap());
    let mut link = primary.accept().unwrap();
    link.send(&full_sync(0, EMPTY_FILE)).unwrap();
    for command in ["SET k v", "COMMAND INFO CONTENTTYPE k text/plain", "SET last 1"] {
        link.send(&encoded(command)).unwrap();
    }
    let mut client = replica.connect().unwrap();
    wait_for("it has all", || text(&mut client, "GET last") == "1");
    assert_eq!(text(&mut client, "REPLICAOF NO ONE"), "OK");
    assert_eq!(text(&mut client, "CONTENTTYPE k"), "text/plain");
}

#[test]
fn a_monitor_at_a_replica_shows_where_commands_come_from() {
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let primary = FalsePrimary::listen().unwrap();
    let port = primary.port().unwrap();
    follow(&replica, port);
    let mut link = primary.accept().unwrap();
    link.send(&full_sync(0, EMPTY_FILE)).unwrap();
    let mut monitor = replica.connect().unwrap();
    assert_eq!(text(&mut monitor, "MONITOR"), "OK");
    link.send(&encoded("SET k v")).unwrap();
    let Received::Reply(line) = monitor.receive().unwrap() else { panic!("closed") };
    let line = String::from_utf8_lossy(line.text().unwrap()).into_owned();
    assert!(line.ends_with(&format!("[0 127.0.0.1:{port}] \"SET\" \"k\" \"v\"")), "{line}");
}

/// A stream that does not go on where the data ends is of no use: all data has to come.
#[test]
fn after_nonsense_all_data_is_asked_for() {
    let replica = Server::start(Target::Dunlin, &[]).unwrap();
    let primary = FalsePrimary::listen().unwrap();
    let mut client = follow(&replica, primary.port().unwrap());
    let mut link = primary.accept().unwrap();
    link.send(&full_sync(100, EMPTY_FILE)).unwrap();
    link.send(b"*1\r\n$4\r\nPING\r\n").unwrap();
    wait_for("it follows", || field(&mut client, "replication", "slave_repl_offset") == "114");
    drop(link);
    let mut link = primary.accept().unwrap();
    assert_eq!(link.asked().last().unwrap(), &["PSYNC", HISTORY, "115"]);
    link.send(b"+CONTINUE\r\nv\r\n*1\r\n$4\r\nPING\r\n").unwrap();
    let mut link = primary.accept().unwrap();
    assert_eq!(link.asked().last().unwrap(), &["PSYNC", "?", "-1"]);
    link.send(&full_sync(200, EMPTY_FILE)).unwrap();
    wait_for("it follows", || field(&mut client, "replication", "master_link_status") == "up");
    assert_eq!(field(&mut client, "replication", "slave_repl_offset"), "200");
}

/// A redis-server may use the files of a replica in between. What it writes there is no part of the
/// primary's stream.
#[test]
fn a_redis_server_may_use_the_files_of_a_replica_in_between() {
    let options = [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "16mb")];
    let primary = Server::start(Target::Reference, &options).unwrap();
    let mut writer = primary.connect().unwrap();
    let mut replica = Server::start(Target::Dunlin, &[("appendonly", "yes")]).unwrap();
    let mut reader = follow(&replica, primary.port());
    wait_for("the first file is complete", || {
        replica.log().contains("rewrite finished successfully")
    });
    fill(&mut writer);
    writer.call_text("PUBLISH channel message").unwrap();
    writer.call_text("SET last 1").unwrap();
    assert_same(&mut writer, &mut reader, &replica);
    let size = reader.call_text("DBSIZE").unwrap();
    replica.kill();
    let directory = replica.directory().display().to_string();
    {
        let files = [("dir", directory.as_str()), ("appendonly", "yes")];
        let mut other = Server::start(Target::Reference, &files).unwrap();
        let mut client = other.connect().unwrap();
        assert_eq!(client.call_text("DBSIZE").unwrap(), size);
        for number in 0..5 {
            assert_eq!(text(&mut client, &format!("SET own:{number} v")), "OK");
        }
        other.terminate().unwrap();
    }
    // It goes on alone, with everything.
    replica.start_again().unwrap();
    let mut reader = replica.connect().unwrap();
    assert_eq!(text(&mut reader, "GET own:4"), "v");
    assert_eq!(text(&mut reader, "GET last"), "1");
    let Reply::Integer(keys) = size else { panic!("{size:?}") };
    assert_eq!(reader.call_text("DBSIZE").unwrap(), Reply::Integer(keys + 5));
    replica.kill();
    // Or as a replica, and the primary has written on.
    for number in 0..100 {
        writer.call_text(&format!("SET later:{number} {number}")).unwrap();
    }
    let of = format!("127.0.0.1 {}", primary.port());
    replica.set_options(&[("appendonly", "yes"), ("replicaof", &*of)]);
    replica.start_again().unwrap();
    let mut reader = replica.connect().unwrap();
    assert_same(&mut writer, &mut reader, &replica);
    assert_eq!(reader.call_text("EXISTS own:4").unwrap(), Reply::Integer(0));
}

/// What a redis-server has written there may be as long as what the primary has written meanwhile:
/// the offset would be one between two of its commands.
#[test]
fn what_a_redis_server_has_written_in_between_is_no_part_of_the_stream() {
    for primary_of in [Target::Reference, Target::Dunlin] {
        let options = [("repl-diskless-sync-delay", "0"), ("repl-ping-replica-period", "3600")];
        let primary = Server::start(primary_of, &options).unwrap();
        let mut writer = primary.connect().unwrap();
        let mut replica = Server::start(Target::Dunlin, &[("appendonly", "yes")]).unwrap();
        let mut reader = follow(&replica, primary.port());
        wait_for("the first file is complete", || {
            replica.log().contains("rewrite finished successfully")
        });
        writer.call_text("SELECT 2").unwrap();
        writer.call_text("SET first 1").unwrap();
        catch_up(&mut writer, &mut reader);
        replica.kill();
        let directory = replica.directory().display().to_string();
        {
            let files = [("dir", directory.as_str()), ("appendonly", "yes")];
            let mut other = Server::start(Target::Reference, &files).unwrap();
            let mut client = other.connect().unwrap();
            assert_eq!(text(&mut client, "SET other v"), "OK");
            other.terminate().unwrap();
        }
        writer.call_text("SELECT 0").unwrap();
        writer.call_text("SET known v").unwrap();
        writer.call_text("SET later v").unwrap();
        let of = format!("127.0.0.1 {}", primary.port());
        replica.set_options(&[("appendonly", "yes"), ("replicaof", &*of)]);
        replica.start_again().unwrap();
        let mut reader = replica.connect().unwrap();
        assert_same(&mut writer, &mut reader, &replica);
        assert_eq!(reader.call_text("EXISTS other").unwrap(), Reply::Integer(0), "{primary_of:?}");
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
    wait_for("the wrong password is refused", || replica.log().contains("AUTH: WRONGPASS"));
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

/// Strings grow as they did at the primary, and as they did before a restart.
#[test]
fn a_replica_with_lower_limits_has_all_that_its_primary_has() {
    for target in [Target::Reference, Target::Dunlin] {
        let primary = Server::start(target, &[("repl-diskless-sync-delay", "0")]).unwrap();
        let mut writer = primary.connect().unwrap();
        let options = [("appendonly", "yes"), ("proto-max-bulk-len", "1mb")];
        let mut replica = Server::start(Target::Dunlin, &options).unwrap();
        let mut reader = follow(&replica, primary.port());
        catch_up(&mut writer, &mut reader);
        let half = "x".repeat(700_000);
        let commands: [&[&str]; 6] = [
            &["APPEND", "appended", &half],
            &["APPEND", "appended", &half],
            &["SETRANGE", "ranged", "2000000", "x"],
            &["SETBIT", "bits", "20000000", "1"],
            &["BITFIELD", "fields", "SET", "u8", "20000000", "7"],
            &["SETRANGE", "fields", "3000000", "x"],
        ];
        for command in commands {
            let reply = writer.call(command).unwrap();
            assert!(!reply.is_error(), "{reply:?}");
        }
        assert_same(&mut writer, &mut reader, &replica);
        assert_eq!(replica.terminate().unwrap(), Some(0));
        replica.start_again().unwrap();
        let mut reader = follow(&replica, primary.port());
        assert_same(&mut writer, &mut reader, &replica);
        assert_eq!(text(&mut reader, "REPLICAOF NO ONE"), "OK");
        for command in commands {
            let reply = reader.call(command).unwrap();
            assert!(reply.is_error(), "{reply:?}");
        }
    }
}

#[test]
fn a_replica_shows_its_user() {
    let primary = Server::start(Target::Reference, &[("repl-diskless-sync-delay", "0")]).unwrap();
    let mut writer = primary.connect().unwrap();
    for line in [
        "ACL SETUSER copies on >secret +psync +replconf +ping",
        "ACL SETUSER default resetpass >other",
        "SET k v",
    ] {
        assert_eq!(text(&mut writer, line), "OK", "{line}");
    }
    let options = [("masteruser", "copies"), ("masterauth", "other")];
    let replica = Server::start(Target::Dunlin, &options).unwrap();
    let mut reader = follow(&replica, primary.port());
    wait_for("the user has another password", || replica.log().contains("AUTH: WRONGPASS"));
    assert_eq!(text(&mut reader, "CONFIG SET masterauth secret"), "OK");
    assert_same(&mut writer, &mut reader, &replica);
    assert_eq!(text(&mut reader, "GET k"), "v");
    // One that may not do that is refused, and the log says what it lacks.
    assert_eq!(text(&mut writer, "ACL SETUSER copies -psync"), "OK");
    writer.call_text("CLIENT KILL TYPE replica").unwrap();
    wait_for("the user may not", || replica.log().contains("NOPERM"));
    assert_eq!(text(&mut writer, "ACL SETUSER copies +psync"), "OK");
    assert_same(&mut writer, &mut reader, &replica);
}
