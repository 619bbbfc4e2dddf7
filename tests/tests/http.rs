//! HTTP: keys, commands, and what the server tells of itself.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::{number, wait_until};
use tests::server::Server;
use tests::web::{Answer, Web};

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    let (server, port) = Server::start_with_http(&[&[("threads", "2")], options].concat())?;
    Ok((server, port))
}

fn ask(web: &mut Web, line: &str, headers: &[&str], body: &str) -> Result<Answer> {
    web.ask(line, headers, body.as_bytes())
}

/// What a client of the other protocol is told, as text.
fn say(client: &mut Client, command: &str) -> Result<String> {
    fn text(reply: Reply) -> String {
        match reply {
            Reply::Status(bytes) | Reply::Bulk(bytes) => {
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Reply::Integer(number) => number.to_string(),
            Reply::Array(items) => items.into_iter().map(text).collect::<Vec<_>>().join("\n"),
            other => format!("{other:?}"),
        }
    }
    Ok(text(client.call_text(command)?))
}

/// Asks, and expects a status and a body.
#[track_caller]
fn expect(web: &mut Web, line: &str, headers: &[&str], body: &str, status: u16, text: &str) {
    let answer = ask(web, line, headers, body).expect("an answer");
    assert_eq!((answer.status, &*answer.text()), (status, text), "{line} {headers:?} {body}");
}

#[test]
fn a_string_is_stored_read_and_deleted() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let created = ask(&mut web, "PUT /v1/keys/a%2Fb%20c", &[], "value")?;
    assert_eq!((created.status, &*created.body), (201, &b""[..]));
    let read = ask(&mut web, "GET /v1/keys/a/b%20c", &[], "")?;
    assert_eq!((read.status, read.text().as_str()), (200, "value"));
    assert_eq!(read.tag(), created.tag());
    assert_eq!(read.header("content-type"), Some("application/octet-stream"));
    assert_eq!(read.header("cache-control"), Some("no-cache"));
    let head = web.ask("HEAD /v1/keys/a/b%20c", &[], b"")?;
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    let replaced = ask(&mut web, "PUT /v1/keys/a/b%20c", &[], "other")?;
    assert_eq!(replaced.status, 204);
    assert_ne!(replaced.tag(), created.tag());
    let mut client = server.connect()?;
    assert_eq!(client.call(&["GET", "a/b c"])?, Reply::Bulk(b"other".to_vec()));
    assert_eq!(ask(&mut web, "DELETE /v1/keys/a/b%20c", &[], "")?.status, 204);
    assert_eq!(ask(&mut web, "DELETE /v1/keys/a/b%20c", &[], "")?.status, 404);
    expect(&mut web, "GET /v1/keys/a/b%20c", &[], "", 404, "{\"error\":\"there is no such key\"}");
    Ok(())
}

