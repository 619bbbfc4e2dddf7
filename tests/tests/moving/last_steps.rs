//! What comes after the promotion, and moves that have ended around it.

use std::time::Duration;

use tests::client::Received;
use tests::observe::{number, wait_for};
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target};

use crate::common::{
    begin_in_vain, checked, ended, follow_and_lead, holds_writes, interrupt, is_replica, move_all,
    name_of_data, pair, place, promote, said, url,
};

#[test]
fn a_move_that_was_killed_after_the_promotion_is_finished() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        first.call_text("SET k v").unwrap();
        follow_and_lead(&old, &new);
        // A client that goes on at the new one, and one that waits at the old one.
        assert_eq!(said(&mut second, "SET new data"), "OK");
        let mut waiting = old.connect().unwrap();
        waiting.send(&["SET", "k", "lost"]).unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--check"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("has ended after the promotion"), "{text}");
        assert!(
            said(&mut first, "INFO replication").contains("role:master"),
            "nothing has changed"
        );
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("clients connect to"), "{text}");
        let Received::Reply(reply) = waiting.receive().unwrap() else { panic!("closed") };
        assert!(reply.text().unwrap_or_default().starts_with(b"READONLY"), "{reply:?}");
        wait_for("it follows", || said(&mut first, "GET new") == "data");
        // Killed between the last two steps: nobody should wait should the old server lead again.
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        // Who wants it to stay paused leaves what may be somebody else's pause.
        let lead_again = |command: &str| {
            let mut first = old.connect().unwrap();
            assert_eq!(said(&mut first, "REPLICAOF NO ONE"), "OK");
            assert_eq!(holds_writes(&old), command == "paused", "{from:?}");
            follow(&old, new.port()).unwrap();
            catch_up(&new, &old).unwrap();
        };
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--after", "paused"]);
        assert_eq!(code, Some(0), "{text}");
        lead_again("paused");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("the old server has become a replica already"), "{text}");
        lead_again("not paused");
        // Without a pause nobody has ended in between: the old server may have what others lack.
        assert_eq!(said(&mut first, "REPLICAOF NO ONE"), "OK");
        assert_eq!(said(&mut first, "SET k v"), "OK", "its writes go on");
        follow_and_lead(&old, &new);
        assert_eq!(said(&mut first, "CLIENT UNPAUSE"), "OK");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("STOP the new server has 2 keys"), "{text}");
        // Nor is it so when the old server has written since.
        assert_eq!(said(&mut first, "SET more data"), "OK");
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(3), "{text}");
        assert_eq!(said(&mut first, "GET more"), "data");
    }
}

#[test]
fn a_move_that_was_killed_before_the_promotion_keeps_nobody_waiting() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        first.call_text("SET k v").unwrap();
        follow(&new, old.port()).unwrap();
        catch_up(&old, &new).unwrap();
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        let mut waiting = old.connect().unwrap();
        waiting.send(&["SET", "held", "data"]).unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--check"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("note writes are held at the old server"), "{text}");
        // Nobody knows whose the pause is.
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(!waiting.has_input(Duration::from_millis(200)).unwrap(), "{text}");
        // It has to compare first, and holds writes anew for a moment.
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--unpause"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("writes were held at the old server: they go on"), "{text}");
        let Received::Reply(reply) = waiting.receive().unwrap() else { panic!("closed") };
        assert_eq!(reply.text(), Some(&b"OK"[..]), "{reply:?}");
        assert_eq!(said(&mut second, "GET held"), "data");
        assert_eq!(said(&mut second, "SET more data"), "OK");
    }
}

#[test]
fn a_password_that_a_killed_move_has_left_is_told() {
    let old = Server::start(Target::Reference, &[("requirepass", "own")]).unwrap();
    let new = Server::start(Target::Dunlin, &[("masterauth", "own")]).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call_text("AUTH own").unwrap();
    first.call_text("SET k v").unwrap();
    second.call_text(&format!("REPLICAOF 127.0.0.1 {}", old.port())).unwrap();
    wait_for("it follows", || said(&mut second, "GET k") == "v");
    promote(&mut first, &mut second);
    let from = url(&old).replace("redis://", "redis://:own@");
    let (code, text) = move_all(&from, &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("note the new server still has the password"), "{text}");
    // Killed right before the end.
    let (code, text) = move_all(&from, &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("note the new server still has the password"), "{text}");
}

