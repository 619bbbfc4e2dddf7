//! HTTP: clients that are old, slow or greedy, or break the rules.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::observe::wait_until;
use tests::server::Server;
use tests::web::Web;

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2")], options].concat())
}

#[test]
fn requests_in_a_row_are_answered_in_their_order() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    let mut text = String::new();
    for index in 0..500 {
        text += &format!(
            "PUT /v1/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{index:03}"
        );
        text += "GET /v1/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n";
        text += "GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }
    web.send(text.as_bytes())?;
    for index in 0..500 {
        ensure!(matches!(web.answer(false)?.status, 201 | 204));
        assert_eq!(web.answer(false)?.text(), format!("{index:03}"));
        assert_eq!(web.answer(false)?.status, 404);
    }
    web.request("GET /v1/keys/k", &["Connection: close"], b"")?;
    web.request("GET /v1/keys/k", &[], b"")?;
    let last = web.answer(false)?;
    assert_eq!(last.header("connection"), Some("close"));
    assert_eq!(web.rest()?, b"");
    Ok(())
}

#[test]
fn old_clients_and_half_closed_connections_are_served() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    web.send(b"GET /v1/keys/k HTTP/1.0\r\n\r\n")?;
    let answer = web.answer(false)?;
    assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
    assert_eq!(web.rest()?, b"");
    let mut web = Web::connect(port)?;
    web.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")?;
    assert_eq!(web.answer(false)?.header("connection"), Some("keep-alive"));
    web.request("GET /v1/keys/k", &[], b"")?;
    web.end()?;
    assert_eq!(web.answer(false)?.status, 404);
    assert_eq!(web.rest()?, b"");
    Ok(())
}

#[test]
fn a_client_may_ask_before_it_sends_its_body() -> Result<()> {
    let (_server, port) = start(&[("requirepass", "secret")])?;
    let head = "PUT /v1/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\
                Expect: 100-continue\r\n";
    let mut web = Web::connect(port)?;
    web.send(format!("{head}Authorization: Bearer secret\r\n\r\n").as_bytes())?;
    assert_eq!(web.answer(false)?.status, 100);
    web.send(b"abc")?;
    assert_eq!(web.answer(false)?.status, 201);
    let mut web = Web::connect(port)?;
    web.send(format!("{head}\r\n").as_bytes())?;
    assert_eq!(web.answer(false)?.status, 401);
    assert_eq!(web.rest()?, b"");
    let mut web = Web::connect(port)?;
    let large = head.replace("Length: 3", "Length: 999999999999");
    web.send(format!("{large}Authorization: Bearer secret\r\n\r\n").as_bytes())?;
    assert_eq!(web.answer(false)?.status, 413);
    assert_eq!(web.rest()?, b"");
    Ok(())
}

#[test]
fn a_client_that_sends_its_body_at_once_is_answered_once() -> Result<()> {
    let (_server, port) = start(&[])?;
    let head = "POST /v1/command HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n";
    for body in [
        "Content-Length: 8\r\n\r\n[\"PING\"]",
        "Transfer-Encoding: chunked\r\n\r\n8\r\n[\"PING\"]\r\n0\r\n\r\n",
    ] {
        let mut web = Web::connect(port)?;
        web.send(format!("{head}{body}").as_bytes())?;
        assert_eq!(web.answer(false)?.text(), r#"{"result":"PONG"}"#);
        web.end()?;
        assert_eq!(web.rest()?, b"");
    }
    Ok(())
}

#[test]
fn smuggled_and_oversized_requests_end_the_connection() -> Result<()> {
    let (server, port) = start(&[])?;
    let both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n";
    for (lines, status) in [
        (both, 400),
        ("Content-Length: 4\r\nContent-Length: 4\r\n", 400),
        ("Content-Length: 4, 4\r\n", 400),
        ("Content-Length: +4\r\n", 400),
        ("Transfer-Encoding: identity\r\n", 501),
        ("Content-Length : 4\r\n", 400),
        (" X: y\r\n", 400),
        ("Expect: something\r\nContent-Length: 4\r\n", 417),
    ] {
        let mut web = Web::connect(port)?;
        let head = format!("POST /v1/command HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        web.send(head.as_bytes())?;
        assert_eq!(web.answer(false)?.status, status, "{lines:?}");
        assert_eq!(web.rest()?, b"", "{lines:?}");
    }
    let mut web = Web::connect(port)?;
    web.send(
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(20_000)).as_bytes(),
    )?;
    assert_eq!(web.answer(false)?.status, 414);
    let mut web = Web::connect(port)?;
    web.send(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(40_000)).as_bytes())?;
    assert_eq!(web.answer(false)?.status, 431);
    // Nothing of what stood behind a refused request was run.
    let mut web = Web::connect(port)?;
    let hidden = "PUT /v1/keys/hidden HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\n{both}\r\n0\r\n\r\n{hidden}");
    web.send(head.as_bytes())?;
    assert_eq!(web.answer(false)?.status, 400);
    web.rest()?;
    assert_eq!(server.connect()?.call_text("EXISTS hidden")?, Reply::Integer(0));
    Ok(())
}

