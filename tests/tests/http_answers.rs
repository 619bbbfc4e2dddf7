//! HTTP: answers that are large, and answers of which there are several forms.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tests::client::{Client, Reply};
use tests::observe::{number, wait_until};
use tests::process::peak_resident_bytes;
use tests::server::Server;
use tests::web::{Answer, Web};

const MEGABYTE: u64 = 1024 * 1024;

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2")], options].concat())
}

fn ask(web: &mut Web, line: &str, headers: &[&str], body: &str) -> Result<Answer> {
    web.ask_whole(line, headers, body.as_bytes())
}

fn json_of(answer: &Answer) -> Result<Value> {
    serde_json::from_slice(&answer.body).with_context(|| format!("{:.200}", answer.text()))
}

/// Asks, reads a long answer chunk by chunk, and returns how many bytes its body has.
fn length_of(web: &mut Web, path: &str, body: &str) -> Result<u64> {
    let answer = web.ask(&format!("POST {path}"), &[], body.as_bytes())?;
    ensure!(answer.header("transfer-encoding") == Some("chunked"), "{answer:?}");
    let mut length = 0;
    while let Some(chunk) = web.chunk()? {
        length += chunk.len() as u64;
    }
    Ok(length)
}

#[test]
fn a_short_request_for_much_takes_little_memory() -> Result<()> {
    const SIZE: u64 = 4 * MEGABYTE;
    const TIMES: usize = 60;
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let value = "x\"".repeat(SIZE as usize / 2);
    ensure!(ask(&mut web, "PUT /v1/keys/k", &[], &value)?.status == 201);
    // What the server needs once, such as room for a request.
    ask(&mut web, "POST /v1/mget", &[], "[\"k\"]")?;
    let before = peak_resident_bytes(server.pid())?;
    let keys = json!(vec!["k"; TIMES]).to_string();
    let commands = json!(vec![["GET", "k"]; TIMES]).to_string();
    for (path, body) in [
        ("/v1/mget", &keys),
        ("/v1/pipeline", &commands),
        ("/v1/transaction", &commands),
        ("/pipeline", &commands),
    ] {
        let length = length_of(&mut web, path, body)?;
        // Every second character is escaped.
        let values = TIMES as u64 * SIZE * 3 / 2;
        ensure!((values..values + 200 * TIMES as u64).contains(&length), "{path}: {length}");
        let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
        ensure!(grown < 60 * MEGABYTE, "{path} took {grown} bytes");
    }
    Ok(())
}

/// A client that asks for much and takes little of it.
#[test]
fn an_answer_waits_for_its_client() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut control = server.connect()?;
    let words = "v".repeat(1000);
    let push = format!("RPUSH l {}", vec![&*words; 2000].join(" "));
    control.call_text(&push)?;
    let mut web = Web::connect(port)?;
    ask(&mut web, "GET /healthz", &[], "")?;
    let before = peak_resident_bytes(server.pid())?;
    let commands = json!(vec![["LRANGE", "l", "0", "-1"]; 100]).to_string();
    let answer = web.ask("POST /v1/pipeline", &[], commands.as_bytes())?;
    ensure!(answer.header("transfer-encoding") == Some("chunked"));
    wait_until("a part of the commands", || Ok(calls_of(&mut control, "lrange")? > 0))?;
    ensure!(calls_of(&mut control, "lrange")? < 50, "the others wait");
    let mut text = Vec::new();
    while let Some(chunk) = web.chunk()? {
        text.extend_from_slice(&chunk);
    }
    let all: Value = serde_json::from_slice(&text)?;
    ensure!(all.as_array().map(Vec::len) == Some(100));
    ensure!(all[99]["result"][1999] == words.as_str());
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 60 * MEGABYTE, "{grown} bytes");
    // The connection goes on.
    ensure!(ask(&mut web, "GET /healthz", &[], "")?.status == 200);
    Ok(())
}

/// How often a command was called.
fn calls_of(client: &mut Client, command: &str) -> Result<u64> {
    let text = match client.call_text("INFO commandstats")? {
        Reply::Bulk(text) => String::from_utf8_lossy(&text).into_owned(),
        other => bail!("{other:?}"),
    };
    let Some((_, rest)) = text.split_once(&format!("cmdstat_{command}:calls=")) else {
        return Ok(0);
    };
    Ok(rest.split(',').next().unwrap_or_default().parse()?)
}

