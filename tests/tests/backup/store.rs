//! What stays in a store, and files that go in and out.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use tests::client::Reply;
use tests::observe::wait_for;
use tests::server::Target;

use crate::program::{
    Following, about, back_up, directory, dunlin, place, position, restore, serve, start,
    wait_until_stored,
};

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[test]
fn a_time_is_restored_as_well_as_a_position() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let early = now_ms();
    let mut following =
        Following::start(server.port(), store.path(), &work.path().join("log"), &[]);
    following.wait_for("is complete");
    let mut times = Vec::new();
    for number in 1..4 {
        client.call_text(&format!("SET k {number}")).unwrap();
        // Longer than what a time is precise to, and than the way of a byte.
        std::thread::sleep(std::time::Duration::from_millis(300));
        times.push(now_ms());
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    following.end();
    for (index, time) in times.iter().enumerate() {
        let to = work.path().join(index.to_string());
        restore(store.path(), &to, &["--at", &time.to_string()]).good();
        let server = serve(Target::Reference, &to);
        let reply = server.connect().unwrap().call_text("GET k").unwrap();
        assert_eq!(reply, Reply::Bulk((index + 1).to_string().into_bytes()));
    }
    let to = work.path().join("to");
    let said = restore(store.path(), &to, &["--at", &(early - 1000).to_string()]).bad();
    assert!(said.contains("before the first base") && !to.exists(), "{said}");
    let said = restore(store.path(), &to, &["--at", "2100-01-01T00:00:00+01:00"]).good();
    assert!(said.contains("nothing has arrived after"), "{said}");
    // Not over data that is there.
    let said = restore(store.path(), &to, &[]).bad();
    assert!(said.contains("is not empty"), "{said}");
}

#[test]
fn a_time_in_a_gap_is_refused() {
    let (store, work) = (directory(), directory());
    let mut between = 0;
    for number in 0..2 {
        let server = start(Target::Dunlin);
        server.connect().unwrap().call_text("SET k v").unwrap();
        back_up(server.port(), store.path(), &[]).good();
        if number == 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            between = now_ms();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    let said = restore(store.path(), work.path(), &["--at", &between.to_string()]).bad();
    assert!(said.contains("is in a gap"), "{said}");
}

#[test]
fn old_bases_go_and_what_is_needed_stays() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let mut places = Vec::new();
    for number in 0..4 {
        client.call_text(&format!("SET k {number}")).unwrap();
        back_up(server.port(), store.path(), &["--full", "--keep", "2"]).good();
        places.push(place(&position(&mut client)));
    }
    about(store.path(), &["--verify"]).good();
    let names = |kind: &str| {
        let names = fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with(kind)).count()
    };
    assert_eq!(names("base-"), 2);
    let at = |index: usize| {
        restore(store.path(), &work.path().join(index.to_string()), &["--at", &places[index]])
    };
    at(0).bad();
    at(3).good();
    at(2).good();
    let server = serve(Target::Dunlin, &work.path().join("2"));
    let reply = server.connect().unwrap().call_text("GET k").unwrap();
    assert_eq!(reply, Reply::Bulk(b"2".to_vec()));
    let said = about(store.path(), &["--keep", "1"]).good();
    assert!(said.contains("1 restore points"), "{said}");
    assert_eq!(names("base-"), 1);
}

#[test]
fn bases_are_taken_beside_the_stream_and_old_ones_go() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let options = ["--base-every", "1s", "--keep", "1"];
    let log = work.path().join("log");
    let mut following = Following::start(server.port(), store.path(), &log, &options);
    let mut count = 0;
    wait_for("three bases", || {
        client.call_text("INCR count").unwrap();
        count += 1;
        following.said().matches("is complete").count() >= 3
    });
    client.call_text("INCR count").unwrap();
    let at = position(&mut client);
    wait_until_stored(store.path(), at.1);
    following.end();
    about(store.path(), &["--verify"]).good();
    let listed = about(store.path(), &["--list", "--json"]).good();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    // One line without a gap, and one base of it.
    assert_eq!(listed["lines"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["lines"][0]["bases"].as_array().unwrap().len(), 1, "{listed}");
    let to = work.path().join("to");
    restore(store.path(), &to, &["--at", &place(&at)]).good();
    let server = serve(Target::Dunlin, &to);
    let reply = server.connect().unwrap().call_text("GET count").unwrap();
    assert_eq!(reply, Reply::Bulk((count + 1).to_string().into_bytes()));
}

/// The stream that leads to it has not been written yet when the base is complete.
#[test]
fn a_backup_that_is_killed_after_a_base_leaves_no_gap_before_it() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let options = ["--base-every", "1s", "--segment-seconds", "600"];
    let log = work.path().join("log");
    let mut following = Following::start(server.port(), store.path(), &log, &options);
    wait_for("two bases", || {
        client.call_text("INCR count").unwrap();
        following.said().matches("is complete").count() >= 2
    });
    wait_for("two bases in the list", || {
        let listed = about(store.path(), &["--list"]).good();
        listed.matches("base-").count() >= 2
    });
    following.kill();
    about(store.path(), &["--verify"]).good();
}

#[test]
fn fields_that_expire_go_from_a_dunlin_to_a_redis() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    client.call_text("HSET hash f v g w").unwrap();
    client.call_text("HEXPIRE hash 100000 FIELDS 1 f").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    client.call_text("HEXPIRE hash 200000 FIELDS 1 g").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    let times = "HPEXPIRETIME hash FIELDS 2 f g";
    let expected = client.call_text(times).unwrap();
    restore(store.path(), work.path(), &[]).good();
    let server = serve(Target::Reference, work.path());
    assert_eq!(server.connect().unwrap().call_text(times).unwrap(), expected);
}

