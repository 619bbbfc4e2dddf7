//! Runs one after the other, and what happens to their links.

use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::spawn;

use tests::certificates::Encryption;
use tests::client::Reply;
use tests::false_primary::{FalsePrimary, HISTORY, full_sync};
use tests::observe::wait_for;
use tests::proxy::Proxy;
use tests::server::{Server, Target};

use crate::program::{
    AT_ONCE, Following, about, back_up, directory, dunlin, place, position, restore, serve, start,
    url, wait_until_stored,
};

#[test]
fn later_runs_go_on_where_the_last_one_ended() {
    for target in [Target::Dunlin, Target::Reference] {
        let (store, work) = (directory(), directory());
        let server = start(target);
        let mut client = server.connect().unwrap();
        client.call_text("SET k 1").unwrap();
        let said = back_up(server.port(), store.path(), &[]).good();
        assert!(said.contains("base") && said.contains("1 keys"), "{said}");
        let mut places = vec![place(&position(&mut client))];
        for value in 2..5 {
            client.call_text(&format!("SET k {value}")).unwrap();
            let said = back_up(server.port(), store.path(), &[]).good();
            assert!(said.contains("the stream goes on after"), "{said}");
            places.push(place(&position(&mut client)));
        }
        let said = about(store.path(), &["--verify"]).good();
        assert!(said.contains("all 4 files are"), "{said}");
        for (index, at) in places.iter().enumerate() {
            let to = work.path().join(index.to_string());
            restore(store.path(), &to, &["--at", at]).good();
            let server = serve(target, &to);
            let reply = server.connect().unwrap().call_text("GET k").unwrap();
            assert_eq!(reply, Reply::Bulk((index + 1).to_string().into_bytes()));
        }
        // A server of another history has nothing that goes on.
        let other = start(target);
        other.connect().unwrap().call_text("SET other 1").unwrap();
        let said = back_up(other.port(), store.path(), &[]).good();
        assert!(said.contains("no longer has the stream after"), "{said}");
        let listed = about(store.path(), &["--list", "--json"]).good();
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["lines"].as_array().unwrap().len(), 2);
        // What was there before can still be restored.
        restore(store.path(), &work.path().join("old"), &["--at", &places[0]]).good();
    }
}

#[test]
fn a_replica_is_backed_up_as_its_primary_is() {
    let (store, work) = (directory(), directory());
    let primary = start(Target::Dunlin);
    let replica = start(Target::Dunlin);
    tests::replication::follow(&replica, primary.port()).unwrap();
    let mut client = primary.connect().unwrap();
    client.call_text("SELECT 3").unwrap();
    client.call_text("SET k 1").unwrap();
    tests::replication::catch_up(&primary, &replica).unwrap();
    back_up(replica.port(), store.path(), &[]).good();
    // The stream has no SELECT any more.
    client.call_text("INCR k").unwrap();
    tests::replication::catch_up(&primary, &replica).unwrap();
    let at = position(&mut client);
    // Both have the same stream.
    let said = back_up(primary.port(), store.path(), &[]).good();
    assert!(said.contains("the stream goes on after"), "{said}");
    restore(store.path(), work.path(), &["--at", &place(&at)]).good();
    let server = serve(Target::Dunlin, work.path());
    let mut client = server.connect().unwrap();
    client.call_text("SELECT 3").unwrap();
    assert_eq!(client.call_text("GET k").unwrap(), Reply::Bulk(b"2".to_vec()));
}

#[test]
fn passwords_are_never_shown() {
    let (store, work) = (directory(), directory());
    let server = Server::start(Target::Dunlin, &[AT_ONCE, ("requirepass", "s3cret")]).unwrap();
    let to = store.path().to_str().unwrap();
    let from = format!("redis://:s3cret@127.0.0.1:{}", server.port());
    let mut all = dunlin(&["backup", "--from", &from, "--to", to]).good();
    all += &dunlin(&["backup", "--to", to, "--list"]).good();
    let wrong = format!("redis://:wr0ng@127.0.0.1:{}", server.port());
    all += &dunlin(&["backup", "--from", &wrong, "--to", to]).bad();
    let gone = "redis://:s3cret@127.0.0.1:1";
    all += &dunlin(&["backup", "--from", gone, "--to", to]).bad();
    all += &fs::read_to_string(store.path().join("manifest.json")).unwrap();
    assert!(!all.contains("s3cret") && !all.contains("wr0ng"), "{all}");
    restore(store.path(), &work.path().join("to"), &[]).good();
}

