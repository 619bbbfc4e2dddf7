//! The lab's experiments with clusters: clients that follow slots, failovers, moves, and members of
//! etcd that are killed.

use anyhow::{Context, Result, ensure};
use lab::results::Run;

use crate::targets::{bundled, measured, without_errors};
use crate::workbench::{Bench, event};

fn figure(run: &Run, name: &str) -> Result<f64> {
    let found = run.figures.get(name).copied();
    found.with_context(|| format!("{}: no {name} in {:?}", run.target, run.figures))
}

/// Clusters of both kinds, whose clients are sent on while slots move.
#[test]
fn clients_follow_slots_that_move() -> Result<()> {
    let few = ["--set", "keys=20000", "--set", "at=0.5", "--set", "seconds=3"];
    let experiment = bundled("cluster-move", &few)?;
    ensure!(measured(&experiment) == ["dunlin", "redis-server"], "{:?}", experiment.skipped);
    for run in &experiment.runs {
        let moved = event(run, "move slots")?;
        ensure!(moved.outcome == "done" && moved.until.is_some(), "{}: {moved:?}", run.target);
        ensure!(figure(run, "moved_seconds")? > 0.0);
        let load = run.loads.first().context("a load")?;
        ensure!(load.recording.errors() == 0, "{:?}", load.recording.operations);
        // Without them, no slot has moved under the clients.
        ensure!(load.recording.generator.redirects > 0, "{}: {:?}", run.target, run.events);
        let check = run.check.as_ref().context("nothing was checked")?;
        ensure!(check.acknowledged > 0 && check.lost + check.wrong == 0, "{check:?}");
    }
    Ok(())
}

/// The primary of the checker's slot is killed: others take its writes, and none is lost at quorum.
#[test]
fn writers_go_on_at_the_next_primary_of_a_cluster() -> Result<()> {
    let few = ["--targets", "dunlin", "--set", "failure=kill", "--set", "durability=quorum"];
    let experiment = bundled("cluster-failover", &few)?;
    let run = experiment.runs.first().with_context(|| format!("{:?}", experiment.skipped))?;
    let killed = event(run, "kill -9")?;
    ensure!(killed.done && killed.outcome.starts_with("node-"), "{killed:?}");
    let check = run.check.as_ref().context("nothing was checked")?;
    ensure!(check.acknowledged > 0 && check.lost + check.wrong == 0, "{check:?}");
    // Without another primary there would be none from the kill, after 0.8 of 6 seconds, on.
    let gap = check.usual_gap_seconds.context("it is known")?;
    ensure!(gap < 3.9, "{check:?}");
    Ok(())
}

#[test]
fn clients_go_on_while_a_member_is_gone() -> Result<()> {
    let few = ["--set", "first=0.5", "--set", "second=60", "--set", "third=60"];
    let less = ["--set", "seconds=2.5", "--set", "away=1"];
    let experiment = bundled("etcd-members", &[&few[..], &less].concat())?;
    let targets = ["dunlin", "dunlin, its etcd killed", "etcd"];
    ensure!(measured(&experiment) == targets, "{:?}", experiment.skipped);
    for run in &experiment.runs {
        let killed = event(run, "kill -9")?;
        ensure!(killed.done && killed.outcome.contains("killed"), "{killed:?}");
        let load = &run.loads.first().context("a load")?.recording;
        ensure!(load.requests() > load.errors() * 4, "{}: {:?}", run.target, load.operations);
    }
    // Two of three nodes send their clients on, and nothing is lost.
    for run in &experiment.runs[..2] {
        let check = run.check.as_ref().context("nothing was checked")?;
        ensure!(check.acknowledged > 0 && check.lost + check.wrong == 0, "{check:?}");
        ensure!(run.loads[0].recording.generator.redirects > 0, "{:?}", run.loads);
    }
    let calm = &experiment.runs[1].loads;
    ensure!(calm.iter().all(|load| load.recording.errors() == 0), "{calm:?}");
    Ok(())
}

#[test]
fn values_are_compared_between_one_server_and_clusters() -> Result<()> {
    let few = ["--set", "size=100kb", "--set", "keys=one tag", "--set", "operation=set"];
    let less = ["--set", "seconds=0.3", "--targets", "dunlin"];
    let experiment = bundled("cluster-values", &[&few[..], &less].concat())?;
    without_errors(&experiment)?;
    ensure!(experiment.runs.len() == 3, "{:?}", measured(&experiment));
    Ok(())
}

#[test]
fn a_cluster_that_cannot_be_is_a_mistake() -> Result<()> {
    for (target, said) in [
        ("kinds = [\"dunlin\", \"redis\"]\ncluster = { shards = 1 }", "a single kind"),
        ("kind = \"keydb\"\ncluster = { shards = 1 }", "dunlin, redis or valkey"),
        ("kind = \"dunlin\"\ncluster = { shards = 0 }", "1 to 100 nodes"),
        ("kind = \"dunlin\"", "between the shards of a cluster"),
    ] {
        let text = format!(
            "name = \"x\"\ntitle = \"x\"\nquestion = \"x?\"\n[[target]]\n{target}\n[[load]]\n\
             name = \"l\"\nmix = \"get\"\nrequests = 1\n[[event]]\nat = 1\ndo = \"move slots\"\n"
        );
        let output = Bench::new(&text)?.run(&[])?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(2) && complaint.contains(said), "{complaint}");
    }
    Ok(())
}
