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