/// Its user has no right to ask how far it is.
#[test]
fn a_run_at_a_server_that_never_rests_ends() {
    let store = directory();
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    client.call_text("ACL SETUSER backup on >secret +psync +replconf +ping").unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(SeqCst) {
                client.call_text("INCR count").unwrap();
            }
        });
        let from = format!("redis://backup:secret@127.0.0.1:{}", server.port());
        let run = dunlin(&["backup", "--from", &from, "--to", store.path().to_str().unwrap()]);
        ended.store(true, SeqCst);
        run.good();
    });
}

#[test]
fn a_backup_over_tls_believes_whom_it_should() {
    let encryption = Encryption::make().unwrap();
    let server = Server::start_through(Target::Dunlin, Some(&encryption), &[AT_ONCE]).unwrap();
    let store = directory();
    let to = store.path().to_str().unwrap();
    let from = format!("rediss://127.0.0.1:{}", server.port());
    let words = ["backup", "--from", &from, "--to", to];
    let said = dunlin(&words).bad();
    assert!(said.contains("certificate"), "{said}");
    let certificates = encryption.certificates();
    let own = certificates.identity();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let [authority, certificate, key] =
        [&certificates.authority(), &own.certificate, &own.key].map(|path| text(path));
    let options = ["--cacert", &authority, "--cert", &certificate, "--key", &key];
    dunlin(&[&words[..], &options].concat()).good();
}

#[test]
fn a_link_that_is_cut_is_made_again() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let proxy = Proxy::start(server.port()).unwrap();
    let mut client = server.connect().unwrap();
    client.call(&["SET", "big", &"x".repeat(1_000_000)]).unwrap();
    proxy.split(1000, std::time::Duration::ZERO);
    let mut following = Following::start(proxy.port(), store.path(), &work.path().join("log"), &[]);
    following.wait_for("is complete");
    for number in 0..30 {
        client.call(&["SET", "k", &number.to_string()]).unwrap();
        if number % 10 == 9 {
            let made = proxy.made();
            proxy.cut();
            wait_for("a new link", || proxy.made() > made);
        }
    }
    let at = position(&mut client);
    wait_until_stored(store.path(), at.1);
    following.end();
    assert_eq!(following.said().matches("base at").count(), 1, "{}", following.said());
    restore(store.path(), &work.path().join("to"), &["--at", &place(&at)]).good();
}

/// The stream goes on where it was, and a base comes over a connection of its own.
#[test]
fn a_base_of_another_server_at_the_address_is_no_base_of_the_stream() {
    let (store, work) = (directory(), directory());
    let (one, other) = (start(Target::Dunlin), start(Target::Dunlin));
    let proxy = Proxy::start(one.port()).unwrap();
    other.connect().unwrap().call(&["SET", "whose", "other"]).unwrap();
    let mut client = one.connect().unwrap();
    client.call(&["SET", "whose", "one"]).unwrap();
    let (log, options) = (work.path().join("log"), ["--base-every", "1s"]);
    let mut following = Following::start(proxy.port(), store.path(), &log, &options);
    following.wait_for("is complete");
    proxy.lead_to(other.port());
    following.wait_for("is not of the history of the stream");
    // The address leads back, and the stream goes on or begins anew.
    proxy.lead_to(one.port());
    client.call(&["SET", "whose", "still one"]).unwrap();
    let at = position(&mut client);
    wait_until_stored(store.path(), at.1);
    following.end();
    about(store.path(), &["--verify"]).good();
    let to = work.path().join("to");
    restore(store.path(), &to, &["--at", &place(&at)]).good();
    let restored = serve(Target::Dunlin, &to).connect().unwrap().call_text("GET whose").unwrap();
    assert_eq!(restored, Reply::Bulk(b"still one".to_vec()));
}

/// Its base was cut off, and the stream of the first server goes on in the line of its own base.
#[test]
fn a_base_that_is_cut_off_begins_no_line() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let proxy = Proxy::start(server.port()).unwrap();
    let mut client = server.connect().unwrap();
    client.call_text("SET k 1").unwrap();
    let mut following = Following::start(proxy.port(), store.path(), &work.path().join("log"), &[]);
    following.wait_for("is complete");
    let cut_off = format!("+FULLRESYNC {HISTORY} 7\r\n$100\r\nREDIS0011").into_bytes();
    let (other, _) = FalsePrimary::answering(vec![cut_off]).unwrap();
    proxy.lead_to(other);
    proxy.cut();
    following.wait_for(&format!("base at {HISTORY}:7 begins"));
    proxy.lead_to(server.port());
    following.wait_for("the stream goes on after");
    client.call_text("SET k 2").unwrap();
    let at = position(&mut client);
    // All that has arrived is written then.
    wait_for("it has arrived", || {
        let page = client.call_text("INFO replication").unwrap();
        let page = String::from_utf8_lossy(page.text().unwrap()).into_owned();
        page.contains(&format!("offset={}", at.1))
    });
    following.end();
    restore(store.path(), &work.path().join("to"), &["--at", &place(&at)]).good();
}

