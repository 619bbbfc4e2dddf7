//! Files of a store that are damaged, missing or cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use tests::client::Reply;
use tests::false_primary::EMPTY_FILE;
use tests::observe::wait_for;
use tests::random::Random;
use tests::server::Target;
use tests::volume::Volume;

use crate::program::{
    Following, about, back_up, directory, dunlin, place, position, program, restore, serve, start,
    wait_until_stored,
};

/// A store with a base and a segment.
fn filled(store: &Path) {
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    for number in 0..200 {
        client.call(&["SET", &format!("key:{number}"), "value"]).unwrap();
    }
    back_up(server.port(), store, &[]).good();
    for number in 0..200 {
        client.call(&["RPUSH", "list", &number.to_string()]).unwrap();
    }
    back_up(server.port(), store, &[]).good();
}

fn files(store: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = all.filter(|path| path.file_name().unwrap() != "lock").collect();
    all.sort();
    all
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (store, work) = (directory(), directory());
    filled(store.path());
    let mut random = Random::new(1);
    let all = files(store.path());
    assert_eq!(all.len(), 3, "{all:?}");
    for path in all.iter().filter(|path| path.extension().unwrap() != "json") {
        let good = fs::read(path).unwrap();
        for _ in 0..10 {
            let mut damaged = good.clone();
            damaged[random.below(good.len())] ^= 1 << random.below(8);
            fs::write(path, &damaged).unwrap();
            let said = about(store.path(), &["--verify"]).bad();
            assert!(said.contains(path.file_name().unwrap().to_str().unwrap()), "{said}");
            let to = work.path().join("to");
            restore(store.path(), &to, &[]).bad();
            assert!(!to.exists(), "something was restored");
        }
        fs::write(path, &good[..good.len() - 1]).unwrap();
        about(store.path(), &["--verify"]).bad();
        fs::remove_file(path).unwrap();
        assert!(about(store.path(), &["--verify"]).bad().contains("is missing"));
        assert!(restore(store.path(), &work.path().join("to"), &[]).bad().contains("is missing"));
        fs::write(path, &good).unwrap();
        about(store.path(), &["--verify"]).good();
    }
}

/// It may be there again when it is looked at next.
#[test]
fn a_store_whose_list_cannot_be_found_is_left_alone() {
    let (store, work) = (directory(), directory());
    filled(store.path());
    let server = start(Target::Dunlin);
    let before = files(store.path());
    let (list, elsewhere) = (store.path().join("manifest.json"), work.path().join("list"));
    fs::rename(&list, &elsewhere).unwrap();
    let said = back_up(server.port(), store.path(), &[]).bad();
    assert!(said.contains("manifest.json cannot be found"), "{said}");
    about(store.path(), &["--keep", "1"]).bad();
    fs::rename(&elsewhere, &list).unwrap();
    assert_eq!(files(store.path()), before);
    about(store.path(), &["--verify"]).good();
}

/// It names nothing of what was taken since.
#[test]
fn a_store_with_an_older_list_is_left_alone() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let (list, newest) = (store.path().join("manifest.json"), work.path().join("newest"));
    let (between, within) = (work.path().join("between"), work.path().join("within"));
    client.call_text("SET k 0").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    fs::copy(&list, &between).unwrap();
    let mut following =
        Following::start(server.port(), store.path(), &work.path().join("log"), &[]);
    for value in 1..4 {
        client.call_text(&format!("SET k {value}")).unwrap();
        wait_until_stored(store.path(), position(&mut client).1);
        if value == 1 {
            fs::copy(&list, &within).unwrap();
        }
    }
    following.end();
    fs::rename(&list, &newest).unwrap();
    for older in [between, within] {
        fs::copy(older, &list).unwrap();
        let before = files(store.path());
        let said = back_up(server.port(), store.path(), &[]).bad();
        assert!(said.contains("put the newest one back"), "{said}");
        about(store.path(), &["--keep", "1"]).bad();
        assert_eq!(files(store.path()), before);
    }
    fs::rename(&newest, &list).unwrap();
    about(store.path(), &["--verify"]).good();
    back_up(server.port(), store.path(), &[]).good();
}

#[test]
fn a_list_that_cannot_be_shown_is_an_error() {
    let store = directory();
    filled(store.path());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let words = ["backup", "--to", store.path().to_str().unwrap(), "--list"];
    let said = program(&words).stdout(full).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("cannot be shown"));
}

