//! Rights that shrink while their user is connected are lost at once.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{number, wait_until};
use tests::server::{Server, Target};

use tests::web::Web;

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
    // Not only when there is something to tell.
    ensure!(is_closed(&mut follower)?);
    expect(&mut admin, "SET secret x", "OK")?;
    while let Received::Reply(line) = monitor.receive()? {
        ensure!(!said(&line).contains("\"SET\" \"secret\""), "{line:?}");
    }
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

#[test]
fn a_user_whose_name_is_empty_is_one_like_others() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[])?;
    let (mut admin, mut client) = (server.connect()?, server.connect()?);
    ensure!(!admin.call(&["ACL", "SETUSER", "", "on", "nopass", "+@all", "~*"])?.is_error());
    ensure!(!client.call(&["AUTH", "", "x"])?.is_error());
    let shown = said(&client.call_text("CLIENT INFO")?);
    ensure!(shown.contains(" user= "), "{shown}");
    // Not one of the user that clients are at first.
    expect(&mut admin, "ACL SETUSER default resetchannels", "OK")?;
    expect(&mut client, "PING", "PONG")?;
    ensure!(admin.call(&["ACL", "DELUSER", ""])? == Reply::Integer(1));
    ensure!(is_closed(&mut client)?);
    expect(&mut admin, "PING", "PONG")
}

#[test]
fn a_replica_is_closed_without_the_right_to_be_one() -> Result<()> {
    let (server, mut admin) = with_user("+psync +sync +replconf +ping")?;
    let mut replica = connect_as(&server, "u")?;
    replica.send(&["PSYNC", "?", "-1"])?;
    wait_until("it is one", || {
        Ok(said(&admin.call_text("CLIENT LIST TYPE replica")?).contains(" user=u "))
    })?;
    expect(&mut admin, "ACL SETUSER u -sync -replconf", "OK")?;
    expect(&mut admin, "CLIENT LIST TYPE replica", "id=")?;
    expect(&mut admin, "ACL SETUSER u -psync", "OK")?;
    wait_until("it is gone", || Ok(said(&admin.call_text("CLIENT LIST TYPE replica")?).is_empty()))
}

/// What the node of a cluster says that it is.
const NODE: &str = "REPLCONF cluster-node 0303030303030303030303030303030303030303:1";

/// What one is told that may not say so.
const NO_NODE: &str = "-NOPERM User u may not speak for a node of the cluster";

#[test]
fn a_link_speaks_for_a_node_only_with_the_right_of_nodes() -> Result<()> {
    let (server, mut admin) = with_user("+psync +replconf +ping +auth")?;
    let mut backup = connect_as(&server, "u")?;
    expect(&mut backup, NODE, NO_NODE)?;
    // Nor hidden among other words.
    expect(&mut backup, &NODE.replace("REPLCONF", "REPLCONF capa eof"), NO_NODE)?;
    let promise = "0303030303030303030303030303030303030303 1 1 1";
    let promise = backup.call(&["REPLCONF", "cluster-promise", promise])?;
    ensure!(promise.is_error() && said(&promise).contains("cluster-promise needs the right"));
    expect(&mut admin, "ACL SETUSER u +slotmove", "OK")?;
    let mut speakers = Vec::new();
    for _ in 0..4 {
        let mut client = connect_as(&server, "u")?;
        expect(&mut client, NODE, "OK")?;
        speakers.push(client);
    }
    let [mut silent, mut other, mut own, mut link] =
        <[Client; 4]>::try_from(speakers).map_err(|_| anyhow::anyhow!("they are four"))?;
    // Acts for another user by now, or for the same one, and for no node.
    expect(&mut admin, "ACL SETUSER copier on nopass +psync +replconf", "OK")?;
    expect(&mut other, "AUTH copier x", "OK")?;
    expect(&mut own, "AUTH u x", "OK")?;
    link.send(&["PSYNC", "?", "-1"])?;
    wait_until("it is one", || {
        Ok(said(&admin.call_text("CLIENT LIST TYPE replica")?).contains(" user=u "))
    })?;
    // One that only copies stays where one that speaks for a node does not.
    backup.send(&["PSYNC", "?", "-1"])?;
    let replicas = |admin: &mut Client| -> Result<usize> {
        Ok(said(&admin.call_text("CLIENT LIST TYPE replica")?).matches("id=").count())
    };
    wait_until("both are", || Ok(replicas(&mut admin)? == 2))?;
    expect(&mut admin, "ACL SETUSER u -slotmove", "OK")?;
    wait_until("one is gone", || Ok(replicas(&mut admin)? == 1))?;
    // Nor stays one that only brings messages, and those are what it may still send.
    ensure!(is_closed(&mut silent)?);
    expect(&mut own, "PING", "PONG")?;
    expect(&mut admin, "ACL SETUSER u +slotmove", "OK")?;
    expect(&mut other, NODE, "-NOPERM User copier may not speak for a node")
}

