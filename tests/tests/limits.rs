//! What a client can make the server keep for it is bounded, whatever it sends and never reads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::process::peak_resident_bytes;
use tests::server::{Server, Target};
use tests::web::Web;

const MEGABYTE: u64 = 1024 * 1024;

fn start(options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("threads", "2")];
    all.extend(options);
    Server::start(Target::Dunlin, &all)
}

/// A connection of which the test minds the bytes itself.
fn raw(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut request = Vec::new();
    encode(words, &mut request);
    request
}

/// Sends requests, of which the server takes as many as it likes, and reads nothing until the
/// connection is closed. Returns what comes before that.
fn send_and_be_closed(stream: &mut TcpStream, requests: &[u8]) -> Result<usize> {
    // The connection may be closed before all of it was taken.
    let _ = stream.write_all(requests);
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(error).context("the connection is not closed")
        }
        _ => Ok(received.len()),
    }
}

/// A list of 20 elements of a megabyte.
fn push_megabytes(client: &mut Client) -> Result<()> {
    let element = "e".repeat(MEGABYTE as usize);
    for length in 1..=20 {
        ensure!(client.call(&["RPUSH", "large", &element])? == Reply::Integer(length));
    }
    Ok(())
}

fn closed_for_output(control: &mut Client) -> Result<u64> {
    number(control, "client_output_buffer_limit_disconnections")
}

#[test]
fn little_may_wait_for_a_client_that_has_not_logged_in() -> Result<()> {
    let server = start(&[("requirepass", "secret")])?;
    let mut control = server.connect()?;
    control.call_text("AUTH secret")?;
    let mut stranger = raw(&server)?;
    // Refusals are many times as long: some tens of megabytes, much more than fits into sockets.
    stranger.set_write_timeout(Some(Duration::from_millis(500)))?;
    let requests = b"GET\r\n".repeat(1_000_000);
    // As long as the refusals are not read, the requests may not be taken.
    let _ = stranger.write_all(&requests);
    wait_until("the end of the stranger", || Ok(closed_for_output(&mut control)? == 1))?;
    // A client that reads is served, however much it is.
    let mut reading = server.connect()?;
    for _ in 0..1000 {
        ensure!(matches!(reading.call_text("GET k")?, Reply::Error(_)));
    }
    ensure!(closed_for_output(&mut control)? == 1);
    Ok(())
}

#[test]
fn pipelined_replies_stop_at_the_limit() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "normal 1mb 0 0")])?;
    let mut control = server.connect()?;
    push_megabytes(&mut control)?;
    let before = peak_resident_bytes(server.pid())?;
    let request = command(&[b"LRANGE", b"large", b"0", b"-1"]);
    let docs = command(&[b"COMMAND", b"DOCS"]);
    for (round, request) in [request, docs].iter().enumerate() {
        send_and_be_closed(&mut raw(&server)?, &request.repeat(150))?;
        ensure!(closed_for_output(&mut control)? == round as u64 + 1);
    }
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 32 * MEGABYTE, "{grown} bytes more");
    Ok(())
}

#[test]
fn replies_within_the_limit_are_sent_whatever_room_they_take() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "normal 1mb 0 0")])?;
    server.connect()?.call(&["SET", "text", &"e".repeat(10_000)])?;
    let request = command(&[b"GET", b"text"]);
    // The buffer doubles as it grows, and passes a megabyte before its content does. A new
    // connection takes a part of it at once.
    for times in [60, 70, 80, 90] {
        let mut client = server.connect()?;
        client.send_raw(&request.repeat(times))?;
        for _ in 0..times {
            ensure!(matches!(client.receive()?, Received::Reply(Reply::Bulk(_))), "{times}");
        }
    }
    Ok(())
}

