//! Clients that want the server to be busy with them alone, beside a few that have logged in before
//! and work: these get every answer, and the right one, the memory of the process stays within a
//! bound, and the log within a line a second for each kind of trouble.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustls::{ClientConnection, RootCertStore};
use tests::certificates::Certificates;
use tests::client::{Client, encode};
use tests::observe::{number, wait_until};
use tests::process::peak_resident_bytes;
use tests::server::{Server, Target, free_port};
use tests::web::Web;

use super::{Gust, done, integer, together, with_server};

const PASSWORD: &str = "secret";
/// Clients that work.
const GOOD: usize = 3;
/// Most clients at a time: the hostile ones want more.
const MOST: usize = 200;
/// Connections that one hostile client has at a time.
const AT_ONCE: usize = 60;
/// The most that the process may have resident at any time. An empty one has some 30 MB.
const BOUND: u64 = 240 << 20;
/// What may stay in use when the hostile clients have gone.
const MAY_REMAIN: u64 = 16 << 20;
/// Lines that strangers cause: one of each a second.
const TROUBLES: [&str; 5] = [
    "A login failed",
    "max number of clients reached",
    "Error accepting a client connection",
    "which sent POST",
    "Client closed",
];

/// Where a server listens.
#[derive(Clone, Copy)]
struct Ports {
    redis: u16,
    http: u16,
    tls: u16,
    https: u16,
}

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let certificates = Certificates::make()?;
    let (mut server, ports) = start(&certificates)?;
    let begun = Instant::now();
    let mut control = logged_in(ports.redis)?;
    done(&mut control, &["SET", "large", &"x".repeat(100_000)])?;
    let before = number(&mut control, "used_memory")?;
    let mut good: Vec<Client> = (1..GOOD).map(|_| logged_in(ports.redis)).collect::<Result<_>>()?;
    let mut page = Web::connect(ports.http)?;
    ensure!(page.ask("PUT /v1/keys/page", &[&bearer(PASSWORD)], b"0")?.status == 201);
    let hello = hello()?;
    let branches = [(); 8].map(|()| gust.branch());
    let [one, two, three, four, five, six, seven, eight] = branches;
    let left = AtomicUsize::new(0);
    let hostile = |part: fn(Ports, &mut Gust, &mut Crowd, &[u8]) -> Result<()>, mut own: Gust| {
        let (hello, left) = (&hello, &left);
        left.fetch_add(1, Ordering::SeqCst);
        let play = move || {
            let mut crowd = Crowd::default();
            let mut result = Ok(());
            while result.is_ok() && own.goes_on() {
                result = part(ports, &mut own, &mut crowd, hello);
                own.rest(20_000);
            }
            left.fetch_sub(1, Ordering::SeqCst);
            result
        };
        Box::new(play) as super::Part<'_>
    };
    let mut parts = vec![
        hostile(connect_only, one),
        hostile(say_a_part, two),
        hostile(guess, three),
        hostile(announce_much, four),
        hostile(flood_pages, five),
        hostile(listen_to_much, six),
        hostile(read_nothing, seven),
        hostile(shake_hands, eight),
    ];
    for (index, client) in good.iter_mut().enumerate() {
        let left = &left;
        parts.push(Box::new(move || work(client, index, left)));
    }
    parts.push(Box::new(|| work_by_page(&mut page, &left)));
    let result = together(parts).and_then(|()| recover(&mut control, before, ports));
    let peak = peak_resident_bytes(server.pid());
    let log = server.log();
    with_server(result, &mut server)?;
    let peak = peak?;
    ensure!(peak <= BOUND, "the process has taken {} MB", peak >> 20);
    let most = begun.elapsed().as_secs() as usize + 2;
    for trouble in TROUBLES {
        let lines = log.lines().filter(|line| line.contains(trouble));
        let count = lines.clone().count();
        ensure!(count <= most, "{count} times in {most} seconds: {trouble}");
        for line in lines {
            ensure!(line.contains("127.0.0.1:"), "it names no address: {line}");
        }
    }
    Ok(())
}

fn start(certificates: &Certificates) -> Result<(Server, Ports)> {
    let text = |path: std::path::PathBuf| path.display().to_string();
    let files = [text(certificates.server()), text(certificates.key())];
    let most = MOST.to_string();
    for attempt in 1.. {
        let ports = [free_port()?, free_port()?, free_port()?];
        let [http, tls, https] = ports.map(|port| port.to_string());
        let options = [
            ("threads", "2"),
            ("requirepass", PASSWORD),
            ("maxclients", &most),
            ("authentication-timeout", "2"),
            ("client-output-buffer-limit", "normal 1mb 0 0"),
            ("client-query-buffer-limit", "1mb"),
            ("maxmemory-clients", "64mb"),
            // A follower of changes leaves this much behind, for others that go on where it was.
            ("changes-backlog-size", "4mb"),
            ("http-port", &http),
            ("tls-port", &tls),
            ("https-port", &https),
            ("tls-auth-clients", "no"),
            ("tls-cert-file", &files[0]),
            ("tls-key-file", &files[1]),
        ];
        match Server::start(Target::Dunlin, &options) {
            Ok(server) if !server.log().contains("is not served") => {
                let [http, tls, https] = ports;
                let redis = server.port();
                return Ok((server, Ports { redis, http, tls, https }));
            }
            Err(error) if attempt >= 5 => return Err(error),
            _ => {}
        }
    }
    unreachable!("an attempt succeeds or is the last")
}