#[test]
fn headers_that_are_repeated_mean_what_they_say() -> Result<()> {
    let (server, port) = start(&[("http-cors-origins", "http://page.example")])?;
    let (mut web, mut client) = (Web::connect(port)?, server.connect()?);
    say(&mut client, "SET a 1")?;
    say(&mut client, "MSET b 2 c 3")?;
    say(&mut client, "RPUSH list x")?;
    let tag = ask(&mut web, "GET /v1/keys/a", &[], "")?.tag().to_owned();
    let known = format!("If-None-Match: {tag}");
    let page = "Origin: http://page.example";
    let asked: [(&str, &[&str], u16, &str); 12] = [
        ("GET /v1/keys/a", &[], 200, "1"),
        ("GET /v1/keys/b", &[], 200, "2"),
        ("GET /v1/keys/a", &[&known], 304, ""),
        ("GET /v1/keys/%61", &[&known], 304, ""),
        ("GET /v1/keys/a?db=1", &[], 404, "{\"error\":\"there is no such key\"}"),
        ("GET /v1/keys/a", &[page], 200, "1"),
        ("GET /v1/keys/a", &["X-Request-Id: 7"], 200, "1"),
        ("GET /v1/keys/list", &[], 200, "[\"x\"]"),
        ("GET /v1/keys/list", &["Accept: text/plain"], 200, "x\n"),
        ("GET /v1/keys/a", &["Range: bytes=0-0"], 206, "1"),
        ("PUT /v1/keys/c", &[], 204, ""),
        ("HEAD /v1/keys/a", &[&known], 304, ""),
    ];
    for first in &asked {
        for second in &asked {
            for (line, headers, status, text) in [first, second, second] {
                let body = if line.starts_with("PUT") { "x" } else { "" };
                let answer = ask(&mut web, line, headers, body)?;
                let said = (answer.status, answer.text());
                assert_eq!(said, (*status, (*text).to_owned()), "{line} {headers:?}");
                let id = headers.iter().find_map(|header| header.strip_prefix("X-Request-Id: "));
                assert_eq!(answer.header("x-request-id"), id);
                let opens = answer.header("access-control-allow-origin").is_some();
                assert_eq!(opens, headers.contains(&page));
            }
        }
    }
    // A body that belongs to the headers is none of the next request, however it was received.
    for body in
        ["GET /v1/keys/b HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "x".repeat(300_000)]
    {
        for _ in 0..3 {
            let answer = ask(&mut web, "GET /v1/keys/a", &[], &body)?;
            assert_eq!((answer.status, answer.text()), (200, "1".to_owned()));
        }
    }
    // What the headers mean depends on the settings.
    expect(&mut web, "GET /v1/keys/a", &[], "", 200, "1");
    say(&mut client, "CONFIG SET requirepass secret")?;
    assert_eq!(ask(&mut web, "GET /v1/keys/a", &[], "")?.status, 401);
    let token = ["Authorization: Bearer secret"];
    (0..3).for_each(|_| expect(&mut web, "GET /v1/keys/a", &token, "", 200, "1"));
    say(&mut client, "CONFIG SET requirepass other")?;
    assert_eq!(ask(&mut web, "GET /v1/keys/a", &token, "")?.status, 401);
    Ok(())
}

#[test]
fn what_comes_behind_a_request_is_judged_when_that_has_run() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    say(&mut client, "SET k private")?;
    let mut web = Web::connect(port)?;
    let request = |words: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{words}",
            words.len()
        )
    };
    let read = "GET /v1/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n";
    web.send((request(r#"["BLPOP","jobs","0"]"#) + read).as_bytes())?;
    wait_until("the wait", || Ok(number(&mut client, "blocked_clients")? == 1))?;
    say(&mut client, "CONFIG SET requirepass secret")?;
    say(&mut client, "RPUSH jobs job")?;
    assert_eq!((web.answer(false)?.status, web.answer(false)?.status), (200, 401));
    // The same when the request before is the one that sets it.
    client.call(&["CONFIG", "SET", "requirepass", ""])?;
    let set = request(r#"["CONFIG","SET","requirepass","secret"]"#);
    web.send((set + read).as_bytes())?;
    assert_eq!((web.answer(false)?.status, web.answer(false)?.status), (200, 401));
    Ok(())
}

#[test]
fn conditions_are_decided_by_the_version() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let mut status = |line: &str, headers: &[&str]| -> Result<(u16, String)> {
        let body = if line.starts_with("PUT") { "x" } else { "" };
        let answer = ask(&mut web, line, headers, body)?;
        Ok((answer.status, answer.tag().to_owned()))
    };
    assert_eq!(status("PUT /v1/keys/k", &["If-Match: *"])?.0, 412);
    assert_eq!(status("DELETE /v1/keys/k", &["If-Match: *"])?.0, 412);
    let (created, first) = status("PUT /v1/keys/k", &["If-None-Match: *"])?;
    assert_eq!(created, 201);
    let (refused, tag) = status("PUT /v1/keys/k", &["If-None-Match: *"])?;
    assert_eq!((refused, &tag), (412, &first));
    assert_eq!(status("PUT /v1/keys/k", &["If-Match: \"1\""])?, (412, first.clone()));
    assert_eq!(status("PUT /v1/keys/k", &["If-Match: \"other\""])?, (412, first.clone()));
    let weak = format!("If-Match: W/{first}");
    assert_eq!(status("PUT /v1/keys/k", &[&weak])?, (412, first.clone()));
    let matches = format!("If-Match: \"1\", {first}");
    let (replaced, second) = status("PUT /v1/keys/k", &[&matches])?;
    assert_eq!(replaced, 204);
    assert_eq!(status("PUT /v1/keys/k", &[&matches])?, (412, second.clone()));
    let none_match = format!("If-None-Match: {second}");
    assert_eq!(status("GET /v1/keys/k", &[&none_match])?, (304, second.clone()));
    assert_eq!(status("GET /v1/keys/k", &["If-None-Match: \"1\""])?, (200, second.clone()));
    assert_eq!(status("PUT /v1/keys/k", &[&none_match])?, (412, second.clone()));
    assert_eq!(status("GET /v1/keys/k", &[&matches])?, (412, second.clone()));
    assert_eq!(status("DELETE /v1/keys/k", &[&matches])?, (412, second.clone()));
    assert_eq!(status("DELETE /v1/keys/k", &[&format!("If-Match: {second}")])?.0, 204);
    // A cache may have made the tag weak: it is that of the version still, for If-None-Match alone.
    let now = ask(&mut web, "PUT /v1/keys/weak", &[], "x")?.tag().to_owned();
    let (none, one) = (format!("If-None-Match: W/{now}"), format!("If-Match: W/{now}"));
    assert_eq!(ask(&mut web, "PUT /v1/keys/weak", &[&none], "y")?.status, 412);
    assert_eq!(ask(&mut web, "PUT /v1/keys/weak", &[&one], "y")?.status, 412);
    // No version is as large as that.
    let large = ["If-Match: \"ffffffffffffffff\""];
    assert_eq!(ask(&mut web, "PUT /v1/keys/weak", &large, "y")?.status, 412);
    Ok(())
}

#[test]
fn a_snapshot_changes_no_version() -> Result<()> {
    let (server, port) = start(&[("save", "")])?;
    let (mut web, mut client) = (Web::connect(port)?, server.connect()?);
    for key in 0..20 {
        say(&mut client, &format!("SET key:{key} x"))?;
    }
    let mut tags = Vec::new();
    for key in 0..20 {
        let answer = ask(&mut web, &format!("GET /v1/keys/key:{key}"), &[], "")?;
        tags.push(answer.tag().to_owned());
    }
    say(&mut client, "CONFIG SET rdb-key-save-delay 200000")?;
    say(&mut client, "BGSAVE")?;
    for (key, tag) in tags.iter().enumerate() {
        let condition = format!("If-Match: {tag}");
        let line = format!("PUT /v1/keys/key:{key}");
        let refused = ask(&mut web, &line, &["If-Match: \"1\""], "y")?;
        assert_eq!((refused.status, refused.tag()), (412, &**tag), "key {key}");
        assert_eq!(ask(&mut web, &line, &[&condition], "y")?.status, 204, "key {key}");
    }
    assert!(say(&mut client, "INFO persistence")?.contains("rdb_bgsave_in_progress:1"));
    Ok(())
}

#[test]
fn the_settings_may_ask_for_conditions() -> Result<()> {
    let (_server, port) = start(&[("http-require-match", "yes")])?;
    let mut web = Web::connect(port)?;
    assert_eq!(ask(&mut web, "PUT /v1/keys/k", &[], "x")?.status, 201);
    for line in ["PUT /v1/keys/k", "DELETE /v1/keys/k", "DELETE /v1/keys/k?recursive=true"] {
        let body = if line.starts_with("PUT") { "x" } else { "" };
        assert_eq!(ask(&mut web, line, &[], body)?.status, 428, "{line}");
        assert_ne!(ask(&mut web, line, &["If-Match: \"1\""], body)?.status, 428, "{line}");
    }
    assert_eq!(ask(&mut web, "PUT /v1/keys/k", &["If-Match: *"], "x")?.status, 204);
    Ok(())
}

/// Each of many clients reads a version and tries to be the one that changes it.
#[test]
fn of_many_conditional_updates_one_wins_each_version() -> Result<()> {
    const CLIENTS: usize = 20;
    const ROUNDS: usize = 50;
    let (_server, port) = start(&[("threads", "4")])?;
    let mut web = Web::connect(port)?;
    ask(&mut web, "PUT /v1/keys/counter", &[], "0")?;
    let run = move || -> Result<Vec<String>> {
        let mut web = Web::connect(port)?;
        let mut replaced = Vec::new();
        for _ in 0..ROUNDS {
            let read = ask(&mut web, "GET /v1/keys/counter", &[], "")?;
            let next = (read.text().parse::<usize>()? + 1).to_string();
            let condition = format!("If-Match: {}", read.tag());
            let answer = ask(&mut web, "PUT /v1/keys/counter", &[&condition], &next)?;
            match answer.status {
                204 => replaced.push(read.tag().to_owned()),
                412 => {}
                other => anyhow::bail!("{other}"),
            }
        }
        Ok(replaced)
    };
    let threads: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(run)).collect();
    let mut won = Vec::new();
    for thread in threads {
        won.extend(thread.join().expect("a client")?);
    }
    let versions: HashSet<_> = won.iter().collect();
    assert_eq!(versions.len(), won.len(), "a version was replaced twice");
    let count = ask(&mut web, "GET /v1/keys/counter", &[], "")?;
    assert_eq!(count.text(), won.len().to_string());
    Ok(())
}

#[test]
fn a_time_to_live_shows_in_the_headers() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    assert_eq!(ask(&mut web, "PUT /v1/keys/k?ttl=100", &[], "x")?.status, 201);
    let read = ask(&mut web, "GET /v1/keys/k", &[], "")?;
    let age: u64 = read.header("age").unwrap_or_default().parse()?;
    let lifetime = read.header("cache-control").unwrap_or_default();
    let lifetime: u64 = lifetime.trim_start_matches("max-age=").parse()?;
    ensure!(age <= 1 && (98..=100).contains(&(lifetime - age)), "{read:?}");
    let mut client = server.connect()?;
    assert_eq!(say(&mut client, "TTL k")?, "100");
    ask(&mut web, "PUT /v1/keys/k", &[], "x")?;
    assert_eq!(say(&mut client, "TTL k")?, "-1");
    assert_eq!(ask(&mut web, "PUT /v1/keys/k?ttl=0.05", &[], "x")?.status, 204);
    thread::sleep(Duration::from_millis(60));
    assert_eq!(ask(&mut web, "GET /v1/keys/k", &[], "")?.status, 404);
    for wrong in ["0", "-1", "x", "", "1e300", "nan"] {
        assert_eq!(ask(&mut web, &format!("PUT /v1/keys/k?ttl={wrong}"), &[], "x")?.status, 400);
    }
    Ok(())
}