#[test]
fn a_password_that_a_move_has_left_that_was_killed_early_is_told() {
    let old = Server::start(Target::Reference, &[("requirepass", "own")]).unwrap();
    let new = Server::start(Target::Dunlin, &[("masterauth", "own")]).unwrap();
    assert_eq!(said(&mut old.connect().unwrap(), "AUTH own"), "OK");
    follow(&new, old.port()).unwrap();
    let from = url(&old).replace("redis://", "redis://:own@");
    let (code, text) = move_all(&from, &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("note the new server still has the password"), "{text}");
}

#[test]
fn a_move_is_finished_although_other_replicas_were_asked_meanwhile_whether_they_are_there() {
    let options = [("repl-diskless-sync-delay", "0"), ("repl-ping-replica-period", "1")];
    for from in [Target::Reference, Target::Valkey, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let other = Server::start(Target::Reference, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        first.call_text("SET k v").unwrap();
        follow(&other, old.port()).unwrap();
        catch_up(&old, &other).unwrap();
        follow_and_lead(&old, &new);
        let promoted_at = number(&mut second, "second_repl_offset").unwrap();
        wait_for("the other replica is asked", || {
            number(&mut first, "master_repl_offset").unwrap() > promoted_at + 20
        });
        assert_eq!(said(&mut second, "SET new data"), "OK");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{from:?}: {text}");
        wait_for("it follows", || said(&mut first, "GET new") == "data");
        // What was written while nobody held writes is seen, although writes are held now.
        assert_eq!(said(&mut first, "REPLICAOF NO ONE"), "OK");
        follow_and_lead(&old, &new);
        assert_eq!(said(&mut first, "CLIENT UNPAUSE"), "OK");
        assert_eq!(said(&mut first, "SET k w"), "OK");
        assert_eq!(said(&mut first, "CLIENT PAUSE 3600000 WRITE"), "OK");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        assert!(text.contains("the old one has taken writes since"), "{text}");
    }
}

#[test]
fn the_same_command_never_destroys_what_clients_have_written_to_a_server_that_it_has_promoted() {
    let options =
        [("repl-diskless-sync-delay", "0"), ("appendonly", "yes"), ("appendfsync", "always")];
    for (case, stop) in [
        ("the new server is started anew", "STOP the new server has 3 keys"),
        ("the old server is started anew", "STOP the new server has 3 keys"),
        ("the old server refuses writes", "STOP the old server does not tell whether it holds"),
        ("the old server goes on", "STOP the new server has 3 keys"),
    ] {
        for to in [Target::Dunlin, Target::Reference] {
            let mut old = Server::start(Target::Reference, &options).unwrap();
            let mut new = Server::start(to, &options).unwrap();
            new.connect().unwrap().call_text("SET stale data").unwrap();
            old.connect().unwrap().call_text("MSET k v l w").unwrap();
            let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
            assert_eq!(code, Some(3), "{text}");
            let name = name_of_data(&text).to_owned();
            let same = ["--yes", "--replace", name.as_str()];
            let (code, text) = move_all(&url(&old), &url(&new), &["--check", "--replace", &name]);
            assert_eq!(code, Some(0), "{text}");
            follow_and_lead(&old, &new);
            let mut second = new.connect().unwrap();
            wait_for("the files are written anew", || {
                let fields = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
                fields.map(|field| number(&mut second, field).unwrap()) == [0, 0]
            });
            assert_eq!(said(&mut second, "SET acknowledged yes"), "OK");
            match case {
                "the new server is started anew" => new.start_again().unwrap(),
                "the old server is started anew" => old.start_again().unwrap(),
                "the old server refuses writes" => {
                    let refuses = "CONFIG SET min-replicas-to-write 1";
                    assert_eq!(said(&mut old.connect().unwrap(), refuses), "OK");
                }
                _ => assert_eq!(said(&mut old.connect().unwrap(), "CLIENT UNPAUSE"), "OK"),
            }
            let (code, text) = move_all(&url(&old), &url(&new), &same);
            assert_eq!(code, Some(3), "{case}: {text}");
            assert!(text.contains(stop), "{case}: {text}");
            assert_eq!(said(&mut new.connect().unwrap(), "GET acknowledged"), "yes", "{case}");
            let first = |command: &str| said(&mut old.connect().unwrap(), command);
            if case == "the old server refuses writes" {
                assert_eq!(first("CONFIG SET min-replicas-to-write 0"), "OK");
                let (code, text) = move_all(&url(&old), &url(&new), &same);
                assert_eq!(code, Some(0), "{case}: {text}");
                wait_for("it follows", || first("GET acknowledged") == "yes");
            } else {
                // Who wants that can have it.
                let name = name_of_data(&text);
                let rest = ["--yes", "--unpause", "--replace", name];
                let (code, text) = move_all(&url(&old), &url(&new), &rest);
                assert_eq!(code, Some(0), "{case}: {text}");
            }
        }
    }
}

#[test]
fn an_old_server_whose_replicas_take_writes_refuses_those_that_it_has_held() {
    let options = [("repl-diskless-sync-delay", "0"), ("replica-read-only", "no")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let mut first = old.connect().unwrap();
        first.call_text("SET k v").unwrap();
        checked(&old, &new, &["note replica-read-only becomes 'yes' at the old server"]);
        follow_and_lead(&old, &new);
        let mut waiting = old.connect().unwrap();
        waiting.send(&["SET", "k", "lost"]).unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        let Received::Reply(reply) = waiting.receive().unwrap() else { panic!("closed") };
        assert!(reply.text().unwrap_or_default().starts_with(b"READONLY"), "{from:?} {reply:?}");
        assert_eq!(said(&mut first, "GET k"), "v");
    }
}

#[test]
fn the_way_back_to_a_server_that_was_left_paused_ends_with_one_that_takes_writes() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(Target::Dunlin, &options).unwrap();
        let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
        first.call_text("SET k v").unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--after", "paused"]);
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(said(&mut second, "SET k w"), "OK");
        let mut waiting = old.connect().unwrap();
        waiting.send(&["SET", "k", "lost"]).unwrap();
        let (code, text) = move_all(&url(&new), &url(&old), &["--check"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("note writes are held at the new server"), "{text}");
        let name = name_of_data(&text).to_owned();
        // A move that fails leaves it paused.
        let child = begin_in_vain(&url(&new), &url(&old), "127.0.0.1:1", &["--replace", &name]);
        interrupt(&child);
        assert_eq!(ended(child).0, Some(1));
        let Received::Reply(reply) = waiting.receive().unwrap() else { panic!("closed") };
        assert!(reply.text().unwrap_or_default().starts_with(b"READONLY"), "{from:?} {reply:?}");
        let (_, text) = move_all(&url(&new), &url(&old), &["--check"]);
        assert!(text.contains("note writes are held at the new server"), "{text}");
        let name = name_of_data(&text).to_owned();
        let (code, text) = move_all(&url(&new), &url(&old), &["--yes", "--replace", &name]);
        assert_eq!(code, Some(0), "{from:?}: {text}");
        first.send(&["SET", "k", "x"]).unwrap();
        assert!(first.has_input(Duration::from_secs(5)).unwrap(), "{from:?}: it holds writes");
        let Received::Reply(reply) = first.receive().unwrap() else { panic!("closed") };
        assert_eq!(reply.text(), Some(&b"OK"[..]));
        wait_for("the other one follows", || said(&mut second, "GET k") == "x");
    }
}

