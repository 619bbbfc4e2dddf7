//! Roles: rights that users have by a name, as the documentation of Valkey 9.2 describes them.

use std::fs;

use anyhow::{Result, ensure};
use tests::client::{Client, Received};
use tests::server::{Server, Target};

use super::{NO_KEY, connect_as, expect, said};

fn words(client: &mut Client, command: &str) -> Result<Vec<String>> {
    let elements = client.call_text(command)?.elements().unwrap_or_default();
    Ok(elements.iter().map(said).collect())
}

#[test]
fn roles_are_made_shown_and_deleted() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut admin = server.connect()?;
    ensure!(words(&mut admin, "ACL ROLES")?.is_empty());
    expect(&mut admin, "ACL GETROLE reader", "Nil")?;
    expect(&mut admin, "ACL SETROLE reader ~app:* +@read (+info)", "OK")?;
    expect(&mut admin, "ACL SETROLE", "-ERR wrong number of arguments")?;
    expect(&mut admin, "ACL SETROLE ops +@admin db=1", "OK")?;
    expect(&mut admin, "ACL SETUSER alice on >alicepass role=reader role=reader", "OK")?;
    ensure!(words(&mut admin, "ACL ROLES")? == ["ops", "reader"]);
    let shown = admin.call_text("ACL GETROLE reader")?.elements().unwrap_or_default();
    let texts: Vec<String> = shown.iter().map(said).collect();
    ensure!(texts[..6] == ["commands", "-@all +@read", "keys", "~app:*", "channels", ""]);
    ensure!(texts[6] == "selectors" && texts[8] == "users", "{texts:?}");
    let users = shown[9].clone().elements().unwrap_or_default();
    ensure!(users.iter().map(said).collect::<Vec<_>>() == ["alice"]);
    let lines = words(&mut admin, "ACL LIST")?;
    ensure!(lines[0] == "role ops resetchannels db=1 -@all +@admin", "{lines:?}");
    ensure!(
        lines[1] == "role reader ~app:* resetchannels -@all +@read (resetchannels -@all +info)",
        "{lines:?}"
    );
    ensure!(lines[2].starts_with("user alice on ") && lines[2].ends_with("-@all role=reader"));
    let shown = words(&mut admin, "ACL GETUSER alice")?;
    ensure!(shown.iter().any(|word| word == "roles"), "{shown:?}");
    let held = "-ERR Role 'reader' is assigned to one or more users. Remove it from them first.";
    expect(&mut admin, "ACL DELROLE ops reader", held)?;
    ensure!(words(&mut admin, "ACL ROLES")? == ["ops", "reader"], "none is deleted then");
    expect(&mut admin, "ACL SETUSER alice resetroles", "OK")?;
    expect(&mut admin, "ACL DELROLE reader nosuchrole", "1")?;
    ensure!(words(&mut admin, "ACL ROLES")? == ["ops"]);
    for rule in [
        "on",
        "off",
        "reset",
        ">pw",
        "<pw",
        "nopass",
        "resetpass",
        "role=ops",
        "resetroles",
        "+nosuch",
        "%X~a",
    ] {
        let command = format!("ACL SETROLE ops +get {rule}");
        expect(&mut admin, &command, "-ERR Error in ACL SETROLE modifier '")?;
    }
    let lines = words(&mut admin, "ACL LIST")?;
    ensure!(
        lines[0] == "role ops resetchannels db=1 -@all +@admin",
        "all rules or none: {lines:?}"
    );
    for name in ["get", "read", "config|get"] {
        expect(&mut admin, &format!("ACL SETROLE {name} +get"), "-ERR '")?;
    }
    let refused = "-ERR Error in ACL SETUSER modifier 'role=reader': ";
    expect(&mut admin, "ACL SETUSER alice role=reader", refused)
}

#[test]
fn the_fingerprint_is_that_of_the_rules() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut admin = server.connect()?;
    let mut seen = Vec::new();
    for command in [
        "PING",
        "ACL SETUSER u on ~a",
        "ACL SETROLE r ~a",
        "ACL SETROLE r ~b",
        "ACL SETUSER u role=r",
    ] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
        let digest = said(&admin.call_text("ACL DIGEST")?);
        ensure!(digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit()));
        ensure!(!seen.contains(&digest), "{command}");
        seen.push(digest);
    }
    for (command, place) in
        [("ACL SETUSER u resetroles", 3), ("ACL DELROLE r", 1), ("ACL DELUSER u", 0)]
    {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
        ensure!(said(&admin.call_text("ACL DIGEST")?) == seen[place], "{command}");
    }
    Ok(())
}

