//! Requests of `dunlin move` that arrive late, or not at all, and output that nobody reads.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use tests::observe::wait_for;
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::Target;

use crate::common::{
    begin, begin_until, ended, follow_and_lead, holds_writes, is_replica, move_all, pair, place,
    said, signal, through, url,
};

/// The length of the long pause, in a request.
const LONG_PAUSE: &[u8] = b"\r\n3600000\r\n";

/// Passes a late request on, and waits until the server may have run it.
fn pass_late(way: &Proxy) {
    way.pass_late();
    wait_for("its connection ends", || !way.is_open());
}

#[test]
fn a_pause_that_arrives_after_its_end_holds_nobody() {
    for from in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([from, Target::Dunlin]);
        let way = Proxy::start(old.port()).unwrap();
        way.keep_back(LONG_PAUSE);
        let place = place(&old);
        let rest = ["--yes", "--from-address", &place];
        let (code, text) = move_all(&through(&way), &url(&new), &rest);
        assert_eq!(code, Some(1), "{from:?}: {text}");
        assert!(text.contains("it does not answer\nThe old server leads on."), "{text}");
        assert!(way.keeps_one_back());
        pass_late(&way);
        assert_eq!(said(&mut old.connect().unwrap(), "SET k w"), "OK", "{from:?}");
    }
}

#[test]
fn a_promotion_that_arrives_after_it_was_given_up_makes_no_second_primary() {
    for to in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([Target::Reference, to]);
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        let way = Proxy::start(new.port()).unwrap();
        let rest = ["--yes", "--to-address", "127.0.0.1:1"];
        let (child, _rest) =
            begin_until(&url(&old), &through(&way), &rest, "the new server follows");
        way.keep_back(b"REPLICAOF\r\n$2\r\nNO\r\n");
        let (code, text) = ended(child);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("The old server leads on. The new one follows"), "{text}");
        assert!(way.keeps_one_back());
        pass_late(&way);
        assert!(is_replica(&new), "{to:?}");
        assert_eq!(said(&mut old.connect().unwrap(), "SET k w"), "OK", "{to:?}");
    }
}

/// As it is when the machine of the tool has slept for more than an hour.
#[test]
fn an_old_server_whose_pause_has_ended_before_the_last_step_loses_no_write() {
    for from in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([from, Target::Dunlin]);
        follow_and_lead(&old, &new);
        let way = Proxy::start(old.port()).unwrap();
        way.keep_back(LONG_PAUSE);
        let child = begin(&through(&way), &url(&new), &["--yes"]);
        wait_for("the last steps begin", || way.keeps_one_back());
        let mut first = old.connect().unwrap();
        assert_eq!(said(&mut first, "CLIENT UNPAUSE"), "OK");
        assert_eq!(said(&mut first, "SET later data"), "OK");
        way.pass_late();
        let (code, text) = ended(child);
        assert_eq!(code, Some(4), "{from:?}: {text}");
        assert!(text.contains("may have taken writes that the new one lacks"), "{text}");
        assert!(text.contains("The old server holds its writes"), "{text}");
        assert!(!is_replica(&old));
        assert_eq!(said(&mut first, "GET later"), "data");
        assert!(holds_writes(&old), "{from:?}: both would take them");
    }
}

#[test]
fn a_move_that_has_failed_is_not_taken_for_one_that_has_ended_after_the_promotion() {
    for from in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([from, Target::Reference]);
        let way = Proxy::start(old.port()).unwrap();
        let place = place(&old);
        let rest = ["--yes", "--from-address", &place, "--pause", "60"];
        let (child, _rest) =
            begin_until(&through(&way), &url(&new), &rest, "the new server follows");
        // It is looked at while writes are held. Then the old server is away for a while.
        way.keep_back(b"WITHCODE");
        wait_for("writes are held", || way.keeps_one_back());
        way.refuse(true);
        way.cut();
        let (code, text) = ended(child);
        assert_eq!(code, Some(4), "{from:?}: {text}");
        assert!(text.contains("This could not be put back"), "{text}");
        assert!(!text.contains("leads on"), "{text}");
        assert!(is_replica(&new), "{from:?}: {text}");
        way.pass_late();
        way.refuse(false);
        let rest = [&rest[..], &["--unpause"]].concat();
        let (code, text) = move_all(&through(&way), &url(&new), &rest);
        assert_eq!(code, Some(0), "{from:?}: {text}");
        assert!(text.contains("writes were held at the old server: they go on"), "{text}");
        assert!(!text.contains("has moved already"), "{text}");
    }
}

#[test]
fn the_last_step_is_taken_although_nobody_reads_the_output() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    // A note that no pipe has room for.
    let name = "x".repeat(200_000);
    let rule = ["ACL", "SETUSER", &name];
    assert!(!old.connect().unwrap().call(&rule).unwrap().is_error());
    let child = begin(&url(&old), &url(&new), &["--yes"]);
    wait_for("the old server follows", || {
        is_replica(&old) && said(&mut old.connect().unwrap(), "INFO replication").contains("up")
    });
    assert_eq!(said(&mut new.connect().unwrap(), "SET k w"), "OK");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-0", &id]).status().unwrap().success(), "it waits");
    let (code, text) = ended(child);
    assert_eq!(code, Some(0), "{text}");
}

/// As it is when the tool stands still for longer than the new server holds its writes.
#[test]
fn a_write_that_the_new_server_has_taken_after_the_look_at_its_data_is_not_lost() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    let way = Proxy::start(new.port()).unwrap();
    let rest = ["--yes", "--to-address", &place(&new)];
    way.keep_back(b"\r\n60000\r\n");
    let child = begin(&url(&old), &through(&way), &rest);
    wait_for("its writes are to be held", || way.keeps_one_back());
    way.keep_back(b"keyspace");
    way.pass_late();
    wait_for("its data is looked at", || way.keeps_one_back());
    signal(&child, "-STOP");
    way.pass_late();
    // A look that is half as old as the pause is long is taken again.
    sleep(Duration::from_secs(31));
    let mut second = new.connect().unwrap();
    assert_eq!(said(&mut second, "CLIENT UNPAUSE"), "OK");
    assert_eq!(said(&mut second, "SET acknowledged yes"), "OK");
    signal(&child, "-CONT");
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the new server has 1 keys, which would be lost"), "{text}");
    assert!(!is_replica(&new), "{text}");
    assert_eq!(said(&mut new.connect().unwrap(), "GET acknowledged"), "yes");
}
