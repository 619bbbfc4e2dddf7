//! `dunlin lab` as a process: experiments with real servers, what is done to them, what is left
//! behind, and what is said about mistakes.

mod clusters;
mod encrypted;
mod replication;
mod targets;
mod workbench;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use lab::results::Run;
use rustix::process::Signal;
use tests::server::dunlin_binary;
use workbench::{Bench, event, eventually, signal, started};

const EVENTFUL: &str = r#"
name = "eventful"
title = "All that can be done to a server"
question = "Does the lab do it, and see it?"

[[target]]
kinds = ["dunlin", "redis"]
options = { appendonly = "yes", appendfsync = "always" }

[[target]]
name = "nowhere"
command = ["/nowhere/a-server"]

[[load]]
name = "fill"
prefill = true
mix = "set"
keys = "sequential:5000"
size = 200
pipeline = 50
requests = 5000

[[load]]
name = "clients"
mix = "get:50,set:50"
keys = "uniform:5000"
size = 200
connections = 10
seconds = 3
warmup = 0.1

[[event]]
at = 0.2
do = "BGSAVE"

[[event]]
at = 0.4
do = "CONFIG SET maxmemory 1gb"

[[event]]
at = 0.5
do = "connection storm"
connections = 30
seconds = 0.5

[[event]]
at = 1.1
do = "hot-key burst"
connections = 5
seconds = 0.2

[[event]]
at = 1.4
do = "stop"
seconds = 0.2

[[event]]
at = 1.8
do = "kill"
restart_after = 0.2

[[event]]
at = 60
do = "FLUSHALL"

[check]
writers = 2
readers = 1

[sample]
every = 0.1
info = ["used_memory"]
"#;

#[test]
fn events_happen_to_every_target_and_acknowledged_writes_survive() -> Result<()> {
    let bench = Bench::new(EVENTFUL)?;
    let (results, servers) = bench.results_and_processes(&[])?;
    // What finds servers that are left behind finds them while they run.
    // The reference is started by the loader of its own C library.
    for name in ["dunlin", "ld-linux"] {
        ensure!(servers.iter().any(|server| server.starts_with(name)), "{name}: {servers:?}");
    }
    let experiment = &results.experiments[0];
    ensure!(experiment.skipped.len() == 1, "{:?}", experiment.skipped);
    ensure!(experiment.skipped[0].reason.contains("does not start"), "{:?}", experiment.skipped);
    let names: Vec<&str> = experiment.targets.iter().map(|target| target.name.as_str()).collect();
    ensure!(names == ["dunlin", "redis-server"], "{names:?}");
    ensure!(experiment.targets[1].version.starts_with("redis "), "{:?}", experiment.targets);
    ensure!(experiment.runs.len() == 2);
    for run in &experiment.runs {
        went_well(run).with_context(|| format!("target {}", run.target))?;
    }
    ensure!(fs::read_to_string(bench.out().join("report.html"))?.contains("All that can be done"));
    bench.is_left_clean()
}

fn went_well(run: &Run) -> Result<()> {
    ensure!(run.failure.is_none(), "{:?}", run.failure);
    ensure!(event(run, "BGSAVE")?.outcome.contains("ended: ok"), "{:?}", run.events);
    ensure!(event(run, "BGSAVE")?.until.is_some());
    ensure!(event(run, "CONFIG SET maxmemory 1gb")?.outcome == "OK", "{:?}", run.events);
    let storm = &event(run, "30 connections")?.outcome;
    ensure!(
        storm.starts_with("30 opened, 30 answered") && storm.contains("; 0 refused"),
        "{storm}"
    );
    ensure!(event(run, "SIGSTOP")?.until.is_some(), "{:?}", run.events);
    ensure!(event(run, "kill -9")?.outcome.contains("answers again"), "{:?}", run.events);
    ensure!(event(run, "FLUSHALL")?.outcome.starts_with("not done"), "{:?}", run.events);
    let burst = run.loads.iter().find(|load| load.name == "hot-key burst").context("no burst")?;
    ensure!(burst.recording.requests() > 0);
    let clients = run.loads.iter().find(|load| load.name == "clients").context("no load")?;
    ensure!(clients.recording.errors() > 0, "a killed server resets its clients");
    let last = run.samples.last().context("no sample")?;
    ensure!(last.cpu_user_seconds + last.cpu_system_seconds > 0.0, "{last:?}");
    ensure!(last.pss_bytes > 1 << 20 && last.rss_bytes >= last.pss_bytes, "{last:?}");
    let used = |sample: &lab::results::Sample| sample.info.get("used_memory").copied();
    ensure!(run.samples.iter().filter_map(used).any(|bytes| bytes > 1e5), "{:?}", run.samples);
    ensure!(run.figures.get("server_cpu_us_per_request").is_some_and(|cpu| *cpu > 0.0));
    let check = run.check.as_ref().context("nothing was checked")?;
    ensure!(check.acknowledged > 0, "{check:?}");
    ensure!(check.lost == 0 && check.wrong == 0 && check.stale_reads == 0, "{check:?}");
    Ok(())
}