/// Many commands of one request have one answer. What was gathered of it and waits counts towards
/// the limit.
#[test]
fn an_answer_of_many_replies_stops_at_the_limit() -> Result<()> {
    let options = [("client-output-buffer-limit", "normal 1mb 0 0")];
    let (server, web) = Server::start_with_http(&options)?;
    let mut control = server.connect()?;
    let text = "e".repeat(10_000);
    ensure!(control.call(&["SET", "text", &text])? == Reply::Status(b"OK".to_vec()));
    let request = |times: usize| format!("[{}]", vec![r#"["GET","text"]"#; times].join(","));
    let short = Web::connect(web)?.ask("POST /v1/pipeline", &[], request(70).as_bytes())?;
    ensure!(short.body.len() > 700_000, "it is shorter than the limit, whatever room it takes");
    let before = peak_resident_bytes(server.pid())?;
    let mut long = Web::connect(web)?;
    long.request("POST /v1/pipeline", &[], request(10_000).as_bytes())?;
    let answer = long.rest()?;
    ensure!(answer.len() < 10_000 * text.len() / 2, "{} bytes are answered", answer.len());
    ensure!(!answer.ends_with(b"\r\n0\r\n\r\n"), "it looks whole");
    ensure!(closed_for_output(&mut control)? == 1);
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 32 * MEGABYTE, "{grown} bytes more");
    Ok(())
}

/// Chunks may carry little, and long extensions that mean nothing.
#[test]
fn chunks_that_were_decoded_are_not_kept() -> Result<()> {
    let (server, web) = Server::start_with_http(&[("requirepass", "secret")])?;
    let before = peak_resident_bytes(server.pid())?;
    let mut page = Web::connect(web)?;
    let lines = ["Authorization: Bearer secret", "Transfer-Encoding: chunked"];
    page.request("POST /healthz", &lines, b"")?;
    let chunks = format!("1;{}\r\nx\r\n", "e".repeat(250)).repeat(4000);
    (0..64).try_for_each(|_| page.send(chunks.as_bytes()))?;
    page.send(b"0\r\n\r\n")?;
    ensure!(page.answer(false)?.status == 405, "this address takes no POST");
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 16 * MEGABYTE, "{grown} bytes more");
    Ok(())
}

#[test]
fn a_request_pushes_no_more_words_than_a_command_has() -> Result<()> {
    const MOST: usize = 64 * 1024;
    let (server, web) = Server::start_with_http(&[])?;
    let mut web = Web::connect(web)?;
    let mut push = |body: &str| web.ask("POST /v1/keys/k?type=list", &[], body.as_bytes());
    let items = |count: usize| vec!["1"; count].join(",");
    ensure!(push(&format!("[{}]", items(MOST)))?.status == 201, "this many fit");
    let before = peak_resident_bytes(server.pid())?;
    for body in [
        format!("[{}]", items(MOST + 1)),
        format!("[[{}]]", items(20 * MOST)),
        format!("[{}]", vec!["[[[[[[[[[[]]]]]]]]]]"; MOST / 8].join(",")),
    ] {
        let answer = push(&body)?;
        ensure!(answer.text() == r#"{"error":"there are too many words"}"#, "{}", answer.text());
        ensure!(answer.status == 400);
    }
    // The bodies themselves take this much.
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 16 * MEGABYTE, "{grown} bytes more");
    let length = server.connect()?.call_text("LLEN k")?;
    ensure!(length == Reply::Integer(MOST as i64), "{length:?}");
    Ok(())
}