#[test]
fn a_user_may_do_what_its_roles_allow() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let mut admin = server.connect()?;
    for command in [
        "SET app:1 x",
        "SET own x",
        "ACL SETROLE reader %R~app:* +get &news",
        "ACL SETROLE writer (~w* +set)",
        "ACL SETUSER u on nopass ~own +exists +ping role=reader role=writer",
        "ACL SETUSER v on nopass ~own +exists role=writer",
    ] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
    }
    let (mut u, mut v) = (connect_as(&server, "u")?, connect_as(&server, "v")?);
    expect(&mut u, "GET app:1", "x")?;
    expect(&mut u, "EXISTS own", "1")?;
    expect(&mut u, "SET w1 x", "OK")?;
    // Nothing is combined over a user and its roles.
    for command in ["GET own", "SET app:1 y", "EXISTS app:1", "SET own y", "GET w1"] {
        expect(&mut u, command, NO_KEY)?;
    }
    expect(&mut v, "SET w1 x", "OK")?;
    expect(&mut v, "GET app:1", "-NOPERM")?;
    ensure!(said(&admin.call_text("ACL DRYRUN u GET own")?).contains("'own' key"));
    // A role that changes changes all who have it, at once.
    expect(&mut admin, "ACL SETROLE writer clearselectors ~app:* +set +exec +multi", "OK")?;
    for client in [&mut u, &mut v] {
        expect(client, "SET app:2 x", "OK")?;
        expect(client, "SET w1 x", NO_KEY)?;
    }
    expect(&mut v, "MULTI", "OK")?;
    expect(&mut v, "SET app:3 x", "QUEUED")?;
    expect(&mut admin, "ACL SETROLE writer -set", "OK")?;
    let replies = words(&mut v, "EXEC")?;
    ensure!(replies[0].starts_with("-NOPERM ACLs rules changed"), "{replies:?}");
    expect(&mut u, "SET app:2 x", "-NOPERM")?;
    // Subscribers of channels that are gone are closed.
    expect(&mut admin, "ACL SETROLE reader +subscribe", "OK")?;
    u.call_text("SUBSCRIBE news")?;
    expect(&mut admin, "ACL SETROLE reader resetchannels", "OK")?;
    ensure!(matches!(u.receive()?, Received::Closed));
    expect(&mut v, "EXISTS own", "1")?;
    // `reset` takes roles away too.
    expect(&mut admin, "ACL SETUSER v reset on nopass", "OK")?;
    expect(&mut v, "EXISTS own", "-NOPERM")?;
    expect(&mut admin, "ACL DELROLE writer", "-ERR Role 'writer' is assigned")?;
    expect(&mut admin, "ACL DELUSER u", "1")?;
    expect(&mut admin, "ACL DELROLE writer reader", "2")
}

#[test]
fn files_have_roles_before_or_after_their_users() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (acl, conf) = (directory.path().join("users.acl"), directory.path().join("dunlin.conf"));
    let user = "user bob on nopass role=reader";
    let text = format!("{user}\nrole reader ~app:* +get (+set ~w)\n");
    fs::write(&acl, &text)?;
    fs::write(&conf, &text)?;
    let (acl, conf) = (acl.to_string_lossy().into_owned(), conf.to_string_lossy().into_owned());
    for save in ["ACL SAVE", "CONFIG REWRITE"] {
        let mut server = Server::start(Target::Dunlin, &[])?;
        match save {
            "ACL SAVE" => server.set_options(&[("aclfile", &acl)]),
            _ => server.set_wrapper(&[
                "sh",
                "-c",
                &format!("shift; exec \"$0\" serve {conf} \"$@\""),
            ]),
        }
        server.start_again()?;
        let mut admin = server.connect()?;
        expect(&mut connect_as(&server, "bob")?, "SET w x", "OK")?;
        expect(&mut admin, "ACL SETROLE other +ping", "OK")?;
        let before = words(&mut admin, "ACL LIST")?;
        ensure!(before[0].starts_with("role other ") && before[2].starts_with("user bob "));
        expect(&mut admin, save, "OK")?;
        server.terminate()?;
        server.start_again()?;
        let mut admin = server.connect()?;
        ensure!(words(&mut admin, "ACL LIST")? == before, "{save}: {before:?}");
        expect(&mut connect_as(&server, "bob")?, "SET w x", "OK")?;
        if save == "CONFIG REWRITE" {
            continue;
        }
        let mut bob = connect_as(&server, "bob")?;
        for wrong in [
            "user bob role=nosuch\n",
            "role reader +get\nrole reader +set\n",
            "role get +get\n",
            "role reader on\n",
            "role\n",
        ] {
            fs::write(&acl, wrong)?;
            expect(&mut admin, "ACL LOAD", "-ERR ")?;
            ensure!(words(&mut admin, "ACL LIST")? == before, "{wrong}");
        }
        fs::write(&acl, "role reader ~app:* +get\nuser bob on nopass role=reader\n")?;
        expect(&mut admin, "ACL LOAD", "OK")?;
        expect(&mut bob, "SET w x", "-NOPERM")?;
        ensure!(words(&mut admin, "ACL ROLES")? == ["reader"]);
    }
    Ok(())
}
