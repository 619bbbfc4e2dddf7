//! The real server in a simulated world, with clients of the storm at work on it: all of it from
//! one seed.
//!
//! `make simulate SEED=7 HOURS=2` goes through worlds with the seeds from 7 on, until two virtual
//! hours have passed. A world that fails names its seed, and `make simulate SEED=n HOURS=0` replays
//! that world, to the last system call. `conduct.rs` runs a world. The clients are a process in it:
//! this program with other arguments (`clients.rs`). After as many hours with one server come those
//! with replicas (`replicated`).

#[path = "../storm/actor.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod actor;
#[path = "../storm/check.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod check;
mod clients;
#[cfg(target_arch = "x86_64")]
mod conduct;
#[path = "../storm/data.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod data;
#[path = "../storm/history.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod history;
#[path = "../storm/judge.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod judge;
mod plan;
mod record;
#[path = "../storm/replicas.rs"]
#[allow(dead_code, reason = "the storm uses all of it")]
mod replicas;
mod replicated;
mod roles;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};

#[cfg(target_arch = "x86_64")]
use conduct::{Told, play};

/// Virtual time of the worlds that go with the tests.
const USUAL: Duration = Duration::from_secs(20 * 60);
/// How long clients work at a time in the world with replicas that goes with the tests.
const SHORT_ACT: Duration = Duration::from_millis(120);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((task, rest)) = words.split_first()
        && let Some(task) = task.strip_prefix("client:")
    {
        return clients::run(task, rest);
    }
    if let Some((task, rest)) = words.split_first()
        && let Some(task) = task.strip_prefix("replicated:")
    {
        return replicated::clients::run(task, rest);
    }
    let mut arguments = Arguments::from_args();
    // All threads of a world run on one processor, and worlds would only be in each other's way.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials()).exit_code()
}

#[cfg(not(target_arch = "x86_64"))]
fn trials() -> Vec<Trial> {
    // Worlds exist on one kind of processor.
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn trials() -> Vec<Trial> {
    vec![
        Trial::test("nothing_goes_wrong_in_a_simulated_world", || told(many_worlds)),
        Trial::test("nothing_goes_wrong_among_simulated_replicas", || {
            told(many_worlds_of_replicas)
        }),
        Trial::test("a_seed_gives_the_same_world_again", || told(same_world_again)),
    ]
}

/// Plays a test, where the system allows it. An error comes with all that led to it.
#[cfg(target_arch = "x86_64")]
fn told(test: fn() -> Result<()>) -> Result<(), Failed> {
    if let Err(reason) = simulation::World::check()
        && setting::<f64>("DUNLIN_HOURS").is_none()
    {
        say(&format!("nothing is simulated, because the system does not allow it: {reason:#}"));
        return Ok(());
    }
    test().map_err(|error| Failed::from(format!("{error:#}")))
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn say(text: &str) {
    // Past the capture of the test's output: a user who waits for an hour wants to see something.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(target_arch = "x86_64")]
fn many_worlds() -> Result<()> {
    let first: u64 = setting("DUNLIN_SEED").unwrap_or(1);
    let hours: Option<f64> = setting("DUNLIN_HOURS");
    let wanted = hours.map_or(USUAL, |hours| Duration::from_secs_f64(hours * 3600.0));
    let begin = Instant::now();
    let mut all = Told::default();
    let mut seed = first;
    while seed == first || all.time < wanted {
        let told = play(seed, usize::MAX).with_context(|| {
            format!("seed {seed} (the {}. world, after {:?})", seed - first + 1, begin.elapsed())
        })?;
        if hours.is_some() {
            say(&format!("seed {seed}: {told}"));
        }
        all.add(&told);
        seed += 1;
    }
    say(&format!("simulated: {all}; in {:?}", begin.elapsed()));
    Ok(())
}

/// The same for worlds in which the server has replicas.
#[cfg(target_arch = "x86_64")]
fn many_worlds_of_replicas() -> Result<()> {
    let first: u64 = setting("DUNLIN_SEED").unwrap_or(1);
    let hours: Option<f64> = setting("DUNLIN_HOURS");
    let wanted = Duration::from_secs_f64(hours.unwrap_or_default() * 3600.0);
    let longest = hours.map_or(SHORT_ACT, |_| Duration::MAX);
    let begin = Instant::now();
    let mut all = replicated::Told::default();
    let mut seed = first;
    while seed == first || all.time < wanted {
        let told = replicated::play(seed, usize::MAX, longest).with_context(|| {
            format!("seed {seed} (the {}. world, after {:?})", seed - first + 1, begin.elapsed())
        })?;
        if hours.is_some() {
            say(&format!("replicas, seed {seed}: {told}"));
        }
        all.add(&told);
        seed += 1;
    }
    say(&format!("simulated with replicas: {all}; in {:?}", begin.elapsed()));
    Ok(())
}

/// Everything that happens comes from the seed, or else a failure could not be played again.
#[cfg(target_arch = "x86_64")]
fn same_world_again() -> Result<()> {
    let seed = setting("DUNLIN_SEED").unwrap_or(1);
    let (one, other) = (play(seed, 2)?, play(seed, 2)?);
    ensure!(one.hash == other.hash, "seed {seed} gave {one} and then {other}");
    let different = play(seed + 1, 1)?;
    ensure!(one.hash != different.hash, "another seed gave the same world");
    let play = || replicated::play(seed, 2, SHORT_ACT);
    let (one, other) = (play()?, play()?);
    ensure!(one.hash == other.hash, "with replicas seed {seed} gave {one} and then {other}");
    Ok(())
}
