//! What operators ask the server itself: its figures, and what the dashboard is made of.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Reply, encode};
use tests::observe::wait_until;
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target};
use tests::web::Web;

/// Keys of all types, as many as a small service has.
fn fill(client: &mut Client, numbers: Range<usize>) -> Result<()> {
    for first in numbers.step_by(500) {
        let mut commands = Vec::new();
        for number in first..first + 500 {
            let key = format!("key:{number}");
            let words: &[&str] = match number % 6 {
                0 => &["SET", &key, "value"],
                1 => &["RPUSH", &key, "a", "b"],
                2 => &["SADD", &key, "a", "b"],
                3 => &["HSET", &key, "f", "v"],
                4 => &["ZADD", &key, "1", "a"],
                _ => &["XADD", &key, "*", "f", "v"],
            };
            encode(words, &mut commands);
        }
        client.send_raw(&commands)?;
        for _ in 0..500 {
            client.receive()?;
        }
    }
    Ok(())
}

/// The figures come from counters and from a sample of the keys: twenty times as many keys cost
/// them nothing more.
#[test]
fn figures_are_cheap_beside_many_keys() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "1")])?;
    let mut web = Web::connect(port)?;
    // The least of many: other processes on the same processors make the others cost more.
    let mut cost = |keys: &str| -> Result<u64> {
        let mut costs = (0..100).map(|_| {
            let begun = scheduled_nanoseconds(server.pid())?;
            let answer = web.ask("GET /metrics", &[], b"")?;
            ensure!(answer.text().contains(keys), "{}", answer.text());
            Ok(scheduled_nanoseconds(server.pid())? - begun)
        });
        costs.try_fold(u64::MAX, |least, cost: Result<u64>| Ok(least.min(cost?)))
    };
    let mut client = server.connect()?;
    fill(&mut client, 0..5000)?;
    let few = cost("dunlin_keys{database=\"0\"} 5000\n")?;
    fill(&mut client, 5000..100_000)?;
    let many = cost("dunlin_keys{database=\"0\"} 100000\n")?;
    ensure!(many < 4 * few, "{many} ns of processor time beside {few} ns");
    Ok(())
}

fn json(web: &mut Web, line: &str) -> Result<serde_json::Value> {
    let answer = web.ask(line, &[], b"")?;
    ensure!(answer.status == 200, "{line}: {answer:?}");
    Ok(serde_json::from_slice(&answer.body)?)
}

#[test]
fn memory_is_told_by_type_and_prefix() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut client = server.connect()?;
    let mut commands = Vec::new();
    for number in 0..3000 {
        encode(&["SET", &format!("user:{number}:name"), "0123456789"], &mut commands);
    }
    for number in 0..1000 {
        encode(&["SADD", &format!("tags/{number}"), "a", "b"], &mut commands);
    }
    encode(&["SET", "large", &"x".repeat(5_000_000), "EX", "100"], &mut commands);
    client.send_raw(&commands)?;
    for _ in 0..4001 {
        client.receive()?;
    }
    let mut web = Web::connect(port)?;
    // A look takes no longer than it may, and on a busy machine may not get through.
    let mut look = |line: &str, seen: fn(&serde_json::Value) -> bool| {
        let mut last = serde_json::Value::Null;
        let through = wait_until("a look that gets through", || {
            last = json(&mut web, line)?;
            Ok(seen(&last))
        });
        through.with_context(|| last.to_string()).map(|()| last)
    };
    let whole = look("GET /v1/memory?samples=10000", |seen| seen["complete"] == true)?;
    ensure!(whole["keys"] == 4001 && whole["sampled"] == 4001, "{whole}");
    let sum = |what: &str| -> i64 {
        let rows = whole[what].as_array().into_iter().flatten();
        rows.filter_map(|row| row["keys"].as_i64()).sum()
    };
    ensure!(sum("types") == 4001 && sum("sizes") == 4001 && sum("prefixes") == 4001, "{whole}");
    ensure!(whole["largest"][0]["key"] == "large" && whole["largest"][0]["elements"] == 5_000_000);
    ensure!(whole["largest"][0]["ttl"].as_i64().is_some_and(|ttl| (90..=100).contains(&ttl)));
    // A sample is near the truth, and says what it is.
    let sample = "GET /v1/memory?samples=500&separator=%2F";
    let some = look(sample, |seen| seen["sampled"].as_u64().is_some_and(|keys| keys >= 450))?;
    ensure!(some["complete"] == false && some["keys"] == 4001, "{some}");
    let tags =
        some["prefixes"].as_array().into_iter().flatten().find(|row| row["prefix"] == "tags/");
    let keys = tags.and_then(|row| row["keys"].as_i64()).context("a prefix")?;
    ensure!((700..=1300).contains(&keys), "{some}");
    ensure!(json(&mut web, "GET /v1/memory?db=5")?["keys"] == 0);
    // A walk sees every key, in steps that tell what they have seen.
    let (mut cursor, mut steps, mut keys, mut prefixes, mut largest) = (0.to_string(), 0, 0, 0, 0);
    loop {
        let step = json(&mut web, &format!("GET /v1/memory?cursor={cursor}&samples=300"))?;
        let rows = step["prefixes"].as_array().into_iter().flatten();
        prefixes += rows.filter_map(|row| row["keys"].as_i64()).sum::<i64>();
        keys += step["keys"].as_i64().context("a number")?;
        largest = step["largest"][0]["elements"].as_i64().unwrap_or(0).max(largest);
        ensure!(step["of"] == 4001 && step["keys"] == step["sampled"], "{step}");
        ensure!(step["complete"] == step["cursor"].is_null(), "{step}");
        steps += 1;
        match step["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    ensure!(
        keys == 4001 && prefixes == 4001 && largest == 5_000_000,
        "{keys} {prefixes} {largest}"
    );
    ensure!(steps >= 4001 / 400, "{steps} steps of about 300 keys");
    let none = json(&mut web, "GET /v1/memory?db=5&cursor=0")?;
    ensure!(none["keys"] == 0 && none["cursor"].is_null(), "{none}");
    for wrong in ["samples=0", "samples=10001", "separator=", "depth=9", "else=1", "cursor=x"] {
        let answer = web.ask(&format!("GET /v1/memory?{wrong}"), &[], b"")?;
        ensure!(answer.status == 400, "{wrong}: {answer:?}");
    }
    Ok(())
}

