//! Targets of the lab that are more than one process, or get less than the machine has, and the
//! experiments with such.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::results::{ExperimentResult, Run};
use rustix::process::Signal;
use tests::server::dunlin_binary;

use crate::workbench::{Bench, event, eventually, signal, started};

const SERVICE: &str = r#"
name = "service"
title = "A service in front of Redis"
question = "Is it one target?"

[[target]]
name = "both"
command = ["read-api", "-listen", "127.0.0.1:{port}", "-redis", "127.0.0.1:{redis.port}"]
probe = "http"
store = "redis"

[[target.beside]]
name = "redis"
kind = "redis"
options = { appendonly = "yes", appendfsync = "always" }

[[target.beside]]
name = "nobody"
on = false
command = ["/nowhere/a-server", "{redis.directory}", "{directory}"]

[[target]]
kind = "dunlin"
probe = "http"
options = { appendonly = "yes", appendfsync = "always" }
files = { "a.txt" = "for {target}" }

[[load]]
name = "key"
prefill = true
command = ["SET", "known-key", "__data__"]
connections = 1
requests = 1

[[load]]
name = "reads"
http = [{ path = "/v1/keys/known-key" }]
connections = 4
rate = 200
seconds = 5

[[event]]
at = 1
do = "kill"
restart_after = 0.1

[[event]]
at = 2.5
do = "DBSIZE"

[sample]
every = 0.1
"#;

#[test]
fn a_service_and_its_store_are_one_target() -> Result<()> {
    let bench = Bench::new(SERVICE)?;
    let (results, processes) = bench.results_and_processes(&[])?;
    ensure!(processes.iter().any(|process| process.starts_with("read-api")), "{processes:?}");
    let beside = |process: &String| process.ends_with("/redis");
    ensure!(processes.iter().any(beside), "in a directory of its own: {processes:?}");
    let experiment = &results.experiments[0];
    ensure!(experiment.skipped.is_empty() && experiment.runs.len() == 2, "{experiment:?}");
    ensure!(experiment.targets[0].version.starts_with("redis "), "{:?}", experiment.targets);
    for run in &experiment.runs {
        killed_and_back(run).with_context(|| run.target.clone())?;
    }
    let command = experiment.runs[0].command.join(" ");
    ensure!(command.contains("redis-server") && command.contains(" & "), "{command}");
    ensure!(command.ends_with(&last_port(&command)?), "the service asks the store: {command}");
    bench.is_left_clean()
}

/// The port that the first command of a target was given.
fn last_port(command: &str) -> Result<String> {
    let (_, rest) = command.split_once("--port ").context("the store has a port")?;
    Ok(format!("127.0.0.1:{}", rest.split(' ').next().unwrap_or_default()))
}

/// The store was killed, and what was put there before is read again over HTTP.
fn killed_and_back(run: &Run) -> Result<()> {
    ensure!(run.failure.is_none(), "{:?}", run.failure);
    ensure!(event(run, "kill -9")?.outcome.contains("answers again"), "{:?}", run.events);
    ensure!(event(run, "DBSIZE")?.outcome == "1", "{:?}", run.events);
    let recording = &run.loads[0].recording;
    let last = recording.timeline.last().context("a second")?;
    ensure!(last.requests > 0 && last.failed == 0, "{:?}", recording.timeline);
    let spent = run.figures.get("server_cpu_processors").context("it is known")?;
    ensure!(*spent > 0.0, "{:?}", run.figures);
    ensure!(run.figures.contains_key("errors_percent"), "{:?}", run.figures);
    Ok(())
}