#[test]
fn an_old_server_that_follows_another_one_than_the_new_one_is_no_way_back() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let [old, new, third] = [from, Target::Dunlin, Target::Reference]
            .map(|target| Server::start(target, &options).unwrap());
        old.connect().unwrap().call_text("SET k v").unwrap();
        third.connect().unwrap().call_text("SET other data").unwrap();
        let place = format!("127.0.0.1:{}", third.port());
        let rest = ["--yes", "--to-address", &place];
        let (code, text) = move_all(&url(&old), &url(&new), &rest);
        assert_eq!(code, Some(4), "{from:?}: {text}");
        assert!(text.contains("follows another one than the new one"), "{text}");
        // Nor is nothing missing when the command is given again.
        let (code, text) = move_all(&url(&old), &url(&new), &rest);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        assert_eq!(said(&mut new.connect().unwrap(), "GET k"), "v");
    }
}

#[test]
fn an_old_server_that_does_not_tell_whether_its_replicas_take_writes_loses_none() {
    let options = [("repl-diskless-sync-delay", "0"), ("replica-read-only", "no")];
    for from in [Target::Reference, Target::Dunlin] {
        for (rights, ends, answer) in
            [("-config|get", Some(0), &b"READONLY"[..]), ("-config|get -config|set", Some(4), b"")]
        {
            let old = Server::start(from, &options).unwrap();
            let new = Server::start(Target::Dunlin, &options).unwrap();
            let mut first = old.connect().unwrap();
            first.call_text("SET k v").unwrap();
            let rule = format!("ACL SETUSER ann on >pw ~* &* +@all {rights}");
            assert_eq!(said(&mut first, &rule), "OK");
            follow_and_lead(&old, &new);
            let mut waiting = old.connect().unwrap();
            waiting.send(&["SET", "k", "lost"]).unwrap();
            let address = url(&old).replace("redis://", "redis://ann:pw@");
            let (code, text) = move_all(&address, &url(&new), &["--yes"]);
            assert_eq!(code, ends, "{from:?} {rights}: {text}");
            if answer.is_empty() {
                assert!(!waiting.has_input(Duration::from_millis(200)).unwrap(), "it waits on");
                continue;
            }
            let Received::Reply(reply) = waiting.receive().unwrap() else { panic!("closed") };
            assert!(reply.text().unwrap_or_default().starts_with(answer), "{from:?} {reply:?}");
            assert_eq!(said(&mut first, "GET k"), "v");
        }
    }
}

