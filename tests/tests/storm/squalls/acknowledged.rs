//! A process is killed while it does large and small writes, or while a write to the file stalls.
//! What it has acknowledged under `everysec` or `no` was given to the system, so it is there after
//! a restart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::server::{Server, Target};

use super::{Gust, stalling_writes, text, together};

/// Clients that write small values, each to keys of its own.
const WRITERS: usize = 4;
/// The largest value.
const LARGEST: usize = 60_000_000;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let mut rounds = 0;
    while rounds < 2 || gust.goes_on() {
        let policy = *gust.random.pick(&["everysec", "no"]);
        let stalls = rounds % 2 == 1;
        play(policy, stalls, gust).map_err(|error| {
            let how = if stalls { "with a write that stalls" } else { "beside large writes" };
            error.context(format!("under {policy}, {how}"))
        })?;
        rounds += 1;
    }
    Ok(())
}

/// One life.
fn play(policy: &str, stalls: bool, gust: &mut Gust) -> Result<()> {
    let options = [("threads", "3"), ("appendonly", "yes"), ("appendfsync", policy)];
    let mut server = Server::start(Target::Dunlin, &options)?;
    if stalls {
        let directory = server.directory().to_string_lossy().into_owned();
        let when = gust.random.between(20, 200);
        let Some(words) = stalling_writes(&directory, 2, &format!("{when}..{}", when + 1)) else {
            return Ok(());
        };
        server.set_wrapper(&words.iter().map(String::as_str).collect::<Vec<_>>());
        server.start_again()?;
    }
    let mut acknowledged = [0; WRITERS];
    let (port, stop) = (server.port(), AtomicBool::new(false));
    let life = Duration::from_millis(gust.random.between(300, 900).unsigned_abs());
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    for (number, last) in acknowledged.iter_mut().enumerate() {
        let stop = &stop;
        // The kill ends it in the middle of something, which is no failure.
        parts.push(Box::new(move || {
            drop(write(port, number, last, stop));
            Ok(())
        }));
    }
    if !stalls {
        let branch = gust.branch();
        let stop = &stop;
        parts.push(Box::new(move || {
            drop(write_large(port, branch, stop));
            Ok(())
        }));
    }
    parts.push(Box::new(|| {
        std::thread::sleep(life);
        server.kill();
        stop.store(true, Ordering::SeqCst);
        Ok(())
    }));
    together(parts)?;
    server.set_wrapper(&[]);
    server.start_again()?;
    let mut client = server.connect()?;
    for (number, last) in acknowledged.into_iter().enumerate() {
        let found = text(&client.call(&["GET", &format!("small:{number}")])?);
        let found: u64 = found.parse().unwrap_or(0);
        ensure!(
            found >= last,
            "client {number} had {last} writes acknowledged, and {found} are there after the kill"
        );
    }
    Ok(())
}

/// Counts up in pipelines, and notes what was acknowledged last.
fn write(port: u16, number: usize, last: &mut u64, stop: &AtomicBool) -> Result<()> {
    const PIPELINE: u64 = 8;
    let mut client = Client::connect(port)?;
    let key = format!("small:{number}");
    let mut value = 0;
    while !stop.load(Ordering::SeqCst) {
        let mut request = Vec::new();
        for index in 1..=PIPELINE {
            encode(&["SET", &key, &(value + index).to_string()], &mut request);
        }
        client.send_raw(&request)?;
        for _ in 0..PIPELINE {
            value += 1;
            match client.receive()? {
                Received::Reply(Reply::Status(_)) => *last = value,
                _ => return Ok(()),
            }
        }
    }
    Ok(())
}

fn write_large(port: u16, mut gust: Gust, stop: &AtomicBool) -> Result<()> {
    let mut client = Client::connect(port)?;
    let value = vec![b'x'; gust.random.between(10_000_000, LARGEST as i64).unsigned_abs() as usize];
    for _ in 0..8 {
        if !stop.load(Ordering::SeqCst) {
            client.call(&[&b"SET"[..], b"large", &value])?;
        }
    }
    Ok(())
}