#[test]
fn a_plain_file_goes_in_and_out() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Reference);
    let mut client = server.connect().unwrap();
    client.call_text("SET k v").unwrap();
    client.call_text("SAVE").unwrap();
    let dump = server.directory().join("dump.rdb");
    let to = store.path().to_str().unwrap();
    let said = dunlin(&["backup", "--from", dump.to_str().unwrap(), "--to", to]).good();
    assert!(said.contains("took 1 keys"), "{said}");
    // All data at once is what the store has as a base.
    let out = work.path().join("out.rdb");
    let words = ["restore", "--from", to, "--rdb", out.to_str().unwrap()];
    dunlin(&words).good();
    assert_eq!(fs::read(&out).unwrap(), fs::read(&dump).unwrap());
    assert!(dunlin(&words).bad().contains("exists"));
    let data = work.path().join("data");
    restore(store.path(), &data, &[]).good();
    let server = serve(Target::Dunlin, &data);
    let reply = server.connect().unwrap().call_text("GET k").unwrap();
    assert_eq!(reply, Reply::Bulk(b"v".to_vec()));
    let before = fs::read_dir(store.path()).unwrap().count();
    let of_module = b"REDIS0011\x07\x03doc\x81\0\0\0\0\0\0\0\0\0\xff\0\0\0\0\0\0\0\0";
    let refused: [(&[u8], &str); 2] = [
        (b"REDIS0011 and then nothing of the kind", "out.rdb"),
        (of_module, "the key \"doc\" has a value of a module"),
    ];
    for (bytes, problem) in refused {
        fs::write(&out, bytes).unwrap();
        let words = ["backup", "--from", out.to_str().unwrap(), "--to", to];
        let said = dunlin(&words).bad();
        assert!(said.contains(problem), "{said}");
    }
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), before);
    about(store.path(), &["--verify"]).good();
}

/// A file without keys that says when it was written, in seconds.
fn empty_file_of(seconds: &str) -> Vec<u8> {
    let length = u8::try_from(seconds.len()).unwrap();
    [&b"REDIS0011\xfa\x05ctime"[..], &[length], seconds.as_bytes(), &[0xff], &[0; 8]].concat()
}

/// Whatever the file says of its time.
#[test]
fn a_plain_file_leaves_the_points_of_the_server_as_they_were() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    client.call_text("SET k 1").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    client.call_text("SET k 2").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    let (then, place_then) = (now_ms(), place(&position(&mut client)));
    let mut places = Vec::new();
    for seconds in ["1", "4000000000", "18446744073709551", "18446744073709551615", "-1"] {
        let file = work.path().join(seconds);
        fs::write(&file, empty_file_of(seconds)).unwrap();
        let words = ["backup", "--from", file.to_str().unwrap(), "--to"];
        let kept = [store.path().to_str().unwrap(), "--keep-days", "1"];
        let said = dunlin(&[&words[..], &kept].concat()).good();
        let place = said.split(", at ").nth(1).unwrap().split(',').next().unwrap();
        places.push(place.to_owned());
    }
    let listed = about(store.path(), &["--list", "--json"]).good();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let lines = listed["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1 + places.len(), "{listed}");
    let times = lines.iter().map(|line| line["bases"][0]["time"].as_str().unwrap());
    assert!(times.clone().all(|time| time < "2096"), "{listed}");
    client.call_text("SET k 3").unwrap();
    let said = back_up(server.port(), store.path(), &["--keep-days", "1"]).good();
    assert!(said.contains("the stream goes on after"), "{said}");
    let (then, newest) = (then.to_string(), place(&position(&mut client)));
    let to = |name: &str| work.path().join(format!("to-{name}"));
    for (name, at, restored) in [
        ("newest", &[][..], &newest),
        ("time", &["--at", &then], &place_then),
        ("import", &["--at", &places[1]], &places[1]),
    ] {
        let said = restore(store.path(), &to(name), at).good();
        assert!(said.contains(&format!("restored {restored}")), "{name}: {said}");
    }
    let server = serve(Target::Dunlin, &to("newest"));
    let reply = server.connect().unwrap().call_text("GET k").unwrap();
    assert_eq!(reply, Reply::Bulk(b"3".to_vec()));
    // Of each kind, the newest one.
    about(store.path(), &["--keep", "1"]).good();
    for at in [&["--at", &newest][..], &["--at", &places[4]]] {
        restore(store.path(), &to(at[1]), at).good();
    }
    restore(store.path(), &to("gone"), &["--at", &places[1]]).bad();
}

#[test]
fn two_backups_do_not_write_to_one_store() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut following =
        Following::start(server.port(), store.path(), &work.path().join("log"), &[]);
    following.wait_for("is complete");
    let said = back_up(server.port(), store.path(), &[]).bad();
    assert!(said.contains("another backup writes there"), "{said}");
    following.end();
    back_up(server.port(), store.path(), &[]).good();
}

#[test]
fn what_is_asked_wrongly_changes_nothing() {
    for words in [
        &["backup"][..],
        &["backup", "--to", "nowhere"],
        &["backup", "--from", "redis://h", "--to", "d", "--no-such"],
        &["backup", "--from", "http://h", "--to", "d"],
        &["restore"],
        &["restore", "--from", "d", "--to", "e", "--at", "soon"],
    ] {
        let ended = dunlin(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.text);
        assert!(ended.text.contains("Usage:"), "{words:?}");
    }
    let empty = directory();
    for rest in [&["--list"][..], &["--verify"], &["--keep", "1"]] {
        let nowhere = empty.path().join("mistyped");
        let said = about(&nowhere, rest).bad();
        assert!(said.contains("has no backup") && !nowhere.exists(), "{said}");
    }
}