/// Were the connection closed while the client sends, the system would take the answer back.
#[test]
fn a_client_gets_its_refusal_though_it_is_sending() -> Result<()> {
    let (_server, port) = start(&[("proto-max-bulk-len", "1mb")])?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let length = 20_000_000;
    let head =
        format!("PUT /v1/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    // This is more than the sockets hold.
    stream.write_all(&vec![b'x'; length])?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Who does not end its side is waited for no longer than that makes sense.
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(head.as_bytes())?;
    stream.read_to_string(&mut answer)?;
    wait_until("the end of the connection", || {
        stream.write_all(b"x").map_or(Ok(true), |()| Ok(false))
    })
}

#[test]
fn a_client_that_takes_no_answers_gets_no_more() -> Result<()> {
    const REQUESTS: usize = 300;
    let (server, port) = start(&[])?;
    let mut control = server.connect()?;
    control.call(&["SADD", "large", &"v".repeat(1_000_000)])?;
    let one = Web::connect(port)?.ask("GET /v1/keys/large", &[], b"")?;
    let mut web = Web::connect(port)?;
    let request = b"GET /v1/keys/large HTTP/1.1\r\nHost: localhost\r\n\r\n";
    web.send(&request.repeat(REQUESTS))?;
    let mut waiting = || -> Result<usize> {
        let clients = control.call_text("CLIENT LIST")?;
        let clients = String::from_utf8_lossy(clients.text().unwrap_or_default());
        let figures = clients.lines().filter_map(|client| {
            let own = client.split(' ').find_map(|field| field.strip_prefix("omem="))?;
            own.parse::<usize>().ok()
        });
        Ok(figures.max().unwrap_or(0))
    };
    wait_until("an answer that waits", || Ok(waiting()? > 1_000_000))?;
    for _ in 0..20 {
        let waiting = waiting()?;
        ensure!(waiting < 8_000_000, "{waiting} bytes wait for a client that does not read");
        thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..REQUESTS {
        ensure!(web.answer(false)?.body == one.body);
    }
    Ok(())
}

/// More answers wait before a command than a client may leave, and they need no command themselves.
#[test]
fn a_command_behind_many_ready_answers_waits_for_them() -> Result<()> {
    const PAGES: usize = 40;
    let (server, port) = start(&[])?;
    let mut control = server.connect()?;
    control.call(&["MSET", "first", "1", "second", "2"])?;
    let page = Web::connect(port)?.ask("GET /v1/dashboard.js", &[], b"")?;
    ensure!(PAGES * page.body.len() > 1_500_000, "the answers are too small to wait");
    let line = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let pages = line("/v1/dashboard.js").repeat(PAGES);
    // One command takes the fast path, and one the long.
    let first = line("/v1/keys/first");
    let second = line("/v1/keys?prefix=sec");
    let mut web = Web::connect(port)?;
    web.send([&pages[..], &first, &pages, &second].concat().as_bytes())?;
    for expected in ["1", r#"{"keys":["second"],"cursor":null}"#] {
        for _ in 0..PAGES {
            ensure!(web.answer(false)?.body == page.body);
        }
        assert_eq!(web.answer(false)?.text(), expected);
    }
    assert_eq!(web.ask("GET /v1/keys/second", &[], b"")?.text(), "2");
    Ok(())
}

#[test]
fn slow_requests_are_given_up() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut silent = Web::connect(port)?;
    let mut slow = Web::connect(port)?;
    let mut body = Web::connect(port)?;
    body.send(b"PUT /v1/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")?;
    let mut idle = Web::connect(port)?;
    assert_eq!(idle.ask("GET /healthz", &[], b"")?.status, 200);
    let start = Instant::now();
    slow.send(b"GET / HTTP/1.1\r\n")?;
    for _ in 0..8 {
        thread::sleep(Duration::from_secs(1));
        slow.send(b"X: y\r\n")?;
        body.send(b"x")?;
    }
    for web in [&mut silent, &mut slow, &mut body] {
        assert_eq!(web.answer(false)?.status, 408);
        assert_eq!(web.rest()?, b"");
    }
    ensure!(start.elapsed() < Duration::from_secs(14));
    assert_eq!(idle.ask("GET /healthz", &[], b"")?.status, 200);
    Ok(())
}

/// Of requests that were sent together, one waits behind an answer that needs no command, and one
/// has commands whose replies come apart from their ends.
#[test]
fn each_of_many_requests_gets_its_own_answer() -> Result<()> {
    let (server, port) = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    let mut web = Web::connect(port)?;
    web.request("GET /healthz", &[], b"")?;
    web.request("POST /v1/command", &[], br#"["BLPOP","queue","0"]"#)?;
    web.request("POST /v1/command", &[], br#"["BLPOP","other","0.01"]"#)?;
    assert_eq!(web.answer(false)?.text(), r#"{"status":"ok"}"#);
    client.call_text("RPUSH queue precious")?;
    assert_eq!(web.answer(false)?.text(), r#"{"result":["queue","precious"]}"#);
    assert_eq!(web.answer(false)?.text(), r#"{"result":null}"#);
    let odd = r#"["EVAL","redis.setresp(3); return {map={[true]=1}}","0"]"#;
    let flush = r#"["EVAL","return redis.call('flushall')","0"]"#;
    for (first, expected) in
        [(r#"["FLUSHALL"]"#, r#""OK""#), (flush, r#""OK""#), (odd, r#"{"true":1}"#)]
    {
        let body = format!(r#"[{first},["ECHO","1/2"],["ECHO","1/3"]]"#);
        web.request("POST /v1/pipeline", &[], body.as_bytes())?;
        for number in 2..4 {
            let body = format!(r#"["ECHO","{number}"]"#);
            web.request("POST /v1/command", &[], body.as_bytes())?;
        }
        let all = format!(r#"[{{"result":{expected}}},{{"result":"1/2"}},{{"result":"1/3"}}]"#);
        assert_eq!(web.answer(false)?.text(), all);
        assert_eq!(web.answer(false)?.text(), r#"{"result":"2"}"#);
        assert_eq!(web.answer(false)?.text(), r#"{"result":"3"}"#);
    }
    Ok(())
}

#[test]
fn bodies_are_as_long_as_their_requests_may_have_them() -> Result<()> {
    let (_server, port) = start(&[("requirepass", "secret")])?;
    let own = "Authorization: Bearer secret\r\n";
    for (line, lines) in [
        ("OPTIONS /v1/keys/k", "Content-Length: 500000000\r\n".to_owned()),
        ("POST /healthz", "Content-Length: 5000000\r\n".to_owned()),
        ("POST /v1/command", format!("{own}Content-Length: 0209715200\r\n")),
        ("POST /v1/pipeline", format!("{own}Content-Length: 9000000\r\n")),
        ("PATCH /v1/keys/k", format!("{own}Content-Length: 2000000\r\n")),
    ] {
        let mut web = Web::connect(port)?;
        let head = "HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n";
        web.send(format!("{line} {head}{lines}\r\n").as_bytes())?;
        assert_eq!(web.answer(false)?.status, 413, "{line}");
        assert_eq!(web.rest()?, b"");
    }
    // The length of a body in chunks shows as it comes.
    let mut web = Web::connect(port)?;
    web.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    let chunk = [b"8000\r\n", &[b'x'; 0x8000][..], b"\r\n"].concat();
    // It is refused when there are 32 of them.
    let _ = (0..40).try_for_each(|_| web.send(&chunk));
    assert_eq!(web.answer(false)?.status, 413);
    // What is wrong with a body is said once.
    let mut web = Web::connect(port)?;
    let head = format!("POST /v1/command HTTP/1.1\r\nHost: localhost\r\n{own}");
    let chunked = "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\nzz\r\n";
    web.send(format!("{head}{chunked}").as_bytes())?;
    assert_eq!(web.answer(false)?.status, 400);
    assert_eq!(web.rest()?, b"");
    Ok(())
}

/// What a client sends while the server does not look at it is not late.
#[test]
fn a_request_behind_one_that_waits_is_not_late() -> Result<()> {
    let (_server, port) = start(&[])?;
    let mut web = Web::connect(port)?;
    web.request("GET /v1/keys/k?wait=true&timeout=12", &[], b"")?;
    let head = "PUT /v1/keys/other HTTP/1.1\r\nHost: localhost\r\n";
    let lines = "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    web.send(format!("{head}{lines}").as_bytes())?;
    web.set_patience(Duration::from_secs(30))?;
    assert_eq!(web.answer(false)?.status, 304);
    assert_eq!(web.answer(false)?.status, 100);
    thread::sleep(Duration::from_millis(300));
    web.send(b"abc")?;
    assert_eq!(web.answer(false)?.status, 201);
    Ok(())
}
