//! Eviction as commands see it.

use store::Key;

use config::{Config, MaxmemoryPolicy, Permission};

use super::{TestServer, server, server_with};

const LIMIT: usize = 1_000_000;

/// A server with keys that stays over its limit by this many bytes, whatever is evicted.
fn over_by(excess: usize, policy: MaxmemoryPolicy, keys: usize) -> TestServer {
    let mut server =
        server_with(Config { enable_debug_command: Permission::Yes, ..Config::default() });
    server.now = Some(1_700_000_000_000);
    assert_eq!(server.text(&format!("DEBUG POPULATE {keys}")), "+OK\r\n");
    server.engine.config.update(|config| {
        config.maxmemory = LIMIT as u64;
        config.maxmemory_policy = policy;
        config.maxmemory_eviction_tenacity = 100;
    });
    server.host.use_memory(LIMIT + excess);
    server.journal.take();
    server
}

fn keys(server: &TestServer) -> usize {
    server.engine.keyspace.len(0)
}

fn has(server: &TestServer, key: &str) -> bool {
    let key = Key::new(key.as_bytes());
    let inside = server.gate.enter();
    server.engine.lock_slot(inside.pinned(), key.slot).find(0, &key).is_some()
}

fn evict(server: &mut TestServer) -> bool {
    let inside = server.gate.enter();
    server.engine.evict(inside.pinned(), &mut server.turn)
}

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

#[test]
fn a_command_evicts_what_is_too_much_and_no_more() {
    let mut server = over_by(1000, MaxmemoryPolicy::AllkeysLru, 1000);
    assert_eq!(server.text("SCARD nokey"), ":0\r\n");
    let evicted = 1000 - keys(&server);
    // Each of the keys takes 32 bytes.
    assert_eq!(evicted, 32, "of 32 bytes each");
    let journal = server.journal.take();
    assert_eq!(journal.len(), evicted);
    assert!(journal.iter().all(|effect| effect.argv[0] == b"DEL"));
    assert_eq!(server.engine.stats.totals().evicted_keys, evicted as u64);
}

/// As on the reference: the command of the client that waits begins again.
#[test]
fn a_waiter_gets_no_memory_that_there_is_not() {
    let mut server = over_by(1000, MaxmemoryPolicy::NoEviction, 1);
    server.host.use_memory(0);
    server.text("RPUSH from v");
    let (mut moving, mut taking) = (server.connect(), server.connect());
    server.text_as(&mut moving, "BLMOVE list other LEFT LEFT 0");
    server.host.use_memory(LIMIT + 1000);
    // The time of a turn is that of its look at the memory.
    server.now = server.now.map(|now| now + 1);
    assert_eq!(server.text("RENAME from list"), "+OK\r\n");
    let served = moving.client.inbox.lock().served.take().expect("the wait is over");
    assert_eq!(String::from_utf8(served.reply.to_vec()).unwrap(), OOM);
    assert_eq!(server.text("LRANGE list 0 -1"), "*1\r\n$1\r\nv\r\n");
    server.text("RENAME list from");
    server.text_as(&mut taking, "BLPOP list 0");
    server.text("RENAME from list");
    let served = taking.client.inbox.lock().served.take().expect("the wait is over");
    assert!(served.reply.to_vec().starts_with(b"*2\r\n"), "it needs no memory");
}

#[test]
fn nothing_is_evicted_while_data_is_imported() {
    let mut server = over_by(1000, MaxmemoryPolicy::AllkeysLru, 1000);
    server.engine.config.update(|config| config.import_mode = true);
    assert_eq!(server.text("SET k v"), OOM);
    assert_eq!(keys(&server), 1000);
}

#[test]
fn what_was_freed_in_this_turn_counts() {
    let mut server = over_by(1000, MaxmemoryPolicy::AllkeysRandom, 1000);
    server.begin_turn();
    evict(&mut server);
    server.host.allocate(-1000);
    for _ in 0..3 {
        evict(&mut server);
    }
    assert_eq!(keys(&server), 1000 - 32);
    server.host.use_memory(LIMIT + 2000);
    server.begin_turn();
    evict(&mut server);
    assert_eq!(keys(&server), 1000 - 64, "other threads have used as much again");
}

#[test]
fn what_was_allocated_in_this_turn_counts() {
    let mut server = over_by(0, MaxmemoryPolicy::AllkeysRandom, 1000);
    server.begin_turn();
    assert!(!evict(&mut server));
    assert_eq!(keys(&server), 1000);
    server.host.allocate(320);
    evict(&mut server);
    assert_eq!(keys(&server), 1000 - 10);
}

#[test]
fn space_for_requests_does_not_count() {
    let mut server = over_by(1000, MaxmemoryPolicy::AllkeysRandom, 1000);
    server.begin_turn();
    server.engine.note_scratch(&mut server.turn, 1000);
    evict(&mut server);
    assert_eq!(keys(&server), 1000);
    server.engine.note_scratch(&mut server.turn, 680);
    evict(&mut server);
    assert_eq!(keys(&server), 1000 - 10);
}

