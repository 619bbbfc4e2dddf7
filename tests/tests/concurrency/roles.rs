//! Who takes part: what each changes, and what each makes sure of.
//!
//! | keys | constant |
//! |---|---|
//! | `account:*` | their sum, however amounts are transferred |
//! | `ranking` | the same sum: SORT stores the accounts' amounts there |
//! | `purse`, `score` | the sum of a hash's fields and a sorted set's scores |
//! | `box:*`, `line:*`, `ring:*` | the tokens that are moved between sets and between lists |
//! | `pair:*:a`, `pair:*:b` | both are the same |
//! | `name:*` | exactly one exists |
//! | `mirror`, `origin` | the copy is never ahead |
//! | databases 1 and 2 | one says `left` and the other `right`, whichever is swapped to where |
//! | database 3 | ten keys with the same value, however often it is flushed and filled |
//! | `jobs:*` | each job is taken once |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};

use crate::actor::{Actor, World, number, numbers};

const ACCOUNTS: usize = 20;
const AMOUNT: i64 = 1000;
const SUM: i64 = ACCOUNTS as i64 * AMOUNT;
const TOKENS: usize = 30;
/// Sets, lists and lists in the ring: this many of each.
const PLACES: usize = 4;
const PAIRS: usize = 5;
const NAMES: usize = 5;

