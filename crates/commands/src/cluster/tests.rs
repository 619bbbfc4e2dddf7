//! A node with a topology that is made by hand.

use std::sync::Arc;

use cluster::ids::{NodeId, ShardId};
use cluster::topology::{Address, Leader, Node, Shard, Topology};
use config::Config;
use engine::journal::filter::{Filter, Keys};
use engine::session::Session;
use engine::session::awaited::{Awaited, Wait};
use engine::session::client::Client;
use engine::session::replicas::Replica;
use engine::session::replicas::introduction::Introduction;

use crate::testing::{TestServer, messages};

const DISABLED: &str = "-ERR This instance has cluster support disabled\r\n";
const CROSS: &str = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
const NOT_SERVED: &str = "-CLUSTERDOWN Hash slot not served\r\n";
const DOWN: &str = "-CLUSTERDOWN The cluster is down\r\n";
/// `k0` is in slot 8579, `k2` in 449, `bar` in 5061, `k24` in 16058.
const MOVED: &str = "-MOVED 8579 10.0.0.2:7002\r\n";

fn node(number: u8, shard: u8) -> Node {
    Node {
        id: NodeId([number; 20]),
        shard: Some(ShardId([shard; 20])),
        address: Address {
            host: format!("10.0.0.{number}"),
            port: 7000 + u16::from(number),
            tls_port: 8000 + u16::from(number),
            ..Address::default()
        },
        zone: String::new(),
        alive: Some(1),
        version: String::new(),
        name: String::new(),
    }
}

fn shard(number: u8, slots: &str, nodes: &[u8]) -> Shard {
    let members: Vec<_> = nodes.iter().map(|number| NodeId([*number; 20])).collect();
    let epoch = i64::from(number);
    let leader = Leader { node: members[0], incarnation: 1, epoch, start: 0 };
    Shard {
        id: ShardId([number; 20]),
        slots: slots.parse().unwrap(),
        members,
        joining: Vec::new(),
        leader: Some(leader),
        last_leader: Some(leader),
        is_failed: false,
        modified: 1,
    }
}

/// Two shards: nodes 1 and 3, and node 2.
fn topology(first: &str, second: &str) -> Topology {
    let nodes = [node(1, 1), node(2, 2), node(3, 1)];
    let shards = [shard(1, first, &[1, 3]), shard(2, second, &[2])];
    Topology::new("test".to_owned(), 1, nodes, shards, [])
}

/// A server that is this node of the cluster.
fn server_as(number: u8, change: impl FnOnce(&mut Config)) -> TestServer {
    let mut config = Config { cluster_enabled: true, ..Config::default() };
    change(&mut config);
    node_of(number, crate::testing::server_with(config))
}

fn node_of(number: u8, server: TestServer) -> TestServer {
    server.engine.cluster.set_own(NodeId([number; 20]));
    server.engine.follow_topology(Arc::new(topology("0-8000", "8001-16000")));
    server
}

fn unreadiness(server: &TestServer) -> Option<String> {
    server.engine.unreadiness(&server.engine.config.snapshot())
}

/// Each line with its reply, on the fast path and on the slow one.
fn expect(server: &mut TestServer, lines: &[(&str, &str)]) {
    for (line, reply) in lines {
        for takes_short_way in [true, false] {
            server.takes_short_way = takes_short_way;
            assert_eq!(server.text(line), *reply, "{line} (short way: {takes_short_way})");
        }
    }
}

#[test]
fn programs_hear_that_there_is_no_cluster_no_replica_and_no_module() {
    let mut server = crate::testing::server();
    for line in [
        "READONLY",
        "READWRITE",
        "ASKING",
        "CLUSTER INFO",
        "CLUSTER HELP",
        "CLUSTER MEET a 1",
        "CLUSTER SLOT-STATS SLOTSRANGE 0 1",
        "CLUSTERSCAN 0",
    ] {
        assert_eq!(server.text(line), DISABLED, "{line}");
    }
    assert_eq!(server.text("MODULE LIST"), "*0\r\n");
    assert!(server.text("MODULE LOAD x").starts_with("-ERR MODULE command not allowed."));
    assert_eq!(server.text("WAIT 0 0"), ":0\r\n");
    assert_eq!(server.text("WAIT -1 0"), ":0\r\n");
    assert_eq!(server.text("WAIT 1 0"), "", "it waits");
}

