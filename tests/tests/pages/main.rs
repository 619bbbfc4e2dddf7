//! The command blocks of all documents are run as they stand there, and what they show is compared.
//!
//! Each page is followed in namespaces of its own, where the usual ports are free and the addresses
//! of its examples belong to this machine. A server on the usual ports is there from the beginning,
//! and what `prepare/PAGE` says is done before the first block.
//!
//! [`tests::blocks`] says what blocks mean, [`tests::shown`] how output is compared, and [`lists`]
//! what is not run and why.
//!
//! `cargo test --package tests --test pages -- http` follows the pages with this in their name.

mod follow;
mod lists;
mod shell;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use tests::blocks;
use tests::server::{dunlin_binary, repository};

/// Says to this program that it is in the namespaces of a page.
const INSIDE: &str = "--inside";

/// Seconds for one page.
const PATIENCE: &str = "120";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, mark, page, directory] = &words[..]
        && mark == INSIDE
    {
        let failures = follow::follow(page, Path::new(directory));
        let failures = failures.unwrap_or_else(|error| vec![format!("{error:#}")]);
        let report = Path::new(directory).join("report");
        let written = fs::write(report, failures.join("\n\n"));
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("what is not run is there", || outcome(lists_are_current()))];
    for page in pages() {
        let name = page.clone();
        trials.push(Trial::test(name, move || outcome(follow_apart(&page))));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn outcome(result: Result<()>) -> Result<(), Failed> {
    result.map_err(|error| Failed::from(format!("{error:#}")))
}

/// The documents with blocks, by their paths in the repository.
fn pages() -> Vec<String> {
    let root = repository();
    let mut found: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    find(&root.join("docs"), &mut found);
    find(&root.join("examples"), &mut found);
    found.sort();
    let paths = found.iter().filter_map(|path| path.strip_prefix(&root).ok());
    paths.map(|path| path.to_string_lossy().into_owned()).filter(|page| has_blocks(page)).collect()
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("node_modules") {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn has_blocks(page: &str) -> bool {
    fs::read_to_string(repository().join(page)).is_ok_and(|text| text.contains("```"))
}

/// Follows a page in namespaces of its own: of users, so that nobody has to be root, of the
/// network, of mounts and of processes, so that none of them stays.
fn follow_apart(page: &str) -> Result<()> {
    let binary = dunlin_binary()?;
    let directory = tempfile::Builder::new().prefix("dunlin-page-").tempdir()?;
    let output = Command::new("timeout")
        .args(["--signal", "KILL", PATIENCE, "unshare"])
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"])
        .arg("--mount-proc")
        .arg(std::env::current_exe()?)
        .args([INSIDE, page])
        .arg(directory.path())
        .env("DUNLIN_BIN", binary)
        .stdin(Stdio::null())
        .output()
        .context("starting unshare")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let status = output.status;
    let report = fs::read_to_string(directory.path().join("report"))
        .with_context(|| format!("{page} was not followed to its end: {status}\n{said}"))?;
    ensure!(report.is_empty(), "{report}");
    Ok(())
}

/// An entry of a list that fits nothing has to go.
fn lists_are_current() -> Result<()> {
    let mut stale = BTreeSet::new();
    for (page, beginning, _) in lists::NOT_RUN {
        let Ok(text) = fs::read_to_string(repository().join(page)) else { continue };
        let commands: Vec<_> = blocks::steps(&text)?.into_iter().map(|step| step.text).collect();
        if !commands.iter().any(|command| command.starts_with(beginning)) {
            stale.insert(format!("{page}: nothing begins with {beginning:?}"));
        }
    }
    for (page, part, _) in lists::STAND_INS {
        let text = fs::read_to_string(repository().join(page)).unwrap_or_default();
        if !text.contains(part) {
            stale.insert(format!("{page}: nothing contains {part:?}"));
        }
    }
    ensure!(stale.is_empty(), "{stale:#?}");
    Ok(())
}
