//! Connections in great number and of bad behaviour: other clients do not notice, and memory is
//! bounded.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::{number, wait_until};
use tests::process::{open_files, resident_bytes};
use tests::random::Random;
use tests::server::{Server, Target};
use tests::web::Web;

const MEGABYTE: u64 = 1024 * 1024;

fn start(options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("threads", "4")];
    all.extend(options);
    Server::start(Target::Dunlin, &all)
}

fn ping(client: &mut Client) -> Result<()> {
    let pong = client.call_text("PING")?;
    ensure!(pong == Reply::Status(b"PONG".to_vec()), "{pong:?}");
    Ok(())
}

/// Waits until only `client` is connected and nothing of the others is left: the last of them may
/// be accepted only after all before it have gone.
fn wait_until_alone(client: &mut Client) -> Result<()> {
    const NOTHING: [&str; 3] = ["blocked_clients", "pubsub_channels", "pubsub_patterns"];
    wait_until("the end of all other connections", || {
        let mut left = number(client, "connected_clients")? - 1;
        for name in NOTHING {
            left += number(client, name)?;
        }
        Ok(left == 0)
    })
}

/// A connection whose bytes the test reads and writes itself.
fn raw(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// How many connections this process may have, up to `wanted`.
fn possible(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // What is not allowed is left as it is.
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    wanted.min(usize::try_from(allowed).unwrap_or(usize::MAX).saturating_sub(200))
}

/// A turn of a worker that has lasted too long is cut: clients that have come meanwhile are served
/// before the rest of it.
#[test]
fn a_client_that_comes_during_a_long_turn_is_served_before_its_end() -> Result<()> {
    const BUSY: usize = 320;
    let server = start(&[("threads", "1"), ("enable-debug-command", "yes")])?;
    let mut control = server.connect()?;
    let mut newcomer = server.connect()?;
    ping(&mut newcomer)?;
    let mut busy = (0..BUSY).map(|_| raw(&server)).collect::<Result<Vec<_>>>()?;
    wait_until("all connections", || {
        Ok(number(&mut control, "connected_clients")? as usize == BUSY + 2)
    })?;
    // Those who have had no answer yet would be let in a few at a time.
    for stream in &mut busy {
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut [0; 7])?;
    }
    // All requests are there when the worker looks, and so belong to one turn.
    control.send(&["DEBUG", "SLEEP", "0.5"])?;
    for stream in &mut busy {
        stream.write_all(b"DEBUG SLEEP 0.002\r\nINCR n\r\n")?;
    }
    // A client that comes with the others is one of them: so half of them are served before this
    // one comes.
    let mut first = [0; 3];
    busy[BUSY / 2].read_exact(&mut first)?;
    let Reply::Bulk(count) = newcomer.call_text("GET n")? else { bail!("nothing has run") };
    let count: usize = String::from_utf8(count)?.parse()?;
    ensure!(count < BUSY, "it was served when all others had been");
    let all = Reply::Bulk(BUSY.to_string().into_bytes());
    wait_until("the rest of them", || Ok(newcomer.call_text("GET n")? == all))
}

// ---- Many ---------------------------------------------------------------------------------------