#[test]
fn parts_of_a_string_are_answered() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let created = ask(&mut web, "PUT /v1/keys/k", &[], "0123456789")?;
    for (range, status, text) in [
        ("bytes=0-3", 206, "0123"),
        ("bytes=7-", 206, "789"),
        ("bytes=-2", 206, "89"),
        ("bytes=5-500", 206, "56789"),
        ("bytes=5-99999999999999999999999", 206, "56789"),
        ("Bytes=-99999999999999999999999", 206, "0123456789"),
        ("bytes=3-1", 200, "0123456789"),
        ("bytes=0-1,3-4", 200, "0123456789"),
        ("lines=1-2", 200, "0123456789"),
    ] {
        expect(&mut web, "GET /v1/keys/k", &[&format!("Range: {range}")], "", status, text);
    }
    let answer = ask(&mut web, "GET /v1/keys/k", &["Range: bytes=2-3"], "")?;
    assert_eq!(answer.header("content-range"), Some("bytes 2-3/10"));
    for range in ["bytes=10-", "bytes=99999999999999999999999-", "bytes=-0"] {
        let answer = ask(&mut web, "GET /v1/keys/k", &[&format!("Range: {range}")], "")?;
        assert_eq!((answer.status, answer.header("content-range")), (416, Some("bytes */10")));
    }
    let same = format!("If-Range: {}", created.tag());
    expect(&mut web, "GET /v1/keys/k", &["Range: bytes=0-0", &same], "", 206, "0");
    for other in ["\"1\"", "*", "Tue, 24 Nov 2026 00:00:00 GMT"] {
        let other = ["Range: bytes=0-0", &format!("If-Range: {other}")];
        expect(&mut web, "GET /v1/keys/k", &other, "", 200, "0123456789");
    }
    Ok(())
}

#[test]
fn large_values_come_and_go_whole() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let value: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(web.ask("PUT /v1/keys/large", &[], &value)?.status, 201);
    assert_eq!(web.ask("GET /v1/keys/large", &[], b"")?.body, value);
    let part = web.ask("GET /v1/keys/large", &["Range: bytes=1000000-1000009"], b"")?;
    assert_eq!(part.body, value[1_000_000..1_000_010]);
    let mut chunked = b"PUT /v1/keys/large HTTP/1.1\r\nHost: localhost\r\n\
                        Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for chunk in value.chunks(70_001) {
        chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    web.send(&chunked)?;
    assert_eq!(web.answer(false)?.status, 204);
    assert_eq!(web.ask("GET /v1/keys/large", &[], b"")?.body, value);
    Ok(())
}

#[test]
fn a_body_keeps_its_order_behind_requests_that_wait() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    let value: Vec<u8> = (0..40_000u32).map(|at| (at % 251) as u8).collect();
    let (first, second) = value.split_at(1000);
    client.call_text("CLIENT PAUSE 1000 ALL")?;
    // One less than are looked at in a turn: the head behind them is looked at, and its body later.
    let gets = b"GET /v1/keys/none HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(255);
    let put = b"PUT /v1/keys/large HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000\r\n\r\n";
    web.send(&[&gets, &put[..], first].concat())?;
    thread::sleep(Duration::from_millis(300));
    web.send(second)?;
    for _ in 0..255 {
        assert_eq!(web.answer(false)?.status, 404);
    }
    assert_eq!(web.answer(false)?.status, 201);
    assert_eq!(client.call_text("GET large")?, Reply::Bulk(value));
    Ok(())
}