#[test]
fn large_collections_come_whole_in_every_form() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    for part in 0..20 {
        let mut words = vec!["HSET".to_owned(), "h".to_owned()];
        for number in 0..2000 {
            words.extend([format!("f{part}:{number}"), format!("\u{e4}\u{1f600}{number:040}")]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        client.call(&words)?;
    }
    let mut web = Web::connect(port)?;
    let answer = ask(&mut web, "GET /v1/keys/h", &[], "")?;
    ensure!(answer.header("transfer-encoding") == Some("chunked"));
    let all = json_of(&answer)?;
    ensure!(all.as_object().map(serde_json::Map::len) == Some(40_000));
    ensure!(all["f19:7"] == format!("\u{e4}\u{1f600}{:040}", 7));
    let text = ask(&mut web, "GET /v1/keys/h", &["Accept: text/plain"], "")?;
    ensure!(text.body.iter().filter(|byte| **byte == b'\n').count() == 40_000);
    ensure!(text.text().contains(&format!("f3:5\t\u{e4}\u{1f600}{:040}\n", 5)));
    let packed = ask(&mut web, "GET /v1/keys/h", &["Accept: application/msgpack"], "")?;
    ensure!(packed.body.starts_with(&[0xde, 0x9c, 0x40]), "a map of 40 000");
    let head = web.ask("HEAD /v1/keys/h", &[], b"")?;
    ensure!(head.status == 200 && head.tag() == answer.tag());
    ensure!(ask(&mut web, "GET /v1/keys/none", &[], "")?.status == 404, "nothing follows a HEAD");
    // An old client knows the end of the answer by the end of the connection.
    let mut old = Web::connect(port)?;
    old.send(b"GET /v1/keys/h HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")?;
    let begun = old.answer(false)?;
    ensure!(begun.header("transfer-encoding").is_none());
    ensure!(begun.header("connection") == Some("close"));
    ensure!(old.rest()? == answer.body);
    // A client that closes its side gets all of the answer, too.
    let mut last = Web::connect(port)?;
    last.request("GET /v1/keys/h", &[], b"")?;
    last.end()?;
    last.answer(false)?;
    let mut body = Vec::new();
    while let Some(chunk) = last.chunk()? {
        body.extend_from_slice(&chunk);
    }
    ensure!(body == answer.body);
    Ok(())
}

#[test]
fn answers_with_other_bytes_have_other_tags() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let long = format!("HSET h f {}", "y".repeat(5000));
    server.connect()?.call_text(&long)?;
    let forms: [&[&str]; 5] = [
        &[],
        &["Accept-Encoding: gzip"],
        &["Accept: text/plain"],
        &["Accept: text/plain", "Accept-Encoding: gzip"],
        &["Accept: application/msgpack"],
    ];
    let mut tags = Vec::new();
    for headers in forms {
        let answer = ask(&mut web, "GET /v1/keys/h", headers, "")?;
        let vary = |answer: &Answer| -> Vec<String> {
            let own = answer.headers.iter().filter(|(name, _)| name == "vary");
            own.map(|(_, value)| value.clone()).collect()
        };
        ensure!(vary(&answer) == ["Accept", "Accept-Encoding"], "{answer:?}");
        ensure!(!tags.contains(&answer.tag().to_owned()), "{answer:?}");
        // Who has it is told so, with the same words.
        let known = format!("If-None-Match: {}", answer.tag());
        let same = ask(&mut web, "GET /v1/keys/h", &[headers, &[&known]].concat(), "")?;
        ensure!((same.status, same.tag()) == (304, answer.tag()), "{same:?}");
        ensure!(vary(&same) == vary(&answer));
        tags.push(answer.tag().to_owned());
    }
    // Lines of text are no JSON, so that is new to who has the lines.
    let text = format!("If-None-Match: {}", tags[2]);
    ensure!(ask(&mut web, "GET /v1/keys/h", &[&text], "")?.status == 200);
    // A change depends on the version, in whatever form its client has read it.
    for tag in &tags {
        let known = format!("If-Match: {tag}");
        ensure!(ask(&mut web, "GET /v1/keys/h", &[&known], "")?.status == 200);
        let transaction = "POST /v1/transaction?key=h";
        let commands = r#"[["PING"]]"#;
        ensure!(ask(&mut web, transaction, &[&known], commands)?.status == 200);
    }
    let known = format!("If-Match: {}", tags[3]);
    ensure!(ask(&mut web, "POST /v1/keys/h", &[&known], r#"{"g":1}"#)?.status == 204);
    ensure!(ask(&mut web, "POST /v1/keys/h", &[&known], r#"{"g":2}"#)?.status == 412);
    Ok(())
}

#[test]
fn a_hash_is_another_one_when_a_field_has_expired() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    client.call_text("DEBUG SET-ACTIVE-EXPIRE 0")?;
    client.call_text("HSET h a 1 b 2")?;
    client.call_text("HPEXPIRE h 300 FIELDS 1 b")?;
    let both = ask(&mut web, "GET /v1/keys/h", &[], "")?;
    ensure!(json_of(&both)? == json!({"a": "1", "b": "2"}));
    let (known, condition) =
        (format!("If-None-Match: {}", both.tag()), format!("If-Match: {}", both.tag()));
    let mut seen = both.clone();
    wait_until("the end of a field", || {
        seen = ask(&mut web, "GET /v1/keys/h", &[&known], "")?;
        Ok(seen.status == 200)
    })?;
    ensure!(seen.text() == r#"{"a":"1"}"# && seen.tag() != both.tag(), "{seen:?}");
    ensure!(ask(&mut web, "POST /v1/keys/h", &[&condition], r#"{"c":1}"#)?.status == 412);
    // The field is removed, and the hash has a version again.
    ensure!(!ask(&mut web, "GET /v1/keys/h", &[], "")?.tag().is_empty());
    Ok(())
}

#[test]
fn a_push_that_changes_nothing_is_no_change() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    for (path, body) in
        [("/v1/keys/s?type=set", r#"["a","b"]"#), ("/v1/keys/z?type=zset", r#"{"m":1.5}"#)]
    {
        let first = ask(&mut web, &format!("POST {path}"), &[], body)?;
        let changes = number(&mut client, "rdb_changes_since_last_save")?;
        let again = ask(&mut web, &format!("POST {path}"), &[], body)?;
        ensure!((again.status, again.tag()) == (204, first.tag()), "{again:?}");
        ensure!(number(&mut client, "rdb_changes_since_last_save")? == changes);
    }
    let since = ask(&mut web, "POST /v1/command", &[], r#"["CHANGES","SINCE","$"]"#)?;
    let position = json_of(&since)?["result"][0].as_str().unwrap_or_default().to_owned();
    ask(&mut web, "POST /v1/keys/s", &[], r#"["a"]"#)?;
    ask(&mut web, "POST /v1/keys/s", &[], r#"["c"]"#)?;
    let body = json!(["CHANGES", "SINCE", position]).to_string();
    let changes = json_of(&ask(&mut web, "POST /v1/command", &[], &body)?)?;
    ensure!(changes["result"][1].as_array().map(Vec::len) == Some(1), "{changes}");
    Ok(())
}

#[test]
fn a_refused_transaction_says_why() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    client.call_text("SET k v")?;
    client.call_text("CONFIG SET maxmemory 1")?;
    let mut web = Web::connect(port)?;
    let full = ask(&mut web, "POST /v1/transaction", &[], r#"[["GET","k"],["SET","k","w"]]"#)?;
    let error = json_of(&full)?["error"].as_str().unwrap_or_default().to_owned();
    ensure!(
        full.status == 507 && error.starts_with("EXECABORT") && error.contains("OOM "),
        "{full:?}"
    );
    Ok(())
}

#[test]
fn names_come_and_go_as_they_are() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    client.call(&[&b"HSET"[..], b"h", b"\xff", b"1", b"\xfe", b"2", b"a,b", b"3", b"a", b"4"])?;
    let all = json_of(&ask(&mut web, "GET /v1/keys/h", &[], "")?)?;
    let expected =
        json!({r#"{"base64":"/w=="}"#: "1", r#"{"base64":"/g=="}"#: "2", "a,b": "3", "a": "4"});
    ensure!(all == expected, "{all}");
    let some = ask(&mut web, "GET /v1/keys/h?fields=a%2Cb,a", &[], "")?;
    ensure!(some.text() == r#"{"a,b":"3","a":"4"}"#, "{}", some.text());
    // A name that a library uses for itself is a name like any other.
    let name = "$serde_json::private::Number";
    let body = json!({name: "1"}).to_string();
    ensure!(ask(&mut web, "POST /v1/keys/odd", &[], &body)?.status == 201);
    ensure!(ask(&mut web, "GET /v1/keys/odd", &[], "")?.text() == body);
    ensure!(ask(&mut web, "PUT /v1/keys/doc", &[], &body)?.status == 201);
    let patch = ["Content-Type: application/merge-patch+json"];
    ensure!(ask(&mut web, "PATCH /v1/keys/doc", &patch, r#"{"b":1}"#)?.status == 204);
    let expected = format!("{{\"{name}\":\"1\",\"b\":1}}");
    ensure!(ask(&mut web, "GET /v1/keys/doc", &[], "")?.text() == expected);
    Ok(())
}

#[test]
fn a_part_of_a_value_is_not_taken_for_the_whole() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    ask(&mut web, "PUT /v1/keys/k", &[], "whole")?;
    let part = ask(&mut web, "PUT /v1/keys/k", &["Content-Range: bytes 0-0/5"], "W")?;
    ensure!(part.status == 400);
    ensure!(ask(&mut web, "GET /v1/keys/k", &[], "")?.text() == "whole");
    // What curl says of any body says nothing about the value.
    for form in
        ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=x"]
    {
        ask(&mut web, "PUT /v1/keys/k", &[&format!("Content-Type: {form}")], "v")?;
        let read = ask(&mut web, "GET /v1/keys/k", &[], "")?;
        ensure!(read.header("content-type") == Some("application/octet-stream"), "{read:?}");
    }
    Ok(())
}

#[test]
fn lists_of_names_have_about_as_many_as_asked_for() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    server.connect()?.call_text("DEBUG POPULATE 20000 n:")?;
    server.connect()?.call_text("DEBUG POPULATE 200 rare:")?;
    for (prefix, limit, total) in [("", 10, 20_200), ("rare:", 50, 200), ("n:", 1, 20_000)] {
        let line = format!("GET /v1/keys?prefix={prefix}&limit={limit}");
        let names = json_of(&ask(&mut web, &line, &[], "")?)?["keys"].as_array().map(Vec::len);
        // Keys that lie together in memory come together.
        ensure!(names.is_some_and(|names| names <= 2 * limit + 20), "{prefix} {limit}: {names:?}");
        let (mut found, mut cursor) = (std::collections::HashSet::new(), "0".to_owned());
        let line = format!("GET /v1/keys?prefix={prefix}&limit=700");
        loop {
            let page = json_of(&ask(&mut web, &format!("{line}&cursor={cursor}"), &[], "")?)?;
            let names = page["keys"].as_array().context("names")?;
            found.extend(names.iter().map(ToString::to_string));
            match page["cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        ensure!(found.len() == total, "{prefix}: {}", found.len());
    }
    Ok(())
}

#[test]
fn a_client_that_closes_its_side_gets_the_answer_for_which_it_waits() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut control = server.connect()?;
    let mut web = Web::connect(port)?;
    web.request("GET /v1/keys/k?wait=true", &[], b"")?;
    wait_until("a client that waits", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    web.end()?;
    // Its end has come to the server before what follows on another connection is answered there.
    for _ in 0..100 {
        control.call_text("PING")?;
    }
    control.call_text("SET k v")?;
    ensure!(web.answer(false)?.text() == "v");
    ensure!(web.rest()?.is_empty());
    // One that would take something is gone, and takes nothing.
    let mut web = Web::connect(port)?;
    web.request("POST /v1/command", &[], br#"["BLPOP","q",0]"#)?;
    wait_until("a client that waits", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    web.end()?;
    wait_until("its end", || Ok(number(&mut control, "blocked_clients")? == 0))?;
    Ok(())
}

#[test]
fn probes_and_scrapes_may_use_any_host_name() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let mut request = |path: &str, lines: &str| -> Result<Answer> {
        web.send(format!("GET {path} HTTP/1.1\r\nHost: {lines}\r\n\r\n").as_bytes())?;
        web.answer(false)
    };
    let mut client = server.connect()?;
    for _ in 0..5000 {
        client.call_text("GET secret")?;
    }
    for path in ["/healthz", "/readyz", "/health", "/metrics"] {
        ensure!(request(path, "dunlin:8379")?.status == 200, "{path}");
        ensure!(request(path, "dunlin:8379\r\nOrigin: http://dunlin:8379")?.status == 421);
    }
    ensure!(request("/metrics", "localhost")?.text().contains("key=\"secret\""));
    ensure!(!request("/metrics", "dunlin:8379")?.text().contains("secret"));
    for path in ["/v1/keys/k", "/", "/v1/hotkeys", "/get/k", "/v2/keys"] {
        ensure!(request(path, "dunlin:8379")?.status == 421, "{path}");
    }
    let here = request("/", "localhost")?;
    ensure!(here.status == 200 && here.text().contains("/v1/openapi.json"), "{here:?}");
    Ok(())
}

#[test]
fn clients_of_upstash_may_show_the_password_in_the_address() -> Result<()> {
    let (_server, port) = start(&[("requirepass", "se cret")])?;
    let mut web = Web::connect(port)?;
    let set = ask(&mut web, "GET /set/k/v?_token=se%20cret", &[], "")?;
    ensure!((set.status, &*set.text()) == (200, r#"{"result":"OK"}"#), "{set:?}");
    let get = ask(&mut web, "POST /pipeline?_token=se+cret", &[], r#"[["GET","k"]]"#)?;
    ensure!(get.text() == r#"[{"result":"v"}]"#);
    ensure!(ask(&mut web, "GET /get/k?_token=wrong", &[], "")?.status == 401);
    let wrong = ["Authorization: Bearer wrong"];
    ensure!(ask(&mut web, "GET /get/k?_token=se%20cret", &wrong, "")?.status == 401);
    ensure!(ask(&mut web, "GET /v1/keys/k?_token=se%20cret", &[], "")?.status == 401);
    Ok(())
}