#[test]
fn files_of_others_stay() {
    let store = directory();
    let names = ["base-system.tar", "stream-notes.txt", "manifest.json.bak", "base-1.rdb"];
    for name in names {
        fs::write(store.path().join(name), "mine").unwrap();
    }
    filled(store.path());
    for name in names {
        assert_eq!(fs::read_to_string(store.path().join(name)).unwrap(), "mine", "{name}");
    }
}

/// No segment of the list begins after it: only the base says that something was there.
#[test]
fn a_gap_before_a_base_is_seen() {
    let (store, work) = (directory(), directory());
    filled(store.path());
    let path = store.path().join("manifest.json");
    let mut list: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    // A base at the end, and before that the first bytes of the stream alone.
    let mut segment = list["segments"][0].take();
    let end = segment["to"].as_u64().unwrap();
    let mut base = list["bases"][0].clone();
    let position = base["position"].as_str().unwrap();
    let (history, begin) = position.split_once(':').unwrap();
    let begin: u64 = begin.parse().unwrap();
    let (history, time) = (history.to_owned(), segment["last_time"].take());
    let name = files(store.path()).into_iter().find(|path| path.extension().unwrap() == "rdb");
    let (name, other) = (name.unwrap(), store.path().join("base-00000009.rdb"));
    fs::copy(name, &other).unwrap();
    base["file"]["name"] = "base-00000009.rdb".into();
    base["position"] = format!("{history}:{end}").into();
    base["time"] = time;
    list["bases"].as_array_mut().unwrap().push(base);
    list["segments"] = serde_json::Value::Array(Vec::new());
    list["next"] = 10.into();
    fs::write(&path, list.to_string()).unwrap();
    let missing = format!("the stream from {history}:{begin} to {end} is missing before base-");
    assert!(about(store.path(), &["--verify"]).bad().contains(&missing));
    assert!(about(store.path(), &["--list"]).good().contains(&missing));
    let to = work.path().join("to");
    let at = |offset: u64| {
        let to = work.path().join(offset.to_string());
        restore(store.path(), &to, &["--at", &format!("{history}:{offset}")])
    };
    let said = at(begin + 1).bad();
    assert!(said.contains("is in a gap") && !to.exists(), "{said}");
    at(begin).good();
    at(end).good();
}

/// A file of the store whose name begins in this way.
fn file_of(store: &Path, kind: &str) -> PathBuf {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files(store).into_iter().find(|path| name(path).starts_with(kind)).unwrap()
}

/// Whatever the run was for: none forgets that there is a hole.
#[test]
fn a_run_that_misses_a_file_says_so_and_begins_anew() {
    let dump = directory();
    let dump = dump.path().join("dump.rdb");
    fs::write(&dump, EMPTY_FILE).unwrap();
    for first in ["take", "remove", "import"] {
        let (store, work) = (directory(), directory());
        let server = start(Target::Dunlin);
        let mut client = server.connect().unwrap();
        let mut places = Vec::new();
        for value in 0..4 {
            client.call_text(&format!("SET k {value}")).unwrap();
            back_up(server.port(), store.path(), &[]).good();
            places.push(place(&position(&mut client)));
        }
        let gone = file_of(store.path(), "stream-");
        let elsewhere = work.path().join("elsewhere");
        fs::rename(&gone, &elsewhere).unwrap();
        let said = match first {
            "take" => back_up(server.port(), store.path(), &[]).bad(),
            "remove" => about(store.path(), &["--keep", "9"]).bad(),
            _ => {
                let (from, to) = (dump.to_str().unwrap(), store.path().to_str().unwrap());
                dunlin(&["backup", "--from", from, "--to", to]).bad()
            }
        };
        assert!(said.contains("is missing"), "{said}");
        client.call_text("SET k 9").unwrap();
        let said = back_up(server.port(), store.path(), &[]).good();
        assert_eq!(said.contains("base at"), first != "take", "{said}");
        let to = |name: &str| work.path().join(name);
        restore(store.path(), &to("newest"), &[]).good();
        restore(store.path(), &to("gap"), &["--at", &places[2]]).bad();
        let name = gone.file_name().unwrap().to_str().unwrap();
        assert!(about(store.path(), &["--verify"]).bad().contains(&format!("{name} is missing")));
        // It comes back, and with it the points that need it: before the next run, and after it.
        fs::rename(&elsewhere, &gone).unwrap();
        for time in ["before", "after"] {
            about(store.path(), &["--verify"]).good();
            restore(store.path(), &to(time), &["--at", &places[2]]).good();
            back_up(server.port(), store.path(), &[]).good();
        }
        assert!(gone.exists());
    }
}

