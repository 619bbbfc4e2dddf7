//! Clients that want the server to be busy with them alone: it keeps little for them, serves the
//! others first, and says in few lines who they are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{PATIENCE, log_stays_short, number, told, wait_until};
use tests::server::{Server, Target};
use tests::web::Web;

const KILOBYTE: u64 = 1024;

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, &[&[("threads", "1")], options].concat())
}

/// A connection of which the test minds the bytes itself.
fn raw(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(Duration::from_millis(300)))?;
    Ok(stream)
}

/// Sends, if the server takes it, and reads until the connection ends.
fn hear_the_end(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(error).context("the connection is not closed")
        }
        _ => Ok(heard),
    }
}

fn logged_in(server: &Server) -> Result<Client> {
    let mut client = server.connect()?;
    ensure!(client.call_text("AUTH secret")? == Reply::Status(b"OK".to_vec()));
    Ok(client)
}

#[test]
fn a_flood_of_wrong_passwords_is_a_line_a_second() -> Result<()> {
    let (server, web) = Server::start_with_http(&[("requirepass", "secret"), ("threads", "1")])?;
    let (mut guesser, mut page) = (server.connect()?, Web::connect(web)?);
    let mut number = 0;
    log_stays_short(&server, "A login failed", 400, || {
        number += 1;
        if number % 2 == 0 {
            ensure!(guesser.call_text("AUTH wrong")?.is_error());
        } else {
            let answer = page.ask("GET /v1/keys/k", &["Authorization: Bearer wrong"], b"")?;
            ensure!(answer.status == 401, "{}", answer.status);
        }
        Ok(())
    })
}

