//! What users connect with: the scripts in `clients/` drive the server through redis-py and
//! ioredis and check every answer as the library shapes it.

use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};
use tests::server::{Server, Target, peers, repository};

/// Runs a script against a new server; its report is the failure's text.
fn play(mut script: Command, name: &str, arguments: &[&str]) -> Result<()> {
    let mut server = Server::start(Target::Dunlin, &[("threads", "4")])?;
    let path = repository().join("tests/tests/clients").join(name);
    script.arg(path).arg(server.port().to_string()).args(arguments).stdin(Stdio::null());
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
    play(Command::new(peers().join("python/bin/python")), "redis_py.py", &[protocol])
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
fn ioredis() -> Result<()> {
    let mut node = Command::new("node");
    node.env("NODE_PATH", peers().join("node/node_modules"));
    play(node, "ioredis.js", &[])
}