fn bearer(password: &str) -> String {
    format!("Authorization: Bearer {password}")
}

fn logged_in(port: u16) -> Result<Client> {
    let mut client = Client::connect(port)?;
    done(&mut client, &["AUTH", PASSWORD])?;
    Ok(client)
}

/// The first words of a client of TLS.
fn hello() -> Result<Vec<u8>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut session = ClientConnection::new(Arc::new(config), "localhost".try_into()?)?;
    let mut hello = Vec::new();
    session.write_tls(&mut hello)?;
    Ok(hello)
}

// ---- Those who work -----------------------------------------------------------------------------

/// Writes and reads what nobody else touches, as long as there are hostile clients.
fn work(client: &mut Client, index: usize, left: &AtomicUsize) -> Result<()> {
    let (counter, text) = (format!("counter:{index}"), format!("text:{index}"));
    let mut count = 0;
    while left.load(Ordering::SeqCst) > 0 {
        count += 1;
        let value = format!("{count}:{}", "v".repeat(count % 2000));
        ensure!(integer(client, &format!("INCR {counter}"))? == count as i64, "INCR {count}");
        done(client, &["SET", &text, &value])?;
        let read = client.call(&["GET", &text])?;
        ensure!(read.text() == Some(value.as_bytes()), "GET after {count} was answered {read:?}");
        done(client, &["PUBLISH", "news", "x"])?;
    }
    ensure!(count > 0, "it has done nothing");
    Ok(())
}

fn work_by_page(page: &mut Web, left: &AtomicUsize) -> Result<()> {
    let mut count = 0;
    while left.load(Ordering::SeqCst) > 0 {
        count += 1;
        let value = count.to_string();
        let put = page.ask("PUT /v1/keys/page", &[&bearer(PASSWORD)], value.as_bytes())?;
        ensure!(put.status == 204, "PUT {count} was answered {}", put.status);
        let read = page.ask("GET /v1/keys/page", &[&bearer(PASSWORD)], b"")?;
        ensure!(read.text() == value, "GET after {count} was answered {read:?}");
    }
    Ok(())
}

/// When the hostile clients have gone, so has what was kept for them, and others come in.
fn recover(control: &mut Client, before: u64, ports: Ports) -> Result<()> {
    wait_until("the end of the hostile clients", || {
        Ok(number(control, "connected_clients")? <= GOOD as u64 + 1)
    })?;
    wait_until("the memory of the hostile clients", || {
        done(control, &["MEMORY", "PURGE"])?;
        Ok(number(control, "used_memory")? <= before + MAY_REMAIN)
    })?;
    // On a busy machine connections that have ended already may still wait to be accepted.
    wait_until("room for others", || Ok(logged_in(ports.redis).is_ok()))?;
    wait_until("room for pages", || {
        let answer = Web::connect(ports.http)?.ask("GET /healthz", &[], b"");
        Ok(answer.is_ok_and(|answer| answer.status == 200))
    })?;
    Ok(())
}

// ---- Those who do not ---------------------------------------------------------------------------

/// Connections of one hostile client: the oldest go when there are too many.
#[derive(Default)]
struct Crowd(VecDeque<TcpStream>);

impl Crowd {
    /// Connects and sends this, as far as the server takes it.
    fn send(&mut self, port: u16, bytes: &[u8]) {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(5)));
            let _ = stream.write_all(bytes);
            self.0.push_back(stream);
        }
        if self.0.len() > AT_ONCE {
            self.0.pop_front();
        }
    }

    /// Says one more byte, or reads one, on each connection.
    fn drag_on(&mut self) {
        let mut byte = [0];
        self.0.retain_mut(|stream| {
            let _ = stream.set_nonblocking(true);
            let is_open = match stream.read(&mut byte) {
                Ok(count) => count > 0,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            let _ = stream.write(b"x");
            let _ = stream.set_nonblocking(false);
            is_open
        });
    }
}

/// A connection that has the password.
fn known(port: u16) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(300))).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(50))).ok()?;
    stream.write_all(format!("AUTH {PASSWORD}\r\n").as_bytes()).ok()?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).ok()?;
    (&answer == b"+OK\r\n").then_some(stream)
}

fn connect_only(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    for _ in 0..gust.random.between(1, 200) {
        let port = *gust.random.pick(&[ports.redis, ports.http, ports.tls, ports.https]);
        crowd.send(port, b"");
    }
    if gust.random.percent(50) {
        crowd.0.clear();
    }
    Ok(())
}