#[test]
fn a_node_serves_its_own_slots_and_names_the_owner_of_others() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    expect(
        &mut server,
        &[
            ("SET k2 v", "+OK\r\n"),
            ("GET k2", "$1\r\nv\r\n"),
            ("GET k0", MOVED),
            ("SET k0 v BADOPT", MOVED),
            ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
            ("GET k24", NOT_SERVED),
            ("MGET k2 {k2}x", "*2\r\n$1\r\nv\r\n$-1\r\n"),
            ("MGET k2 bar", CROSS),
            ("MGET k0 foo", CROSS),
            ("MGET k24 k0", NOT_SERVED),
            ("MGET k2 k24", CROSS),
            ("MGET {k0}a {k0}b", MOVED),
            ("WATCH k0", MOVED),
            ("SPUBLISH k0 x", MOVED),
            ("SPUBLISH k2 x", ":0\r\n"),
            ("SUNSUBSCRIBE k0", MOVED),
            ("PUBLISH k0 x", ":0\r\n"),
            ("DBSIZE", ":1\r\n"),
            ("SELECT 1", "-ERR SELECT is not allowed in cluster mode\r\n"),
            ("SELECT 0", "+OK\r\n"),
            ("SELECT abc", "-ERR value is not an integer or out of range\r\n"),
            ("MOVE k2 1", "-ERR MOVE is not allowed in cluster mode\r\n"),
            ("MOVE k0 1", MOVED),
            ("COPY k2 {k2}b DB 1", "-ERR DB index is out of range\r\n"),
            ("REPLICAOF NO ONE", "-ERR REPLICAOF not allowed in cluster mode.\r\n"),
        ],
    );
    assert_eq!(server.text("SWAPDB 0 1"), "-ERR SWAPDB is not allowed in cluster mode\r\n");
    assert!(server.text("FAILOVER").contains("Use CLUSTER FAILOVER command instead."));
    assert!(server.text("HELLO 2").contains("$7\r\ncluster\r\n"));
    assert!(server.text("INFO server").contains("redis_mode:cluster\r\n"));
    assert!(server.text("INFO cluster").contains("cluster_enabled:1\r\n"));
    let errors = server.text("INFO errorstats");
    assert!(errors.contains("errorstat_MOVED:count=") && errors.contains("errorstat_CROSSSLOT"));
}

#[test]
fn a_transaction_is_of_one_slot() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (lines, end) in [
        (&["SET k2 1", "SET {k2}a 1"][..], "*2\r\n+OK\r\n+OK\r\n"),
        (&["SET k2 1", "SET bar 1"], CROSS),
        (&["SET k2 1", "SET k0 1"], aborted),
        (&["WATCH k0", "SET k2 1"], aborted),
        (&["PING"], "*1\r\n+PONG\r\n"),
    ] {
        assert_eq!(server.text("MULTI"), "+OK\r\n");
        lines.iter().for_each(|line| drop(server.text(line)));
        assert_eq!(server.text("EXEC"), end, "{lines:?}");
        assert_eq!(server.text("EXEC"), "-ERR EXEC without MULTI\r\n", "it is over");
    }
}

#[test]
fn nothing_is_served_while_a_slot_is_not_or_the_time_is_over() {
    let mut server = server_as(1, |_| {});
    expect(
        &mut server,
        &[
            ("GET k2", DOWN),
            ("GET k0", DOWN),
            ("GET k24", NOT_SERVED),
            ("MSET k2 1 k0 1", CROSS),
            ("SPUBLISH k2 x", ":0\r\n"),
            ("PING", "+PONG\r\n"),
            ("DBSIZE", ":0\r\n"),
        ],
    );
    assert!(server.text("CLUSTER INFO").contains("cluster_state:fail\r\n"));
    server.engine.follow_topology(Arc::new(topology("0-8000", "8001-16383")));
    expect(&mut server, &[("SET k2 v", "+OK\r\n"), ("GET k0", MOVED)]);
    assert!(server.text("CLUSTER INFO").contains("cluster_state:ok\r\n"));
    assert_eq!(unreadiness(&server), None);
    server.engine.cluster.serve_until(0);
    assert!(unreadiness(&server).is_some());
    expect(&mut server, &[("GET k2", DOWN), ("SET k2 v", DOWN), ("GET k0", DOWN)]);
    assert_eq!(server.text("CONFIG SET cluster-allow-reads-when-down yes"), "+OK\r\n");
    let reads_only = "-CLUSTERDOWN The cluster is down and only accepts read commands\r\n";
    expect(&mut server, &[("GET k2", "$1\r\nv\r\n"), ("SET k2 v", reads_only), ("GET k0", MOVED)]);
    server.text("CONFIG SET cluster-allow-pubsubshard-when-down no");
    expect(&mut server, &[("SPUBLISH k2 x", DOWN)]);
    server.engine.cluster.serve_until(u64::MAX);
    expect(&mut server, &[("SET k2 v", "+OK\r\n"), ("SPUBLISH k2 x", ":0\r\n")]);
}