#[test]
fn ten_thousand_idle_connections_hinder_nobody() -> Result<()> {
    let server = start(&[("maxclients", "11000")])?;
    let mut control = server.connect()?;
    let count = possible(10_000);
    let before = resident_bytes(server.pid())?;
    let mut idle = Vec::new();
    for index in 0..count {
        let mut stream = raw(&server)?;
        // A third has said nothing yet, and a third has begun to.
        match index % 3 {
            0 => stream.write_all(b"PING\r\n")?,
            1 => stream.write_all(b"*2\r\n$4\r\nPI")?,
            _ => {}
        }
        idle.push(stream);
    }
    wait_until("the acceptance of all", || {
        Ok(number(&mut control, "connected_clients")? == count as u64 + 1)
    })?;
    let each = resident_bytes(server.pid())?.saturating_sub(before) / count as u64;
    ensure!(each < 24 * 1024, "{each} bytes of memory for each idle connection");
    for round in 0..2000 {
        let set = control.call(&["SET", &format!("key:{}", round % 50), &round.to_string()])?;
        ensure!(set == Reply::Status(b"OK".to_vec()));
        ensure!(control.call_text("DBSIZE")? == Reply::Integer(50.min(round + 1)));
    }
    // They are idle, not dead.
    for index in (0..count).step_by(97) {
        let (rest, expected): (&[u8], &[u8]) = match index % 3 {
            0 => (b"", b"+PONG\r\n"),
            1 => (b"NG\r\n$1\r\nx\r\n", b"$1\r\nx\r\n"),
            _ => (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
        };
        idle[index].write_all(rest)?;
        let mut reply = vec![0; expected.len()];
        idle[index].read_exact(&mut reply)?;
        ensure!(reply == expected, "{reply:?} instead of {expected:?}");
    }
    drop(idle);
    wait_until_alone(&mut control)
}

/// Puts a connection in one of the states in which it may be when it ends.
fn begin_something(stream: &mut TcpStream, state: usize) -> std::io::Result<()> {
    stream.write_all(match state % 9 {
        0 => b"",
        1 => b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nbegun",
        2 => b"SUBSCRIBE a b\r\nPSUBSCRIBE p*\r\nSSUBSCRIBE s\r\n",
        3 => b"WATCH k\r\nMULTI\r\nSET k 1\r\n",
        4 => b"BLPOP none 0\r\n",
        5 => b"BLMOVE none other LEFT LEFT 0\r\nPING\r\n",
        6 => b"MONITOR\r\n",
        7 => b"HELLO 3\r\nCLIENT TRACKING OFF\r\nBZPOPMIN none 0\r\n",
        _ => b"QUIT\r\n",
    })
}

/// More connections than the acceptor takes of one listener at a time: no event announces the rest.
#[test]
fn all_who_come_at_once_are_accepted() -> Result<()> {
    let longest = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    let longest = longest.trim().parse().unwrap_or(128);
    let server = start(&[("maxclients", "11000"), ("tcp-backlog", "4096")])?;
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).context("a process id")?;
    kill_process(pid, Signal::STOP)?;
    let mut streams = Vec::new();
    for _ in 0..possible(2500).min(longest) {
        streams.push(raw(&server)?);
    }
    kill_process(pid, Signal::CONT)?;
    for (at, stream) in streams.iter_mut().enumerate() {
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).with_context(|| format!("connection {at}"))?;
        ensure!(&answer == b"+PONG\r\n", "{answer:?}");
    }
    Ok(())
}

#[test]
fn connections_come_and_go_by_the_thousand() -> Result<()> {
    const ROUNDS: usize = 8;
    let server = start(&[("maxclients", "11000")])?;
    let mut control = server.connect()?;
    let count = possible(1000);
    ping(&mut control)?;
    let (files, mut resident) = (open_files(server.pid())?, 0);
    for round in 0..ROUNDS {
        let mut streams = Vec::new();
        for state in 0..count {
            let mut stream = raw(&server)?;
            begin_something(&mut stream, state)?;
            if state % 2 == 0 {
                // Unread bytes, or none: some end by a reset, others in order.
                stream.set_nonblocking(true)?;
                let _ = stream.read(&mut [0; 64]);
            }
            streams.push(stream);
            // Some end while others are still beginning.
            if state % 5 == round % 5 {
                streams.swap_remove(state % streams.len());
            }
        }
        ping(&mut control)?;
        drop(streams);
        wait_until_alone(&mut control)?;
        ensure!(control.call_text("DBSIZE")? == Reply::Integer(0));
        if round == ROUNDS / 2 {
            resident = resident_bytes(server.pid())?;
        }
    }
    wait_until("the closing of all files", || Ok(open_files(server.pid())? <= files))?;
    let grown = resident_bytes(server.pid())?.saturating_sub(resident);
    ensure!(grown < 16 * MEGABYTE, "{grown} bytes more after as many connections again");
    Ok(())
}

// ---- Those who do not read ----------------------------------------------------------------------