#[test]
fn the_old_server_follows_although_it_had_the_password_of_another_primary() {
    let options =
        [("requirepass", "own"), ("masterauth", "own"), ("repl-diskless-sync-delay", "0")];
    for (from, to) in [(Target::Reference, Target::Dunlin), (Target::Dunlin, Target::Reference)] {
        let old = Server::start(from, &options).unwrap();
        let new = Server::start(to, &[("repl-diskless-sync-delay", "0")]).unwrap();
        let address = format!("redis://:own@127.0.0.1:{}", old.port());
        let (code, text) = move_all(&address, &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("the old server follows the new one"), "{from:?}: {text}");
        // And back.
        let (code, text) = move_all(&url(&new), &address, &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("the old server follows the new one"), "{to:?}: {text}");
    }
}

#[test]
fn a_finished_move_given_again_ends_no_pause_that_a_later_one_has_left() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let [new, third] = [(); 2].map(|()| Server::start(Target::Dunlin, &options).unwrap());
        old.connect().unwrap().call_text("SET k v").unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{text}");
        // The next move was killed after the promotion.
        follow_and_lead(&new, &third);
        for rest in ["--check", "--yes"] {
            let (code, text) = move_all(&url(&old), &url(&new), &[rest]);
            assert_eq!(code, Some(3), "{from:?}: {text}");
            assert!(text.contains("and that one holds writes"), "{text}");
            assert!(holds_writes(&new), "{from:?}: {text}");
        }
        let (code, text) = move_all(&url(&new), &url(&third), &["--yes"]);
        assert_eq!(code, Some(0), "{from:?}: {text}");
    }
}

#[test]
fn a_server_that_was_left_paused_takes_no_writes_beside_the_one_that_leads() {
    let options = [("repl-diskless-sync-delay", "0")];
    for from in [Target::Reference, Target::Dunlin] {
        let old = Server::start(from, &options).unwrap();
        let [new, third] = [(); 2].map(|()| Server::start(Target::Dunlin, &options).unwrap());
        let replica = Server::start(Target::Reference, &options).unwrap();
        old.connect().unwrap().call_text("SET k v").unwrap();
        follow(&replica, old.port()).unwrap();
        catch_up(&old, &replica).unwrap();
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--after", "paused"]);
        assert_eq!(code, Some(0), "{text}");
        // A replica of the old server looks like one that was about to be promoted.
        let rest = ["--yes", "--after", "paused"];
        let (code, text) = move_all(&url(&old), &url(&replica), &rest);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        assert!(text.contains("STOP writes are held at the old server"), "{text}");
        assert!(holds_writes(&old), "{from:?}: {text}");
        checked(&old, &replica, &["note writes are held", "--unpause has to say"]);
        let (code, text) = move_all(&url(&old), &url(&third), &["--yes"]);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        assert!(text.contains("STOP writes are held at the old server"), "{text}");
        assert!(holds_writes(&old), "{from:?}: {text}");
        // Nor does it when the third one cannot follow, although it was said that it may.
        let rest = ["--yes", "--unpause", "--replace", "0123456789ab"];
        third.connect().unwrap().call_text("SET its own").unwrap();
        let (code, text) = move_all(&url(&old), &url(&third), &rest);
        assert_eq!(code, Some(3), "{from:?}: {text}");
        assert!(holds_writes(&old), "{from:?}: {text}");
        third.connect().unwrap().call_text("DEL its").unwrap();
        let (code, text) = move_all(&url(&old), &url(&third), &["--yes", "--unpause"]);
        assert_eq!(code, Some(0), "{from:?}: {text}");
    }
}

