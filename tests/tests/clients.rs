//! Client libraries: the scripts in `clients/` drive the server through redis-py, ioredis and
//! @upstash/redis, and check every answer in the form that the library gives it.

use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};
use tests::peers;
use tests::server::{Server, Target, repository};

/// Runs a script against a new server; its report is the failure's text.
fn play(script: Command, name: &str, arguments: &[&str]) -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "4")])?;
    let port = server.port();
    play_at(server, port, script, name, arguments)
}

/// As [`play`], with the server that there is, and the port that the client is to know.
fn play_at(
    mut server: Server,
    port: u16,
    mut script: Command,
    name: &str,
    arguments: &[&str],
) -> Result<()> {
    let path = repository().join("tests/tests/clients").join(name);
    script.arg(path).arg(port.to_string()).args(arguments).stdin(Stdio::null());
    let output = script.output()?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        bail!("{report}\n{complaints}\nthe server's log:\n{}", server.log_tail());
    }
    ensure!(server.is_running(), "the server is gone:\n{}", server.log_tail());
    Ok(())
}

fn redis_py(protocol: &str) -> Result<()> {
    play(Command::new(peers::directory().join("python/bin/python")), "redis_py.py", &[protocol])
}

#[test]
fn redis_py_in_resp2() -> Result<()> {
    redis_py("2")
}

#[test]
fn redis_py_in_resp3() -> Result<()> {
    redis_py("3")
}

#[test]
fn upstash_redis() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "4"), ("requirepass", "secret")])?;
    let mut node = Command::new("node");
    node.env("NODE_PATH", peers::directory().join("node/node_modules"));
    play_at(server, port, node, "upstash.js", &[])
}

#[test]
fn ioredis() -> Result<()> {
    let mut node = Command::new("node");
    node.env("NODE_PATH", peers::directory().join("node/node_modules"));
    play(node, "ioredis.js", &[])
}
