//! `dunlin cli` beside redis-cli, in terminals, and in all its modes.

mod cluster;
mod modes;
mod same;
mod terminal;

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tests::peers;
use tests::server::{Server, Target, dunlin_binary};

/// What a client said, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: Option<i32>,
    out: String,
    complaints: String,
}

/// A command line client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Redis,
    Dunlin,
}

impl Client {
    fn command(self) -> Result<Command> {
        // A client that waits for ever is ended, with an exit code of its own.
        let mut command = Command::new("timeout");
        command.arg("20");
        match self {
            Client::Redis => command.arg(peers::program("redis-cli")),
            Client::Dunlin => command.arg(dunlin_binary()?).arg("cli"),
        };
        command.env_remove("REDISCLI_AUTH");
        Ok(command)
    }

    /// Runs it with these arguments, and this as standard input.
    fn run<A: AsRef<std::ffi::OsStr>>(self, arguments: &[A], input: &[u8]) -> Result<Said> {
        let mut command = self.command()?;
        command.args(arguments);
        run(command, input)
    }

    /// The same at a server.
    fn at(self, server: &Server, arguments: &[&str], input: &[u8]) -> Result<Said> {
        let port = server.port().to_string();
        self.run(&[&["-p", &port][..], arguments].concat(), input)
    }
}

fn run(mut command: Command, input: &[u8]) -> Result<Said> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting a client")?;
    let mut stdin = child.stdin.take().context("it has a standard input")?;
    // A client that does not read its input may have ended already.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output()?;
    Ok(Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Said {
    fn succeeded(self) -> Result<Said> {
        ensure!(self.code == Some(0), "{self:#?}");
        Ok(self)
    }
}

fn reference(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Reference, options)
}