#[test]
fn a_subscriber_that_does_not_read_is_closed() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "pubsub 2mb 0 0")])?;
    let mut deaf = server.connect()?;
    deaf.call_text("SUBSCRIBE news")?;
    let mut listening = server.connect()?;
    listening.call_text("SUBSCRIBE other")?;
    let mut publisher = server.connect()?;
    let before = resident_bytes(server.pid())?;
    let message = "m".repeat(100_000);
    let mut sent = 0;
    // The sockets' own buffers have room for some megabytes besides.
    while publisher.call(&["PUBLISH", "news", &message])? == Reply::Integer(1) {
        sent += 1;
        ensure!(sent < 1000, "100 MB wait for a client that does not read");
        let grown = resident_bytes(server.pid())?.saturating_sub(before);
        ensure!(grown < 24 * MEGABYTE, "{grown} bytes more");
    }
    ensure!(sent > 20, "closed after {sent} messages, before the limit");
    ensure!(publisher.call_text("PUBLISH other still")? == Reply::Integer(1));
    let Received::Reply(Reply::Array(push)) = listening.receive()? else { bail!("no message") };
    ensure!(push[2] == Reply::Bulk(b"still".to_vec()));
    // What had been sent may still be read, but that is all: then the connection ends.
    let mut read = 0;
    while matches!(deaf.receive(), Ok(Received::Reply(_))) {
        read += 1;
        ensure!(read <= sent);
    }
    ensure!(read < sent, "all {sent} messages came through");
    Ok(())
}

#[test]
fn replies_that_nobody_reads_are_bounded() -> Result<()> {
    let server = start(&[("client-output-buffer-limit", "normal 4mb 0 0")])?;
    let mut control = server.connect()?;
    control.call(&["SET", "big", &"v".repeat(10_000)])?;
    let before = resident_bytes(server.pid())?;
    let mut greedy = raw(&server)?;
    greedy.set_write_timeout(Some(Duration::from_millis(500)))?;
    let requests = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(1000);
    for _ in 0..100 {
        // Either it is closed, or its requests are not taken as long as it reads nothing.
        if greedy.write_all(&requests).is_err() {
            break;
        }
        let grown = resident_bytes(server.pid())?.saturating_sub(before);
        ensure!(grown < 48 * MEGABYTE, "{grown} bytes more");
        ping(&mut control)?;
    }
    drop(greedy);
    wait_until_alone(&mut control)
}

#[test]
fn clients_together_stay_within_the_limit() -> Result<()> {
    const LIMIT: u64 = 20 * MEGABYTE;
    let server = start(&[("maxmemory-clients", "20mb")])?;
    let mut control = server.connect()?;
    // Being small saves no client when a protected client alone takes more than the limit.
    control.call_text("CLIENT NO-EVICT ON")?;
    let mut protected = raw(&server)?;
    protected.write_all(b"CLIENT NO-EVICT ON\r\n")?;
    protected.read_exact(&mut [0; 5])?;
    let mut greedy: Vec<_> = (0..5).map(|_| raw(&server)).collect::<Result<_>>()?;
    // Each sends a part of an argument that never ends; the protected one most of all.
    for stream in greedy.iter_mut().chain([&mut protected]) {
        stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$400000000\r\n")?;
    }
    let part = vec![b'x'; MEGABYTE as usize];
    for _ in 0..8 {
        protected.write_all(&part)?;
        for stream in &mut greedy {
            // It may have been closed already.
            let _ = stream.write_all(&part);
        }
        wait_until("the eviction of the largest", || {
            Ok(number(&mut control, "mem_clients_normal")? < LIMIT)
        })?;
    }
    wait_until("the eviction of most", || Ok(number(&mut control, "evicted_clients")? >= 3))?;
    protected.write_all(&part)?;
    let listed = control.call_text("CLIENT LIST")?;
    let listed = String::from_utf8_lossy(listed.text().unwrap_or_default()).into_owned();
    ensure!(listed.matches("flags=e ").count() == 2, "a protected client has gone:\n{listed}");
    drop(protected);
    // Lowered under those that are idle, the limit closes them too.
    let set = control.call_text("CONFIG SET maxmemory-clients 1mb")?;
    ensure!(set == Reply::Status(b"OK".to_vec()), "{set:?}");
    wait_until_alone(&mut control)
}

#[test]
fn a_late_reader_gets_everything_in_order() -> Result<()> {
    const REQUESTS: usize = 20_000;
    let server = start(&[])?;
    let mut client = server.connect()?;
    let padding = "p".repeat(1000);
    let mut requests = Vec::new();
    for number in 0..REQUESTS {
        encode(&["ECHO", &format!("{number}:{padding}")], &mut requests);
    }
    let mut sender = raw(&server)?;
    let reader = sender.try_clone()?;
    thread::scope(|scope| -> Result<()> {
        let sent = scope.spawn(move || sender.write_all(&requests));
        thread::sleep(Duration::from_millis(300));
        ping(&mut client)?;
        let mut reader = std::io::BufReader::new(reader);
        let mut reply = Vec::new();
        for number in 0..REQUESTS {
            let expected = format!("{number}:{padding}");
            let expected = format!("${}\r\n{expected}\r\n", expected.len());
            reply.resize(expected.len(), 0);
            reader.read_exact(&mut reply)?;
            ensure!(reply == expected.as_bytes(), "reply {number} is another's");
        }
        sent.join().ok().context("the sender panicked")??;
        Ok(())
    })
}