const FORGETFUL: &str = r#"
name = "forgetful"
title = "A server that keeps nothing"
question = "Does the checker find what was lost?"

[[target]]
kinds = ["dunlin", "redis"]

[check]
writers = 3
readers = 1
seconds = 2.5

[[event]]
at = 0.8
do = "kill"
restart_after = 0
"#;

#[test]
fn a_planted_loss_is_found() -> Result<()> {
    let bench = Bench::new(FORGETFUL)?;
    let results = bench.results(&[])?;
    for run in &results.experiments[0].runs {
        let check = run.check.as_ref().context("nothing was checked")?;
        // All that was acknowledged before the kill is gone; what came after it is not.
        ensure!(check.lost > 0 && check.lost < check.acknowledged, "{check:?}");
        ensure!(check.wrong == 0, "{check:?}");
        ensure!(check.oldest_lost_seconds.is_some_and(|seconds| seconds > 0.0), "{check:?}");
        ensure!(!check.examples.is_empty(), "{check:?}");
    }
    bench.is_left_clean()
}

const ABANDONED: &str = r#"
name = "abandoned"
title = "A server that ends by itself"
question = "Is it said?"

[[target]]
kinds = ["dunlin", "redis"]

[[load]]
name = "clients"
mix = "set"
connections = 3
seconds = 2

[[event]]
at = 0.5
do = "SHUTDOWN NOSAVE"

[check]

[sample]
every = 0.1
"#;

#[test]
fn a_server_that_ends_by_itself_is_told_with_what_was_seen_until_then() -> Result<()> {
    let bench = Bench::new(ABANDONED)?;
    let output = bench.run(&[])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
    let results = bench.read()?;
    ensure!(results.experiments[0].runs.len() == 2, "{said}");
    for run in &results.experiments[0].runs {
        let failure = run.failure.as_deref().context("it has ended")?;
        ensure!(failure.contains("has ended with exit status"), "{failure}");
        ensure!(run.check.is_none(), "there was nobody to ask");
        let answered: u64 = run.loads.iter().map(|load| load.recording.requests()).sum();
        ensure!(answered > 0, "{:?}", run.loads);
        ensure!(run.figures.get("peak_memory_bytes").is_some_and(|bytes| *bytes > 1e6));
        ensure!(run.figures.values().all(|figure| *figure >= 0.0), "{:?}", run.figures);
    }
    bench.is_left_clean()
}

const KNEE: &str = r#"
name = "knee"
title = "A knee"
question = "Is there one?"
repetitions = 2

[values]
length = 0.2

[matrix]
size = [10, 1000]

[[target]]
kind = "redis"

[[target]]
kind = "valkey"
probe = "http"

[[load]]
name = "set"
mix = "set"
size = "{size}"
connections = 5
rate = 1

[knee]
limit_ms = 200
start = 200
factor = 8
seconds = "{length}"
bisections = 1

[stop]
max_seconds = 60
"#;

#[test]
fn a_knee_is_looked_for_and_who_speaks_no_http_is_skipped() -> Result<()> {
    let bench = Bench::new(KNEE)?;
    let results =
        bench.results(&["--repetitions", "1", "--set", "size=50", "--set", "length=0.3"])?;
    let experiment = &results.experiments[0];
    ensure!(experiment.matrix == [("size".to_owned(), vec!["50".to_owned()])]);
    ensure!(
        experiment.skipped[0].reason.contains("does not answer HTTP"),
        "{:?}",
        experiment.skipped
    );
    ensure!(experiment.runs.len() == 1, "one point, one repetition");
    let knee = experiment.runs[0].knee.as_ref().context("no knee")?;
    // Whatever the machine keeps up with, the first rate is tried first, and no good step is above
    // a bad one.
    ensure!(knee.steps.len() > 1 && knee.steps[0].offered_rate == 200.0, "{knee:?}");
    let rates = |good: bool| {
        let steps = knee.steps.iter().filter(move |step| step.good == good);
        steps.map(|step| step.offered_rate)
    };
    let lowest_bad = rates(false).filter(|rate| rates(true).all(|good| good != *rate));
    let lowest_bad = lowest_bad.fold(f64::INFINITY, f64::min);
    ensure!(rates(true).all(|good| good < lowest_bad), "{knee:?}");
    let run = &experiment.runs[0];
    let Some(best) = knee.best_rate else { return bench.is_left_clean() };
    // The recording, and what the server spent, are those of the best rate and of nothing else.
    let lab::load::Pace::Open { rate, .. } = run.loads[0].recording.plan.pace else {
        bail!("a knee offers rates: {:?}", run.loads[0].recording.plan.pace)
    };
    ensure!(rate == best, "{rate} is not {best}");
    let processors = run.figures.get("server_cpu_processors").context("the server is ours")?;
    let each = run.figures.get("server_cpu_us_per_request").context("it answered")?;
    let recording = &run.loads[0].recording;
    let used = each * recording.requests() as f64 / 1e6;
    ensure!(used <= processors * recording.seconds * 3.0 + 0.1, "{:?}", run.figures);
    bench.is_left_clean()
}