#[test]
fn a_replica_serves_reads_of_clients_that_have_asked_for_that() {
    let mut server = server_as(3, |config| config.cluster_require_full_coverage = false);
    let moved = "-MOVED 449 10.0.0.1:7001\r\n";
    expect(
        &mut server,
        &[
            ("GET k2", moved),
            ("ASKING", "+OK\r\n"),
            ("GET k2", moved),
            ("READONLY", "+OK\r\n"),
            ("GET k2", "$-1\r\n"),
            ("GET k0", MOVED),
            ("SET k2 1", moved),
            ("GETEX k2", moved),
            ("MGET k2 bar", CROSS),
            ("READWRITE", "+OK\r\n"),
            ("GET k2", moved),
            ("SPUBLISH k2 a", ":0\r\n"),
            ("SUNSUBSCRIBE k2", moved),
            ("READONLY", "+OK\r\n"),
        ],
    );
    assert!(server.text("CLIENT INFO").contains(" flags=r "));
    server.text("MULTI");
    assert_eq!(server.text("GET k2"), "+QUEUED\r\n");
    assert_eq!(server.text("SET k2 1"), moved);
    server.text("EXEC");
    server.text("RESET");
    assert_eq!(server.text("GET k2"), moved);
}

#[test]
fn the_last_primary_reads_what_it_has_if_the_settings_say_so() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    server.text("SET k2 v");
    let without_leader = |shard: Shard| Shard { leader: None, ..shard };
    let shards = [without_leader(shard(1, "0-8000", &[1, 3])), shard(2, "8001-16000", &[2])];
    let nodes = [node(1, 1), node(2, 2), node(3, 1)];
    let alone = Topology::new("test".to_owned(), 2, nodes, shards, []);
    server.engine.follow_topology(Arc::new(alone));
    expect(&mut server, &[("GET k2", NOT_SERVED), ("SET k2 w", NOT_SERVED), ("GET k0", MOVED)]);
    server.text("CONFIG SET cluster-allow-reads-when-down yes");
    expect(&mut server, &[("GET k2", "$1\r\nv\r\n"), ("SET k2 w", NOT_SERVED)]);
}