/// A connection that brings slot 5061, that of `{bar}`.
fn importing(server: &Server) -> Result<Client> {
    let mut source = connect_as(server, "u")?;
    source.call_text("SLOTMOVE BEGIN move 5061 1 1")?;
    expect(&mut source, "SET {bar}k v", "OK")?;
    Ok(source)
}

fn with_mover(rules: &str) -> Result<(Server, Client)> {
    let options = [("threads", "2"), ("enable-debug-command", "yes")];
    let server = Server::start(Target::Dunlin, &options)?;
    let mut admin = server.connect()?;
    expect(&mut admin, &format!("ACL SETUSER u on nopass {rules}"), "OK")?;
    Ok((server, admin))
}

#[test]
fn who_brings_slots_may_write_into_them_and_nothing_else() -> Result<()> {
    let (server, _admin) = with_mover("+slotmove")?;
    let mut source = importing(&server)?;
    for read in
        ["GET {bar}k", "STRLEN {bar}k", "EXISTS {bar}k", "MGET {bar}k {bar}l", "DUMP {bar}k"]
    {
        expect(&mut source, read, "-NOPERM")?;
    }
    // Together they would take the short way.
    let pipelined = ["SET {bar}a 1", "GET {bar}a", "SET {bar}a 2", "GET {bar}a"];
    for line in pipelined {
        source.send(&line.split(' ').collect::<Vec<_>>())?;
    }
    for line in pipelined {
        let Received::Reply(reply) = source.receive()? else { anyhow::bail!("it is closed") };
        ensure!(reply.is_error() == line.starts_with("GET"), "{line}: {reply:?}");
    }
    // No value goes to another server, and nobody waits.
    for line in ["MIGRATE 127.0.0.1 1 {bar}k 0 1000 COPY", "BLPOP {bar}none 0.01"] {
        expect(&mut source, line, "-NOPERM")?;
    }
    expect(&mut source, "SET other v", "-ERR the import of these slots is over")
}

#[test]
fn who_loses_the_right_to_bring_slots_is_closed() -> Result<()> {
    // Whatever else its rights are.
    for rules in ["+slotmove", "+@all ~* &*"] {
        for change in ["-slotmove", "off", "-@all"] {
            let (server, mut admin) = with_mover(rules)?;
            let mut source = importing(&server)?;
            expect(&mut admin, &format!("ACL SETUSER u {change}"), "OK")?;
            let _ = source.send(&["SET", "{bar}k", "late"]);
            ensure!(is_closed(&mut source)?, "{rules} {change}");
        }
    }
    Ok(())
}

#[test]
fn another_user_brings_no_slots() -> Result<()> {
    let (server, mut admin) = with_mover("+slotmove")?;
    expect(&mut admin, "ACL SETUSER shop on nopass ~shop:* +@all", "OK")?;
    expect(&mut admin, "ACL SETUSER default resetkeys ~shop:*", "OK")?;
    for (change, reply) in [("AUTH shop x", "OK"), ("RESET", "RESET")] {
        let mut source = importing(&server)?;
        expect(&mut source, change, reply)?;
        expect(&mut source, "SET {bar}k v", super::NO_KEY)?;
        expect(&mut source, "SLOTMOVE SURE", "-ERR this connection brings no slots")?;
    }
    Ok(())
}

#[test]
fn writes_that_were_queued_do_not_outlive_their_import() -> Result<()> {
    let (server, mut admin) = with_mover("+@all ~* &*")?;
    let mut source = importing(&server)?;
    expect(&mut source, "MULTI", "OK")?;
    expect(&mut source, "SET {bar}k late", "QUEUED")?;
    let mut next = connect_as(&server, "u")?;
    next.call_text("SLOTMOVE BEGIN move 5061 1 2")?;
    let reply = source.call_text("EXEC")?;
    let Reply::Array(replies) = &reply else { anyhow::bail!("{reply:?}") };
    ensure!(replies.iter().all(Reply::is_error), "{reply:?}");
    expect(&mut admin, "PING", "PONG")
}