/// A responder that pauses three quarters of the time keeps no limit that is shorter than its
/// pauses, and any that is longer.
#[test]
fn a_rate_is_judged_by_the_limit() -> Result<()> {
    let paused = KNEE
        .replace("[[target]]\nkind = \"redis\"\n\n", "")
        .replace(
            "kind = \"valkey\"\nprobe = \"http\"",
            "kind = \"limit\"\noptions = { stall = \"150ms:200ms\" }",
        )
        // Enough connections that no request has to wait for one.
        .replace("connections = 5", "connections = 64");
    for (limit_ms, is_good) in [(20, false), (60_000, true)] {
        let limit = format!("limit_ms = {limit_ms}");
        let bench = Bench::new(&paused.replace("limit_ms = 200", &limit))?;
        let usual = ["--repetitions", "1", "--set", "size=50", "--set", "length=0.5"];
        let results = bench.results(&usual)?;
        let knee = results.experiments[0].runs[0].knee.as_ref().context("no knee")?;
        // A hundred requests; lower rates have few, which may all meet no pause.
        let first = knee.steps.iter().filter(|step| step.offered_rate == 200.0);
        // On a busy machine the generator may be the one that was late.
        let mut judged = first.filter(|step| step.invalid.is_empty());
        ensure!(judged.all(|step| step.good == is_good), "{limit_ms} ms: {knee:?}");
        bench.is_left_clean()?;
    }
    Ok(())
}

#[test]
fn a_mistake_starts_nothing() -> Result<()> {
    let bench = Bench::new(&KNEE.replace("connections = 5", "conections = 5"))?;
    let output = bench.run(&[])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2), "{}", output.status);
    ensure!(said.contains("own.toml:24: conections in [[load]]"), "{said}");
    ensure!(said.contains("did you mean 'connections'"), "{said}");
    ensure!(!bench.out().exists());
    let output = bench.run(&["--set", "nothing=1"])?;
    ensure!(output.status.code() == Some(2), "{}", output.status);
    bench.is_left_clean()
}

const ENDLESS: &str = r#"
name = "endless"
title = "One that takes long"
question = "Can it be ended?"
repetitions = 1000

[[target]]
kinds = ["redis", "dunlin"]

[[load]]
name = "get"
mix = "get"
seconds = 0.3
connections = 2
"#;

#[test]
fn ctrl_c_ends_in_order_and_keeps_what_was_measured() -> Result<()> {
    let bench = Bench::new(ENDLESS)?;
    let mut child = started(&bench)?;
    signal(&child, Signal::INT)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    ensure!(!child.wait()?.success(), "an interrupted run is no success");
    let results = bench.read()?;
    ensure!(!results.experiments[0].runs.is_empty());
    ensure!(bench.out().join("report.html").exists());
    // Another run goes elsewhere: these results stay.
    let written = fs::read(bench.out().join("results.json"))?;
    let output = bench.run(&[])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2), "{said}");
    ensure!(said.contains("the results of another run are there"), "{said}");
    ensure!(fs::read(bench.out().join("results.json"))? == written);
    bench.is_left_clean()
}

#[test]
fn a_second_signal_ends_the_lab_at_once_and_leaves_nothing() -> Result<()> {
    let bench = Bench::new(ENDLESS)?;
    let mut child = started(&bench)?;
    signal(&child, Signal::INT)?;
    signal(&child, Signal::TERM)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    eventually("the servers' end", || Ok(bench.processes()?.is_empty()))?;
    bench.is_left_clean()
}

