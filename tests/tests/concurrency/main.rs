//! Many clients at once, on four worker threads: what must be atomic is never seen halfway.
//!
//! [`roles`] says who takes part: clients that change keys in ways that leave something constant
//! (a sum, a number of tokens, two values that agree), and clients that look whether it is. They
//! all run together, while others kill connections, pause clients, swap and flush databases.

mod actor;
mod roles;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::observe::wait_until;
use tests::random::Random;
use tests::server::{Server, Target};

use actor::{Actor, World};

fn start() -> Result<Server> {
    Server::start(Target::Dunlin, &[("threads", "4")])
}

fn status(text: &str) -> Reply {
    Reply::Status(text.as_bytes().to_vec())
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

/// Waits until `attempt` is true.
/// Waits until this many clients wait for something.
fn wait_for_blocked(client: &mut Client, count: usize) -> Result<()> {
    let line = format!("blocked_clients:{count}\r\n");
    wait_until("the waiting of clients", || {
        let info = client.call_text("INFO clients")?;
        Ok(info.text().is_some_and(|info| String::from_utf8_lossy(info).contains(&line)))
    })
}

#[test]
fn nothing_is_seen_halfway() -> Result<()> {
    let mut server = start()?;
    let world = World::new(server.port());
    roles::prepare(&mut server.connect()?)?;
    let mut failures = Vec::new();
    thread::scope(|scope| {
        let mut players = Vec::new();
        let mut seed = 1;
        for role in roles::ALL {
            world.writers.fetch_add(if role.writes { role.count } else { 0 }, Ordering::SeqCst);
        }
        for role in roles::ALL {
            for _ in 0..role.count {
                seed += 1;
                let world = &world;
                let play = move || -> Result<()> {
                    let played = Actor::new(world, seed, role.is_victim)
                        .and_then(|mut actor| (role.play)(&mut actor));
                    if role.writes {
                        world.writers.fetch_sub(1, Ordering::SeqCst);
                    }
                    if played.is_err() {
                        world.failed.store(true, Ordering::SeqCst);
                    }
                    played
                };
                players.push((role.name, scope.spawn(play)));
            }
        }
        for (name, player) in players {
            match player.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failures.push(format!("{name}: {error:#}")),
                Err(_) => failures.push(format!("{name} panicked")),
            }
        }
    });
    ensure!(failures.is_empty(), "{}\n\n{}", failures.join("\n"), server.log_tail());
    ensure!(server.is_running(), "the server is gone:\n{}", server.log_tail());
    roles::check_at_the_end(&mut server.connect()?, &world)
}

#[test]
fn a_chain_of_moves_is_one_step() -> Result<()> {
    const LINKS: usize = 12;
    let server = start()?;
    let mut control = server.connect()?;
    for round in 0..20 {
        let mut waiting = Vec::new();
        // In another order each round, because the links wait on different threads.
        for link in (0..LINKS).map(|link| (link * 5 + round) % LINKS) {
            let mut client = server.connect()?;
            client.send(
                &format!("BLMOVE link:{link} link:{} LEFT RIGHT 30", link + 1)
                    .split(' ')
                    .collect::<Vec<_>>(),
            )?;
            waiting.push(client);
        }
        wait_for_blocked(&mut control, LINKS)?;
        control.call_text(&format!("RPUSH link:0 {round}"))?;
        let end = control.call_text(&format!("LPOP link:{LINKS}"))?;
        ensure!(end == bulk(&round.to_string()), "{end:?} came to the end");
        for client in &mut waiting {
            ensure!(client.receive()? == Received::Reply(bulk(&round.to_string())));
        }
        ensure!(control.call_text("DBSIZE")? == Reply::Integer(0));
    }
    Ok(())
}

#[test]
fn each_element_wakes_one_client() -> Result<()> {
    const CLIENTS: usize = 40;
    let server = start()?;
    let mut control = server.connect()?;
    for round in 0..10 {
        let mut waiting: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect::<Result<_>>()?;
        for (index, client) in waiting.iter_mut().enumerate() {
            // Two keys each, so that the queues of several slots hold the same client.
            let keys = [format!("queue:{}", index % 5), format!("queue:{}", (index + 1) % 5)];
            client.send(&["BLPOP", &keys[0], &keys[1], "30"])?;
        }
        wait_for_blocked(&mut control, CLIENTS)?;
        // Some wait no longer when the elements come.
        let gone = round * 2;
        waiting.truncate(CLIENTS - gone);
        wait_for_blocked(&mut control, CLIENTS - gone)?;
        let mut left = CLIENTS - gone;
        let barrier = Arc::new(Barrier::new(4));
        let pushed: Vec<_> = (0..4)
            .map(|pusher| -> Result<_> {
                let (mut client, barrier) = (server.connect()?, Arc::clone(&barrier));
                Ok(thread::spawn(move || -> Result<()> {
                    barrier.wait();
                    for number in 0..CLIENTS * 2 {
                        let key = format!("queue:{}", number % 5);
                        client.call(&["RPUSH", &key, &format!("{pusher}:{number}")])?;
                    }
                    Ok(())
                }))
            })
            .collect::<Result<_>>()?;
        for thread in pushed {
            thread.join().ok().context("a pusher panicked")??;
        }
        let mut popped = BTreeSet::new();
        for client in &mut waiting {
            let Received::Reply(Reply::Array(pair)) = client.receive()? else {
                bail!("no element in {round}")
            };
            ensure!(popped.insert(pair[1].text().unwrap_or_default().to_vec()), "{pair:?} twice");
            left -= 1;
        }
        ensure!(left == 0);
        let mut rest = 0;
        for queue in 0..5 {
            let elements = control.call_text(&format!("LRANGE queue:{queue} 0 -1"))?;
            for element in elements.elements().unwrap_or_default() {
                ensure!(popped.insert(element.text().unwrap_or_default().to_vec()));
                rest += 1;
            }
        }
        ensure!(rest + waiting.len() == CLIENTS * 8, "{rest} elements are left");
        control.call_text("FLUSHALL")?;
    }
    Ok(())
}

