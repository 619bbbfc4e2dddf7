//! What a position in the stream promises when the stream breaks off, and a server that becomes a
//! replica in the middle of a transaction.

use anyhow::{Result, ensure};
use tests::client::{Client, Reply};
use tests::replication::{catch_up, first_difference, follow};
use tests::server::{Server, Target};

fn start() -> Result<Server> {
    Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0"), ("save", "")])
}

fn say(client: &mut Client, command: &str) -> Result<String> {
    Ok(text(&client.call_text(command)?))
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Integer(number) => number.to_string(),
        Reply::Array(replies) => replies.iter().map(text).collect::<Vec<_>>().join(", "),
        other => String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned(),
    }
}

#[test]
fn a_position_tells_of_a_write_that_nobody_follows() -> Result<()> {
    let (server, replica) = (start()?, start()?);
    let mut client = server.connect()?;
    let mut positions = Vec::new();
    for value in ["1", "2"] {
        say(&mut client, &format!("SET k {value}"))?;
        positions.push(say(&mut client, "CLIENT POSITION")?);
    }
    ensure!(positions[0] != positions[1], "{positions:?}");
    // A replica that comes now has both writes.
    follow(&replica, server.port())?;
    catch_up(&server, &replica)?;
    let mut reader = replica.connect()?;
    for position in positions {
        ensure!(say(&mut reader, &format!("CLIENT READAFTER {position}"))? == "OK");
        ensure!(say(&mut reader, "GET k")? == "2");
    }
    Ok(())
}

#[test]
fn reads_are_refused_when_the_data_of_their_position_is_gone() -> Result<()> {
    let (one, other, replica) = (start()?, start()?, start()?);
    for server in [&other, &replica] {
        follow(server, one.port())?;
        catch_up(&one, server)?;
    }
    // The histories fork.
    say(&mut other.connect()?, "REPLICAOF NO ONE")?;
    say(&mut other.connect()?, "SET k other")?;
    let (mut client, mut reader) = (one.connect()?, replica.connect()?);
    say(&mut client, "SET k one")?;
    let position = say(&mut client, "CLIENT POSITION")?;
    ensure!(say(&mut reader, &format!("CLIENT READAFTER {position} TIMEOUT 100000"))? == "OK");
    ensure!(say(&mut reader, "GET k")? == "one");
    follow(&replica, other.port())?;
    catch_up(&other, &replica)?;
    for _ in 0..2 {
        let refusal = say(&mut reader, "GET k")?;
        ensure!(refusal.starts_with("NOHISTORY"), "{refusal}");
    }
    ensure!(say(&mut reader, "PING")? == "PONG", "it looks at no data");
    ensure!(say(&mut reader, "RESET")? == "RESET");
    ensure!(say(&mut reader, "GET k")? == "other");
    Ok(())
}

#[test]
fn a_transaction_writes_nothing_after_it_has_made_a_replica() -> Result<()> {
    let (one, other) = (start()?, start()?);
    follow(&one, other.port())?;
    catch_up(&other, &one)?;
    say(&mut one.connect()?, "REPLICAOF NO ONE")?;
    follow(&other, one.port())?;
    catch_up(&one, &other)?;
    let mut client = other.connect()?;
    say(&mut client, "REPLICAOF NO ONE")?;
    // It has nothing that the other one lacks, so it goes on where it was.
    let replicaof = format!("REPLICAOF 127.0.0.1 {}", one.port());
    for command in ["MULTI", &replicaof, "SET k v", "GET k"] {
        say(&mut client, command)?;
    }
    let replies = say(&mut client, "EXEC")?;
    ensure!(replies.starts_with("OK, READONLY "), "{replies}");
    catch_up(&one, &other)?;
    let difference = first_difference(&mut one.connect()?, &mut client)?;
    ensure!(difference.is_none(), "{difference:?}");
    Ok(())
}
