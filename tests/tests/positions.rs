//! What a position in the stream promises when the stream breaks off, and a server that becomes a
//! replica in the middle of a transaction.

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::{figure, number, wait_until};
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

/// The file goes on in the history that replicas have followed.
#[test]
fn a_position_stays_known_where_a_file_counts_on() -> Result<()> {
    let backlog = [("repl-backlog-ttl", "1"), ("changes-backlog-ttl", "1")];
    let file = [("repl-diskless-sync-delay", "0"), ("appendonly", "yes"), ("save", "")];
    let server = Server::start(Target::Dunlin, &[&file[..], &backlog].concat())?;
    let replica = start()?;
    let mut client = server.connect()?;
    let position = |client: &mut Client| -> Result<String> {
        let history = figure(client, "master_replid")?;
        Ok(format!("{history}:{}", number(client, "master_repl_offset")?))
    };
    follow(&replica, server.port())?;
    catch_up(&server, &replica)?;
    say(&mut client, "SET k 1")?;
    let mut positions = vec![position(&mut client)?];
    say(&mut replica.connect()?, "REPLICAOF NO ONE")?;
    wait_until("nothing is kept", || Ok(number(&mut client, "repl_backlog_active")? == 0))?;
    for value in 2..4 {
        say(&mut client, &format!("SET k {value}"))?;
        positions.push(position(&mut client)?);
    }
    let history = positions[0].split_once(':').map(|(history, _)| history.to_owned());
    let history = history.context("a position")?;
    ensure!(positions.iter().all(|position| position.starts_with(&history)), "{positions:?}");
    ensure!(positions[1] != positions[2], "{positions:?}");
    follow(&replica, server.port())?;
    catch_up(&server, &replica)?;
    for server in [&server, &replica] {
        let mut reader = server.connect()?;
        for position in &positions {
            let said = say(&mut reader, &format!("CLIENT READAFTER {position}"))?;
            ensure!(said == "OK", "{position}: {said}");
            ensure!(say(&mut reader, "GET k")? == "3");
        }
    }
    // Without the file nothing counts any more.
    say(&mut replica.connect()?, "REPLICAOF NO ONE")?;
    wait_until("nothing is kept", || Ok(number(&mut client, "repl_backlog_active")? == 0))?;
    ensure!(figure(&mut client, "master_replid")? == history);
    say(&mut client, "CONFIG SET appendonly no")?;
    ensure!(figure(&mut client, "master_replid")? != history);
    Ok(())
}

/// Nobody has followed yet.
#[test]
fn no_position_stands_still_where_a_file_has_ended() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("appendonly", "yes"), ("save", "")])?;
    let mut client = server.connect()?;
    say(&mut client, "SET k 1")?;
    let history = figure(&mut client, "master_replid")?;
    ensure!(number(&mut client, "master_repl_offset")? > 0);
    say(&mut client, "CONFIG SET appendonly no")?;
    say(&mut client, "SET k 2")?;
    ensure!(figure(&mut client, "master_replid")? != history);
    Ok(())
}

#[test]
fn replicas_get_what_a_primary_has_loaded_instead_of_its_data() -> Result<()> {
    for file in ["no", "yes"] {
        let options = [("repl-diskless-sync-delay", "0"), ("appendonly", file), ("save", "")];
        let server = Server::start(Target::Dunlin, &options)?;
        let replica = start()?;
        let mut client = server.connect()?;
        say(&mut client, "SET a 1")?;
        let reload = match file {
            "no" => ["SAVE", "DEBUG RELOAD NOSAVE"],
            _ => ["CONFIG SET appendonly no", "DEBUG LOADAOF"],
        };
        ensure!(say(&mut client, reload[0])? == "OK");
        follow(&replica, server.port())?;
        catch_up(&server, &replica)?;
        say(&mut client, "SET b 1")?;
        catch_up(&server, &replica)?;
        let position = say(&mut client, "CLIENT POSITION")?;
        // It loads what it has saved.
        ensure!(say(&mut client, "DEBUG RELOAD")? == "OK");
        let mut reader = server.connect()?;
        ensure!(say(&mut reader, &format!("CLIENT READAFTER {position}"))? == "OK");
        ensure!(say(&mut reader, "GET b")? == "1");
        if file == "no" {
            say(&mut client, "DEL b")?;
            ensure!(say(&mut client, "SAVE")? == "OK");
            say(&mut client, "SET b 1")?;
        }
        ensure!(say(&mut client, reload[1])? == "OK");
        ensure!(say(&mut client, "GET b")? == "");
        let said = say(&mut reader, "GET b")?;
        ensure!(said.starts_with("NOHISTORY"), "{said}");
        wait_until("the replica has the same", || {
            Ok(figure(&mut client, "master_replid")?
                == figure(&mut replica.connect()?, "master_replid")?)
        })?;
        catch_up(&server, &replica)?;
        let difference = first_difference(&mut server.connect()?, &mut replica.connect()?)?;
        ensure!(difference.is_none(), "{difference:?}");
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
fn a_write_that_a_copy_of_all_data_has_dropped_has_no_position() -> Result<()> {
    let (one, other) = (start()?, start()?);
    let mut client = one.connect()?;
    // From now on the stream is counted.
    say(&mut client, "CLIENT POSITION")?;
    say(&mut client, "SET mine 1")?;
    say(&mut other.connect()?, "SET k v")?;
    follow(&one, other.port())?;
    catch_up(&other, &one)?;
    say(&mut one.connect()?, "REPLICAOF NO ONE")?;
    let said = say(&mut client, "CLIENT POSITION")?;
    ensure!(said.starts_with("NOHISTORY the last write may be lost"), "{said}");
    // Who has written nothing has lost nothing.
    let position = say(&mut one.connect()?, "CLIENT POSITION")?;
    ensure!(say(&mut client, &format!("CLIENT READAFTER {position}"))? == "OK");
    ensure!(say(&mut client, "GET mine")? == "");
    ensure!(say(&mut client, "SET mine 2")? == "OK");
    let position = say(&mut client, "CLIENT POSITION")?;
    ensure!(say(&mut client, &format!("CLIENT READAFTER {position}"))? == "OK");
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