#[test]
fn a_base_that_was_away_for_a_run_has_its_stream_still() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    for value in 0..2 {
        client.call_text(&format!("SET k {value}")).unwrap();
        back_up(server.port(), store.path(), &[]).good();
    }
    let at = place(&position(&mut client));
    let (gone, elsewhere) = (file_of(store.path(), "base-"), work.path().join("elsewhere"));
    fs::rename(&gone, &elsewhere).unwrap();
    back_up(server.port(), store.path(), &[]).bad();
    back_up(server.port(), store.path(), &["--full"]).good();
    fs::rename(&elsewhere, &gone).unwrap();
    back_up(server.port(), store.path(), &[]).good();
    about(store.path(), &["--verify"]).good();
    restore(store.path(), &work.path().join("to"), &["--at", &at]).good();
    // Nor is it waited for longer than it would be kept.
    fs::remove_file(&gone).unwrap();
    back_up(server.port(), store.path(), &[]).bad();
    back_up(server.port(), store.path(), &["--keep", "1"]).good();
    about(store.path(), &["--verify"]).good();
}

/// A restore takes nothing older for it, nor what an older line has got meanwhile.
#[test]
fn the_newest_point_stays_the_newest_when_its_files_are_missing() {
    for kind in ["base-", "stream-"] {
        let (store, work) = (directory(), directory());
        let servers = [start(Target::Dunlin), start(Target::Dunlin)];
        let mut clients = servers.each_ref().map(|server| server.connect().unwrap());
        for (server, client) in servers.iter().zip(&mut clients) {
            for value in 0..2 {
                client.call_text(&format!("SET k {value}")).unwrap();
                back_up(server.port(), store.path(), &[]).good();
            }
        }
        let end = place(&position(&mut clients[1]));
        // The base or the segment of the second server.
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut own = files(store.path());
        own.retain(|path| name(path).starts_with(kind));
        assert_eq!(own.len(), 2);
        let (gone, elsewhere) = (&own[1], work.path().join("elsewhere"));
        fs::rename(gone, &elsewhere).unwrap();
        about(store.path(), &["--keep", "9"]).bad();
        let to = |name: &str| work.path().join(name);
        for at in [&[][..], &["--at", "2100-01-01T00:00:00Z"]] {
            let said = restore(store.path(), &to("refused"), at).bad();
            assert!(said.contains(&format!("needs {}, which is missing", name(gone))), "{said}");
        }
        // The first server has its stream still.
        clients[0].call_text("SET k newest").unwrap();
        let said = back_up(servers[0].port(), store.path(), &[]).good();
        assert!(said.contains("base at"), "{said}");
        fs::rename(&elsewhere, gone).unwrap();
        about(store.path(), &["--verify"]).good();
        restore(store.path(), &to("second"), &["--at", &end]).good();
        restore(store.path(), &to("newest"), &[]).good();
        let server = serve(Target::Dunlin, &to("newest"));
        let reply = server.connect().unwrap().call_text("GET k").unwrap();
        assert_eq!(reply, Reply::Bulk(b"newest".to_vec()));
    }
}

#[test]
fn a_list_that_is_none_is_refused() {
    let (store, work) = (directory(), directory());
    filled(store.path());
    let list = store.path().join("manifest.json");
    let good = fs::read_to_string(&list).unwrap();
    let to = work.path().join("to");
    let largest = |field: &&str| {
        let mut list: serde_json::Value = serde_json::from_str(&good).unwrap();
        let largest =
            if field.ends_with("time") { u64::MAX.to_string().into() } else { u64::MAX.into() };
        *list.pointer_mut(field).unwrap() = largest;
        list.to_string()
    };
    let fields = ["/generation", "/segments/0/line", "/bases/0/file/bytes", "/bases/0/time"];
    let others = [
        good[..good.len() / 2].to_owned(),
        String::new(),
        good.replace("dunlin-backup", "other"),
        good.replace("\"version\": 1", "\"version\": 999"),
        good.replace("base-00000001", "../../base-1"),
    ];
    for bad in others.into_iter().chain(fields.iter().map(largest)) {
        assert_ne!(bad, good);
        fs::write(&list, bad).unwrap();
        restore(store.path(), &to, &[]).bad();
        about(store.path(), &["--verify"]).bad();
        // Nor does a backup throw away what it does not understand.
        back_up(1, store.path(), &[]).bad();
        assert_eq!(files(store.path()).len(), 3);
    }
    fs::write(&list, good).unwrap();
    restore(store.path(), &to, &[]).good();
}