/// Runs a bundled experiment, shortened.
pub(crate) fn bundled(name: &str, arguments: &[&str]) -> Result<ExperimentResult> {
    let shown = Command::new(dunlin_binary()?).args(["lab", "show", name]).output()?;
    let bench = Bench::new(&String::from_utf8(shown.stdout)?)?;
    let usual = ["--repetitions", "1"];
    let mut results = bench.results(&[&usual, arguments].concat())?;
    bench.is_left_clean()?;
    let experiment = results.experiments.pop().context("there is one")?;
    for run in &experiment.runs {
        ensure!(run.failure.is_none(), "{name}: {:?}", run.failure);
        let answered: u64 = run.loads.iter().map(|load| load.recording.successes()).sum();
        let acknowledged = run.check.as_ref().map_or(0, |check| check.acknowledged);
        ensure!(answered + acknowledged > 0, "{name}: {} answers nothing", run.target);
    }
    Ok(experiment)
}

/// No request of any run failed.
pub(crate) fn without_errors(experiment: &ExperimentResult) -> Result<()> {
    for run in &experiment.runs {
        let loads = run.loads.iter().flat_map(|load| &load.recording.operations);
        let errors: Vec<_> = loads.flat_map(|operation| &operation.errors).collect();
        ensure!(errors.is_empty(), "{} {:?}: {errors:?}", run.target, run.parameters);
    }
    Ok(())
}

