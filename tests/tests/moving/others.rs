//! What others do to the servers while `dunlin move` is at work.

use tests::observe::{number, wait_for};
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

use crate::common::{
    begin, begin_to_compare, ended, holds_writes, interrupt, is_replica, move_all, pair, place,
    promote, said, through, url,
};

#[test]
fn a_replica_that_somebody_promotes_meanwhile_keeps_what_it_has_acknowledged() {
    for to in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([Target::Reference, to]);
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        let way = Proxy::start(old.port()).unwrap();
        let child = begin_to_compare(&way, &old, &new, &["--begin", "1"]);
        let mut second = new.connect().unwrap();
        assert_eq!(said(&mut second, "REPLICAOF NO ONE"), "OK");
        assert_eq!(said(&mut second, "SET acknowledged yes"), "OK");
        way.pass_late();
        let (code, text) = ended(child);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("The new one leads: somebody else has promoted it"), "{text}");
        assert!(!is_replica(&new), "{to:?}: {text}");
        assert_eq!(said(&mut second, "GET acknowledged"), "yes", "{to:?}");
    }
}

#[test]
fn a_pause_of_somebody_who_moves_to_another_server_is_not_taken_over() {
    for from in [Target::Reference, Target::Dunlin] {
        for is_interrupted in [false, true] {
            let [old, new, third] = pair([from, Target::Dunlin, Target::Reference]);
            follow(&third, old.port()).unwrap();
            catch_up(&old, &third).unwrap();
            let way = Proxy::start(old.port()).unwrap();
            let child = begin_to_compare(&way, &old, &new, &[]);
            promote(&mut old.connect().unwrap(), &mut third.connect().unwrap());
            if is_interrupted {
                interrupt(&child);
            }
            way.pass_late();
            let (code, text) = ended(child);
            assert_eq!(code, Some(4), "{from:?}: {text}");
            assert!(text.contains("The old server holds its writes."), "{text}");
            assert!(text.contains("Somebody else has paused them"), "{text}");
            assert!(is_replica(&new), "{from:?}: {text}");
            assert!(holds_writes(&old), "{from:?}: {text}");
        }
    }
}

/// As it is when a move has lost its connections for a while.
#[test]
fn a_move_that_fails_leaves_the_servers_to_another_one_that_has_begun_meanwhile() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    let way = Proxy::start(old.port()).unwrap();
    let child = begin_to_compare(&way, &old, &new, &[]);
    let mut other = new.connect().unwrap();
    assert_eq!(said(&mut other, "CLIENT SETNAME dunlin-move:other"), "OK");
    interrupt(&child);
    way.pass_late();
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("put back: another 'dunlin move' is at work at the new server"),
        "{text}"
    );
    assert!(is_replica(&new), "{text}");
}

#[test]
fn writes_go_on_although_the_old_server_takes_no_more_connections() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    let rule = "ACL SETUSER ann on >pw ~* &* +@all";
    let mut second = new.connect().unwrap();
    assert_eq!(said(&mut second, rule), "OK");
    let way = Proxy::start(new.port()).unwrap();
    let to = through(&way).replace("redis://", "redis://ann:pw@");
    way.keep_back(b"*3\r\n$9\r\nREPLICAOF\r\n$2\r\nNO\r\n");
    let child = begin(&url(&old), &to, &["--yes", "--to-address", &place(&new)]);
    wait_for("the promotion is near", || way.keeps_one_back());
    let mut first = old.connect().unwrap();
    let count = said(&mut first, "CLIENT LIST").lines().count();
    assert_eq!(said(&mut first, &format!("CONFIG SET maxclients {count}")), "OK");
    assert_eq!(said(&mut second, "ACL SETUSER ann -replicaof"), "OK");
    way.pass_late();
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(said(&mut first, "SET k w"), "OK", "{text}");
}

#[test]
fn a_new_server_that_loads_is_put_back_when_it_has_loaded() {
    let own = [("requirepass", "own"), ("repl-diskless-sync-delay", "0")];
    let old = Server::start(Target::Reference, &own).unwrap();
    let slow = [("key-load-delay", "50"), ("loading-process-events-interval-bytes", "2048")];
    let new = Server::start(Target::Reference, &slow).unwrap();
    let mut first = old.connect().unwrap();
    assert_eq!(said(&mut first, "AUTH own"), "OK");
    assert_eq!(said(&mut first, "DEBUG POPULATE 100000"), "OK");
    let from = url(&old).replace("redis://", "redis://:own@");
    let child = begin(&from, &url(&new), &["--yes"]);
    let mut second = new.connect().unwrap();
    wait_for("it loads", || said(&mut second, "INFO persistence").contains("\nloading:1"));
    interrupt(&child);
    let (code, text) = ended(child);
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("could not be put back"), "{text}");
    assert!(!is_replica(&new), "{text}");
    let setting = second.call_text("CONFIG GET masterauth").unwrap().elements().unwrap();
    assert_eq!(setting[1].text(), Some(&b""[..]), "{text}");
}

#[test]
fn a_pause_of_somebody_at_the_new_server_lasts_as_long_as_it_would_have_where_that_is_known() {
    // Only Valkey tells.
    for (to, tells) in [(Target::Dunlin, false), (Target::Valkey, true)] {
        let [old, new] = pair([Target::Valkey, to]);
        let mut second = new.connect().unwrap();
        assert_eq!(said(&mut second, "CLIENT PAUSE 600000 WRITE"), "OK");
        let rest = ["--yes", "--begin", "1", "--from-address", "127.0.0.1:1"];
        let (code, text) = move_all(&url(&old), &url(&new), &rest);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("It holds its writes as before"), "{text}");
        if tells {
            let left = number(&mut second, "paused_timeout_milliseconds").unwrap();
            assert!(left <= 600_000, "{left}");
        }
    }
}
