//! Requests over HTTP of a few hundred bytes whose answers are large, from clients that read them,
//! read slowly or leave: the memory of the process stays within a bound that the values give.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::process::peak_resident_bytes;
use tests::server::Server;
use tests::web::Web;

use super::{Gust, connect, done, together, with_server};

/// Large values, their bytes, and how often one request asks for them.
const VALUES: usize = 4;
const VALUE: usize = 4_000_000;
const REPEATED: usize = 60;
const CLIENTS: usize = 2;
/// How long nothing may come.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that the process may have resident at any time: an answer alone is 240 MB.
const BOUND: u64 = 200 << 20;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let (mut server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut control = server.connect()?;
    for index in 0..VALUES {
        done(&mut control, &["SET", &format!("large:{index}"), &"x".repeat(VALUE)])?;
    }
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    for _ in 0..CLIENTS {
        let branch = gust.branch();
        parts.push(Box::new(move || ask(port, branch)));
    }
    let result = together(parts).and_then(|()| {
        // It still answers.
        let answer = Web::connect(port)?.ask("GET /v1/keys/large:0", &[], b"")?;
        ensure!(
            answer.status == 200 && answer.body.len() == VALUE,
            "GET answers {}",
            answer.status
        );
        Ok(())
    });
    let peak = peak_resident_bytes(server.pid());
    with_server(result, &mut server)?;
    let peak = peak?;
    ensure!(
        peak <= BOUND,
        "{CLIENTS} clients asked {REPEATED} times for values of {VALUE} bytes, and the process has \
         taken {} MB",
        peak >> 20
    );
    Ok(())
}

fn ask(port: u16, mut gust: Gust) -> Result<()> {
    let names: Vec<String> =
        (0..REPEATED).map(|index| format!("\"large:{}\"", index % VALUES)).collect();
    let gets: Vec<String> = names.iter().map(|name| format!("[\"GET\",{name}]")).collect();
    let (names, gets) = (names.join(","), gets.join(","));
    let mut rounds = 0;
    while rounds == 0 || gust.goes_on() {
        rounds += 1;
        let (address, body) = match gust.random.below(5) {
            0 => ("/v1/mget", format!("[{names}]")),
            1 => ("/v1/pipeline", format!("[{gets}]")),
            2 => ("/v1/transaction", format!("[{gets}]")),
            3 => ("/v1/command", format!("[\"MGET\",{names}]")),
            _ => ("/pipeline", format!("[{gets}]")),
        };
        let mut stream = connect(port)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut stream, head.as_bytes())?;
        match gust.random.below(4) {
            0 => drop(stream),
            1 => {
                read(&mut stream, 1_000_000, 1)?;
            }
            _ => {
                let slowly = u64::from(gust.random.percent(20));
                let bytes = read(&mut stream, usize::MAX, slowly)?;
                // A refusal for the size of the answer is one too.
                ensure!(bytes > 0, "{address} was not answered");
            }
        }
    }
    Ok(())
}

/// Reads up to this many bytes, with rests of this many milliseconds. Returns how many came.
fn read(stream: &mut TcpStream, most: usize, milliseconds: u64) -> Result<usize> {
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    while total < most {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => total += count,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error.into()),
        }
        sleep(Duration::from_millis(milliseconds));
    }
    Ok(total)
}