/// A server would start empty with some of the files.
#[test]
fn a_restore_that_is_killed_is_done_again() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    for number in 0..40u32 {
        client.call(&["SET", &number.to_string(), &"value ".repeat(100_000)]).unwrap();
    }
    back_up(server.port(), store.path(), &[]).good();
    let (to, from) = (work.path().join("to"), store.path().to_str().unwrap());
    let words = ["restore", "--from", from, "--to", to.to_str().unwrap()];
    let mut restoring = program(&words).stdout(Stdio::null()).spawn().unwrap();
    wait_for("something is written", || {
        fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_some())
    });
    restoring.kill().unwrap();
    restoring.wait().unwrap();
    let (whole, part) = (to.join("appendonlydir"), to.join("appendonlydir.part"));
    // It may have come to its end before it was killed.
    if whole.exists() {
        fs::rename(&whole, &part).unwrap();
        fs::remove_file(part.join("appendonly.aof.manifest")).unwrap();
    }
    // What it has not written stays.
    let note = part.join("note");
    fs::write(&note, "mine").unwrap();
    restore(store.path(), &to, &[]).bad();
    assert!(note.exists() && !whole.exists());
    fs::remove_file(note).unwrap();
    fs::write(to.join("note"), "mine").unwrap();
    assert!(restore(store.path(), &to, &[]).bad().contains("is not empty"));
    fs::remove_file(to.join("note")).unwrap();
    // Nor what another restore is just writing.
    let locked = fs::File::open(&to).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    assert!(restore(store.path(), &to, &[]).bad().contains("another restore writes there"));
    drop(locked);
    restore(store.path(), &to, &[]).good();
    assert!(!part.exists());
    let server = serve(Target::Dunlin, &to);
    let size = server.connect().unwrap().call_text("DBSIZE").unwrap();
    assert_eq!(size, Reply::Integer(40));
}

/// A whole file has the name that was given, or none.
#[test]
fn a_restore_of_a_file_that_is_killed_leaves_none() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    for number in 0..40u32 {
        let mut random = Random::new(number.into());
        let value: Vec<u8> = (0..1 << 17).flat_map(|_| random.bits().to_le_bytes()).collect();
        client.call(&[&b"SET"[..], number.to_string().as_bytes(), &value]).unwrap();
    }
    back_up(server.port(), store.path(), &[]).good();
    let (to, from) = (work.path().join("f.rdb"), store.path().to_str().unwrap());
    let words = ["restore", "--from", from, "--rdb", to.to_str().unwrap()];
    let mut restoring = program(&words).stdout(Stdio::null()).spawn().unwrap();
    wait_for("something is written", || fs::read_dir(work.path()).unwrap().next().is_some());
    restoring.kill().unwrap();
    restoring.wait().unwrap();
    let base = fs::read(file_of(store.path(), "base-")).unwrap();
    // It may have come to its end before it was killed.
    if to.exists() {
        assert!(fs::read(&to).unwrap() == base, "the file is not whole");
        fs::rename(&to, work.path().join("f.rdb.part")).unwrap();
    }
    dunlin(&words).good();
    assert!(fs::read(&to).unwrap() == base);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
}

/// The user of the server may have put it there.
#[test]
fn a_restore_follows_no_link() {
    let (store, work) = (directory(), directory());
    filled(store.path());
    let [to, other] = ["to", "other"].map(|name| work.path().join(name));
    restore(store.path(), &other, &[]).good();
    fs::create_dir(&to).unwrap();
    let (link, others) = (to.join("appendonlydir.part"), other.join("appendonlydir"));
    std::os::unix::fs::symlink(&others, &link).unwrap();
    restore(store.path(), &to, &[]).bad();
    assert_eq!(fs::read_dir(&others).unwrap().count(), 3);
    fs::remove_file(&link).unwrap();
    restore(store.path(), &to, &[]).good();
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let Some(volume) = Volume::mount(4 << 20, "a_full_disk_leaves_what_was_there").unwrap() else {
        return;
    };
    let store = volume.path().join("store");
    filled(&store);
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    for number in 0..8u32 {
        // What cannot be compressed.
        let mut random = Random::new(number.into());
        let value: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
        client.call(&[&b"SET"[..], number.to_string().as_bytes(), &value]).unwrap();
    }
    let said = back_up(server.port(), &store, &[]).bad();
    assert!(said.contains("No space left"), "{said}");
    about(&store, &["--verify"]).good();
    assert_eq!(files(&store).len(), 3, "{:?}", files(&store));
    // A restore that does not fit leaves nothing.
    let big = directory();
    back_up(server.port(), big.path(), &[]).good();
    let to = volume.path().join("to");
    let said = restore(big.path(), &to, &[]).bad();
    assert!(said.contains("No space left") && !to.exists(), "{said}");
}
