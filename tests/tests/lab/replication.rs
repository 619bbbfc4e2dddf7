//! The lab's experiments with replicas: their lag, failovers under Sentinels, and moves.

use anyhow::{Context, Result, ensure};
use lab::results::{Check, ExperimentResult, Run};
use tests::server::dunlin_binary;

use crate::targets::{bundled, measured, without_errors};
use crate::workbench::event;

/// A figure of a run.
fn figure(run: &Run, name: &str) -> Result<f64> {
    let found = run.figures.get(name).copied();
    found.with_context(|| format!("{}: no {name} in {:?}", run.target, run.figures))
}

/// What the checker has found, which is nothing bad where all is well.
fn check(run: &Run) -> Result<&Check> {
    let check = run.check.as_ref().context("nothing was checked")?;
    ensure!(check.acknowledged > 0, "{} {:?}: {check:?}", run.target, run.parameters);
    ensure!(check.wrong == 0, "{} {:?}: {check:?}", run.target, run.parameters);
    Ok(check)
}

#[test]
fn the_lag_of_replicas_is_measured() -> Result<()> {
    let few = ["--set", "rate=300", "--set", "seconds=0.6"];
    let experiment = bundled("replication-lag", &few)?;
    without_errors(&experiment)?;
    ensure!(experiment.skipped.is_empty(), "{:?}", experiment.skipped);
    let all = ["dunlin", "redis-server", "redis-server with dunlin", "valkey-server"];
    ensure!(measured(&experiment) == all, "{:?}", measured(&experiment));
    ensure!(experiment.runs.len() == 4, "{}", experiment.runs.len());
    for run in &experiment.runs {
        let [half, most, longest] =
            ["lag_p50_ms", "lag_p99_ms", "lag_max_ms"].map(|name| figure(run, name));
        let (half, most, longest) = (half?, most?, longest?);
        ensure!(0.0 < half && half <= most && most <= longest, "{half} {most} {longest}");
        ensure!(figure(run, "lag_unseen")? == 0.0, "{:?}", run.figures);
        ensure!(figure(run, "store_cpu_processors")? > 0.0, "{:?}", run.figures);
        let replicates = run.command.iter().any(|word| word == "--replicaof");
        ensure!(replicates, "{:?}", run.command);
    }
    Ok(())
}

/// A replica that is stopped has no marker, and the lag says so.
#[test]
fn a_replica_that_stands_still_lags() -> Result<()> {
    let bench = crate::workbench::Bench::new(STANDSTILL)?;
    let results = bench.results(&[])?;
    let run = results.experiments[0].runs.first().context("no run")?;
    ensure!(run.failure.is_none(), "{:?}", run.failure);
    // Its link was held for 800 ms, and most markers were written before or after that.
    let longest = figure(run, "lag_max_ms")?;
    ensure!(longest >= 400.0, "{:?}", run.figures);
    ensure!(figure(run, "lag_p50_ms")? < longest, "{:?}", run.figures);
    bench.is_left_clean()
}

const STANDSTILL: &str = r#"
name = "standstill"
title = "A link that is cut for a while"
question = "Is it seen?"

[[target]]
kind = "dunlin"
store = "primary"
probe = "replica"
options = { replicaof = "127.0.0.1 {primary.link_port}" }

[[target.beside]]
name = "primary"
kind = "dunlin"
link = true
options = { repl-diskless-sync-delay = 0 }

[[load]]
name = "writes"
mix = "set"
rate = 100
seconds = 2.5

[[event]]
at = 0.5
do = "cut"
seconds = 0.8

[lag]
"#;

/// A replica that takes long to get what its primary was filled with is read when it has that.
#[test]
fn replicas_have_what_was_filled_before_they_are_read() -> Result<()> {
    let dunlin = dunlin_binary()?;
    let experiment = SLOW.replace("DUNLIN", dunlin.to_str().context("a path")?);
    let bench = crate::workbench::Bench::new(&experiment)?;
    let results = bench.results(&[])?;
    without_errors(&results.experiments[0])?;
    let run = results.experiments[0].runs.first().context("no run")?;
    ensure!(run.failure.is_none(), "{:?}", run.failure);
    bench.is_left_clean()
}

/// The command fails where there is no stream. It is written last.
const SLOW: &str = r#"
name = "slow"
title = "A replica without a processor of its own"
question = "Does it have the data?"