/// A document may have a name many times, and a request may name a large collection many times.
#[test]
fn a_short_request_makes_no_long_value_and_no_long_answer() -> Result<()> {
    let (server, web) = Server::start_with_http(&[])?;
    let (mut client, mut web) = (server.connect()?, Web::connect(web)?);
    let document = format!("{{{}\"b\":1}}", r#""a":{},"#.repeat(2000));
    web.ask("PUT /v1/keys/document", &[], document.as_bytes())?;
    let before = peak_resident_bytes(server.pid())?;
    let patch = format!(r#"{{"a":"{}"}}"#, "x".repeat(500_000));
    let patches = "Content-Type: application/merge-patch+json";
    let answer = web.ask("PATCH /v1/keys/document", &[patches], patch.as_bytes())?;
    ensure!(answer.status == 409, "{}", answer.text());
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 16 * MEGABYTE, "a document of {grown} bytes");
    let members: Vec<String> = (0..100_000).map(|number| format!("member:{number}")).collect();
    let words = ["SADD", "large"].into_iter().chain(members.iter().map(String::as_str));
    client.call(&words.collect::<Vec<_>>())?;
    let before = peak_resident_bytes(server.pid())?;
    let keys = format!("[{}]", vec![r#""large""#; 1000].join(","));
    let answer = web.ask("POST /v1/mget", &[], keys.as_bytes())?;
    ensure!(answer.status == 400 && answer.text().contains("fewer keys"), "{}", answer.text());
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 256 * MEGABYTE, "an answer of {grown} bytes");
    Ok(())
}

#[test]
fn a_transaction_goes_on_without_its_replies() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "normal 1mb 0 0")])?;
    let mut control = server.connect()?;
    push_megabytes(&mut control)?;
    let before = peak_resident_bytes(server.pid())?;
    let mut requests = command(&[b"MULTI"]);
    requests.extend(command(&[b"LRANGE", b"large", b"0", b"-1"]).repeat(20));
    requests.extend(command(&[b"INCR", b"ran"]));
    requests.extend(command(&[b"EXEC"]));
    requests.extend(command(&[b"INCR", b"behind"]));
    send_and_be_closed(&mut raw(&server)?, &requests)?;
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 32 * MEGABYTE, "{grown} bytes more");
    ensure!(control.call_text("GET ran")? == Reply::Bulk(b"1".to_vec()));
    ensure!(control.call_text("EXISTS behind")? == Reply::Integer(0), "it went on after EXEC");
    Ok(())
}

/// What CLIENT REPLY keeps back was never output.
#[test]
fn replies_that_are_not_wanted_exceed_nothing() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "normal 1mb 0 0")])?;
    let mut control = server.connect()?;
    push_megabytes(&mut control)?;
    let mut silent = server.connect()?;
    silent.send(&["CLIENT", "REPLY", "OFF"])?;
    for _ in 0..3 {
        silent.send(&["LRANGE", "large", "0", "-1"])?;
    }
    ensure!(silent.call_text("CLIENT REPLY ON")? == Reply::Status(b"OK".to_vec()));
    ensure!(closed_for_output(&mut control)? == 0);
    Ok(())
}

#[test]
fn what_multi_queues_counts_as_input() -> Result<()> {
    let server = start(&[("client-query-buffer-limit", "1mb")])?;
    let mut control = server.connect()?;
    let mut requests = command(&[b"MULTI"]);
    requests.extend(command(&[b"SET", b"k", &[b'v'; 10_000]]).repeat(1000));
    send_and_be_closed(&mut raw(&server)?, &requests)?;
    ensure!(number(&mut control, "client_query_buffer_limit_disconnections")? == 1);
    Ok(())
}

/// The buffers for input have room to grow in, of which clients know nothing.
#[test]
fn input_within_the_limit_is_taken_whatever_room_it_takes() -> Result<()> {
    for target in [Target::Dunlin, Target::Reference] {
        let server = Server::start(target, &[("client-query-buffer-limit", "1mb")])?;
        // The last ones are longer than the limit: what has become arguments is no input any more.
        let counts = [(70, 10_000), (90, 10_000), (7000, 100), (8000, 100)];
        for (count, length) in counts.into_iter().chain([(400, 10_000), (4, 900_000)]) {
            let keys: Vec<_> = (0..count).map(|index| format!("key{index}")).collect();
            let value = vec![b'v'; length];
            let mut words = vec![&b"MSET"[..]];
            words.extend(keys.iter().flat_map(|key| [key.as_bytes(), &value[..]]));
            let mut client = server.connect()?;
            for queued in [false, true] {
                if queued && count * length > 1_000_000 {
                    continue;
                }
                if queued {
                    ensure!(client.call_text("MULTI")? == Reply::Status(b"OK".to_vec()));
                }
                client.send_raw(&command(&words))?;
                let reply = client.receive().with_context(|| format!("{target:?} {count}"))?;
                let expected = if queued { &b"QUEUED"[..] } else { b"OK" };
                ensure!(
                    reply == Received::Reply(Reply::Status(expected.to_vec())),
                    "{target:?} {count} {reply:?}"
                );
            }
        }
        let mut control = server.connect()?;
        ensure!(number(&mut control, "client_query_buffer_limit_disconnections")? == 0);
    }
    Ok(())
}

