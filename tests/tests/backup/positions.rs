//! Restores at positions of random runs.

use tests::observe::{number, wait_for};
use tests::random::Random;
use tests::replication::Traffic;
use tests::server::{Server, Target};

use crate::program::{
    AT_ONCE, Following, back_up, directory, place, position, restore, serve, start,
    wait_until_stored,
};
use crate::state::State;

/// How many positions are restored in all, for `make backups`.
fn count() -> usize {
    std::env::var("DUNLIN_BACKUPS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn seed() -> u64 {
    std::env::var("DUNLIN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Where the stream was and what the server had, each time the writers rested.
type Rests = Vec<((String, u64), State)>;

/// Random writers at a server of this kind while backups run that are killed, with the server, too.
/// Then the state at some of the positions is restored, into a Dunlin and into one of that kind.
fn restore_random_run(target: Target, restored: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut traffic = Traffic::new(seed);
    traffic.fields_expire = false;
    let (store, work) = (directory(), directory());
    let log = work.path().join("log");
    let mut server = Server::start(target, &[AT_ONCE, ("appendonly", "yes")]).unwrap();
    let mut rests: Rests = Vec::new();
    let mut following = None;
    for round in 0..2 * restored {
        let mut client = server.connect().unwrap();
        if following.is_none() {
            following = Some(Following::start(server.port(), store.path(), &log, &[]));
            let own = following.as_ref().unwrap();
            wait_for("the backup is attached", || {
                number(&mut client, "connected_slaves").unwrap() > 0
            });
            if round == 0 {
                own.wait_for("is complete");
            }
        }
        let writes = 1 + random.below(60);
        traffic.write(&mut client, writes).unwrap();
        for _ in 0..random.below(4) {
            traffic.write_what_is_seldom(&mut client).unwrap();
        }
        // What is about to expire is gone before it is looked at.
        std::thread::sleep(std::time::Duration::from_millis(25));
        let before = position(&mut client);
        let state = State::of(&mut client);
        let after = position(&mut client);
        if before == after {
            rests.push((after, state));
        }
        match random.below(6) {
            0 => {
                wait_until_stored(store.path(), rests.last().map_or(0, |rest| rest.0.1));
                following.take().unwrap().kill();
            }
            1 => following.take().unwrap().end(),
            2 if target == Target::Dunlin => {
                wait_until_stored(store.path(), rests.last().map_or(0, |rest| rest.0.1));
                server.kill();
                server.start_again().unwrap();
                wait_for("the backup is attached again", || {
                    let mut client = server.connect().unwrap();
                    number(&mut client, "connected_slaves").unwrap() > 0
                });
            }
            3 => drop(following.take().map(|mut own| {
                own.end();
                back_up(server.port(), store.path(), &["--full"]).good();
            })),
            _ => {}
        }
    }
    match following {
        Some(mut following) => {
            wait_until_stored(store.path(), rests.last().map_or(0, |rest| rest.0.1));
            following.end();
        }
        None => drop(back_up(server.port(), store.path(), &[]).good()),
    }
    // The disaster.
    drop(server);
    assert!(rests.len() >= restored, "only {} rests", rests.len());
    let mut exact = 0;
    for number in 0..restored {
        let (at, expected) = &rests[rests.len() - 1 - number * rests.len() / restored];
        let to = work.path().join(format!("restored-{number}"));
        let said = restore(store.path(), &to, &["--at", &place(at)]).good();
        assert!(said.contains(&format!("restored {}", place(at))), "{said}");
        // Both load the same files, one after the other.
        for loader in [Target::Dunlin, target] {
            let server = serve(loader, &to);
            let found = State::of(&mut server.connect().unwrap());
            let what = format!("seed {seed}, {} of {target:?} in {loader:?}", place(at));
            expected.check(&found, &what);
        }
        assert!(expected.keys() > 0 || number > 0, "the last state is empty");
        exact += 1;
    }
    println!("{target:?}: exact state in {exact} of {restored}");
}

#[test]
fn a_dunlin_is_restored_at_random_positions() {
    restore_random_run(Target::Dunlin, count().div_ceil(2), seed());
}

#[test]
fn a_redis_is_restored_at_random_positions() {
    restore_random_run(Target::Reference, count().div_ceil(4), seed());
}

#[test]
fn a_valkey_is_restored_at_random_positions() {
    restore_random_run(Target::Valkey, count() / 4, seed());
}

#[test]
fn no_transaction_is_restored_by_half() {
    let (store, work) = (directory(), directory());
    let server = start(Target::Dunlin);
    let mut client = server.connect().unwrap();
    let mut following =
        Following::start(server.port(), store.path(), &work.path().join("log"), &[]);
    following.wait_for("is complete");
    let (history, begin) = position(&mut client);
    let mut ends = Vec::new();
    for number in 0..40 {
        for line in ["MULTI", "INCR a", "SELECT 5", "INCR b", "SELECT 0", "RPUSH list x", "EXEC"] {
            client.call_text(line).unwrap();
        }
        ends.push(position(&mut client).1);
        client.call_text(&format!("SET single {number}")).unwrap();
    }
    let end = position(&mut client).1;
    following.end();
    let mut random = Random::new(seed());
    for number in 0..5 {
        let at = begin + 1 + random.below((end - begin) as usize) as u64;
        let to = work.path().join(number.to_string());
        let said = restore(store.path(), &to, &["--at", &format!("{history}:{at}")]).good();
        let reached = said.split(&format!("{history}:")).nth(1).unwrap();
        let reached: u64 = reached.split(',').next().unwrap().parse().unwrap();
        assert!(reached <= at, "{said}");
        let server = serve(Target::Dunlin, &to);
        let mut client = server.connect().unwrap();
        let expected = ends.iter().filter(|end| **end <= at).count().to_string();
        for line in ["GET a", "GET b", "LLEN list"] {
            client.call_text(if line == "GET b" { "SELECT 5" } else { "SELECT 0" }).unwrap();
            let reply = client.call_text(line).unwrap();
            let text = match &reply {
                tests::client::Reply::Integer(number) => number.to_string(),
                reply => String::from_utf8_lossy(reply.text().unwrap_or(b"0")).into_owned(),
            };
            assert_eq!(text, expected, "{line} at {at}: {said}");
        }
    }
}