#[test]
fn what_a_killed_lab_has_left_goes_with_the_next_one() -> Result<()> {
    let bench = Bench::new(ENDLESS)?;
    let mut child = started(&bench)?;
    eventually("a server", || Ok(!bench.processes()?.is_empty()))?;
    signal(&child, Signal::KILL)?;
    child.wait()?;
    eventually("the servers' end", || Ok(bench.processes()?.is_empty()))?;
    ensure!(bench.is_left_clean().is_err(), "nobody could remove its directories");
    let mut child = started(&bench)?;
    signal(&child, Signal::INT)?;
    eventually("the end", || Ok(child.try_wait()?.is_some()))?;
    bench.is_left_clean()
}

const FLUSHED: &str = r#"
name = "flushed"
title = "Data that goes without a broken connection"
question = "Is it missed?"

[[target]]
kinds = ["dunlin"]

[check]
writers = 2
readers = 1
seconds = 2

[[event]]
at = 1
do = "FLUSHALL"
"#;

#[test]
fn a_loss_without_a_broken_connection_is_found() -> Result<()> {
    let bench = Bench::new(FLUSHED)?;
    let results = bench.results(&[])?;
    let run = results.experiments[0].runs.first().context("no run")?;
    ensure!(event(run, "FLUSHALL")?.outcome == "OK", "{:?}", run.events);
    let check = run.check.as_ref().context("nothing was checked")?;
    // Writes acknowledged before are gone, those after it are not; no connection was lost.
    ensure!(check.lost > 0 && check.lost < check.acknowledged, "{check:?}");
    ensure!(check.unknown == 0 && check.wrong == 0, "{check:?}");
    ensure!(check.oldest_lost_seconds.is_some_and(|seconds| seconds < 2.0), "{check:?}");
    bench.is_left_clean()
}

/// Secrets in every place that the file of an experiment has for them, and one that is swept.
const SECRETIVE: &str = r#"
name = "secretive"
title = "What must not be published"
question = "Is it?"

[matrix]
entry_token = ["hunter2swept"]

[values]
word = "hunter2value"

[[target]]
kinds = ["dunlin"]
options = { requirepass = "{word}", masterauth = "hunter2option" }
password = "{word}"
environment = { OTHER_PASSWORD = "hunter2environment" }

[[target]]
name = "broken"
command = ["/bin/sh", "-c", "echo refused: redis://ann:hunter2url@host; echo hunter2environment; exit 1", "--masterauth", "hunter2argument"]
environment = { OTHER_PASSWORD = "hunter2environment" }

[[load]]
name = "clients"
mix = "get:80,AUTH hunter2mixed:10,HELLO 3 AUTH default hunter2hello:10"
connections = 2
requests = 200

[[event]]
at = 0.05
do = "CONFIG SET masterauth hunter2event"

[[event]]
at = 0.1
do = "AUTH ann hunter2auth"

[[event]]
at = 0.15
do = "ECHO {entry_token}"

[check]
seconds = 1
"#;

/// Every file below a directory that contains a text, in upper or lower case.
fn files_with(text: &str, directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_with(text, &path)?);
            continue;
        }
        let content = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        if let Some(at) = content.find(text) {
            let around: String = content[at..].chars().take(60).collect();
            found.push(format!("{}: {around}", path.display()));
        }
        ensure!(!path.to_string_lossy().contains(text), "{}", path.display());
    }
    Ok(found)
}

#[test]
fn no_file_of_the_results_holds_a_secret() -> Result<()> {
    let bench = Bench::new(SECRETIVE)?;
    let output = bench.run(&[])?;
    ensure!(output.status.code() == Some(1), "the second target does not start: {output:?}");
    let results = bench.read()?;
    let run = results.experiments[0].runs.iter().find(|run| run.target == "dunlin");
    let run = run.context("no run of dunlin")?;
    ensure!(run.failure.is_none() && run.loads[0].recording.requests() > 0, "{run:?}");
    ensure!(event(run, "CONFIG SET masterauth (withheld)")?.outcome == "OK", "{:?}", run.events);
    let found = files_with("hunter2", &bench.out())?;
    ensure!(found.is_empty(), "{found:#?}");
    ensure!(fs::read_dir(bench.out().join("charts"))?.count() > 0, "there are charts");
    bench.is_left_clean()
}

#[test]
fn servers_end_with_a_lab_that_is_killed() -> Result<()> {
    let bench = Bench::new(ENDLESS)?;
    let mut child = started(&bench)?;
    eventually("a server", || Ok(!bench.processes()?.is_empty()))?;
    signal(&child, Signal::KILL)?;
    child.wait()?;
    eventually("the servers' end", || Ok(bench.processes()?.is_empty()))
}