#[test]
fn a_waiting_client_ends_once() -> Result<()> {
    // Served, unblocked and timed out at nearly the same time: one answer, and no element lost.
    let server = start()?;
    let mut control = server.connect()?;
    let mut waiter = server.connect()?;
    let Reply::Integer(id) = waiter.call_text("CLIENT ID")? else { bail!("CLIENT ID is a number") };
    let mut pusher = server.connect()?;
    let (mut served, mut ended) = (0, 0);
    for round in 0..300 {
        let timeout = if round % 3 == 0 { "0.004" } else { "30" };
        waiter.send(&["BLPOP", "key", timeout])?;
        thread::sleep(Duration::from_micros(500 + (round % 7) * 600));
        let unblock = ["CLIENT", "UNBLOCK", &id.to_string()];
        let push = ["RPUSH", "key", &round.to_string()];
        if round % 2 == 0 {
            control.send(&unblock)?;
            pusher.send(&push)?;
        } else {
            pusher.send(&push)?;
            control.send(&unblock)?;
        }
        let length = pusher.receive()?;
        ensure!(length == Received::Reply(Reply::Integer(1)), "{length:?}");
        control.receive()?;
        match waiter.receive()? {
            Received::Reply(Reply::Array(pair)) => {
                ensure!(pair[1] == bulk(&round.to_string()));
                served += 1;
            }
            Received::Reply(Reply::NilArray) => {
                let element = control.call_text("LPOP key")?;
                ensure!(element == bulk(&round.to_string()), "{element:?} is left");
                ended += 1;
            }
            other => bail!("{other:?}"),
        }
        ensure!(waiter.call_text("PING")? == status("PONG"), "one answer, not two");
        ensure!(control.call_text("EXISTS key")? == Reply::Integer(0));
    }
    ensure!(served + ended == 300 && served > 0);
    Ok(())
}

/// Sends commands that wait, on many connections at once, and receives what they come to.
fn wait_in_vain(server: &Server, seed: u64, ends_at: Instant) -> Result<()> {
    const CONNECTIONS: usize = 40;
    let mut random = Random::new(seed);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect::<Result<_>>()?;
    while Instant::now() < ends_at {
        for client in &mut clients {
            let mut request = Vec::new();
            let keys: Vec<_> = (0..8).map(|_| some_key(&mut random)).collect();
            let name = |index: usize| keys[index].as_str();
            if random.below(4) == 0 {
                encode(&["WATCH", name(0), name(1), name(2), name(3)], &mut request);
                encode(&["PING"], &mut request);
            } else {
                let words = ["BLPOP", name(4), name(5), name(6), name(7), "0.001"];
                encode(&words, &mut request);
                encode(&["UNWATCH"], &mut request);
            }
            client.send_raw(&request)?;
        }
        for client in &mut clients {
            if random.below(10) == 0 {
                // It goes away while it waits or watches.
                *client = server.connect()?;
                continue;
            }
            for _ in 0..2 {
                ensure!(client.receive()? != Received::Closed, "a connection ends by itself");
            }
        }
    }
    Ok(())
}

/// One of few keys, so that clients meet at them, and that soon no client is left at them.
fn some_key(random: &mut Random) -> String {
    format!("key:{}", random.below(60))
}

/// Waits time out, and connections that wait or watch go away, while databases are swapped and
/// flushed: by a thread that has stopped the world and uses the same slots without locks.
#[test]
fn waits_end_beside_swaps_and_flushes() -> Result<()> {
    let mut server = start()?;
    let ends_at = Instant::now() + Duration::from_secs(2);
    let played = thread::scope(|scope| {
        let server = &server;
        let mut players = Vec::new();
        for seed in 1..=6 {
            players.push(scope.spawn(move || wait_in_vain(server, seed, ends_at)));
        }
        players.push(scope.spawn(move || {
            let mut client = server.connect()?;
            while Instant::now() < ends_at {
                for line in ["SWAPDB 0 1", "FLUSHDB", "SWAPDB 1 0", "FLUSHALL"] {
                    ensure!(client.call_text(line)? == status("OK"), "{line}");
                }
            }
            Ok(())
        }));
        let ended: Result<Vec<()>> =
            players.into_iter().map(|player| player.join().expect("nobody panics")).collect();
        ended
    });
    played.with_context(|| server.log_tail())?;
    ensure!(server.is_running(), "the server is gone:\n{}", server.log_tail());
    let mut control = server.connect()?;
    wait_for_blocked(&mut control, 0)
}
