//! Following the journal: CHANGES, the change stream of HTTP, and requests that wait for a key.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{number, wait_until};
use tests::process::peak_resident_bytes;
use tests::server::Server;
use tests::web::Web;

/// How long something may take that happens at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2")], options].concat())
}

/// An event as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Event {
    id: Option<String>,
    name: String,
    data: String,
}

/// A client that follows changes.
struct Follower {
    input: BufReader<TcpStream>,
    status: u16,
    /// The last id that came.
    id: Option<String>,
}

impl Follower {
    fn connect(port: u16, query: &str) -> Result<Follower> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /v1/changes?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        input.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("a status")?.parse()?;
        while line != "\r\n" {
            line.clear();
            ensure!(input.read_line(&mut line)? > 0, "the head ends");
        }
        Ok(Follower { input, status, id: None })
    }

    /// From the position that the answer begins with.
    fn connect_now(port: u16, query: &str) -> Result<Follower> {
        let mut follower = Follower::connect(port, query)?;
        ensure!(follower.status == 200, "status {}", follower.status);
        let first = follower.any()?;
        ensure!(first.data.is_empty() && first.id.is_some(), "{first:?}");
        Ok(follower)
    }

    fn any(&mut self) -> Result<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            ensure!(self.input.read_line(&mut line)? > 0, "the stream has ended");
            match line.trim_end_matches('\n').split_once(": ") {
                None => return Ok(event),
                Some(("id", id)) => {
                    self.id = Some(id.to_owned());
                    event.id = Some(id.to_owned());
                }
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = data.to_owned(),
                Some(_) => bail!("an unknown line: {line}"),
            }
        }
    }

    /// The next change.
    fn next(&mut self) -> Result<Event> {
        loop {
            let event = self.any()?;
            if !event.name.is_empty() {
                return Ok(event);
            }
        }
    }

    /// The data of the next change, without its position.
    fn data(&mut self) -> Result<String> {
        let data = self.next()?.data;
        Ok(match data.split_once("\",\"op\"") {
            Some((_, rest)) => format!("{{\"op\"{rest}"),
            None => data,
        })
    }
}

fn position(client: &mut Client) -> Result<String> {
    let reply = client.call_text("CHANGES SINCE $")?.elements().context("an array")?;
    Ok(String::from_utf8(reply[0].text().context("a position")?.to_vec())?)
}

