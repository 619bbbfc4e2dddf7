//! A target that runs: started by the lab, or found running.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use resp::client::Value;

use super::connection::{Endpoint, info_fields};
use super::directory::Directory;
use super::interrupt::Interrupt;
use super::process::{Launch, Process};
use super::target::{Origin, Probe, Target};
use super::tree;

/// How long a start may take.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long one question for readiness may take.
const PROBE_PATIENCE: Duration = Duration::from_millis(500);
/// How long a server may take to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A target that runs. Dropping it ends what the lab has started.
#[derive(Debug)]
pub(crate) struct Server {
    launch: Option<Launch>,
    process: Option<Process>,
    door: Endpoint,
    probe: Probe,
    /// The process that answers; 0 while there is none.
    pid: Arc<AtomicU32>,
    /// Processor seconds of processes that have ended.
    spent_before: f64,
    /// How the process has ended, when nobody meant it to and it was not started again.
    ending: Option<String>,
    /// Removed last, when nobody writes there any more.
    _directory: Option<Directory>,
}

/// Why there is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StartError {
    /// It cannot be measured here, and trying again would not help.
    #[error("{0}")]
    Unfit(String),
    /// It did not start this time.
    #[error("{0}")]
    Failed(String),
    /// The lab was told to end.
    #[error("interrupted")]
    Interrupted,
}

