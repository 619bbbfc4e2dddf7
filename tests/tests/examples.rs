//! The programs in `examples` that use Dunlin do what their first lines say.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tests::peers;
use tests::server::{Server, dunlin_binary, repository};

/// Runs a program to its end, and returns what it prints.
fn run(program: impl AsRef<Path>, arguments: &[&str]) -> Result<String> {
    let output = Command::new("timeout")
        .arg("300")
        .arg(program.as_ref())
        .args(arguments)
        .current_dir(repository().join("examples/go"))
        .stdin(Stdio::null())
        .output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {complaints}");
    Ok(String::from_utf8(output.stdout)?)
}

fn path(example: &str) -> String {
    repository().join("examples").join(example).display().to_string()
}

#[test]
fn no_seat_is_sold_twice() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let python = peers::directory().join("python/bin/python");
    let ports = [&*server.port().to_string(), &*port.to_string()];
    let printed = run(python, &[&*path("python/seats.py"), ports[0], ports[1]])?;
    ensure!(printed == "sold A1 A2 A3\n", "{printed}");
    Ok(())
}

#[test]
fn a_cache_follows_the_change_stream() -> Result<()> {
    let (_server, port) = Server::start_with_http(&[("threads", "2")])?;
    let printed = run("node", &[&*path("javascript/cache.mjs"), &*port.to_string()])?;
    ensure!(printed == "kept {\"price:tea\":\"3\"}\n", "{printed}");
    Ok(())
}

#[test]
fn readers_have_a_replica_beside_them() -> Result<()> {
    let binary = dunlin_binary()?;
    let mut programs = binary.parent().context("a directory")?.as_os_str().to_owned();
    programs.push(":");
    programs.push(peers::search_path());
    let python = peers::directory().join("python/bin/python");
    let output = Command::new("timeout")
        .arg("300")
        .arg(python)
        .args([&*path("sidecar/sidecar.py"), "2"])
        .env("PATH", programs)
        .stdin(Stdio::null())
        .output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{complaints}");
    let printed = String::from_utf8(output.stdout)?;
    let seen = [
        "reader 1 reads tea 3",
        "reader 2 reads tea 3",
        "reader 1 reads its own write 1",
        "reader 2 reads its own write 2",
        "reader 1 has seen 20 writes",
        "reader 2 has seen 20 writes",
    ];
    let lines: Vec<&str> = printed.lines().collect();
    ensure!(lines.len() == seen.len(), "{printed}");
    ensure!(lines.iter().zip(seen).all(|(line, seen)| line.starts_with(seen)), "{printed}");
    Ok(())
}

#[test]
fn a_service_hears_of_its_settings() -> Result<()> {
    let (_server, port) = Server::start_with_http(&[("threads", "2")])?;
    let printed = run("go", &["run", ".", &*port.to_string()])?;
    ensure!(printed == "rate 10\nrate 20\n", "{printed}");
    Ok(())
}
