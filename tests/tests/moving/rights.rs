//! What users of `dunlin move` may not do.

use tests::server::{Server, Target};

use crate::common::{checked, is_replica, move_all, pair, said, url};

#[test]
fn what_is_not_allowed_is_told_before_anything_moves() {
    let directory = tempfile::tempdir().unwrap();
    let names = directory.path().join("names.conf");
    std::fs::write(&names, "rename-command REPLICAOF \"\"\n").unwrap();
    let options = [("include", names.to_str().unwrap())];
    let old = Server::start(Target::Reference, &options).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    checked(&old, &new, &["STOP the old server does not allow REPLICAOF: it has no such command"]);
    let (code, text) = move_all(&url(&old), &url(&new), &["--check", "--after", "paused"]);
    assert_eq!(code, Some(0), "{text}");
    let hidden = Server::start(Target::Dunlin, &options).unwrap();
    checked(&old, &hidden, &["STOP the new server does not allow REPLICAOF"]);
    let blind = Server::start(Target::Reference, &[]).unwrap();
    let rule = "ACL SETUSER bob on >pw ~* &* +@all -client|list -acl";
    assert_eq!(said(&mut blind.connect().unwrap(), rule), "OK");
    let (code, text) =
        move_all(&url(&blind).replace("redis://", "redis://bob:pw@"), &url(&new), &["--check"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("Sentinels and other moves would not be seen"), "{text}");
    assert!(text.contains("note the old server does not tell what this user may do"), "{text}");
    // A user that may not.
    let rule = "ACL SETUSER bob on >pw ~* +@all -unlink";
    let bobs = Server::start(Target::Reference, &[]).unwrap();
    assert_eq!(said(&mut bobs.connect().unwrap(), rule), "OK");
    let (code, text) =
        move_all(&url(&bobs).replace("redis://", "redis://bob:pw@"), &url(&new), &["--check"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("STOP the old server does not allow UNLINK"), "{text}");
    let config = "ACL SETUSER bob -config +unlink";
    assert_eq!(said(&mut bobs.connect().unwrap(), config), "OK");
    let (code, text) =
        move_all(&url(&bobs).replace("redis://", "redis://bob:pw@"), &url(&new), &["--check"]);
    assert_eq!(code, Some(3), "{text}");
    for name in ["CONFIG GET", "CONFIG SET"] {
        let told = format!("STOP the old server does not allow {name}: User bob");
        assert!(text.contains(&told), "{text}");
    }
    let old = Server::start(Target::Reference, &[]).unwrap();
    for (server, part) in [(&old, "old"), (&new, "new")] {
        let rule =
            "ACL SETUSER ann on >pw ~* +@all -replicaof -psync -unlink -config|set -function|list";
        assert_eq!(said(&mut server.connect().unwrap(), rule), "OK");
        let mut urls = [url(&old), url(&new)];
        let own = usize::from(part == "new");
        urls[own] = urls[own].replace("redis://", "redis://ann:pw@");
        let (code, text) = move_all(&urls[0], &urls[1], &["--check"]);
        assert_eq!(code, Some(3), "{text}");
        for name in [
            "REPLICAOF: User ann has no permissions",
            "PSYNC: User ann has no",
            "UNLINK: ",
            "CONFIG SET: ",
            "FUNCTION LIST: ",
        ] {
            let told = format!("STOP the {part} server does not allow {name}");
            assert!(text.contains(&told), "{told}: {text}");
        }
    }
}

#[test]
fn nothing_moves_where_others_would_not_see_it() {
    let old = Server::start(Target::Reference, &[]).unwrap();
    let new = Server::start(Target::Dunlin, &[]).unwrap();
    for (part, right) in [(&old, "SETNAME"), (&new, "SETNAME"), (&old, "INFO"), (&new, "INFO")] {
        let rule = format!("ACL SETUSER ann reset on >pw ~* &* +@all -client|{right}");
        assert_eq!(said(&mut part.connect().unwrap(), &rule), "OK");
        let as_ann = |server: &Server| match server.port() == part.port() {
            true => url(server).replace("redis://", "redis://ann:pw@"),
            false => url(server),
        };
        let (code, text) = move_all(&as_ann(&old), &as_ann(&new), &["--yes"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("other moves and late requests would not be seen"), "{text}");
        let (code, text) = move_all(&as_ann(&old), &as_ann(&new), &["--check"]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains(&format!("server does not allow CLIENT {right}")), "{text}");
    }
}

#[test]
fn who_may_not_look_at_keys_compares_none_and_moves_nothing() {
    let rest = ["--yes", "--compare", "sample"];
    for (rights, ends, expected) in [
        ("-randomkey", 3, "STOP the old server does not allow RANDOMKEY"),
        ("-xrange", 3, "STOP the old server does not allow XRANGE"),
        ("-randomkey -acl", 1, "the old server answers to RANDOMKEY: NOPERM"),
        ("-hpexpiretime", 3, "STOP the old server does not allow HPEXPIRETIME"),
        ("-hpexpiretime -acl", 1, "times of fields cannot be compared: a server answers NOPERM"),
    ] {
        let [old, new] = pair([Target::Reference, Target::Dunlin]);
        let from = url(&old).replace("redis://", "redis://ann:pw@");
        let rule = format!("ACL SETUSER ann reset on >pw ~* &* +@all {rights}");
        assert_eq!(said(&mut old.connect().unwrap(), &rule), "OK");
        let (code, text) = move_all(&from, &url(&new), &rest);
        assert_eq!(code, Some(ends), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(!is_replica(&new), "{text}");
    }
}