#[test]
fn when_all_is_gone_writes_are_refused() {
    for policy in [MaxmemoryPolicy::AllkeysLru, MaxmemoryPolicy::AllkeysLfu] {
        let mut server = over_by(usize::MAX / 2, policy, 100);
        assert_eq!(server.text("SADD k v"), OOM);
        assert_eq!(keys(&server), 0);
        assert_eq!(server.text("SCARD k"), ":0\r\n");
        server.host.use_memory(0);
        server.now = server.now.map(|now| now + 1);
        assert_eq!(server.text("SADD k v"), ":1\r\n");
        let (total, current) = server.engine.memory.exceeded(server.turn.monotonic_us);
        assert!(total > 0 && current == 0);
    }
}

#[test]
fn the_order_of_the_policy_is_kept() {
    let mut server = over_by(320, MaxmemoryPolicy::AllkeysLru, 40);
    // All but ten are used later; enough samples find the ten.
    server.engine.config.update(|config| config.maxmemory_samples = 400);
    server.host.use_memory(0);
    server.now = Some(1_700_000_100_000);
    for index in 10..40 {
        server.text(&format!("SCARD key:{index}"));
    }
    server.host.use_memory(LIMIT + 320);
    server.text("SCARD nokey");
    let left = (0..10).filter(|index| has(&server, &format!("key:{index}")));
    assert_eq!(left.count(), 0, "ten keys of 32 bytes each, all unused");
    assert_eq!(keys(&server), 30);
}

#[test]
fn keys_that_do_not_expire_are_spared() {
    let mut server = over_by(usize::MAX / 2, MaxmemoryPolicy::VolatileTtl, 1000);
    assert_eq!(server.text("SADD k v"), OOM);
    server.host.use_memory(0);
    let key = Key::new(b"key:7");
    let inside = server.gate.enter();
    let mut locked = server.engine.lock_slot(inside.pinned(), key.slot);
    locked.find_mut(0, &key).expect("it was added").set_expire_at(Some(u64::MAX / 2));
    drop(locked);
    drop(inside);
    server.host.use_memory(usize::MAX);
    // An expiring key is found among many keys in a few attempts.
    let refused = (0..100).position(|_| server.text("SADD k v") == OOM);
    assert!(refused.is_some());
    assert_eq!(keys(&server), 999);
}

#[test]
fn nothing_is_evicted_without_a_policy_or_during_a_pause() {
    let mut server = over_by(1000, MaxmemoryPolicy::NoEviction, 10);
    assert_eq!(server.text("SADD k v"), OOM);
    assert_eq!(server.text("SREM k v"), ":0\r\n");
    assert_eq!(server.text("MULTI"), "+OK\r\n");
    assert_eq!(server.text("SCARD k"), "+QUEUED\r\n");
    assert_eq!(server.text("SADD k v"), OOM);
    assert!(server.text("EXEC").starts_with("-EXECABORT"));

    let mut server = over_by(1000, MaxmemoryPolicy::AllkeysLru, 10);
    server.engine.stop_writes(|| ());
    server.begin_turn();
    assert!(!evict(&mut server));
    assert_eq!(keys(&server), 10);
}

#[test]
fn few_samples_come_close_to_the_true_order() {
    base::rng::fix_seed(1);
    let mut server = over_by(0, MaxmemoryPolicy::AllkeysLru, 0);
    server.host.use_memory(0);
    for minute in 0..20 {
        server.now = Some(1_700_000_000_000 + minute * 60_000);
        server.text(&format!("DEBUG POPULATE 100 {minute}"));
    }
    let before = keys(&server);
    server.host.use_memory(LIMIT + before / 2 * 32);
    server.begin_turn();
    evict(&mut server);
    assert!((before / 2 - 10..=before / 2).contains(&keys(&server)), "half of them went");
    let early = (0..10).flat_map(|minute| (0..100).map(move |index| format!("{minute}:{index}")));
    let spared = early.filter(|key| has(&server, key)).count();
    assert!(spared < 150, "{spared} of the 1000 oldest keys outlived younger ones");
}

#[test]
fn watchers_are_told_of_evictions() {
    let mut server = over_by(0, MaxmemoryPolicy::AllkeysRandom, 10);
    assert_eq!(server.text("WATCH key:1"), "+OK\r\n");
    server.host.use_memory(usize::MAX);
    assert_eq!(server.text("MULTI"), "+OK\r\n");
    assert_eq!(keys(&server), 0);
    assert_eq!(server.text("EXEC"), "*-1\r\n");
}

#[test]
fn what_takes_long_to_free_is_left_to_the_background() {
    let mut server = server();
    let large = "v".repeat(20_000);
    let fill = |server: &mut TestServer, key: &str| {
        for _ in 0..10 {
            server.text(&format!("RPUSH {key} {large}"));
        }
    };
    let mut freed = 0;
    for removal in ["UNLINK l", "DEL l", "SET l short", "RENAME other l", "PEXPIREAT l 1"] {
        fill(&mut server, "l");
        server.text("SET other value");
        server.text(removal);
        freed += 1;
        assert_eq!(server.engine.memory.freed_objects(), freed, "after {removal}");
        server.text("DEL l");
    }
    let fields: String = (0..5).map(|field| format!(" {field} {large}")).collect();
    server.text(&format!("HSET h{fields}"));
    server.text("UNLINK h");
    assert_eq!(server.engine.memory.freed_objects(), freed + 1, "a hash of few large fields");
    server.text(&format!("RPUSH short {}", "v ".repeat(4000).trim()));
    server.text("UNLINK short");
    assert_eq!(server.engine.memory.freed_objects(), freed + 1, "many elements in two nodes");
}
