//! One process of a target, or one that was found running.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use resp::client::Value;

use super::cgroup::Cgroup;
use super::connection::{Endpoint, info_fields};
use super::interrupt::Interrupt;
use super::process::{Launch, Process};
use super::target::{Limits, Origin, Probe, Target};
use super::tree;

/// How long a start may take.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long one question for readiness may take.
const PROBE_PATIENCE: Duration = Duration::from_millis(500);
/// How long a server that accepts connections may take to answer HTTP: a starved one takes a while.
const HTTP_PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may take to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// One process of a target. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Member {
    name: String,
    launch: Option<Launch>,
    process: Option<Process>,
    endpoint: Endpoint,
    probe: Probe,
    /// Its address for HTTP.
    web: Endpoint,
    /// The process that answers; 0 while there is none.
    pid: Arc<AtomicU32>,
    /// Processor seconds of processes that have ended.
    spent_before: f64,
    /// How the process has ended, when the lab did not end it and it was not started again.
    ending: Option<String>,
    limits: Limits,
    /// Removed when no process is in it any more.
    cgroup: Option<Arc<Cgroup>>,
    /// Kills by the kernel before the present process was started.
    kills_before: u64,
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

impl Member {
    /// Starts a process in this directory. It is not ready when this returns.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub(super) fn start(target: &Target, directory: &Path) -> Result<Self, StartError> {
        let mut cgroup = None;
        let (launch, host, port) = match &target.origin {
            Origin::Missing(reason) => return Err(StartError::Unfit(reason.clone())),
            Origin::Running { host, port } => (None, host.clone(), *port),
            Origin::Command { program, arguments } => {
                write_files(target, directory).map_err(|error| {
                    StartError::Failed(format!("{}: {error}", directory.display()))
                })?;
                if !target.limits.is_none() {
                    let made = Cgroup::make(&target.limits).map_err(StartError::Unfit)?;
                    cgroup = Some(Arc::new(made));
                }
                let launch = Launch {
                    program: program.clone(),
                    arguments: arguments.clone(),
                    environment: target.environment.clone(),
                    cpus: target.cpus.clone(),
                    directory: directory.to_owned(),
                    cgroup: cgroup.clone(),
                };
                (Some(launch), "127.0.0.1".to_owned(), target.port)
            }
        };
        let (password, encryption) = (target.password.clone(), target.encryption.clone());
        let endpoint = Endpoint { host, port, password, encryption };
        let web = Endpoint { port: target.http_port.unwrap_or(port), ..endpoint.clone() };
        let mut member = Member {
            name: target.name.clone(),
            launch,
            process: None,
            endpoint,
            probe: target.probe,
            web,
            pid: Arc::new(AtomicU32::new(0)),
            spent_before: 0.0,
            ending: None,
            limits: target.limits,
            cgroup,
            kills_before: 0,
        };
        member.launch()?;
        Ok(member)
    }

    /// Where it takes commands.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Where it answers HTTP.
    pub(super) fn web(&self) -> &Endpoint {
        &self.web
    }

    /// The number of the process that answers, 0 while there is none; it changes with restarts.
    pub(super) fn pid(&self) -> &Arc<AtomicU32> {
        &self.pid
    }

    /// The exact command; empty for one that was running.
    pub(super) fn command_line(&self) -> Vec<String> {
        self.launch.as_ref().map(Launch::command_line).unwrap_or_default()
    }

    /// The limits under which it runs, for a reader; none if there are none.
    pub(super) fn limits(&self) -> Option<String> {
        let cpus = self.limits.cpus.map(|cpus| format!("{cpus} processors"));
        let memory = self.limits.memory.map(|bytes| format!("{} MiB of memory", bytes >> 20));
        let both: Vec<String> = cpus.into_iter().chain(memory).collect();
        (!both.is_empty()).then(|| format!("{}: {}", self.name, both.join(" and ")))
    }

    /// Its own name and version, as `redis-server 7.0.15`; empty when it does not tell.
    pub(super) fn version(&self) -> String {
        let Ok(reply) = self.call(&["INFO", "server"]) else { return String::new() };
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

    /// Processor seconds of the process and all that it has started, over all restarts; none when
    /// they are not known, as of one on another machine, or of one that has ended by itself.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        self.process.as_ref()?;
        let pid = self.pid.load(Ordering::Acquire);
        // Between a kill and a new start there is nothing to add.
        let usage = if pid == 0 { tree::Usage::default() } else { tree::usage(pid)? };
        Some(self.spent_before + usage.cpu_user_seconds + usage.cpu_system_seconds)
    }

    /// Whether the lab has started it, so that it may also break it.
    pub(super) fn is_ours(&self) -> bool {
        self.launch.is_some()
    }

    /// Whether no process of it runs, though the lab has started one.
    pub(super) fn is_gone(&self) -> bool {
        self.is_ours() && self.pid.load(Ordering::Acquire) == 0
    }

    /// How the process has ended, when it has and the lab did not end it.
    pub(super) fn unexpected_end(&mut self) -> Option<String> {
        if self.pid.load(Ordering::Acquire) == 0 {
            return self.ending.clone();
        }
        let ending = self.process.as_mut()?.ending()?;
        self.pid.store(0, Ordering::Release);
        // Its spent time went with it.
        self.process = None;
        let log = self.launch.as_ref().map(Launch::log_tail).unwrap_or_default();
        let is_full = self.kills() > self.kills_before;
        let why = if is_full { ", since its memory was full" } else { "" };
        self.ending = Some(format!("{} has ended with {ending}{why}: {log}", self.name));
        self.ending.clone()
    }

    /// How often the kernel has killed a process of it because its memory was full.
    fn kills(&self) -> u64 {
        self.cgroup.as_ref().map_or(0, |cgroup| cgroup.kills())
    }

    /// Kills it: it ends at once and can write nothing more. The machine keeps running, so data
    /// that it had handed to the kernel is not lost, as it would be in a loss of power. Returns the
    /// number of the former process.
    pub(super) fn kill(&mut self) -> Option<u32> {
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
    pub(super) fn launch(&mut self) -> Result<(), StartError> {
        self.kills_before = self.kills();
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
    pub(super) fn stop(&mut self) -> std::io::Result<()> {
        self.process.as_mut().map_or_else(|| Err(gone()), Process::stop)
    }

    /// Lets the process go on.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn go_on(&mut self) -> std::io::Result<()> {
        self.process.as_mut().map_or_else(|| Err(gone()), Process::go_on)
    }

    /// Its name in the experiment's file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is to be a replica before anything is measured.
    pub(super) fn is_replica(&self) -> bool {
        self.probe == Probe::Replica
    }

    fn call(&self, words: &[&str]) -> io::Result<Value> {
        self.endpoint.connect(PROBE_PATIENCE).and_then(|mut connection| connection.call(words))
    }

    /// Up to which offset it has the stream of writes, as a primary or as a replica whose link is
    /// up; none while it does not say.
    pub(super) fn stream_offset(&self) -> Option<u64> {
        let reply = self.call(&["INFO", "replication"]).ok()?;
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default());
        let field = |name: &str| {
            info_fields(&text).find(|(own, _)| *own == name).map(|(_, value)| value.trim())
        };
        if field("master_link_status").is_some_and(|status| status != "up") {
            return None;
        }
        field("slave_repl_offset").or(field("master_repl_offset"))?.parse().ok()
    }

    /// Whether it answers now.
    pub(super) fn is_ready(&self) -> bool {
        let call = |words: &[&str]| self.call(words);
        let pings = || {
            call(&["PING"]).is_ok_and(|reply| match reply {
                Value::Error(text) => text.starts_with(b"NOAUTH"),
                _ => true,
            })
        };
        match self.probe {
            Probe::Connect => self.endpoint.open(PROBE_PATIENCE).is_ok(),
            // A server that loads its data may serve pages already, and no commands.
            Probe::Http => self.answers_http() && (self.web.port == self.endpoint.port || pings()),
            Probe::Replica => call(&["INFO", "replication"]).is_ok_and(|reply| {
                let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default());
                info_fields(&text).any(|field| field == ("master_link_status", "up"))
            }),
            Probe::Ping => pings(),
        }
    }

    /// Ends it: a server that the lab has started, by asking it first.
    pub(super) fn shut_down(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Anything that it would save goes with its directory.
            if matches!(self.probe, Probe::Ping | Probe::Replica)
                && let Ok(mut connection) = self.endpoint.connect(PROBE_PATIENCE)
            {
                let _ = connection.call(&["SHUTDOWN", "NOSAVE"]);
            }
            process.terminate(END_PATIENCE);
        }
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]: it never is.
    pub(super) fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<(), StartError> {
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
            let Endpoint { host, port, .. } = &self.web;
            let has_time = start.elapsed() < HTTP_PATIENCE;
            if self.probe == Probe::Http && !has_time && self.accepts() && !self.answers_http() {
                let reason = format!("it does not answer HTTP on port {port} (GET /)");
                return Err(StartError::Unfit(reason));
            }
            if self.launch.is_none() && start.elapsed() > PROBE_PATIENCE {
                let why = self.endpoint.connect(PROBE_PATIENCE).err();
                let why = why.map(|error| format!(": {error}")).unwrap_or_default();
                return Err(StartError::Unfit(format!("nothing answers at {host}:{port}{why}")));
            }
            if start.elapsed() > START_PATIENCE {
                let log = self.launch.as_ref().map(Launch::log_tail).unwrap_or_default();
                let name = &self.name;
                return Err(StartError::Failed(format!("{name} never became ready: {log}")));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn accepts(&self) -> bool {
        self.web.open(PROBE_PATIENCE).is_ok()
    }

    fn answers_http(&self) -> bool {
        let protocols = vec![b"http/1.1".to_vec()];
        let Ok(mut stream) = self.web.open_stream(PROBE_PATIENCE, protocols) else { return false };
        let request =
            format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.web.host);
        let mut start = [0; 7];
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == *b"HTTP/1."
    }
}

/// The directory, and the files that the experiment wants in it.
fn write_files(target: &Target, directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in &target.files {
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

fn gone() -> std::io::Error {
    std::io::Error::other("there is no process of the lab's own")
}
