//! Users in files: the aclfile, and lines of the configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use tests::client::{Client, Received};
use tests::server::{Server, Target};

use super::{connect_as, expect, said};

fn listed(client: &mut Client) -> Result<Vec<String>> {
    let lines = client.call_text("ACL LIST")?.elements().unwrap_or_default();
    Ok(lines.iter().map(said).collect())
}

#[test]
fn a_file_of_users_is_loaded_as_a_whole_or_not_at_all() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("users.acl");
    fs::write(&path, "\nuser bob on >secret ~b* +get\nuser ann on nopass ~* &* +@all\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let file = path.to_string_lossy().into_owned();
    let mut server = Server::start(Target::Dunlin, &[("aclfile", &file)])?;
    let mut admin = server.connect()?;
    let before = listed(&mut admin)?;
    ensure!(before.len() == 3 && before[1].starts_with("user bob on sanitize-payload #"));
    let mut ann = connect_as(&server, "ann")?;
    for (text, error) in [
        ("user bob on\nuser ann +@nosuch\n", "Unknown command or category name in ACL"),
        ("user bob on\nann on\n", "should start with user keyword"),
        ("user bob on\nuser bob off\n", "Duplicate user 'bob' found on line 2"),
        ("user bob (+get ~x\n", "Unmatched parenthesis in selector definition."),
        ("# a comment\n", "should start with user keyword"),
        ("user bob %Q~x\n", "Syntax error"),
    ] {
        fs::write(&path, text)?;
        let reply = said(&admin.call_text("ACL LOAD")?);
        ensure!(reply.starts_with("-ERR ") && reply.contains(error), "{text}: {reply}");
        ensure!(reply.ends_with("no change to the previously active ACL rules was performed"));
        ensure!(listed(&mut admin)? == before, "{text}");
    }
    fs::write(&path, "user bob on >other ~b* +set\n")?;
    expect(&mut admin, "ACL LOAD", "OK")?;
    ensure!(matches!(ann.receive()?, Received::Closed), "her user is gone");
    expect(&mut admin, "AUTH bob other", "OK")?;
    expect(&mut admin, "SET b1 x", "OK")?;
    expect(&mut admin, "GET b1", "-NOPERM")?;
    let mut admin = server.connect()?;
    expect(&mut admin, "ACL SETUSER carl on >pw +ping", "OK")?;
    expect(&mut admin, "ACL SAVE", "OK")?;
    let text = fs::read_to_string(&path)?;
    ensure!(!text.contains("pw") && text.lines().count() == 3, "{text}");
    ensure!(fs::metadata(&path)?.permissions().mode() & 0o777 == 0o600, "as before");
    let saved = listed(&mut admin)?;
    server.terminate()?;
    server.start_again()?;
    ensure!(listed(&mut server.connect()?)? == saved);
    Ok(())
}

#[test]
fn a_server_does_not_start_with_wrong_users() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("users.acl");
    let file = path.to_string_lossy().into_owned();
    for text in ["user bob +nosuch\n", "bob on\n"] {
        fs::write(&path, text)?;
        ensure!(Server::start(Target::Dunlin, &[("aclfile", &file)]).is_err(), "{text}");
    }
    ensure!(Server::start(Target::Dunlin, &[("user", "bob on +nosuch")]).is_err());
    fs::write(&path, "user bob on\n")?;
    let both = [("aclfile", &*file), ("user", "ann on")];
    ensure!(Server::start(Target::Dunlin, &both).is_err(), "users in two places");
    Ok(())
}

#[test]
fn the_configuration_has_users_too_and_keeps_no_password() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("dunlin.conf");
    let line = "user bob on >hidden ~b* (+set ~c*) +get\n";
    fs::write(&path, format!("{line}user default on >hidden2 ~* &* +@all\n"))?;
    let file = path.to_string_lossy().into_owned();
    let mut server = Server::start(Target::Dunlin, &[("include", &file)])?;
    let mut client = server.connect()?;
    expect(&mut client, "PING", "-NOAUTH")?;
    expect(&mut client, "AUTH bob hidden", "OK")?;
    expect(&mut client, "SET c v", "OK")?;
    expect(&mut client, "SET b v", super::NO_KEY)?;
    expect(&mut client, "AUTH hidden2", "OK")?;
    expect(&mut client, "ACL DRYRUN bob GET b", "OK")?;
    server.kill();
    Ok(())
}