// ---- Those who send little, or nonsense ---------------------------------------------------------

#[test]
fn requests_that_trickle_in_are_answered() -> Result<()> {
    const CLIENTS: usize = 100;
    let server = start(&[])?;
    let mut streams: Vec<_> = (0..CLIENTS).map(|_| raw(&server)).collect::<Result<_>>()?;
    let requests: Vec<_> = (0..CLIENTS)
        .map(|index| {
            let mut request = Vec::new();
            encode(&["SET", &format!("key:{index}"), &index.to_string()], &mut request);
            request.extend_from_slice(format!("GET \"key:{index}\"\r\n").as_bytes());
            request
        })
        .collect();
    let longest = requests.iter().map(Vec::len).max().unwrap_or(0);
    for position in 0..longest {
        for (stream, request) in streams.iter_mut().zip(&requests) {
            if let Some(byte) = request.get(position) {
                stream.write_all(&[*byte])?;
            }
        }
    }
    for (index, stream) in streams.iter_mut().enumerate() {
        let text = index.to_string();
        let expected = format!("+OK\r\n${}\r\n{text}\r\n", text.len());
        let mut reply = vec![0; expected.len()];
        stream.read_exact(&mut reply)?;
        ensure!(reply == expected.as_bytes());
    }
    Ok(())
}

/// For whatever reason a connection waits, requests that arrive meanwhile must be looked at
/// afterwards.
#[test]
fn what_arrives_while_a_connection_is_held_back_is_answered_afterwards() -> Result<()> {
    let server = start(&[("appendonly", "yes")])?;
    let (mut control, mut client) = (server.connect()?, server.connect()?);
    let Reply::Integer(id) = client.call_text("CLIENT ID")? else { bail!("no number") };
    let (begin, end) = ("CLIENT PAUSE 100000 WRITE", "CLIENT UNPAUSE".to_owned());
    let unblock = format!("CLIENT UNBLOCK {id}");
    for (before, held, after) in [
        (begin, "SET a 1", &end),
        ("PING", "BLPOP b 0", &unblock),
        ("PING", "WAITAOF 0 1 0", &unblock),
    ] {
        control.call_text(before)?;
        let words: Vec<&str> = held.split(' ').collect();
        client.send(&words)?;
        wait_until("the client's waiting", || Ok(number(&mut control, "blocked_clients")? == 1))?;
        let before = number(&mut control, "total_net_input_bytes")?;
        // Some that are small, and one that is received in parts.
        let large = "x".repeat(3 * MEGABYTE as usize);
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                client.send(&["ECHO", "small"])?;
                client.send(&["ECHO", &large])?;
                client.send(&["ECHO", "last"])
            });
            // More of it than that may stay in the sockets until the connection goes on.
            wait_until("the beginning of the input", || {
                Ok(number(&mut control, "total_net_input_bytes")? > before + 100_000)
            })?;
            control.call_text(after)?;
            sending.join().expect("sending does not panic")
        })?;
        client.receive()?;
        for expected in ["small", &large, "last"] {
            let expected = Reply::Bulk(expected.as_bytes().to_vec());
            ensure!(client.receive()? == Received::Reply(expected), "{held}");
        }
    }
    Ok(())
}

#[test]
fn what_is_only_announced_costs_nothing() -> Result<()> {
    let server = start(&[])?;
    let mut control = server.connect()?;
    let before = resident_bytes(server.pid())?;
    let mut streams = Vec::new();
    for _ in 0..50 {
        for announcement in [
            &b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n"[..],
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nbegun",
            b"*1000000000\r\n",
            b"*2147483647\r\n$4\r\nMSET\r\n$1\r\nk\r\n",
            b"*1048576\r\n$3\r\nDEL\r\n",
        ] {
            let mut stream = raw(&server)?;
            stream.write_all(announcement)?;
            streams.push(stream);
        }
    }
    ping(&mut control)?;
    thread::sleep(Duration::from_millis(200));
    let grown = resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 32 * MEGABYTE, "{grown} bytes more for 250 announcements");
    drop(streams);
    wait_until_alone(&mut control)
}