/// A part to play.
pub(crate) struct Role {
    pub(crate) name: &'static str,
    /// How many play it.
    pub(crate) count: usize,
    /// Whether it ends by itself; the others end when all of these have.
    pub(crate) writes: bool,
    /// Whether its connections are killed at times.
    pub(crate) is_victim: bool,
    pub(crate) play: fn(&mut Actor<'_>) -> Result<()>,
}

type Play = fn(&mut Actor<'_>) -> Result<()>;

const fn writer(name: &'static str, count: usize, play: Play) -> Role {
    Role { name, count, writes: true, is_victim: false, play }
}

const fn victim(name: &'static str, count: usize, play: Play) -> Role {
    Role { name, count, writes: true, is_victim: true, play }
}

const fn reader(name: &'static str, play: Play) -> Role {
    Role { name, count: 1, writes: false, is_victim: false, play }
}

pub(crate) const ALL: &[Role] = &[
    writer("transfers by WATCH", 2, |actor| actor.times(transfer_by_watch)),
    victim("transfers by WATCH, killed", 2, |actor| actor.times(transfer_by_watch)),
    writer("transfers by MULTI", 1, |actor| actor.times(transfer_by_multi)),
    victim("transfers by MULTI, killed", 2, |actor| actor.times(transfer_by_multi)),
    victim("transfers by an exclusive command", 1, |actor| actor.times(transfer_exclusively)),
    writer("ranks by SORT", 1, |actor| actor.times(rank)),
    victim("moves between hash and sorted set", 2, |actor| actor.times(move_points)),
    victim("moves between sets", 2, |actor| actor.times(move_between_sets)),
    victim("moves between lists", 2, |actor| actor.times(move_between_lists)),
    writer("waits and moves", PLACES, move_around),
    writer("sets pairs", 2, |actor| actor.times(set_pair)),
    writer("renames", 2, |actor| actor.times(rename)),
    writer("copies", 2, |actor| actor.times(copy)),
    writer("swaps databases", 1, |actor| actor.times(swap_databases)),
    writer("flushes a database", 1, flush_and_fill),
    writer("gives jobs", 2, give_jobs),
    writer("publishes", 2, publish),
    reader("sums accounts", |actor| actor.meanwhile(sum_accounts)),
    reader("sums the ranking", |actor| actor.meanwhile(sum_ranking)),
    reader("sums points", |actor| actor.meanwhile(sum_points)),
    reader("counts tokens", |actor| actor.meanwhile(count_tokens)),
    reader("compares pairs", |actor| actor.meanwhile(compare_pairs)),
    reader("looks for the name", |actor| actor.meanwhile(look_for_name)),
    reader("compares the copy", |actor| actor.meanwhile(compare_copy)),
    reader("looks at swapped databases", |actor| actor.meanwhile(look_at_swapped)),
    reader("looks at a flushed database", look_at_flushed),
    reader("walks the keys", |actor| actor.meanwhile(walk)),
    reader("takes jobs", |actor| actor.meanwhile(take_job)),
    reader("takes jobs from the end", |actor| actor.meanwhile(take_job)),
    reader("subscribes", listen),
    reader("subscribes, too", listen),
    reader("kills", |actor| actor.meanwhile(kill)),
    reader("pauses", |actor| actor.meanwhile(pause)),
    reader("operates", |actor| actor.meanwhile(operate)),
];

/// The world before anyone acts.
pub(crate) fn prepare(client: &mut Client) -> Result<()> {
    let mut commands = Vec::new();
    for account in 0..ACCOUNTS {
        commands.push(format!("SET account:{account} {AMOUNT}"));
        commands.push(format!("RPUSH order {account}"));
    }
    for token in 0..TOKENS {
        commands.push(format!("SADD box:{} token:{token}", token % PLACES));
        commands.push(format!("RPUSH line:{} token:{token}", token % PLACES));
        commands.push(format!("RPUSH ring:{} token:{token}", token % PLACES));
    }
    for pair in 0..PAIRS {
        commands.push(format!("MSET pair:{pair}:a 0 pair:{pair}:b 0"));
    }
    for command in [
        "HSET purse a 500 b 500",
        "ZADD score 500 a 500 b",
        "SET name:0 here",
        "MSET origin 0 mirror 0",
        "SELECT 1",
        "SET side left",
        "SELECT 2",
        "SET side right",
    ] {
        commands.push(command.to_owned());
    }
    for command in commands {
        let reply = client.call_text(&command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
    }
    Ok(())
}

/// What must be true when all are done, beyond what the readers have seen.
pub(crate) fn check_at_the_end(client: &mut Client, world: &World) -> Result<()> {
    let accounts = numbers(client.call_text(&format!("MGET {}", all_accounts()))?)?;
    ensure!(accounts.iter().sum::<i64>() == SUM, "{accounts:?}");
    for kind in ["box", "line", "ring"] {
        let mut found = BTreeSet::new();
        for place in 0..PLACES {
            let command = if kind == "box" { "SMEMBERS" } else { "LRANGE" };
            let range = if kind == "box" { "" } else { " 0 -1" };
            let tokens = client.call_text(&format!("{command} {kind}:{place}{range}"))?;
            for token in tokens.elements().unwrap_or_default() {
                let token = token.text().unwrap_or_default().to_vec();
                ensure!(found.insert(token), "a token twice in {kind}");
            }
        }
        ensure!(found.len() == TOKENS, "{kind}: {found:?}");
    }
    let given = world.jobs_given.load(Ordering::SeqCst);
    let taken = world.jobs_taken.lock().ok().context("no thread panicked")?.len() as u64;
    let waiting =
        number(&client.call_text("LLEN jobs:0")?)? + number(&client.call_text("LLEN jobs:1")?)?;
    ensure!(
        given == taken + waiting.cast_unsigned(),
        "{given} jobs, {taken} taken, {waiting} wait"
    );
    let (announced, received) =
        (world.announced.load(Ordering::SeqCst), world.received.load(Ordering::SeqCst));
    ensure!(announced == received && announced > 0, "{announced} announced, {received} received");
    Ok(())
}

fn all_accounts() -> String {
    (0..ACCOUNTS).map(|account| format!("account:{account}")).collect::<Vec<_>>().join(" ")
}

/// The elements of a reply that has two.
fn pair(reply: Reply) -> Option<[Reply; 2]> {
    reply.elements()?.try_into().ok()
}

fn two_of<const BOUND: usize>(actor: &mut Actor<'_>) -> (usize, usize) {
    let one = actor.random.below(BOUND);
    (one, (one + 1 + actor.random.below(BOUND - 1)) % BOUND)
}

// ---- Accounts -----------------------------------------------------------------------------------

fn transfer_by_watch(actor: &mut Actor<'_>) -> Result<()> {
    for _ in 0..100 {
        let (from, to) = two_of::<ACCOUNTS>(actor);
        let amount = actor.random.between(1, 50);
        actor.must(&format!("WATCH account:{from} account:{to}"))?;
        let before = numbers(actor.must(&format!("MGET account:{from} account:{to}"))?)?;
        let (less, more) = (before[0] - amount, before[1] + amount);
        let set = format!("MSET account:{from} {less} account:{to} {more}");
        let get = format!("MGET account:{from} account:{to}");
        // A client that changed one of them meanwhile keeps us from it.
        let Some(replies) = actor.transaction(&[&get, &set])? else { continue };
        let seen = numbers(replies[0].clone())?;
        ensure!(seen == before, "{before:?} became {seen:?} although both are watched");
        return Ok(());
    }
    Ok(())
}

fn transfer_by_multi(actor: &mut Actor<'_>) -> Result<()> {
    let (from, to) = two_of::<ACCOUNTS>(actor);
    let amount = actor.random.between(1, 50);
    let take = format!("DECRBY account:{from} {amount}");
    actor.must_transaction(&[&take, &format!("INCRBY account:{to} {amount}")])?;
    Ok(())
}

fn transfer_exclusively(actor: &mut Actor<'_>) -> Result<()> {
    let (from, to) = two_of::<ACCOUNTS>(actor);
    let take = format!("DECRBY account:{from} 7");
    let give = format!("INCRBY account:{to} 7");
    let sort = "SORT order BY nosort GET account:*";
    let replies = actor.must_transaction(&[&take, "KEYS account:*", sort, &give])?;
    let names = replies[1].clone().elements().unwrap_or_default();
    ensure!(names.len() == ACCOUNTS, "{names:?}");
    let between: i64 = numbers(replies[2].clone())?.iter().sum();
    ensure!(between == SUM - 7, "{between} is the sum in the middle of a transaction");
    Ok(())
}

fn rank(actor: &mut Actor<'_>) -> Result<()> {
    let sort = "SORT order BY account:* GET account:*";
    if actor.random.percent(50) {
        actor.must(&format!("{sort} STORE ranking"))?;
        return Ok(());
    }
    let amounts = numbers(actor.must(sort)?)?;
    ensure!(amounts.iter().sum::<i64>() == SUM && amounts.is_sorted(), "{amounts:?}");
    Ok(())
}

fn sum_accounts(actor: &mut Actor<'_>) -> Result<()> {
    let accounts = numbers(actor.must(&format!("MGET {}", all_accounts()))?)?;
    ensure!(accounts.iter().sum::<i64>() == SUM, "MGET {accounts:?}");
    let commands: Vec<_> = (0..ACCOUNTS).map(|account| format!("GET account:{account}")).collect();
    let commands: Vec<_> = commands.iter().map(String::as_str).collect();
    let accounts = numbers(Reply::Array(actor.must_transaction(&commands)?))?;
    ensure!(accounts.iter().sum::<i64>() == SUM, "MULTI {accounts:?}");
    Ok(())
}

fn sum_ranking(actor: &mut Actor<'_>) -> Result<()> {
    let amounts = numbers(actor.must("LRANGE ranking 0 -1")?)?;
    let sum = amounts.iter().sum::<i64>();
    ensure!(amounts.is_empty() || (sum == SUM && amounts.is_sorted()), "{amounts:?}");
    Ok(())
}

fn move_points(actor: &mut Actor<'_>) -> Result<()> {
    let points = actor.random.between(-20, 20);
    let field = *actor.random.pick(&["a", "b"]);
    let hash = format!("HINCRBY purse {field} {points}");
    let zset = if actor.random.percent(50) {
        format!("ZADD score INCR {} {field}", -points)
    } else {
        format!("ZINCRBY score {} {field}", -points)
    };
    actor.must_transaction(&[&hash, &zset])?;
    Ok(())
}

fn sum_points(actor: &mut Actor<'_>) -> Result<()> {
    let [purse, score] = ["HVALS purse", "ZRANGE score 0 -1 WITHSCORES"];
    let replies = actor.must_transaction(&[purse, score])?;
    let hash: i64 = numbers(replies[0].clone())?.iter().sum();
    let zset = replies[1].clone().elements().unwrap_or_default();
    let zset: i64 = zset.iter().skip(1).step_by(2).map(number).sum::<Result<_>>()?;
    ensure!(hash + zset == 2000, "{replies:?}");
    Ok(())
}

// ---- Tokens -------------------------------------------------------------------------------------

fn move_between_sets(actor: &mut Actor<'_>) -> Result<()> {
    let (from, to) = two_of::<PLACES>(actor);
    let token = actor.random.below(TOKENS);
    actor.must(&format!("SMOVE box:{from} box:{to} token:{token}"))?;
    Ok(())
}

fn move_between_lists(actor: &mut Actor<'_>) -> Result<()> {
    let (from, to) = two_of::<PLACES>(actor);
    let ends = *actor.random.pick(&["LEFT LEFT", "LEFT RIGHT", "RIGHT LEFT", "RIGHT RIGHT"]);
    if actor.random.percent(30) {
        actor.must(&format!("RPOPLPUSH line:{from} line:{to}"))?;
    } else {
        actor.must(&format!("LMOVE line:{from} line:{to} {ends}"))?;
    }
    Ok(())
}

fn move_around(actor: &mut Actor<'_>) -> Result<()> {
    let mut place = 0;
    actor.times(|actor| {
        place = (place + 1) % PLACES;
        let next = (place + 1) % PLACES;
        actor.must(&format!("BLMOVE ring:{place} ring:{next} LEFT RIGHT 0.02"))?;
        Ok(())
    })
}

fn count_tokens(actor: &mut Actor<'_>) -> Result<()> {
    for (command, kind) in [("SCARD", "box"), ("LLEN", "line"), ("LLEN", "ring")] {
        let commands: Vec<_> =
            (0..PLACES).map(|place| format!("{command} {kind}:{place}")).collect();
        let commands: Vec<_> = commands.iter().map(String::as_str).collect();
        let counts = numbers(Reply::Array(actor.must_transaction(&commands)?))?;
        ensure!(counts.iter().sum::<i64>() == TOKENS as i64, "{kind}: {counts:?}");
    }
    let union = actor.must("SUNION box:0 box:1 box:2 box:3")?.elements().unwrap_or_default();
    ensure!(union.len() == TOKENS, "{union:?}");
    let common = actor.must("SINTERCARD 2 box:1 box:2")?;
    ensure!(common == Reply::Integer(0), "tokens in two boxes: {common:?}");
    Ok(())
}

// ---- Pairs, names, copies -----------------------------------------------------------------------

fn set_pair(actor: &mut Actor<'_>) -> Result<()> {
    let (pair, value) = (actor.random.below(PAIRS), actor.random.bits());
    let (a, b) = (format!("pair:{pair}:a"), format!("pair:{pair}:b"));
    match actor.random.below(4) {
        0 => {
            let set = format!("MSETNX {a} {value} {b} {value}");
            actor.must_transaction(&[&format!("DEL {a} {b}"), &set])?;
        }
        1 => {
            // Long values, so that a torn one would show.
            let long = value.to_string().repeat(2000);
            actor.must(&format!("MSET {a} {long} {b} {long}"))?;
        }
        _ => {
            actor.must(&format!("MSET {a} {value} {b} {value}"))?;
        }
    }
    Ok(())
}

fn compare_pairs(actor: &mut Actor<'_>) -> Result<()> {
    let pair = actor.random.below(PAIRS);
    let values = actor.must(&format!("MGET pair:{pair}:b pair:{pair}:a"))?;
    let values = values.elements().unwrap_or_default();
    ensure!(values[0] == values[1] && values[0] != Reply::Nil, "{values:?}");
    Ok(())
}

fn rename(actor: &mut Actor<'_>) -> Result<()> {
    let (from, to) = two_of::<NAMES>(actor);
    // It is refused when the source is not there, which is mostly so.
    let reply = actor.call(&format!("RENAME name:{from} name:{to}"))?;
    let missing = reply.text().is_some_and(|text| text.starts_with(b"ERR no such key"));
    ensure!(missing || !reply.is_error(), "{reply:?}");
    Ok(())
}

fn look_for_name(actor: &mut Actor<'_>) -> Result<()> {
    let count = actor.must("EXISTS name:0 name:1 name:2 name:3 name:4")?;
    ensure!(count == Reply::Integer(1), "{count:?} names");
    Ok(())
}

fn copy(actor: &mut Actor<'_>) -> Result<()> {
    actor.must("INCR origin")?;
    actor.must("COPY origin mirror REPLACE")?;
    Ok(())
}

fn compare_copy(actor: &mut Actor<'_>) -> Result<()> {
    let both = numbers(actor.must("MGET origin mirror")?)?;
    ensure!(both[1] <= both[0], "the copy is ahead: {both:?}");
    Ok(())
}

// ---- Databases ----------------------------------------------------------------------------------

fn swap_databases(actor: &mut Actor<'_>) -> Result<()> {
    if actor.random.percent(20) {
        actor.must_transaction(&["SWAPDB 1 2", "GET account:0", "SWAPDB 2 1"])?;
    } else {
        actor.must("SWAPDB 1 2")?;
    }
    sleep(Duration::from_micros(500));
    Ok(())
}

fn look_at_swapped(actor: &mut Actor<'_>) -> Result<()> {
    let commands = ["SELECT 1", "GET side", "SELECT 2", "GET side", "SELECT 0"];
    let replies = actor.must_transaction(&commands)?;
    let sides: BTreeSet<_> = [&replies[1], &replies[3]].map(|side| side.text()).into();
    ensure!(sides == [Some(&b"left"[..]), Some(b"right")].into(), "{replies:?}");
    Ok(())
}

/// The ten keys of the database that is flushed, with one value.
fn ten(value: u64) -> String {
    let pairs: Vec<_> = (0..10).map(|key| format!("ten:{key} {value}")).collect();
    format!("MSET {}", pairs.join(" "))
}

fn flush_and_fill(actor: &mut Actor<'_>) -> Result<()> {
    actor.must("SELECT 3")?;
    actor.times(|actor| {
        let fill = ten(actor.random.bits());
        let flush = *actor.random.pick(&["FLUSHDB", "FLUSHDB ASYNC", "FLUSHDB SYNC"]);
        actor.must_transaction(&[flush, &fill])?;
        sleep(Duration::from_micros(500));
        Ok(())
    })
}

fn look_at_flushed(actor: &mut Actor<'_>) -> Result<()> {
    actor.must("SELECT 3")?;
    let names = (0..10).map(|key| format!(" ten:{key}")).collect::<String>();
    actor.meanwhile(|actor| {
        let values = actor.must(&format!("MGET{names}"))?.elements().unwrap_or_default();
        let distinct: BTreeSet<_> = values.iter().map(Reply::text).collect();
        ensure!(values.len() == 10 && distinct.len() == 1, "{values:?}");
        // Empty is how it begins; from the first fill on there are ten, whenever one counts.
        let count = number(&actor.must("DBSIZE")?)?;
        ensure!(count == 10 || (count == 0 && distinct.contains(&None)), "{count} keys");
        let found = actor.must("KEYS ten:*")?.elements().unwrap_or_default().len();
        ensure!(found == 10 || (found == 0 && distinct.contains(&None)), "{found} keys are listed");
        Ok(())
    })
}

/// Whatever is there all the time is met by a walk.
fn walk(actor: &mut Actor<'_>) -> Result<()> {
    let (mut cursor, mut met) = ("0".to_owned(), BTreeSet::new());
    for _ in 0..10_000 {
        let page = actor.must(&format!("SCAN {cursor} MATCH account:* COUNT 5"))?;
        let Some([next, Reply::Array(names)]) = pair(page) else {
            bail!("SCAN answers a cursor and names")
        };
        met.extend(names.iter().filter_map(Reply::text).map(<[u8]>::to_vec));
        cursor = String::from_utf8_lossy(next.text().unwrap_or_default()).into_owned();
        if cursor == "0" {
            ensure!(met.len() == ACCOUNTS, "{met:?}");
            let drawn = actor.must("RANDOMKEY")?;
            ensure!(drawn.text().is_some(), "{drawn:?}");
            return Ok(());
        }
    }
    bail!("a walk does not end")
}

// ---- Jobs and messages --------------------------------------------------------------------------

fn give_jobs(actor: &mut Actor<'_>) -> Result<()> {
    actor.times(|actor| {
        let first = actor.world.jobs_given.fetch_add(3, Ordering::SeqCst);
        let jobs = [first, first + 1, first + 2];
        if actor.random.percent(30) {
            let all = jobs.map(|job| format!("LPUSH jobs:{} {job}", job % 2));
            actor.must_transaction(&all.each_ref().map(String::as_str))?;
        } else {
            let [a, b, c] = jobs;
            actor.must(&format!("RPUSH jobs:{} {a} {b} {c}", first % 2))?;
        }
        Ok(())
    })
}

fn take_job(actor: &mut Actor<'_>) -> Result<()> {
    let command = *actor.random.pick(&[
        "BLPOP jobs:0 jobs:1 0.02",
        "BRPOP jobs:1 jobs:0 0.02",
        "BLMPOP 0.02 2 jobs:0 jobs:1 LEFT COUNT 2",
        "LMPOP 1 jobs:1 RIGHT",
    ]);
    let Some([_, taken]) = pair(actor.must(command)?) else {
        return Ok(());
    };
    let jobs = match taken {
        Reply::Array(jobs) => jobs,
        job => vec![job],
    };
    let mut all = actor.world.jobs_taken.lock().ok().context("no thread panicked")?;
    for job in jobs {
        let fresh = all.insert(job.text().unwrap_or_default().to_vec());
        ensure!(fresh, "{job:?} is taken twice");
    }
    Ok(())
}

fn publish(actor: &mut Actor<'_>) -> Result<()> {
    let own = actor.random.bits();
    let mut count = 0;
    actor.times(|actor| {
        count += 1;
        let receivers = number(&actor.must(&format!("PUBLISH news {own}:{count}"))?)?;
        actor.world.announced.fetch_add(receivers.cast_unsigned(), Ordering::SeqCst);
        Ok(())
    })
}

/// Each publisher's messages come in its order, and none is left out.
fn listen(actor: &mut Actor<'_>) -> Result<()> {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut hear = |actor: &mut Actor<'_>| -> Result<bool> {
        if !actor.client.has_input(Duration::from_millis(300))? {
            return Ok(false);
        }
        let Received::Reply(Reply::Array(push)) = actor.client.receive()? else {
            bail!("the subscriber is disconnected")
        };
        let text = String::from_utf8_lossy(push[2].text().unwrap_or_default()).into_owned();
        let (publisher, count) = text.split_once(':').with_context(|| format!("{push:?}"))?;
        let count: u64 = count.parse()?;
        let before = last.insert(publisher.to_owned(), count);
        ensure!(before.is_none_or(|before| count == before + 1), "{count} after {before:?}");
        actor.world.received.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    };
    actor.must("SUBSCRIBE news")?;
    actor.meanwhile(|actor| hear(actor).map(|_| ()))?;
    while hear(actor)? {}
    Ok(())
}

// ---- Disturbances -------------------------------------------------------------------------------

fn kill(actor: &mut Actor<'_>) -> Result<()> {
    sleep(Duration::from_millis(15));
    let list = actor.must("CLIENT LIST")?;
    let list = String::from_utf8_lossy(list.text().unwrap_or_default()).into_owned();
    let victims: Vec<_> = list
        .lines()
        .filter(|line| line.contains(" name=victim "))
        .filter_map(|line| line.split(' ').next()?.strip_prefix("id="))
        .collect();
    if !victims.is_empty() {
        let victim = *actor.random.pick(&victims);
        // It may be gone already.
        actor.call(&format!("CLIENT KILL ID {victim}"))?;
    }
    Ok(())
}

fn pause(actor: &mut Actor<'_>) -> Result<()> {
    sleep(Duration::from_millis(100));
    let kind = *actor.random.pick(&["WRITE", "ALL"]);
    actor.must(&format!("CLIENT PAUSE 20 {kind}"))?;
    if actor.random.percent(50) {
        actor.must("CLIENT UNPAUSE")?;
    }
    Ok(())
}

/// What an operator looks at and changes while others work.
fn operate(actor: &mut Actor<'_>) -> Result<()> {
    sleep(Duration::from_millis(5));
    let entries = actor.random.pick(&["2", "128", "512"]);
    let set = format!("CONFIG SET hash-max-listpack-entries {entries}");
    let commands = [
        &set,
        "INFO everything",
        "CLIENT LIST",
        "SLOWLOG GET",
        "MEMORY USAGE purse",
        "OBJECT ENCODING purse",
        "PUBSUB CHANNELS",
        "CONFIG GET *max*",
        "DBSIZE",
        "WATCH account:1 account:2",
        "UNWATCH",
    ];
    let command = *actor.random.pick(&commands);
    actor.must(command)?;
    Ok(())
}
