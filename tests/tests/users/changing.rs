//! Rights that shrink while their user is connected are lost at once.

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{number, wait_until};
use tests::server::{Server, Target};

use super::{connect_as, expect, said};

fn with_user(rules: &str) -> Result<(Server, Client)> {
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let mut admin = server.connect()?;
    expect(&mut admin, &format!("ACL SETUSER u on nopass {rules}"), "OK")?;
    Ok((server, admin))
}

fn is_closed(client: &mut Client) -> Result<bool> {
    Ok(matches!(client.receive()?, Received::Closed))
}

#[test]
fn rights_end_with_the_reply_that_takes_them() -> Result<()> {
    let (server, mut admin) = with_user("+@all ~*")?;
    // On both threads.
    let mut clients = (0..8).map(|_| connect_as(&server, "u")).collect::<Result<Vec<_>>>()?;
    for round in 0..50 {
        expect(&mut admin, "ACL SETUSER u -set", "OK")?;
        for client in &mut clients {
            expect(client, "SET k v", "-NOPERM User u has no permissions to run the 'set'")?;
        }
        expect(&mut admin, "ACL SETUSER u +set resetkeys ~k*", "OK")?;
        for client in &mut clients {
            expect(client, "SET k v", "OK")?;
            expect(client, "SET other v", super::NO_KEY)?;
        }
        expect(&mut admin, "ACL SETUSER u allkeys", "OK")?;
        for client in &mut clients {
            expect(client, "SET other v", "OK").map_err(|error| error.context(round))?;
        }
    }
    Ok(())
}

#[test]
fn subscribers_lose_their_channels() -> Result<()> {
    let (server, mut admin) = with_user("+@all ~* &news* &own")?;
    let (mut one, mut pattern, mut kept, mut shard) = (
        connect_as(&server, "u")?,
        connect_as(&server, "u")?,
        connect_as(&server, "u")?,
        connect_as(&server, "u")?,
    );
    one.call_text("SUBSCRIBE news.1")?;
    pattern.call_text("PSUBSCRIBE news*")?;
    kept.call_text("SUBSCRIBE own")?;
    shard.call_text("SSUBSCRIBE news.2")?;
    expect(&mut admin, "ACL SETUSER u resetchannels &own", "OK")?;
    expect(&mut admin, "PUBLISH news.1 x", "0")?;
    expect(&mut admin, "SPUBLISH news.2 x", "0")?;
    expect(&mut admin, "PUBLISH own x", "1")?;
    ensure!(is_closed(&mut one)? && is_closed(&mut pattern)? && is_closed(&mut shard)?);
    ensure!(matches!(kept.receive()?, Received::Reply(_)));
    Ok(())
}

#[test]
fn monitors_and_followers_are_closed() -> Result<()> {
    let (server, mut admin) = with_user("+@all ~*")?;
    let (mut monitor, mut follower) = (connect_as(&server, "u")?, connect_as(&server, "u")?);
    expect(&mut monitor, "MONITOR", "OK")?;
    follower.send(&["CHANGES", "SINCE", "$", "PREFIX", "secret", "BLOCK", "0"])?;
    wait_until("it waits", || Ok(number(&mut admin, "blocked_clients")? == 1))?;
    expect(&mut admin, "ACL SETUSER u -monitor resetkeys ~own*", "OK")?;
    expect(&mut admin, "SET secret x", "OK")?;
    while let Received::Reply(line) = monitor.receive()? {
        ensure!(!said(&line).contains("\"SET\" \"secret\""), "{line:?}");
    }
    ensure!(is_closed(&mut follower)?);
    Ok(())
}

#[test]
fn who_is_deleted_falls_to_no_rights() -> Result<()> {
    let (server, mut admin) = with_user("+@all ~* &*")?;
    let (mut idle, mut waiting, mut queueing) =
        (connect_as(&server, "u")?, connect_as(&server, "u")?, connect_as(&server, "u")?);
    waiting.send(&["BLPOP", "l", "0"])?;
    wait_until("it waits", || Ok(number(&mut admin, "blocked_clients")? == 1))?;
    expect(&mut queueing, "MULTI", "OK")?;
    expect(&mut queueing, "SET k v", "QUEUED")?;
    expect(&mut admin, "ACL DELUSER u", "1")?;
    expect(&mut admin, "RPUSH l x", "1")?;
    // What they have sent meanwhile is not run.
    for client in [&mut idle, &mut queueing] {
        let _ = client.send(&["EXEC"]);
        let _ = client.send(&["SET", "k", "v"]);
    }
    for client in [&mut idle, &mut waiting, &mut queueing] {
        ensure!(is_closed(client)?);
    }
    expect(&mut admin, "EXISTS k", "0")?;
    expect(&mut admin, "LLEN l", "1")
}

#[test]
fn one_that_deletes_itself_hears_of_it_and_is_closed() -> Result<()> {
    let (server, _admin) = with_user("+@all ~*")?;
    let mut client = connect_as(&server, "u")?;
    ensure!(client.call_text("ACL DELUSER u")? == Reply::Integer(1));
    ensure!(is_closed(&mut client)?);
    Ok(())
}
