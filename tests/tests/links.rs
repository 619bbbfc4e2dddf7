//! Links between primaries and replicas that are cut, slow and silent, and ends that are killed:
//! the replica has what the primary has, and gets all of it no more often than it must.
//!
//! `make links CUTS=200` does more of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::observe::{figure, number, wait_until};
use tests::peers;
use tests::proxy::Proxy;
use tests::random::Random;
use tests::replication::{Traffic, check_alike, follow};
use tests::server::{Server, Target};

/// Who follows whom.
const PAIRS: [(Target, Target); 5] = [
    (Target::Reference, Target::Dunlin),
    (Target::Valkey, Target::Dunlin),
    (Target::Dunlin, Target::Dunlin),
    (Target::Dunlin, Target::Reference),
    (Target::Dunlin, Target::Valkey),
];

fn pairs() -> Vec<(Target, Target)> {
    let mut pairs = PAIRS.to_vec();
    if peers::newest("valkey-server").exists() {
        pairs.extend([
            (Target::NewestValkey, Target::Dunlin),
            (Target::Dunlin, Target::NewestValkey),
        ]);
    }
    pairs
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Options of a primary that keeps enough for every link that comes back.
const PRIMARY: [(&str, &str); 2] =
    [("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "256mb")];

/// Reads keys, and then keeps their slots for some time.
const SLOW_SCRIPT: &str = "for step = 1, 100 do \
        local key = redis.call('RANDOMKEY') \
        if key then redis.call('EXISTS', key) end \
    end \
    for step = 1, 10000000 do end";

/// Runs `body` while clients write.
fn under_writes<R>(
    primary: &Server,
    traffic: [Traffic; 2],
    body: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let over = AtomicBool::new(false);
    let over = &over;
    scope(|scope| {
        let threads = traffic.map(|mut traffic| {
            scope.spawn(move || -> Result<()> {
                let mut writer = primary.connect()?;
                while !over.load(Relaxed) {
                    traffic.write(&mut writer, 20)?;
                    ensure!(!writer.call_text("SELECT 0")?.is_error());
                    traffic.write_what_is_seldom(&mut writer)?;
                    // The link is the slower one.
                    sleep(Duration::from_millis(2));
                }
                Ok(())
            })
        });
        let result = body();
        over.store(true, Relaxed);
        for thread in threads {
            thread.join().expect("no panic")?;
        }
        result
    })
}

/// What happens to a link.
fn disturb(proxy: &Proxy, random: &mut Random) {
    sleep(Duration::from_millis(random.below(40) as u64));
    match random.below(4) {
        0 => proxy.split(1 + random.below(3000), Duration::from_micros(random.below(800) as u64)),
        1 => {
            proxy.hold(true);
            sleep(Duration::from_millis(random.below(100) as u64));
        }
        2 => proxy.split(usize::MAX, Duration::ZERO),
        _ => {}
    }
    proxy.cut();
    proxy.hold(false);
}

fn cuts(primary: Target, replica: Target, seed: u64, count: u64) -> Result<()> {
    let primary = Server::start(primary, &PRIMARY)?;
    let replica = Server::start(replica, &[("busy-reply-threshold", "10")])?;
    // No Valkey before version 9 is told of fields that expire.
    let fields_expire = !replica.connect()?.call_text("HTTL none FIELDS 1 f")?.is_error();
    let proxy = Proxy::start(primary.port())?;
    let mut client = primary.connect()?;
    let traffic = |seed| Traffic { fields_expire, ..Traffic::new(seed) };
    traffic(seed).write(&mut client, 500)?;
    follow(&replica, proxy.port())?;
    let mut other = replica.connect()?;
    wait_until("it follows", || Ok(figure(&mut other, "master_link_status")? == "up"))?;
    let mut random = Random::new(seed);
    under_writes(&primary, [traffic(seed), traffic(seed + 1000)], || {
        for _ in 0..count {
            if random.percent(30) {
                // What its primary sends meanwhile waits. Clients would be refused.
                let done = other.call(&["EVAL_RO", SLOW_SCRIPT, "0"])?;
                ensure!(!done.is_error(), "{done:?}");
            }
            let made = proxy.made();
            disturb(&proxy, &mut random);
            wait_until("it comes back", || Ok(proxy.made() > made))?;
            if random.percent(50) {
                // The others are cut in the middle of their handshake.
                wait_until("it follows", || Ok(figure(&mut other, "master_link_status")? == "up"))?;
            }
        }
        proxy.split(usize::MAX, Duration::ZERO);
        Ok(())
    })?;
    check_alike(&primary, &replica)?;
    // What is emptied later hides what went wrong before.
    ensure!(!replica.log().contains("has failed here: -BUSY"), "{}", replica.log_tail());
    // A Redis that loses its link while it empties a database forgets where it was. The first time,
    // it asks for a history of its own.
    let (all, refused) =
        (number(&mut client, "sync_full")?, number(&mut client, "sync_partial_err")?);
    let is_enough = refused <= 1 && (all == 1 || replica.target() != Target::Dunlin);
    ensure!(is_enough, "{all} copies, {refused} refused: {}", replica.log_tail());
    Ok(())
}

fn all_cuts(is_meant: impl Fn(Target, Target) -> bool) -> Result<()> {
    let count = setting("DUNLIN_CUTS", 8);
    let seed = setting("DUNLIN_SEED", 1);
    for (primary, replica) in pairs().into_iter().filter(|pair| is_meant(pair.0, pair.1)) {
        cuts(primary, replica, seed, count)
            .with_context(|| format!("{replica:?} follows {primary:?}, seed {seed}"))?;
    }
    Ok(())
}

#[test]
fn a_replica_of_others_goes_on_where_it_was() -> Result<()> {
    all_cuts(|primary, _| primary != Target::Dunlin)
}

#[test]
fn replicas_of_this_server_go_on_where_they_were() -> Result<()> {
    all_cuts(|primary, _| primary == Target::Dunlin)
}
