//! `dunlin lab run` in a directory of its own: its results, the servers that it starts, and what it
//! leaves behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::results::{Event, Results, Run};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use tests::peers;
use tests::server::dunlin_binary;

/// How long anything may take; nothing does.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with an experiment's file, and the results beside it.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Puts the experiment there.
    pub(crate) fn new(experiment: &str) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("dunlin-test-lab-").tempdir()?;
        fs::write(directory.path().join("own.toml"), experiment)?;
        Ok(Bench { directory })
    }

    /// Where the results go.
    pub(crate) fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// Removes the results, so that another run may write there.
    pub(crate) fn forget(&self) -> Result<()> {
        fs::remove_dir_all(self.out()).context("there was a run")
    }

    /// Servers' directories go into this one, which tells their processes from all others.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=5", "110"]).arg(dunlin_binary()?);
        command.args(["lab", "run", "own.toml", "--out", "out"]).args(arguments);
        command.current_dir(self.directory.path()).env("TMPDIR", self.directory.path());
        let mut path = peers::search_path();
        path.push(":");
        path.push(peers::etcd("etcd").parent().context("a directory")?);
        command.env("PATH", path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs the experiment to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments)?.output().context("timeout is part of the system")
    }

    /// Runs the experiment to its end, and reads what it wrote.
    pub(crate) fn results(&self, arguments: &[&str]) -> Result<Results> {
        let output = self.run(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {said}", output.status);
        self.read()
    }

    /// The results of the last run.
    pub(crate) fn read(&self) -> Result<Results> {
        Ok(Results::read(&self.out().join("results.json"))?)
    }

    /// Servers that run in directories below this one, which may be removed already. Not by their
    /// command lines: servers write their own titles there.
    pub(crate) fn processes(&self) -> Result<Vec<String>> {
        let mut mark = self.directory.path().canonicalize()?.into_os_string();
        mark.push("/dunlin-lab-");
        let mark = mark.to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            // Processes of others do not tell, and those that are ending have none.
            let Ok(place) = fs::read_link(entry.path().join("cwd")) else { continue };
            if place.to_string_lossy().starts_with(&mark) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                found.push(format!("{} in {}", name.trim(), place.display()));
            }
        }
        Ok(found)
    }

    /// Watches while the experiment runs: which servers were found at some moment.
    pub(crate) fn results_and_processes(
        &self,
        arguments: &[&str],
    ) -> Result<(Results, Vec<String>)> {
        let mut child = self.command(arguments)?.stderr(Stdio::null()).spawn()?;
        let mut found = Vec::new();
        while child.try_wait()?.is_none() {
            found.extend(self.processes()?);
            sleep(Duration::from_millis(20));
        }
        let status = child.wait()?;
        ensure!(status.success(), "{status}");
        found.sort_unstable();
        found.dedup();
        Ok((self.read()?, found))
    }

    /// Neither a process nor a directory is left.
    pub(crate) fn is_left_clean(&self) -> Result<()> {
        let processes = self.processes()?;
        ensure!(processes.is_empty(), "left behind: {processes:?}");
        for entry in fs::read_dir(self.directory.path())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            ensure!(!name.starts_with("dunlin-lab-"), "{name} is left behind");
        }
        Ok(())
    }
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !holds()? {
        if start.elapsed() > PATIENCE {
            bail!("{what} does not happen");
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What became of an event of a run.
pub(crate) fn event<'a>(run: &'a Run, name: &str) -> Result<&'a Event> {
    run.events.iter().find(|event| event.name == name).with_context(|| format!("{:?}", run.events))
}

/// Starts the experiment and waits until it has measured something.
pub(crate) fn started(bench: &Bench) -> Result<Child> {
    let mut command = Command::new(dunlin_binary()?);
    command.args(["lab", "run", "own.toml", "--out", "out"]);
    command.current_dir(bench.directory.path()).env("TMPDIR", bench.directory.path());
    command.env("PATH", peers::search_path());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().context("it was piped")?).lines();
    for line in lines.by_ref() {
        if line?.contains("requests/s") {
            // A reader that stops reading must not end the lab.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(child);
        }
    }
    let status = child.wait()?;
    bail!("ended with {status} before anything was measured")
}

/// Sends a signal to the lab.
pub(crate) fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process id")?;
    Ok(kill_process(pid, signal)?)
}