impl Server {
    /// Starts a target and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub(crate) fn start(
        target: &Target,
        port: u16,
        directory: Directory,
        interrupt: &Interrupt,
    ) -> Result<Self, StartError> {
        let (launch, host, port) = match &target.origin {
            Origin::Missing(reason) => return Err(StartError::Unfit(reason.clone())),
            Origin::Running { host, port } => (None, host.clone(), *port),
            Origin::Command { program, arguments } => {
                let launch = Launch {
                    program: program.clone(),
                    arguments: arguments.clone(),
                    environment: target.environment.clone(),
                    cpus: target.cpus.clone(),
                    directory: directory.path().to_owned(),
                };
                (Some(launch), "127.0.0.1".to_owned(), port)
            }
        };
        let mut server = Server {
            launch,
            process: None,
            door: Endpoint { host, port, password: target.password.clone() },
            probe: target.probe,
            pid: Arc::new(AtomicU32::new(0)),
            spent_before: 0.0,
            ending: None,
            _directory: Some(directory),
        };
        server.launch()?;
        server.wait_until_ready(interrupt)?;
        Ok(server)
    }

    /// Where it listens.
    pub(crate) fn door(&self) -> &Endpoint {
        &self.door
    }

    /// The number of the process that answers, 0 while there is none; it changes with restarts.
    pub(crate) fn pid(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.pid)
    }

    /// The exact command; empty for one that was running.
    pub(crate) fn command_line(&self) -> Vec<String> {
        self.launch.as_ref().map(Launch::command_line).unwrap_or_default()
    }

    /// What it says of itself, as `redis-server 7.0.15`; empty when it does not say.
    pub(crate) fn version(&self) -> String {
        if self.probe != Probe::Ping {
            return String::new();
        }
        let reply = self
            .door
            .connect(PROBE_PATIENCE)
            .and_then(|mut connection| connection.call(&["INFO", "server"]));
        let Ok(reply) = reply else { return String::new() };
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
        let field = |name: &str| {
            info_fields(&text).find(|(field, _)| *field == name).map(|(_, value)| value.trim())
        };
        let own = ["dunlin", "valkey", "dragonfly", "keydb"];
        let own = own.into_iter().find_map(|name| Some((name, field(&format!("{name}_version"))?)));
        match (own, field("redis_version")) {
            (Some((name, version)), _) => format!("{name} {version}"),
            (None, Some(version)) => {
                let name = field("server_name").unwrap_or("redis");
                format!("{name} {version}")
            }
            (None, None) => String::new(),
        }
    }

    /// Processor seconds of the target and all that it has started, over all restarts; none when
    /// they are not known, as of a target on another machine, or of one that has ended by itself.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        self.process.as_ref()?;
        let pid = self.pid.load(Ordering::Acquire);
        // Between a kill and a new start there is nothing to add.
        let usage = if pid == 0 { tree::Usage::default() } else { tree::usage(pid)? };
        Some(self.spent_before + usage.cpu_user_seconds + usage.cpu_system_seconds)
    }

    /// Whether the lab has started it, so that it may also break it.
    pub(crate) fn is_ours(&self) -> bool {
        self.launch.is_some()
    }

    /// How the process has ended, when it has and nobody meant it to.
    pub(crate) fn unexpected_end(&mut self) -> Option<String> {
        if self.pid.load(Ordering::Acquire) == 0 {
            return self.ending.clone();
        }
        let ending = self.process.as_mut()?.ending()?;
        self.pid.store(0, Ordering::Release);
        // What it had spent went with it.
        self.process = None;
        let log = self.launch.as_ref().map(Launch::log_tail).unwrap_or_default();
        self.ending = Some(format!("the server has ended with {ending}: {log}"));
        self.ending.clone()
    }

    /// Whether the lab has started it, and it does not run any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_ours() && self.pid.load(Ordering::Acquire) == 0
    }

    /// Kills it: it ends at once and can write nothing more. The machine keeps running, so that what
    /// it had handed to the kernel is not lost, as it would be with the power. Returns the number of
    /// the process that was.
    pub(crate) fn kill(&mut self) -> Option<u32> {
        let spent = self.cpu_seconds();
        let process = self.process.as_mut()?;
        let pid = process.id();
        self.pid.store(0, Ordering::Release);
        process.kill();
        self.spent_before = spent.unwrap_or(self.spent_before);
        Some(pid)
    }

    /// Starts the process, for the first time or again. It is not ready when this returns.
    ///
    /// # Errors
    /// The program does not start.
    pub(crate) fn launch(&mut self) -> Result<(), StartError> {
        let Some(launch) = &self.launch else { return Ok(()) };
        let process = launch.start().map_err(|error| {
            let reason = format!("{} does not start: {error}", launch.program.display());
            match error.kind() {
                // It is not on this machine.
                ErrorKind::NotFound | ErrorKind::PermissionDenied => StartError::Unfit(reason),
                _ => StartError::Failed(reason),
            }
        })?;
        self.pid.store(process.id(), Ordering::Release);
        (self.process, self.ending) = (Some(process), None);
        Ok(())
    }

    /// Stops the process where it is.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn stop(&mut self) -> std::io::Result<()> {
        self.process.as_mut().map_or_else(|| Err(gone()), Process::stop)
    }

    /// Lets the process go on.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn go_on(&mut self) -> std::io::Result<()> {
        self.process.as_mut().map_or_else(|| Err(gone()), Process::go_on)
    }

    /// Whether it answers now.
    pub(crate) fn is_ready(&self) -> bool {
        match self.probe {
            Probe::Connect => self.door.open(PROBE_PATIENCE).is_ok(),
            Probe::Http => self.answers_http(),
            Probe::Ping => self
                .door
                .connect(PROBE_PATIENCE)
                .and_then(|mut connection| connection.call(&["PING"]))
                .is_ok_and(|reply| match reply {
                    Value::Error(text) => text.starts_with(b"NOAUTH"),
                    _ => true,
                }),
        }
    }

    /// Ends it: a server that the lab has started, by asking it first.
    pub(crate) fn shut_down(mut self) {
        if let Some(mut process) = self.process.take() {
            // Whatever it would save goes with its directory.
            if self.probe == Probe::Ping
                && let Ok(mut connection) = self.door.connect(PROBE_PATIENCE)
            {
                let _ = connection.call(&["SHUTDOWN", "NOSAVE"]);
            }
            process.terminate(END_PATIENCE);
        }
    }

    fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<(), StartError> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            if self.is_ready() {
                return Ok(());
            }
            if let Some(reason) = self.unexpected_end() {
                return Err(StartError::Failed(reason));
            }
            if interrupt.is_set() {
                return Err(StartError::Interrupted);
            }
            let Endpoint { host, port, .. } = &self.door;
            if self.probe == Probe::Http && self.accepts() && start.elapsed() > PROBE_PATIENCE {
                let reason = format!("it does not answer HTTP on port {port} (GET /)");
                return Err(StartError::Unfit(reason));
            }
            if self.launch.is_none() && start.elapsed() > PROBE_PATIENCE {
                return Err(StartError::Unfit(format!("nobody answers at {host}:{port}")));
            }
            if start.elapsed() > START_PATIENCE {
                let log = self.launch.as_ref().map(Launch::log_tail).unwrap_or_default();
                return Err(StartError::Failed(format!("it never became ready: {log}")));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn accepts(&self) -> bool {
        self.door.open(PROBE_PATIENCE).is_ok()
    }

    fn answers_http(&self) -> bool {
        let Ok(mut stream) = self.door.open(PROBE_PATIENCE) else { return false };
        let request =
            format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.door.host);
        let mut start = [0; 7];
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == *b"HTTP/1."
    }
}

fn gone() -> std::io::Error {
    std::io::Error::other("there is no process of the lab's own")
}