[[target]]
kind = "dunlin"
store = "primary"
probe = "replica"
options = { replicaof = "127.0.0.1 {primary.port}" }

[[target.beside]]
name = "primary"
kind = "dunlin"
options = { repl-diskless-sync-delay = 0 }

[[target.beside]]
name = "slow"
command = ["nice", "-n", "19", "DUNLIN", "serve", "--port", "{port}", "--replicaof", "127.0.0.1 {primary.port}"]
probe = "replica"

[[load]]
name = "much"
prefill = true
mix = "set"
keys = "uniform:100"
size = 100000
pipeline = 10
requests = 1000

[[load]]
name = "stream"
prefill = true
command = ["XADD", "stream", "*", "field", "value"]
connections = 1
requests = 1

[[load]]
name = "reads"
to = "slow"
command = ["XINFO", "STREAM", "stream"]
connections = 1
requests = 3
"#;

/// Who is cut off with its clients goes on acknowledging, unless a replica has to have the writes.
#[test]
fn a_primary_that_is_cut_off_loses_writes_unless_replies_wait() -> Result<()> {
    let few = ["--set", "failure=cut", "--set", "seconds=10", "--set", "lasts=7"];
    let soon = ["--set", "down_after_ms=500", "--targets", "dunlin"];
    let experiment = bundled("failover", &[&few[..], &soon].concat())?;
    ensure!(experiment.skipped.is_empty(), "{:?}", experiment.skipped);
    ensure!(experiment.runs.len() == 2, "{:?}", measured(&experiment));
    for run in &experiment.runs {
        let cut = event(run, "cut link")?;
        ensure!(cut.outcome == "cut" && cut.until.is_some(), "{cut:?}");
        let check = check(run)?;
        ensure!(check.longest_gap_seconds.is_some(), "{check:?}");
        match &*run.parameters["replies"] {
            "at once" => ensure!(check.lost > 0, "{check:?}"),
            _ => ensure!(check.lost == 0 && check.unknown > 0, "{check:?}"),
        }
    }
    Ok(())
}

#[test]
fn writers_go_on_at_the_new_primary() -> Result<()> {
    let few = ["--set", "failure=kill,stop", "--set", "seconds=10", "--set", "lasts=8"];
    let soon = ["--set", "down_after_ms=500"];
    let other = ["--set", "replies=after a replica", "--targets", "redis-server"];
    let experiment = bundled("failover", &[&few[..], &soon, &other].concat())?;
    ensure!(experiment.runs.len() == 2, "{:?}", experiment.skipped);
    for run in &experiment.runs {
        let names = ["kill -9", "SIGSTOP"];
        let failed = run.events.iter().find(|event| names.contains(&&*event.name));
        let failed = failed.context("nothing has failed")?;
        ensure!(failed.done, "{failed:?}");
        let check = check(run)?;
        ensure!(check.lost == 0, "{check:?}");
        // Without another primary there would be no write from the failure to the end.
        let gap = check.longest_gap_seconds.context("it is known")?;
        ensure!(gap < 8.5, "{check:?}");
    }
    Ok(())
}

#[test]
fn moves_are_measured_under_clients_that_follow() -> Result<()> {
    let experiment = moves_are_well(&[])?;
    ensure!(experiment.skipped.is_empty(), "{:?}", experiment.skipped);
    ensure!(experiment.runs.len() == 5, "{:?}", measured(&experiment));
    Ok(())
}

/// Measures moves with these options besides.
pub(crate) fn moves_are_well(options: &[&str]) -> Result<ExperimentResult> {
    let few = ["--set", "keys=3000", "--set", "at=0.5", "--set", "seconds=2.5"];
    let experiment = bundled("moving", &[&few, options].concat())?;
    without_errors(&experiment)?;
    for run in &experiment.runs {
        let moved = event(run, "move")?;
        ensure!(moved.outcome.contains("writes were held for"), "{}: {moved:?}", run.target);
        ensure!(figure(run, "moved_seconds")? > 0.0, "{:?}", run.figures);
        let held = figure(run, "writes_held_ms")?;
        ensure!(held >= 0.0, "{held}");
        let check = check(run)?;
        ensure!(check.lost == 0 && check.stale_reads == 0, "{}: {check:?}", run.target);
        // That is how writers know.
        ensure!(check.refused > 0, "{}: {check:?}", run.target);
    }
    Ok(experiment)
}
