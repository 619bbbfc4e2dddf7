//! How keys and fields that no command reads expire.

use std::sync::atomic::Ordering::Relaxed;

use config::Config;
use engine::reclaim::expire::ExpireCycle;

use super::{Effect, TestServer, server, server_with};

/// "abc" as DUMP serialises it.
const PAYLOAD: &[u8] = b"\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1S";

fn put(server: &mut TestServer, key: &str, at: u64) {
    let at = at.to_string();
    let reply = server.run(&[b"RESTORE", key.as_bytes(), at.as_bytes(), PAYLOAD, b"ABSTTL"]);
    assert_eq!(reply, b"+OK\r\n");
}

/// Runs rounds until nothing is left that has expired. The turn's clock is the real one.
fn run_rounds(server: &mut TestServer) {
    let mut cycle = ExpireCycle::default();
    let gate = server.engine.gates.register();
    for _ in 0..1000 {
        cycle.round(&server.engine, &mut server.turn, &gate);
        let keyspace = &server.engine.keyspace;
        let expired = |database: usize| {
            let mut slots = keyspace.occupied(database);
            slots.any(|slot| keyspace.slot_next_expiry(database, slot) < server.turn.now)
        };
        if !(0..keyspace.databases()).any(expired) {
            return;
        }
    }
    panic!("rounds do not come to an end");
}

/// Puts 1800 keys into one slot and 900 into others; a third of them has expired.
fn filled() -> (TestServer, u64) {
    let mut server = server();
    let now = server.turn.now;
    // Earlier than the real clock, so that an expiry in ten seconds is not refused now.
    server.now = Some(now - 20_000);
    for number in 0..2700 {
        let key = match number % 3 {
            0 => format!("spread:{number}"),
            _ => format!("{{one}}:{number}"),
        };
        let at = if number % 9 < 3 { now - 10_000 } else { now + 1_000_000 };
        put(&mut server, &key, at);
    }
    server.now = None;
    server.journal.take();
    (server, now)
}

#[test]
fn what_has_expired_goes_and_the_rest_stays() {
    let (mut server, now) = filled();
    server.text("SELECT 3");
    server.now = Some(now - 20_000);
    put(&mut server, "elsewhere", now - 10_000);
    server.now = None;
    server.journal.take();
    run_rounds(&mut server);
    let keyspace = &server.engine.keyspace;
    assert_eq!((keyspace.len(0), keyspace.expires(0), keyspace.len(3)), (1800, 1800, 0));
    assert_eq!(server.turn.stats.expired_keys.get(), 901);
    let effects = server.journal.take();
    let is_deletion = |effect: &Effect| effect.argv[0] == b"DEL";
    assert!(effects.iter().all(is_deletion), "no transaction around them");
    let deleted: usize = effects.iter().map(|effect| effect.argv.len() - 1).sum();
    assert_eq!(deleted, 901);
    assert!(effects.iter().any(|effect| effect.database == 3));
    assert!(server.engine.stats.stale_percentage() > 0.0);
}

/// A server with a hash whose every other field has expired, and the real time.
fn with_fields(config: Config, key: &str, fields: usize) -> (TestServer, u64) {
    let mut server = server_with(config);
    let now = server.turn.now;
    server.now = Some(now - 20_000);
    for number in 0..fields {
        server.text(&format!("HSET {key} f{number} value"));
        let at = if number % 2 == 0 { now - 10_000 } else { now + 1_000_000 };
        server.text(&format!("HPEXPIREAT {key} {at} FIELDS 1 f{number}"));
    }
    server.now = None;
    server.journal.take();
    (server, now)
}

#[test]
fn expired_fields_go_and_the_others_stay_in_order() {
    for fields in [20, 3000] {
        let (mut server, now) = with_fields(Config::default(), "h", fields);
        run_rounds(&mut server);
        assert_eq!(server.text("HLEN h"), format!(":{}\r\n", fields / 2));
        assert_eq!(server.turn.stats.expired_subkeys.get(), fields as u64 / 2);
        assert_eq!(server.engine.keyspace.field_expires(0), 1);
        let effects = server.journal.take();
        let of_hash = |effect: &Effect| effect.argv[..2] == [b"HDEL".to_vec(), b"h".to_vec()];
        assert!(effects.iter().all(of_hash), "no transaction around them, and no DEL");
        let removed: usize = effects.iter().map(|effect| effect.argv.len() - 2).sum();
        assert_eq!(removed, fields / 2);
        // The remaining fields go when their time has come, and the key with them.
        server.engine.keyspace.occupied(0).for_each(|slot| {
            assert_eq!(server.engine.keyspace.slot_next_expiry(0, slot), now + 1_000_000);
        });
    }
}

#[test]
fn a_hash_goes_with_its_last_field_and_the_one_beside_it_stays() {
    let (mut server, now) = with_fields(Config::default(), "{s}h", 200);
    for number in (1..200).step_by(2) {
        server.text(&format!("HDEL {{s}}h f{number}"));
    }
    server.now = Some(now - 20_000);
    for field in 0..5 {
        server.text(&format!("HSET {{s}}kept f{field} v"));
    }
    server.text(&format!("HPEXPIREAT {{s}}kept {} FIELDS 1 f1", now - 1));
    server.now = None;
    run_rounds(&mut server);
    assert_eq!(server.text("EXISTS {s}h"), ":0\r\n");
    assert_eq!(server.text("HLEN {s}kept"), ":4\r\n");
    assert_eq!(server.engine.keyspace.field_expires(0), 0);
}

#[test]
fn the_fields_of_one_large_hash_go_in_one_round_and_not_a_few_of_them() {
    // The longest rounds, and several tries: a machine that does other things may use up a round's
    // time before the fields are gone.
    let all_go = || {
        let config = Config { active_expire_effort: 10, hz: 1, ..Config::default() };
        let (mut server, _) = with_fields(config, "h", 4000);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        server.text("HLEN h") == ":2000\r\n"
    };
    assert!((0..5).any(|_| all_go()));
}

#[test]
fn nothing_goes_while_data_is_imported() {
    let (mut server, _) = filled();
    server.engine.config.update(|config| config.import_mode = true);
    let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
    cycle.round(&server.engine, &mut server.turn, &gate);
    assert_eq!(server.engine.keyspace.len(0), 2700);
}

#[test]
fn a_debug_command_stops_it() {
    let (mut server, _) = filled();
    server.engine.debug.active_expire.store(false, Relaxed);
    let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
    cycle.round(&server.engine, &mut server.turn, &gate);
    assert_eq!(server.engine.keyspace.len(0), 2700);
}