/// The targets that were measured, without repeats.
pub(crate) fn measured(experiment: &ExperimentResult) -> Vec<&str> {
    let mut names: Vec<&str> = experiment.runs.iter().map(|run| &*run.target).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn reads_over_http_are_measured_beside_a_service() -> Result<()> {
    let few = ["--set", "rate=300", "--set", "seconds=0.5", "--set", "readers=1,3"];
    let experiment = bundled("api-read", &few)?;
    without_errors(&experiment)?;
    let beside = "dunlin beside each reader";
    let all = ["Go API with central Redis", "Go API with sidecar replica", "dunlin", beside];
    ensure!(measured(&experiment) == all, "{:?}", experiment.skipped);
    for run in &experiment.runs {
        let readers: usize = run.parameters["readers"].parse()?;
        ensure!(run.loads.len() == readers, "{}: {:?}", run.target, run.parameters);
        let answered = run.loads.iter().all(|load| load.recording.successes() > 0);
        ensure!(answered, "{} {readers}: a reader has got nothing", run.target);
        let figure = |name: &str| run.figures.get(name).copied();
        let (whole, store) = (figure("server_cpu_processors"), figure("store_cpu_processors"));
        if run.target == "dunlin" {
            ensure!(store.is_none(), "it is its own store: {:?}", run.figures);
        } else {
            ensure!(store.is_some() && store < whole, "{}: {:?}", run.target, run.figures);
        }
        if run.target == beside {
            let replicas = run.command.iter().filter(|word| *word == "--replicaof").count();
            ensure!(replicas == readers, "{:?}", run.command);
        }
    }
    // The password of the primary is in no result.
    ensure!(!serde_json::to_string(&experiment)?.contains("of the hosted primary"), "it is there");
    Ok(())
}

#[test]
fn replicas_attach_while_clients_write() -> Result<()> {
    // A whole second is without a replica that attaches, however long that takes.
    let few = ["--set", "keys=2000", "--set", "rate=300", "--set", "seconds=3"];
    let other = ["--set", "at=1.2", "--set", "replicas=3"];
    let experiment = bundled("full-sync", &[&few[..], &other].concat())?;
    without_errors(&experiment)?;
    ensure!(experiment.skipped.is_empty(), "{:?}", experiment.skipped);
    ensure!(experiment.runs.len() == 6, "{:?}", measured(&experiment));
    for run in &experiment.runs {
        let replicas: usize = run.parameters["replicas"].parse()?;
        ensure!(run.events.len() == replicas, "{}: {:?}", run.target, run.events);
        for event in &run.events {
            ensure!(event.outcome.starts_with("online after"), "{}: {event:?}", run.target);
        }
        for name in ["online_seconds", "p999_during_events_ms", "peak_memory_ratio"] {
            ensure!(run.figures.contains_key(name), "{}: {:?}", run.target, run.figures);
        }
    }
    Ok(())
}

#[test]
fn an_api_over_a_table_is_measured_by_back_end() -> Result<()> {
    let few = ["--set", "users=5", "--set", "seconds=0.2", "--set", "think_ms=5"];
    let experiment =
        bundled("api-departments", &[&few[..], &["--set", "fsync=none,always"]].concat())?;
    without_errors(&experiment)?;
    let all = ["Go API and redis-server", "database each time", "dunlin"];
    ensure!(measured(&experiment) == all, "{:?}", experiment.skipped);
    // Three requests at two ways of persisting; the database has its own.
    let runs = |target: &str| experiment.runs.iter().filter(|run| run.target == target).count();
    ensure!((runs(all[0]), runs(all[1]), runs(all[2])) == (6, 3, 6), "{:?}", experiment.runs.len());
    // A thousand rows of the same table, from every target.
    let bytes = |target: &str| -> Result<u64> {
        let is_it =
            |run: &&Run| run.target == target && run.parameters["request"] == "read 1000 rows";
        let run = experiment.runs.iter().find(is_it).context("it was run")?;
        let operation = &run.loads[0].recording.operations[0];
        Ok(operation.received_bytes / operation.requests.max(1))
    };
    for target in all {
        ensure!((40_000..60_000).contains(&bytes(target)?), "{target}: {} bytes", bytes(target)?);
    }
    Ok(())
}

#[test]
fn without_mariadb_the_table_is_one_of_sqlite() -> Result<()> {
    let few = ["--set", "users=3", "--set", "seconds=0.3", "--set", "think_ms=5"];
    let other =
        ["--set", "mariadb=false", "--set", "url=sqlite:departments.db", "--set", "fsync=none"];
    let experiment = bundled("api-departments", &[few, other].concat())?;
    without_errors(&experiment)?;
    ensure!(measured(&experiment) == ["database each time", "dunlin"], "{:?}", experiment.skipped);
    Ok(())
}

#[test]
fn a_store_is_killed_under_users_of_its_api() -> Result<()> {
    let few =
        ["--set", "users=20", "--set", "seconds=6", "--set", "at=1", "--set", "fsync=everysec"];
    let experiment = bundled("api-kill", &few)?;
    ensure!(
        measured(&experiment) == ["Go API and redis-server", "dunlin"],
        "{:?}",
        experiment.skipped
    );
    for run in &experiment.runs {
        ensure!(event(run, "kill -9")?.outcome.contains("answers again"), "{:?}", run.events);
        let last = run.loads[0].recording.timeline.last().context("a second")?;
        ensure!(last.requests > last.errors, "{}: {last:?}", run.target);
    }
    Ok(())
}

/// The reason in the report when the machine does not let the lab starve a process.
fn is_told_why(experiment: &ExperimentResult) -> bool {
    let reasons = experiment.skipped.iter().map(|skipped| &skipped.reason);
    experiment.runs.is_empty()
        && reasons.clone().count() > 0
        && reasons
            .into_iter()
            .all(|reason| reason.contains("starved") || reason.contains("no cgroups"))
}

#[test]
fn a_store_with_a_tenth_of_a_processor_is_measured() -> Result<()> {
    let few = [
        "--set",
        "users=50",
        "--set",
        "seconds=2",
        "--set",
        "think_ms=1",
        "--set",
        "fsync=everysec",
    ];
    let experiment = bundled("api-starved", &few)?;
    if is_told_why(&experiment) {
        return Ok(());
    }
    ensure!(
        measured(&experiment) == ["Go API and redis-server", "dunlin"],
        "{:?}",
        experiment.skipped
    );
    let run = experiment.runs.iter().find(|run| run.target == "dunlin").context("it was run")?;
    // As fast as it can, and no faster than it may: all of a processor would be 1.
    let spent = run.figures.get("server_cpu_processors").context("it is known")?;
    ensure!((0.0..0.2).contains(spent), "{:?}", run.figures);
    let limits =
        &experiment.targets.iter().find(|target| target.name == "dunlin").context("it")?.limits;
    ensure!(limits == "dunlin: 0.1 processors and 2048 MiB of memory", "{limits}");
    Ok(())
}

const GREEDY: &str = r#"
name = "greedy"
title = "More than there is room for"
question = "What becomes of it?"

[[target]]
kind = "redis"
memory = "48mb"

[[load]]
name = "set"
mix = "set"
keys = "sequential:1000000"
size = 100000
connections = 4
seconds = 10
"#;

#[test]
fn a_process_whose_memory_is_full_is_killed_and_that_is_told() -> Result<()> {
    let bench = Bench::new(GREEDY)?;
    let output = bench.run(&[])?;
    let experiment = &bench.read()?.experiments[0];
    if is_told_why(experiment) {
        return bench.is_left_clean();
    }
    ensure!(output.status.code() == Some(1), "{output:?}");
    let failure = experiment.runs[0].failure.as_deref().context("there is no room")?;
    ensure!(failure.contains("since its memory was full"), "{failure}");
    bench.is_left_clean()
}

const STARVED: &str = r#"
name = "starved"
title = "One that takes long"
question = "What is left behind?"
repetitions = 1000

[[target]]
kind = "dunlin"
cpus = 0.5
memory = "1gb"

[[load]]
name = "get"
mix = "get"
seconds = 0.3
connections = 2
"#;

/// The cgroups that a lab has made, by the number of its process.
fn cgroups(lab: u32) -> Vec<PathBuf> {
    fn below(directory: &Path, mark: &str, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            if entry.file_name().to_string_lossy().starts_with(mark) {
                found.push(entry.path());
            } else if !entry.path().is_symlink() {
                below(&entry.path(), mark, found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &format!("dunlin-lab-{lab}-"), &mut found);
    found
}

#[test]
fn cgroups_go_with_the_lab_or_with_the_next_one() -> Result<()> {
    let bench = Bench::new(STARVED)?;
    let Ok(mut child) = started(&bench) else {
        ensure!(is_told_why(&bench.read()?.experiments[0]), "it ends, and does not say why");
        return Ok(());
    };
    let lab = child.id();
    eventually("a cgroup", || Ok(!cgroups(lab).is_empty()))?;
    // In order, with the first signal.
    signal(&child, Signal::INT)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    ensure!(cgroups(lab).is_empty(), "{:?}", cgroups(lab));
    bench.forget()?;
    // At once, with the second.
    let mut child = started(&bench)?;
    let lab = child.id();
    eventually("a cgroup", || Ok(!cgroups(lab).is_empty()))?;
    signal(&child, Signal::INT)?;
    signal(&child, Signal::TERM)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    ensure!(cgroups(lab).is_empty(), "{:?}", cgroups(lab));
    // Not at all, and then by the next lab.
    let mut child = started(&bench)?;
    let lab = child.id();
    eventually("a cgroup", || Ok(!cgroups(lab).is_empty()))?;
    signal(&child, Signal::KILL)?;
    child.wait()?;
    eventually("the servers' end", || Ok(bench.processes()?.is_empty()))?;
    ensure!(!cgroups(lab).is_empty(), "nobody could remove them");
    let mut child = started(&bench)?;
    signal(&child, Signal::INT)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    ensure!(cgroups(lab).is_empty(), "{:?}", cgroups(lab));
    bench.is_left_clean()
}

#[test]
fn what_is_not_installed_is_skipped_by_name() -> Result<()> {
    let bench = Bench::new(&SERVICE.replace("\"read-api\"", "\"a-service-that-nobody-wrote\""))?;
    let results = bench.results(&["--set", "nothing=1"]);
    ensure!(results.is_err(), "there is no such value");
    let experiment = &bench.results(&[])?.experiments[0];
    ensure!(measured(experiment) == ["dunlin"], "{:?}", experiment.runs.len());
    let reason = &experiment.skipped.first().context("one is skipped")?.reason;
    ensure!(reason == "a-service-that-nobody-wrote is not installed on this machine", "{reason}");
    Ok(())
}