#[test]
fn a_transaction_loads_users_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("users.acl");
    let file = path.to_string_lossy().into_owned();
    fs::write(&path, "user bob on nopass ~* &* +@all\nuser ann on nopass +@all\n")?;
    let server = Server::start(Target::Dunlin, &[("aclfile", &file)])?;
    let (mut bob, mut ann) = (connect_as(&server, "bob")?, connect_as(&server, "ann")?);
    let mut executed = |second: &str| -> Result<Vec<String>> {
        for command in ["MULTI", "ACL LOAD", second] {
            ensure!(!bob.call_text(command)?.is_error(), "{command}");
        }
        Ok(bob.call_text("EXEC")?.elements().unwrap_or_default().iter().map(said).collect())
    };
    fs::write(&path, "user bob on nopass ~* &* +@all\nann on\n")?;
    let replies = executed("GET k")?;
    ensure!(replies[0].starts_with("-ERR ") && replies[1] == "Nil", "{replies:?}");
    fs::write(&path, "user bob on nopass ~* &* +@all -get\n")?;
    let replies = executed("GET k")?;
    ensure!(replies[0] == "OK", "{replies:?}");
    ensure!(replies[1].starts_with("-NOPERM ACLs rules changed"), "{replies:?}");
    ensure!(matches!(ann.receive()?, Received::Closed), "her user is gone");
    fs::write(&path, "user ann on nopass +@all\n")?;
    let replies = executed("SET k v")?;
    ensure!(replies[0] == "OK" && replies[1].starts_with("-NOPERM"), "{replies:?}");
    ensure!(matches!(bob.receive()?, Received::Closed), "his user is gone");
    // Who loads a file without its own user hears of it all the same.
    let mut ann = connect_as(&server, "ann")?;
    fs::write(&path, "\n")?;
    expect(&mut ann, "ACL LOAD", "OK")?;
    ensure!(matches!(ann.receive()?, Received::Closed));
    expect(&mut server.connect()?, "EXISTS k", "0")
}

#[test]
fn users_with_unusual_patterns_are_there_after_a_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (acl, conf) = (directory.path().join("users.acl"), directory.path().join("dunlin.conf"));
    fs::write(&acl, "")?;
    fs::write(&conf, "hz 10\n")?;
    let (acl, conf) = (acl.to_string_lossy().into_owned(), conf.to_string_lossy().into_owned());
    for save in ["ACL SAVE", "CONFIG REWRITE"] {
        let mut server = Server::start(Target::Dunlin, &[])?;
        match save {
            "ACL SAVE" => server.set_options(&[("aclfile", &acl)]),
            // Its options come after the file.
            _ => server.set_wrapper(&[
                "sh",
                "-c",
                &format!("shift; exec \"$0\" serve {conf} \"$@\""),
            ]),
        }
        server.start_again()?;
        let mut admin = server.connect()?;
        let rules = ["~a\"b", "~it's", "+get|x\"y", "~(z)", "~*a", "%RW~*", "~c", "(\"~x)\" +get)"];
        for name in ["it\"s", "(n)", "#n", ""] {
            let setuser = [&["ACL", "SETUSER", name, "on"][..], &rules].concat();
            let reply = said(&admin.call(&setuser)?);
            ensure!(reply == "OK", "{name}: {reply}");
        }
        for rule in ["+get|a b", "+get|a\nuser eve on", "~a b"] {
            let reply = said(&admin.call(&["ACL", "SETUSER", "n", rule])?);
            ensure!(reply.ends_with("Syntax error"), "{rule}: {reply}");
        }
        let before = listed(&mut admin)?;
        expect(&mut admin, save, "OK")?;
        server.terminate()?;
        server.start_again()?;
        ensure!(listed(&mut server.connect()?)? == before, "{save}: {before:?}");
    }
    Ok(())
}

#[test]
fn megabytes_of_rules_are_taken() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut admin = server.connect()?;
    for (sign, count) in
        [("~key:", 300_000), ("&channel:", 300_000), ("+get|", 300_000), (">", 300_000)]
    {
        let mut words = ["ACL", "SETUSER", "u", "reset"].map(str::to_owned).to_vec();
        words.extend((0..count).map(|number| format!("{sign}{number}")));
        let reply = said(&admin.call(&words)?);
        ensure!(reply == "OK", "{reply}");
        expect(&mut admin, "ACL SETUSER u resetchannels", "OK")?;
    }
    // Patterns with no beginning of their own, rules that take back earlier ones, and passwords
    // that go again: none of these may be looked for among all.
    let digest = |number: u32| format!("#{number:064x}");
    let numbers = 0..300_000;
    let stars = numbers.clone().flat_map(|own| [format!("~*{own}*"), format!("&*{own}*")]);
    let repeated = numbers.clone().chain(numbers.clone()).map(|own| format!("+get|{own}"));
    let many = numbers.clone().map(|own| format!("+get|{own}"));
    let taken_back = many.chain(numbers.clone().flat_map(|_| ["-set", "+set"].map(str::to_owned)));
    let passwords = numbers.clone().map(digest);
    let gone = passwords.clone().chain(passwords.map(|own| own.replace('#', "!")));
    let kinds: [Vec<String>; 4] =
        [stars.collect(), repeated.collect(), taken_back.collect(), gone.collect()];
    for rules in kinds {
        let mut words = ["ACL", "SETUSER", "u", "reset"].map(str::to_owned).to_vec();
        words.extend(rules);
        let reply = said(&admin.call(&words)?);
        ensure!(reply == "OK", "{reply}");
    }
    let mut words = ["ACL", "SETUSER", "u", "reset"].map(str::to_owned).to_vec();
    words.extend((0..100_000).map(|_| "(+get ~a)".to_owned()));
    ensure!(said(&admin.call(&words)?) == "OK");
    expect(&mut admin, "ACL DRYRUN u GET a", "OK")
}