#[test]
fn collections_are_json_text_or_messagepack() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    for command in ["RPUSH l a b c d", "SADD s 1", "ZADD z 1.5 a 2 b", "SADD i m n o p"] {
        client.call_text(command)?;
    }
    client.call(&["HSET", "h", "f", "1", "g", "x y"])?;
    let mut web = Web::connect(port)?;
    let keys = "/v1/keys";
    expect(&mut web, &format!("GET {keys}/l"), &[], "", 200, r#"["a","b","c","d"]"#);
    expect(&mut web, &format!("GET {keys}/l?range=1,-2"), &[], "", 200, r#"["b","c"]"#);
    expect(&mut web, &format!("GET {keys}/l?range=-2,-1"), &[], "", 200, r#"["c","d"]"#);
    expect(&mut web, &format!("GET {keys}/l?range=5,9"), &[], "", 200, "[]");
    expect(&mut web, &format!("GET {keys}/h"), &[], "", 200, r#"{"f":"1","g":"x y"}"#);
    expect(&mut web, &format!("GET {keys}/h?fields=g,q"), &[], "", 200, r#"{"g":"x y","q":null}"#);
    expect(&mut web, &format!("GET {keys}/s"), &[], "", 200, r#"["1"]"#);
    expect(&mut web, &format!("GET {keys}/s?fields=1,2"), &[], "", 200, r#"{"1":true,"2":false}"#);
    let zset = r#"[{"member":"a","score":1.5},{"member":"b","score":2}]"#;
    expect(&mut web, &format!("GET {keys}/z"), &[], "", 200, zset);
    expect(&mut web, &format!("GET {keys}/z?fields=b"), &[], "", 200, r#"{"b":2}"#);
    let plain = ["Accept: text/plain"];
    expect(&mut web, &format!("GET {keys}/h"), &plain, "", 200, "f\t1\ng\tx y\n");
    let packed = web.ask("GET /v1/keys/l?range=0,1", &["Accept: application/msgpack"], b"")?;
    assert_eq!(packed.body, [0x92, 0xa1, b'a', 0xa1, b'b']);
    for (accept, form) in [
        ("text/plain;q=0.5, application/json", "application/json"),
        ("application/json;q=0, */*", "text/plain; charset=utf-8"),
        ("*/*;q=0.1, application/msgpack;q=0.2", "application/msgpack"),
        ("text/*, application/json", "text/plain; charset=utf-8"),
        ("", "application/json"),
    ] {
        let answer = ask(&mut web, "GET /v1/keys/l", &[&format!("Accept: {accept}")], "")?;
        assert_eq!(answer.header("content-type"), Some(form), "{accept}");
    }
    for accept in ["image/png", "application/json;q=0"] {
        let accept = format!("Accept: {accept}");
        assert_eq!(web.ask("GET /v1/keys/l", &[&accept], b"")?.status, 406);
    }
    let wrong = web.ask("GET /v1/keys/l?fields=a", &[], b"")?;
    assert_eq!(wrong.status, 409);
    // Pages of a list and of a set.
    let mut seen = Vec::new();
    for key in ["l", "i"] {
        let mut cursor = "0".to_owned();
        loop {
            let page = web.ask(&format!("GET {keys}/{key}?limit=2&cursor={cursor}"), &[], b"")?;
            seen.extend(page.text().chars().filter(char::is_ascii_lowercase));
            let Some(next) = page.header("x-cursor") else { break };
            cursor = next.to_owned();
        }
    }
    seen.sort_unstable();
    assert_eq!(seen.iter().collect::<String>(), "abcdmnop");
    // Caches keep each form by itself.
    let answer = ask(&mut web, "GET /v1/keys/l", &[], "")?;
    assert_eq!((answer.status, answer.header("vary")), (200, Some("Accept")));
    Ok(())
}

#[test]
fn json_is_patched_and_collections_are_pushed_to() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let patch = ["Content-Type: application/merge-patch+json"];
    ask(&mut web, "PUT /v1/keys/doc?ttl=1000", &[], r#"{"a":1,"b":{"c":2,"d":3}}"#)?;
    let answer = ask(&mut web, "PATCH /v1/keys/doc", &patch, r#"{"a":null,"b":{"c":5},"e":[1]}"#)?;
    assert_eq!(answer.status, 204);
    let read = ask(&mut web, "GET /v1/keys/doc", &[], "")?;
    assert_eq!(
        (read.text().as_str(), read.tag()),
        (r#"{"b":{"c":5,"d":3},"e":[1]}"#, answer.tag())
    );
    ensure!(read.header("age").is_some(), "the expiry stays");
    assert_eq!(ask(&mut web, "PATCH /v1/keys/none", &patch, "{}")?.status, 404);
    assert_eq!(ask(&mut web, "PATCH /v1/keys/doc", &[], "{}")?.status, 415);
    assert_eq!(ask(&mut web, "PATCH /v1/keys/doc", &patch, "{")?.status, 400);
    let stale = [patch[0], "If-Match: \"1\""];
    assert_eq!(ask(&mut web, "PATCH /v1/keys/doc", &stale, "{}")?.status, 412);
    ask(&mut web, "PUT /v1/keys/text", &[], "text")?;
    assert_eq!(ask(&mut web, "PATCH /v1/keys/text", &patch, "{}")?.status, 409);
    // Numbers are those that were sent, with more digits than a float has.
    let numbers = r#"{"a":12345678901234567890123,"b":1.10}"#;
    ask(&mut web, "PUT /v1/keys/doc", &[], numbers)?;
    ask(&mut web, "PATCH /v1/keys/doc", &patch, r#"{"c":-0.10000000000000000001}"#)?;
    let all = r#"{"a":12345678901234567890123,"b":1.10,"c":-0.10000000000000000001}"#;
    expect(&mut web, "GET /v1/keys/doc", &[], "", 200, all);
    ask(&mut web, "POST /v1/keys/numbers", &[], "[12345678901234567890123,1.10]")?;
    expect(&mut web, "GET /v1/keys/numbers", &[], "", 200, r#"["12345678901234567890123","1.10"]"#);
    let long = format!("\"{}\"", "x".repeat(9 << 20));
    ask(&mut web, "PUT /v1/keys/long", &[], &long)?;
    assert_eq!(ask(&mut web, "PATCH /v1/keys/long", &patch, "{}")?.status, 409);

    assert_eq!(ask(&mut web, "POST /v1/keys/l", &[], r#"["b",1]"#)?.status, 201);
    assert_eq!(ask(&mut web, "POST /v1/keys/l", &[], r#""c""#)?.status, 204);
    assert_eq!(ask(&mut web, "POST /v1/keys/l?end=front&type=list", &[], r#"["a"]"#)?.status, 204);
    assert_eq!(ask(&mut web, "POST /v1/keys/l?type=set&end=front", &[], r#"["a"]"#)?.status, 422);
    expect(&mut web, "GET /v1/keys/l", &[], "", 200, r#"["a","b","1","c"]"#);
    assert_eq!(ask(&mut web, "POST /v1/keys/s?type=set", &[], r#"["x"]"#)?.status, 201);
    assert_eq!(ask(&mut web, "POST /v1/keys/s", &[], r#"["x"]"#)?.status, 204);
    expect(&mut web, "GET /v1/keys/s", &[], "", 200, r#"["x"]"#);
    assert_eq!(ask(&mut web, "POST /v1/keys/h", &[], r#"{"f":1,"g":{"n":[1]}}"#)?.status, 201);
    expect(&mut web, "GET /v1/keys/h", &[], "", 200, r#"{"f":"1","g":"{\"n\":[1]}"}"#);
    assert_eq!(ask(&mut web, "POST /v1/keys/z?type=zset", &[], r#"{"m":1.5}"#)?.status, 201);
    assert_eq!(ask(&mut web, "POST /v1/keys/z", &[], r#"{"n":2}"#)?.status, 204);
    let zset = r#"[{"member":"m","score":1.5},{"member":"n","score":2}]"#;
    expect(&mut web, "GET /v1/keys/z", &[], "", 200, zset);
    assert_eq!(ask(&mut web, "POST /v1/keys/z", &[], r#"{"n":"x"}"#)?.status, 422);
    assert_eq!(ask(&mut web, "POST /v1/keys/new?type=hash", &[], r#"["n"]"#)?.status, 422);
    assert_eq!(ask(&mut web, "POST /v1/keys/new?type=hashes", &[], r#"["n"]"#)?.status, 400);
    assert_eq!(ask(&mut web, "POST /v1/keys/z", &[], r#"["n"]"#)?.status, 409);
    assert_eq!(ask(&mut web, "POST /v1/keys/l", &[], "[]")?.status, 400);
    assert_eq!(ask(&mut web, "POST /v1/keys/l", &[], "x")?.status, 400);
    Ok(())
}

#[test]
fn keys_are_listed_read_and_deleted_together() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    for key in ["t", "t/a", "t/b/c", "tx", "t*", "u"] {
        ask(&mut web, &format!("PUT /v1/keys/{key}"), &[], "v")?;
    }
    let names = |text: &str| -> Vec<String> {
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let keys = value["keys"].as_array().expect("a list");
        let mut keys: Vec<_> =
            keys.iter().map(|key| key.as_str().unwrap_or_default().to_owned()).collect();
        keys.sort();
        keys
    };
    let list = ask(&mut web, "GET /v1/keys?prefix=t/", &[], "")?;
    assert_eq!(names(&list.text()), ["t/a", "t/b/c"]);
    assert_eq!(names(&ask(&mut web, "GET /v1/keys?prefix=t*", &[], "")?.text()), ["t*"]);
    assert_eq!(names(&ask(&mut web, "GET /v1/keys", &[], "")?.text()).len(), 6);
    let many = ask(&mut web, "POST /v1/mget", &[], r#"["u","none","t/a"]"#)?;
    let many: serde_json::Value = serde_json::from_slice(&many.body)?;
    assert_eq!((&many[0]["value"], &many[0]["type"]), (&"v".into(), &"string".into()));
    assert_eq!((&many[1], &many[2]["ttl"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    expect(&mut web, "DELETE /v1/keys/t?recursive=true", &[], "", 200, r#"{"deleted":3}"#);
    expect(&mut web, "DELETE /v1/keys/t?recursive=true", &[], "", 200, r#"{"deleted":0}"#);
    assert_eq!(names(&ask(&mut web, "GET /v1/keys", &[], "")?.text()), ["t*", "tx", "u"]);
    for wrong in ["cursor=", "cursor=x", "limit=0", "limit=10001", "prefix=%", "x=1", "db=99"] {
        assert_eq!(
            ask(&mut web, &format!("GET /v1/keys?{wrong}"), &[], "")?.status,
            400,
            "{wrong}"
        );
    }
    // More keys than one step looks at.
    server.connect()?.call_text("DEBUG POPULATE 5000 n/")?;
    let mut found = HashSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let page =
            ask(&mut web, &format!("GET /v1/keys?prefix=n/&limit=500&cursor={cursor}"), &[], "")?;
        found.extend(names(&page.text()));
        let value: serde_json::Value = serde_json::from_slice(&page.body)?;
        match value["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found.len(), 5000);
    expect(&mut web, "DELETE /v1/keys/n?recursive=true", &[], "", 200, r#"{"deleted":5000}"#);
    Ok(())
}

#[test]
fn a_content_type_stays_with_its_value() -> Result<()> {
    let options = [("appendonly", "yes"), ("save", "")];
    let (mut server, port) = start(&options)?;
    let mut web = Web::connect(port)?;
    let html = ["Content-Type: text/html; charset=utf-8"];
    ask(&mut web, "PUT /v1/keys/page", &html, "<p>")?;
    ask(&mut web, "PUT /v1/keys/later?ttl=1000", &html, "7")?;
    ask(&mut web, "PUT /v1/keys/plain", &[], "x")?;
    ask(&mut web, "PUT /v1/keys/doc", &["Content-Type: application/json"], "{}")?;
    ask(&mut web, "PUT /v1/keys/other", &html, "x")?;
    let mut client = server.connect()?;
    client.call_text("SET other y")?;
    client.call_text("COPY page copied")?;
    client.call_text("RENAME copied renamed")?;
    client.call_text("COPY page copied")?;
    client.call_text("APPEND page </p>")?;
    client.call_text("PERSIST later")?;
    let patch = ["Content-Type: application/merge-patch+json"];
    assert_eq!(ask(&mut web, "PATCH /v1/keys/doc", &patch, "{\"a\":1}")?.status, 204);
    assert_eq!(say(&mut client, "CONTENTTYPE page")?, "text/html; charset=utf-8");
    assert_eq!(say(&mut client, "CONTENTTYPE plain text/plain")?, "1");
    assert_eq!(say(&mut client, "CONTENTTYPE none text/plain")?, "0");
    let kinds = |web: &mut Web| -> Result<Vec<String>> {
        ["page", "later", "plain", "doc", "other", "renamed", "copied"]
            .iter()
            .map(|key| {
                let answer = ask(web, &format!("GET /v1/keys/{key}"), &[], "")?;
                Ok(answer.header("content-type").unwrap_or_default().to_owned())
            })
            .collect()
    };
    let expected = [
        "text/html; charset=utf-8",
        "text/html; charset=utf-8",
        "text/plain",
        "application/json",
        "application/octet-stream",
        "text/html; charset=utf-8",
        "text/html; charset=utf-8",
    ];
    assert_eq!(kinds(&mut web)?, expected);
    // From the journal; from a base in either form; from a snapshot beside commands.
    for (name, value) in [("journal", ""), ("yes", "yes"), ("no", "no")] {
        if !value.is_empty() {
            let mut client = server.connect()?;
            client.call_text(&format!("CONFIG SET aof-use-rdb-preamble {value}"))?;
            client.call_text("BGREWRITEAOF")?;
            tests::observe::wait_until("the rewrite", || {
                Ok(tests::observe::number(&mut client, "aof_rewrites")? > 0
                    && tests::observe::number(&mut client, "aof_rewrite_in_progress")? == 0)
            })?;
        }
        server.start_again()?;
        assert_eq!(kinds(&mut Web::connect(port)?)?, expected, "{name}");
    }
    server.set_options(&[("http-port", &port.to_string())]);
    server.connect()?.call_text("SAVE")?;
    server.start_again()?;
    let mut web = Web::connect(port)?;
    assert_eq!(kinds(&mut web)?, expected);
    server.connect()?.call_text("DEBUG RELOAD")?;
    assert_eq!(kinds(&mut web)?, expected);
    // Redis reads the file, and passes over what it does not know.
    let file = std::fs::read(server.directory().join("dump.rdb"))?;
    let reference = Server::start(tests::server::Target::Reference, &[])?;
    std::fs::write(reference.directory().join("dump.rdb"), file)?;
    let mut reference = reference;
    reference.start_again()?;
    assert_eq!(say(&mut reference.connect()?, "GET page")?, "<p></p>");
    Ok(())
}

#[test]
fn commands_run_alone_in_a_row_and_as_one() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let run = |web: &mut Web, path: &str, body: &str, status, text: &str| {
        expect(web, &format!("POST {path}"), &[], body, status, text);
    };
    run(&mut web, "/v1/command", r#"["SET","k",1.50]"#, 200, r#"{"result":"OK"}"#);
    run(&mut web, "/v1/command", r#"["GET","k"]"#, 200, r#"{"result":"1.50"}"#);
    run(&mut web, "/v1/command?db=3", r#"["GET","k"]"#, 200, r#"{"result":null}"#);
    run(&mut web, "/v1/command", r#"["HSET","h","f","1"]"#, 200, r#"{"result":1}"#);
    run(&mut web, "/v1/command", r#"["HGETALL","h"]"#, 200, r#"{"result":{"f":"1"}}"#);
    run(&mut web, "/", r#"["HGETALL","h"]"#, 200, r#"{"result":["f","1"]}"#);
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let error = format!("{{\"error\":\"{wrong_type}\"}}");
    run(&mut web, "/v1/command", r#"["LPUSH","k","x"]"#, 409, &error);
    run(
        &mut web,
        "/",
        r#"["SELECT","1"]"#,
        400,
        r#"{"error":"ERR select is about a connection, and HTTP requests share none"}"#,
    );
    for command in ["CAPA\",\"redirect", "IMPORT-SOURCE\",\"on"] {
        let body = format!("[\"CLIENT\",\"{command}\"]");
        let answer = ask(&mut web, "POST /v1/command", &[], &body)?;
        ensure!(answer.text().contains("is about a connection"), "{command}: {}", answer.text());
    }
    run(
        &mut web,
        "/v1/command",
        r#"{"GET":"k"}"#,
        400,
        r#"{"error":"a command is an array of strings and numbers"}"#,
    );
    let pipeline = r#"[["INCR","n"],["LPUSH","k","x"],["INCR","n"]]"#;
    let outcome = format!("[{{\"result\":1}},{error},{{\"result\":2}}]");
    run(&mut web, "/v1/pipeline", pipeline, 200, &outcome);
    run(&mut web, "/pipeline", "[]", 200, "[]");
    let outcome = format!("[{{\"result\":3}},{error},{{\"result\":4}}]");
    run(&mut web, "/multi-exec", pipeline, 200, &outcome);
    let aborted = "EXECABORT Transaction discarded because of: \
                   ERR unknown command 'NOSUCH', with args beginning with: ";
    let aborted = format!("{{\"error\":\"{aborted}\"}}");
    run(&mut web, "/v1/transaction", r#"[["INCR","n"],["NOSUCH"]]"#, 400, &aborted);
    run(&mut web, "/v1/command", r#"["GET","n"]"#, 200, r#"{"result":"4"}"#);
    expect(&mut web, "GET /set/path/a%20b/EX/100", &[], "", 200, r#"{"result":"OK"}"#);
    expect(&mut web, "POST /set/path?EX=50", &[], "body", 200, r#"{"result":"OK"}"#);
    expect(&mut web, "GET /get/path", &[], "", 200, r#"{"result":"body"}"#);
    expect(&mut web, "GET /ttl/path", &[], "", 200, r#"{"result":50}"#);
    let base64 = ["Upstash-Encoding: base64"];
    expect(&mut web, "GET /get/path", &base64, "", 200, r#"{"result":"Ym9keQ=="}"#);
    expect(&mut web, "GET /set/path/x", &base64, "", 200, r#"{"result":"OK"}"#);
    Ok(())
}

#[test]
fn a_command_that_waits_is_answered_when_it_is_served() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let start = Instant::now();
    expect(&mut web, "POST /v1/command", &[], r#"["BLPOP","q",0.2]"#, 200, r#"{"result":null}"#);
    ensure!(start.elapsed() >= Duration::from_millis(190));
    web.request("POST /v1/command", &[], br#"["BLPOP","q",20]"#)?;
    web.request("GET /v1/keys/after", &[], b"")?;
    thread::sleep(Duration::from_millis(100));
    server.connect()?.call_text("RPUSH q v")?;
    assert_eq!(web.answer(false)?.text(), r#"{"result":["q","v"]}"#);
    assert_eq!(web.answer(false)?.status, 404);
    // What holds all slots, and what stops the world.
    expect(&mut web, "POST /v1/command", &[], r#"["FLUSHALL"]"#, 200, r#"{"result":"OK"}"#);
    let program = r#"[["SET","a",1],["KEYS","*"],["FLUSHDB"]]"#;
    let outcome = r#"[{"result":"OK"},{"result":["a"]},{"result":"OK"}]"#;
    expect(&mut web, "POST /v1/transaction", &[], program, 200, outcome);
    Ok(())
}

#[test]
fn a_password_is_asked_for_with_each_request() -> Result<()> {
    let (_server, port) = start(&[("requirepass", "se:cret")])?;
    let mut web = Web::connect(port)?;
    let refused = ask(&mut web, "GET /v1/keys/k", &[], "")?;
    assert_eq!(refused.status, 401);
    ensure!(refused.header("www-authenticate").is_some_and(|text| text.contains("Basic")));
    for (header, status) in [
        ("Authorization: Bearer se:cret", 404),
        ("Authorization: Basic ZGVmYXVsdDpzZTpjcmV0", 404),
        ("Authorization: Bearer wrong", 401),
        ("Authorization: Basic wrong", 401),
    ] {
        assert_eq!(ask(&mut web, "GET /v1/keys/k", &[header], "")?.status, status, "{header}");
    }
    assert_eq!(ask(&mut web, "GET /v1/keys/k", &[], "")?.status, 401, "nothing is remembered");
    assert_eq!(ask(&mut web, "GET /healthz", &[], "")?.status, 200);
    // A long answer to the first request.
    let mut web = Web::connect(port)?;
    let value = "x".repeat(40_000);
    let bearer = ["Authorization: Bearer se:cret"];
    assert_eq!(ask(&mut web, "PUT /v1/keys/k", &bearer, &value)?.status, 201);
    let mut web = Web::connect(port)?;
    assert_eq!(ask(&mut web, "GET /v1/keys/k", &bearer, "")?.text(), value);
    Ok(())
}

#[test]
fn pages_and_hosts_that_are_not_known_are_refused() -> Result<()> {
    let (_server, port) = start(&[("http-cors-origins", "https://app.example")])?;
    let mut web = Web::connect(port)?;
    let request = |web: &mut Web, lines: &str| -> Result<Answer> {
        web.send(format!("GET /v1/keys/k HTTP/1.1\r\n{lines}\r\n").as_bytes())?;
        web.answer(false)
    };
    assert_eq!(request(&mut web, "Host: evil.example\r\n")?.status, 421);
    assert_eq!(request(&mut web, "")?.status, 400);
    assert_eq!(request(&mut web, "Host: a\r\nHost: b\r\n")?.status, 400);
    let foreign = "Host: localhost\r\nOrigin: https://evil.example\r\n";
    assert_eq!(request(&mut web, foreign)?.status, 403);
    assert_eq!(request(&mut web, "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n")?.status, 403);
    let own = request(&mut web, "Host: localhost\r\nOrigin: https://app.example\r\n")?;
    assert_eq!(own.status, 404);
    assert_eq!(own.header("access-control-allow-origin"), Some("https://app.example"));
    // A cache must not give a page what somebody got who is none.
    assert_eq!(request(&mut web, "Host: localhost\r\n")?.header("vary"), Some("Origin"));
    let preflight = ["Origin: https://app.example", "Access-Control-Request-Method: PUT"];
    let answer = ask(&mut web, "OPTIONS /v1/keys/k", &preflight, "")?;
    assert_eq!(answer.status, 204);
    ensure!(answer.header("access-control-allow-methods").is_some_and(|all| all.contains("PUT")));
    let answer = ask(&mut web, "OPTIONS *", &[], "")?;
    assert_eq!(answer.status, 204);
    Ok(())
}

/// To the address of another machine, browsers send what any page asks for, and do not say which.
#[test]
fn a_browser_that_names_no_page_changes_nothing() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0";
    for line in [
        "GET /set/k/v",
        "HEAD /set/k/v",
        "GET /flushall",
        "GET /eval/return%201/0",
        // These only read, and may never end.
        "GET /eval_ro/return%201/0",
        "GET /evalsha_ro/e0e1f9fabfc9d4800c877a703b823ac0578ff8db/0",
        "GET /fcall_ro/f/0",
        "GET /xread/block/0/streams/s/$",
    ] {
        let head = line.starts_with("HEAD");
        web.request(line, &[browser], b"")?;
        assert_eq!(web.answer(head)?.status, 403, "{line}");
    }
    for allowed in [&["User-Agent: curl/8.0"][..], &[browser, "Authorization: Bearer any"]] {
        expect(&mut web, "GET /set/k/v", allowed, "", 200, r#"{"result":"OK"}"#);
    }
    let own = [browser, "Sec-Fetch-Site: same-origin"];
    expect(&mut web, "GET /set/k/v", &own, "", 200, r#"{"result":"OK"}"#);
    expect(&mut web, "POST /set/k", &[browser], "w", 200, r#"{"result":"OK"}"#);
    expect(&mut web, "GET /get/k", &[browser], "", 200, r#"{"result":"w"}"#);
    Ok(())
}

#[test]
fn long_answers_are_compressed_for_clients_that_accept_it() -> Result<()> {
    let (server, port) = start(&[])?;
    server.connect()?.call_text("HSET h f xxxxxxxxxxxxxxxxxxxx")?;
    server.connect()?.call_text(&format!("HSET h g {}", "y".repeat(5000)))?;
    let mut web = Web::connect(port)?;
    let plain = ask(&mut web, "GET /v1/keys/h", &[], "")?;
    let packed = ask(&mut web, "GET /v1/keys/h", &["Accept-Encoding: br, gzip"], "")?;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    ensure!(packed.body.len() * 10 < plain.body.len());
    assert_ne!(packed.tag(), plain.tag(), "these are other bytes");
    let refused = ask(&mut web, "GET /v1/keys/h", &["Accept-Encoding: gzip;q=0, *"], "")?;
    assert_eq!((refused.header("content-encoding"), &refused.body), (None, &plain.body));
    let weighed = ask(&mut web, "GET /v1/keys/h", &["Accept-Encoding: br, gzip;q=0.8"], "")?;
    assert_eq!(weighed.header("content-encoding"), Some("gzip"));
    Ok(())
}

#[test]
fn writes_are_journalled_and_durable_before_they_are_answered() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let (mut server, port) = start(&options)?;
    let mut web = Web::connect(port)?;
    ask(&mut web, "PUT /v1/keys/s?ttl=1000", &[], "v")?;
    ask(&mut web, "PUT /v1/keys/gone", &[], "v")?;
    ask(&mut web, "DELETE /v1/keys/gone", &[], "")?;
    ask(&mut web, "POST /v1/keys/z?type=zset", &[], r#"{"m":1}"#)?;
    ask(&mut web, "POST /v1/keys/h", &[], r#"{"f":"v"}"#)?;
    ask(&mut web, "POST /v1/keys/l?end=front", &[], r#"["a","b"]"#)?;
    ask(&mut web, "PUT /v1/keys/doc", &[], r#"{"a":1}"#)?;
    let patch = ["Content-Type: application/merge-patch+json"];
    ask(&mut web, "PATCH /v1/keys/doc", &patch, r#"{"b":2}"#)?;
    ask(&mut web, "POST /v1/pipeline", &[], r#"[["INCR","n"],["INCR","n"]]"#)?;
    let digest = say(&mut server.connect()?, "DEBUG DIGEST")?;
    server.start_again()?;
    let mut client = server.connect()?;
    assert_eq!(say(&mut client, "DEBUG DIGEST")?, digest);
    assert_eq!(say(&mut client, "LRANGE l 0 -1")?, "b\na");
    Ok(())
}

#[test]
fn figures_are_those_of_the_server() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    ask(&mut web, "PUT /v1/keys/a", &[], "x")?;
    (0..3).try_for_each(|_| ask(&mut web, "GET /v1/keys/a", &[], "").map(|_| ()))?;
    ask(&mut web, "GET /v1/keys/none", &[], "")?;
    ask(&mut web, "POST /v1/command", &[], r#"["LPUSH","a","x"]"#)?;
    let plain = ask(&mut web, "GET /metrics", &[], "")?;
    ensure!(plain.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    let text = plain.text();
    for line in [
        "# TYPE dunlin_commands_processed_total counter",
        "dunlin_keys{database=\"0\"} 1",
        "dunlin_keyspace_hits_total 3",
        "dunlin_keyspace_misses_total 1",
        "dunlin_errors_total{code=\"WRONGTYPE\"} 1",
        "dunlin_command_duration_seconds_count{command=\"http|get\"} 4",
        "dunlin_command_duration_seconds_bucket{command=\"http|get\",le=\"+Inf\"} 4",
        "dunlin_connected_clients 1",
    ] {
        ensure!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
    }
    let accept = ["Accept: application/openmetrics-text; version=1.0.0"];
    let open = ask(&mut web, "GET /metrics", &accept, "")?;
    ensure!(open.text().ends_with("\n# EOF\n"), "{}", open.text());
    ensure!(open.text().contains("\n# TYPE dunlin_commands_processed counter\n"));
    // Each line is a comment or a sample with one value, and each sample belongs to a family.
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            rest.split(' ').next().unwrap_or_default().clone_into(&mut family);
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap_or_default();
            ensure!(name.starts_with(&family), "{line}");
            ensure!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    Ok(())
}

#[test]
fn a_server_tells_whether_it_is_ready() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    expect(&mut web, "GET /healthz", &[], "", 200, r#"{"status":"ok"}"#);
    expect(&mut web, "GET /readyz", &[], "", 200, r#"{"status":"ready"}"#);
    assert_eq!(ask(&mut web, "POST /healthz", &[], "x")?.status, 405);
    let description = ask(&mut web, "GET /v1/openapi.json", &[], "")?;
    let description: serde_json::Value = serde_json::from_slice(&description.body)?;
    ensure!(description["paths"]["/v1/keys/{key}"]["put"].is_object());
    assert_eq!(ask(&mut web, "GET /v1/keys/k?x=1", &[], "")?.status, 400);
    let named = ask(&mut web, "GET /v1/keys/k", &["X-Request-Id: abc-1"], "")?;
    assert_eq!(named.header("x-request-id"), Some("abc-1"));
    // Several servers on one machine: the second one does without HTTP.
    let text = port.to_string();
    let other = Server::start(tests::server::Target::Dunlin, &[("http-port", &text)])?;
    ensure!(other.log().contains("HTTP is not served"), "{}", other.log());
    let mut client = server.connect()?;
    client.call_text("CONFIG SET http-port 0")?;
    ensure!(Web::connect(port).is_err(), "nobody listens any more");
    assert_eq!(ask(&mut web, "GET /healthz", &[], "")?.status, 200, "connections stay");
    client.call_text(&format!("CONFIG SET http-port {port}"))?;
    assert_eq!(ask(&mut Web::connect(port)?, "GET /healthz", &[], "")?.status, 200);
    Ok(())
}
