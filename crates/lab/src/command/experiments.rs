//! `dunlin lab run`, `list` and `show`.

pub(super) mod choose;

use std::fmt::Display;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use base::clock;

use super::options::{RunOptions, mistake};
use crate::agent::{Agents, Token, TokenError};
use crate::experiment::{Choice, Definition, RunEnvironment, bundled, machine, progress, suite};
use crate::report;
use crate::results::{ExperimentResult, Machine, Results};
use crate::targets::{Interrupt, cgroup, directory};

/// Runs the requested experiments. Every file is read and filled in before anything starts.
pub(super) fn run_lab(options: &RunOptions) -> ExitCode {
    let definitions = match choose::definitions(options) {
        Ok(definitions) => definitions,
        Err(message) => return mistake(&message),
    };
    let agents = match agents(options) {
        Ok(agents) => agents,
        Err(error) => return mistake(&error.to_string()),
    };
    // Better now than after half an hour.
    let Claim { directory, .. } = &match Claim::new(options.out.as_deref()) {
        Ok(claim) => claim,
        Err(message) => return mistake(&message),
    };
    let interrupt = match Interrupt::by_signals() {
        Ok(interrupt) => interrupt,
        Err(error) => return mistake(&format!("no signals: {error}")),
    };
    let data = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    if !data.is_dir() {
        return mistake(&format!("{} is no directory", data.display()));
    }
    // Servers are started in a directory of their own below it, and get its path.
    let data = data.canonicalize().unwrap_or(data);
    match directory::remove_leftovers(&data) {
        0 => {}
        count => say(&format!("Removed {count} directories that a killed lab had left behind.\n")),
    }
    match cgroup::remove_leftovers() {
        0 => {}
        count => say(&format!("Removed {count} cgroups that a killed lab had left behind.\n")),
    }
    let environment =
        RunEnvironment { interrupt: interrupt.clone(), agents, directory: Some(data) };
    let results = run_experiments(&definitions, options.full, directory, &environment);
    let has_failed = results.experiments.iter().flat_map(|experiment| &experiment.runs);
    let has_failed = has_failed.filter(|run| run.failure.is_some()).count() > 0;
    match report::write_all(&results, directory) {
        Ok(files) => {
            let page = files.first().map(|file| file.display().to_string()).unwrap_or_default();
            let end =
                if interrupt.is_set() { "Interrupted; the report so far" } else { "The report" };
            say(&format!("\n{end} is in {page}\n"));
            let failed = has_failed || interrupt.is_set();
            if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            say(&format!("dunlin lab: the report cannot be written: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// This machine, with the file system that servers write to.
fn machine_with(data: Option<&Path>) -> Machine {
    let file_system = data.map(machine::file_system).unwrap_or_default();
    if machine::is_in_memory(&file_system) {
        say(&format!(
            "The data of servers is on {file_system}, where nothing is written to a disk, so \
             the cost of an append-only file does not show. Give a --directory on a disk.\n"
        ));
    }
    Machine { file_system, ..machine::describe() }
}

/// The agents that send the load, if this machine does not.
fn agents(options: &RunOptions) -> Result<Option<Arc<Agents>>, TokenError> {
    if options.agents.is_empty() {
        return Ok(None);
    }
    let token = Token::find(options.token_file.as_deref())?;
    Ok(Some(Arc::new(Agents { addresses: options.agents.clone(), token })))
}

fn run_experiments(
    definitions: &[Definition],
    full: bool,
    directory: &Path,
    environment: &RunEnvironment,
) -> Results {
    let mut results = Results {
        format: crate::results::FORMAT,
        started_unix_ms: clock::now_ms(),
        machine: machine_with(environment.directory.as_deref()),
        size: if full { "full" } else { "quick" }.to_owned(),
        experiments: Vec::new(),
    };
    let mut progress = progress::Progress::default();
    for (at, definition) in definitions.iter().enumerate() {
        if environment.interrupt.is_set() {
            break;
        }
        let later = definitions[at + 1..].iter().map(suite::estimate_seconds).sum();
        progress.set_later(later);
        let result: ExperimentResult =
            suite::run_experiment(definition, environment, &mut progress);
        results.experiments.push(result);
        // The measurements are not lost with the lab itself.
        if definitions.len() > 1
            && let Err(error) = results.write(&directory.join("results.json"))
        {
            say(&format!("  results.json: {error}\n"));
        }
    }
    results
}

/// The directory of a run, which no other run has written to or will write to.
struct Claim {
    directory: PathBuf,
    /// Locked until the run ends, however it does.
    _lock: File,
}

impl Claim {
    /// Claims this directory, or a new one, `lab-20261122-001338` in the present one.
    fn new(out: Option<&Path>) -> Result<Claim, String> {
        let failed = |path: &Path, error: &dyn Display| format!("{}: {error}", path.display());
        let directory = match out {
            Some(out) => {
                fs::create_dir_all(out).map_err(|error| failed(out, &error))?;
                out.to_owned()
            }
            None => new_directory().map_err(|error| failed(Path::new("."), &error))?,
        };
        let lock = File::open(&directory).map_err(|error| failed(&directory, &error))?;
        // Not every file system has locks.
        if lock.try_lock().is_err_and(|error| matches!(error, TryLockError::WouldBlock)) {
            return Err(failed(&directory, &"another run writes there"));
        }
        if directory.join("results.json").exists() {
            let why = "the results of another run are there: choose another directory";
            return Err(failed(&directory, &why));
        }
        Ok(Claim { directory, _lock: lock })
    }
}

/// Makes a directory with the time in its name.
fn new_directory() -> io::Result<PathBuf> {
    let name = format!("lab-{}", report::stamp(clock::now_ms()));
    let mut directory = PathBuf::from(&name);
    for number in 2.. {
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                directory = PathBuf::from(format!("{name}-{number}"));
            }
            made => return made.map(|()| directory),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The bundled experiments, and the servers on this machine.
pub(super) fn list() -> String {
    let mut text = String::from("Experiments:\n");
    let mut all_seconds = 0.0;
    for (name, file) in bundled::BUNDLED {
        // A test reads all of them.
        if let Ok(definition) = Definition::new(name, file, &Choice::default()) {
            let seconds = suite::estimate_seconds(&definition);
            all_seconds += seconds;
            let file = definition.file();
            let answers = file.answers.as_deref().unwrap_or("");
            let length = progress::in_words(seconds);
            text.push_str(&format!("  {name:<17} {answers:<3} {length:>6}  {}\n", file.title));
        }
    }
    let length = progress::in_words(all_seconds);
    text.push_str(&format!("  {:<17} {:<3} {length:>6}  All of them\n", "all", ""));
    text.push_str("\nServers:\n");
    for (name, state) in crate::experiment::servers() {
        text.push_str(&format!("  {name:<17} {state}\n"));
    }
    text
}

fn say(text: &str) {
    // Standard error may be gone; the results matter more.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_for_one_run() {
        let own = std::env::temp_dir().join(format!("dunlin-lab-claim-{}", std::process::id()));
        let out = own.join("deep/er");
        let claim = Claim::new(Some(&out)).unwrap();
        let busy = Claim::new(Some(&out)).map(|_| ()).unwrap_err();
        assert!(busy.ends_with("another run writes there"), "{busy}");
        drop(claim);
        // A run that was ended before it had results has left nothing.
        drop(Claim::new(Some(&out)).unwrap());
        fs::write(out.join("results.json"), "{}").unwrap();
        let taken = Claim::new(Some(&out)).map(|_| ()).unwrap_err();
        assert!(taken.contains("the results of another run are there"), "{taken}");
        fs::remove_dir_all(own).unwrap();
    }

    #[test]
    fn the_list_names_every_experiment() {
        let list = list();
        for (name, _) in bundled::BUNDLED {
            assert!(list.contains(&format!("  {name} ")), "{name} is missing in {list}");
        }
        assert!(list.contains("redis"), "{list}");
    }
}