fn say_a_part(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, hello: &[u8]) -> Result<()> {
    let head = b"POST /v1/command HTTP/1.1\r\nHost: localhost\r\n";
    let chunked =
        [&head[..], b"Authorization: Bearer secret\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"]
            .concat();
    let body =
        [&head[..], b"Authorization: Bearer secret\r\nContent-Length: 900000\r\n\r\n["].concat();
    for _ in 0..10 {
        let cut = gust.random.below(hello.len());
        let (port, bytes) = *gust.random.pick(&[
            (ports.redis, &b"*2\r\n$4\r\nAU"[..]),
            (ports.redis, b"AUTH sec"),
            (ports.http, &head[..]),
            (ports.http, &chunked),
            (ports.http, &body),
            (ports.tls, &hello[..cut]),
            (ports.https, hello),
            (ports.tls, b"PING\r\n"),
        ]);
        crowd.send(port, bytes);
    }
    crowd.drag_on();
    Ok(())
}

fn guess(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    let name = "n".repeat(gust.random.below(16_000));
    let mut guesses = Vec::new();
    for _ in 0..gust.random.between(1, 300) {
        encode(&["AUTH", &name, "wrong"], &mut guesses);
        encode(&["HELLO", "3", "AUTH", "default", "wrong"], &mut guesses);
    }
    crowd.send(ports.redis, &guesses);
    let request = format!("GET /v1/keys/k HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", bearer("x"));
    crowd.send(ports.http, request.repeat(200).as_bytes());
    crowd.send(ports.redis, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    Ok(())
}

fn announce_much(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    let argument = format!("$16384\r\n{}\r\n", "x".repeat(16_384));
    let nine = format!("*10\r\n{}", argument.repeat(9));
    for _ in 0..5 {
        let bytes = *gust.random.pick(&[
            &b"*2147483647\r\n$3\r\n"[..],
            b"*2\r\n$4\r\nAUTH\r\n$536870912\r\nx",
            b"*11\r\n$4\r\n",
            nine.as_bytes(),
            &[b'x'; 70_000],
        ]);
        crowd.send(ports.redis, bytes);
    }
    // And with the password.
    if let Some(mut stream) = known(ports.redis) {
        let _ = stream.write_all(b"*2147483647\r\n$3\r\nDEL\r\n");
        let _ = stream.write_all(&b"$1\r\nk\r\n".repeat(50_000));
        crowd.0.push_back(stream);
    }
    Ok(())
}

fn flood_pages(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    let own = bearer(PASSWORD);
    let requests = [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3000),
        "GET /v1/dashboard.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(300),
        format!("GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n{own}\r\n\r\n").repeat(30),
        format!("GET /v1/keys/large HTTP/1.1\r\nHost: localhost\r\n{own}\r\n\r\n").repeat(300),
        format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(9000)),
        format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000)),
        format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{}",
            "x".repeat(500_000)
        ),
    ];
    crowd.send(ports.http, gust.random.pick(&requests).as_bytes());
    crowd.drag_on();
    Ok(())
}

fn listen_to_much(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    let Some(mut stream) = known(ports.redis) else { return Ok(()) };
    let form = *gust.random.pick(&["news:N:*", "*:N", "n*:N:*s", "N"]);
    let names: Vec<String> =
        (0..2000).map(|number| form.replace('N', &number.to_string())).collect();
    let mut request = Vec::new();
    let word = if form == "N" { "SUBSCRIBE" } else { "PSUBSCRIBE" };
    encode(&[&[word.to_owned()], &names[..]].concat(), &mut request);
    let _ = stream.write_all(&request);
    crowd.0.push_back(stream);
    crowd.drag_on();
    Ok(())
}

fn read_nothing(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, _: &[u8]) -> Result<()> {
    let own = bearer(PASSWORD);
    match gust.random.below(3) {
        0 => {
            let follow = format!("GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n{own}\r\n\r\n");
            crowd.send(ports.http, follow.as_bytes());
        }
        1 => {
            if let Some(mut stream) = known(ports.redis) {
                let _ = stream.write_all(&b"GET large\r\n".repeat(100));
                crowd.0.push_back(stream);
            }
        }
        _ => {
            if let Some(mut stream) = known(ports.redis) {
                let _ = stream.write_all(b"SUBSCRIBE news\r\n");
                crowd.0.push_back(stream);
            }
        }
    }
    if gust.random.percent(30) {
        crowd.drag_on();
    }
    if crowd.0.len() > AT_ONCE / 2 {
        crowd.0.clear();
    }
    Ok(())
}

fn shake_hands(ports: Ports, gust: &mut Gust, crowd: &mut Crowd, hello: &[u8]) -> Result<()> {
    for _ in 0..gust.random.between(1, 20) {
        let port = *gust.random.pick(&[ports.tls, ports.https]);
        crowd.send(port, hello);
        if gust.random.percent(20) {
            // What it says next is no part of a handshake.
            if let Some(stream) = crowd.0.back_mut() {
                let _ = stream.write_all(&[22, 3, 3, 0x40, 0].repeat(1000));
            }
        }
    }
    Ok(())
}