#[test]
fn keys_of_several_own_slots_may_be_used_together_if_the_settings_say_so() {
    let mut server = server_as(1, |config| {
        config.cluster_allow_cross_slot = true;
        config.cluster_require_full_coverage = false;
    });
    expect(
        &mut server,
        &[
            ("MSET k2 1 bar 2", "+OK\r\n"),
            ("MGET k2 bar", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"),
            ("MGET k2 k0", CROSS),
            ("MGET k0 foo", MOVED),
        ],
    );
    server.text("MULTI");
    server.text("GET k2");
    server.text("GET bar");
    assert_eq!(server.text("EXEC"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

/// A client that waits is served as if its command began then.
#[test]
fn nobody_is_served_who_would_move_an_element_to_where_clients_may_not() {
    let moves_bar: fn(&mut TestServer) =
        |server| server.engine.follow_topology(Arc::new(topology("0-5000", "5001-16000")));
    let forbids: fn(&mut TestServer) = |server| {
        server.text("CONFIG SET cluster-allow-cross-slot no");
    };
    let holds_bar: fn(&mut TestServer) =
        |server| server.engine.slot_moves.hold(&[5061].into_iter().collect());
    let gives_bar: fn(&mut TestServer) =
        |server| server.engine.slot_moves.give(&[5061].into_iter().collect(), "10.0.0.2:7002");
    let forbids_and_holds: fn(&mut TestServer) = |server| {
        server.text("CONFIG SET cluster-allow-cross-slot no");
        server.engine.slot_moves.hold(&[5061].into_iter().collect());
    };
    for (change, pushed, answer) in [
        (forbids, Some(":1\r\n"), Some(CROSS)),
        (forbids_and_holds, Some(":1\r\n"), Some(CROSS)),
        (moves_bar, Some(":1\r\n"), Some(CROSS)),
        (gives_bar, Some(":1\r\n"), Some("-MOVED 5061 10.0.0.2:7002\r\n")),
        (holds_bar, None, None),
    ] {
        let mut server = server_as(1, |config| {
            config.cluster_allow_cross_slot = true;
            config.cluster_require_full_coverage = false;
        });
        let mut waits = server.connect();
        assert_eq!(server.text_as(&mut waits, "BLMOVE k2 bar LEFT LEFT 0"), "", "it waits");
        change(&mut server);
        assert_eq!(server.try_text("RPUSH k2 x").as_deref(), pushed);
        let served = waits.client.inbox.lock().served.take().map(|own| own.reply.to_vec());
        let served = served.map(|reply| String::from_utf8_lossy(&reply).into_owned());
        assert_eq!(served.as_deref(), answer);
        let left = pushed.map_or(":0\r\n", |_| ":1\r\n");
        assert_eq!(server.text("LLEN k2"), left, "it has gone into a slot of somebody else");
    }
}

/// What MIGRATE does with a key that is another node's by then.
#[test]
fn no_key_of_another_node_is_sent_on_or_deleted() {
    let mut server = server_as(1, |_| ());
    server.text("CONFIG SET cluster-require-full-coverage no");
    let rows = crate::move_rows();
    server.text("SET k2 v");
    let read = server.text_of_row(rows.read, "READ k2");
    let version = read.split("\r\n").nth(1).and_then(|line| line.strip_prefix(':')).unwrap();
    let remove = format!("REMOVE k2 {version}");
    server.engine.follow_topology(Arc::new(topology("1000-8000", "0-999,8001-16000")));
    let moved = "-MOVED 449 10.0.0.2:7002\r\n";
    // That there is no node for some slots changes nothing.
    for covers in ["no", "yes"] {
        server.text(&format!("CONFIG SET cluster-require-full-coverage {covers}"));
        assert_eq!(server.text_of_row(rows.read, "READ k2"), moved);
        assert_eq!(server.text_of_row(rows.remove, &remove), moved);
    }
    // They are back.
    server.engine.follow_topology(Arc::new(topology("0-8000", "8001-16000")));
    assert_eq!(server.text_of_row(rows.read, "READ k2"), read);
    assert_eq!(server.text_of_row(rows.remove, &remove), ":1\r\n");
}

#[test]
fn databases_are_those_of_a_cluster() {
    let mut server = server_as(1, |config| {
        config.cluster_databases = 4;
        config.cluster_require_full_coverage = false;
    });
    expect(&mut server, &[("SELECT 4", "-ERR DB index is out of range\r\n")]);
    expect(&mut server, &[("SELECT 3", "+OK\r\n"), ("SET k2 1", "+OK\r\n")]);
    assert_eq!(server.text("MOVE k2 1"), ":1\r\n");
    assert!(server.text("INFO keyspace").contains("db1:keys=1"));
    assert!(server.text("CLUSTER SLOT-STATS SLOTSRANGE 449 449").contains("key-count\r\n:1\r\n"));
    assert_eq!(server.text("SWAPDB 0 1"), "-ERR SWAPDB is not allowed in cluster mode\r\n");
}

#[test]
fn sort_reaches_no_further_than_its_slot() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    let denied = |what: &str| {
        format!(
            "-ERR {what} option of SORT denied in Cluster mode when keys formed by the pattern may be \
             in different slots.\r\n"
        )
    };
    for (line, reply) in [
        ("SORT {k2}l BY w_*", denied("BY")),
        ("SORT {k2}l BY nosort", "*0\r\n".to_owned()),
        ("SORT {k2}l BY {k2}*", "*0\r\n".to_owned()),
        ("SORT {k2}l BY a*{k2}", denied("BY")),
        ("SORT {k2}l BY x{k2}*", "*0\r\n".to_owned()),
        ("SORT {k2}l GET #", "*0\r\n".to_owned()),
        ("SORT {k2}l GET foo", denied("GET")),
        ("SORT {k2}l GET {k2}*->f", "*0\r\n".to_owned()),
        ("SORT {k2}l STORE k0", CROSS.to_owned()),
    ] {
        assert_eq!(server.text(line), reply, "{line}");
    }
}

#[test]
fn clients_that_wait_or_listen_hear_that_their_slots_have_left() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    assert_eq!(server.text("BLPOP k2 0"), "");
    let mut other = server.connect();
    assert_eq!(server.text_as(&mut other, "BLPOP bar 0"), "");
    let mut listens = server.connect();
    server.text_as(&mut listens, "SSUBSCRIBE k2");
    let (mut asks, mut awaits) = (server.connect(), server.connect());
    server.text_as(&mut asks, "CHANGES SINCE $");
    assert_eq!(server.text_as(&mut awaits, "CHANGES SINCE $ KEY k2 BLOCK 0"), "");
    assert_eq!(server.text_as(&mut asks, "CHANGES SINCE $ KEY k0 BLOCK 0"), MOVED);
    let follows = |key: &str, client: &Arc<Client>| {
        let keys = Keys::One(key.as_bytes().into());
        server.engine.followers.add(Arc::clone(client), Filter { database: None, keys }, 0)
    };
    let (gone, stays) = (server.connect(), server.connect());
    follows("k2", &gone.client);
    follows("bar", &stays.client);
    server.engine.follow_topology(Arc::new(topology("1000-8000", "0-999,8001-16000")));
    let served = server.session.client.inbox.lock().served.take().expect("it is told");
    assert_eq!(served.reply.to_vec(), b"-MOVED 449 10.0.0.2:7002\r\n");
    assert!(other.client.inbox.lock().served.is_none(), "its slot is still here");
    let served = awaits.client.inbox.lock().served.take().expect("it is told too");
    assert_eq!(served.reply.to_vec(), b"-MOVED 449 10.0.0.2:7002\r\n");
    assert!(gone.client.inbox.lock().slots_left && !stays.client.inbox.lock().slots_left);
    assert!(std::mem::take(&mut listens.client.inbox.lock().slots_left));
    let mut output = resp::output::Output::new();
    let mut reply = resp::reply::Reply::new(&mut output, false);
    server.engine.leave_channels(&mut listens, &mut reply);
    assert_eq!(output.to_vec(), b"*3\r\n$12\r\nsunsubscribe\r\n$2\r\nk2\r\n:0\r\n");
    assert!(listens.subscriptions.is_none());
    assert_eq!(messages(&listens), "");
    let mut sends = server.connect();
    assert_eq!(server.text_as(&mut sends, "SPUBLISH k2 x"), "-MOVED 449 10.0.0.2:7002\r\n");
}

/// A shard that has failed says nothing of where the slots of others are, and when it comes back,
/// nobody looks at clients again.
#[test]
fn clients_hear_that_their_slots_have_left_while_another_shard_has_failed() {
    let mut server = server_as(1, |_| ());
    server.engine.follow_topology(Arc::new(topology("0-8000", "8001-16383")));
    assert_eq!(server.text("BLPOP k2 0"), "");
    let (mut stays, mut awaits) = (server.connect(), server.connect());
    assert_eq!(server.text_as(&mut stays, "BLPOP k0 0"), MOVED);
    assert_eq!(server.text_as(&mut stays, "BLPOP bar 0"), "");
    server.text_as(&mut awaits, "CHANGES SINCE $");
    assert_eq!(server.text_as(&mut awaits, "CHANGES SINCE $ KEY k2 BLOCK 0"), "");
    let (watches, follows) = (server.connect(), server.connect());
    let event = Wait::new(Awaited::Event(b"/".as_slice().into()), 0, false, None);
    *watches.client.wait.lock() = Some(Arc::new(event));
    let keys = Keys::One(b"k2".as_slice().into());
    server.engine.followers.add(Arc::clone(&follows.client), Filter { database: None, keys }, 0);
    // The other shard has failed.
    let failed = |first: &str, second: &str| {
        let mut all = topology(first, second);
        all.shards.values_mut().filter(|own| own.id.0 == [2; 20]).for_each(|own| {
            (own.leader, own.is_failed) = (None, true);
        });
        Arc::new(all)
    };
    server.engine.follow_topology(failed("0-8000", "8001-16383"));
    let mut asks = server.connect();
    assert_eq!(server.text_as(&mut asks, "GET k2"), DOWN);
    let is_told = |client: &Session| client.client.inbox.lock().served.is_some();
    assert!(!is_told(&server.session) && !is_told(&awaits), "the slot is still here");
    let slots = ["0-448,5001-8000", "449-5000,8001-16383"];
    server.engine.follow_topology(failed(slots[0], slots[1]));
    server.engine.follow_topology(Arc::new(topology(slots[0], slots[1])));
    for waiting in [&server.session, &awaits] {
        let served = waiting.client.inbox.lock().served.take().expect("it is told");
        assert_eq!(served.reply.to_vec(), b"-MOVED 449 10.0.0.2:7002\r\n");
    }
    assert!(is_told(&watches) && !is_told(&stays));
    assert!(follows.client.inbox.lock().slots_left);
}

/// It listens at another address than the one by which it is known.
#[test]
fn a_replica_is_shown_by_the_name_that_it_has_said() {
    let mut server = server_as(1, |_| ());
    let client = Arc::clone(&server.connect().client);
    let introduction = Introduction {
        node: Some(NodeId([3; 20])),
        address: b"127.0.0.1".to_vec(),
        listening_port: 6379,
        ..Introduction::default()
    };
    server.engine.replicas.add(&Arc::new(Replica::new(client, introduction, false, 0)));
    let links = server.text("CLUSTER LINKS");
    assert!(links.contains(&"03".repeat(20)) && links.contains("from"), "{links}");
}

#[test]
fn the_costs_of_a_slot_leave_with_it() {
    let mut server = server_as(1, |config| {
        config.cluster_require_full_coverage = false;
        config.cluster_slot_stats_enabled = true;
    });
    let bytes = |server: &mut TestServer| {
        server.text("GET k2");
        server.text("CLUSTER SLOT-STATS SLOTSRANGE 449 449")
    };
    let once = bytes(&mut server);
    let stays = "network-bytes-in\r\n:0\r\n";
    assert!(!once.contains(stays), "{once}");
    server.engine.follow_topology(Arc::new(topology("1000-8000", "0-999,8001-16000")));
    server.engine.follow_topology(Arc::new(topology("0-8000", "8001-16000")));
    let stats = server.text("CLUSTER SLOT-STATS SLOTSRANGE 449 449");
    assert!(stats.contains(stays), "{stats}");
}

/// Only RESP3 lets a client do both.
#[test]
fn a_client_that_waits_and_listens_hears_both() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    let mut both = server.connect();
    server.text_as(&mut both, "HELLO 3");
    server.text_as(&mut both, "SSUBSCRIBE k2");
    assert_eq!(server.text_as(&mut both, "BLPOP {k2}list 0"), "");
    server.engine.follow_topology(Arc::new(topology("1000-8000", "0-999,8001-16000")));
    let inbox = std::mem::take(&mut *both.client.inbox.lock());
    let served = inbox.served.expect("it is told where the key is");
    assert_eq!(served.reply.to_vec(), b"-MOVED 449 10.0.0.2:7002\r\n");
    assert!(inbox.slots_left, "and that the subscription is over");
}

/// It may not reach etcd, and the primary deletes the keys of slots that have left.
#[test]
fn a_replica_serves_the_slots_that_its_primary_has_left() {
    let said = server_as(1, |_| ()).engine.said_slots().expect("it leads");
    assert!(said.ends_with(b"\r\ncluster-slots:1:0-8000\r\n"), "{}", said.escape_ascii());
    let mut server = server_as(3, |config| config.cluster_require_full_coverage = false);
    assert_eq!(server.engine.said_slots(), None);
    let moved = "-MOVED 449 10.0.0.1:7001\r\n";
    server.text("READONLY");
    let mut link = server.connect();
    link.link = Some(server.engine.replication.term());
    let say = |server: &mut TestServer, link: &mut Session, words: &str| {
        server.text_as(link, &format!("REPLCONF capa cluster-slots:{words}"))
    };
    for words in ["x", "2", "2:a", "x:1"] {
        assert!(say(&mut server, &mut link, words).starts_with("-ERR cluster-slots"), "{words}");
    }
    say(&mut server, &mut link, "1:1000-8000");
    expect(&mut server, &[("GET k2", "$-1\r\n")]);
    say(&mut server, &mut link, "5:1000-8000");
    expect(&mut server, &[("GET k2", moved), ("GET bar", "$-1\r\n")]);
    let next = |revision| {
        let nodes = [node(1, 1), node(2, 2), node(3, 1)];
        let shards = [shard(1, "0-8000", &[1, 3]), shard(2, "8001-16000", &[2])];
        Arc::new(Topology::new("test".to_owned(), revision, nodes, shards, []))
    };
    server.engine.follow_topology(next(4));
    expect(&mut server, &[("GET k2", moved)]);
    // They have come back since then.
    server.engine.follow_topology(next(6));
    expect(&mut server, &[("GET k2", "$-1\r\n")]);
    say(&mut server, &mut link, "5:1000-8000");
    expect(&mut server, &[("GET k2", "$-1\r\n")]);
    assert_eq!(server.text("REPLCONF capa cluster-slots:9:0"), "+OK\r\n", "any client may say so");
    expect(&mut server, &[("GET k2", "$-1\r\n")]);
}

/// A script that may write there, or that would see what is old there, waits for slots that change
/// their owner.
#[test]
fn scripts_for_other_slots_do_not_wait_for_a_held_one() {
    let config =
        Config { cluster_enabled: true, cluster_require_full_coverage: false, ..Config::default() };
    let mut server = node_of(1, crate::testing::server_with_scripts(config));
    server.text("SET bar v");
    let held: store::SlotSet = [449].into_iter().collect();
    server.engine.slot_moves.hold(&held);
    let reads = "return redis.call('get','bar')";
    let strict = "#!lua\nreturn redis.call('set','bar','w')";
    let crosses = "#!lua flags=allow-cross-slot-keys\nreturn 1";
    let empties = "#!lua\nreturn redis.call('flushall')";
    let undeclared = "return redis.call('get','k2')";
    let plain = "return 1";
    let eval = |server: &mut TestServer, words: &[&str]| {
        server.session = server.connect();
        let reply = server.try_run(words).unwrap_or_default();
        String::from_utf8_lossy(&reply).into_owned()
    };
    for (words, reply) in [
        (["EVAL_RO", reads, "1", "bar"], "$1\r\nv\r\n"),
        (["EVAL", strict, "1", "bar"], "+OK\r\n"),
        (["EVAL_RO", plain, "1", "bar"], ":1\r\n"),
        (["EVAL_RO", plain, "1", "k2"], ""),
        (["EVAL_RO", undeclared, "1", "bar"], ""),
        (["EVAL", plain, "1", "bar"], ""),
        (["EVAL", crosses, "1", "bar"], ""),
        (["EVAL", empties, "1", "bar"], ""),
        (["EVAL", strict, "1", "k2"], ""),
    ] {
        assert_eq!(eval(&mut server, &words), reply, "{words:?}");
    }
    server.engine.slot_moves.release(&held);
    assert_eq!(eval(&mut server, &["EVAL_RO", undeclared, "1", "bar"]), "$-1\r\n");
}

/// Nobody is stopped while slots leave a replica, so its channels may be gone already.
#[test]
fn a_replica_looks_again_at_what_a_client_has_just_subscribed_to() {
    let mut server = server_as(3, |_| ());
    let mut listens = server.connect();
    server.text_as(&mut listens, "SSUBSCRIBE k2");
    assert!(listens.client.inbox.lock().slots_left);
}

#[test]
fn the_cluster_is_shown_as_clients_expect() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    let (one, two, three) = ("01".repeat(20), "02".repeat(20), "03".repeat(20));
    assert_eq!(server.text("CLUSTER MYID"), format!("$40\r\n{one}\r\n"));
    assert_eq!(server.text("CLUSTER MYSHARDID"), format!("$40\r\n{one}\r\n"));
    let member = |number: u8, id: &str| {
        format!("*4\r\n$8\r\n10.0.0.{number}\r\n:700{number}\r\n$40\r\n{id}\r\n*0\r\n")
    };
    let slots = server.text("CLUSTER SLOTS");
    let expected = format!(
        "*2\r\n*4\r\n:0\r\n:8000\r\n{}{}*3\r\n:8001\r\n:16000\r\n{}",
        member(1, &one),
        member(3, &three),
        member(2, &two)
    );
    assert_eq!(slots, expected);
    let nodes = server.text("CLUSTER NODES");
    assert!(
        nodes.contains(&format!("{one} 10.0.0.1:7001@0 myself,master - 0 0 1 connected 0-8000\n"))
    );
    assert!(nodes.contains(&format!("{three} 10.0.0.3:7003@0 slave {one} 0 ")), "{nodes}");
    assert!(nodes.contains(" 2 connected 8001-16000\n"), "{nodes}");
    let replicas = server.text(&format!("CLUSTER REPLICAS {one}"));
    assert!(replicas.starts_with("*1\r\n") && replicas.contains(&three), "{replicas}");
    let not_primary = "-ERR The specified node is not a master\r\n";
    assert_eq!(server.text(&format!("CLUSTER SLAVES {three}")), not_primary);
    assert_eq!(server.text("CLUSTER REPLICAS x"), "-ERR Unknown node x\r\n");
    let info = server.text("CLUSTER INFO");
    for line in [
        "cluster_slots_assigned:16001",
        "cluster_slots_ok:16001",
        "cluster_known_nodes:3",
        "cluster_size:2",
        "cluster_current_epoch:2",
        "cluster_my_epoch:1",
    ] {
        assert!(info.contains(&format!("{line}\r\n")), "{info}");
    }
    let shards = server.text("CLUSTER SHARDS");
    assert!(shards.starts_with("*2\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:8000\r\n"), "{shards}");
    assert!(shards.contains("$8\r\ntls-port\r\n:8001\r\n"), "{shards}");
    assert!(shards.contains("$4\r\nrole\r\n$7\r\nreplica\r\n"), "{shards}");
    assert_eq!(server.text("CLUSTER LINKS"), "*0\r\n");
    assert_eq!(server.text(&format!("CLUSTER COUNT-FAILURE-REPORTS {two}")), ":0\r\n");
    assert_eq!(server.text("CLUSTER KEYSLOT foo"), ":12182\r\n");
    server.text("CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
    assert_eq!(server.text("GET k0"), "-MOVED 8579 :7002\r\n");
    assert!(server.text("CLUSTER SLOTS").contains("*4\r\n$-1\r\n:7001\r\n"));
    server.text("CONFIG SET cluster-preferred-endpoint-type hostname");
    assert_eq!(server.text("GET k0"), "-MOVED 8579 ?:7002\r\n");
    let slots = server.text("CLUSTER SLOTS");
    assert!(slots.contains("$1\r\n?\r\n:7001\r\n"), "{slots}");
    assert!(slots.contains("*2\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n"), "{slots}");
}

#[test]
fn what_needs_a_bus_names_the_program_to_use() {
    let mut server = server_as(1, |_| {});
    for (line, instead) in [
        ("CLUSTER MEET 127.0.0.1 1", "dunlin cluster add"),
        ("CLUSTER ADDSLOTS 1", "dunlin cluster create"),
        ("CLUSTER SETSLOT 1 STABLE", "dunlin cluster move"),
        ("CLUSTER BUMPEPOCH", "dunlin cluster status"),
    ] {
        let reply = server.text(line);
        assert!(reply.starts_with("-ERR CLUSTER ") && reply.contains(instead), "{reply}");
    }
    for (line, reply) in [
        ("CLUSTER FAILOVER", "-ERR You should send CLUSTER FAILOVER to a replica\r\n".to_owned()),
        ("CLUSTER FAILOVER X", "-ERR syntax error\r\n".to_owned()),
    ] {
        assert_eq!(server.text(line), reply, "{line}");
        server.session = server.connect();
    }
    let mut replica = server_as(3, |_| {});
    assert!(replica.text("CLUSTER FAILOVER TAKEOVER").contains("it would lose writes"));
    assert_eq!(replica.text("CLUSTER FAILOVER"), "", "somebody else answers");
}

#[test]
fn slots_are_counted_and_listed() {
    let mut server = server_as(1, |config| {
        config.cluster_require_full_coverage = false;
        config.cluster_slot_stats_enabled = true;
    });
    for number in 0..300 {
        server.text(&format!("SET {{k2}}{number} v"));
    }
    assert_eq!(server.text("CLUSTER COUNTKEYSINSLOT 449"), ":300\r\n");
    assert_eq!(server.text("CLUSTER COUNTKEYSINSLOT 8579"), ":0\r\n");
    assert_eq!(server.text("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot\r\n");
    let not_a_number = "-ERR value is not an integer or out of range\r\n";
    assert_eq!(server.text("CLUSTER COUNTKEYSINSLOT x"), not_a_number);
    assert!(server.text("CLUSTER GETKEYSINSLOT 449 7").starts_with("*7\r\n"));
    assert!(server.text("CLUSTER GETKEYSINSLOT 449 1000").starts_with("*300\r\n"));
    assert_eq!(server.text("CLUSTER GETKEYSINSLOT 450 10"), "*0\r\n");
    let wrong = "-ERR Invalid slot or number of keys\r\n";
    assert_eq!(server.text("CLUSTER GETKEYSINSLOT 449 -1"), wrong);
    let stats = server.text("CLUSTER SLOT-STATS SLOTSRANGE 449 449");
    assert!(stats.contains("key-count\r\n:300\r\n$8\r\ncpu-usec\r\n:"), "{stats}");
    assert!(!stats.contains("network-bytes-in\r\n:0\r\n"), "{stats}");
    server.text("CONFIG RESETSTAT");
    let stats = server.text("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 2");
    assert!(stats.starts_with("*2\r\n*2\r\n:449\r\n*8\r\n$9\r\nkey-count\r\n:300\r\n"), "{stats}");
    assert!(stats.contains("network-bytes-in\r\n:0\r\n"), "{stats}");
    for (line, reply) in [
        ("ORDERBY FOO", "Unrecognized sort metric for ORDERBY."),
        (
            "ORDERBY KEY-COUNT LIMIT 0",
            "Limit has to lie in between 1 and 16384 (maximum number of slots).",
        ),
        ("ORDERBY KEY-COUNT ASC DESC", "Multiple filters of the same type are disallowed."),
        ("SLOTSRANGE 5 4", "Start slot number 5 is greater than end slot number 4"),
        ("SLOTSRANGE x 4", "Invalid or out of range slot"),
    ] {
        assert_eq!(server.text(&format!("CLUSTER SLOT-STATS {line}")), format!("-ERR {reply}\r\n"));
    }
}

#[test]
fn a_scan_shows_all_keys_of_a_node_and_names_the_next_one() {
    let mut server = server_as(1, |config| config.cluster_require_full_coverage = false);
    for number in 0..200 {
        server.text(&format!("SET {{k2}}{number} v"));
        server.text(&format!("SET {{bar}}{number} v"));
    }
    let (mut cursor, mut shown) = ("0".to_owned(), Vec::new());
    for _ in 0..10_000 {
        let reply = server.text(&format!("CLUSTERSCAN {cursor} COUNT 7"));
        if reply.starts_with("-MOVED 8001 ") {
            break;
        }
        let words: Vec<&str> =
            reply.split("\r\n").filter(|own| !own.starts_with(['*', '$'])).collect();
        cursor = words[0].to_owned();
        shown.extend(words[1..].iter().filter(|own| !own.is_empty()).map(|own| own.to_string()));
        assert_ne!(cursor, "0", "the other node has further slots");
    }
    shown.sort();
    let before = shown.len();
    shown.dedup();
    assert_eq!((before, shown.len()), (400, 400));
    let reply = server.text("CLUSTERSCAN 0 SLOT 449");
    let cursor = reply.strip_prefix("*2\r\n$9\r\n").and_then(|own| own.strip_suffix("\r\n*0\r\n"));
    assert_eq!(cursor.map(|own| base::crc::key_slot(own.as_bytes())), Some(449), "{reply}");
    assert_eq!(server.text("CLUSTERSCAN x"), "-ERR Invalid cursor\r\n");
    assert_eq!(
        server.text("CLUSTERSCAN 1-{k2}-0 SLOT 5"),
        "-ERR Cursor slot mismatch with SLOT argument\r\n"
    );
    let reply = server.text("CLUSTERSCAN 1-{k2}-0 SLOT 449 COUNT 1000 MATCH *19?");
    assert!(reply.starts_with("*2\r\n$1\r\n0\r\n*10\r\n"), "{reply}");
    assert_eq!(server.text("CLUSTERSCAN 0 COUNT 0"), "-ERR syntax error\r\n");
}
