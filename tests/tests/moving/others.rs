//! What others do to the servers while `dunlin move` is at work.

use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::Target;

use crate::common::{
    begin_to_compare, ended, holds_writes, interrupt, is_replica, pair, promote, said,
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
