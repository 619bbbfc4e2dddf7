//! The same random commands to dunlin and to the reference: replies and all that is left at the
//! end must be the same.
//!
//! A round is a few hundred commands over few keys, from an empty server, with random settings, in
//! RESP2 or RESP3: from one client, which does not wait for replies, or from several in turn, who
//! wait for each other's lists, hear each other's messages and close each other's connections. A
//! sequence that shows a difference is shortened before it is reported. `SEED=n` replays the round
//! that a report names; `SECONDS=n` runs longer. What only Valkey has is compared with Valkey 9.1,
//! where that is installed. Rounds of several clients run only on request (`make
//! differential-clients`), because they may meet known differences, which `docs/COMPATIBILITY.md`
//! lists.

mod alike;
mod data;
mod judge;
mod pair;
mod round;
mod several;
mod tables;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tests::peers;
use tests::random::Rounds;

use crate::judge::{Judge, REDIS, SEVERAL, VALKEY};
use crate::pair::Pair;
use crate::round::Round;

/// Differences that are reported before the run gives up.
const ENOUGH: usize = 8;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let wrap =
        |run: fn() -> Result<()>| move || run().map_err(|error| Failed::from(format!("{error:#}")));
    let valkey_is_there = peers::newest("valkey-server").exists();
    let trials = vec![
        Trial::test("random commands are answered alike", wrap(|| random_rounds(&REDIS))),
        Trial::test(
            "random commands of several clients are answered alike",
            wrap(|| random_rounds(&SEVERAL)),
        )
        .with_ignored_flag(true),
        Trial::test("what Valkey alone has is answered alike", wrap(|| random_rounds(&VALKEY)))
            .with_ignored_flag(!valkey_is_there),
        Trial::test("commands describe themselves alike", wrap(tables::command_tables)),
        Trial::test("settings are alike", wrap(tables::settings)),
        Trial::test("Valkey's commands describe themselves alike", wrap(tables::valkey_commands))
            .with_ignored_flag(!valkey_is_there),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn random_rounds(judge: &'static Judge) -> Result<()> {
    let rounds = Rounds::from_environment(judge.usual_time);
    let mut pair = Pair::start(judge)?;
    let mut reports = BTreeMap::new();
    let mut played = 0;
    for seed in rounds.seeds() {
        let round = Round::new(judge, seed);
        let outcome = round.play(&mut pair).with_context(|| format!("SEED={seed}"))?;
        played += 1;
        if let Some(difference) = outcome {
            let (round, difference) = round.shortened(&mut pair, difference)?;
            let report = format!("SEED={seed}\n{}", round.report(&difference));
            reports.entry(difference.signature).or_insert(report);
        }
        if reports.len() >= ENOUGH {
            break;
        }
    }
    if reports.is_empty() {
        return Ok(());
    }
    let reports: Vec<_> = reports.into_values().collect();
    bail!("{} differences in {played} rounds\n\n{}", reports.len(), reports.join("\n\n"))
}
