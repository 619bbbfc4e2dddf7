//! Starts a server process on a free loopback port, and ends it again.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::certificates::Encryption;
use crate::client::{Client, Reply};
use crate::host::Host;
use crate::peers;

/// Which server is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The binary under test.
    Dunlin,
    /// The judge: `redis-server` 8.0.
    Reference,
    /// `valkey-server`, which judges what Redis does not have.
    Valkey,
    /// `redis-server` 7.0, for benchmarks.
    Oldest,
    /// `valkey-server` 9.1, which judges what Valkey alone has.
    NewestValkey,
}

impl Target {
    /// The name that test names carry.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Target::Dunlin => "dunlin",
            Target::Reference => "reference",
            Target::Valkey => "valkey",
            Target::Oldest => "oldest",
            Target::NewestValkey => "newest valkey",
        }
    }

    /// The command line up to the options.
    fn command(self, host: &Host) -> Result<Command> {
        let (program, argument) = match self {
            Target::Dunlin => (dunlin_binary()?, Some("serve")),
            Target::Reference => (peers::program("redis-server"), None),
            Target::Valkey => (peers::program("valkey-server"), None),
            Target::Oldest => (peers::oldest("redis-server"), None),
            Target::NewestValkey => (peers::newest("valkey-server"), None),
        };
        let mut command = host.command(program);
        command.args(argument);
        Ok(command)
    }
}

/// The options of every test server; a test's own options come after them and win.
const USUAL_OPTIONS: &[(&str, &str)] =
    &[("save", ""), ("appendonly", "no"), ("daemonize", "no"), ("enable-debug-command", "yes")];

/// How long a start may take.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A running server; dropping it kills the process and removes its directory.
#[derive(Debug)]
pub struct Server {
    target: Target,
    child: Child,
    port: u16,
    options: Vec<(String, String)>,
    host: Host,
    /// How it is reached, if not in the open.
    encryption: Option<Encryption>,
    directory: TempDir,
}

impl Server {
    /// Starts `target` in a new directory, with options named as in redis.conf.
    ///
    /// # Errors
    /// The binary is missing, or does not say that it is ready in time.
    pub fn start(target: Target, options: &[(&str, &str)]) -> Result<Self> {
        Self::start_through(target, None, options)
    }

    /// Starts the binary under test on some host.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(host: Host, options: &[(&str, &str)]) -> Result<Self> {
        Self::start_with(host, Target::Dunlin, None, options)
    }

    /// Starts `target` in a new directory. With `encryption` its port is one of TLS, and no other
    /// is open.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_through(
        target: Target,
        encryption: Option<&Encryption>,
        options: &[(&str, &str)],
    ) -> Result<Self> {
        Self::start_with(Host::default(), target, encryption, options)
    }

    fn start_with(
        host: Host,
        target: Target,
        encryption: Option<&Encryption>,
        options: &[(&str, &str)],
    ) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("dunlin-test-").tempdir()?;
        let options: Vec<_> =
            options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        // Between finding a free port and binding it, another process may take the port: try again.
        let mut attempts = 0;
        loop {
            attempts += 1;
            let port = free_port()?;
            match spawn(target, (port, encryption), &options, &host, directory.path()) {
                Ok(child) => {
                    let encryption = encryption.cloned();
                    return Ok(Self { target, child, port, options, host, encryption, directory });
                }
                Err(error) if attempts == 5 || !error.to_string().contains("in use") => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
    }

    /// Starts the binary under test with HTTP as well. Returns the port of that.
    ///
    /// # Errors
    /// As [`Server::start`], or nothing listens there.
    pub fn start_with_http(options: &[(&str, &str)]) -> Result<(Self, u16)> {
        for _ in 0..5 {
            let port = free_port()?;
            let text = port.to_string();
            let server = Self::start(Target::Dunlin, &[options, &[("http-port", &text)]].concat())?;
            // Another process may have taken the port meanwhile.
            if !server.log().contains("HTTP is not served") {
                return Ok((server, port));
            }
        }
        bail!("no port for HTTP could be had")
    }

    /// Starts the process again, on the same port and directory, after it has ended.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.kill();
        let Self { target, port, options, host, encryption, directory, .. } = self;
        let place = (*port, encryption.as_ref());
        self.child = spawn(*target, place, options, host, directory.path())?;
        Ok(())
    }

    /// Changes the options of the next start.
    pub fn set_options(&mut self, options: &[(&str, &str)]) {
        self.options =
            options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    }

    /// Adds options to those of the next start. They win.
    pub fn add_options(&mut self, options: &[(&str, &str)]) {
        let added = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        self.options.extend(added);
    }

    /// Has the next start be on another host.
    pub fn set_host(&mut self, host: Host) {
        self.host = host;
    }

    /// Lets the next start go through another program, which must execute the command line after
    /// its own in its own process, as `strace -D` does.
    pub fn set_wrapper(&mut self, wrapper: &[&str]) {
        self.host.wrapper = wrapper.iter().map(|word| (*word).into()).collect();
    }

    /// Which server it is.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address and the port it listens on.
    #[must_use]
    pub fn place(&self) -> SocketAddr {
        (self.host.address, self.port).into()
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The working directory of the process: its log and its data files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect(&self) -> Result<Client> {
        Client::connect_at(self.place(), self.encryption.as_ref().map(Encryption::config))
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How the process has ended, if it has.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Ends the process at once, as a power cut would, and waits until it is gone.
    pub fn kill(&mut self) {
        // Both fail only if the process is gone already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to end, and waits until it has; returns its exit code if it has one.
    ///
    /// # Errors
    /// It is still running after the usual patience.
    pub fn terminate(&mut self) -> Result<Option<i32>> {
        self.end_by(Signal::TERM)
    }

    /// Sends the process a signal that ends it, and waits until it has; returns its exit code if it
    /// has one.
    ///
    /// # Errors
    /// It is still running after the usual patience.
    pub fn end_by(&mut self, signal: Signal) -> Result<Option<i32>> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| anyhow!("a process id out of range"))?;
        kill_process(pid, signal)?;
        let start = Instant::now();
        while start.elapsed() < START_PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            sleep(Duration::from_millis(10));
        }
        bail!("the server ignores {signal:?}")
    }

    /// Everything the process has written to its output. A line may follow a moment after what it
    /// tells of, so this waits until nothing more comes.
    #[must_use]
    pub fn log(&self) -> String {
        let mut log = read_log(self.directory.path());
        loop {
            sleep(Duration::from_millis(20));
            let next = read_log(self.directory.path());
            if next.len() == log.len() {
                return log;
            }
            log = next;
        }
    }

    /// The end of the log, for failure messages: the crash report of a server, or the last lines.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        match log.find("BUG REPORT START") {
            Some(report) => log[report..].to_owned(),
            None => tail(&log, 25),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that was free a moment ago.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Starts the process and waits until it accepts connections.