#[test]
fn those_who_are_refused_are_a_line_a_second_and_the_others_are_served() -> Result<()> {
    let server = start(&[("maxclients", "2")])?;
    let mut clients = [server.connect()?, server.connect()?];
    for client in &mut clients {
        ensure!(client.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    }
    log_stays_short(&server, "max number of clients reached", 300, || {
        let heard = hear_the_end(&mut raw(server.port())?)?;
        ensure!(heard.starts_with(b"-ERR max number of clients"), "{}", heard.escape_ascii());
        ensure!(clients[0].call_text("PING")? == Reply::Status(b"PONG".to_vec()));
        Ok(())
    })
}

#[test]
fn who_speaks_http_to_the_port_of_redis_is_a_line_a_second() -> Result<()> {
    let server = start(&[])?;
    log_stays_short(&server, "which sent POST", 100, || {
        let mut stream = raw(server.port())?;
        stream.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        hear_the_end(&mut stream)?;
        Ok(())
    })
}

#[test]
fn the_log_has_the_rest_when_the_server_stops() -> Result<()> {
    let mut server = start(&[("requirepass", "secret")])?;
    let mut guesser = server.connect()?;
    for _ in 0..50 {
        ensure!(guesser.call_text("AUTH wrong")?.is_error());
    }
    ensure!(server.terminate()? == Some(0));
    let (events, _) = told(&server, "A login failed")?;
    ensure!(events == 50, "{}", server.log());
    Ok(())
}

#[test]
fn who_never_logs_in_is_closed() -> Result<()> {
    let options = [("requirepass", "secret"), ("threads", "1"), ("authentication-timeout", "1")];
    let (server, web) = Server::start_with_http(&options)?;
    let mut known = logged_in(&server)?;
    let mut known_page = Web::connect(web)?;
    let password = ["Authorization: Bearer secret"];
    ensure!(known_page.ask("GET /v1/keys/k", &password, b"")?.status == 404);
    let mut strangers = Vec::new();
    for bytes in [&b""[..], b"PING\r\n", b"AUTH wrong\r\n", b"*2\r\n$4\r\nAU"] {
        let mut stream = raw(server.port())?;
        stream.write_all(bytes)?;
        strangers.push(stream);
    }
    let mut page = raw(web)?;
    page.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    strangers.push(page);
    for (index, stream) in strangers.iter_mut().enumerate() {
        hear_the_end(stream).with_context(|| format!("stranger {index}"))?;
    }
    wait_until("the log", || Ok(told(&server, "did not log in within")?.0 == 5))?;
    ensure!(known.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    ensure!(known_page.ask("GET /v1/keys/k", &password, b"")?.status == 404);
    // Whoever logs out has the same time again, and who may come without a password any.
    let open = known.call(&["CONFIG", "SET", "requirepass", ""])?;
    ensure!(open == Reply::Status(b"OK".to_vec()));
    let mut free = server.connect()?;
    ensure!(free.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    ensure!(known.call_text("CONFIG SET requirepass secret")? == Reply::Status(b"OK".to_vec()));
    ensure!(free.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    known.call_text("RESET")?;
    ensure!(known.receive()? == Received::Closed, "it has logged out");
    ensure!(free.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    Ok(())
}

/// Bytes in use for each of many connections that send this and read nothing.
fn kept_for_each(port: u16, control: &mut Client, bytes: &[u8]) -> Result<u64> {
    const COUNT: u64 = 60;
    let before = number(control, "used_memory")?;
    let mut streams = Vec::new();
    for _ in 0..COUNT {
        let mut stream = raw(port)?;
        // The server need not take all of it.
        let _ = stream.write_all(bytes);
        streams.push(stream);
    }
    let connected = || Ok(number(control, "connected_clients")? == COUNT + 1);
    wait_until("all connections", connected)?;
    Ok(number(control, "used_memory")?.saturating_sub(before) / COUNT)
}

#[test]
fn little_is_kept_for_clients_that_have_not_logged_in() -> Result<()> {
    let options = [("requirepass", "secret"), ("threads", "1"), ("auth-failure-delay", "8000")];
    let (server, web) = Server::start_with_http(&options)?;
    let mut control = logged_in(&server)?;
    let argument = format!("${}\r\n{}\r\n", 16_384, "x".repeat(16_384));
    let command = format!("*10\r\n{}", argument.repeat(9));
    let guess = [&b"AUTH wrong\r\n"[..], &b"PING\r\n".repeat(400_000)].concat();
    let refused = b"GET /v1/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(40_000);
    let script = b"GET /v1/dashboard.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let body = format!("{head}Content-Length: 1000000\r\n\r\n{}", "x".repeat(900_000));
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let chunks = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(25));
    let headers = format!("{head}{}", "a: b\r\n".repeat(5000));
    for (what, port, bytes, most) in [
        ("arguments", server.port(), command.as_bytes(), 400),
        ("what comes behind a wrong password", server.port(), &guess, 64),
        ("refusals", web, &refused, 96),
        ("the page's script", web, &script, 160),
        ("a body", web, body.as_bytes(), 64),
        ("chunks", web, chunks.as_bytes(), 64),
        ("headers", web, headers.as_bytes(), 96),
    ] {
        let each = kept_for_each(port, &mut control, bytes)?;
        ensure!(each <= most * KILOBYTE, "{what}: {each} bytes for each connection");
        wait_until("their end", || Ok(number(&mut control, "connected_clients")? == 1))?;
    }
    Ok(())
}

/// What comes behind a wrong password is read when that is refused, and nobody looks for it before.
#[test]
fn a_worker_sleeps_while_a_refusal_waits() -> Result<()> {
    let options = [("requirepass", "secret"), ("threads", "1"), ("auth-failure-delay", "8000")];
    let (server, _) = Server::start_with_http(&options)?;
    let mut control = logged_in(&server)?;
    let mut stranger = raw(server.port())?;
    stranger.write_all(b"AUTH wrong\r\n")?;
    wait_until("it waits", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    stranger.write_all(b"P")?;
    let begun = number(&mut control, "eventloop_cycles")?;
    for _ in 0..50 {
        thread::sleep(Duration::from_millis(10));
        control.call_text("PING")?;
    }
    let turns = number(&mut control, "eventloop_cycles")? - begun;
    // Some for each command, and some for what the server does now and then.
    ensure!(turns < 1000, "{turns} turns");
    Ok(())
}

#[test]
fn new_connections_wait_for_those_that_are_there() -> Result<()> {
    const COUNT: u64 = 400;
    let server = start(&[("max-new-connections-per-cycle", "10")])?;
    let (mut busy, mut other) = (server.connect()?, server.connect()?);
    ensure!(other.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    busy.send(&["DEBUG", "SLEEP", "1"])?;
    let mut new = Vec::new();
    for _ in 0..COUNT {
        new.push(raw(server.port())?);
    }
    // All of them have come when the worker goes on.
    let there = number(&mut other, "connected_clients")?;
    ensure!(there < COUNT / 2, "{there} connections came first");
    busy.receive()?;
    for stream in &mut new {
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"+PONG\r\n", "{}", answer.escape_ascii());
    }
    Ok(())
}

/// Hundreds who are connected ask for the first time all at once, and somebody who was there before
/// asks behind them.
#[test]
fn first_answers_wait_for_those_who_have_had_theirs() -> Result<()> {
    const COUNT: u64 = 400;
    let server = start(&[("max-new-connections-per-cycle", "10")])?;
    let (mut busy, mut other) = (server.connect()?, server.connect()?);
    ensure!(other.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    let mut new = (0..COUNT).map(|_| raw(server.port())).collect::<Result<Vec<_>>>()?;
    let all = COUNT + 2;
    wait_until("all of them", || Ok(number(&mut other, "connected_clients")? == all))?;
    // All requests are there when the worker goes on.
    busy.send(&["DEBUG", "SLEEP", "1"])?;
    for stream in &mut new {
        stream.write_all(b"INCR first\r\n")?;
    }
    let answered = other.call_text("GET first")?;
    let before = match &answered {
        Reply::Bulk(count) => std::str::from_utf8(count)?.parse()?,
        _ => 0,
    };
    ensure!(before <= COUNT / 2, "{before} came first");
    wait_until("the others", || {
        Ok(other.call_text("GET first")? == Reply::Bulk(COUNT.to_string().into_bytes()))
    })
}

#[test]
fn the_log_of_users_keeps_no_long_names() -> Result<()> {
    let server = start(&[("requirepass", "secret")])?;
    let mut client = logged_in(&server)?;
    let before = number(&mut client, "used_memory")?;
    for number in 0..20 {
        let name = format!("{number}{}", "x".repeat(1_000_000));
        ensure!(client.call(&["AUTH", &name, "wrong"])?.is_error());
    }
    let grown = number(&mut client, "used_memory")?.saturating_sub(before);
    ensure!(grown < 2 * 1024 * KILOBYTE, "{grown} bytes more");
    Ok(())
}

/// How many patterns somebody else sees when the number is first another one than `from`.
fn first_seen_after(from: i64, other: &mut Client) -> Result<i64> {
    let mut seen = from;
    wait_until("another number of patterns", || {
        let Reply::Integer(count) = other.call_text("PUBSUB NUMPAT")? else { bail!("no number") };
        seen = count;
        Ok(count != from)
    })?;
    Ok(seen)
}

#[test]
fn others_are_served_while_many_patterns_come_and_go() -> Result<()> {
    const COUNT: i64 = 60_000;
    let server = start(&[])?;
    let (mut own, mut other) = (server.connect()?, server.connect()?);
    let names = (0..COUNT).map(|number| format!("pattern:*:{number}"));
    let words: Vec<String> = std::iter::once("PSUBSCRIBE".to_owned()).chain(names).collect();
    for way in ["PUNSUBSCRIBE", "RESET", "to leave"] {
        own.send(&words)?;
        let seen = first_seen_after(0, &mut other)?;
        ensure!(seen < COUNT, "nobody was served meanwhile");
        for number in 1..=COUNT {
            let Received::Reply(reply) = own.receive()? else { bail!("it is closed") };
            let parts = reply.elements().context("three parts")?;
            ensure!(parts[2] == Reply::Integer(number), "{number}: {parts:?}");
        }
        match way {
            "to leave" => own = server.connect()?,
            command => own.send(&[command])?,
        }
        let seen = first_seen_after(COUNT, &mut other)?;
        ensure!(seen > 0, "{way}: nobody was served meanwhile");
        wait_until(
            "the end of all",
            || Ok(other.call_text("PUBSUB NUMPAT")? == Reply::Integer(0)),
        )?;
        if way == "PUNSUBSCRIBE" {
            for left in (0..COUNT).rev() {
                let Received::Reply(reply) = own.receive()? else { bail!("it is closed") };
                let parts = reply.elements().context("three parts")?;
                ensure!(parts[2] == Reply::Integer(left), "{left}: {parts:?}");
            }
        } else if way == "RESET" {
            let reply = own.receive()?;
            ensure!(reply == Received::Reply(Reply::Status(b"RESET".to_vec())), "{reply:?}");
        }
        ensure!(own.call_text("PING")?.text() == Some(&b"PONG"[..]), "{way}");
    }
    Ok(())
}

#[test]
fn who_may_not_use_one_of_many_patterns_gets_none_of_them() -> Result<()> {
    let server = start(&[])?;
    let (mut own, mut admin) = (server.connect()?, server.connect()?);
    let names: Vec<String> = (0..5000).map(|number| format!("own:{number}*")).collect();
    let rules = ["ACL", "SETUSER", "default", "resetchannels"].map(str::to_owned);
    let allowed = names.iter().map(|name| format!("&{name}"));
    let reply = admin.call(&rules.into_iter().chain(allowed).collect::<Vec<_>>())?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    let command = |last: &str| -> Vec<String> {
        let begin = std::iter::once("PSUBSCRIBE").chain(names.iter().map(String::as_str));
        begin.chain([last]).map(str::to_owned).collect()
    };
    let refused = own.call(&command("other*"))?;
    ensure!(refused.text().is_some_and(|text| text.starts_with(b"NOPERM")), "{refused:?}");
    ensure!(admin.call_text("PUBSUB NUMPAT")? == Reply::Integer(0));
    // A transaction is one command, whatever it has in it.
    for (command, reply) in [(words("MULTI"), "OK"), (command("own:1*"), "QUEUED")] {
        let got = own.call(&command)?;
        ensure!(got == Reply::Status(reply.as_bytes().to_vec()), "{got:?}");
    }
    own.send(&["EXEC"])?;
    wait_until("all of them", || Ok(admin.call_text("PUBSUB NUMPAT")? == Reply::Integer(5000)))
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
