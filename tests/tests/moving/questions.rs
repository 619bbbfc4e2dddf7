//! What has changed while somebody thinks about a question of `dunlin move`.

use std::process::Child;
use std::thread::JoinHandle;

use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

use crate::common::{
    agree, begin_until, ended, follow_and_lead, holds_writes, move_all, name_of_data, pair, said,
    url,
};

const OPTIONS: [(&str, &str); 1] = [("repl-diskless-sync-delay", "0")];

#[test]
fn a_write_that_the_old_server_has_taken_meanwhile_is_not_lost() {
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &OPTIONS).unwrap();
        let new = Server::start(Target::Dunlin, &OPTIONS).unwrap();
        let mut first = old.connect().unwrap();
        first.call_text("SET k v").unwrap();
        follow_and_lead(&old, &new);
        let (mut child, rest) = begin_until(&url(&old), &url(&new), &[], "Go on?");
        // The hour is over.
        assert_eq!(said(&mut first, "CLIENT UNPAUSE"), "OK");
        assert_eq!(said(&mut first, "SET later data"), "OK");
        agree(&mut child);
        let (code, text) = ended(child);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        let text = rest.join().unwrap();
        assert!(text.contains("Nothing was changed. The servers are not as they were"), "{text}");
        assert_eq!(said(&mut first, "GET later"), "data");
        assert!(said(&mut first, "INFO replication").contains("role:master"));
        assert_eq!(said(&mut first, "SET later still"), "OK");
    }
}

#[test]
fn what_the_new_server_has_got_meanwhile_is_not_lost() {
    for to in [Target::Reference, Target::Dunlin] {
        let old = Server::start(Target::Reference, &OPTIONS).unwrap();
        let new = Server::start(to, &OPTIONS).unwrap();
        let mut second = new.connect().unwrap();
        old.connect().unwrap().call_text("SET k v").unwrap();
        let (mut child, rest) = begin_until(&url(&old), &url(&new), &[], "Go on?");
        assert_eq!(said(&mut second, "SET its own"), "OK");
        agree(&mut child);
        assert_eq!(ended(child).0, Some(3), "{to:?}");
        let text = rest.join().unwrap();
        assert!(text.contains("STOP the new server has 1 keys"), "{text}");
        assert!(text.contains("Nothing was changed. The servers are not as they were"), "{text}");
        assert_eq!(said(&mut second, "GET its"), "own");
        assert_eq!(said(&mut second, "SET its still"), "OK");
    }
}

#[test]
fn servers_that_drop_their_clients_meanwhile_are_asked_anew() {
    let old = Server::start(Target::Reference, &OPTIONS).unwrap();
    let new = Server::start(Target::Dunlin, &OPTIONS).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call_text("SET k v").unwrap();
    let (mut child, _rest) = begin_until(&url(&old), &url(&new), &[], "Go on?");
    for client in [&mut first, &mut second] {
        client.call_text("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    }
    agree(&mut child);
    let (code, text) = ended(child);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(said(&mut second, "GET k"), "v");
}

#[test]
fn what_is_at_the_places_of_the_servers_now_is_not_what_was_asked_about() {
    for is_started_anew in [true, false] {
        let [mut old, new] = pair([Target::Reference, Target::Dunlin]);
        assert_eq!(said(&mut new.connect().unwrap(), "SET its own"), "OK");
        let (_, text) = move_all(&url(&old), &url(&new), &["--check"]);
        let rest = ["--replace", name_of_data(&text)];
        let (mut child, rest) = begin_until(&url(&old), &url(&new), &rest, "Go on?");
        match is_started_anew {
            true => old.start_again().unwrap(),
            false => assert_eq!(said(&mut old.connect().unwrap(), "FLUSHALL"), "OK"),
        }
        agree(&mut child);
        let (code, text) = ended(child);
        assert_eq!(code, Some(3), "{text}");
        let text = rest.join().unwrap();
        assert!(text.contains("Nothing was changed. The servers are not as they were"), "{text}");
        assert_eq!(said(&mut new.connect().unwrap(), "GET its"), "own");
    }
}

/// The user agrees, and the command stops because of a pause of which the question has not told.
fn stops_at_new_pause(old: &Server, mut child: Child, rest: JoinHandle<String>) {
    agree(&mut child);
    let (code, text) = ended(child);
    let text = rest.join().unwrap() + &text;
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("note writes are held at the old server"), "{text}");
    assert!(text.contains("Nothing was changed. The servers are not as they were"), "{text}");
    assert!(holds_writes(old), "{text}");
}

/// Whoever has read the note of a pause has it ended.
fn ends_after_note(old: &Server, new: &Server) {
    let (mut child, _rest) = begin_until(&url(old), &url(new), &[], "Go on?");
    agree(&mut child);
    let (code, text) = ended(child);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_pause_that_has_begun_meanwhile_is_not_ended() {
    for from in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([from, Target::Dunlin]);
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        let (child, rest) = begin_until(&url(&old), &url(&new), &[], "Go on?");
        assert_eq!(said(&mut old.connect().unwrap(), "CLIENT PAUSE 3600000 WRITE"), "OK");
        stops_at_new_pause(&old, child, rest);
        ends_after_note(&old, &new);
    }
}

#[test]
fn a_pause_that_has_taken_the_place_of_another_one_meanwhile_is_not_ended() {
    for (from, writes) in [
        (Target::Reference, true),
        (Target::Reference, false),
        (Target::Dunlin, true),
        (Target::Dunlin, false),
    ] {
        let [old, new] = pair([from, Target::Dunlin]);
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        let mut first = old.connect().unwrap();
        // As a move leaves it that was killed.
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        let (child, rest) = begin_until(&url(&old), &url(&new), &[], "Go on?");
        assert_eq!(said(&mut first, "CLIENT UNPAUSE"), "OK");
        if writes {
            assert_eq!(said(&mut first, "SET later data"), "OK");
        }
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        stops_at_new_pause(&old, child, rest);
        ends_after_note(&old, &new);
    }
}