#[test]
fn hot_keys_are_told_as_they_are_named() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut client = server.connect()?;
    let mut read = Vec::new();
    encode(&["GET", "ho\"t\\key\n"], &mut read);
    client.send_raw(&read.repeat(5000))?;
    for _ in 0..5000 {
        client.receive()?;
    }
    let mut web = Web::connect(port)?;
    let hot = json(&mut web, "GET /v1/hotkeys")?;
    ensure!(hot[0]["key"] == "ho\"t\\key\n" && hot[0]["db"] == 0, "{hot}");
    ensure!(hot[0]["share"].as_f64().is_some_and(|share| share > 0.9), "{hot}");
    ensure!(web.ask("GET /v1/hotkeys?limit=0", &[], b"")?.status == 400);
    Ok(())
}

/// The measures of a log's newest commands and their names, the newest first.
fn logged(client: &mut Client, kind: &str, count: usize) -> Result<Vec<(i64, String)>> {
    let reply = client.call_text(&format!("COMMANDLOG GET {count} {kind}"))?;
    let entries = reply.elements().context("no array")?;
    let entry = |entry: Reply| {
        let fields = entry.elements().context("no array")?;
        let [_, _, Reply::Integer(measure), Reply::Array(arguments), ..] = &fields[..] else {
            bail!("{fields:?}");
        };
        let name = arguments[0].text().context("no name")?;
        Ok((*measure, String::from_utf8_lossy(name).into_owned()))
    };
    entries.into_iter().map(entry).collect()
}

/// A command that a script calls was not sent by a client, and has a reply; a client that
/// suppresses replies gets none.
#[test]
fn commands_are_logged_with_their_bytes() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let mut client = server.connect()?;
    let mut other = server.connect()?;
    client.call_text("SET a 12345")?;
    client
        .call_text("CONFIG SET commandlog-request-larger-than 0 commandlog-reply-larger-than 0")?;
    client.call_text("EVAL return(redis.call(ARGV[1],KEYS[1])) 1 a GET")?;
    let eval = "*5\r\n$4\r\nEVAL\r\n$35\r\n\r\n$1\r\n1\r\n$1\r\na\r\n$3\r\nGET\r\n".len() + 35;
    let named = |measure, name: &str| (measure, name.to_owned());
    let expected = [named(eval as i64, "EVAL"), named(0, "GET")];
    let of_request = logged(&mut other, "large-request", 2)?;
    ensure!(of_request == expected, "{of_request:?}");
    client.call_text("EVAL return(redis.call(ARGV[1],KEYS[1])) 1 a GET")?;
    let of_reply = logged(&mut other, "large-reply", 2)?;
    ensure!(of_reply == [named(11, "EVAL"), named(11, "GET")], "{of_reply:?}");

    for command in ["MULTI", "GET a", "GET none"] {
        client.call_text(command)?;
    }
    let bytes = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".len() as i64;
    client.call_text("EXEC")?;
    let expected = [named(bytes + 3, "GET"), named(bytes, "GET")];
    let of_request = logged(&mut other, "large-request", 2)?;
    ensure!(of_request == expected, "EXEC is not logged: {of_request:?}");

    client.send(&["CLIENT", "REPLY", "SKIP"])?;
    client.send(&["GET", "a"])?;
    client.call_text("PING")?;
    let of_reply = logged(&mut other, "large-reply", 2)?;
    ensure!(of_reply == [named(7, "PING"), named(0, "GET")], "{of_reply:?}");
    Ok(())
}

