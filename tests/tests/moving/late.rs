//! Output of `dunlin move` that nobody reads.

use std::process::Command;

use tests::observe::wait_for;
use tests::server::{Server, Target};

use crate::common::{begin, ended, said, url};

const OPTIONS: [(&str, &str); 1] = [("repl-diskless-sync-delay", "0")];

/// An old and a new server, of which the old one has a key, and a way to one of them.
fn pair(targets: [Target; 2]) -> [Server; 2] {
    let servers = targets.map(|target| Server::start(target, &OPTIONS).unwrap());
    assert_eq!(said(&mut servers[0].connect().unwrap(), "SET k v"), "OK");
    servers
}

fn is_replica(server: &Server) -> bool {
    said(&mut server.connect().unwrap(), "INFO replication").contains("role:slave")
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
