//! Tells the program which commit it is built from. In this order: what `DUNLIN_COMMIT` says, what
//! `git archive` has written into a source archive, and what git says of the working tree. A build
//! without any of these has no commit to show.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit");
    println!("cargo::rerun-if-env-changed=DUNLIN_COMMIT");
    let given = std::env::var("DUNLIN_COMMIT").ok().filter(|given| !given.is_empty());
    let commit = given.or_else(of_archive).or_else(of_working_tree).unwrap_or_default();
    println!("cargo::rustc-env=DUNLIN_COMMIT={commit}");
}

/// `git archive` replaces the file's text by the commit: see `.gitattributes`.
fn of_archive() -> Option<String> {
    let text = std::fs::read_to_string("commit").ok()?;
    let commit = text.trim();
    let is_commit = !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| commit.to_owned())
}

fn of_working_tree() -> Option<String> {
    // An archive that is unpacked inside of another repository is not built from that one.
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let own = Path::new("../..").canonicalize().ok()?;
    if Path::new(&root).canonicalize().ok()? != own {
        return None;
    }
    // It grows with each commit and each other one that is checked out.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
