//! Nothing that is shown or logged holds a password, and a failed login can be made slow.

use anyhow::{Result, ensure};
use tests::client::Received;
use tests::server::{Server, Target};

use super::{expect, said};

#[test]
fn passwords_are_shown_nowhere() -> Result<()> {
    let options = [("slowlog-log-slower-than", "0"), ("loglevel", "debug")];
    let server = Server::start(Target::Dunlin, &options)?;
    let (mut admin, mut monitor) = (server.connect()?, server.connect()?);
    expect(&mut monitor, "MONITOR", "OK")?;
    expect(&mut admin, "ACL SETUSER bob on >hidden1 +@all ~*", "OK")?;
    expect(&mut admin, "ACL SETUSER bob <hidden1 >hidden2", "OK")?;
    expect(&mut admin, "ACL SETUSER bob >hidden3 nosuch", "-ERR Error in ACL SETUSER modifier 'n")?;
    expect(&mut admin, "AUTH bob hidden4", "-WRONGPASS")?;
    expect(&mut admin, "AUTH bob hidden2", "OK")?;
    expect(&mut admin, "HELLO 2 AUTH bob hidden2", "Array")?;
    expect(&mut admin, "CONFIG SET requirepass hidden5", "OK")?;
    expect(&mut admin, "ACL DRYRUN bob AUTH bob hidden6", "OK")?;
    expect(&mut admin, "ACL DRYRUN bob ACL SETUSER eve >hidden7", "OK")?;
    // Not in a transaction either.
    for command in ["MULTI", "AUTH bob hidden2", "ACL SETUSER bob >hidden8", "EXEC"] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
    }
    let mut shown = String::new();
    for command in ["SLOWLOG GET 100", "ACL LIST", "ACL GETUSER bob", "ACL LOG", "CLIENT LIST"] {
        shown.push_str(&format!("{:?}", admin.call_text(command)?));
    }
    expect(&mut admin, "PING end", "end")?;
    while let Received::Reply(line) = monitor.receive()? {
        let line = said(&line);
        shown.push_str(&line);
        if line.contains("end") {
            break;
        }
    }
    shown.push_str(&server.log());
    ensure!(shown.contains("redacted"), "{shown}");
    for number in 1..=8 {
        ensure!(!shown.contains(&format!("hidden{number}")), "{shown}");
        let bytes = format!("{:?}", format!("hidden{number}").as_bytes());
        ensure!(!shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
    }
    Ok(())
}

#[test]
fn a_wrong_password_is_answered_late_and_others_are_served_meanwhile() -> Result<()> {
    let options = [("requirepass", "right"), ("auth-failure-delay", "1")];
    let server = Server::start(Target::Dunlin, &options)?;
    let (mut guesser, mut other) = (server.connect()?, server.connect()?);
    for command in ["AUTH wrong", "HELLO 2 AUTH default wrong"] {
        expect(&mut guesser, command, "-WRONGPASS")?;
    }
    expect(&mut other, "AUTH right", "OK")?;
    expect(&mut other, "CONFIG SET auth-failure-delay 60000", "OK")?;
    guesser.send(&["AUTH", "wrong"])?;
    guesser.send(&["AUTH", "right"])?;
    tests::observe::wait_until("the guess waits", || {
        Ok(tests::observe::number(&mut other, "blocked_clients")? == 1)
    })?;
    ensure!(!guesser.is_readable()?, "it has no answer yet");
    // The commands of a transaction do not wait.
    for command in ["MULTI", "AUTH wrong"] {
        other.call_text(command)?;
    }
    let replies = other.call_text("EXEC")?.elements().unwrap_or_default();
    ensure!(replies.len() == 1 && said(&replies[0]).starts_with("-WRONGPASS"), "{replies:?}");
    Ok(())
}

#[test]
fn failed_logins_are_counted_and_logged() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("requirepass", "right")])?;
    let mut client = server.connect()?;
    for command in ["AUTH wrong", "AUTH bob wrong", "HELLO 3 AUTH bob wrong"] {
        expect(&mut client, command, "-WRONGPASS")?;
    }
    expect(&mut client, "AUTH right", "OK")?;
    ensure!(tests::observe::number(&mut client, "acl_access_denied_auth")? == 3);
    let entries = client.call_text("ACL LOG")?.elements().unwrap_or_default();
    ensure!(entries.len() == 3, "{entries:?}");
    Ok(())
}

#[test]
fn errors_in_files_show_no_password() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("dunlin.conf");
    let acl = directory.path().join("users.acl");
    for line in [
        "requirepass \"hidden",
        "user bob on >hidden \"",
        "user bob on <hidden",
        "user bob on >hidden (+get",
        "masterauth 'hidden",
        "user",
    ] {
        std::fs::write(&path, format!("{line}\n"))?;
        std::fs::write(&acl, format!("{line}\n"))?;
        for option in [("include", &path), ("aclfile", &acl)] {
            let started =
                Server::start(Target::Dunlin, &[(option.0, &*option.1.to_string_lossy())]);
            let error = started.err().map(|error| format!("{error:?}"));
            let error = error.ok_or_else(|| anyhow::anyhow!("{line}: it has started"))?;
            ensure!(!error.contains("hidden"), "{line}: {error}");
        }
    }
    Ok(())
}