/// Commands that fit run, however many come together, and whatever comes behind them.
#[test]
fn what_comes_before_input_that_is_too_long_runs() -> Result<()> {
    const TOO_LONG: usize = 2_000_000;
    let server = start(&[("client-query-buffer-limit", "1mb")])?;
    let mut control = server.connect()?;
    // A client that goes early is not one that has sent too much.
    let mut streams = Vec::new();
    for (lengths, answered) in [
        (vec![1, TOO_LONG], 1),
        ([&[10; 400][..], &[TOO_LONG]].concat(), 400),
        (vec![100_000, 900_000, 1], 3),
        (vec![600_000; 10], 10),
        (vec![700_000; 8], 8),
    ] {
        let mut stream = raw(&server)?;
        let set = |length: &usize| command(&[b"SET", b"k", &vec![b'v'; *length]]);
        let requests: Vec<u8> = lengths.iter().flat_map(set).collect();
        let mut replies = vec![0; b"+OK\r\n".len() * answered];
        // The connection may be closed before all of it was taken.
        let _ = stream.write_all(&requests);
        stream.read_exact(&mut replies).with_context(|| format!("{} commands", lengths.len()))?;
        ensure!(replies == b"+OK\r\n".repeat(answered));
        streams.push(stream);
    }
    // Replies leave before the input behind them is judged.
    wait_until("the end of two clients", || {
        Ok(number(&mut control, "client_query_buffer_limit_disconnections")? == 2)
    })
}

/// Waits until the server has taken all of its input that it takes.
fn wait_for_the_end_of_reading(control: &mut Client) -> Result<()> {
    const STEADY: u32 = 40;
    let (mut last, mut same) = (0, 0);
    wait_until("the end of reading", || {
        // What is asked here is input too, of always the same length.
        let now = number(control, "total_net_input_bytes")?;
        same = if now.abs_diff(last) < 1000 { same + 1 } else { 0 };
        last = now;
        Ok(same > STEADY)
    })
}