fn spawn(
    target: Target,
    (port, encryption): (u16, Option<&Encryption>),
    options: &[(String, String)],
    host: &Host,
    directory: &Path,
) -> Result<Child> {
    let log = File::create(log_path(directory))?;
    let mut command = target.command(host)?;
    command.arg("--dir").arg(directory).arg("--bind").arg(host.address.to_string());
    match encryption {
        None => drop(command.arg("--port").arg(port.to_string())),
        Some(own) => own.settings(port).iter().for_each(|(name, value)| {
            command.arg(format!("--{name}")).arg(value);
        }),
    }
    if target == Target::Dunlin {
        // Many servers run at once, and few tests concern HTTP.
        command.args(["--http-port", "0"]);
    }
    for (name, value) in USUAL_OPTIONS {
        command.arg(format!("--{name}")).arg(value);
    }
    for (name, value) in options {
        command.arg(format!("--{name}")).arg(value);
    }
    // Some commands sort in the order of the locale; tests need the plain order.
    command.env("LC_ALL", "C");
    command.current_dir(directory).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let start = Instant::now();
    loop {
        if read_log(directory).contains("Ready to accept connections") {
            return Ok(child);
        }
        if let Some(status) = child.try_wait()? {
            bail!("{} ended with {status}:\n{}", target.name(), tail(&read_log(directory), 25));
        }
        if start.elapsed() > START_PATIENCE {
            // The process is of no use; it may be gone by now, which is no further error.
            let _ = child.kill();
            let _ = child.wait();
            bail!("{} never became ready:\n{}", target.name(), tail(&read_log(directory), 25));
        }
        sleep(Duration::from_millis(5));
    }
}

fn log_path(directory: &Path) -> PathBuf {
    directory.join("server.log")
}

fn read_log(directory: &Path) -> String {
    let bytes = fs::read(log_path(directory)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The binary under test: `DUNLIN_BIN`, or what cargo builds with the `ci` profile.
///
/// # Errors
/// It cannot be built. The answer is remembered, so that cargo runs once per process.
pub fn dunlin_binary() -> Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("DUNLIN_BIN") {
            return Ok(PathBuf::from(path));
        }
        let root = repository();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--profile", "ci", "--package", "dunlin"]);
        // ring is built again when what cargo tells a test of its package differs from before, and
        // with it most of the program.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                build.env_remove(&name);
            }
        }
        let built = build.current_dir(&root).stdin(Stdio::null()).status();
        match built {
            Ok(status) if status.success() => Ok(target_directory(&root).join("ci/dunlin")),
            Ok(status) => Err(format!("building dunlin ended with {status}")),
            Err(error) => Err(format!("cargo does not start: {error}")),
        }
    });
    built.clone().map_err(|message| anyhow!(message))
}

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// Where cargo builds.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(chosen)
}

/// The settings of a server, as `CONFIG GET *` lists them.
///
/// # Errors
/// The server does not answer with pairs of texts.
pub fn settings(control: &mut Client) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let reply = control.call(&["CONFIG", "GET", "*"])?;
    let Reply::Array(texts) = reply else { bail!("CONFIG GET * answers {reply:?}") };
    let mut settings: Vec<_> = texts
        .chunks_exact(2)
        .map(|pair| match pair {
            [Reply::Bulk(name), Reply::Bulk(value)] => Ok((name.clone(), value.clone())),
            other => bail!("CONFIG GET * holds {other:?}"),
        })
        .collect::<Result<_>>()?;
    settings.sort();
    Ok(settings)
}