#[test]
fn a_transaction_may_depend_on_a_version() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2"), ("appendonly", "yes")])?;
    let mut client = server.connect()?;
    client.call_text("RPUSH list a b")?;
    let mut web = Web::connect(port)?;
    let tag = web.ask("GET /v1/keys/list", &[], b"")?.tag().to_owned();
    let condition = format!("If-Match: {tag}");
    let line = "POST /v1/transaction?key=list";
    let body = br#"[["LSET","list",0,"x"],["GET","list"]]"#;
    let first = web.ask(line, &[&condition], body)?;
    ensure!(
        first.status == 200 && first.text().starts_with(r#"[{"result":"OK"},{"error":"WRONGTYPE"#)
    );
    let again = web.ask(line, &[&condition], body)?;
    ensure!(again.status == 412 && !again.tag().is_empty() && again.tag() != tag, "{again:?}");
    ensure!(web.ask(line, &["If-None-Match: *"], body)?.status == 412);
    ensure!(web.ask("POST /v1/transaction", &[&condition], body)?.status == 422, "of which key?");
    ensure!(web.ask(line, &[&condition], b"[]")?.status == 400);
    let made = web.ask(
        "POST /v1/transaction?key=new&db=1",
        &["If-None-Match: *"],
        br#"[["SET","new","1"]]"#,
    )?;
    ensure!(made.status == 200, "{made:?}");
    // What is wrong is told, and leaves nothing behind on the connection.
    let wrong =
        web.ask("POST /v1/transaction?key=new", &["If-None-Match: *"], br#"[["NOSUCH"]]"#)?;
    ensure!(wrong.status == 400 && wrong.text().contains("EXECABORT"), "{wrong:?}");
    ensure!(web.ask("POST /v1/command", &[], br#"["PING"]"#)?.text() == r#"{"result":"PONG"}"#);
    ensure!(client.call_text("LINDEX list 0")?.text() == Some(&b"x"[..]));
    ensure!(client.call_text("EXISTS new")? == Reply::Integer(0), "it is in the other database");
    Ok(())
}

#[test]
fn of_many_conditional_transactions_one_wins_each_version() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    server.connect()?.call_text("HSET h n 0")?;
    let wins: Result<Vec<usize>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| -> Result<usize> {
                    let (mut web, mut wins) = (Web::connect(port)?, 0);
                    for _ in 0..100 {
                        let seen = web.ask("GET /v1/keys/h", &[], b"")?;
                        let condition = format!("If-Match: {}", seen.tag());
                        let seen: serde_json::Value = serde_json::from_slice(&seen.body)?;
                        let next: u64 = seen["n"].as_str().context("a number")?.parse::<u64>()? + 1;
                        let body = format!(r#"[["HSET","h","n","{next}"]]"#);
                        let line = "POST /v1/transaction?key=h";
                        let answer = web.ask(line, &[&condition], body.as_bytes())?;
                        ensure!(matches!(answer.status, 200 | 412), "{answer:?}");
                        wins += usize::from(answer.status == 200);
                    }
                    Ok(wins)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.collect()
    });
    let wins: usize = wins?.into_iter().sum();
    let seen = Web::connect(port)?.ask("GET /v1/keys/h", &[], b"")?;
    ensure!(seen.text() == format!(r#"{{"n":"{wins}"}}"#), "{wins} wins, {}", seen.text());
    ensure!(wins > 0 && wins < 800, "{wins} of 800 came through");
    Ok(())
}

#[test]
fn a_stream_is_read_in_pages() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut client = server.connect()?;
    for command in ["XADD s 1-1 a 1 b 2", "XADD s 1-2 a 3", "XADD s 2-0 a 4"] {
        client.call_text(command)?;
    }
    let mut web = Web::connect(port)?;
    let all = web.ask("GET /v1/keys/s", &[], b"")?;
    let text = concat!(
        r#"[{"id":"1-1","fields":{"a":"1","b":"2"}},"#,
        r#"{"id":"1-2","fields":{"a":"3"}},{"id":"2-0","fields":{"a":"4"}}]"#
    );
    ensure!(all.text() == text && all.header("x-type") == Some("stream") && !all.tag().is_empty());
    ensure!(all.header("x-cursor").is_none());
    let page = web.ask("GET /v1/keys/s?limit=2", &[], b"")?;
    ensure!(page.header("x-cursor") == Some("1-2"), "{page:?}");
    let rest = web.ask("GET /v1/keys/s?limit=2&cursor=1-2", &[], b"")?;
    ensure!(
        rest.text() == r#"[{"id":"2-0","fields":{"a":"4"}}]"# && rest.header("x-cursor").is_none()
    );
    for (wrong, status) in [
        ("cursor=7", 409),
        ("cursor=1-", 400),
        ("cursor=x", 400),
        ("range=0,1", 409),
        ("fields=a", 409),
    ] {
        let answer = web.ask(&format!("GET /v1/keys/s?{wrong}"), &[], b"")?;
        ensure!(answer.status == status, "{wrong}: {answer:?}");
    }
    client.call_text("RPUSH l a")?;
    ensure!(web.ask("GET /v1/keys/l?cursor=1-2", &[], b"")?.status == 409);
    Ok(())
}
