//! Clients that leave, whatever they are doing: each is noticed, while others are paused as well,
//! and none is given an element afterwards.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::client::{Client, encode};
use tests::observe::figure;
use tests::random::Random;
use tests::server::{Server, Target};

use super::{Gust, connect, done, integer, send, with_server};

/// How long the server may take to notice. Nothing else goes on.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clients that leave in one round.
const CLIENTS: usize = 24;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let threads = gust.random.between(1, 3).to_string();
    let options = [("threads", threads.as_str()), ("busy-reply-threshold", "20")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let mut rounds = 0;
    while rounds < 2 || gust.goes_on() {
        let paused = rounds % 2 == 1;
        let round = play(&server, paused, gust);
        with_server(round, &mut server)?;
        rounds += 1;
    }
    Ok(())
}

/// All come, begin something and leave; then elements are pushed for which some of them waited.
fn play(server: &Server, paused: bool, gust: &mut Gust) -> Result<()> {
    let mut control = server.connect()?;
    done(&mut control, &["FLUSHALL"])?;
    done(&mut control, &["SET", "large", &"x".repeat(300_000)])?;
    if paused {
        done(&mut control, &["CLIENT", "PAUSE", "600000", "WRITE"])?;
    }
    let mut leavers = Vec::new();
    let mut states = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = connect(server.port())?;
        states.push(begin(&mut stream, &mut gust.random)?);
        leavers.push(stream);
    }
    gust.rest(20_000);
    while !leavers.is_empty() {
        let stream = leavers.swap_remove(gust.random.below(leavers.len()));
        if gust.random.percent(20) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(stream);
        gust.rest(300);
    }
    states.sort_unstable();
    wait_until_alone(&mut control, &states, paused)?;
    if paused {
        done(&mut control, &["CLIENT", "UNPAUSE"])?;
    }
    for _ in 0..CLIENTS {
        done(&mut control, &["RPUSH", "jobs", "job"])?;
    }
    let left = integer(&mut control, "LLEN jobs")?;
    ensure!(
        left == CLIENTS as i64,
        "{CLIENTS} jobs were pushed when all waiting clients had left, and {left} are there; they \
         had left in {states:?}"
    );
    Ok(())
}

/// Brings a client into one of the states in which it is going to leave. Returns the name of that.
pub(crate) fn begin(stream: &mut TcpStream, random: &mut Random) -> Result<&'static str> {
    let mut behind = |command: Vec<&str>| {
        let count = random.below(30_000);
        let mut request = Vec::new();
        encode(&command, &mut request);
        (0..count).for_each(|_| encode(&["PING", "a message of some length"], &mut request));
        request
    };
    let blocked_before_much = behind(vec!["BLPOP", "jobs", "0"]);
    Ok(match random.below(10) {
        0 | 1 => {
            let _ = stream.write_all(&blocked_before_much);
            "BLPOP with commands behind it"
        }
        2 => {
            send(stream, &[vec!["BLPOP", "jobs", "0"]]);
            "BLPOP"
        }
        3 => {
            send(stream, &[vec!["SET", "left", "1"], vec!["BLPOP", "jobs", "0"]]);
            "SET and BLPOP"
        }
        4 => {
            send(stream, &[vec!["WATCH", "jobs"], vec!["MULTI"], vec!["LPOP", "jobs"]]);
            "MULTI"
        }
        5 => {
            let size = random.between(1, 50_000_000);
            let sent = "x".repeat(random.below(200_000).min(size as usize - 1));
            let head = format!("*3\r\n$3\r\nSET\r\n$4\r\nleft\r\n${size}\r\n{sent}");
            let _ = stream.write_all(head.as_bytes());
            "the middle of an argument"
        }
        6 => {
            let large: Vec<_> = (0..100).map(|_| vec!["GET", "large"]).collect();
            send(stream, &large);
            "unread replies"
        }
        7 => {
            send(stream, &[vec!["SUBSCRIBE", "news"]]);
            "SUBSCRIBE"
        }
        8 => {
            send(stream, &[vec!["SET", "left", "1"]]);
            stream.shutdown(Shutdown::Write)?;
            "SET, half-closed"
        }
        _ => {
            let spin = "local t=os.clock()+0.02 while os.clock()<t do end";
            send(stream, &[vec!["EVAL", spin, "0"], vec!["BLPOP", "jobs", "0"]]);
            "a slow script and BLPOP"
        }
    })
}

fn wait_until_alone(control: &mut Client, states: &[&str], paused: bool) -> Result<()> {
    let begin = Instant::now();
    loop {
        // INFO may be refused while a script of theirs still runs.
        let clients = figure(control, "connected_clients").unwrap_or_default();
        let blocked = figure(control, "blocked_clients").unwrap_or_default();
        if clients == "1" && blocked == "0" {
            return Ok(());
        }
        let pause = if paused { ", during CLIENT PAUSE" } else { "" };
        ensure!(
            begin.elapsed() < PATIENCE,
            "all clients have left{pause}, and {clients} are connected, {blocked} blocked; they had \
             left in {states:?}\n{}",
            super::text(&control.call_text("CLIENT LIST")?)
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