#[test]
fn one_that_watches_nodes_is_closed() -> Result<()> {
    let (server, port) = Server::start_with_http(&[])?;
    let mut admin = server.connect()?;
    for (rules, lost) in [("~*", "resetkeys"), ("~*", "-hget -hgetall"), ("~*", "db=1")] {
        expect(&mut admin, &format!("ACL SETUSER u reset on >pw +@all {rules}"), "OK")?;
        let mut web = Web::connect(port)?;
        let bearer = ["Authorization: Bearer u:pw"];
        web.request("GET /v2/keys/a?wait=true", &bearer, b"")?;
        wait_until("it waits", || Ok(number(&mut admin, "blocked_clients")? == 1))?;
        expect(&mut admin, &format!("ACL SETUSER u {lost}"), "OK")?;
        let put = Web::connect(port)?.ask_whole("PUT /v2/keys/a?value=hidden", &[], b"")?;
        ensure!(put.status < 300, "{}", put.status);
        let rest = String::from_utf8_lossy(&web.rest()?).into_owned();
        ensure!(!rest.contains("hidden"), "{lost}: {rest}");
    }
    Ok(())
}

/// Asks for the key in one way, again and again until `done`. Returns how often it was told the
/// value, and how often it was refused.
fn read_on(
    done: &AtomicBool,
    mut ask: impl FnMut() -> Result<Vec<String>>,
) -> Result<(usize, usize)> {
    let (mut told, mut refused) = (0, 0);
    while !done.load(SeqCst) {
        for reply in ask()? {
            ensure!(!reply.contains("hidden"), "{reply}");
            told += usize::from(reply.contains("open"));
            refused += usize::from(reply.contains("NOPERM") || reply.contains("No permissions"));
        }
    }
    Ok((told, refused))
}

#[test]
fn nobody_reads_what_was_written_after_the_right_had_gone() -> Result<()> {
    const ROUNDS: usize = 200;
    let (server, port) = Server::start_with_http(&[("threads", "4")])?;
    let mut admin = server.connect()?;
    expect(&mut admin, "SET secret open", "OK")?;
    expect(&mut admin, "ACL SETUSER u on >pw +@all ~*", "OK")?;
    let connect = || {
        let mut client = server.connect()?;
        expect(&mut client, "AUTH u pw", "OK")?;
        Ok::<_, anyhow::Error>(client)
    };
    let done = AtomicBool::new(false);
    let pipelined = |mut client: Client| {
        let command = super::random_rules::words(&["GET", "secret"]);
        let commands = vec![command; 50];
        read_on(&done, || {
            let replies = super::random_rules::ask(&mut client, &commands)?;
            Ok(replies.iter().map(said).collect())
        })
    };
    let scripted = |mut client: Client| {
        let script = "return redis.call('GET', 'secret')";
        read_on(&done, || Ok(vec![said(&client.call(&["EVAL", script, "0"])?)]))
    };
    let queued = |mut client: Client| {
        read_on(&done, || {
            let mut replies = Vec::new();
            for command in ["MULTI", "GET secret", "EXEC"] {
                let reply = client.call_text(command)?;
                replies.push(said(&reply));
                replies.extend(reply.elements().unwrap_or_default().iter().map(said));
            }
            Ok(replies)
        })
    };
    let over_http = || {
        let mut web = Web::connect(port)?;
        let bearer = ["Authorization: Bearer u:pw"];
        read_on(&done, || Ok(vec![web.ask_whole("GET /v1/keys/secret", &bearer, b"")?.text()]))
    };
    let counts = std::thread::scope(|scope| {
        let readers = [
            scope.spawn(|| pipelined(connect()?)),
            scope.spawn(|| pipelined(connect()?)),
            scope.spawn(|| scripted(connect()?)),
            scope.spawn(|| queued(connect()?)),
            scope.spawn(over_http),
        ];
        let change = |admin: &mut Client| {
            for _ in 0..ROUNDS {
                expect(admin, "ACL SETUSER u resetkeys ~own", "OK")?;
                expect(admin, "SET secret hidden", "OK")?;
                (0..5).try_for_each(|_| expect(admin, "PING", "PONG"))?;
                expect(admin, "SET secret open", "OK")?;
                expect(admin, "ACL SETUSER u allkeys", "OK")?;
                (0..5).try_for_each(|_| expect(admin, "PING", "PONG"))?;
            }
            Ok::<_, anyhow::Error>(())
        };
        let changed = change(&mut admin);
        done.store(true, SeqCst);
        let counts: Result<Vec<_>> = readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|_| anyhow::bail!("a reader panicked")))
            .collect();
        changed.and(counts)
    })?;
    // Each way has met both.
    ensure!(counts.iter().all(|(told, refused)| *told > 0 && *refused > 0), "{counts:?}");
    Ok(())
}