#[test]
fn replies_arrive_before_the_end_of_a_connection_whatever_comes_behind_their_requests() -> Result<()>
{
    let (server, web_port) = Server::start_with_http(&[])?;
    let text = "t".repeat(400_000);
    server.connect()?.call(&["SET", "text", &text])?;
    let get = b"GET text\r\n".repeat(3);
    let asked = |more: &str| format!("GET /v1/keys/text HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let pages = [asked("").repeat(2), asked("Connection: close\r\n")].concat().into_bytes();
    // More than a megabyte is more than is thrown away at once.
    for length in [100_000, 300_000, 1_500_000] {
        let junk = vec![b'x'; length];
        let pings = b"PING\r\n".repeat(length / 6);
        for (port, requests, behind) in [
            (server.port(), &get, [b"QUIT\r\n", &pings[..]].concat()),
            (server.port(), &get, [b"*1\r\n$x\r\n", &junk[..]].concat()),
            (web_port, &pages, junk.clone()),
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let (mut sending, all) = (stream.try_clone()?, [requests, &behind[..]].concat());
            let sender = thread::spawn(move || sending.write_all(&all));
            // So that much of it waits in the sockets.
            thread::sleep(Duration::from_millis(100));
            let mut received = Vec::new();
            let end = stream.read_to_end(&mut received);
            let count = received.len();
            end.with_context(|| format!("{count} bytes on {port}, {length} behind"))?;
            ensure!(count > 3 * text.len(), "{count} bytes on {port}, {length} behind");
            sender.join().expect("the sender does not panic")?;
        }
    }
    Ok(())
}

/// A client that takes nothing of what waits for it leaves the others their time.
#[test]
fn requests_are_answered_at_a_stop_beside_clients_that_read_nothing() -> Result<()> {
    let (mut server, web_port) = Server::start_with_http(&[("threads", "1")])?;
    let mut control = server.connect()?;
    control.call(&["SET", "large", &"x".repeat(3_000_000)])?;
    let mut deaf = raw(&server)?;
    deaf.write_all(&b"GET large\r\n".repeat(20))?;
    let mut deaf_web = Web::connect(web_port)?;
    for _ in 0..3 {
        deaf_web.request("GET /v1/keys/large", &[], b"")?;
    }
    // Behind one wait, more comes than is thrown away at once.
    let junk =
        [b"PUT /v1/keys/k HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n", &[b'x'; 600_000][..]];
    let mut waiting = Vec::new();
    for behind in [Vec::new(), junk.concat(), Vec::new()] {
        let mut stream = TcpStream::connect(("127.0.0.1", web_port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let head = "POST /v1/command HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n";
        stream.write_all(&[head.as_bytes(), br#"["BLPOP","list","0"]"#].concat())?;
        waiting.push((stream, behind));
    }
    wait_until("the waits", || Ok(number(&mut control, "blocked_clients")? == 3))?;
    let mut senders = Vec::new();
    for (stream, behind) in &mut waiting {
        let (mut sending, behind) = (stream.try_clone()?, std::mem::take(behind));
        // The connection may be closed before all of it was taken.
        senders.push(thread::spawn(move || drop(sending.write_all(&behind))));
    }
    thread::sleep(Duration::from_millis(100));
    server.terminate()?;
    for (number, (stream, _)) in waiting.iter_mut().enumerate() {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).with_context(|| format!("wait {number}"))?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer.starts_with("HTTP/1.1 503 "), "wait {number}: {answer:?}");
    }
    senders.into_iter().for_each(|sender| sender.join().expect("the sender does not panic"));
    Ok(())
}

/// The input of other protocols' clients, and of no client.
fn nonsense(random: &mut Random) -> Vec<u8> {
    let random_bytes = |random: &mut Random, length: usize| -> Vec<u8> {
        (0..length).map(|_| random.bits() as u8).collect()
    };
    match random.below(9) {
        0 => b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".to_vec(),
        1 => b"POST /x HTTP/1.1\r\nContent-Length: 20\r\n\r\nSET k v\r\n".to_vec(),
        // The beginning of a TLS connection.
        2 => [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &random_bytes(random, 500)]
            .concat(),
        3 => b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        4 => b"*-5\r\n*abc\r\n".to_vec(),
        5 => [&b"*2\r\n$-3\r\n"[..], &random_bytes(random, 50)].concat(),
        6 => vec![b'x'; 200_000],
        7 => b"\r\n\n\r\n".repeat(1000),
        _ => {
            let length = random.below(5000);
            random_bytes(random, length)
        }
    }
}

#[test]
fn nonsense_is_refused_and_nobody_else_notices() -> Result<()> {
    const SENDERS: u64 = 6;
    let mut server = start(&[])?;
    let mut control = server.connect()?;
    let before = resident_bytes(server.pid())?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let (server, done) = (&server, &done);
        let senders: Vec<_> = (0..SENDERS)
            .map(|seed| {
                scope.spawn(move || -> Result<()> {
                    let mut random = Random::new(seed);
                    for _ in 0..300 {
                        let mut stream = raw(server)?;
                        // It may be closed before all is sent; what comes back is not of interest.
                        let _ = stream.write_all(&nonsense(&mut random));
                        let _ = stream.shutdown(std::net::Shutdown::Write);
                        let _ = stream.read_to_end(&mut Vec::new());
                    }
                    Ok(())
                })
            })
            .collect();
        let decent = scope.spawn(move || -> Result<()> {
            let mut client = server.connect()?;
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                count += 1;
                ensure!(client.call_text("INCR decent")? == Reply::Integer(count));
            }
            Ok(())
        });
        let sent: Vec<_> = senders.into_iter().map(|sender| sender.join()).collect();
        done.store(true, Ordering::Relaxed);
        decent.join().ok().context("the decent client panicked")??;
        for result in sent {
            result.ok().context("a sender panicked")??;
        }
        Ok(())
    })?;
    wait_until_alone(&mut control)?;
    let keys = control.call_text("KEYS *")?;
    ensure!(keys == Reply::Array(vec![Reply::Bulk(b"decent".to_vec())]), "{keys:?}");
    let grown = resident_bytes(server.pid())?.saturating_sub(before);
    ensure!(grown < 32 * MEGABYTE, "{grown} bytes more");
    ensure!(server.is_running(), "the server is gone:\n{}", server.log_tail());
    Ok(())
}