/// An address whose connections lead to the ports that `choose` gives for their numbers. It serves
/// until the process ends.
fn address_that_moves(choose: impl Fn(usize) -> u16 + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for (number, near) in listener.incoming().enumerate() {
            let near = near.unwrap();
            let far = TcpStream::connect(("127.0.0.1", choose(number))).unwrap();
            let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            for (mut from, mut to) in [(near, far), (far_too, near_too)] {
                spawn(move || {
                    // An end that is gone is an end like others.
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

/// A server, and another one that is further in a stream of its own.
fn two_servers() -> (Server, Server) {
    let (one, other) = (start(Target::Dunlin), start(Target::Dunlin));
    one.connect().unwrap().call(&["SET", "whose", "one"]).unwrap();
    // A server counts the bytes of its stream from the first replica on.
    back_up(other.port(), directory().path(), &[]).good();
    let mut client = other.connect().unwrap();
    for _ in 0..100 {
        client.call(&["SET", "whose", "other"]).unwrap();
    }
    (one, other)
}

/// How far the stream has to come is asked over a connection of its own.
#[test]
fn a_run_whose_address_has_moved_takes_the_other_server() {
    let (store, work) = (directory(), directory());
    let (one, other) = two_servers();
    let ports = (one.port(), other.port());
    let address = address_that_moves(move |number| if number < 2 { ports.0 } else { ports.1 });
    let said = back_up(address, store.path(), &[]).good();
    assert!(said.contains("the address leads to another server by now"), "{said}");
    about(store.path(), &["--verify"]).good();
    restore(store.path(), work.path(), &[]).good();
    let server = serve(Target::Dunlin, work.path());
    let reply = server.connect().unwrap().call_text("GET whose").unwrap();
    assert_eq!(reply, Reply::Bulk(b"other".to_vec()));
}

/// Nothing that was asked for is given up in silence.
#[test]
fn a_run_that_has_not_taken_its_base_says_so() {
    let (store, work) = (directory(), directory());
    let (one, other) = two_servers();
    back_up(one.port(), store.path(), &[]).good();
    let ports = (one.port(), other.port());
    // The base comes over the third connection.
    let address = address_that_moves(move |number| if number == 2 { ports.1 } else { ports.0 });
    let mut following =
        Following::start(address, store.path(), &work.path().join("log"), &["--full"]);
    following.wait_for("is not of the history of the stream");
    assert!(following.end_badly().contains("the new base is not complete"));
    about(store.path(), &["--verify"]).good();
}

#[test]
fn a_run_whose_address_moves_each_time_ends() {
    let store = directory();
    let (one, other) = two_servers();
    let ports = [one.port(), other.port()];
    let address = address_that_moves(move |number| ports[number % 2]);
    let said = back_up(address, store.path(), &[]).bad();
    let count = said.matches("the address leads to another server by now").count();
    assert_eq!(count, 4, "{said}");
    about(store.path(), &["--verify"]).good();
}

#[test]
fn an_answer_without_an_end_is_not_waited_for() {
    let store = directory();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            // Until nobody listens any more.
            while client.write_all(&[b'+'; 4096]).is_ok() {}
        }
    });
    assert!(back_up(port, store.path(), &[]).bad().contains("its reply is too long"));
}

#[test]
fn what_is_no_stream_leaves_what_was_there() {
    let store = directory();
    let server = start(Target::Dunlin);
    server.connect().unwrap().call_text("SET k v").unwrap();
    back_up(server.port(), store.path(), &[]).good();
    let answers = [
        b"+FULLRESYNC nonsense\r\n".to_vec(),
        format!("+FULLRESYNC {HISTORY} 7\r\n$12\r\nREDIS0011abc").into_bytes(),
        full_sync(7, b"REDIS0011\xfa\x01a"),
        full_sync(7, b"no file at all"),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ];
    for answer in answers {
        let (port, _) = FalsePrimary::answering(vec![answer.clone()]).unwrap();
        let said = back_up(port, store.path(), &[]).bad();
        assert!(!said.is_empty(), "{}", answer.escape_ascii());
        // A run that goes on for long would fill the store with bases that are none.
        let names = fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let bases = names.filter(|name| name.to_str().unwrap().starts_with("base-"));
        assert_eq!(bases.count(), 1, "{}", answer.escape_ascii());
        about(store.path(), &["--verify"]).good();
    }
    let files = fs::read_dir(store.path()).unwrap().count();
    // The list, the lock and the base; the run that found nothing new has written no segment.
    assert!(files <= 4, "{files} files are left");
    let nobody = dunlin(&["backup", "--from", &url(1), "--to", store.path().to_str().unwrap()]);
    assert!(nobody.bad().contains("127.0.0.1:1"));
}