/// As in Redis. What stayed in the socket would keep the end of the stream from coming.
#[test]
fn input_behind_a_blocked_command_is_taken_up_to_the_limit() -> Result<()> {
    const REQUESTS: usize = 2_000_000;
    let server = start(&[])?;
    let mut control = server.connect()?;
    let mut blocked = raw(&server)?;
    blocked.write_all(b"BLPOP list 0\r\n")?;
    wait_until("the wait", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    blocked.write_all(&command(&[b"PING"]).repeat(REQUESTS))?;
    ensure!(control.call_text("RPUSH list x")? == Reply::Integer(1));
    let popped = b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n";
    let mut replies = vec![0; popped.len() + REQUESTS * b"+PONG\r\n".len()];
    blocked.read_exact(&mut replies)?;
    ensure!(replies.ends_with(b"+PONG\r\n"));
    control.call_text("CONFIG SET client-query-buffer-limit 1mb")?;
    blocked.write_all(b"BLPOP list 0\r\n")?;
    send_and_be_closed(&mut blocked, &command(&[b"PING"]).repeat(REQUESTS))?;
    ensure!(number(&mut control, "client_query_buffer_limit_disconnections")? == 1);
    Ok(())
}

#[test]
fn a_blocked_client_that_goes_is_noticed_though_its_input_is_not_read() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    let mut blocked = raw(&server)?;
    blocked.write_all(b"BLPOP list 0\r\n")?;
    wait_until("the wait", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    // A little more than is read.
    blocked.write_all(&command(&[b"PING"]).repeat(20_000))?;
    wait_for_the_end_of_reading(&mut control)?;
    drop(blocked);
    wait_until("the end of the wait", || Ok(number(&mut control, "blocked_clients")? == 0))?;
    ensure!(control.call_text("RPUSH list x")? == Reply::Integer(1));
    ensure!(control.call_text("LLEN list")? == Reply::Integer(1));
    Ok(())
}

#[test]
fn a_soft_limit_may_last_for_ever() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    // In milliseconds of 64 bits, this many seconds are a third of a second.
    let limit = format!("normal 0 1 {}", (1_u64 << 61) / 125 + 1);
    let set = control.call(&["CONFIG", "SET", "client-output-buffer-limit", &limit])?;
    ensure!(set == Reply::Status(b"OK".to_vec()), "{set:?}");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(900) {
        ensure!(control.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn what_the_server_keeps_for_a_client_counts_as_its_memory() -> Result<()> {
    let server = start(&[("maxmemory-clients", "2mb")])?;
    let mut control = server.connect()?;
    control.call_text("CLIENT NO-EVICT ON")?;
    let name = |index: usize| format!("{index}{}", "n".repeat(10_000));
    let names: Vec<String> = (0..500).map(name).collect();
    for (round, command) in ["SUBSCRIBE", "WATCH"].iter().enumerate() {
        let mut client = server.connect()?;
        // It reads all that comes, until it is closed.
        let _ = names.iter().try_for_each(|name| client.call(&[command, name.as_str()]).map(drop));
        wait_until("the eviction of the client", || {
            Ok(number(&mut control, "evicted_clients")? > round as u64)
        })?;
    }
    Ok(())
}

/// Ten patterns of 100 000 bytes, each of which matches everything, so that a message to a channel
/// is a megabyte of output.
fn long_patterns() -> Vec<u8> {
    let patterns: Vec<Vec<u8>> = (0..10).map(|index| vec![b'*'; 100_000 + index]).collect();
    let mut words: Vec<&[u8]> = vec![b"PSUBSCRIBE"];
    words.extend(patterns.iter().map(Vec::as_slice));
    command(&words)
}

#[test]
fn messages_to_oneself_stop_at_the_limit() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    let before = peak_resident_bytes(server.pid())?;
    let mut requests = command(&[b"HELLO", b"3"]);
    requests.extend(long_patterns());
    requests.extend(command(&[b"PUBLISH", b"c", b"m"]).repeat(1000));
    send_and_be_closed(&mut raw(&server)?, &requests)?;
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 128 * MEGABYTE, "{grown} bytes more");
    ensure!(closed_for_output(&mut control)? == 1);
    Ok(())
}

#[test]
fn messages_to_others_stop_at_the_limit() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    let mut deaf = raw(&server)?;
    deaf.write_all(&long_patterns())?;
    wait_until("the subscriptions", || Ok(number(&mut control, "pubsub_patterns")? == 10))?;
    let before = peak_resident_bytes(server.pid())?;
    let mut publisher = raw(&server)?;
    publisher.write_all(&command(&[b"PUBLISH", b"c", b"m"]).repeat(1000))?;
    wait_until("the end of the subscriber", || Ok(closed_for_output(&mut control)? == 1))?;
    let mut replies = [0; 4000];
    publisher.read_exact(&mut replies)?;
    let grown = peak_resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 128 * MEGABYTE, "{grown} bytes more");
    Ok(())
}

/// The limit of open files that a process goes by.
fn limit_of_files(server: &Server) -> Result<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid()))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()).context("no such limit")?;
    Ok(soft.parse()?)
}

#[test]
fn a_change_that_fails_does_not_raise_the_limit_of_files() -> Result<()> {
    let (mut server, other) = (start(&[("maxclients", "100")])?, start(&[])?);
    server.set_wrapper(&["sh", "-c", "ulimit -Sn 200; exec \"$0\" \"$@\""]);
    server.start_again()?;
    let mut client = server.connect()?;
    ensure!(limit_of_files(&server)? == 200);
    let taken = other.port().to_string();
    for _ in 0..2 {
        let words = ["CONFIG", "SET", "maxclients", "1000", "port", &taken];
        ensure!(client.call(&words)?.is_error(), "the port is taken");
        ensure!(limit_of_files(&server)? == 200);
    }
    let beyond = client.call_text("CONFIG SET maxclients 4000000000")?;
    ensure!(beyond.is_error() && limit_of_files(&server)? == 200, "{beyond:?}");
    ensure!(!client.call_text("CONFIG SET maxclients 1000")?.is_error());
    ensure!(limit_of_files(&server)? > 1000);
    Ok(())
}