/// Large strings are received in their place, between what comes before and behind them.
#[test]
fn large_strings_between_small_ones_arrive_whole() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    for size in [15_000, 16_384, 33_000, 200_000, 300_000, 1_000_000] {
        let texts = ["a", "b", "c"].map(|byte| byte.repeat(size));
        let mut requests = Vec::new();
        for text in &texts {
            encode(&["SET", "small", &size.to_string()], &mut requests);
            encode(&["MSET", "large", text, "other", text], &mut requests);
            encode(&["GET", "large"], &mut requests);
            encode(&["STRLEN", "other"], &mut requests);
        }
        client.send_raw(&requests)?;
        for text in &texts {
            let ok = || Reply::Status(b"OK".to_vec());
            let length = Reply::Integer(i64::try_from(size)?);
            for expected in [ok(), ok(), Reply::Bulk(text.clone().into_bytes()), length] {
                ensure!(client.receive()? == Received::Reply(expected), "{size} bytes");
            }
        }
    }
    Ok(())
}

#[test]
fn nothing_behind_an_error_is_run() -> Result<()> {
    let server = start(&[])?;
    let mut stream = raw(&server)?;
    let commands = b"SET smuggled 1\r\n".repeat(5000);
    let _closed_meanwhile = stream.write_all(&[b"*1\r\n$x\r\n", &*commands].concat());
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    ensure!(["", "-ERR Protocol error: invalid bulk length\r\n"].contains(&&*answer), "{answer}");
    ensure!(server.connect()?.call_text("EXISTS smuggled")? == Reply::Integer(0));
    Ok(())
}

#[test]
fn much_that_comes_together_with_a_password_is_run() -> Result<()> {
    const COMMANDS: usize = 5000;
    let server = start(&[("requirepass", "secret")])?;
    let mut stream = raw(&server)?;
    stream.write_all(&[b"AUTH secret\r\n".to_vec(), b"INCR n\r\n".repeat(COMMANDS)].concat())?;
    stream.write_all(b"QUIT\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let numbers: String = (1..=COMMANDS).map(|number| format!(":{number}\r\n")).collect();
    ensure!(answer == format!("+OK\r\n{numbers}+OK\r\n").into_bytes());
    Ok(())
}
