//! Waits of `dunlin move` that end.

use tests::observe::wait_for;
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

use crate::common::{begin_until, ended, said, url};

#[test]
fn a_copy_for_another_replica_is_no_beginning() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let [old, other] =
            [from, Target::Reference].map(|target| Server::start(target, &options).unwrap());
        let new = Server::start(Target::Dunlin, &options).unwrap();
        old.connect().unwrap().call_text("SET k v").unwrap();
        let rest = ["--yes", "--begin", "3", "--from-address", "127.0.0.1:1"];
        let (child, _rest) = begin_until(&url(&old), &url(&new), &rest, "waiting for the copy");
        follow(&other, old.port()).unwrap();
        catch_up(&old, &other).unwrap();
        let (code, text) = ended(child);
        assert_eq!(code, Some(1), "{from:?}: {text}");
        assert!(text.contains("the new server does not follow"), "{text}");
        assert!(text.contains("The new one is a primary of its own, with 0 keys."), "{text}");
    }
}

#[test]
fn a_link_that_breaks_for_good_while_keys_are_compared_ends_the_move() {
    let options = [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "64mb")];
    for to in [Target::Dunlin, Target::Reference] {
        let [old, new] =
            [Target::Reference, to].map(|target| Server::start(target, &options).unwrap());
        let mut first = old.connect().unwrap();
        let fill = |value: &str| {
            format!("for i = 1, 40000 do redis.call('SET', 'key' .. i, '{value}' .. i) end")
        };
        assert!(!first.call(&["EVAL", &fill("earlier"), "0"]).unwrap().is_error());
        let way = Proxy::start(old.port()).unwrap();
        let place = format!("127.0.0.1:{}", way.port());
        let rest = ["--yes", "--begin", "2", "--from-address", &place];
        let (child, _rest) = begin_until(&url(&old), &url(&new), &rest, "the new server follows");
        way.refuse(true);
        way.cut();
        assert!(!first.call(&["EVAL", &fill("later"), "0"]).unwrap().is_error());
        let (code, text) = ended(child);
        assert_eq!(code, Some(1), "{to:?}: {text}");
        assert!(text.contains("the new server does not follow"), "{to:?}: {text}");
        assert!(text.contains("The old server leads on."), "{to:?}: {text}");
        let mut second = new.connect().unwrap();
        wait_for("it leads", || said(&mut second, "INFO replication").contains("role:master"));
    }
}
