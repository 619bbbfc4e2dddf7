//! `dunlin lab report`, and what the exit code of `dunlin lab run` says about servers that do not
//! start.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use lab::results::Results;
use tests::peers;
use tests::server::dunlin_binary;

/// `dunlin lab` with these arguments in this directory, for a minute at most.
fn lab(directory: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "60"]).arg(dunlin_binary()?).arg("lab").args(arguments);
    command.current_dir(directory).env("TMPDIR", directory).stdin(Stdio::null());
    command.env("PATH", peers::search_path());
    Ok(command.output()?)
}

const SMALL: &str = r#"
name = "small"
title = "One server for a moment"
question = "Does it answer?"
answers = "E2"

[[target]]
kind = "dunlin"
threads = 1

[[load]]
name = "clients"
mix = "ping_mbulk"
connections = 2
seconds = 0.3
warmup = 0.1
"#;

#[test]
fn a_report_is_made_again_with_a_page_for_a_repository() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    fs::write(path.join("small.toml"), SMALL)?;
    let output = lab(path, &["run", "small.toml", "--out", "first"])?;
    ensure!(output.status.success(), "{output:?}");
    let output = lab(path, &["report", "first/results.json", "--out", "again"])?;
    ensure!(output.status.success(), "{output:?}");
    let read = |place: &str| Results::read(&path.join(place).join("results.json"));
    ensure!(read("first")? == read("again")?, "the results are others");
    for file in ["report.html", "results.csv"] {
        let (first, again) = (path.join("first").join(file), path.join("again").join(file));
        ensure!(fs::read(&first)? == fs::read(&again)?, "{file} differs");
    }
    ensure!(fs::read_dir(path.join("again/logs"))?.count() == 1);
    // On a busy machine the load may not count, and what does not count has no charts.
    let mut valid = read("first")?;
    for load in valid.experiments[0].runs.iter_mut().flat_map(|run| &mut run.loads) {
        load.recording.generator.invalid.clear();
    }
    valid.write(&path.join("first/results.json"))?;
    let arguments = ["report", "first/results.json", "--out", "valid", "--markdown", "docs"];
    let output = lab(path, &arguments)?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(String::from_utf8_lossy(&output.stdout) == "valid/report.html\ndocs/README.md\n");
    ensure!(fs::read_dir(path.join("valid/charts"))?.count() > 0);
    let page = fs::read_to_string(path.join("valid/report.html"))?;
    ensure!(page.contains("300 ms after 100 ms of warm-up"), "the set-up tells of the warm-up");
    let text = fs::read_to_string(path.join("docs/README.md"))?;
    let picture = text.split("](").nth(1).context("no picture")?;
    let picture = picture.split(')').next().unwrap_or_default();
    ensure!(path.join("docs").join(picture).exists(), "{picture} is not there");
    let output = lab(path, &["report", "nowhere.json"])?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    Ok(())
}

const BROKEN: &str = r#"
name = "broken"
title = "A server that ends at once"
question = "Is that said?"
repetitions = 5

[[target]]
kind = "dunlin"
threads = 1

[[target]]
name = "ends"
command = ["sh", "-c", "exit 3"]

[[target]]
name = "nowhere"
command = ["/nowhere/a-server"]

[[load]]
name = "clients"
mix = "ping_mbulk"
connections = 1
seconds = 0.1
"#;

#[test]
fn a_server_that_does_not_start_is_a_failure_and_one_that_is_not_there_is_skipped() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    fs::write(path.join("broken.toml"), BROKEN)?;
    let output = lab(path, &["run", "broken.toml", "--out", "out"])?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    let results = Results::read(&path.join("out/results.json"))?;
    let experiment = &results.experiments[0];
    let failed: Vec<&str> = experiment
        .runs
        .iter()
        .filter(|run| run.failure.is_some())
        .map(|run| &*run.target)
        .collect();
    ensure!(failed == ["ends", "ends", "ends"], "three attempts are enough: {failed:?}");
    ensure!(experiment.runs.len() == 5 + 3);
    let skipped: Vec<&str> = experiment.skipped.iter().map(|one| &*one.name).collect();
    ensure!(skipped == ["ends", "nowhere"], "{skipped:?}");
    // A server that is not there is no failure.
    let output =
        lab(path, &["run", "broken.toml", "--out", "good", "--targets", "dunlin,nowhere"])?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}