#[test]
fn the_list_and_the_files_are_told() -> Result<()> {
    let told = |arguments: &[&str]| -> Result<(Option<i32>, String)> {
        let output = Command::new(dunlin_binary()?).arg("lab").args(arguments).output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
    };
    let (code, list) = told(&["list"])?;
    ensure!(code == Some(0) && list.contains("self-heal") && list.contains("valkey"), "{list}");
    let (code, file) = told(&["show", "self-heal"])?;
    ensure!(code == Some(0) && file.contains("name = \"self-heal\""), "{file}");
    // What is shown can be run: at least it is read without a mistake.
    let bench = Bench::new(&file)?;
    let output = bench.run(&["--targets", "nobody"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("there is no target 'nobody'"), "{said}");
    let (code, said) = told(&["show", "self-heel"])?;
    ensure!(code == Some(2) && said.contains("did you mean 'self-heal'?"), "{said}");
    let (code, said) = told(&["run", "nothing-of-the-kind"])?;
    ensure!(code == Some(2) && said.contains("there is no experiment"), "{said}");
    Ok(())
}

/// Results of two short runs, for what is made of results.
#[test]
fn reports_are_made_again_and_results_are_compared() -> Result<()> {
    let bench = Bench::new(&ENDLESS.replace("1000", "1"))?;
    bench.results(&[])?;
    let lab = |arguments: &[&str]| -> Result<Output> {
        let mut command = Command::new(dunlin_binary()?);
        command.arg("lab").args(arguments).current_dir(bench.path());
        command.output().context("the binary was built")
    };
    let output = lab(&["report", "out/results.json", "--out", "again"])?;
    ensure!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(bench.path().join("again/report.html"))?;
    ensure!(page.contains("Can it be ended?"));
    // What is compared with itself has not changed.
    let output = lab(&["compare", "out/results.json", "out/results.json"])?;
    ensure!(output.status.success(), "{output:?}");
    // A server that fails where it did not is worse, also where the machine had no time for the
    // load.
    let mut before = bench.read()?;
    for run in &mut before.experiments[0].runs {
        run.loads.iter_mut().for_each(|load| load.recording.generator.invalid.clear());
    }
    before.write(&bench.path().join("before.json"))?;
    let mut worse = before;
    for run in &mut worse.experiments[0].runs {
        run.loads.clear();
        run.failure = Some("it broke".to_owned());
    }
    worse.write(&bench.path().join("worse.json"))?;
    let output = lab(&["compare", "before.json", "worse.json"])?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    let output = lab(&["compare", "out/results.json", "own.toml"])?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    // A report of other runs does not take the place of these.
    let mut other = bench.read()?;
    other.experiments[0].runs.iter_mut().for_each(|run| run.started_unix_ms += 1);
    other.write(&bench.path().join("other.json"))?;
    let output = lab(&["report", "other.json", "--out", "out"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2) && said.contains("other runs"), "{said}");
    ensure!(lab(&["report", "out/results.json"])?.status.success(), "its own may be made again");
    bench.is_left_clean()
}

#[test]
fn agents_send_the_load_of_an_experiment() -> Result<()> {
    use std::io::{BufRead, BufReader};
    let bench = Bench::new(&ENDLESS.replace("1000", "1"))?;
    fs::write(bench.path().join("secret"), "a secret of two agents")?;
    let mut agents = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let mut command = Command::new("timeout");
        command.arg("100").arg(dunlin_binary()?).args(["lab", "agent", "--listen", "127.0.0.1:0"]);
        command.args(["--token-file", "secret"]).current_dir(bench.path());
        let mut agent = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(agent.stdout.take().context("it was piped")?).read_line(&mut line)?;
        addresses.push(line.trim().rsplit(' ').next().unwrap_or_default().to_owned());
        agents.push(agent);
    }
    let results = bench.results(&["--agents", &addresses.join(","), "--token-file", "secret"]);
    for agent in &mut agents {
        signal(agent, Signal::TERM)?;
        agent.wait()?;
    }
    for run in &results?.experiments[0].runs {
        ensure!(run.failure.is_none(), "{:?}", run.failure);
        let recording = &run.loads[0].recording;
        ensure!(recording.requests() > 0 && recording.generator.connects == 2, "{recording:?}");
    }
    let output = bench.run(&["--agents", &addresses[0], "--token-file", "nowhere"])?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    bench.is_left_clean()
}