#[test]
fn a_follower_is_told_of_its_keys_alone() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut users = Follower::connect_now(port, "prefix=user%3A")?;
    let mut one = Follower::connect_now(port, "key=user%3A1&db=0")?;
    for command in [
        "SET other 1",
        "SET user:1 a",
        "HSET user:2 f v",
        "SET user:3 x PX 30",
        "RENAME user:2 gone",
        "MSET user:4 1 user:5 2",
        "EXPIRE user:4 0",
    ] {
        client.call_text(command)?;
    }
    assert_eq!(users.data()?, r#"{"op":"set","db":0,"key":"user:1","value":"a"}"#);
    let hset = r#"{"op":"update","db":0,"key":"user:2","command":["HSET","user:2","f","v"]}"#;
    assert_eq!(users.data()?, hset);
    assert!(
        users.data()?.starts_with(r#"{"op":"set","db":0,"key":"user:3","value":"x","expires_at""#)
    );
    assert_eq!(users.data()?, r#"{"op":"delete","db":0,"key":"user:2"}"#);
    let first = users.next()?;
    assert_eq!(first.id, None, "the position is behind all that happened at once");
    assert_eq!(first.data, r#"{"op":"set","db":0,"key":"user:4","value":"1"}"#);
    assert!(users.next()?.id.is_some());
    let mut rest = [users.data()?, users.data()?];
    rest.sort();
    let deleted = |key: &str| format!(r#"{{"op":"delete","db":0,"key":"{key}"}}"#);
    assert_eq!(rest, [deleted("user:3"), deleted("user:4")], "one has expired by itself");

    client.call_text("SELECT 3")?;
    client.call_text("SET user:1 elsewhere")?;
    client.call_text("FLUSHALL")?;
    assert_eq!(one.data()?, r#"{"op":"set","db":0,"key":"user:1","value":"a"}"#);
    assert_eq!(one.data()?, r#"{"op":"flush"}"#, "database 3 is not its own");
    assert_eq!(users.data()?, r#"{"op":"set","db":3,"key":"user:1","value":"elsewhere"}"#);
    assert_eq!(users.data()?, r#"{"op":"flush"}"#);
    client.call_text("SWAPDB 0 3")?;
    assert_eq!(one.data()?, r#"{"op":"swap","db":0,"with":3}"#);
    Ok(())
}

#[test]
fn a_transaction_comes_together() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let from = position(&mut client)?;
    for command in ["MULTI", "SET a 1", "SET b \u{1}\u{2}", "SADD c x", "EXEC", "SET d 1"] {
        client.call_text(command)?;
    }
    let mut all = Follower::connect(port, &format!("since={from}"))?;
    let events = (0..4).map(|_| all.next()).collect::<Result<Vec<_>>>()?;
    let ids: Vec<_> = events.iter().map(|event| event.id.is_some()).collect();
    assert_eq!(ids, [false, false, true, true], "{events:?}");
    assert!(events[1].data.contains(r#""value":"\u0001\u0002""#), "{events:?}");
    // A client that resumes in between gets the changes after its position, and nothing else.
    let behind = events[2].id.clone().context("an id")?;
    let mut rest = Follower::connect(port, &format!("since={behind}"))?;
    assert_eq!(rest.next()?, events[3]);
    Ok(())
}

#[test]
fn positions_of_others_are_refused() -> Result<()> {
    let (server, port) = start(&[("changes-backlog-size", "100000")])?;
    let mut client = server.connect()?;
    let first = position(&mut client)?;
    let value = "x".repeat(1000);
    (0..300).try_for_each(|n| client.call(&["SET", &n.to_string(), &value]).map(drop))?;
    let newest = position(&mut client)?;
    for since in [first.as_str(), "0123:5"] {
        let mut web = Web::connect(port)?;
        let answer = web.ask(&format!("GET /v1/changes?since={since}"), &[], b"")?;
        assert_eq!(answer.status, 410, "{since}");
        assert!(answer.text().contains(&format!("\"newest\":\"{newest}\"")), "{}", answer.text());
        let text = answer.text();
        let oldest = text.split("\"oldest\":\"").nth(1).context("the oldest")?;
        let oldest = oldest.split('"').next().context("its end")?;
        let mut follower = Follower::connect(port, &format!("since={oldest}"))?;
        assert_eq!(follower.status, 200);
        assert!(follower.next()?.data.contains("\"op\":\"set\""));
    }
    let mut web = Web::connect(port)?;
    assert_eq!(web.ask("GET /v1/changes?since=x", &[], b"")?.status, 400);
    let mut web = Web::connect(port)?;
    assert_eq!(web.ask("GET /v1/changes?what=x", &[], b"")?.status, 400);
    Ok(())
}

#[test]
fn without_a_file_positions_end_with_the_process() -> Result<()> {
    let (mut server, port) = start(&[])?;
    let mut client = server.connect()?;
    let from = position(&mut client)?;
    client.call_text("SET a 1")?;
    server.kill();
    server.start_again()?;
    let mut client = server.connect()?;
    client.call_text("SET b 1")?;
    assert_eq!(Follower::connect(port, &format!("since={from}"))?.status, 410);
    Ok(())
}

#[test]
fn nothing_is_kept_for_those_who_have_gone_for_good() -> Result<()> {
    let file = [("appendonly", "yes"), ("changes-backlog-ttl", "1")];
    for options in [&file[..], &file[1..]] {
        let (server, port) = start(options)?;
        let mut client = server.connect()?;
        let gone = position(&mut client)?;
        thread::sleep(Duration::from_millis(2500));
        client.call_text("SET a 1")?;
        assert_eq!(Follower::connect(port, &format!("since={gone}"))?.status, 410, "{options:?}");
        // One follower is reason enough to go on.
        let mut follower = Follower::connect_now(port, "")?;
        let kept = position(&mut client)?;
        thread::sleep(Duration::from_millis(2500));
        client.call_text("SET b 1")?;
        assert!(follower.data()?.contains("\"key\":\"b\""));
        let mut other = Follower::connect(port, &format!("since={kept}"))?;
        assert!(other.data()?.contains("\"key\":\"b\""));
    }
    Ok(())
}

#[test]
fn a_change_larger_than_what_is_kept_reaches_those_who_keep_up() -> Result<()> {
    let (server, port) = start(&[("changes-backlog-size", "10000")])?;
    let mut client = server.connect()?;
    let mut follower = Follower::connect_now(port, "")?;
    let value = "x".repeat(1_000_000);
    for _ in 0..3 {
        client.call(&["SET", "large", &value])?;
        assert!(follower.data()?.len() > value.len());
    }
    Ok(())
}

/// Follows a server that is killed again and again, and notes the values that it is told.
fn follow_on(port: u16, mut since: String, told: &Mutex<Vec<u64>>, end: &AtomicBool) -> Result<()> {
    while !end.load(Ordering::Relaxed) {
        let Ok(mut follower) = Follower::connect(port, &format!("since={since}&key=n")) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if follower.status == 503 {
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        ensure!(follower.status == 200, "{since}: {}", follower.status);
        let loading = Duration::from_millis(500);
        follower.input.get_ref().set_read_timeout(Some(loading))?;
        while let Ok(event) = follower.any() {
            since = event.id.unwrap_or(since);
            if let Some((_, value)) = event.data.split_once("\"value\":\"") {
                let value = value.trim_end_matches("\"}").parse()?;
                told.lock().expect("nobody panics").push(value);
            }
        }
    }
    Ok(())
}

fn killed(policy: &str) -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", policy)];
    let (mut server, port) = start(&options)?;
    let since = position(&mut server.connect()?)?;
    let (told, end) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let follower = {
        let (told, end) = (Arc::clone(&told), Arc::clone(&end));
        thread::spawn(move || follow_on(port, since, &told, &end))
    };
    let (mut next, mut last) = (0_u64, 0);
    for round in 0..4 {
        let mut client = server.connect()?;
        let until = Instant::now() + Duration::from_millis(400);
        while Instant::now() < until {
            next += 1;
            client.call(&["SET", "n", &next.to_string()])?;
            last = next;
            if next.is_multiple_of(500) && round == 1 {
                client.call_text("BGREWRITEAOF")?;
            }
        }
        server.kill();
        server.start_again()?;
    }
    let mut client = server.connect()?;
    let value = client.call_text("GET n")?;
    assert_eq!(value, Reply::Bulk(last.to_string().into_bytes()), "the kernel has kept all");
    let until = Instant::now() + PATIENCE;
    while told.lock().expect("nobody panics").last() != Some(&last) && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    end.store(true, Ordering::Relaxed);
    follower.join().expect("no panic")?;
    let told = told.lock().expect("nobody panics").clone();
    let expected: Vec<u64> = (1..=last).collect();
    ensure!(told == expected, "{} of {last} were told: {:?}", told.len(), {
        let place = told.iter().zip(&expected).position(|(one, other)| one != other);
        place.map(|place| told[place.saturating_sub(2)..].iter().take(5).collect::<Vec<_>>())
    });
    Ok(())
}

#[test]
fn a_follower_goes_on_across_kills_and_rewrites() -> Result<()> {
    killed("everysec")
}

#[test]
fn a_follower_goes_on_across_kills_under_always() -> Result<()> {
    killed("always")
}

/// Offsets count the stream alone: what files say besides moves no position, and what was in which
/// database is known again although the stream says it once, before a rewrite.
#[test]
fn positions_are_the_same_after_a_start() -> Result<()> {
    let options = [("appendonly", "yes"), ("aof-timestamp-enabled", "yes")];
    let (mut server, _port) = start(&options)?;
    let mut client = server.connect()?;
    client.call_text("SELECT 3")?;
    let begin = position(&mut client)?;
    for command in ["SET a 1", "MULTI", "SET b 1", "MOVE b 5", "EXEC", "BGREWRITEAOF"] {
        client.call_text(command)?;
    }
    wait_until("the rewrite's end", || Ok(number(&mut client, "aof_rewrite_in_progress")? == 0))?;
    let middle = position(&mut client)?;
    client.call_text("SET a 2")?;
    client.call_text("SET a 3")?;
    let end = position(&mut client)?;
    let offset = |position: &str| position.split_once(':').map(|(_, offset)| offset.to_owned());
    let told = |client: &mut Client, since: &str| -> Result<usize> {
        let reply = client.call_text(&format!("CHANGES SINCE {since} DB 3 KEY a"))?;
        let mut parts = reply.elements().context("an array")?;
        Ok(parts.remove(1).elements().context("changes")?.len())
    };
    assert_eq!(told(&mut client, &middle)?, 2);
    for _ in 0..2 {
        server.kill();
        server.start_again()?;
        let mut client = server.connect()?;
        assert_eq!(offset(&position(&mut client)?), offset(&end));
        assert_eq!(told(&mut client, &middle)?, 2);
        let refused = client.call_text(&format!("CHANGES SINCE {begin}"))?;
        ensure!(refused.is_error(), "the base has what was before");
    }
    let mut client = server.connect()?;
    client.call_text("SELECT 3")?;
    assert_eq!(client.call_text("GET a")?, Reply::Bulk(b"3".to_vec()));
    Ok(())
}

#[test]
fn nobody_is_told_before_it_is_durable() -> Result<()> {
    let options =
        [("appendonly", "yes"), ("appendfsync", "always"), ("enable-debug-command", "yes")];
    let (server, port) = start(&options)?;
    let mut client = server.connect()?;
    let mut follower = Follower::connect_now(port, "")?;
    client.call_text("DEBUG AOF-FLUSH-SLEEP 600000")?;
    let begun = Instant::now();
    client.send(&["SET", "a", "1"])?;
    let since = position(&mut server.connect()?)?;
    let mut other = server.connect()?;
    let seen = other.call_text(&format!("CHANGES SINCE {since}"))?;
    ensure!(begun.elapsed() < Duration::from_millis(500), "the machine is too slow for this");
    assert_eq!(seen.elements().context("an array")?[1], Reply::Array(Vec::new()));
    assert!(follower.data()?.contains("\"key\":\"a\""));
    assert!(begun.elapsed() >= Duration::from_millis(550), "told after {:?}", begun.elapsed());
    Ok(())
}

/// Bytes that the server keeps for the output of its fattest client.
fn output_memory(client: &mut Client) -> Result<u64> {
    let list = client.call_text("CLIENT LIST")?;
    let list = String::from_utf8_lossy(list.text().context("a text")?).into_owned();
    let figures = list.split([' ', '\n']).filter_map(|word| word.strip_prefix("omem="));
    Ok(figures.filter_map(|figure| figure.parse().ok()).max().unwrap_or(0))
}

#[test]
fn a_slow_follower_costs_little_and_gets_everything_that_is_kept() -> Result<()> {
    let (server, port) = start(&[("changes-backlog-size", "64mb")])?;
    let mut client = server.connect()?;
    let mut slow = Follower::connect_now(port, "prefix=k")?;
    let value = "x".repeat(10_000);
    let mut most = 0;
    for n in 0..3000 {
        client.call(&["SET", &format!("k{n}"), &value])?;
        if n % 100 == 0 {
            most = most.max(output_memory(&mut client)?);
        }
    }
    ensure!(most < 512 * 1024, "{most} bytes wait for a client that does not read");
    for n in 0..3000 {
        let data = slow.data()?;
        ensure!(data.contains(&format!("\"key\":\"k{n}\"")), "{n}: {}", &data[..60]);
    }
    client.call_text("SET k-last 1")?;
    assert!(slow.data()?.contains("k-last"), "it is told of what happens again");
    Ok(())
}

/// Followers share the changes that were made at once, whether they are told of them or read on.
#[test]
fn many_changes_at_once_cost_little_for_each_follower() -> Result<()> {
    const CHANGES: usize = 20_000;
    const FOLLOWERS: usize = 20;
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut followers = Vec::new();
    for _ in 0..FOLLOWERS {
        followers.push(Follower::connect_now(port, "")?);
    }
    let since = position(&mut client)?;
    let before = peak_resident_bytes(server.pid())?;
    let value = "x".repeat(100);
    client.call_text("MULTI")?;
    for n in 0..CHANGES {
        client.call(&["SET", &format!("k{n}"), &value])?;
    }
    ensure!(!client.call_text("EXEC")?.is_error());
    for _ in 0..FOLLOWERS {
        followers.push(Follower::connect(port, &format!("since={since}"))?);
    }
    for follower in [0, FOLLOWERS] {
        for n in 0..CHANGES {
            let data = followers[follower].data()?;
            ensure!(data.contains(&format!("\"key\":\"k{n}\"")), "{n}: {data}");
        }
        assert!(followers[follower].id.as_ref().is_some_and(|id| *id != since));
    }
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 80 << 20, "{grown} bytes for {} followers", followers.len());
    Ok(())
}

#[test]
fn a_follower_that_is_far_too_slow_is_told_so() -> Result<()> {
    let (server, port) = start(&[("changes-backlog-size", "1mb")])?;
    let mut client = server.connect()?;
    let mut slow = Follower::connect_now(port, "")?;
    let value = "x".repeat(10_000);
    (0..3000).try_for_each(|n| client.call(&["SET", &format!("k{n}"), &value]).map(drop))?;
    let (mut next, mut last) = (0, Event::default());
    while let Ok(event) = slow.next() {
        if event.name == "change" {
            ensure!(event.data.contains(&format!("\"key\":\"k{next}\"")), "{next} is left out");
            next += 1;
        }
        last = event;
    }
    assert_eq!(last.name, "gone", "after {next} changes");
    let newest = position(&mut client)?;
    // It may be told before the last of the changes has happened.
    let history = newest.split(':').next().unwrap_or_default();
    assert!(last.data.contains(&format!("\"newest\":\"{history}:")), "{}", last.data);
    Ok(())
}

#[test]
fn a_request_waits_for_its_key() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    let nothing = web.ask("GET /v1/keys/k?wait=true&timeout=1", &[], b"")?;
    assert_eq!(nothing.status, 304);
    let since = nothing.header("x-position").context("a position")?.to_owned();
    client.call_text("SET other 1")?;
    client.call_text("SET k one")?;
    let line = format!("GET /v1/keys/k?wait=true&since={since}");
    let one = web.ask(&line, &[], b"")?;
    assert_eq!((one.status, one.text().as_str()), (200, "one"));
    let since = one.header("x-position").context("a position")?.to_owned();
    // Nothing has happened since then: the request waits, and others are served meanwhile.
    let waiting = thread::spawn(move || -> Result<_> {
        let mut web = Web::connect(port)?;
        let answer = web.ask(&format!("GET /v1/keys/k?wait=true&since={since}"), &[], b"")?;
        Ok((answer.status, answer.text()))
    });
    thread::sleep(Duration::from_millis(100));
    assert!(!waiting.is_finished());
    client.call_text("DEL k")?;
    assert_eq!(waiting.join().expect("no panic")?.0, 404, "it is gone");
    // A client that has an older version need not wait.
    client.call_text("SET k two")?;
    let changed = web.ask("GET /v1/keys/k?wait=true", &["If-None-Match: \"1\""], b"")?;
    assert_eq!((changed.status, changed.text().as_str()), (200, "two"));
    let behind = format!("GET /v1/keys/k?wait=true&timeout=9&since={}", position(&mut client)?);
    let changed_before = web.ask(&behind, &["If-None-Match: \"1\""], b"")?;
    assert_eq!((changed_before.status, changed_before.text().as_str()), (200, "two"));
    let tag = format!("If-None-Match: {}", changed.tag());
    let same = web.ask("GET /v1/keys/k?wait=true&timeout=1", &[&tag], b"")?;
    assert_eq!(same.status, 304);
    for (wrong, status) in [
        ("wait=1", 400),
        ("wait=true&since=x", 400),
        ("wait=true&since=a%0D%0AX%3A%20y%3A1", 400),
        ("wait=true&timeout=0", 400),
        ("wait=true&limit=1", 422),
        ("timeout=1", 422),
    ] {
        let answer = web.ask(&format!("GET /v1/keys/k?{wrong}"), &[], b"")?;
        assert_eq!(answer.status, status, "{wrong}");
    }
    Ok(())
}

#[test]
fn waiting_requests_are_told_that_the_server_stops() -> Result<()> {
    let (mut server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut waiting = Vec::new();
    for (line, body) in [
        ("GET /v1/keys/k?wait=true", ""),
        ("GET /v1/keys/k?wait=true&since=$", ""),
        ("POST /v1/command", r#"["BLPOP","list","0"]"#),
        ("POST /v1/pipeline", r#"[["SET","a","1"],["BLPOP","list","0"],["GET","a"]]"#),
    ] {
        let mut web = Web::connect(port)?;
        web.request(&line.replace('$', &position(&mut client)?), &[], body.as_bytes())?;
        waiting.push((line, web));
    }
    let mut tree = Web::connect(port)?;
    tree.request("GET /v2/keys/node?wait=true", &[], b"")?;
    wait_until("the clients' waiting", || Ok(number(&mut client, "blocked_clients")? == 5))?;
    server.terminate()?;
    for (line, mut web) in waiting {
        let answer = web.answer(false)?;
        assert_eq!((answer.status, answer.header("connection")), (503, Some("close")), "{line}");
        assert!(answer.text().contains("STOPPING the server stops"), "{line}: {}", answer.text());
        assert_eq!(web.rest()?, b"");
    }
    // etcd answers with a head while it waits, and without a body when nothing has come.
    let answer = tree.answer(false)?;
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    Ok(())
}

#[test]
fn a_command_waits_for_changes() -> Result<()> {
    let (server, _port) = start(&[])?;
    let (mut client, mut waiting) = (server.connect()?, server.connect()?);
    let from = position(&mut client)?;
    let begun = Instant::now();
    let nothing = waiting.call_text("CHANGES SINCE $ PREFIX a BLOCK 100")?;
    assert!(begun.elapsed() >= Duration::from_millis(95));
    let nothing = nothing.elements().context("an array")?;
    assert_eq!(
        (nothing[0].text(), &nothing[1]),
        (Some(from.as_bytes()), &Reply::Array(Vec::new()))
    );
    waiting.send(&["CHANGES", "SINCE", "$", "PREFIX", "a", "BLOCK", "0"])?;
    thread::sleep(Duration::from_millis(50));
    client.call_text("SET b 1")?;
    client.call_text("SET a 1")?;
    let Received::Reply(Reply::Array(told)) = waiting.receive()? else { bail!("an array") };
    let Reply::Array(changes) = &told[1] else { bail!("an array") };
    assert_eq!(changes.len(), 1);
    assert_eq!(told[0].text().map(<[u8]>::to_vec), Some(position(&mut client)?.into_bytes()));
    // In a transaction nothing waits.
    for command in ["MULTI", "CHANGES SINCE $ BLOCK 0"] {
        waiting.call_text(command)?;
    }
    let Reply::Array(replies) = waiting.call_text("EXEC")? else { bail!("an array") };
    assert_eq!(replies.len(), 1);
    // A client that goes while it waits is forgotten.
    waiting.send(&["CHANGES", "SINCE", "$", "BLOCK", "0"])?;
    thread::sleep(Duration::from_millis(50));
    drop(waiting);
    client.call_text("SET a 2")?;
    let mut info = String::new();
    let until = Instant::now() + PATIENCE;
    while !info.contains("blocked_clients:0\r") {
        ensure!(Instant::now() < until, "{info}");
        let reply = client.call_text("INFO clients")?;
        info = String::from_utf8_lossy(reply.text().context("a text")?).into_owned();
    }
    Ok(())
}

#[test]
fn many_followers_of_a_key_each_miss_nothing_and_take_little() -> Result<()> {
    const FOLLOWERS: usize = 1000;
    const CHANGES: usize = 20;
    /// Bytes that a follower may take: 10 000 of them then take a tenth of a gibibyte.
    const BYTES_EACH: usize = 10 * 1024;
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let used = |client: &mut Client| -> Result<usize> {
        let info = client.call_text("INFO memory")?;
        let info = String::from_utf8_lossy(info.text().context("a text")?).into_owned();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(line.context("the memory")?.parse()?)
    };
    drop(Follower::connect_now(port, "prefix=user")?);
    let before = used(&mut client)?;
    let mut followers = Vec::new();
    for number in 0..FOLLOWERS {
        followers.push(Follower::connect_now(port, &format!("prefix=user{number}%3A"))?);
    }
    let taken = used(&mut client)?.saturating_sub(before);
    ensure!(taken <= FOLLOWERS * BYTES_EACH, "they take {taken} bytes");
    for change in 0..CHANGES {
        for number in 0..FOLLOWERS {
            client.send(&["SET", &format!("user{number}:name"), &change.to_string()])?;
        }
        (0..FOLLOWERS).try_for_each(|_| client.receive().map(drop))?;
    }
    for (number, follower) in followers.iter_mut().enumerate() {
        for change in 0..CHANGES {
            let expected =
                format!(r#"{{"op":"set","db":0,"key":"user{number}:name","value":"{change}"}}"#);
            assert_eq!(follower.data()?, expected);
        }
    }
    Ok(())
}

#[test]
fn a_client_that_waits_for_a_change_gets_one_during_a_flood() -> Result<()> {
    // Less is kept than happens between two looks of the thread that tells followers.
    let (server, port) = start(&[("changes-backlog-size", "1kb")])?;
    let (mut writer, mut observer) = (server.connect()?, server.connect()?);
    let mut flood = String::new();
    let mut since = position(&mut writer)?;
    for round in 0..8 {
        let mut waits = server.connect()?;
        waits.send(&["CHANGES", "SINCE", &since, "KEY", "k", "BLOCK", "15000"])?;
        let mut web = Web::connect(port)?;
        web.request("GET /v1/keys/k?wait=true&timeout=15", &[], b"")?;
        let begun = Instant::now();
        while !String::from_utf8_lossy(observer.call_text("INFO changes")?.text().context("text")?)
            .contains("changes_waiting:2\r")
        {
            ensure!(begun.elapsed() < PATIENCE, "they wait");
        }
        flood.clear();
        flood += &format!("SET k {round}\r\n");
        (0..3000).for_each(|number| flood += &format!("SET other{number} {}\r\n", "x".repeat(100)));
        writer.send_raw(flood.as_bytes())?;
        for _ in 0..=3000 {
            writer.receive()?;
        }
        // The change, or that it can have been there: not that nothing has happened.
        let Received::Reply(told) = waits.receive()? else { bail!("round {round}: no reply") };
        let is_gone = told.text().is_some_and(|text| text.starts_with(b"GONE "));
        let changes = told.elements().and_then(|mut told| told.pop()?.elements());
        ensure!(is_gone || changes.is_some_and(|own| !own.is_empty()), "round {round}: nothing");
        let answer = web.answer(false)?;
        ensure!((answer.status, answer.text()) == (200, round.to_string()), "{answer:?}");
        since = position(&mut writer)?;
    }
    Ok(())
}

#[test]
fn a_follower_that_talks_is_closed() -> Result<()> {
    let (_server, port) = start(&[])?;
    let follower = Follower::connect_now(port, "")?;
    let mut stream = follower.input.into_inner();
    let noise = vec![b'x'; 64 * 1024];
    let begun = Instant::now();
    let mut buffer = [0; 1024];
    loop {
        ensure!(begun.elapsed() < PATIENCE, "it may say what it likes");
        if stream.write_all(&noise).is_err() {
            return Ok(());
        }
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock) => return Ok(()),
            _ => {}
        }
    }
}