#[test]
fn a_new_server_that_takes_no_writes_is_not_called_done() {
    let options = [("repl-diskless-sync-delay", "0")];
    let old = Server::start(Target::Reference, &options).unwrap();
    let new = Server::start(Target::Dunlin, &options).unwrap();
    let [mut first, mut second] = [&old, &new].map(|server| server.connect().unwrap());
    first.call_text("SET k v").unwrap();
    assert_eq!(said(&mut second, "CONFIG SET min-replicas-to-write 1"), "OK");
    // Nobody would follow it.
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes", "--after", "paused"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("STOP the new server takes no writes: it answers NOREPLICAS"), "{text}");
    // One replica is what the old server becomes.
    checked(&old, &new, &["note the new server takes no writes, unless the old one"]);
    let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(said(&mut second, "SET k w"), "OK");
    // And back, to one that waits for more.
    assert_eq!(said(&mut first, "CONFIG SET min-replicas-to-write 3"), "OK");
    let (code, text) = move_all(&url(&new), &url(&old), &["--yes"]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("but the new server answers to a write: NOREPLICAS"), "{text}");
}

#[test]
fn a_new_server_that_was_started_anew_without_data_is_not_what_the_old_one_has_moved_to() {
    for to in [Target::Reference, Target::Dunlin] {
        let [old, mut new] = pair([Target::Reference, to]);
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{to:?}: {text}");
        let mut first = old.connect().unwrap();
        // It cannot log in any more, and so keeps what it has.
        new.add_options(&[("requirepass", "own")]);
        new.start_again().unwrap();
        wait_for("its link is down", || {
            said(&mut first, "INFO replication").contains("master_link_status:down")
        });
        let address = url(&new).replace("redis://", "redis://:own@");
        let (code, text) = move_all(&url(&old), &address, &["--yes"]);
        assert_eq!(code, Some(3), "{to:?}: {text}");
        assert!(text.contains("STOP the old server is itself a replica"), "{to:?}: {text}");
        assert_eq!(said(&mut first, "GET k"), "v", "{to:?}");
    }
}

#[test]
fn a_replica_is_not_changed_without_a_question() {
    for from in [Target::Reference, Target::Dunlin] {
        let [leader, replica] = pair([Target::Reference, from]);
        let mut second = replica.connect().unwrap();
        assert_eq!(said(&mut second, "CONFIG SET replica-read-only no"), "OK");
        follow(&replica, leader.port()).unwrap();
        catch_up(&leader, &replica).unwrap();
        assert_eq!(said(&mut second, "CLIENT PAUSE 3600000 WRITE"), "OK");
        // As it is called where somebody has swapped them.
        let (code, text) = move_all(&url(&replica), &url(&leader), &[]);
        assert_eq!(code, Some(1), "{from:?}: {text}");
        assert!(text.contains("a replica already, refuses writes"), "{text}");
        assert!(holds_writes(&replica), "{from:?}: {text}");
    }
}

#[test]
fn a_question_says_what_becomes_of_an_old_server_that_stays_paused() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    for rest in [&["--yes"][..], &[]] {
        let rest = [&["--after", "paused"], rest].concat();
        let (_, text) = move_all(&url(&old), &url(&new), &rest);
        assert!(!text.contains("becomes a replica of the new one"), "{text}");
        let is_asked = text.contains("The old server stays paused for an hour more. Go on?");
        assert_eq!(is_asked, rest.len() == 2, "{text}");
    }
}

#[test]
fn a_password_that_is_no_text_is_put_back_as_it_was() {
    for to in [Target::Reference, Target::Dunlin] {
        let [old, new] = pair([Target::Reference, to]);
        let mut second = new.connect().unwrap();
        let password = b"p\xff\xfew";
        let reply = second.call::<&[u8]>(&[b"CONFIG", b"SET", b"masterauth", password]).unwrap();
        assert!(!reply.is_error(), "{reply:?}");
        let (code, text) = move_all(&url(&old), &url(&new), &["--yes"]);
        assert_eq!(code, Some(0), "{to:?}: {text}");
        let setting = second.call_text("CONFIG GET masterauth").unwrap().elements().unwrap();
        assert_eq!(setting[1].text(), Some(&password[..]), "{to:?}");
    }
}

#[test]
fn a_move_is_not_finished_with_an_address_that_is_the_old_servers_own() {
    let [old, new] = pair([Target::Reference, Target::Dunlin]);
    follow_and_lead(&old, &new);
    // An address of this machine, and none that the loopback alone has.
    let from = url(&old).replace("127.0.0.1", "0.0.0.0");
    let (code, text) = move_all(&from, &url(&new), &["--yes"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("STOP the old server looks for the other one at 127.0.0.1"), "{text}");
    assert!(!is_replica(&old) && holds_writes(&old), "{text}");
    let rest = ["--yes", "--to-address", &place(&new).replace("127.0.0.1", "0.0.0.0")];
    let (code, text) = move_all(&from, &url(&new), &rest);
    assert_eq!(code, Some(0), "{text}");
}
