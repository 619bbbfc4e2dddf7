//! The program under test, as an operator calls it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::client::Client;
use tests::observe::{figure, number, wait_for};
use tests::server::{Server, Target, dunlin_binary};

/// A directory of this test.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().prefix("dunlin-backup-").tempdir().unwrap()
}

/// How the program has ended, and what it has said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
}

impl Ended {
    /// What it has said, if all went well.
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.text);
        self.text
    }

    /// What it has said when it could not do it.
    pub(crate) fn bad(self) -> String {
        assert_eq!(self.code, Some(1), "{}", self.text);
        self.text
    }
}

/// The program with these arguments.
pub(crate) fn program(words: &[&str]) -> Command {
    let mut command = Command::new(dunlin_binary().unwrap());
    command.args(words).stdin(Stdio::null());
    command
}

/// Runs `dunlin` to its end.
pub(crate) fn dunlin(words: &[&str]) -> Ended {
    ended(&mut program(words))
}

/// The same with a command of the test's own.
pub(crate) fn ended(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    Ended { code: status.code(), text }
}

pub(crate) fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// One run of `dunlin backup`.
pub(crate) fn back_up(port: u16, to: &Path, rest: &[&str]) -> Ended {
    let words = ["backup", "--from", &url(port), "--to", to.to_str().unwrap()];
    dunlin(&[&words[..], rest].concat())
}

/// `dunlin backup` about a store.
pub(crate) fn about(to: &Path, rest: &[&str]) -> Ended {
    dunlin(&[&["backup", "--to", to.to_str().unwrap()], rest].concat())
}

/// `dunlin restore` into a directory.
pub(crate) fn restore(from: &Path, to: &Path, rest: &[&str]) -> Ended {
    let words = ["restore", "--from", from.to_str().unwrap(), "--to", to.to_str().unwrap()];
    dunlin(&[&words[..], rest].concat())
}

/// A full copy begins at once, and does not wait for further replicas.
pub(crate) const AT_ONCE: (&str, &str) = ("repl-diskless-sync-delay", "0");

/// A server to be backed up.
pub(crate) fn start(target: Target) -> Server {
    Server::start(target, &[AT_ONCE]).unwrap()
}

/// A server that loads what was restored.
pub(crate) fn serve(target: Target, directory: &Path) -> Server {
    let options = [("dir", directory.to_str().unwrap()), ("appendonly", "yes")];
    Server::start(target, &options).unwrap()
}

/// `dunlin backup --follow` in the background; dropping it kills it.
pub(crate) struct Following {
    child: Child,
    log: PathBuf,
}

impl Following {
    pub(crate) fn start(port: u16, to: &Path, log: &Path, rest: &[&str]) -> Following {
        let words = ["backup", "--follow", "--segment-seconds", "1", "--from", &url(port), "--to"];
        let mut command = program(&[&words[..], &[to.to_str().unwrap()], rest].concat());
        Following::spawn(&mut command, log)
    }

    /// The same with a command of the test's own.
    pub(crate) fn spawn(command: &mut Command, log: &Path) -> Following {
        let file = File::options().create(true).append(true).open(log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Following { child: command.spawn().unwrap(), log: log.to_owned() }
    }

    /// What it has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has said this.
    pub(crate) fn wait_for(&self, words: &str) {
        wait_for(words, || self.said().contains(words));
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does.
    pub(crate) fn end(&mut self) {
        assert_eq!(self.terminate(), Some(0), "{}", self.said());
    }

    /// Ends it where something is wrong, and returns what it has said.
    pub(crate) fn end_badly(&mut self) -> String {
        assert_eq!(self.terminate(), Some(1), "{}", self.said());
        self.said()
    }

    fn terminate(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // It may be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the stream of a server is, which is at rest.
pub(crate) fn position(client: &mut Client) -> (String, u64) {
    let history = figure(client, "master_replid").unwrap();
    (history, number(client, "master_repl_offset").unwrap())
}

/// The same, as `--at` takes it.
pub(crate) fn place((history, offset): &(String, u64)) -> String {
    format!("{history}:{offset}")
}

/// Waits until the store has the stream up to this offset.
pub(crate) fn wait_until_stored(store: &Path, offset: u64) {
    wait_for("the store has it", || {
        let listed = about(store, &["--list", "--json"]);
        let Ok(listed) = serde_json::from_str::<serde_json::Value>(&listed.text) else {
            return false;
        };
        let ends = listed["lines"].as_array().into_iter().flatten();
        let ends = ends.filter_map(|line| line["end"].as_str()?.rsplit_once(':')?.1.parse().ok());
        std::thread::sleep(Duration::from_millis(50));
        ends.max().is_some_and(|end: u64| end >= offset)
    });
}
