//! Client libraries over TLS. Each script in `clients/tls` connects with a certificate, moves large
//! values, pipelines and messages, and makes sure that it gets nowhere without the certificate, and
//! goes nowhere if another authority vouches for the server.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::certificates::Certificates;
use tests::peers;
use tests::server::repository;

use crate::house::{House, run};

/// Runs a library's script against a new server.
fn play(mut script: Command) -> Result<()> {
    // Refusals that follow each other closely are told in a verbose log alone.
    let house = House::open(&[("threads", "2"), ("loglevel", "verbose")])?;
    let other = Certificates::make()?;
    script.arg(house.port.to_string()).arg(house.certificates.authority());
    script.arg(&house.client.certificate).arg(&house.client.key).arg(other.authority());
    let output = run(script, b"")?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(said.ends_with("all is well\n"), "{said}{complaints}\n{}", house.server.log_tail());
    house.logs("peer sent no certificates")
}

/// A program with a script of this name.
fn script(program: impl AsRef<std::ffi::OsStr>, name: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(repository().join("tests/tests/clients/tls").join(name));
    command
}

/// A library in Java.
fn java(name: &str) -> Result<()> {
    let mut java = Command::new("java");
    java.arg("-cp").arg(peers::directory().join(name).join("*"));
    java.arg(repository().join("tests/tests/clients/tls").join(name).join("Client.java"));
    play(java)
}

#[test]
fn redis_py_is_a_client() -> Result<()> {
    play(script(peers::directory().join("python/bin/python"), "redis_py.py"))
}

#[test]
fn ioredis_is_a_client() -> Result<()> {
    let mut node = script("node", "ioredis.js");
    node.env("NODE_PATH", peers::directory().join("node/node_modules"));
    play(node)
}

#[test]
fn go_redis_is_a_client() -> Result<()> {
    play(Command::new(peers::directory().join("go/bin/go-redis-tls")))
}

#[test]
fn jedis_is_a_client() -> Result<()> {
    java("jedis")
}

#[test]
fn lettuce_is_a_client() -> Result<()> {
    java("lettuce")
}
