//! A service manager, and a service of its.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::client::Client;
use tests::observe::{PATIENCE, wait_until};
use tests::server::{dunlin_binary, free_port};

/// Gets the messages of a service.
pub(crate) struct Manager {
    socket: UnixDatagram,
    home: TempDir,
}

impl Manager {
    pub(crate) fn new() -> Result<Manager> {
        let home = tempfile::Builder::new().prefix("dunlin-test-").tempdir()?;
        let socket = UnixDatagram::bind(home.path().join("notify"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Manager { socket, home })
    }

    /// The directory in which its service works.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The service with these options, supervised, not yet started.
    pub(crate) fn service(&self, options: &[&str]) -> Result<Command> {
        let mut command = Command::new(dunlin_binary()?);
        command.args(["serve", "--http-port", "0", "--supervised", "systemd", "--save", ""]);
        command.args(options);
        Ok(self.supervise(command))
    }

    /// A command in the environment that systemd makes.
    pub(crate) fn supervise(&self, mut command: Command) -> Command {
        command.env("NOTIFY_SOCKET", self.home().join("notify")).env_remove("UPSTART_JOB");
        command
    }

    /// Starts a service on a port of its own.
    pub(crate) fn start(&self, mut command: Command) -> Result<Service> {
        let port = free_port()?;
        command.arg("--port").arg(port.to_string());
        self.spawn(command, port)
    }

    /// Starts a service that knows its port.
    pub(crate) fn spawn(&self, mut command: Command, port: u16) -> Result<Service> {
        let log = self.home().join("output");
        let file = File::create(&log)?;
        command.current_dir(self.home()).stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Service { child: command.spawn()?, port, log })
    }

    /// The next message.
    pub(crate) fn next(&self) -> Result<String> {
        let mut buffer = [0; 4096];
        // A signal interrupts a wait with an end.
        let length = loop {
            match self.socket.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.context("a message of the service")?,
            }
        };
        Ok(String::from_utf8(buffer[..length].to_vec())?)
    }

    /// The lines of all messages up to one that has a line which begins like this.
    pub(crate) fn lines_until(&self, beginning: &str) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let message = self.next().with_context(|| format!("{beginning} after {lines:?}"))?;
            lines.extend(message.lines().map(str::to_owned));
            if message.lines().any(|line| line.starts_with(beginning)) {
                return Ok(lines);
            }
        }
    }

    /// The lines of all messages that are there.
    pub(crate) fn lines_so_far(&self) -> Result<Vec<String>> {
        self.socket.set_nonblocking(true)?;
        let mut lines = Vec::new();
        while let Ok(message) = self.next() {
            lines.extend(message.lines().map(str::to_owned));
        }
        self.socket.set_nonblocking(false)?;
        Ok(lines)
    }
}

/// A running service; dropping it kills the process.
pub(crate) struct Service {
    child: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

impl Service {
    pub(crate) fn connect(&self) -> Result<Client> {
        Client::connect(self.port)
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process id")?;
        Ok(kill_process(pid, signal)?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ends, which it does soon.
    pub(crate) fn ended(&mut self) -> Result<ExitStatus> {
        wait_until("the end of the process", || Ok(self.child.try_wait()?.is_some()))?;
        Ok(self.child.wait()?)
    }

    /// Ends it as systemd does.
    pub(crate) fn stop(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.ended()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
